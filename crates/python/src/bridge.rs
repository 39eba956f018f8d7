//! The app that the runtime of Rust knows: it puts every event into the queue and decides nothing.
//!
//! It runs on the threads that serve switches. It must never touch Python nor wait.

use std::collections::HashMap;
use std::sync::Arc;

use controller::{App, Handle, HostEvent, LinkEvent, PacketIn, RoleChange, Switch};
use openflow::flow::FlowRemoved;
use openflow::message::ErrorMessage;
use openflow::port::PortStatus;
use openflow::{DatapathId, Message, Xid};

use crate::live::Live;
use crate::outlet::{Connected, Outlet};

/// One shard's instance.
pub(crate) struct Bridge {
    live: Arc<Live>,
    /// Links and hosts are told to the apps of all shards; this one hands them on.
    is_first: bool,
    switches: HashMap<DatapathId, Arc<Connected>>,
}

impl Bridge {
    pub(crate) fn new(live: Arc<Live>, is_first: bool) -> Self {
        Self { live, is_first, switches: HashMap::new() }
    }
}

impl App for Bridge {
    fn started(&mut self, handle: &Handle) {
        self.live.set_handle(handle);
    }

    fn switch_ready(&mut self, sw: &mut Switch) {
        let outlet: Arc<dyn Outlet> = Arc::clone(&self.live) as Arc<dyn Outlet>;
        let (features, ports) = (sw.features().clone(), sw.ports().clone());
        let connected = Arc::new(Connected::new(sw.version(), features, ports, outlet));
        self.live.queue.ready(&connected);
        self.switches.insert(sw.dpid(), connected);
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        if let Some(connected) = self.switches.remove(&dpid) {
            connected.end();
            self.live.queue.down(dpid);
        }
    }

    fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        if let Some(connected) = self.switches.get(&sw.dpid()) {
            self.live.queue.packet_in(connected, packet_in);
        }
    }

    fn port_status(&mut self, sw: &mut Switch, status: &PortStatus) {
        if let Some(connected) = self.switches.get(&sw.dpid()) {
            self.live.queue.port_status(connected, status);
        }
    }

    fn flow_removed(&mut self, sw: &mut Switch, removed: &FlowRemoved) {
        if let Some(connected) = self.switches.get(&sw.dpid()) {
            self.live.queue.flow_removed(connected, removed);
        }
    }

    fn error(&mut self, sw: &mut Switch, xid: Xid, error: &ErrorMessage) {
        if let Some(connected) = self.switches.get(&sw.dpid()) {
            self.live.queue.error(connected, xid, error);
        }
    }

    fn role_changed(&mut self, sw: &mut Switch, change: &RoleChange) {
        if let Some(connected) = self.switches.get(&sw.dpid()) {
            self.live.queue.role_changed(connected, *change);
        }
    }

    fn link(&mut self, event: &LinkEvent) {
        if self.is_first {
            self.live.queue.link(*event);
        }
    }

    fn host(&mut self, event: &HostEvent) {
        if self.is_first {
            self.live.queue.host(event.clone());
        }
    }

    fn message(&mut self, sw: &mut Switch, xid: Xid, message: &Message) {
        if let Some(connected) = self.switches.get(&sw.dpid()) {
            self.live.queue.message(connected, xid, message);
        }
    }
}
