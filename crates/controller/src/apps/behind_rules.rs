//! The learning switch behind an app whose rules judge packets first.
//!
//! If a switch has several tables, the rules stand in the first and forwarding in the next, so
//! both are entries of the switch. OpenFlow 1.0 has one table: there the app judges the first
//! packet of each flow and asks for its destination. This is the one place that knows which of the
//! two a switch has; an app must never choose by itself.

use super::learning_switch::{Destination, LearningSwitch};
use crate::app::App;
use crate::switch::Switch;
use openflow::message::PacketIn;
use openflow::port::PortStatus;
use openflow::{DatapathId, TableId};

/// The table for packets that the rules let through.
pub(super) const FORWARDING: TableId = TableId(1);

/// See the module.
#[derive(Debug)]
pub(super) struct BehindRules {
    later_table: LearningSwitch,
    one_table: LearningSwitch,
}

impl Default for BehindRules {
    fn default() -> Self {
        let later_table = LearningSwitch::in_table(FORWARDING);
        Self { later_table, one_table: LearningSwitch::default() }
    }
}

impl BehindRules {
    /// The one that a switch has.
    fn of(&mut self, sw: &Switch) -> &mut LearningSwitch {
        if sw.version().has_pipeline() { &mut self.later_table } else { &mut self.one_table }
    }

    /// Learns where a packet's source is, and says where it is to go.
    pub(super) fn destination(&mut self, sw: &mut Switch, packet_in: &PacketIn) -> Destination {
        self.of(sw).destination(sw, packet_in)
    }

    pub(super) fn switch_ready(&mut self, sw: &mut Switch) {
        self.of(sw).switch_ready(sw);
    }

    pub(super) fn switch_down(&mut self, dpid: DatapathId) {
        self.later_table.switch_down(dpid);
        self.one_table.switch_down(dpid);
    }

    pub(super) fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        self.of(sw).packet_in(sw, packet_in);
    }

    pub(super) fn port_status(&mut self, sw: &mut Switch, status: &PortStatus) {
        self.of(sw).port_status(sw, status);
    }
}
