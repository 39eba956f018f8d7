//! The metrics of the switch: a row each, and those that the rows of counters are.

use std::net::SocketAddr;
use std::rc::Rc;

use datapath::fast::ForwarderFigures;
use metrics::{
    Family, Kind, Labels, MetricRow, MetricsError, Value, count, of_process, seconds, serve, table,
};
use openflow::table::TableStats;
use tokio::sync::{mpsc, oneshot};

use crate::agent::Bridges;
use crate::counters::{COUNTERS, own_drop};
use crate::snapshot::{BridgeSnapshot, PortSnapshot, Snapshot, drop_reasons, snapshot};
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

const BRIDGE: &[&str] = &["bridge"];
const PORT: &[&str] = &["bridge", "port", "name"];
const TABLE: &[&str] = &["bridge", "table"];
const WORKER: &[&str] = &["worker"];

/// The metrics of a moment.
fn families(snapshot: &Snapshot) -> Vec<Family> {
    let label = |bridge: &BridgeSnapshot| Labels::new(BRIDGE, &[&bridge.name]);
    let bridges: Vec<_> = snapshot.bridges.iter().map(|bridge| (label(bridge), bridge)).collect();
    let forwarders: Vec<(&Labels, &Forwarders)> = bridges
        .iter()
        .filter(|(_, bridge)| !bridge.forwarders.is_empty())
        .map(|(labels, bridge)| (labels, &bridge.forwarders))
        .collect();
    let (mut ports, mut tables) = (Vec::new(), Vec::new());
    for bridge in &snapshot.bridges {
        let name = &bridge.name;
        let port = |it: &PortSnapshot| Labels::new(PORT, &[name, &it.number, &it.name]);
        let table = |it: &TableStats| Labels::new(TABLE, &[name, &it.table_id.0]);
        ports.extend(bridge.ports.iter().map(|it| (port(it), it)));
        tables.extend(bridge.tables.iter().map(|it| (table(it), it)));
    }
    let workers = snapshot.workers.iter();
    let workers: Vec<_> =
        workers.map(|(index, perf)| (Labels::new(WORKER, &[index]), perf)).collect();
    let mut all = of_process("switch");
    all.push(bridge_info(snapshot));
    all.extend(table(BRIDGES, BRIDGE, &bridges));
    all.extend(table(PORTS, PORT, &ports));
    all.extend(table(TABLES, TABLE, &tables));
    all.push(decided(&forwarders));
    all.extend(table(CACHES, BRIDGE, &forwarders));
    all.extend(table(WORKERS, WORKER, &workers));
    all.push(dropped(&bridges));
    all.extend(counted(&bridges));
    all
}

fn bridge_info(snapshot: &Snapshot) -> Family {
    let names = &["bridge", "dpid"];
    let help = "1; the bridge and its datapath id are the labels.";
    let mut info = Family::new(Kind::Gauge, "weir_bridge_info", help, names);
    for bridge in &snapshot.bridges {
        info.sample(&[&Labels::new(names, &[&bridge.name, &bridge.dpid])], Value::Whole(1));
    }
    info
}

fn decided(forwarders: &[(&Labels, &Forwarders)]) -> Family {
    let help = "Packets by the tier that decided about them: the kernel, the port alone, a cache \
                or the flow tables.";
    let names = &["bridge", "tier"];
    let mut decided = Family::new(Kind::Counter, "weir_decided_packets", help, names);
    let tiers = TIERS.iter().map(|(tier, of)| (Labels::new(&["tier"], &[tier]), of));
    let tiers: Vec<_> = tiers.collect();
    for (bridge, all) in forwarders {
        for (tier, of) in &tiers {
            decided.sample(&[bridge, tier], Value::Whole(all.iter().map(**of).sum()));
        }
    }
    decided
}

fn dropped(bridges: &[(Labels, &BridgeSnapshot)]) -> Family {
    let help = "Packets dropped, by reason; the reasons are those of `weir ctl counters`.";
    let names = &["bridge", "reason"];
    let mut dropped = Family::new(Kind::Counter, "weir_dropped_packets", help, names);
    let reasons = drop_reasons().map(|(name, of)| (Labels::new(&["reason"], &[&name]), of));
    let reasons: Vec<_> = reasons.collect();
    for (labels, bridge) in bridges {
        for (reason, of) in &reasons {
            dropped.sample(&[labels, reason], Value::Whole(bridge.dropped(*of)));
        }
    }
    dropped
}

/// The counters that are no reasons for drops: a metric each.
fn counted(bridges: &[(Labels, &BridgeSnapshot)]) -> Vec<Family> {
    let family = |name: String, help, of: &dyn Fn(&BridgeSnapshot) -> u64| {
        let mut family = Family::new(Kind::Counter, format!("weir_{name}"), help, BRIDGE);
        for (labels, bridge) in bridges {
            family.sample(&[labels], Value::Whole(of(bridge)));
        }
        family
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
