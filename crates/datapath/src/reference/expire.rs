//! Expiry of flow entries (clause 5.5) and of fragments: exact to the nanosecond of the time that
//! is given.

use super::Reference;
use crate::counter::DropReason;
use crate::seam::Removed;
use crate::time::Nanos;

impl Reference {
    /// Removes the entries whose timeout has passed, table by table.
    pub(super) fn run_expiry(&mut self, now: Nanos) -> Vec<Removed> {
        let fragments = self.reassembler.expire(now);
        self.counters.add_drops(DropReason::FragmentTimeout, fragments);
        let tables = 0..self.config.n_tables;
        self.remove(tables, now, |entry| entry.expired(now))
    }

    /// The earliest moment at which an entry expires.
    pub(super) fn earliest_expiry(&self) -> Option<Nanos> {
        let entries = self.tables.iter().flat_map(|table| table.entries());
        entries.filter_map(|entry| entry.expiry()).map(|(at, _)| at).min()
    }
}
