//! The router's settings, and the routes of one switch made from them.

use crate::apps::config_values::{Fault, NetworkPrefix, SwitchId};
use openflow::{DatapathId, Field, Match, PortNo};
use packet::header::ethernet;
use serde::Deserialize;
use std::net::Ipv4Addr;
use toml::Spanned;

/// The longest prefix of an interface: two addresses beside those of network and broadcast.
const INTERFACE_LEN_MAX: u8 = 30;

/// `[router]` in the file of the apps' settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouterConfig {
    /// The interfaces; a switch without any is not touched.
    pub interface: Vec<Spanned<RouterInterface>>,
    /// The routes to other networks than those of the interfaces.
    #[serde(default)]
    pub route: Vec<Spanned<RouterRoute>>,
}

/// `[[router.interface]]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouterInterface {
    /// The switch.
    pub switch: SwitchId,
    /// Its port.
    pub port: u32,
    /// The router's address there, with the length of the network: `10.0.1.1/24`.
    pub address: NetworkPrefix,
}

/// `[[router.route]]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouterRoute {
    /// The switch.
    pub switch: SwitchId,
    /// The network; `0.0.0.0/0` is the default route.
    pub to: NetworkPrefix,
    /// The next hop, in the network of an interface.
    pub via: Ipv4Addr,
}

impl RouterInterface {
    pub(super) fn port(&self) -> PortNo {
        PortNo(self.port)
    }
}

impl RouterConfig {
    pub(in crate::apps) fn check(&self) -> Result<(), Fault> {
        for (index, entry) in self.interface.iter().enumerate() {
            let before = self.interface.iter().take(index).map(Spanned::get_ref);
            if let Some(wrong) = interface_fault(entry.get_ref(), before) {
                return Err(Fault::at(entry, "router.interface", wrong));
            }
        }
        for (index, entry) in self.route.iter().enumerate() {
            let route = entry.get_ref();
            let mut before = self.route.iter().take(index).map(Spanned::get_ref);
            let is_there =
                |other: &RouterRoute| other.switch == route.switch && other.to == route.to;
            let networks = || self.interfaces(route.switch.0).map(|interface| interface.address);
            let is_own =
                |own: NetworkPrefix| own.len == route.to.len && own.holds(route.to.address);
            let wrong = if route.to.network() != route.to.address {
                let (len, network) = (route.to.len, route.to.network());
                Some(format!("to: bits behind the length are set; is it {network}/{len}?"))
            } else if before.any(is_there) {
                Some(format!("to: there is another route to {}", route.to))
            } else if networks().any(is_own) {
                Some(format!("to: {} is the network of an interface", route.to))
            } else if !networks().any(|network| network.holds(route.via)) {
                let via = route.via;
                Some(format!("via: {via} is in the network of no interface of this switch"))
            } else {
                None
            };
            if let Some(wrong) = wrong {
                return Err(Fault::at(entry, "router.route", wrong));
            }
        }
        Ok(())
    }

    fn interfaces(&self, dpid: DatapathId) -> impl Iterator<Item = &RouterInterface> {
        let interfaces = self.interface.iter().map(Spanned::get_ref);
        interfaces.filter(move |interface| interface.switch.0 == dpid)
    }

    /// The routes of a switch, if it has interfaces.
    pub(super) fn routes(&self, dpid: DatapathId) -> Option<Routes> {
        let interfaces: Vec<_> = self.interfaces(dpid).copied().collect();
        let routes = self.route.iter().map(Spanned::get_ref);
        let mut routes: Vec<_> = routes.filter(|route| route.switch.0 == dpid).copied().collect();
        routes.sort_by_key(|route| std::cmp::Reverse(route.to.len));
        (!interfaces.is_empty()).then_some(Routes { interfaces, routes })
    }
}

fn interface_fault<'a>(
    interface: &RouterInterface,
    before: impl Iterator<Item = &'a RouterInterface>,
) -> Option<String> {
    let RouterInterface { switch, port, address } = *interface;
    if !PortNo(port).is_port() {
        return Some(format!("port: {port} is no port's number"));
    }
    let is_host = address.address != address.network() && address.address != address.broadcast();
    if address.len > INTERFACE_LEN_MAX || !is_host {
        let allowed = "a host's address in a network of at most 30 bits";
        return Some(format!("address: {address} is not {allowed}"));
    }
    for other in before.filter(|other| other.switch == switch) {
        if other.port == port {
            return Some(format!("port: port {port} of this switch has an interface already"));
        }
        if other.address.holds(address.address) || address.holds(other.address.address) {
            return Some(format!("address: the network overlaps that of {}", other.address));
        }
    }
    None
}

impl NetworkPrefix {
    /// Packets for the network.
    pub(super) fn matching(self) -> Match {
        let (value, mask) = (self.network().to_bits().into(), self.mask().into());
        let ipv4 = Match::any().with(Field::EthType, ethernet::IPV4.into());
        ipv4.with_masked(Field::Ipv4Dst, value, mask)
    }
}

/// The interfaces and routes of one switch.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    interfaces: Vec<RouterInterface>,
    /// Longest prefix first.
    routes: Vec<RouterRoute>,
}

/// The next hop of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextHop {
    pub(super) address: Ipv4Addr,
    /// The network whose packets all go there.
    pub(super) network: NetworkPrefix,
}

impl Routes {
    pub(super) fn interfaces(&self) -> &[RouterInterface] {
        &self.interfaces
    }

    pub(super) fn interface_at(&self, port: PortNo) -> Option<RouterInterface> {
        self.interfaces.iter().find(|interface| interface.port() == port).copied()
    }

    /// The interface in whose network an address is.
    pub(super) fn interface_of(&self, address: Ipv4Addr) -> Option<RouterInterface> {
        self.interfaces.iter().find(|interface| interface.address.holds(address)).copied()
    }

    pub(super) fn is_own(&self, address: Ipv4Addr) -> bool {
        self.interfaces.iter().any(|interface| interface.address.address == address)
    }

    /// The networks of the interfaces and those of the routes.
    pub(super) fn networks(&self) -> impl Iterator<Item = NetworkPrefix> + '_ {
        let connected = self.interfaces.iter().map(|interface| interface.address);
        connected.chain(self.routes.iter().map(|route| route.to))
    }

    /// The next hop of an address: by the longest prefix, a network of an interface before a route
    /// of the same length. Nobody is behind the addresses of network and broadcast.
    pub(super) fn next_hop(&self, dst: Ipv4Addr) -> Option<NextHop> {
        let route = self.routes.iter().find(|route| route.to.holds(dst));
        match self.interface_of(dst).map(|interface| interface.address) {
            Some(network) if route.is_none_or(|route| route.to.len <= network.len) => {
                let is_host = dst != network.network() && dst != network.broadcast();
                let network = NetworkPrefix { address: dst, len: 32 };
                is_host.then_some(NextHop { address: dst, network })
            }
            Some(_) | None => route.map(|route| NextHop { address: route.via, network: route.to }),
        }
    }
}
