//! A packet in one line, as `ovs-ofctl monitor` prints it below a packet-in.

use openflow::field::{FIELDS, Header};
use openflow::text::format_match;
use openflow::{Field, Match, PortNo};

use crate::header::{be16, icmpv4, icmpv6, ipv4, ipv6, mpls, number, sctp, tcp, udp, vlan};
use crate::{Layout, Meta, Network, Transport, extract};

/// The flags of TCP by bit, from the lowest.
const TCP_FLAGS: [&str; 9] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns"];

/// The fields of a frame; those that are not match fields too: TTL, fragment, flags, checksum.
#[must_use]
pub fn describe(frame: &[u8]) -> String {
    let Some(layout) = Layout::of(frame) else { return format!("{} bytes", frame.len()) };
    let fields = fields(frame);
    // The protocol's word stands before the tag, everything else behind it.
    let (word, rest) = match fields.split_once(',') {
        Some((word, rest)) if !word.contains('=') => (format!("{word},"), rest.to_owned()),
        Some(_) | None => (String::new(), fields),
    };
    let mut text = word + &tag(frame, &layout) + "," + &rest;
    if let Some(ip) = ip(frame, &layout) {
        text = behind(&text, "nw_ecn=", &ip);
    }
    if let (Network::Mpls, Some(ttl)) = (layout.network, frame.get(layout.l3 + mpls::TTL)) {
        text = behind(&text, "mpls_tc=", &format!(",mpls_ttl={ttl}"));
    }
    text + &transport(frame, &layout)
}

/// The match fields, but for those that no byte shows and the tag.
fn fields(frame: &[u8]) -> String {
    let key = extract(frame, &Meta::port(PortNo(0)));
    let mut matching = Match::default();
    for row in FIELDS {
        let is_left_out = matches!(
            row.field,
            Field::VlanVid
                | Field::VlanPcp
                | Field::Ipv6Exthdr
                | Field::NwTtl
                | Field::IpFrag
                | Field::TcpFlags
        );
        if key.has(row.field) && !row.place.is_beside_packet() && !is_left_out {
            matching.set(row.field, key.get(row.field), row.field.full_mask());
        }
    }
    format_match(&matching)
}

/// Puts `more` behind the value of a key.
fn behind(text: &str, key: &str, more: &str) -> String {
    let Some(at) = text.find(key) else { return text.to_owned() + more };
    let (head, tail) = text.split_at(at);
    let (value, rest) = tail.split_at(tail.find(',').unwrap_or(tail.len()));
    format!("{head}{value}{more}{rest}")
}

fn tag(frame: &[u8], layout: &Layout) -> String {
    match layout.at(Header::Vlan).and_then(|at| be16(frame, at)) {
        Some(tci) => {
            format!("dl_vlan={},dl_vlan_pcp={},vlan_tci1=0x0000", vlan::vid(tci), vlan::pcp(tci))
        }
        None => "vlan_tci=0x0000".to_owned(),
    }
}

fn ip(frame: &[u8], layout: &Layout) -> Option<String> {
    let ttl = match layout.network {
        Network::Ipv4 => frame.get(layout.l3 + ipv4::TTL)?,
        Network::Ipv6 => frame.get(layout.l3 + ipv6::HOP_LIMIT)?,
        Network::Other | Network::Mpls | Network::Pbb | Network::Arp => return None,
    };
    let fragment = match (layout.fragment, layout.later_fragment) {
        (_, true) => "later",
        (true, false) => "first",
        (false, false) => "no",
    };
    Some(format!(",nw_ttl={ttl},nw_frag={fragment}"))
}

fn transport(frame: &[u8], layout: &Layout) -> String {
    let l4 = frame.get(layout.l4..).unwrap_or_default();
    let (word, flags, checksum) = match layout.transport {
        Transport::Tcp => ("tcp", flags(l4), tcp::CHECKSUM),
        Transport::Udp => ("udp", String::new(), udp::CHECKSUM),
        Transport::Icmpv4 => ("icmp", String::new(), icmpv4::CHECKSUM),
        Transport::Icmpv6 => ("icmp6", String::new(), icmpv6::CHECKSUM),
        Transport::Sctp => ("sctp", String::new(), sctp::CHECKSUM),
        Transport::Other => return String::new(),
    };
    let sum = l4.get(checksum).map(|sum| format!(" {word}_csum:{:x}", number(sum)));
    flags + &sum.unwrap_or_default()
}

fn flags(l4: &[u8]) -> String {
    let bits = be16(l4, tcp::DATA_OFFSET).unwrap_or(0);
    let names = TCP_FLAGS.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 != 0);
    let set: Vec<&str> = names.map(|(_, name)| *name).collect();
    if set.is_empty() { ",tcp_flags=0".to_owned() } else { format!(",tcp_flags={}", set.join("|")) }
}

#[cfg(test)]
mod tests {
    use super::describe;
    use testkit::hex;

    /// Each line is what Open vSwitch 3.1's `ovs-ofctl ofp-print` makes of a packet-in with it.
    #[test]
    fn packets_read_as_ovs_ofctl_prints_them() {
        for (frame, expected) in [
            (
                "ffffffffffff 020000000011 88b5 00010203040506",
                "vlan_tci=0x0000,dl_src=02:00:00:00:00:11,dl_dst=ff:ff:ff:ff:ff:ff,dl_type=0x88b5",
            ),
            (
                "ffffffffffff 020000000011 0800 4500 001c 0001 0000 4001 0000 0a000001 0a000002 \
                 0800 1234 0001 0002",
                "icmp,vlan_tci=0x0000,dl_src=02:00:00:00:00:11,dl_dst=ff:ff:ff:ff:ff:ff,\
                 nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,\
                 icmp_type=8,icmp_code=0 icmp_csum:1234",
            ),
            (
                "ffffffffffff 020000000011 0800 4500 0028 0001 0000 4006 0000 0a000001 0a000002 \
                 0400 0050 00000001 00000000 5002 ffff 1234 0000",
                "tcp,vlan_tci=0x0000,dl_src=02:00:00:00:00:11,dl_dst=ff:ff:ff:ff:ff:ff,\
                 nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,\
                 tp_src=1024,tp_dst=80,tcp_flags=syn tcp_csum:1234",
            ),
            (
                "ffffffffffff 020000000011 86dd 60000000 0008 3a 40 \
                 fd000000000000000000000000000001 fd000000000000000000000000000002 \
                 8000abcd 00010002",
                "icmp6,vlan_tci=0x0000,dl_src=02:00:00:00:00:11,dl_dst=ff:ff:ff:ff:ff:ff,\
                 ipv6_src=fd00::1,ipv6_dst=fd00::2,ipv6_label=0x00000,nw_tos=0,nw_ecn=0,\
                 nw_ttl=64,nw_frag=no,icmp_type=128,icmp_code=0 icmp6_csum:abcd",
            ),
            (
                "ffffffffffff 020000000011 8100 6005 0806 0001 0800 0604 0001 020000000011 \
                 0a000001 000000000000 0a000002",
                "arp,dl_vlan=5,dl_vlan_pcp=3,vlan_tci1=0x0000,dl_src=02:00:00:00:00:11,\
                 dl_dst=ff:ff:ff:ff:ff:ff,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_op=1,\
                 arp_sha=02:00:00:00:00:11,arp_tha=00:00:00:00:00:00",
            ),
            (
                "ffffffffffff 020000000011 8847 00010140 45000014",
                "mpls,vlan_tci=0x0000,dl_src=02:00:00:00:00:11,dl_dst=ff:ff:ff:ff:ff:ff,\
                 mpls_label=16,mpls_tc=0,mpls_ttl=64,mpls_bos=1",
            ),
        ] {
            assert_eq!(describe(&hex::parse(frame).unwrap()), expected, "{frame}");
        }
    }

    #[test]
    fn every_prefix_of_a_frame_is_described() {
        let frame = hex::parse(
            "ffffffffffff 020000000011 8100 0005 0800 4500 0028 0001 0000 4006 0000 0a000001 \
             0a000002 0400 0050 00000001 00000000 5002 ffff 1234 0000",
        );
        let frame = frame.unwrap();
        for len in 0..=frame.len() {
            let _ = describe(&frame[..len]);
        }
    }
}
