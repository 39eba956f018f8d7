//! Changing frames: fields, tags, labels and TTLs, with every checksum corrected.
//!
//! Checksums are updated by the difference (RFC 1624), never computed anew, so a frame that came
//! in damaged leaves damaged. A header that the frame does not have is no error: nothing is changed
//! and the function says so.
//!
//! Corrected are the checksums of IPv4, TCP, UDP, ICMP, ICMPv6 and SCTP. Left alone are: a UDP
//! checksum of zero (there is none); later fragments (they have none); SCTP's CRC32c in a fragment
//! or a truncated frame (it covers bytes that are not here); the pseudo-header's destination while
//! an IPv6 routing header has segments left (it names another destination).

mod field;
mod patch;
mod push;
mod ttl;
mod v1_0;

pub use field::{move_bits, set_field, write_bits};
pub use push::{pop_mpls, pop_pbb, pop_vlan, push_mpls, push_pbb, push_vlan};
pub use ttl::{
    TtlInvalid, copy_ttl_in, copy_ttl_out, dec_mpls_ttl, dec_nw_ttl, set_mpls_ttl, set_nw_ttl,
};
pub use v1_0::{set_nw_tos, set_tp_dst, set_tp_src, set_vlan_pcp, set_vlan_vid};
