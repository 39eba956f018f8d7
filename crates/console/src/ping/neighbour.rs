//! The Ethernet address of a neighbour: an ARP request or a neighbour solicitation, and its answer.

use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use openflow::{Field, MacAddr, PortNo};
use packet::build::{Arp, FrameBuilder, Ipv6};
use packet::header::{arp, ethernet, icmpv6};
use packet::{Meta, extract};

use crate::interrupt::Interrupt;
use crate::station::Station;

/// Requests before a neighbour counts as absent, one each [`TRY_FOR`].
const TRIES: usize = 3;
/// The longest wait for an answer.
const TRY_FOR: Duration = Duration::from_secs(1);

/// Operation of an ARP request.
const ARP_REQUEST: u16 = 1;
/// Operation of an ARP reply.
const ARP_REPLY: u128 = 2;

/// Asks for the Ethernet address of `target`; none when nobody answers or a signal comes.
///
/// # Errors
/// Those of the port.
pub(super) fn resolve(
    station: &mut Station,
    (src, target): (IpAddr, IpAddr),
    vlan: Option<u16>,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<MacAddr>> {
    let request = request(station.mac(), (src, target), vlan);
    let mut found = None;
    for _ in 0..TRIES {
        station.send(&request)?;
        let end = Instant::now() + TRY_FOR;
        while found.is_none() && !interrupt.is_set() {
            let left = end.saturating_duration_since(Instant::now());
            station.receive(left, |frame| found = found.or_else(|| answer(frame, target)))?;
            if left.is_zero() {
                break;
            }
        }
        if found.is_some() || interrupt.is_set() {
            break;
        }
    }
    Ok(found)
}

fn request(mac: MacAddr, (src, target): (IpAddr, IpAddr), vlan: Option<u16>) -> Vec<u8> {
    let tagged = |builder: FrameBuilder| match vlan {
        Some(vid) => builder.vlan(0, vid),
        None => builder,
    };
    match (src, target) {
        (IpAddr::V4(spa), IpAddr::V4(tpa)) => {
            let tha = MacAddr([0; 6]);
            let packet = Arp { op: ARP_REQUEST, sha: mac, spa, tha, tpa };
            let builder = tagged(FrameBuilder::ethernet(MacAddr([0xff; 6]), mac)).arp(packet);
            builder.fill_to(ethernet::FRAME_MIN_LEN).build()
        }
        (IpAddr::V6(src), IpAddr::V6(target)) => {
            // The solicited-node multicast address (RFC 4291, 2.7.1) and its Ethernet address.
            let [.., a, b, c] = target.octets();
            let group = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c]);
            let builder = FrameBuilder::ethernet(MacAddr([0x33, 0x33, 0xff, a, b, c]), mac);
            let header = Ipv6 { hop_limit: 255, ..Ipv6::new(src, group) };
            tagged(builder).ipv6(header).neighbour_solicit(target, Some(mac)).build()
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => Vec::new(),
    }
}

/// The Ethernet address that `frame` announces for `target`.
fn answer(frame: &[u8], target: IpAddr) -> Option<MacAddr> {
    let key = extract(frame, &Meta::port(PortNo(1)));
    let announced = match target {
        IpAddr::V4(target) => {
            let is_answer = key.get(Field::ArpOp) == ARP_REPLY
                && key.get(Field::ArpSpa) == u128::from(target.to_bits())
                && key.get(Field::EthType) == u128::from(ethernet::ARP)
                && frame.len() >= ethernet::HEADER_LEN + arp::PACKET_LEN;
            is_answer.then(|| key.get(Field::ArpSha))
        }
        IpAddr::V6(target) => {
            let is_answer = key.get(Field::Icmpv6Type) == u128::from(icmpv6::NEIGHBOUR_ADVERT)
                && key.get(Field::Ipv6NdTarget) == target.to_bits();
            is_answer.then(|| key.get(Field::Ipv6NdTll))
        }
    };
    let mac = announced.and_then(|bits| u64::try_from(bits).ok()).map(MacAddr::from_u64)?;
    // An advertisement without the option says nothing; nobody has a group's address.
    (mac != MacAddr::default() && mac.0[0] & 1 == 0).then_some(mac)
}

#[cfg(test)]
mod tests {
    use generator::responder::Responder;
    use openflow::MacAddr;

    use super::{answer, request};

    #[test]
    fn what_a_responder_says_is_understood() {
        let (ours, theirs) = (MacAddr::from_u64(0x0200_0000_0001), MacAddr::from_u64(0x0200_00ab));
        for (src, target) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let (src, target) = (src.parse().unwrap(), target.parse().unwrap());
            for vlan in [None, Some(9)] {
                let request = request(ours, (src, target), vlan);
                let reply = Responder::new(theirs, vec![target]).reply(&request).unwrap();
                assert_eq!(answer(&reply, target), Some(theirs));
                assert_eq!(answer(&reply, src), None);
                assert_eq!(answer(&request, target), None);
                for end in 0..reply.len().min(60) {
                    let _ = answer(&reply[..end], target);
                }
            }
        }
    }
}
