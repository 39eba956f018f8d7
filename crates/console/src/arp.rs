//! ARP requests of a port (RFC 826): for its destination, or a gratuitous one (RFC 5227, clause 3)
//! by which others learn its own address.

use std::net::{IpAddr, Ipv4Addr};

use openflow::MacAddr;
use packet::build::{Arp, FrameBuilder};

use crate::state::PortSettings;

/// A request.
const REQUEST: u16 = 1;

/// The shortest frame, without FCS.
const FRAME_MIN: usize = 60;

/// The addresses of the port and of whom it sends to.
fn addresses(settings: &PortSettings) -> Result<(Ipv4Addr, Ipv4Addr), String> {
    match (settings.single.src_ip, settings.single.dst_ip) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => Ok((src, dst)),
        (src, _) => Err(format!("ARP is for IPv4, and the port sends from {src}")),
    }
}

/// Whether the port has the addresses that a request needs.
///
/// # Errors
/// The mistake in them.
pub(crate) fn check(settings: &PortSettings) -> Result<(), String> {
    addresses(settings).map(drop)
}

/// The request, tagged as the port's packets are.
///
/// # Errors
/// As [`check`].
pub(crate) fn request(settings: &PortSettings, is_gratuitous: bool) -> Result<Vec<u8>, String> {
    let (spa, dst) = addresses(settings)?;
    let packet = &settings.single;
    let sha = MacAddr::from_u64(packet.src_mac);
    let mut frame = FrameBuilder::ethernet(MacAddr([0xff; 6]), sha);
    if packet.tags.has_vlan {
        frame = frame.vlan(packet.tags.cos as u8, packet.vlan_id as u16);
    }
    let tpa = if is_gratuitous { spa } else { dst };
    let mut bytes = frame.arp(Arp { op: REQUEST, sha, spa, tha: MacAddr([0; 6]), tpa }).build();
    if bytes.len() < FRAME_MIN {
        bytes.resize(FRAME_MIN, 0);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::request;
    use crate::state::ConsoleState;
    use crate::words;

    fn made(lines: &[&str], is_gratuitous: bool) -> Result<Vec<u8>, String> {
        let mut state = ConsoleState::new(&[0x0200_0000_0001, 0x0200_0000_0002]);
        for line in lines {
            words::parse(line, 2).unwrap().unwrap().apply(&mut state).unwrap();
        }
        request(&state.ports[0], is_gratuitous)
    }

    #[test]
    fn a_gratuitous_request_asks_for_the_port_itself() {
        let asked = made(&[], false).unwrap();
        assert_eq!(asked.len(), 60);
        assert_eq!(asked[..14], [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6]);
        assert_eq!(asked[20..22], [0, 1]);
        assert_eq!(
            (&asked[28..32], &asked[38..42]),
            (&[192, 168, 0, 1][..], &[192, 168, 1, 1][..])
        );
        let gratuitous = made(&[], true).unwrap();
        assert_eq!(gratuitous[28..32], gratuitous[38..42]);
        let tagged = made(&["vlan 0 on", "vlanid 0 7"], false).unwrap();
        assert_eq!(tagged[12..18], [0x81, 0, 0, 7, 8, 6]);
        assert!(made(&["type ipv6 0"], false).unwrap_err().contains("IPv4"));
    }
}
