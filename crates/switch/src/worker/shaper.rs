//! A port's queues on the way to its device, where any are configured.
//!
//! Frames wait here until their queue's turn has come and the port's rate lets them go, so that it
//! is decided here and not in the device which of them are late or lost. What passed each queue is
//! told to the agent by counters that only the port's worker writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datapath::{BadQueues, Nanos, QueueRates, QueueTally, Scheduler};
use openflow::QueueId;
use packet::PacketBuf;

/// What passed the queues of a port, for the agent.
#[derive(Debug)]
pub(crate) struct QueueCells(Box<[(QueueId, Cell)]>);

#[derive(Debug, Default)]
struct Cell {
    packets: AtomicU64,
    bytes: AtomicU64,
    dropped: AtomicU64,
}

impl QueueCells {
    /// What passed each queue, frames of no queue under number 0.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = (QueueId, QueueTally)> {
        let get = |value: &AtomicU64| value.load(Ordering::Relaxed);
        self.0.iter().map(move |(id, cell)| {
            let (packets, bytes) = (get(&cell.packets), get(&cell.bytes));
            (*id, QueueTally { packets, bytes, dropped: get(&cell.dropped) })
        })
    }
}

/// The queues of a port.
#[derive(Debug)]
pub(crate) struct Shaper {
    scheduler: Scheduler<PacketBuf>,
    cells: Arc<QueueCells>,
}

impl Shaper {
    /// Queues for a port of this rate in bits per second.
    pub(crate) fn new(rate_bps: u64, queues: &[QueueRates]) -> Result<Self, BadQueues> {
        let scheduler = Scheduler::new(rate_bps, queues)?;
        let cells = scheduler.tallies().map(|(id, _)| (id, Cell::default())).collect();
        Ok(Self { scheduler, cells: Arc::new(QueueCells(cells)) })
    }

    /// The counters.
    pub(crate) fn cells(&self) -> &Arc<QueueCells> {
        &self.cells
    }

    /// Whether no frame waits.
    pub(super) fn is_empty(&self) -> bool {
        self.scheduler.is_empty()
    }

    /// Whether a queue takes another frame.
    pub(super) fn has_room(&self, queue: Option<QueueId>) -> bool {
        self.scheduler.has_room(queue)
    }

    /// Puts a frame into its queue; the frame, when that is full.
    pub(super) fn offer(
        &mut self,
        queue: Option<QueueId>,
        frame: PacketBuf,
        now: Nanos,
    ) -> Result<(), PacketBuf> {
        self.scheduler.offer(queue, frame.len(), frame, now)
    }

    /// Moves the frames that go now to the end of a list.
    pub(super) fn release(&mut self, now: Nanos, into: &mut Vec<PacketBuf>) {
        while let Some(frame) = self.scheduler.take(now) {
            into.push(frame);
        }
        let set = |value: &AtomicU64, now: u64| value.store(now, Ordering::Relaxed);
        for ((_, cell), (_, tally)) in self.cells.0.iter().zip(self.scheduler.tallies()) {
            set(&cell.packets, tally.packets);
            set(&cell.bytes, tally.bytes);
            set(&cell.dropped, tally.dropped);
        }
    }

    /// When the next frame goes, if one waits.
    pub(super) fn next_at(&self) -> Option<Nanos> {
        self.scheduler.next_at()
    }
}
