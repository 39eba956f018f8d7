//! The Ryu switch tester: all of OpenFlow 1.0; of 1.3 and 1.4 actions and groups in each run, a
//! fifth of the match files by the day and meters at two rates; everything with `--soak`.
//!
//! Its parts mostly wait, some of them half a minute a case, so they run side by side. It must
//! never take a part for whole of which cases did not run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::suites::compare;
use super::{Context, Extent, Tally, peers};
use crate::shell;

/// In how many days all match files have had their turn.
const DAYS: u64 = 5;

/// Cases of all versions in the packaged os-ken: a whole run of fewer is none.
const CASES: u64 = 192 + 991 + 1_003;

/// Whether a test file is one of a part.
type Belongs = fn(&str) -> bool;

/// Parts of a whole run: version, and the test files of the part.
const WHOLE: &[(&str, Belongs)] = &[
    ("10", |_| true),
    ("13", |file| file.starts_with("action/")),
    ("13", |file| file.starts_with("match/")),
    ("13", |file| file.starts_with("group/")),
    ("13", |file| file.starts_with("meter/") && file.contains("_KBPS")),
    ("13", |file| file.starts_with("meter/") && file.contains("_PKTPS")),
    ("14", |file| file.starts_with("action/")),
    ("14", |file| file.starts_with("match/")),
    ("14", |file| file.starts_with("group/")),
    ("14", |file| file.starts_with("meter/") && file.contains("_KBPS")),
    ("14", |file| file.starts_with("meter/") && file.contains("_PKTPS")),
];

/// One rate of each unit, for the meters of a run that is not whole.
const RATES: [&str; 2] = ["KBPS_01_10M", "PKTPS_01_1000"];

/// Files of one version that are tested one after the other.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    version: &'static str,
    /// Below the folder of the version.
    files: Vec<String>,
    cases: u64,
}

/// `contrib/peers/ryu-tester` for OpenFlow 1.0, 1.3 and 1.4.
pub(super) fn run(context: &Context) -> Result<Tally> {
    if !context.is_root {
        return Ok(Tally::left_out("network namespaces need root"));
    }
    if !peers::installed("ovs-vswitchd") || !peers::has_os_ken(context) {
        return Ok(Tally::left_out("Open vSwitch or os-ken is missing"));
    }
    let day = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |s| s.as_secs() / 86_400);
    let fifth = (context.extent != Extent::Soak).then_some(day % DAYS);
    let parts = parts(&tests_folder(&peers::venv(context))?, fifth)?;
    let wanted: u64 = parts.iter().map(|part| part.cases).sum();
    match fifth {
        Some(fifth) => println!("ryu: match files {} of {DAYS}, by the day", fifth + 1),
        None if wanted != CASES => bail!("{wanted} cases are packaged, and not {CASES}"),
        None => {}
    }
    let tallies: Vec<Result<Tally>> = std::thread::scope(|scope| {
        let running: Vec<_> = parts
            .iter()
            .enumerate()
            .map(|(number, part)| scope.spawn(move || run_part(context, number, part)))
            .collect();
        let ended = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join();
        running.into_iter().map(|run| ended(run).unwrap_or_else(|_| bail!("panicked"))).collect()
    });
    let mut whole = Tally::default();
    for tally in tallies {
        whole.add(tally?);
    }
    if whole.passed + whole.failed != wanted {
        bail!("{} of {wanted} cases ran", whole.passed + whole.failed);
    }
    if let Some(fifth) = fifth {
        let rest = CASES.saturating_sub(wanted);
        let why = format!(
            "{rest} of {CASES} cases: match files of other days than {} of {DAYS}, \
                           and meters at other rates; --soak has all",
            fifth + 1
        );
        whole.left_out.push(why);
    }
    Ok(whole)
}

/// The folder of the tester's files in a virtual environment.
fn tests_folder(venv: &Path) -> Result<PathBuf> {
    let mut pythons = std::fs::read_dir(venv.join("lib")).context("os-ken's environment")?;
    let found = pythons.find_map(|entry| {
        let folder = entry.ok()?.path().join("site-packages/os_ken/tests/switch");
        folder.is_dir().then_some(folder)
    });
    found.context("os-ken has no folder os_ken/tests/switch")
}

/// The parts of a whole run, or those with one fifth of the match files and some of the meters.
fn parts(folder: &Path, fifth: Option<u64>) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for (version, belongs) in WHOLE {
        let base = folder.join(format!("of{version}"));
        let mut files = Vec::new();
        files_below(&base, "", &mut files)?;
        files.retain(|file| belongs(file));
        files.sort_unstable();
        if let Some(fifth) = fifth.filter(|_| *version != "10") {
            let mut index = 0;
            files.retain(|file| {
                index += 1;
                match file.split('/').next() {
                    Some("match") => (index - 1) % DAYS == fifth,
                    Some("meter") => RATES.iter().any(|rate| file.contains(rate)),
                    Some(_) | None => true,
                }
            });
        }
        let mut cases = 0;
        for file in &files {
            let text = std::fs::read_to_string(base.join(file)).with_context(|| file.clone())?;
            let items: Vec<Value> = serde_json::from_str(&text).with_context(|| file.clone())?;
            // Texts between the cases are their headings.
            cases += items.iter().filter(|item| item.is_object()).count() as u64;
        }
        parts.push(Part { version, files, cases });
    }
    Ok(parts)
}

/// All files of tests below a folder, by their paths from `base`.
fn files_below(base: &Path, inner: &str, files: &mut Vec<String>) -> Result<()> {
    let folder = base.join(inner);
    for entry in std::fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if inner.is_empty() { name } else { format!("{inner}/{name}") };
        if entry.path().is_dir() {
            files_below(base, &path, files)?;
        } else if path.ends_with(".json") {
            files.push(path);
        }
    }
    Ok(())
}

/// One part. A case measures in real time and a machine may stall, so a part with failures runs
/// once more, and what fails in both has failed.
fn run_part(context: &Context, number: usize, part: &Part) -> Result<Tally> {
    let first = results_of(context, number, part, "")?;
    let tally = compare(&first, "")?;
    if tally.failed == 0 {
        return Ok(tally);
    }
    println!("ryu: part {number} had failures and runs once more");
    twice(&first, &results_of(context, number, part, "-again")?)
}

/// The tally of two runs of the same cases: what fails in both has failed. A second run that is not
/// whole says nothing.
fn twice(first: &str, second: &str) -> Result<Tally> {
    let failed = |results: &str| -> Result<BTreeSet<String>> {
        let lines = results.lines().map(serde_json::from_str::<Value>);
        let lines: Vec<Value> = lines.collect::<Result<_, _>>().context("reading a result")?;
        let names = lines.iter().filter(|line| line["result"].as_str() != Some("OK"));
        Ok(names.filter_map(|line| line["id"].as_str()).map(str::to_owned).collect())
    };
    let (all, mut failures) = (first.lines().count(), failed(first)?);
    if second.lines().count() == all {
        let again = failed(second)?;
        failures.retain(|id| again.contains(id));
    }
    let failed = failures.len() as u64;
    Ok(Tally { passed: all as u64 - failed, failed, ..Tally::default() })
}

/// Runs one part and gives its results.
fn results_of(context: &Context, number: usize, part: &Part, suffix: &str) -> Result<String> {
    let out = context.target().join(format!("ryu/{number}{suffix}"));
    let suite = context.root.join("contrib/peers/ryu-tester");
    let results = out.join("results.jsonl");
    // What an earlier run left says nothing about this one.
    if results.exists() {
        std::fs::remove_file(&results)?;
    }
    let mut command = context.command(suite.join("run.sh"));
    let names: Vec<&str> = part.files.iter().map(|file| file.trim_end_matches(".json")).collect();
    command.arg("-o").arg(&out).args(["-v", part.version]);
    command.args(["-k", &format!("/({})\\.json$", names.join("|"))]);
    command.arg("-V").arg(peers::venv(context));
    command.arg(context.root.join("contrib/peers/weir-dut.sh"));
    command.env("WEIR", context.weir());
    // The results show the cases that fail.
    shell::watch(&mut command, |_| {})?;
    std::fs::read_to_string(&results).with_context(|| format!("reading {}", results.display()))
}

#[cfg(test)]
mod tests {
    use super::{parts, twice};
    use std::collections::BTreeSet;

    /// A folder with files of tests, of two cases and a heading each.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let file = |path: String| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, r#"["a heading", {"tests": []}, {"tests": []}]"#).unwrap();
        };
        file("of10/match/00_A.json".into());
        for version in ["of13", "of14"] {
            (0..12).for_each(|number| file(format!("{version}/match/{number:02}_A.json")));
            file(format!("{version}/action/25_SET_FIELD/00_A.json"));
            file(format!("{version}/group/00_ALL.json"));
            for rate in ["KBPS_00_1M", "KBPS_01_10M", "PKTPS_00_100", "PKTPS_01_1000"] {
                file(format!("{version}/meter/01_DROP_00_{rate}.json"));
            }
        }
        folder
    }

    #[test]
    fn five_days_have_every_match_file_once() {
        let folder = folder();
        let whole = parts(folder.path(), None).unwrap();
        assert_eq!(
            whole.iter().map(|part| part.cases).sum::<u64>(),
            2 * (1 + 2 * (12 + 1 + 1 + 4))
        );
        let mut seen = BTreeSet::new();
        for fifth in 0..5 {
            for (part, all) in parts(folder.path(), Some(fifth)).unwrap().iter().zip(&whole) {
                match all.files[0].as_str() {
                    file if file.starts_with("match/") && part.version != "10" => {
                        for file in &part.files {
                            assert!(seen.insert((part.version, file.clone())));
                        }
                    }
                    meter if meter.starts_with("meter/") => assert_eq!(part.files.len(), 1),
                    _ => assert_eq!(part, all),
                }
            }
        }
        assert_eq!(seen.len(), 2 * 12);
    }

    #[test]
    fn what_fails_in_both_runs_has_failed() {
        let lines = |results: &[&str]| {
            let line = |(id, result)| format!("{{\"id\":\"{id}\",\"result\":\"{result}\"}}\n");
            ["a", "b"].into_iter().zip(results.iter().copied()).map(line).collect::<String>()
        };
        let counts = |first: &[&str], second: &[&str]| {
            let tally = twice(&lines(first), &lines(second)).unwrap();
            (tally.passed, tally.failed)
        };
        // A switch that never came: every case of the part fails, and all pass in the next run.
        assert_eq!(counts(&["ERROR", "ERROR"], &["OK", "OK"]), (2, 0));
        assert_eq!(counts(&["OK", "ERROR"], &["ERROR", "ERROR"]), (1, 1));
        assert_eq!(counts(&["OK", "ERROR"], &["OK"]), (1, 1), "the second run is not whole");
    }
}
