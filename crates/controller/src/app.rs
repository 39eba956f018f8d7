//! What an application is: a value with handlers, all empty by definition.
//!
//! Handlers get a [`Switch`] and queue messages on it; nothing is sent before the handler returns.
//! So a handler is a function from an event to messages, and its test needs no network: see
//! [`Switch::new`] and [`Switch::take_messages`]. A handler must never block, since it runs on the
//! thread that serves all switches.

use crate::switch::Switch;
use openflow::flow::FlowRemoved;
use openflow::message::{ErrorMessage, PacketIn};
use openflow::port::PortStatus;
use openflow::{DatapathId, Message, Xid};

/// A controller application.
///
/// The hub, whole:
///
/// ```
/// use controller::{App, PacketIn, Switch};
///
/// struct Hub;
/// impl App for Hub {
///     fn switch_ready(&mut self, sw: &mut Switch) {
///         sw.clear_flows();
///         sw.miss_to_controller();
///     }
///     fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
///         sw.flood(packet_in);
///     }
/// }
/// ```
///
/// Events of one switch come in the order in which the switch sent them; between two switches there
/// is no order.
pub trait App {
    /// The switch has sent its features and ports.
    fn switch_ready(&mut self, _sw: &mut Switch) {}
    /// The connection of a switch that was ready is over. Nothing can be sent to it any more.
    fn switch_down(&mut self, _dpid: DatapathId) {}
    /// A packet for the controller.
    fn packet_in(&mut self, _sw: &mut Switch, _packet_in: &PacketIn) {}
    /// A port has come, gone or changed; [`Switch::ports`] says so already.
    fn port_status(&mut self, _sw: &mut Switch, _status: &PortStatus) {}
    /// A flow entry is gone.
    fn flow_removed(&mut self, _sw: &mut Switch, _removed: &FlowRemoved) {}
    /// The switch refuses the message of this xid.
    fn error(&mut self, _sw: &mut Switch, _xid: Xid, _error: &ErrorMessage) {}
    /// Any other message: the answers to requests, with all parts of a multipart answer in one.
    fn message(&mut self, _sw: &mut Switch, _xid: Xid, _message: &Message) {}
    /// About once a second for every switch that is ready; [`Switch::now`] is the time.
    fn tick(&mut self, _sw: &mut Switch) {}
}
