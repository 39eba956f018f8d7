//! `weir bench` as a program, tiny: every subcommand measures, says so as JSON, and cleans up.
//!
//! Nothing here looks at how fast anything was. Numbers of packets and entries are what they are
//! because the machine of a test may be as slow as it likes.

use std::process::Command;

use serde_json::Value;

/// Runs `weir bench WORDS`; its exit code and its lines of JSON.
fn run(words: &[&str]) -> (Option<i32>, Vec<Value>) {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .arg("bench")
        .args(words)
        .args(["--json", "--quiet"])
        .output()
        .expect("the weir binary starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors, "", "{words:?}: nothing but rows");
    let lines =
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    (output.status.code(), lines)
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
        let (code, rows) = run(&[&["controller", "--vs", "weir"], words, &hosts].concat());
        // A build for tests may be slower than the controller, and says so then.
        assert!(matches!(code, Some(0 | 1)), "{words:?}: {rows:?}");
        assert!(rows[0]["value"].as_f64() > Some(0.0), "{words:?}: {rows:?}");
        assert!(rows[0]["emulator_core"].as_f64().is_some(), "{words:?}: {rows:?}");
        rows
    };
    let rows = measure(&["--switches", "4", "--of", "1.3"]);
    assert_eq!(
        (&rows[0]["row"], &rows[0]["unit"]),
        (&"throughput-4".into(), &"responses/s".into())
    );
    let rows = measure(&["--mode", "latency", "--app", "hub", "--whole"]);
    assert_eq!((&rows[0]["row"], &rows[0]["unit"]), (&"latency-1-p50".into(), &"us".into()));
    let rows = measure(&["--mode", "open-loop", "--rate", "200", "--switches", "2"]);
    assert_eq!(rows[0]["row"], "open-loop-2-p50");
    let rows = measure(&["--mode", "storm", "--switches", "20", "--tls"]);
    let names: Vec<_> = rows.iter().filter_map(|row| row["row"].as_str()).collect();
    assert_eq!(names[..2], ["storm-20", "storm-20-features"]);
    assert!(names.contains(&"storm-20-memory"), "{names:?}");
}

#[test]
fn what_a_controller_knows_of_a_network_is_measured() {
    let measure = |words: &[&str]| {
        let common = ["controller", "--vs", "weir", "--repeats", "1", "--seconds", "0.5"];
        let (code, rows) = run(&[&common[..], words].concat());
        assert!(matches!(code, Some(0 | 1)), "{words:?}: {rows:?}");
        let name = |row: &Value| row["row"].as_str().unwrap().to_owned();
        rows.iter().map(|row| (name(row), row["value"].as_f64().unwrap())).collect::<Vec<_>>()
    };
    for version in ["1.0", "1.3"] {
        let rows = measure(&["--mode", "topology", "--switches", "5", "--of", version]);
        let names: Vec<_> = rows.iter().map(|(name, _)| name.as_str()).collect();
        let link = ["topology-5-link-down", "topology-5-link-up"];
        assert_eq!(names, ["topology-5", "topology-5-connect", link[0], link[1]]);
        assert!(rows.iter().all(|(_, value)| *value > 0.0), "{rows:?}");
        let rows = measure(&["--mode", "proactive", "--switches", "3", "--of", version]);
        let value = |wanted: &str| rows.iter().find(|(name, _)| name == wanted).unwrap().1;
        assert!(value("proactive-3-p50") > 0.0 && value("proactive-3-rate") > 0.0, "{rows:?}");
        // Each path has an entry at each of its switches.
        let entries = value("proactive-3-entries") / value("proactive-3-rate");
        assert!((entries - 3.0).abs() < 0.1, "{rows:?}");
    }
    let rows = measure(&["--mode", "reprovisioning", "--switches", "3", "--of", "1.3"]);
    let names = rows.iter().map(|(name, _)| name.trim_start_matches("reprovisioning-3"));
    assert_eq!(names.collect::<Vec<_>>(), ["", "-forth-lost", "-back-lost"], "{rows:?}");
    let rows = measure(&["--mode", "discovery-size", "--switches", "17"]);
    assert_eq!(rows[0], ("discovery-size-17".to_owned(), 17.0));
    let words = ["--invalid", "10", "--hostile", "100", "--switches", "2", "--hosts", "8"];
    let rows = measure(&words);
    let value = |wanted: &str| rows.iter().find(|(name, _)| name == wanted).unwrap().1;
    assert!(value("throughput-2-invalid") > 0.0 && value("throughput-2-hostile") > 0.0, "{rows:?}");
}

#[test]
fn entries_are_loaded_into_real_switches_and_counted_there() {
    let words = ["controller", "--rows", "flow-entries", "--entries", "5000", "--repeats", "1"];
    let (code, rows) = run(&words);
    assert!(matches!(code, Some(0 | 1)), "{rows:?}");
    let names: Vec<_> = rows.iter().filter_map(|row| row["row"].as_str()).collect();
    assert_eq!(names, ["flow-entries", "flow-entries-controller-cpu", "flow-entries-switches-cpu"]);
    assert!(rows[0]["value"].as_f64() > Some(0.0), "{rows:?}");
    assert_eq!(rows[1]["unit"], "%");
}

#[test]
fn a_row_that_cannot_be_measured_says_why_in_its_row() {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["bench", "controller", "--rows", "python-os-ken", "--json", "--quiet"])
        .env("WEIR_PYTHON", "/nonexistent/python3")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let row: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(row["row"], "python-os-ken", "{text}");
    assert!(row["absent"].as_str().unwrap_or_default().contains("pip install"), "{text}");
}

#[test]
fn slips_are_reported() {
    let error = |words: &[&str]| {
        let program = env!("CARGO_BIN_EXE_weir");
        let output = Command::new(program).arg("bench").args(words).output().unwrap();
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(error(&["growths"]).contains("did you mean growth?"));
    assert!(error(&["growth", "--set", "count=x"]).contains("--set count=x"));
    assert!(
        error(&["controller", "--target", "127.0.0.1:1", "--core", "4000"])
            .contains("no core 4000")
    );
    assert!(error(&["controller"]).contains("--target"));
    assert!(error(&["controller", "--vs", "nox"]).contains("ovs-testcontroller"));
    assert!(error(&["controller", "--target", "127.0.0.1:1"]).contains("cannot connect"));
    let topology = ["controller", "--mode", "topology"];
    let asked = error(&[&topology[..], &["--target", "127.0.0.1:1"]].concat());
    assert!(asked.contains("--rest HOST:PORT"), "{asked}");
    let command = ["--vs", "mine", "--command", "mine=./mine {port}"];
    assert!(error(&[&topology[..], &command].concat()).contains("mine is started without REST"));
    let ring = ["controller", "--vs", "ovs-testcontroller", "--mode", "reprovisioning"];
    assert!(error(&ring).contains("a hub or a learning switch only"));
    let storm = ["controller", "--target", "127.0.0.1:1", "--mode", "storm", "--invalid", "1"];
    assert!(error(&storm).contains("go with a load"));
    assert!(error(&["controller", "--rows", "speed"]).contains("storm-tls"));
}
