//! The egress queues of a port, where any are configured.
//!
//! Frames wait here until the scheduler and the port's rate release them, so that delay and loss
//! are decided here and not in the device. The agent reads what passed each queue from counters
//! that only the port's worker writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datapath::{BadQueues, Nanos, QueueRates, QueueTally, Scheduler};
use openflow::QueueId;
use packet::PacketBuf;

/// The counters of a port's queues, for the agent.
#[derive(Debug)]
pub(crate) struct QueueCells(Box<[(QueueId, Cell)]>);

#[derive(Debug, Default)]
struct Cell {
    packets: AtomicU64,
    bytes: AtomicU64,
    dropped: AtomicU64,
}

impl QueueCells {
    /// The tally of each queue; frames of no queue count under number 0.
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

    /// Frames that wait.
    pub(super) fn len(&self) -> usize {
        self.scheduler.len()
    }

    /// Whether a queue takes another frame.
    pub(super) fn has_room(&self, queue: Option<QueueId>) -> bool {
        self.scheduler.has_room(queue)
    }

    /// Puts a frame into its queue, or returns it when the queue is full.
    pub(super) fn offer(
        &mut self,
        queue: Option<QueueId>,
        frame: PacketBuf,
        now: Nanos,
    ) -> Result<(), PacketBuf> {
        self.scheduler.offer(queue, frame.len(), frame, now)
    }

    /// Appends the frames that are released now to a list.
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

    /// Takes all frames that wait, in the order in which they would have left.
    pub(super) fn into_frames(mut self) -> Vec<PacketBuf> {
        let mut frames = Vec::new();
        while let Some(at) = self.scheduler.next_at() {
            match self.scheduler.take(at) {
                Some(frame) => frames.push(frame),
                None => break,
            }
        }
        frames
    }

    /// When the next frame is released, if one waits.
    pub(super) fn next_at(&self) -> Option<Nanos> {
        self.scheduler.next_at()
    }
}
