//! Answers for the addresses that a generator claims, so that it can sit on a real network: ARP
//! (RFC 826), neighbour discovery (RFC 4861) and ICMP echo (RFC 792, RFC 4443).
//!
//! A function from a frame to its answer: no state, no input or output, any bytes are safe. It
//! never answers a frame whose checksum is wrong, a fragment, or a question that was not asked of
//! one station, since an answer to a broadcast echo multiplies traffic (RFC 1122, 3.2.2.6).
//!
//! ```
//! use std::net::Ipv4Addr;
//! use generator::responder::Responder;
//! use openflow::MacAddr;
//! use packet::build::{FrameBuilder, Ipv4};
//!
//! let (here, there) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
//! let (our_mac, their_mac) = (MacAddr::from_u64(0x0200_0000_0001), MacAddr::from_u64(2));
//! let responder = Responder::new(our_mac, vec![here.into()]);
//! let echo = FrameBuilder::ethernet(our_mac, their_mac)
//!     .ipv4(Ipv4::new(there, here))
//!     .echo_request(7, 1)
//!     .fill_to(60)
//!     .build();
//! let reply = responder.reply(&echo).unwrap();
//! assert_eq!(reply[..6], their_mac.0);
//! packet::verify(&reply).unwrap();
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use openflow::MacAddr;
use packet::build::{Arp, FrameBuilder, Ipv6};
use packet::header::{arp, be16, chunk, ethernet, icmpv4, icmpv6, ipv4, ipv6, vlan};
use packet::{Layout, Network, Transport};

/// Operation of an ARP request (RFC 826).
const ARP_REQUEST: u16 = 1;
/// Operation of an ARP reply.
const ARP_REPLY: u16 = 2;

/// TTL and hop limit of answers to echo requests.
const ECHO_TTL: u8 = 64;

/// Hop limit that every message of neighbour discovery has; another one came through a router
/// (RFC 4861, 7.1.1).
const NEIGHBOUR_HOP_LIMIT: u8 = 255;

/// All nodes on the link, which are answered when the asker has no address yet (RFC 4861, 7.2.4).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Flags of a neighbour advertisement: solicited.
const SOLICITED: u8 = 0x40;
/// Flags of a neighbour advertisement: override.
const OVERRIDE: u8 = 0x20;

/// The addresses that a port claims, and the answers to questions about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Responder {
    mac: MacAddr,
    addresses: Vec<IpAddr>,
}

impl Responder {
    /// Answers for `addresses` with the Ethernet address `mac`.
    #[must_use]
    pub fn new(mac: MacAddr, addresses: Vec<IpAddr>) -> Self {
        Self { mac, addresses }
    }

    /// The addresses that are claimed.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// The answer to `frame`, without FCS and with the tags of the question; none where nothing is
    /// to be answered.
    #[must_use]
    pub fn reply(&self, frame: &[u8]) -> Option<Vec<u8>> {
        if self.addresses.is_empty() || !self.is_for_us(frame) {
            return None;
        }
        let layout = Layout::of(frame)?;
        match (layout.network, layout.transport) {
            (Network::Arp, _) => self.arp(frame, &layout),
            (Network::Ipv4, Transport::Icmpv4) => self.echo_v4(frame, &layout),
            (Network::Ipv6, Transport::Icmpv6) => match *frame.get(layout.l4 + icmpv6::TYPE)? {
                icmpv6::ECHO_REQUEST => self.echo_v6(frame, &layout),
                icmpv6::NEIGHBOUR_SOLICIT => self.advertise(frame, &layout),
                _ => None,
            },
            (Network::Other | Network::Mpls | Network::Pbb | Network::Ipv4 | Network::Ipv6, _) => {
                None
            }
        }
    }

    /// Whether the frame is to this station or to a group, and from one station that is not us.
    fn is_for_us(&self, frame: &[u8]) -> bool {
        let (Some(dst), Some(src)) = (mac(frame, 0), mac(frame, ethernet::SRC.start)) else {
            return false;
        };
        (dst == self.mac || is_group(dst)) && !is_group(src) && src != self.mac
    }

    fn claims(&self, address: impl Into<IpAddr>) -> bool {
        self.addresses.contains(&address.into())
    }

    fn arp(&self, frame: &[u8], layout: &Layout) -> Option<Vec<u8>> {
        let packet: &[u8; arp::PACKET_LEN] = chunk(frame, layout.l3)?;
        let target = ipv4_address(packet, arp::TPA.start)?;
        if be16(packet, arp::OP.start)? != ARP_REQUEST || !self.claims(target) {
            return None;
        }
        let asker = ipv4_address(packet, arp::SPA.start)?;
        let asker_mac = mac(packet, arp::SHA.start)?;
        let reply = Arp { op: ARP_REPLY, sha: self.mac, spa: target, tha: asker_mac, tpa: asker };
        let builder = self.answer_to(frame, layout, mac(frame, ethernet::SRC.start)?);
        Some(builder.arp(reply).fill_to(ethernet::FRAME_MIN_LEN).build())
    }

    fn echo_v4(&self, frame: &[u8], layout: &Layout) -> Option<Vec<u8>> {
        let target = ipv4_address(frame, layout.l3 + ipv4::DST.start)?;
        let asker = ipv4_address(frame, layout.l3 + ipv4::SRC.start)?;
        let kind = frame.get(layout.l4 + icmpv4::TYPE)?;
        let is_one = mac(frame, 0)? == self.mac && !asker.is_multicast() && !asker.is_broadcast();
        let answered = *kind == icmpv4::ECHO_REQUEST && self.claims(target) && is_one;
        if !answered || layout.fragment || packet::verify(frame).is_err() {
            return None;
        }
        let mut reply = self.turned_around(frame);
        put(&mut reply, layout.l3 + ipv4::SRC.start, &target.octets())?;
        put(&mut reply, layout.l3 + ipv4::DST.start, &asker.octets())?;
        put(&mut reply, layout.l3 + ipv4::TTL, &[ECHO_TTL])?;
        put(&mut reply, layout.l4 + icmpv4::TYPE, &[icmpv4::ECHO_REPLY])?;
        packet::fill_checksums(&mut reply);
        Some(reply)
    }

    fn echo_v6(&self, frame: &[u8], layout: &Layout) -> Option<Vec<u8>> {
        let target = ipv6_address(frame, layout.l3 + ipv6::DST.start)?;
        let asker = ipv6_address(frame, layout.l3 + ipv6::SRC.start)?;
        let is_one = !asker.is_multicast() && !asker.is_unspecified();
        // Behind a routing header the destination is not the one that was asked.
        let answered = self.claims(target) && is_one && layout.routing_at.is_none();
        if !answered || layout.fragment || packet::verify(frame).is_err() {
            return None;
        }
        let mut reply = self.turned_around(frame);
        put(&mut reply, layout.l3 + ipv6::SRC.start, &target.octets())?;
        put(&mut reply, layout.l3 + ipv6::DST.start, &asker.octets())?;
        put(&mut reply, layout.l3 + ipv6::HOP_LIMIT, &[ECHO_TTL])?;
        put(&mut reply, layout.l4 + icmpv6::TYPE, &[icmpv6::ECHO_REPLY])?;
        packet::fill_checksums(&mut reply);
        Some(reply)
    }

    /// A neighbour advertisement (RFC 4861, 7.2.4).
    fn advertise(&self, frame: &[u8], layout: &Layout) -> Option<Vec<u8>> {
        let target = ipv6_address(frame, layout.nd_target_at(frame)?)?;
        let asker = ipv6_address(frame, layout.l3 + ipv6::SRC.start)?;
        let whole = *frame.get(layout.l3 + ipv6::HOP_LIMIT)? == NEIGHBOUR_HOP_LIMIT
            && *frame.get(layout.l4 + icmpv6::CODE)? == 0;
        let answered = whole && self.claims(target) && !asker.is_multicast();
        if !answered || layout.fragment || packet::verify(frame).is_err() {
            return None;
        }
        let (to, to_mac, flags) = if asker.is_unspecified() {
            (ALL_NODES, MacAddr([0x33, 0x33, 0, 0, 0, 1]), OVERRIDE)
        } else {
            (asker, mac(frame, ethernet::SRC.start)?, SOLICITED | OVERRIDE)
        };
        let mut body = vec![flags, 0, 0, 0];
        body.extend(target.octets());
        body.extend([icmpv6::OPTION_TLL, 1]);
        body.extend(self.mac.0);
        let header = Ipv6 { hop_limit: NEIGHBOUR_HOP_LIMIT, ..Ipv6::new(target, to) };
        let builder = self.answer_to(frame, layout, to_mac).ipv6(header);
        Some(builder.icmpv6(icmpv6::NEIGHBOUR_ADVERT, 0, &body).build())
    }

    /// A frame to `to` with the tags of the question.
    fn answer_to(&self, frame: &[u8], layout: &Layout, to: MacAddr) -> FrameBuilder {
        (0..layout.tags).fold(FrameBuilder::ethernet(to, self.mac), |builder, tag| {
            let at = ethernet::ETHER_TYPE + tag * vlan::TAG_LEN;
            let ether_type = be16(frame, at).unwrap_or(ethernet::VLAN);
            let tci = be16(frame, at + 2).unwrap_or_default();
            builder.tag(ether_type, vlan::pcp(tci), vlan::vid(tci))
        })
    }

    /// The frame with its Ethernet addresses exchanged.
    fn turned_around(&self, frame: &[u8]) -> Vec<u8> {
        let mut reply = frame.to_vec();
        reply.copy_within(ethernet::SRC, ethernet::DST.start);
        reply[ethernet::SRC].copy_from_slice(&self.mac.0);
        reply
    }
}

fn mac(bytes: &[u8], at: usize) -> Option<MacAddr> {
    chunk(bytes, at).map(|mac| MacAddr(*mac))
}

fn is_group(mac: MacAddr) -> bool {
    mac.0[0] & 1 == 1
}

fn ipv4_address(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    chunk::<4>(bytes, at).map(|octets| Ipv4Addr::from(*octets))
}

fn ipv6_address(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    chunk::<16>(bytes, at).map(|octets| Ipv6Addr::from(*octets))
}

fn put(frame: &mut [u8], at: usize, new: &[u8]) -> Option<()> {
    frame.get_mut(at..at + new.len())?.copy_from_slice(new);
    Some(())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use openflow::text::parse_match;
    use openflow::{MacAddr, PortNo};
    use packet::build::{Arp, FrameBuilder, Ipv4, Ipv6};
    use packet::{Meta, extract, verify};
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    use super::Responder;

    const OURS: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const THEIRS: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
    const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const HERE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    const THERE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

    fn responder() -> Responder {
        Responder::new(OURS, vec![HERE.into(), HERE_V6.into()])
    }

    fn arp_request(target: Ipv4Addr) -> FrameBuilder {
        let zero = MacAddr([0; 6]);
        FrameBuilder::ethernet(BROADCAST, THEIRS).vlan(3, 7).arp(Arp {
            op: 1,
            sha: THEIRS,
            spa: THERE,
            tha: zero,
            tpa: target,
        })
    }

    fn echo_v4(to: MacAddr, target: Ipv4Addr) -> FrameBuilder {
        FrameBuilder::ethernet(to, THEIRS)
            .ipv4(Ipv4::new(THERE, target))
            .echo_request(7, 9)
            .fill_to(98)
    }

    fn solicit(from: Ipv6Addr, target: Ipv6Addr, hop_limit: u8) -> Vec<u8> {
        let group = MacAddr([0x33, 0x33, 0xff, 0, 0, 1]);
        let header = Ipv6 { hop_limit, ..Ipv6::new(from, target) };
        FrameBuilder::ethernet(group, THEIRS)
            .ipv6(header)
            .neighbour_solicit(target, Some(THEIRS))
            .build()
    }

    fn is(frame: &[u8], words: &str) -> bool {
        let key = extract(frame, &Meta::port(PortNo(1)));
        key.matches(&parse_match(words).unwrap())
    }

    #[test]
    fn a_claimed_address_is_answered_by_arp_with_the_same_tags() {
        let reply = responder().reply(&arp_request(HERE).build()).unwrap();
        let words = "arp,dl_vlan=7,dl_vlan_pcp=3,arp_op=2,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,\
                     arp_sha=02:00:00:00:00:01,arp_tha=02:00:00:00:00:02,\
                     dl_dst=02:00:00:00:00:02,dl_src=02:00:00:00:00:01";
        assert!(is(&reply, words), "{reply:02x?}");
        assert_eq!(responder().reply(&arp_request(THERE).build()), None);
        assert_eq!(responder().reply(&reply), None);
    }

    #[test]
    fn an_echo_request_comes_back_whole() {
        let frame = echo_v4(OURS, HERE).build();
        let reply = responder().reply(&frame).unwrap();
        let words = "icmp,icmp_type=0,icmp_code=0,nw_src=10.0.0.1,nw_dst=10.0.0.2";
        assert!(is(&reply, words), "{reply:02x?}");
        assert_eq!(verify(&reply), Ok(()));
        // Identifier, sequence number and data are those of the request (RFC 792).
        assert_eq!((reply.len(), &reply[38..]), (frame.len(), &frame[38..]));
        let frame = FrameBuilder::ethernet(OURS, THEIRS)
            .ipv6(Ipv6::new(THERE_V6, HERE_V6))
            .echo_request(7, 9)
            .fill_to(90)
            .build();
        let reply = responder().reply(&frame).unwrap();
        assert!(is(&reply, "icmp6,icmp_type=129,ipv6_src=fd00::1,ipv6_dst=fd00::2"));
        assert_eq!(verify(&reply), Ok(()));
        assert_eq!(&reply[58..], &frame[58..]);
    }

    #[test]
    fn an_asker_without_an_address_is_answered_at_all_nodes() {
        let reply = responder().reply(&solicit(THERE_V6, HERE_V6, 255)).unwrap();
        let words = "icmp6,icmp_type=136,ipv6_dst=fd00::2,nd_target=fd00::1,\
                     nd_tll=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02";
        assert!(is(&reply, words), "{reply:02x?}");
        assert_eq!((reply[58], reply[21]), (0x60, 255));
        assert_eq!(verify(&reply), Ok(()));
        let reply = responder().reply(&solicit(Ipv6Addr::UNSPECIFIED, HERE_V6, 255)).unwrap();
        assert!(is(&reply, "icmp6,ipv6_dst=ff02::1,dl_dst=33:33:00:00:00:01"));
        assert_eq!(reply[58], 0x20);
        // Through a router, or of another's address.
        assert_eq!(responder().reply(&solicit(THERE_V6, HERE_V6, 64)), None);
        assert_eq!(responder().reply(&solicit(THERE_V6, THERE_V6, 255)), None);
    }

    #[test]
    fn what_is_not_asked_of_one_station_is_not_answered() {
        assert_eq!(responder().reply(&echo_v4(BROADCAST, HERE).build()), None);
        assert_eq!(responder().reply(&echo_v4(THEIRS, HERE).build()), None);
        assert_eq!(responder().reply(&echo_v4(OURS, THERE).build()), None);
        let mut damaged = echo_v4(OURS, HERE).build();
        damaged[60] ^= 1;
        assert_eq!(responder().reply(&damaged), None);
        let nobody = Responder::new(OURS, Vec::new());
        assert_eq!(nobody.reply(&echo_v4(OURS, HERE).build()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_safe_and_an_answer_is_a_right_frame(
            which in 0_usize..5,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            len in 0_usize..140,
        ) {
            let frames = [
                arp_request(HERE).build(),
                echo_v4(OURS, HERE).build(),
                solicit(THERE_V6, HERE_V6, 255),
                FrameBuilder::ethernet(OURS, THEIRS).ipv6(Ipv6::new(THERE_V6, HERE_V6))
                    .echo_request(1, 2).build(),
                Vec::new(),
            ];
            let mut frame = frames[which].clone();
            frame.resize(len.max(frame.len() / 2), 0xa5);
            for (at, byte) in changes {
                if !frame.is_empty() {
                    let at = at.index(frame.len());
                    frame[at] = byte;
                }
            }
            if let Some(reply) = responder().reply(&frame) {
                prop_assert_eq!(&reply[6..12], &OURS.0);
                prop_assert_eq!(verify(&reply), Ok(()));
                prop_assert_eq!(responder().reply(&reply), None);
            }
        }
    }
}
