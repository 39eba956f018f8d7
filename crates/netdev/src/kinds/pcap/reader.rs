//! A capture file that is received once, in the order of its records.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use packet::Batch;

use crate::counters::{Counted, PortQueueCounters};
use crate::error::PortError;
use crate::pcap::Capture;
use crate::port::RxQueue;
use crate::sys::event::WakeEvent;

/// The receive queue.
#[derive(Debug)]
pub(super) struct PcapReader {
    capture: Capture,
    next: usize,
    /// Never rung: to sleep on at the end of the file.
    end: WakeEvent,
    counters: Arc<PortQueueCounters>,
}

impl PcapReader {
    pub(super) fn new(capture: Capture, end: WakeEvent, counters: Arc<PortQueueCounters>) -> Self {
        Self { capture, next: 0, end, counters }
    }
}

impl RxQueue for PcapReader {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        let mut counted = Counted::default();
        let mut received = 0;
        while received < max {
            let Some(record) = self.capture.record(self.next) else { break };
            self.next += 1;
            // A frame that was cut when captured is not the frame that was on the wire.
            if record.frame.len() < record.wire_len as usize || record.frame.is_empty() {
                counted.errors += 1;
                continue;
            }
            batch.push_slice(record.frame);
            counted.frame(record.frame.len());
            received += 1;
        }
        self.counters.rx.add(&counted);
        Ok(received)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        (self.next >= self.capture.len()).then(|| self.end.fd())
    }
}
