//! Entries that packets teach: renewed where they are there, and any other for control.

use std::sync::Arc;

use openflow::flow::FlowMod;

use super::Replica;
use crate::action_set::FinTimeouts;
use crate::counter::Counter;
use crate::fast::ids::EntryId;
use crate::fast::learning::{EntryChange, Learning, Taught};
use crate::time::Nanos;

/// Entries that packets of one forwarder teach and that it keeps in mind; more begin anew.
const LEARNINGS_MAX: usize = 1 << 16;

impl Replica {
    /// The learning of an entry that a packet teaches: one for all packets that teach the same.
    pub(in crate::fast::forwarder) fn learning(&self, flow_mod: FlowMod) -> Arc<Learning> {
        let mut learnings = self.learnings.borrow_mut();
        if let Some(known) = learnings.get(&flow_mod) {
            return Arc::clone(known);
        }
        if learnings.len() >= LEARNINGS_MAX {
            learnings.clear();
        }
        let made = Arc::new(Learning::new(flow_mod.clone()));
        learnings.insert(flow_mod, Arc::clone(&made));
        made
    }

    /// A packet teaches an entry: one that is there is renewed, and any other is for control.
    pub(in crate::fast::forwarder) fn teach(&self, learning: &Arc<Learning>, now: Nanos) {
        if let Some(id) = learning.known() {
            let is_over = self.entry(id).is_some_and(|entry| self.is_over(id, entry.life, now));
            if !is_over && !self.is_taught_otherwise(learning) {
                return self.shared.renew(id, now);
            }
            // It is not taken away yet, or not changed yet: then it is what it is taught last.
            learning.set_unknown();
        }
        if !learning.begin() {
            return;
        }
        if !self.shared.learning_waits() {
            learning.set_unknown();
            return self.count(Counter::LearnsRefused, 1);
        }
        self.give(EntryChange::Taught(Arc::clone(learning)), now);
    }

    /// A packet ends its TCP connection: an entry has at most these timeouts. Control gets it once,
    /// until it has changed the entry.
    pub(in crate::fast::forwarder) fn shorten(
        &self,
        id: EntryId,
        timeouts: FinTimeouts,
        now: Nanos,
    ) {
        let Some(life) = self.entry(id).map(|entry| entry.life) else { return };
        let (idle_s, hard_s) = (life.idle_timeout_s, life.hard_timeout_s);
        // Nobody has noted the use of an entry that had no idle timeout.
        if timeouts.idle_s != 0 {
            self.counters().entries.touch(id, now);
        }
        if timeouts.of(idle_s, hard_s) == (idle_s, hard_s) {
            return;
        }
        let mut shortened = self.shortened.borrow_mut();
        let asked = shortened.entry(id).or_default();
        if !asked.contains(&timeouts) {
            asked.push(timeouts);
            let created = life.created;
            self.give(EntryChange::Shortened { id, created, timeouts }, now);
        }
    }

    fn give(&self, change: EntryChange, at: Nanos) {
        let ops_applied = self.ops_applied;
        self.taught.borrow_mut().push(Taught { change, at, ops_applied });
    }

    /// Whether the same entry waits for control with other actions.
    fn is_taught_otherwise(&self, learning: &Learning) -> bool {
        let place = |of: &FlowMod| (of.table_id, of.priority);
        let is_it = |waiting: &Taught| {
            let EntryChange::Taught(waiting) = &waiting.change else { return false };
            let (one, other) = (&waiting.flow_mod, &learning.flow_mod);
            place(one) == place(other) && one.matching == other.matching
        };
        self.taught.borrow().iter().any(is_it)
    }

    /// Gives what packets have taught, for control.
    pub(in crate::fast::forwarder) fn take_taught(&mut self) -> Vec<Taught> {
        std::mem::take(self.taught.get_mut())
    }

    #[inline]
    pub(in crate::fast::forwarder) fn has_taught(&self) -> bool {
        !self.taught.borrow().is_empty()
    }
}
