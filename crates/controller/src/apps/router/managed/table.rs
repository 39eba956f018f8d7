//! Addresses and static routes of one VLAN's router: what REST sets and asks.
//!
//! Ids go up and come again only when all have been given. What overlaps is refused with the id of
//! what stands there. It must never look at a packet nor at a switch.

use crate::apps::config_values::NetworkPrefix;
use openflow::{MacAddr, PortNo};
use std::net::Ipv4Addr;

/// Addresses, and routes, that one VLAN's router can have: each packet to the controller looks
/// through all of them.
const ENTRIES_MAX: usize = 1_024;

/// An address of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterAddress {
    /// Its number.
    pub id: u16,
    /// The address with the length of its network.
    pub address: NetworkPrefix,
}

/// A static route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticRoute {
    /// Its number.
    pub id: u16,
    /// The network; `0.0.0.0/0` of the default route.
    pub to: NetworkPrefix,
    /// The gateway, in the network of an address.
    pub via: Ipv4Addr,
    /// Address and port of the gateway, once it has been heard.
    pub heard_at: Option<(MacAddr, PortNo)>,
}

/// Why a router does not take an address or a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouterRefusal {
    /// The network of another address overlaps.
    #[error("Address overlaps [address_id={0}]")]
    AddressOverlaps(u16),
    /// No address has the gateway in its network.
    #[error("Gateway={0}'s address is not registered.")]
    GatewayElsewhere(Ipv4Addr),
    /// The gateway is the router itself.
    #[error("Gateway={gateway} is used as default gateway of address_id={id}")]
    GatewayIsOwn {
        /// The gateway.
        gateway: Ipv4Addr,
        /// The number of the address.
        id: u16,
    },
    /// There is a route to this network.
    #[error("Destination overlaps [route_id={0}]")]
    RouteOverlaps(u16),
    /// There is no room.
    #[error("a router of a VLAN has at most {ENTRIES_MAX} addresses and as many routes")]
    Full,
}

/// Addresses and routes.
#[derive(Clone, Debug, Default)]
pub(super) struct RouterTable {
    addresses: Vec<RouterAddress>,
    routes: Vec<StaticRoute>,
    last_address: u16,
    last_route: u16,
}

/// The next number behind the last one that is not in use; there are more than can be in use.
fn next_id(last: &mut u16, used: impl Fn(u16) -> bool) -> u16 {
    loop {
        *last = last.wrapping_add(1);
        if *last != 0 && !used(*last) {
            return *last;
        }
    }
}

impl RouterTable {
    pub(super) fn addresses(&self) -> &[RouterAddress] {
        &self.addresses
    }

    pub(super) fn routes(&self) -> &[StaticRoute] {
        &self.routes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.routes.is_empty()
    }

    pub(super) fn add_address(
        &mut self,
        address: NetworkPrefix,
    ) -> Result<RouterAddress, RouterRefusal> {
        let overlaps = |other: &&RouterAddress| {
            other.address.holds(address.address) || address.holds(other.address.address)
        };
        if let Some(other) = self.addresses.iter().find(overlaps) {
            return Err(RouterRefusal::AddressOverlaps(other.id));
        }
        if self.addresses.len() >= ENTRIES_MAX {
            return Err(RouterRefusal::Full);
        }
        let used = |id| self.addresses.iter().any(|address| address.id == id);
        let added = RouterAddress { id: next_id(&mut self.last_address, used), address };
        self.addresses.push(added);
        Ok(added)
    }

    pub(super) fn add_route(
        &mut self,
        to: NetworkPrefix,
        via: Ipv4Addr,
    ) -> Result<StaticRoute, RouterRefusal> {
        let side = self.address_of(via).ok_or(RouterRefusal::GatewayElsewhere(via))?;
        if side.address.address == via {
            return Err(RouterRefusal::GatewayIsOwn { gateway: via, id: side.id });
        }
        let to = NetworkPrefix { address: to.network(), len: to.len };
        if let Some(other) = self.routes.iter().find(|route| route.to == to) {
            return Err(RouterRefusal::RouteOverlaps(other.id));
        }
        if self.routes.len() >= ENTRIES_MAX {
            return Err(RouterRefusal::Full);
        }
        let used = |id| self.routes.iter().any(|route| route.id == id);
        let id = next_id(&mut self.last_route, used);
        let added = StaticRoute { id, to, via, heard_at: None };
        self.routes.push(added);
        Ok(added)
    }

    /// Deletes the address with this number (all without one): gives those deleted, and those that
    /// stay since a route's gateway is in their network.
    pub(super) fn delete_addresses(
        &mut self,
        id: Option<u16>,
    ) -> (Vec<RouterAddress>, Vec<RouterAddress>) {
        let gateways: Vec<Ipv4Addr> = self.routes.iter().map(|route| route.via).collect();
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        self.addresses.retain(|address| {
            if id.is_some_and(|id| id != address.id) {
                return true;
            }
            let is_needed = gateways.iter().any(|gateway| address.address.holds(*gateway));
            if is_needed {
                kept.push(*address)
            } else {
                gone.push(*address)
            }
            is_needed
        });
        (gone, kept)
    }

    /// Deletes the route with this number (all without one).
    pub(super) fn delete_routes(&mut self, id: Option<u16>) -> Vec<StaticRoute> {
        self.routes.extract_if(.., |route| id.is_none_or(|id| id == route.id)).collect()
    }

    /// The address in whose network another one is.
    pub(super) fn address_of(&self, ip: Ipv4Addr) -> Option<RouterAddress> {
        self.addresses.iter().find(|address| address.address.holds(ip)).copied()
    }

    pub(super) fn is_own(&self, ip: Ipv4Addr) -> bool {
        self.addresses.iter().any(|address| address.address.address == ip)
    }

    /// The route of an address that is in no network of the router's own: the longest prefix.
    pub(super) fn route_of(&self, dst: Ipv4Addr) -> Option<StaticRoute> {
        let routes = self.routes.iter().filter(|route| route.to.holds(dst));
        routes.max_by_key(|route| route.to.len).copied()
    }

    /// Gateways that have not been heard.
    pub(super) fn silent_gateways(&self) -> Vec<Ipv4Addr> {
        let silent = self.routes.iter().filter(|route| route.heard_at.is_none());
        let mut gateways: Vec<Ipv4Addr> = silent.map(|route| route.via).collect();
        gateways.sort_unstable();
        gateways.dedup();
        gateways
    }

    /// Keeps where a gateway is; whether it is one.
    pub(super) fn hear_gateway(&mut self, ip: Ipv4Addr, mac: MacAddr, port: PortNo) -> bool {
        let mut is_gateway = false;
        for route in self.routes.iter_mut().filter(|route| route.via == ip) {
            route.heard_at = Some((mac, port));
            is_gateway = true;
        }
        is_gateway
    }

    /// Forgets the gateways at a port, or all of them.
    pub(super) fn forget_gateways(&mut self, at: Option<PortNo>) {
        for route in &mut self.routes {
            let is_there = route.heard_at.is_some_and(|(_, port)| at.is_none_or(|at| at == port));
            if is_there {
                route.heard_at = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ENTRIES_MAX, RouterRefusal, RouterTable, next_id};
    use crate::apps::config_values::NetworkPrefix;
    use openflow::{MacAddr, PortNo};
    use std::net::Ipv4Addr;

    fn prefix(text: &str) -> NetworkPrefix {
        NetworkPrefix::try_from(text.to_owned()).unwrap()
    }

    fn ip(text: &str) -> Ipv4Addr {
        text.parse().unwrap()
    }

    #[test]
    fn what_overlaps_is_refused_with_what_is_there() {
        let mut table = RouterTable::default();
        assert_eq!(table.add_address(prefix("10.0.1.1/24")).map(|it| it.id), Ok(1));
        let overlap = Err(RouterRefusal::AddressOverlaps(1));
        assert_eq!(table.add_address(prefix("10.0.1.200/25")), overlap);
        assert_eq!(table.add_address(prefix("10.1.1.1/8")), overlap);
        assert_eq!(table.add_address(prefix("10.0.2.1/24")).map(|it| it.id), Ok(2));
        let elsewhere = ip("192.0.2.1");
        let refused = RouterRefusal::GatewayElsewhere(elsewhere);
        assert_eq!(table.add_route(prefix("10.9.0.0/16"), elsewhere), Err(refused));
        let gateway = ip("10.0.2.1");
        let refused = RouterRefusal::GatewayIsOwn { gateway, id: 2 };
        assert_eq!(table.add_route(prefix("10.9.0.0/16"), gateway), Err(refused));
        let via = ip("10.0.2.9");
        assert_eq!(table.add_route(prefix("10.9.0.0/16"), via).map(|it| it.id), Ok(1));
        let refused = RouterRefusal::RouteOverlaps(1);
        assert_eq!(table.add_route(prefix("10.9.3.4/16"), via), Err(refused), "the same network");
    }

    #[test]
    fn address_stays_while_a_route_needs_it_longest_prefix_wins() {
        let mut table = RouterTable::default();
        table.add_address(prefix("10.0.1.1/24")).unwrap();
        table.add_address(prefix("10.0.2.1/24")).unwrap();
        let via = ip("10.0.2.9");
        table.add_route(prefix("0.0.0.0/0"), via).unwrap();
        table.add_route(prefix("192.168.0.0/16"), ip("10.0.2.8")).unwrap();
        let route = |table: &RouterTable, to| table.route_of(ip(to)).map(|route| route.id);
        assert_eq!((route(&table, "192.168.1.1"), route(&table, "8.8.8.8")), (Some(2), Some(1)));
        assert!(table.hear_gateway(via, MacAddr([2; 6]), PortNo(3)));
        assert_eq!(table.silent_gateways(), [ip("10.0.2.8")]);
        table.forget_gateways(Some(PortNo(2)));
        assert_eq!(table.silent_gateways().len(), 1, "it is at another port");
        let (gone, kept) = table.delete_addresses(None);
        let ids = |list: &[super::RouterAddress]| list.iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!((ids(&gone), ids(&kept)), (vec![1], vec![2]));
        assert_eq!(table.delete_routes(Some(7)), []);
        assert_eq!(table.delete_routes(None).len(), 2);
        assert_eq!(table.delete_addresses(Some(2)).0.len(), 1);
        assert!(table.is_empty());
    }

    #[test]
    fn ids_come_again_only_after_the_last_and_the_table_is_bounded() {
        let mut last = u16::MAX - 1;
        assert_eq!(next_id(&mut last, |_| false), u16::MAX);
        assert_eq!(next_id(&mut last, |id| id < 5), 5);
        let mut table = RouterTable::default();
        for number in 0..ENTRIES_MAX as u32 {
            let address = Ipv4Addr::from(0x0a00_0001 + (number << 8));
            table.add_address(NetworkPrefix { address, len: 24 }).unwrap();
        }
        assert_eq!(table.add_address(prefix("172.16.0.1/24")), Err(RouterRefusal::Full));
    }
}
