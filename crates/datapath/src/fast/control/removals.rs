//! Entries that are gone but not yet reported: they wait until their last counts are flushed.
//!
//! A forwarder that has removed an entry may still hold counts of it. So a removed entry waits for
//! a flush that was requested after its removal; then its counters are right for ever, it is
//! reported, and its number is free. One flush serves all that were removed before it, however
//! many.

use openflow::Match;
use openflow::flow::{FlowModFlags, FlowRemoved, FlowRemovedReason};

use super::store::Gone;
use super::{Control, RemovalReport};
use crate::counter::Counter;
use crate::fast::compiled_match::CompiledMatch;
use crate::fast::ids::{EntryId, Ticket};
use crate::fast::op::Change;
use crate::seam::Removed;
use crate::time::Nanos;

/// Counts of a command's changes. The entries that it removed come by [`Control::reap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandCounts {
    /// Number of entries that are gone; one that an add replaced is not among them (clause 6.4).
    pub removed: usize,
    /// Number of entries that were added.
    pub added: usize,
    /// Number of entries that got new instructions.
    pub modified: usize,
}

impl CommandCounts {
    /// Both together.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            removed: self.removed + other.removed,
            added: self.added + other.added,
            modified: self.modified + other.modified,
        }
    }
}

/// An entry that is gone; what is reported of it, if anything is.
#[derive(Debug)]
struct Waiting {
    id: EntryId,
    report: Option<Box<(FlowRemoved, CompiledMatch, FlowModFlags)>>,
}

/// The entries that wait.
#[derive(Debug, Default)]
pub(super) struct Removals {
    /// For which no flush is asked yet.
    fresh: Vec<Waiting>,
    /// Those that are final after the flush of this ticket.
    asked: Vec<Waiting>,
    ticket: Option<Ticket>,
}

impl Removals {
    /// Number of the entries for which no flush is asked yet.
    pub(super) fn len(&self) -> usize {
        self.fresh.len()
    }

    /// The entries beyond this number are there again.
    pub(super) fn truncate(&mut self, len: usize) {
        self.fresh.truncate(len);
    }
}

impl Control {
    /// Moves removed entries on: those whose counts are final by now are returned, in the order in
    /// which they went; for the others a flush is asked if none is on its way. To be called behind
    /// commands and now and then until [`Control::is_reaped`].
    #[must_use]
    pub fn reap(&mut self) -> Vec<Removed> {
        let mut reported = Vec::new();
        if self.removals.ticket.is_some_and(|ticket| self.shared.flushed() >= ticket) {
            self.removals.ticket = None;
            for waiting in std::mem::take(&mut self.removals.asked) {
                reported
                    .extend(waiting.report.map(|removed| self.final_report(waiting.id, *removed)));
                self.store.slab.give_back(waiting.id);
            }
        }
        if self.removals.ticket.is_none() && !self.removals.fresh.is_empty() {
            self.removals.asked = std::mem::take(&mut self.removals.fresh);
            self.removals.ticket = Some(self.flush());
        }
        reported
    }

    /// Whether no removed entry waits to be reported.
    #[must_use]
    pub fn is_reaped(&self) -> bool {
        self.removals.fresh.is_empty() && self.removals.asked.is_empty()
    }

    fn final_report(
        &self,
        id: EntryId,
        (mut flow, compiled, flags): (FlowRemoved, CompiledMatch, FlowModFlags),
    ) -> Removed {
        let counts = self.shared.entry(id).shown(flags);
        flow.packet_count = counts.packets;
        flow.byte_count = counts.bytes;
        let form = flow.matching.form().copied().unwrap_or_default();
        flow.matching = compiled.matching().in_form(form);
        Removed { flow, notify: flags.contains(FlowModFlags::SEND_FLOW_REM) }
    }

    /// Removes an entry for a reason; one whose timeout has passed goes for that.
    pub(super) fn remove(&mut self, number: u32, reason: FlowRemovedReason, now: Nanos) {
        self.latest = now;
        let expired = self.expired(number, now);
        self.counters.add(Counter::FlowsExpired, expired.is_some().into());
        let reason = expired.unwrap_or(reason);
        self.note_before(number);
        let watched = self.watched_before(number);
        let gone = self.store.remove(number);
        self.note_removed(&gone, watched, reason);
        self.counters.add(Counter::FlowsRemoved, 1);
        let is_reported = match self.removal_report {
            RemovalReport::All => true,
            RemovalReport::Asked => gone.entry.flags.contains(FlowModFlags::SEND_FLOW_REM),
        };
        let report = is_reported.then(|| Box::new(report_of(&gone, reason, now)));
        self.removals.fresh.push(Waiting { id: gone.id, report });
        // The match goes along instead of a copy: copies count in their mask's reference count,
        // which the workers write at the same time.
        self.emit_op(Change::Remove {
            table: gone.table,
            id: gone.id,
            precedence: gone.entry.precedence(),
            compiled: gone.compiled,
        });
    }

    /// Lets the number of an entry go whose place another one has taken.
    pub(super) fn retire(&mut self, id: EntryId) {
        self.removals.fresh.push(Waiting { id, report: None });
    }
}

fn report_of(
    gone: &Gone,
    reason: FlowRemovedReason,
    now: Nanos,
) -> (FlowRemoved, CompiledMatch, FlowModFlags) {
    let entry = &gone.entry;
    let (duration_s, duration_ns) = now.age(entry.created);
    let flow = FlowRemoved {
        cookie: entry.cookie,
        priority: entry.priority,
        reason,
        table_id: gone.table,
        duration_s,
        duration_ns,
        idle_timeout_s: entry.idle_timeout_s,
        hard_timeout_s: entry.hard_timeout_s,
        packet_count: 0,
        byte_count: 0,
        // Its form is kept there, its fields in the compiled.
        matching: Match::any().in_form(gone.form.unwrap_or_default()),
    };
    (flow, gone.compiled.clone(), entry.flags)
}
