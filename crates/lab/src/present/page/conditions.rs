//! Under what the figures hold: machine, programs, commands, durations, seeds, floor, stalls, rule.
//!
//! It must never leave out a trial that was left out.

use crate::present::markup::{Markup, Piece, markup};
use crate::present::number::{axis_value, number};
use crate::results::{CellResults, Results, ScenarioResults, TrialRecord};

/// Largest number of left-out trials that are named for each scenario.
const LEFT_OUT_MAX: usize = 200;

/// The part of the page.
pub(super) fn part(results: &Results) -> Markup {
    let notes: Markup = results.notes.iter().map(|note| markup!("<li>{}</li>", note)).collect();
    let programs = results.programs.iter().map(|one| [&one.name, &one.version, &one.path]);
    markup!(
        "<section id=\"conditions\"><h2>Conditions</h2>{}{}{}{}{}</section>",
        (!notes.is_empty()).then(|| markup!("<h3>Notes</h3><ul>{}</ul>", notes)),
        machine(results),
        folded("Programs", &table(&["program", "version", "path"], programs)),
        results.scenarios.iter().map(one).collect::<Markup>(),
        folded(
            "How the limiting part is named",
            &markup!("<p class=\"prose\">{}</p>", results.rule)
        )
    )
}

fn folded(summary: &str, content: &Markup) -> Markup {
    markup!(
        "<details><summary>{}</summary><div class=\"scroll\" role=\"region\" tabindex=\"0\" \
         aria-label=\"{0}\">{}</div></details>",
        summary,
        content
    )
}

/// A table whose first column names the row.
fn table<P: Piece, const N: usize>(
    columns: &[&str; N],
    rows: impl Iterator<Item = [P; N]>,
) -> Markup {
    let head = columns.iter().map(|name| markup!("<th scope=\"col\">{}</th>", *name));
    let cell = |(at, text): (usize, P)| match at {
        0 => markup!("<th scope=\"row\">{}</th>", text),
        _ => markup!("<td>{}</td>", text),
    };
    let row = |row: [P; N]| {
        markup!("<tr>{}</tr>", row.into_iter().enumerate().map(cell).collect::<Markup>())
    };
    markup!(
        "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>",
        head.collect::<Markup>(),
        rows.map(row).collect::<Markup>()
    )
}

fn facts<N: Piece, V: Piece>(facts: impl Iterator<Item = (N, V)>) -> Markup {
    let one = |(name, value)| markup!("<div><dt>{}</dt><dd>{}</dd></div>", name, value);
    markup!("<dl class=\"facts\">{}</dl>", facts.map(one).collect::<Markup>())
}

fn machine(results: &Results) -> Markup {
    let machine = &results.machine;
    let kind = if machine.virtual_machine { "yes" } else { "no" };
    let rows = [
        ("Command", results.command.join(" ")),
        ("Started", results.started.clone()),
        ("Took", format!("{} s", number(results.duration_s, 1))),
        ("Durations and starts", if results.is_quick { "quick" } else { "full" }.to_owned()),
        ("weir", results.weir.clone()),
        ("Processor", machine.cpu.clone()),
        ("Cores", machine.cores.to_string()),
        ("Memory", format!("{} MiB", number(machine.memory_mib as f64, 0))),
        ("Kernel", machine.kernel.clone()),
        ("System", machine.os.clone()),
        ("Virtual machine", kind.to_owned()),
        ("Load average at the start", machine.load_average.clone()),
        (
            "Threads in real time",
            machine.real_time_error.clone().map_or("yes".to_owned(), |why| format!("no: {why}")),
        ),
    ];
    facts(rows.into_iter())
}

fn one(scenario: &ScenarioResults) -> Markup {
    let source = (!scenario.source.is_empty())
        .then(|| markup!("<h4>The scenario as it was run</h4><pre>{}</pre>", scenario.source));
    let content = markup!(
        "{}{}{}{}{}",
        (!scenario.conditions.is_empty()).then(|| facts(scenario.conditions.iter())),
        floors(scenario),
        trials(scenario),
        commands(scenario),
        source
    );
    folded(&format!("{}: set-up and trials", scenario.name()), &content)
}

/// Addition by the lab itself, by metric: the lowest and the highest of its cells.
fn floors(scenario: &ScenarioResults) -> Markup {
    let floor = |metric: &crate::results::MetricInfo| {
        let rows = scenario.cells.iter().filter_map(|cell| cell.row(&metric.id));
        let floors: Vec<f64> = rows.filter_map(|row| row.floor).collect();
        let low = number(floors.iter().copied().reduce(f64::min)?, metric.decimals);
        let high = number(floors.iter().copied().reduce(f64::max)?, metric.decimals);
        let range = if low == high { low } else { format!("{low}–{high}") };
        Some(markup!(
            "<p>The lab's own floor of {}, measured without a switch: {} {}.</p>",
            metric.label,
            range,
            metric.unit
        ))
    };
    scenario.metrics.iter().filter_map(floor).collect()
}

fn trials(scenario: &ScenarioResults) -> Markup {
    let all: Vec<(&CellResults, &TrialRecord)> = scenario
        .cells
        .iter()
        .flat_map(|cell| cell.trials.iter().map(move |trial| (cell, trial)))
        .collect();
    let again = all.iter().filter(|(_, trial)| trial.attempt > 0).count();
    let longest = all.iter().map(|(_, trial)| trial.stall_ms).fold(0.0, f64::max);
    let left_out: Vec<_> =
        all.iter().filter_map(|(cell, trial)| Some((cell, trial, trial.error.as_ref()?))).collect();
    let summary = markup!(
        "<p>{} trials, {} of them made again, {} left out; longest stall of the machine {} ms.</p>",
        number(all.len() as f64, 0),
        number(again as f64, 0),
        number(left_out.len() as f64, 0),
        number(longest, 1)
    );
    if left_out.is_empty() {
        return summary;
    }
    let line = |(cell, trial, error): &(&&CellResults, &&TrialRecord, &String)| {
        let place: Vec<String> =
            cell.at.iter().map(|(name, value)| format!("{name} {}", axis_value(value))).collect();
        let (dut, method, start) = (&cell.dut, &trial.method, trial.start + 1);
        let unit = if scenario.is_held { "turn" } else { "start" };
        let text = format!("{dut} {}, {method}, {unit} {start}: {error}", place.join(", "));
        markup!("<li>{}</li>", text)
    };
    let more = left_out.len().saturating_sub(LEFT_OUT_MAX);
    markup!(
        "{}<h4>Left out</h4><ul>{}</ul>{}",
        summary,
        left_out.iter().take(LEFT_OUT_MAX).map(line).collect::<Markup>(),
        (more > 0).then(|| markup!("<p>And {} more; all are in the run's folder.</p>", more))
    )
}

/// The commands of each switch at its first point: those of the others differ by the axes.
fn commands(scenario: &ScenarioResults) -> Option<Markup> {
    let mut shown: Vec<&str> = Vec::new();
    let mut found = Markup::default();
    for cell in &scenario.cells {
        if !cell.commands.is_empty() && !shown.contains(&cell.dut.as_str()) {
            shown.push(&cell.dut);
            found += markup!("<p>{}</p><pre>{}</pre>", cell.dut, cell.commands.join("\n"));
        }
    }
    (!shown.is_empty())
        .then(|| markup!("<h4>Commands, at the first point of each switch</h4>{}", found))
}
