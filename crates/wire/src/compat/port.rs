//! Ports of 1.0: 16-bit numbers, spanning tree states, and feature bits without the fast rates.
//!
//! The reserved numbers stand at the end of either range: 1.0's `0xff00..=0xffff` are 1.3's
//! `0xffffff00..=0xffffffff`, so numbers go both ways without loss.

use openflow::PortNo;
use openflow::port::{PortFeatures, PortState};

/// First number of 1.0's reserved range (`OFPP_MAX`).
const RESERVED_FROM: u16 = 0xff00;
/// Distance of the two reserved ranges.
const OFFSET: u32 = 0xffff_0000;

/// The state bits of 1.0 that say how far the spanning tree is (`OFPPS_STP_MASK`).
const STP_MASK: u32 = 3 << 8;
/// Not part of the spanning tree (`OFPPS_STP_BLOCK`): the only one of them that blocks.
const STP_BLOCK: u32 = 3 << 8;

/// Feature bits that lie alike in both versions: 10 Mb/s to 10 Gb/s.
const RATES: u32 = 0x7f;
/// First bit of copper, fibre, autonegotiation, pause and asymmetric pause in 1.0 and in 1.3.
const MEDIUM_V1_0: u32 = 7;
const MEDIUM_V1_3: u32 = 11;
const MEDIUM_MASK: u32 = 0x1f;

/// The port of a 16-bit number.
pub(crate) fn port_from_v1_0(number: u16) -> PortNo {
    let wide = u32::from(number);
    PortNo(if number >= RESERVED_FROM { wide + OFFSET } else { wide })
}

/// The 16-bit number of a port; `None` when 1.0 has none for it.
pub(crate) fn port_to_v1_0(port: PortNo) -> Option<u16> {
    let number = u16::try_from(port.0.checked_sub(OFFSET).unwrap_or(port.0)).ok()?;
    let is_reserved = port.0 >= OFFSET;
    ((number >= RESERVED_FROM) == is_reserved).then_some(number)
}

/// The state of 1.0's bits. A port that the spanning tree blocks is [`PortState::BLOCKED`]; its
/// other spanning tree states stay in bits 8 and 9, which 1.3 does not use.
pub(crate) fn state_from_v1_0(bits: u32) -> PortState {
    let link_down = PortState::from_bits_retain(bits) & PortState::LINK_DOWN;
    match bits & STP_MASK {
        STP_BLOCK => link_down | PortState::BLOCKED,
        stp => link_down | PortState::from_bits_retain(stp),
    }
}

/// 1.0's bits of a state. Liveness is not carried: 1.0 has no fast failover.
pub(crate) fn state_to_v1_0(state: PortState) -> u32 {
    let link_down = (state & PortState::LINK_DOWN).bits();
    if state.contains(PortState::BLOCKED) {
        link_down | STP_BLOCK
    } else {
        link_down | state.bits() & STP_MASK
    }
}

/// The features of 1.0's bits.
pub(crate) fn features_from_v1_0(bits: u32) -> PortFeatures {
    let medium = bits >> MEDIUM_V1_0 & MEDIUM_MASK;
    PortFeatures::from_bits_retain(bits & RATES | medium << MEDIUM_V1_3)
}

/// 1.0's bits of the features. Rates above 10 Gb/s are not carried; see [`features_sayable`].
pub(crate) fn features_to_v1_0(features: PortFeatures) -> u32 {
    let medium = features.bits() >> MEDIUM_V1_3 & MEDIUM_MASK;
    features.bits() & RATES | medium << MEDIUM_V1_0
}

/// Whether 1.0 can say all of the features.
pub(crate) fn features_sayable(features: PortFeatures) -> bool {
    features_from_v1_0(features_to_v1_0(features)) == features
}

#[cfg(test)]
mod tests {
    use super::{
        features_from_v1_0, features_sayable, features_to_v1_0, port_from_v1_0, port_to_v1_0,
        state_from_v1_0, state_to_v1_0,
    };
    use openflow::PortNo;
    use openflow::port::{PortFeatures, PortState};

    #[test]
    fn port_numbers_go_both_ways_without_loss() {
        for number in 0..=u16::MAX {
            assert_eq!(port_to_v1_0(port_from_v1_0(number)), Some(number));
        }
        assert_eq!(port_from_v1_0(0xfffd), PortNo::CONTROLLER);
        assert_eq!(port_from_v1_0(0xffff), PortNo::ANY);
        assert_eq!(port_from_v1_0(0xff00), PortNo::MAX);
        for unsayable in [0xff00, 0xffff, 0x1_0000, 0xfffe_ffff, 0xffff_0001, 0xffff_feff] {
            assert_eq!(port_to_v1_0(PortNo(unsayable)), None, "{unsayable:#x}");
        }
    }

    #[test]
    fn states_and_features_keep_their_meaning() {
        assert_eq!(state_from_v1_0(0x301), PortState::LINK_DOWN | PortState::BLOCKED);
        for bits in [0, 1, 0x100, 0x200, 0x301] {
            assert_eq!(state_to_v1_0(state_from_v1_0(bits)), bits);
        }
        assert_eq!(state_to_v1_0(PortState::LIVE), 0);
        assert_eq!(features_from_v1_0(0x280), PortFeatures::COPPER | PortFeatures::AUTONEG);
        for bits in 0..=0xfff {
            assert_eq!(features_to_v1_0(features_from_v1_0(bits)), bits);
        }
        assert!(!features_sayable(PortFeatures::FD_40GB));
        assert!(features_sayable(PortFeatures::FD_10GB | PortFeatures::PAUSE_ASYM));
    }
}
