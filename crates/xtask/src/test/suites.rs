//! Suites of other people's programs as steps of the test command.
//!
//! Each check of a suite counts by itself. It must never accept a result that is worse than the
//! expectation beside the suite, nor leave an expectation standing that has become too low.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Context, Extent, Tally, peers};
use crate::shell;

/// The variable that names the folder of Open vSwitch's suites.
const OVS_SUITE: &str = "OVS_SUITE";

/// `contrib/peers/ofctl` for OpenFlow 1.0 to 1.5 against `weir switch`.
pub(super) fn ofctl(context: &Context) -> Result<Tally> {
    if !context.is_root {
        return Ok(Tally::left_out("network namespaces need root"));
    }
    if !peers::installed("ovs-ofctl") {
        return Ok(Tally::left_out("ovs-ofctl is missing"));
    }
    let out = context.target().join("ofctl");
    let suite = context.root.join("contrib/peers/ofctl");
    let mut command = context.command(suite.join("run.sh"));
    command.arg("-o").arg(&out).args(["-v", "10 11 12 13 14 15"]);
    command.arg(context.root.join("contrib/peers/weir-dut.sh"));
    command.env("WEIR", context.weir());
    shell::run(&mut command)?;
    let read = |path: std::path::PathBuf| {
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    };
    let results = read(out.join("results.jsonl"))?;
    let expected = read(suite.join("expected-failures.txt"))?;
    let mut tally = compare(&results, &expected)?;
    if !peers::installed("ovs-vswitchd") {
        tally.left_out.push("ovs-vswitchd is missing: answers are not compared".to_owned());
        return Ok(tally);
    }
    let mut command = context.command(suite.join("compare.sh"));
    command.arg("-o").arg(&out).env("WEIR", context.weir());
    let ended_well = shell::watch(&mut command, |_| {})?;
    let totals = ["compare.txt", "ctl.txt"].map(|name| read(out.join(name)));
    let mut failed = 0;
    for total in totals {
        let (same, different) = answers(&total?)?;
        tally.passed += same;
        failed += different;
    }
    // An explanation that is no longer needed is a failure without a difference.
    tally.failed += if ended_well { 0 } else { failed.max(1) };
    Ok(tally)
}

/// The numbers of answers that are the same or explained, and that differ, by the last line of a
/// comparison.
fn answers(text: &str) -> Result<(u64, u64)> {
    let last = text.trim_end().lines().last().context("an empty comparison")?;
    let numbers: Vec<u64> =
        last.split(", ").filter_map(|part| part.split(' ').next()?.parse().ok()).collect();
    match numbers.as_slice() {
        [same, explained, different] => Ok((same + explained, *different)),
        _ => bail!("the comparison's last line: {last}"),
    }
}

/// Packages of PyPI for `contrib/peers/rest`, each into a virtual environment of its own.
const RYU: &str = "ryu==4.34";
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// `contrib/peers/rest`: Ryu's REST server and Weir's, asked the same, and Weir's fuzzed from its
/// own OpenAPI document.
pub(super) fn rest(context: &Context) -> Result<Tally> {
    if !context.is_root {
        return Ok(Tally::left_out("network namespaces need root"));
    }
    if !peers::installed("ethtool") || !peers::installed("python3") {
        return Ok(Tally::left_out("ethtool or python3 is missing"));
    }
    let (compared, fuzzed) = std::thread::scope(|scope| {
        let fuzzed = scope.spawn(|| rest_part(context, "fuzz.sh", SCHEMATHESIS, "rest-fuzz"));
        let compared = rest_compared(context);
        (compared, fuzzed.join().unwrap_or_else(|_| bail!("panicked")))
    });
    let mut tally = compared?;
    match fuzzed? {
        Some(ended_well) => {
            tally.passed += u64::from(ended_well);
            tally.failed += u64::from(!ended_well);
        }
        None => tally.left_out.push(format!("{SCHEMATHESIS} is missing (PyPI)")),
    }
    Ok(tally)
}

/// Runs a program of `contrib/peers/rest`; none when what it needs is missing and may not be
/// installed.
fn rest_part(context: &Context, script: &str, package: &str, out: &str) -> Result<Option<bool>> {
    let venv = context.cache().join("weir").join(package.replace("==", "-"));
    if !context.install && !venv.join("bin/python").exists() {
        return Ok(None);
    }
    let mut command = context.command(context.root.join("contrib/peers/rest").join(script));
    command.arg("-o").arg(context.target().join(out)).arg("-V").arg(&venv);
    command.env("WEIR", context.weir());
    shell::watch(&mut command, |_| {}).map(Some)
}

/// The comparison. Ryu gives what has come within a second, and a machine may stall for longer, so
/// what differs is asked once more.
fn rest_compared(context: &Context) -> Result<Tally> {
    let mut tally = Tally::default();
    for attempt in 0..2 {
        let Some(ended_well) = rest_part(context, "run.sh", RYU, "rest")? else {
            return Ok(Tally::left_out(format!("{RYU} is missing (PyPI)")));
        };
        let text = std::fs::read_to_string(context.target().join("rest/compare.txt"));
        let (same, different) = answers(&text.context("reading the comparison")?)?;
        // An explanation that is no longer needed is a failure without a difference.
        let failed = if ended_well { 0 } else { different.max(1) };
        tally = Tally { passed: same, failed, ..Tally::default() };
        if failed == 0 {
            break;
        }
        if attempt == 0 {
            println!("rest: answers differ, and both servers are asked once more");
        }
    }
    Ok(tally)
}

/// `contrib/peers/ryu-apps`: each app of Ryu's package, by Ryu and by the wheel of step `python`.
pub(super) fn ryu_apps(context: &Context) -> Result<Tally> {
    if !context.is_root {
        return Ok(Tally::left_out("network namespaces need root"));
    }
    let venvs = [RYU, "ryu-libraries"]
        .map(|package| context.cache().join("weir").join(package.replace("==", "-")));
    if !context.install && venvs.iter().any(|venv| !venv.join("bin/python").exists()) {
        return Ok(Tally::left_out(format!("{RYU} or os-ken is missing (PyPI)")));
    }
    let [ryu, libraries] = venvs;
    let out = context.target().join("ryu-apps");
    let mut command = context.command(context.root.join("contrib/peers/ryu-apps/run.sh"));
    command.arg("-o").arg(&out).arg("-V").arg(ryu).arg("-L").arg(libraries);
    command.arg("-P").arg(super::python::venv(context).join("bin/python"));
    command.env("WEIR", context.weir());
    // An app that fails ends it with a failure; the results name it.
    let ended_well = shell::watch(&mut command, |_| {})?;
    let results = std::fs::read_to_string(out.join("results.jsonl")).context("reading results")?;
    let mut tally = compare(&results, "")?;
    tally.end(ended_well);
    let list = std::fs::read_to_string(out.join("apps.md")).context("reading the list")?;
    let page = std::fs::read_to_string(context.root.join("docs/ryu-apps.md"))?;
    if !page.contains(list.trim()) {
        let made = out.join("apps.md");
        tally.fail(format!("docs/ryu-apps.md has another list than {}", made.display()));
    }
    Ok(tally)
}

/// `contrib/mininet`: the switch and the controller in Mininet, nothing dropped.
pub(super) fn mininet(context: &Context) -> Result<Tally> {
    in_mininet(context, "check.sh", "mininet")
}

/// `contrib/mininet/stock.sh`: Mininet's own classes and Debian's acceptance test of its package,
/// with Weir as Open vSwitch's daemon.
pub(super) fn vswitchd(context: &Context) -> Result<Tally> {
    in_mininet(context, "stock.sh", "vswitchd")
}

fn in_mininet(context: &Context, script: &str, out: &str) -> Result<Tally> {
    if !context.is_root {
        return Ok(Tally::left_out("network namespaces need root"));
    }
    if !peers::installed("ethtool") || !context.install {
        return Ok(Tally::left_out("Mininet is unpacked from Debian's packages"));
    }
    let out = context.target().join(out);
    let mut command = context.command(context.root.join("contrib/mininet").join(script));
    command.arg("-o").arg(&out).arg(context.weir());
    command.env("CACHE", context.cache().join("weir-mininet"));
    command.env(OVS_SUITE, context.cache().join("weir-ovs-suite"));
    // A run that drops packets ends with a failure; the results name it.
    let ended_well = shell::watch(&mut command, |_| {})?;
    let results = out.join("results.jsonl");
    let results = std::fs::read_to_string(&results).context("reading Mininet's results")?;
    let mut tally = compare(&results, "")?;
    tally.end(ended_well);
    Ok(tally)
}

/// `contrib/peers/ovs-suite`: cases of Open vSwitch's own suites, with Weir as the daemon.
pub(super) fn ovs_suite(context: &Context) -> Result<Tally> {
    if !context.is_root {
        return Ok(Tally::left_out("network namespaces need root"));
    }
    if !context.install {
        return Ok(Tally::left_out("the suites are unpacked from Debian's packages"));
    }
    let out = context.target().join("ovs-suite");
    let mut command = context.command(context.root.join("contrib/peers/ovs-suite/run.sh"));
    command.arg("-o").arg(&out);
    let all = context.extent == Extent::Soak;
    if all {
        command.arg("-a");
    }
    command.arg(context.weir()).env(OVS_SUITE, context.cache().join("weir-ovs-suite"));
    // A case that fails ends it with a failure; the results name it.
    let ended_well = shell::watch(&mut command, |_| {})?;
    let results = std::fs::read_to_string(out.join("results.jsonl")).context("reading results")?;
    let mut tally = compare(&results, "")?;
    tally.end(ended_well);
    if !all {
        tally.left_out.push("the cases that lack something; --soak has them".to_owned());
    }
    Ok(tally)
}

/// Counts results; `expected` names the checks that may fail, one a line.
pub(super) fn compare(results: &str, expected: &str) -> Result<Tally> {
    let is_name = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let mut may_fail: BTreeSet<&str> = expected.lines().map(str::trim).filter(is_name).collect();
    let mut tally = Tally::default();
    for line in results.lines() {
        let result: Value = serde_json::from_str(line).context("reading a result")?;
        let id = result["id"].as_str().unwrap_or_default();
        let passed = result["result"].as_str() == Some("OK");
        match (passed, may_fail.remove(id)) {
            (true, false) => tally.passed += 1,
            (false, true) => tally.left_out.push(format!("{id} fails, as expected")),
            (true, true) => tally.fail(format!("{id} passes now: delete it from the expected")),
            (false, false) => {
                let detail = result["detail"].as_str().unwrap_or_default();
                tally.fail(format!("{id}: {}", detail.trim()));
            }
        }
    }
    for id in may_fail {
        tally.fail(format!("{id} is expected to fail but did not run"));
    }
    if tally.passed == 0 {
        tally.fail("nothing passed".to_owned());
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::{answers, compare};

    const RESULTS: &str = "{\"id\":\"a\",\"result\":\"OK\"}\n{\"id\":\"b\",\"result\":\"FAIL\"}\n";

    #[test]
    fn the_totals_of_a_comparison_stand_in_its_last_line() {
        let text = "OF10/show: ..\n288 same, 41 explained, 1 DIFFERENT\n";
        assert_eq!(answers(text).unwrap(), (329, 1));
        assert!(answers("").is_err() && answers("Traceback").is_err());
    }

    #[test]
    fn results_are_held_against_expectations() {
        let tally = compare(RESULTS, "# known\nb\n").unwrap();
        assert_eq!((tally.passed, tally.failed, tally.left_out.len()), (1, 0, 1));
        let tally = compare(RESULTS, "").unwrap();
        assert_eq!((tally.passed, tally.failed), (1, 1));
        let failed = r#"{"id":"c","result":"FAIL","detail":"lost a frame\n"}"#;
        let tally = compare(&format!("{RESULTS}{failed}"), "b").unwrap();
        assert_eq!(tally.failures, ["c: lost a frame"]);
    }

    #[test]
    fn expectations_that_became_too_low_fail() {
        let tally = compare(RESULTS, "a\nb\n").unwrap();
        assert_eq!((tally.passed, tally.failed), (0, 2));
        let tally = compare(RESULTS, "b\ngone\n").unwrap();
        assert_eq!((tally.passed, tally.failed), (1, 1));
    }

    #[test]
    fn an_empty_run_is_no_success() {
        assert_eq!(compare("", "").unwrap().failed, 1);
    }
}
