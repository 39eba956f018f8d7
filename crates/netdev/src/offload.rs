//! Doing what a sender left to its network card: completing checksums and segmenting frames that
//! are longer than a wire carries.
//!
//! On a veth the sender is the kernel of the other namespace, whose offloads cannot be reached from
//! here. What it left open stands in the virtio-net header (virtio 1.2, 5.1.6) that packet sockets
//! and TAP devices put in front of each frame. Frames from outside are not trusted: whatever does
//! not fit is refused, and never read or written outside the frame.

use packet::PacketBuf;
use packet::checksum::{InternetChecksum, crc32c, ones_complement};

/// Length of the virtio-net header in bytes.
pub(crate) const VNET_LEN: usize = 10;

const F_NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;
const IPPROTO_SCTP: u8 = 132;
const TCP_FIN_PSH: u8 = 0x09;
const TCP_CWR: u8 = 0x80;

/// What the sender left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VnetHeader {
    flags: u8,
    gso_type: u8,
    gso_size: u16,
    csum_start: u16,
    csum_offset: u16,
}

impl VnetHeader {
    /// Reads the header; its numbers are in the host's byte order.
    pub(crate) fn read(bytes: &[u8; VNET_LEN]) -> Self {
        let [flags, gso_type, _, _, s0, s1, c0, c1, o0, o1] = *bytes;
        Self {
            flags,
            gso_type,
            gso_size: u16::from_ne_bytes([s0, s1]),
            csum_start: u16::from_ne_bytes([c0, c1]),
            csum_offset: u16::from_ne_bytes([o0, o1]),
        }
    }

    /// Whether the frame stands for several.
    pub(crate) fn is_gso(&self) -> bool {
        self.gso_type & !GSO_ECN != GSO_NONE
    }
}

/// The frame cannot be made right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnsupportedOffload;

/// Completes the checksum of a frame that is not GSO. The field holds the sum of the pseudo header
/// already, so that this works for any protocol above any number of tags.
pub(crate) fn complete(frame: &mut [u8], header: &VnetHeader) -> Result<(), UnsupportedOffload> {
    if header.flags & F_NEEDS_CSUM == 0 {
        return Ok(());
    }
    let start = usize::from(header.csum_start);
    let offset = usize::from(header.csum_offset);
    let protocol = locate(frame).filter(|ip| ip.l4 == start).map(|ip| ip.protocol);
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

/// Where the headers of a frame stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ip {
    v4: bool,
    l3: usize,
    l4: usize,
    protocol: u8,
}

/// Finds the IP and transport headers behind any number of VLAN tags; `None` for anything else, a
/// fragment, or a frame cut short.
fn locate(frame: &[u8]) -> Option<Ip> {
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

fn locate_v4(frame: &[u8], l3: usize) -> Option<Ip> {
    let header = frame.get(l3..l3 + 20)?;
    let length = usize::from(header[0] & 0xf) * 4;
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    if header[0] >> 4 != 4 || length < 20 || fragment {
        return None;
    }
    Some(Ip { v4: true, l3, l4: l3 + length, protocol: header[9] })
}

fn locate_v6(frame: &[u8], l3: usize) -> Option<Ip> {
    let header = frame.get(l3..l3 + 40)?;
    let (mut protocol, mut l4) = (header[6], l3 + 40);
    // Hop-by-hop, routing and destination options (RFC 8200, 4.3, 4.4, 4.6).
    while matches!(protocol, 0 | 43 | 60) {
        let extension = frame.get(l4..l4 + 2)?;
        protocol = extension[0];
        l4 += (usize::from(extension[1]) + 1) * 8;
    }
    (header[0] >> 4 == 6).then_some(Ip { v4: false, l3, l4, protocol })
}

/// Cuts one GSO frame into the frames that it stands for. It holds offsets only; the frame is given
/// anew to each call, so that the caller may pause between two segments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segmenter {
    ip: Ip,
    /// Where the payload starts: all before it is repeated in each segment.
    payload: usize,
    size: usize,
    next: usize,
}

impl Segmenter {
    /// Prepares to cut `frame`, which must be of TCP or UDP over IPv4 or IPv6 without a tunnel.
    pub(crate) fn new(frame: &[u8], header: &VnetHeader) -> Result<Self, UnsupportedOffload> {
        let ip = locate(frame).ok_or(UnsupportedOffload)?;
        let (protocol, v4) = match header.gso_type & !GSO_ECN {
            GSO_TCPV4 => (IPPROTO_TCP, true),
            GSO_TCPV6 => (IPPROTO_TCP, false),
            GSO_UDP_L4 => (IPPROTO_UDP, ip.v4),
            _ => return Err(UnsupportedOffload),
        };
        // Inside a tunnel the checksum starts further back than the outer headers end.
        let plain = header.flags & F_NEEDS_CSUM == 0 || usize::from(header.csum_start) == ip.l4;
        if ip.protocol != protocol || ip.v4 != v4 || !plain || header.gso_size == 0 {
            return Err(UnsupportedOffload);
        }
        let l4_len = if protocol == IPPROTO_TCP {
            let offset = frame.get(ip.l4 + 12).ok_or(UnsupportedOffload)?;
            usize::from(offset >> 4) * 4
        } else {
            8
        };
        let payload = ip.l4 + l4_len;
        let least = if protocol == IPPROTO_TCP { 20 } else { 8 };
        // Each segment must be expressible in IP's 16-bit length.
        let size = usize::from(header.gso_size);
        let too_long = payload - ip.l3 + size > usize::from(u16::MAX);
        if l4_len < least || payload > frame.len() || too_long {
            return Err(UnsupportedOffload);
        }
        Ok(Self { ip, payload, size, next: 0 })
    }

    /// Whether all of `frame` has been cut.
    pub(crate) fn is_done(&self, frame: &[u8]) -> bool {
        // A frame without payload is one segment.
        self.next > 0 && self.payload + self.next >= frame.len()
    }

    /// Writes the next segment into `into`.
    pub(crate) fn cut(&mut self, frame: &[u8], into: &mut PacketBuf) {
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
        let Ip { v4, l3, l4, protocol } = self.ip;
        let at = l4 + if protocol == IPPROTO_TCP { 16 } else { 6 };
        segment[at..at + 2].fill(0);
        let addresses = if v4 { l3 + 12..l3 + 20 } else { l3 + 8..l3 + 40 };
        let length = clamp_u16(segment.len() - l4).to_be_bytes();
        let mut sum = InternetChecksum::default();
        sum.add(&segment[addresses]);
        sum.add(&[length[0], length[1], 0, protocol]);
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

    fn vnet(flags: u8, gso_type: u8, size: u16, start: u16, offset: u16) -> VnetHeader {
        let mut bytes = [flags, gso_type, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes[4..6].copy_from_slice(&size.to_ne_bytes());
        bytes[6..8].copy_from_slice(&start.to_ne_bytes());
        bytes[8..10].copy_from_slice(&offset.to_ne_bytes());
        VnetHeader::read(&bytes)
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

    fn segments(frame: &[u8], header: &VnetHeader) -> Vec<Vec<u8>> {
        let mut segmenter = Segmenter::new(frame, header).unwrap();
        let mut all = Vec::new();
        let mut buf = PacketBuf::default();
        while !segmenter.is_done(frame) {
            segmenter.cut(frame, &mut buf);
            all.push(buf.bytes().to_vec());
        }
        all
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
            let gso = if v6 { GSO_TCPV6 } else { GSO_TCPV4 } | GSO_ECN;
            let all = segments(&frame, &vnet(F_NEEDS_CSUM, gso, 1_000, start, 16));
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
            assert_eq!(segments(&frame, &vnet(0, gso, 1_000, 0, 0)), all);
        }
    }

    #[test]
    fn udp_is_cut_into_datagrams() {
        let frame = udp(2_000);
        let all = segments(&frame, &vnet(F_NEEDS_CSUM, GSO_UDP_L4, 1_000, 34, 6));
        let parts: Vec<Vec<u8>> = all.iter().map(|segment| checked(segment).0).collect();
        assert_eq!(parts.concat(), payload(2_000));
        assert_eq!(parts.len(), 2);
    }

    #[test]
    fn a_partial_checksum_is_completed() {
        for (frame, start, offset) in [(udp(77), 34, 6), (tcp(true, true, 9), 58, 16)] {
            let mut partial = frame.clone();
            let ip = locate(&frame).unwrap();
            assert_eq!(ip.l4, start);
            // What a sending kernel leaves in the field: the folded sum of the pseudo header.
            let addresses = if ip.v4 { ip.l3 + 12..ip.l3 + 20 } else { ip.l3 + 8..ip.l3 + 40 };
            let length = clamp_u16(frame.len() - start).to_be_bytes();
            let mut sum = InternetChecksum::default();
            sum.add(&frame[addresses]);
            sum.add(&[length[0], length[1], 0, ip.protocol]);
            let [high, low] = sum.finish().to_be_bytes();
            partial[start + offset..start + offset + 2].copy_from_slice(&[!high, !low]);
            assert_ne!(partial, frame);
            let header = vnet(F_NEEDS_CSUM, 0, 0, start as u16, offset as u16);
            complete(&mut partial, &header).unwrap();
            assert_eq!(partial, frame);
        }
    }

    #[test]
    fn sctp_gets_its_crc() {
        let mut frame = Vec::new();
        let step = ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        step.write(&mut frame, 132.into(), &[0; 12]).unwrap();
        complete(&mut frame, &vnet(F_NEEDS_CSUM, 0, 0, 34, 8)).unwrap();
        assert_eq!(frame[42..46], crc32c(&[&[0; 12]]).to_le_bytes());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let frame = tcp(false, false, PAYLOAD);
        let refused = |header: VnetHeader| assert!(Segmenter::new(&frame, &header).is_err());
        refused(vnet(F_NEEDS_CSUM, GSO_TCPV4, 0, START_TCP4, 16));
        refused(vnet(F_NEEDS_CSUM, GSO_TCPV4, u16::MAX, START_TCP4, 16));
        refused(vnet(F_NEEDS_CSUM, GSO_TCPV6, 1_000, START_TCP4, 16));
        refused(vnet(F_NEEDS_CSUM, GSO_UDP_L4, 1_000, START_TCP4, 6));
        refused(vnet(F_NEEDS_CSUM, 3, 1_000, START_TCP4, 6));
        // A tunnel: the checksum to be made lies deeper than the first transport header.
        refused(vnet(F_NEEDS_CSUM, GSO_TCPV4, 1_000, START_TCP4 + 50, 16));
        let mut short = frame[..60].to_vec();
        assert!(complete(&mut short, &vnet(F_NEEDS_CSUM, 0, 0, 59, 16)).is_err());
        assert!(complete(&mut short, &vnet(F_NEEDS_CSUM, 0, 0, 600, 0)).is_err());
    }

    proptest! {
        /// No header and no frame, however broken, leads outside the frame.
        #[test]
        fn any_header_and_frame_are_survived(
            header in any::<[u8; VNET_LEN]>(),
            patches in proptest::collection::vec((0_usize..80, any::<u8>()), 0..6),
            keep in 0_usize..2_600,
            v6 in any::<bool>(),
            plausible in any::<bool>(),
        ) {
            let mut frame = tcp(v6, false, PAYLOAD);
            for (at, byte) in patches {
                frame[at] = byte;
            }
            frame.truncate(keep);
            let start = if v6 { 54 } else { 34 };
            let gso = if v6 { GSO_TCPV6 } else { GSO_TCPV4 };
            let header = if plausible {
                vnet(header[0], gso, u16::from(header[1]) + 1, start, 16)
            } else {
                VnetHeader::read(&header)
            };
            let _ = complete(&mut frame.clone(), &header);
            if let Ok(mut segmenter) = Segmenter::new(&frame, &header) {
                let mut buf = PacketBuf::default();
                let mut total = 0;
                while !segmenter.is_done(&frame) {
                    segmenter.cut(&frame, &mut buf);
                    total += 1;
                    prop_assert!(total <= PAYLOAD + 1);
                }
            }
        }
    }
}
