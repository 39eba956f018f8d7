//! Emission of verdicts (output, packet-in, drop), and their counters.
//!
//! Every way of a packet, step by step or by a program, ends here, so that all of them count and
//! report the same. It is the interpreter's target that forwards now. What `NORMAL` learns is kept
//! until the packet is done, because a packet must not see what it taught itself.

use std::sync::PoisonError;

use openflow::message::PacketIn;
use openflow::meter::BandKind;
use openflow::{Action, GroupId, Learn, Match, MeterId, PortNo, QueueId, TableId};
use packet::PacketBuf;

use super::Sink;
use super::replica::{Found, Replica};
use crate::action_set::{EntryRef, FinTimeouts};
use crate::counter::{Counter, DropReason};
use crate::fast::ids::EntryId;
use crate::fast::interpreter::{
    Executed, MatchedEntry, Packet, Stations, Surroundings, Target, WalkFlow, forward_as_switch,
};
use crate::groups::Group;
use crate::macs::Station;
use crate::time::Nanos;
use crate::verdict::{HandUp, packet_in_context, packet_in_data};

/// A verdict that may be taken back.
enum Held {
    Output(PacketBuf, PortNo, Option<QueueId>),
    PacketIn(PacketIn, u16),
    Drop(DropReason),
    Refuse(PortNo, DropReason),
}

/// The way out of one packet.
pub(super) struct Emit<'a, S> {
    pub(super) replica: &'a Replica,
    pub(super) sink: &'a mut S,
    pub(super) now: Nanos,
    /// Number of packets that a wire would carry for it.
    pub(super) stands_for: u64,
    /// The stations that `NORMAL` saw.
    learnt: Vec<(Station, PortNo)>,
    /// The mirrors that the packet has been sent to.
    pub(super) mirrored: u32,
    /// The verdicts so far, where they may be taken back.
    held: Option<Vec<Held>>,
}

impl<'a, S: Sink> Emit<'a, S> {
    pub(super) fn new(replica: &'a Replica, sink: &'a mut S, now: Nanos) -> Self {
        Self { replica, sink, now, stands_for: 1, learnt: Vec::new(), mirrored: 0, held: None }
    }

    /// The same for a packet that goes step by step, whose verdicts may be taken back.
    pub(super) fn step_by_step(replica: &'a Replica, sink: &'a mut S, now: Nanos) -> Self {
        Self { held: Some(Vec::new()), ..Self::new(replica, sink, now) }
    }

    /// Ends the packet: it gets its verdicts, and what `NORMAL` saw of it holds from here on.
    pub(super) fn close(&mut self) {
        for held in self.held.take().into_iter().flatten() {
            match held {
                Held::Output(frame, port, queue) => self.hand_over(frame, port, queue),
                Held::PacketIn(message, max_len) => self.hand_up(message, max_len),
                Held::Drop(reason) => self.drop(reason),
                Held::Refuse(port, reason) => self.refuse(port, reason),
            }
        }
        if !self.learnt.is_empty() {
            self.replica.learn(self.learnt.drain(..), self.now);
        }
    }

    /// Drops the packet or a copy, for this reason.
    pub(super) fn drop(&mut self, reason: DropReason) {
        if let Some(held) = &mut self.held {
            return held.push(Held::Drop(reason));
        }
        self.replica.count_drops(reason, self.stands_for);
        self.sink.dropped(reason);
    }

    /// A copy of a frame, in a buffer of the sink's.
    pub(super) fn copy(&mut self, frame: &PacketBuf) -> PacketBuf {
        if let Some(offload) = frame.offload() {
            let is_whole = offload.segment_len != 0;
            let mut copy = if is_whole { self.sink.spare_large() } else { self.sink.spare() };
            copy.assign(frame.bytes());
            // Memory of a driver's has no place for it.
            return if copy.set_offload(Some(offload)) { copy } else { frame.clone() };
        }
        let mut copy = self.sink.spare();
        copy.assign(frame.bytes());
        copy
    }

    /// Drops a packet that a port refuses to send.
    pub(super) fn refuse(&mut self, port: PortNo, reason: DropReason) {
        if let Some(held) = &mut self.held {
            return held.push(Held::Refuse(port, reason));
        }
        if let Some(cell) = self.replica.port_cell(port) {
            cell.tx_dropped.add(self.stands_for);
        }
        self.drop(reason);
    }

    /// Sends a frame by a port that is known to send.
    pub(super) fn hand_over(&mut self, frame: PacketBuf, port: PortNo, queue: Option<QueueId>) {
        if let Some(held) = &mut self.held {
            return held.push(Held::Output(frame, port, queue));
        }
        let (packets, bytes) = frame.on_wire();
        self.replica.count_tx(port, queue, packets, bytes, self.now);
        self.sink.output(port, queue, frame);
    }

    /// Sends the packet to the controller, where nothing forbids that.
    pub(super) fn give_packet_in(&mut self, data: Vec<u8>, matching: Match, hand_up: &HandUp) {
        self.hand_up(hand_up.message(data, matching), hand_up.max_len);
    }

    fn hand_up(&mut self, message: PacketIn, max_len: u16) {
        if let Some(held) = &mut self.held {
            return held.push(Held::PacketIn(message, max_len));
        }
        self.replica.count(Counter::PacketIns, 1);
        self.sink.packet_in(message, max_len);
    }
}

impl<'a, S: Sink> Target<'a> for Emit<'a, S> {
    fn surroundings(&self) -> Surroundings<'a> {
        self.replica.surroundings()
    }

    fn lookup(&mut self, table: TableId, packet: &Packet) -> Option<MatchedEntry<'a>> {
        let replica = self.replica;
        let found = replica.lookup(table, &mut packet.key(), self.now);
        let Some(Found { id, entry, .. }) = found else {
            replica.count_miss(table, 1);
            return None;
        };
        replica.count_hit(table, id, 1, packet.bytes());
        replica.touch(id, entry.life, self.now);
        Some(MatchedEntry { instructions: entry.summary.instructions(), origin: entry.origin })
    }

    fn meter(&mut self, id: MeterId, packet: &Packet) -> Option<(usize, BandKind)> {
        let mut meter = self.replica.meter(id)?.lock().unwrap_or_else(PoisonError::into_inner);
        meter.pass(packet.bytes(), self.now)
    }

    fn execute(&mut self, packet: &mut Packet, action: &Action) -> WalkFlow<Executed> {
        let executed = packet.execute(action);
        if executed == Executed::Rewritten(false) {
            self.replica.count(Counter::ActionsWithoutEffect, 1);
        }
        WalkFlow::Continue(executed)
    }

    fn teach(&mut self, packet: &Packet, learn: &Learn) -> WalkFlow {
        let learning = self.replica.learning(learn.flow_mod(|field| packet.key().get(field)));
        self.replica.teach(&learning, self.now);
        WalkFlow::Continue(())
    }

    fn shorten(&mut self, packet: &Packet, entry: EntryRef, timeouts: FinTimeouts) -> WalkFlow {
        if let Some(number) = entry.0.filter(|_| packet.ends_connection()) {
            self.replica.shorten(EntryId(number as u32), timeouts, self.now);
        }
        WalkFlow::Continue(())
    }

    fn enter_group(&mut self, id: GroupId, _group: &Group, packet: &Packet) -> WalkFlow {
        self.replica.count_group(id, 1, packet.bytes());
        WalkFlow::Continue(())
    }

    fn begin_clone(&mut self, packet: &Packet, _copies: usize) -> WalkFlow<Packet> {
        let frame = self.copy(&packet.frame);
        WalkFlow::Continue(packet.with_frame(frame))
    }

    fn begin_bucket(
        &mut self,
        id: GroupId,
        index: usize,
        packet: &Packet,
        copies: usize,
    ) -> WalkFlow<Packet> {
        self.replica.count_bucket(id, index, 1, packet.bytes());
        self.begin_clone(packet, copies)
    }

    fn end_bucket(&mut self, copy: Packet) {
        self.sink.done(copy.frame);
    }

    fn fresh(&mut self, packet: &Packet) -> Packet {
        Packet::new(self.copy(&packet.frame), packet.meta.in_port)
    }

    fn discard(&mut self, packet: Packet) {
        self.sink.done(packet.frame);
    }

    fn output(&mut self, packet: &Packet, port: PortNo, queue: Option<QueueId>) {
        let copy = self.copy(&packet.frame);
        self.hand_over(copy, port, queue);
    }

    fn normal(&mut self, packet: &Packet, queue: Option<QueueId>) -> WalkFlow {
        forward_as_switch(self, packet, queue)
    }

    fn packet_in(&mut self, packet: &Packet, hand_up: &HandUp) {
        let data = packet_in_data(&packet.frame, packet.arrived_len);
        self.give_packet_in(data, packet_in_context(&packet.meta), hand_up);
    }

    fn mirrored(&mut self) -> &mut u32 {
        &mut self.mirrored
    }

    fn withdraw(&mut self) -> WalkFlow {
        for held in self.held.iter_mut().flat_map(std::mem::take) {
            if let Held::Output(frame, ..) = held {
                self.sink.done(frame);
            }
        }
        WalkFlow::Continue(())
    }

    fn drop(&mut self, reason: DropReason) {
        Emit::drop(self, reason);
    }

    fn refuse(&mut self, port: PortNo, reason: DropReason) {
        Emit::refuse(self, port, reason);
    }
}

impl<'a, S: Sink> Stations<'a> for Emit<'a, S> {
    fn port_of(&mut self, station: Station) -> WalkFlow<Option<PortNo>> {
        WalkFlow::Continue(self.replica.port_of(station, self.now))
    }

    fn learn(&mut self, station: Station, port: PortNo) {
        self.learnt.push((station, port));
    }
}
