//! The samples as comma-separated values (RFC 4180): a line for each, with all its conditions.
//!
//! Cells without figures and trials that were left out have their lines too, with the reason, so
//! that a sum over the file cannot miss them. It must never leave a quote or a line end bare.

use std::collections::BTreeSet;

use super::{Form, View};
use crate::results::{CellResults, CellState, MetricInfo, Results, ScenarioResults, TrialRecord};

pub(super) const FORM: Form = Form {
    name: "csv",
    about: "A line for each sample, with its conditions",
    endings: &["csv"],
    draw: |results, _: &View| render(results),
};

/// The columns before those of the axes.
const BEFORE: [&str; 5] = ["evaluation", "scenario", "switch", "state", "reason"];

/// The columns behind those of the axes.
const BEHIND: [&str; 19] = [
    "metric",
    "unit",
    "better",
    "start",
    "value",
    "floor",
    "method",
    "attempt",
    "tool",
    "stall_ms",
    "limiting_part",
    "conditions",
    "started",
    "quick",
    "weir",
    "machine",
    "cpu",
    "cores",
    "kernel",
];

/// The table, with a line of headings.
fn render(results: &Results) -> String {
    let axes: BTreeSet<&str> = results
        .scenarios
        .iter()
        .flat_map(|scenario| &scenario.cells)
        .flat_map(|cell| cell.at.keys().map(String::as_str))
        .collect();
    let mut out = Csv { text: String::new(), results, axes };
    let axes = out.axes.iter().map(|axis| format!("at_{axis}"));
    let head: Vec<String> = BEFORE
        .iter()
        .map(|name| (*name).to_owned())
        .chain(axes)
        .chain(BEHIND.iter().map(|name| (*name).to_owned()))
        .collect();
    out.line(&head);
    for scenario in &results.scenarios {
        for cell in &scenario.cells {
            out.cell(scenario, cell);
        }
    }
    out.text
}

struct Csv<'a> {
    text: String,
    results: &'a Results,
    axes: BTreeSet<&'a str>,
}

/// A sample, or a trial that gave none.
#[derive(Default)]
struct CsvSample<'a> {
    state: &'a str,
    reason: &'a str,
    metric: Option<&'a MetricInfo>,
    value: Option<f64>,
    floor: Option<f64>,
    trial: Option<&'a TrialRecord>,
}

impl Csv<'_> {
    fn cell(&mut self, scenario: &ScenarioResults, cell: &CellResults) {
        let reason = match &cell.state {
            CellState::Measured => None,
            CellState::NotSupported(reason) => Some(("not supported", reason)),
            CellState::Missing(reason) => Some(("missing", reason)),
            CellState::Failed(reason) => Some(("failed", reason)),
            CellState::Skipped(reason) => Some(("skipped", reason)),
            CellState::Pending(reason) => Some(("not measured", reason)),
        };
        if let Some((state, reason)) = reason {
            self.sample(scenario, cell, &CsvSample { state, reason, ..CsvSample::default() });
        }
        for row in &cell.rows {
            for (start, value) in row.starts.iter().zip(&row.samples) {
                let is_it = |trial: &&TrialRecord| {
                    trial.start == *start
                        && trial.error.is_none()
                        && trial.values.contains_key(&row.metric)
                };
                let sample = CsvSample {
                    state: "measured",
                    metric: scenario.metric(&row.metric),
                    value: Some(*value),
                    floor: row.floor,
                    // The first of several is the warm-up.
                    trial: cell.trials.iter().rfind(is_it),
                    ..CsvSample::default()
                };
                self.sample(scenario, cell, &sample);
            }
        }
        for trial in &cell.trials {
            let Some(reason) = &trial.error else { continue };
            let trial = Some(trial);
            let sample = CsvSample { state: "left out", reason, trial, ..CsvSample::default() };
            self.sample(scenario, cell, &sample);
        }
    }

    fn sample(&mut self, scenario: &ScenarioResults, cell: &CellResults, sample: &CsvSample<'_>) {
        let mut fields = vec![
            scenario.evaluation.clone().unwrap_or_default(),
            scenario.id.clone(),
            cell.dut.clone(),
            sample.state.to_owned(),
            sample.reason.to_owned(),
        ];
        fields.extend(self.axes.iter().map(|axis| cell.at.get(*axis).cloned().unwrap_or_default()));
        let metric = |of: fn(&MetricInfo) -> String| sample.metric.map(of).unwrap_or_default();
        fields.push(metric(|metric| metric.id.clone()));
        fields.push(metric(|metric| metric.unit.clone()));
        fields.push(metric(|metric| format!("{:?}", metric.better).to_lowercase()));
        let trial = |of: fn(&TrialRecord) -> String| sample.trial.map(of).unwrap_or_default();
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        fields.push(trial(|trial| trial.start.to_string()));
        fields.push(number(sample.value));
        fields.push(number(sample.floor));
        fields.push(trial(|trial| trial.method.clone()));
        fields.push(trial(|trial| trial.attempt.to_string()));
        fields.push(trial(|trial| trial.tool.clone()));
        fields.push(trial(|trial| trial.stall_ms.to_string()));
        fields.push(trial(|trial| {
            let part = trial.limit.as_ref().map(|limit| limit.part.label());
            part.unwrap_or_default().to_owned()
        }));
        let conditions = scenario.conditions.iter().map(|(name, value)| format!("{name}={value}"));
        fields.push(conditions.collect::<Vec<_>>().join("; "));
        let results = self.results;
        let machine = sample.trial.map_or(&results.machine, |trial| results.machine_of(trial));
        fields.push(results.started.clone());
        fields.push(results.is_quick.to_string());
        fields.push(results.weir.clone());
        fields.push(machine.id.clone());
        fields.push(machine.cpu.clone());
        fields.push(machine.cores.to_string());
        fields.push(machine.kernel.clone());
        self.line(&fields);
    }

    fn line(&mut self, fields: &[String]) {
        let quoted: Vec<String> = fields.iter().map(|field| quote(field)).collect();
        self.text += &quoted.join(",");
        self.text += "\r\n";
    }
}

fn quote(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::present::sample::{HOSTILE, hostile, results};

    /// Reads RFC 4180 by its grammar, quotes and all.
    fn read(text: &str) -> Vec<Vec<String>> {
        let (mut lines, mut line, mut field) = (Vec::new(), Vec::new(), String::new());
        let (mut is_quoted, mut letters) = (false, text.chars().peekable());
        while let Some(letter) = letters.next() {
            match (is_quoted, letter) {
                (true, '"') if letters.peek() == Some(&'"') => {
                    field.push('"');
                    letters.next();
                }
                (_, '"') => is_quoted = !is_quoted,
                (false, ',') => line.push(std::mem::take(&mut field)),
                (false, '\r') => {}
                (false, '\n') => {
                    line.push(std::mem::take(&mut field));
                    lines.push(std::mem::take(&mut line));
                }
                (_, letter) => field.push(letter),
            }
        }
        assert!(!is_quoted && field.is_empty() && line.is_empty(), "cut off");
        lines
    }

    #[test]
    fn each_sample_has_a_line_with_its_conditions() {
        let results = results();
        let text = render(&results);
        let golden = [
            "evaluation,scenario,switch,state,reason,at_entries,at_fields,at_match,at_size,metric,\
             unit,better,start,value,floor,method,attempt,tool,stall_ms,limiting_part,conditions,\
             started,quick,weir,machine,cpu,cores,kernel\r\n",
            "E4,cached-forwarding,linux-bridge,not supported,a Linux bridge has no flow entries,\
             1000,1,,64,,,,,,,,,,,,seed=7; starts=5; testbed=veth; trial=2 s,\
             2026-11-23T08:00:00Z,true,0.1.0,,A CPU @ 2.50GHz,2,Linux 6.1\r\n",
            ",left out,the machine stalled for 41 ms,,,port,,,,,0,,,method-delay_us,0,\
             weir generator,41,,",
        ];
        for piece in golden {
            assert!(text.contains(piece), "{piece}\nis not in\n{text}");
        }
        let lines = read(&text);
        let width = lines[0].len();
        assert!(lines.iter().all(|line| line.len() == width));
        let value = lines[0].iter().position(|name| name == "value").unwrap();
        let found: Vec<f64> =
            lines[1..].iter().filter_map(|line| line[value].parse().ok()).collect();
        let cells = results.scenarios.iter().flat_map(|scenario| &scenario.cells);
        let samples: Vec<f64> =
            cells.flat_map(|cell| &cell.rows).flat_map(|row| row.samples.clone()).collect();
        assert_eq!(found, samples, "every sample, unrounded, in order");
    }

    /// The value is not that of the warm-up, nor are the stall and the tool beside it.
    #[test]
    fn a_sample_stands_beside_a_trial_that_counts() {
        let mut results = results();
        let trials = &mut results.scenarios[0].cells[0].trials;
        let mut counted = trials[0].clone();
        (counted.trial, counted.tool) = (1, "the one that counts".to_owned());
        trials.push(counted);
        assert!(render(&results).contains(",the one that counts,"));
    }

    #[test]
    fn hostile_texts_stay_in_their_fields() {
        let lines = read(&render(&hostile()));
        let width = lines[0].len();
        assert!(lines.iter().all(|line| line.len() == width));
        assert!(lines.iter().any(|line| line.iter().filter(|field| *field == HOSTILE).count() > 2));
    }
}
