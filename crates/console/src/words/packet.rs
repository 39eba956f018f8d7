//! Words about the packet of single mode; its tags, type and payload hold in range mode too.

use std::net::IpAddr;

use generator::profile::Payload;

use super::row::{WordRow, row};
use crate::effect::{Effect, Values};
use crate::state::{
    ConsoleState, EtherKind, IpProtocol, PacketSettings, PortSettings, RandomBits, random,
};

pub(super) const ROWS: &[WordRow] = &[
    row("set PORTS size SIZE", "frame size in bytes, FCS included", |state, v| {
        set(state, &v, 0, |packet, v| packet.size = v.number(1))
    }),
    row("set PORTS sport L4PORT", "source port", |state, v| {
        set(state, &v, 0, |packet, v| packet.src_port = v.number(1))
    }),
    row("set PORTS dport L4PORT", "destination port", |state, v| {
        set(state, &v, 0, |packet, v| packet.dst_port = v.number(1))
    }),
    row("set PORTS vlanid|vlan VID", "VLAN ID", |state, v| {
        set(state, &v, 0, |packet, v| packet.vlan_id = v.number(2))
    }),
    row("vlanid PORTS VID", "the same", |state, v| {
        set(state, &v, 0, |packet, v| packet.vlan_id = v.number(1))
    }),
    row("set PORTS cos|prio BITS3", "priority of the VLAN tag", |state, v| {
        set(state, &v, 0, |packet, v| packet.tags.cos = v.number(2))
    }),
    row("set PORTS tos BYTE", "type of service", |state, v| {
        set(state, &v, 0, |packet, v| packet.tos = v.number(1))
    }),
    row("set PORTS ttl BYTE", "time to live", |state, v| {
        set(state, &v, 0, |packet, v| packet.ttl = v.number(1))
    }),
    row("set PORTS tcp seq|ack WORD32", "numbers of the TCP header", |state, v| {
        set(state, &v, 0, |packet, v| match v.word(1) {
            "seq" => packet.tcp.seq = v.number(2),
            _ => packet.tcp.ack = v.number(2),
        })
    }),
    row("set PORTS tcp flags BYTE", "FIN 1, SYN 2, RST 4, PSH 8, ACK 16", |state, v| {
        set(state, &v, 0, |packet, v| packet.tcp.flags = v.number(1))
    }),
    row("set mac PORTS MAC", "destination Ethernet address", |state, v| {
        set(state, &v, 0, |packet, v| packet.dst_mac = v.mac(1))
    }),
    row("set PORTS src|dst mac MAC", "Ethernet address", |state, v| {
        set(state, &v, 0, |packet, v| match v.word(1) {
            "src" => packet.src_mac = v.mac(2),
            _ => packet.dst_mac = v.mac(2),
        })
    }),
    row("set ip src|dst PORTS IP", "IP address", |state, v| set_ip(state, &v, 1, 0)),
    row("set PORTS src|dst ip IP", "IP address", |state, v| set_ip(state, &v, 0, 1)),
    row("type ipv4|ipv6|vlan|arp PORTS", "what follows the Ethernet header", |state, v| {
        set_type(state, v.ports(1), v.word(0))
    }),
    row("set PORTS type ipv4|ipv6|vlan|arp", "the same", |state, v| {
        set_type(state, v.ports(0), v.word(1))
    }),
    row("proto udp|tcp|icmp PORTS", "what follows the IP header", |state, v| {
        set_protocol(state, v.ports(1), v.word(0))
    }),
    row("set PORTS proto udp|tcp|icmp", "the same", |state, v| {
        set_protocol(state, v.ports(0), v.word(1))
    }),
    row("icmp.echo PORTS on|off", "ICMP echo requests, or UDP again", |state, v| {
        set_protocol(state, v.ports(0), if v.is_on(1) { "icmp" } else { "udp" })
    }),
    row("pattern abc|none|zero PORTS", "payload", |state, v| {
        set_pattern(state, v.ports(1), v.word(0))
    }),
    row("set PORTS pattern abc|none|zero", "the same", |state, v| {
        set_pattern(state, v.ports(0), v.word(1))
    }),
    row("user.pattern PORTS TEXT", "payload: this text again and again", |state, v| {
        let text = v.text(1).to_owned();
        change(state, v.ports(0), |port| port.single.payload = Payload::User(text.clone()))
    }),
    row("vlan|mpls|qinq|gre|gre_eth|vxlan PORTS on|off", "tags and tunnels", |state, v| {
        set_tag(state, v.ports(1), v.word(0), v.is_on(2))
    }),
    row("enable|disable PORTS vlan|mpls|qinq|gre|gre_eth|vxlan", "the same", |state, v| {
        set_tag(state, v.ports(1), v.word(2), v.is_on(0))
    }),
    row("mpls_entry PORTS WORD32", "label stack entry, with label, class and TTL", |state, v| {
        set(state, &v, 0, |packet, v| packet.tags.mpls_entry = v.number(1))
    }),
    row("qinqids PORTS VID VID", "VLAN IDs of the outer and the inner tag", |state, v| {
        set(state, &v, 0, |packet, v| packet.tags.qinq_ids = (v.number(1), v.number(2)))
    }),
    row("range PORTS qinq index VID VID", "the same", |state, v| {
        set(state, &v, 0, |packet, v| packet.tags.qinq_ids = (v.number(1), v.number(2)))
    }),
    row(
        "rnd PORTS INDEX OFFSET MASK",
        "bits from a byte on: 0, 1, X random, . as it is",
        |s, v| {
            let (offset, mask) = (v.number(2), random::mask(v.text(3))?);
            set_random(s, &v, Some(RandomBits { offset, mask }))
        },
    ),
    row("rnd PORTS INDEX OFFSET", "this mask is no more", |s, v| set_random(s, &v, None)),
    row("set PORTS random on|off", "the bits of rnd differ, or not", |state, v| {
        switch_random(state, v.ports(0), v.is_on(1))
    }),
    row("enable|disable PORTS random", "the same", |state, v| {
        switch_random(state, v.ports(1), v.is_on(0))
    }),
    row("gre_key PORTS WORD32", "key of the GRE header", |state, v| {
        set(state, &v, 0, |packet, v| packet.tags.gre_key = v.number(1))
    }),
    row("vni PORTS WORD24", "network of the VXLAN header", |state, v| {
        set(state, &v, 0, |packet, v| packet.tags.vni = v.number(1))
    }),
    row("teid PORTS WORD32", "tunnel endpoint of GTP-U, behind UDP port 2152", |state, v| {
        set(state, &v, 0, |packet, v| packet.teid = v.number(1))
    }),
];

/// Changes the settings of some ports.
fn change(
    state: &mut ConsoleState,
    ports: &[usize],
    change: impl Fn(&mut PortSettings),
) -> Result<Effect, String> {
    state.each(ports).for_each(change);
    Ok(Effect::Changed(ports.to_vec()))
}

/// Changes the single packet of the ports that stand at place `at` of the values.
fn set(
    state: &mut ConsoleState,
    values: &Values<'_>,
    at: usize,
    set: fn(&mut PacketSettings, &Values<'_>),
) -> Result<Effect, String> {
    change(state, values.ports(at), |port| set(&mut port.single, values))
}

/// Sets the mask of the number after the ports, or takes it away.
fn set_random(
    state: &mut ConsoleState,
    values: &Values<'_>,
    bits: Option<RandomBits>,
) -> Result<Effect, String> {
    let number = values.number(1);
    change(state, values.ports(0), |port| {
        match &bits {
            Some(bits) => port.random.insert(number, bits.clone()),
            None => port.random.remove(&number),
        };
    })
}

fn switch_random(state: &mut ConsoleState, ports: &[usize], is_on: bool) -> Result<Effect, String> {
    change(state, ports, |port| port.is_random_on = is_on)
}

fn set_ip(
    state: &mut ConsoleState,
    values: &Values<'_>,
    ports_at: usize,
    word_at: usize,
) -> Result<Effect, String> {
    let (address, prefix) = values.address(2);
    let is_source = values.word(word_at) == "src";
    change(state, values.ports(ports_at), |port| {
        let packet = &mut port.single;
        // A packet has addresses of one version.
        match (address, packet.kind) {
            (IpAddr::V6(_), EtherKind::Ipv4 | EtherKind::Arp) => packet.set_kind(EtherKind::Ipv6),
            (IpAddr::V4(_), EtherKind::Ipv6) => packet.set_kind(EtherKind::Ipv4),
            (IpAddr::V6(_), EtherKind::Ipv6) | (IpAddr::V4(_), _) => {}
        }
        match is_source {
            true => {
                packet.src_ip = address;
                packet.src_prefix = prefix.unwrap_or(packet.src_prefix);
            }
            false => packet.dst_ip = address,
        }
    })
}

fn set_type(state: &mut ConsoleState, ports: &[usize], word: &str) -> Result<Effect, String> {
    let kind = EtherKind::of_word(word);
    change(state, ports, |port| match kind {
        Some(kind) => port.single.set_kind(kind),
        None => port.single.tags.has_vlan = true,
    })
}

/// The protocol of a word of the forms.
pub(super) fn protocol(word: &str) -> IpProtocol {
    IpProtocol::of_word(word).unwrap_or(IpProtocol::Tcp)
}

fn set_protocol(state: &mut ConsoleState, ports: &[usize], word: &str) -> Result<Effect, String> {
    let protocol = protocol(word);
    change(state, ports, |port| {
        port.single.protocol = protocol;
        // Pktgen has one protocol for single and range mode until ip.proto changes the latter.
        port.range.protocol = protocol;
    })
}

fn set_pattern(state: &mut ConsoleState, ports: &[usize], word: &str) -> Result<Effect, String> {
    let payload = if word == "abc" { Payload::Abc } else { Payload::Zero };
    change(state, ports, |port| port.single.payload = payload.clone())
}

fn set_tag(
    state: &mut ConsoleState,
    ports: &[usize],
    word: &str,
    is_on: bool,
) -> Result<Effect, String> {
    change(state, ports, |port| {
        let tags = &mut port.single.tags;
        match word {
            "vlan" => tags.has_vlan = is_on,
            "mpls" => tags.has_mpls = is_on,
            "qinq" => tags.has_qinq = is_on,
            "gre" => tags.has_gre = is_on,
            "gre_eth" => tags.has_gre_eth = is_on,
            _ => tags.has_vxlan = is_on,
        }
        // A packet has one tunnel.
        if is_on && ["gre", "gre_eth"].contains(&word) {
            tags.has_vxlan = false;
        }
        if is_on && word == "vxlan" {
            (tags.has_gre, tags.has_gre_eth) = (false, false);
        }
    })
}
