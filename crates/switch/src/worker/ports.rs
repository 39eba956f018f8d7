//! The ports of the switch by number, and sending what the datapath's verdicts say.

use std::sync::Arc;
use std::time::Instant;

use netdev::PortError;
use openflow::PortNo;
use packet::{Batch, PacketBuf};

use super::Slot;
use crate::counters::{Counter, Counters};

/// The shortest frame of Ethernet, without FCS (IEEE 802.3, clause 3.2.8). Hardware pads what is
/// shorter; virtual devices hand on what they are given.
const FRAME_MIN: usize = 60;

/// Frames that wait for one port before they are sent in the middle of a batch.
const TX_BATCH: usize = 64;

/// All configured ports, in the order of their numbers.
pub(crate) struct Ports {
    pub(super) slots: Vec<Slot>,
    /// Ports that have frames to send.
    waiting: Vec<usize>,
    /// Frames received, and buffers to be used again.
    pub(super) batch: Batch,
    counters: Arc<Counters>,
}

impl Ports {
    pub(crate) fn new(mut slots: Vec<Slot>, counters: Arc<Counters>) -> Self {
        slots.sort_by_key(|slot| slot.number);
        Self { slots, waiting: Vec::new(), batch: Batch::default(), counters }
    }

    /// All ports.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// All ports, writable.
    pub(crate) fn slots_mut(&mut self) -> &mut [Slot] {
        &mut self.slots
    }

    /// The port of a number.
    pub(crate) fn get_mut(&mut self, number: PortNo) -> Option<&mut Slot> {
        let index = self.slots.binary_search_by_key(&number, |slot| slot.number).ok()?;
        self.slots.get_mut(index)
    }

    /// Queues a frame for a port. A frame that a pop made too short for a wire is padded.
    pub(crate) fn queue(&mut self, number: PortNo, mut frame: PacketBuf) {
        let Ok(index) = self.slots.binary_search_by_key(&number, |slot| slot.number) else {
            // The datapath knows no other ports than these.
            self.counters.bump(Counter::TxPortGone);
            return;
        };
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.tx.is_empty() {
            self.waiting.push(index);
        }
        frame.pad_to(FRAME_MIN);
        slot.tx.push(frame);
        if slot.tx.len() >= TX_BATCH {
            send(slot, &mut self.batch, &self.counters);
            self.waiting.retain(|held| *held != index);
        }
    }

    /// Sends what is queued.
    pub(crate) fn flush(&mut self) {
        while let Some(index) = self.waiting.pop() {
            if let Some(slot) = self.slots.get_mut(index) {
                send(slot, &mut self.batch, &self.counters);
            }
        }
    }
}

/// Sends a port's frames; what finds no room is dropped and counted.
fn send(slot: &mut Slot, batch: &mut Batch, counters: &Counters) {
    let frames = slot.tx.len();
    let sent = match slot.port.as_mut().map(|port| port.tx(&slot.tx)) {
        Some(Ok(sent)) => sent,
        Some(Err(PortError::Gone(_))) => {
            counters.add(Counter::TxPortGone, frames as u64);
            slot.lose(Instant::now());
            frames
        }
        Some(Err(error)) => {
            tracing::debug!(port = %slot.number, %error, "sending failed");
            counters.bump(Counter::PortError);
            0
        }
        None => {
            counters.add(Counter::TxPortGone, frames as u64);
            frames
        }
    };
    let refused = frames.saturating_sub(sent) as u64;
    if refused > 0 {
        counters.add(Counter::TxQueueFull, refused);
        slot.tx_refused += refused;
    }
    for frame in slot.tx.drain(..) {
        batch.give_spare(frame);
    }
}
