//! Flow entries by number, 64 bytes each: everything but match, instructions and counters.
//!
//! Chunks never move and numbers are stable, so that a list that is made in pieces can go on where
//! it stopped. A number is free again only when the remover of the entry gives it back.

use openflow::flow::{FlowModFlags, FlowRemovedReason};
use openflow::{Cookie, TableId};

use super::index::NONE;
use super::setup::Setup;
use crate::action_set::{EntryRef, Origin};
use crate::fast::ids::EntryId;
use crate::fast::op::{Life, Used};
use crate::precedence::{EntryRank, Precedence};
use crate::time::Nanos;

const CHUNK: usize = 4_096;

/// A flow entry.
#[derive(Clone, Debug)]
pub(super) struct StoredEntry {
    pub(super) cookie: Cookie,
    pub(super) created: Nanos,
    /// Age among entries of equal precedence. Replacing an entry keeps it.
    pub(super) seq: u64,
    /// The tuple that holds its match; [`NONE`] for no entry.
    pub(super) tuple: u32,
    /// Its place there.
    pub(super) at: u32,
    /// The next entry with an equal match in the same table.
    pub(super) next_same: u32,
    pub(super) instruction_list: u32,
    /// Neighbours in the list of those that use the instruction list, if that has one.
    pub(super) prev_user: u32,
    pub(super) next_user: u32,
    /// Its place in the heap of timers; [`NONE`] without timeouts.
    pub(super) timer: u32,
    pub(super) setup: Setup,
    /// As it was sent.
    pub(super) priority: u16,
    pub(super) idle_timeout_s: u16,
    pub(super) hard_timeout_s: u16,
    pub(super) flags: FlowModFlags,
}

impl StoredEntry {
    const FREE: Self = Self {
        cookie: Cookie(0),
        created: Nanos(0),
        seq: 0,
        tuple: NONE,
        at: 0,
        next_same: NONE,
        instruction_list: NONE,
        prev_user: NONE,
        next_user: NONE,
        timer: NONE,
        setup: Setup::NONE,
        priority: 0,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        flags: FlowModFlags::empty(),
    };

    pub(super) fn life(&self) -> Life {
        Life {
            created: self.created,
            idle_timeout_s: self.idle_timeout_s,
            hard_timeout_s: self.hard_timeout_s,
        }
    }

    /// 1.0 has no table-miss entry.
    pub(super) fn origin(&self, table_id: TableId, is_any: bool) -> Origin {
        let is_miss = is_any && self.priority == 0 && self.setup.may_be_table_miss();
        Origin { table_id, cookie: self.cookie, is_miss, entry: EntryRef::NONE }
    }

    pub(super) fn precedence(&self) -> Precedence {
        Precedence::of(self.priority, self.setup.is_exact())
    }

    pub(super) fn rank(&self) -> EntryRank {
        EntryRank {
            precedence: self.precedence(),
            priority: self.priority,
            ranks_exact_first: self.setup.ranks_exact_first(),
        }
    }

    /// When the entry expires if it was used then, and why. When both timeouts pass at the
    /// same moment, the hard one is named.
    pub(super) fn expiry(&self, used: Used) -> Option<(Nanos, FlowRemovedReason)> {
        let life = self.life();
        let hard = life.hard_at(used.taught).map(|at| (at, FlowRemovedReason::HardTimeout));
        let idle = life.idle_at(used.last).map(|at| (at, FlowRemovedReason::IdleTimeout));
        hard.into_iter().chain(idle).min_by_key(|(at, _)| *at)
    }
}

/// The entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Slab {
    chunks: Vec<Vec<StoredEntry>>,
    free: Vec<u32>,
    len: usize,
}

impl Slab {
    /// Numbers given so far: the entries are among the numbers below.
    pub(super) fn end(&self) -> usize {
        self.len
    }

    /// Numbers that are taken.
    pub(super) fn taken(&self) -> usize {
        self.len - self.free.len()
    }

    /// Whether another entry has room below the limit.
    pub(super) fn has_room(&self, limit: usize) -> bool {
        !self.free.is_empty() || self.len < limit
    }

    /// A number for an entry.
    pub(super) fn take(&mut self, entry: StoredEntry) -> EntryId {
        if let Some(number) = self.free.pop() {
            *self.get_mut(number) = entry;
            return EntryId(number);
        }
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        self.chunks[self.len / CHUNK].push(entry);
        self.len += 1;
        EntryId((self.len - 1) as u32)
    }

    /// Empties the place of an entry; its number stays taken.
    pub(super) fn empty(&mut self, number: u32) {
        *self.get_mut(number) = StoredEntry::FREE;
    }

    /// Frees a number.
    pub(super) fn give_back(&mut self, id: EntryId) {
        debug_assert_eq!(self.get(id.0).tuple, NONE, "only the number of a removed entry is free");
        self.free.push(id.0);
    }

    pub(super) fn get(&self, number: u32) -> &StoredEntry {
        &self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut StoredEntry {
        &mut self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }

    /// The entry of a number below [`Slab::end`], if there is one.
    pub(super) fn live(&self, number: u32) -> Option<&StoredEntry> {
        let entry = self.chunks.get(number as usize / CHUNK)?.get(number as usize % CHUNK)?;
        (entry.tuple != NONE).then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::StoredEntry;

    #[test]
    fn an_entry_is_one_cache_line() {
        assert!(size_of::<StoredEntry>() <= 64);
    }
}
