//! Numbers that control and forwarders know the same things by.

/// Place of a flow entry in control's slab and in every slab of counters. An entry keeps its id for
/// life; the id is given to another one only when every forwarder has flushed the counts of the
/// first one for the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u32);

impl EntryId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of a flush of counters: the first one is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);
