//! Routers whose addresses and routes are given while they run, as Ryu's `rest_router` has them.
//!
//! [`ManagedRouters`] is what REST changes and shows, [`ManagedRouter`] the app that serves their
//! packets. A switch becomes a router by its first address. It has a router for packets of any
//! VLAN (0) and one for each VLAN that has an address. An address belongs to no port; a port's own
//! Ethernet address is the router's there. Hosts of one network are switched (`NORMAL`). Addresses
//! and routes stay when a switch goes, and are installed when it comes again. In 1.0, which cannot
//! decrement a TTL, the controller forwards every packet. The app must never touch a switch that is
//! no router.

mod entries;
mod packets;
mod table;

pub use table::{RouterAddress, RouterRefusal, StaticRoute};

use crate::app::App;
use crate::apps::config_values::NetworkPrefix;
use crate::apps::frame::bridged;
use crate::apps::microflow::key_of;
use crate::apps::router::neighbours::Neighbours;
use crate::switch::Switch;
use crate::topology::is_up;
use entries::VlanOf;
use openflow::flow::FlowMod;
use openflow::message::{PacketIn, PacketInReason};
use openflow::port::{PortDesc, PortReason, PortStatus};
use openflow::{DatapathId, Field, Match, Message, Version};
use packets::{Seen, arp_questions};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use table::RouterTable;

/// Seconds from one question for gateways that have not been heard to the next.
const GATEWAYS_S: u32 = 10;

/// The routers of a controller.
#[derive(Debug, Default)]
pub struct ManagedRouters {
    switches: RwLock<BTreeMap<DatapathId, Arc<Mutex<ManagedSwitch>>>>,
}

/// The routers of one switch, by VLAN.
#[derive(Debug)]
struct ManagedSwitch {
    vlans: BTreeMap<u16, VlanRouter>,
}

/// The router of a VLAN.
#[derive(Debug, Default)]
struct VlanRouter {
    table: RouterTable,
    neighbours: Neighbours,
    complaints: u32,
    seconds: u32,
}

/// Addresses and routes of a router of a VLAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownRouter {
    /// The VLAN; 0 is packets of any.
    pub vlan: u16,
    /// The addresses.
    pub addresses: Vec<RouterAddress>,
    /// The routes.
    pub routes: Vec<StaticRoute>,
}

/// A change of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterChange {
    /// A new address.
    AddAddress(NetworkPrefix),
    /// A new route.
    AddRoute {
        /// To this network.
        to: NetworkPrefix,
        /// By this gateway.
        via: Ipv4Addr,
    },
    /// The address with this number goes; all without one.
    DeleteAddresses(Option<u16>),
    /// The route with this number goes; all without one.
    DeleteRoutes(Option<u16>),
}

/// A change that a router has taken, and the messages for its switch.
#[derive(Debug)]
pub struct RouterUpdate {
    /// Numbers of what was added or deleted.
    pub ids: Vec<u16>,
    /// Numbers of addresses that stay, since routes need them.
    pub kept: Vec<u16>,
    /// The entries' changes.
    pub messages: Vec<Message>,
    /// To be sent behind them: who has the gateway, and that the router is there.
    pub questions: Vec<Message>,
    /// Messages that take `messages` back.
    pub undo_messages: Vec<Message>,
    dpid: DatapathId,
    vlan: u16,
    is_new_switch: bool,
    before: Option<RouterTable>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for ManagedSwitch {
    fn default() -> Self {
        Self { vlans: BTreeMap::from([(0, VlanRouter::default())]) }
    }
}

impl ManagedSwitch {
    /// The entries of all its routers.
    fn entries(&self) -> Vec<FlowMod> {
        let vlans = self.vlans.iter().flat_map(|(vlan, router)| {
            let vlan = VlanOf(*vlan);
            let addresses = router.table.addresses().iter().flat_map(move |it| vlan.of_address(it));
            let routes = router.table.routes().iter().map(move |it| vlan.of_route(it));
            std::iter::once(vlan.default_drop()).chain(addresses).chain(routes)
        });
        entries::ground().into_iter().chain(vlans).collect()
    }
}

impl ManagedRouters {
    fn get(&self, dpid: DatapathId) -> Option<Arc<Mutex<ManagedSwitch>>> {
        let switches = self.switches.read().unwrap_or_else(PoisonError::into_inner);
        switches.get(&dpid).cloned()
    }

    /// The routers of a switch, by VLAN; that of packets of any VLAN is always among them.
    #[must_use]
    pub fn show(&self, dpid: DatapathId) -> Vec<ShownRouter> {
        let Some(switch) = self.get(dpid) else {
            return vec![ShownRouter { vlan: 0, addresses: Vec::new(), routes: Vec::new() }];
        };
        let switch = lock(&switch);
        let shown = switch.vlans.iter().map(|(vlan, router)| ShownRouter {
            vlan: *vlan,
            addresses: router.table.addresses().to_vec(),
            routes: router.table.routes().to_vec(),
        });
        shown.collect()
    }

    /// Changes a router. The messages for the switch come back; when the switch refuses it,
    /// [`ManagedRouters::undo`] takes the change back. Changes must come one after the other.
    ///
    /// # Errors
    /// When the change does not go with what the router has; then nothing is changed.
    pub fn change(
        &self,
        dpid: DatapathId,
        version: Version,
        ports: &[PortDesc],
        vlan: u16,
        change: RouterChange,
    ) -> Result<RouterUpdate, RouterRefusal> {
        let known = self.get(dpid);
        let is_new_switch = known.is_none();
        let switch = known.unwrap_or_default();
        let mut held = lock(&switch);
        let before = held.vlans.get(&vlan).map(|router| router.table.clone());
        let mut table = before.clone().unwrap_or_default();
        let of = VlanOf(vlan);
        let mut update = RouterUpdate {
            ids: Vec::new(),
            kept: Vec::new(),
            messages: Vec::new(),
            questions: Vec::new(),
            undo_messages: Vec::new(),
            dpid,
            vlan,
            is_new_switch,
            before,
        };
        update.take(change, &mut table, of, version, ports)?;
        if update.ids.is_empty() {
            return Ok(update);
        }
        let is_over = table.is_empty() && vlan != 0;
        if is_over {
            held.vlans.remove(&vlan);
            update.messages.push(Message::FlowMod(entries::delete(&of.default_drop())));
        } else {
            let router = held.vlans.entry(vlan).or_default();
            router.neighbours.keep(|ip| table.address_of(ip).is_some());
            router.table = table;
        }
        let mut first = Vec::new();
        if is_new_switch {
            first.extend(entries::ground());
            first.push(VlanOf(0).default_drop());
        }
        if update.before.is_none() && vlan != 0 {
            first.push(of.default_drop());
        }
        let undo = first.iter().map(|entry| Message::FlowMod(entries::delete(entry)));
        update.undo_messages.extend(undo);
        let mut messages = Vec::new();
        if is_new_switch && version.has_pipeline() {
            messages.push(super::with_dead_packets(version));
        }
        messages.extend(first.into_iter().map(Message::FlowMod));
        messages.append(&mut update.messages);
        update.messages = messages;
        drop(held);
        if is_new_switch {
            let mut switches = self.switches.write().unwrap_or_else(PoisonError::into_inner);
            switches.insert(dpid, switch);
        }
        Ok(update)
    }

    /// Takes a change back that the switch has refused.
    pub fn undo(&self, update: RouterUpdate) {
        if update.ids.is_empty() {
            return;
        }
        if update.is_new_switch {
            let mut switches = self.switches.write().unwrap_or_else(PoisonError::into_inner);
            switches.remove(&update.dpid);
        } else if let Some(switch) = self.get(update.dpid) {
            let mut switch = lock(&switch);
            match update.before {
                Some(table) => switch.vlans.entry(update.vlan).or_default().table = table,
                None => drop(switch.vlans.remove(&update.vlan)),
            }
        }
    }
}

impl RouterUpdate {
    /// Carries a change out on the table.
    fn take(
        &mut self,
        change: RouterChange,
        table: &mut RouterTable,
        of: VlanOf,
        version: Version,
        ports: &[PortDesc],
    ) -> Result<(), RouterRefusal> {
        let hops = version.has_pipeline();
        match change {
            RouterChange::AddAddress(address) => {
                let added = table.add_address(address)?;
                self.ids.push(added.id);
                self.add(of.of_address(&added));
                let own = address.address;
                self.questions = arp_questions(of.0, ports.iter(), own, own, None);
            }
            RouterChange::AddRoute { to, via } => {
                let added = table.add_route(to, via)?;
                self.ids.push(added.id);
                self.add([of.of_route(&added)]);
                if let Some(side) = table.address_of(via) {
                    let own = side.address.address;
                    self.questions = arp_questions(of.0, ports.iter(), own, via, None);
                }
            }
            RouterChange::DeleteAddresses(id) => {
                let (gone, kept) = table.delete_addresses(id);
                self.kept = kept.iter().map(|address| address.id).collect();
                for address in gone {
                    self.ids.push(address.id);
                    self.delete(of.of_address(&address));
                    if hops {
                        self.messages.push(Message::FlowMod(of.delete_hosts(&address)));
                    }
                }
            }
            RouterChange::DeleteRoutes(id) => {
                for route in table.delete_routes(id) {
                    self.ids.push(route.id);
                    // That of the default route drops from now on.
                    let entry = of.of_route(&route);
                    let default = of.default_drop();
                    if entry.priority == default.priority {
                        self.messages.push(Message::FlowMod(default));
                        self.undo_messages.push(Message::FlowMod(entry));
                    } else {
                        self.delete([entry]);
                    }
                    if hops {
                        self.messages.push(Message::FlowMod(of.delete_gateway(&route)));
                    }
                }
            }
        }
        Ok(())
    }

    fn add<const N: usize>(&mut self, entries: [FlowMod; N]) {
        let undo = entries.iter().map(|entry| Message::FlowMod(entries::delete(entry)));
        self.undo_messages.extend(undo);
        self.messages.extend(entries.map(Message::FlowMod));
    }

    fn delete<const N: usize>(&mut self, entries: [FlowMod; N]) {
        let gone = entries.iter().map(|entry| Message::FlowMod(entries::delete(entry)));
        self.messages.extend(gone);
        self.undo_messages.extend(entries.map(Message::FlowMod));
    }
}

/// The app: serves the packets of managed routers. It stands before apps that forward.
#[derive(Debug)]
pub struct ManagedRouter {
    routers: Arc<ManagedRouters>,
}

impl ManagedRouter {
    /// An instance that serves these routers.
    #[must_use]
    pub fn new(routers: Arc<ManagedRouters>) -> Self {
        Self { routers }
    }
}

impl App for ManagedRouter {
    /// A router that comes again has its entries again; where its neighbours are is asked anew.
    fn switch_ready(&mut self, sw: &mut Switch) {
        let Some(switch) = self.routers.get(sw.dpid()) else { return };
        let mut switch = lock(&switch);
        if sw.version().has_pipeline() {
            sw.send(super::with_dead_packets(sw.version()));
            sw.flow_mod(entries::delete_marked());
        }
        for entry in switch.entries() {
            sw.flow_mod(entry);
        }
        for (vlan, router) in &mut switch.vlans {
            router.neighbours = Neighbours::default();
            router.table.forget_gateways(None);
            router.ask_gateways(sw, *vlan);
        }
    }

    fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        let Some(switch) = self.routers.get(sw.dpid()) else { return };
        let Some(in_port) = packet_in.in_port() else { return };
        let is_whole = packet_in.data.len() >= usize::from(packet_in.total_len);
        if !is_whole || bridged(&packet_in.data).is_none() {
            return;
        }
        let key = key_of(&packet_in.data, in_port);
        let vlan = u16::try_from(key.get(Field::VlanVid) & 0xfff).unwrap_or(0);
        let mut switch = lock(&switch);
        let Some(router) = switch.vlans.get_mut(&vlan) else { return };
        let is_dead = packet_in.reason == PacketInReason::InvalidTtl;
        let seen = Seen { frame: packet_in.data.clone(), in_port, vlan, is_dead };
        if key.has(Field::ArpOp) {
            router.take_arp(sw, &key, &seen);
            sw.stop();
        } else if key.has(Field::Ipv4Dst) {
            router.take_ipv4(sw, &key, seen);
            sw.stop();
        }
    }

    fn port_status(&mut self, sw: &mut Switch, status: &PortStatus) {
        let Some(switch) = self.routers.get(sw.dpid()) else { return };
        if status.reason != PortReason::Delete && is_up(&status.desc) {
            return;
        }
        let mut switch = lock(&switch);
        let port = status.desc.port_no;
        for router in switch.vlans.values_mut() {
            router.neighbours.forget_port(port);
            router.table.forget_gateways(Some(port));
        }
        if sw.version().has_pipeline() {
            // The only entries to a port, and from one, are those to next hops.
            let matching = Match::any().with(Field::InPort, port.0.into());
            sw.flow_mod(FlowMod { out_port: port, ..entries::delete_marked() });
            sw.flow_mod(FlowMod { matching, ..entries::delete_marked() });
        }
    }

    fn tick(&mut self, sw: &mut Switch) {
        let Some(switch) = self.routers.get(sw.dpid()) else { return };
        let mut switch = lock(&switch);
        for (vlan, router) in &mut switch.vlans {
            router.tick(sw, *vlan);
        }
    }
}
