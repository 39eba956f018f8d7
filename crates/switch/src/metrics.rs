//! The metrics of the switch: a row each, and those that the rows of counters are.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use datapath::fast::ForwarderFigures;
use metrics::{
    Family, Kind, LabelValues, MetricRow, MetricsError, Value, count, of_process, seconds, serve,
    table,
};
use openflow::table::TableStats;
use tokio::sync::{mpsc, oneshot};

use crate::agent::Bridges;
use crate::counters::{COUNTERS, own_drop};
use crate::snapshot::{BridgeSnapshot, PortSnapshot, Snapshot, snapshot};
use crate::worker::PerfReading;

#[rustfmt::skip]
const BRIDGES: &[MetricRow<BridgeSnapshot>] = &[
    MetricRow::gauge("weir_bridge_ports", "Ports of the bridge.",
        |it| count(it.ports.len() as u64)),
    MetricRow::gauge("weir_bridge_flow_entries", "Flow entries in all tables.",
        |it| count(it.entries())),
    MetricRow::gauge("weir_bridge_controllers", "Controllers that the bridge is to connect to.",
        |it| count(it.controllers as u64)),
    MetricRow::gauge("weir_bridge_connections", "Connections with controllers that are up.",
        |it| count(it.connections as u64)),
];

#[rustfmt::skip]
const PORTS: &[MetricRow<PortSnapshot>] = &[
    MetricRow::gauge("weir_port_up", "1 where the port's device is there and has a link, else 0.",
        |it| count(it.is_up.into())),
    MetricRow::gauge("weir_port_speed_bytes_per_second", "The link's speed, where it is known.",
        |it| (it.speed_bps > 0).then_some(Value::Whole(it.speed_bps / 8))),
    MetricRow::counter("weir_port_receive_packets", "Packets received.",
        |it| count(it.stats.rx_packets)),
    MetricRow::counter("weir_port_transmit_packets", "Packets sent.",
        |it| count(it.stats.tx_packets)),
    MetricRow::counter("weir_port_receive_bytes", "Bytes received, without FCS.",
        |it| count(it.stats.rx_bytes)),
    MetricRow::counter("weir_port_transmit_bytes", "Bytes sent, without FCS.",
        |it| count(it.stats.tx_bytes)),
    MetricRow::counter("weir_port_receive_dropped", "Packets dropped on receive.",
        |it| count(it.stats.rx_dropped)),
    MetricRow::counter("weir_port_transmit_dropped", "Packets dropped on send.",
        |it| count(it.stats.tx_dropped)),
    MetricRow::counter("weir_port_receive_errors", "Receive errors.",
        |it| count(it.stats.rx_errors)),
    MetricRow::counter("weir_port_transmit_errors", "Send errors.", |it| count(it.stats.tx_errors)),
];

#[rustfmt::skip]
const TABLES: &[MetricRow<TableStats>] = &[
    MetricRow::gauge("weir_table_entries", "Flow entries of the table.",
        |it| count(it.active_count.into())),
    MetricRow::counter("weir_table_lookups", "Packets looked up in the table.",
        |it| count(it.lookup_count)),
    MetricRow::counter("weir_table_matches", "Packets that an entry of the table matched.",
        |it| count(it.matched_count)),
];

/// The forwarders of a bridge.
type Forwarders = Vec<ForwarderFigures>;

fn sum(forwarders: &Forwarders, of: fn(&ForwarderFigures) -> u64) -> Option<Value> {
    count(forwarders.iter().map(of).sum())
}

#[rustfmt::skip]
const CACHES: &[MetricRow<Forwarders>] = &[
    MetricRow::counter("weir_frame_cache_misses",
        "Packets whose decision the frame cache did not have.",
        |all| sum(all, |it| it.frame_misses)),
    MetricRow::counter("weir_key_cache_misses",
        "Packets whose decision the key cache did not have.",
        |all| sum(all, |it| it.key_misses)),
    MetricRow::gauge("weir_cache_lines", "Lines of the caches.", |all| sum(all, |it| it.lines)),
    MetricRow::gauge("weir_cache_lines_used", "Lines that hold a decision.",
        |all| sum(all, |it| it.lines_used)),
    MetricRow::counter("weir_cache_evictions", "Decisions that went from the caches for new ones.",
        |all| sum(all, |it| it.evictions)),
    MetricRow::counter("weir_cache_refused", "Decisions that found no line.",
        |all| sum(all, |it| it.refused)),
    MetricRow::gauge("weir_kernel_tier_entries", "Decisions that the kernel carries out.",
        |all| sum(all, |it| it.kernel_entries)),
    MetricRow::counter("weir_kernel_tier_evictions",
        "Decisions that went from the kernel for new ones.",
        |all| sum(all, |it| it.kernel_evictions)),
    MetricRow::counter("weir_kernel_tier_refused", "Decisions that found no room in the kernel.",
        |all| sum(all, |it| it.kernel_refused)),
    MetricRow::gauge("weir_programs", "Compiled decisions that are kept.",
        |all| sum(all, |it| it.programs)),
    MetricRow::counter("weir_programs_compiled", "Decisions compiled.",
        |all| sum(all, |it| it.compiled)),
];

#[rustfmt::skip]
const WORKERS: &[MetricRow<PerfReading>] = &[
    MetricRow::counter("weir_worker_receive_packets", "Frames received by the worker.",
        |it| count(it.packets)),
    MetricRow::counter("weir_worker_transmit_packets", "Frames that ports took from the worker.",
        |it| count(it.sent)),
    MetricRow::counter("weir_worker_batches", "Batches with at least one frame.",
        |it| count(it.batches)),
    MetricRow::counter("weir_worker_rounds", "Rounds over all ports.", |it| count(it.rounds)),
    MetricRow::counter("weir_worker_commands", "Commands of the agent carried out.",
        |it| count(it.commands)),
    MetricRow::counter("weir_worker_sleeps", "Times the worker went to sleep.",
        |it| count(it.sleeps)),
    MetricRow::counter("weir_worker_asleep_seconds", "Time asleep.", |it| seconds(it.asleep_ns)),
    MetricRow::counter("weir_worker_idle_seconds", "Time of rounds without work.",
        |it| seconds(it.idle_ns)),
    MetricRow::counter("weir_worker_yielded_seconds",
        "Time of work in which the worker left its CPU to others.", |it| seconds(it.yielded_ns)),
    MetricRow::counter("weir_worker_lived_seconds", "Time since the worker began.",
        |it| seconds(it.lived_ns)),
];

/// A tier that decides about packets, with the packets of a forwarder that it decided about.
type Tier = (&'static str, fn(&ForwarderFigures) -> u64);

const TIERS: &[Tier] = &[
    ("kernel", |it| it.kernel_hits),
    ("port", |it| it.port_hits),
    ("frame cache", |it| it.frame_hits),
    ("key cache", |it| it.key_hits),
    ("tables", ForwarderFigures::by_tables),
];

/// Every metric of the switch, without samples: what `--metrics` serves.
#[must_use]
pub fn declared() -> Vec<Family> {
    families(&Snapshot::default())
}

/// The metrics of a moment.
fn families(snapshot: &Snapshot) -> Vec<Family> {
    let bridges: Vec<(LabelValues, &BridgeSnapshot)> =
        snapshot.bridges.iter().map(|bridge| ([bridge.name.clone()].into(), bridge)).collect();
    let forwarders: Vec<_> = bridges
        .iter()
        .filter(|(_, bridge)| !bridge.forwarders.is_empty())
        .map(|(labels, bridge)| (Arc::clone(labels), &bridge.forwarders))
        .collect();
    let ports = parts(
        snapshot,
        |bridge| &bridge.ports,
        |port| vec![port.number.to_string(), port.name.clone()],
    );
    let tables =
        parts(snapshot, |bridge| &bridge.tables, |table| vec![table.table_id.0.to_string()]);
    let workers = snapshot.workers.iter();
    let workers: Vec<_> = workers.map(|(index, perf)| ([index.to_string()].into(), perf)).collect();
    let mut all = of_process("switch");
    all.push(bridge_info(snapshot));
    all.extend(table(BRIDGES, &["bridge"], &bridges));
    all.extend(table(PORTS, &["bridge", "port", "name"], &ports));
    all.extend(table(TABLES, &["bridge", "table"], &tables));
    all.push(decided(snapshot));
    all.extend(table(CACHES, &["bridge"], &forwarders));
    all.extend(table(WORKERS, &["worker"], &workers));
    all.push(dropped(snapshot));
    all.extend(counted(&bridges));
    all
}

/// The parts of all bridges, with their labels behind the bridge's name.
fn parts<'a, T>(
    snapshot: &'a Snapshot,
    of: fn(&'a BridgeSnapshot) -> &'a Vec<T>,
    labels: fn(&T) -> Vec<String>,
) -> Vec<(LabelValues, &'a T)> {
    let mut parts = Vec::new();
    for bridge in &snapshot.bridges {
        let labelled = |part| {
            let values: Vec<String> =
                [bridge.name.clone()].into_iter().chain(labels(part)).collect();
            (values.into(), part)
        };
        parts.extend(of(bridge).iter().map(labelled));
    }
    parts
}

fn bridge_info(snapshot: &Snapshot) -> Family {
    let labels = |bridge: &BridgeSnapshot| [bridge.name.clone(), bridge.dpid.clone()].into();
    let samples = snapshot.bridges.iter().map(|bridge| (labels(bridge), Value::Whole(1)));
    let help = "1; the bridge and its datapath id are the labels.";
    Family::new(Kind::Gauge, "weir_bridge_info", help, &["bridge", "dpid"], samples)
}

fn decided(snapshot: &Snapshot) -> Family {
    let samples = labelled(snapshot, |bridge| match &bridge.forwarders[..] {
        [] => Vec::new(),
        all => {
            let packets = |of: fn(&ForwarderFigures) -> u64| all.iter().map(of).sum();
            TIERS.iter().map(|(tier, of)| ((*tier).to_owned(), packets(*of))).collect()
        }
    });
    let help = "Packets by the tier that decided about them: the kernel, the port alone, a cache \
                or the flow tables.";
    Family::new(Kind::Counter, "weir_decided_packets", help, &["bridge", "tier"], samples)
}

fn dropped(snapshot: &Snapshot) -> Family {
    let help = "Packets dropped, by reason; the reasons are those of `weir ctl counters`.";
    let samples = labelled(snapshot, BridgeSnapshot::drops);
    Family::new(Kind::Counter, "weir_dropped_packets", help, &["bridge", "reason"], samples)
}

/// A sample for each named count of each bridge.
fn labelled(
    snapshot: &Snapshot,
    counts: impl Fn(&BridgeSnapshot) -> Vec<(String, u64)>,
) -> Vec<(LabelValues, Value)> {
    let mut samples = Vec::new();
    for bridge in &snapshot.bridges {
        let sample = |(name, count)| ([bridge.name.clone(), name].into(), Value::Whole(count));
        samples.extend(counts(bridge).into_iter().map(sample));
    }
    samples
}

/// The counters that are no reasons for drops: a metric each.
fn counted(bridges: &[(LabelValues, &BridgeSnapshot)]) -> Vec<Family> {
    let family = |name: String, help, of: &dyn Fn(&BridgeSnapshot) -> u64| {
        let samples = bridges.iter();
        let samples =
            samples.map(|(labels, bridge)| (Arc::clone(labels), Value::Whole(of(bridge))));
        Family::new(Kind::Counter, format!("weir_{name}"), help, &["bridge"], samples)
    };
    let own = COUNTERS.iter().enumerate().filter(|(_, row)| own_drop(row.1).is_none());
    let own = own.map(|(index, (_, name, help))| {
        let of = |bridge: &BridgeSnapshot| bridge.own.get(index).copied().unwrap_or_default();
        family((*name).to_owned(), help.trim_start(), &of)
    });
    let whole = datapath::Counter::ALL.iter().map(|row| {
        let of = |bridge: &BridgeSnapshot| bridge.datapath.get(*row);
        family(format!("datapath_{}", row.name()), row.help(), &of)
    });
    own.chain(whole).collect()
}

/// Serves the metrics until the server is dropped. The agent takes one snapshot after the other, on
/// its own thread; the text is made on the server's.
///
/// # Errors
/// When it cannot listen there.
pub(crate) fn serve_metrics(
    address: SocketAddr,
    bridges: &Rc<Bridges>,
) -> Result<impl Sized, MetricsError> {
    let (ask, mut asked) = mpsc::channel::<oneshot::Sender<Snapshot>>(1);
    let server = serve(address, move || {
        let ask = ask.clone();
        async move {
            let (answer, answered) = oneshot::channel();
            ask.send(answer).await.ok()?;
            answered.await.ok().map(|snapshot| families(&snapshot))
        }
    })?;
    let bridges = Rc::clone(bridges);
    let answer_all = async move {
        while let Some(answer) = asked.recv().await {
            // A client that has gone waits no more.
            drop(answer.send(snapshot(&bridges).await));
        }
    };
    tokio::task::spawn_local(answer_all);
    Ok(server)
}
