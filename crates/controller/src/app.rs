//! What an application is: a value with handlers, all empty by definition.
//!
//! Handlers get a [`Switch`] and queue messages on it; nothing is sent before the handler returns.
//! So a handler is a function from an event to messages, and its test needs no network: see
//! [`Switch::new`], [`Switch::take_messages`] and [`crate::testing`]. A handler must never block,
//! since it runs on the thread that serves all switches of its shard.

use crate::events::{HostEvent, LinkEvent, RoleChange};
use crate::handle::Handle;
use crate::switch::{Switch, TimerId};
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
/// is no order. Of several apps the first in the list sees an event first, and [`Switch::stop`]
/// keeps it from those after it. An answer to a request, an error about a message and a timer go to
/// the app that asked, sent or set it, and to no other.
///
/// A controller with several shards has an instance of each app for each shard. An app with a view
/// of the whole network shares it between its instances: its factory (see [`crate::AppList`]) gives
/// each the same `Arc`.
pub trait App: Send {
    /// What it is called in the log: the name of its type, unless it says otherwise.
    fn name(&self) -> &str {
        crate::beat::short_name(std::any::type_name::<Self>())
    }
    /// The controller begins; once for each instance. The handle is worth keeping: it reaches any
    /// switch from any thread.
    fn started(&mut self, _handle: &Handle) {}
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
    /// The switch refuses the message of this xid, which this app has sent, or a handle whose
    /// caller waits for no outcome.
    fn error(&mut self, _sw: &mut Switch, _xid: Xid, _error: &ErrorMessage) {}
    /// This controller's role at the switch is another than before; a switch that has just become
    /// ready has [`ControllerRole::Equal`](openflow::message::ControllerRole), or in a cluster
    /// master, which is told. [`RoleChange`] says what a version lets one know. What a handler
    /// queues when the cluster takes the switch away is not sent, and `switch_down` follows.
    fn role_changed(&mut self, _sw: &mut Switch, _change: &RoleChange) {}
    /// Any other message: the answers to this app's requests, with all parts of a multipart answer
    /// in one.
    fn message(&mut self, _sw: &mut Switch, _xid: Xid, _message: &Message) {}
    /// About once a second for every switch that is ready; [`Switch::now`] is the time.
    fn tick(&mut self, _sw: &mut Switch) {}
    /// The time of a timer that this app has set by [`Switch::set_timer`] has come.
    fn timer(&mut self, _sw: &mut Switch, _timer: TimerId) {}
    /// A link between two switches has come or gone, as an app says that discovers them; told to
    /// every instance of every app.
    fn link(&mut self, _event: &LinkEvent) {}
    /// A host has come, moved or gone, as an app says that discovers them; told to every instance
    /// of every app.
    fn host(&mut self, _event: &HostEvent) {}
}
