//! All checksums of a frame: computed anew, or verified.
//!
//! For built frames and for checks; rewriting updates incrementally instead. The walk goes
//! through MPLS, PBB and IP in IP. What cannot be computed is left out: transport checksums of
//! fragments and truncated packets, and those behind a routing header of a type that hides the
//! final destination.

use crate::checksum::{InternetChecksum, crc32c};
use crate::header::{be16, chunk, icmpv4, icmpv6, ipv4, ipv6, mpls, number, pbb, sctp, tcp, udp};
use crate::layout::{Layout, Network, Transport};

/// A kind of checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumKind {
    /// Of the IPv4 header.
    Ipv4,
    /// Of TCP.
    Tcp,
    /// Of UDP.
    Udp,
    /// The CRC32c of SCTP, as the number that its four bytes are in network order.
    Sctp,
    /// Of ICMP.
    Icmpv4,
    /// Of ICMPv6.
    Icmpv6,
}

/// A checksum that does not fit its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind:?} checksum at offset {at}: {held:#06x} instead of {right:#06x}")]
pub struct WrongChecksum {
    /// Its kind.
    pub kind: ChecksumKind,
    /// Place in the frame, in bytes.
    pub at: usize,
    /// The value there.
    pub held: u32,
    /// The right value.
    pub right: u32,
}

/// Checks every checksum of a frame that can be computed. A UDP checksum of zero is right.
///
/// # Errors
/// The first wrong one, from the outside.
pub fn verify(frame: &[u8]) -> Result<(), WrongChecksum> {
    let none = |found: &WrongChecksum| found.kind == ChecksumKind::Udp && found.held == 0;
    let wrong = compute(frame).into_iter().find(|c| c.held != c.right && !none(c));
    wrong.map_or(Ok(()), Err)
}

/// Computes every checksum of a frame that can be computed and writes it.
pub fn fill_checksums(frame: &mut [u8]) {
    let found = compute(frame);
    write(frame, found);
}

/// As [`fill_checksums`], of an IP packet without a frame around it.
pub(crate) fn fill_ip_checksums(packet: &mut [u8]) {
    let found = compute_from(packet, Layout::of_ip(packet, 0));
    write(packet, found);
}

fn write(frame: &mut [u8], found: Vec<WrongChecksum>) {
    for found in found {
        let bytes = found.right.to_be_bytes();
        let len = if found.kind == ChecksumKind::Sctp { 4 } else { 2 };
        if let (Some(place), Some(new)) =
            (frame.get_mut(found.at..found.at + len), bytes.get(4 - len..))
        {
            place.copy_from_slice(new);
        }
    }
}

fn compute(frame: &[u8]) -> Vec<WrongChecksum> {
    compute_from(frame, Layout::of(frame))
}

/// The checksums from the headers of `next` inwards.
fn compute_from(frame: &[u8], mut next: Option<Layout>) -> Vec<WrongChecksum> {
    let mut found = Vec::new();
    let mut base = 0;
    while let Some(layout) = next {
        let body = frame.get(base..).unwrap_or_default();
        next = match layout.network {
            Network::Other | Network::Arp => None,
            Network::Mpls => behind_mpls(body, layout.l3),
            Network::Pbb => {
                base += layout.l3 + pbb::C_ADDRESSES.start;
                frame.get(base..).and_then(Layout::of)
            }
            Network::Ipv4 | Network::Ipv6 => {
                let at_base = |c: WrongChecksum| WrongChecksum { at: c.at + base, ..c };
                found.extend(ipv4_header(body, &layout).map(at_base));
                found.extend(transport(body, &layout).map(at_base));
                let nested = matches!(layout.ip_proto, Some(ipv4::PROTO_IPV4 | ipv4::PROTO_IPV6));
                (nested && !layout.fragment).then(|| Layout::of_ip(body, layout.l4)).flatten()
            }
        };
    }
    found
}

fn behind_mpls(frame: &[u8], first: usize) -> Option<Layout> {
    let mut at = first;
    while !mpls::bos(u32::from_be_bytes(*chunk(frame, at)?)) {
        at += mpls::ENTRY_LEN;
    }
    Layout::of_ip(frame, at + mpls::ENTRY_LEN)
}

fn ipv4_header(frame: &[u8], layout: &Layout) -> Option<WrongChecksum> {
    if layout.network != Network::Ipv4 {
        return None;
    }
    let at = layout.l3 + ipv4::CHECKSUM.start;
    let mut sum = InternetChecksum::default();
    sum.add(frame.get(layout.l3..at)?);
    sum.add(frame.get(at + 2..layout.l4)?);
    let held = be16(frame, at)?.into();
    Some(WrongChecksum { kind: ChecksumKind::Ipv4, at, held, right: sum.finish().into() })
}

fn transport(frame: &[u8], layout: &Layout) -> Option<WrongChecksum> {
    if layout.fragment || layout.truncated {
        return None;
    }
    let mut data = frame.get(layout.l4..layout.end)?;
    if layout.transport == Transport::Udp {
        // UDP has a length of its own; zero is a jumbogram's.
        let len = usize::from(be16(data, udp::LEN.start)?);
        data = data.get(..len).filter(|_| len >= udp::HEADER_LEN).unwrap_or(data);
    }
    let (kind, offset) = match layout.transport {
        Transport::Other => return None,
        Transport::Tcp => (ChecksumKind::Tcp, tcp::CHECKSUM.start),
        Transport::Udp => (ChecksumKind::Udp, udp::CHECKSUM.start),
        Transport::Sctp => return sctp(data, layout.l4),
        Transport::Icmpv4 => (ChecksumKind::Icmpv4, icmpv4::CHECKSUM.start),
        Transport::Icmpv6 => (ChecksumKind::Icmpv6, icmpv6::CHECKSUM.start),
    };
    let mut sum = InternetChecksum::default();
    if kind != ChecksumKind::Icmpv4 {
        sum.add_number(u32::from(layout.ip_proto?));
        sum.add_number(u32::try_from(data.len()).ok()?);
        addresses(frame, layout, &mut sum)?;
    }
    sum.add(data.get(..offset)?);
    sum.add(data.get(offset + 2..)?);
    let right = match sum.finish() {
        0 if kind == ChecksumKind::Udp => u16::MAX,
        other => other,
    };
    let held = be16(data, offset)?.into();
    Some(WrongChecksum { kind, at: layout.l4 + offset, held, right: right.into() })
}

/// The addresses of the pseudo-header; of a routed packet, the final destination.
fn addresses(frame: &[u8], layout: &Layout, sum: &mut InternetChecksum) -> Option<()> {
    if layout.network == Network::Ipv4 {
        sum.add(frame.get(layout.l3 + ipv4::SRC.start..layout.l3 + ipv4::DST.end)?);
        return Some(());
    }
    sum.add(frame.get(layout.l3 + ipv6::SRC.start..layout.l3 + ipv6::SRC.end)?);
    let dst = match layout.routing_at {
        None => layout.l3 + ipv6::DST.start,
        Some(routing) => {
            let len = (usize::from(*frame.get(routing + ipv6::EXT_LEN)?) + 1) * 8;
            match *frame.get(routing + ipv6::ROUTING_TYPE)? {
                // The last address: source route and mobile IPv6.
                0 | 2 => (routing + len).checked_sub(16)?,
                // Segment routing lists its segments from the last (RFC 8754).
                4 => routing + ipv6::EXT_LEN_MIN,
                _ => return None,
            }
        }
    };
    sum.add(frame.get(dst..dst + 16)?);
    Some(())
}

fn sctp(data: &[u8], l4: usize) -> Option<WrongChecksum> {
    let (before, behind) = (data.get(..sctp::CHECKSUM.start)?, data.get(sctp::CHECKSUM.end..)?);
    let right = crc32c(&[before, &[0; 4], behind]).swap_bytes();
    let held = number(data.get(sctp::CHECKSUM)?) as u32;
    let at = l4 + sctp::CHECKSUM.start;
    Some(WrongChecksum { kind: ChecksumKind::Sctp, at, held, right })
}

#[cfg(test)]
mod tests {
    use super::{ChecksumKind, fill_checksums, verify};
    use crate::checksum::ones_complement;

    /// UDP over IPv4 with all checksums zero.
    const FRAME: &[u8] = &[
        0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 31, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0,
        0, 1, 10, 0, 0, 2, 0, 53, 0, 54, 0, 11, 0, 0, 1, 2, 3, 0xff,
    ];

    #[test]
    fn filled_frames_verify_and_damaged_ones_do_not() {
        let mut frame = FRAME.to_vec();
        assert_eq!(verify(&frame).unwrap_err().kind, ChecksumKind::Ipv4);
        fill_checksums(&mut frame);
        assert_eq!(ones_complement(&frame[14..34]), 0);
        verify(&frame).unwrap();
        frame[44] ^= 1;
        assert_eq!(verify(&frame).unwrap_err().kind, ChecksumKind::Udp);
        frame[40..42].fill(0);
        verify(&frame).unwrap();
    }
}
