//! The hub: every packet goes through the controller and out of all ports but its own.
//!
//! It is the smallest app and the heaviest on the control channel, which is what evaluation E1
//! measures. It must never install an entry that forwards, nor flood what a bridge keeps to its
//! link.

use super::frame::is_kept_to_link;
use crate::app::App;
use crate::switch::Switch;
use openflow::message::PacketIn;

/// The hub.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hub;

impl App for Hub {
    fn switch_ready(&mut self, sw: &mut Switch) {
        sw.clear_flows();
        sw.miss_to_controller();
    }

    fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        if !is_kept_to_link(&packet_in.data) {
            sw.flood(packet_in);
        }
    }
}
