//! Offsets in `struct __sk_buff`, as the programs of the kernel tier read it. The kernel keeps the
//! outermost VLAN tag beside the frame, so no length here has it.

pub(super) const LEN: i16 = 0;
pub(super) const QUEUE_MAPPING: i16 = 12;
pub(super) const VLAN_PRESENT: i16 = 20;
pub(super) const VLAN_TCI: i16 = 24;
pub(super) const VLAN_PROTO: i16 = 28;
/// The number of the device.
pub(super) const IFINDEX: i16 = 40;
/// Words that go from program to program: a queue, and how many patch ports a frame has passed.
pub(super) const CB: i16 = 48;
pub(super) const CB_HOPS: i16 = 52;
pub(super) const DATA: i16 = 76;
pub(super) const DATA_END: i16 = 80;
pub(super) const GSO_SIZE: i16 = 176;
