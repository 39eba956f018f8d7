//! The entries that the packets of a burst matched, table by table.
//!
//! Kept by table and not by packet: a packet that passes 64 tables leaves a number in each of 64
//! rows of 256 bytes, which all packets of the burst share, and its entries are counted row by row,
//! where each waits for no other. Kept and counted packet by packet, a lookup in 64 tables spent a
//! third of its time on that. It must not be read for another burst.

use openflow::TableId;

use super::path::PathStep;
use super::replica::Replica;
use crate::fast::classifier::BURST;
use crate::fast::ids::EntryId;

/// Number of no entry.
pub(super) const NONE: u32 = u32::MAX;

/// The entries that were matched in one table.
#[derive(Debug)]
pub(super) struct Row {
    table: TableId,
    /// The packets that came here.
    among: u64,
    /// Of each of them, the entry that it matched, or [`NONE`].
    pub(super) ids: [u32; BURST],
    /// Length of each less that with which it came, in bytes; zero for all if not `has_len_deltas`.
    len_deltas: [i32; BURST],
    has_len_deltas: bool,
}

impl Row {
    /// Records that the length of a packet is another one here than when it came.
    pub(super) fn set_len_delta(&mut self, index: usize, len_delta: i32) {
        if len_delta != 0 && !self.has_len_deltas {
            self.len_deltas = [0; BURST];
            self.has_len_deltas = true;
        }
        if self.has_len_deltas {
            self.len_deltas[index] = len_delta;
        }
    }

    fn len_delta(&self, index: usize) -> i32 {
        if self.has_len_deltas { self.len_deltas[index] } else { 0 }
    }

    fn prefetch_counters(&self, replica: &Replica, counted: u64) {
        for index in bits(self.among & counted) {
            replica.counters().entries.prefetch(EntryId(self.ids[index]));
        }
    }
}

/// The rows of a burst, in the order of the tables.
#[derive(Debug, Default)]
pub(super) struct MatchedRows {
    rows: Vec<Row>,
    len: usize,
}

impl MatchedRows {
    /// Begins with a new burst.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// A row for a table where these packets are looked up.
    pub(super) fn row(&mut self, table: TableId, among: u64) -> &mut Row {
        if self.rows.len() == self.len {
            let (ids, len_deltas) = ([NONE; BURST], [0; BURST]);
            self.rows.push(Row { table, among, ids, len_deltas, has_len_deltas: false });
        }
        self.len += 1;
        let row = &mut self.rows[self.len - 1];
        (row.table, row.among, row.has_len_deltas) = (table, among, false);
        row
    }

    fn rows(&self) -> &[Row] {
        &self.rows[..self.len]
    }

    /// The entry that a packet matched in the last of the rows.
    pub(super) fn last(&mut self, index: usize) -> &mut u32 {
        &mut self.rows[self.len - 1].ids[index]
    }

    /// Number of tables that a packet has come to so far.
    pub(super) fn tables(&self, index: usize) -> usize {
        self.rows().iter().filter(|row| row.among >> index & 1 != 0).count()
    }

    /// Lists the entries that one packet matched, in order.
    pub(super) fn steps(&self, index: usize, into: &mut Vec<PathStep>) {
        into.clear();
        let passed = self.rows().iter().filter(|row| row.among >> index & 1 != 0);
        into.extend(passed.map(|row| PathStep {
            table: row.table,
            entry: Some(EntryId(row.ids[index])).filter(|id| id.0 != NONE),
            len_delta: row.len_delta(index),
        }));
    }

    /// Counts some of the packets, of these lengths in bytes, in every table that they came to.
    pub(super) fn count(&self, replica: &Replica, counted: u64, lens: &[u32; BURST]) {
        if let Some(row) = self.rows().first() {
            row.prefetch_counters(replica, counted);
        }
        let own = replica.counters();
        for (at, row) in self.rows().iter().enumerate() {
            if let Some(next) = self.rows().get(at + 1) {
                next.prefetch_counters(replica, counted);
            }
            let (mut packets, mut matched) = (0, 0);
            for index in bits(row.among & counted) {
                packets += 1;
                if row.ids[index] != NONE {
                    matched += 1;
                    let len_delta = i64::from(row.len_delta(index)) as u64;
                    let bytes = u64::from(lens[index]).wrapping_add(len_delta);
                    own.entries.add(EntryId(row.ids[index]), 1, bytes);
                }
            }
            if let Some(cell) = own.table(row.table) {
                cell.lookups.add(packets);
                cell.matches.add(matched);
            }
        }
    }
}

/// The places of the bits that are set, from the lowest on.
#[inline]
pub(super) fn bits(set: u64) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let at = rest.trailing_zeros() as usize;
        rest &= rest.wrapping_sub(1);
        (at < BURST).then_some(at)
    })
}
