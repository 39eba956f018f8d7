//! Packets of a managed router: ARP, echo replies and complaints by ICMP, and packets
//! that go to a next hop.
//!
//! Anybody can send them. What is kept for them is bounded by [`Neighbours`], complaints by a rate,
//! and a frame that is not for the router's Ethernet address at its port is not routed.
//!
//! [`Neighbours`]: crate::apps::router::neighbours::Neighbours

use super::VlanRouter;
use super::entries::{Hop, VlanOf};
use crate::apps::config_values::NetworkPrefix;
use crate::apps::router::icmp::{self, Complaint};
use crate::apps::router::neighbours::Parcel;
use crate::apps::router::{ARP_REPLY, ARP_REQUEST, BROADCAST, COMPLAINTS_PER_S};
use crate::apps::router::{is_station, send};
use crate::switch::Switch;
use crate::topology::is_up;
use openflow::message::PacketOut;
use openflow::port::PortDesc;
use openflow::{Action, Field, MacAddr, Message, PortNo};
use packet::build::{Arp, FrameBuilder};
use packet::header::ethernet;
use packet::{FlowKey, PacketBuf, rewrite};
use std::net::Ipv4Addr;

/// A frame of a VLAN that came to the controller.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) frame: Vec<u8>,
    pub(super) in_port: PortNo,
    pub(super) vlan: u16,
    /// Its TTL is used up.
    pub(super) is_dead: bool,
}

fn ipv4(key: &FlowKey, field: Field) -> Ipv4Addr {
    Ipv4Addr::from(key.get(field) as u32)
}

/// The router's Ethernet address at a port.
fn own_mac(sw: &Switch, port: PortNo) -> Option<MacAddr> {
    sw.ports().get(&port).map(|port| port.hw_addr)
}

/// An ARP packet of a VLAN.
fn arp_frame(vlan: u16, dst: MacAddr, arp: Arp) -> Vec<u8> {
    let frame = FrameBuilder::ethernet(dst, arp.sha);
    let frame = if vlan == 0 { frame } else { frame.vlan(0, vlan) };
    frame.arp(arp).fill_to(ethernet::FRAME_MIN_LEN).build()
}

/// Questions for an address, out of every port that is up but one.
pub(super) fn arp_questions<'a>(
    vlan: u16,
    ports: impl Iterator<Item = &'a PortDesc>,
    spa: Ipv4Addr,
    tpa: Ipv4Addr,
    but: Option<PortNo>,
) -> Vec<Message> {
    let real = ports.filter(|port| port.port_no.is_port() && port.port_no != PortNo::LOCAL);
    real.filter(|port| is_up(port) && Some(port.port_no) != but)
        .map(|port| {
            let tha = MacAddr::default();
            let arp = Arp { op: ARP_REQUEST, sha: port.hw_addr, spa, tha, tpa };
            Message::PacketOut(PacketOut {
                buffer_id: None,
                in_port: PortNo::CONTROLLER,
                actions: vec![Action::output(port.port_no)],
                data: arp_frame(vlan, BROADCAST, arp),
            })
        })
        .collect()
}

impl VlanRouter {
    /// Once a second.
    pub(super) fn tick(&mut self, sw: &mut Switch, vlan: u16) {
        self.complaints = 0;
        let (again, lost) = self.neighbours.tick(sw.now());
        for address in again {
            self.ask(sw, vlan, address, None);
        }
        for Parcel { frame, in_port } in lost {
            let seen = Seen { frame, in_port, vlan, is_dead: false };
            self.complain(sw, &seen, Complaint::HostUnreachable);
        }
        self.seconds += 1;
        if self.seconds >= super::GATEWAYS_S {
            self.seconds = 0;
            self.ask_gateways(sw, vlan);
        }
    }

    /// Asks for the gateways that have not been heard.
    pub(super) fn ask_gateways(&self, sw: &mut Switch, vlan: u16) {
        for gateway in self.table.silent_gateways() {
            self.ask(sw, vlan, gateway, None);
        }
    }

    fn ask(&self, sw: &mut Switch, vlan: u16, tpa: Ipv4Addr, but: Option<PortNo>) {
        let Some(side) = self.table.address_of(tpa) else { return };
        let spa = side.address.address;
        for question in arp_questions(vlan, sw.ports().values(), spa, tpa, but) {
            sw.send(question);
        }
    }

    pub(super) fn take_arp(&mut self, sw: &mut Switch, key: &FlowKey, seen: &Seen) {
        let (spa, tpa) = (ipv4(key, Field::ArpSpa), ipv4(key, Field::ArpTpa));
        let sha = MacAddr::from_u64(key.get(Field::ArpSha) as u64);
        let Some(side) = self.table.address_of(spa) else { return };
        // Who says the router's own address, or another sender than the frame's, is not believed.
        let is_sender = !self.table.is_own(spa) && is_station(sha);
        if !is_sender || key.get(Field::EthSrc) != key.get(Field::ArpSha) {
            return;
        }
        let (in_port, vlan) = (seen.in_port, seen.vlan);
        let is_for_us = self.table.is_own(tpa);
        let is_gateway = self.table.hear_gateway(spa, sha, in_port);
        let learned = self.neighbours.learn(spa, sha, in_port, is_for_us || is_gateway, sw.now());
        if learned.is_changed && sw.version().has_pipeline() {
            // Entries lead to where the neighbour was.
            sw.flow_mod(VlanOf(vlan).delete_hosts(&side));
            for route in self.table.routes().iter().filter(|route| route.via == spa) {
                sw.flow_mod(VlanOf(vlan).delete_gateway(route));
            }
        }
        for Parcel { frame, in_port } in learned.waiting {
            self.forward(sw, Seen { frame, in_port, vlan, is_dead: false });
        }
        if is_for_us {
            if let Some(own) = own_mac(sw, in_port)
                && key.get(Field::ArpOp) == u128::from(ARP_REQUEST)
            {
                let arp = Arp { op: ARP_REPLY, sha: own, spa: tpa, tha: sha, tpa: spa };
                send(sw, arp_frame(vlan, sha, arp), in_port);
            }
        } else if spa == tpa || side.address.holds(tpa) {
            // Hosts of one network ask each other, and say that they are there.
            let (actions, data) = (vec![Action::output(PortNo::NORMAL)], seen.frame.clone());
            sw.send(Message::PacketOut(PacketOut { buffer_id: None, in_port, actions, data }));
        }
    }

    pub(super) fn take_ipv4(&mut self, sw: &mut Switch, key: &FlowKey, seen: Seen) {
        let eth_dst = MacAddr::from_u64(key.get(Field::EthDst) as u64);
        if !sw.ports().values().any(|port| port.hw_addr == eth_dst) {
            return;
        }
        if seen.is_dead {
            self.complain(sw, &seen, Complaint::TimeExceeded);
        } else if !self.table.is_own(ipv4(key, Field::Ipv4Dst)) {
            self.forward(sw, seen);
        } else if let Some(reply) = untagged(&seen).and_then(|frame| icmp::echo_reply(&frame)) {
            send(sw, tagged(reply, seen.vlan), seen.in_port);
        } else {
            self.complain(sw, &seen, Complaint::PortUnreachable);
        }
    }

    /// Sends a packet to its next hop, when that is known; asks for it otherwise.
    fn forward(&mut self, sw: &mut Switch, seen: Seen) {
        let key = crate::apps::microflow::key_of(&seen.frame, seen.in_port);
        let dst = ipv4(&key, Field::Ipv4Dst);
        let (side, route) = (self.table.address_of(dst), self.table.route_of(dst));
        let next = match (side, route) {
            (Some(_), _) => dst,
            (None, Some(route)) => route.via,
            (None, None) => return self.complain(sw, &seen, Complaint::NetUnreachable),
        };
        let Some((mac, port)) = self.neighbours.get(next, sw.now()) else {
            let Seen { frame, in_port, vlan, .. } = seen;
            if self.neighbours.wait(next, Parcel { frame, in_port }, sw.now()) {
                self.ask(sw, vlan, next, Some(in_port));
            }
            return;
        };
        let Some(own) = own_mac(sw, port) else { return };
        let mut buf = PacketBuf::from_slice(&seen.frame);
        if rewrite::dec_nw_ttl(&mut buf).is_err() {
            return self.complain(sw, &seen, Complaint::TimeExceeded);
        }
        rewrite::set_field(&mut buf, Field::EthSrc, own.to_u64().into());
        rewrite::set_field(&mut buf, Field::EthDst, mac.to_u64().into());
        if sw.version().has_pipeline() {
            let (of, hop) = (VlanOf(seen.vlan), Hop { own, mac, port });
            let entries = match (side, route) {
                (Some(side), _) => {
                    Some(of.to_host(&side, NetworkPrefix { address: dst, len: 32 }, &hop))
                }
                (None, route) => route.map(|route| of.to_gateway(&route, &hop)),
            };
            for entry in entries.into_iter().flatten() {
                sw.flow_mod(entry);
            }
        }
        send(sw, buf.bytes().to_vec(), port);
    }

    /// The router's address on the side where a packet comes from.
    fn side_of(&self, seen: &Seen) -> Option<Ipv4Addr> {
        let key = crate::apps::microflow::key_of(&seen.frame, seen.in_port);
        let src = ipv4(&key, Field::Ipv4Src);
        let eth_src = MacAddr::from_u64(key.get(Field::EthSrc) as u64);
        let by_gateway = || {
            let is_from = |at: Option<(MacAddr, PortNo)>| at.is_some_and(|(mac, _)| mac == eth_src);
            let route = self.table.routes().iter().find(|route| is_from(route.heard_at))?;
            self.table.address_of(route.via)
        };
        self.table.address_of(src).or_else(by_gateway).map(|side| side.address.address)
    }

    /// Tells the sender of a packet why it went nowhere, within the rate of complaints.
    fn complain(&mut self, sw: &mut Switch, seen: &Seen, complaint: Complaint) {
        let Some(from) = self.side_of(seen).filter(|_| self.complaints < COMPLAINTS_PER_S) else {
            return;
        };
        if let Some(frame) =
            untagged(seen).and_then(|frame| icmp::complain(&frame, from, complaint))
        {
            self.complaints += 1;
            send(sw, tagged(frame, seen.vlan), seen.in_port);
        }
    }
}

/// The frame without its VLAN tag.
fn untagged(seen: &Seen) -> Option<Vec<u8>> {
    let mut buf = PacketBuf::from_slice(&seen.frame);
    (seen.vlan == 0 || rewrite::pop_vlan(&mut buf)).then(|| buf.bytes().to_vec())
}

/// The frame with the tag of a VLAN.
fn tagged(frame: Vec<u8>, vlan: u16) -> Vec<u8> {
    if vlan == 0 {
        return frame;
    }
    let mut buf = PacketBuf::from_slice(&frame);
    rewrite::push_vlan(&mut buf, 0x8100);
    rewrite::set_field(&mut buf, Field::VlanVid, (0x1000 | vlan).into());
    buf.bytes().to_vec()
}
