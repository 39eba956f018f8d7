//! The handle of a switch: what is known of it, and the messages that a handler queues for it.
//!
//! It has no connection. The caller of the handler takes the queued messages, the runtime to send
//! them and a test to look at them. What a switch or an app can make it hold is bounded.

use crate::xid::{self, COUNTER_MAX};
use openflow::action::MAX_LEN_NO_BUFFER;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::message::{Features, MultipartRequest, MultipartRequestBody, PacketIn, PacketOut};
use openflow::port::{PortDesc, PortReason, PortStatus};
use openflow::{Action, DatapathId, Instruction, Message, PortNo, TableId, Version, Xid};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Ports kept of one switch; as many as 1.0 has numbers for. Others are counted.
const PORTS_MAX: usize = 0xff00;

/// Timers kept of one switch. Others never come and are counted.
const TIMERS_MAX: usize = 65_536;

/// The least time of a timer, so that one which is set again and again leaves time for others.
const TIMER_MIN: Duration = Duration::from_millis(1);

/// The name of a timer, unique among those of its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerId(u64);

/// The ports of a switch by number.
pub(crate) type Ports = BTreeMap<PortNo, PortDesc>;

/// A switch that is ready.
#[derive(Clone, Debug)]
pub struct Switch {
    dpid: DatapathId,
    version: Version,
    features: Arc<Features>,
    /// Shared with what handles show of the switch.
    ports: Arc<Ports>,
    has_new_ports: bool,
    is_set_up: bool,
    now: Duration,
    queue: Vec<(Xid, Message)>,
    next_xid: u32,
    /// The place in the list of the app whose handler runs.
    app: usize,
    is_stopped: bool,
    /// By due time, with the place of the app that set them.
    timers: BTreeMap<(Duration, TimerId), usize>,
    next_timer: u64,
    not_forwarded: u64,
    beyond_bounds: u64,
}

impl Switch {
    /// A switch as the runtime makes it from a features reply; a test of an app makes its own.
    #[must_use]
    pub fn new(version: Version, features: Features) -> Self {
        let ports = features.ports.iter().map(|port| (port.port_no, port.clone())).collect();
        Self {
            dpid: features.datapath_id,
            version,
            features: Arc::new(features),
            ports: Arc::new(ports),
            has_new_ports: false,
            is_set_up: false,
            now: Duration::ZERO,
            queue: Vec::new(),
            next_xid: 1,
            app: 0,
            is_stopped: false,
            timers: BTreeMap::new(),
            next_timer: 0,
            not_forwarded: 0,
            beyond_bounds: 0,
        }
    }

    /// Its datapath id.
    #[must_use]
    pub fn dpid(&self) -> DatapathId {
        self.dpid
    }

    /// The version spoken with it.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Its features reply.
    #[must_use]
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Its ports by number, as they are now.
    #[must_use]
    pub fn ports(&self) -> &BTreeMap<PortNo, PortDesc> {
        &self.ports
    }

    /// The time since the controller's start, at the event being handled.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Packet-ins that could not be forwarded since the switch neither keeps the packet nor sent
    /// all of it, or did not say where it came in.
    #[must_use]
    pub fn not_forwarded(&self) -> u64 {
        self.not_forwarded
    }

    /// Queues any message; its xid comes back, to know the answer by. Where it is sent for each
    /// table ([`Message::in_each_table`]), the xid is that of the last.
    pub fn send(&mut self, message: Message) -> Xid {
        if message.is_for_each_table(self.version) {
            let each = message.in_each_table(self.version, self.features.n_tables).into_iter();
            return each.fold(Xid(0), |_, message| self.send(message));
        }
        let xid = xid::of_app(self.app, self.next_xid);
        self.next_xid = self.next_xid % COUNTER_MAX + 1;
        self.queue.push((xid, message));
        xid
    }

    /// Queues a flow-mod.
    pub fn flow_mod(&mut self, flow_mod: FlowMod) -> Xid {
        self.send(Message::FlowMod(flow_mod))
    }

    /// Queues a packet-out that runs `actions` on the packet of a packet-in: the one that the
    /// switch keeps, if it keeps it, else the bytes that it sent.
    pub fn packet_out(&mut self, packet_in: &PacketIn, actions: Vec<Action>) {
        let is_whole = packet_in.data.len() >= usize::from(packet_in.total_len);
        let buffer_id = packet_in.buffer_id;
        match packet_in.in_port() {
            Some(in_port) if buffer_id.is_some() || is_whole => {
                let data = if buffer_id.is_some() { Vec::new() } else { packet_in.data.clone() };
                self.send(Message::PacketOut(PacketOut { buffer_id, in_port, actions, data }));
            }
            Some(_) | None => self.not_forwarded += 1,
        }
    }

    /// Queues a packet-out that sends the packet of a packet-in to a port.
    pub fn forward(&mut self, packet_in: &PacketIn, port: PortNo) {
        self.packet_out(packet_in, vec![Action::output(port)]);
    }

    /// Queues a packet-out that sends the packet of a packet-in to all ports but the one it came in
    /// by.
    pub fn flood(&mut self, packet_in: &PacketIn) {
        self.forward(packet_in, PortNo::FLOOD);
    }

    /// Queues a request to finish what was sent before; the answer comes to `App::message`.
    pub fn barrier(&mut self) -> Xid {
        self.send(Message::BarrierRequest)
    }

    /// Queues a request for a description or statistics; the whole answer comes to `App::message`
    /// with this xid.
    pub fn multipart(&mut self, body: MultipartRequestBody) -> Xid {
        self.send(Message::MultipartRequest(MultipartRequest { more: false, body }))
    }

    /// Keeps the event that is being handled from the apps further down the list.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Sets a timer: `App::timer` of this app is called with its id once `after` has passed, if the
    /// switch is connected then. Times are kept to about a millisecond.
    pub fn set_timer(&mut self, after: Duration) -> TimerId {
        self.next_timer += 1;
        let timer = TimerId(self.next_timer);
        if self.timers.len() < TIMERS_MAX {
            let due = self.now.saturating_add(after.max(TIMER_MIN));
            self.timers.insert((due, timer), self.app);
        } else {
            self.beyond_bounds += 1;
        }
        timer
    }

    /// Takes a timer back, if it has not come yet.
    pub fn cancel_timer(&mut self, timer: TimerId) {
        self.timers.retain(|(_, set), _| *set != timer);
    }

    /// Whether another controller of the cluster has set the switch up: its flow entries stand,
    /// and this controller goes on where that one has left off.
    #[must_use]
    pub fn is_set_up(&self) -> bool {
        self.is_set_up
    }

    /// Queues the deletion of every flow entry, of any controller, so that an app begins with an
    /// empty
    /// switch. A switch that another controller of the cluster has set up keeps its entries
    /// ([`Switch::is_set_up`]): then nothing is queued, so that apps need not know of clusters.
    pub fn clear_flows(&mut self) {
        if !self.is_set_up {
            self.flow_mod(delete_all());
        }
    }

    /// Makes packets that no flow entry matches come to the controller whole: in 1.3 by the
    /// table-miss entry of table 0; in 1.0 they do so without one.
    pub fn miss_to_controller(&mut self) {
        if self.version.has_table_miss_entry() {
            let output = Action::Output { port: PortNo::CONTROLLER, max_len: MAX_LEN_NO_BUFFER };
            let mut table_miss = FlowMod::new(FlowModCommand::Add);
            table_miss.priority = 0;
            table_miss.instructions = vec![Instruction::ApplyActions(vec![output])];
            self.flow_mod(table_miss);
        }
    }

    /// Takes the queued messages out, in the order of sending.
    pub fn take_messages(&mut self) -> Vec<Message> {
        self.drain().map(|(_, message)| message).collect()
    }

    pub(crate) fn drain(&mut self) -> std::vec::Drain<'_, (Xid, Message)> {
        self.queue.drain(..)
    }

    pub(crate) fn set_is_set_up(&mut self, is_set_up: bool) {
        self.is_set_up = is_set_up;
    }

    /// The same switch as when it has just connected: what apps have queued and set is gone.
    pub(crate) fn again(&self) -> Self {
        let mut switch = Self::new(self.version, Features::clone(&self.features));
        switch.ports = Arc::clone(&self.ports);
        switch
    }

    pub(crate) fn set_now(&mut self, now: Duration) {
        self.now = now;
    }

    /// The handler of the app at this place in the list is about to run.
    #[inline]
    pub(crate) fn enter(&mut self, app: usize) {
        self.app = app;
        self.is_stopped = false;
    }

    /// Whether the handler has stopped the event.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// When the next timer comes, from the controller's start on.
    pub(crate) fn next_timer(&self) -> Option<Duration> {
        self.timers.first_key_value().map(|((due, _), _)| *due)
    }

    /// Takes the timers that have come out, each with the place of its app.
    pub(crate) fn take_due_timers(&mut self) -> Vec<(TimerId, usize)> {
        let mut due = Vec::new();
        while let Some(first) = self.timers.first_entry()
            && first.key().0 <= self.now
        {
            due.push((first.key().1, *first.get()));
            first.remove();
        }
        due
    }

    pub(crate) fn shared_features(&self) -> Arc<Features> {
        Arc::clone(&self.features)
    }

    pub(crate) fn shared_ports(&self) -> Arc<Ports> {
        Arc::clone(&self.ports)
    }

    /// Whether the ports have changed since handles saw them last.
    pub(crate) fn has_new_ports(&self) -> bool {
        self.has_new_ports
    }

    /// Whether the ports have changed since this was asked last.
    #[inline]
    pub(crate) fn take_has_new_ports(&mut self) -> bool {
        std::mem::take(&mut self.has_new_ports)
    }

    /// Ports and timers that were left out, since there are as many as may be.
    pub(crate) fn beyond_bounds(&self) -> u64 {
        self.beyond_bounds
    }

    pub(crate) fn set_ports(&mut self, ports: Vec<PortDesc>) {
        self.beyond_bounds += ports.len().saturating_sub(PORTS_MAX) as u64;
        let ports = ports.into_iter().take(PORTS_MAX).map(|port| (port.port_no, port));
        self.ports = Arc::new(ports.collect());
        self.has_new_ports = true;
    }

    pub(crate) fn take_port_status(&mut self, status: &PortStatus) {
        let port = status.desc.port_no;
        self.has_new_ports = true;
        // The handles' copy is replaced once a turn, so this copies once a turn at most.
        let ports = Arc::make_mut(&mut self.ports);
        match status.reason {
            PortReason::Delete => {
                ports.remove(&port);
            }
            PortReason::Add | PortReason::Modify | PortReason::Unknown(_) => {
                if ports.len() < PORTS_MAX || ports.contains_key(&port) {
                    ports.insert(port, status.desc.clone());
                } else {
                    self.beyond_bounds += 1;
                }
            }
        }
    }
}

/// A flow-mod that deletes every flow entry of every table, to be narrowed by match or ports.
#[must_use]
pub fn delete_all() -> FlowMod {
    FlowMod { table_id: TableId::ALL, ..FlowMod::new(FlowModCommand::Delete) }
}
