//! Open vSwitch's `controller` action: a packet for some of the controllers, with a reason and data
//! of their own.

use crate::id::MeterId;
use crate::packet_in_reason::PacketInReason;

/// The arguments of a `controller` action (Nicira's `NXAST_CONTROLLER2`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToController {
    /// Bytes for a packet-in, as those of an output.
    pub max_len: u16,
    /// The controllers that get it: those that have chosen this number. 0 is that of all others.
    pub controller_id: u16,
    /// The reason that the packet-in names.
    pub reason: PacketInReason,
    /// Data for the controller, which only a packet-in in properties has room for.
    pub userdata: Vec<u8>,
    /// Whether the packet waits for the controller to resume it.
    pub pauses: bool,
    /// The meter that bounds these packet-ins.
    pub meter: Option<MeterId>,
}

impl Default for ToController {
    fn default() -> Self {
        Self {
            // All of the packet.
            max_len: u16::MAX,
            controller_id: 0,
            reason: PacketInReason::Action,
            userdata: Vec::new(),
            pauses: false,
            meter: None,
        }
    }
}
