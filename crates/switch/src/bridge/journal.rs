//! The state of the bridge on its way to the journal: changes before the workers get them, counts
//! before a controller sees them.

use std::time::Instant;

use datapath::fast::{Changed, Control, Dump, Op};

use super::Bridge;
use crate::journal::Journal;

/// Entries that are looked at before something else has its turn: some tens of microseconds for
/// counts, some hundreds for a compaction.
const PIECE: u32 = 1_024;

impl Bridge {
    /// The same bridge, whose state is kept in this journal.
    pub(crate) fn with_journal(self, journal: Option<Journal>) -> Self {
        self.journal.replace(journal);
        self
    }

    /// Whether its state is kept.
    pub(crate) fn keeps_state(&self) -> bool {
        self.journal.borrow().is_some()
    }

    /// Runs `inner` on the journal and the tables; `None` where the state is not kept.
    fn journaled<T>(&self, inner: impl FnOnce(&mut Journal, &Control) -> T) -> Option<T> {
        let mut journal = self.journal.borrow_mut();
        let journal = journal.as_mut()?;
        self.with_control(|control| inner(journal, control))
    }

    /// Saves what ops have changed.
    pub(super) fn save_ops(&self, ops: &[Op]) {
        if ops.is_empty() || !self.keeps_state() {
            return;
        }
        let mut changed = Changed::default();
        ops.iter().for_each(|op| op.note_changed(&mut changed));
        self.journaled(|journal, control| journal.save(control, changed));
    }

    /// Saves the settings of the tables.
    pub(super) fn save_tables(&self) {
        self.journaled(Journal::save_tables);
    }

    /// Saves the counts of the entries that a piece of a dump has listed.
    pub(super) fn save_counts_of(&self, dump: &Dump) {
        self.journaled(|journal, control| journal.save_counts_of(control, dump.listed()));
    }

    /// Saves the counts of groups and meters.
    pub(super) fn save_shared_counts(&self) {
        self.journaled(Journal::save_shared_counts);
    }

    /// Saves all counts and addresses of now, where the state is kept.
    pub(crate) async fn save_counts(&self) {
        if !self.keeps_state() {
            return;
        }
        self.flush_counters().await;
        let mut next = Some(0);
        while let Some(from) = next {
            let saved =
                self.journaled(|journal, control| journal.save_counts(control, from, PIECE));
            next = saved.flatten();
            tokio::task::yield_now().await;
        }
        self.save_shared_counts();
        let now = self.clock.now();
        self.journaled(|journal, control| journal.save_addresses(control, now));
    }

    /// Writes the journal anew, in pieces, where that is due.
    pub(crate) async fn compact(&self) {
        let now = Instant::now();
        let begun = self.journaled(|journal, control| journal.begin_due_compaction(control, now));
        let mut goes_on = begun == Some(true);
        while goes_on {
            tokio::task::yield_now().await;
            let more = |journal: &mut Journal, control: &Control| {
                journal.go_on_with_compaction(control, PIECE)
            };
            goes_on = self.journaled(more) == Some(true);
        }
    }
}
