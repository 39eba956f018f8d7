//! The probe: an LLDP frame (IEEE 802.1AB) that says which port of which switch it left, with a tag
//! that only this run of the controller can make, or a node of its cluster.
//!
//! Hosts see probes, and could send some of their own to feign a link. Therefore the last TLV
//! carries the time of sending and an HMAC over all before it, and a probe counts only with the
//! right tag and while it is fresh. A host that hands a probe on to another host at once is not
//! told from a cable: nothing in the frame can show that. The frame is read as bytes from anybody;
//! what does not hold is no probe, and never a panic.

use crate::topology::SwitchPort;
use openflow::{DatapathId, MacAddr, PortNo};
use packet::header::{be16, chunk, ethernet};
use ring::hmac;
use ring::rand::SystemRandom;
use std::time::Duration;

/// EtherType of LLDP.
pub(crate) const LLDP: u16 = 0x88cc;
/// The group address of the nearest bridge, which no bridge forwards.
const NEAREST_BRIDGE: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
/// The organization that OpenFlow controllers use in TLVs of their own, and our subtype.
const OWNER: [u8; 4] = [0x00, 0x26, 0xe1, b'W'];
/// Bytes of an HMAC-SHA-256.
const TAG_LEN: usize = 32;

const CHASSIS_ID: u8 = 1;
const PORT_ID: u8 = 2;
const TIME_TO_LIVE: u8 = 3;
const OWN: u8 = 127;
/// Subtype of chassis and port ids that a network chooses itself.
const LOCALLY_ASSIGNED: u8 = 7;
/// Subtype of port ids by number, in four bytes, as Ryu writes it.
const PORT_COMPONENT: u8 = 2;

/// The secret of one run of a controller, or of a cluster.
#[derive(Clone)]
pub struct ProbeKey(hmac::Key);

/// The system gave no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes for the key of the probes")]
pub struct NoKey;

impl ProbeKey {
    /// A new key, from the system's random bytes.
    ///
    /// # Errors
    /// When there are none.
    pub fn random() -> Result<Self, NoKey> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        key.map(Self).map_err(|_| NoKey)
    }

    /// The key of a secret: that of a cluster, or of a test that is to be repeated.
    #[must_use]
    pub fn from_secret(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }
}

impl std::fmt::Debug for ProbeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProbeKey(secret)")
    }
}

/// Contents of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) from: SwitchPort,
    /// Since the controller's start; in a cluster, by the time of day.
    pub(super) sent_at: Duration,
}

fn tlv(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let value = parts.concat();
    // Seven bits of type, nine of length: all of ours are short.
    let head = u16::from(kind) << 9 | value.len() as u16 & 0x1ff;
    [&head.to_be_bytes()[..], &value].concat()
}

impl Probe {
    /// The frame, from the port's own address.
    pub(super) fn frame(self, src: MacAddr, ttl_s: u16, key: &ProbeKey) -> Vec<u8> {
        let Self { from, sent_at } = self;
        let mut frame = [NEAREST_BRIDGE.0, src.0].concat();
        frame.extend(LLDP.to_be_bytes());
        let chassis = format!("dpid:{}", from.dpid);
        frame.extend(tlv(CHASSIS_ID, &[&[LOCALLY_ASSIGNED], chassis.as_bytes()]));
        frame.extend(tlv(PORT_ID, &[&[PORT_COMPONENT], &from.port.0.to_be_bytes()]));
        frame.extend(tlv(TIME_TO_LIVE, &[&ttl_s.to_be_bytes()]));
        let sent_ms = u64::try_from(sent_at.as_millis()).unwrap_or(u64::MAX).to_be_bytes();
        let tag = hmac::sign(&key.0, &[&frame[..], &sent_ms].concat());
        frame.extend(tlv(OWN, &[&OWNER, &sent_ms, tag.as_ref()]));
        frame.extend([0, 0]); // end of the LLDPDU
        frame
    }

    /// The probe of a frame, if it is one of this key's.
    pub(super) fn read(frame: &[u8], key: &ProbeKey) -> Option<Self> {
        if be16(frame, ethernet::ETHER_TYPE)? != LLDP {
            return None;
        }
        let (mut chassis, mut port) = (None, None);
        let mut at = ethernet::HEADER_LEN;
        loop {
            let head = be16(frame, at)?;
            let (kind, len) = ((head >> 9) as u8, usize::from(head & 0x1ff));
            let value = frame.get(at + 2..at + 2 + len)?;
            match kind {
                0 => return None,
                CHASSIS_ID => chassis = datapath_id(value),
                PORT_ID => port = port_number(value),
                OWN if value.starts_with(&OWNER) => {
                    let stamp = value.get(OWNER.len()..).filter(|it| it.len() == 8 + TAG_LEN)?;
                    let (sent_ms, tag) = (chunk::<8>(stamp, 0)?, chunk::<TAG_LEN>(stamp, 8)?);
                    let signed = [frame.get(..at)?, sent_ms].concat();
                    hmac::verify(&key.0, &signed, tag).ok()?;
                    let from = SwitchPort { dpid: chassis?, port: port? };
                    let sent_at = Duration::from_millis(u64::from_be_bytes(*sent_ms));
                    return Some(Self { from, sent_at });
                }
                _ => {}
            }
            at += 2 + len;
        }
    }
}

fn datapath_id(value: &[u8]) -> Option<DatapathId> {
    let (subtype, text) = value.split_first()?;
    let digits = text.strip_prefix(b"dpid:").filter(|_| *subtype == LOCALLY_ASSIGNED)?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().map(DatapathId)
}

fn port_number(value: &[u8]) -> Option<PortNo> {
    let (subtype, number) = value.split_first()?;
    let number = number.first_chunk().filter(|_| *subtype == PORT_COMPONENT)?;
    Some(PortNo(u32::from_be_bytes(*number)))
}

#[cfg(test)]
mod tests {
    use super::{Probe, ProbeKey};
    use crate::topology::SwitchPort;
    use openflow::{DatapathId, MacAddr, PortNo};
    use std::time::Duration;

    fn probe() -> Probe {
        let from = SwitchPort { dpid: DatapathId(0xfeed_0000_0000_0007), port: PortNo(65_000) };
        Probe { from, sent_at: Duration::from_millis(123_456) }
    }

    #[test]
    fn a_probe_is_read_back_with_its_own_key_only() {
        let (key, other) = (ProbeKey::from_secret(b"one"), ProbeKey::from_secret(b"two"));
        let frame = probe().frame(MacAddr::from_u64(0x0200_0000_0001), 15, &key);
        assert_eq!(Probe::read(&frame, &key), Some(probe()));
        assert_eq!(Probe::read(&frame, &other), None);
        let padded = [&frame[..], &[0; 20]].concat();
        assert_eq!(Probe::read(&padded, &key), Some(probe()));
    }

    #[test]
    fn no_changed_or_shortened_frame_is_a_probe() {
        let key = ProbeKey::from_secret(b"one");
        let frame = probe().frame(MacAddr::from_u64(0x0200_0000_0001), 15, &key);
        let body = frame.len() - 2;
        for at in 0..body {
            assert_eq!(Probe::read(&frame[..at], &key), None, "cut at {at}");
            for bit in 0..8 {
                let mut changed = frame.clone();
                changed[at] ^= 1 << bit;
                assert_eq!(Probe::read(&changed, &key), None, "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        let key = ProbeKey::from_secret(b"one");
        let mut state = 1_u64;
        for len in 0..600 {
            let mut frame: Vec<u8> = (0..len)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect();
            if let Some(place) = frame.get_mut(12..14) {
                place.copy_from_slice(&super::LLDP.to_be_bytes());
            }
            assert_eq!(Probe::read(&frame, &key), None);
        }
    }
}
