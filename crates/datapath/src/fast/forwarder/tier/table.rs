//! A table in the kernel as the forwarder sees it: flows, verdicts, and their counts.

use openflow::{GroupId, PortNo};
use packet::{MaskedRewrite, Shape};

use crate::fast::ids::EntryId;
use crate::time::Nanos;

/// First bytes of a frame that make up a key.
pub const TIER_BYTES: usize = 64;

/// Most ports that the kernel sends one frame by.
pub const TIER_OUTPUTS_MAX: usize = 8;

/// The key of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TierFlow {
    /// The port.
    pub in_port: PortNo,
    /// The frames' shape.
    pub shape: Shape,
    /// The first bytes of the frame that make a difference; the others are zero.
    pub bytes: [u8; TIER_BYTES],
}

/// An entry's effect on its frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TierVerdict {
    /// Changes that come first.
    pub rewrite: MaskedRewrite,
    /// The ports that the frame leaves by; nowhere without any.
    pub outputs: Box<[PortNo]>,
}

/// A table in the kernel that decides about frames before the forwarder sees them.
pub trait KernelTable {
    /// The number of entries that there is room for.
    fn slots(&self) -> usize;

    /// Begins with no entry. Frames are masked by these masks, one for each shape.
    fn start(&mut self, masks: &[[u8; TIER_BYTES]; Shape::COUNT]);

    /// Ends all entries. When it returns, none decides or counts any more.
    fn stop(&mut self);

    /// Makes an entry in a slot, which no other has. It holds until that time at most. Whether it
    /// could be made.
    fn put(&mut self, slot: u32, flow: &TierFlow, verdict: &TierVerdict, until: Nanos) -> bool;

    /// The entry in a slot holds until that time at most.
    fn extend(&mut self, slot: u32, until: Nanos);

    /// Ends the entries in these slots. When it returns, they do not decide or count any more.
    fn end(&mut self, slots: &[u32]);

    /// Removes an entry. When it returns, it does not decide or count any more.
    fn remove(&mut self, flow: &TierFlow);

    /// Entries that have ended leave the table some time, before their port has another device.
    fn leave(&mut self, flows: &[TierFlow]);

    /// The number of slots whose counts may be read at once, so that no port waits for long.
    fn slots_at_once(&self) -> usize;

    /// All that was ever counted in a slot.
    fn counts(&self, slot: u32) -> TierSlotCounts;

    /// Credits packets to the devices of the ports that they came and left by.
    fn credit(&mut self, in_port: PortNo, outputs: &[PortNo], counts: &TierSlotCounts);

    /// Takes back from the devices of a slot's outputs what was counted as sent and did not come
    /// there. It may be found later than the packets are.
    fn take_back_unsent(&mut self, slot: u32, outputs: &[PortNo]);

    /// Whether the table outlives the process, so that it must know whose its counts are.
    fn keeps_owners(&self) -> bool {
        false
    }

    /// These are the owners of a slot's counts from now on; whether there is room for all. No entry
    /// holds there.
    fn note_owners(&mut self, _slot: u32, _owners: &[TierOwner]) -> bool {
        true
    }

    /// The owners of a slot have got all up to these counts.
    fn note_credited(&mut self, _slot: u32, _counts: &TierSlotCounts) {}
}

/// Counts of a table for an earlier process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptCounts {
    /// The owners, each of which gets all of it.
    pub owners: Vec<TierOwner>,
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the last one came; zero where the entry had no time.
    pub last_used: Nanos,
}

/// An owner of counts in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierOwner {
    /// A flow entry.
    Entry(EntryId),
    /// A group.
    Group(GroupId),
    /// A bucket of a group.
    Bucket(GroupId, u32),
}

impl TierOwner {
    /// The number of no owner.
    pub const NOBODY: u64 = u64::MAX;
    const KIND: u32 = 62;
    const INDEX_MAX: u64 = (1 << 30) - 1;

    /// The owner as a number.
    #[must_use]
    pub fn to_number(self) -> u64 {
        match self {
            Self::Entry(id) => u64::from(id.0),
            Self::Group(id) => 1 << Self::KIND | u64::from(id.0),
            Self::Bucket(id, index) => {
                2 << Self::KIND | (u64::from(index) & Self::INDEX_MAX) << 32 | u64::from(id.0)
            }
        }
    }

    /// The owner of a number; none where there is no such.
    #[must_use]
    pub fn of_number(number: u64) -> Option<Self> {
        let (low, index) = (number as u32, number >> 32 & Self::INDEX_MAX);
        match number >> Self::KIND {
            0 => Some(Self::Entry(EntryId(low))),
            1 => Some(Self::Group(GroupId(low))),
            2 => Some(Self::Bucket(GroupId(low), index as u32)),
            _ => None,
        }
    }
}

/// The kernel's table of a forwarder that has none.
#[derive(Debug)]
pub enum NoKernel {}

impl KernelTable for NoKernel {
    fn slots(&self) -> usize {
        match *self {}
    }

    fn start(&mut self, _masks: &[[u8; TIER_BYTES]; Shape::COUNT]) {
        match *self {}
    }

    fn stop(&mut self) {
        match *self {}
    }

    fn put(&mut self, _slot: u32, _flow: &TierFlow, _does: &TierVerdict, _until: Nanos) -> bool {
        match *self {}
    }

    fn extend(&mut self, _slot: u32, _until: Nanos) {
        match *self {}
    }

    fn end(&mut self, _slots: &[u32]) {
        match *self {}
    }

    fn remove(&mut self, _flow: &TierFlow) {
        match *self {}
    }

    fn leave(&mut self, _flows: &[TierFlow]) {
        match *self {}
    }

    fn slots_at_once(&self) -> usize {
        match *self {}
    }

    fn counts(&self, _slot: u32) -> TierSlotCounts {
        match *self {}
    }

    fn credit(&mut self, _in_port: PortNo, _outputs: &[PortNo], _counts: &TierSlotCounts) {
        match *self {}
    }

    fn take_back_unsent(&mut self, _slot: u32, _outputs: &[PortNo]) {
        match *self {}
    }
}

/// All that was ever counted in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierSlotCounts {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the last one came; zero where the entry had no time.
    pub last_used: Nanos,
    /// Packets that were sent on, by each output.
    pub sent_packets: u64,
    /// Their bytes, as they left.
    pub sent_bytes: u64,
    /// Packets that the kernel had no memory to change.
    pub lost: u64,
}

impl TierSlotCounts {
    /// The difference to earlier counts.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            packets: self.packets.wrapping_sub(earlier.packets),
            bytes: self.bytes.wrapping_sub(earlier.bytes),
            last_used: self.last_used,
            sent_packets: self.sent_packets.wrapping_sub(earlier.sent_packets),
            sent_bytes: self.sent_bytes.wrapping_sub(earlier.sent_bytes),
            lost: self.lost.wrapping_sub(earlier.lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EntryId, GroupId, TierOwner};

    #[test]
    fn owners_go_through_numbers() {
        let group = GroupId(u32::MAX - 3);
        for owner in [
            TierOwner::Entry(EntryId(u32::MAX)),
            TierOwner::Group(group),
            TierOwner::Bucket(group, (1 << 30) - 1),
        ] {
            assert_eq!(TierOwner::of_number(owner.to_number()), Some(owner));
        }
        assert_eq!(TierOwner::of_number(TierOwner::NOBODY), None);
    }
}
