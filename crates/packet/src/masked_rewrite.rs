//! A rewrite of headers as masked words, with the checksums that follow and the VLAN tag that comes
//! or goes: data for the kernel tier, which carries it out beside the forwarder.
//!
//! It names places of one shape of frames, so it must never be used on frames of another one.
//! Places are those of the frame without its outermost VLAN tag, which a kernel keeps beside the
//! frame.

/// Eight bytes of a header: which bits stay, and what the others become. Bits are in the order of
/// memory, as are those of the masks that say which changed bits a checksum covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaskedWord {
    /// Place in the frame.
    pub at: u8,
    /// The bits that stay.
    pub keep: u64,
    /// The others.
    pub value: u64,
    /// Changed bits that the checksum of the IPv4 header covers.
    pub ip: u64,
    /// Changed bits of the pseudo-header.
    pub pseudo: u64,
    /// Changed bits that the transport's checksum covers itself.
    pub l4: u64,
    /// No checksum in the packet makes up for the change, so that the sum of the packet is another
    /// one afterwards. A word has either such changes or others.
    pub is_open: bool,
}

/// Change of the outermost VLAN tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TagChange {
    /// Nothing.
    #[default]
    None,
    /// The one that is there keeps these bits of its TCI, and gets the others from the second.
    Set(u16, u16),
    /// A frame without one gets one of this EtherType with this TCI.
    Push(u16, u16),
    /// The one that is there goes.
    Pop,
}

/// A TTL or hop limit that goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoweredTtl {
    /// Place in the frame.
    pub at: u8,
    /// By how much it goes down.
    pub by: u8,
    /// The value that it must exceed.
    pub above: u8,
    /// As [`MaskedWord::is_open`].
    pub is_open: bool,
}

/// Changes to the headers of a frame before it leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaskedRewrite {
    /// The words that change.
    pub words: Vec<MaskedWord>,
    /// The TTL that goes down.
    pub ttl: Option<LoweredTtl>,
    /// Place of the checksum of IPv4, if it changes.
    pub ip_checksum: Option<u8>,
    /// Place of that of the transport, if it changes.
    pub l4_checksum: Option<u8>,
    /// Whether it is that of UDP, where zero stands for none.
    pub is_udp: bool,
    /// Change of the outermost VLAN tag.
    pub tag: TagChange,
}
