//! A replayed capture as traffic: at a rate of its own, with numbered frames, or both.
//!
//! A frame is due by the clock, whether or not the queue is polled. Due frames wait in a ring, as
//! at a network card, and those that find it full are counted as dropped: a receiver that is too
//! slow loses frames here and nowhere else. The rate must never adapt to the receiver.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use packet::{Batch, PacketBuf};

use super::replay::Replay;
use crate::error::PortError;
use crate::port::RxQueue;

/// Bytes of a frame's number.
pub(super) const NUMBER_LEN: usize = 4;

/// The options of a replay.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReplayOptions {
    /// Frames a second, and how many of them wait at most; `None` as fast as they are asked for.
    pub(super) rate: Option<ReplayRate>,
    /// Place of each frame's number, in bytes from the frame's start.
    pub(super) number_at: Option<usize>,
}

/// Frames that are due by the clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplayRate {
    per_second: u64,
    slots: u64,
    /// Frames that were handed over or dropped.
    gone: u64,
}

/// Work that is due at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Due {
    /// Frames that have found no room since the last time.
    dropped: u64,
    /// Frames that wait now.
    waiting: u64,
}

impl ReplayRate {
    /// Frames are due from the first call of `due` on.
    pub(super) fn new(per_second: u32, slots: u32) -> Self {
        Self { per_second: per_second.into(), slots: slots.into(), gone: 0 }
    }

    fn due(&self, elapsed_ns: u128) -> Due {
        let due = elapsed_ns * u128::from(self.per_second) / 1_000_000_000;
        // A rate of 1e9 for 500 years.
        let behind = u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.gone);
        Due { dropped: behind.saturating_sub(self.slots), waiting: behind.min(self.slots) }
    }
}

/// A replayed capture with a rate, with numbered frames, or both.
#[derive(Debug)]
pub(super) struct PacedReplay {
    replay: Replay,
    options: ReplayOptions,
    /// When the first frame was asked for.
    begun: Option<Instant>,
    next_number: u32,
}

impl PacedReplay {
    pub(super) fn new(replay: Replay, options: ReplayOptions) -> Self {
        Self { replay, options, begun: None, next_number: 0 }
    }

    /// The number of frames, of `max`, that may be handed over now.
    fn allowed(&mut self, max: usize) -> usize {
        let Some(rate) = &mut self.options.rate else { return max };
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let due = rate.due(begun.elapsed().as_nanos());
        let count = usize::try_from(due.waiting).unwrap_or(usize::MAX).min(max);
        rate.gone += due.dropped + count as u64;
        if due.dropped > 0 {
            self.replay.skip(due.dropped);
        }
        count
    }

    fn number(&mut self, frames: &mut [PacketBuf], at: usize) {
        for frame in frames {
            if let Some(span) = frame.bytes_mut().get_mut(at..at + NUMBER_LEN) {
                span.copy_from_slice(&self.next_number.to_be_bytes());
            }
            self.next_number = self.next_number.wrapping_add(1);
        }
    }
}

impl RxQueue for PacedReplay {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        let max = self.allowed(max);
        let received = self.replay.rx(batch, max)?;
        if let Some(at) = self.options.number_at {
            let frames = batch.frames_mut();
            let first = frames.len() - received;
            self.number(&mut frames[first..], at);
        }
        Ok(received)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.replay.fd()
    }
}

#[cfg(test)]
mod tests {
    use super::{Due, ReplayRate};

    #[test]
    fn frames_are_due_by_the_clock_and_wait_in_a_ring() {
        let mut rate = ReplayRate::new(1_000_000, 100);
        assert_eq!(rate.due(0), Due { dropped: 0, waiting: 0 });
        assert_eq!(rate.due(50_999), Due { dropped: 0, waiting: 50 });
        assert_eq!(rate.due(130_000), Due { dropped: 30, waiting: 100 });
        rate.gone = 130;
        assert_eq!(rate.due(130_000), Due { dropped: 0, waiting: 0 });
        assert_eq!(rate.due(131_000), Due { dropped: 0, waiting: 1 });
    }
}
