//! The counts of all bridges at one moment, for `--metrics` and `weir ctl top`.
//!
//! The agent takes them: it asks every worker for each bridge, all at the same time, and yields to
//! other work between two bridges and within a large one. A worker answers for some ports at a
//! time. So a thousand bridges and ten thousand ports hold up neither packets nor echoes. A bridge
//! that goes meanwhile is left out.

use std::collections::{BTreeMap, HashMap};

use datapath::fast::ForwarderFigures;
use datapath::{DatapathCounters, DropReason};
use futures_util::future::join_all;
use openflow::PortNo;
use openflow::port::{PortState, PortStats};
use openflow::table::TableStats;
use tokio::task::yield_now;

use crate::agent::{Agent, Bridges};
use crate::counters::{COUNTERS, own_drop};
use crate::worker::{CountedPorts, PerfReading, ShardSample};

/// The counts of a switch.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) bridges: Vec<BridgeSnapshot>,
    /// The workers by index, each with what it did for all bridges.
    pub(crate) workers: BTreeMap<usize, PerfReading>,
}

/// The counts of a bridge.
#[derive(Debug)]
pub(crate) struct BridgeSnapshot {
    pub(crate) name: String,
    pub(crate) dpid: String,
    /// Controllers to connect to, and connections of controllers that are up.
    pub(crate) controllers: usize,
    pub(crate) connections: usize,
    pub(crate) ports: Vec<PortSnapshot>,
    /// The tables that have entries or have been looked at.
    pub(crate) tables: Vec<TableStats>,
    /// In the order of the rows.
    pub(crate) own: Vec<u64>,
    pub(crate) datapath: DatapathCounters,
    /// The figures of its forwarders; none on a wire.
    pub(crate) forwarders: Vec<ForwarderFigures>,
}

/// The counts of a port.
#[derive(Debug)]
pub(crate) struct PortSnapshot {
    pub(crate) number: PortNo,
    pub(crate) name: String,
    pub(crate) is_up: bool,
    /// 0 where it is unknown.
    pub(crate) speed_bps: u64,
    pub(crate) stats: PortStats,
}

/// Takes the counts of now.
pub(crate) async fn snapshot(bridges: &Bridges) -> Snapshot {
    let agents = bridges.all();
    let asked = agents.iter().map(|agent| async move {
        let shards = agent.bridge.shard_samples().await?;
        let more = shards.iter().filter_map(|shard| shard.more_ports).max();
        Some((shards, agent.bridge.port_counters(more).await?))
    });
    let answers = join_all(asked).await;
    let mut snapshot = Snapshot::default();
    for (agent, answer) in agents.iter().zip(answers) {
        let Some((shards, devices)) = answer else { continue };
        snapshot.workers.extend(shards.iter().map(|shard| (shard.worker, shard.perf)));
        snapshot.bridges.extend(of_bridge(agent, shards, devices).await);
    }
    snapshot
}

/// The counts of a bridge. Other work has its turn before each part that grows with the ports.
async fn of_bridge(
    agent: &Agent,
    shards: Vec<ShardSample>,
    mut devices: CountedPorts,
) -> Option<BridgeSnapshot> {
    let bridge = &agent.bridge;
    yield_now().await;
    let mut forwarders = Vec::new();
    for ShardSample { ports, forwarder, .. } in shards {
        devices.extend(ports);
        forwarders.extend(forwarder);
    }
    // There is no such port only where one is named.
    let stats = bridge.port_stats_over(PortNo::ANY, devices).ok()?;
    yield_now().await;
    let mut stats: HashMap<PortNo, PortStats> =
        stats.into_iter().map(|stats| (stats.port_no, stats)).collect();
    let port = |desc: openflow::port::PortDesc| {
        Some(PortSnapshot {
            number: desc.port_no,
            is_up: !desc.state.contains(PortState::LINK_DOWN),
            speed_bps: u64::from(desc.curr_speed_kbps) * 1_000,
            stats: stats.remove(&desc.port_no)?,
            name: desc.name,
        })
    };
    let ports = bridge.port_descs().into_iter().filter_map(port).collect();
    Some(BridgeSnapshot {
        name: agent.name.clone(),
        dpid: bridge.dpid().to_string(),
        controllers: agent.controllers().len(),
        connections: agent.peer_infos().len(),
        ports,
        tables: bridge.with_control(|control| control.used_table_stats()).unwrap_or_default(),
        own: agent.counters.all().map(|(_, value, _)| value).collect(),
        datapath: bridge.with_control(|control| control.counters()).unwrap_or_default(),
        forwarders,
    })
}

impl BridgeSnapshot {
    /// The flow entries of all tables.
    pub(crate) fn entries(&self) -> u64 {
        self.tables.iter().map(|table| u64::from(table.active_count)).sum()
    }

    /// The packets that were dropped for a reason.
    pub(crate) fn dropped(&self, count: DropCount) -> u64 {
        match count {
            DropCount::Own(index) => self.own.get(index).copied().unwrap_or_default(),
            DropCount::Pipeline(reason) => self.datapath.drops(reason),
        }
    }
}

/// The count of a reason for drops, in a bridge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DropCount {
    /// By the index of its row.
    Own(usize),
    Pipeline(DropReason),
}

/// The reasons for drops; the names are those of `weir ctl counters` without the word `drop`.
pub(crate) fn drop_reasons() -> impl Iterator<Item = (String, DropCount)> {
    let own = COUNTERS.iter().enumerate();
    let own = own.filter_map(|(index, row)| Some((own_drop(row.1)?, DropCount::Own(index))));
    let pipeline = DropReason::ALL.iter();
    own.chain(pipeline.map(|reason| (reason.name().to_owned(), DropCount::Pipeline(*reason))))
}
