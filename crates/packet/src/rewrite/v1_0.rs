//! The actions of OpenFlow 1.0 that behave unlike a set-field of 1.3 (1.0 clause 5.2.4).

use super::field::set_field;
use super::push::insert_tag;
use crate::buf::PacketBuf;
use crate::header::ethernet;
use crate::layout::{Layout, Transport};
use openflow::Field;

/// Writes the VLAN id; without a tag one is pushed, with priority 0. False only for what is no
/// Ethernet frame.
pub fn set_vlan_vid(buf: &mut PacketBuf, vid: u16) -> bool {
    set_or_push(buf, Field::VlanVid, vid.into(), 0, vid)
}

/// Writes the VLAN priority; without a tag one is pushed, with VLAN id 0. False only for what is no
/// Ethernet frame.
pub fn set_vlan_pcp(buf: &mut PacketBuf, pcp: u8) -> bool {
    set_or_push(buf, Field::VlanPcp, pcp.into(), pcp & 7, 0)
}

fn set_or_push(buf: &mut PacketBuf, field: Field, value: u128, pcp: u8, vid: u16) -> bool {
    if set_field(buf, field, value) {
        return true;
    }
    let is_frame = Layout::of(buf.bytes()).is_some();
    if is_frame {
        insert_tag(buf, ethernet::VLAN, pcp, vid);
    }
    is_frame
}

/// Writes the source port of TCP, UDP or SCTP; false when the packet has none of them.
pub fn set_tp_src(buf: &mut PacketBuf, port: u16) -> bool {
    set_tp(buf, port, [Field::TcpSrc, Field::UdpSrc, Field::SctpSrc])
}

/// Writes the destination port of TCP, UDP or SCTP; false when the packet has none of them.
pub fn set_tp_dst(buf: &mut PacketBuf, port: u16) -> bool {
    set_tp(buf, port, [Field::TcpDst, Field::UdpDst, Field::SctpDst])
}

fn set_tp(buf: &mut PacketBuf, port: u16, [tcp, udp, sctp]: [Field; 3]) -> bool {
    let Some(layout) = Layout::of(buf.bytes()) else { return false };
    let field = match layout.transport {
        Transport::Tcp => tcp,
        Transport::Udp => udp,
        Transport::Sctp => sctp,
        Transport::Other | Transport::Icmpv4 | Transport::Icmpv6 => return false,
    };
    set_field(buf, field, port.into())
}

/// Writes the six DSCP bits of a TOS byte; its two low bits are left alone. False without IP.
pub fn set_nw_tos(buf: &mut PacketBuf, tos: u8) -> bool {
    set_field(buf, Field::IpDscp, (tos >> 2).into())
}
