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
    row("dst.ip|src.ip start|min|max|inc PORTS IP", "IP addresses", |s, v| {
        set(s, end(v, RangeKind::Ip), v)
    }),
    row("dst.mac|src.mac start|min|max|inc PORTS MAC", "Ethernet addresses", |s, v| {
        set(s, end(v, RangeKind::Mac), v)
    }),
    row("dst.port|src.port start|min|max|inc PORTS L4PORT", "TCP or UDP ports", |s, v| {
        set(s, end(v, RangeKind::Number), v)
    }),
    row("vlan.id start|min|max|inc PORTS VID", "VLAN IDs", |s, v| set(s, RangeField::VlanId, v)),
    row("pkt.size start|min|max PORTS SIZE", "frame sizes, FCS included", |s, v| {
        set(s, RangeField::PktSize, v)
    }),
    row("pkt.size inc PORTS STEP", "step of the size", |s, v| set(s, RangeField::PktSize, v)),
    row("gtpu.teid start|min|max|inc PORTS WORD32", "tunnel endpoints", |s, v| {
        set(s, RangeField::Teid, v)
    }),
    row("ip.proto udp|tcp|icmp PORTS", "protocol of range mode", |s, v| {
        set_protocol(s, v.ports(1), v.word(0))
    }),
    row("ip.proto PORTS udp|tcp|icmp", "the same", |s, v| set_protocol(s, v.ports(0), v.word(1))),
    row("range PORTS proto udp|tcp|icmp", "the same", |s, v| {
        set_protocol(s, v.ports(0), v.word(1))
    }),
    row("range PORTS src|dst ip start|min|max|inc IP", "IP addresses", |s, v| {
        set(s, end(v, RangeKind::Ip), v)
    }),
    row("range PORTS src|dst ip IP IP IP IP", "start, min, max, inc", |s, v| {
        set_all(s, end(v, RangeKind::Ip), v)
    }),
    row("range PORTS src|dst mac start|min|max|inc MAC", "Ethernet addresses", |s, v| {
        set(s, end(v, RangeKind::Mac), v)
    }),
    row("range PORTS src|dst mac MAC MAC MAC MAC", "start, min, max, inc", |s, v| {
        set_all(s, end(v, RangeKind::Mac), v)
    }),
    row("range PORTS src|dst port start|min|max|inc L4PORT", "TCP or UDP ports", |s, v| {
        set(s, end(v, RangeKind::Number), v)
    }),
    row("range PORTS src|dst port L4PORT L4PORT L4PORT L4PORT", "start, min, max, inc", |s, v| {
        set_all(s, end(v, RangeKind::Number), v)
    }),
    row("range PORTS vlan start|min|max|inc VID", "VLAN IDs", |s, v| set(s, RangeField::VlanId, v)),
    row("range PORTS vlan VID VID VID VID", "start, min, max, inc", |s, v| {
        set_all(s, RangeField::VlanId, v)
    }),
    row("range PORTS size start|min|max SIZE", "frame sizes, FCS included", |s, v| {
        set(s, RangeField::PktSize, v)
    }),
    row("range PORTS size inc STEP", "step of the size", |s, v| set(s, RangeField::PktSize, v)),
    row("range PORTS size SIZE SIZE SIZE STEP", "start, min, max, inc", |s, v| {
        set_all(s, RangeField::PktSize, v)
    }),
    row("range PORTS cos|prio start|min|max|inc BITS3", "priorities of the VLAN tag", |s, v| {
        set(s, RangeField::Cos, v)
    }),
    row("range PORTS tos|traffic_class start|min|max|inc BYTE", "types of service", |s, v| {
        set(s, RangeField::Tos, v)
    }),
    row("range PORTS ttl|hop_limits start|min|max|inc BYTE", "times to live", |s, v| {
        set(s, RangeField::Ttl, v)
    }),
    row("range PORTS teid start|min|max|inc WORD32", "tunnel endpoints", |s, v| {
        set(s, RangeField::Teid, v)
    }),
    row("range PORTS teid WORD32 WORD32 WORD32 WORD32", "start, min, max, inc", |s, v| {
        set_all(s, RangeField::Teid, v)
    }),
    row(
        "range PORTS tcp seq|ack start|min|max|inc WORD32",
        "numbers of the TCP header",
        |state, v| {
            let field = if v.word(1) == "seq" { RangeField::TcpSeq } else { RangeField::TcpAck };
            set(state, field, v)
        },
    ),
    row("range PORTS tcp flags start|min|max|inc BYTE", "flags of the TCP header", |s, v| {
        set(s, RangeField::TcpFlags, v)
    }),
    row(
        "range PORTS mpls entry start|min|max|inc WORD32",
        "label stack entries; only the label runs",
        |s, v| set(s, RangeField::MplsEntry, v),
    ),
    row(
        "range PORTS qinq outer|inner start|min|max|inc VID",
        "VLAN IDs of both tags",
        |state, v| {
            let is_outer = v.word(1) == "outer";
            let field = if is_outer { RangeField::QinqOuter } else { RangeField::QinqInner };
            set(state, field, v)
        },
    ),
    row("range PORTS gre key start|min|max|inc WORD32", "keys of the GRE header", |s, v| {
        set(s, RangeField::GreKey, v)
    }),
    row("range PORTS vxlan vni start|min|max|inc WORD24", "VXLAN networks", |s, v| {
        set(s, RangeField::Vni, v)
    }),
];

/// The field of a kind at the end that the line's first choice names, in both grammars.
fn end(values: Values<'_>, kind: RangeKind) -> RangeField {
    let is_source = values.words().next().is_some_and(|word| word.starts_with("src"));
    match (is_source, kind) {
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

/// Changes the bound of a field that the line's last choice names, or else its step, to the line's
/// last value. Whether the four values fit each other is seen when the port starts, because they
/// are set one after the other.
fn set(state: &mut ConsoleState, field: RangeField, values: Values<'_>) -> Result<Effect, String> {
    let bound = values.words().last().unwrap_or("inc");
    let bound = Bound::of_word(bound).ok_or_else(|| format!("{bound:?} is no bound"))?;
    let (value, address) = value(&values, values.0.len() - 1);
    for port in state.each(values.all_ports()) {
        if let Some(address) = address {
            port.range.set_ipv6(address.is_ipv6());
        }
        port.range.span_mut(field).set(bound, value);
    }
    Ok(Effect::Changed(values.all_ports().to_vec()))
}

/// Sets all bounds of a field from the last four values of the line.
fn set_all(
    state: &mut ConsoleState,
    field: RangeField,
    values: Values<'_>,
) -> Result<Effect, String> {
    let four = [4, 3, 2, 1].map(|left| value(&values, values.0.len() - left));
    let [start, min, max, inc] = four.map(|(value, _)| value);
    let versions = four.map(|(_, address)| address.map(|address| address.is_ipv6()));
    if min > max {
        return Err(format!("{}: min is greater than max", field.row().word));
    }
    if versions.iter().any(|version| *version != versions[0]) {
        return Err(format!("{}: addresses of one version are wanted", field.row().word));
    }
    for port in state.each(values.all_ports()) {
        if let Some(is_ipv6) = versions[0] {
            port.range.set_ipv6(is_ipv6);
        }
        *port.range.span_mut(field) = RangeSpan { start, min, max, inc };
    }
    Ok(Effect::Changed(values.all_ports().to_vec()))
}
