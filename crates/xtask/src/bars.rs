//! Bars of Weir's own speed, held against lines of JSON that the benches print.
//!
//! A ratio to a peer holds on any machine; rates, times and shares of a core are asked for as they
//! were on the machine where they were set. A bar is met only by what was measured: without a row,
//! or without the peer that it names, it is not.

use std::io::Read as _;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Subject of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// The value is at least this.
    AtLeast,
    /// The value is at most this.
    AtMost,
    /// The largest of all repeats is at most this: what must never happen.
    EachAtMost,
    /// The ratio to the peer of that name is at least this.
    RatioAtLeast(&'static str),
    /// The ratio to the peer of that name is at most this.
    RatioAtMost(&'static str),
}

/// A row of a bench and what is asked of it.
#[derive(Clone, Copy, Debug)]
struct Bar {
    row: &'static str,
    /// The switch; of a controller's row there is none.
    dut: Option<&'static str>,
    of: Of,
    limit: f64,
}

const fn controller(row: &'static str, of: Of, limit: f64) -> Bar {
    Bar { row, dut: None, of, limit }
}

const fn switch(row: &'static str, dut: &'static str, of: Of, limit: f64) -> Bar {
    Bar { row, dut: Some(dut), of, limit }
}

const OVS: &str = "ovs-testcontroller";
const KERNEL: &str = "weir-kernel";
const BRIDGE: Of = Of::RatioAtLeast("linux-bridge");
const OVS_TSO: Of = Of::RatioAtLeast("ovs-tso");

/// Rows of `weir bench controller --rows --json`, and of `weir bench ports --json`.
#[rustfmt::skip]
const BARS: &[Bar] = &[
    controller("learning-switch-1", Of::AtLeast, 3_500_000.0),
    controller("learning-switch-1", Of::RatioAtLeast(OVS), 20.0),
    controller("learning-switch-16", Of::AtLeast, 3_500_000.0),
    controller("learning-switch-16", Of::RatioAtLeast(OVS), 20.0),
    controller("learning-switch-64", Of::AtLeast, 3_500_000.0),
    controller("learning-switch-64", Of::RatioAtLeast("ovs-testcontroller (16 switches)"), 20.0),
    controller("four-shards", Of::RatioAtLeast("weir-1-shards"), 1.6),
    controller("python-os-ken", Of::RatioAtLeast("os-ken"), 20.0),
    controller("python-ovs", Of::RatioAtLeast(OVS), 1.0),
    controller("latency-p50", Of::RatioAtMost(OVS), 0.5),
    controller("latency-p99", Of::RatioAtMost(OVS), 0.5),
    controller("latency-busy-poll-p50", Of::RatioAtMost(OVS), 0.5),
    controller("latency-busy-poll-p99", Of::RatioAtMost(OVS), 0.5),
    controller("ceiling-tls", Of::RatioAtLeast("weir"), 0.7),
    controller("storm", Of::AtMost, 10.0),
    controller("storm-idle-cpu", Of::AtMost, 10.0),
    controller("storm-memory", Of::AtMost, 64.0),
    controller("storm-tls", Of::AtMost, 60.0),
    controller("storm-tls-idle-cpu", Of::AtMost, 10.0),
    controller("storm-tls-memory", Of::AtMost, 64.0),
    controller("flow-entries-controller-cpu", Of::AtMost, 50.0),
    controller("cluster", Of::EachAtMost, 2.0),
    controller("cluster-entries-lost", Of::EachAtMost, 0.0),
    controller("cluster-packets-lost", Of::EachAtMost, 0.0),
    switch("tcp_1", KERNEL, BRIDGE, 0.9),
    switch("tcp_1", KERNEL, OVS_TSO, 1.5),
    switch("tcp_1", "weir", OVS_TSO, 1.0),
    switch("tcp_1_reverse", KERNEL, BRIDGE, 0.9),
    switch("tcp_1_reverse", KERNEL, OVS_TSO, 1.5),
    switch("tcp_1_reverse", "weir", OVS_TSO, 1.0),
    switch("tcp_4", KERNEL, BRIDGE, 0.9),
    switch("tcp_4", KERNEL, OVS_TSO, 1.5),
    switch("tcp_4", "weir", OVS_TSO, 1.0),
    switch("tcp_4_reverse", KERNEL, BRIDGE, 0.9),
    switch("tcp_4_reverse", KERNEL, OVS_TSO, 1.5),
    switch("tcp_4_reverse", "weir", OVS_TSO, 1.0),
    switch("ping_avg", KERNEL, Of::RatioAtMost("linux-bridge"), 1.2),
    switch("ping_avg", "weir", Of::AtMost, 100.0),
    switch("ping_avg", "weir-busy", Of::AtMost, 60.0),
    switch("udp64", KERNEL, BRIDGE, 0.9),
    switch("udp64", "weir", Of::RatioAtLeast("ovs"), 1.5),
    switch("udp64_10k_flows", KERNEL, Of::RatioAtLeast("one flow"), 0.85),
    switch("udp64_61k_entries", KERNEL, Of::RatioAtLeast("one flow"), 0.85),
    switch("flow_changes", KERNEL, Of::AtLeast, 50_000.0),
    switch("flow_changes_wrong", KERNEL, Of::EachAtMost, 0.0),
    switch("flow_changes_lost", KERNEL, Of::EachAtMost, 0.0),
    switch("fair_share", "weir", Of::AtLeast, 80.0),
    switch("fair_share", KERNEL, Of::AtLeast, 80.0),
    switch("idle_cpu", KERNEL, Of::AtMost, 0.5),
];

/// Reads the lines of standard input and prints each bar of the benches that they are of.
pub(crate) fn run() -> Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("reading lines of JSON")?;
    let read = |line: &str| serde_json::from_str(line).with_context(|| line.to_owned());
    let rows: Vec<Value> = text.lines().map(read).collect::<Result<_>>()?;
    let found = held(&rows);
    for (bar, met) in &found {
        let dut = bar.dut.map(|dut| format!(" {dut}")).unwrap_or_default();
        let verdict = match met {
            Some(true) => "met",
            Some(false) => "NOT MET",
            None => "NOT MEASURED",
        };
        println!("{:12} {}{dut}: {:?} {}", verdict, bar.row, bar.of, bar.limit);
    }
    let missed = found.iter().filter(|(_, met)| *met != Some(true)).count();
    if found.is_empty() || missed > 0 {
        bail!("{missed} of {} bars are not met", found.len());
    }
    Ok(())
}

/// The bars of controllers or of switches, whichever the rows are of, and whether each is met; none
/// where its figure was not measured.
fn held(rows: &[Value]) -> Vec<(&'static Bar, Option<bool>)> {
    let is_of = |bar: &&Bar| rows.iter().any(|row| row["dut"].is_string() == bar.dut.is_some());
    BARS.iter().filter(is_of).map(|bar| (bar, bar.is_met(rows))).collect()
}

impl Bar {
    fn is_met(&self, rows: &[Value]) -> Option<bool> {
        let (key, is_most) = match self.of {
            Of::AtLeast => ("value", false),
            Of::AtMost => ("value", true),
            Of::EachAtMost => ("max", true),
            Of::RatioAtLeast(_) => ("ratio", false),
            Of::RatioAtMost(_) => ("ratio", true),
        };
        let peer = match self.of {
            Of::RatioAtLeast(peer) | Of::RatioAtMost(peer) => Some(peer),
            Of::AtLeast | Of::AtMost | Of::EachAtMost => None,
        };
        let is_it = |row: &&Value| {
            row["row"] == self.row
                && row["dut"].as_str() == self.dut
                && peer.is_none_or(|peer| row["peer"] == peer)
        };
        let value = rows.iter().find(is_it)?[key].as_f64()?;
        Some(if is_most { value <= self.limit } else { value >= self.limit })
    }
}

#[cfg(test)]
mod tests {
    use super::{BARS, held};
    use serde_json::json;

    #[test]
    fn a_bar_is_met_only_by_what_was_measured() {
        let rows = [
            json!({"row": "tcp_1", "dut": "weir-kernel", "value": 30.0, "max": 31.0,
                   "peer": "linux-bridge", "ratio": 0.95}),
            json!({"row": "tcp_1", "dut": "weir-kernel", "value": 30.0, "max": 31.0,
                   "peer": "ovs-tso", "ratio": 1.2}),
            json!({"row": "flow_changes_lost", "dut": "weir-kernel", "value": 0.0, "max": 3.0}),
            json!({"row": "ping_avg", "dut": "weir", "absent": "ping not installed"}),
        ];
        let found = held(&rows);
        assert!(found.iter().all(|(bar, _)| bar.dut.is_some()), "no controller was measured");
        let met = |row: &str, dut: &str| -> Vec<Option<bool>> {
            let is_it = |bar: &&super::Bar| bar.row == row && bar.dut == Some(dut);
            found.iter().filter(|(bar, _)| is_it(bar)).map(|(_, met)| *met).collect()
        };
        assert_eq!(met("tcp_1", "weir-kernel"), [Some(true), Some(false)]);
        assert_eq!(met("flow_changes_lost", "weir-kernel"), [Some(false)], "the largest counts");
        assert_eq!((met("ping_avg", "weir"), met("udp64", "weir")), (vec![None], vec![None]));
        let fast = [json!({"row": "learning-switch-1", "value": 4e6})];
        let met = held(&fast).iter().filter(|(_, met)| *met == Some(true)).count();
        assert_eq!((held(&fast).len() < BARS.len(), met), (true, 1), "the ratio has no peer");
    }
}
