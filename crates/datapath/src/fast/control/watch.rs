//! Changes of flow entries for those who watch them: flow monitors (clause 7.3.5.17 of 1.4).
//!
//! While somebody watches, each change is noted with the entry as it is after it. Nothing is noted
//! else, so that nobody pays who is not watched. Who gets which change is the agent's matter.

use std::sync::Arc;

use openflow::flow::FlowRemovedReason;
use openflow::flow_monitor::{FlowChange, FlowEvent};
use openflow::{Cookie, Instruction};

use super::Control;
use super::store::Gone;
use crate::fast::ids::EntryId;
use crate::fast::op::InstructionList;
use crate::time::Nanos;

/// A change of an entry.
#[derive(Clone, Debug)]
pub struct WatchedChange {
    /// The number by which the entry is found.
    pub id: EntryId,
    /// The entry's age: that of one which came later is higher, and no change alters it.
    pub seq: u64,
    /// The change, with the entry's instructions.
    pub change: FlowChange,
    /// Whether the entry has another number and nothing else is new: no report is due.
    pub is_only_moved: bool,
    before: Option<Arc<InstructionList>>,
}

impl WatchedChange {
    /// The instructions that the entry had before, where it has others now.
    #[must_use]
    pub fn instructions_before(&self) -> Option<&[Instruction]> {
        self.before.as_ref().map(|list| &*list.instructions)
    }
}

/// An entry before a change.
pub(super) struct Before(Arc<InstructionList>, Cookie);

impl Control {
    /// Whether changes are noted from now on.
    pub fn watch(&mut self, is_wanted: bool) {
        self.watched = is_wanted.then(|| self.watched.take().unwrap_or_default());
    }

    /// Takes the changes that have been noted, in their order. None while a bundle is under way,
    /// which may be taken back.
    #[must_use]
    pub fn take_changes(&mut self) -> Vec<WatchedChange> {
        match &mut self.watched {
            Some(changes) if self.savepoint.is_none() => std::mem::take(changes),
            Some(_) | None => Vec::new(),
        }
    }

    /// The age of the next entry.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.seq
    }

    /// The entry of a number and an age as a change shows it, if it is there.
    #[must_use]
    pub fn watched_entry(&self, id: EntryId, seq: u64, event: FlowEvent) -> Option<FlowChange> {
        self.store.slab.live(id.0).filter(|entry| entry.seq == seq)?;
        // Counts and durations are none of a change's.
        Some(FlowChange::of(event, self.stats_of(id.0, Nanos(0))))
    }

    /// An entry that is about to change, if that is to be noted.
    pub(super) fn watched_before(&self, number: u32) -> Option<Before> {
        self.watched.as_ref()?;
        let entry = self.store.slab.get(number);
        let list = self.store.instruction_lists.get(entry.instruction_list);
        Some(Before(Arc::clone(list), entry.cookie))
    }

    /// Notes that an entry was added, in the place of an equal one or not.
    pub(super) fn note_added(&mut self, number: u32, before: Option<Before>) {
        self.note_change(number, FlowEvent::Added, before);
    }

    /// Notes that an entry was modified, if it is another one now.
    pub(super) fn note_modified(&mut self, number: u32, before: Option<Before>) {
        if before.as_ref().is_some_and(|before| !self.is_as_before(number, before)) {
            self.note_change(number, FlowEvent::Modified, before);
        }
    }

    /// Notes that an entry has another number, and was modified or not.
    pub(super) fn note_moved(&mut self, number: u32, before: Option<Before>) {
        let is_same = before.as_ref().is_some_and(|before| self.is_as_before(number, before));
        self.note_change(number, FlowEvent::Modified, before);
        if let Some(noted) = self.watched.as_mut().and_then(|changes| changes.last_mut()) {
            noted.is_only_moved = is_same;
        }
    }

    fn is_as_before(&self, number: u32, Before(list, cookie): &Before) -> bool {
        let entry = self.store.slab.get(number);
        let now = self.store.instruction_lists.get(entry.instruction_list);
        now.instructions == list.instructions && entry.cookie == *cookie
    }

    fn note_change(&mut self, number: u32, event: FlowEvent, before: Option<Before>) {
        if self.watched.is_none() {
            return;
        }
        let entry = self.store.slab.get(number);
        let (id, seq) = (EntryId(number), entry.seq);
        let now = self.store.instruction_lists.get(entry.instruction_list);
        let before = before.map(|Before(list, _)| list);
        let before = before.filter(|list| list.instructions != now.instructions);
        let change = FlowChange::of(event, self.stats_of(number, Nanos(0)));
        if let Some(changes) = &mut self.watched {
            changes.push(WatchedChange { id, seq, change, is_only_moved: false, before });
        }
    }

    /// Notes that an entry was removed, which had these instructions.
    pub(super) fn note_removed(
        &mut self,
        gone: &Gone,
        instructions: Option<Before>,
        reason: FlowRemovedReason,
    ) {
        let (Some(changes), Some(Before(list, _))) = (&mut self.watched, instructions) else {
            return;
        };
        let form = gone.form.unwrap_or_default();
        let change = FlowChange {
            event: FlowEvent::Removed,
            reason: Some(reason),
            table_id: gone.table,
            idle_timeout_s: gone.entry.idle_timeout_s,
            hard_timeout_s: gone.entry.hard_timeout_s,
            priority: gone.entry.priority,
            cookie: gone.entry.cookie,
            matching: gone.compiled.matching().in_form(form),
            instructions: list.instructions.to_vec(),
        };
        let (id, seq) = (gone.id, gone.entry.seq);
        changes.push(WatchedChange { id, seq, change, is_only_moved: false, before: None });
    }
}
