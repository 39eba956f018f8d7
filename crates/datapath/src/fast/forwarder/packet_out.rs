//! Packet-outs: a list of actions on a packet that the controller gives (clause 7.3.7), by itself
//! or in a bundle.

use openflow::message::{PacketIn, PacketOut};
use openflow::{Error, PortNo, QueueId};
use packet::PacketBuf;

use super::bundle::BundleStep;
use super::emit::Emit;
use super::{Core, Sink};
use crate::counter::{Counter, DropReason};
use crate::fast::interpreter::{Interpreter, Packet};
use crate::fast::op::{Change, Op};
use crate::time::Nanos;
use crate::validate::{Existing, check_packet_out, check_packet_out_actions};
use crate::verdict::{Out, Verdict};

impl Core {
    pub(super) fn packet_out(
        &mut self,
        packet_out: &PacketOut,
        now: Nanos,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        check_packet_out(packet_out)?;
        let packet = packet_of(packet_out, sink);
        let replica = &self.replica;
        let existing = Existing {
            n_tables: replica.config.n_tables,
            group: &|id| replica.groups.get(id).is_some(),
            meter: &|id| replica.meter(id).is_some(),
        };
        if let Err(error) = check_packet_out_actions(packet_out, &packet.key(), &existing) {
            sink.done(packet.frame);
            return Err(error);
        }
        self.send_checked(packet, packet_out, now, sink);
        Ok(())
    }

    fn send_checked(
        &mut self,
        packet: Packet,
        packet_out: &PacketOut,
        now: Nanos,
        sink: &mut impl Sink,
    ) {
        let replica = &self.replica;
        replica.count(Counter::PacketOuts, 1);
        let mut walk = Interpreter::new(Emit::step_by_step(replica, sink, now));
        walk.packet_out(packet, &packet_out.actions);
        walk.finish().close();
    }

    /// Sends a packet-out of a bundle, which control has checked, if this forwarder is to do that.
    /// Its verdicts are kept for [`Core::give_sent`].
    pub(super) fn send_of_bundle(&mut self, packet_out: &PacketOut, now: Nanos) {
        if !self.replica.is_first() {
            return;
        }
        let mut sent = std::mem::take(&mut self.sent);
        let mut sink = Verdicts(&mut sent);
        let packet = packet_of(packet_out, &mut sink);
        self.send_checked(packet, packet_out, now, &mut sink);
        self.sent = sent;
    }

    /// Does the next piece of a bundle, but for its moment.
    pub(super) fn advance(&mut self, ops: &[Op]) -> BundleStep {
        let step = self.replica.advance(ops, &mut self.versions);
        if let BundleStep::Send(range) = &step {
            for op in ops.iter().take(range.end).skip(range.start) {
                if let Change::PacketOut(packet_out, at) = &op.0 {
                    self.send_of_bundle(packet_out, *at);
                }
            }
        }
        step
    }

    /// Gives the verdicts on the packet-outs of bundles since the last call; whether there are any.
    pub(super) fn give_sent(&mut self, sink: &mut impl Sink) -> bool {
        if self.sent.is_empty() {
            return false;
        }
        for verdict in self.sent.drain() {
            match verdict {
                Verdict::Output { port, queue, frame } => {
                    let mut copy = sink.spare();
                    copy.assign(frame.bytes());
                    sink.output(port, queue, copy);
                }
                Verdict::PacketIn { message, max_len } => sink.packet_in(message, max_len),
                Verdict::Held => sink.held(),
                Verdict::Drop { reason } => sink.dropped(reason),
            }
        }
        true
    }
}

fn packet_of(packet_out: &PacketOut, sink: &mut impl Sink) -> Packet {
    let mut frame = sink.spare();
    frame.assign(&packet_out.data);
    Packet::new(frame, packet_out.in_port)
}

/// Puts a forwarder's verdicts on a list.
pub(in crate::fast) struct Verdicts<'a>(pub(in crate::fast) &'a mut Out);

impl Sink for Verdicts<'_> {
    fn output(&mut self, port: PortNo, queue: Option<QueueId>, frame: PacketBuf) {
        self.0.push(Verdict::Output { port, queue, frame });
    }

    fn packet_in(&mut self, message: PacketIn, max_len: u16) {
        self.0.push(Verdict::PacketIn { message, max_len });
    }

    fn dropped(&mut self, reason: DropReason) {
        self.0.push(Verdict::Drop { reason });
    }

    fn held(&mut self) {
        self.0.push(Verdict::Held);
    }

    fn done(&mut self, _frame: PacketBuf) {}

    fn spare(&mut self) -> PacketBuf {
        PacketBuf::default()
    }
}
