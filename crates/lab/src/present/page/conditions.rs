//! Under what the figures hold: machine, programs, commands, durations, seeds, floor, stalls, rule.
//!
//! It must never leave out a trial that was left out.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::present::number::{axis_value, number};
use crate::results::{CellResults, Metric, Results, ScenarioResults, TrialRecord};

/// Largest number of left-out trials that are named for each scenario.
const LEFT_OUT_MAX: usize = 200;

/// The part of the page.
pub(super) fn part(results: &Results) -> Markup {
    let programs = html! {
        table {
            thead {
                tr { @for name in ["program", "version", "path"] { th scope="col" { (name) } } }
            }
            tbody {
                @for one in &results.programs {
                    tr { th scope="row" { (one.name) } td { (one.version) } td { (one.path) } }
                }
            }
        }
    };
    html! {
        section #conditions {
            h2 { "Conditions" }
            @if !results.notes.is_empty() {
                h3 { "Notes" }
                ul { @for note in &results.notes { li { (note) } } }
            }
            (facts(&machine(results)))
            (folded("Programs", &programs))
            @for scenario in &results.scenarios {
                (folded(&format!("{}: set-up and trials", scenario.name()), &set_up(scenario)))
            }
            (folded("How the limiting part is named", &html! { p.prose { (results.rule) } }))
        }
    }
}

fn folded(summary: &str, content: &Markup) -> Markup {
    html! {
        details {
            summary { (summary) }
            div.scroll role="region" tabindex="0" aria-label=(summary) { (content) }
        }
    }
}

fn facts(facts: &[(&str, String)]) -> Markup {
    html! {
        dl.facts { @for (name, value) in facts { div { dt { (name) } dd { (value) } } } }
    }
}

fn machine(results: &Results) -> [(&'static str, String); 13] {
    let machine = &results.machine;
    let kind = if machine.virtual_machine { "yes" } else { "no" };
    let real_time = machine.real_time_error.as_ref();
    [
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
        ("Threads in real time", real_time.map_or("yes".to_owned(), |why| format!("no: {why}"))),
    ]
}

/// Conditions, floors, trials, commands and source of a scenario.
fn set_up(scenario: &ScenarioResults) -> Markup {
    let conditions = scenario.conditions.iter();
    let conditions: Vec<_> = conditions.map(|(name, value)| (&**name, value.clone())).collect();
    html! {
        @if !conditions.is_empty() { (facts(&conditions)) }
        @for metric in &scenario.metrics {
            @if let Some(floor) = floor(scenario, metric) {
                p {
                    "The lab's own floor of " (metric.label) ", measured without a switch: "
                    (floor) " " (metric.unit) "."
                }
            }
        }
        (trials(scenario))
        (commands(scenario))
        @if !scenario.source.is_empty() {
            h4 { "The scenario as it was run" }
            pre { (scenario.source) }
        }
    }
}

/// Addition by the lab itself: the lowest and the highest of the cells.
fn floor(scenario: &ScenarioResults, metric: &Metric) -> Option<String> {
    let floors = || scenario.cells.iter().filter_map(|cell| cell.row(&metric.id)?.floor);
    let low = number(floors().reduce(f64::min)?, metric.decimals);
    let high = number(floors().reduce(f64::max)?, metric.decimals);
    Some(if low == high { low } else { format!("{low}–{high}") })
}

fn trials(scenario: &ScenarioResults) -> Markup {
    let all = scenario.cells.iter().flat_map(|cell| cell.trials.iter().map(move |one| (cell, one)));
    let all: Vec<(&CellResults, &TrialRecord)> = all.collect();
    let again = all.iter().filter(|(_, trial)| trial.attempt > 0).count();
    let longest = all.iter().map(|(_, trial)| trial.stall_ms).fold(0.0, f64::max);
    let left_out = all.iter().filter_map(|(cell, trial)| {
        let (dut, method, start) = (&cell.dut, &trial.method, trial.start + 1);
        let at = cell.at.iter().map(|(name, value)| format!("{name} {}", axis_value(value)));
        let place = at.collect::<Vec<_>>().join(", ");
        let (unit, error) = (scenario.turns().0, trial.error.as_ref()?);
        Some(format!("{dut} {place}, {method}, {unit} {start}: {error}"))
    });
    let left_out: Vec<String> = left_out.collect();
    let more = left_out.len().saturating_sub(LEFT_OUT_MAX);
    let [all, again, out] =
        [all.len(), again, left_out.len()].map(|trials| number(trials as f64, 0));
    html! {
        p {
            (all) " trials, " (again) " of them made again, " (out)
            " left out; longest stall of the machine " (number(longest, 1)) " ms."
        }
        @if !left_out.is_empty() {
            h4 { "Left out" }
            ul { @for text in left_out.iter().take(LEFT_OUT_MAX) { li { (text) } } }
        }
        @if more > 0 { p { "And " (more) " more; all are in the run's folder." } }
    }
}

/// The commands of each switch at its first point: those of the others differ by the axes.
fn commands(scenario: &ScenarioResults) -> Markup {
    let mut shown = BTreeSet::new();
    let cells = scenario.cells.iter().filter(|cell| !cell.commands.is_empty());
    let cells: Vec<_> = cells.filter(|cell| shown.insert(&cell.dut)).collect();
    html! {
        @if !cells.is_empty() {
            h4 { "Commands, at the first point of each switch" }
            @for cell in cells { p { (cell.dut) } pre { (cell.commands.join("\n")) } }
        }
    }
}
