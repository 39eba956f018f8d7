//! The virtio-net header (virtio 1.2, 5.1.6) that packet sockets and TAP devices put in front of
//! each frame: what its sender left to its network card.
//!
//! On a veth the sender is the kernel of the other namespace, whose offloads cannot be reached from
//! here. Frames from outside are not trusted: whatever does not fit is refused, and never read or
//! written outside the frame.

use packet::checksum::{InternetChecksum, crc32c};
use packet::offload::{Ip, LeftOpen, Offload, SegmentKind, Segmenter, UnsupportedOffload};

/// Length of the virtio-net header in bytes.
pub(crate) const VNET_LEN: usize = 10;

const F_NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;
const IPPROTO_SCTP: u8 = 132;

/// Work that the sender left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VnetHeader {
    flags: u8,
    gso_type: u8,
    header_len: u16,
    gso_size: u16,
    csum_start: u16,
    csum_offset: u16,
}

impl VnetHeader {
    /// Reads the header; its numbers are in the host's byte order.
    pub(crate) fn read(bytes: &[u8; VNET_LEN]) -> Self {
        let [flags, gso_type, h0, h1, s0, s1, c0, c1, o0, o1] = *bytes;
        Self {
            flags,
            gso_type,
            header_len: u16::from_ne_bytes([h0, h1]),
            gso_size: u16::from_ne_bytes([s0, s1]),
            csum_start: u16::from_ne_bytes([c0, c1]),
            csum_offset: u16::from_ne_bytes([o0, o1]),
        }
    }

    /// The header for a frame that is sent on with this left open.
    pub(crate) fn of(open: &LeftOpen) -> Self {
        let ecn = if open.is_cwr { GSO_ECN } else { 0 };
        let (gso_type, gso_size) = match open.segments {
            None => (GSO_NONE, 0),
            Some((SegmentKind::Tcp4, size)) => (GSO_TCPV4 | ecn, size),
            Some((SegmentKind::Tcp6, size)) => (GSO_TCPV6 | ecn, size),
            Some((SegmentKind::Udp, size)) => (GSO_UDP_L4, size),
        };
        Self {
            flags: F_NEEDS_CSUM,
            gso_type,
            header_len: open.header_len,
            gso_size,
            csum_start: open.start,
            csum_offset: open.offset,
        }
    }

    /// Its bytes.
    pub(crate) fn write(&self) -> [u8; VNET_LEN] {
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0];
        let numbers = [self.header_len, self.gso_size, self.csum_start, self.csum_offset];
        for (place, number) in bytes[2..].chunks_exact_mut(2).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    /// Whether the frame stands for several.
    pub(crate) fn is_gso(&self) -> bool {
        self.gso_type & !GSO_ECN != GSO_NONE
    }

    /// The work that is left to do to the frame, in the form in which it is noted beside the frame;
    /// `None` where it has no such form.
    pub(crate) fn offload(&self, frame: &[u8]) -> Option<Offload> {
        if self.is_gso() {
            return Offload::of_segments(frame, &self.segmenter(frame).ok()?);
        }
        let (start, offset) = (self.csum_start.into(), self.csum_offset.into());
        let is_open = self.flags & F_NEEDS_CSUM != 0;
        is_open.then(|| Offload::of_checksum(frame, start, offset)).flatten()
    }

    /// Prepares to cut a frame that stands for several.
    pub(crate) fn segmenter(&self, frame: &[u8]) -> Result<Segmenter, UnsupportedOffload> {
        let kind = match self.gso_type & !GSO_ECN {
            GSO_TCPV4 => SegmentKind::Tcp4,
            GSO_TCPV6 => SegmentKind::Tcp6,
            GSO_UDP_L4 => SegmentKind::Udp,
            _ => return Err(UnsupportedOffload),
        };
        let start = (self.flags & F_NEEDS_CSUM != 0).then_some(self.csum_start);
        Segmenter::new(frame, Some(kind), self.gso_size, start)
    }
}

/// Completes the checksum of a frame that is not GSO. The field holds the sum of the pseudo header
/// already, so that this works for any protocol above any number of tags.
pub(crate) fn complete(frame: &mut [u8], header: &VnetHeader) -> Result<(), UnsupportedOffload> {
    if header.flags & F_NEEDS_CSUM == 0 {
        return Ok(());
    }
    let start = usize::from(header.csum_start);
    let offset = usize::from(header.csum_offset);
    let protocol = Ip::locate(frame).filter(|ip| ip.l4 == start).map(|ip| ip.protocol);
    let covered = frame.get_mut(start..).ok_or(UnsupportedOffload)?;
    if protocol == Some(IPPROTO_SCTP) && offset == 8 {
        covered.get_mut(8..12).ok_or(UnsupportedOffload)?.fill(0);
        let crc = crc32c(&[covered]).to_le_bytes();
        covered[8..12].copy_from_slice(&crc);
        return Ok(());
    }
    let mut sum = InternetChecksum::default();
    sum.add(covered);
    // Of all protocols only UDP has its checksum at 6, also inside a tunnel.
    let sum = if offset == 6 { sum.finish_udp() } else { sum.finish() };
    let field = covered.get_mut(offset..offset + 2).ok_or(UnsupportedOffload)?;
    field.copy_from_slice(&sum.to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use packet::offload::{finish, leave_open};
    use packet::{PacketBuf, verify};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    /// TCP of 2,500 bytes of payload, whose checksum is right.
    fn tcp() -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(80, 1_234, 7, 500)
            .cwr()
            .write(&mut frame, &[9; 2_500])
            .unwrap();
        frame
    }

    #[test]
    fn what_is_left_open_is_read_as_it_was_written() {
        let right = tcp();
        for segment_len in [0, 1_000] {
            let mut frame = right.clone();
            let offload = Offload { segment_len, payload_len: 2_500 };
            let header = VnetHeader::of(&leave_open(&mut frame, offload).unwrap());
            let read = VnetHeader::read(&header.write());
            assert_eq!((read, read.is_gso(), read.header_len), (header, segment_len != 0, 54));
            let payload_len = if segment_len == 0 { 0 } else { 2_500 };
            assert_eq!(read.offload(&frame), Some(Offload { segment_len, payload_len }));
            assert_eq!(read.gso_type & GSO_ECN != 0, segment_len != 0, "CWR is set");
            if segment_len == 0 {
                complete(&mut frame, &read).unwrap();
                assert_eq!(frame, right);
            }
        }
    }

    #[test]
    fn sctp_gets_its_crc_at_once() {
        let mut frame = Vec::new();
        let step = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        step.write(&mut frame, 132.into(), &[0; 12]).unwrap();
        let header = VnetHeader::read(&[1, 0, 0, 0, 0, 0, 34, 0, 8, 0]);
        assert_eq!(header.offload(&frame), None);
        complete(&mut frame, &header).unwrap();
        assert_eq!(frame[42..46], crc32c(&[&[0; 12]]).to_le_bytes());
    }

    #[test]
    fn a_checksum_outside_of_the_frame_is_refused() {
        let mut frame = tcp()[..60].to_vec();
        for start in [59_u16, 600] {
            let [low, high] = start.to_ne_bytes();
            let header = VnetHeader::read(&[1, 0, 0, 0, 0, 0, low, high, 16, 0]);
            assert_eq!(header.offload(&frame), None);
            assert!(complete(&mut frame, &header).is_err());
        }
    }

    proptest! {
        /// Whatever header comes with whatever frame: what is kept beside the frame can be done,
        /// and makes right frames.
        #[test]
        fn what_is_noted_can_be_done(
            header in any::<[u8; VNET_LEN]>(),
            plausible in any::<bool>(),
            patches in proptest::collection::vec((12_usize..60, any::<u8>()), 0..4),
            keep in 0_usize..2_700,
        ) {
            let mut frame = tcp();
            for (at, byte) in patches {
                frame[at] = byte;
            }
            frame.truncate(keep);
            let mut header = VnetHeader::read(&header);
            if plausible {
                header = VnetHeader { flags: 1, csum_start: 34, csum_offset: 16, ..header };
                header.gso_type &= 1;
                header.gso_size |= 256;
            }
            let _ = complete(&mut frame.clone(), &header);
            let Some(offload) = header.offload(&frame) else { return Ok(()) };
            let mut whole = PacketBuf::from_slice(&frame);
            prop_assert!(whole.set_offload(Some(offload)));
            prop_assert!(leave_open(whole.bytes_mut(), offload).is_ok());
            let expected = whole.on_wire();
            let mut sum = (0, 0);
            let each = |segment: PacketBuf| sum = (sum.0 + 1, sum.1 + segment.len() as u64);
            prop_assert!(finish(whole, PacketBuf::default, each).is_ok());
            prop_assert_eq!(sum, expected);
        }
    }

    #[test]
    fn finished_frames_have_right_checksums() {
        let mut whole = PacketBuf::from_slice(&tcp());
        let offload = Offload { segment_len: 1_000, payload_len: 2_500 };
        assert!(whole.set_offload(Some(offload)));
        let mut count = 0;
        let each = |segment: PacketBuf| {
            verify(segment.bytes()).unwrap();
            count += 1;
        };
        finish(whole, PacketBuf::default, each).unwrap();
        assert_eq!(count, 3);
    }
}
