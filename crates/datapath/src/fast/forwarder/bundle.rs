//! A bundle's way into a replica: hidden from packets until one moment between two of them.
//!
//! A bundle may be a hundred thousand changes, which take longer than ports can wait. So it is made
//! in pieces, and packets pass between two of these. First all that comes enters the tables, and
//! all that goes stays in them, both under a mark; a lookup that finds a marked entry passes over
//! it as over one whose time is over. Then, at one moment, the marks mean the opposite, entries
//! that stay get what is new about them, groups, meters and ports change, and the decisions about
//! all this end. What has gone leaves the tables in pieces again. A lookup never waits for any of
//! it, and a table never stands twice.
//!
//! A packet-out in a bundle sees what the messages before it left, and no other packet does. So
//! changes after a packet-out are made at the moment itself, one after the other, with the
//! packet-outs between them. Those before the first one are made in pieces, and so are packet-outs
//! after the last change, which see all of the bundle: mostly there are no others.

use std::ops::Range;

use super::bundle_progress::{BundlePhase, BundleProgress, Mark};
use super::replica::{Replica, ReplicaEntry};
use super::versions::{VersionIndex, Versions};
use crate::fast::ids::EntryId;
use crate::fast::op::{Change, Op};

/// Changes made, or packet-outs sent, before the ports have their turn: as many as other commands.
const PIECE: usize = 32;

/// Values that changes may be about so that only decisions about these end.
const VALUES_MAX: usize = 64;

/// The next thing to do about a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BundleStep {
    /// More of it is to be done.
    More,
    /// These packet-outs are to be sent, and more is to be done.
    Send(Range<usize>),
    /// It is prepared: its moment may come.
    Show,
    /// It is done.
    Done,
}

/// The packets that a bundle concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Concerned {
    /// Those that show one of these values.
    Values(Vec<u16>),
    /// Any.
    All,
}

impl Replica {
    /// Does a piece of a bundle, whose changes are these.
    pub(super) fn advance(&mut self, ops: &[Op], versions: &mut Versions) -> BundleStep {
        let mut progress = self.bundle.take().unwrap_or_else(|| BundleProgress::of(ops));
        if progress.phase == BundlePhase::Sending && progress.at == ops.len() {
            (progress.phase, progress.at) = (BundlePhase::Finishing, 0);
        }
        let (from, cut) = (progress.at, progress.cut);
        let step = match progress.phase {
            BundlePhase::Preparing => {
                progress.at = cut.min(from + PIECE);
                for (at, op) in (0..).zip(ops).take(progress.at).skip(from) {
                    self.prepare(at, &op.0, &mut progress, versions);
                }
                if progress.at < cut { BundleStep::More } else { BundleStep::Show }
            }
            BundlePhase::AtOnce => self.change_at_once(ops, &mut progress, versions),
            BundlePhase::Sending => {
                progress.at = ops.len().min(from + PIECE);
                BundleStep::Send(from..progress.at)
            }
            BundlePhase::Finishing => {
                progress.at = cut.min(from + PIECE);
                ops.iter().take(progress.at).skip(from).for_each(|op| self.finish(&op.0));
                if progress.at < cut { BundleStep::More } else { BundleStep::Done }
            }
        };
        self.bundle = Some(progress).filter(|_| step != BundleStep::Done);
        step
    }

    /// Whether a bundle is at its moment, in which no packet may pass.
    pub(super) fn is_at_once(&self) -> bool {
        self.bundle.as_ref().is_some_and(|progress| progress.phase == BundlePhase::AtOnce)
    }

    /// Makes the changes up to the next packet-out, or to the last of them.
    fn change_at_once(
        &mut self,
        ops: &[Op],
        progress: &mut BundleProgress,
        versions: &mut Versions,
    ) -> BundleStep {
        let from = progress.at;
        for (at, op) in ops.iter().enumerate().take(progress.changes_end).skip(from) {
            if matches!(op.0, Change::PacketOut(..)) {
                progress.at = at + 1;
                return BundleStep::Send(at..at + 1);
            }
            self.apply(op.0.clone(), versions);
        }
        (progress.phase, progress.at) = (BundlePhase::Sending, progress.changes_end);
        BundleStep::More
    }

    fn prepare(
        &mut self,
        at: u32,
        change: &Change,
        progress: &mut BundleProgress,
        versions: &mut Versions,
    ) {
        match change {
            Change::Insert(insert) => {
                progress.raise(self.enter(insert, Mark { comes: true, goes: false }, versions));
                self.enter_table(insert);
            }
            Change::Exchange { new, .. } => {
                progress.raise(self.enter(new, Mark { comes: true, goes: false }, versions));
                progress.at_once.push(at);
            }
            Change::Replace { id, instruction_list, .. } => {
                self.note_list(instruction_list, versions);
                progress.raise(self.version_of(*id));
                progress.at_once.push(at);
            }
            Change::Remove { id, compiled, .. } => {
                progress.raise(versions.index_of(compiled));
                self.set_mark(*id, |mark| mark.goes = true);
            }
            Change::Group { .. }
            | Change::Meter { .. }
            | Change::Port { .. }
            | Change::Mirrors(_)
            | Change::Settings(_) => progress.at_once.push(at),
            // Not before the cut, or in no bundle.
            Change::PacketOut(..) | Change::Bundle(_) | Change::Flush(_) => {}
        }
    }

    /// The moment: from here on packets see all of the bundle, which is prepared.
    pub(super) fn show(&mut self, ops: &[Op], versions: &mut Versions) -> Concerned {
        let Some(mut progress) = self.bundle.take() else { return Concerned::All };
        let is_whole = progress.cut == progress.changes_end;
        let mut is_about_entries = is_whole;
        for op in progress.at_once.iter().filter_map(|at| ops.get(*at as usize)) {
            match &op.0 {
                Change::Exchange { old, new } => self.exchange(*old, new),
                Change::Replace { .. } => self.replace(&op.0),
                Change::Group { .. }
                | Change::Meter { .. }
                | Change::Port { .. }
                | Change::Mirrors(_)
                | Change::Settings(_) => {
                    is_about_entries = false;
                    self.apply(op.0.clone(), versions);
                }
                // They are made in pieces, or behind the cut.
                Change::Insert(_)
                | Change::Remove { .. }
                | Change::PacketOut(..)
                | Change::Bundle(_)
                | Change::Flush(_) => {}
            }
        }
        let raised: Vec<VersionIndex> = progress.raised().collect();
        raised.iter().for_each(|index| versions.change(*index));
        progress.phase = if is_whole { BundlePhase::Sending } else { BundlePhase::AtOnce };
        self.bundle = Some(progress);
        let is_of_values = is_about_entries
            && raised.len() <= VALUES_MAX
            && raised.iter().all(|index| versions.is_of_value(*index));
        if is_of_values {
            Concerned::Values(raised.iter().map(|index| index.number()).collect())
        } else {
            Concerned::All
        }
    }

    /// Takes the mark of a change away, now that packets see it.
    fn finish(&mut self, change: &Change) {
        match change {
            Change::Insert(insert) | Change::Exchange { new: insert, .. } => {
                self.set_mark(insert.id, |mark| mark.comes = false);
            }
            Change::Remove { table, id, compiled, precedence } => {
                self.leave_table(*table, compiled, *precedence, *id);
            }
            Change::Replace { .. }
            | Change::Group { .. }
            | Change::Meter { .. }
            | Change::Port { .. }
            | Change::Mirrors(_)
            | Change::Settings(_)
            | Change::PacketOut(..)
            | Change::Bundle(_)
            | Change::Flush(_) => {}
        }
    }

    /// Whether it is that of the first forwarder, which sends the packet-outs.
    pub(super) fn is_first(&self) -> bool {
        self.number == 0
    }

    /// Whether packets count an entry, so far as a bundle decides that.
    #[inline]
    pub(super) fn is_counted(&self, entry: &ReplicaEntry) -> bool {
        let is_shown = self.bundle.as_ref().is_none_or(BundleProgress::is_shown);
        if is_shown { !entry.mark.goes } else { !entry.mark.comes }
    }

    /// The version that a change of an entry raises.
    pub(super) fn version_of(&self, id: EntryId) -> VersionIndex {
        self.entry(id).map_or(VersionIndex::ALL, |entry| entry.version_index)
    }
}
