//! Work that a sender has left to its network card, beside the frame that it is to be done to: a
//! transport checksum, and cutting a super-frame into the frames that it stands for.
//!
//! A super-frame is one packet to the tables. Nothing here is changed when headers are rewritten,
//! pushed or popped: where they stand is found out anew when the work is done, and the checksum is
//! made from what stands there then. Frames from outside are not trusted: whatever does not fit is
//! refused, and never read or written outside the frame.

use crate::PacketBuf;
use crate::checksum::{InternetChecksum, ones_complement};

const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;
const ROUTING: u8 = 43;
const TCP_FIN_PSH: u8 = 0x09;
const TCP_CWR: u8 = 0x80;

/// Work left to do to a frame of TCP or UDP, over IPv4 or IPv6, behind any number of VLAN tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offload {
    /// Bytes of payload in each of the frames that it stands for; 0 when it stands for itself, and
    /// only its checksum is to be made.
    pub segment_len: u16,
    /// Bytes of payload in it; meaningless when it stands for itself.
    pub payload_len: u16,
}

impl Offload {
    /// The longest segment that can be noted.
    pub const SEGMENT_MAX: u16 = 0x7fff;

    /// The most segments of a super-frame that is noted: 64 KiB of TCP have 122 where a segment is
    /// as short as it may be (RFC 9293, 3.7.1), and UDP has as many at most in Linux. A sender that
    /// asks for more would have a burst of frames become millions in one turn.
    pub const SEGMENTS_MAX: u16 = 128;

    /// Only the checksum is to be made.
    pub const CHECKSUM: Self = Self { segment_len: 0, payload_len: 0 };

    /// The work left to do to a frame whose partial checksum begins at `start`; none where that is
    /// not the checksum of the whole of its TCP or UDP.
    #[must_use]
    pub fn of_checksum(frame: &[u8], start: usize, offset: usize) -> Option<Self> {
        let ip = Ip::locate(frame)?;
        (ip.l4 == start && ip.checksum_offset()? == offset && ip.spans(frame))
            .then_some(Self::CHECKSUM)
    }

    /// The work left to do to the super-frame that this would cut; none where its lengths disagree
    /// or cannot be noted.
    #[must_use]
    pub fn of_segments(frame: &[u8], segmenter: &Segmenter) -> Option<Self> {
        let segment_len =
            u16::try_from(segmenter.size).ok().filter(|len| *len <= Self::SEGMENT_MAX)?;
        let payload_len = u16::try_from(frame.len() - segmenter.payload).ok()?;
        let is_bounded = segment_len > 0 && payload_len.div_ceil(segment_len) <= Self::SEGMENTS_MAX;
        (is_bounded && segmenter.ip.spans(frame)).then_some(Self { segment_len, payload_len })
    }

    /// Number of packets that a wire would carry for a frame of this length, and their bytes.
    #[must_use]
    pub fn on_wire(self, len: usize) -> (u64, u64) {
        if self.segment_len == 0 || self.payload_len == 0 {
            return (1, len as u64);
        }
        let count = usize::from(self.payload_len.div_ceil(self.segment_len));
        let header = len.saturating_sub(usize::from(self.payload_len));
        (count as u64, (len + (count - 1) * header) as u64)
    }

    /// The length of the longest frame that one of `len` bytes stands for.
    #[must_use]
    pub fn longest_on_wire(self, len: usize) -> usize {
        if self.segment_len == 0 {
            return len;
        }
        let payload = usize::from(self.payload_len);
        len.saturating_sub(payload) + payload.min(self.segment_len.into())
    }
}

/// The frame cannot be made right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what its sender left to do cannot be done to the frame")]
pub struct UnsupportedOffload;

/// The work in the words of a virtio-net header (virtio 1.2, 5.1.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOpen {
    /// Start of the transport header.
    pub start: u16,
    /// Place of the checksum in it.
    pub offset: u16,
    /// Bytes of all headers.
    pub header_len: u16,
    /// Kind of its segments, and bytes of payload in each.
    pub segments: Option<(SegmentKind, u16)>,
    /// Whether it is TCP with CWR set.
    pub is_cwr: bool,
}

/// Kind of the segments that a super-frame is cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over either.
    Udp,
}

/// Leaves the work to the next one who can do it: writes the sum of the pseudo header, from which
/// the checksum is to be made, and says what is left open.
///
/// # Errors
/// When the headers are no longer those of the offload.
pub fn leave_open(frame: &mut [u8], offload: Offload) -> Result<LeftOpen, UnsupportedOffload> {
    let ip = Ip::locate(frame).ok_or(UnsupportedOffload)?;
    let offset = ip.checksum_offset().ok_or(UnsupportedOffload)?;
    let payload = ip.payload(frame)?;
    let length = ip.transport_len(frame).ok_or(UnsupportedOffload)?;
    let sum = !ip.pseudo_header(frame, length).finish();
    let place = frame.get_mut(ip.l4 + offset..ip.l4 + offset + 2).ok_or(UnsupportedOffload)?;
    place.copy_from_slice(&sum.to_be_bytes());
    let is_tcp = ip.protocol == IPPROTO_TCP;
    let kind = match (is_tcp, ip.v4) {
        (true, true) => SegmentKind::Tcp4,
        (true, false) => SegmentKind::Tcp6,
        (false, _) => SegmentKind::Udp,
    };
    let size = offload.segment_len;
    Ok(LeftOpen {
        start: u16::try_from(ip.l4).map_err(|_| UnsupportedOffload)?,
        offset: clamp_u16(offset),
        header_len: u16::try_from(payload).map_err(|_| UnsupportedOffload)?,
        segments: (size != 0).then_some((kind, size)),
        is_cwr: is_tcp && frame.get(ip.l4 + 13).is_some_and(|flags| flags & TCP_CWR != 0),
    })
}

/// Flags of TCP that not all of the frames have that a super-frame stands for: the last alone has
/// FIN and PSH, and the first CWR.
pub const FLAGS_OF_ONE: u8 = TCP_FIN_PSH | TCP_CWR;

/// Whether a frame stands for several that have not all its flags of TCP.
#[must_use]
pub fn differ_in_flags(frame: &PacketBuf) -> bool {
    let has_flags = |ip: Ip| {
        let flags = frame.bytes().get(ip.l4 + 13);
        ip.protocol == IPPROTO_TCP && flags.is_some_and(|flags| flags & FLAGS_OF_ONE != 0)
    };
    frame.offload().is_some_and(|offload| offload.segment_len != 0)
        && Ip::locate(frame.bytes()).is_some_and(has_flags)
}

/// Does the work that is left: hands the frame to `each`, or the frames that it stands for, in
/// buffers from `spare`, and returns the buffer of a super-frame.
///
/// # Errors
/// When the headers are no longer those of the offload: the frame, nothing of which was handed on.
pub fn finish(
    mut frame: PacketBuf,
    mut spare: impl FnMut() -> PacketBuf,
    mut each: impl FnMut(PacketBuf),
) -> Result<Option<PacketBuf>, PacketBuf> {
    let Some(Offload { segment_len, .. }) = frame.offload() else {
        each(frame);
        return Ok(None);
    };
    if segment_len == 0 {
        if complete_transport(frame.bytes_mut()).is_err() || !frame.set_offload(None) {
            return Err(frame);
        }
        each(frame);
        return Ok(None);
    }
    let Ok(mut segmenter) = Segmenter::new(frame.bytes(), None, segment_len, None) else {
        return Err(frame);
    };
    while !segmenter.is_done(frame.bytes()) {
        let mut segment = spare();
        segmenter.cut(frame.bytes(), &mut segment);
        each(segment);
    }
    Ok(Some(frame))
}

/// Makes the checksum of a frame's TCP or UDP, whatever stands in its place.
fn complete_transport(frame: &mut [u8]) -> Result<(), UnsupportedOffload> {
    let ip = Ip::locate(frame).ok_or(UnsupportedOffload)?;
    let at = ip.l4 + ip.checksum_offset().ok_or(UnsupportedOffload)?;
    let length = ip.transport_len(frame).ok_or(UnsupportedOffload)?;
    frame.get_mut(at..at + 2).ok_or(UnsupportedOffload)?.fill(0);
    let mut sum = ip.pseudo_header(frame, length);
    sum.add(frame.get(ip.l4..ip.l4 + usize::from(length)).ok_or(UnsupportedOffload)?);
    let sum = if ip.protocol == IPPROTO_UDP { sum.finish_udp() } else { sum.finish() };
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    Ok(())
}

/// Places of the headers of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip {
    v4: bool,
    l3: usize,
    /// Start of the transport header.
    pub l4: usize,
    /// The number of the transport protocol.
    pub protocol: u8,
    /// The pseudo header has another destination than the header.
    is_routed: bool,
}

impl Ip {
    /// Finds the IP and transport headers behind any number of VLAN tags; `None` for anything else,
    /// a fragment, or a frame cut short.
    #[must_use]
    pub fn locate(frame: &[u8]) -> Option<Self> {
        let mut l3 = 14;
        loop {
            let ethertype = u16::from_be_bytes(frame.get(l3 - 2..l3)?.try_into().ok()?);
            match ethertype {
                0x8100 | 0x88a8 | 0x9100 => l3 += 4,
                0x0800 => return locate_v4(frame, l3),
                0x86dd => return locate_v6(frame, l3),
                _ => return None,
            }
        }
    }

    /// Place of the checksum in the header of TCP or UDP.
    fn checksum_offset(&self) -> Option<usize> {
        match self.protocol {
            _ if self.is_routed => None,
            IPPROTO_TCP => Some(16),
            IPPROTO_UDP => Some(6),
            _ => None,
        }
    }

    /// Start of the payload of TCP or UDP.
    fn payload(&self, frame: &[u8]) -> Result<usize, UnsupportedOffload> {
        let (len, least) = if self.protocol == IPPROTO_TCP {
            let offset = frame.get(self.l4 + 12).ok_or(UnsupportedOffload)?;
            (usize::from(offset >> 4) * 4, 20)
        } else {
            (8, 8)
        };
        let payload = self.l4 + len;
        if len < least || payload > frame.len() { Err(UnsupportedOffload) } else { Ok(payload) }
    }

    /// The length of transport header and payload, as IP's header says; none when the frame is
    /// shorter.
    fn transport_len(&self, frame: &[u8]) -> Option<u16> {
        let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..at + 2)?.first_chunk()?));
        let end = if self.v4 {
            self.l3 + usize::from(word(self.l3 + 2)?)
        } else {
            self.l3 + 40 + usize::from(word(self.l3 + 4)?)
        };
        let len = end.checked_sub(self.l4).filter(|_| end <= frame.len())?;
        u16::try_from(len).ok()
    }

    /// Whether the frame ends where its headers say.
    fn spans(&self, frame: &[u8]) -> bool {
        let Some(len) = self.transport_len(frame) else { return false };
        let udp = || frame.get(self.l4 + 4..self.l4 + 6) == Some(&len.to_be_bytes());
        self.payload(frame).is_ok()
            && self.l4 + usize::from(len) == frame.len()
            && (self.protocol != IPPROTO_UDP || udp())
    }

    /// The sum of the pseudo header for this number of bytes of transport.
    fn pseudo_header(&self, frame: &[u8], length: u16) -> InternetChecksum {
        let Self { v4, l3, protocol, .. } = *self;
        let addresses = if v4 { l3 + 12..l3 + 20 } else { l3 + 8..l3 + 40 };
        let length = length.to_be_bytes();
        let mut sum = InternetChecksum::default();
        sum.add(&frame[addresses]);
        sum.add(&[length[0], length[1], 0, protocol]);
        sum
    }
}

fn locate_v4(frame: &[u8], l3: usize) -> Option<Ip> {
    let header = frame.get(l3..l3 + 20)?;
    let length = usize::from(header[0] & 0xf) * 4;
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    if header[0] >> 4 != 4 || length < 20 || fragment {
        return None;
    }
    Some(Ip { v4: true, l3, l4: l3 + length, protocol: header[9], is_routed: false })
}

fn locate_v6(frame: &[u8], l3: usize) -> Option<Ip> {
    let header = frame.get(l3..l3 + 40)?;
    let (mut protocol, mut l4, mut is_routed) = (header[6], l3 + 40, false);
    // Hop-by-hop, routing and destination options (RFC 8200, 4.3, 4.4, 4.6).
    while matches!(protocol, 0 | 43 | 60) {
        is_routed |= protocol == ROUTING;
        let extension = frame.get(l4..l4 + 2)?;
        protocol = extension[0];
        l4 += (usize::from(extension[1]) + 1) * 8;
    }
    (header[0] >> 4 == 6).then_some(Ip { v4: false, l3, l4, protocol, is_routed })
}

/// Cuts one GSO frame into the frames that it stands for. It holds offsets only; the frame is given
/// anew to each call, so that the caller may pause between two segments.
#[derive(Debug, Clone, Copy)]
pub struct Segmenter {
    ip: Ip,
    /// Start of the payload: all before it is repeated in each segment.
    payload: usize,
    size: usize,
    next: usize,
}

impl Segmenter {
    /// Prepares to cut `frame`, which must be of TCP or UDP over IPv4 or IPv6 without a tunnel,
    /// into pieces of `size` bytes of payload. Its sender says which `kind` it is, and where the
    /// checksum starts, or leaves it to the headers.
    ///
    /// # Errors
    /// When frame and sender disagree, or there is no such frame.
    pub fn new(
        frame: &[u8],
        kind: Option<SegmentKind>,
        size: u16,
        start: Option<u16>,
    ) -> Result<Self, UnsupportedOffload> {
        let ip = Ip::locate(frame).ok_or(UnsupportedOffload)?;
        let is_kind = match kind {
            Some(SegmentKind::Tcp4) => ip.protocol == IPPROTO_TCP && ip.v4,
            Some(SegmentKind::Tcp6) => ip.protocol == IPPROTO_TCP && !ip.v4,
            Some(SegmentKind::Udp) => ip.protocol == IPPROTO_UDP,
            None => true,
        };
        // Inside a tunnel the checksum starts further back than the outer headers end.
        let is_plain = start.is_none_or(|start| usize::from(start) == ip.l4);
        if !is_kind || !is_plain || size == 0 || ip.checksum_offset().is_none() {
            return Err(UnsupportedOffload);
        }
        let payload = ip.payload(frame)?;
        // Each segment must be expressible in IP's 16-bit length.
        let size = usize::from(size);
        if payload - ip.l3 + size > usize::from(u16::MAX) {
            return Err(UnsupportedOffload);
        }
        Ok(Self { ip, payload, size, next: 0 })
    }

    /// Whether all of `frame` has been cut.
    #[must_use]
    pub fn is_done(&self, frame: &[u8]) -> bool {
        // A frame without payload is one segment.
        self.next > 0 && self.payload + self.next >= frame.len()
    }

    /// Writes the next segment into `into`.
    pub fn cut(&mut self, frame: &[u8], into: &mut PacketBuf) {
        let from = self.payload + self.next;
        let chunk = self.size.min(frame.len().saturating_sub(from));
        let segment = into.prepare(self.payload + chunk);
        let (headers, data) = segment.split_at_mut(self.payload);
        headers.copy_from_slice(&frame[..self.payload]);
        data.copy_from_slice(&frame[from..from + chunk]);
        let first = self.next == 0;
        let number = self.next / self.size;
        let offset = self.next;
        self.next += chunk.max(1);
        let last = self.is_done(frame);
        self.patch_ip(segment, number);
        if self.ip.protocol == IPPROTO_TCP {
            self.patch_tcp(segment, offset, first, last);
        } else {
            let length = clamp_u16(segment.len() - self.ip.l4);
            segment[self.ip.l4 + 4..self.ip.l4 + 6].copy_from_slice(&length.to_be_bytes());
        }
        self.patch_checksum(segment);
    }

    fn patch_ip(&self, segment: &mut [u8], number: usize) {
        let length = segment.len() - self.ip.l3;
        let l3 = &mut segment[self.ip.l3..self.ip.l4];
        if !self.ip.v4 {
            l3[4..6].copy_from_slice(&clamp_u16(length - 40).to_be_bytes());
            return;
        }
        l3[2..4].copy_from_slice(&clamp_u16(length).to_be_bytes());
        let id = u16::from_be_bytes([l3[4], l3[5]]).wrapping_add(clamp_u16(number));
        l3[4..6].copy_from_slice(&id.to_be_bytes());
        l3[10..12].fill(0);
        let sum = ones_complement(l3).to_be_bytes();
        l3[10..12].copy_from_slice(&sum);
    }

    fn patch_tcp(&self, segment: &mut [u8], offset: usize, first: bool, last: bool) {
        let tcp = &mut segment[self.ip.l4..self.payload];
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        // Below 2^32: a frame is not that long.
        let sequence = sequence.wrapping_add(offset as u32);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        if !last {
            tcp[13] &= !TCP_FIN_PSH;
        }
        if !first {
            tcp[13] &= !TCP_CWR;
        }
    }

    fn patch_checksum(&self, segment: &mut [u8]) {
        let Ip { l4, protocol, .. } = self.ip;
        let at = l4 + if protocol == IPPROTO_TCP { 16 } else { 6 };
        segment[at..at + 2].fill(0);
        let mut sum = self.ip.pseudo_header(segment, clamp_u16(segment.len() - l4));
        sum.add(&segment[l4..]);
        let sum = if protocol == IPPROTO_UDP { sum.finish_udp() } else { sum.finish() };
        segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// `Segmenter::new` has made sure that lengths fit; the counts of segments do as well.
fn clamp_u16(value: usize) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, PacketBuilderStep, SlicedPacket, TransportSlice};
    use proptest::prelude::{any, prop_assert, proptest};

    use super::*;

    const START_TCP4: u16 = 34;
    const PAYLOAD: usize = 2_500;

    fn cut(
        frame: &[u8],
        kind: Option<SegmentKind>,
        size: u16,
        start: Option<u16>,
    ) -> Result<Segmenter, UnsupportedOffload> {
        Segmenter::new(frame, kind, size, start)
    }

    fn ethernet() -> PacketBuilderStep<etherparse::Ethernet2Header> {
        PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
    }

    fn payload(len: usize) -> Vec<u8> {
        (0..len).map(|n| (n % 251) as u8).collect()
    }

    fn tcp(v6: bool, tagged: bool, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let write = |step: PacketBuilderStep<etherparse::IpHeaders>, bytes: &mut Vec<u8>| {
            let step = step.tcp(80, 1_234, 0xffff_fc00, 500).psh().fin().cwr().ack(9);
            step.write(bytes, &payload(len)).unwrap();
        };
        let (a4, b4) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let (a6, b6) = ([0xfd; 16], [0xfc; 16]);
        match (tagged, v6) {
            (false, false) => write(ethernet().ipv4(a4, b4, 64), &mut bytes),
            (false, true) => write(ethernet().ipv6(a6, b6, 64), &mut bytes),
            (true, false) => {
                let tag = etherparse::VlanId::try_new(7).unwrap();
                write(ethernet().single_vlan(tag).ipv4(a4, b4, 64), &mut bytes);
            }
            (true, true) => {
                let tag = etherparse::VlanId::try_new(7).unwrap();
                write(ethernet().single_vlan(tag).ipv6(a6, b6, 64), &mut bytes);
            }
        }
        bytes
    }

    fn udp(len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let step = ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(53, 53);
        step.write(&mut bytes, &payload(len)).unwrap();
        bytes
    }

    fn segments(frame: &[u8], mut segmenter: Segmenter) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut buf = PacketBuf::default();
        while !segmenter.is_done(frame) {
            segmenter.cut(frame, &mut buf);
            all.push(buf.bytes().to_vec());
        }
        all
    }

    #[test]
    fn a_super_frame_of_too_many_segments_is_not_noted() {
        let frame = tcp(false, false, 1_280);
        for (size, is_noted) in [(9, false), (10, true)] {
            let segmenter = cut(&frame, Some(SegmentKind::Tcp4), size, Some(START_TCP4)).unwrap();
            assert_eq!(Offload::of_segments(&frame, &segmenter).is_some(), is_noted, "{size}");
        }
    }

    /// Asks etherparse whether lengths and all checksums of a frame are right; gives the payload
    /// and, for TCP, sequence number and flags.
    fn checked(frame: &[u8]) -> (Vec<u8>, u32, (bool, bool, bool)) {
        let sliced = SlicedPacket::from_ethernet(frame).unwrap();
        let net = sliced.net.unwrap();
        let v4 = net.ipv4_ref().map(|ip| ip.header());
        if let Some(ip) = v4 {
            assert_eq!(ip.header_checksum(), ip.to_header().calc_header_checksum());
        }
        match sliced.transport.unwrap() {
            TransportSlice::Tcp(tcp) => {
                let header = tcp.to_header();
                let right = match v4 {
                    Some(ip) => header.calc_checksum_ipv4(&ip.to_header(), tcp.payload()),
                    None => {
                        let ip = net.ipv6_ref().unwrap().header().to_header();
                        header.calc_checksum_ipv6(&ip, tcp.payload())
                    }
                };
                assert_eq!(header.checksum, right.unwrap());
                let flags = (header.fin, header.psh, header.cwr);
                (tcp.payload().to_vec(), header.sequence_number, flags)
            }
            TransportSlice::Udp(udp) => {
                let ip = v4.unwrap().to_header();
                let right = udp.to_header().calc_checksum_ipv4(&ip, udp.payload()).unwrap();
                assert_eq!(udp.checksum(), right);
                assert_eq!(usize::from(udp.length()), 8 + udp.payload().len());
                (udp.payload().to_vec(), 0, (false, false, false))
            }
            other @ (TransportSlice::Icmpv4(_)
            | TransportSlice::Icmpv6(_)
            | TransportSlice::Igmp(_)) => panic!("{other:?}"),
        }
    }

    #[test]
    fn tcp_is_cut_into_frames_that_a_parser_agrees_with() {
        for (v6, tagged) in [(false, false), (true, false), (false, true), (true, true)] {
            let frame = tcp(v6, tagged, PAYLOAD);
            let start = START_TCP4 + if v6 { 20 } else { 0 } + if tagged { 4 } else { 0 };
            let kind = if v6 { SegmentKind::Tcp6 } else { SegmentKind::Tcp4 };
            let segmenter = cut(&frame, Some(kind), 1_000, Some(start)).unwrap();
            let all = segments(&frame, segmenter);
            assert_eq!(all.len(), 3);
            let mut joined = Vec::new();
            for (n, segment) in all.iter().enumerate() {
                let (part, sequence, (fin, psh, cwr)) = checked(segment);
                // The sequence number passes 2^32 on the way.
                assert_eq!(sequence, 0xffff_fc00_u32.wrapping_add(1_000 * n as u32));
                assert_eq!((fin, psh, cwr), (n == 2, n == 2, n == 0));
                joined.extend(part);
            }
            assert_eq!(joined, payload(PAYLOAD));
            // Without a hint, the headers say where the checksum starts.
            assert_eq!(segments(&frame, cut(&frame, None, 1_000, None).unwrap()), all);
            finishes_as(&frame, &segmenter, &all);
        }
    }

    #[test]
    fn udp_is_cut_into_datagrams() {
        let frame = udp(2_000);
        let segmenter = cut(&frame, Some(SegmentKind::Udp), 1_000, Some(34)).unwrap();
        let all = segments(&frame, segmenter);
        finishes_as(&frame, &segmenter, &all);
        let parts: Vec<Vec<u8>> = all.iter().map(|segment| checked(segment).0).collect();
        assert_eq!(parts.concat(), payload(2_000));
        assert_eq!(parts.len(), 2);
    }

    /// A frame with the offload of a segmenter is finished to the segments that this cuts, and
    /// counted as they are, whatever stands in its checksum.
    fn finishes_as(frame: &[u8], segmenter: &Segmenter, all: &[Vec<u8>]) {
        let mut whole = PacketBuf::from_slice(frame);
        let offload = Offload::of_segments(frame, segmenter).unwrap();
        assert!(whole.set_offload(Some(offload)));
        let bytes = all.iter().map(Vec::len).sum::<usize>() as u64;
        assert_eq!(whole.on_wire(), (all.len() as u64, bytes));
        let longest = all.iter().map(Vec::len).max().unwrap();
        assert_eq!(offload.longest_on_wire(frame.len()), longest);
        let open = leave_open(whole.bytes_mut(), offload).unwrap();
        assert_eq!(open.segments.unwrap().1, 1_000);
        assert_eq!(usize::from(open.header_len), all[0].len() - 1_000);
        let mut finished = Vec::new();
        let each = |frame: PacketBuf| finished.push(frame.bytes().to_vec());
        assert!(finish(whole, PacketBuf::default, each).unwrap().is_some());
        assert_eq!(finished, all);
    }

    #[test]
    fn a_checksum_is_left_open_and_made() {
        for (right, start, offset) in [(udp(77), 34, 6), (tcp(true, true, 9), 58, 16)] {
            let offload = Offload::of_checksum(&right, start, offset).unwrap();
            assert_eq!(Offload::of_checksum(&right, start, offset - 2), None);
            let mut frame = PacketBuf::from_slice(&right);
            assert!(frame.set_offload(Some(offload)));
            let open = leave_open(frame.bytes_mut(), offload).unwrap();
            assert_eq!((open.start, open.offset), (start as u16, offset as u16));
            assert_ne!(frame.bytes(), right);
            // What the next receiver does with the sum that was left (virtio 1.2, 5.1.6.2).
            let mut sum = InternetChecksum::default();
            sum.add(&frame.bytes()[start..]);
            assert_eq!(sum.finish().to_be_bytes(), right[start + offset..start + offset + 2]);
            let mut finished = Vec::new();
            let each = |frame: PacketBuf| finished.push(frame);
            assert_eq!(finish(frame, PacketBuf::default, each), Ok(None));
            assert!(finished[0].bytes() == right && !finished[0].has_offload());
        }
    }

    #[test]
    fn headers_that_are_no_longer_there_are_an_error() {
        let mut frame = PacketBuf::from_slice(&udp(77));
        assert!(frame.set_offload(Some(Offload::CHECKSUM)));
        frame.bytes_mut()[12..14].copy_from_slice(&[0x88, 0xb5]);
        assert!(leave_open(frame.bytes_mut(), Offload::CHECKSUM).is_err());
        assert!(finish(frame, PacketBuf::default, |_| panic!("not right")).is_err());
        let mut long = udp(77);
        long.push(0);
        assert_eq!(Offload::of_checksum(&long, 34, 6), None, "IP says where it ends");
        long[17] += 1;
        assert_eq!(Offload::of_checksum(&long, 34, 6), None, "UDP says so too");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let frame = tcp(false, false, PAYLOAD);
        let refused = |kind, size, start| assert!(cut(&frame, kind, size, start).is_err());
        refused(Some(SegmentKind::Tcp4), 0, Some(START_TCP4));
        refused(Some(SegmentKind::Tcp4), u16::MAX, Some(START_TCP4));
        refused(Some(SegmentKind::Tcp6), 1_000, Some(START_TCP4));
        refused(Some(SegmentKind::Udp), 1_000, Some(START_TCP4));
        // A tunnel: the checksum to be made lies deeper than the first transport header.
        refused(Some(SegmentKind::Tcp4), 1_000, Some(START_TCP4 + 50));
        let mut routed = tcp(true, false, PAYLOAD);
        routed[20] = 43;
        assert!(cut(&routed, None, 1_000, None).is_err(), "another destination is summed");
    }

    proptest! {
        /// No sender and no frame, however broken, leads outside the frame.
        #[test]
        fn any_sender_and_frame_are_survived(
            offload in (any::<u16>(), any::<u16>()),
            patches in proptest::collection::vec((0_usize..80, any::<u8>()), 0..6),
            keep in 0_usize..2_600,
            v6 in any::<bool>(),
        ) {
            let mut frame = tcp(v6, false, PAYLOAD);
            for (at, byte) in patches {
                frame[at] = byte;
            }
            frame.truncate(keep);
            let size = offload.0 % 3_000;
            let mut total = 0;
            if let Ok(segmenter) = cut(&frame, None, size, None) {
                total = segments(&frame, segmenter).len();
                prop_assert!(total <= PAYLOAD + 1);
            }
            let segment_len = offload.0 & Offload::SEGMENT_MAX;
            let offload = Offload { segment_len, payload_len: offload.1 };
            let _ = leave_open(&mut frame.clone(), offload);
            let _ = (offload.on_wire(frame.len()), offload.longest_on_wire(frame.len()));
            let mut whole = PacketBuf::from_slice(&frame);
            let is_noted = whole.set_offload(Some(Offload { segment_len: size, payload_len: 0 }));
            prop_assert!(is_noted);
            let mut finished = 0;
            let _ = finish(whole, PacketBuf::default, |_| finished += 1);
            prop_assert!(size == 0 || finished == total);
        }
    }
}
