//! Packet-out (clause 7.3.7).

use openflow::message::PacketOut;

use super::{Answer, Worker};
use crate::counters::Counter;

pub(super) fn packet_out(worker: &mut Worker, packet_out: &PacketOut) -> Answer {
    worker.counters.bump(Counter::PacketOut);
    let now = worker.now();
    worker.datapath.packet_out(packet_out, now, &mut worker.out)?;
    worker.carry_verdicts();
    Ok(None)
}
