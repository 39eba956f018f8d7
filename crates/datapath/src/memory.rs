//! The memory budget: asked before an entry, a group or a meter is added, or gets a new list of
//! instructions or buckets.
//!
//! The owner of the process knows its memory and the limit of it; the datapath only asks, and
//! refuses with the error of a full table. It must never be asked for a packet.

use std::fmt::Debug;
use std::mem::{size_of, size_of_val};

use openflow::group::Bucket;
use openflow::{Action, Instruction};

/// Memory that an addition needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryNeed {
    /// Room that there was before: as many have been there already.
    Reused,
    /// Room that there never was.
    New,
}

/// Says whether something may be added.
pub trait MemoryBudget: Debug + Send + Sync {
    /// Whether there is memory for one more. `bytes` is the size of its instructions, buckets or
    /// bands: the part of it that a controller can make large.
    fn allows(&self, need: MemoryNeed, bytes: usize) -> bool;
}

/// The size of a list of instructions.
pub(crate) fn instructions_size(instructions: &[Instruction]) -> usize {
    let lists: usize = instructions.iter().map(Instruction::list_bytes).sum();
    size_of_val(instructions) + lists
}

/// The size of a list of buckets.
pub(crate) fn buckets_size(buckets: &[Bucket]) -> usize {
    let size = |bucket: &Bucket| size_of::<Bucket>() + size_of_val::<[Action]>(&bucket.actions);
    buckets.iter().map(size).sum()
}

/// The largest number so far, of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peak(usize);

impl Peak {
    /// The need of one more than `held`.
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
