//! The state of the switch, written back to the database.
//!
//! Columns that have the value that was written last are left out, so that a switch at rest writes
//! nothing. After a new connection everything is written again: ephemeral columns are lost when the
//! server starts anew.

use std::collections::{BTreeMap, HashMap};

use netdev::sys::link::LinkError;
use netdev::{LinkChange, LinkMonitor};
use openflow::PortNo;
use openflow::message::ControllerRole;
use openflow::port::PortStats;
use ovsdb::{Datum, Transaction, Uuid};

use super::wanted::{Wanted, WantedPort};
use crate::agent::{Agent, Bridges};
use crate::bridge::PortView;
use crate::reconcile::{Item, Refused};

/// The columns of an interface that are cleared where it is no port.
const OF_A_PORT: [&str; 7] =
    ["mac_in_use", "ifindex", "admin_state", "link_state", "link_speed", "duplex", "mtu"];

/// Parts of errors about a device that is not there.
const NO_DEVICE: [&str; 2] = ["no network device", "No such device"];

/// A count that a port does not keep (clause 7.3.5.6).
pub(super) const UNKNOWN: u64 = u64::MAX;

/// The columns of a row by name.
type Columns = Vec<(&'static str, Datum)>;

/// The values that this session has written.
#[derive(Debug, Default)]
pub(super) struct Written {
    rows: BTreeMap<(&'static str, Uuid), BTreeMap<&'static str, Datum>>,
    links: Links,
}

impl Written {
    /// Sets columns in a transaction that have other values than were written last.
    fn set(
        &mut self,
        transaction: &mut Transaction,
        table: &'static str,
        row: Uuid,
        columns: Columns,
    ) {
        let held = self.rows.entry((table, row)).or_default();
        let is_new = |(name, datum): &(&'static str, Datum)| held.get(name) != Some(datum);
        let fresh: Columns = columns.into_iter().filter(is_new).collect();
        held.extend(fresh.iter().cloned());
        transaction.update(table, row, fresh);
    }

    /// Forgets everything, so that it is written again.
    pub(super) fn forget(&mut self) {
        self.rows.clear();
    }

    /// Writes what came of a configuration, and that it is carried out.
    pub(super) fn configured(
        &mut self,
        transaction: &mut Transaction,
        all: &Bridges,
        wanted: &Wanted,
        refused: &[Refused],
    ) {
        for (interface, why) in &wanted.refused {
            self.set(transaction, "Interface", *interface, no_port(why));
        }
        self.links.read();
        let views = Views::of(all);
        for port in &wanted.ports {
            let columns = match views.get(port) {
                Some(view) => of_port(port, view, self.links.get(&port.name)),
                None => no_port(&why_not(port, refused)),
            };
            self.set(transaction, "Interface", port.interface, columns);
        }
        for (name, row) in &wanted.bridges {
            let agent = all.find(Some(name)).ok();
            let dpid = agent.map(|agent| agent.bridge.dpid().to_string());
            let version = Datum::one(concat!("weir ", env!("CARGO_PKG_VERSION")));
            let columns = vec![
                ("datapath_id", Datum::optional(dpid.as_deref())),
                ("datapath_version", version),
            ];
            self.set(transaction, "Bridge", *row, columns);
        }
        self.controllers(transaction, all, wanted);
        if let Some(root) = wanted.root {
            let columns = vec![
                ("iface_types", Datum::texts(["internal", "patch", "system", "tap"])),
                ("datapath_types", Datum::texts(["netdev", "system"])),
                ("dpdk_initialized", Datum::one(false)),
                ("cur_cfg", Datum::one(wanted.next_cfg)),
            ];
            self.set(transaction, "Open_vSwitch", root, columns);
        }
    }

    /// Writes the state of controllers and of devices.
    pub(super) fn state(&mut self, transaction: &mut Transaction, all: &Bridges, wanted: &Wanted) {
        self.controllers(transaction, all, wanted);
        self.links.read();
        let views = Views::of(all);
        for port in &wanted.ports {
            if let Some(view) = views.get(port) {
                let columns = of_port(port, view, self.links.get(&port.name));
                self.set(transaction, "Interface", port.interface, columns);
            }
        }
    }

    fn controllers(&mut self, transaction: &mut Transaction, all: &Bridges, wanted: &Wanted) {
        for controller in &wanted.controllers {
            let Ok(agent) = all.find(Some(&controller.bridge)) else { continue };
            let name = controller.endpoint.to_string();
            let peer = agent.peer_infos().into_iter().find(|peer| peer.name == name);
            let role = peer.as_ref().map(|peer| match peer.role {
                ControllerRole::Master => "master",
                ControllerRole::Slave => "slave",
                ControllerRole::Equal | ControllerRole::NoChange | ControllerRole::Unknown(_) => {
                    "other"
                }
            });
            let state = if peer.is_some() { "ACTIVE" } else { "BACKOFF" };
            let columns = vec![
                ("is_connected", Datum::one(peer.is_some())),
                ("role", Datum::optional(role)),
                ("status", Datum::map([("state", state)])),
            ];
            self.set(transaction, "Controller", controller.row, columns);
        }
    }

    /// Writes statistics.
    pub(super) fn statistics(
        &mut self,
        transaction: &mut Transaction,
        wanted: &Wanted,
        statistics: &HashMap<(String, PortNo), PortStats>,
    ) {
        for port in &wanted.ports {
            let Some(stats) = statistics.get(&(port.bridge.clone(), port.number)) else { continue };
            let columns = vec![("statistics", statistics_of(stats))];
            self.set(transaction, "Interface", port.interface, columns);
        }
        for (row, bridge, output) in &wanted.mirrors {
            let Some(stats) = statistics.get(&(bridge.clone(), *output)) else { continue };
            let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
            let counts =
                [("tx_bytes", count(stats.tx_bytes)), ("tx_packets", count(stats.tx_packets))];
            self.set(transaction, "Mirror", *row, vec![("statistics", Datum::map(counts))]);
        }
    }
}

/// The statistics of all ports, by bridge and number.
pub(super) async fn gather_statistics(all: &Bridges) -> HashMap<(String, PortNo), PortStats> {
    let mut found = HashMap::new();
    for agent in all.all() {
        // A bridge without tables cannot be in a database; one that goes has no statistics.
        for stats in agent.bridge.port_stats(PortNo::ANY).await.unwrap_or_default() {
            found.insert((agent.name.clone(), stats.port_no), stats);
        }
    }
    found
}

fn statistics_of(stats: &PortStats) -> Datum {
    let counts = [
        ("collisions", stats.collisions),
        ("rx_bytes", stats.rx_bytes),
        ("rx_crc_err", stats.rx_crc_err),
        ("rx_dropped", stats.rx_dropped),
        ("rx_errors", stats.rx_errors),
        ("rx_frame_err", stats.rx_frame_err),
        ("rx_over_err", stats.rx_over_err),
        ("rx_packets", stats.rx_packets),
        ("tx_bytes", stats.tx_bytes),
        ("tx_dropped", stats.tx_dropped),
        ("tx_errors", stats.tx_errors),
        ("tx_packets", stats.tx_packets),
    ];
    let known = counts.into_iter().filter(|(_, count)| *count != UNKNOWN);
    Datum::map(known.map(|(name, count)| (name, i64::try_from(count).unwrap_or(i64::MAX))))
}

/// A port's number as in Open vSwitch, where it has 16 bits and LOCAL is 65534.
pub(super) fn ofport(number: PortNo) -> u32 {
    if number == PortNo::LOCAL { 65_534 } else { number.0 }
}

fn no_port(why: &str) -> Columns {
    let cleared = OF_A_PORT.map(|name| (name, Datum::EMPTY));
    let own = [("ofport", Datum::one(-1)), ("error", Datum::one(why))];
    own.into_iter().chain(cleared).collect()
}

fn no_device(name: &str) -> String {
    format!("could not open network device {name} (No such device)")
}

/// The columns of a port. One whose device has gone keeps its number for when that comes back, and
/// has none until then.
fn of_port(port: &WantedPort, view: &PortView, link: Option<&LinkChange>) -> Columns {
    if !view.port.info.exists {
        return no_port(&no_device(&port.name));
    }
    let number = Datum::one(i64::from(ofport(port.number)));
    let mut columns = vec![("ofport", number), ("error", Datum::EMPTY)];
    columns.extend(state_of(view, link));
    columns
}

/// The reason why a wanted port is none.
fn why_not(port: &WantedPort, refused: &[Refused]) -> String {
    let of_bridge = |one: &&Refused| one.bridge.as_deref() == Some(&port.bridge);
    let of_port = |one: &&Refused| one.item == Item::Port(port.number);
    let own = refused.iter().filter(of_bridge).find(of_port);
    let name = &port.name;
    match own.or_else(|| refused.iter().find(of_bridge)) {
        // Scripts look for the kernel's word in brackets.
        Some(refused) if NO_DEVICE.iter().any(|text| refused.why.contains(text)) => no_device(name),
        Some(refused) => {
            let why: String = refused.why.chars().take(500).collect();
            format!("could not add network device {name} to ofproto ({why})")
        }
        None => no_device(name),
    }
}

fn state_of(view: &PortView, link: Option<&LinkChange>) -> Columns {
    let info = &view.port.info;
    let up = |is_up: bool| Datum::one(if is_up { "up" } else { "down" });
    let Some(link) = link else {
        // Patch ports and dummies are no devices of the kernel.
        let exists = info.exists;
        let state = |name| match name {
            "mac_in_use" if exists => Datum::one(openflow::MacAddr(info.mac).to_string().as_str()),
            "admin_state" if exists => up(info.is_set_down != Some(true)),
            "link_state" if exists => up(info.link_up),
            "mtu" if exists && info.is_set_down.is_some() => Datum::one(i64::from(info.mtu)),
            _ => Datum::EMPTY,
        };
        return OF_A_PORT.map(|name| (name, state(name))).into();
    };
    let speed = i64::try_from(info.speed_bps).ok().filter(|speed| *speed > 0);
    let duplex = info.full_duplex.map(|full| if full { "full" } else { "half" });
    let mac = openflow::MacAddr(link.mac).to_string();
    vec![
        ("mac_in_use", Datum::one(mac.as_str())),
        ("ifindex", Datum::one(i64::from(link.index))),
        ("admin_state", up(link.up)),
        // A TAP device that is down has carrier all the same.
        ("link_state", up(link.up && link.carrier)),
        ("link_speed", Datum::optional(speed)),
        ("duplex", Datum::optional(duplex)),
        ("mtu", Datum::one(i64::from(link.mtu))),
    ]
}

/// The devices of the kernel by name. They are listed once, and changes are read: to list thousands
/// each second would keep a processor busy.
#[derive(Debug, Default)]
struct Links {
    monitor: Option<LinkMonitor>,
    by_name: HashMap<String, LinkChange>,
}

impl Links {
    /// Reads what has changed.
    fn read(&mut self) {
        let is_first = self.monitor.is_none();
        if is_first {
            self.monitor = LinkMonitor::open().inspect_err(failed_to_list).ok();
        }
        let Some(monitor) = &mut self.monitor else { return };
        let changes = monitor.changes().inspect_err(failed_to_list).unwrap_or_default();
        if is_first || !changes.is_empty() {
            let known = monitor.known().map(|link| (link.name.clone(), link.clone()));
            self.by_name = known.collect();
        }
    }

    fn get(&self, name: &str) -> Option<&LinkChange> {
        self.by_name.get(name)
    }
}

fn failed_to_list(error: &LinkError) {
    tracing::warn!(%error, "the kernel does not list its devices");
}

/// The ports that there are, by bridge and number.
pub(super) struct Views(HashMap<(String, PortNo), PortView>);

impl Views {
    pub(super) fn of(all: &Bridges) -> Self {
        let all = all.all();
        let views = |agent: &std::rc::Rc<Agent>| {
            let name = agent.name.clone();
            agent
                .bridge
                .port_views()
                .into_iter()
                .map(move |view| ((name.clone(), view.port.number), view))
        };
        Self(all.iter().flat_map(views).collect())
    }

    pub(super) fn get(&self, port: &WantedPort) -> Option<&PortView> {
        self.0
            .get(&(port.bridge.clone(), port.number))
            .filter(|view| view.port.spec.name() == port.name)
    }
}
