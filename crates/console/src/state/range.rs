//! Range mode: fields that run from packet to packet, each with start, least, most and step.
//!
//! A line of `range_fields!` is a field: its word in both grammars of Pktgen, how its values are
//! written, and its header field.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::packet::{IpProtocol, mac_text};
use super::word_enum::word_enum;

/// The form of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeKind {
    Mac,
    Ip,
    Number,
}

/// A field's row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RangeFieldRow {
    pub(crate) field: RangeField,
    /// Its word of Pktgen 3.1.2.
    pub(crate) word: &'static str,
    pub(crate) kind: RangeKind,
}

/// Declares the fields in the order of the page: the enum and its rows.
macro_rules! range_fields {
    ($($field:ident $word:literal $kind:ident,)+) => {
        /// A field of range mode.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum RangeField {
            $($field,)+
        }

        /// The fields in the order of the page.
        pub(crate) const RANGE_FIELDS: [RangeFieldRow; [$($word),+].len()] = [$(RangeFieldRow {
            field: RangeField::$field,
            word: $word,
            kind: RangeKind::$kind,
        }),+];
    };
}

range_fields! {
    DstIp "dst.ip" Ip,
    SrcIp "src.ip" Ip,
    DstPort "dst.port" Number,
    SrcPort "src.port" Number,
    VlanId "vlan.id" Number,
    Cos "cos" Number,
    Tos "tos" Number,
    Ttl "ttl" Number,
    PktSize "pkt.size" Number,
    Teid "gtpu.teid" Number,
    DstMac "dst.mac" Mac,
    SrcMac "src.mac" Mac,
    TcpSeq "tcp.seq" Number,
    TcpAck "tcp.ack" Number,
    TcpFlags "tcp.flags" Number,
    MplsEntry "mpls.entry" Number,
    QinqOuter "qinq.outer" Number,
    QinqInner "qinq.inner" Number,
    GreKey "gre.key" Number,
    Vni "vxlan.vni" Number,
}

/// The number of them that have a value of their own in every packet; the others have that of
/// single mode until a range word sets them.
pub(crate) const USUAL_FIELDS: usize = 12;

impl RangeField {
    /// The field's row.
    pub(crate) fn row(self) -> &'static RangeFieldRow {
        &RANGE_FIELDS[self.index()]
    }

    /// The field's place in [`RANGE_FIELDS`].
    fn index(self) -> usize {
        self as usize
    }

    /// Whether the field has a value of its own in every packet.
    pub(crate) fn is_usual(self) -> bool {
        self.index() < USUAL_FIELDS
    }

    /// A value of the field as text; addresses of IPv6 where `is_ipv6`.
    pub(crate) fn text(self, value: u128, is_ipv6: bool) -> String {
        match self.row().kind {
            RangeKind::Mac => mac_text(value as u64),
            RangeKind::Ip if is_ipv6 => Ipv6Addr::from_bits(value).to_string(),
            RangeKind::Ip => Ipv4Addr::from_bits(value as u32).to_string(),
            RangeKind::Number => value.to_string(),
        }
    }
}

word_enum! {
    /// One of the four values of a span.
    Bound {
        Start "start",
        Min "min",
        Max "max",
        Inc "inc",
    }
}

/// The values of one field: from `start` on in steps of `inc`, and behind `max` again from `min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RangeSpan {
    pub(crate) start: u128,
    pub(crate) min: u128,
    pub(crate) max: u128,
    pub(crate) inc: u128,
}

impl RangeSpan {
    const fn new(start: u128, min: u128, max: u128, inc: u128) -> Self {
        Self { start, min, max, inc }
    }

    /// Whether a range word has set where it starts, or that it runs.
    pub(crate) fn is_set(&self) -> bool {
        self.start != 0 || self.inc != 0
    }

    /// The value of a bound.
    pub(crate) fn get(&self, bound: Bound) -> u128 {
        match bound {
            Bound::Start => self.start,
            Bound::Min => self.min,
            Bound::Max => self.max,
            Bound::Inc => self.inc,
        }
    }

    /// Changes a bound.
    pub(crate) fn set(&mut self, bound: Bound, value: u128) {
        match bound {
            Bound::Start => self.start = value,
            Bound::Min => self.min = value,
            Bound::Max => self.max = value,
            Bound::Inc => self.inc = value,
        }
    }
}

/// The spans of all fields, and the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeSettings {
    pub(crate) protocol: IpProtocol,
    is_ipv6: bool,
    spans: [RangeSpan; RANGE_FIELDS.len()],
}

impl RangeSettings {
    /// Pktgen's ranges of port `port`: destination address and both ports run, all else stands.
    pub(crate) fn new(port: usize, mac: u64, peer: u64) -> Self {
        let port = (port % 255) as u128;
        let network = |number: u128| 0xc0a8_0000 + (number << 8);
        let (there, here) = (network(port + 1), network(port));
        let ports = RangeSpan::new(port << 8, port << 8, (port << 8) + 254, 1);
        Self {
            protocol: IpProtocol::Tcp,
            is_ipv6: false,
            spans: [
                RangeSpan::new(there + 1, there + 1, there + 254, 1),
                RangeSpan::new(here + 1, here + 1, here + 254, 0),
                ports,
                ports,
                RangeSpan::new(1, 1, 4095, 0),
                RangeSpan::new(0, 0, 7, 0),
                RangeSpan::new(0, 0, 255, 0),
                RangeSpan::new(64, 0, 255, 0),
                RangeSpan::new(64, 64, 1518, 0),
                RangeSpan::new(0, 0, 0xffff_ffff, 0),
                RangeSpan::new(peer.into(), 0, 0xffff_ffff_ffff, 0),
                RangeSpan::new(mac.into(), 0, 0xffff_ffff_ffff, 0),
                RangeSpan::new(0, 0, 0xffff_ffff, 0),
                RangeSpan::new(0, 0, 0xffff_ffff, 0),
                RangeSpan::new(0, 0, 255, 0),
                RangeSpan::new(0, 0, 0xffff_ffff, 0),
                RangeSpan::new(0, 0, 4095, 0),
                RangeSpan::new(0, 0, 4095, 0),
                RangeSpan::new(0, 0, 0xffff_ffff, 0),
                RangeSpan::new(0, 0, 0xff_ffff, 0),
            ],
        }
    }

    /// The span of a field.
    pub(crate) fn span(&self, field: RangeField) -> &RangeSpan {
        &self.spans[field.index()]
    }

    /// The span of a field, to be changed.
    pub(crate) fn span_mut(&mut self, field: RangeField) -> &mut RangeSpan {
        &mut self.spans[field.index()]
    }

    /// Whether the addresses are those of IPv6.
    pub(crate) fn is_ipv6(&self) -> bool {
        self.is_ipv6
    }

    /// Changes the version of IP; both addresses then run through other ranges: those of Pktgen, or
    /// of the documentation (RFC 3849).
    pub(crate) fn set_ipv6(&mut self, is_ipv6: bool) {
        if self.is_ipv6 == is_ipv6 {
            return;
        }
        self.is_ipv6 = is_ipv6;
        let network: u128 = if is_ipv6 { 0x2001_0db8 << 96 } else { 0xc0a8_0000 };
        let (here, there) = (network, network + (1 << 8));
        *self.span_mut(RangeField::DstIp) = RangeSpan::new(there + 1, there + 1, there + 254, 1);
        *self.span_mut(RangeField::SrcIp) = RangeSpan::new(here + 1, here + 1, here + 254, 0);
    }
}
