//! Switches under test, each started for real between hosts in network namespaces, once for each
//! setting that it claims to have: a few frames must cross, or the reason stands in the results.
//!
//! It must never look at how fast something is.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::lab_samples::results;

/// Runs a scenario with these settings on one switch; its only cell.
pub(crate) fn cell(dut: &str, settings: &str, words: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("one.toml");
    let text = format!(
        "id = \"one\"\ntitle = \"One\"\nquestion = \"Does it forward?\"\nmethods = [\"delay\"]\n\
         starts = 1\n[settings]\nrate_pps = 500.0\nduration_s = 0.2\n{settings}\n"
    );
    std::fs::write(&scenario, text).expect("the scenario is written");
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["lab", "run", "--dut", dut, "--quiet", "--testbed", "kernel", "--out"])
        .arg(folder.path())
        .args(words)
        .arg(&scenario)
        .output()
        .expect("the weir binary starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(folder.path().join("report.html").exists(), "{dut}: {stderr}");
    let results = results(folder.path());
    let cells = results["scenarios"][0]["cells"].as_array().expect("cells").clone();
    let [cell] = &cells[..] else { panic!("one cell: {cells:?}") };
    cell.clone()
}

/// Frames cross.
pub(crate) fn forwards(dut: &str, settings: &str, words: &[&str]) -> Value {
    let cell = cell(dut, settings, words);
    assert_eq!(cell["state"], "measured", "{dut}, {settings}: {}", cell["reason"]);
    let raw = &cell["trials"][0]["raw"];
    assert!(raw["received"].as_u64().is_some_and(|frames| frames > 0), "{dut}, {settings}: {raw}");
    cell
}

/// It says that it cannot.
pub(crate) fn cannot(dut: &str, settings: &str, why: &str) {
    let cell = cell(dut, settings, &[]);
    assert_eq!(cell["state"], "not_supported", "{dut}, {settings}: {cell}");
    let reason = cell["reason"].as_str().unwrap_or_default();
    assert!(reason.contains(why), "{dut}, {settings}: {reason}");
}

/// Commands that started it.
fn commands(cell: &Value) -> String {
    let commands = cell["commands"].as_array().expect("commands").iter();
    commands.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

pub(crate) const FLOWS: &str =
    "flows = [\"in_port=1,actions=output:2\", \"in_port=2,actions=output:1\"]";

fn has(program: &str) -> bool {
    ["/usr/sbin", "/usr/bin", "/usr/lib/openvswitch-switch-dpdk"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists())
}

#[test]
#[ignore = "needs root"]
fn weir_forwards_with_each_of_its_settings() {
    for settings in [
        "",
        "caches = \"key\"",
        "caches = \"none\"",
        "workers = 2",
        "queues = 2\nworkers = 2",
        "has_queues = true",
        "bridges = 3",
        "transport = \"plain\"",
        "transport = \"tls\"\nbridges = 2",
    ] {
        forwards("weir", &format!("{settings}\n{FLOWS}"), &[]);
    }
    for settings in [
        "forwarding = \"learning\"",
        "forwarding = \"io\"",
        "forwarding = \"controller\"",
        "forwarding = \"controller\"\ntransport = \"tls\"\nbridges = 2",
    ] {
        forwards("weir", settings, &[]);
    }
    cannot("weir", "forwarding = \"io\"\ntransport = \"tls\"", "no OpenFlow channel");
}

#[test]
#[ignore = "needs root"]
fn weir_with_the_kernel_tier_forwards() {
    let cell = forwards("weir-kernel", FLOWS, &[]);
    assert!(commands(&cell).contains("frame,key,kernel"));
    cannot("weir-kernel", &format!("caches = \"none\"\n{FLOWS}"), "kernel tier");
    forwards("weir-kernel", &format!("workers = 2\nqueues = 2\n{FLOWS}"), &[]);
    let cell = forwards("weir-user", FLOWS, &[]);
    assert!(commands(&cell).contains("--caches frame,key "), "{}", commands(&cell));
    cannot("weir-user", &format!("caches = \"kernel\"\n{FLOWS}"), "without its kernel tier");
}

#[test]
#[ignore = "needs root"]
fn open_vswitch_forwards_with_each_of_its_settings() {
    assert!(has("ovs-vswitchd"), "apt-get install openvswitch-switch");
    for settings in ["", "caches = \"key\"", "caches = \"none\"", "transport = \"plain\""] {
        forwards("ovs", &format!("{settings}\n{FLOWS}"), &[]);
    }
    forwards("ovs", &format!("transport = \"tls\"\nbridges = 3\n{FLOWS}"), &[]);
    forwards("ovs", "forwarding = \"learning\"", &[]);
    forwards("ovs", "forwarding = \"controller\"\ntransport = \"tls\"\nbridges = 2", &[]);
    forwards("ovs-tso", FLOWS, &[]);
    cannot("ovs", &format!("has_queues = true\n{FLOWS}"), "set_queue");
    cannot("ovs", &format!("workers = 2\n{FLOWS}"), "main thread");
    cannot("ovs", "forwarding = \"io\"", "flow tables");
}

#[test]
#[ignore = "needs root"]
fn open_vswitch_with_dpdk_forwards_or_says_what_is_missing() {
    let before = reserved_huge_pages();
    for settings in ["", "caches = \"none\"", "workers = 2\nqueues = 2"] {
        let cell = cell("ovs-dpdk", &format!("{settings}\n{FLOWS}"), &[]);
        if cell["state"] == "missing" {
            let reason = cell["reason"].as_str().unwrap_or_default();
            assert!(reason.contains("nr_hugepages") || reason.contains("apt-get"), "{reason}");
        } else {
            assert_eq!(cell["state"], "measured", "{settings}: {}", cell["reason"]);
        }
    }
    assert_eq!(reserved_huge_pages(), before);
}

fn reserved_huge_pages() -> String {
    std::fs::read_to_string("/proc/sys/vm/nr_hugepages").expect("the kernel has huge pages")
}

#[test]
#[ignore = "needs root"]
fn the_kernel_s_bridge_and_its_limit_forward() {
    forwards("linux-bridge", "forwarding = \"learning\"", &[]);
    forwards("peer-redirect", "forwarding = \"learning\"", &[]);
    cannot("linux-bridge", FLOWS, "no flow entries");
    cannot("linux-bridge", "forwarding = \"controller\"", "no OpenFlow channel");
    cannot("peer-redirect", "forwarding = \"learning\"\nports = 3", "two hosts");
}

/// Makes two links in a namespace of its own, starts the box with `$WORDS` between them, measures
/// it as an external switch, and prints the results.
const BOX: &str = r#"
set -e
ip link set lo up
for n in 1 2; do
  ip link add nic$n type veth peer name box$n
  ip link set nic$n up
  ip link set box$n up
done
"$WEIR" switch --port 1=af_packet:box1 --port 2=af_packet:box2 --inactivity-probe 0 $WORDS \
    --control "$DIR/ctl.sock" > "$DIR/box.log" 2>&1 &
box=$!
trap 'kill $box; wait $box || true' EXIT
for try in $(seq 200); do grep -q ready "$DIR/box.log" && break; sleep 0.1; done
"$WEIR" lab run --dut external --inventory "$DIR/box.toml" --quiet --testbed kernel \
    --out "$DIR" "$DIR/one.toml" >&2
"#;

fn external(openflow: &str, words: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("a file is written");
    };
    write("box.toml", &format!("openflow = {openflow:?}\ninterfaces = [\"nic1\", \"nic2\"]\n"));
    write(
        "one.toml",
        &format!(
            "id = \"one\"\ntitle = \"One\"\nquestion = \"?\"\nmethods = [\"delay\"]\nstarts = 2\n\
             [settings]\nrate_pps = 500.0\nduration_s = 0.2\n{FLOWS}\n"
        ),
    );
    let output = Command::new("unshare")
        .args(["--net", "bash", "-c", BOX])
        .env("WEIR", env!("CARGO_BIN_EXE_weir"))
        .env("DIR", folder.path())
        .env("WORDS", words)
        .output()
        .expect("unshare starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(folder.path().join("report.html").exists(), "{openflow}: {stderr}");
    let results = results(folder.path());
    let cell = &results["scenarios"][0]["cells"][0];
    assert_eq!(cell["state"], "measured", "{openflow}: {cell}: {stderr}");
    let trials = cell["trials"].as_array().expect("trials");
    for trial in trials {
        assert!(trial["error"].is_null(), "{openflow}: {trial}");
        assert!(trial["raw"]["received"].as_u64().is_some_and(|frames| frames > 0), "{trial}");
    }
}

#[test]
#[ignore = "needs root"]
fn a_switch_that_runs_is_measured_at_this_machines_interfaces() {
    external("tcp:127.0.0.1:16653", "--listen ptcp:16653:127.0.0.1");
    external("ptcp:16653:127.0.0.1", "--controller tcp:127.0.0.1:16653 --max-backoff 0.2");
}

/// Report of `weir lab check` on a switch in one version, and its exit code.
fn check(dut: &str, of: &str, more: &[&str]) -> (Value, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["lab", "check", dut, "--of", of, "--entries", "500", "--json"])
        .args(more)
        .output()
        .expect("the weir binary starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let reports: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{dut} {of}: {error}: {stderr}"));
    (reports[0].clone(), output.status.code())
}

#[test]
#[ignore = "needs root"]
fn a_check_finds_what_weir_can_do_and_that_it_does_not_lie() {
    for (of, at_least) in [("1.0", 10), ("1.3", 900)] {
        let (report, code) = check("weir", of, &[]);
        for finding in report["findings"].as_array().expect("findings") {
            let is_good = finding["verdict"] == "yes"
                || finding["note"].as_str().is_some_and(|note| note.contains("QUEUE"));
            assert!(is_good, "OpenFlow {of}: {finding}");
        }
        let cases = report["cases"].as_array().expect("cases");
        let of_verdict = |verdict: &str| -> Vec<&Value> {
            cases.iter().filter(|case| case["verdict"] == verdict).collect()
        };
        for verdict in ["failed", "not-supported"] {
            let found = of_verdict(verdict);
            assert!(found.is_empty(), "OpenFlow {of}: {found:#?}");
        }
        let passed = of_verdict("passed").len();
        assert!(passed >= at_least, "OpenFlow {of}: {passed} of {}", cases.len());
        assert_eq!(code, Some(0));
    }
    let (report, code) = check("weir=/bin/true", "1.3", &["--skip-cases"]);
    assert_eq!((&report["findings"][0]["verdict"], code), (&Value::from("no"), Some(1)));
}

#[test]
#[ignore = "needs root"]
fn a_case_that_a_switch_does_not_keep_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("own.case");
    let frame = "02000000000202000000000188b5".to_owned() + &"00".repeat(46);
    let wrong = [
        (format!("in: 1 {frame}\nout: 3 {frame}\n"), "nothing left by port 3"),
        (format!("in: 1 {frame}\nout: 2 {frame}00ff\n"), "the frame by port 2 is"),
        (format!("in: 1 {frame}\n"), "by port 2 left"),
        (format!("in: 1 {frame}\nout: 2 {frame}\nout: 2 {frame}\n"), "nothing left by port 2"),
        ("error: OFPFMFC_OVERLAP\n".into(), "taken, expected"),
        ("flow: actions=group:1\n".into(), "refused with OFPBAC_BAD_OUT_GROUP"),
        ("counter: table 0 active = 2\n".into(), "table 0 active is 1, expected 2"),
        ("removed: idle\n".into(), "no flow-removed message came"),
        (format!("in: 1 {frame}\nout: 2 {frame}\npacket_in: action {frame}\n"), "no packet-in"),
    ];
    let begin = "flow: in_port=1,actions=output:2\n";
    let mut text = format!("case: right\n{begin}in: 1 {frame}\nout: 2 {frame}\n");
    for (number, (steps, _)) in wrong.iter().enumerate() {
        text += &format!("\ncase: wrong {number}\n{begin}{steps}");
    }
    std::fs::write(&file, text).expect("a file");
    let (report, code) = check("weir", "1.3", &["--cases", file.to_str().expect("a path")]);
    let cases = report["cases"].as_array().expect("cases");
    assert_eq!(cases[0]["verdict"], "passed", "{}", cases[0]);
    assert_eq!(cases[1]["line"], 9, "{}", cases[1]);
    for (case, (steps, failure)) in cases[1..].iter().zip(&wrong) {
        let note = case["note"].as_str().expect("a note");
        assert!(note.contains(failure), "{steps}: {note}");
        assert!(case["verdict"] == "failed" || steps.contains("group:1"), "{steps}: {case}");
    }
    assert_eq!((cases.len(), code), (1 + wrong.len(), Some(1)));
    let (report, code) = check("linux-bridge", "1.3", &[]);
    assert_eq!(report["cases"].as_array().map(Vec::len), Some(0), "{report}");
    assert_eq!((&report["findings"][0]["verdict"], code), (&Value::from("no"), Some(1)));
}
