//! The repeater: one flow entry floods every packet, so that nothing comes to the controller.
//!
//! The hub's work by packets this does by an entry; the two are the ends between which every
//! other app lies. It must never repeat what a bridge keeps to its link.

use super::frame::{entry, keep_to_link};
use crate::app::App;
use crate::switch::Switch;
use openflow::{Action, Match, PortNo};

/// Above the table-miss entry.
const PRIORITY: u16 = 1;

/// The repeater.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repeater;

impl App for Repeater {
    fn switch_ready(&mut self, sw: &mut Switch) {
        sw.clear_flows();
        keep_to_link(sw);
        sw.flow_mod(entry(PRIORITY, Match::any(), vec![Action::output(PortNo::FLOOD)]));
    }
}
