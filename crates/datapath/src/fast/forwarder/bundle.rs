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
//! only the changes before the first one are made in pieces; the others are made at the moment
//! itself, one after the other, with the packet-outs between them. Mostly these are the last ones.

use super::bundle_progress::{BundleProgress, Mark};
use super::replica::{Replica, ReplicaEntry};
use super::versions::{VersionIndex, Versions};
use crate::fast::ids::EntryId;
use crate::fast::op::{Change, Op};

/// Changes made before the ports have their turn: as many as other commands.
const PIECE: usize = 32;

/// Values that changes may be about so that only decisions about these end.
const VALUES_MAX: usize = 64;

/// The next thing to do about a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BundleStep {
    /// More of it is to be prepared, or finished after its moment.
    More,
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
        let mut progress = self.bundle.take().unwrap_or_default();
        let first_sent = || ops.iter().position(|op| matches!(op.0, Change::PacketOut(..)));
        let cut = *progress.cut.get_or_insert_with(|| first_sent().unwrap_or(ops.len()));
        let end = cut.min(progress.at + PIECE);
        for (at, op) in (0..).zip(ops).take(end).skip(progress.at) {
            if progress.is_shown {
                self.finish(&op.0);
            } else {
                self.prepare(at, &op.0, &mut progress, versions);
            }
        }
        progress.at = end;
        let step = match (end < cut, progress.is_shown) {
            (true, _) => BundleStep::More,
            (false, false) => BundleStep::Show,
            (false, true) => return BundleStep::Done,
        };
        self.bundle = Some(progress);
        step
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
        let mut is_about_entries = progress.cut == Some(ops.len());
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
        (progress.is_shown, progress.at) = (true, 0);
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

    /// Finishes a bundle that has just been shown, where it has packet-outs: the place of the
    /// first, from which on all is still to be done.
    pub(super) fn finish_to_cut(&mut self, ops: &[Op]) -> Option<usize> {
        let cut = self.bundle.as_ref()?.cut.filter(|cut| *cut < ops.len())?;
        self.bundle = None;
        ops.iter().take(cut).for_each(|op| self.finish(&op.0));
        Some(cut)
    }

    /// Whether it is that of the first forwarder, which sends the packet-outs.
    pub(super) fn is_first(&self) -> bool {
        self.number == 0
    }

    /// Whether packets count an entry, so far as a bundle decides that.
    #[inline]
    pub(super) fn is_counted(&self, entry: &ReplicaEntry) -> bool {
        let is_shown = self.bundle.as_ref().is_none_or(|progress| progress.is_shown);
        if is_shown { !entry.mark.goes } else { !entry.mark.comes }
    }

    /// The version that a change of an entry raises.
    pub(super) fn version_of(&self, id: EntryId) -> VersionIndex {
        self.entry(id).map_or(VersionIndex::ALL, |entry| entry.version_index)
    }
}
