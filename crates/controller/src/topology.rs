//! The network as it is known: switches with their ports, links between them, hosts at its edge.
//!
//! [`Topology`] is one store for a whole controller. The discovery app keeps it; apps, REST and the
//! page read it through an `Arc` from any thread. Everything that comes from packets is bounded
//! here, since anybody can make up addresses. It must never know a message or a socket.

mod paths;
mod state;

pub use crate::events::{HostEvent, LinkEvent, SwitchPort, TopologyHost, TopologyLink};
pub use paths::ShortestPaths;
pub(crate) use state::STABILITY_DELAY;

use openflow::port::{PortConfig, PortDesc, PortState};
use openflow::{DatapathId, MacAddr};
use state::State;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

impl fmt::Display for SwitchPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.dpid, self.port)
    }
}

impl TopologyLink {
    /// The other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

/// A change of the topology, for those who want to hear of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyChange {
    /// A link's.
    Link(LinkEvent),
    /// A host's.
    Host(HostEvent),
}

/// A switch as the topology has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologySwitch {
    /// Its datapath id.
    pub dpid: DatapathId,
    /// Its ports, by number.
    pub ports: Vec<PortDesc>,
}

/// The neighbour at a port, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRole {
    /// The port does not exist, or has no link.
    Down,
    /// It is not known yet whether another switch is there: nothing may be flooded there.
    Settling,
    /// Hosts, or a network without switches of this controller.
    Edge,
    /// Another switch of this controller.
    Link,
}

/// The part of a packet that shows the host that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSighting {
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// The VLAN of the packet's outermost tag, if it has one.
    pub vlan: Option<u16>,
    /// An address that the host says it has.
    pub address: Option<SeenAddress>,
    /// The port that the packet came in by.
    pub at: SwitchPort,
}

/// An address that a host says it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenAddress {
    /// From ARP.
    Ipv4(Ipv4Addr),
    /// From neighbour discovery.
    Ipv6(Ipv6Addr),
}

/// When the topology forgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopologyLifetimes {
    /// A link whose probes stay away goes after this time.
    pub link: Duration,
    /// A host whose packets stay away goes after this time.
    pub host: Duration,
}

/// Switches, links and hosts; see the module.
///
/// ```
/// use controller::topology::Topology;
/// use std::sync::Arc;
///
/// let topology = Arc::new(Topology::default());
/// assert!(topology.switches().is_empty() && topology.links().is_empty());
/// ```
#[derive(Debug, Default)]
pub struct Topology {
    state: RwLock<State>,
    revision: AtomicU64,
}

impl Topology {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a change; one that touches switches, ports or links gives another revision.
    fn write(&self, change: impl FnOnce(&mut State) -> bool) -> Vec<TopologyChange> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let is_other = change(&mut state);
        let changes = state.take_changes();
        if is_other || changes.iter().any(|change| matches!(change, TopologyChange::Link(_))) {
            self.revision.fetch_add(1, Ordering::Release);
        }
        changes
    }

    /// Grows with every change of switches, ports or links, but not of hosts.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// All switches, by datapath id.
    #[must_use]
    pub fn switches(&self) -> Vec<TopologySwitch> {
        self.read().switches()
    }

    /// One switch.
    #[must_use]
    pub fn switch(&self, dpid: DatapathId) -> Option<TopologySwitch> {
        self.read().switch(dpid)
    }

    /// All links, each direction for itself, in order.
    #[must_use]
    pub fn links(&self) -> Vec<TopologyLink> {
        self.read().links().collect()
    }

    /// The port where packets that leave a port arrive. On a segment that several switches share,
    /// the first.
    #[must_use]
    pub fn link_from(&self, port: SwitchPort) -> Option<SwitchPort> {
        self.read().link_from(port)
    }

    /// All hosts, by address.
    #[must_use]
    pub fn hosts(&self) -> Vec<TopologyHost> {
        let mut hosts: Vec<_> = self.read().hosts().cloned().collect();
        hosts.sort_by_key(|host| host.mac);
        hosts
    }

    /// One host.
    #[must_use]
    pub fn host(&self, mac: MacAddr) -> Option<TopologyHost> {
        self.read().host(mac).cloned()
    }

    /// The port of a host; cheaper than [`Topology::host`].
    #[must_use]
    pub fn place_of(&self, mac: MacAddr) -> Option<SwitchPort> {
        self.read().host(mac).map(|host| host.at)
    }

    /// Packets of addresses that were not learned since their port has too many already.
    #[must_use]
    pub fn hosts_refused(&self) -> u64 {
        self.read().hosts_refused()
    }

    /// Links that were not taken since a port has too many already, as no cable gives it.
    #[must_use]
    pub fn links_refused(&self) -> u64 {
        self.read().links_refused()
    }

    /// The neighbour at a port at a time.
    #[must_use]
    pub fn role(&self, port: SwitchPort, now: Duration) -> PortRole {
        self.read().role(port, now)
    }

    /// A switch is ready, with these ports.
    pub fn switch_ready<'a>(
        &self,
        dpid: DatapathId,
        ports: impl Iterator<Item = &'a PortDesc>,
        now: Duration,
    ) -> Vec<TopologyChange> {
        self.write(|state| {
            state.switch_ready(dpid, ports, now);
            true
        })
    }

    /// A switch is gone, and its links and hosts with it.
    pub fn switch_down(&self, dpid: DatapathId) -> Vec<TopologyChange> {
        self.write(|state| state.switch_down(dpid))
    }

    /// A port is new or has changed.
    pub fn port_set(
        &self,
        dpid: DatapathId,
        desc: &PortDesc,
        now: Duration,
    ) -> Vec<TopologyChange> {
        self.write(|state| state.port_set(dpid, desc, now))
    }

    /// A port is gone.
    pub fn port_removed(&self, port: SwitchPort) -> Vec<TopologyChange> {
        self.write(|state| state.port_removed(port))
    }

    /// A probe that left `link.from` has arrived at `link.to`.
    pub fn link_heard(&self, link: TopologyLink, now: Duration) -> Vec<TopologyChange> {
        self.write(|state| {
            state.link_heard(link, now);
            false
        })
    }

    /// The same of a probe that another controller of a cluster has sent, whose switch need not be
    /// known here.
    pub fn far_link_heard(&self, link: TopologyLink, now: Duration) -> Vec<TopologyChange> {
        self.write(|state| {
            state.far_link_heard(link, now);
            false
        })
    }

    /// A packet of a host has come in by an edge port.
    pub fn host_seen(&self, seen: HostSighting, now: Duration) -> Vec<TopologyChange> {
        self.write(|state| {
            state.host_seen(seen, now);
            false
        })
    }

    /// Forgets links and hosts that were silent for too long. It may be called as often as one
    /// likes: it looks once a second.
    pub fn expire(&self, lifetimes: &TopologyLifetimes, now: Duration) -> Vec<TopologyChange> {
        if !self.read().is_expiry_due(now) {
            return Vec::new();
        }
        self.write(|state| {
            state.expire(lifetimes, now);
            false
        })
    }
}

/// Whether packets go in and out of a port.
#[must_use]
pub fn is_up(port: &PortDesc) -> bool {
    !port.state.contains(PortState::LINK_DOWN) && !port.config.contains(PortConfig::PORT_DOWN)
}
