//! A capture file that is received over and over, from memory.
//!
//! The frames lie ready as whole cache lines, one after the other, so that a frame costs one
//! sequential read and one copy into a buffer of the caller's: the cheapest source that still hands
//! out frames which may be rewritten. A measurement of a datapath counts this time as its own, so
//! it must stay small and equal for every frame.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use packet::{Batch, Block};

use crate::counters::{Counted, PortQueueCounters};
use crate::error::PortError;
use crate::pcap::Capture;
use crate::port::RxQueue;
use crate::sys::event::WakeEvent;

const BLOCK_LEN: usize = size_of::<Block>();

/// Place of a frame in the file.
#[derive(Debug, Clone, Copy)]
struct FrameSpan {
    /// Its first block.
    first: u32,
    /// Its length in bytes.
    len: u32,
}

/// The frames of a file, received for ever.
#[derive(Debug)]
pub(super) struct Replay {
    /// Never rung: to sleep on where there is no frame.
    empty: WakeEvent,
    counters: Arc<PortQueueCounters>,
    blocks: Vec<Block>,
    spans: Vec<FrameSpan>,
    next: usize,
}

impl Replay {
    /// Takes the whole frames of `capture` over; records that were cut when captured are counted as
    /// broken, once.
    pub(super) fn new(
        capture: &Capture,
        empty: WakeEvent,
        counters: Arc<PortQueueCounters>,
    ) -> Self {
        let mut counted = Counted::default();
        let mut replay = (Vec::new(), Vec::new());
        for record in (0..capture.len()).filter_map(|number| capture.record(number)) {
            if record.frame.len() < record.wire_len as usize || record.frame.is_empty() {
                counted.errors += 1;
                continue;
            }
            // The format keeps a record below 256 KiB; a file of 256 GiB would not be in memory.
            replay
                .1
                .push(FrameSpan { first: replay.0.len() as u32, len: record.frame.len() as u32 });
            for part in record.frame.chunks(BLOCK_LEN) {
                let mut block = [0; BLOCK_LEN];
                block[..part.len()].copy_from_slice(part);
                replay.0.push(block);
            }
        }
        let (blocks, spans) = replay;
        counters.rx.add(&counted);
        Self { empty, counters, blocks, spans, next: 0 }
    }

    /// Passes over `count` frames, which are counted as dropped.
    pub(super) fn skip(&mut self, count: u64) {
        if let Some(skipped) = count.checked_rem(self.spans.len() as u64) {
            // Less than the number of frames in memory.
            self.next = (self.next + skipped as usize) % self.spans.len();
        }
        self.counters.rx.add(&Counted { drops: count, ..Counted::default() });
    }

    /// The length of the shortest frame; `None` for none.
    pub(super) fn shortest(&self) -> Option<usize> {
        self.spans.iter().map(|span| span.len as usize).min()
    }
}

impl RxQueue for Replay {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        if self.spans.is_empty() {
            return Ok(0);
        }
        let (frames, pool) = batch.parts_mut();
        let start = frames.len();
        pool.take_into(frames, max);
        let mut bytes = 0;
        let mut empty = &mut frames[start..];
        // Buffers are moved by the batch and filled where they stand, in runs that do not pass the
        // end of the file.
        while !empty.is_empty() {
            let run = empty.len().min(self.spans.len() - self.next);
            let (now, later) = empty.split_at_mut(run);
            for (buf, span) in now.iter_mut().zip(&self.spans[self.next..]) {
                let (first, len) = (span.first as usize, span.len as usize);
                buf.assign_blocks(&self.blocks[first..first + len.div_ceil(BLOCK_LEN)], len);
                bytes += len;
            }
            self.next = (self.next + run) % self.spans.len();
            empty = later;
        }
        let (packets, bytes) = (max as u64, bytes as u64);
        self.counters.rx.add(&Counted { packets, bytes, ..Counted::default() });
        Ok(max)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.spans.is_empty().then(|| self.empty.fd())
    }
}
