//! The learning switch: learns by which port an address is reached, and installs flow entries for
//! pairs of addresses it knows, so that only the first packet of a pair comes to the controller.
//!
//! Entries match ingress port, source and destination; an address that shows up at another port is
//! a miss and so is learned anew. It looks at no VLAN tag: an address has one place on a switch.
//! Apps that judge packets first (firewall, QoS) have it in a later table. It must never learn a
//! group address nor forward what a bridge keeps to its link (IEEE 802.1D).

use super::addresses::{AddressTable, Learned};
use super::frame::{bridged, entry, is_group, miss_to_controller};
use crate::app::App;
use crate::switch::{Switch, delete_all};
use openflow::flow::FlowMod;
use openflow::message::PacketIn;
use openflow::port::{PortReason, PortState, PortStatus};
use openflow::{Action, DatapathId, Field, MacAddr, Match, PortNo, TableId};
use std::collections::HashMap;

/// Seconds without a packet after which an entry goes.
const IDLE_TIMEOUT_S: u16 = 60;
/// Above the table-miss entry, below whatever a person adds with the default priority.
const PRIORITY: u16 = 1;

/// The learning switch, for any number of switches.
#[derive(Clone, Debug, Default)]
pub struct LearningSwitch {
    table: TableId,
    places: HashMap<DatapathId, AddressTable>,
}

/// The destination of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// Back where it came from, or a bridge keeps it to its link.
    Nowhere,
    /// To all ports, as nobody knows the place of the address.
    Everywhere,
    /// To one port; packets with this match will go there too.
    Port(PortNo, Match),
}

impl LearningSwitch {
    /// The same with its entries in another table than the first; entries of another app send
    /// packets there.
    #[must_use]
    pub fn in_table(table: TableId) -> Self {
        Self { table, ..Self::default() }
    }

    /// Learns where a packet's source is, and says where it is to go.
    pub(super) fn destination(&mut self, sw: &mut Switch, packet_in: &PacketIn) -> Destination {
        let (Some((dst, src)), Some(in_port)) = (bridged(&packet_in.data), packet_in.in_port())
        else {
            return Destination::Nowhere;
        };
        let places = self.places.entry(sw.dpid()).or_default();
        if !is_group(src)
            && let Learned::Moved(_) = places.learn(src, in_port, sw.now())
        {
            let to_old_place = Match::any().with(Field::EthDst, src.to_u64().into());
            sw.flow_mod(FlowMod { matching: to_old_place, ..delete(self.table) });
        }
        match places.port_of(dst) {
            Some(port) if port == in_port => Destination::Nowhere,
            Some(port) => Destination::Port(port, pair(in_port, src, dst)),
            None => Destination::Everywhere,
        }
    }

    /// By which port a station is reached, if it has been heard.
    pub(super) fn port_of(&self, dpid: DatapathId, mac: MacAddr) -> Option<PortNo> {
        self.places.get(&dpid)?.port_of(mac)
    }

    /// Sends a packet to a port, and those like it by an entry.
    pub(super) fn forward(&self, sw: &mut Switch, packet_in: &PacketIn, port: PortNo, pair: Match) {
        let entry = entry(PRIORITY, pair, vec![Action::output(port)]);
        let (table_id, idle_timeout_s) = (self.table, IDLE_TIMEOUT_S);
        sw.flow_mod(FlowMod { table_id, idle_timeout_s, ..entry });
        sw.forward(packet_in, port);
    }
}

/// Deletes all entries, to be narrowed; other tables than the first are not the app's alone.
fn delete(table: TableId) -> FlowMod {
    let table_id = if table == TableId::default() { TableId::ALL } else { table };
    FlowMod { table_id, ..delete_all() }
}

impl App for LearningSwitch {
    fn switch_ready(&mut self, sw: &mut Switch) {
        self.places.remove(&sw.dpid());
        sw.clear_flows();
        sw.miss_to_controller();
        if self.table != TableId::default() {
            sw.flow_mod(miss_to_controller(self.table));
        }
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        self.places.remove(&dpid);
    }

    fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        match self.destination(sw, packet_in) {
            Destination::Nowhere => {}
            Destination::Everywhere => sw.flood(packet_in),
            Destination::Port(port, pair) => self.forward(sw, packet_in, port, pair),
        }
    }

    fn port_status(&mut self, sw: &mut Switch, status: &PortStatus) {
        let port = status.desc.port_no;
        if status.reason == PortReason::Delete || status.desc.state.contains(PortState::LINK_DOWN) {
            self.places.entry(sw.dpid()).or_default().forget_port(port);
            sw.flow_mod(FlowMod { out_port: port, ..delete(self.table) });
        }
    }
}

/// Packets of one pair of stations that come in by a port.
pub(super) fn pair(in_port: PortNo, src: MacAddr, dst: MacAddr) -> Match {
    Match::any()
        .with(Field::InPort, in_port.0.into())
        .with(Field::EthSrc, src.to_u64().into())
        .with(Field::EthDst, dst.to_u64().into())
}
