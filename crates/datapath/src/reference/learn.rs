//! Entries that packets teach, and those that go with the last entry that teaches such.

use std::collections::BTreeSet;

use openflow::flow::{FlowMod, FlowRemovedReason};
use openflow::learn::LearnFlags;
use openflow::{Action, Cookie, Instruction, TableId, Version};

use super::Reference;
use crate::counter::Counter;
use crate::precedence::Precedence;
use crate::seam::CommandOutcome;
use crate::time::Nanos;
use crate::validate::{Existing, check_flow_mod};

/// The version whose rules hold for learnt entries.
const VERSION: Version = Version::V1_3;

impl Reference {
    /// A packet has taught an entry: one that is there gets the actions and the cookie, and its
    /// hard timeout begins anew; its idle timeout, its flags and its counts stay.
    pub(super) fn learn(&mut self, flow_mod: &FlowMod, now: Nanos) {
        let existing = Existing {
            n_tables: self.config.n_tables,
            group: &|id| self.groups.get(id).is_some(),
            meter: &|id| self.meters.get(id).is_some(),
        };
        if check_flow_mod(flow_mod, VERSION, &self.pipeline, &existing).is_err() {
            return self.counters.add(Counter::LearnsRefused, 1);
        }
        let precedence = Precedence::of_flow_mod(flow_mod, VERSION);
        let table = usize::from(flow_mod.table_id.0);
        let place = |dp: &Self| dp.tables.get(table)?.find_strict(&flow_mod.matching, precedence);
        let is_live = |dp: &Self, at: usize| !dp.tables[table].entries()[at].is_expired(now);
        let old = place(self).filter(|at| is_live(self, *at));
        if old.is_none() {
            match self.add(flow_mod, VERSION, now) {
                Ok(outcome) => self.unreported.extend(outcome.removed),
                Err(_) => return self.counters.add(Counter::LearnsRefused, 1),
            }
        }
        let at = place(self);
        let entry = at.and_then(|at| self.tables.get_mut(table)?.get_mut(at));
        if let Some(entry) = entry {
            entry.cookie = flow_mod.cookie;
            entry.instructions = flow_mod.instructions.as_slice().into();
            entry.taught = entry.taught.max(Some(now));
        }
        self.delete_learnt(now);
    }

    /// The outcome of a command with all that has gone because of it, and of packets before it.
    pub(super) fn whole(&mut self, mut outcome: CommandOutcome, now: Nanos) -> CommandOutcome {
        self.unreported.append(&mut outcome.removed);
        self.delete_learnt(now);
        CommandOutcome { removed: std::mem::take(&mut self.unreported), ..outcome }
    }

    /// Removes the entries of tables and cookies that nothing teaches any more, where something did
    /// that wants them deleted then.
    fn delete_learnt(&mut self, now: Nanos) {
        loop {
            let taught = self.taught_for_good();
            let before = std::mem::replace(&mut self.taught_for_good, taught);
            let gone: Vec<_> = before.difference(&self.taught_for_good).copied().collect();
            if gone.is_empty() {
                return;
            }
            for (table, cookie) in gone {
                let goes = FlowRemovedReason::Delete;
                let removed = self.remove(table.0..table.0 + 1, now, |entry| {
                    (entry.cookie == cookie).then_some(goes)
                });
                self.unreported.extend(removed);
            }
        }
    }

    fn taught_for_good(&self) -> BTreeSet<(TableId, Cookie)> {
        let entries = self.tables.iter().flat_map(|table| table.entries());
        let lists = entries.flat_map(|entry| entry.instructions.iter());
        let learns = lists.flat_map(Instruction::all_actions).filter_map(Action::learns);
        let for_good = learns.filter(|learn| learn.flags.contains(LearnFlags::DELETE_LEARNED));
        for_good.map(|learn| (learn.table, learn.cookie)).collect()
    }
}
