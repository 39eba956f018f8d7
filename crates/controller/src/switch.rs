//! The handle of a switch: what is known of it, and the messages that a handler queues for it.
//!
//! It has no connection. Whoever runs the handler takes the queued messages, the runtime to send
//! them and a test to look at them.

use openflow::action::MAX_LEN_NO_BUFFER;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::message::{Features, PacketIn, PacketOut};
use openflow::port::{PortDesc, PortReason, PortStatus};
use openflow::{Action, DatapathId, Instruction, Message, PortNo, TableId, Version, Xid};
use std::collections::BTreeMap;
use std::time::Duration;

/// A switch that is ready.
#[derive(Clone, Debug)]
pub struct Switch {
    dpid: DatapathId,
    version: Version,
    features: Features,
    ports: BTreeMap<PortNo, PortDesc>,
    now: Duration,
    queue: Vec<(Xid, Message)>,
    next_xid: u32,
    not_forwarded: u64,
}

impl Switch {
    /// A switch as the runtime makes it from a features reply; a test of an app makes its own.
    #[must_use]
    pub fn new(version: Version, features: Features) -> Self {
        let ports = features.ports.iter().map(|port| (port.port_no, port.clone())).collect();
        Self {
            dpid: features.datapath_id,
            version,
            features,
            ports,
            now: Duration::ZERO,
            queue: Vec::new(),
            next_xid: 1,
            not_forwarded: 0,
        }
    }

    /// Who it is.
    #[must_use]
    pub fn dpid(&self) -> DatapathId {
        self.dpid
    }

    /// The version spoken with it.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// What it said it can do.
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

    /// Queues any message; its xid comes back, to know the answer by.
    pub fn send(&mut self, message: Message) -> Xid {
        let xid = Xid(self.next_xid);
        // The connection's own xids have the highest bit.
        self.next_xid = self.next_xid % 0x7fff_ffff + 1;
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

    /// Queues the deletion of every flow entry, whoever made it.
    pub fn clear_flows(&mut self) -> Xid {
        self.flow_mod(delete_all())
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

    pub(crate) fn set_now(&mut self, now: Duration) {
        self.now = now;
    }

    pub(crate) fn set_ports(&mut self, ports: Vec<PortDesc>) {
        self.ports = ports.into_iter().map(|port| (port.port_no, port)).collect();
    }

    pub(crate) fn take_port_status(&mut self, status: &PortStatus) {
        match status.reason {
            PortReason::Delete => {
                self.ports.remove(&status.desc.port_no);
            }
            PortReason::Add | PortReason::Modify | PortReason::Unknown(_) => {
                self.ports.insert(status.desc.port_no, status.desc.clone());
            }
        }
    }
}

/// A flow-mod that deletes every flow entry of every table, to be narrowed by match or ports.
#[must_use]
pub fn delete_all() -> FlowMod {
    FlowMod { table_id: TableId::ALL, ..FlowMod::new(FlowModCommand::Delete) }
}
