//! A run of the lab that is stopped before its end: what it has measured is in the file of samples.
//!
//! On memory ports, so that it needs no root. It must never look at a figure.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);

/// Starts a run that measures for minutes, writing into `folder`.
fn start(folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["lab", "run", "packet-in-hub", "--testbed", "memory", "--quick", "--quiet"])
        .args(["--method", "probe", "--repeats", "500", "--out"])
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the weir binary starts")
}

fn samples(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("samples.jsonl")).unwrap_or_default()
}

/// Waits until the file has its head and two measurements.
fn until_measured(folder: &Path, lab: &mut Child) {
    let start = Instant::now();
    while samples(folder).lines().count() < 3 {
        assert!(lab.try_wait().expect("it can be waited for").is_none(), "the run ended by itself");
        assert!(start.elapsed() < LIMIT, "nothing is measured: {}", samples(folder));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Every line is whole; the first says what the run is about, the others what was measured.
fn assert_whole(folder: &Path) {
    let text = samples(folder);
    assert!(text.ends_with('\n'), "the last line is whole");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["scenario"], "packet-in-hub");
    assert!(lines[0]["machine"]["cores"].is_u64(), "{}", lines[0]);
    for line in &lines[1..] {
        assert_eq!(line["method"], "probe", "{line}");
        assert_eq!(line["cell"]["dut"], "weir", "{line}");
        assert!(line["values"]["probe_p50_us"].is_number() || line["error"].is_string(), "{line}");
    }
    assert!(!folder.join("report.json").exists(), "the run was not at its end");
}

#[test]
fn a_killed_run_leaves_the_samples_it_took() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut lab = start(folder.path());
    until_measured(folder.path(), &mut lab);
    lab.kill().expect("it is killed");
    lab.wait().expect("it can be waited for");
    assert_whole(folder.path());
}

#[test]
fn an_interrupted_run_leaves_the_samples_it_took() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut lab = start(folder.path());
    until_measured(folder.path(), &mut lab);
    let order = format!("kill -s INT {}", lab.id());
    let done = Command::new("sh").args(["-c", &order]).status();
    assert!(done.is_ok_and(|status| status.success()), "{order}");
    assert_eq!(lab.wait().expect("it can be waited for").code(), Some(130));
    assert_whole(folder.path());
}
