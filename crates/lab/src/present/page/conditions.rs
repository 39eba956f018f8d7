//! Under what the figures hold: machine, programs, commands, durations, seeds, floor, stalls, rule.
//!
//! It must never leave out a trial that was left out.

use std::fmt::Write;

use super::escape::escape;
use crate::present::number::{axis_value, number};
use crate::results::{CellResults, Results, ScenarioResults, TrialRecord};

/// Largest number of left-out trials that are named for each scenario.
const LEFT_OUT_MAX: usize = 200;

/// The section.
pub(super) fn write(page: &mut String, results: &Results) {
    page.push_str("<section id=\"conditions\"><h2>Conditions</h2>");
    if !results.notes.is_empty() {
        page.push_str("<h3>Notes</h3><ul>");
        for note in &results.notes {
            let _ = write!(page, "<li>{}</li>", escape(note));
        }
        page.push_str("</ul>");
    }
    machine(page, results);
    machines(page, results);
    run_parts(page, results);
    folded(page, "Programs", &|page| {
        page.push_str(
            "<table><thead><tr><th scope=\"col\">program</th><th scope=\"col\">version\
                       </th><th scope=\"col\">path</th></tr></thead><tbody>",
        );
        for program in &results.programs {
            let _ = write!(
                page,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td><code>{}</code></td></tr>",
                escape(&program.name),
                escape(&program.version),
                escape(&program.path)
            );
        }
        page.push_str("</tbody></table>");
    });
    for scenario in &results.scenarios {
        one(page, scenario);
    }
    folded(page, "How the limiting part is named", &|page| {
        let _ = write!(page, "<p class=\"prose\">{}</p>", escape(&results.rule));
    });
    page.push_str("</section>");
}

fn folded(page: &mut String, summary: &str, content: &dyn Fn(&mut String)) {
    let _ = write!(
        page,
        "<details><summary>{}</summary><div class=\"scroll\" role=\"region\" tabindex=\"0\" \
         aria-label=\"{0}\">",
        escape(summary)
    );
    content(page);
    page.push_str("</div></details>");
}

fn machine(page: &mut String, results: &Results) {
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
    page.push_str("<dl class=\"facts\">");
    for (index, (name, value)) in rows.into_iter().enumerate() {
        let class = if index == 0 { " class=\"whole\"" } else { "" };
        let _ = write!(page, "<div{class}><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    page.push_str("</dl>");
}

/// The parts of a run that was gone on with.
fn run_parts(page: &mut String, results: &Results) {
    if results.parts.is_empty() {
        return;
    }
    folded(page, "Parts", &|page| {
        page.push_str("<table><thead><tr>");
        for column in ["started", "took", "ended", "machine", "command"] {
            let _ = write!(page, "<th scope=\"col\">{column}</th>");
        }
        page.push_str("</tr></thead><tbody>");
        for part in &results.parts {
            let _ = write!(
                page,
                "<tr><th scope=\"row\">{}</th><td>{} s</td><td>{}</td><td>{}</td>\
                 <td><code>{}</code></td></tr>",
                escape(&part.started),
                number(part.duration_s, 1),
                part.end.label(),
                escape(&part.machine),
                escape(&part.command.join(" "))
            );
        }
        page.push_str("</tbody></table>");
    });
}

/// Every machine of a pool.
fn machines(page: &mut String, results: &Results) {
    if results.machines.is_empty() {
        return;
    }
    folded(page, "Machines", &|page| {
        let columns = ["machine", "processor", "cores", "memory", "kernel", "system", "trials"];
        page.push_str("<table><thead><tr>");
        for column in columns {
            let _ = write!(page, "<th scope=\"col\">{column}</th>");
        }
        page.push_str("</tr></thead><tbody>");
        for machine in &results.machines {
            let cells = results.scenarios.iter().flat_map(|scenario| &scenario.cells);
            let trials = cells.flat_map(|cell| &cell.trials);
            let trials = trials.filter(|trial| trial.machine == machine.id).count();
            let _ = write!(
                page,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{} MiB</td><td>{}</td>\
                 <td>{}</td><td>{trials}</td></tr>",
                escape(&machine.id),
                escape(&machine.cpu),
                machine.cores,
                number(machine.memory_mib as f64, 0),
                escape(&machine.kernel),
                escape(&machine.os)
            );
        }
        page.push_str("</tbody></table>");
    });
}

fn one(page: &mut String, scenario: &ScenarioResults) {
    let title = if scenario.title.is_empty() { &scenario.id } else { &scenario.title };
    folded(page, &format!("{title}: set-up and trials"), &|page| {
        if !scenario.conditions.is_empty() {
            page.push_str("<dl class=\"facts\">");
            for (name, value) in &scenario.conditions {
                let (name, value) = (escape(name), escape(value));
                let _ = write!(page, "<div><dt>{name}</dt><dd>{value}</dd></div>");
            }
            page.push_str("</dl>");
        }
        floors(page, scenario);
        trials(page, scenario);
        commands(page, scenario);
        if !scenario.source.is_empty() {
            let source = escape(&scenario.source);
            let _ = write!(page, "<h4>The scenario as it was run</h4><pre>{source}</pre>");
        }
    });
}

/// Addition by the lab itself, by metric: the lowest and the highest of its cells.
fn floors(page: &mut String, scenario: &ScenarioResults) {
    for metric in &scenario.metrics {
        let rows = scenario.cells.iter().filter_map(|cell| cell.row(&metric.id));
        let floors: Vec<f64> = rows.filter_map(|row| row.floor).collect();
        let low = floors.iter().copied().reduce(f64::min);
        let high = floors.iter().copied().reduce(f64::max);
        let (Some(low), Some(high)) = (low, high) else { continue };
        let range = if low < high {
            format!("{}–{}", number(low, metric.decimals), number(high, metric.decimals))
        } else {
            number(low, metric.decimals)
        };
        let _ = write!(
            page,
            "<p>The lab's own floor of {}, measured without a switch: {range} {}.</p>",
            escape(&metric.label),
            escape(&metric.unit)
        );
    }
}

fn trials(page: &mut String, scenario: &ScenarioResults) {
    let all: Vec<(&CellResults, &TrialRecord)> = scenario
        .cells
        .iter()
        .flat_map(|cell| cell.trials.iter().map(move |trial| (cell, trial)))
        .collect();
    let again = all.iter().filter(|(_, trial)| trial.attempt > 0).count();
    let longest = all.iter().map(|(_, trial)| trial.stall_ms).fold(0.0, f64::max);
    let left_out: Vec<_> =
        all.iter().filter_map(|(cell, trial)| Some((cell, trial, trial.error.as_ref()?))).collect();
    let _ = write!(
        page,
        "<p>{} trials, {} of them made again, {} left out; longest stall of the machine {} ms.</p>",
        number(all.len() as f64, 0),
        number(again as f64, 0),
        number(left_out.len() as f64, 0),
        number(longest, 1)
    );
    if left_out.is_empty() {
        return;
    }
    page.push_str("<h4>Left out</h4><ul>");
    for (cell, trial, error) in left_out.iter().take(LEFT_OUT_MAX) {
        let place: Vec<String> =
            cell.at.iter().map(|(name, value)| format!("{name} {}", axis_value(value))).collect();
        let _ = write!(
            page,
            "<li>{} {}, {}, start {}: {}</li>",
            escape(&cell.dut),
            escape(&place.join(", ")),
            escape(&trial.method),
            trial.start + 1,
            escape(error)
        );
    }
    page.push_str("</ul>");
    if left_out.len() > LEFT_OUT_MAX {
        let more = left_out.len() - LEFT_OUT_MAX;
        let _ = write!(page, "<p>And {more} more; all are in the data.</p>");
    }
}

/// The commands of each switch at its first point: those of the others differ by the axes.
fn commands(page: &mut String, scenario: &ScenarioResults) {
    let mut shown: Vec<&str> = Vec::new();
    for cell in &scenario.cells {
        if cell.commands.is_empty() || shown.contains(&cell.dut.as_str()) {
            continue;
        }
        if shown.is_empty() {
            page.push_str("<h4>Commands, at the first point of each switch</h4>");
        }
        shown.push(&cell.dut);
        let commands = escape(&cell.commands.join("\n"));
        let _ = write!(page, "<p>{}</p><pre>{commands}</pre>", escape(&cell.dut));
    }
}
