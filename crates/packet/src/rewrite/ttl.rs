//! The TTL of IPv4, the hop limit of IPv6 and the TTL of MPLS (clauses 5.12 and 7.2.5).

use super::patch::{patch_ipv4, put};
use crate::buf::PacketBuf;
use crate::header::{chunk, ipv4, ipv6, mpls};
use crate::layout::{Layout, Network};

/// A TTL that cannot be decremented: it is 0 or would become 0. The packet is unchanged
/// (`OFPR_INVALID_TTL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the TTL is 0 or would become 0")]
pub struct TtlInvalid;

/// Place of a TTL, and the IPv4 header whose checksum covers it.
#[derive(Clone, Copy)]
struct Ttl {
    at: usize,
    ipv4: Option<usize>,
}

impl Ttl {
    fn get(self, frame: &[u8]) -> Option<u8> {
        frame.get(self.at).copied()
    }

    fn set(self, frame: &mut [u8], ttl: u8) -> bool {
        match self.ipv4 {
            Some(header) => patch_ipv4(frame, header, self.at, ttl),
            None => {
                put(frame, self.at, &[ttl]);
                self.at < frame.len()
            }
        }
    }

    fn dec(self, frame: &mut [u8]) -> Result<bool, TtlInvalid> {
        match self.get(frame) {
            None => Ok(false),
            Some(0 | 1) => Err(TtlInvalid),
            Some(ttl) => Ok(self.set(frame, ttl - 1)),
        }
    }
}

/// Writes the TTL or hop limit of the outermost IP header; false when the packet has none that is
/// visible (behind MPLS it is not).
pub fn set_nw_ttl(buf: &mut PacketBuf, ttl: u8) -> bool {
    let found = nw_ttl(buf.bytes());
    found.is_some_and(|place| place.set(buf.bytes_mut(), ttl))
}

/// Decrements the TTL or hop limit of the outermost IP header; `Ok(false)` when there is none.
///
/// # Errors
/// [`TtlInvalid`] when it is 0 or 1.
pub fn dec_nw_ttl(buf: &mut PacketBuf) -> Result<bool, TtlInvalid> {
    nw_ttl(buf.bytes()).map_or(Ok(false), |place| place.dec(buf.bytes_mut()))
}

/// Writes the TTL of the outermost MPLS entry; false when there is none.
pub fn set_mpls_ttl(buf: &mut PacketBuf, ttl: u8) -> bool {
    let found = mpls_ttl(buf.bytes());
    found.is_some_and(|place| place.set(buf.bytes_mut(), ttl))
}

/// Decrements the TTL of the outermost MPLS entry; `Ok(false)` when there is none.
///
/// # Errors
/// [`TtlInvalid`] when it is 0 or 1.
pub fn dec_mpls_ttl(buf: &mut PacketBuf) -> Result<bool, TtlInvalid> {
    mpls_ttl(buf.bytes()).map_or(Ok(false), |place| place.dec(buf.bytes_mut()))
}

/// Copies the TTL of the second header that has one to the first: MPLS to MPLS, IP to MPLS or IP to
/// IP. False when there are not two.
pub fn copy_ttl_out(buf: &mut PacketBuf) -> bool {
    copy(buf, |(outer, inner)| (inner, outer))
}

/// Copies the TTL of the first header that has one to the second: MPLS to MPLS, MPLS to IP or IP to
/// IP. False when there are not two.
pub fn copy_ttl_in(buf: &mut PacketBuf) -> bool {
    copy(buf, |(outer, inner)| (outer, inner))
}

fn copy(buf: &mut PacketBuf, from_to: impl FnOnce((Ttl, Ttl)) -> (Ttl, Ttl)) -> bool {
    let frame = buf.bytes_mut();
    let Some((from, to)) = outer_two(frame).map(from_to) else { return false };
    from.get(frame).is_some_and(|ttl| to.set(frame, ttl))
}

fn nw_ttl(frame: &[u8]) -> Option<Ttl> {
    let layout = Layout::of(frame)?;
    match layout.network {
        Network::Ipv4 => Some(Ttl { at: layout.l3 + ipv4::TTL, ipv4: Some(layout.l3) }),
        Network::Ipv6 => Some(Ttl { at: layout.l3 + ipv6::HOP_LIMIT, ipv4: None }),
        Network::Other | Network::Mpls | Network::Pbb | Network::Arp => None,
    }
}

fn mpls_ttl(frame: &[u8]) -> Option<Ttl> {
    let layout = Layout::of(frame)?;
    (layout.network == Network::Mpls).then_some(Ttl { at: layout.l3 + mpls::TTL, ipv4: None })
}

/// The first and the second header that have a TTL.
fn outer_two(frame: &[u8]) -> Option<(Ttl, Ttl)> {
    let layout = Layout::of(frame)?;
    if let Some(outer) = mpls_ttl(frame) {
        let entry = u32::from_be_bytes(*chunk(frame, layout.l3)?);
        let next = layout.l3 + mpls::ENTRY_LEN;
        let inner = if mpls::bos(entry) {
            ip_at(frame, next)?
        } else {
            chunk::<{ mpls::ENTRY_LEN }>(frame, next)?;
            Ttl { at: next + mpls::TTL, ipv4: None }
        };
        return Some((outer, inner));
    }
    let encapsulated = matches!(layout.ip_proto, Some(ipv4::PROTO_IPV4 | ipv4::PROTO_IPV6));
    let outer = nw_ttl(frame).filter(|_| encapsulated && !layout.later_fragment)?;
    Some((outer, ip_at(frame.get(..layout.end)?, layout.l4)?))
}

/// The TTL of an IP header of either version.
fn ip_at(frame: &[u8], at: usize) -> Option<Ttl> {
    match frame.get(at)? >> 4 {
        4 => {
            let fixed = chunk::<{ ipv4::HEADER_LEN }>(frame, at)?;
            ipv4::header_len(fixed[ipv4::VERSION_IHL])?;
            Some(Ttl { at: at + ipv4::TTL, ipv4: Some(at) })
        }
        6 => {
            chunk::<{ ipv6::HEADER_LEN }>(frame, at)?;
            Some(Ttl { at: at + ipv6::HOP_LIMIT, ipv4: None })
        }
        _ => None,
    }
}
