//! An application: a value with handlers, all empty by definition.
//!
//! Handlers get a [`Switch`] and queue messages on it; nothing is sent before the handler returns.
//! So a handler is a function from an event to messages, and its test needs no network: see
//! [`Switch::new`], [`Switch::take_messages`] and [`crate::testing`]. A handler must never block,
//! since it runs on the thread that serves all switches of its shard.

use crate::events::{ControllerEvent, HostEvent, LinkEvent, RoleChange};
use crate::handle::Handle;
use crate::switch::{Switch, TimerId};
use openflow::flow::FlowRemoved;
use openflow::message::{ErrorMessage, PacketIn};
use openflow::port::PortStatus;
use openflow::{DatapathId, Message, Xid};

/// Defines the trait [`App`], whose handlers of events are the rows of `app_events`.
macro_rules! define_app {
    (
        of_switch { $(
            $(#[$doc:meta])*
            fn $handler:ident $([$xid:ident])? ($value:ident: $type:ty) => $variant:ident
                $(of $message:ident)?, python $python:tt $python_doc:literal;
        )* }
        of_network { $(
            $(#[$network_doc:meta])*
            fn $network_handler:ident($network_value:ident: $network_type:ty)
                => $network_variant:ident, python $network_python:tt
        )* }
    ) => {
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
        /// Events of one switch come in the order in which the switch sent them; between two
        /// switches there is no order. Of several apps the first in the list sees an event first,
        /// and [`Switch::stop`] keeps it from those after it. An answer to a request, an error
        /// about a message and a timer go to the app that asked, sent or set it, and to no other.
        ///
        /// A controller with several shards has an instance of each app for each shard. An app with
        /// a view of the whole network shares it between its instances: its factory (see
        /// [`crate::AppList`]) gives each the same `Arc`.
        pub trait App: Send {
            /// The app's name in the log: that of its type, unless it has another.
            fn name(&self) -> &str {
                crate::handler_progress::short_name(std::any::type_name::<Self>())
            }
            /// The controller begins; once for each instance. The handle is worth keeping: it
            /// reaches any switch from any thread.
            fn started(&mut self, _handle: &Handle) {}
            /// The switch has sent its features and ports.
            fn switch_ready(&mut self, _sw: &mut Switch) {}
            /// The connection of a switch that was ready is over. Nothing can be sent to it any
            /// more.
            fn switch_down(&mut self, _dpid: DatapathId) {}
            $(
                $(#[$doc])*
                fn $handler(&mut self, _sw: &mut Switch, $($xid: Xid,)? $value: &$type) {
                    let _ = ($($xid,)? $value);
                }
            )*
            /// About once a second for every switch that is ready; [`Switch::now`] is the time.
            fn tick(&mut self, _sw: &mut Switch) {}
            /// The time of a timer that this app has set by [`Switch::set_timer`] has come.
            fn timer(&mut self, _sw: &mut Switch, _timer: TimerId) {}
            $(
                $(#[$network_doc])*
                fn $network_handler(&mut self, $network_value: &$network_type) {
                    let _ = $network_value;
                }
            )*
            /// Gets every event, with its switch while that is ready, and calls the handler that
            /// has its name. An app that treats all events alike, such as a bridge to another
            /// language, has this in place of the handlers.
            #[inline]
            fn event(&mut self, sw: Option<&mut Switch>, event: &ControllerEvent) {
                match (event, sw) {
                    (ControllerEvent::SwitchReady(_), Some(sw)) => self.switch_ready(sw),
                    (ControllerEvent::SwitchDown(dpid), _) => self.switch_down(*dpid),
                    $(
                        (ControllerEvent::$variant { $($xid,)? $value, .. }, Some(sw)) => {
                            self.$handler(sw, $(*$xid,)? $value);
                        }
                    )*
                    $(
                        (ControllerEvent::$network_variant($network_value), _) => {
                            self.$network_handler($network_value);
                        }
                    )*
                    (_, None) => {}
                }
            }
        }
    };
}

crate::app_events!(define_app);
