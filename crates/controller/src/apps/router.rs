//! The router: IPv4 between the interfaces of a switch, with ARP, ICMP and static routes.
//!
//! In OpenFlow 1.3 every network has an entry that brings its packets to the controller, and, once
//! the next hop has answered to ARP, one above it that forwards; longer prefixes have higher
//! priorities, so that the entries choose as the routes do. 1.0 cannot decrement the TTL, without
//! which a loop never ends: there the controller forwards every packet itself. What anybody can
//! send (ARP, packets for hosts that do not exist) is kept within bounds.

mod config;
mod icmp;
mod managed;
mod neighbours;

pub use config::{RouterConfig, RouterInterface, RouterRoute};
pub use managed::{
    ManagedRouter, ManagedRouters, RouterAddress, RouterChange, RouterRefusal, RouterUpdate,
    ShownRouter, StaticRoute,
};

use super::frame::{bridged, entry, to_controller};
use super::microflow::key_of;
use crate::app::App;
use crate::switch::{Switch, delete_all};
use crate::topology::is_up;
use config::{NextHop, Routes};
use icmp::Complaint;
use neighbours::{AGE_S, Neighbours, Parcel};
use openflow::action::MAX_LEN_NO_BUFFER;
use openflow::flow::FlowMod;
use openflow::message::{AsyncConfig, PacketIn, PacketInReason, PacketOut, SwitchConfig};
use openflow::port::{PortReason, PortStatus};
use openflow::{Action, Cookie, DatapathId, Field, MacAddr, Match, Message, PortNo, Version};
use packet::build::{Arp, FrameBuilder};
use packet::header::ethernet;
use packet::{FlowKey, PacketBuf, rewrite};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Of a network of n bits: three times n above this is the entry to the controller, then that to
/// the next hop, then that back out of the ingress port.
const NETWORK_PRIORITY: u16 = 1_000;
/// Packets for the router itself and ARP.
const OWN_PRIORITY: u16 = 2_000;
/// Marks entries to next hops: "hop" in ASCII.
const HOP_COOKIE: Cookie = Cookie(0x68_6f70);
const ARP_REQUEST: u16 = 1;
const ARP_REPLY: u16 = 2;
const BROADCAST: MacAddr = MacAddr([0xff; 6]);
/// Complaints by ICMP in a second (RFC 1812, clause 4.3.2.8).
const COMPLAINTS_PER_S: u32 = 100;

/// The app.
#[derive(Debug)]
pub struct Router {
    config: Arc<RouterConfig>,
    switches: HashMap<DatapathId, OneRouter>,
}

/// The router that a switch is.
#[derive(Debug)]
struct OneRouter {
    mac: MacAddr,
    routes: Routes,
    neighbours: Neighbours,
    complaints: u32,
}

impl Router {
    /// An instance with these interfaces and routes.
    #[must_use]
    pub fn new(config: Arc<RouterConfig>) -> Self {
        Self { config, switches: HashMap::new() }
    }
}

impl App for Router {
    fn switch_ready(&mut self, sw: &mut Switch) {
        let Some(routes) = self.config.routes(sw.dpid()) else { return };
        // An address of its own for each router, locally administered.
        let mac = MacAddr::from_u64(0x0200_0000_0000 | sw.dpid().0 & 0x00ff_ffff_ffff);
        let (neighbours, complaints) = (Neighbours::default(), 0);
        let router = OneRouter { mac, routes, neighbours, complaints };
        router.install(sw);
        self.switches.insert(sw.dpid(), router);
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        self.switches.remove(&dpid);
    }

    fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        let Some(router) = self.switches.get_mut(&sw.dpid()) else { return };
        let Some(in_port) = packet_in.in_port() else { return };
        let is_whole = packet_in.data.len() >= usize::from(packet_in.total_len);
        if is_whole && bridged(&packet_in.data).is_some() {
            let key = key_of(&packet_in.data, in_port);
            if key.has(Field::ArpOp) {
                router.take_arp(sw, &key, in_port);
            } else if key.has(Field::Ipv4Dst) {
                let is_dead = packet_in.reason == PacketInReason::InvalidTtl;
                let parcel = Parcel { frame: packet_in.data.clone(), in_port };
                router.take_ipv4(sw, &key, parcel, is_dead);
            }
        }
    }

    fn port_status(&mut self, sw: &mut Switch, status: &PortStatus) {
        let Some(router) = self.switches.get_mut(&sw.dpid()) else { return };
        if status.reason == PortReason::Delete || !is_up(&status.desc) {
            let port = status.desc.port_no;
            router.neighbours.forget_port(port);
            sw.flow_mod(FlowMod { out_port: port, ..delete_all() });
        }
    }

    /// Asks again for next hops that have not answered, and gives up in the end.
    fn tick(&mut self, sw: &mut Switch) {
        let Some(router) = self.switches.get_mut(&sw.dpid()) else { return };
        router.complaints = 0;
        let (again, lost) = router.neighbours.tick(sw.now());
        for address in again {
            router.ask(sw, address);
        }
        for parcel in lost {
            router.complain(sw, &parcel, Complaint::HostUnreachable);
        }
    }
}

/// Has packets whose TTL is used up come to the controller, whole.
fn with_dead_packets(version: Version) -> Message {
    if version.has_async_config() {
        return Message::SetAsync(AsyncConfig::new([0b111, 0], [0b111, 0b111], [0b1111, 0]));
    }
    let (flags, miss_send_len) = (SwitchConfig::INVALID_TTL, MAX_LEN_NO_BUFFER);
    Message::SetConfig(SwitchConfig { flags, miss_send_len })
}

impl OneRouter {
    /// The entries to begin with.
    fn install(&self, sw: &mut Switch) {
        sw.clear_flows();
        if !sw.version().has_pipeline() {
            tracing::info!(
                "router: switch {} speaks {}, which cannot decrement a TTL: the controller \
                 forwards its packets",
                sw.dpid(),
                sw.version()
            );
            return;
        }
        // Packets whose TTL is used up come to the controller too.
        sw.send(with_dead_packets(sw.version()));
        let ether_type = |number: u16| Match::any().with(Field::EthType, number.into());
        sw.flow_mod(entry(OWN_PRIORITY, ether_type(ethernet::ARP), vec![to_controller()]));
        sw.flow_mod(entry(1, ether_type(ethernet::IPV4), vec![to_controller()]));
        for interface in self.routes.interfaces() {
            let own = u128::from(interface.address.address.to_bits());
            let own = ether_type(ethernet::IPV4).with(Field::Ipv4Dst, own);
            sw.flow_mod(entry(OWN_PRIORITY, own, vec![to_controller()]));
        }
        for network in self.routes.networks() {
            let priority = NETWORK_PRIORITY + 3 * u16::from(network.len);
            sw.flow_mod(entry(priority, network.matching(), vec![to_controller()]));
        }
    }

    fn take_arp(&mut self, sw: &mut Switch, key: &FlowKey, in_port: PortNo) {
        let Some(interface) = self.routes.interface_at(in_port) else { return };
        let (address, own) = (interface.address, interface.address.address);
        let ip = |field| Ipv4Addr::from(key.get(field) as u32);
        let (spa, tpa) = (ip(Field::ArpSpa), ip(Field::ArpTpa));
        let sha = MacAddr::from_u64(key.get(Field::ArpSha) as u64);
        // Who says an address that is not of the interface's network, or another sender than the
        // frame's, is not believed.
        let is_sender = address.holds(spa) && spa != own && is_station(sha);
        if !is_sender || key.get(Field::EthSrc) != key.get(Field::ArpSha) {
            return;
        }
        let op = key.get(Field::ArpOp);
        let is_for_us = tpa == own;
        let learned = self.neighbours.learn(spa, sha, in_port, is_for_us, sw.now());
        if learned.is_changed && sw.version().has_cookie_mask() {
            // Entries lead to where the neighbour was.
            sw.flow_mod(FlowMod { cookie: HOP_COOKIE, cookie_mask: u64::MAX, ..delete_all() });
        }
        for parcel in learned.waiting {
            let key = key_of(&parcel.frame, parcel.in_port);
            self.forward(sw, &key, parcel);
        }
        if is_for_us && op == u128::from(ARP_REQUEST) {
            let arp = Arp { op: ARP_REPLY, sha: self.mac, spa: own, tha: sha, tpa: spa };
            self.send_arp(sw, sha, arp, in_port);
        }
    }

    fn take_ipv4(&mut self, sw: &mut Switch, key: &FlowKey, parcel: Parcel, is_dead: bool) {
        if key.get(Field::EthDst) != u128::from(self.mac.to_u64()) {
            return;
        }
        let dst = Ipv4Addr::from(key.get(Field::Ipv4Dst) as u32);
        if is_dead {
            self.complain(sw, &parcel, Complaint::TimeExceeded);
        } else if self.routes.is_own(dst) {
            if let Some(frame) = icmp::echo_reply(&parcel.frame) {
                send(sw, frame, parcel.in_port);
            } else {
                self.complain(sw, &parcel, Complaint::PortUnreachable);
            }
        } else {
            self.forward(sw, key, parcel);
        }
    }

    /// Sends a packet to its next hop, when that is known; asks for it otherwise.
    fn forward(&mut self, sw: &mut Switch, key: &FlowKey, parcel: Parcel) {
        let dst = Ipv4Addr::from(key.get(Field::Ipv4Dst) as u32);
        let Some(hop) = self.routes.next_hop(dst) else {
            return self.complain(sw, &parcel, Complaint::NetUnreachable);
        };
        let Some((mac, port)) = self.neighbours.get(hop.address, sw.now()) else {
            if self.neighbours.wait(hop.address, parcel, sw.now()) {
                self.ask(sw, hop.address);
            }
            return;
        };
        let mut buf = PacketBuf::from_slice(&parcel.frame);
        if rewrite::dec_nw_ttl(&mut buf).is_err() {
            return self.complain(sw, &parcel, Complaint::TimeExceeded);
        }
        rewrite::set_field(&mut buf, Field::EthSrc, self.mac.to_u64().into());
        rewrite::set_field(&mut buf, Field::EthDst, mac.to_u64().into());
        if sw.version().has_pipeline() {
            self.install_hop(sw, hop, mac, port);
        }
        send(sw, buf.bytes().to_vec(), port);
    }

    /// The entries that send what follows the same way.
    fn install_hop(&self, sw: &mut Switch, hop: NextHop, mac: MacAddr, port: PortNo) {
        let priority = NETWORK_PRIORITY + 3 * u16::from(hop.network.len);
        let for_us = hop.network.matching().with(Field::EthDst, self.mac.to_u64().into());
        // A packet leaves by its ingress port only if it is told so by the port's other name.
        let back = for_us.clone().with(Field::InPort, port.0.into());
        for (above, matching, out) in [(1, for_us, port), (2, back, PortNo::IN_PORT)] {
            let actions = vec![
                Action::DecNwTtl,
                Action::set_field(Field::EthSrc, self.mac.to_u64().into()),
                Action::set_field(Field::EthDst, mac.to_u64().into()),
                Action::output(out),
            ];
            let (cookie, hard_timeout_s) = (HOP_COOKIE, AGE_S);
            let entry = entry(priority + above, matching, actions);
            sw.flow_mod(FlowMod { cookie, hard_timeout_s, ..entry });
        }
    }

    /// Asks who has an address, out of the interface of its network.
    fn ask(&self, sw: &mut Switch, tpa: Ipv4Addr) {
        let Some(interface) = self.routes.interface_of(tpa) else { return };
        let (sha, spa, tha) = (self.mac, interface.address.address, MacAddr::default());
        let arp = Arp { op: ARP_REQUEST, sha, spa, tha, tpa };
        self.send_arp(sw, BROADCAST, arp, interface.port());
    }

    fn send_arp(&self, sw: &mut Switch, dst: MacAddr, arp: Arp, port: PortNo) {
        let frame = FrameBuilder::ethernet(dst, self.mac).arp(arp);
        send(sw, frame.fill_to(ethernet::FRAME_MIN_LEN).build(), port);
    }

    /// Tells the sender of a packet why it went nowhere, within the rate of complaints.
    fn complain(&mut self, sw: &mut Switch, parcel: &Parcel, complaint: Complaint) {
        let Some(interface) = self.routes.interface_at(parcel.in_port) else { return };
        if self.complaints < COMPLAINTS_PER_S
            && let Some(frame) = icmp::complain(&parcel.frame, interface.address.address, complaint)
        {
            self.complaints += 1;
            send(sw, frame, parcel.in_port);
        }
    }
}

/// Sends a frame of the router's own out of a port.
fn send(sw: &mut Switch, data: Vec<u8>, port: PortNo) {
    let (in_port, actions) = (PortNo::CONTROLLER, vec![Action::output(port)]);
    sw.send(Message::PacketOut(PacketOut { buffer_id: None, in_port, actions, data }));
}

fn is_station(mac: MacAddr) -> bool {
    let [first, ..] = mac.0;
    first & 1 == 0 && mac != MacAddr::default()
}
