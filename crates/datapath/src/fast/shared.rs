//! State shared by forwarders and control: counters, the addresses that `NORMAL` has learnt, and
//! which of them have moved.
//!
//! Every counter has one writer, a forwarder, and is read by control, so a relaxed load and a
//! relaxed store count exactly and cost no more than in a plain variable. What orders them is
//! `flushed`: a forwarder stores the number of a flush there after every count from before it. When
//! an op is applied is not known here: the agent learns it from the shards by barriers. No
//! forwarder may write what belongs to another, and control writes an entry's counters only while
//! no forwarder knows the entry.

mod cells;
mod entries;
#[cfg(all(test, feature = "loom"))]
mod model;
mod moves;
mod sync;

use std::sync::{Mutex, PoisonError};

use openflow::{PortNo, TableId};

pub(crate) use self::cells::{Cell, GroupCounters, PortCell, PortCounters, QueueCounters};
pub(crate) use self::entries::{Counts, Entries, MAX_ENTRIES, TaughtTimes};
pub(crate) use self::moves::{Moves, SeenMoves, slot_of};
use self::sync::{AtomicU64, Ordering};
use super::ids::{EntryId, Ticket};
use super::learning::WAITING_MAX;
use super::op::Used;
use crate::config::DatapathConfig;
use crate::counter::{Counter, DatapathCounters, DropReason};
use crate::macs::{Macs, Station};
use crate::reassembly::Reassembler;
use crate::time::Nanos;

/// The counters of all forwarders of a datapath.
#[derive(Debug)]
pub(crate) struct Shared {
    forwarders: Box<[ForwarderCounters]>,
    taught: TaughtTimes,
    /// Entries that packets have taught and control has not looked at.
    learnings: AtomicU64,
    macs: Mutex<Macs>,
    moves: Moves,
    reassembler: Mutex<Reassembler>,
}

impl Shared {
    /// For `forwarders` forwarders (at least one) of a datapath of this size.
    pub(crate) fn new(forwarders: usize, config: &DatapathConfig) -> Self {
        let counters = || ForwarderCounters::new(config);
        let forwarders = (0..forwarders.max(1)).map(|_| counters()).collect();
        let (macs, moves) = (Mutex::default(), Moves::default());
        Self {
            forwarders,
            taught: TaughtTimes::new(),
            learnings: AtomicU64::new(0),
            macs,
            moves,
            reassembler: Mutex::default(),
        }
    }

    /// Number of forwarders.
    pub(crate) fn forwarders(&self) -> usize {
        self.forwarders.len()
    }

    /// The counters that the forwarder of this number writes.
    ///
    /// # Panics
    /// When there is no such forwarder.
    pub(crate) fn of_forwarder(&self, forwarder: usize) -> &ForwarderCounters {
        &self.forwarders[forwarder]
    }

    /// Runs `inner` on the addresses that `NORMAL` knows.
    pub(crate) fn with_macs<T>(&self, inner: impl FnOnce(&mut Macs) -> T) -> T {
        inner(&mut self.macs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Learns where stations are; how many of them were at another port before.
    pub(crate) fn learn(
        &self,
        learnt: impl Iterator<Item = (Station, PortNo)>,
        config: &DatapathConfig,
        now: Nanos,
    ) -> u64 {
        self.with_macs(|macs| {
            let moved = learnt.filter(|(station, port)| {
                let moved = macs.learn(*station, *port, config, now);
                if moved {
                    self.moves.note(*station);
                }
                moved
            });
            moved.count() as u64
        })
    }

    /// The moves of stations.
    pub(crate) fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Runs `inner` on the fragments that are kept: those of one packet may come to several
    /// forwarders.
    pub(crate) fn with_reassembler<T>(&self, inner: impl FnOnce(&mut Reassembler) -> T) -> T {
        inner(&mut self.reassembler.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of the last flush that every forwarder has done.
    pub(crate) fn flushed(&self) -> Ticket {
        let flushed = self.forwarders.iter().map(ForwarderCounters::flushed).min();
        flushed.unwrap_or_default()
    }

    /// Counts of an entry by all forwarders, so far as they are flushed.
    pub(crate) fn entry(&self, id: EntryId) -> Counts {
        let counts = self.forwarders.iter().map(|counters| counters.entries.read(id));
        counts.fold(Counts::default(), Counts::plus)
    }

    /// When any forwarder last used an entry.
    pub(crate) fn last_used(&self, id: EntryId) -> Nanos {
        let used = self.forwarders.iter().map(|counters| counters.entries.last_used(id)).max();
        used.unwrap_or_default()
    }

    /// When an entry was used, as far as its end hangs on that.
    #[inline]
    pub(crate) fn used(&self, id: EntryId) -> Used {
        Used { last: self.last_used(id), taught: self.taught.get(id) }
    }

    /// Notes that a packet has taught an entry.
    pub(crate) fn renew(&self, id: EntryId, now: Nanos) {
        self.taught.raise(id, now);
    }

    /// Whether another entry that a packet teaches may wait for control; it does from now on.
    pub(crate) fn learning_waits(&self) -> bool {
        let more = |waiting| (waiting < WAITING_MAX).then_some(waiting + 1);
        self.learnings.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Control has looked at an entry that waited.
    pub(crate) fn learning_done(&self) {
        self.learnings.fetch_sub(1, Ordering::Relaxed);
    }

    /// Makes an entry's counters begin at zero. No forwarder may know the entry.
    pub(crate) fn clear_entry(&self, id: EntryId, last_used: Nanos) {
        self.taught.clear(id);
        for counters in &self.forwarders {
            counters.entries.clear(id, last_used);
        }
    }

    /// Makes an entry's counters begin at these. No forwarder may know the entry.
    pub(crate) fn restore_entry(&self, id: EntryId, counts: Counts, last_used: Nanos) {
        self.clear_entry(id, last_used);
        if let Some(first) = self.forwarders.first() {
            first.entries.add(id, counts.packets, counts.bytes);
        }
    }

    /// Lookups and matches of a table.
    pub(crate) fn table(&self, table: TableId) -> (u64, u64) {
        let tables = self.forwarders.iter().filter_map(|counters| counters.table(table));
        tables.fold((0, 0), |(lookups, matches), table| {
            (lookups.wrapping_add(table.lookups.get()), matches.wrapping_add(table.matches.get()))
        })
    }

    /// Adds what the forwarders count as a whole.
    pub(crate) fn add_counters(&self, counters: &mut DatapathCounters) {
        for of_one in &self.forwarders {
            of_one.add_to(counters);
        }
    }
}

/// The counters that one forwarder writes; on lines of their own, as another forwarder's stand
/// beside them.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct ForwarderCounters {
    /// Counts of flow entries.
    pub(crate) entries: Entries,
    tables: Box<[TableCell]>,
    counts: [Cell; Counter::ALL.len()],
    drops: [Cell; DropReason::ALL.len()],
    /// Number of stations that it has seen move; the other shards are rung then.
    pub(crate) stations_moved: Cell,
    flushed: AtomicU64,
}

/// Counters of a flow table.
#[derive(Debug, Default)]
pub(crate) struct TableCell {
    pub(crate) lookups: Cell,
    pub(crate) matches: Cell,
}

impl ForwarderCounters {
    fn new(config: &DatapathConfig) -> Self {
        Self {
            entries: Entries::new(),
            tables: (0..config.n_tables.max(1)).map(|_| TableCell::default()).collect(),
            counts: std::array::from_fn(|_| Cell::default()),
            drops: std::array::from_fn(|_| Cell::default()),
            stations_moved: Cell::default(),
            flushed: AtomicU64::new(0),
        }
    }

    /// A table's counters.
    #[inline]
    pub(crate) fn table(&self, table: TableId) -> Option<&TableCell> {
        self.tables.get(usize::from(table.0))
    }

    /// Adds to a counter of the datapath.
    #[inline]
    pub(crate) fn add(&self, counter: Counter, amount: u64) {
        self.counts[counter as usize].add(amount);
    }

    /// Counts drops under their reason and in the sum.
    #[inline]
    pub(crate) fn add_drops(&self, reason: DropReason, amount: u64) {
        self.drops[reason as usize].add(amount);
        self.add(Counter::Drops, amount);
    }

    fn add_to(&self, counters: &mut DatapathCounters) {
        for (counter, cell) in Counter::ALL.iter().zip(&self.counts) {
            // The sum of drops is made again from the reasons.
            if *counter != Counter::Drops {
                counters.add(*counter, cell.get());
            }
        }
        for (reason, cell) in DropReason::ALL.iter().zip(&self.drops) {
            counters.add_drops(*reason, cell.get());
        }
    }

    /// Records that the shared counters have all counts from before this op.
    pub(crate) fn set_flushed(&self, ticket: Ticket) {
        self.flushed.store(ticket.0, Ordering::Release);
    }

    /// The last flush that is done.
    pub(crate) fn flushed(&self) -> Ticket {
        Ticket(self.flushed.load(Ordering::Acquire))
    }
}
