//! Pushing and popping VLAN tags, MPLS entries and PBB headers (clauses 5.12.1 and 7.2.5).
//!
//! A pushed header takes its values from the header that was outermost before, else zeros. An MPLS
//! entry goes behind the VLAN tags, before the first MPLS entry or IP header (OpenFlow 1.3.4).

use super::patch::put;
use crate::buf::PacketBuf;
use crate::header::{be16, chunk, ethernet, ipv4, ipv6, mpls, number, pbb, vlan};
use crate::layout::{Layout, Network};

/// Bytes of a PBB header in front of a frame: EtherType and I-TAG, without the backbone addresses.
const PBB_LEN: usize = 2 + pbb::TAG_LEN;

/// Pushes a VLAN tag as the outermost, with the VLAN id and priority of the outermost one before.
/// False only for what is no Ethernet frame.
pub fn push_vlan(buf: &mut PacketBuf, ether_type: u16) -> bool {
    let Some(layout) = Layout::of(buf.bytes()) else { return false };
    let outer = (layout.tags > 0).then(|| be16(buf.bytes(), vlan::OUTERMOST_TCI)).flatten();
    let tci = outer.unwrap_or(0);
    insert_tag(buf, ether_type, vlan::pcp(tci), vlan::vid(tci));
    true
}

pub(super) fn insert_tag(buf: &mut PacketBuf, ether_type: u16, pcp: u8, vid: u16) {
    buf.insert(ethernet::ETHER_TYPE, vlan::TAG_LEN);
    let tci = u16::from(pcp) << vlan::PCP_SHIFT | vid & vlan::VID_MASK;
    put(buf.bytes_mut(), ethernet::ETHER_TYPE, &ether_type.to_be_bytes());
    put(buf.bytes_mut(), vlan::OUTERMOST_TCI, &tci.to_be_bytes());
}

/// Pops the outermost VLAN tag; false when there is none.
pub fn pop_vlan(buf: &mut PacketBuf) -> bool {
    let tagged = Layout::of(buf.bytes()).is_some_and(|layout| layout.tags > 0);
    if tagged {
        buf.remove(ethernet::ETHER_TYPE, vlan::TAG_LEN);
    }
    tagged
}

/// Pushes an MPLS entry with the label, traffic class and TTL of the outermost one before; without
/// one, the bottom of stack is set and the TTL is IP's. False for a frame that has no EtherType.
pub fn push_mpls(buf: &mut PacketBuf, ether_type: u16) -> bool {
    let Some(layout) = Layout::of(buf.bytes()) else { return false };
    let Some(type_at) = layout.eth_type_at else { return false };
    let entry = match layout.network {
        Network::Mpls => {
            let outer = chunk(buf.bytes(), layout.l3).map_or(0, |entry| u32::from_be_bytes(*entry));
            outer & !mpls::BOS
        }
        Network::Ipv4 => first_entry(buf.bytes().get(layout.l3 + ipv4::TTL)),
        Network::Ipv6 => first_entry(buf.bytes().get(layout.l3 + ipv6::HOP_LIMIT)),
        Network::Other | Network::Pbb | Network::Arp => first_entry(None),
    };
    buf.insert(layout.l3, mpls::ENTRY_LEN);
    let frame = buf.bytes_mut();
    put(frame, layout.l3, &entry.to_be_bytes());
    put(frame, type_at, &ether_type.to_be_bytes());
    lengthen(frame, &layout, mpls::ENTRY_LEN);
    true
}

fn first_entry(ttl: Option<&u8>) -> u32 {
    mpls::entry(0, 0, true, ttl.copied().unwrap_or(0))
}

/// Pops the outermost MPLS entry and writes the EtherType of what is behind it; false when there is
/// none.
pub fn pop_mpls(buf: &mut PacketBuf, ether_type: u16) -> bool {
    let Some(layout) = Layout::of(buf.bytes()) else { return false };
    let (Network::Mpls, Some(type_at)) = (layout.network, layout.eth_type_at) else { return false };
    buf.remove(layout.l3, mpls::ENTRY_LEN);
    let frame = buf.bytes_mut();
    put(frame, type_at, &ether_type.to_be_bytes());
    shorten(frame, &layout, mpls::ENTRY_LEN);
    true
}

/// Puts a PBB header in front of the frame: the addresses are copied to the outside, the I-SID is
/// that of the outermost I-TAG before, the priority that of the outermost VLAN tag. False only for
/// what is no Ethernet frame.
pub fn push_pbb(buf: &mut PacketBuf, ether_type: u16) -> bool {
    let Some(layout) = Layout::of(buf.bytes()) else { return false };
    let frame = buf.bytes();
    let Some(addresses) = addresses(frame, 0) else { return false };
    let outer = (layout.tags > 0).then(|| be16(frame, vlan::OUTERMOST_TCI)).flatten();
    let mut tag = [0; 4];
    if let (Network::Pbb, Some(held)) = (layout.network, chunk::<4>(frame, layout.l3)) {
        tag = *held;
    }
    tag[0] = vlan::pcp(outer.unwrap_or(0)) << pbb::PCP_SHIFT;
    buf.insert(0, PBB_LEN);
    let frame = buf.bytes_mut();
    put(frame, 0, &addresses);
    put(frame, ethernet::ETHER_TYPE, &ether_type.to_be_bytes());
    put(frame, ethernet::HEADER_LEN, &tag);
    true
}

/// Takes the PBB header off: the customer's addresses become the frame's. Backbone tags in front of
/// it stay. False when there is none.
pub fn pop_pbb(buf: &mut PacketBuf) -> bool {
    let Some(layout) = Layout::of(buf.bytes()) else { return false };
    let (Network::Pbb, Some(type_at)) = (layout.network, layout.eth_type_at) else { return false };
    let customer = addresses(buf.bytes(), layout.l3 + pbb::C_ADDRESSES.start);
    let has_type = be16(buf.bytes(), layout.l3 + pbb::TAG_LEN).is_some();
    let Some(customer) = customer.filter(|_| has_type) else { return false };
    buf.remove(type_at, PBB_LEN);
    let frame = buf.bytes_mut();
    put(frame, 0, &customer);
    shorten(frame, &layout, PBB_LEN);
    true
}

/// Two Ethernet addresses at `at`.
fn addresses(frame: &[u8], at: usize) -> Option<[u8; ethernet::ADDRESSES_LEN]> {
    chunk(frame, at).copied()
}

/// Corrects the length of an 802.3 frame that became longer.
fn lengthen(frame: &mut [u8], layout: &Layout, by: usize) {
    resize(frame, layout, |len| len.saturating_add(by as u16));
}

/// Corrects the length of an 802.3 frame that became shorter.
fn shorten(frame: &mut [u8], layout: &Layout, by: usize) {
    resize(frame, layout, |len| len.saturating_sub(by as u16));
}

fn resize(frame: &mut [u8], layout: &Layout, to: impl FnOnce(u16) -> u16) {
    let Some(at) = layout.length_at else { return };
    if let Some(held) = chunk::<2>(frame, at) {
        let len = to(number(held) as u16);
        put(frame, at, &len.to_be_bytes());
    }
}
