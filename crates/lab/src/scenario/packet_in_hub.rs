//! Evaluation E1: what does it cost when every packet goes through the controller?
//!
//! Two hosts, one switch, one controller. With the hub every packet becomes a packet-in and a
//! packet-out FLOOD; the learning switch beside it installs flow entries. Link rates, control-link
//! rate, switch and controller are parameters.

use super::HostScenario;
use crate::controller::AppKind;
use crate::method::{self, Method};

/// The scenario.
pub(super) struct PacketInHub;

impl HostScenario for PacketInHub {
    fn id(&self) -> &'static str {
        "packet-in-hub"
    }

    fn question(&self) -> &'static str {
        "What does it cost when every packet goes through the controller (E1: packet-in, \
         packet-out FLOOD), beside a learning switch that installs flow entries?"
    }

    fn apps(&self) -> &'static [AppKind] {
        &[AppKind::Hub, AppKind::LearningSwitch]
    }

    fn methods(&self) -> &'static [&'static dyn Method] {
        method::HOSTS
    }
}
