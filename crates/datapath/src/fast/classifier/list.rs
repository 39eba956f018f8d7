//! A list of entries by rank, compared one after the other: the shape of a table with a handful of
//! entries, and the last resort for entries that no group takes.

use super::SEQ_BITS;
use super::records::Records;
use crate::fast::ids::EntryId;
use crate::precedence::Precedence;

/// An entry of the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) rank: u64,
    pub(super) slot: u32,
    pub(super) id: EntryId,
}

/// Entries by rank.
#[derive(Debug, Default)]
pub(super) struct List {
    items: Vec<Item>,
}

impl List {
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(super) fn bytes(&self) -> usize {
        self.items.capacity() * size_of::<Item>()
    }

    pub(super) fn insert(&mut self, records: &Records, slot: u32) {
        let line = records.get(slot);
        let item = Item { rank: line.rank(), slot, id: line.id() };
        let at = self.items.partition_point(|held| held.rank <= item.rank);
        self.items.insert(at, item);
    }

    /// Takes an entry away and says where its record is.
    pub(super) fn remove(&mut self, precedence: Precedence, id: EntryId) -> Option<u32> {
        let order = u64::from(precedence.order());
        let start = self.items.partition_point(|held| held.rank >> SEQ_BITS < order);
        let same = self.items[start..].iter().take_while(|held| held.rank >> SEQ_BITS == order);
        let at = start + same.enumerate().find(|(_, held)| held.id == id)?.0;
        Some(self.items.remove(at).slot)
    }

    /// Takes all entries away.
    pub(super) fn take(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.items)
    }
}
