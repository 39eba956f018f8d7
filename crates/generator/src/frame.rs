//! The frame around a payload, for endpoints over raw ports: Ethernet, IPv4, UDP.
//!
//! The UDP checksum is zero, which means "none" over IPv4 (RFC 768): the probe is checked by its
//! own fields. It must never be longer than the stream's size says.

use packet::checksum::ones_complement;

use crate::stream::Host;

/// Bytes before the payload: 14 + 20 + 8.
pub const HEADER_LEN: usize = 42;

/// The shortest frame without FCS; shorter ones are padded with zero bytes.
const FRAME_MIN: usize = 60;

const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL_UDP: u8 = 17;
const TTL: u8 = 64;

/// Writes the frame that carries `payload` from `from` to `to` into `frame`.
pub fn build(frame: &mut Vec<u8>, from: &Host, to: &Host, payload: &[u8]) {
    frame.clear();
    frame.extend_from_slice(&to.mac);
    frame.extend_from_slice(&from.mac);
    frame.extend_from_slice(&ETHERTYPE_IPV4);
    let udp_len = (8 + payload.len()) as u16;
    let ip_len = (20 + udp_len).to_be_bytes();
    let mut header = [0; 20];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&ip_len);
    header[8] = TTL;
    header[9] = PROTOCOL_UDP;
    header[12..16].copy_from_slice(&from.ip.octets());
    header[16..20].copy_from_slice(&to.ip.octets());
    let sum = ones_complement(&header).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    frame.extend_from_slice(&header);
    frame.extend_from_slice(&from.port.to_be_bytes());
    frame.extend_from_slice(&to.port.to_be_bytes());
    frame.extend_from_slice(&udp_len.to_be_bytes());
    frame.extend_from_slice(&[0, 0]);
    frame.extend_from_slice(payload);
    if frame.len() < FRAME_MIN {
        frame.resize(FRAME_MIN, 0);
    }
}

/// The payload of a UDP datagram for `local`; `None` for any other frame.
#[must_use]
pub fn payload<'a>(frame: &'a [u8], local: &Host) -> Option<&'a [u8]> {
    let (header, rest) = frame.split_first_chunk::<HEADER_LEN>()?;
    let ours = header[0..6] == local.mac
        && header[12..14] == ETHERTYPE_IPV4
        && header[14] == 0x45
        && header[23] == PROTOCOL_UDP
        && header[30..34] == local.ip.octets()
        && header[36..38] == local.port.to_be_bytes();
    let length = usize::from(u16::from_be_bytes([header[38], header[39]])).checked_sub(8)?;
    if ours { rest.get(..length) } else { None }
}

#[cfg(test)]
mod tests {
    use super::{HEADER_LEN, build, payload};
    use crate::stream::Host;
    use std::net::Ipv4Addr;

    fn host(last: u8) -> Host {
        Host { mac: [2, 0, 0, 0, 0, last], ip: Ipv4Addr::new(10, 0, 0, last), port: 9200 }
    }

    #[test]
    fn the_receiver_finds_what_the_sender_wrapped() {
        let (a, b) = (host(1), host(2));
        let mut frame = Vec::new();
        build(&mut frame, &a, &b, &[7; 18]);
        assert_eq!(frame.len(), 60);
        assert_eq!(payload(&frame, &b), Some(&[7; 18][..]));
        assert_eq!(payload(&frame, &a), None);
        build(&mut frame, &a, &b, b"short");
        assert_eq!((frame.len(), payload(&frame, &b)), (60, Some(&b"short"[..])));
    }

    #[test]
    fn the_headers_are_as_other_programs_make_them() {
        let mut frame = Vec::new();
        build(&mut frame, &host(1), &host(2), &[0xab; 4]);
        // Version, length 32, TTL 64, UDP, checksum as printed by other tools for this header.
        let ip = [0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0x66, 0xcb, 10, 0, 0, 1, 10, 0, 0, 2];
        assert_eq!(frame[14..34], ip);
        assert_eq!(frame[34..42], [0x23, 0xf0, 0x23, 0xf0, 0, 12, 0, 0]);
    }

    #[test]
    fn every_prefix_is_refused_or_read() {
        let mut frame = Vec::new();
        build(&mut frame, &host(1), &host(2), &[1; 30]);
        for len in 0..frame.len() {
            assert_eq!(payload(&frame[..len], &host(2)), None, "{len}");
        }
        frame[38..40].copy_from_slice(&[0, 7]);
        assert_eq!(payload(&frame, &host(2)), None, "a length below the header's");
        assert!(HEADER_LEN < frame.len());
    }
}
