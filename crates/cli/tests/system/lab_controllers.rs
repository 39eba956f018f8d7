//! Controllers as subjects of the lab, tiny: each method measures, and what cannot be measured says
//! why.
//!
//! Nothing here looks at how fast anything was. Numbers of packets and entries are what they are
//! because the machine of a test may be as slow as it likes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::process::{Running, free_port, weir};

/// Runs `weir lab run WORDS` with a start of each subject, into a folder.
fn lab(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["lab", "run", "--quiet", "--format", "lines", "--starts", "1", "--out"])
        .arg(folder)
        .args(words)
        .env("WEIR_PYTHON", "/nonexistent/python3")
        .output()
        .expect("the weir binary starts")
}

/// The lines that it prints.
fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The figures of a scenario by metric, with these settings.
fn figures(scenario: &str, dut: &str, settings: &[&str]) -> BTreeMap<String, f64> {
    let folder = tempfile::tempdir().unwrap();
    // Long enough that a stall of the machine is no silence of the controller.
    let common = ["fleet.hosts=8", "fleet.warm_up_s=0.2", "duration_s=2"];
    let sets: Vec<&str> =
        common.iter().chain(settings).flat_map(|setting| ["--set", setting]).collect();
    let output = lab(folder.path(), &[&[scenario, "--dut", dut], &sets[..]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario} {settings:?}: {errors}");
    let figure = |line: Value| {
        let value = line["value"].as_f64().unwrap_or_else(|| panic!("{line}: {errors}"));
        (line["metric"].as_str().unwrap().to_owned(), value)
    };
    lines(&output).into_iter().map(figure).collect()
}

#[test]
fn controllers_are_measured_by_every_load() {
    let found = figures("controller-throughput", "weir", &["fleet.switches=4"]);
    assert!(found["answered_ps"] > 0.0 && found["responses_ps"] > 0.0, "{found:?}");
    let whole = ["app=hub", "fleet.is_whole=true", "fleet.switches=1"];
    let found = figures("controller-latency", "weir", &whole);
    assert!(found["answer_p50_us"] > 0.0, "{found:?}");
    let found = figures("controller-latency", "weir", &["rate_pps=200", "fleet.switches=2"]);
    assert!(found["answer_max_us"] >= found["answer_p50_us"], "{found:?}");
    let found = figures("controller-storm", "weir", &["fleet.switches=20", "transport=tls"]);
    assert!(found["storm_s"] >= found["storm_features_s"], "{found:?}");
    assert!(found["storm_kib"] > 0.0 && found.contains_key("storm_idle_cores"), "{found:?}");
}

#[test]
fn a_controller_that_runs_already_is_measured_and_goes_on() {
    let (port, rest) = (free_port(), free_port());
    let (target, rest) = (format!("tcp:127.0.0.1:{port}"), format!("127.0.0.1:{rest}"));
    let words = ["controller", "idle", "--listen", &target, "--rest", &rest];
    let controller = Running::start(&mut weir(&words));
    controller.says("listening on");
    let pid = format!("fleet.pid={}", controller.child.id());
    let rest = format!("fleet.rest={rest:?}");
    for _ in 0..2 {
        let settings = [&pid, rest.as_str(), "fleet.switches=3", "duration_s=0.5"];
        let found = figures("controller-proactive", &target, &settings);
        assert!(found["proactive_paths_ps"] > 0.0, "{found:?}");
    }
}

#[test]
fn what_a_controller_knows_of_a_network_is_measured() {
    for version in ["version=\"1.0\"", "version=\"1.3\""] {
        let found = figures("controller-topology", "weir", &["fleet.switches=5", version]);
        let names: Vec<_> = found.keys().map(String::as_str).collect();
        let links = ["topology_connect_s", "topology_down_ms", "topology_s", "topology_up_ms"];
        assert_eq!(names, links);
        let settings = ["fleet.switches=3", version, "duration_s=0.5"];
        let found = figures("controller-proactive", "weir", &settings);
        // Each path has an entry at each of its switches.
        let entries = found["proactive_entries_ps"] / found["proactive_paths_ps"];
        assert!((entries - 3.0).abs() < 0.1, "{found:?}");
    }
    let found = figures("controller-discovery", "weir", &["fleet.switches=17"]);
    assert!((found["discovery_switches"] - 17.0).abs() < f64::EPSILON, "{found:?}");
}

#[test]
fn a_controller_that_cannot_be_measured_says_why_in_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let absent = |dut: &str, words: &[&str]| {
        let output = lab(&folder.path().join(dut), &[&["--dut", dut], words].concat());
        lines(&output)[0]["absent"].as_str().unwrap_or_default().to_owned()
    };
    let python = absent("weir-python", &["controller-throughput"]);
    assert!(python.contains("pip install"), "{python}");
    assert!(absent("weir-user", &["controller-storm"]).contains("is no controller"));
    let many = ["controller-throughput", "--set", "fleet.switches=17"];
    assert!(absent("ovs-testcontroller", &many).contains("at most 16"));
    assert!(absent("tcp:127.0.0.1:1", &["controller-topology"]).contains("fleet.rest"));
    assert!(absent("tcp:127.0.0.1:1", &["controller-throughput"]).contains("cannot connect"));
    assert!(absent("ovs-testcontroller", &["table-size"]).contains("no packets cross it"));
    let core = absent("weir", &["controller-throughput", "--set", "core=4000"]);
    assert!(core.contains("no core 4000"), "{core}");
}

#[test]
fn slips_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let error = |words: &[&str]| {
        let output = lab(folder.path(), words);
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let scenario = "controller-throughput";
    assert!(error(&["datapath-growths"]).contains("did you mean datapath-growth?"));
    assert!(error(&["datapath-growth", "--set", "count=x"]).contains("--set count=x"));
    assert!(error(&[scenario, "--dut", "nox"]).contains("ovs-testcontroller"));
    assert!(error(&[scenario, "--set", "fleet.hosts=3"]).contains("an even number"));
    assert!(error(&["E5", "--dut", "weir,mine=/nope"]).contains("/nope is not there"));
    assert!(error(&["E5", "--dut", "external"]).contains("--inventory FILE"));
    let program = env!("CARGO_BIN_EXE_weir");
    for words in
        [&["bench", "ports", "--quick"][..], &["bench", "ports", "--help"], &["bench", "--help"]]
    {
        let bench = Command::new(program).args(words).output().unwrap();
        let text = String::from_utf8_lossy(&bench.stderr).into_owned();
        let instead =
            if words[1] == "ports" { "use weir lab run ports" } else { "use weir lab run" };
        assert!(!bench.status.success() && text.contains(instead), "{words:?}: {text}");
    }
}
