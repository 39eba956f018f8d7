//! `weir bench ports` as a program: every row has its figures and units, and whatever ends it, no
//! process, namespace, device or folder of it is left.
//!
//! Nothing here looks at how fast anything was. Namespaces have no names, so they are gone with the
//! processes that carry the marker.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::{marked_processes, network_devices};

const MARKER: &str = "WEIR_TEST_BENCH_PORTS";

fn weir(words: &[&str], marker: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["bench", "ports"]).args(words).env(MARKER, marker).env("TMPDIR", folder);
    command
}

/// The lab's words for a machine that ran nothing for a while.
const STALLED: &str = "the machine stalled";

/// The lines of one figure and switch; a program that is not installed has a row that says so.
fn lines<'a>(rows: &'a [Value], name: &str, dut: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["row"] == name && row["dut"] == dut).collect()
}

#[test]
#[ignore = "needs root"]
fn switches_are_measured_between_hosts_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let marker = format!("rows-{}", std::process::id());
    let before = network_devices();
    let words = ["--dut", "weir,linux-bridge", "--seconds", "1", "--repeats", "1", "--json"];
    let output = weir(&words, &marker, folder.path()).arg("--quiet").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let mut errors = errors.lines().filter(|line| !line.contains(STALLED));
    assert_eq!(errors.next(), None, "needs root, and says nothing but rows");
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let absent: Vec<_> = rows.iter().filter(|row| row.get("absent").is_some()).collect();
    for row in &absent {
        let why = row["absent"].to_string();
        // Three stalls, one at each attempt, leave no figure of the only repeat.
        let is_known = why.contains(" not inst") || why.contains(STALLED);
        assert!(is_known, "only a program that is not installed may be missing: {row}");
    }
    let is_whole = absent.is_empty();
    assert_eq!(output.status.code(), Some(i32::from(!is_whole)), "{text}");
    let lacks = |program: &str| {
        absent.iter().any(|row| row["absent"].to_string().contains(&format!("{program} not inst")))
    };
    let has_stalled = |row: &str| {
        let mut of_row = absent.iter().filter(|it| it["row"] == row);
        of_row.any(|it| it["absent"].to_string().contains(STALLED))
    };
    let flows = ["udp64_one_flow", "udp64_10k_flows", "udp64_61k_entries"];
    let mut wanted = Vec::from(flows.map(|name| (name, "kpps", false)));
    wanted.extend([("fair_share", "%", true), ("flow_changes", "changes/s", false)]);
    wanted.push(("idle_cpu", "%", false));
    if !has_stalled("flow_changes") {
        for name in ["flow_changes_wrong", "flow_changes_lost"] {
            assert_eq!(lines(&rows, name, "weir")[0]["unit"], "packets", "{text}");
        }
        assert_eq!(lines(&rows, "flow_changes_wrong", "weir")[0]["value"], 0.0, "{text}");
    }
    if !lacks("iperf3") {
        let both = ["tcp_1", "tcp_1_reverse", "tcp_4", "tcp_4_reverse"];
        wanted.extend(both.map(|name| (name, "Gb/s", true)));
        wanted.push(("udp64", "kpps", true));
    }
    if !lacks("ping") {
        wanted.push(("ping_avg", "us", true));
    }
    // One measurement gives the three of many flows.
    let row_of = |name| if flows.contains(&name) { "udp64_flows" } else { name };
    wanted.retain(|(name, ..)| !has_stalled(row_of(name)));
    for (name, unit, has_peer) in wanted {
        let weir = lines(&rows, name, "weir");
        assert!(!weir.is_empty(), "{name}: {text}");
        // A switch without packets may well have slept all the time.
        let is_fit = |value: f64| value > 0.0 || name == "idle_cpu";
        let fits = weir.iter().all(|row| row["value"].as_f64().is_some_and(is_fit));
        assert!(fits, "{name}: {text}");
        assert!(weir.iter().all(|row| row["unit"] == unit), "{name}: {text}");
        let is_beside = weir.iter().any(|row| row["peer"] == "linux-bridge");
        assert_eq!(is_beside, has_peer, "{name}: {text}");
        assert_eq!(lines(&rows, name, "linux-bridge").len(), usize::from(has_peer), "{name}");
    }
    assert_eq!(marked_processes(MARKER, &marker), Vec::<String>::new());
    assert_eq!(network_devices(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a scratch folder is left");
}

#[test]
#[ignore = "needs root"]
fn an_interrupted_measurement_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let marker = format!("interrupt-{}", std::process::id());
    let before = network_devices();
    let words = ["--dut", "weir,linux-bridge", "--rows", "udp64_flows", "--seconds", "600"];
    let mut child = weir(&words, &marker, folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the weir binary starts");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
    let is_first = |line: String| line.contains("ports-flows weir") && line.contains("Unpaced");
    let is_measuring = lines.by_ref().map_while(Result::ok).any(is_first);
    assert!(is_measuring, "needs root; the run ended before it measured");
    std::thread::spawn(move || lines.for_each(drop));
    let id = child.id().to_string();
    let done = Command::new("kill").args(["-s", "INT", &id]).status();
    assert!(done.is_ok_and(|status| status.success()));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(marked_processes(MARKER, &marker), Vec::<String>::new());
    assert_eq!(network_devices(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a scratch folder is left");
}

#[test]
fn slips_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let error = |words: &[&str]| {
        let output = weir(words, "slips", folder.path()).output().unwrap();
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(error(&["--rows", "speed"]).contains("tcp_1_reverse"));
    assert!(error(&["--dut", "nox"]).contains("linux-bridge"));
    assert!(error(&["--dut", "weir,weir"]).contains("names weir twice"));
    assert!(error(&["--seconds", "0"]).contains("0 is not in"));
}
