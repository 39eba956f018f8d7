//! The outcome of a run: totals for people and programs, and `test-report.json` in the target
//! folder with the seconds of each step and the slowest tests.
//!
//! The last line is the total in a form that programs read. It must never leave out what did not
//! run, nor call a run a success in which nothing was checked.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The numbers of slowest tests in the file and at the end of a run.
const SLOWEST_KEPT: usize = 20;
const SLOWEST_SHOWN: usize = 5;

/// Numbers of checks of a step that passed and failed, and what it could not do.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) left_out: Vec<String>,
    /// The checks that failed, where they have names, with the first lines of their output.
    pub(super) failures: Vec<String>,
    /// Checks that failed and passed when they ran once more; they count as passed.
    pub(super) flaky: Vec<String>,
    /// Tests with their seconds.
    pub(super) times: Vec<(String, f64)>,
    /// Seconds of the processor that the step's processes took: the same on a loaded machine.
    pub(super) cpu_seconds: f64,
}

impl Tally {
    /// One check.
    pub(super) fn of(passed: bool) -> Self {
        Self { passed: u64::from(passed), failed: u64::from(!passed), ..Self::default() }
    }

    /// Nothing ran, for this reason.
    pub(super) fn left_out(why: impl Into<String>) -> Self {
        Self { left_out: vec![why.into()], ..Self::default() }
    }

    /// One check that failed, with its reason.
    pub(super) fn failure(why: impl Into<String>) -> Self {
        Self { failures: vec![why.into()], ..Self::of(false) }
    }

    /// Takes in one check, and prints why it failed.
    pub(super) fn check(&mut self, name: &str, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.passed += 1,
            Err(error) => self.fail(format!("{name}: {error:#}")),
        }
    }

    /// Takes in one check that failed, and prints why.
    pub(super) fn fail(&mut self, why: String) {
        println!("FAILED: {why}");
        self.add(Self::failure(why));
    }

    /// Takes in how a suite ended, of which a failure has a result of its own.
    pub(super) fn end(&mut self, well: bool) {
        if !well && self.failed == 0 {
            self.fail("the suite did not come to its end".to_owned());
        }
    }

    /// Whether everything ran and passed at once.
    pub(super) fn is_whole(&self) -> bool {
        self.passed > 0 && self.failed == 0 && self.left_out.is_empty() && self.flaky.is_empty()
    }

    /// Takes in what another part of the step has counted.
    pub(super) fn add(&mut self, part: Self) {
        self.passed += part.passed;
        self.failed += part.failed;
        self.left_out.extend(part.left_out);
        self.failures.extend(part.failures);
        self.flaky.extend(part.flaky);
        self.times.extend(part.times);
        self.cpu_seconds += part.cpu_seconds;
    }
}

struct Row {
    name: &'static str,
    tally: Tally,
    took: Duration,
}

/// The steps that have ended.
#[derive(Default)]
pub(super) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Takes in a step that has ended, and prints its totals.
    pub(super) fn add(&mut self, name: &'static str, tally: Result<Tally>, took: Duration) {
        let tally = tally.unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            Tally::failure(format!("{error:#}"))
        });
        let (passed, failed) = (tally.passed, tally.failed);
        println!("<== {name}: {passed} passed, {failed} failed in {:.1} s", took.as_secs_f64());
        self.rows.push(Row { name, tally, took });
    }

    /// Whether a step has ended without a failure; none while it has not ended.
    pub(super) fn has_passed(&self, name: &str) -> Option<bool> {
        self.rows.iter().find(|row| row.name == name).map(|row| row.tally.failed == 0)
    }

    /// Things that a step could not do.
    #[cfg(test)]
    pub(super) fn not_run(&self, name: &str) -> &[String] {
        self.rows.iter().find(|row| row.name == name).map_or(&[], |row| &row.tally.left_out)
    }

    /// Writes the file for programs.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self, path: &Path, took: Duration) -> Result<()> {
        let of_row = |row: &Row| {
            json!({"name": row.name, "seconds": seconds(row.took),
                   "cpu_seconds": row.tally.cpu_seconds, "passed": row.tally.passed,
                   "failed": row.tally.failed, "not_run": row.tally.left_out,
                   "flaky": row.tally.flaky, "failures": row.tally.failures})
        };
        let steps: Vec<_> = self.rows.iter().map(of_row).collect();
        let slowest: Vec<_> = self
            .slowest(SLOWEST_KEPT)
            .iter()
            .map(|(name, seconds)| json!({"name": name, "seconds": seconds}))
            .collect();
        let report = json!({"seconds": seconds(took), "steps": steps, "slowest_tests": slowest});
        let text = serde_json::to_string_pretty(&report)? + "\n";
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }

    fn slowest(&self, count: usize) -> Vec<(String, f64)> {
        let mut all: Vec<_> = self.rows.iter().flat_map(|row| row.tally.times.clone()).collect();
        all.sort_by(|one, other| other.1.total_cmp(&one.1));
        all.truncate(count);
        all
    }

    /// Prints the totals, the last line for programs; gives whether nothing failed.
    pub(super) fn close(&self) -> bool {
        println!();
        for Row { name, tally, took } in &self.rows {
            let word = match (tally.failed, tally.flaky.len()) {
                (0, 0) => "",
                (0, _) => "FLAKY",
                _ => "FAILED",
            };
            let (passed, failed) = (tally.passed, tally.failed);
            let (seconds, cpu) = (took.as_secs_f64(), tally.cpu_seconds);
            println!(
                "{name:12} {passed:6} passed {failed:4} failed {seconds:7.1} s {cpu:7.1} cpu s  \
                 {word}"
            );
        }
        let slowest = self.slowest(SLOWEST_SHOWN);
        if !slowest.is_empty() {
            println!("\nthe slowest tests:");
        }
        for (name, seconds) in slowest {
            println!("{seconds:7.1} s  {name}");
        }
        self.list("NOT RUN:", |tally| &tally.left_out);
        self.list("FLAKY: failed, and passed once more; find out why:", |tally| &tally.flaky);
        self.list("FAILED:", |tally| &tally.failures);
        let passed: u64 = self.rows.iter().map(|row| row.tally.passed).sum();
        let failed: u64 = self.rows.iter().map(|row| row.tally.failed).sum();
        println!("\n{passed} passed, {failed} failed");
        failed == 0
    }

    /// Prints what all steps have of one kind, with the steps' names.
    fn list(&self, title: &str, of_tally: impl Fn(&Tally) -> &[String]) {
        let of_row = |row: &'_ Row| {
            let texts = of_tally(&row.tally).iter();
            texts.map(|text| format!("  {}: {text}", row.name)).collect::<Vec<_>>()
        };
        let lines: Vec<_> = self.rows.iter().flat_map(of_row).collect();
        if !lines.is_empty() {
            println!("\n{title}\n{}", lines.join("\n"));
        }
    }
}

/// Seconds to a tenth.
fn seconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::{Report, Tally};
    use serde_json::Value;
    use std::time::Duration;

    #[test]
    fn one_failure_fails_the_run() {
        let mut report = Report::default();
        report.add("a", Ok(Tally::of(true)), Duration::ZERO);
        assert!(report.close());
        report.add("b", Err(anyhow::anyhow!("broken")), Duration::ZERO);
        assert!(!report.close());
        assert_eq!((report.has_passed("a"), report.has_passed("b")), (Some(true), Some(false)));
        assert_eq!(report.has_passed("c"), None);
    }

    #[test]
    fn the_file_has_steps_and_the_slowest_tests() {
        let mut report = Report::default();
        let times = (0..30_u32).map(|n| (format!("test {n}"), f64::from(n))).collect();
        report.add("a", Ok(Tally { times, ..Tally::of(true) }), Duration::from_millis(1_540));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test-report.json");
        report.write(&path, Duration::from_secs(2)).unwrap();
        let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!((&file["seconds"], &file["steps"][0]["seconds"]), (&2.0.into(), &1.5.into()));
        assert_eq!(file["slowest_tests"].as_array().unwrap().len(), 20);
        assert_eq!(file["slowest_tests"][0]["name"], "test 29");
    }
}
