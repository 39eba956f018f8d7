//! `weir lab compare`: two runs beside each other.
//!
//! It must never measure, and never end with success where `--fail-on-worse` found something.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use terminal::Table;

use super::results::load;
use crate::compare::{RowChange, RowVerdict, RunComparison, compare};
use crate::present::{count, number, one_line, times};
use crate::results::Coordinates;
use stats::CONFIDENCE;

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
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
    /// Print every row, not only those that changed.
    #[arg(long)]
    all: bool,
    /// End with exit code 1 when something is worse.
    #[arg(long)]
    fail_on_worse: bool,
}

impl CompareArgs {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let found = compare(&load(&self.first)?, &load(&self.second)?);
        if self.json {
            files::print(&(serde_json::to_string_pretty(&found)? + "\n"))?;
        } else {
            files::print(&compared(&found, self.all, terminal::width()))?;
        }
        let is_failure = self.fail_on_worse && found.is_worse();
        Ok(if is_failure { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// The comparison for a terminal.
fn compared(found: &RunComparison, all: bool, width: usize) -> String {
    let mut out = String::new();
    if !found.differences.is_empty() {
        out += "The runs differ in more than their figures:\n";
        for difference in &found.differences {
            let _ = writeln!(out, "  {}", one_line(difference));
        }
    }
    let is_shown = |row: &&RowChange| match row.verdict {
        RowVerdict::Better | RowVerdict::Worse => true,
        RowVerdict::NoChange | RowVerdict::SingleStart => all,
    };
    let mut rows: Vec<&RowChange> = found.rows.iter().filter(is_shown).collect();
    rows.sort_by_key(|row| order(row.verdict));
    if !rows.is_empty() {
        let heads = ["scenario", "where", "switch", "metric", "first", "second", "×", "is"];
        let mut table = Table::new(heads).keys(4);
        for row in rows {
            table.row(line(row));
        }
        let _ = writeln!(out, "{}", table.boxed(width));
    }
    for (name, only) in [("first", &found.only_first), ("second", &found.only_second)] {
        if !only.is_empty() {
            let _ = writeln!(out, "Only in the {name} run: {}", count(only.len(), "row", "rows"));
        }
        for row in only {
            let _ = writeln!(out, "  {}", one_line(row));
        }
    }
    out + &verdicts(found)
}

fn verdicts(found: &RunComparison) -> String {
    let mut out = format!("{} in both runs:", count(found.rows.len(), "row", "rows"));
    let mut comma = "";
    for verdict in
        [RowVerdict::Worse, RowVerdict::Better, RowVerdict::NoChange, RowVerdict::SingleStart]
    {
        let rows = found.count(verdict);
        if rows > 0 {
            let _ = write!(out, "{comma} {rows} {}", verdict.label());
            comma = ",";
        }
    }
    out += ".\n";
    let changed = found.count(RowVerdict::Worse) + found.count(RowVerdict::Better);
    if changed > 0 {
        let together = [RowVerdict::Worse, RowVerdict::Better].map(|of| found.count_together(of));
        let compared = found.rows.len() - found.count(RowVerdict::SingleStart);
        let _ = writeln!(
            out,
            "Each by its own 95 % interval: of so many rows without a change about {:.1} would be \
             called better or worse by chance; with all rows counted {} worse and {} better hold.",
            compared as f64 * (1.0 - CONFIDENCE),
            together[0],
            together[1]
        );
    }
    out
}

/// Order of verdicts: worse ones come first.
fn order(verdict: RowVerdict) -> u8 {
    match verdict {
        RowVerdict::Worse => 0,
        RowVerdict::Better => 1,
        RowVerdict::NoChange => 2,
        RowVerdict::SingleStart => 3,
    }
}

fn line(row: &RowChange) -> [String; 8] {
    let unit = if row.unit.is_empty() { String::new() } else { format!(", {}", row.unit) };
    let change = match (row.ratio, row.interval) {
        (Some(ratio), Some((low, high))) => {
            format!("{} ({}–{})", times(ratio), times(low), times(high))
        }
        (Some(ratio), None) => times(ratio),
        (None, Some((low, high))) => {
            let [shift, low, high] = [row.shift, low, high].map(|one| signed(one, row.decimals));
            format!("{shift} ({low} to {high})")
        }
        (None, None) => signed(row.shift, row.decimals),
    };
    [
        one_line(&row.scenario),
        place(&row.at),
        one_line(&row.dut),
        one_line(&format!("{}{unit}", row.label)),
        number(row.first, row.decimals),
        number(row.second, row.decimals),
        change,
        row.verdict.label().to_owned(),
    ]
}

/// `+5` for 5 more, `-5` for 5 less.
fn signed(value: f64, decimals: usize) -> String {
    let plus = if value > 0.0 { "+" } else { "" };
    format!("{plus}{}", number(value, decimals))
}

fn place(at: &Coordinates) -> String {
    let words = at.iter().map(|(axis, value)| format!("{axis}={value}"));
    one_line(&words.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::compared;
    use crate::compare::compare;
    use crate::present::sample;

    #[test]
    fn a_comparison_names_what_differs_first_and_fits_its_width() {
        let (first, mut second) = (sample::results(), sample::results());
        second.machine.kernel = "Linux 7.0".into();
        for row in second.scenarios[1].cells.iter_mut().flat_map(|cell| &mut cell.rows) {
            row.samples.iter_mut().for_each(|sample| *sample *= 0.5);
        }
        second.scenarios[0].cells.pop();
        second.scenarios[0].cells.pop();
        let found = compare(&first, &second);
        for width in [80, 140] {
            let text = compared(&found, true, width);
            assert!(text.starts_with("The runs differ in more than their figures:\n  kernel: "));
            assert!(text.contains(" worse") && text.contains("Only in the first run: 3 "));
            assert!(
                text.lines()
                    .filter(|l| l.starts_with(['│', '┌']))
                    .all(|l| { l.chars().count() <= width })
            );
        }
        assert!(found.is_worse());
    }

    #[test]
    fn a_difference_has_its_sign_and_its_interval() {
        let runs = [[0.0, 0.0, 0.0], [5.0, 6.0, 7.0]].map(|samples| {
            let mut run = sample::results();
            run.scenarios.truncate(1);
            let cells = &mut run.scenarios[0].cells;
            cells.truncate(1);
            cells[0].rows.truncate(1);
            cells[0].rows[0].samples = samples.into();
            cells[0].rows[0].starts.truncate(3);
            run
        });
        let text = compared(&compare(&runs[0], &runs[1]), true, 200);
        assert!(text.contains("+6.000 (+3.516 to +8.484)"), "{text}");
        assert!(text.contains("without a change about 0.1 would be"), "{text}");
        let back = compared(&compare(&runs[1], &runs[0]), true, 200);
        assert!(back.contains("-6.000 (-8.484 to -3.516)"), "{back}");
    }
}
