//! The learning switch in two tables: table 0 knows sources, table 1 knows destinations.
//!
//! With n addresses there are 2 n entries, where the learning switch in one table has one for every
//! pair that talks. The switch itself forwards the first packet while a copy of it goes to the
//! controller. Both entries of an address have hard timeouts, that of the source half as long: an
//! address that sends is learned again before its destination entry goes. OpenFlow 1.0 has one
//! table; a switch that speaks it is told so in the log and left without entries.

use super::addresses::{AddressTable, Learned};
use super::frame::{bridged, entry, is_group, keep_to_link, to_controller};
use super::log::needs;
use crate::app::App;
use crate::switch::{Switch, delete_all};
use crate::topology::is_up;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::message::PacketIn;
use openflow::port::{PortReason, PortStatus};
use openflow::{Action, DatapathId, Field, Instruction, MacAddr, Match, PortNo, TableId};
use std::collections::HashMap;

const SOURCES: TableId = TableId(0);
const DESTINATIONS: TableId = TableId(1);
/// Above the table-miss entries.
const PRIORITY: u16 = 1;
/// Seconds after which a source is learned again.
const SOURCE_TIMEOUT_S: u16 = 150;
/// Seconds after which a destination is forgotten.
const DESTINATION_TIMEOUT_S: u16 = 2 * SOURCE_TIMEOUT_S;

/// The learning switch in two tables.
#[derive(Clone, Debug, Default)]
pub struct MultiTableSwitch {
    places: HashMap<DatapathId, AddressTable>,
}

impl App for MultiTableSwitch {
    fn switch_ready(&mut self, sw: &mut Switch) {
        self.places.remove(&sw.dpid());
        if !sw.version().has_pipeline() {
            return needs(sw, "multi-table-switch", "two flow tables (OpenFlow 1.1)");
        }
        self.places.insert(sw.dpid(), AddressTable::default());
        sw.clear_flows();
        keep_to_link(sw);
        let mut source_miss = entry(0, Match::any(), vec![to_controller()]);
        source_miss.instructions.push(Instruction::GotoTable(DESTINATIONS));
        sw.flow_mod(source_miss);
        let flood = entry(0, Match::any(), vec![Action::output(PortNo::FLOOD)]);
        sw.flow_mod(FlowMod { table_id: DESTINATIONS, ..flood });
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        self.places.remove(&dpid);
    }

    fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        let Some(places) = self.places.get_mut(&sw.dpid()) else { return };
        let (Some((_, src)), Some(in_port)) = (bridged(&packet_in.data), packet_in.in_port())
        else {
            return;
        };
        if is_group(src) {
            return;
        }
        match places.learn(src, in_port, sw.now()) {
            Learned::New | Learned::Same => {}
            Learned::Moved(before) => {
                let command = FlowModCommand::DeleteStrict;
                sw.flow_mod(FlowMod { command, ..source_entry(before, src) });
            }
            Learned::Refused => return,
        }
        sw.flow_mod(source_entry(in_port, src));
        let to_source = Match::any().with(Field::EthDst, src.to_u64().into());
        sw.flow_mod(FlowMod {
            table_id: DESTINATIONS,
            hard_timeout_s: DESTINATION_TIMEOUT_S,
            ..entry(PRIORITY, to_source, vec![Action::output(in_port)])
        });
    }

    fn port_status(&mut self, sw: &mut Switch, status: &PortStatus) {
        let port = status.desc.port_no;
        let is_gone = status.reason == PortReason::Delete || !is_up(&status.desc);
        if let Some(places) = self.places.get_mut(&sw.dpid()).filter(|_| is_gone) {
            places.forget_port(port);
            let from_port = Match::any().with(Field::InPort, port.0.into());
            // The table-miss entry is not narrow enough to be among these.
            sw.flow_mod(FlowMod { table_id: SOURCES, matching: from_port, ..delete_all() });
            sw.flow_mod(FlowMod { table_id: DESTINATIONS, out_port: port, ..delete_all() });
        }
    }
}

/// Packets of a known source go on to the destinations.
fn source_entry(in_port: PortNo, src: MacAddr) -> FlowMod {
    let known =
        Match::any().with(Field::InPort, in_port.0.into()).with(Field::EthSrc, src.to_u64().into());
    let mut entry = entry(PRIORITY, known, Vec::new());
    entry.hard_timeout_s = SOURCE_TIMEOUT_S;
    entry.instructions.push(Instruction::GotoTable(DESTINATIONS));
    entry
}
