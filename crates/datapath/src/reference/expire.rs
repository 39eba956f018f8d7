//! Flow expiry (clause 5.5): exact to the nanosecond of the time that is given.

use super::Reference;
use crate::seam::Removed;
use crate::time::Nanos;

impl Reference {
    /// Removes the entries whose timeout has passed, table by table.
    pub(super) fn run_expiry(&mut self, now: Nanos) -> Vec<Removed> {
        let tables = 0..self.config.n_tables;
        self.remove(tables, now, |entry| entry.expired(now))
    }

    /// The earliest moment at which an entry expires.
    pub(super) fn earliest_expiry(&self) -> Option<Nanos> {
        let entries = self.tables.iter().flat_map(|table| table.entries());
        entries.filter_map(|entry| entry.expiry()).map(|(at, _)| at).min()
    }
}
