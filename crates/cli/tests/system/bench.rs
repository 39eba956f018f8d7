//! `weir bench` as a program, tiny: every subcommand measures, says so as JSON, and cleans up.
//!
//! Nothing here looks at how fast anything was. Numbers of packets and entries are what they are
//! because the machine of a test may be as slow as it likes.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::marked_processes;

const MARKER: &str = "WEIR_TEST_BENCH";

/// Runs `weir bench WORDS`, which ends well; its lines of JSON.
fn bench(words: &[&str]) -> Vec<Value> {
    let (code, lines) = run(words);
    assert_eq!(code, Some(0), "{words:?}: {lines:?}");
    lines
}

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

/// A short measurement, once.
const SHORT: [&str; 4] = ["--seconds", "0.1", "--repeats", "1"];

fn short<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [words, &SHORT].concat()
}

/// Writes a workload of that many flows of UDP over IPv4.
fn workload(folder: &Path, name: &str, flows: u8) {
    let mut capture = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        capture.extend(word.to_le_bytes());
    }
    let mut entries = String::new();
    for flow in 0..flows {
        let mut frame = vec![0_u8; 60];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 1, flow]);
        for word in [0, 0, 60_u32, 60] {
            capture.extend(word.to_le_bytes());
        }
        capture.extend(frame);
        entries += &format!("udp,nw_dst=10.0.1.{flow},tp_src=1,tp_dst=1,actions=output:2\n");
        entries += &format!("priority=1,udp,nw_dst=10.0.1.{flow},actions=output:2\n");
    }
    std::fs::write(folder.join(format!("{name}.pcap")), capture).expect("a file");
    std::fs::write(folder.join(format!("{name}.flows")), entries).expect("a file");
}

#[test]
fn workloads_are_measured_in_every_way() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    workload(folder.path(), "one", 20);
    workload(folder.path(), "two", 9);
    let rows = bench(&short(&["datapath", dir, "one", "two"]));
    assert!(rows.iter().all(|row| row["limit"]["mpps"].as_f64() > Some(0.0)), "{rows:?}");
    let rows = bench(&short(&["new-flows", dir, "one"]));
    assert_eq!((rows.len(), rows[0]["lost"].as_i64()), (1, Some(0)));
    assert!(rows[0]["new"].as_f64() > Some(0.99), "{rows:?}");
    let rows = bench(&short(&["tiers", dir, "one", "two"]));
    let tiers: Vec<&str> = rows.iter().filter_map(|row| row["tier"].as_str()).collect();
    assert_eq!(tiers, ["frame", "key", "classifier"].repeat(2));
    assert_eq!(rows[2]["levels"][1]["hits"], 0, "without caches none hits: {rows:?}");
    let rows = bench(&short(&["cold-start", dir, "one"]));
    assert_eq!((rows[0]["flow_entries"].as_u64(), rows[0]["lost"].as_i64()), (Some(40), Some(0)));
    let rows = bench(&short(&["victim", dir, "one", "two"]));
    assert_eq!(rows.len(), 4, "{rows:?}");
    assert!(rows.iter().all(|row| row["lost"] == 0), "{rows:?}");
}

#[test]
fn what_a_flow_table_is_asked_for_is_measured() {
    let rows = bench(&short(&["growth", "--entries", "1,20000", "--flows", "10"]));
    assert_eq!(rows[1]["flow_entries"], 20_000);
    assert!(rows[1]["bytes_per_entry"].as_f64() > Some(10.0), "{rows:?}");
    let words = ["updates", "--entries", "2000", "--rate", "1000", "--load", "10"];
    let (code, rows) = run(&short(&words));
    assert_eq!(rows.len(), 3, "alone, at the full rate, at a part of it: {rows:?}");
    // A machine that stalls does not keep up with the wanted changes; then the report says so.
    assert!(matches!(code, Some(0 | 1)), "{rows:?}");
    assert!(rows[0]["flow_mods_per_s"]["median"].as_f64() > Some(0.0));
    assert_eq!(rows[2]["load_percent"], 10);
    let rows = bench(&short(&["dump", "--entries", "2000", "--load", "10"]));
    assert!(rows[1]["busy"]["echo"]["count"].as_u64() > Some(0), "{rows:?}");
    let rows = bench(&short(&["idle", "--probes", "3", "--silence-ms", "1"]));
    assert_eq!((rows[1]["asleep"]["count"].as_u64(), rows[1]["lost"].as_u64()), (Some(3), Some(0)));
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
    assert!(error(&["new-flows", "/no/such/folder", "x"]).contains("workloads.py make"));
    assert!(error(&["growth", "--core", "4000"]).contains("no core 4000"));
    assert!(error(&["growth", "--entries", "0"]).contains("0 is not in"));
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

#[test]
fn an_interrupted_bench_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let marker = format!("bench-{}", std::process::id());
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["bench", "growth", "--entries", "1,2", "--seconds", "600"])
        .env(MARKER, &marker)
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the weir binary starts");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
    let is_measuring =
        lines.by_ref().map_while(Result::ok).any(|line| line.contains("Replayed trace"));
    assert!(is_measuring, "the run ended before it measured");
    std::thread::spawn(move || lines.for_each(drop));
    let id = child.id().to_string();
    let done = Command::new("kill").args(["-s", "INT", &id]).status();
    assert!(done.is_ok_and(|status| status.success()));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(marked_processes(MARKER, &marker), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a scratch folder is left");
}
