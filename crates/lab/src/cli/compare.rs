//! `weir lab compare`: two runs beside each other, row by row.
//!
//! Rows of one scenario, switch, point and metric are compared by their starts, the first of one
//! run with the first of the other and so on: what warms up or slows down in the course of a run
//! cancels. Two runs agree in a row where the ranges of its figures overlap. It must never take two
//! trials of one start for two, and never end with success where `--fail-on-worse` found something
//! with all comparisons counted (Holm).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use terminal::Table;

use crate::campaign::record::results_of;
use crate::facts::conditions;
use crate::present::{count, headlines_of, number, one_line, times};
use crate::results::{Better, Coordinates, Metric, ResultRow, Results};
use stats::{CONFIDENCE, Comparison, Scale, holm, median};

const COMPARE_EXAMPLES: &str = "\
Examples:
  weir lab compare monday tuesday
  weir lab compare before/trials.jsonl.gz after --fail-on-worse";

/// Compare two runs, row by row.
#[derive(Args, Debug)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(super) struct CompareArgs {
    /// The folder of the first run, or its trials.jsonl.
    first: PathBuf,
    /// That of the second run.
    second: PathBuf,
    /// Print every row, not only those that changed.
    #[arg(long)]
    all: bool,
    /// Print every row as JSON.
    #[arg(long)]
    json: bool,
    /// End with exit code 1 when something is worse.
    #[arg(long)]
    fail_on_worse: bool,
}

impl CompareArgs {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let (first, second) = (results_of(&self.first)?, results_of(&self.second)?);
        let (text, json, is_worse) = compared(&first, &second, self.all, terminal::width());
        files::print(&if self.json { format!("{json:#}\n") } else { text })?;
        Ok(if self.fail_on_worse && is_worse { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// A row's place in a run: scenario, switch, point, metric.
type RowKey<'a> = (&'a str, &'a str, &'a Coordinates, &'a str);

fn rows_of(run: &Results) -> BTreeMap<RowKey<'_>, (&Metric, &ResultRow)> {
    let cells = run.scenarios.iter().flat_map(|of| of.cells.iter().map(move |cell| (of, cell)));
    let rows = cells.flat_map(|(of, cell)| cell.rows.iter().map(move |row| (of, cell, row)));
    let keyed = rows.filter_map(|(of, cell, row)| {
        let key = (of.id.as_str(), cell.dut.as_str(), &cell.at, row.metric.as_str());
        Some((key, (of.metric(&row.metric)?, row)))
    });
    keyed.collect()
}

/// Verdict on a row by itself.
fn verdict(of: Option<&Comparison>, better: Better) -> &'static str {
    match of {
        None => "one start: not known",
        Some(of) if !of.is_different() => "no change seen",
        Some(of) => match (of.estimate > of.none()) == (better == Better::Higher) {
            true => "better",
            false => "worse",
        },
    }
}

/// Whether the ranges of both figures have a value in common; none where one is no number.
fn ranges_overlap(rows: [&ResultRow; 2]) -> Option<bool> {
    let [first, second] = rows.map(ResultRow::figure);
    let (first, second) = (first?, second?);
    Some(first.low <= second.high && second.low <= first.high)
}

/// The cells of a row: place, metric, both medians, the second by or less the first, the verdict.
fn line(key: &RowKey<'_>, info: &Metric, rows: [&ResultRow; 2]) -> [String; 8] {
    let of = rows[1].beside(rows[0]);
    let shown = |value: f64| match of.map(|of| of.scale) {
        Some(Scale::Difference) => number(value, info.decimals),
        Some(Scale::Ratio) | None => times(value),
    };
    let change =
        of.map(|of| format!("{} ({} to {})", shown(of.estimate), shown(of.low), shown(of.high)));
    let at: Vec<String> = key.2.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    let [first, second] = rows.map(|row| {
        let size = row.figure().map_or(0.0, |of| of.low.abs().max(of.high.abs()));
        // What adding and subtracting leave of nothing is nothing, beside its range.
        let value = |value: f64| if value.abs() < size * 1e-9 { 0.0 } else { value };
        let text = |median| number(value(median), info.decimals);
        median(&row.samples).map_or_else(String::new, text)
    });
    let metric = format!("{}, {}", info.label, info.unit);
    let [scenario, at, dut, metric] = [key.0, &at.join(", "), key.1, &metric].map(one_line);
    let is = verdict(of.as_ref(), info.better).to_owned();
    [scenario, at, dut, metric, first, second, change.unwrap_or_default(), is]
}

/// The same as an object, with whether it holds with all rows counted and is a headline.
fn object(
    key: &RowKey<'_>,
    info: &Metric,
    rows: [&ResultRow; 2],
    adjusted: f64,
    is_headline: bool,
) -> Value {
    let of = rows[1].beside(rows[0]);
    let [first, second] = rows.map(|row| median(&row.samples));
    let change = of.map(|of| {
        let of_what = if of.scale == Scale::Ratio { "ratio" } else { "difference" };
        json!({ "of": of_what, "value": of.estimate, "low": of.low, "high": of.high })
    });
    json!({
        "scenario": key.0, "at": key.2, "metric": key.3, "unit": info.unit, "dut": key.1,
        "first": first, "second": second, "change": change,
        "is": verdict(of.as_ref(), info.better), "holds": adjusted <= 1.0 - CONFIDENCE,
        "ranges_overlap": ranges_overlap(rows), "headline": is_headline,
    })
}

/// The conditions that differ, a line each.
fn differences(first: &Results, second: &Results) -> String {
    let [first, second] = [first, second].map(|run| conditions(&run.weir, Some(&run.machine)));
    let differing = first.iter().zip(&second).filter(|(one, other)| one != other);
    let line = |((name, one), (_, other)): (&(String, String), &(String, String))| {
        one_line(&format!("The runs differ in their {name}: {one} → {other}")) + "\n"
    };
    differing.map(line).collect()
}

/// Two runs beside each other: for a terminal of that width, for programs, and whether something is
/// worse with all comparisons counted.
fn compared(
    first: &Results,
    second: &Results,
    is_all: bool,
    width: usize,
) -> (String, Value, bool) {
    let (before, after) = (rows_of(first), rows_of(second));
    let pairs: Vec<(&RowKey<'_>, &Metric, [&ResultRow; 2])> = before
        .iter()
        .filter_map(|(key, (info, was))| Some((key, *info, [*was, after.get(key)?.1])))
        .collect();
    let p_value = |[was, is]: [&ResultRow; 2]| is.beside(was).map_or(1.0, |of| of.p_value);
    let p_values: Vec<f64> = pairs.iter().map(|(.., rows)| p_value(*rows)).collect();
    let heads = ["scenario", "where", "switch", "metric", "first", "second", "×", "is"];
    let (mut table, mut is_empty) = (Table::new(heads).keys(4), true);
    let (headlines, mut objects) = (headlines_of(first), Vec::new());
    for ((key, info, rows), adjusted) in pairs.into_iter().zip(holm(&p_values)) {
        let is_headline = headlines
            .iter()
            .any(|one| (&*one.scenario, &one.at, &*one.metric) == (key.0, key.2, key.3));
        objects.push(object(key, info, rows, adjusted, is_headline));
        let line = line(key, info, rows);
        if is_all || ["better", "worse"].contains(&&*line[7]) {
            is_empty = false;
            table.row(line);
        }
    }
    let mut out = differences(first, second);
    if !is_empty {
        out += &format!("{}\n", table.boxed(width));
    }
    let of = |is_it: &dyn Fn(&Value) -> bool| objects.iter().filter(|row| is_it(row)).count();
    let [[worse, hold_worse], [better, hold_better]] = ["worse", "better"]
        .map(|is| [of(&|row| row["is"] == is), of(&|row| row["is"] == is && row["holds"] == true)]);
    let overlap = |is_it: &dyn Fn(&Value) -> bool| {
        let overlapping = of(&|row| is_it(row) && row["ranges_overlap"] == true);
        let apart = of(&|row| is_it(row) && row["ranges_overlap"] == false);
        format!("{overlapping} of {}", overlapping + apart)
    };
    let rows = count(objects.len(), "row", "rows");
    let (gone, new) = (before.len() - objects.len(), after.len() - objects.len());
    out += &format!(
        "{rows} in both runs: {worse} worse, {better} better, each by its own 95 % interval; with \
         all rows counted {hold_worse} worse and {hold_better} better hold. Only in the first run: \
         {gone}; only in the second: {new}.\n"
    );
    let (all, headline) = (overlap(&|_| true), overlap(&|row| row["headline"] == true));
    out += &format!("Ranges overlap in {all} rows, and in {headline} headline figures.\n");
    let json = json!({ "rows": objects, "only_first": gone, "only_second": new });
    (out, json, hold_worse > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::compared;
    use crate::present::sample;

    #[test]
    fn what_adding_leaves_of_nothing_is_nothing() {
        let mut results = sample::results();
        let row = &mut results.scenarios[0].cells[0].rows[0];
        row.samples.fill(5.64e-14);
        row.resolutions = vec![(-2.5, 2.5); row.samples.len()];
        let (text, ..) = compared(&results, &results, true, 140);
        assert!(!text.contains("e-14"), "{text}");
    }

    #[test]
    fn a_comparison_has_what_is_worse_and_fits_its_width() {
        let (first, mut second) = (sample::results(), sample::results());
        second.machine.kernel = "Linux 7.0".into();
        for row in second.scenarios[1].cells.iter_mut().flat_map(|cell| &mut cell.rows) {
            row.samples.iter_mut().for_each(|sample| *sample *= 0.5);
        }
        second.scenarios[0].cells.pop();
        second.scenarios[0].cells.pop();
        for width in [80, 140] {
            let (text, json, is_worse) = compared(&first, &second, true, width);
            let rows = json["rows"].as_array().unwrap();
            let worse = rows.iter().find(|row| row["is"] == "worse").unwrap();
            assert_eq!((&worse["change"]["of"], &json["only_first"]), (&"ratio".into(), &3.into()));
            assert!(worse["change"]["high"].as_f64() < Some(1.0), "{worse}");
            assert!(rows.iter().any(|row| row["holds"] == true), "{json}");
            let overlaps = rows.iter().filter(|row| row["ranges_overlap"] == true).count();
            let is_headline = |row: &&Value| row["headline"] == true;
            let of_headlines = rows.iter().filter(is_headline).count();
            assert!(overlaps < rows.len() && 0 < of_headlines && of_headlines < rows.len());
            let overlap = format!("Ranges overlap in {overlaps} of {} rows, and in ", rows.len());
            assert!(text.contains(&overlap), "{text}");
            assert!(is_worse && text.starts_with("The runs differ in their kernel: "), "{text}");
            assert!(
                text.contains(" worse") && text.contains("Only in the first run: 3;"),
                "{text}"
            );
            let boxed = text.lines().filter(|line| line.starts_with(['│', '┌']));
            assert!(boxed.map(|line| line.chars().count()).all(|length| length <= width));
        }
        let (text, json, is_worse) = compared(&first, &first, false, 80);
        assert!(!is_worse && text.contains("0 worse, 0 better"), "{text}");
        let rows = json["rows"].as_array().unwrap().len();
        assert!(text.contains(&format!("overlap in {rows} of {rows} rows, and in ")), "{text}");
    }
}
