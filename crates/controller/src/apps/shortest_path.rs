//! Loop-free forwarding over many switches: shortest paths between hosts, and a tree for what goes
//! everywhere.
//!
//! It stands after discovery, whose topology it reads. Every switch is served alone: a packet that
//! no entry matches is sent one switch further, and an entry for its pair of addresses is left
//! there. As all switches see the same links, the steps join to a shortest path. What is for
//! everybody, and what is for an unknown host, goes along the tree and out of edge ports. It must
//! never send a packet out of a port of which discovery does not know yet what is behind it.
//!
//! In a cluster one node has all switches. One that takes them over leaves their entries alone
//! until it knows the network, and one that hands them over until it has none; so what flows goes
//! on.

use super::frame::{bridged, entry, is_group};
use crate::app::App;
use crate::events::{RoleChange, RoleReason};
use crate::switch::{Switch, delete_all};
use crate::topology::{
    HostEvent, PortRole, STABILITY_DELAY, ShortestPaths, SwitchPort, Topology, is_up,
};
use openflow::flow::FlowMod;
use openflow::message::{ControllerRole, PacketIn};
use openflow::port::{PortReason, PortStatus};
use openflow::{Action, Cookie, DatapathId, Field, MacAddr, Match, PortNo};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Seconds without a packet after which an entry goes.
const IDLE_TIMEOUT_S: u16 = 60;
/// Above the table-miss entry.
const PRIORITY: u16 = 1;
/// Marks the app's entries: "path" in ASCII.
const COOKIE: Cookie = Cookie(0x7061_7468);
/// When more hosts than these have moved within a second, every pair is decided anew.
const MOVED_MAX: usize = 64;

/// The app; all instances of one controller share the topology.
#[derive(Debug)]
pub struct ShortestPath {
    topology: Arc<Topology>,
    paths: ShortestPaths,
    /// The revision of the links that `paths` are over.
    revision: Option<u64>,
    installed: HashMap<DatapathId, Installed>,
    /// Switches change hands in the cluster until then: links that are not seen may be there.
    hands_over_until: Duration,
}

/// The facts from which the entries of a switch were made.
#[derive(Debug)]
struct Installed {
    revision: u64,
    /// Hosts that are not where they were.
    moved: Vec<MacAddr>,
    /// Until then the entries are those of another node, of a network that is not known here yet.
    taken_over_until: Duration,
}

impl ShortestPath {
    /// An instance over the topology that discovery keeps.
    #[must_use]
    pub fn new(topology: Arc<Topology>) -> Self {
        Self {
            topology,
            paths: ShortestPaths::default(),
            revision: None,
            installed: HashMap::new(),
            hands_over_until: Duration::ZERO,
        }
    }

    /// Takes the links as they are now.
    fn refresh(&mut self) -> u64 {
        let revision = self.topology.revision();
        if self.revision != Some(revision) {
            self.paths = ShortestPaths::new(&self.topology.links());
            self.revision = Some(revision);
        }
        revision
    }

    /// By which port a packet for a station leaves a switch, if its place is known.
    fn way_to(&mut self, dst: MacAddr, dpid: DatapathId) -> Option<PortNo> {
        let place = self.topology.place_of(dst).filter(|_| !is_group(dst))?;
        if place.dpid == dpid { Some(place.port) } else { self.paths.next_hop(dpid, place.dpid) }
    }

    /// Whether what goes everywhere is sent to this port, and taken from it.
    fn is_flooded(&self, port: SwitchPort, sw: &Switch) -> bool {
        match self.topology.role(port, sw.now()) {
            PortRole::Edge => true,
            PortRole::Link => self.paths.is_in_tree(port),
            PortRole::Settling | PortRole::Down => false,
        }
    }

    fn flood(&self, sw: &mut Switch, packet_in: &PacketIn, in_port: PortNo) {
        let dpid = sw.dpid();
        if !self.is_flooded(SwitchPort { dpid, port: in_port }, sw) {
            return;
        }
        let others = sw.ports().keys().copied().filter(|port| *port != in_port);
        let ports = others.filter(|port| self.is_flooded(SwitchPort { dpid, port: *port }, sw));
        let actions: Vec<_> = ports.map(Action::output).collect();
        if !actions.is_empty() {
            sw.packet_out(packet_in, actions);
        }
    }

    /// Deletes the entries that lead to where hosts were.
    fn forget_moved(&mut self, sw: &mut Switch) {
        let Some(installed) = self.installed.get_mut(&sw.dpid()) else { return };
        if installed.moved.len() > MOVED_MAX {
            installed.moved.clear();
            return forget_all(sw);
        }
        for mac in installed.moved.drain(..) {
            let matching = Match::any().with(Field::EthDst, mac.to_u64().into());
            sw.flow_mod(FlowMod { matching, ..delete_all() });
        }
    }
}

/// Deletes all of the app's entries.
fn forget_all(sw: &mut Switch) {
    if sw.version().has_cookie_mask() {
        sw.flow_mod(FlowMod { cookie: COOKIE, cookie_mask: u64::MAX, ..delete_all() });
    } else {
        // All entries are ours, but for discovery's, which it sends again.
        sw.clear_flows();
    }
}

impl App for ShortestPath {
    fn switch_ready(&mut self, sw: &mut Switch) {
        sw.clear_flows();
        sw.miss_to_controller();
        let revision = self.topology.revision();
        let taken_over_until =
            if sw.is_set_up() { sw.now() + STABILITY_DELAY } else { Duration::ZERO };
        let installed = Installed { revision, moved: Vec::new(), taken_over_until };
        self.installed.insert(sw.dpid(), installed);
    }

    fn role_changed(&mut self, sw: &mut Switch, change: &RoleChange) {
        if change.role == ControllerRole::Slave && change.reason == RoleReason::Cluster {
            self.hands_over_until = sw.now() + STABILITY_DELAY;
        }
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        self.installed.remove(&dpid);
    }

    fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        let (Some((dst, src)), Some(in_port)) = (bridged(&packet_in.data), packet_in.in_port())
        else {
            return;
        };
        self.refresh();
        self.forget_moved(sw);
        let here = SwitchPort { dpid: sw.dpid(), port: in_port };
        let role = self.topology.role(here, sw.now());
        if role == PortRole::Settling || role == PortRole::Down {
            return;
        }
        match self.way_to(dst, sw.dpid()) {
            // The switch before has not heard yet that the way is another one now.
            Some(port) if port == in_port && role == PortRole::Link => {
                sw.forward(packet_in, PortNo::IN_PORT);
            }
            Some(port) if port == in_port => {}
            Some(port) => {
                let pair = Match::any()
                    .with(Field::InPort, in_port.0.into())
                    .with(Field::EthSrc, src.to_u64().into())
                    .with(Field::EthDst, dst.to_u64().into());
                let entry = entry(PRIORITY, pair, vec![Action::output(port)]);
                let (idle_timeout_s, cookie) = (IDLE_TIMEOUT_S, COOKIE);
                sw.flow_mod(FlowMod { idle_timeout_s, cookie, ..entry });
                sw.forward(packet_in, port);
            }
            None => self.flood(sw, packet_in, in_port),
        }
    }

    /// Pairs that left by a port that is gone are decided anew at once.
    fn port_status(&mut self, sw: &mut Switch, status: &PortStatus) {
        if status.reason == PortReason::Delete || !is_up(&status.desc) {
            sw.flow_mod(FlowMod { out_port: status.desc.port_no, ..delete_all() });
        }
    }

    /// A host that has moved is no longer where entries lead; each switch hears of it at its next
    /// packet or tick.
    fn host(&mut self, event: &HostEvent) {
        match event {
            HostEvent::Moved { host, .. } | HostEvent::Down(host) => {
                for installed in self.installed.values_mut() {
                    if installed.moved.len() <= MOVED_MAX {
                        installed.moved.push(host.mac);
                    }
                }
            }
            HostEvent::Up(_) | HostEvent::Changed(_) => {}
        }
    }

    /// After a change of the links every pair is decided anew, each switch once a second at most.
    fn tick(&mut self, sw: &mut Switch) {
        self.forget_moved(sw);
        let revision = self.refresh();
        let hands_over = sw.now() < self.hands_over_until;
        if let Some(installed) = self.installed.get_mut(&sw.dpid())
            && !hands_over
            && installed.taken_over_until <= sw.now()
            && std::mem::replace(&mut installed.revision, revision) != revision
        {
            forget_all(sw);
        }
    }
}
