//! Pages in headless Chromium, driven as a person would: the controller's, with real switches
//! behind, and that of the lab's results.
//!
//! It must never take a run for a success in which no check was made.

use anyhow::{Context as _, Result};

use super::{Context, Tally, peers};
use crate::shell;

/// `contrib/page`: three switches and three hundred.
pub(super) fn run(context: &Context) -> Result<Tally> {
    if !context.is_root {
        return Ok(Tally::left_out("network namespaces need root"));
    }
    drive(context, &["check.py"], "page")
}

/// `contrib/page/results.py`: the samples of the lab's tests as a page.
pub(super) fn run_results(context: &Context) -> Result<Tally> {
    drive(context, &["results.py", "crates/lab/tests/data"], "results-page")
}

/// Runs a script of `contrib/page` on the built program, and counts its checks. Its pictures go
/// into a folder of the target folder.
fn drive(context: &Context, script: &[&str], pictures: &str) -> Result<Tally> {
    if !peers::installed("chromium") || !peers::installed("chromedriver") {
        return Ok(Tally::left_out("chromium or chromedriver is missing"));
    }
    let mut command = context.command("python3");
    let (name, data) = script.split_first().context("a script has a name")?;
    command.arg("-B").arg(context.root.join("contrib/page").join(name));
    command.arg(context.weir());
    command.args(data.iter().map(|folder| context.root.join(folder)));
    command.arg(context.target().join(pictures));
    let mut tally = Tally::default();
    let ended_well = shell::watch(&mut command, |line| count(&mut tally, line))?;
    // A run that is cut off has no line for what it had not come to.
    let is_silent = tally.passed + tally.failed == 0;
    tally.failed += u64::from(tally.failed == 0 && (is_silent || !ended_well));
    Ok(tally)
}

/// Counts a line of the checks.
fn count(tally: &mut Tally, line: &str) {
    match line.split_whitespace().next() {
        Some("ok") => tally.passed += 1,
        Some("FAIL") => tally.failed += 1,
        Some(_) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Tally, count};

    #[test]
    fn each_check_is_a_line() {
        let mut tally = Tally::default();
        for line in ["ok   three switches show", "FAIL a click: nothing", "", "1 passed, 1 failed"]
        {
            count(&mut tally, line);
        }
        assert_eq!((tally.passed, tally.failed), (1, 1));
    }
}
