//! Entries that packets teach: they are added, changed and kept alive here, and those that go with
//! the last entry which teaches such.
//!
//! A learnt entry is an ordinary one in all that is shown and counted.

use std::sync::Arc;

use openflow::flow::{FlowMod, FlowRemovedReason};
use openflow::{Error, GroupId, Match, PortNo, Version};

use super::Control;
use super::filter::EntryFilter;
use crate::action_set::FinTimeouts;
use crate::counter::Counter;
use crate::fast::compiled_match::CompiledMatch;
use crate::fast::ids::EntryId;
use crate::fast::learning::{EntryChange, Learning, Taught};
use crate::pipeline::table_of_new_entry;
use crate::precedence::Precedence;
use crate::time::Nanos;

/// The version whose rules hold for learnt entries.
const VERSION: Version = Version::V1_3;

impl Control {
    /// Adds or changes the entry that a packet has taught, as Open vSwitch does: one that is there
    /// gets the actions and the cookie, and keeps its timeouts, flags and counts. A refusal is
    /// counted. A packet whose forwarder did not know yet that an entry which teaches has gone is
    /// passed over.
    pub fn learn(&mut self, taught: &Taught) {
        match &taught.change {
            EntryChange::Taught(learning) => self.learn_taught(learning, taught),
            EntryChange::Shortened { id, created, timeouts } => {
                self.latest = self.latest.max(taught.at);
                if self.savepoint.is_some() {
                    return self.put_off.push(taught.clone());
                }
                self.shorten(*id, *created, *timeouts, taught.at);
            }
        }
    }

    /// Carries out what packets have asked for while a bundle was under way.
    pub(super) fn learn_put_off(&mut self) {
        for taught in std::mem::take(&mut self.put_off) {
            self.learn(&taught);
        }
    }

    /// An entry has at most these timeouts, if it is the one that has begun then.
    fn shorten(&mut self, id: EntryId, created: Nanos, timeouts: FinTimeouts, now: Nanos) {
        let Some(entry) = self.store.slab.live(id.0) else { return };
        let had = (entry.idle_timeout_s, entry.hard_timeout_s);
        let has = timeouts.of(had.0, had.1);
        if entry.created != created || has == had || self.expired(id.0, now).is_some() {
            return;
        }
        let entry = self.store.slab.get_mut(id.0);
        (entry.idle_timeout_s, entry.hard_timeout_s) = has;
        self.store.arm(id.0, created);
        self.emit_replaced(id.0);
    }

    fn learn_taught(&mut self, learning: &Arc<Learning>, taught: &Taught) {
        let Taught { at, ops_applied, .. } = taught;
        self.shared.learning_done();
        if *ops_applied < self.unlearned_at || self.store.instruction_lists.has_unlearned() {
            return learning.set_unknown();
        }
        // None is learnt while a bundle is under way, which may be taken back.
        let is_refused = self.savepoint.is_some();
        self.latest = self.latest.max(*at);
        let learnt = (!is_refused).then(|| self.learn_entry(&learning.flow_mod, *at));
        let Some(Ok(id)) = learnt else {
            self.counters.add(Counter::LearnsRefused, 1);
            return learning.set_unknown();
        };
        self.shared.renew(id, *at);
        let known = self.learnt.entry(id).or_default();
        known.retain(|other| Arc::strong_count(other) > 1 && !Arc::ptr_eq(other, learning));
        known.push(Arc::clone(learning));
        learning.set_known(id);
        self.delete_learnt();
        // The packet may teach more, though this has taken the place of an entry that teaches.
        self.store.instruction_lists.take_has_unlearned();
    }

    fn learn_entry(&mut self, flow_mod: &FlowMod, now: Nanos) -> Result<EntryId, Error> {
        self.check_flow_mod(flow_mod, VERSION)?;
        let table = table_of_new_entry(flow_mod, VERSION);
        let compiled = CompiledMatch::of(&flow_mod.matching, &mut self.masks);
        let precedence = Precedence::of_flow_mod(flow_mod, VERSION);
        let old = self.store.find(table, &compiled, precedence);
        let Some(number) = old.filter(|old| self.expired(*old, now).is_none()) else {
            self.add(flow_mod, VERSION, now)?;
            let added = self.store.find(table, &compiled, precedence);
            return added.map(EntryId).ok_or(Error::FlowModUnknown);
        };
        self.check_list_memory(&flow_mod.instructions)?;
        let entry = self.store.slab.get(number);
        let list = self.store.instruction_lists.get(entry.instruction_list);
        let is_same = *list.instructions == *flow_mod.instructions;
        if !is_same || entry.cookie != flow_mod.cookie {
            self.note_before(number);
            let watched = self.watched_before(number);
            self.store.slab.get_mut(number).cookie = flow_mod.cookie;
            self.store.set_instructions(number, &flow_mod.instructions);
            self.emit_replaced(number);
            self.note_modified(number, watched);
        }
        Ok(EntryId(number))
    }

    /// An entry changes or goes: packets that teach it have to do so anew.
    pub(super) fn forget_learnt(&mut self, number: u32) {
        if self.learnt.is_empty() {
            return;
        }
        for learning in self.learnt.remove(&EntryId(number)).into_iter().flatten() {
            learning.set_unknown();
        }
    }

    /// Removes the learnt entries of tables and cookies for which the last entry has gone or
    /// changed that teaches such and wants them deleted.
    pub(super) fn delete_learnt(&mut self) {
        if self.savepoint.is_some() {
            return;
        }
        loop {
            let gone = self.store.instruction_lists.take_unlearned();
            if gone.is_empty() {
                return;
            }
            for (table, cookie) in gone {
                let filter = EntryFilter {
                    compiled: CompiledMatch::of(&Match::any(), &mut self.masks),
                    strict: None,
                    cookie,
                    cookie_mask: u64::MAX,
                    out_port: PortNo::ANY,
                    out_group: GroupId::ANY,
                };
                let tables = table.0..table.0.saturating_add(1);
                let now = self.latest;
                for number in filter.entries(&self.store, tables) {
                    self.remove(number, FlowRemovedReason::Delete, now);
                }
            }
        }
    }
}
