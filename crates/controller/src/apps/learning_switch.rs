//! The learning switch: learns by which port an address is reached, and installs flow entries for
//! pairs of addresses it knows, so that only the first packet of a pair comes to the controller.
//!
//! Entries match ingress port, source and destination; an address that shows up at another port is
//! a miss and so is learned anew. It looks at no VLAN tag: an address has one place on a switch.
//! It must never learn a group address nor forward what a bridge keeps to its link (IEEE 802.1D).

use crate::app::App;
use crate::switch::{Switch, delete_all};
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::message::PacketIn;
use openflow::port::{PortReason, PortState, PortStatus};
use openflow::{Action, DatapathId, Field, Instruction, MacAddr, Match, PortNo};
use packet::header::{be16, chunk, ethernet};
use std::collections::HashMap;

/// Seconds without a packet after which an entry goes.
const IDLE_TIMEOUT_S: u16 = 60;
/// Above the table-miss entry, below whatever a person adds with the default priority.
const PRIORITY: u16 = 1;
/// Addresses kept per switch; a flood of made-up addresses must not fill the memory.
const ADDRESSES_MAX: usize = 1 << 17;
/// EtherType of LLDP.
const LLDP: u16 = 0x88cc;

/// The learning switch, for any number of switches.
#[derive(Clone, Debug, Default)]
pub struct LearningSwitch {
    places: HashMap<DatapathId, HashMap<MacAddr, PortNo>>,
}

impl App for LearningSwitch {
    fn switch_ready(&mut self, sw: &mut Switch) {
        self.places.remove(&sw.dpid());
        sw.clear_flows();
        sw.miss_to_controller();
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        self.places.remove(&dpid);
    }

    fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        let (Some((dst, src)), Some(in_port)) = (addresses(packet_in), packet_in.in_port()) else {
            return;
        };
        let places = self.places.entry(sw.dpid()).or_default();
        if !is_group(src) && (places.len() < ADDRESSES_MAX || places.contains_key(&src)) {
            let before = places.insert(src, in_port);
            if before.is_some_and(|port| port != in_port) {
                let to_old_place = Match::any().with(Field::EthDst, src.to_u64().into());
                sw.flow_mod(FlowMod { matching: to_old_place, ..delete_all() });
            }
        }
        match places.get(&dst) {
            Some(&port) if port == in_port => {}
            Some(&port) => {
                sw.flow_mod(entry(in_port, src, dst, port));
                sw.forward(packet_in, port);
            }
            None => sw.flood(packet_in),
        }
    }

    fn port_status(&mut self, sw: &mut Switch, status: &PortStatus) {
        let port = status.desc.port_no;
        if status.reason == PortReason::Delete || status.desc.state.contains(PortState::LINK_DOWN) {
            self.places.entry(sw.dpid()).or_default().retain(|_, place| *place != port);
            sw.flow_mod(FlowMod { out_port: port, ..delete_all() });
        }
    }
}

/// Destination and source of a packet that a bridge forwards.
fn addresses(packet_in: &PacketIn) -> Option<(MacAddr, MacAddr)> {
    let dst = *chunk(&packet_in.data, ethernet::DST.start)?;
    let src = *chunk(&packet_in.data, ethernet::SRC.start)?;
    let ether_type = be16(&packet_in.data, ethernet::ETHER_TYPE)?;
    let is_kept_to_link = matches!(dst, [0x01, 0x80, 0xc2, 0, 0, 0..=15]);
    (!is_kept_to_link && ether_type != LLDP).then_some((MacAddr(dst), MacAddr(src)))
}

/// Whether more than one station may have the address.
fn is_group(mac: MacAddr) -> bool {
    let [first, ..] = mac.0;
    first & 1 != 0
}

fn entry(in_port: PortNo, src: MacAddr, dst: MacAddr, out: PortNo) -> FlowMod {
    let matching = Match::any()
        .with(Field::InPort, in_port.0.into())
        .with(Field::EthSrc, src.to_u64().into())
        .with(Field::EthDst, dst.to_u64().into());
    FlowMod {
        idle_timeout_s: IDLE_TIMEOUT_S,
        priority: PRIORITY,
        matching,
        instructions: vec![Instruction::ApplyActions(vec![Action::output(out)])],
        ..FlowMod::new(FlowModCommand::Add)
    }
}
