//! The traffic monitor: prints the rates of every port and the busiest flow entries, regularly.
//!
//! It asks for statistics and compares them with those of the last time. It forwards nothing, so it
//! stands beside an app that does: `weir controller learning-switch,traffic-monitor`. It must never
//! ask a switch again that has not answered yet, nor show a counter as a rate that began anew.

use crate::app::App;
use crate::switch::Switch;
use openflow::flow::{FlowStats, FlowStatsRequest};
use openflow::message::{
    ErrorMessage, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::port::PortStats;
use openflow::text::{format_instructions, format_match};
use openflow::{DatapathId, Match, Message, PortNo, TableId, Xid};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// Takes the text that an app prints.
pub type Print = Arc<dyn Fn(&str) + Send + Sync>;

/// A request without an answer is given up after this number of intervals.
const INTERVALS_WAITED: u32 = 6;

/// `[traffic-monitor]` in the file of the apps' settings.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrafficMonitorConfig {
    /// Seconds between two tables of a switch.
    pub interval_s: u16,
    /// The number of the busiest flow entries that are printed; with 0 no switch is asked for them.
    pub flows: u16,
}

impl Default for TrafficMonitorConfig {
    fn default() -> Self {
        Self { interval_s: 10, flows: 5 }
    }
}

/// The app.
pub struct TrafficMonitor {
    config: TrafficMonitorConfig,
    print: Print,
    switches: HashMap<DatapathId, Watched>,
}

/// The counters of one switch as they are known.
#[derive(Default)]
struct Watched {
    due: Duration,
    ports: Series<BTreeMap<PortNo, PortStats>>,
    flows: Series<HashMap<FlowId, FlowStats>>,
}

type FlowId = (TableId, u16, Match);

/// Counters at two times.
#[derive(Default)]
struct Series<T> {
    asked: Option<(Xid, Duration)>,
    before: Option<(Duration, T)>,
}

impl<T> Series<T> {
    /// Whether this is the answer that is awaited.
    fn is_answer(&self, xid: Xid) -> bool {
        self.asked.is_some_and(|(asked, _)| asked == xid)
    }

    /// Keeps the counters of now, and gives those of before with the time between.
    fn replace(&mut self, now: Duration, counters: T) -> Option<(Duration, T)> {
        self.asked = None;
        let (at, before) = self.before.replace((now, counters))?;
        Some((now.saturating_sub(at), before))
    }
}

impl TrafficMonitor {
    /// An instance that prints by `print`.
    #[must_use]
    pub fn new(config: TrafficMonitorConfig, print: Print) -> Self {
        Self { config, print, switches: HashMap::new() }
    }

    fn ask(sw: &mut Switch, body: MultipartRequestBody) -> Option<(Xid, Duration)> {
        let request = MultipartRequest { more: false, body };
        Some((sw.send(Message::MultipartRequest(request)), sw.now()))
    }
}

impl App for TrafficMonitor {
    fn switch_ready(&mut self, sw: &mut Switch) {
        self.switches.insert(sw.dpid(), Watched::default());
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        self.switches.remove(&dpid);
    }

    fn tick(&mut self, sw: &mut Switch) {
        let interval = Duration::from_secs(self.config.interval_s.max(1).into());
        let Some(watched) = self.switches.get_mut(&sw.dpid()) else { return };
        if sw.now() < watched.due {
            return;
        }
        watched.due = sw.now() + interval;
        let now = sw.now();
        let is_free = |asked: Option<(Xid, Duration)>| {
            asked.is_none_or(|(_, since)| now >= since + INTERVALS_WAITED * interval)
        };
        if is_free(watched.ports.asked) {
            watched.ports.asked = Self::ask(sw, MultipartRequestBody::PortStats(PortNo::ANY));
        }
        if self.config.flows > 0 && is_free(watched.flows.asked) {
            let all = FlowStatsRequest::all();
            watched.flows.asked = Self::ask(sw, MultipartRequestBody::Flow(all));
        }
    }

    fn message(&mut self, sw: &mut Switch, xid: Xid, message: &Message) {
        let Some(watched) = self.switches.get_mut(&sw.dpid()) else { return };
        let Message::MultipartReply(MultipartReply { body, .. }) = message else { return };
        if let MultipartReplyBody::PortStats(ports) = body
            && watched.ports.is_answer(xid)
        {
            let ports: BTreeMap<_, _> = ports.iter().map(|port| (port.port_no, *port)).collect();
            if let Some((time, before)) = watched.ports.replace(sw.now(), ports.clone()) {
                (self.print)(&port_table(sw, &ports, &before, time));
            }
        } else if let MultipartReplyBody::Flow(flows) = body
            && watched.flows.is_answer(xid)
        {
            let id = |flow: &FlowStats| (flow.table_id, flow.priority, flow.matching.clone());
            let flows: HashMap<_, _> = flows.iter().map(|flow| (id(flow), flow.clone())).collect();
            if let Some((time, before)) = watched.flows.replace(sw.now(), flows.clone()) {
                let most = usize::from(self.config.flows);
                (self.print)(&flow_table(sw.dpid(), &flows, &before, time, most));
            }
        }
    }

    fn error(&mut self, sw: &mut Switch, xid: Xid, _error: &ErrorMessage) {
        // It is asked again at the next interval; the runtime has told of the error.
        if let Some(watched) = self.switches.get_mut(&sw.dpid()) {
            watched.ports.asked = watched.ports.asked.filter(|(asked, _)| *asked != xid);
            watched.flows.asked = watched.flows.asked.filter(|(asked, _)| *asked != xid);
        }
    }
}

/// The growth of a counter per second; none where it is not kept or began anew.
fn rate(now: u64, before: u64, time: Duration) -> Option<f64> {
    let is_kept = now != u64::MAX && before != u64::MAX && !time.is_zero();
    let grown = now.checked_sub(before).filter(|_| is_kept)?;
    Some(grown as f64 / time.as_secs_f64())
}

/// A rate in twelve columns.
fn cell(rate: Option<f64>) -> String {
    rate.map_or_else(|| format!("{:>12}", "-"), |rate| format!("{rate:>12.1}"))
}

fn port_table(
    sw: &Switch,
    ports: &BTreeMap<PortNo, PortStats>,
    before: &BTreeMap<PortNo, PortStats>,
    time: Duration,
) -> String {
    let mut text = format!(
        "switch {}, ports:\n{:>16}{:>12}{:>12}{:>12}{:>12}{:>12}",
        sw.dpid(),
        "port",
        "rx kb/s",
        "rx packet/s",
        "tx kb/s",
        "tx packet/s",
        "dropped/s"
    );
    for (port_no, port) in ports {
        let name = sw.ports().get(port_no).map_or("", |desc| &desc.name);
        let name = if name.is_empty() { port_no.to_string() } else { name.to_owned() };
        let Some(then) = before.get(port_no) else { continue };
        let kbps = |now, then| cell(rate(now, then, time).map(|bytes| bytes * 8.0 / 1_000.0));
        let per_s = |now, then| cell(rate(now, then, time));
        let dropped = |port: &PortStats| port.rx_dropped.saturating_add(port.tx_dropped);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n{name:>16}{}{}{}{}{}",
            kbps(port.rx_bytes, then.rx_bytes),
            per_s(port.rx_packets, then.rx_packets),
            kbps(port.tx_bytes, then.tx_bytes),
            per_s(port.tx_packets, then.tx_packets),
            per_s(dropped(port), dropped(then)),
        );
    }
    text
}

fn flow_table(
    dpid: DatapathId,
    flows: &HashMap<FlowId, FlowStats>,
    before: &HashMap<FlowId, FlowStats>,
    time: Duration,
    most: usize,
) -> String {
    let rates = flows.iter().filter_map(|(id, flow)| {
        // An entry that is new began at zero.
        let (packets, bytes) =
            before.get(id).map_or((0, 0), |flow| (flow.packet_count, flow.byte_count));
        let packets = rate(flow.packet_count, packets, time)?;
        Some((packets, rate(flow.byte_count, bytes, time), id, flow))
    });
    let mut rates: Vec<_> = rates.filter(|(packets, ..)| *packets > 0.0).collect();
    rates.sort_by(|(a, _, a_id, _), (b, _, b_id, _)| b.total_cmp(a).then_with(|| a_id.cmp(b_id)));
    let mut text = format!("switch {dpid}, {} flow entries, the busiest:", flows.len());
    for (packets, bytes, (table, priority, matching), flow) in rates.into_iter().take(most) {
        let kbps = cell(bytes.map(|bytes| bytes * 8.0 / 1_000.0));
        let (matching, does) = (format_match(matching), format_instructions(&flow.instructions));
        let comma = if matching.is_empty() { "" } else { "," };
        let _ = write!(
            text,
            "\n{kbps} kb/s{packets:>12.1} packet/s  \
             table={},priority={priority}{comma}{matching} actions={does}",
            table.0
        );
    }
    text
}
