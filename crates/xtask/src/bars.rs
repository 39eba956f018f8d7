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
    /// The ratio to the peer of that name is at least this.
    RatioAtLeast(&'static str),
    /// The ratio to the peer of that name is at most this.
    RatioAtMost(&'static str),
}

/// A row of a bench and what is asked of it.
#[derive(Clone, Copy, Debug)]
struct Bar {
    row: &'static str,
    /// The switch, or the controller.
    dut: &'static str,
    of: Of,
    limit: f64,
}

const fn switch(row: &'static str, dut: &'static str, of: Of, limit: f64) -> Bar {
    Bar { row, dut, of, limit }
}

const OVS: &str = "ovs-testcontroller";
const PYTHON: &str = "weir-python";
const KERNEL: &str = "weir-kernel";
const BRIDGE: Of = Of::RatioAtLeast("linux-bridge");
const OVS_TSO: Of = Of::RatioAtLeast("ovs-tso");
const USER: &str = "weir-user";

/// Rows of `weir lab run controller-throughput controller-latency controller-storm --format lines`,
/// the storm with 10,000 switches, and of `weir lab run ports --format lines`.
#[rustfmt::skip]
const BARS: &[Bar] = &[
    switch("controller-throughput-responses-ps", "weir", Of::AtLeast, 3_500_000.0),
    switch("controller-throughput-responses-ps", "weir", Of::RatioAtLeast(OVS), 20.0),
    switch("controller-throughput-responses-ps", PYTHON, Of::RatioAtLeast("os-ken"), 20.0),
    switch("controller-throughput-responses-ps", PYTHON, Of::RatioAtLeast(OVS), 1.0),
    switch("controller-latency-answer-p50-us", "weir", Of::RatioAtMost(OVS), 0.5),
    switch("controller-latency-answer-p99-us", "weir", Of::RatioAtMost(OVS), 0.5),
    switch("controller-latency-answer-p50-us", "weir-busy", Of::RatioAtMost(OVS), 0.5),
    switch("controller-latency-answer-p99-us", "weir-busy", Of::RatioAtMost(OVS), 0.5),
    switch("controller-storm-storm-s", "weir", Of::AtMost, 10.0),
    switch("controller-storm-storm-idle-cores", "weir", Of::AtMost, 0.1),
    switch("controller-storm-storm-kib", "weir", Of::AtMost, 64.0),
    switch("ports-tcp-tcp-mbps-learning-1-there", KERNEL, BRIDGE, 0.9),
    switch("ports-tcp-tcp-mbps-learning-1-back", KERNEL, BRIDGE, 0.9),
    switch("ports-tcp-tcp-mbps-learning-4-there", KERNEL, BRIDGE, 0.9),
    switch("ports-tcp-tcp-mbps-learning-4-back", KERNEL, BRIDGE, 0.9),
    switch("ports-tcp-tcp-mbps-flow-entries-1-there", KERNEL, OVS_TSO, 1.5),
    switch("ports-tcp-tcp-mbps-flow-entries-1-there", USER, OVS_TSO, 1.0),
    switch("ports-tcp-tcp-mbps-flow-entries-1-back", KERNEL, OVS_TSO, 1.5),
    switch("ports-tcp-tcp-mbps-flow-entries-1-back", USER, OVS_TSO, 1.0),
    switch("ports-tcp-tcp-mbps-flow-entries-4-there", KERNEL, OVS_TSO, 1.5),
    switch("ports-tcp-tcp-mbps-flow-entries-4-there", USER, OVS_TSO, 1.0),
    switch("ports-tcp-tcp-mbps-flow-entries-4-back", KERNEL, OVS_TSO, 1.5),
    switch("ports-tcp-tcp-mbps-flow-entries-4-back", USER, OVS_TSO, 1.0),
    switch("ports-ping-ping-avg-ms-learning", KERNEL, Of::RatioAtMost("linux-bridge"), 1.2),
    switch("ports-ping-ping-avg-ms-flow-entries", USER, Of::AtMost, 0.1),
    switch("ports-ping-ping-avg-ms-flow-entries", "weir-busy", Of::AtMost, 0.06),
    switch("ports-datagrams-datagrams-pps-learning", KERNEL, BRIDGE, 0.9),
    switch("ports-datagrams-datagrams-pps-flow-entries", USER, Of::RatioAtLeast("ovs"), 1.5),
    switch("ports-idle-idle-cores", KERNEL, Of::AtMost, 0.005),
];

/// Reads the lines of standard input and prints each bar of the benches that they are of.
pub(crate) fn run() -> Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("reading lines of JSON")?;
    let read = |line: &str| serde_json::from_str(line).with_context(|| line.to_owned());
    let rows: Vec<Value> = text.lines().map(read).collect::<Result<_>>()?;
    let found = held(&rows);
    for (bar, met) in &found {
        let dut = bar.dut;
        let verdict = match met {
            Some(true) => "met",
            Some(false) => "NOT MET",
            None => "NOT MEASURED",
        };
        println!("{:12} {} {dut}: {:?} {}", verdict, bar.row, bar.of, bar.limit);
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
    let of_controller = |row: &str| row.starts_with("controller-");
    let names = || rows.iter().filter_map(|row| row["row"].as_str());
    let is_of = |bar: &&Bar| names().any(|row| of_controller(row) == of_controller(bar.row));
    BARS.iter().filter(is_of).map(|bar| (bar, bar.is_met(rows))).collect()
}

impl Bar {
    fn is_met(&self, rows: &[Value]) -> Option<bool> {
        let mut of_row = rows.iter().filter(|row| row["row"] == self.row && row["dut"] == self.dut);
        let number = |row: &Value, key: &str| row[key].as_f64();
        match self.of {
            Of::AtLeast => Some(number(of_row.next()?, "value")? >= self.limit),
            Of::AtMost => Some(number(of_row.next()?, "value")? <= self.limit),
            Of::RatioAtLeast(peer) => Some(of_row.find_map(|row| ratio(row, peer))? >= self.limit),
            Of::RatioAtMost(peer) => Some(of_row.find_map(|row| ratio(row, peer))? <= self.limit),
        }
    }
}

/// The ratio to a peer.
fn ratio(row: &Value, peer: &str) -> Option<f64> {
    row["beside"].as_array()?.iter().find(|one| one["dut"] == peer)?["ratio"].as_f64()
}

#[cfg(test)]
mod tests {
    use super::{BARS, held};
    use serde_json::json;

    #[test]
    fn a_bar_is_met_only_by_what_was_measured() {
        const TCP: &str = "ports-tcp-tcp-mbps-flow-entries-1-there";
        const IDLE: &str = "ports-idle-idle-cores";
        const PING: &str = "ports-ping-ping-avg-ms-flow-entries";
        let rows = [
            json!({"row": TCP, "dut": "weir-kernel", "value": 30.0, "high": 31.0,
                   "beside": [{"dut": "linux-bridge", "ratio": 0.95},
                              {"dut": "ovs-tso", "ratio": 1.7}]}),
            json!({"row": IDLE, "dut": "weir-kernel", "value": 0.5, "high": 0.6}),
            json!({"row": PING, "dut": "weir-user", "absent": "ping not installed"}),
        ];
        let found = held(&rows);
        let is_port = |(bar, _): &(&super::Bar, _)| bar.row.starts_with("ports-");
        assert!(found.iter().all(is_port), "no controller was measured");
        let met = |row: &str, dut: &str| -> Vec<Option<bool>> {
            let is_it = |bar: &&super::Bar| bar.row == row && bar.dut == dut;
            found.iter().filter(|(bar, _)| is_it(bar)).map(|(_, met)| *met).collect()
        };
        assert_eq!(met(TCP, "weir-kernel"), [Some(true)]);
        assert_eq!(met(IDLE, "weir-kernel"), [Some(false)]);
        assert_eq!((met(PING, "weir-user"), met(TCP, "weir-user")), (vec![None], vec![None]));
        let fast = "controller-throughput-responses-ps";
        let fast = [json!({"row": fast, "dut": "weir", "value": 4e6, "beside": []})];
        let met = held(&fast).iter().filter(|(_, met)| *met == Some(true)).count();
        assert_eq!((held(&fast).len() < BARS.len(), met), (true, 1), "the ratio has no peer");
    }
}
