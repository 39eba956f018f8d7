//! Words of range mode, in the grammar of Pktgen 3.1.2 (`pkt.size start all 128`) and in today's
//! (`range all size start 128`).

use std::net::IpAddr;

use super::packet::protocol;
use super::row::{WordRow, row};
use crate::effect::{Effect, Values};
use crate::form::FormValue;
use crate::state::{Bound, ConsoleState, RangeField, RangeKind, RangeSpan};

pub(super) const ROWS: &[WordRow] = &[
    row("range PORTS on|off", "range mode", |state, v| switch(state, v.ports(0), v.is_on(1))),
    row("enable|disable PORTS range", "the same", |state, v| switch(state, v.ports(1), v.is_on(0))),
    row("dst.ip|src.ip start|min|max|inc PORTS IP", "IP addresses", |state, v| {
        let field = if v.word(0) == "dst.ip" { RangeField::DstIp } else { RangeField::SrcIp };
        set(state, field, v.ports(2), v.word(1), &v, 3)
    }),
    row("dst.mac|src.mac start|min|max|inc PORTS MAC", "Ethernet addresses", |state, v| {
        let field = if v.word(0) == "dst.mac" { RangeField::DstMac } else { RangeField::SrcMac };
        set(state, field, v.ports(2), v.word(1), &v, 3)
    }),
    row("dst.port|src.port start|min|max|inc PORTS L4PORT", "TCP or UDP ports", |state, v| {
        let is_dst = v.word(0) == "dst.port";
        let field = if is_dst { RangeField::DstPort } else { RangeField::SrcPort };
        set(state, field, v.ports(2), v.word(1), &v, 3)
    }),
    row("vlan.id start|min|max|inc PORTS VID", "VLAN IDs", |state, v| {
        set(state, RangeField::VlanId, v.ports(1), v.word(0), &v, 2)
    }),
    row("pkt.size start|min|max PORTS SIZE", "frame sizes, FCS included", |state, v| {
        set(state, RangeField::PktSize, v.ports(1), v.word(0), &v, 2)
    }),
    row("pkt.size inc PORTS STEP", "step of the size", |state, v| {
        set(state, RangeField::PktSize, v.ports(0), "inc", &v, 1)
    }),
    row("gtpu.teid start|min|max|inc PORTS WORD32", "tunnel endpoints", |state, v| {
        set(state, RangeField::Teid, v.ports(1), v.word(0), &v, 2)
    }),
    row("ip.proto udp|tcp|icmp PORTS", "protocol of range mode", |state, v| {
        set_protocol(state, v.ports(1), v.word(0))
    }),
    row("ip.proto PORTS udp|tcp|icmp", "the same", |state, v| {
        set_protocol(state, v.ports(0), v.word(1))
    }),
    row("range PORTS proto udp|tcp|icmp", "the same", |state, v| {
        set_protocol(state, v.ports(0), v.word(1))
    }),
    row("range PORTS src|dst ip start|min|max|inc IP", "IP addresses", |state, v| {
        set(state, end(&v, RangeKind::Ip), v.ports(0), v.word(2), &v, 3)
    }),
    row("range PORTS src|dst ip IP IP IP IP", "start, min, max, inc", |state, v| {
        set_all(state, end(&v, RangeKind::Ip), &v, 2)
    }),
    row("range PORTS src|dst mac start|min|max|inc MAC", "Ethernet addresses", |state, v| {
        set(state, end(&v, RangeKind::Mac), v.ports(0), v.word(2), &v, 3)
    }),
    row("range PORTS src|dst mac MAC MAC MAC MAC", "start, min, max, inc", |state, v| {
        set_all(state, end(&v, RangeKind::Mac), &v, 2)
    }),
    row("range PORTS src|dst port start|min|max|inc L4PORT", "TCP or UDP ports", |state, v| {
        set(state, end(&v, RangeKind::Number), v.ports(0), v.word(2), &v, 3)
    }),
    row("range PORTS src|dst port L4PORT L4PORT L4PORT L4PORT", "start, min, max, inc", |s, v| {
        set_all(s, end(&v, RangeKind::Number), &v, 2)
    }),
    row("range PORTS vlan start|min|max|inc VID", "VLAN IDs", |state, v| {
        set(state, RangeField::VlanId, v.ports(0), v.word(1), &v, 2)
    }),
    row("range PORTS vlan VID VID VID VID", "start, min, max, inc", |state, v| {
        set_all(state, RangeField::VlanId, &v, 1)
    }),
    row("range PORTS size start|min|max SIZE", "frame sizes, FCS included", |state, v| {
        set(state, RangeField::PktSize, v.ports(0), v.word(1), &v, 2)
    }),
    row("range PORTS size inc STEP", "step of the size", |state, v| {
        set(state, RangeField::PktSize, v.ports(0), "inc", &v, 1)
    }),
    row("range PORTS size SIZE SIZE SIZE STEP", "start, min, max, inc", |state, v| {
        set_all(state, RangeField::PktSize, &v, 1)
    }),
    row(
        "range PORTS cos|prio start|min|max|inc BITS3",
        "priorities of the VLAN tag",
        |state, v| set(state, RangeField::Cos, v.ports(0), v.word(2), &v, 3),
    ),
    row("range PORTS tos|traffic_class start|min|max|inc BYTE", "types of service", |state, v| {
        set(state, RangeField::Tos, v.ports(0), v.word(2), &v, 3)
    }),
    row("range PORTS ttl|hop_limits start|min|max|inc BYTE", "times to live", |state, v| {
        set(state, RangeField::Ttl, v.ports(0), v.word(2), &v, 3)
    }),
    row("range PORTS teid start|min|max|inc WORD32", "tunnel endpoints", |state, v| {
        set(state, RangeField::Teid, v.ports(0), v.word(1), &v, 2)
    }),
    row("range PORTS teid WORD32 WORD32 WORD32 WORD32", "start, min, max, inc", |state, v| {
        set_all(state, RangeField::Teid, &v, 1)
    }),
    row(
        "range PORTS tcp seq|ack start|min|max|inc WORD32",
        "numbers of the TCP header",
        |state, v| {
            let field = if v.word(1) == "seq" { RangeField::TcpSeq } else { RangeField::TcpAck };
            set(state, field, v.ports(0), v.word(2), &v, 3)
        },
    ),
    row("range PORTS tcp flags start|min|max|inc BYTE", "flags of the TCP header", |state, v| {
        set(state, RangeField::TcpFlags, v.ports(0), v.word(1), &v, 2)
    }),
    row(
        "range PORTS mpls entry start|min|max|inc WORD32",
        "label stack entries; only the label runs",
        |state, v| set(state, RangeField::MplsEntry, v.ports(0), v.word(1), &v, 2),
    ),
    row(
        "range PORTS qinq outer|inner start|min|max|inc VID",
        "VLAN IDs of both tags",
        |state, v| {
            let is_outer = v.word(1) == "outer";
            let field = if is_outer { RangeField::QinqOuter } else { RangeField::QinqInner };
            set(state, field, v.ports(0), v.word(2), &v, 3)
        },
    ),
    row("range PORTS gre key start|min|max|inc WORD32", "keys of the GRE header", |state, v| {
        set(state, RangeField::GreKey, v.ports(0), v.word(1), &v, 2)
    }),
    row("range PORTS vxlan vni start|min|max|inc WORD24", "VXLAN networks", |state, v| {
        set(state, RangeField::Vni, v.ports(0), v.word(1), &v, 2)
    }),
];

/// The field of today's grammar: `src` or `dst` follows the ports.
fn end(values: &Values<'_>, kind: RangeKind) -> RangeField {
    match (values.word(1) == "src", kind) {
        (true, RangeKind::Ip) => RangeField::SrcIp,
        (false, RangeKind::Ip) => RangeField::DstIp,
        (true, RangeKind::Mac) => RangeField::SrcMac,
        (false, RangeKind::Mac) => RangeField::DstMac,
        (true, RangeKind::Number) => RangeField::SrcPort,
        (false, RangeKind::Number) => RangeField::DstPort,
    }
}

fn switch(state: &mut ConsoleState, ports: &[usize], is_on: bool) -> Result<Effect, String> {
    state.each(ports).for_each(|port| port.is_range_on = is_on);
    Ok(Effect::Changed(ports.to_vec()))
}

fn set_protocol(state: &mut ConsoleState, ports: &[usize], word: &str) -> Result<Effect, String> {
    state.each(ports).for_each(|port| port.range.protocol = protocol(word));
    Ok(Effect::Changed(ports.to_vec()))
}

/// The value at `at` as a number.
fn value(values: &Values<'_>, at: usize) -> (u128, Option<IpAddr>) {
    match &values.0[at] {
        FormValue::Number(number) => ((*number).into(), None),
        FormValue::Mac(mac) => ((*mac).into(), None),
        FormValue::Address(address, _) => match address {
            IpAddr::V4(bits) => (bits.to_bits().into(), Some(*address)),
            IpAddr::V6(bits) => (bits.to_bits(), Some(*address)),
        },
        FormValue::Word(_) | FormValue::Ports(_) | FormValue::Rate(_) | FormValue::Text(_) => {
            unreachable!("value {at} of {values:?} is no number")
        }
    }
}

/// Changes one bound of a field. Whether the four values fit each other is seen when the port
/// starts, because they are set one after the other.
fn set(
    state: &mut ConsoleState,
    field: RangeField,
    ports: &[usize],
    bound: &str,
    values: &Values<'_>,
    at: usize,
) -> Result<Effect, String> {
    let bound = Bound::of_word(bound).ok_or_else(|| format!("{bound:?} is no bound"))?;
    let (value, address) = value(values, at);
    for port in state.each(ports) {
        if let Some(address) = address {
            port.range.set_ipv6(address.is_ipv6());
        }
        port.range.span_mut(field).set(bound, value);
    }
    Ok(Effect::Changed(ports.to_vec()))
}

/// Sets all bounds of a field from the values at `at` and after it.
fn set_all(
    state: &mut ConsoleState,
    field: RangeField,
    values: &Values<'_>,
    at: usize,
) -> Result<Effect, String> {
    let four = [0, 1, 2, 3].map(|bound| value(values, at + bound));
    let [start, min, max, inc] = four.map(|(value, _)| value);
    let versions = four.map(|(_, address)| address.map(|address| address.is_ipv6()));
    if min > max {
        return Err(format!("{}: min is greater than max", field.row().word));
    }
    if versions.iter().any(|version| *version != versions[0]) {
        return Err(format!("{}: addresses of one version are wanted", field.row().word));
    }
    for port in state.each(values.ports(0)) {
        if let Some(is_ipv6) = versions[0] {
            port.range.set_ipv6(is_ipv6);
        }
        *port.range.span_mut(field) = RangeSpan { start, min, max, inc };
    }
    Ok(Effect::Changed(values.ports(0).to_vec()))
}
