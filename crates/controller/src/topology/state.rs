//! The tables behind the topology, and the rules of what is kept in them.
//!
//! Time is an argument. Changes are collected and taken out by the caller, who tells others of them
//! without holding the lock.

use super::{
    HostEvent, HostSighting, LinkEvent, PortRole, SeenAddress, SwitchPort, TopologyChange,
    TopologyHost, TopologyLifetimes, TopologyLink, TopologySwitch, is_up,
};
use openflow::port::PortDesc;
use openflow::{DatapathId, MacAddr, PortNo};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// A port that has come up is no edge before this time: three probes of both ends have had the
/// time to show a link, and no packet is flooded into a loop that is not known yet.
pub(crate) const STABILITY_DELAY: Duration = Duration::from_secs(3);
/// Hosts kept for one port. One who makes up addresses fills the table of the own port only.
const HOSTS_PER_PORT_MAX: usize = 1_024;
/// Hosts kept at all.
const HOSTS_MAX: usize = 1 << 17;
/// Links kept for one port, both directions counted: a segment that 128 other ports share.
const LINKS_PER_PORT_MAX: usize = 256;
/// Links kept at all.
const LINKS_MAX: usize = 1 << 18;
/// Addresses of each family kept for one host.
const ADDRESSES_MAX: usize = 8;
/// A host that has moved stays for this time: an address used in two places changes its place once
/// a second, and not with every packet.
const MOVE_HOLD: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct State {
    switches: BTreeMap<DatapathId, BTreeMap<PortNo, KnownPort>>,
    /// Every link with the time of its last probe.
    links: BTreeMap<TopologyLink, Duration>,
    /// Those of which a port is an end: a switch may report 65,000 ports down one after the other,
    /// and each looks at its own links and hosts only.
    links_at: HashMap<SwitchPort, Vec<TopologyLink>>,
    hosts: HashMap<MacAddr, KnownHost>,
    hosts_at: HashMap<SwitchPort, Vec<MacAddr>>,
    hosts_refused: u64,
    links_refused: u64,
    expired_at: Duration,
    changes: Vec<TopologyChange>,
}

#[derive(Debug)]
struct KnownPort {
    desc: PortDesc,
    /// Since when it is up without a link of it having gone.
    since: Duration,
}

#[derive(Debug)]
struct KnownHost {
    host: TopologyHost,
    /// When it came to its place.
    came: Duration,
    last_seen: Duration,
}

impl State {
    pub(super) fn take_changes(&mut self) -> Vec<TopologyChange> {
        std::mem::take(&mut self.changes)
    }

    pub(super) fn switches(&self) -> Vec<TopologySwitch> {
        self.switches.keys().filter_map(|dpid| self.switch(*dpid)).collect()
    }

    pub(super) fn switch(&self, dpid: DatapathId) -> Option<TopologySwitch> {
        let ports = self.switches.get(&dpid)?;
        let ports = ports.values().map(|port| port.desc.clone()).collect();
        Some(TopologySwitch { dpid, ports })
    }

    pub(super) fn links(&self) -> impl Iterator<Item = TopologyLink> + '_ {
        self.links.keys().copied()
    }

    pub(super) fn link_from(&self, port: SwitchPort) -> Option<SwitchPort> {
        let links = self.links_at.get(&port)?;
        links.iter().filter(|link| link.from == port).map(|link| link.to).min()
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = &TopologyHost> {
        self.hosts.values().map(|known| &known.host)
    }

    pub(super) fn host(&self, mac: MacAddr) -> Option<&TopologyHost> {
        self.hosts.get(&mac).map(|known| &known.host)
    }

    pub(super) fn hosts_refused(&self) -> u64 {
        self.hosts_refused
    }

    pub(super) fn links_refused(&self) -> u64 {
        self.links_refused
    }

    pub(super) fn role(&self, port: SwitchPort, now: Duration) -> PortRole {
        let Some(known) = self.port(port).filter(|known| is_up(&known.desc)) else {
            return PortRole::Down;
        };
        if self.links_at.contains_key(&port) {
            PortRole::Link
        } else if now < known.since + STABILITY_DELAY {
            PortRole::Settling
        } else {
            PortRole::Edge
        }
    }

    fn port(&self, port: SwitchPort) -> Option<&KnownPort> {
        self.switches.get(&port.dpid)?.get(&port.port)
    }

    pub(super) fn switch_ready<'a>(
        &mut self,
        dpid: DatapathId,
        ports: impl Iterator<Item = &'a PortDesc>,
        now: Duration,
    ) {
        self.switch_down(dpid);
        let known = |desc: &PortDesc| KnownPort { desc: desc.clone(), since: now };
        let ports = ports.map(|desc| (desc.port_no, known(desc))).collect();
        self.switches.insert(dpid, ports);
    }

    /// Whether it was there.
    pub(super) fn switch_down(&mut self, dpid: DatapathId) -> bool {
        self.remove_links_if(|link, _| link.from.dpid == dpid || link.to.dpid == dpid);
        self.remove_hosts_if(|known| known.host.at.dpid == dpid);
        self.switches.remove(&dpid).is_some()
    }

    /// Whether something has changed that paths depend on.
    pub(super) fn port_set(&mut self, dpid: DatapathId, desc: &PortDesc, now: Duration) -> bool {
        let Some(ports) = self.switches.get_mut(&dpid) else { return false };
        let port = SwitchPort { dpid, port: desc.port_no };
        let before = ports.get(&desc.port_no);
        let was_up = before.is_some_and(|known| is_up(&known.desc));
        let since = match before {
            Some(known) if was_up => known.since,
            Some(_) | None => now,
        };
        ports.insert(desc.port_no, KnownPort { desc: desc.clone(), since });
        if !is_up(desc) {
            self.forget_port(port);
        }
        was_up != is_up(desc)
    }

    /// Whether it was there.
    pub(super) fn port_removed(&mut self, port: SwitchPort) -> bool {
        self.forget_port(port);
        let ports = self.switches.get_mut(&port.dpid);
        ports.is_some_and(|ports| ports.remove(&port.port).is_some())
    }

    fn forget_port(&mut self, port: SwitchPort) {
        let mut links = self.links_at.get(&port).cloned().unwrap_or_default();
        links.sort_unstable();
        self.remove_links(&links);
        self.remove_hosts_at(port);
    }

    fn remove_hosts_at(&mut self, port: SwitchPort) {
        let hosts = self.hosts_at.get(&port).cloned();
        self.remove_hosts(hosts.unwrap_or_default());
    }

    pub(super) fn link_heard(&mut self, link: TopologyLink, now: Duration) {
        // Otherwise the probe was on its way when a port or a switch went.
        if self.is_port_up(link.from) && self.is_port_up(link.to) {
            self.note_link(link, now);
        }
    }

    pub(super) fn far_link_heard(&mut self, link: TopologyLink, now: Duration) {
        let is_far = !self.switches.contains_key(&link.from.dpid);
        if (is_far || self.is_port_up(link.from)) && self.is_port_up(link.to) {
            self.note_link(link, now);
        }
    }

    fn is_port_up(&self, port: SwitchPort) -> bool {
        self.port(port).is_some_and(|known| is_up(&known.desc))
    }

    fn note_link(&mut self, link: TopologyLink, now: Duration) {
        if let Some(heard) = self.links.get_mut(&link) {
            *heard = now;
            return;
        }
        let ends = [link.from, link.to];
        let is_full = |end| count(&self.links_at, end) >= LINKS_PER_PORT_MAX;
        if self.links.len() >= LINKS_MAX || ends.into_iter().any(is_full) {
            self.links_refused += 1;
            return;
        }
        self.links.insert(link, now);
        self.changes.push(TopologyChange::Link(LinkEvent::Up(link)));
        for end in ends {
            attach(&mut self.links_at, end, link);
            // Behind a link are no hosts: packets that were flooded over it looked like some.
            self.remove_hosts_at(end);
        }
    }

    pub(super) fn host_seen(&mut self, seen: HostSighting, now: Duration) {
        let HostSighting { mac, vlan, address, at } = seen;
        let is_here = self.host(mac).is_some_and(|host| host.at == at);
        let count_here = count(&self.hosts_at, at);
        let is_full = !self.hosts.contains_key(&mac) && self.hosts.len() >= HOSTS_MAX;
        if !is_here && (count_here >= HOSTS_PER_PORT_MAX || is_full) {
            self.hosts_refused += 1;
            return;
        }
        match self.hosts.get_mut(&mac) {
            None => {
                let mut host = TopologyHost { mac, vlan, ipv4: vec![], ipv6: vec![], at };
                note_address(&mut host, address);
                self.changes.push(TopologyChange::Host(HostEvent::Up(host.clone())));
                self.hosts.insert(mac, KnownHost { host, came: now, last_seen: now });
                attach(&mut self.hosts_at, at, mac);
            }
            Some(known) if known.host.at == at => {
                known.last_seen = now;
                if note_address(&mut known.host, address) {
                    self.changes.push(TopologyChange::Host(HostEvent::Changed(known.host.clone())));
                }
            }
            Some(known) if now >= known.came + MOVE_HOLD => {
                let from = std::mem::replace(&mut known.host.at, at);
                (known.came, known.last_seen, known.host.vlan) = (now, now, vlan);
                note_address(&mut known.host, address);
                let host = known.host.clone();
                self.changes.push(TopologyChange::Host(HostEvent::Moved { host, from }));
                detach(&mut self.hosts_at, from, &mac);
                attach(&mut self.hosts_at, at, mac);
            }
            Some(_) => {}
        }
    }

    /// Whether it is time to look for what has expired: once a second, for all callers.
    pub(super) fn is_expiry_due(&self, now: Duration) -> bool {
        now >= self.expired_at + Duration::from_secs(1)
    }

    pub(super) fn expire(&mut self, lifetimes: &TopologyLifetimes, now: Duration) {
        self.expired_at = now;
        let gone = self.remove_links_if(|_, heard| now >= heard + lifetimes.link);
        self.remove_hosts_if(|known| now >= known.last_seen + lifetimes.host);
        // The cable may still be there while probes are lost: the ports are no edge at once.
        for port in gone.iter().flat_map(|link| [link.from, link.to]) {
            let ports = self.switches.get_mut(&port.dpid);
            if let Some(known) = ports.and_then(|ports| ports.get_mut(&port.port)) {
                known.since = now + lifetimes.link;
            }
        }
    }

    fn remove_links_if(
        &mut self,
        is_gone: impl Fn(TopologyLink, Duration) -> bool,
    ) -> Vec<TopologyLink> {
        let gone = self.links.iter().filter(|(link, heard)| is_gone(**link, **heard));
        let gone: Vec<_> = gone.map(|(link, _)| *link).collect();
        self.remove_links(&gone);
        gone
    }

    fn remove_links(&mut self, gone: &[TopologyLink]) {
        for link in gone {
            self.links.remove(link);
            detach(&mut self.links_at, link.from, link);
            detach(&mut self.links_at, link.to, link);
            self.changes.push(TopologyChange::Link(LinkEvent::Down(*link)));
        }
    }

    fn remove_hosts_if(&mut self, is_gone: impl Fn(&KnownHost) -> bool) {
        let gone = self.hosts.values().filter(|known| is_gone(known));
        self.remove_hosts(gone.map(|known| known.host.mac).collect());
    }

    fn remove_hosts(&mut self, mut gone: Vec<MacAddr>) {
        gone.sort_unstable();
        for mac in gone {
            if let Some(known) = self.hosts.remove(&mac) {
                detach(&mut self.hosts_at, known.host.at, &mac);
                self.changes.push(TopologyChange::Host(HostEvent::Down(known.host)));
            }
        }
    }
}

/// The number of links or hosts at a port.
fn count<T>(all: &HashMap<SwitchPort, Vec<T>>, port: SwitchPort) -> usize {
    all.get(&port).map_or(0, Vec::len)
}

fn attach<T>(all: &mut HashMap<SwitchPort, Vec<T>>, port: SwitchPort, one: T) {
    all.entry(port).or_insert_with(|| Vec::with_capacity(1)).push(one);
}

fn detach<T: PartialEq>(all: &mut HashMap<SwitchPort, Vec<T>>, port: SwitchPort, one: &T) {
    let Some(here) = all.get_mut(&port) else { return };
    if let Some(at) = here.iter().position(|it| it == one) {
        here.swap_remove(at);
    }
    if here.is_empty() {
        all.remove(&port);
    }
}

/// Whether the address is new.
fn note_address(host: &mut TopologyHost, address: Option<SeenAddress>) -> bool {
    match address {
        Some(SeenAddress::Ipv4(address)) => note(&mut host.ipv4, address),
        Some(SeenAddress::Ipv6(address)) => note(&mut host.ipv6, address),
        None => false,
    }
}

fn note<T: PartialEq>(addresses: &mut Vec<T>, address: T) -> bool {
    if addresses.contains(&address) {
        return false;
    }
    if addresses.len() >= ADDRESSES_MAX {
        addresses.remove(0);
    }
    addresses.push(address);
    true
}

#[cfg(test)]
mod tests {
    use super::{HOSTS_PER_PORT_MAX, STABILITY_DELAY};
    use crate::topology::{
        HostEvent, HostSighting, LinkEvent, PortRole, SeenAddress, SwitchPort, Topology,
        TopologyChange, TopologyLifetimes, TopologyLink,
    };
    use openflow::port::{PortDesc, PortState};
    use openflow::{DatapathId, MacAddr, PortNo};
    use std::net::Ipv4Addr;
    use std::time::Duration;

    const LIFETIMES: TopologyLifetimes =
        TopologyLifetimes { link: Duration::from_secs(15), host: Duration::from_secs(300) };

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn port(dpid: u64, port: u32) -> SwitchPort {
        SwitchPort { dpid: DatapathId(dpid), port: PortNo(port) }
    }

    fn desc(number: u32) -> PortDesc {
        PortDesc { port_no: PortNo(number), ..PortDesc::default() }
    }

    fn seen(number: u64, address: Option<SeenAddress>, at: SwitchPort) -> HostSighting {
        HostSighting { mac: mac(number), vlan: None, address, at }
    }

    fn two_switches() -> Topology {
        let topology = Topology::default();
        for dpid in [1, 2] {
            let ports = [desc(1), desc(2)];
            topology.switch_ready(DatapathId(dpid), ports.iter(), s(0));
        }
        topology
    }

    fn mac(number: u64) -> MacAddr {
        MacAddr::from_u64(0x0200_0000_0000 + number)
    }

    #[test]
    fn links_come_with_probes_and_go_with_ports_and_with_silence() {
        let topology = two_switches();
        let link = TopologyLink { from: port(1, 1), to: port(2, 2) };
        assert_eq!(topology.link_heard(link, s(1)), [TopologyChange::Link(LinkEvent::Up(link))]);
        assert_eq!(topology.link_heard(link, s(2)), []);
        assert_eq!(topology.link_from(port(1, 1)), Some(port(2, 2)));
        assert_eq!(topology.role(port(2, 2), s(100)), PortRole::Link, "one direction is enough");
        assert_eq!(topology.expire(&LIFETIMES, s(16)), []);
        let removed = [TopologyChange::Link(LinkEvent::Down(link))];
        assert_eq!(topology.expire(&LIFETIMES, s(17)), removed);
        assert_eq!(topology.role(port(1, 1), s(18)), PortRole::Settling, "the cable may be there");
        assert_eq!(topology.role(port(1, 1), s(17 + 15) + STABILITY_DELAY), PortRole::Edge);

        topology.link_heard(link, s(40));
        let revision = topology.revision();
        let down = PortDesc { state: PortState::LINK_DOWN, ..desc(1) };
        assert_eq!(topology.port_set(DatapathId(1), &down, s(41)), removed);
        assert!(topology.revision() > revision);
        assert_eq!(topology.link_heard(link, s(41)), [], "a late probe of a dead port");
        topology.port_set(DatapathId(1), &desc(1), s(50));
        topology.link_heard(link, s(51));
        assert_eq!(topology.switch_down(DatapathId(1)), removed);
        assert_eq!(topology.role(port(1, 1), s(100)), PortRole::Down);
    }

    #[test]
    fn made_up_links_are_bounded_and_a_port_that_goes_takes_its_own() {
        let topology = Topology::default();
        let ports: Vec<_> = (1..=1_000).map(desc).collect();
        topology.switch_ready(DatapathId(1), ports.iter(), s(0));
        // One probe comes in by every port.
        for to in 2..=1_000 {
            topology.link_heard(TopologyLink { from: port(1, 1), to: port(1, to) }, s(1));
        }
        let kept = super::LINKS_PER_PORT_MAX;
        assert_eq!((topology.links().len(), topology.links_refused()), (kept, 999 - kept as u64));
        topology.link_heard(TopologyLink { from: port(1, 998), to: port(1, 999) }, s(1));
        assert_eq!(topology.links().len(), kept + 1, "others are not disturbed");
        assert_eq!(topology.port_removed(port(1, 9)).len(), 1);
        assert_eq!(topology.port_removed(port(1, 1)).len(), kept - 1);
        assert_eq!(topology.links().len(), 1);
        topology.link_heard(TopologyLink { from: port(1, 2), to: port(1, 3) }, s(2));
        assert_eq!(topology.links().len(), 2, "there is room again");
    }

    #[test]
    fn a_port_is_an_edge_only_when_it_has_settled() {
        let topology = two_switches();
        assert_eq!(topology.role(port(1, 1), s(0)), PortRole::Settling);
        assert_eq!(topology.role(port(1, 1), STABILITY_DELAY), PortRole::Edge);
        assert_eq!(topology.role(port(1, 9), STABILITY_DELAY), PortRole::Down);
        let down = PortDesc { state: PortState::LINK_DOWN, ..desc(1) };
        topology.port_set(DatapathId(1), &down, s(10));
        assert_eq!(topology.role(port(1, 1), s(10)), PortRole::Down);
        topology.port_set(DatapathId(1), &desc(1), s(20));
        assert_eq!(topology.role(port(1, 1), s(20)), PortRole::Settling, "it flaps");
        topology.port_set(DatapathId(1), &desc(1), s(22));
        assert_eq!(
            topology.role(port(1, 1), s(20) + STABILITY_DELAY),
            PortRole::Edge,
            "no change: no wait"
        );
    }

    #[test]
    fn hosts_are_learned_move_and_are_forgotten() {
        let topology = two_switches();
        let address = Some(SeenAddress::Ipv4(Ipv4Addr::new(10, 0, 0, 1)));
        let added = topology.host_seen(seen(1, address, port(1, 1)), s(10));
        assert!(matches!(&added[..], [TopologyChange::Host(HostEvent::Up(host))]
            if host.ipv4 == [Ipv4Addr::new(10, 0, 0, 1)] && host.at == port(1, 1)));
        assert_eq!(topology.host_seen(seen(1, address, port(1, 1)), s(11)), []);
        let moved = topology.host_seen(seen(1, None, port(2, 1)), s(20));
        assert!(matches!(&moved[..], [TopologyChange::Host(HostEvent::Moved { host, from })]
            if host.at == port(2, 1) && *from == port(1, 1)));
        let flapping = topology.host_seen(seen(1, None, port(1, 1)), s(20));
        assert_eq!(flapping, [], "held for a second");
        assert_eq!(topology.place_of(mac(1)), Some(port(2, 1)));
        assert_eq!(topology.expire(&LIFETIMES, s(319)), []);
        let gone = topology.expire(&LIFETIMES, s(320));
        assert!(matches!(&gone[..], [TopologyChange::Host(HostEvent::Down(_))]));
        assert!(topology.hosts().is_empty());
    }

    #[test]
    fn a_host_behind_a_port_that_proves_to_be_a_link_was_none() {
        let topology = two_switches();
        topology.host_seen(seen(1, None, port(2, 2)), s(10));
        topology.host_seen(seen(2, None, port(2, 1)), s(10));
        topology.link_heard(TopologyLink { from: port(1, 1), to: port(2, 2) }, s(11));
        let left: Vec<_> = topology.hosts().into_iter().map(|host| host.mac).collect();
        assert_eq!(left, [mac(2)]);
    }

    #[test]
    fn made_up_addresses_fill_their_own_port_only() {
        let topology = two_switches();
        for number in 0..5_000 {
            topology.host_seen(seen(number, None, port(1, 1)), s(10));
        }
        assert_eq!(topology.hosts().len(), HOSTS_PER_PORT_MAX);
        assert_eq!(topology.hosts_refused(), 5_000 - HOSTS_PER_PORT_MAX as u64);
        topology.host_seen(seen(9_999, None, port(1, 2)), s(10));
        assert_eq!(topology.place_of(mac(9_999)), Some(port(1, 2)), "others are not disturbed");
        for number in 0..100 {
            let address = Some(SeenAddress::Ipv4(Ipv4Addr::from(0x0a00_0000 + number)));
            topology.host_seen(seen(9_999, address, port(1, 2)), s(10));
        }
        let host = topology.host(mac(9_999)).unwrap();
        assert_eq!(host.ipv4.len(), 8);
        assert_eq!(host.ipv4.last(), Some(&Ipv4Addr::new(10, 0, 0, 99)));
        let down = PortDesc { state: PortState::LINK_DOWN, ..desc(1) };
        topology.port_set(DatapathId(1), &down, s(11));
        topology.port_set(DatapathId(1), &desc(1), s(12));
        topology.host_seen(seen(1, None, port(1, 1)), s(20));
        assert_eq!(topology.hosts().len(), 2, "the port has room again");
    }
}
