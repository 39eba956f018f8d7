//! The commands about the datapath, `dpif/*` and `dpctl/*`, and the numbers that ports have in it.
//!
//! Weir has one datapath for all bridges, as Open vSwitch has one of each type.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use openflow::PortNo;
use openflow::port::PortStats;

use super::Daemon;
use crate::agent::Agent;
use crate::config::Config;
use crate::reconcile::{Manner, reconcile};
use crate::vswitchd::status::{UNKNOWN, ofport};

/// A port by its numbers in a bridge and in the datapath.
pub(in crate::vswitchd) struct DatapathPort {
    pub(in crate::vswitchd) bridge: String,
    pub(in crate::vswitchd) name: String,
    pub(in crate::vswitchd) number: PortNo,
    /// Its number in the datapath; a patch port has none.
    pub(in crate::vswitchd) index: Option<u32>,
    /// Its type, with the peer of a patch port.
    kind: String,
}

/// The datapath's type and name.
pub(in crate::vswitchd) fn datapath_name(daemon: &Daemon) -> &'static str {
    if daemon.dummies.is_some() { "dummy@ovs-dummy" } else { "netdev@ovs-netdev" }
}

/// All ports, by bridge and name.
pub(in crate::vswitchd) fn datapath_ports(daemon: &Daemon) -> Vec<DatapathPort> {
    let mut all = daemon.bridges.all();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let mut ports: Vec<_> = all.iter().flat_map(ports_of).collect();
    let mut taken = BTreeSet::new();
    for port in ports.iter_mut().filter(|port| port.index == Some(0)) {
        let wanted = daemon.dummies.and_then(|_| number_of_dummy(&port.name));
        let is_free = |index: &u32| *index > 0 && !taken.contains(index);
        port.index = wanted.filter(is_free).or_else(|| (1..).find(is_free));
        taken.extend(port.index);
    }
    ports
}

fn ports_of(agent: &Rc<Agent>) -> Vec<DatapathPort> {
    let mut views = agent.bridge.port_views();
    views.sort_by(|a, b| a.port.info.name.cmp(&b.port.info.name));
    let port = |view: crate::bridge::PortView| {
        let spec = &view.port.spec;
        let (index, kind) = match spec.kind().word {
            "patch" => (None, format!("patch: peer={}", spec.option("peer").unwrap_or_default())),
            "af_packet" => (Some(0), "system".to_owned()),
            "internal" => (Some(0), "tap".to_owned()),
            "dummy" if view.port.number == PortNo::LOCAL => (Some(0), "dummy-internal".to_owned()),
            other => (Some(0), other.to_owned()),
        };
        let (bridge, name) = (agent.name.clone(), view.port.info.name);
        DatapathPort { bridge, name, number: view.port.number, index, kind }
    };
    views.into_iter().map(port).collect()
}

/// The number that Open vSwitch gives a dummy of this name, if it is free: tests count on it.
fn number_of_dummy(name: &str) -> Option<u32> {
    let digits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    let number: u32 = digits.get(..end)?.parse().ok()?;
    number.checked_add(if name.starts_with("br") { 100 } else { 0 })
}

/// `dpctl/dump-dps`.
pub(super) async fn dump_dps(daemon: &Daemon, _: &[String]) -> Result<String, String> {
    Ok(format!("{}\n", datapath_name(daemon)))
}

/// `dpctl/del-if`: a port leaves its bridge, until the next configuration of the database.
pub(super) async fn delete_port(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let name = words.last().map(String::as_str).unwrap_or_default();
    let ports = datapath_ports(daemon);
    let port = ports.into_iter().find(|port| port.name == name && port.index.is_some());
    let port = port.ok_or("no port named that in the datapath; deleting port failed")?;
    let edit = |running: &Config| {
        let mut wanted = running.clone();
        for bridge in wanted.bridges.iter_mut().filter(|bridge| bridge.name == port.bridge) {
            bridge.ports.retain(|held| held.number != port.number);
            bridge.vlans.retain(|(number, _)| *number != port.number);
        }
        Ok(wanted)
    };
    match reconcile(&daemon.bridges, Manner::DATABASE, edit).await {
        Ok(_) => Ok(String::new()),
        Err(refused) => Err(refused.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

/// `dpif/dump-dps`.
pub(super) async fn dump_bridges(daemon: &Daemon, _: &[String]) -> Result<String, String> {
    let (kind, _) = datapath_name(daemon).split_once('@').unwrap_or_default();
    let mut all = daemon.bridges.all();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all.iter().map(|agent| format!("{kind}@{}\n", agent.name)).collect())
}

/// Frames that were decided without the tables, and by them.
async fn hits(daemon: &Daemon) -> (u64, u64) {
    let (mut hits, mut missed) = (0, 0);
    for agent in daemon.bridges.all() {
        let states = agent.bridge.worker_states().await.unwrap_or_default();
        for (_, figures) in states.iter().filter_map(|state| state.forwarder.as_ref()) {
            let cached = figures.port_hits + figures.frame_hits + figures.key_hits;
            hits += figures.kernel_hits + cached;
            missed += figures.packets.saturating_sub(cached);
        }
    }
    (hits, missed)
}

/// `dpif/show`.
pub(super) async fn show_bridges(daemon: &Daemon, _: &[String]) -> Result<String, String> {
    let (hits, missed) = hits(daemon).await;
    let mut text = format!("{}: hit:{hits} missed:{missed}\n", datapath_name(daemon));
    let mut all = daemon.bridges.all();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let ports = datapath_ports(daemon);
    for agent in all {
        text += &format!("  {}:\n", agent.name);
        for port in ports.iter().filter(|port| port.bridge == agent.name) {
            let index = port.index.map_or_else(|| "none".to_owned(), |index| index.to_string());
            let (name, number, kind) = (&port.name, ofport(port.number), &port.kind);
            text += &format!("    {name} {number}/{index}: ({kind})\n");
        }
    }
    Ok(text)
}

/// `dpctl/show`, with `-s` the statistics of the ports.
pub(super) async fn show_datapath(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let has_statistics = words.iter().any(|word| word == "-s" || word == "--statistics");
    let (hits, missed) = hits(daemon).await;
    let name = datapath_name(daemon);
    let mut text = format!("{name}:\n  lookups: hit:{hits} missed:{missed}\n");
    let mut counted = BTreeMap::new();
    for agent in daemon.bridges.all().iter().filter(|_| has_statistics) {
        let found =
            agent.bridge.port_stats(PortNo::ANY).await.map_err(|error| error.to_string())?;
        let by_port = |stats: PortStats| ((agent.name.clone(), stats.port_no), stats);
        counted.extend(found.into_iter().map(by_port));
    }
    let mut ports = datapath_ports(daemon);
    ports.sort_by_key(|port| port.index);
    for port in ports {
        if let Some(index) = port.index {
            text += &format!("  port {index}: {} ({})\n", port.name, port.kind);
            text.extend(counted.get(&(port.bridge, port.number)).map(statistics));
        }
    }
    Ok(text)
}

/// The lines of `dpctl show -s` about a port; a count that is not kept is a question mark.
fn statistics(stats: &PortStats) -> String {
    let text = |count: u64| if count == UNKNOWN { "?".to_owned() } else { count.to_string() };
    let bytes = |count: u64| text(count) + &size(count);
    format!(
        "    RX packets:{} errors:{} dropped:{} overruns:{} frame:{}\n    \
         TX packets:{} errors:{} dropped:{} aborted:? carrier:?\n    \
         collisions:{}\n    RX bytes:{}  TX bytes:{}\n",
        text(stats.rx_packets),
        text(stats.rx_errors),
        text(stats.rx_dropped),
        text(stats.rx_over_err),
        text(stats.rx_frame_err),
        text(stats.tx_packets),
        text(stats.tx_errors),
        text(stats.tx_dropped),
        text(stats.collisions),
        bytes(stats.rx_bytes),
        bytes(stats.tx_bytes),
    )
}

/// A number of bytes in the largest unit that it has one of, in brackets.
fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(bits, _)| bytes >> bits > 0 && bytes != UNKNOWN);
    unit.map_or_else(String::new, |(bits, unit)| {
        format!(" ({:.1} {unit})", bytes as f64 / (1_u64 << bits) as f64)
    })
}

/// The decisions that are kept, by worker. Those of this moment are all that is known.
pub(super) async fn show_upcalls(daemon: &Daemon, _: &[String]) -> Result<String, String> {
    let mut keys: BTreeMap<usize, u64> = BTreeMap::new();
    let (mut limit, mut offloaded) = (0, 0);
    for agent in daemon.bridges.all() {
        for state in agent.bridge.worker_states().await.unwrap_or_default() {
            let Some((_, figures)) = state.forwarder else { continue };
            *keys.entry(state.index).or_default() += figures.lines_used;
            limit += figures.lines;
            offloaded += figures.kernel_entries;
        }
    }
    let now: u64 = keys.values().sum();
    let name = datapath_name(daemon);
    let mut text = format!(
        "{name}:\n\
         \x20 flows         : (current {now}) (avg {now}) (max {now}) (limit {limit})\n\
         \x20 offloaded flows : {offloaded}\n\
         \x20 dump duration : 0ms\n\
         \x20 ufid enabled : false\n\n"
    );
    for (worker, keys) in keys {
        text += &format!("  {worker}: (keys {keys})\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use openflow::port::PortStats;

    use super::{UNKNOWN, size, statistics};

    #[test]
    fn statistics_are_written_as_open_vswitch_writes_them() {
        let stats = PortStats {
            rx_packets: 3,
            rx_bytes: 2_560,
            tx_bytes: 42,
            rx_frame_err: UNKNOWN,
            ..PortStats::default()
        };
        let expected = "    RX packets:3 errors:0 dropped:0 overruns:0 frame:?\n    \
                        TX packets:0 errors:0 dropped:0 aborted:? carrier:?\n    \
                        collisions:0\n    RX bytes:2560 (2.5 KiB)  TX bytes:42\n";
        assert_eq!(statistics(&stats), expected);
        assert_eq!(size(3 << 40), " (3.0 TiB)");
        assert_eq!((size(1_023), size(UNKNOWN)), (String::new(), String::new()));
    }
}
