//! The kinds of port: a file each, and its name here, declared and listed.

pub mod af_packet;
pub mod dpdk;
pub mod memory;
pub mod null;
pub mod pcap;
pub mod tap;

use crate::kind::KindRow;

/// The rows of all kinds, in the order of help texts.
pub const KINDS: &[KindRow] =
    &[af_packet::ROW, tap::ROW, memory::ROW, pcap::ROW, null::ROW, dpdk::ROW];
