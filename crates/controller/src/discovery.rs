//! Discovery: finds links by LLDP probes, hosts by the packets that come to the controller, and
//! keeps the [`Topology`].
//!
//! Every port that is up gets a probe regularly, at first every second; a probe that another switch
//! sends up shows a link. The app stands before those that use the topology: they hear of links and
//! hosts by events, or read the store. It never forwards a packet and never deletes a flow entry
//! that is not its own.

mod keys;
mod probe;

pub(crate) use probe::LLDP;
pub use probe::{NoKey, ProbeKey};

use keys::Keys;

use crate::app::App;
use crate::events::ControllerEvent;
use crate::handle::Handle;
use crate::switch::{Switch, TimerId};
use crate::topology::{
    HostSighting, PortRole, SeenAddress, SwitchPort, Topology, TopologyChange, TopologyLifetimes,
    TopologyLink, is_up,
};
use openflow::action::MAX_LEN_NO_BUFFER;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::message::{PacketIn, PacketOut};
use openflow::port::{PortReason, PortStatus};
use openflow::{Action, DatapathId, Field, Instruction, MacAddr, Match, Message, PortNo};
use packet::header::{be16, chunk, ethernet};
use packet::{FlowKey, Meta, extract};
use probe::Probe;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// A new port is probed every second, this many times.
const FIRST_PROBES: u32 = 5;
/// Probes of one switch at once, and the pause until the next ones: 4,096 in a second. One with
/// more ports is probed in turns, so that it neither holds up the others nor fills its own queue.
const PROBES_MAX: usize = 512;
const PROBES_PAUSE: Duration = Duration::from_millis(125);
/// The entry that brings probes to the controller is sent again after this number of ticks: apps
/// behind this one clear the tables when they start, and people do.
const ENTRY_TICKS: u64 = 10;
/// ICMPv6 types of neighbour solicitation and advertisement.
const NEIGHBOUR: [u128; 2] = [135, 136];

/// `[discovery]` in the file of the apps' settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DiscoveryConfig {
    /// Seconds between two probes of a port; a link goes when three have stayed away.
    pub probe_interval_s: u16,
    /// Seconds of silence after which a host is forgotten.
    pub host_timeout_s: u32,
}

impl Default for DiscoveryConfig {
    fn default() -> Self {
        Self { probe_interval_s: 5, host_timeout_s: 3_600 }
    }
}

impl DiscoveryConfig {
    fn probe_interval(self) -> Duration {
        Duration::from_secs(self.probe_interval_s.max(1).into())
    }

    fn lifetimes(self) -> TopologyLifetimes {
        let link = 3 * self.probe_interval() + Duration::from_secs(1);
        TopologyLifetimes { link, host: Duration::from_secs(self.host_timeout_s.max(1).into()) }
    }
}

/// The app. All instances of one controller share the topology and the key; the controllers of a
/// cluster share a key by etcd, so that each takes the probes of the others for what they are.
///
/// ```
/// use controller::discovery::{Discovery, DiscoveryConfig, ProbeKey};
/// use controller::topology::Topology;
/// use std::sync::Arc;
///
/// let topology = Arc::new(Topology::default());
/// let key = ProbeKey::random()?;
/// let app = Discovery::new(Arc::clone(&topology), key, DiscoveryConfig::default());
/// # drop(app);
/// # Ok::<(), controller::discovery::NoKey>(())
/// ```
#[derive(Debug)]
pub struct Discovery {
    topology: Arc<Topology>,
    keys: Keys,
    config: DiscoveryConfig,
    handle: Option<Handle>,
    switches: HashMap<DatapathId, Probing>,
}

/// Work that is due for one switch.
#[derive(Debug, Default)]
struct Probing {
    ticks: u64,
    ports: BTreeMap<PortNo, PortProbing>,
    /// The port at which the probes of the next turn begin.
    next: PortNo,
    /// When that turn comes, if ports have been left for it.
    next_turn: Option<TimerId>,
    /// The latest tick. What is due after it is counted from it, so that all turns between two
    /// ticks are due at one.
    since: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct PortProbing {
    sent: u32,
    due: Duration,
}

impl Discovery {
    /// An instance of the app.
    #[must_use]
    pub fn new(topology: Arc<Topology>, key: ProbeKey, config: DiscoveryConfig) -> Self {
        let keys = Keys::own(key);
        Self { topology, keys, config, handle: None, switches: HashMap::new() }
    }

    fn publish(&self, changes: Vec<TopologyChange>) {
        let Some(handle) = &self.handle else { return };
        for change in changes {
            let raised = match change {
                TopologyChange::Link(event) => handle.raise(ControllerEvent::Link(event)),
                TopologyChange::Host(event) => handle.raise(ControllerEvent::Host(event)),
            };
            if let Err(error) = raised {
                // The topology has it all the same.
                tracing::debug!("an event of the topology is not published: {error}");
            }
        }
    }

    /// Sends the probes that are due of these ports, the first of which was not reached last time.
    fn probe(&mut self, sw: &mut Switch, ports: RangeInclusive<PortNo>) {
        let (dpid, now) = (sw.dpid(), sw.now());
        // Until the cluster's key is known nothing is sent that the other nodes would not know.
        let Some((key, sent_at)) = self.keys.at(now) else { return };
        let Some(probing) = self.switches.get_mut(&dpid) else { return };
        let begin = probing.next.clamp(*ports.start(), *ports.end());
        let all = sw.ports();
        let in_turn = all.range(begin..=*ports.end()).chain(all.range(*ports.start()..begin));
        let (mut due, mut left) = (Vec::new(), None);
        for (port, desc) in in_turn.filter(|(_, desc)| is_probed(desc.port_no) && is_up(desc)) {
            let state = probing.ports.entry(*port).or_default();
            if now < state.due {
                continue;
            }
            if due.len() == PROBES_MAX {
                left = Some(*port);
                break;
            }
            state.sent = state.sent.saturating_add(1);
            let is_new = state.sent <= FIRST_PROBES;
            let pause = if is_new { Duration::from_secs(1) } else { self.config.probe_interval() };
            state.due = probing.since + pause;
            due.push((*port, desc.hw_addr));
        }
        if let Some(port) = left {
            probing.next = port;
            probing.next_turn = Some(sw.set_timer(PROBES_PAUSE));
        }
        let ttl_s = u16::try_from(self.config.lifetimes().link.as_secs()).unwrap_or(u16::MAX);
        for (port, hw_addr) in due {
            let from = SwitchPort { dpid, port };
            let data = Probe { from, sent_at }.frame(source(hw_addr), ttl_s, key);
            let (in_port, actions) = (PortNo::CONTROLLER, vec![Action::output(port)]);
            sw.send(Message::PacketOut(PacketOut { buffer_id: None, in_port, actions, data }));
        }
    }

    /// A probe of ours, if it is one.
    fn take_probe(&self, sw: &mut Switch, at: SwitchPort, frame: &[u8]) {
        // Others' LLDP, and probes that somebody has made up or kept, say nothing.
        let Some((key, now)) = self.keys.at(sw.now()) else { return };
        let Some(probe) = Probe::read(frame, key) else { return };
        sw.stop();
        if now <= probe.sent_at.saturating_add(self.config.lifetimes().link) {
            let link = TopologyLink { from: probe.from, to: at };
            let changes = match self.keys.are_shared() {
                true => self.topology.far_link_heard(link, sw.now()),
                false => self.topology.link_heard(link, sw.now()),
            };
            self.publish(changes);
        }
    }
}

impl App for Discovery {
    fn started(&mut self, handle: &Handle) {
        self.handle = Some(handle.clone());
        self.keys.share(handle);
    }

    fn switch_ready(&mut self, sw: &mut Switch) {
        let changes = self.topology.switch_ready(sw.dpid(), sw.ports().values(), sw.now());
        self.publish(changes);
        let probing = Probing { since: sw.now(), ..Probing::default() };
        self.switches.insert(sw.dpid(), probing);
        sw.flow_mod(entry());
        self.probe(sw, ALL_PORTS);
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        self.switches.remove(&dpid);
        self.publish(self.topology.switch_down(dpid));
    }

    fn port_status(&mut self, sw: &mut Switch, status: &PortStatus) {
        let (dpid, port) = (sw.dpid(), status.desc.port_no);
        let changes = match status.reason {
            PortReason::Delete => self.topology.port_removed(SwitchPort { dpid, port }),
            PortReason::Add | PortReason::Modify | PortReason::Unknown(_) => {
                self.topology.port_set(dpid, &status.desc, sw.now())
            }
        };
        self.publish(changes);
        if let Some(probing) = self.switches.get_mut(&dpid)
            && !sw.ports().get(&port).is_some_and(is_up)
        {
            probing.ports.remove(&port);
        }
        self.probe(sw, port..=port);
    }

    fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        let Some(port) = packet_in.in_port() else { return };
        let at = SwitchPort { dpid: sw.dpid(), port };
        if be16(&packet_in.data, ethernet::ETHER_TYPE) == Some(LLDP) {
            self.take_probe(sw, at, &packet_in.data);
        } else if self.topology.role(at, sw.now()) == PortRole::Edge
            && let Some(seen) = sighting(&packet_in.data, at)
        {
            self.publish(self.topology.host_seen(seen, sw.now()));
        }
    }

    fn tick(&mut self, sw: &mut Switch) {
        if let Some(probing) = self.switches.get_mut(&sw.dpid()) {
            if probing.ticks % ENTRY_TICKS == 0 {
                sw.flow_mod(entry());
            }
            probing.ticks += 1;
            probing.since = sw.now();
            // The turns of this second begin here.
            if let Some(timer) = probing.next_turn.take() {
                sw.cancel_timer(timer);
            }
        }
        self.probe(sw, ALL_PORTS);
        self.publish(self.topology.expire(&self.config.lifetimes(), sw.now()));
    }

    fn timer(&mut self, sw: &mut Switch, timer: TimerId) {
        if let Some(probing) = self.switches.get_mut(&sw.dpid())
            && probing.next_turn == Some(timer)
        {
            probing.next_turn = None;
            self.probe(sw, ALL_PORTS);
        }
    }
}

/// The ports of a switch.
const ALL_PORTS: RangeInclusive<PortNo> = PortNo(0)..=PortNo(u32::MAX);

/// Whether it can be the end of a link: a port's number, and not the switch's own stack.
fn is_probed(port: PortNo) -> bool {
    port.is_port() && port != PortNo::LOCAL
}

/// The port's address, or one that nobody has where the switch does not say it.
fn source(hw_addr: MacAddr) -> MacAddr {
    if hw_addr == MacAddr::default() { MacAddr::from_u64(0x0200_0000_0001) } else { hw_addr }
}

/// LLDP comes to the controller, whatever else the tables say.
fn entry() -> FlowMod {
    let output = Action::Output { port: PortNo::CONTROLLER, max_len: MAX_LEN_NO_BUFFER };
    FlowMod {
        priority: u16::MAX,
        matching: Match::any().with(Field::EthType, LLDP.into()),
        instructions: vec![Instruction::ApplyActions(vec![output])],
        ..FlowMod::new(FlowModCommand::Add)
    }
}

/// The sender that a frame shows, if its source is the address of one station.
fn sighting(frame: &[u8], at: SwitchPort) -> Option<HostSighting> {
    let mac = MacAddr(*chunk(frame, ethernet::SRC.start)?);
    let [first, ..] = mac.0;
    let is_station = first & 1 == 0 && mac != MacAddr::default();
    let key = extract(frame, &Meta::default());
    let vid = u16::try_from(key.get(Field::VlanVid) & 0xfff).ok();
    let vlan = vid.filter(|_| key.has(Field::VlanVid));
    is_station.then(|| HostSighting { mac, vlan, address: address(&key), at })
}

/// The address that the sender says it has, in ARP and neighbour discovery alone: in other packets
/// stands that of a host behind a router too.
fn address(key: &FlowKey) -> Option<SeenAddress> {
    if key.has(Field::ArpSpa) {
        // A host that asks whether an address is free sends from none; one that answers for
        // another names another address than its own.
        let is_own = key.get(Field::ArpSha) == key.get(Field::EthSrc);
        let address = Ipv4Addr::from(u32::try_from(key.get(Field::ArpSpa)).ok()?);
        let is_one = !address.is_unspecified() && !address.is_broadcast();
        return (is_own && is_one && !address.is_multicast()).then_some(SeenAddress::Ipv4(address));
    }
    if NEIGHBOUR.contains(&key.get(Field::Icmpv6Type)) {
        let address = Ipv6Addr::from(key.get(Field::Ipv6Src));
        let is_one = !address.is_unspecified() && !address.is_multicast();
        return is_one.then_some(SeenAddress::Ipv6(address));
    }
    None
}
