//! Switches under test, each started for real between hosts in network namespaces, once for each
//! setting that it claims to have: a few frames must cross, or the reason stands in the results.
//!
//! It must never look at how fast something is.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Runs a scenario with these settings on one switch; its only cell.
fn cell(dut: &str, settings: &str, words: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("one.toml");
    let text = format!(
        "id = \"one\"\ntitle = \"One\"\nquestion = \"Does it forward?\"\nmethods = [\"delay\"]\n\
         repeats = 1\n[settings]\nrate_pps = 500.0\nduration_s = 0.2\n{settings}\n"
    );
    std::fs::write(&scenario, text).expect("the scenario is written");
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["lab", "run", "--dut", dut, "--quiet", "--testbed", "kernel", "--out"])
        .arg(folder.path())
        .args(words)
        .arg(&scenario)
        .output()
        .expect("the weir binary starts");
    let path = folder.path().join("results.json");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = std::fs::read(&path).unwrap_or_else(|error| panic!("{error}: {said}"));
    let results: Value = serde_json::from_slice(&json).expect("JSON");
    let cells = results["scenarios"][0]["cells"].as_array().expect("cells").clone();
    let [cell] = &cells[..] else { panic!("one cell: {cells:?}") };
    cell.clone()
}

/// Frames cross.
fn forwards(dut: &str, settings: &str, words: &[&str]) -> Value {
    let cell = cell(dut, settings, words);
    assert_eq!(cell["state"], "measured", "{dut}, {settings}: {}", cell["reason"]);
    let raw = &cell["trials"][0]["raw"];
    assert!(raw["received"].as_u64().is_some_and(|frames| frames > 0), "{dut}, {settings}: {raw}");
    cell
}

/// It says that it cannot.
fn cannot(dut: &str, settings: &str, why: &str) {
    let cell = cell(dut, settings, &[]);
    assert_eq!(cell["state"], "not_supported", "{dut}, {settings}: {cell}");
    let reason = cell["reason"].as_str().unwrap_or_default();
    assert!(reason.contains(why), "{dut}, {settings}: {reason}");
}

/// What was run to start it.
fn commands(cell: &Value) -> String {
    let commands = cell["commands"].as_array().expect("commands").iter();
    commands.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

const FLOWS: &str = "flows = [\"in_port=1,actions=output:2\", \"in_port=2,actions=output:1\"]";

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
    cannot("weir", &format!("queues = 2\n{FLOWS}"), "one queue");
    cannot("weir", "forwarding = \"io\"\ntransport = \"tls\"", "no OpenFlow channel");
}

#[test]
#[ignore = "needs root"]
fn weir_with_the_kernel_tier_forwards() {
    let cell = forwards("weir-kernel", FLOWS, &[]);
    assert!(commands(&cell).contains("frame,key,kernel"));
    cannot("weir-kernel", &format!("caches = \"none\"\n{FLOWS}"), "kernel tier");
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
