//! The events of a controller as values: what discovery says of the network, and what anyone may
//! watch from another thread.
//!
//! Values only; how watchers get them stands in `watchers`.

use crate::shared::SwitchInfo;
use openflow::flow::FlowRemoved;
use openflow::message::{ControllerRole, ErrorMessage, PacketIn};
use openflow::port::PortStatus;
use openflow::{DatapathId, MacAddr, Message, PortNo, Xid};
use std::net::{Ipv4Addr, Ipv6Addr};

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
    /// Where packets enter it.
    pub from: SwitchPort,
    /// Where they come out.
    pub to: SwitchPort,
}

/// What has happened to a link.
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
    /// Where it is.
    pub at: SwitchPort,
}

/// What has happened to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// It has been seen for the first time.
    Up(TopologyHost),
    /// It is at another port than before.
    Moved {
        /// The host, where it is now.
        host: TopologyHost,
        /// Where it was.
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
    /// Another controller has asked to be master: what `OFPCRR_MASTER_REQUEST` is in OpenFlow 1.4.
    MasterRequest,
}

/// This controller's role at a switch is another than before (clause 6.3.5).
///
/// `OFPT_ROLE_STATUS`, by which a switch says so unasked, begins with OpenFlow 1.4. With 1.3 a
/// controller that another one has made a slave learns of it when the switch refuses it something:
/// `OFPBRC_IS_SLAVE`, or `OFPRRFC_STALE` for a role. The switch is then asked for the role
/// (`OFPCR_ROLE_NOCHANGE`), and what it says is told, if it is news. So a controller that sends
/// nothing is not told that it has become a slave. OpenFlow 1.0 has no roles; there only a cluster
/// changes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleChange {
    /// The switch.
    pub dpid: DatapathId,
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
        match self.role {
            ControllerRole::NoChange => "nochange",
            ControllerRole::Equal => "equal",
            ControllerRole::Master => "master",
            ControllerRole::Slave => "slave",
            ControllerRole::Unknown(_) => "unknown",
        }
    }
}

impl RoleReason {
    /// Its name: `requested`, `cluster` or `master_request`.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Cluster => "cluster",
            Self::MasterRequest => "master_request",
        }
    }
}

/// An event of a controller, for whoever watches it or raises one ([`crate::Handle::raise`]).
#[derive(Clone, Debug)]
pub enum ControllerEvent {
    /// A switch is ready.
    SwitchReady(SwitchInfo),
    /// A switch that was ready is gone.
    SwitchDown(DatapathId),
    /// A packet for the controller.
    PacketIn {
        /// The switch.
        dpid: DatapathId,
        /// The packet.
        packet_in: PacketIn,
    },
    /// A port has come, gone or changed.
    PortStatus {
        /// The switch.
        dpid: DatapathId,
        /// What has happened.
        status: PortStatus,
    },
    /// A flow entry is gone.
    FlowRemoved {
        /// The switch.
        dpid: DatapathId,
        /// The entry.
        removed: FlowRemoved,
    },
    /// A switch refuses a message, whoever sent it.
    Error {
        /// The switch.
        dpid: DatapathId,
        /// The message's xid.
        xid: Xid,
        /// The error.
        error: ErrorMessage,
    },
    /// This controller's role at a switch is another than before.
    RoleChanged(RoleChange),
    /// An answer to a request of an app, or another message.
    Message {
        /// The switch.
        dpid: DatapathId,
        /// The message's xid.
        xid: Xid,
        /// The message.
        message: Message,
    },
    /// A link has come or gone.
    Link(LinkEvent),
    /// A host has come, moved or gone.
    Host(HostEvent),
}
