//! Services that the endpoints share: the controller's switches and the map of its network.

use crate::app_routes::AppRoutes;
use crate::datapath::ServedSwitches;
use crate::events::{EventHistory, NetworkEvents};
use crate::rule_numbers::RuleNumbers;
use controller::apps::ManagedRouters;
use openflow::{DatapathId, MacAddr, PortNo};
use serde_json::Value;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// A port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkEnd {
    /// The switch.
    pub dpid: DatapathId,
    /// Its port.
    pub port: PortNo,
}

/// A host that was seen at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenHost {
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Its IPv4 addresses.
    pub ipv4: Vec<Ipv4Addr>,
    /// Its IPv6 addresses.
    pub ipv6: Vec<Ipv6Addr>,
    /// Its port.
    pub place: LinkEnd,
}

/// The network as discovery knows it.
pub trait NetworkMap: Send + Sync + 'static {
    /// Links, each in one direction: from, to.
    fn links(&self) -> Vec<(LinkEnd, LinkEnd)>;
    /// Hosts.
    fn hosts(&self) -> Vec<SeenHost>;
}

/// The network that is served.
pub struct RestNetwork {
    /// The switches.
    pub datapaths: Arc<dyn ServedSwitches>,
    /// The map, when something discovers the network.
    pub map: Option<Arc<dyn NetworkMap>>,
    /// The events, for the page, when there is a source of them.
    pub events: Option<Box<dyn NetworkEvents>>,
    /// The routers, when the controller has the app that serves them.
    pub routers: Option<Arc<ManagedRouters>>,
    /// The apps that have endpoints of their own.
    pub apps: Option<Arc<dyn AppRoutes>>,
}

/// Services that the endpoints share.
pub(crate) struct Services {
    /// The switches.
    pub(crate) datapaths: Arc<dyn ServedSwitches>,
    /// The map, when something discovers the network.
    pub(crate) map: Option<Arc<dyn NetworkMap>>,
    /// The events, when there is a source of them.
    pub(crate) events: Option<Arc<EventHistory>>,
    /// The routers, when the controller has them.
    pub(crate) routers: Option<Arc<ManagedRouters>>,
    /// The apps that have endpoints of their own.
    pub(crate) apps: Option<Arc<dyn AppRoutes>>,
    /// Held during a change of a router, so that changes come one after the other.
    pub(crate) router_turn: tokio::sync::Mutex<()>,
    /// The OpenAPI document.
    pub(crate) document: Arc<Value>,
    /// The numbers of the firewall's rules.
    pub(crate) firewall: RuleNumbers,
    /// The numbers of the rules of QoS.
    pub(crate) qos: RuleNumbers,
}
