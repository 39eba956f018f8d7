//! Features that a datapath announces, generated from the rows of fields, instructions and actions.
//!
//! Everything announced runs: the actions listed here are those that have an arm in the
//! datapath, the fields those that extraction and rewriting know. No list is kept by hand. The
//! features of tables are in `pipeline`, as a controller may set less.

use openflow::action::ACTIONS;
use openflow::group::{GroupCapabilities, GroupFeatures};
use openflow::message::Capabilities;
use openflow::meter::{MeterFeatures, MeterFlags};
use openflow::{InstructionKind, MessageKind, Version};

use crate::config::DatapathConfig;

/// All wildcard bits of 1.0 (`OFPFW_ALL`): tables match on every field or on none.
pub(crate) const WILDCARDS_1_0: u32 = (1 << 22) - 1;

/// Capabilities for a features reply.
#[must_use]
pub fn capabilities(version: Version) -> Capabilities {
    let common = Capabilities::FLOW_STATS
        | Capabilities::TABLE_STATS
        | Capabilities::PORT_STATS
        | Capabilities::IP_REASM
        | Capabilities::QUEUE_STATS;
    let arp = match version.has_arp_match_capability() {
        true => Capabilities::ARP_MATCH_IP,
        false => Capabilities::empty(),
    };
    if !version.has_groups() {
        return common | arp;
    }
    let has_bundles = MessageKind::BundleControl.number(version).is_some();
    let bundles = if has_bundles { Capabilities::BUNDLES } else { Capabilities::empty() };
    common | arp | Capabilities::GROUP_STATS | bundles
}

/// The actions that run, by a version's numbers: bit n for type n. Experimenter actions, whose
/// number is above every bit, run in neither.
#[must_use]
pub fn action_bits(version: Version) -> u32 {
    let numbers = ACTIONS.iter().filter_map(|row| row.kind.number(version));
    numbers.fold(0, |bits, number| bits | 1_u32.checked_shl(number.into()).unwrap_or(0))
}

/// Whether entries of a table can have the instruction.
pub(crate) fn runs(kind: InstructionKind, has_next: bool) -> bool {
    kind != InstructionKind::Experimenter && (has_next || kind != InstructionKind::GotoTable)
}

/// Features of groups, for a controller of the version.
pub(crate) fn group_features(config: &DatapathConfig, version: Version) -> GroupFeatures {
    GroupFeatures {
        types: 0b1111,
        capabilities: GroupCapabilities::SELECT_WEIGHT
            | GroupCapabilities::SELECT_LIVENESS
            | GroupCapabilities::CHAINING
            | GroupCapabilities::CHAINING_CHECKS,
        max_groups: [config.max_groups; 4],
        actions: [action_bits(version); 4],
    }
}

/// Features of meters: bands drop (1) and DSCP remark (2).
pub(crate) fn meter_features(config: &DatapathConfig) -> MeterFeatures {
    let flags = MeterFlags::KBPS | MeterFlags::PKTPS | MeterFlags::BURST | MeterFlags::STATS;
    MeterFeatures {
        max_meter: config.max_meters,
        band_types: 1 << 1 | 1 << 2,
        capabilities: u32::from(flags.bits()),
        max_bands: config.max_bands,
        max_color: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::action_bits;
    use openflow::{ActionKind, Version};

    #[test]
    fn action_bits_are_the_numbers_of_the_version() {
        for version in [Version::V1_0, Version::V1_3] {
            for number in 0..32 {
                let bit = action_bits(version) >> number & 1;
                let known = ActionKind::from_number(version, number);
                assert_eq!(bit == 1, known.is_some(), "{version}: {number} is {known:?}");
            }
        }
        // `enum ofp_action_type` ends with 11 in 1.0 and with 27 in 1.3. Numbers 28 to 31 are of
        // later versions: an action of theirs that 1.3 is given has its bit by its row.
        assert_eq!(action_bits(Version::V1_0), 0x0000_0fff);
        assert_eq!(action_bits(Version::V1_3) & 0x0fff_ffff, 0x0fff_9801);
    }
}
