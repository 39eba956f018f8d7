//! A run of the lab that is stopped before its end: what it has measured is in the ledger.
//!
//! On memory ports, so that it needs no root. It must never look at a figure.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);

const SCENARIO: &str = r#"
id = "probes"
title = "Probes"
question = "How long is the way through the hub?"
methods = ["probe"]
starts = 500
[settings]
forwarding = "controller"
version = "1.0"
duration_s = 0.1
"#;

/// Starts a run that measures for minutes, writing into `folder`; with `more` arguments.
fn start(folder: &Path, more: &[&str]) -> Child {
    let scenario = folder.join("probes.toml");
    std::fs::write(&scenario, SCENARIO).expect("a file");
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["lab", "run", "--testbed", "memory", "--quiet", "--out"])
        .args([folder, &scenario])
        .args(more)
        // What a killed run leaves goes with the test's folder.
        .env("TMPDIR", folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the weir binary starts")
}

/// The results of a run, by its folder or its ledger.
pub(crate) fn results(run: &Path) -> serde_json::Value {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    let output = weir.args(["lab", "report", "--format", "json"]).arg(run).output();
    let output = output.expect("the weir binary starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn trials(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("trials.jsonl")).unwrap_or_default()
}

/// Waits until the file has two measurements.
fn until_measured(folder: &Path, lab: &mut Child) {
    let start = Instant::now();
    while trials(folder).matches("\"line\":\"trial\"").count() < 2 {
        assert!(lab.try_wait().expect("it can be waited for").is_none(), "the run ended by itself");
        assert!(start.elapsed() < LIMIT, "nothing is measured: {}", trials(folder));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Every line is whole; the first says what the run is about, the second who measures with what,
/// the others what was measured.
fn assert_whole(folder: &Path) {
    let text = trials(folder);
    assert!(text.ends_with('\n'), "the last line is whole");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["scenarios"][0]["source"], SCENARIO);
    let machine = &lines[1]["machine"];
    assert!(lines[1]["line"] == "part" && machine["cores"].is_number(), "{}", lines[1]);
    let programs = lines[1]["programs"].to_string();
    assert!(programs.contains("weir") && !programs.contains("iperf"), "{programs}");
    for line in lines.iter().filter(|line| line["line"] == "trial") {
        assert_eq!((&line["scenario"], &line["dut"]), (&"probes".into(), &"weir".into()), "{line}");
        assert_eq!(line["method"], "probe", "{line}");
        assert!(line["start"].is_number() && line["trial"] == 0, "{line}");
        let is_measured = line["values"]["probe_p50_us"].is_number();
        assert!(is_measured || line["error"].is_string(), "{line}");
    }
}

#[test]
fn a_killed_run_leaves_the_trials_it_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut lab = start(folder.path(), &[]);
    until_measured(folder.path(), &mut lab);
    lab.kill().expect("it is killed");
    lab.wait().expect("it can be waited for");
    assert_whole(folder.path());
}

#[test]
fn an_interrupted_run_leaves_the_trials_it_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut lab = start(folder.path(), &[]);
    until_measured(folder.path(), &mut lab);
    let order = format!("kill -s INT {}", lab.id());
    let done = Command::new("sh").args(["-c", &order]).status();
    assert!(done.is_ok_and(|status| status.success()), "{order}");
    assert_eq!(lab.wait().expect("it can be waited for").code(), Some(130));
    assert_whole(folder.path());
    assert!(folder.path().join("report.html").exists(), "what it has measured is drawn");
}

#[test]
fn a_run_that_was_cut_off_is_gone_on_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut lab = start(folder.path(), &["--starts", "5"]);
    until_measured(folder.path(), &mut lab);
    lab.kill().expect("it is killed");
    lab.wait().expect("it can be waited for");
    // What a full disk leaves of a line.
    let torn = trials(folder.path()) + "{\"scenario\":\"pro";
    std::fs::write(folder.path().join("trials.jsonl"), torn).expect("a file");
    let mut lab = start(folder.path(), &["--starts", "5", "--resume"]);
    assert_eq!(lab.wait().expect("it can be waited for").code(), Some(0));
    let results = results(folder.path());
    let cell = &results["scenarios"][0]["cells"][0];
    let good = |trial: &&serde_json::Value| trial["error"].is_null();
    let trials = cell["trials"].as_array().expect("trials");
    let mut starts: Vec<u64> =
        trials.iter().filter(good).filter_map(|trial| trial["start"].as_u64()).collect();
    starts.sort_unstable();
    assert_eq!(starts, [0, 1, 2, 3, 4], "each once: {cell}");
    assert_eq!(cell["rows"][0]["samples"].as_array().expect("samples").len(), 5);
    let parts = results["parts"].as_array().expect("parts");
    assert_eq!((&parts[0]["end"], &parts[1]["end"]), (&"cut-off".into(), &"whole".into()));
    let took = |of: &serde_json::Value| of["duration_s"].as_f64().expect("seconds");
    assert!(took(&parts[0]) > 0.0 && took(&results) >= took(&parts[0]) + took(&parts[1]) - 1e-6);

    std::fs::write(folder.path().join("probes.toml"), "").expect("a file");
    let text = SCENARIO.replace("0.1", "0.2");
    std::fs::write(folder.path().join("other.toml"), text).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["lab", "run", "--testbed", "memory", "--quiet", "--resume", "--out"])
        .args([folder.path(), &folder.path().join("other.toml")])
        .output()
        .expect("the weir binary starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("another campaign"), "{stderr}");
}
