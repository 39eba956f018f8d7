//! `weir bench` as a program, tiny: its words measure what scenarios of the lab do.
//!
//! Nothing here looks at how fast anything was. Numbers of packets and entries are what they are
//! because the machine of a test may be as slow as it likes.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::process::{Running, free_port, weir};

/// Runs `weir bench WORDS`, which leaves nothing where it runs; its exit code and its figures by
/// metric.
fn run(words: &[&str]) -> (Option<i32>, BTreeMap<String, f64>) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .arg("bench")
        .args(words)
        .arg("--quiet")
        .current_dir(&folder)
        .output()
        .expect("the weir binary starts");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "{words:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let figure = |line: Value| {
        let value = line["value"].as_f64().unwrap_or_else(|| panic!("{line}: {errors}"));
        (line["metric"].as_str().unwrap().to_owned(), value)
    };
    (output.status.code(), lines.map(figure).collect())
}

#[test]
fn a_switch_is_measured_by_the_words_of_earlier_versions() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["bench", "growth", "--starts", "1", "--set", "duration_s=0.1", "--quiet"])
        .args(["--only", "entries=1,10", "--out", out])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rates = lines.iter().filter(|line| line["metric"] == "replay_mpps");
    assert!(rates.clone().all(|line| line["value"].as_f64() > Some(0.0)), "{text}");
    assert_eq!(rates.count(), 2, "{text}");
    assert!(folder.path().join("trials.jsonl").is_file());
}

#[test]
fn controllers_are_measured_in_every_mode() {
    // Long enough that a stall of the machine is no silence of the controller.
    let hosts = ["--hosts", "8", "--warm-up", "0.2", "--seconds", "2", "--repeats", "1"];
    let measure = |words: &[&str]| {
        let (code, figures) = run(&[&["controller", "--vs", "weir"], words, &hosts].concat());
        assert_eq!(code, Some(0), "{words:?}: {figures:?}");
        figures
    };
    let figures = measure(&["--switches", "4", "--of", "1.3"]);
    assert!(figures["answered_ps"] > 0.0 && figures["responses_ps"] > 0.0, "{figures:?}");
    let figures = measure(&["--mode", "latency", "--app", "hub", "--whole"]);
    assert!(figures["answer_p50_us"] > 0.0, "{figures:?}");
    let figures = measure(&["--mode", "open-loop", "--rate", "200", "--switches", "2"]);
    assert!(figures["answer_max_us"] >= figures["answer_p50_us"], "{figures:?}");
    let figures = measure(&["--mode", "storm", "--switches", "20", "--tls"]);
    assert!(figures["storm_s"] >= figures["storm_features_s"], "{figures:?}");
    assert!(figures["storm_kib"] > 0.0 && figures.contains_key("storm_idle_cores"), "{figures:?}");
    let figures = measure(&["--invalid", "10", "--hostile", "100", "--switches", "2"]);
    assert!(figures["invalid_refused"] > 0.0, "{figures:?}");
    assert!(figures.contains_key("hostile_refused"), "{figures:?}");
}

#[test]
fn a_controller_that_runs_already_is_measured_and_goes_on() {
    let (port, rest) = (free_port(), free_port());
    let (target, rest) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{rest}"));
    let listen = format!("tcp:{target}");
    let words = ["controller", "idle", "--listen", &listen, "--rest", &rest];
    let controller = Running::start(&mut weir(&words));
    controller.says("listening on");
    let pid = controller.child.id().to_string();
    let words = ["controller", "--target", &target, "--rest", &rest, "--pid", &pid];
    let more = ["--mode", "proactive", "--switches", "3", "--seconds", "0.5", "--repeats", "1"];
    for _ in 0..2 {
        let (code, figures) = run(&[&words[..], &more[..]].concat());
        assert_eq!(code, Some(0), "{figures:?}");
        assert!(figures["proactive_paths_ps"] > 0.0, "{figures:?}");
    }
}

#[test]
fn what_a_controller_knows_of_a_network_is_measured() {
    let measure = |words: &[&str]| {
        let common = ["controller", "--vs", "weir", "--repeats", "1", "--seconds", "0.5"];
        let (code, figures) = run(&[&common[..], words].concat());
        assert_eq!(code, Some(0), "{words:?}: {figures:?}");
        assert!(figures.values().all(|value| *value > 0.0), "{figures:?}");
        figures
    };
    for version in ["1.0", "1.3"] {
        let figures = measure(&["--mode", "topology", "--switches", "5", "--of", version]);
        let names: Vec<_> = figures.keys().map(String::as_str).collect();
        let links = ["topology_connect_s", "topology_down_ms", "topology_s", "topology_up_ms"];
        assert_eq!(names, links);
        let figures = measure(&["--mode", "proactive", "--switches", "3", "--of", version]);
        // Each path has an entry at each of its switches.
        let entries = figures["proactive_entries_ps"] / figures["proactive_paths_ps"];
        assert!((entries - 3.0).abs() < 0.1, "{figures:?}");
    }
    let figures = measure(&["--mode", "discovery-size", "--switches", "17"]);
    assert!((figures["discovery_switches"] - 17.0).abs() < f64::EPSILON, "{figures:?}");
}

#[test]
fn a_controller_that_cannot_be_measured_says_why_in_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let absent = |dut: &str, words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["lab", "run", "--dut", dut, "--format", "lines", "--quiet", "--starts", "1"])
            .args(["--out", folder.path().join(dut).to_str().unwrap()])
            .args(words)
            .env("WEIR_PYTHON", "/nonexistent/python3")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let row: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        row["absent"].as_str().unwrap_or_default().to_owned()
    };
    let python = absent("weir-python", &["controller-throughput"]);
    assert!(python.contains("pip install"), "{python}");
    assert!(absent("weir-user", &["controller-storm"]).contains("is no controller"));
    let loads = absent("weir", &["controller-storm", "--set", "fleet.invalid_pct=1"]);
    assert!(loads.contains("go with a load"), "{loads}");
    let many = ["controller-throughput", "--set", "fleet.switches=17"];
    assert!(absent("ovs-testcontroller", &many).contains("at most 16"));
    assert!(absent("tcp:127.0.0.1:1", &["controller-topology"]).contains("fleet.rest"));
    assert!(absent("ovs-testcontroller", &["flow-mods"]).contains("no packets cross it"));
}

#[test]
fn slips_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let error = |words: &[&str]| {
        let program = env!("CARGO_BIN_EXE_weir");
        let mut command = Command::new(program);
        let output = command.arg("bench").args(words).current_dir(&folder).output().unwrap();
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(error(&["growths"]).contains("did you mean growth?"));
    assert!(error(&["growth", "--set", "count=x"]).contains("--set count=x"));
    assert!(error(&["controller"]).contains("--target"));
    assert!(error(&["controller", "--vs", "nox"]).contains("ovs-testcontroller"));
    assert!(error(&["controller", "--vs", "weir", "--rows", "cluster"]).contains("--rows is gone"));
    assert!(error(&["generator"]).contains("weir gen flood"));
    assert!(error(&["controller", "--vs", "weir", "--hosts", "3"]).contains("an even number"));
    let core = ["controller", "--vs", "weir", "--repeats", "1", "--core", "4000"];
    assert!(error(&core).contains("no core 4000"));
    let nobody = ["controller", "--target", "127.0.0.1:1", "--repeats", "1", "--out", "nobody"];
    assert!(error(&nobody).contains("cannot connect"));
    let pid = ["controller", "--target", "127.0.0.1:1", "--pid", "4194304", "--repeats", "1"];
    assert!(error(&pid).contains("no process 4194304"));
    let left = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["nobody"], "the folder of --out, and nothing else");
}
