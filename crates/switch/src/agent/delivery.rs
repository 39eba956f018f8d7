//! From the worker's outbox to the mail of the controllers.

use std::rc::Rc;

use openflow::Message;
use openflow::message::PacketIn;

use super::asynchronous::{wants_flow_removed, wants_port_status};
use super::peer::Letter;
use super::{Agent, Peer};
use crate::counters::Counter;
use crate::worker::{Upcall, Waiting};

/// Delivers until the worker has ended.
pub(crate) async fn deliver(agent: Rc<Agent>) {
    let mut waiting = Waiting::default();
    loop {
        agent.outbox.ready().await;
        agent.outbox.take(&mut waiting);
        let peers = agent.peers();
        for packet in waiting.packets.drain(..) {
            deliver_packet(&agent, &peers, packet);
        }
        for peer in &peers {
            peer.wake();
        }
        for upcall in waiting.upcalls.drain(..) {
            match upcall {
                Upcall::Reply(request, message) => {
                    if let Some(peer) = agent.peer(request.from) {
                        peer.post(Letter::Reply(request, message));
                    }
                }
                Upcall::Refused(request, error) => {
                    if let Some(peer) = agent.peer(request.from) {
                        peer.post(Letter::Refused(request, error));
                    }
                }
                Upcall::FlowRemoved(flow) => {
                    let reason = flow.reason;
                    let message = Rc::new(Message::FlowRemoved(flow));
                    broadcast(&peers, &message, |peer| {
                        wants_flow_removed(&peer.asynchronous.get(), peer.role.get(), reason)
                    });
                }
                Upcall::PortStatus(status) => {
                    let reason = status.reason;
                    let message = Rc::new(Message::PortStatus(status));
                    broadcast(&peers, &message, |peer| {
                        wants_port_status(&peer.asynchronous.get(), peer.role.get(), reason)
                    });
                }
                Upcall::Stopped => return,
            }
        }
    }
}

fn deliver_packet(agent: &Agent, peers: &[Rc<Peer>], packet: PacketIn) {
    let (reason, cookie) = (packet.reason, packet.cookie);
    let mut wanting = peers.iter().filter(|peer| peer.wants_packet_in(reason, cookie)).peekable();
    if wanting.peek().is_none() {
        agent.counters.bump(Counter::PacketInNoController);
        return;
    }
    let message = Rc::new(Message::PacketIn(packet));
    for peer in wanting {
        if !peer.post_packet(Rc::clone(&message)) {
            agent.counters.bump(Counter::PacketInControllerBusy);
        }
    }
}

fn broadcast(peers: &[Rc<Peer>], message: &Rc<Message>, wants: impl Fn(&Peer) -> bool) {
    for peer in peers.iter().filter(|peer| wants(peer)) {
        peer.post_news(Rc::clone(message));
    }
}
