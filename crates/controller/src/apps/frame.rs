//! Questions of every forwarding app to a frame, and the entries that several of them install.
//!
//! Frames that a bridge keeps to its link (LLDP and the group addresses 01:80:c2:00:00:00 to :0f,
//! IEEE 802.1D clause 7.12.6) are never forwarded, by no app: they would make the neighbours of a
//! switch believe that they are each other's.

use crate::discovery::LLDP;
use crate::switch::Switch;
use openflow::action::MAX_LEN_NO_BUFFER;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::{Action, Field, Instruction, MacAddr, Match, PortNo, TableId};
use packet::header::{be16, chunk, ethernet};

/// The first of the group addresses that a bridge keeps to its link.
const LINK_LOCAL: u64 = 0x0180_c200_0000;
/// Above every entry of an app; discovery's own stands still higher.
const LINK_LOCAL_PRIORITY: u16 = u16::MAX - 2;

/// Whether a bridge keeps a frame to the link where it came in.
pub(super) fn is_kept_to_link(frame: &[u8]) -> bool {
    let is_group = matches!(frame, [0x01, 0x80, 0xc2, 0, 0, 0..=15, ..]);
    is_group || be16(frame, ethernet::ETHER_TYPE) == Some(LLDP)
}

/// Destination and source of a frame that a bridge forwards.
pub(super) fn bridged(frame: &[u8]) -> Option<(MacAddr, MacAddr)> {
    let header = chunk::<{ ethernet::HEADER_LEN }>(frame, 0).filter(|_| !is_kept_to_link(frame))?;
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, ..] = *header;
    Some((MacAddr([d0, d1, d2, d3, d4, d5]), MacAddr([s0, s1, s2, s3, s4, s5])))
}

/// Whether more than one station may have the address.
pub(super) fn is_group(mac: MacAddr) -> bool {
    let [first, ..] = mac.0;
    first & 1 != 0
}

/// An entry that runs actions.
pub(super) fn entry(priority: u16, matching: Match, actions: Vec<Action>) -> FlowMod {
    let instructions =
        if actions.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(actions)] };
    FlowMod { priority, matching, instructions, ..FlowMod::new(FlowModCommand::Add) }
}

/// The whole packet, to the controller.
pub(super) fn to_controller() -> Action {
    Action::Output { port: PortNo::CONTROLLER, max_len: MAX_LEN_NO_BUFFER }
}

/// The table-miss entry of a table: to the controller.
pub(super) fn miss_to_controller(table_id: TableId) -> FlowMod {
    FlowMod { table_id, ..entry(0, Match::any(), vec![to_controller()]) }
}

/// Entries for apps whose other entries forward what they do not know: LLDP comes to the
/// controller, and what else a bridge keeps to its link goes nowhere.
pub(super) fn keep_to_link(sw: &mut Switch) {
    let lldp = Match::any().with(Field::EthType, LLDP.into());
    sw.flow_mod(entry(LINK_LOCAL_PRIORITY + 1, lldp, vec![to_controller()]));
    if sw.version().has_masked_addresses() {
        let mask = 0xffff_ffff_fff0;
        let group = Match::any().with_masked(Field::EthDst, LINK_LOCAL.into(), mask);
        sw.flow_mod(entry(LINK_LOCAL_PRIORITY, group, Vec::new()));
    } else {
        for address in LINK_LOCAL..LINK_LOCAL + 16 {
            let one = Match::any().with(Field::EthDst, address.into());
            sw.flow_mod(entry(LINK_LOCAL_PRIORITY, one, Vec::new()));
        }
    }
}
