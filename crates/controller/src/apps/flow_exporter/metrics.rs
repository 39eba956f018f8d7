//! The metrics that are exported: a row each.
//!
//! Their names begin with `openflow_`, whatever switch it is: `weir_` is for what Weir itself
//! counts.
//! Counters that a switch does not keep (all ones) are left out, never shown as a number.

use metrics::{Family, Kind, Labels, MetricRow, Value, count, table};
use openflow::flow::FlowStats;
use openflow::port::{PortDesc, PortStats};
use openflow::table::TableStats;
use openflow::text::format_match;
use openflow::{DatapathId, PortNo, Version};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The last counters of every switch.
#[derive(Debug, Default)]
pub struct Samples {
    switches: Mutex<BTreeMap<DatapathId, (Instant, Sample)>>,
}

/// One switch's counters.
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

#[rustfmt::skip]
const PORTS: &[MetricRow<PortStats>] = &[
    MetricRow::counter("openflow_port_receive_packets", "Packets received.",
        |port| count(port.rx_packets)),
    MetricRow::counter("openflow_port_transmit_packets", "Packets sent.",
        |port| count(port.tx_packets)),
    MetricRow::counter("openflow_port_receive_bytes", "Bytes received, without FCS.",
        |port| count(port.rx_bytes)),
    MetricRow::counter("openflow_port_transmit_bytes", "Bytes sent, without FCS.",
        |port| count(port.tx_bytes)),
    MetricRow::counter("openflow_port_receive_dropped", "Packets dropped on receive.",
        |port| count(port.rx_dropped)),
    MetricRow::counter("openflow_port_transmit_dropped", "Packets dropped on send.",
        |port| count(port.tx_dropped)),
    MetricRow::counter("openflow_port_receive_errors", "Receive errors.",
        |port| count(port.rx_errors)),
    MetricRow::counter("openflow_port_transmit_errors", "Send errors.",
        |port| count(port.tx_errors)),
];

#[rustfmt::skip]
const TABLES: &[MetricRow<TableStats>] = &[
    MetricRow::gauge("openflow_table_entries", "Flow entries of a table.",
        |table| count(table.active_count.into())),
    MetricRow::counter("openflow_table_lookups", "Packets looked up in a table.",
        |table| count(table.lookup_count)),
    MetricRow::counter("openflow_table_matches", "Packets that an entry of a table matched.",
        |table| count(table.matched_count)),
];

#[rustfmt::skip]
const SWITCHES: &[MetricRow<Sample>] = &[
    MetricRow::gauge("openflow_flow_entries", "Flow entries of a switch.",
        |it| count(it.flow_count as u64)),
    MetricRow::gauge("openflow_flow_entries_not_exported",
        "Flow entries beyond max-flows, not shown.",
        |it| count((it.flow_count - it.flows.len()) as u64)),
];

#[rustfmt::skip]
const FLOWS: &[MetricRow<FlowStats>] = &[
    MetricRow::counter("openflow_flow_packets", "Packets of a flow entry.",
        |flow| count(flow.packet_count)),
    MetricRow::counter("openflow_flow_bytes", "Bytes of a flow entry, without FCS.",
        |flow| count(flow.byte_count)),
];

const SWITCH: &[&str] = &["dpid"];
const SWITCH_VERSION: &[&str] = &["dpid", "version"];
const PORT: &[&str] = &["dpid", "port", "name"];
const TABLE: &[&str] = &["dpid", "table"];
const FLOW: &[&str] = &["dpid", "table", "priority", "cookie", "match"];

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

    /// All metrics.
    #[must_use]
    pub fn families(&self, now: Instant) -> Vec<Family> {
        // A copy, so that no shard waits while the text is made.
        let switches = self.lock().clone();
        let help = "Switches whose counters are here.";
        let mut info = Family::new(Kind::Gauge, "openflow_switch_info", help, SWITCH_VERSION);
        let help = "Since the switch was last heard.";
        let mut age = Family::new(Kind::Gauge, "openflow_sample_age_seconds", help, SWITCH);
        let (mut samples, mut ports) = (Vec::new(), Vec::new());
        let (mut tables, mut flows) = (Vec::new(), Vec::new());
        for (dpid, (at, sample)) in &switches {
            let port = |port: &PortStats| {
                let name = sample.names.get(&port.port_no).map_or("", String::as_str);
                Labels::new(PORT, &[dpid, &port.port_no, &name])
            };
            let table = |table: &TableStats| Labels::new(TABLE, &[dpid, &table.table_id.0]);
            let flow = |flow: &FlowStats| {
                let (table, priority) = (flow.table_id.0, flow.priority);
                let cookie = format!("{:#x}", flow.cookie.0);
                Labels::new(
                    FLOW,
                    &[dpid, &table, &priority, &cookie, &format_match(&flow.matching)],
                )
            };
            let version = sample.version.map_or("", Version::name);
            info.sample(&[&Labels::new(SWITCH_VERSION, &[dpid, &version])], Value::Whole(1));
            let switch = Labels::new(SWITCH, &[dpid]);
            let since = now.saturating_duration_since(*at).as_secs_f64();
            age.sample(&[&switch], Value::Real(since));
            samples.push((switch, sample));
            ports.extend(sample.ports.iter().map(|one| (port(one), one)));
            tables.extend(sample.tables.iter().map(|one| (table(one), one)));
            flows.extend(sample.flows.iter().map(|one| (flow(one), one)));
        }
        [info, age]
            .into_iter()
            .chain(table(SWITCHES, SWITCH, &samples))
            .chain(table(PORTS, PORT, &ports))
            .chain(table(TABLES, TABLE, &tables))
            .chain(table(FLOWS, FLOW, &flows))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Sample, Samples};
    use metrics::{TextFormat, text};
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
            importance: 0,
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
        let later = now + Duration::from_millis(1_500);
        let text = text(&samples.families(later), TextFormat::Text);
        let dpid = "dpid=\"0000000000000001\"";
        let labels = r#"port="1",name="odd\"na\\me""#;
        for line in [
            format!("openflow_switch_info{{{dpid},version=\"OpenFlow13\"}} 1"),
            format!("openflow_sample_age_seconds{{{dpid}}} 1.5"),
            format!("openflow_port_receive_packets_total{{{dpid},{labels}}} 7"),
            format!("openflow_flow_entries{{{dpid}}} 3"),
            format!("openflow_flow_entries_not_exported{{{dpid}}} 1"),
            format!(
                "openflow_flow_packets_total{{{dpid},table=\"0\",priority=\"2\",cookie=\"0x5\",\
                 match=\"tcp,tp_dst=80\"}} 9"
            ),
        ] {
            assert!(text.lines().any(|own| own == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("openflow_flow_bytes_total{"), "not kept");
        assert!(!text.contains("openflow_port_receive_errors_total{"), "not kept");
        assert!(!text.contains("priority=\"3\""), "beyond the most");
        samples.remove(DatapathId(1));
        assert!(!metrics::text(&samples.families(now), TextFormat::Text).contains("dpid="));
    }
}
