//! The ports of the switch by number, and sending what the datapath's verdicts say.

use std::sync::Arc;
use std::time::Instant;

use netdev::PortError;
use openflow::PortNo;
use packet::{Batch, PacketBuf, Pool};

use super::Slot;
use super::figures::{Figures, Timer};
use super::wire::{partner, readdress};
use crate::config::Wire;
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

    /// Whether every port that may receive has a descriptor that wakes a sleeper.
    pub(super) fn all_wake(&self) -> bool {
        self.slots.iter().all(|slot| {
            slot.quiet_until.is_some() || slot.port.as_ref().is_none_or(|port| port.fd().is_some())
        })
    }

    /// Takes a batch from a port and sends it by the other of its pair; whether there was any
    /// frame.
    pub(super) fn carry(
        &mut self,
        index: usize,
        wire: Wire,
        now: Instant,
        figures: &Figures,
    ) -> bool {
        let timer = Timer::begin(figures);
        let count = match self.slots.get_mut(index) {
            Some(slot) => slot.receive(&mut self.batch, now, &self.counters),
            None => 0,
        };
        if count == 0 {
            return false;
        }
        let received = timer.lap();
        let other = partner(index, self.slots.len());
        if let Some(slot) = self.slots.get_mut(other) {
            let (frames, pool) = self.batch.parts_mut();
            readdress(wire, frames, (slot.number, slot.info.mac));
            let changed = timer.lap();
            figures.sent.add(transmit(slot, frames, pool, &self.counters) as u64);
            timer.end(count, received, changed);
        }
        figures.batches.add(1);
        figures.packets.add(count as u64);
        true
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
    let mut frames = std::mem::take(&mut slot.tx);
    transmit(slot, &mut frames, batch.parts_mut().1, counters);
    slot.tx = frames;
}

/// Sends frames by a port and returns how many it took; what finds no room is dropped and counted.
/// None of the frames is left.
fn transmit(
    slot: &mut Slot,
    frames: &mut Vec<PacketBuf>,
    pool: &mut Pool,
    counters: &Counters,
) -> usize {
    let sent = match slot.port.as_mut().map(|port| port.tx_batch(frames, pool)) {
        Some(Ok(sent)) => sent,
        Some(Err(PortError::Gone(_))) => {
            slot.lose(Instant::now());
            0
        }
        Some(Err(error)) => {
            tracing::debug!(port = %slot.number, %error, "sending failed");
            counters.bump(Counter::PortError);
            0
        }
        None => 0,
    };
    let refused = frames.len();
    if refused > 0 {
        if slot.port.is_some() {
            counters.add(Counter::TxQueueFull, refused as u64);
            slot.tx_refused += refused as u64;
        } else {
            counters.add(Counter::TxPortGone, refused as u64);
        }
        pool.give_front(frames, refused);
    }
    sent
}
