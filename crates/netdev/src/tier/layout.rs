//! Layout of the maps of the kernel tier. The programs and this process read and write the same
//! bytes, so each place is named once, here.

use packet::Shape;

/// The version of what another process reads of a tier: state, cells, owners. A tier of another
/// version is removed.
pub(super) const VERSION: u32 = 1;

/// First bytes of a frame that a key has.
pub const BYTES: usize = 64;
/// Outputs of an entry at most.
pub const OUTPUTS_MAX: usize = 8;

/// The state: the generation, zero while no entry holds.
pub(super) const STATE_GENERATION: usize = 0;
/// In a tier that outlives its process: until when the programs decide at all, in nanoseconds of
/// the monotonic clock, and how many slots it has.
pub(super) const STATE_UNTIL: usize = 8;
pub(super) const STATE_SLOTS: usize = 16;
/// The masks, by shape.
pub(super) const STATE_MASKS: usize = 64;
/// For each processor, a count of the begins and ends of runs, on a cache line of its own. Odd
/// while the program runs there.
pub(super) const STATE_RUNS: usize = (STATE_MASKS + BYTES * Shape::COUNT).next_multiple_of(64);

/// Behind that count, how many of the frames were handed over.
pub(super) const RUNS_HANDED_OVER: usize = 8;

/// Whether the ring of a device that the program is about to take over has got the frame that came
/// last; its filter writes it.
pub(super) const RUNS_IN_RING: usize = 16;

/// The bit of a TAP device's number while frames may still be in the ring of its port's device.
pub(super) const TAKES_OVER: u32 = 1 << 31;

/// Bytes of the state for `cpus` processors.
pub(super) const fn state_len(cpus: usize) -> usize {
    STATE_RUNS + 64 * cpus
}

/// A key: the number of the device, the shape, and the masked bytes.
pub(super) const KEY_LEN: usize = 8 + BYTES;

/// An entry: the generation in which it holds.
pub(super) const ENTRY_GENERATION: usize = 0;
/// The number of its cells.
pub(super) const ENTRY_SLOT: usize = 8;
/// The number of its outputs; none is a drop.
pub(super) const ENTRY_OUTPUTS: usize = 12;
/// Bytes of the longest packet that all outputs can carry.
pub(super) const ENTRY_LEN_MAX: usize = 16;
/// The token that its slot must hold for it to decide.
pub(super) const ENTRY_TOKEN: usize = 24;
/// The outputs: numbers of devices; of the last one perhaps that of a patch port, with
/// [`PATCH_OUTPUT`].
pub(super) const ENTRY_OUTPUT: usize = 32;
/// The destination of frames that go straight to the far end of the only output, with
/// [`STRAIGHT`]; zero for none.
pub(super) const ENTRY_PEER: usize = ENTRY_OUTPUT + 4 * OUTPUTS_MAX;
pub(super) const ENTRY_LEN: usize = ENTRY_PEER + 8;

/// The bit of an output that no device has.
pub(crate) const PATCH_OUTPUT: u32 = 1 << 31;

/// The bit of a destination that no address has.
pub(super) const STRAIGHT: u32 = 48;

/// A slot: the token of the entry that holds, zero for none.
pub(super) const SLOT_TOKEN: usize = 0;
/// Until when it holds, in nanoseconds of the monotonic clock; all ones for always.
pub(super) const SLOT_UNTIL: usize = 8;
/// The rewrite, of headers without a tag: how many words of eight bytes it changes.
pub(super) const SLOT_WORDS: usize = 16;
/// Place of the TTL, zero for none that goes down; by how much, as a change of the 16-bit word that
/// it stands in; and what it must be above.
pub(super) const SLOT_TTL_AT: usize = 20;
pub(super) const SLOT_TTL_BY: usize = 24;
pub(super) const SLOT_TTL_ABOVE: usize = 28;
/// Places of the checksums that change, zero for none, and how the transport's is replaced.
pub(super) const SLOT_IP_AT: usize = 32;
pub(super) const SLOT_L4_AT: usize = 36;
pub(super) const SLOT_L4_FLAGS: usize = 40;
/// Treatment of the outermost VLAN tag: one of the numbers below; the EtherType of one that comes,
/// in the order of the wire; which bits of the TCI stay, and what the others become; and bytes by
/// which the frame grows beyond one tag that an MTU leaves room for.
pub(super) const SLOT_TAG: usize = 44;
pub(super) const SLOT_TAG_TYPE: usize = 48;
pub(super) const SLOT_TAG_KEEP: usize = 52;
pub(super) const SLOT_TAG_VALUE: usize = 56;
pub(super) const SLOT_TAG_BEYOND: usize = 60;
/// Flags for storing the TTL.
pub(super) const SLOT_TTL_FLAGS: usize = 64;
/// The words.
pub(super) const SLOT_WORD: usize = 72;
/// For each output but the last, whose end the program does not see: what did not come to it.
pub(super) const SLOT_UNSENT: usize = SLOT_WORD + WORD_LEN * WORDS_MAX;
pub(super) const SLOT_LEN: usize = SLOT_UNSENT + UNSENT_LEN * (OUTPUTS_MAX - 1);

/// Treatments of the VLAN tag.
pub(super) const TAG_SET: i32 = 1;
pub(super) const TAG_PUSH: i32 = 2;
pub(super) const TAG_POP: i32 = 3;

/// Words of a rewrite at most.
pub(super) const WORDS_MAX: usize = 8;
/// A word: its place, which bits stay, and what the others become; which of these are covered by
/// the checksum of IPv4, by the transport's as part of its pseudo-header, and by it itself; and
/// flags for storing it.
pub(super) const WORD_AT: usize = 0;
pub(super) const WORD_KEEP: usize = 8;
pub(super) const WORD_VALUE: usize = 16;
pub(super) const WORD_IP: usize = 24;
pub(super) const WORD_PSEUDO: usize = 32;
pub(super) const WORD_L4: usize = 40;
pub(super) const WORD_FLAGS: usize = 48;
pub(super) const WORD_LEN: usize = 56;

/// Losses before an output: packets, and their bytes.
pub(super) const UNSENT_PACKETS: usize = 0;
pub(super) const UNSENT_BYTES: usize = 8;
pub(super) const UNSENT_LEN: usize = 16;

/// A cell, of one entry on one processor: packets, bytes, and when it was last used; the time is
/// kept only where the slot has one. Then packets and bytes as they were sent on, and packets for
/// which the kernel had no memory.
pub(super) const CELL_PACKETS: usize = 0;
pub(super) const CELL_BYTES: usize = 8;
pub(super) const CELL_USED: usize = 16;
pub(super) const CELL_SENT_PACKETS: usize = 24;
pub(super) const CELL_SENT_BYTES: usize = 32;
pub(super) const CELL_LOST: usize = 40;
pub(super) const CELL_LEN: usize = 48;

/// The owners of a slot's counts, for the process that comes after this one: the packets and bytes
/// that they have got, how many owners there are, and which.
pub(super) const OWNERS_PACKETS: usize = 0;
pub(super) const OWNERS_BYTES: usize = 8;
pub(super) const OWNERS_COUNT: usize = 16;
pub(super) const OWNERS_LIST: usize = 24;
/// Owners of a slot at most.
pub const OWNERS_MAX: usize = 29;
pub(super) const OWNERS_LEN: usize = OWNERS_LIST + 8 * OWNERS_MAX;
