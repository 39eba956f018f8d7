//! The memory budget: asked before an entry, a group or a meter is added.
//!
//! Who owns the process knows what it may take and what it takes; the datapath only asks, and
//! refuses with the error of a full table. It must never be asked for a packet.

use std::fmt::Debug;

/// What an addition needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryNeed {
    /// Room that there was before: as many have been there already.
    Reused,
    /// Room that there never was.
    New,
}

/// Says whether something may be added.
pub trait MemoryBudget: Debug + Send + Sync {
    /// Whether there is memory for one more.
    fn allows(&self, need: MemoryNeed) -> bool;
}

/// How many there have been at most, of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peak(usize);

impl Peak {
    /// What one more than so many needs.
    pub(crate) fn need(&mut self, held: usize) -> MemoryNeed {
        self.0 = self.0.max(held);
        if held < self.0 { MemoryNeed::Reused } else { MemoryNeed::New }
    }
}

#[cfg(test)]
mod tests {
    use super::{MemoryNeed, Peak};

    #[test]
    fn what_was_there_before_needs_nothing_new() {
        let mut peak = Peak::default();
        assert_eq!(peak.need(0), MemoryNeed::New);
        assert_eq!(peak.need(9), MemoryNeed::New);
        assert_eq!(peak.need(8), MemoryNeed::Reused);
        assert_eq!(peak.need(0), MemoryNeed::Reused);
        assert_eq!(peak.need(9), MemoryNeed::New);
    }
}
