//! ICMP as a router speaks it: echo replies, and complaints about packets (RFC 792, RFC 1812).
//!
//! About what must not be complained is silence: about complaints, later fragments, and packets to
//! or from no single host (RFC 1122, clause 3.2.2). Frames come from anybody; what is cut off is
//! not answered.

use openflow::MacAddr;
use packet::build::{FrameBuilder, Ipv4};
use packet::header::{chunk, ethernet, icmpv4, ipv4};
use packet::{Layout, Network, Transport};
use std::net::Ipv4Addr;

/// Bytes behind the IP header that a complaint repeats: those that name ports.
const REPEATED: usize = 8;

/// Why a packet went nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Complaint {
    /// No route.
    NetUnreachable,
    /// The next hop does not answer.
    HostUnreachable,
    /// The router does not have the service.
    PortUnreachable,
    /// The TTL is used up.
    TimeExceeded,
}

impl Complaint {
    fn kind_code(self) -> (u8, u8) {
        match self {
            Self::NetUnreachable => (3, 0),
            Self::HostUnreachable => (3, 1),
            Self::PortUnreachable => (3, 3),
            Self::TimeExceeded => (11, 0),
        }
    }
}

/// The parts of a frame that answers need.
struct Asked<'a> {
    layout: Layout,
    eth_dst: MacAddr,
    eth_src: MacAddr,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    /// From the IP header to the end that it states.
    packet: &'a [u8],
}

fn asked(frame: &[u8]) -> Option<Asked<'_>> {
    let layout = Layout::of(frame)?;
    let is_whole = layout.network == Network::Ipv4 && layout.tags == 0 && !layout.truncated;
    let header = chunk::<{ ipv4::HEADER_LEN }>(frame, layout.l3).filter(|_| is_whole)?;
    let address = |at: usize| chunk::<4>(header, at).map(|octets| Ipv4Addr::from(*octets));
    let (src, dst) = (address(ipv4::SRC.start)?, address(ipv4::DST.start)?);
    let is_host = !src.is_unspecified() && !src.is_multicast() && !src.is_broadcast();
    Some(Asked {
        layout,
        eth_dst: MacAddr(*chunk(frame, ethernet::DST.start)?),
        eth_src: MacAddr(*chunk(frame, ethernet::SRC.start)?),
        src,
        dst,
        packet: frame.get(layout.l3..layout.end)?,
    })
    .filter(|_| is_host && !src.is_loopback())
}

/// The answer to an echo request, back the way that it came.
pub(super) fn echo_reply(frame: &[u8]) -> Option<Vec<u8>> {
    let asked = asked(frame)?;
    let message = frame.get(asked.layout.l4..asked.layout.end)?;
    let header = chunk::<{ icmpv4::HEADER_LEN }>(message, 0)?;
    let [kind, .., id_high, id_low, seq_high, seq_low] = *header;
    let is_request = asked.layout.transport == Transport::Icmpv4 && kind == icmpv4::ECHO_REQUEST;
    if !is_request || asked.layout.fragment {
        return None;
    }
    let [id, seq] = [[id_high, id_low], [seq_high, seq_low]].map(u16::from_be_bytes);
    let reply = FrameBuilder::ethernet(asked.eth_src, asked.eth_dst)
        .ipv4(Ipv4::new(asked.dst, asked.src))
        .echo_reply(id, seq)
        .payload(message.get(icmpv4::HEADER_LEN..)?);
    Some(reply.build())
}

/// The complaint about a frame, from the router's address on the side where it came in.
pub(super) fn complain(frame: &[u8], from: Ipv4Addr, complaint: Complaint) -> Option<Vec<u8>> {
    let asked = asked(frame)?;
    let is_complaint = asked.layout.transport == Transport::Icmpv4
        && !matches!(
            frame.get(asked.layout.l4).copied(),
            Some(icmpv4::ECHO_REQUEST | icmpv4::ECHO_REPLY)
        );
    let [first, ..] = asked.eth_dst.0;
    let is_for_many = first & 1 != 0 || asked.dst.is_multicast() || asked.dst.is_broadcast();
    if is_complaint || is_for_many || asked.layout.later_fragment {
        return None;
    }
    let header_len = ipv4::header_len(*asked.packet.first()?)?;
    let repeated = asked.packet.get(..(header_len + REPEATED).min(asked.packet.len()))?;
    let (kind, code) = complaint.kind_code();
    let message = FrameBuilder::ethernet(asked.eth_src, asked.eth_dst)
        .ipv4(Ipv4::new(from, asked.src))
        .icmpv4(kind, code, 0)
        .payload(repeated);
    Some(message.build())
}

#[cfg(test)]
mod tests {
    use super::{Complaint, complain, echo_reply};
    use openflow::{Field, MacAddr, PortNo};
    use packet::build::{FrameBuilder, Ipv4};
    use packet::{Meta, extract, verify};
    use std::net::Ipv4Addr;

    const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
    const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);

    fn frame() -> FrameBuilder {
        FrameBuilder::ethernet(MacAddr::from_u64(0x0200_0000_0001), MacAddr::from_u64(2))
    }

    #[test]
    fn an_echo_request_is_answered_with_its_own_bytes() {
        let request = frame().ipv4(Ipv4::new(HOST, ROUTER)).echo_request(7, 9);
        let request = request.payload(b"abcdefgh").build();
        let reply = echo_reply(&request).unwrap();
        verify(&reply).unwrap();
        let key = extract(&reply, &Meta::port(PortNo(1)));
        assert_eq!(key.get(Field::Ipv4Src), u128::from(ROUTER.to_bits()));
        assert_eq!(key.get(Field::EthDst), 2);
        assert_eq!((key.get(Field::Icmpv4Type), reply[38..42].to_vec()), (0, vec![0, 7, 0, 9]));
        assert!(reply.ends_with(b"abcdefgh"));
        assert_eq!(echo_reply(&reply), None, "a reply is not answered");
    }

    #[test]
    fn complaint_repeats_the_header_and_is_never_about_another() {
        let lost = frame().ipv4(Ipv4::new(HOST, Ipv4Addr::new(192, 0, 2, 1))).udp(5, 6).build();
        let message = complain(&lost, ROUTER, Complaint::TimeExceeded).unwrap();
        verify(&message).unwrap();
        assert_eq!(message[34..36], [11, 0]);
        assert_eq!(message[42..42 + 28], lost[14..14 + 28]);
        assert_eq!(complain(&message, ROUTER, Complaint::TimeExceeded), None);
        for src in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1)] {
            let odd = frame().ipv4(Ipv4::new(src, HOST)).udp(5, 6).build();
            assert_eq!(complain(&odd, ROUTER, Complaint::NetUnreachable), None);
        }
        let fragment = Ipv4 { fragment: 3, ..Ipv4::new(HOST, HOST) };
        let fragment = frame().ipv4(fragment).payload(&[0; 40]).build();
        assert_eq!(complain(&fragment, ROUTER, Complaint::NetUnreachable), None);
    }

    #[test]
    fn frames_that_are_cut_off_are_not_answered() {
        let request = frame().ipv4(Ipv4::new(HOST, ROUTER)).echo_request(7, 9);
        let request = request.payload(&[1; 20]).build();
        for len in 0..request.len() {
            assert_eq!(echo_reply(&request[..len]), None, "{len}");
            assert_eq!(complain(&request[..len], ROUTER, Complaint::TimeExceeded), None, "{len}");
        }
    }
}
