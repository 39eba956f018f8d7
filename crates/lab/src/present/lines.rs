//! The figures as lines of JSON, for programs: one for each switch and metric at each point.
//!
//! A line has the ratio to every other switch of its row. Where there is no figure it must have the
//! reason.

use serde_json::{Value, json};
use stats::Comparison;

use super::entry::NOT_MEASURED;
use super::ratio::ratio;
use super::section::{Section, TableRow, sections};
use super::{Form, View, limit_label};
use crate::results::Results;

pub(super) const FORM: Form = Form {
    name: "lines",
    about: "A line of JSON for each figure, with its samples and its ratio to every other switch",
    endings: &[],
    draw: |results, _: &View| render(results),
};

/// Every row, trial and condition.
pub(super) const JSON: Form = Form {
    name: "json",
    about: "Every row, trial and condition, as `weir lab run --json` prints them",
    endings: &["json"],
    draw: |results, _: &View| json(results),
};

/// All of the results in one line.
pub(crate) fn json(results: &Results) -> String {
    // Results hold nothing that JSON cannot: the only failure would be our own mistake.
    serde_json::to_string(results).expect("results are representable as JSON") + "\n"
}

fn render(results: &Results) -> String {
    let mut text = String::new();
    for section in &sections(results) {
        for row in section.tables.iter().flat_map(|table| &table.rows) {
            for mut line in (0..row.entries.len()).filter_map(|place| line(section, row, place)) {
                line["started"] = results.started.clone().into();
                text += &format!("{line}\n");
            }
        }
    }
    text
}

/// The line of a switch; none where the run has nothing of it.
fn line(section: &Section<'_>, row: &TableRow<'_>, place: usize) -> Option<Value> {
    let (dut, metric) = (section.duts[place], row.metric);
    let mut line = json!({
        "row": row.anchor, "scenario": section.scenario.id, "at": row.at, "metric": metric.id,
        "unit": metric.unit, "dut": dut,
    });
    let figure = match &row.entries[place] {
        Ok(figure) => figure,
        Err(NOT_MEASURED) => return None,
        Err((word, reason)) => {
            line["absent"] = format!("{word}: {reason}").into();
            return Some(line);
        }
    };
    let others = section.duts.iter().enumerate().filter(|(other, _)| *other != place);
    let beside = others.filter_map(|(other, dut)| {
        let Comparison { estimate, low, high, .. } = ratio(figure, row.figure(other)?)?;
        Some(json!({ "dut": dut, "ratio": estimate, "low": low, "high": high }))
    });
    line["beside"] = beside.collect();
    line["value"] = figure.value.into();
    (line["low"], line["high"]) = (figure.range.0.into(), figure.range.1.into());
    line["starts"] = figure.starts.into();
    line["samples"] = figure.row.samples.clone().into();
    line["limit"] = figure.limit.map(limit_label).into();
    line["remarks"] = figure.remarks().into();
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::present::sample::{hostile, results};

    #[test]
    fn a_line_has_a_figure_or_the_reason_that_there_is_none() {
        let text = render(&results());
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.iter().all(|line| line["value"].is_f64() != line["absent"].is_string()));
        let samples = lines.iter().filter_map(|line| line["samples"].as_array());
        let cells = results().scenarios.into_iter().flat_map(|scenario| scenario.cells);
        let all: usize = cells.flat_map(|cell| cell.rows).map(|row| row.samples.len()).sum();
        assert_eq!(samples.map(Vec::len).sum::<usize>(), all, "every sample");
        let absent = "not supported: a Linux bridge has no flow entries";
        assert!(lines.iter().any(|line| line["absent"] == absent), "{text}");
        // Each of two switches has its ratio to the other.
        let mut ratios = lines.iter().filter_map(|line| {
            let other = line["beside"].as_array()?.first()?;
            let same =
                |one: &&serde_json::Value| one["row"] == line["row"] && one["dut"] == other["dut"];
            let back = lines.iter().find(same)?["beside"].as_array()?;
            let back = back.iter().find(|one| one["dut"] == line["dut"])?;
            Some(other["ratio"].as_f64()? * back["ratio"].as_f64()?)
        });
        assert!(ratios.next().is_some_and(|product| (product - 1.0).abs() < 1e-9));
        assert!(ratios.all(|product| (product - 1.0).abs() < 1e-9));
        assert!(render(&hostile()).lines().all(|line| line.starts_with('{')));
    }
}
