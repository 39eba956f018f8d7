//! Words about sequence mode: up to 16 packets that are sent in turn.

use std::net::IpAddr;

use super::packet::protocol;
use super::row::{WordRow, row};
use crate::effect::{Effect, Values};
use crate::state::{ConsoleState, EtherKind};

pub(super) const ROWS: &[WordRow] = &[
    row(
        "seq SLOT PORTS MAC MAC IP IP L4PORT L4PORT ipv4|ipv6 udp|tcp|icmp VID SIZE",
        "a packet of the sequence: destination and source MAC and IP, source and destination port",
        |state, v| set(state, &v, None),
    ),
    row(
        "seq SLOT PORTS MAC MAC IP IP L4PORT L4PORT ipv4|ipv6 udp|tcp|icmp VID SIZE WORD32",
        "the same with a tunnel endpoint of GTP-U",
        |state, v| set(state, &v, Some(v.number(12))),
    ),
    row(
        "set PORTS seqCnt|seq_cnt|seqcnt SLOTS",
        "how many of them are sent (0: off)",
        |state, v| {
            let count = v.number(2) as usize;
            state.each(v.ports(0)).for_each(|port| port.sequence_count = count);
            Ok(Effect::Changed(v.ports(0).to_vec()))
        },
    ),
];

fn set(state: &mut ConsoleState, values: &Values<'_>, teid: Option<u64>) -> Result<Effect, String> {
    let ((dst_ip, _), (src_ip, prefix)) = (values.address(4), values.address(5));
    let kind = if values.word(8) == "ipv6" { EtherKind::Ipv6 } else { EtherKind::Ipv4 };
    for ip in [dst_ip, src_ip] {
        let fits = match ip {
            IpAddr::V4(_) => kind == EtherKind::Ipv4,
            IpAddr::V6(_) => kind == EtherKind::Ipv6,
        };
        if !fits {
            return Err(format!("{ip} is no address of {}", kind.word()));
        }
    }
    let slot = values.number(0) as usize;
    for port in state.each(values.ports(1)) {
        let mut packet = port.single.clone();
        packet.set_kind(kind);
        (packet.dst_mac, packet.src_mac) = (values.mac(2), values.mac(3));
        (packet.dst_ip, packet.src_ip) = (dst_ip, src_ip);
        packet.src_prefix = prefix.unwrap_or(packet.src_prefix);
        // Pktgen's order: source port first.
        (packet.src_port, packet.dst_port) = (values.number(6), values.number(7));
        packet.protocol = protocol(values.word(9));
        packet.vlan_id = values.number(10);
        packet.size = values.number(11);
        packet.teid = teid.unwrap_or(packet.teid);
        if let Some(place) = port.sequence.get_mut(slot) {
            *place = packet;
        }
    }
    Ok(Effect::Changed(values.ports(1).to_vec()))
}
