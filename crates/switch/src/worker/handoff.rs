//! Frames of a bridge from the worker that received them to the worker whose port sends them.
//!
//! Every pair of workers has a lane of its own, so that frames of a flow, which all arrive by one
//! port, stay in order. Each side locks a lane once for a whole batch; buffers return by the same
//! lane, so that neither side allocates. Frames beyond the lane's capacity are dropped and counted
//! by the sender; nobody waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use openflow::QueueId;
use packet::{PacketBuf, Pool};

/// Frames that a lane holds: the size of a usual port's ring.
const LANE_MAX: usize = 2_048;

/// Super-frames among them, 8.4 MB.
const LARGE_MAX: usize = 128;

/// Buffers that a batch brings back.
const BACK_MAX: usize = 1_024;

/// A frame, the index of its port on the sending worker, and its queue there.
pub(super) type HandedFrame = ((usize, Option<QueueId>), PacketBuf);

/// The lanes to a bridge's shard on one worker.
#[derive(Debug)]
pub(crate) struct Handoff {
    lanes: Box<[Mutex<Lane>]>,
    /// One bit for each lane that has frames.
    any: AtomicU64,
}

#[derive(Debug, Default)]
struct Lane {
    frames: Vec<HandedFrame>,
    back: Vec<PacketBuf>,
    /// The most patch ports that any of the frames has passed.
    hops: u8,
}

impl Lane {
    /// The number of these frames that there is room for.
    fn room(&self, frames: &[HandedFrame]) -> usize {
        let room = LANE_MAX.saturating_sub(self.frames.len()).min(frames.len());
        if !frames.iter().any(is_large) {
            return room;
        }
        let mut left = LARGE_MAX.saturating_sub(self.frames.iter().filter(|f| is_large(f)).count());
        let fits = |frame: &&HandedFrame| {
            if !is_large(frame) {
                return true;
            }
            let is_room = left > 0;
            left = left.saturating_sub(1);
            is_room
        };
        frames.iter().take(room).take_while(fits).count()
    }
}

fn is_large((_, frame): &HandedFrame) -> bool {
    frame.offload().is_some_and(|offload| offload.segment_len != 0)
}

impl Handoff {
    /// Lanes from `workers` workers, at most 64.
    pub(crate) fn new(workers: usize) -> Self {
        Self { lanes: (0..workers).map(|_| Mutex::default()).collect(), any: AtomicU64::new(0) }
    }

    /// Hands over what `from` has, which has passed `hops` patch ports; how many frames found no
    /// room. None of them is left.
    pub(super) fn send(
        &self,
        (from, hops): (usize, u8),
        frames: &mut Vec<HandedFrame>,
        pool: &mut Pool,
    ) -> usize {
        let Some(lane) = self.lanes.get(from) else { return frames.len() };
        let mut lane = lane.lock().unwrap_or_else(PoisonError::into_inner);
        let room = lane.room(frames);
        lane.hops = lane.hops.max(hops);
        lane.frames.extend(frames.drain(..room));
        for buffer in lane.back.drain(..) {
            pool.give(buffer);
        }
        drop(lane);
        // Before the ring at the shard's queue, whose order makes it seen by who goes to sleep.
        self.any.fetch_or(1 << from, Ordering::SeqCst);
        let refused = frames.iter().map(|(_, frame)| frame.on_wire().0 as usize).sum();
        for (_, buffer) in frames.drain(..) {
            pool.give(buffer);
        }
        refused
    }

    /// Takes the frames of every lane into `into`, and gives buffers of `pool` back for them; the
    /// most patch ports that any of them has passed.
    pub(super) fn take(&self, into: &mut Vec<HandedFrame>, pool: &mut Pool) -> u8 {
        let mut hops = 0;
        if self.any.load(Ordering::Relaxed) == 0 {
            return hops;
        }
        let any = self.any.swap(0, Ordering::SeqCst);
        for (from, lane) in self.lanes.iter().enumerate() {
            if any & (1 << from) == 0 {
                continue;
            }
            let mut lane = lane.lock().unwrap_or_else(PoisonError::into_inner);
            let owed = lane.frames.len().min(BACK_MAX.saturating_sub(lane.back.len()));
            into.append(&mut lane.frames);
            hops = hops.max(std::mem::take(&mut lane.hops));
            for _ in 0..owed.min(pool.len()) {
                lane.back.push(pool.take());
            }
        }
        hops
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use packet::{PacketBuf, Pool};

    use super::{Handoff, LANE_MAX};

    #[test]
    fn frames_keep_their_order_and_are_bounded() {
        let handoff = Handoff::new(2);
        let mut pool = Pool::default();
        let mut frames: Vec<_> =
            (0..LANE_MAX + 5).map(|n| ((n, None), PacketBuf::from_slice(&[7]))).collect();
        assert_eq!(handoff.send((1, 3), &mut frames, &mut pool), 5);
        assert!(frames.is_empty() && pool.len() == 5);
        let mut got = Vec::new();
        assert_eq!(handoff.take(&mut got, &mut pool), 3);
        assert!(got.iter().map(|((place, _), _)| *place).eq(0..LANE_MAX));
        assert!(pool.is_empty());
        // The buffers of the first batch come back with the second.
        assert_eq!(
            handoff.send((1, 0), &mut vec![((0, None), PacketBuf::default())], &mut pool),
            0
        );
        assert_eq!(pool.len(), 5);
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        const COUNT: usize = 50_000;
        let handoff = Arc::new(Handoff::new(2));
        let sender = Arc::clone(&handoff);
        let thread = thread::spawn(move || {
            let (mut pool, mut sent) = (Pool::default(), 0);
            while sent < COUNT {
                let batch = sent..(sent + 32).min(COUNT);
                let mut frames: Vec<_> = batch.map(|n| ((n, None), pool.take())).collect();
                let count = frames.len();
                let refused = sender.send((0, 0), &mut frames, &mut pool);
                sent += count - refused;
                if refused > 0 {
                    thread::yield_now();
                }
            }
        });
        let (mut pool, mut got, mut batch) = (Pool::default(), Vec::new(), Vec::new());
        while got.len() < COUNT {
            handoff.take(&mut batch, &mut pool);
            for ((number, _), buffer) in batch.drain(..) {
                got.push(number);
                pool.give(buffer);
            }
        }
        thread.join().unwrap();
        assert!(got.into_iter().eq(0..COUNT));
    }
}
