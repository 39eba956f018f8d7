//! What forwards packets: one forwarder for each worker, over a replica of its own.
//!
//! A forwarder applies ops between batches and takes batches of frames from one port to their
//! verdicts. It allocates, locks and waits for nothing on the usual packet's way. What it does must
//! be what the reference does, whatever is cached or compiled.

mod emit;
mod packet_out;
mod replica;
mod walk;

use std::sync::Arc;

use openflow::message::PacketIn;
use openflow::{PortNo, QueueId};
use packet::PacketBuf;

use self::replica::Replica;
use self::walk::Walk;
use super::op::{Change, Op, Ticket};
use super::shared::Shared;
use crate::config::Config;
use crate::counter::{Counter, DropReason};
use crate::time::Nanos;

/// Where a forwarder's verdicts go. Every buffer that a forwarder is given or takes comes back by
/// one of these calls.
pub trait Sink {
    /// A frame leaves by a port that exists, is up and may send; never a reserved one but
    /// [`PortNo::LOCAL`].
    fn output(&mut self, port: PortNo, queue: Option<QueueId>, frame: PacketBuf);

    /// All of these frames leave by one port, in their order; the list is empty afterwards.
    fn output_all(&mut self, port: PortNo, queue: Option<QueueId>, frames: &mut Vec<PacketBuf>) {
        for frame in frames.drain(..) {
            self.output(port, queue, frame);
        }
    }

    /// A packet goes to the controller; see [`crate::Verdict::PacketIn`].
    fn packet_in(&mut self, message: PacketIn, max_len: u16);

    /// A packet or a copy goes nowhere. Its buffer comes by [`Sink::done`].
    fn dropped(&mut self, reason: DropReason);

    /// A buffer is no longer needed.
    fn done(&mut self, frame: PacketBuf);

    /// All of these buffers are no longer needed; the list is empty afterwards.
    fn done_all(&mut self, frames: &mut Vec<PacketBuf>) {
        for frame in frames.drain(..) {
            self.done(frame);
        }
    }

    /// A buffer for a copy; what is in it does not matter.
    fn spare(&mut self) -> PacketBuf;
}

/// One worker's datapath.
#[derive(Debug)]
pub struct Forwarder {
    replica: Replica,
    applied: Ticket,
}

impl Forwarder {
    /// The forwarder of this number, with the counters that it shares. It knows nothing until ops
    /// tell it. The seed keeps peers from choosing packets that collide; it changes no verdict.
    #[must_use]
    pub(crate) fn new(config: &Config, shared: Arc<Shared>, number: usize, seed: u64) -> Self {
        Self { replica: Replica::new(config, shared, number, seed), applied: Ticket(0) }
    }

    /// Takes a change over. Ops come in the order of their numbers, each once.
    pub fn apply(&mut self, op: Op, _now: Nanos) {
        self.applied = Ticket(self.applied.0 + 1);
        match op.0 {
            Change::Fold(ticket) => self.replica.own().set_folded(ticket),
            change => self.replica.apply(change),
        }
        self.replica.own().set_applied(self.applied);
    }

    /// Moves counts that are kept elsewhere to the shared counters, so many at most; whether there
    /// are more. Called between batches.
    pub fn fold_some(&mut self, _counts_max: usize) -> bool {
        false
    }

    /// Takes a batch of frames from one port; the list is empty afterwards.
    pub fn process_batch(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        in_port: PortNo,
        now: Nanos,
        sink: &mut impl Sink,
    ) {
        let replica = &self.replica;
        let (packets, bytes) =
            frames.iter().fold((0, 0), |(n, sum), frame| (n + 1, sum + frame.len() as u64));
        replica.count(Counter::Received, packets);
        if let Some(cell) = replica.port_cell(in_port) {
            cell.rx.add(packets, bytes);
        }
        for frame in frames.drain(..) {
            let refused = match replica.ports.get(in_port) {
                None => Some(DropReason::UnknownIngress),
                Some(port) => port.refuses_rx(frame.bytes()),
            };
            if let Some(reason) = refused {
                walk::refuse_rx(replica, in_port, 1);
                replica.count_drops(reason, 1);
                sink.dropped(reason);
                sink.done(frame);
            } else {
                Walk::new(replica, sink, now).ingress(frame, in_port);
            }
        }
    }
}
