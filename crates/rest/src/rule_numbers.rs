//! The numbers that the firewall and QoS give to rules: the last one of each VLAN of each switch.

use openflow::DatapathId;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

/// The VLAN of rules that are for packets of any.
pub(crate) const NO_VLAN: u16 = 0;

/// The last number of a rule that each VLAN of a switch was given.
#[derive(Debug, Default)]
pub(crate) struct RuleNumbers {
    last: Mutex<HashMap<DatapathId, BTreeMap<u16, u32>>>,
}

impl RuleNumbers {
    /// The next number for a rule of a VLAN: above those given, and above those in the switch.
    pub(crate) fn next(&self, dpid: DatapathId, vlan: u16, in_switch: u32) -> u32 {
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let number = last.entry(dpid).or_default().entry(vlan).or_default();
        // Zero is no number of a rule.
        *number = (*number).max(in_switch).checked_add(1).unwrap_or(1);
        *number
    }

    /// The VLANs that have had rules; that of no tag is always one of them.
    pub(crate) fn vlans(&self, dpid: DatapathId) -> Vec<u16> {
        let last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let known = last.get(&dpid).into_iter().flat_map(BTreeMap::keys).copied();
        let mut vlans: Vec<u16> = known.chain([NO_VLAN]).collect();
        vlans.sort_unstable();
        vlans.dedup();
        vlans
    }
}

#[cfg(test)]
mod tests {
    use super::RuleNumbers;
    use openflow::DatapathId;

    #[test]
    fn numbers_go_up_and_over_those_of_the_switch() {
        let (numbers, dpid) = (RuleNumbers::default(), DatapathId(1));
        assert_eq!(numbers.next(dpid, 0, 0), 1);
        assert_eq!(numbers.next(dpid, 0, 0), 2);
        assert_eq!(numbers.next(dpid, 0, 7), 8);
        assert_eq!(numbers.next(dpid, 5, 0), 1);
        assert_eq!(numbers.next(dpid, 6, u32::MAX), 1);
        assert_eq!(numbers.vlans(dpid), [0, 5, 6]);
        assert_eq!(numbers.vlans(DatapathId(2)), [0]);
    }
}
