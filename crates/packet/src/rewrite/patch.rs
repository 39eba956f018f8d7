//! Writing bytes of a header together with the checksums that cover them.

use crate::checksum;
use crate::header::{be16, chunk, icmpv4, icmpv6, ipv4, ipv6, sctp, tcp, udp};
use crate::layout::{Layout, Network, Transport};

/// Longest change: an IPv6 address.
const CHANGE_MAX: usize = 16;

/// Bytes around a change, widened to the 16-bit words of the checksums. Headers start at even
/// offsets of a frame (14 + tags of 4 + SNAP of 8), so even offsets are word limits.
struct WordChange {
    at: usize,
    len: usize,
    old: [u8; CHANGE_MAX + 2],
    new: [u8; CHANGE_MAX + 2],
}

impl WordChange {
    /// Writes `new` at `at` and remembers both states of the words; none when the frame ends
    /// before.
    fn write(frame: &mut [u8], at: usize, new: &[u8]) -> Option<Self> {
        let end = at.checked_add(new.len())?;
        let start = at & !1;
        let words = frame.get_mut(start..end.next_multiple_of(2).min(frame.len()))?;
        let mut change = Self {
            at: start,
            len: (end - start).next_multiple_of(2),
            old: [0; CHANGE_MAX + 2],
            new: [0; CHANGE_MAX + 2],
        };
        change.old.get_mut(..words.len())?.copy_from_slice(words);
        words.get_mut(at - start..end - start)?.copy_from_slice(new);
        change.new.get_mut(..words.len())?.copy_from_slice(words);
        Some(change)
    }

    fn before(&self) -> &[u8] {
        self.old.get(..self.len).unwrap_or_default()
    }

    fn after(&self) -> &[u8] {
        self.new.get(..self.len).unwrap_or_default()
    }
}

/// Writes `new` at `at` and corrects every checksum of the packet that covers it; false, with
/// nothing done, when the frame ends before.
pub(super) fn patch(frame: &mut [u8], layout: &Layout, at: usize, new: &[u8]) -> bool {
    let Some(change) = WordChange::write(frame, at, new) else { return false };
    if layout.network == Network::Ipv4 && (layout.l3..layout.l4).contains(&at) {
        update(frame, layout.l3 + ipv4::CHECKSUM.start, &change);
    }
    if at >= layout.l4 && layout.transport != Transport::Other {
        transport(frame, layout, change.before(), change.after(), Some(change.at));
    } else if is_address(layout, at) {
        transport(frame, layout, change.before(), change.after(), None);
    } else if let Some(proto) = layout.ip_proto.filter(|_| at == layout.ip_proto_at) {
        // The pseudo-header has the number in a word of its own, wherever the header has it.
        let after = new.first().copied().unwrap_or_default();
        transport(frame, layout, &[0, proto], &[0, after], None);
    }
    true
}

/// Writes the TTL of the IPv4 header at `header` (or any byte of it) and corrects its checksum.
pub(super) fn patch_ipv4(frame: &mut [u8], header: usize, at: usize, new: u8) -> bool {
    let Some(change) = WordChange::write(frame, at, &[new]) else { return false };
    update(frame, header + ipv4::CHECKSUM.start, &change);
    true
}

/// Whether the byte belongs to an address of the pseudo-header.
fn is_address(layout: &Layout, at: usize) -> bool {
    let Some(offset) = at.checked_sub(layout.l3) else { return false };
    match layout.network {
        Network::Ipv4 => ipv4::SRC.contains(&offset) || ipv4::DST.contains(&offset),
        Network::Ipv6 => {
            ipv6::SRC.contains(&offset)
                || ipv6::DST.contains(&offset) && layout.routing_at.is_none()
        }
        Network::Other | Network::Mpls | Network::Pbb | Network::Arp => false,
    }
}

/// Updates the ones' complement checksum at `checksum_at`.
fn update(frame: &mut [u8], checksum_at: usize, change: &WordChange) {
    if let Some(held) = be16(frame, checksum_at) {
        put(
            frame,
            checksum_at,
            &checksum::update(held, change.before(), change.after()).to_be_bytes(),
        );
    }
}

/// Updates the checksum of the transport header. `at` is where the change stands in the payload of
/// IP; none when it stands in the pseudo-header.
fn transport(frame: &mut [u8], layout: &Layout, old: &[u8], new: &[u8], at: Option<usize>) {
    let (offset, pseudo) = match layout.transport {
        Transport::Other => return,
        Transport::Sctp => return at.map_or((), |at| crc(frame, layout, old, new, at)),
        Transport::Tcp => (tcp::CHECKSUM.start, true),
        Transport::Udp => (udp::CHECKSUM.start, true),
        Transport::Icmpv4 => (icmpv4::CHECKSUM.start, false),
        Transport::Icmpv6 => (icmpv6::CHECKSUM.start, true),
    };
    let is_udp = layout.transport == Transport::Udp;
    let checksum_at = layout.l4 + offset;
    let Some(held) = be16(frame, checksum_at) else { return };
    if (at.is_none() && !pseudo) || (is_udp && held == 0) {
        return;
    }
    let updated = checksum::update(held, old, new);
    let updated = if is_udp && updated == 0 { u16::MAX } else { updated };
    put(frame, checksum_at, &updated.to_be_bytes());
}

/// Updates SCTP's CRC32c, if the packet that it covers is all here.
fn crc(frame: &mut [u8], layout: &Layout, old: &[u8], new: &[u8], at: usize) {
    let checksum_at = layout.l4 + sctp::CHECKSUM.start;
    let (Some(held), Some(behind)) =
        (chunk(frame, checksum_at), layout.end.checked_sub(at + old.len()))
    else {
        return;
    };
    if layout.fragment || layout.truncated {
        return;
    }
    let change = checksum::crc32c_change(old, new, behind);
    put(frame, checksum_at, &(u32::from_le_bytes(*held) ^ change).to_le_bytes());
}

/// Writes bytes that no checksum covers.
pub(super) fn put(frame: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = frame.get_mut(at..).and_then(|rest| rest.get_mut(..bytes.len())) {
        place.copy_from_slice(bytes);
    }
}
