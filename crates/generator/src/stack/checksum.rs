//! The checksums of a stack: where each stands and which bytes it covers.
//!
//! A stack is known, so nothing has to be looked for in a frame. Headers have even lengths, so the
//! 16-bit words of every checksum begin at even offsets of the frame. It must never be needed for
//! frames of others: `packet::verify` is for those.

use std::ops::Range;

use packet::checksum::crc32c;

use super::rows::HeaderKind;
use super::{FieldPlace, PlacedHeader};

/// The algorithm of a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanKind {
    /// Ones' complement (RFC 1071).
    Internet,
    /// The same, with all ones in place of zero (RFC 768).
    Udp,
    /// None: zero stands in its place.
    None,
    /// CRC32c (RFC 9260, appendix A).
    Crc32c,
}

/// One checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChecksumPlan {
    pub(crate) kind: PlanKind,
    /// Place of the checksum.
    pub(crate) at: usize,
    /// From here on it covers the frame.
    start: usize,
    /// Up to here, or to the end of the frame.
    end: Option<usize>,
    /// The addresses of the pseudo-header.
    addresses: Option<Range<usize>>,
    /// The protocol number of the pseudo-header.
    proto: u8,
}

/// The sum of the 16-bit words of `bytes`, not yet folded; a last odd byte is the higher half.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let words: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    words + rest.first().map_or(0, |byte| u64::from(*byte) << 8)
}

/// A sum folded to 16 bits: any but zero stays other than zero.
#[inline]
fn fold(sum: u64) -> u64 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) + (sum >> 16)
}

/// The checksum that belongs to a sum (RFC 1071). A number of 64 bits, and without a branch, for
/// loops that the compiler makes vector code of.
#[inline]
pub(crate) fn internet_checksum(sum: u64) -> u64 {
    0xffff - fold(sum)
}

/// The same with all ones in place of zero (RFC 768).
#[inline]
pub(crate) fn udp_checksum(sum: u64) -> u64 {
    let checksum = internet_checksum(sum);
    // Only zero has a predecessor with the highest bit.
    let is_zero = checksum.wrapping_sub(1) >> 63;
    checksum + (is_zero << 16) - is_zero
}

impl ChecksumPlan {
    /// Whether a change of the field changes the checksum.
    pub(crate) fn covers(&self, place: &FieldPlace) -> bool {
        let within = |range: Range<usize>| range.contains(&place.at);
        match self.kind {
            PlanKind::None => false,
            PlanKind::Internet | PlanKind::Udp | PlanKind::Crc32c => {
                within(self.start..self.end.unwrap_or(usize::MAX))
                    || self.addresses.clone().is_some_and(within)
            }
        }
    }

    /// Whether the field has bits of the checksum itself.
    pub(crate) fn is_hit_by(&self, place: &FieldPlace) -> bool {
        let len = if self.kind == PlanKind::Crc32c { 4 } else { 2 };
        place.at < self.at + len && self.at < place.at + place.len
    }

    /// The sum of all that it covers, without the checksum itself.
    pub(crate) fn sum(&self, frame: &[u8]) -> u64 {
        let end = self.end.unwrap_or(frame.len());
        let mut total = sum(&frame[self.start..self.at]) + sum(&frame[self.at + 2..end]);
        if let Some(addresses) = self.addresses.clone() {
            total += sum(&frame[addresses]) + u64::from(self.proto) + (end - self.start) as u64;
        }
        total
    }

    fn write(&self, frame: &mut [u8], checksum: u64) {
        frame[self.at..self.at + 2].copy_from_slice(&(checksum as u16).to_be_bytes());
    }

    /// Writes a CRC32c.
    #[inline]
    pub(crate) fn write_crc(&self, frame: &mut [u8], crc: u32) {
        frame[self.at..self.at + 4].copy_from_slice(&crc.to_le_bytes());
    }

    /// The CRC32c of a frame that has one.
    pub(crate) fn read_crc(&self, frame: &[u8]) -> u32 {
        frame[self.at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Computes the checksum and writes it.
    pub(crate) fn fill(&self, frame: &mut [u8]) {
        match self.kind {
            PlanKind::None => frame[self.at..self.at + 2].fill(0),
            PlanKind::Internet => self.write(frame, internet_checksum(self.sum(frame))),
            PlanKind::Udp => self.write(frame, udp_checksum(self.sum(frame))),
            PlanKind::Crc32c => {
                let crc = crc32c(&[&frame[self.start..self.at], &[0; 4], &frame[self.at + 4..]]);
                self.write_crc(frame, crc);
            }
        }
    }
}

/// The checksums of `headers`, from the inside out.
pub(super) fn plans(headers: &[PlacedHeader]) -> Vec<ChecksumPlan> {
    let mut plans = Vec::new();
    let mut addresses = None;
    for (index, header) in headers.iter().enumerate() {
        let at = header.at;
        let plain = ChecksumPlan {
            kind: PlanKind::Internet,
            at,
            start: at,
            end: None,
            addresses: None,
            proto: 0,
        };
        let over_ip = |kind, offset, proto| ChecksumPlan {
            kind,
            at: at + offset,
            addresses: addresses.clone(),
            proto,
            ..plain.clone()
        };
        let next = headers.get(index + 1).map(|next| next.kind);
        let plan = match header.kind {
            HeaderKind::Ipv4 => {
                let len = header.kind.row().len;
                ChecksumPlan { at: at + 10, end: Some(at + len), ..plain }
            }
            HeaderKind::Tcp => over_ip(PlanKind::Internet, 16, 6),
            HeaderKind::Udp => {
                let carries_tunnel = matches!(next, Some(HeaderKind::Vxlan | HeaderKind::Gtpu));
                over_ip(if carries_tunnel { PlanKind::None } else { PlanKind::Udp }, 6, 17)
            }
            HeaderKind::Icmpv4 => ChecksumPlan { at: at + 2, ..plain },
            HeaderKind::Icmpv6 => over_ip(PlanKind::Internet, 2, 58),
            HeaderKind::Sctp => ChecksumPlan { kind: PlanKind::Crc32c, at: at + 8, ..plain },
            HeaderKind::Ipv6 => {
                addresses = Some(at + 8..at + 40);
                continue;
            }
            HeaderKind::Ethernet
            | HeaderKind::Vlan
            | HeaderKind::ServiceVlan
            | HeaderKind::Mpls
            | HeaderKind::Arp
            | HeaderKind::HopByHop
            | HeaderKind::Destination
            | HeaderKind::Routing
            | HeaderKind::Fragment
            | HeaderKind::Gre
            | HeaderKind::KeyedGre
            | HeaderKind::Vxlan
            | HeaderKind::Gtpu => continue,
        };
        if header.kind == HeaderKind::Ipv4 {
            addresses = Some(at + 12..at + 20);
        }
        plans.push(plan);
    }
    plans.reverse();
    plans
}

#[cfg(test)]
mod tests {
    use super::{internet_checksum, sum, udp_checksum};
    use packet::checksum::ones_complement;

    #[test]
    fn sums_are_those_of_the_packet_library() {
        let bytes: Vec<u8> = (0..=254).map(|n: u8| n.wrapping_mul(151)).collect();
        for len in 0..bytes.len() {
            let right = u64::from(ones_complement(&bytes[..len]));
            assert_eq!(internet_checksum(sum(&bytes[..len])), right, "{len}");
        }
        for big in [0, 1, 0xffff, 0x1_0000, u64::from(u32::MAX), u64::MAX, u64::MAX - 1] {
            let rest = big % 0xffff;
            let right = if rest == 0 && big != 0 { 0xffff } else { rest };
            assert_eq!(internet_checksum(big), 0xffff - right, "{big:#x}");
            let udp = if right == 0xffff { 0xffff } else { 0xffff - right };
            assert_eq!(udp_checksum(big), udp, "{big:#x}");
        }
    }
}
