//! Delivery of the workers' upcalls to the send queues of the controllers.
//!
//! Packet-ins are spread over a controller's auxiliary connections, those of one flow by one
//! connection so that they stay in order; everything else goes by the main one (clause 6.3.6).

use std::rc::Rc;

use datapath::Removed;
use datapath::fast::Control;
use openflow::Message;
use openflow::message::{AsyncEvent, PacketIn};
use openflow::port::PortStatus;

use super::peer::Reply;
use super::{Agent, Peer};
use crate::bridge::BarrierWaiter;
use crate::counters::Counter;
use crate::upcall::UpcallBatch;
use crate::worker::{BarrierId, WorkerEvent};

/// Delivers the upcalls of the bridge's workers, for ever.
pub(crate) async fn deliver(agent: Rc<Agent>) {
    let mut batch = UpcallBatch::default();
    loop {
        agent.upcalls.ready().await;
        agent.upcalls.take(&mut batch);
        let peers = agent.peers();
        for packet in batch.packets.drain(..) {
            deliver_packet(&agent, &peers, packet);
        }
        for peer in &peers {
            peer.wake();
        }
        for event in batch.events.drain(..) {
            match event {
                WorkerEvent::PacketOutRefused(request, error) => {
                    if let Some(peer) = agent.peer(request.from) {
                        peer.send_reply(Reply::Refused(request, error));
                    }
                }
                WorkerEvent::BarrierReached(barrier) => agent.reached(barrier),
                WorkerEvent::Taught(taught) => agent.bridge.learn(&taught),
                WorkerEvent::PortChanged(number, serial, info) => {
                    agent.note_change();
                    if let Some(status) = agent.bridge.port_changed(number, serial, *info) {
                        agent.publish_port_status(status);
                    }
                }
            }
        }
        agent.send_ops();
    }
}

fn deliver_packet(agent: &Agent, peers: &[Rc<Peer>], mut packet: PacketIn) {
    if !packet.continuation.is_empty() {
        let bridge = agent.bridge.dpid();
        packet.continuation = agent.continuation_key.of_bridge(bridge, &packet.continuation);
    }
    let PacketIn { reason, cookie, controller_id, .. } = packet;
    let mut wanting = peers
        .iter()
        .filter(|peer| peer.is_main() && peer.wants_packet_in(reason, cookie, controller_id))
        .peekable();
    if wanting.peek().is_none() {
        agent.counters.bump(Counter::PacketInNoController);
        return;
    }
    let flow = flow_of(&packet.data);
    let message = Rc::new(Message::PacketIn(packet));
    for peer in wanting {
        if !peer.connection_for(flow).queue_packet_in(Rc::clone(&message)) {
            agent.counters.bump(Counter::PacketInControllerBusy);
        }
    }
}

/// A number that all packets of a flow have in common: made of the Ethernet addresses and, where
/// the header follows at once, the IP addresses.
fn flow_of(frame: &[u8]) -> u32 {
    let ip = match frame.get(12..14) {
        Some([0x08, 0x00]) => frame.get(26..34),
        Some([0x86, 0xdd]) => frame.get(22..54),
        Some(_) | None => None,
    };
    let bytes = frame.get(..14).unwrap_or(frame).iter().chain(ip.unwrap_or_default());
    // FNV-1a; its lowest bits alone are poor for few connections.
    let hash = bytes
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    hash ^ hash >> 16
}

impl Agent {
    /// A worker has reached a barrier.
    fn reached(&self, barrier: BarrierId) {
        match self.bridge.reached(barrier) {
            Some(BarrierWaiter::Barrier(request)) => {
                if let Some(peer) = self.peer(request.from) {
                    peer.send_reply(Reply::Message(request, Message::BarrierReply));
                }
            }
            Some(BarrierWaiter::Bundle(request, reply, ops)) => {
                drop(ops);
                if let Some(peer) = self.peer(request.from) {
                    peer.send_reply(Reply::Message(request, Message::BundleControl(reply)));
                }
            }
            Some(BarrierWaiter::Reap) => {
                let removed = self.bridge.reaped();
                self.report_changes(None);
                self.send_flow_removed(removed);
            }
            // Nobody waits any more where sending fails, and then nothing is lost.
            Some(BarrierWaiter::Task(task)) => drop(task.send(())),
            None => {}
        }
    }

    /// Counts the status of a port and sends it to the controllers.
    pub(crate) fn publish_port_status(&self, status: PortStatus) {
        self.counters.bump(Counter::PortStatus);
        self.send_port_status(status);
    }

    /// Sends a port status to the controllers.
    pub(crate) fn send_port_status(&self, status: PortStatus) {
        let reason = status.reason;
        self.broadcast(&Rc::new(Message::PortStatus(status)), |peer| {
            peer.wants(AsyncEvent::PortStatus, reason.number())
        });
    }

    /// Sends the vacancy events of tables that have become due.
    pub(super) fn send_table_events(&self) {
        for status in self.bridge.with_control(Control::take_table_events).unwrap_or_default() {
            let reason = status.reason.number();
            self.broadcast(&Rc::new(Message::TableStatus(status)), |peer| {
                peer.wants(AsyncEvent::TableStatus, reason)
            });
        }
    }

    /// Sends a flow-removed message for each removed entry that asked for one.
    pub(super) fn send_flow_removed(&self, removed: Vec<Removed>) {
        for entry in removed.into_iter().filter(|entry| entry.notify) {
            self.counters.bump(Counter::FlowRemoved);
            let reason = entry.flow.reason;
            self.broadcast(&Rc::new(Message::FlowRemoved(entry.flow)), |peer| {
                peer.wants(AsyncEvent::FlowRemoved, reason.nearest_in(peer.version).number())
            });
        }
    }

    fn broadcast(&self, message: &Rc<Message>, wants: impl Fn(&Peer) -> bool) {
        for peer in self.peers().iter().filter(|peer| peer.is_main() && wants(peer)) {
            peer.send_async(Rc::clone(message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::flow_of;

    #[test]
    fn packets_of_one_flow_have_one_number_and_flows_differ() {
        let packet = |host: u8, ttl: u8| {
            let mut frame = vec![0; 60];
            frame[12..14].copy_from_slice(&[8, 0]);
            frame[22] = ttl;
            frame[33] = host;
            frame
        };
        assert_eq!(flow_of(&packet(1, 64)), flow_of(&packet(1, 63)));
        let numbers: std::collections::HashSet<u32> =
            (0..64).map(|host| flow_of(&packet(host, 64)) % 4).collect();
        assert_eq!(numbers.len(), 4, "all of four connections are used");
        flow_of(&[]);
        flow_of(&[1; 13]);
    }
}
