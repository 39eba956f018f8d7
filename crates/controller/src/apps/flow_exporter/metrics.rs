//! The metrics that are exported, and their text in Prometheus' exposition format, version 0.0.4.
//!
//! Counters that a switch does not keep (all ones) are left out, never shown as a number.

use openflow::flow::FlowStats;
use openflow::port::{PortDesc, PortStats};
use openflow::table::TableStats;
use openflow::text::format_match;
use openflow::{DatapathId, PortNo, Version};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The last counters of every switch.
#[derive(Debug, Default)]
pub struct Samples {
    switches: Mutex<BTreeMap<DatapathId, (Instant, Sample)>>,
}

/// One switch's counters, as text behind the name of the metric.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    version: Option<Version>,
    names: BTreeMap<PortNo, String>,
    ports: Vec<PortStats>,
    tables: Vec<TableStats>,
    flows: Vec<FlowStats>,
    flow_count: usize,
}

impl Sample {
    pub(super) fn new<'a>(version: Version, ports: impl Iterator<Item = &'a PortDesc>) -> Self {
        let names = ports.map(|desc| (desc.port_no, desc.name.clone())).collect();
        Self { version: Some(version), names, ..Self::default() }
    }

    pub(super) fn set_ports(&mut self, ports: &[PortStats]) {
        self.ports = ports.to_vec();
    }

    pub(super) fn set_tables(&mut self, tables: &[TableStats]) {
        // A table that nothing has ever looked at is of no interest, and there are 255.
        let used = tables.iter().filter(|table| table.active_count > 0 || table.lookup_count > 0);
        self.tables = used.cloned().collect();
    }

    pub(super) fn set_flows(&mut self, flows: &[FlowStats], max_flows: u32) {
        self.flow_count = flows.len();
        let mut busiest: Vec<_> = flows.iter().collect();
        busiest.sort_by_key(|flow| std::cmp::Reverse(flow.packet_count));
        busiest.truncate(usize::try_from(max_flows).unwrap_or(usize::MAX));
        self.flows = busiest.into_iter().cloned().collect();
    }
}

/// One metric: its name, kind and help, and the values of a switch, each behind its labels.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    values: fn(&Sample) -> Vec<(String, u64)>,
}

const fn counter(
    name: &'static str,
    help: &'static str,
    values: fn(&Sample) -> Vec<(String, u64)>,
) -> Metric {
    Metric { name, kind: "counter", help, values }
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    values: fn(&Sample) -> Vec<(String, u64)>,
) -> Metric {
    Metric { name, kind: "gauge", help, values }
}

/// Every metric that is made of a sample.
#[rustfmt::skip]
const METRICS: &[Metric] = &[
    counter("weir_port_receive_packets_total", "Packets received.",
        |it| it.of_ports(|port| port.rx_packets)),
    counter("weir_port_transmit_packets_total", "Packets sent.",
        |it| it.of_ports(|port| port.tx_packets)),
    counter("weir_port_receive_bytes_total", "Bytes received, without FCS.",
        |it| it.of_ports(|port| port.rx_bytes)),
    counter("weir_port_transmit_bytes_total", "Bytes sent, without FCS.",
        |it| it.of_ports(|port| port.tx_bytes)),
    counter("weir_port_receive_dropped_total", "Packets dropped on receive.",
        |it| it.of_ports(|port| port.rx_dropped)),
    counter("weir_port_transmit_dropped_total", "Packets dropped on send.",
        |it| it.of_ports(|port| port.tx_dropped)),
    counter("weir_port_receive_errors_total", "Receive errors.",
        |it| it.of_ports(|port| port.rx_errors)),
    counter("weir_port_transmit_errors_total", "Send errors.",
        |it| it.of_ports(|port| port.tx_errors)),
    gauge("weir_table_entries", "Flow entries of a table.",
        |it| it.of_tables(|table| table.active_count.into())),
    counter("weir_table_lookups_total", "Packets looked up in a table.",
        |it| it.of_tables(|table| table.lookup_count)),
    counter("weir_table_matches_total", "Packets that an entry of a table matched.",
        |it| it.of_tables(|table| table.matched_count)),
    gauge("weir_flow_entries", "Flow entries of a switch.",
        |it| vec![(String::new(), it.flow_count as u64)]),
    gauge("weir_flow_entries_not_exported", "Flow entries beyond max-flows, which are not shown.",
        |it| vec![(String::new(), (it.flow_count - it.flows.len()) as u64)]),
    counter("weir_flow_packets_total", "Packets of a flow entry.",
        |it| it.of_flows(|flow| flow.packet_count)),
    counter("weir_flow_bytes_total", "Bytes of a flow entry, without FCS.",
        |it| it.of_flows(|flow| flow.byte_count)),
];

impl Sample {
    fn of_ports(&self, value: fn(&PortStats) -> u64) -> Vec<(String, u64)> {
        let labels = |port: &PortStats| {
            let name = self.names.get(&port.port_no).map_or("", |name| name);
            format!(",port=\"{}\",name=\"{}\"", port.port_no, escaped(name))
        };
        self.ports.iter().map(|port| (labels(port), value(port))).collect()
    }

    fn of_tables(&self, value: fn(&TableStats) -> u64) -> Vec<(String, u64)> {
        let labels = |table: &TableStats| format!(",table=\"{}\"", table.table_id.0);
        self.tables.iter().map(|table| (labels(table), value(table))).collect()
    }

    fn of_flows(&self, value: fn(&FlowStats) -> u64) -> Vec<(String, u64)> {
        let labels = |flow: &FlowStats| {
            format!(
                ",table=\"{}\",priority=\"{}\",cookie=\"{:#x}\",match=\"{}\"",
                flow.table_id.0,
                flow.priority,
                flow.cookie.0,
                escaped(&format_match(&flow.matching))
            )
        };
        self.flows.iter().map(|flow| (labels(flow), value(flow))).collect()
    }
}

/// The value of a label: names come from switches, which may say anything.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Samples {
    pub(super) fn put(&self, dpid: DatapathId, sample: Sample, at: Instant) {
        self.lock().insert(dpid, (at, sample));
    }

    pub(super) fn remove(&self, dpid: DatapathId) {
        self.lock().remove(&dpid);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<DatapathId, (Instant, Sample)>> {
        self.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The text of all metrics.
    #[must_use]
    pub fn text(&self, now: Instant) -> String {
        // A copy, so that no shard waits while the text is made.
        let switches = self.lock().clone();
        let mut text = String::from(
            "# HELP weir_switch_info Switches whose counters are here.\n\
             # TYPE weir_switch_info gauge\n",
        );
        for (dpid, (_, sample)) in &switches {
            let version = sample.version.map_or("", Version::name);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "weir_switch_info{{dpid=\"{dpid}\",version=\"{version}\"}} 1");
        }
        text.push_str(
            "# HELP weir_sample_age_seconds Since the switch was last heard.\n\
             # TYPE weir_sample_age_seconds gauge\n",
        );
        for (dpid, (at, _)) in &switches {
            let age = now.saturating_duration_since(*at).as_secs_f64();
            let _ = writeln!(text, "weir_sample_age_seconds{{dpid=\"{dpid}\"}} {age:.3}");
        }
        for Metric { name, kind, help, values } in METRICS {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (dpid, (_, sample)) in &switches {
                for (labels, value) in values(sample) {
                    if value != u64::MAX {
                        let _ = writeln!(text, "{name}{{dpid=\"{dpid}\"{labels}}} {value}");
                    }
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Sample, Samples};
    use openflow::flow::FlowStats;
    use openflow::port::{PortDesc, PortStats};
    use openflow::text::parse_match;
    use openflow::{Cookie, DatapathId, PortNo, TableId, Version};
    use std::time::{Duration, Instant};

    fn flow(priority: u16, packet_count: u64) -> FlowStats {
        FlowStats {
            table_id: TableId(0),
            duration_s: 1,
            duration_ns: 0,
            priority,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            flags: openflow::flow::FlowModFlags::empty(),
            cookie: Cookie(5),
            packet_count,
            byte_count: u64::MAX,
            matching: parse_match("tcp,tp_dst=80").unwrap(),
            instructions: Vec::new(),
        }
    }

    #[test]
    fn the_text_has_a_line_for_each_counter_that_is_kept() {
        let (samples, now) = (Samples::default(), Instant::now());
        let name = "odd\"na\\me".to_owned();
        let desc = PortDesc { port_no: PortNo(1), name, ..PortDesc::default() };
        let mut sample = Sample::new(Version::V1_3, [desc].iter());
        let port = PortStats { port_no: PortNo(1), rx_packets: 7, ..PortStats::default() };
        sample.set_ports(&[PortStats { rx_errors: u64::MAX, ..port }]);
        sample.set_flows(&[flow(1, 5), flow(2, 9), flow(3, 1)], 2);
        samples.put(DatapathId(1), sample, now);
        let text = samples.text(now + Duration::from_millis(1_500));
        let dpid = "dpid=\"0000000000000001\"";
        for line in [
            format!("weir_switch_info{{{dpid},version=\"OpenFlow13\"}} 1"),
            format!("weir_sample_age_seconds{{{dpid}}} 1.500"),
            format!(
                "weir_port_receive_packets_total{{{dpid},port=\"1\",name=\"odd\\\"na\\\\me\"}} 7"
            ),
            format!("weir_flow_entries{{{dpid}}} 3"),
            format!("weir_flow_entries_not_exported{{{dpid}}} 1"),
            format!(
                "weir_flow_packets_total{{{dpid},table=\"0\",priority=\"2\",cookie=\"0x5\",\
                 match=\"tcp,tp_dst=80\"}} 9"
            ),
        ] {
            assert!(text.lines().any(|own| own == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("weir_flow_bytes_total{"), "not kept");
        assert!(!text.contains("weir_port_receive_errors_total{"), "not kept");
        assert!(!text.contains("priority=\"3\""), "beyond the most");
        samples.remove(DatapathId(1));
        assert!(!samples.text(now).contains("dpid="));
    }
}
