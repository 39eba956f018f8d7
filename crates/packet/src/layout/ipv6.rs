//! IPv6 and its chain of extension headers, with the bits that OpenFlow has for them.
//!
//! The chain ends at the first header that is not an extension header, at an encrypted payload, at
//! "no next header", and behind the fragment header of a later fragment: what follows there is
//! payload, so the fragment header's own next header is the protocol.

use super::{Layout, Network, Transport};
use crate::header::{be16, chunk, ipv6, number};

impl Layout {
    pub(super) fn ipv6(&mut self, frame: &[u8]) {
        let Some(fixed) = chunk::<{ ipv6::HEADER_LEN }>(frame, self.l3) else { return };
        if fixed[0] >> 4 != 6 || self.end < self.l3 + ipv6::HEADER_LEN {
            return;
        }
        let payload_len = number(&fixed[ipv6::PAYLOAD_LEN]) as usize;
        let next = fixed[ipv6::NEXT_HEADER];
        // A length of zero before hop-by-hop options is a jumbogram's (RFC 2675).
        if payload_len != 0 || next != ipv6::HOP {
            let stated = self.l3 + ipv6::HEADER_LEN + payload_len;
            self.truncated = self.end < stated;
            self.end = self.end.min(stated);
        }
        self.network = Network::Ipv6;
        self.ip_proto_at = self.l3 + ipv6::NEXT_HEADER;
        self.l4 = self.l3 + ipv6::HEADER_LEN;
        if let Some(proto) = self.extensions(frame, next) {
            self.ip_proto = Some(proto);
        }
    }

    /// Walks the chain; the protocol number at its end, if the chain is whole.
    fn extensions(&mut self, frame: &[u8], first: u8) -> Option<u8> {
        let body = frame.get(..self.end)?;
        let mut order = Order::default();
        let mut next = first;
        loop {
            match next {
                ipv6::NO_NEXT => self.exthdr |= ipv6::IEH_NONEXT,
                ipv6::ESP => self.exthdr |= order.meet(ipv6::ESP),
                ipv6::HOP | ipv6::ROUTING | ipv6::FRAGMENT | ipv6::AUTH | ipv6::DEST => {
                    let start = self.l4;
                    let [following, units, ..] = *chunk::<{ ipv6::EXT_LEN_MIN }>(body, start)?;
                    let len = extension_len(next, units);
                    if start + len > body.len() {
                        return None;
                    }
                    self.exthdr |= order.meet(next);
                    self.ip_proto_at = start;
                    self.l4 = start + len;
                    if next == ipv6::ROUTING && body.get(start + ipv6::SEGMENTS_LEFT)? != &0 {
                        self.routing_at = Some(start);
                    }
                    if next == ipv6::FRAGMENT {
                        let held = be16(body, start + ipv6::FRAGMENT_OFFSET.start)?;
                        // Offset 0 and no more: an atomic fragment is a whole packet (RFC 6946).
                        self.fragment = held & (ipv6::OFFSET_MASK | ipv6::MORE_FRAGMENTS) != 0;
                        self.later_fragment = held & ipv6::OFFSET_MASK != 0;
                        if self.later_fragment {
                            return Some(following);
                        }
                    }
                    next = following;
                    continue;
                }
                _ => self.transport(next, ipv6::PROTO_ICMPV6, Transport::Icmpv6),
            }
            return Some(next);
        }
    }
}

/// Bytes of an extension header, from its own length byte.
fn extension_len(kind: u8, units: u8) -> usize {
    match kind {
        ipv6::FRAGMENT => ipv6::EXT_LEN_MIN,
        ipv6::AUTH => (usize::from(units) + 2) * 4,
        _ => (usize::from(units) + 1) * 8,
    }
}

/// The headers met so far in the order that RFC 8200 section 4.1 prefers: hop-by-hop options,
/// destination options, routing, fragment, authentication, encrypted payload, destination options.
#[derive(Default)]
struct Order {
    rank: u8,
    seen: u16,
    dests: u8,
    met: bool,
}

impl Order {
    /// The bits to set for the next header of the chain.
    fn meet(&mut self, kind: u8) -> u16 {
        let (bit, rank) = match kind {
            ipv6::HOP => (ipv6::IEH_HOP, 1),
            ipv6::ROUTING => (ipv6::IEH_ROUTER, 3),
            ipv6::FRAGMENT => (ipv6::IEH_FRAG, 4),
            ipv6::AUTH => (ipv6::IEH_AUTH, 5),
            ipv6::ESP => (ipv6::IEH_ESP, 6),
            _ if self.rank < 2 => (ipv6::IEH_DEST, 2),
            _ => (ipv6::IEH_DEST, 7),
        };
        let first = !std::mem::replace(&mut self.met, true);
        self.dests = self.dests.saturating_add(u8::from(bit == ipv6::IEH_DEST));
        let allowed = if bit == ipv6::IEH_DEST { self.dests <= 2 } else { self.seen & bit == 0 };
        self.seen |= bit;
        let mut bits = if bit == ipv6::IEH_HOP && !first { 0 } else { bit };
        if !allowed {
            bits |= ipv6::IEH_UNREP;
        }
        if rank < self.rank {
            bits |= ipv6::IEH_UNSEQ;
        }
        self.rank = self.rank.max(rank);
        bits
    }
}
