//! The effects of a packet on counters, meters and learnt addresses. They are recorded first and
//! carried out afterwards, so that no half of them can be seen.

use std::collections::BTreeMap;

use openflow::flow::FlowMod;
use openflow::{GroupId, MeterId, PortNo, QueueId, TableId};

use super::Reference;
use crate::action_set::FinTimeouts;
use crate::counter::{Counter, DropReason};
use crate::macs::Station;
use crate::meters::{Metered, TokenBucket};
use crate::time::Nanos;

/// One change.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    /// A datapath counter goes up by one.
    Count(Counter),
    /// A packet or a copy was dropped.
    Drop(DropReason),
    /// A packet came in by a port.
    Received { port: PortNo, bytes: u64 },
    /// A port refused to take a packet in.
    RxDropped(PortNo),
    /// A packet leaves by a port.
    Sent { port: PortNo, queue: Option<QueueId>, bytes: u64 },
    /// A port refused to send a packet.
    TxDropped(PortNo),
    /// A table was searched.
    Lookup(TableId),
    /// The entry at this place of a table was matched.
    Hit { table: TableId, index: usize, bytes: u64 },
    /// A group ran.
    Group { id: GroupId, bytes: u64 },
    /// A bucket of a group ran.
    Bucket { id: GroupId, index: usize, bytes: u64 },
    /// A meter measured a packet.
    Metered { id: MeterId, bytes: u64, metered: Metered },
    /// `NORMAL` saw a station behind a port.
    Learnt { station: Station, port: PortNo },
    /// A packet taught an entry.
    Taught(Box<FlowMod>),
    /// The entry of this age has at most these timeouts.
    Shortened { table: TableId, seq: u64, timeouts: FinTimeouts },
}

/// The changes of one packet, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    list: Vec<Effect>,
    /// A packet can pass one meter twice; the second time it finds the bucket as the first left it.
    meters: BTreeMap<MeterId, Vec<TokenBucket>>,
}

impl Effects {
    pub(super) fn push(&mut self, effect: Effect) {
        if let Effect::Metered { id, metered, .. } = &effect {
            self.meters.insert(*id, metered.buckets.clone());
        }
        // A packet teaches an entry once, however often it does.
        if let Effect::Taught(entry) = &effect {
            let is_it = |known: &Effect| matches!(known, Effect::Taught(known) if known == entry);
            if self.list.iter().any(is_it) {
                return;
            }
        }
        self.list.push(effect);
    }

    /// Takes back all that is about verdicts: nothing has left, and nothing was dropped.
    pub(super) fn withdraw(&mut self) {
        self.list.retain(|effect| match effect {
            Effect::Sent { .. }
            | Effect::TxDropped(_)
            | Effect::Drop(_)
            | Effect::Count(Counter::PacketIns) => false,
            Effect::Count(_)
            | Effect::Received { .. }
            | Effect::RxDropped(_)
            | Effect::Lookup(_)
            | Effect::Hit { .. }
            | Effect::Group { .. }
            | Effect::Bucket { .. }
            | Effect::Metered { .. }
            | Effect::Taught(_)
            | Effect::Shortened { .. }
            | Effect::Learnt { .. } => true,
        });
    }

    /// Takes out the changes of entries: those that the packet has taught, and timeouts.
    pub(super) fn take_taught(&mut self) -> Self {
        let is_taught =
            |effect: &Effect| matches!(effect, Effect::Taught(_) | Effect::Shortened { .. });
        let (taught, others) = std::mem::take(&mut self.list).into_iter().partition(is_taught);
        self.list = others;
        Self { list: taught, meters: BTreeMap::new() }
    }

    /// A meter's buckets after what was written down so far.
    pub(super) fn buckets(&self, id: MeterId) -> Option<&[TokenBucket]> {
        self.meters.get(&id).map(Vec::as_slice)
    }
}

impl Reference {
    /// Carries out what a packet's run has listed.
    pub(super) fn commit(&mut self, mut effects: Effects, now: Nanos) {
        // Entries that the packet has matched are counted at their places before any changes them.
        let taught = effects.take_taught();
        for effect in effects.list.into_iter().chain(taught.list) {
            self.carry_out(effect, now);
        }
    }

    fn carry_out(&mut self, effect: Effect, now: Nanos) {
        match effect {
            Effect::Count(counter) => self.counters.add(counter, 1),
            Effect::Drop(reason) => self.counters.add_drop(reason),
            Effect::Received { port, bytes } => self.ports.count_rx(port, bytes),
            Effect::RxDropped(port) => self.ports.count_rx_dropped(port),
            Effect::Sent { port, queue, bytes } => {
                self.ports.count_tx(port, queue, bytes, now);
                self.counters.add(Counter::Outputs, 1);
            }
            Effect::TxDropped(port) => self.ports.count_tx_dropped(port),
            Effect::Lookup(table) => {
                if let Some(table) = self.tables.get_mut(usize::from(table.0)) {
                    table.lookups += 1;
                }
            }
            Effect::Hit { table, index, bytes } => {
                if let Some(table) = self.tables.get_mut(usize::from(table.0)) {
                    table.matches += 1;
                    if let Some(entry) = table.get_mut(index) {
                        entry.count(bytes, now);
                    }
                }
            }
            Effect::Group { id, bytes } => {
                if let Some(group) = self.groups.get_mut(id) {
                    group.count(bytes);
                }
            }
            Effect::Bucket { id, index, bytes } => {
                if let Some(group) = self.groups.get_mut(id) {
                    group.count_bucket(index, bytes);
                }
            }
            Effect::Metered { id, bytes, metered } => {
                if let Some(meter) = self.meters.get_mut(id) {
                    meter.count(bytes, metered);
                }
            }
            Effect::Learnt { station, port } => {
                self.macs.learn(station, port, &self.config, now);
            }
            Effect::Taught(flow_mod) => self.learn(&flow_mod, now),
            Effect::Shortened { table, seq, timeouts } => {
                let entries = self.tables.get_mut(usize::from(table.0));
                let mut entries = entries.into_iter().flat_map(|table| table.entries_mut());
                if let Some(entry) = entries.find(|entry| entry.seq == seq) {
                    (entry.idle_timeout_s, entry.hard_timeout_s) =
                        timeouts.of(entry.idle_timeout_s, entry.hard_timeout_s);
                }
            }
        }
    }
}
