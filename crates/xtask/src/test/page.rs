//! Pages in headless Chromium, driven as a person would: the controller's, with real switches
//! behind, and that of the lab's results.
//!
//! It must never take a run for a success in which no check was made.

use std::path::PathBuf;

use anyhow::Result;

use super::{Context, Tally, peers};
use crate::shell;

/// `contrib/page`: three switches and three hundred.
pub(super) fn run(context: &Context) -> Result<Tally> {
    if !context.is_root {
        return Ok(Tally::left_out("network namespaces need root"));
    }
    drive(context, "check.py", context.weir(), "page")
}

/// `contrib/page/results.py`: the samples of the lab's tests as pages.
pub(super) fn run_results(context: &Context) -> Result<Tally> {
    let pages = context.target().join("results-page");
    if has_browser() {
        // The programs of the step `tests`: what is compiled for both is the same.
        let mut command = context.cargo();
        command.args(["test", "--quiet", "--workspace", "--lib", "--bins", "--tests"]);
        command.arg("the_samples_are_pages").env("WEIR_WRITE_PAGES", &pages);
        shell::run(&mut command)?;
    }
    drive(context, "results.py", pages, "results-page")
}

fn has_browser() -> bool {
    peers::installed("chromium") && peers::installed("chromedriver")
}

/// Runs a script of `contrib/page` on a program or on pages, and counts its checks. Its pictures
/// go into a folder of the target folder.
fn drive(context: &Context, script: &str, subject: PathBuf, pictures: &str) -> Result<Tally> {
    if !has_browser() {
        return Ok(Tally::left_out("chromium or chromedriver is missing"));
    }
    let mut command = context.command("python3");
    command.arg("-B").arg(context.root.join("contrib/page").join(script));
    command.arg(subject).arg(context.target().join(pictures));
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
