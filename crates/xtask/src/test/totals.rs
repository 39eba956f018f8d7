//! The totals that cargo's own test runner prints, for what cargo-nextest does not run.
//!
//! It must never call a run of no tests a success, nor one whose program died.

use std::process::Command;

use anyhow::{Result, bail};

use super::Tally;
use crate::shell;

/// Runs a command of cargo's own test runner and counts its tests by the totals that it prints.
///
/// # Errors
/// When no test ran.
pub(super) fn counted(command: &mut Command) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut ignored = 0;
    let ended_well = shell::watch(command, |line| {
        let totals = totals(line).unwrap_or_default();
        tally.passed += totals[0];
        tally.failed += totals[1];
        ignored += totals[2];
    })?;
    if tally.passed + tally.failed == 0 {
        bail!("no test ran; see the messages above");
    }
    if !ended_well && tally.failed == 0 {
        tally.add(Tally::failure("a test program did not compile, or died"));
    }
    if ignored > 0 {
        tally.left_out.push(format!("{ignored} tests that need root or are no code to run"));
    }
    Ok(tally)
}

/// Passed, failed and ignored in `test result: ok. 12 passed; 0 failed; 1 ignored; ...`.
fn totals(line: &str) -> Option<[u64; 3]> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let of = |word: &str| {
        let count = counts.split("; ").find_map(|count| count.strip_suffix(word));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    };
    Some([of("passed"), of("failed"), of("ignored")])
}

#[cfg(test)]
mod tests {
    use super::{counted, totals};
    use std::process::Command;

    #[test]
    fn totals_are_read() {
        let line = "test result: FAILED. 12 passed; 2 failed; 1 ignored; 0 measured; finished";
        assert_eq!(totals(line), Some([12, 2, 1]));
        assert_eq!(totals("test result of something else"), None);
    }

    fn tally_of(script: &str) -> anyhow::Result<super::Tally> {
        counted(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn a_run_of_nothing_has_failed() {
        assert!(tally_of("echo running 0 tests").is_err());
        assert!(tally_of("echo 'test result: ok. 0 passed; 0 failed; 0 ignored'").is_err());
    }

    #[test]
    fn a_program_that_died_has_failed() {
        let tally = tally_of("echo 'test result: ok. 3 passed; 0 failed; 0 ignored'; exit 1");
        let tally = tally.unwrap();
        assert_eq!((tally.passed, tally.failed, tally.failures.len()), (3, 1, 1));
    }
}
