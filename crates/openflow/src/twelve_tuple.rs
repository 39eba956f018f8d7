//! The twelve-tuple of OpenFlow 1.0 (`ofp_match`, its clause 5.2.3): its members, and what they say
//! beside the match fields that they mean.
//!
//! Several tuples can mean the same fields: bits that a field has no room for, a priority where no
//! tag is wanted, addresses of a protocol that has none. Statistics give a match back as it was
//! set up, so the difference travels with the [`crate::Match`]; it never decides about a packet.

use crate::id::MacAddr;

/// Every bit of `wildcards` that has a meaning (`OFPFW_ALL`).
pub const WILDCARDS_ALL: u32 = (1 << 22) - 1;

/// The members of `ofp_match` as they stand on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are those of the specification")]
pub struct TwelveTuple {
    pub wildcards: u32,
    pub in_port: u16,
    pub dl_src: MacAddr,
    pub dl_dst: MacAddr,
    pub dl_vlan: u16,
    pub dl_vlan_pcp: u8,
    pub dl_type: u16,
    pub nw_tos: u8,
    pub nw_proto: u8,
    pub nw_src: u32,
    pub nw_dst: u32,
    pub tp_src: u16,
    pub tp_dst: u16,
}

impl TwelveTuple {
    /// The bits in which two tuples differ; applied to one of them it gives the other.
    #[must_use]
    pub fn difference(self, other: Self) -> Self {
        let mac = |a: MacAddr, b: MacAddr| MacAddr::from_u64(a.to_u64() ^ b.to_u64());
        Self {
            wildcards: self.wildcards ^ other.wildcards,
            in_port: self.in_port ^ other.in_port,
            dl_src: mac(self.dl_src, other.dl_src),
            dl_dst: mac(self.dl_dst, other.dl_dst),
            dl_vlan: self.dl_vlan ^ other.dl_vlan,
            dl_vlan_pcp: self.dl_vlan_pcp ^ other.dl_vlan_pcp,
            dl_type: self.dl_type ^ other.dl_type,
            nw_tos: self.nw_tos ^ other.nw_tos,
            nw_proto: self.nw_proto ^ other.nw_proto,
            nw_src: self.nw_src ^ other.nw_src,
            nw_dst: self.nw_dst ^ other.nw_dst,
            tp_src: self.tp_src ^ other.tp_src,
            tp_dst: self.tp_dst ^ other.tp_dst,
        }
    }
}

/// The form in which a match was written as a twelve-tuple.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TupleForm {
    /// Whether it has no wildcards, so that its entry comes before all that have some (clause 3.4
    /// of 1.0).
    pub is_exact: bool,
    /// The difference of the tuple that was sent from the one that the match fields give.
    pub difference: TwelveTuple,
}
