//! The flow entries of a router that is managed over REST.
//!
//! Cookies begin with a mark, by which all of them are found again, and name the VLAN and the id of
//! the address or route that an entry belongs to. Priorities are those of Ryu's `rest_router`, each
//! with room for two entries above it: to a next hop, and to one at the ingress port.

use super::table::{RouterAddress, StaticRoute};
use crate::apps::config_values::NetworkPrefix;
use crate::apps::frame::{entry, to_controller};
use crate::apps::router::neighbours::AGE_S;
use crate::switch::delete_all;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::{Action, Cookie, Field, MacAddr, Match, PortNo};
use packet::header::ethernet;

/// "rt" in the highest bits.
const MARK: u64 = 0x7274 << 48;
const MARK_MASK: u64 = 0xffff << 48;
/// Set in the cookies of entries to next hops.
const HOP: u64 = 1 << 47;
const VLAN_SHIFT: u32 = 32;
const ROUTE_SHIFT: u32 = 16;

/// Priorities as in Ryu.
const NORMAL_PRIORITY: u16 = 0;
const ARP_PRIORITY: u16 = 1;
const DEFAULT_PRIORITY: u16 = 1;
const CONNECTED_PRIORITY: u16 = 2;
const STATIC_PRIORITY: u16 = 2;
const HOST_PRIORITY: u16 = 3 + 32;
const SWITCHED_PRIORITY: u16 = 4 + 32;
const OWN_PRIORITY: u16 = 5 + 32 + VLAN_PRIORITY;
/// Priority that entries of a VLAN have more.
const VLAN_PRIORITY: u16 = 1_000;
/// Priorities from one of Ryu's to the next.
const STEP: u16 = 3;

/// A VLAN in a match: all packets where it is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VlanOf(pub(super) u16);

impl VlanOf {
    fn cookie(self, id: u64) -> Cookie {
        Cookie(MARK | u64::from(self.0) << VLAN_SHIFT | id)
    }

    fn priority(self, of: u16) -> u16 {
        STEP * if self.0 == 0 { of } else { of + VLAN_PRIORITY }
    }

    fn ipv4(self) -> Match {
        let ipv4 = Match::any().with(Field::EthType, ethernet::IPV4.into());
        if self.0 == 0 { ipv4 } else { ipv4.with(Field::VlanVid, (0x1000 | self.0).into()) }
    }

    fn to(self, network: NetworkPrefix) -> Match {
        within(self.ipv4(), Field::Ipv4Dst, network)
    }

    /// The entry that drops packets for no network of the VLAN.
    pub(super) fn default_drop(self) -> FlowMod {
        let priority = self.priority(DEFAULT_PRIORITY);
        FlowMod { cookie: self.cookie(0), ..entry(priority, self.ipv4(), Vec::new()) }
    }

    /// The entries of an address: its network's hosts are asked for by the controller and talk with
    /// each other without a router, and what is for the router comes to the controller.
    pub(super) fn of_address(self, address: &RouterAddress) -> [FlowMod; 3] {
        let network = address.address;
        let own = NetworkPrefix { len: 32, ..network };
        let switched = within(self.to(network), Field::Ipv4Src, network);
        [
            entry(self.priority(CONNECTED_PRIORITY), self.to(network), vec![to_controller()]),
            entry(STEP * OWN_PRIORITY, self.to(own), vec![to_controller()]),
            entry(self.priority(SWITCHED_PRIORITY), switched, vec![Action::output(PortNo::NORMAL)]),
        ]
        .map(|entry| FlowMod { cookie: self.cookie(address.id.into()), ..entry })
    }

    /// The entry of a route: to the controller, which knows the gateway or asks for it.
    pub(super) fn of_route(self, route: &StaticRoute) -> FlowMod {
        let entry = entry(self.route_priority(route), self.to(route.to), vec![to_controller()]);
        FlowMod { cookie: self.cookie(u64::from(route.id) << ROUTE_SHIFT), ..entry }
    }

    fn route_priority(self, route: &StaticRoute) -> u16 {
        let len = u16::from(route.to.len);
        self.priority(if len == 0 { DEFAULT_PRIORITY } else { STATIC_PRIORITY + len })
    }

    /// The entries to a gateway.
    pub(super) fn to_gateway(self, route: &StaticRoute, hop: &Hop) -> [FlowMod; 2] {
        let cookie = self.cookie(HOP | u64::from(route.id) << ROUTE_SHIFT);
        hop.entries(self.route_priority(route), &self.to(route.to), cookie)
    }

    /// The entries to a host in the network of an address.
    pub(super) fn to_host(
        self,
        of: &RouterAddress,
        host: NetworkPrefix,
        hop: &Hop,
    ) -> [FlowMod; 2] {
        let cookie = self.cookie(HOP | u64::from(of.id));
        hop.entries(self.priority(HOST_PRIORITY), &self.to(host), cookie)
    }

    /// Deletes the entries to hosts of an address's network, where the version can.
    pub(super) fn delete_hosts(self, of: &RouterAddress) -> FlowMod {
        let cookie = self.cookie(HOP | u64::from(of.id));
        FlowMod { cookie, cookie_mask: u64::MAX, ..delete_all() }
    }

    /// Deletes the entries to the gateway of a route, where the version can.
    pub(super) fn delete_gateway(self, route: &StaticRoute) -> FlowMod {
        let cookie = self.cookie(HOP | u64::from(route.id) << ROUTE_SHIFT);
        FlowMod { cookie, cookie_mask: u64::MAX, ..delete_all() }
    }
}

/// A next hop that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    /// The address of the port that leads there.
    pub(super) own: MacAddr,
    /// The next hop's address.
    pub(super) mac: MacAddr,
    /// The port.
    pub(super) port: PortNo,
}

impl Hop {
    fn entries(&self, priority: u16, to: &Match, cookie: Cookie) -> [FlowMod; 2] {
        // A packet leaves by its ingress port only if it is told so by the port's other name.
        let back = to.clone().with(Field::InPort, self.port.0.into());
        [(1, to.clone(), self.port), (2, back, PortNo::IN_PORT)].map(|(above, matching, out)| {
            let actions = vec![
                Action::DecNwTtl,
                Action::set_field(Field::EthSrc, self.own.to_u64().into()),
                Action::set_field(Field::EthDst, self.mac.to_u64().into()),
                Action::output(out),
            ];
            let entry = entry(priority + above, matching, actions);
            FlowMod { cookie, hard_timeout_s: AGE_S, ..entry }
        })
    }
}

fn within(matching: Match, field: Field, network: NetworkPrefix) -> Match {
    if network.len == 0 {
        return matching;
    }
    matching.with_masked(field, network.network().to_bits().into(), network.mask().into())
}

/// The entries of every router: ARP comes to the controller, and what is not routed is switched.
pub(super) fn ground() -> [FlowMod; 2] {
    let arp = Match::any().with(Field::EthType, ethernet::ARP.into());
    [
        entry(STEP * ARP_PRIORITY, arp, vec![to_controller()]),
        entry(STEP * NORMAL_PRIORITY, Match::any(), vec![Action::output(PortNo::NORMAL)]),
    ]
    .map(|entry| FlowMod { cookie: Cookie(MARK), ..entry })
}

/// Deletes one entry, whatever its counters and actions.
pub(super) fn delete(of: &FlowMod) -> FlowMod {
    FlowMod {
        priority: of.priority,
        matching: of.matching.clone(),
        ..FlowMod::new(FlowModCommand::DeleteStrict)
    }
}

/// Deletes all entries of managed routers, where the version can.
pub(super) fn delete_marked() -> FlowMod {
    FlowMod { cookie: Cookie(MARK), cookie_mask: MARK_MASK, ..delete_all() }
}
