//! The hosts behind an emulated switch, and the packets that they send.
//!
//! Every host has addresses that no other host of any switch has, and one port for ever, so that a
//! learning switch learns each once and finds it again. A packet carries a marker with a number:
//! a packet that comes back shows which packet-in it answers. Packets are made once and
//! patched, since a controller takes millions a second.

use std::net::Ipv4Addr;

use openflow::{MacAddr, PortNo};
use packet::build::{Arp, FrameBuilder, Ipv4};
use packet::checksum;
use packet::header::{arp, ethernet, ipv4};

/// Offset of the marker in every packet: after the headers of UDP or the packet of ARP.
const MARKER_AT: usize = ethernet::HEADER_LEN + ipv4::HEADER_LEN + 8;

/// Begins the marker.
const MAGIC: [u8; 4] = *b"Weir";

/// Bytes of the shortest packet that has room for a marker.
pub const FRAME_MIN: u16 = ethernet::FRAME_MIN_LEN as u16;

/// Most hosts of a switch, and most switches: a host's address has three bytes for the one and two
/// for the other.
pub const HOSTS_MAX: u32 = 1 << 24;
/// As [`HOSTS_MAX`].
pub const SWITCHES_MAX: u32 = 1 << 16;

/// Bytes of the UDP checksum, which is left out (RFC 768).
const UDP_CHECKSUM: std::ops::Range<usize> =
    ethernet::HEADER_LEN + ipv4::HEADER_LEN + 6..ethernet::HEADER_LEN + ipv4::HEADER_LEN + 8;

/// The hosts behind one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// The switch's number, from 0.
    pub switch: u32,
    /// Their number; even, so that each has a partner.
    pub count: u32,
    /// The switch's ports; even, so that partners are behind different ones.
    pub ports: u32,
}

impl Hosts {
    /// A host's Ethernet address, administered locally.
    pub fn mac(&self, host: u32) -> MacAddr {
        let [_, _, s0, s1] = self.switch.to_be_bytes();
        let [_, h0, h1, h2] = host.to_be_bytes();
        MacAddr([2, s0, s1, h0, h1, h2])
    }

    /// A host's IPv4 address in 10.0.0.0/8, which more than 16 million hosts share.
    fn ip(&self, host: u32) -> Ipv4Addr {
        let number = self.switch.wrapping_mul(self.count).wrapping_add(host);
        Ipv4Addr::from_bits(0x0a00_0000 | (number & 0x00ff_ffff))
    }

    /// The port that a host is behind.
    pub fn port(&self, host: u32) -> PortNo {
        PortNo(1 + host % self.ports)
    }

    /// The host that a host talks to.
    pub fn partner(host: u32) -> u32 {
        host ^ 1
    }
}

/// The packets that hosts send, without addresses and numbers.
#[derive(Clone, Debug)]
pub(crate) struct Packets {
    /// A reply of ARP to everyone, which tells where a host is.
    pub announcement: Vec<u8>,
    /// A datagram of UDP from a host to its partner.
    pub datagram: Vec<u8>,
    /// The checksum of the datagram's header while both addresses are 0.0.0.0.
    checksum: u16,
}

impl Packets {
    /// Packets of that many bytes, without FCS; announcements have the least number.
    pub(crate) fn new(frame_bytes: u16) -> Self {
        let (nobody, nowhere) = (MacAddr([0; 6]), Ipv4Addr::UNSPECIFIED);
        let reply = Arp { op: 2, sha: nobody, spa: nowhere, tha: nobody, tpa: nowhere };
        let everyone = MacAddr([0xff; 6]);
        let announcement = FrameBuilder::ethernet(everyone, nobody)
            .arp(reply)
            .fill_to(usize::from(FRAME_MIN))
            .build();
        let mut datagram = FrameBuilder::ethernet(nobody, nobody)
            .ipv4(Ipv4::new(nowhere, nowhere))
            .udp(4_096, 4_096)
            .fill_to(usize::from(frame_bytes.max(FRAME_MIN)))
            .build();
        datagram[UDP_CHECKSUM].fill(0);
        let header = &datagram[ethernet::HEADER_LEN..];
        let checksum =
            u16::from_be_bytes([header[ipv4::CHECKSUM.start], header[ipv4::CHECKSUM.start + 1]]);
        Self { announcement, datagram, checksum }
    }

    /// Makes `frame`, a copy of the announcement, that of `host` with this number.
    pub(crate) fn announce(frame: &mut [u8], hosts: &Hosts, host: u32, number: u32) {
        let (mac, ip) = (hosts.mac(host).0, hosts.ip(host).octets());
        frame[ethernet::SRC].copy_from_slice(&mac);
        let body = &mut frame[ethernet::HEADER_LEN..];
        body[arp::SHA].copy_from_slice(&mac);
        body[arp::SPA].copy_from_slice(&ip);
        body[arp::THA].copy_from_slice(&mac);
        body[arp::TPA].copy_from_slice(&ip);
        mark(frame, number);
    }

    /// Makes `frame`, a copy of the datagram, one from `host` to its partner with this number.
    pub(crate) fn address(&self, frame: &mut [u8], hosts: &Hosts, host: u32, number: u32) {
        let partner = Hosts::partner(host);
        frame[ethernet::DST].copy_from_slice(&hosts.mac(partner).0);
        frame[ethernet::SRC].copy_from_slice(&hosts.mac(host).0);
        let mut addresses = [0; 8];
        addresses[..4].copy_from_slice(&hosts.ip(host).octets());
        addresses[4..].copy_from_slice(&hosts.ip(partner).octets());
        let checksum = checksum::update(self.checksum, &[0; 8], &addresses);
        let header = &mut frame[ethernet::HEADER_LEN..];
        header[ipv4::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
        header[ipv4::SRC.start..ipv4::DST.end].copy_from_slice(&addresses);
        mark(frame, number);
    }
}

fn mark(frame: &mut [u8], number: u32) {
    frame[MARKER_AT..MARKER_AT + 4].copy_from_slice(&MAGIC);
    frame[MARKER_AT + 4..MARKER_AT + 8].copy_from_slice(&number.to_be_bytes());
}

/// The number in the marker of a packet of ours.
pub(crate) fn marked(frame: &[u8]) -> Option<u32> {
    let (magic, rest) = frame.get(MARKER_AT..)?.split_first_chunk::<4>()?;
    (*magic == MAGIC).then(|| rest.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)))?
}

/// Whether a packet is LLDP, which a controller sends of its own accord.
pub fn is_lldp(frame: &[u8]) -> bool {
    const LLDP: [u8; 2] = [0x88, 0xcc];
    frame.get(ethernet::ETHER_TYPE..ethernet::HEADER_LEN) == Some(&LLDP)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{FRAME_MIN, Hosts, Packets, is_lldp, marked};

    const HOSTS: Hosts = Hosts { switch: 300, count: 10, ports: 4 };

    #[test]
    fn hosts_have_own_addresses_and_a_partner_at_another_port() {
        let macs: BTreeSet<_> = [HOSTS, Hosts { switch: 44, ..HOSTS }]
            .iter()
            .flat_map(|hosts| (0..hosts.count).map(|host| hosts.mac(host)))
            .collect();
        assert_eq!(macs.len(), 20);
        for host in 0..HOSTS.count {
            let partner = Hosts::partner(host);
            assert_eq!(Hosts::partner(partner), host);
            assert!(partner < HOSTS.count);
            assert_ne!(HOSTS.port(partner), HOSTS.port(host));
            assert_eq!(HOSTS.mac(host).0[0] & 3, 2, "a single station's, administered locally");
        }
    }

    #[test]
    fn packets_are_whole_and_say_their_number() {
        for bytes in [0, 60, 300] {
            let packets = Packets::new(bytes);
            let mut frame = packets.datagram.clone();
            assert_eq!(frame.len(), usize::from(bytes.max(FRAME_MIN)));
            assert_eq!(marked(&frame), None);
            packets.address(&mut frame, &HOSTS, 3, 0xfeed_f00d);
            packet::verify(&frame).unwrap();
            assert_eq!(marked(&frame), Some(0xfeed_f00d));
            assert_eq!(frame[..6], HOSTS.mac(2).0);
            let mut frame = packets.announcement.clone();
            Packets::announce(&mut frame, &HOSTS, 3, 9);
            packet::verify(&frame).unwrap();
            assert_eq!((marked(&frame), is_lldp(&frame)), (Some(9), false));
            assert_eq!(marked(&frame[..40]), None);
        }
    }
}
