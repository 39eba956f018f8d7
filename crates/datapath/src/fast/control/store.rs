//! The flow entries of all tables with every index over them: one place to add and to take out.
//!
//! An entry stands in the slab, its match in a tuple, its instructions among the instruction lists;
//! the index finds it by table and match, the timers by its next timeout. What a command selects is
//! decided elsewhere; here nothing may be forgotten in one index that went from another.

use std::collections::BTreeMap;

use openflow::flow::{FlowModFlags, FlowRemovedReason};
use openflow::{BitRange, Cookie, Field, Instruction, Match, TableId, TupleForm};

use super::evictions::{EvictionOrder, EvictionRank};
use super::index::{NONE, NumberIndex};
use super::instruction_lists::InstructionLists;
use super::setup::{Setup, Setups, VersionTrait};
use super::slab::{Slab, StoredEntry};
use super::timers::Timers;
use super::tuples::{self, Tuple, Tuples};
use crate::fast::compiled_match::CompiledMatch;
use crate::fast::ids::EntryId;
use crate::fast::op::Used;
use crate::precedence::Precedence;
use crate::time::Nanos;

/// The parts of an entry beside its match and its instructions.
///
/// Its setup was taken for the entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryHead {
    pub(super) cookie: Cookie,
    pub(super) setup: Setup,
    pub(super) priority: u16,
    pub(super) idle_timeout_s: u16,
    pub(super) hard_timeout_s: u16,
    pub(super) flags: FlowModFlags,
    pub(super) created: Nanos,
    pub(super) seq: u64,
}

/// The entries.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) slab: Slab,
    pub(super) tuples: Tuples,
    pub(super) instruction_lists: InstructionLists,
    pub(super) setups: Setups,
    timers: Timers,
    /// Of the tables that have evicted entries.
    pub(super) eviction_orders: BTreeMap<TableId, EvictionOrder>,
    index: NumberIndex,
    active: Vec<u32>,
}

impl Store {
    pub(super) fn new(tables: u8) -> Self {
        Self {
            slab: Slab::default(),
            tuples: Tuples::new(tables),
            instruction_lists: InstructionLists::default(),
            setups: Setups::default(),
            timers: Timers::default(),
            eviction_orders: BTreeMap::new(),
            index: NumberIndex::default(),
            active: vec![0; usize::from(tables)],
        }
    }

    /// Number of a table's entries.
    pub(super) fn active(&self, table: TableId) -> u32 {
        self.active.get(usize::from(table.0)).copied().unwrap_or(0)
    }

    /// The tuple of an entry.
    pub(super) fn tuple(&self, entry: &StoredEntry) -> &Tuple {
        self.tuples.get(entry.tuple).expect("the tuple of an entry exists")
    }

    /// The first entry with this match, of whatever priority; others follow by `next_same`.
    fn find_first(&self, tuple: u32, value: &[u64], hash: u64) -> Option<u32> {
        self.index.find(hash, |number| {
            let entry = self.slab.get(number);
            entry.tuple == tuple && self.tuple(entry).value(entry.at) == value
        })
    }

    /// The entries with the values in a tuple, of whatever priority.
    pub(super) fn with_value(&self, tuple: u32, value: &[u64]) -> impl Iterator<Item = u32> {
        let mut next = self.find_first(tuple, value, tuples::hash(tuple, value));
        std::iter::from_fn(move || {
            let number = next?;
            let following = self.slab.get(number).next_same;
            next = (following != NONE).then_some(following);
            Some(number)
        })
    }

    /// The entry of equal match and precedence.
    pub(super) fn find(
        &self,
        table: TableId,
        compiled: &CompiledMatch,
        precedence: Precedence,
    ) -> Option<u32> {
        let tuple = self.tuples.find(table, compiled.mask())?;
        let mut same = self.with_value(tuple, compiled.value());
        same.find(|number| self.slab.get(*number).precedence() == precedence)
    }

    /// An entry's match, in the form in which it was set up.
    pub(super) fn matching(&self, entry: &StoredEntry) -> Match {
        let tuple = self.tuple(entry);
        let matching = tuple.mask.matching(tuple.value(entry.at));
        self.setups.dressed(matching, entry.setup)
    }

    /// Sets an entry's setup and priority; its precedence stays.
    pub(super) fn set_up(&mut self, number: u32, setup: Setup, priority: u16) {
        self.unrank(number);
        let entry = self.slab.get_mut(number);
        let old = std::mem::replace(&mut entry.setup, setup);
        entry.priority = priority;
        self.setups.give_back(old);
        self.rank(number);
    }

    /// Adds an entry. There must be no equal one.
    pub(super) fn insert(
        &mut self,
        table: TableId,
        compiled: &CompiledMatch,
        head: EntryHead,
        instructions: &[Instruction],
        last_used: Nanos,
    ) -> EntryId {
        let instruction_list = self.instruction_lists.of(instructions);
        let tuple = self.tuples.of(table, compiled.mask());
        let entry = StoredEntry {
            cookie: head.cookie,
            created: head.created,
            seq: head.seq,
            tuple,
            at: 0,
            next_same: NONE,
            instruction_list,
            prev_user: NONE,
            next_user: NONE,
            timer: NONE,
            setup: head.setup,
            priority: head.priority,
            idle_timeout_s: head.idle_timeout_s,
            hard_timeout_s: head.hard_timeout_s,
            flags: head.flags,
        };
        let id = self.slab.take(entry);
        self.enter(id.0, table, compiled, last_used);
        id
    }

    /// Enters an entry that stands in the slab in everything that finds it.
    fn enter(&mut self, number: u32, table: TableId, compiled: &CompiledMatch, last_used: Nanos) {
        let entry = self.slab.get(number);
        let (tuple, instruction_list) = (entry.tuple, entry.instruction_list);
        let precedence = entry.precedence();
        if let Some(tuple) = self.tuples.get_mut(tuple) {
            self.slab.get_mut(number).at = tuple.push(number, compiled.value(), precedence);
        }
        self.instruction_lists.link(&mut self.slab, instruction_list, number);
        let hash = tuples::hash(tuple, compiled.value());
        match self.find_first(tuple, compiled.value(), hash) {
            Some(first) => {
                let next = std::mem::replace(&mut self.slab.get_mut(first).next_same, number);
                self.slab.get_mut(number).next_same = next;
            }
            None => self.index.insert(hash, number),
        }
        self.arm(number, last_used);
        if let Some(active) = self.active.get_mut(usize::from(table.0)) {
            *active += 1;
        }
    }

    /// An entry as it is, to be restored. Its list of instructions is held.
    pub(super) fn before(&mut self, number: u32) -> EntryBefore {
        self.instruction_lists.hold(self.slab.get(number).instruction_list);
        let entry = self.slab.get(number);
        let tuple = self.tuple(entry);
        EntryBefore {
            id: EntryId(number),
            table: tuple.table,
            compiled: tuple.compiled(entry.at),
            entry: entry.clone(),
            own: self.setups.own(entry.setup),
        }
    }

    /// Restores an entry under its number, which is taken and empty.
    pub(super) fn restore(&mut self, before: EntryBefore, last_used: Nanos) {
        let EntryBefore { id, table, compiled, entry, own } = before;
        let instruction_list = entry.instruction_list;
        *self.slab.get_mut(id.0) = StoredEntry {
            tuple: self.tuples.of(table, compiled.mask()),
            setup: self.setups.take_again(entry.setup, own),
            at: 0,
            next_same: NONE,
            prev_user: NONE,
            next_user: NONE,
            timer: NONE,
            ..entry
        };
        self.enter(id.0, table, &compiled, last_used);
        self.instruction_lists.release(instruction_list);
    }

    /// Takes an entry out; what it was. Its number stays taken until it is given back.
    pub(super) fn remove(&mut self, number: u32) -> Gone {
        self.set_timer(number, None);
        let entry = self.slab.get(number).clone();
        let tuple = self.tuple(&entry);
        let (table, compiled) = (tuple.table, tuple.compiled(entry.at));
        let hash = tuples::hash(entry.tuple, compiled.value());
        self.take_from_chain(number, &entry, &compiled, hash);
        self.instruction_lists.unlink(&mut self.slab, number);
        if let Some(tuple) = self.tuples.get_mut(entry.tuple) {
            let moved = tuple.take_out(entry.at, entry.precedence());
            let is_empty = tuple.ids.is_empty();
            if let Some(moved) = moved {
                self.slab.get_mut(moved).at = entry.at;
            }
            if is_empty {
                self.tuples.drop_empty(entry.tuple);
            }
        }
        let form = self.setups.form(entry.setup);
        self.setups.give_back(entry.setup);
        self.slab.empty(number);
        if let Some(active) = self.active.get_mut(usize::from(table.0)) {
            *active -= 1;
        }
        Gone { id: EntryId(number), table, compiled, entry, form }
    }

    fn take_from_chain(
        &mut self,
        number: u32,
        entry: &StoredEntry,
        compiled: &CompiledMatch,
        hash: u64,
    ) {
        let first = self.find_first(entry.tuple, compiled.value(), hash);
        if first != Some(number) {
            let is_before = |before: &u32| self.slab.get(*before).next_same == number;
            let before = self.with_value(entry.tuple, compiled.value()).find(is_before);
            if let Some(before) = before {
                self.slab.get_mut(before).next_same = entry.next_same;
            }
        } else if entry.next_same == NONE {
            self.index.remove(hash, number);
        } else {
            self.index.replace(hash, number, entry.next_same);
        }
    }

    /// Sets an entry's instructions. Returns whether they differ from the earlier ones.
    pub(super) fn set_instructions(&mut self, number: u32, instructions: &[Instruction]) -> bool {
        let instruction_list = self.instruction_lists.of(instructions);
        if self.slab.get(number).instruction_list == instruction_list {
            return false;
        }
        self.instruction_lists.unlink(&mut self.slab, number);
        self.instruction_lists.link(&mut self.slab, instruction_list, number);
        true
    }

    /// Sets an entry's timer for the timeouts that it has now.
    pub(super) fn arm(&mut self, number: u32, last_used: Nanos) {
        // Where a packet has taught it, the timer comes too early and is set anew then.
        let used = Used { last: last_used, taught: Nanos(0) };
        let at = self.slab.get(number).expiry(used).map(|(at, _)| at);
        self.set_timer(number, at);
    }

    fn set_timer(&mut self, number: u32, at: Option<Nanos>) {
        self.unrank(number);
        self.timers.set(&mut self.slab, number, at);
        self.rank(number);
    }

    /// Takes an entry's timer away.
    pub(super) fn disarm(&mut self, number: u32) {
        self.set_timer(number, None);
    }

    /// The entry that expires first, with the moment and why; `used` says when an entry was used.
    pub(super) fn first_expiry(
        &mut self,
        used: impl Fn(EntryId) -> Used,
    ) -> Option<(u32, Nanos, FlowRemovedReason)> {
        loop {
            let (armed, number) = self.timers.first()?;
            let (at, reason) = self.slab.get(number).expiry(used(EntryId(number)))?;
            if at <= armed {
                return Some((number, at, reason));
            }
            self.set_timer(number, Some(at));
        }
    }

    /// The entries whose timeouts may have passed.
    pub(super) fn due(&self, now: Nanos) -> Vec<u32> {
        self.timers.due(now)
    }

    /// Keeps the entries of a table in the order in which they go, by groups of these parts.
    pub(super) fn order_evictions(
        &mut self,
        table: TableId,
        parts: &[(Field, BitRange)],
        entries: impl FnOnce(&Self) -> Vec<u32>,
    ) {
        if self.eviction_orders.get(&table).is_none_or(|order| !order.is_by(parts)) {
            self.eviction_orders.insert(table, EvictionOrder::new(parts.to_vec()));
            entries(self).into_iter().for_each(|number| self.rank(number));
        }
    }

    /// The entry that goes next where a table makes room; `used` says when an entry was used.
    pub(super) fn first_evictable(
        &mut self,
        table: TableId,
        used: impl Fn(EntryId) -> Used,
    ) -> Option<u32> {
        loop {
            let EvictionRank { number, at: armed, .. } =
                self.eviction_orders.get(&table)?.first()?;
            let (at, _) = self.slab.get(number).expiry(used(EntryId(number)))?;
            if at <= armed {
                return Some(number);
            }
            self.set_timer(number, Some(at));
        }
    }

    /// Puts an entry in the order in which its table's go, if there is one and it may go.
    pub(super) fn rank(&mut self, number: u32) {
        if let Some((table, group, rank)) = self.eviction_place(number)
            && let Some(order) = self.eviction_orders.get_mut(&table)
        {
            order.insert(group, rank);
        }
    }

    /// Takes an entry out of that order, if it is there.
    pub(super) fn unrank(&mut self, number: u32) {
        if let Some((table, group, rank)) = self.eviction_place(number)
            && let Some(order) = self.eviction_orders.get_mut(&table)
        {
            order.remove(group, &rank);
        }
    }

    fn eviction_place(&self, number: u32) -> Option<(TableId, Vec<u128>, EvictionRank)> {
        // Mostly there are none.
        if self.eviction_orders.is_empty() {
            return None;
        }
        let entry = self.slab.get(number);
        let at = self.timers.at(entry.timer)?;
        let tuple = self.tuple(entry);
        let order = self.eviction_orders.get(&tuple.table)?;
        let group = order.group(|| tuple.compiled(entry.at).matching());
        let importance = self.setups.importance(entry.setup);
        Some((tuple.table, group, EvictionRank { importance, at, seq: entry.seq, number }))
    }

    /// Whether an entry of equal precedence could match a packet that this match matches; only
    /// those for which `is_live` holds, if it is given.
    pub(super) fn overlaps(
        &self,
        table: TableId,
        compiled: &CompiledMatch,
        precedence: Precedence,
        is_live: Option<&dyn Fn(u32) -> bool>,
    ) -> bool {
        let tuples = self.tuples.of_table(table).iter();
        let mut tuples = tuples.filter_map(|number| Some((*number, self.tuples.get(*number)?)));
        tuples.any(|(number, tuple)| self.overlaps_in(number, tuple, compiled, precedence, is_live))
    }

    fn overlaps_in(
        &self,
        number: u32,
        tuple: &Tuple,
        compiled: &CompiledMatch,
        precedence: Precedence,
        is_live: Option<&dyn Fn(u32) -> bool>,
    ) -> bool {
        if !tuple.precedences.contains_key(&precedence) {
            return false;
        }
        let is_selected = |number: u32| {
            self.slab.get(number).precedence() == precedence
                && is_live.is_none_or(|live| live(number))
        };
        // Where the match looks at all that the tuple looks at, only one value is possible.
        if tuple.mask.is_within(compiled.mask()) {
            let value = narrowed(compiled, tuple);
            return self.with_value(number, &value).any(is_selected);
        }
        let common = tuples::Projection::of_common(compiled, tuple);
        if common.takes_all() && is_live.is_none() {
            return true;
        }
        let entries = tuple.ids.iter().zip(0..);
        let mut entries = entries.filter(|(_, at)| common.takes(tuple.value(*at)));
        entries.any(|(number, _)| is_selected(*number))
    }
}

/// An entry before a change. Its list of instructions is held, as forwarders know it by its number.
#[derive(Clone, Debug)]
pub(super) struct EntryBefore {
    pub(super) id: EntryId,
    pub(super) table: TableId,
    pub(super) compiled: CompiledMatch,
    pub(super) entry: StoredEntry,
    pub(super) own: Option<VersionTrait>,
}

/// An entry that was taken out.
#[derive(Clone, Debug)]
pub(super) struct Gone {
    pub(super) id: EntryId,
    pub(super) table: TableId,
    pub(super) compiled: CompiledMatch,
    pub(super) entry: StoredEntry,
    pub(super) form: Option<TupleForm>,
}

/// The values of a match in the words of a tuple whose mask lies within the match's.
fn narrowed(compiled: &CompiledMatch, tuple: &Tuple) -> Vec<u64> {
    let mut own = compiled.mask().words().iter().zip(compiled.value());
    let values = tuple.mask.words().iter().map(|word| {
        let same = own.find(|(own, _)| own.index == word.index);
        same.map_or(0, |(_, value)| value & word.bits)
    });
    values.collect()
}
