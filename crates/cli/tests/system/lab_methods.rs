//! Every method of the lab, once, in its smallest setting, on Weir between hosts in network
//! namespaces: it measures, and what does not depend on the machine's speed is right.
//!
//! It must never look at how fast something is.

use std::process::Command;

use serde_json::Value;

use crate::lab_samples::results;

/// Measures one cell on `dut` by `method`; the cell.
fn cell(dut: &str, method: &str, settings: &str) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("one.toml");
    let text = format!(
        "id = \"one\"\ntitle = \"One\"\nquestion = \"Does it measure?\"\n\
         methods = [\"{method}\"]\nstarts = 1\n[settings]\n{settings}\n"
    );
    std::fs::write(&scenario, text).expect("the scenario is written");
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["lab", "run", "--dut", dut, "--quiet", "--testbed", "kernel", "--out"])
        .arg(folder.path())
        .arg(&scenario)
        .output()
        .expect("the weir binary starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(folder.path().join("report.html").exists(), "{method}: {stderr}");
    let results = results(folder.path());
    let cells = results["scenarios"][0]["cells"].as_array().expect("cells").clone();
    let [cell] = &cells[..] else { panic!("one cell: {cells:?}") };
    cell.clone()
}

/// The value of a metric on Weir.
fn value(cell: &Value, metric: &str) -> f64 {
    assert_eq!(cell["state"], "measured", "{metric}: {cell}");
    let rows = cell["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["metric"] == metric);
    let row = row.unwrap_or_else(|| panic!("no {metric}: {rows:?}"));
    row["samples"][0].as_f64().expect("a number")
}

const FLOWS: &str = "flows = [\"in_port=1,actions=output:2\", \"in_port=2,actions=output:1\"]";

#[test]
#[ignore = "needs root"]
fn rates_are_found_one_way_and_both_ways() {
    for more in ["", "is_bidirectional = true"] {
        let cell = cell("weir", "rate", &format!("{FLOWS}\nduration_s = 0.1\n{more}"));
        assert!(value(&cell, "rate_most_pps") > 0.0, "{cell}");
    }
}

#[test]
#[ignore = "needs root"]
fn programs_of_hosts_measure_between_them() {
    let settings =
        format!("{FLOWS}\nport_rate = \"100M\"\ncount = 10\nduration_s = 0.3\nload_bps = 1e7");
    for (method, metric) in [
        ("ping", "ping_avg_ms"),
        ("probe", "probe_p50_us"),
        ("tcp", "tcp_mbps"),
        ("udp2", "udp2_mbps"),
        ("datagrams", "datagrams_pps"),
        ("pps", "pps_saturated"),
    ] {
        let cell = cell("weir", method, &settings);
        let value = value(&cell, metric);
        // Above would be a broken token bucket; far below is a machine that stalls.
        assert!(value > 0.0 && (method != "tcp" || value < 97.0), "{metric} is {value}");
        assert!(cell["trials"][0]["load"].is_object(), "{cell}");
    }
}

#[test]
#[ignore = "needs root"]
fn decisions_of_the_kernel_tier_are_counted() {
    let settings = format!("{FLOWS}\nduration_s = 0.1");
    let shipped = cell("weir", "rate", &settings);
    let tier = cell("weir-kernel", "rate", &settings);
    let has_decided = |trial: &Value| trial["tier_hits"].as_u64().is_some_and(|hits| hits > 0);
    // Weir as shipped uses the tier wherever it can be had, and says so either way.
    assert!(shipped["trials"][0]["tier_hits"].is_u64(), "{shipped}");
    if tier["state"] != "not_supported" && tier["state"] != "missing" {
        assert_eq!(tier["state"], "measured", "{tier}");
        assert!(has_decided(&tier["trials"][0]) && has_decided(&shipped["trials"][0]), "{tier}");
    }
    let user = cell("weir-user", "rate", &settings);
    assert_eq!(user["state"], "measured", "{user}");
    assert!(user["trials"][0].get("tier_hits").is_none(), "{user}");
}

#[test]
#[ignore = "needs root"]
fn a_meter_lets_its_rate_pass() {
    let settings = "flows = [\"in_port=1,actions=meter:1,output:2\"]\n\
        meters = [\"meter=1,kbps,burst,band=type=drop,rate=1000,burst_size=50\"]\n\
        frame_size = 512\nduration_s = 1.2";
    // A machine that stands still for a tenth of a second fills the bucket meanwhile: no more than
    // the burst comes on top.
    let cell = cell("weir", "meter", settings);
    let kbps = value(&cell, "meter_kbps");
    assert!((800.0..1_200.0).contains(&kbps), "{kbps}");
    let unmetered = self::cell("linux-bridge", "meter", "forwarding = \"learning\"");
    assert_ne!(unmetered["state"], "measured", "{unmetered}");
}

#[test]
#[ignore = "needs root"]
fn a_group_copies_to_its_buckets() {
    let settings = "ports = 3\nduration_s = 0.1\nrate_pps = 1000.0\n\
        groups = [\"group_id=1,type=all,bucket=output:2,bucket=output:3\"]\n\
        flows = [\"in_port=1,actions=group:1\"]";
    let cell = cell("weir", "group", settings);
    // What the lab's own sender left out is not counted as sent.
    assert!((value(&cell, "group_copies") - 2.0).abs() < 0.1, "{cell}");
}

#[test]
#[ignore = "needs root"]
fn a_pulled_port_is_left_for_the_other() {
    let settings = "ports = 3\nduration_s = 0.6\nrate_pps = 1000.0\n\
        groups = [\"group_id=1,type=ff,bucket=watch_port:2,output:2,\
        bucket=watch_port:3,output:3\"]\n\
        flows = [\"in_port=1,actions=group:1\"]";
    let cell = cell("weir", "failover", settings);
    assert!(value(&cell, "failover_ms") >= 0.0);
    let raw = &cell["trials"][0]["raw"];
    assert!(raw["port_2"].as_u64() > Some(0) && raw["port_3"].as_u64() > Some(0), "{raw}");
}

#[test]
#[ignore = "needs root"]
fn the_channel_and_idle_threads_are_looked_at() {
    let channel = cell("weir", "channel", "bridges = 3\ntransport = \"tls\"\nduration_s = 0.1");
    assert!(value(&channel, "channel_echo_ms") > 0.0);
    assert_eq!(channel["trials"][0]["raw"]["connections"], 3);
    let idle = cell("weir", "idle-cpu", &format!("{FLOWS}\nduration_s = 0.2"));
    assert!((0.0..4.0).contains(&value(&idle, "idle_cores")), "{idle}");
}

#[test]
#[ignore = "needs root"]
fn tables_are_filled_and_counted() {
    let flows = cell("weir", "table-size", "count = 5000");
    assert_eq!(value(&flows, "table_entries"), 5_000.0);
    let learnt =
        cell("linux-bridge", "table-size", "count = 500\nports = 3\nforwarding = \"learning\"");
    assert_eq!(value(&learnt, "table_entries"), 500.0);
}

#[test]
#[ignore = "needs root"]
fn rfc_2544_yields_its_figures() {
    let rfc = format!("{FLOWS}\nduration_s = 0.05\nrate_pps = 20000.0\nloss = 0.5");
    let rfc = cell("weir", "rfc2544", &rfc);
    assert!(value(&rfc, "rfc2544_throughput_pps") > 0.0);
}
