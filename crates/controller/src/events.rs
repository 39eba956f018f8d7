//! The events of a controller: one row each, from which `ControllerEvent`, the handlers of
//! [`App`](crate::App) and the bindings to other languages follow.
//!
//! Values only; `watchers` has the queues of those who watch them.

use crate::info::SwitchInfo;
use openflow::flow::FlowRemoved;
use openflow::message::{ControllerRole, ErrorMessage, PacketIn};
use openflow::port::PortStatus;
use openflow::{DatapathId, MacAddr, Message, PortNo, Xid};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Calls the macro `$define` with the row of every event, but for switches that come and go.
///
/// A row of a switch has the handler's name and value (`[xid]`: the handler gets the message's
/// xid too), the variant of [`ControllerEvent`], the OpenFlow message that
/// it comes with, if it does, and the handler in Python: the name and class of its argument, its
/// text. An event of a message needs nothing more. Any other is delivered by who finds it out.
#[macro_export]
macro_rules! app_events {
    ($define:ident) => {
        $define! {
            of_switch {
                /// A packet for the controller.
                fn packet_in(packet_in: PacketIn) => PacketIn of PacketIn,
                    python(pkt: PacketIn) "A packet for the controller.";
                /// A port has come, gone or changed; `Switch::ports` says so already.
                fn port_status(status: PortStatus) => PortStatus of PortStatus,
                    python(status: PortStatus)
                    "A port has come, gone or changed; ``sw.ports`` says so already.";
                /// A flow entry is gone.
                fn flow_removed(removed: FlowRemoved) => FlowRemoved of FlowRemoved,
                    python(removed: FlowRemoved) "A flow entry is gone.";
                /// The switch refuses a message. An app gets the refusals of its own messages, and
                /// of those of a handle whose caller waits for no outcome; a watcher gets all.
                fn error[xid](error: ErrorMessage) => Error of Error,
                    python(error: SwitchError)
                    "The switch refuses a message for whose answer nobody waits.";
                /// This controller's role at the switch is another than before; a switch that has
                /// just become ready has
                /// [`ControllerRole::Equal`](openflow::message::ControllerRole), or in a cluster
                /// master, which is reported. [`RoleChange`] explains what a version lets one know.
                /// Messages that a handler queues when the cluster takes the switch away are not
                /// sent, and `switch_down` follows.
                fn role_changed(change: RoleChange) => RoleChanged,
                    python(change: RoleChange)
                    "This controller has another role at the switch; it begins with equal.";
                /// Any other message: the answers to this app's requests, with all parts of a
                /// multipart answer in one.
                fn message[xid](message: Message) => Message,
                    python(message: Message) "Any other message that nobody asked for.";
            }
            of_network {
                /// A link between two switches has come or gone, as an app reports that discovers
                /// them; every instance of every app gets it.
                fn link(event: LinkEvent) => Link, python {
                    LinkEvent::Up(_) => link_add(link: Link)
                        "A link between two switches was discovered; each direction comes alone.";
                    LinkEvent::Down(_) => link_delete(link: Link) "A link is gone.";
                }
                /// A host has come, moved or gone, as an app reports that discovers them; every
                /// instance of every app gets it.
                fn host(event: HostEvent) => Host, python {
                    HostEvent::Up(_) => host_add(host: Host) "A host was seen for the first time.";
                    HostEvent::Moved { .. } => host_move(host: Host, before: SwitchPort)
                        "A host is at another port than before.";
                    HostEvent::Changed(_) => host_change(host: Host)
                        "A host uses other addresses than before.";
                    HostEvent::Down(_) => host_delete(host: Host)
                        "A host has been silent for an hour, or its port is gone.";
                }
            }
        }
    };
}

/// A port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SwitchPort {
    /// The switch.
    pub dpid: DatapathId,
    /// Its port.
    pub port: PortNo,
}

/// A link between two switches, one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopologyLink {
    /// The port where packets enter it.
    pub from: SwitchPort,
    /// The port where they come out.
    pub to: SwitchPort,
}

/// A change of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// It is there.
    Up(TopologyLink),
    /// It is gone.
    Down(TopologyLink),
}

/// A host and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyHost {
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// The VLAN in which it was seen, if any.
    pub vlan: Option<u16>,
    /// Its IPv4 addresses, as far as it has used them.
    pub ipv4: Vec<Ipv4Addr>,
    /// Its IPv6 addresses, as far as it has used them.
    pub ipv6: Vec<Ipv6Addr>,
    /// The port that it is at.
    pub at: SwitchPort,
}

/// A change of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// It has been seen for the first time.
    Up(TopologyHost),
    /// It is at another port than before.
    Moved {
        /// The host, where it is now.
        host: TopologyHost,
        /// Its port before.
        from: SwitchPort,
    },
    /// It uses other addresses than before.
    Changed(TopologyHost),
    /// It is gone.
    Down(TopologyHost),
}

/// Why a role has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleReason {
    /// The switch says so in answer to an app or a handle of this controller, which has asked for
    /// it or about it (`OFPT_ROLE_REQUEST`).
    Requested,
    /// The cluster has decided who is master of the switch.
    Cluster,
    /// Another controller has asked to be master (`OFPCRR_MASTER_REQUEST` of OpenFlow 1.4).
    MasterRequest,
    /// The switch's configuration has changed (`OFPCRR_CONFIG`).
    Config,
    /// An experimenter's (`OFPCRR_EXPERIMENTER`).
    Experimenter,
    /// One that the specification does not have.
    Unknown(u8),
}

impl From<openflow::message::RoleReason> for RoleReason {
    fn from(reason: openflow::message::RoleReason) -> Self {
        match reason {
            openflow::message::RoleReason::MasterRequest => Self::MasterRequest,
            openflow::message::RoleReason::Config => Self::Config,
            openflow::message::RoleReason::Experimenter => Self::Experimenter,
            openflow::message::RoleReason::Unknown(number) => Self::Unknown(number),
        }
    }
}

/// This controller's role at a switch is another than before (clause 6.3.5).
///
/// A switch of OpenFlow 1.4 sends it unasked (`OFPT_ROLE_STATUS`). With 1.3 a controller that
/// another one has made a slave learns of it when the switch refuses it something:
/// `OFPBRC_IS_SLAVE`, or `OFPRRFC_STALE` for a role. The switch is then asked for the role
/// (`OFPCR_ROLE_NOCHANGE`), and its answer is reported, if it is news. So a controller that sends
/// nothing does not learn that it has become a slave. OpenFlow 1.0 has no roles; there only a
/// cluster changes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleChange {
    /// The role from now on.
    pub role: ControllerRole,
    /// The generation id that the switch has, or by which the cluster has decided.
    pub generation_id: Option<u64>,
    /// Why.
    pub reason: RoleReason,
}

impl RoleChange {
    /// The name of the role in the specification: `equal`, `master` or `slave`.
    #[must_use]
    pub fn role_name(&self) -> &'static str {
        role_name(self.role)
    }
}

/// The name of a role in the specification.
#[must_use]
pub fn role_name(role: ControllerRole) -> &'static str {
    match role {
        ControllerRole::NoChange => "nochange",
        ControllerRole::Equal => "equal",
        ControllerRole::Master => "master",
        ControllerRole::Slave => "slave",
        ControllerRole::Unknown(_) => "unknown",
    }
}

impl RoleReason {
    /// Its name: `requested`, `cluster`, or `master_request`, `config`, `experimenter` or `unknown`
    /// as a switch has sent it.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Cluster => "cluster",
            Self::MasterRequest => "master_request",
            Self::Config => "config",
            Self::Experimenter => "experimenter",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// Defines [`ControllerEvent`] from the rows of [`app_events`].
macro_rules! define_controller_event {
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
        /// An event of a controller, as apps get it, and watchers, and as a handle raises it
        /// ([`crate::Handle::raise`]).
        #[derive(Clone, Debug)]
        pub enum ControllerEvent {
            /// A switch is ready.
            SwitchReady(SwitchInfo),
            /// A switch that was ready is gone.
            SwitchDown(DatapathId),
            $(
                $(#[$doc])*
                $variant {
                    /// The switch.
                    dpid: DatapathId,
                    $(
                        /// The message's xid.
                        $xid: Xid,
                    )?
                    /// The value that the handler gets.
                    $value: $type,
                },
            )*
            $( $(#[$network_doc])* $network_variant($network_type), )*
        }

        impl ControllerEvent {
            /// The switch, of an event that is of one.
            #[must_use]
            pub fn dpid(&self) -> Option<DatapathId> {
                match self {
                    Self::SwitchReady(info) => Some(info.dpid),
                    Self::SwitchDown(dpid) => Some(*dpid),
                    $( Self::$variant { dpid, .. } => Some(*dpid), )*
                    $( Self::$network_variant(_) => None, )*
                }
            }

            /// The name of the handler that gets it.
            #[must_use]
            pub fn handler_name(&self) -> &'static str {
                match self {
                    Self::SwitchReady(_) => "switch_ready",
                    Self::SwitchDown(_) => "switch_down",
                    $( Self::$variant { .. } => stringify!($handler), )*
                    $( Self::$network_variant(_) => stringify!($network_handler), )*
                }
            }

            /// The message's xid; 0 of an event whose handlers do not get it.
            #[must_use]
            pub fn xid(&self) -> Xid {
                match self {
                    Self::SwitchReady(_) | Self::SwitchDown(_) => Xid(0),
                    $( Self::$variant { $($xid,)? .. } => [$(*$xid,)? Xid(0)][0], )*
                    $( Self::$network_variant(_) => Xid(0), )*
                }
            }

            /// The event that a switch's message is.
            #[must_use]
            pub fn of_message(dpid: DatapathId, xid: Xid, message: Message) -> Self {
                match message {
                    $( $( Message::$message(value) => Self::$handler(dpid, xid, value), )? )*
                    message => Self::message(dpid, xid, message),
                }
            }

            /// The message of an event that comes with one.
            ///
            /// # Errors
            /// The event itself, if it comes with none.
            pub fn into_message(self) -> Result<Message, Box<Self>> {
                match self {
                    Self::Message { message, .. } => Ok(message),
                    $( $( Self::$variant { $value, .. } => Ok(Message::$message($value)), )? )*
                    other => Err(Box::new(other)),
                }
            }

            $(
                /// The event of the handler with this name; `xid` is that of its message.
                #[must_use]
                pub fn $handler(dpid: DatapathId, xid: Xid, $value: $type) -> Self {
                    let _ = xid;
                    Self::$variant { dpid, $($xid: xid,)? $value }
                }
            )*
        }
    };
}

app_events!(define_controller_event);
