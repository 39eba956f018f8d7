//! Where packets leave: ports, the reserved ports, and the controller (clauses 4.5, 5.12, 7.4.1).
//!
//! A packet never leaves by the port that it came in by, except by `IN_PORT`.

use openflow::message::{PacketIn, PacketInReason};
use openflow::{Field, MacAddr, PortNo};

use super::effect::Effect;
use super::walk::{Packet, Walk};
use crate::action_set::Origin;
use crate::counter::{Counter, DropReason};
use crate::macs::{is_link_local, is_multicast};
use crate::ports::Port;
use crate::verdict::Verdict;
use crate::verdict::{packet_in_context, packet_in_data};
use crate::vlans::{PortVlans, tag_of};

impl Walk<'_> {
    /// Sends a copy of the packet as an output action asks.
    pub(super) fn output(&mut self, packet: &Packet, port: PortNo, max_len: u16, origin: Origin) {
        let in_port = packet.meta.in_port;
        match port {
            PortNo::IN_PORT => self.send(packet, in_port),
            PortNo::ALL => self.flood(packet, |_| true, Self::send),
            PortNo::FLOOD => self.flood(packet, |port| !port.no_flood(), Self::send),
            PortNo::NORMAL => self.normal(packet),
            PortNo::TABLE => self.table(packet),
            PortNo::CONTROLLER => {
                let reason =
                    if origin.is_miss { PacketInReason::NoMatch } else { PacketInReason::Action };
                self.packet_in(packet, reason, origin, max_len);
            }
            _ if port == in_port => self.drop(DropReason::ToIngress),
            _ => self.send(packet, port),
        }
    }

    /// Sends by one port, whatever port the packet came in by.
    fn send(&mut self, packet: &Packet, number: PortNo) {
        let Some(port) = self.dp.ports().get(number) else {
            return self.drop(DropReason::NoSuchPort);
        };
        if let Some(reason) = port.refuses_tx() {
            self.effect(Effect::TxDropped(number));
            return self.drop(reason);
        }
        let queue = packet.queue;
        self.note(|| format!("leaves by port {number}"));
        self.effect(Effect::Sent { port: number, queue, bytes: packet.bytes() });
        self.give(Verdict::Output { port: number, queue, frame: packet.frame.clone() });
    }

    /// Sends by all ports that can send and are `wanted`, but for the ingress port. Ports that
    /// cannot send are not meant, so they count no drop.
    fn flood(
        &mut self,
        packet: &Packet,
        wanted: impl Fn(&Port) -> bool,
        send: impl Fn(&mut Self, &Packet, PortNo),
    ) {
        let in_port = packet.meta.in_port;
        let ports = self.dp.ports().iter().filter(|(number, port)| {
            *number != in_port && port.refuses_tx().is_none() && wanted(port)
        });
        let ports: Vec<PortNo> = ports.map(|(number, _)| number).collect();
        if ports.is_empty() {
            self.drop(DropReason::NoPortLeft);
        }
        for port in ports {
            send(self, packet, port);
        }
    }

    /// Forwards as a learning switch does (clause 4.5), within the packet's VLAN.
    fn normal(&mut self, packet: &Packet) {
        let key = packet.key();
        let address = |field| MacAddr::from_u64(u64::try_from(key.get(field)).unwrap_or(u64::MAX));
        let (src, dst) = (address(Field::EthSrc), address(Field::EthDst));
        let in_port = packet.meta.in_port;
        let tag = tag_of(&key);
        let entered = match self.dp.ports().get(in_port) {
            Some(port) => port.vlans().enters(tag),
            None => PortVlans::default().enters(tag),
        };
        let Some(vlan) = entered else { return self.drop(DropReason::NotInVlan) };
        if !is_multicast(src) && self.dp.ports().get(in_port).is_some() {
            self.effect(Effect::Learnt { station: (vlan, src), port: in_port });
        }
        if is_link_local(dst) {
            return self.drop(DropReason::Reserved);
        }
        let known = if is_multicast(dst) { None } else { self.dp.station((vlan, dst), self.now) };
        self.note(|| format!("in VLAN {vlan}"));
        match known {
            None => {
                let wanted = |port: &Port| !port.no_flood() && port.vlans().carries(vlan);
                self.flood(packet, wanted, |walk, packet, port| {
                    walk.send_in_vlan(packet, port, vlan, tag);
                });
            }
            Some(port) if port == in_port => self.drop(DropReason::ToIngress),
            Some(port) => self.send_in_vlan(packet, port, vlan, tag),
        }
    }

    /// Sends by one port with the tag that its VLANs ask for; the packet came with `tag`.
    fn send_in_vlan(&mut self, packet: &Packet, number: PortNo, vlan: u16, tag: Option<u16>) {
        let Some(port) = self.dp.ports().get(number) else { return self.send(packet, number) };
        let leaves = port.vlans().leaves(vlan);
        if !leaves.differs(tag) {
            return self.send(packet, number);
        }
        let mut copy = packet.clone();
        leaves.put(&mut copy.frame, tag);
        self.send(&copy, number);
    }

    /// Starts the pipeline for a packet-out.
    fn table(&mut self, packet: &Packet) {
        if !self.table_allowed {
            return self.drop(DropReason::ReentrantTable);
        }
        // A new packet as far as the pipeline is concerned: no metadata, no queue.
        let fresh = Packet::new(packet.frame.clone(), packet.meta.in_port);
        self.table_allowed = false;
        self.deeper(|walk| walk.pipeline(fresh));
        self.table_allowed = true;
    }

    /// Sends the packet to the controller: as it is now, without what a pending action set would
    /// still do to it (clause 7.4.1).
    pub(super) fn packet_in(
        &mut self,
        packet: &Packet,
        reason: PacketInReason,
        origin: Origin,
        max_len: u16,
    ) {
        let in_port = self.dp.ports().get(packet.meta.in_port);
        if reason == PacketInReason::NoMatch && in_port.is_some_and(Port::no_packet_in) {
            return self.drop(DropReason::NoPacketIn);
        }
        self.note(|| format!("to the controller: {}", reason.text()));
        self.effect(Effect::Count(Counter::PacketIns));
        let data = packet_in_data(&packet.frame, packet.arrived_len);
        let message = PacketIn {
            buffer_id: None,
            total_len: u16::try_from(data.len()).unwrap_or(u16::MAX),
            reason,
            table_id: origin.table_id,
            cookie: origin.cookie,
            matching: packet_in_context(&packet.meta),
            data,
        };
        self.give(Verdict::PacketIn { message, max_len });
    }
}
