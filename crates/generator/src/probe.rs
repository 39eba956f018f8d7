//! The probe: stream, sequence number and due time in each frame, for a receiver that has no other
//! channel to the sender.
//!
//! Fourteen bytes at the very end of the frame's payload, in network order:
//!
//! | bytes | content |
//! |---|---|
//! | 0..2 | check: makes the one's complement sum (RFC 1071) of all seven words [`SUM`] |
//! | 2..4 | stream |
//! | 4..8 | sequence number, modulo 2^32 |
//! | 8..14 | due time in nanoseconds of the run's clock, modulo 2^48 (78 hours) |
//!
//! They stand at the end because headers that a device adds or removes in front do not move them
//! there. Fourteen bytes are what a frame of 64 bytes (FCS counted) has left behind Ethernet, a
//! VLAN tag, IPv4 and UDP. As the sum of the words is a constant, a transport checksum that was
//! right with one probe is right with every other at the same place: per frame no checksum is
//! touched. A probe must never have a sum that depends on its content.

use packet::{Layout, Network};

/// Bytes that a probe needs of a payload.
pub const PROBE_LEN: usize = 14;

/// The one's complement sum of the words of each probe: it tells probes from other bytes and
/// whole probes from corrupted ones.
pub const SUM: u16 = 0x57e1;

/// Time stamps are modulo this.
const TIME_MASK: u64 = (1 << 48) - 1;

/// Number of a stream. Each trial has numbers of its own, which tells late probes of an earlier
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u16);

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeHeader {
    /// The stream.
    pub stream: StreamId,
    /// Number of the frame within the stream, modulo 2^32.
    pub sequence: u32,
    /// Due time of the frame by the schedule, in nanoseconds of the run's clock. [`Self::read`]
    /// yields it modulo 2^48; see [`delay_ns`].
    pub due_ns: u64,
}

impl ProbeHeader {
    /// Writes the probe to the end of `payload`: a payload, or a whole frame without FCS.
    ///
    /// # Panics
    /// When `payload` is shorter than [`PROBE_LEN`]: the makers of streams refuse such sizes.
    #[inline]
    pub fn write(&self, payload: &mut [u8]) {
        let Some(place) = payload.last_chunk_mut::<PROBE_LEN>() else {
            panic!("{} bytes cannot hold a probe", payload.len());
        };
        let time = self.due_ns & TIME_MASK;
        let head = u64::from(self.stream.0) << 32 | u64::from(self.sequence);
        // One's complement: the negative of a word is its complement.
        let check = u64::from(SUM) + u64::from(!folded(head, time));
        let check = ((check & 0xffff) + (check >> 16)) as u16;
        let head = u64::from(check) << 48 | head;
        // Two writes of eight bytes that overlap in the low half of the sequence number.
        place[6..14].copy_from_slice(&(time | (head & 0xffff) << 48).to_be_bytes());
        place[0..8].copy_from_slice(&head.to_be_bytes());
    }

    /// Reads the probe at the end of `payload`; `None` when there is none.
    #[inline]
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Self> {
        let words = ProbeWords::read(payload);
        words.is_whole().then(|| words.probe())
    }

    /// Reads the probe of a frame whose end may be padding, as a device leaves it that removed a
    /// header from a short frame: looks where the IP packet ends.
    #[cold]
    pub(crate) fn read_before_padding(frame: &[u8]) -> Option<Self> {
        let layout = Layout::of(frame)?;
        let word = |at: usize| {
            let bytes = frame.get(at..at + 2)?.first_chunk::<2>()?;
            Some(usize::from(u16::from_be_bytes(*bytes)))
        };
        let end = match layout.network {
            Network::Ipv4 => layout.l3 + word(layout.l3 + 2)?,
            Network::Ipv6 => layout.l3 + 40 + word(layout.l3 + 4)?,
            Network::Other | Network::Arp | Network::Mpls | Network::Pbb => return None,
        };
        Self::read(frame.get(..end)?)
    }
}

/// The bytes in the place of a probe: zero in too short a payload, which is no probe.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeWords {
    /// Check, stream and sequence number.
    head: u64,
    time: u64,
}

impl ProbeWords {
    /// Reads them from the end of `payload`.
    #[inline]
    pub(crate) fn read(payload: &[u8]) -> Self {
        let Some(bytes) = payload.last_chunk::<PROBE_LEN>() else { return Self::default() };
        let [c0, c1, s0, s1, n0, n1, n2, n3, ..] = *bytes;
        // Eight bytes that begin with the low half of the sequence number.
        let [_, _, _, _, _, _, tail @ ..] = *bytes;
        Self {
            head: u64::from_be_bytes([c0, c1, s0, s1, n0, n1, n2, n3]),
            time: u64::from_be_bytes(tail) & TIME_MASK,
        }
    }

    /// Whether the check is right.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        folded(self.head, self.time) == SUM
    }

    /// The probe, right or wrong.
    #[inline]
    pub(crate) fn probe(&self) -> ProbeHeader {
        let stream = StreamId((self.head >> 32) as u16);
        ProbeHeader { stream, sequence: self.head as u32, due_ns: self.time }
    }
}

/// The one's complement sum of the words of `head` and `time`; 1 to 0xffff unless all are zero.
#[inline]
fn folded(head: u64, time: u64) -> u16 {
    let low = 0xffff_ffff;
    let sum = (head & low) + (head >> 32) + (time & low) + (time >> 32);
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    // At most 0xffff + 2 before, so that one more carry ends it.
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// The time from a due time (modulo 2^48) to `now_ns`; 0 when it lies ahead.
#[inline]
#[must_use]
pub fn delay_ns(due_ns: u64, now_ns: u64) -> u64 {
    let delay = now_ns.wrapping_sub(due_ns) & TIME_MASK;
    if delay > TIME_MASK / 2 { 0 } else { delay }
}

#[cfg(test)]
mod tests {
    use super::{PROBE_LEN, ProbeHeader, SUM, StreamId, delay_ns};
    use packet::build::{FrameBuilder, Ipv4};
    use packet::checksum::ones_complement;
    use std::net::Ipv4Addr;

    fn probe(n: u64) -> ProbeHeader {
        let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ProbeHeader { stream: StreamId(n as u16), sequence: (n >> 16) as u32, due_ns: n >> 17 }
    }

    fn udp_frame(payload: &[u8]) -> Vec<u8> {
        let mac = openflow::MacAddr::from_u64;
        let addresses = Ipv4::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let headers = FrameBuilder::ethernet(mac(2), mac(1)).ipv4(addresses).udp(1, 2);
        headers.payload(payload).build()
    }

    #[test]
    fn reads_what_it_wrote_and_nothing_else() {
        let whole = ProbeHeader { stream: StreamId(513), sequence: 0xdead_beef, due_ns: 1 << 46 };
        let mut payload = [0xaa; 18];
        whole.write(&mut payload);
        assert_eq!(ProbeHeader::read(&payload), Some(whole));
        assert_eq!(payload[..4], [0xaa; 4]);
        for start in 18 - PROBE_LEN + 1..=18 {
            assert_eq!(ProbeHeader::read(&payload[start..]), None);
        }
        assert_eq!(ProbeHeader::read(&[0; 60]), None);
        assert_eq!(ProbeHeader::read(&[0xff; 60]), None);
    }

    #[test]
    fn every_single_corrupted_bit_is_seen() {
        for n in 0..20 {
            let mut payload = [0; PROBE_LEN];
            probe(n).write(&mut payload);
            for bit in 0..PROBE_LEN * 8 {
                payload[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(ProbeHeader::read(&payload), None, "probe {n}, bit {bit}");
                payload[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn the_sum_is_a_constant_at_even_and_odd_places() {
        for n in 0..1000 {
            let mut payload = [0; PROBE_LEN + 2];
            probe(n).write(&mut payload[..PROBE_LEN]);
            assert_eq!(!ones_complement(&payload[..PROBE_LEN]), SUM, "{n}");
            payload.rotate_right(1);
            assert_eq!(!ones_complement(&payload), SUM.swap_bytes(), "{n}");
        }
    }

    #[test]
    fn a_checksum_that_was_right_stays_right_with_another_probe() {
        for len in 14..40 {
            let mut payload = vec![0x55; len];
            probe(1).write(&mut payload);
            let mut frame = udp_frame(&payload);
            for n in 2..50 {
                probe(n).write(&mut frame);
                packet::verify(&frame).unwrap();
            }
        }
    }

    #[test]
    fn a_probe_before_padding_is_found() {
        let mut frame = udp_frame(&[0; 18]);
        let length = frame.len();
        probe(7).write(&mut frame);
        frame.extend_from_slice(&[0; 4]);
        let due_ns = probe(7).due_ns & ((1 << 48) - 1);
        let found = ProbeHeader { due_ns, ..probe(7) };
        assert_eq!(ProbeHeader::read_before_padding(&frame), Some(found));
        for cut in 0..length {
            assert_eq!(ProbeHeader::read_before_padding(&frame[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn delays_go_round_with_the_clock() {
        assert_eq!(delay_ns(5, 7), 2);
        assert_eq!(delay_ns(7, 5), 0);
        let end = 1_u64 << 48;
        assert_eq!(delay_ns(end - 3, end + 4), 7);
        assert_eq!(delay_ns((end + 4) & (end - 1), end + 4), 0);
    }
}
