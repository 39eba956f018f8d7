//! Giving verdicts: what leaves by ports, goes to the controller or is dropped, and its counters.
//!
//! Every way of a packet, step by step or by a program, ends here, so that all of them count and
//! tell the same. What `NORMAL` learns is kept until the packet is done, because a packet must not
//! see what it taught itself.

use openflow::message::{PacketIn, PacketInReason};
use openflow::{Field, MacAddr, Match, PortNo, QueueId};
use packet::{Meta, PacketBuf, extract};

use super::Sink;
use super::replica::Replica;
use super::walk::Packet;
use crate::action_set::Origin;
use crate::counter::{Counter, DropReason};
use crate::macs::{Station, is_link_local, is_multicast};
use crate::ports::Port;
use crate::time::Nanos;
use crate::verdict::{packet_in_context, packet_in_data};
use crate::vlans::{PortVlans, tag_of};

/// The way out of one packet.
pub(super) struct Emit<'a, S> {
    pub(super) replica: &'a Replica,
    pub(super) sink: &'a mut S,
    pub(super) now: Nanos,
    /// Verdicts of this packet so far.
    pub(super) given: usize,
    /// What `NORMAL` saw.
    learnt: Vec<(Station, PortNo)>,
}

impl<'a, S: Sink> Emit<'a, S> {
    pub(super) fn new(replica: &'a Replica, sink: &'a mut S, now: Nanos) -> Self {
        Self { replica, sink, now, given: 0, learnt: Vec::new() }
    }

    /// Ends the packet: one without any verdict is dropped here.
    pub(super) fn close(&mut self) {
        if self.given == 0 {
            self.drop(DropReason::NoOutput);
        }
        self.given = 0;
        if !self.learnt.is_empty() {
            let (config, now) = (&self.replica.config, self.now);
            self.replica.shared().with_macs(|macs| {
                for (station, port) in self.learnt.drain(..) {
                    macs.learn(station, port, config, now);
                }
            });
        }
    }

    /// Drops the packet or a copy, for this reason.
    pub(super) fn drop(&mut self, reason: DropReason) {
        self.given += 1;
        self.replica.count_drops(reason, 1);
        self.sink.dropped(reason);
    }

    /// A copy of a frame, in a buffer of the sink's.
    pub(super) fn copy(&mut self, frame: &PacketBuf) -> PacketBuf {
        let mut copy = self.sink.spare();
        copy.assign(frame.bytes());
        copy
    }

    /// Sends a copy by one port, whatever port the packet came in by.
    pub(super) fn send(&mut self, frame: &PacketBuf, number: PortNo, queue: Option<QueueId>) {
        let Some(port) = self.replica.ports.get(number) else {
            return self.drop(DropReason::NoSuchPort);
        };
        if let Some(reason) = port.refuses_tx() {
            return self.refuse(number, reason);
        }
        let copy = self.copy(frame);
        self.hand_over(copy, number, queue);
    }

    /// Drops a packet that a port refuses to send.
    pub(super) fn refuse(&mut self, port: PortNo, reason: DropReason) {
        if let Some(cell) = self.replica.port_cell(port) {
            cell.tx_dropped.add(1);
        }
        self.drop(reason);
    }

    /// Sends a frame by a port that is known to send.
    pub(super) fn hand_over(&mut self, frame: PacketBuf, port: PortNo, queue: Option<QueueId>) {
        self.given += 1;
        self.replica.count_tx(port, queue, 1, frame.len() as u64, self.now);
        self.sink.output(port, queue, frame);
    }

    /// Sends by all ports that can send and are `wanted`, but for the ingress port. Ports that
    /// cannot send are not meant, so they count no drop.
    pub(super) fn flood(
        &mut self,
        frame: &PacketBuf,
        in_port: PortNo,
        queue: Option<QueueId>,
        wanted: impl Fn(&Port) -> bool,
    ) {
        self.flood_with(in_port, wanted, |emit, number, _| {
            let copy = emit.copy(frame);
            emit.hand_over(copy, number, queue);
        });
    }

    fn flood_with(
        &mut self,
        in_port: PortNo,
        wanted: impl Fn(&Port) -> bool,
        mut send: impl FnMut(&mut Self, PortNo, &Port),
    ) {
        let mut any = false;
        let replica = self.replica;
        for (number, port) in replica.ports.iter() {
            if number != in_port && port.refuses_tx().is_none() && wanted(port) {
                any = true;
                send(self, number, port);
            }
        }
        if !any {
            self.drop(DropReason::NoPortLeft);
        }
    }

    /// Forwards as a learning switch does (clause 4.5), within the packet's VLAN.
    pub(super) fn normal(&mut self, frame: &PacketBuf, in_port: PortNo, queue: Option<QueueId>) {
        let key = extract(frame.bytes(), &Meta::port(in_port));
        let address = |field| MacAddr::from_u64(u64::try_from(key.get(field)).unwrap_or(u64::MAX));
        let (src, dst) = (address(Field::EthSrc), address(Field::EthDst));
        let ingress = self.replica.ports.get(in_port);
        let tag = tag_of(&key);
        let entered = match ingress {
            Some(port) => port.vlans().enters(tag),
            None => PortVlans::default().enters(tag),
        };
        let Some(vlan) = entered else { return self.drop(DropReason::NotInVlan) };
        if !is_multicast(src) && ingress.is_some() {
            self.learnt.push(((vlan, src), in_port));
        }
        if is_link_local(dst) {
            return self.drop(DropReason::Reserved);
        }
        let (config, now) = (&self.replica.config, self.now);
        let known = if is_multicast(dst) {
            None
        } else {
            self.replica.shared().with_macs(|macs| macs.port((vlan, dst), config, now))
        };
        match known {
            None => {
                let wanted = |port: &Port| !port.no_flood() && port.vlans().carries(vlan);
                self.flood_with(in_port, wanted, |emit, number, port| {
                    let mut copy = emit.copy(frame);
                    port.vlans().leaves(vlan).put(&mut copy, tag);
                    emit.hand_over(copy, number, queue);
                });
            }
            Some(port) if port == in_port => self.drop(DropReason::ToIngress),
            Some(port) => self.send_in_vlan(frame, port, queue, vlan, tag),
        }
    }

    /// Sends by one port with the tag that its VLANs ask for; the frame came with `tag`.
    fn send_in_vlan(
        &mut self,
        frame: &PacketBuf,
        number: PortNo,
        queue: Option<QueueId>,
        vlan: u16,
        tag: Option<u16>,
    ) {
        let leaves = self.replica.ports.get(number).map(|port| port.vlans().leaves(vlan));
        let Some(leaves) = leaves.filter(|leaves| leaves.differs(tag)) else {
            return self.send(frame, number, queue);
        };
        let mut copy = self.copy(frame);
        leaves.put(&mut copy, tag);
        self.send(&copy, number, queue);
        self.sink.done(copy);
    }

    /// Sends the packet to the controller, as it is now (clause 7.4.1).
    pub(super) fn packet_in(
        &mut self,
        packet: &Packet,
        reason: PacketInReason,
        origin: Origin,
        max_len: u16,
    ) {
        let in_port = self.replica.ports.get(packet.meta.in_port);
        if reason == PacketInReason::NoMatch && in_port.is_some_and(Port::no_packet_in) {
            return self.drop(DropReason::NoPacketIn);
        }
        let data = packet_in_data(&packet.frame, packet.arrived_len);
        self.give_packet_in(data, packet_in_context(&packet.meta), reason, origin, max_len);
    }

    /// Sends the packet to the controller, where nothing forbids that.
    pub(super) fn give_packet_in(
        &mut self,
        data: Vec<u8>,
        matching: Match,
        reason: PacketInReason,
        origin: Origin,
        max_len: u16,
    ) {
        self.given += 1;
        self.replica.count(Counter::PacketIns, 1);
        let message = PacketIn {
            buffer_id: None,
            total_len: u16::try_from(data.len()).unwrap_or(u16::MAX),
            reason,
            table_id: origin.table_id,
            cookie: origin.cookie,
            matching,
            data,
        };
        self.sink.packet_in(message, max_len);
    }
}
