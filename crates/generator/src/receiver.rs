//! The receiver of one stream: loss, duplicates, reordering, delay and jitter.
//!
//! Delay is counted from the time at which a frame was *due*, not from when it left: a sender or a
//! switch that stalls shows up in every frame that should have gone in the meantime. Jitter is the
//! smoothed mean deviation of RFC 3550, section 6.4.1. It must never drop a sample silently:
//! foreign and stale payloads have counters.

use hdrhistogram::Histogram;

use crate::probe::{ProbeHeader, StreamId};

/// The longest delay that the histogram holds; longer ones are recorded as this.
pub const DELAY_MAX_NS: u64 = 60_000_000_000;

/// Counts the probes of one stream.
#[derive(Clone, Debug)]
pub struct StreamReceiver {
    stream: StreamId,
    seen: Vec<u64>,
    expected: u64,
    deadline_ns: u64,
    in_time: u64,
    late: u64,
    duplicates: u64,
    reordered: u64,
    foreign: u64,
    highest: Option<u32>,
    last_transit_ns: Option<i64>,
    jitter_ns: f64,
    last_ns: u64,
    delays: Histogram<u64>,
}

/// The report of a finished stream. Counts are frames.
#[derive(Clone, Debug)]
pub struct ReceiveReport {
    /// Frames that the schedule held.
    pub expected: u64,
    /// Distinct frames that arrived, in time or late.
    pub received: u64,
    /// Distinct frames that arrived no later than the deadline.
    pub in_time: u64,
    /// Distinct frames that arrived after the deadline.
    pub late: u64,
    /// Frames that never arrived.
    pub lost: u64,
    /// Further copies of frames that had arrived.
    pub duplicates: u64,
    /// Frames that arrived after a frame with a higher number.
    pub reordered: u64,
    /// Payloads that were no probes, or probes of another stream.
    pub foreign: u64,
    /// RFC 3550 interarrival jitter at the end, nanoseconds.
    pub jitter_ns: f64,
    /// When the last frame within the deadline arrived, nanoseconds of the run's clock.
    pub last_ns: u64,
    /// Delays of all frames that arrived, nanoseconds, three significant digits.
    pub delays: Histogram<u64>,
}

impl ReceiveReport {
    /// Share of the expected frames that did not arrive by the deadline, 0 to 1.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        1.0 - self.in_time as f64 / self.expected.max(1) as f64
    }

    /// The delay below which `quantile` (0 to 1) of the arrived frames stay, in microseconds;
    /// `None` when nothing arrived.
    #[must_use]
    pub fn delay_us(&self, quantile: f64) -> Option<f64> {
        (!self.delays.is_empty()).then(|| self.delays.value_at_quantile(quantile) as f64 / 1e3)
    }

    /// The mean delay in microseconds; `None` when nothing arrived.
    #[must_use]
    pub fn delay_us_mean(&self) -> Option<f64> {
        (!self.delays.is_empty()).then(|| self.delays.mean() / 1e3)
    }
}

impl StreamReceiver {
    /// Expects `expected` frames of `stream`; those that arrive after `deadline_ns` are late.
    #[must_use]
    pub fn new(stream: StreamId, expected: u64, deadline_ns: u64) -> Self {
        let words = usize::try_from(expected.div_ceil(64)).unwrap_or(usize::MAX);
        Self {
            stream,
            seen: vec![0; words],
            expected,
            deadline_ns,
            in_time: 0,
            late: 0,
            duplicates: 0,
            reordered: 0,
            foreign: 0,
            highest: None,
            last_transit_ns: None,
            jitter_ns: 0.0,
            last_ns: 0,
            // The bounds are constants that hdrhistogram accepts; growing is the fall-back that it
            // documents for three digits.
            delays: Histogram::new_with_max(DELAY_MAX_NS, 3)
                .or_else(|_| Histogram::new(3))
                .expect("three significant digits are within hdrhistogram's range"),
        }
    }

    /// Takes a payload that arrived at `now_ns`. Returns whether it was a new frame of the stream.
    pub fn take(&mut self, payload: &[u8], now_ns: u64) -> bool {
        let Some(probe) = ProbeHeader::read(payload).filter(|probe| {
            probe.stream == self.stream && u64::from(probe.sequence) < self.expected
        }) else {
            self.foreign += 1;
            return false;
        };
        let (word, bit) = (probe.sequence as usize / 64, 1_u64 << (probe.sequence % 64));
        if self.seen[word] & bit != 0 {
            self.duplicates += 1;
            return false;
        }
        self.seen[word] |= bit;
        self.report(&probe, now_ns);
        true
    }

    fn report(&mut self, probe: &ProbeHeader, now_ns: u64) {
        if now_ns <= self.deadline_ns {
            self.in_time += 1;
            self.last_ns = now_ns;
        } else {
            self.late += 1;
        }
        if self.highest.is_some_and(|highest| probe.sequence < highest) {
            self.reordered += 1;
        } else {
            self.highest = Some(probe.sequence);
        }
        let transit = now_ns as i64 - probe.due_ns as i64;
        if let Some(last) = self.last_transit_ns.replace(transit) {
            self.jitter_ns += ((transit - last).unsigned_abs() as f64 - self.jitter_ns) / 16.0;
        }
        self.delays.saturating_record(now_ns.saturating_sub(probe.due_ns).min(DELAY_MAX_NS));
    }

    /// Whether every expected frame has arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.in_time + self.late == self.expected
    }

    /// The report so far.
    #[must_use]
    pub fn finish(self) -> ReceiveReport {
        let received = self.in_time + self.late;
        ReceiveReport {
            expected: self.expected,
            received,
            in_time: self.in_time,
            late: self.late,
            lost: self.expected - received,
            duplicates: self.duplicates,
            reordered: self.reordered,
            foreign: self.foreign,
            jitter_ns: self.jitter_ns,
            last_ns: self.last_ns,
            delays: self.delays,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StreamReceiver;
    use crate::probe::{PROBE_LEN, ProbeHeader, StreamId};

    fn payload(stream: u16, sequence: u32, due_ns: u64) -> [u8; PROBE_LEN] {
        let mut bytes = [0; PROBE_LEN];
        ProbeHeader { stream: StreamId(stream), sequence, due_ns }.write(&mut bytes);
        bytes
    }

    #[test]
    fn counts_loss_duplicates_reordering_lateness_and_foreign_frames() {
        let mut receiver = StreamReceiver::new(StreamId(7), 6, 1000);
        assert!(receiver.take(&payload(7, 0, 0), 100));
        assert!(receiver.take(&payload(7, 2, 200), 300));
        assert!(receiver.take(&payload(7, 1, 100), 310));
        assert!(!receiver.take(&payload(7, 1, 100), 320));
        assert!(receiver.take(&payload(7, 5, 500), 1001));
        assert!(!receiver.take(&payload(8, 3, 300), 400));
        assert!(!receiver.take(&payload(7, 6, 300), 400), "past the end of the schedule");
        assert!(!receiver.take(b"something else that came", 400));
        assert!(!receiver.is_complete());
        let report = receiver.finish();
        assert_eq!(
            (report.expected, report.received, report.in_time, report.late, report.lost),
            (6, 4, 3, 1, 2)
        );
        assert_eq!((report.duplicates, report.reordered, report.foreign), (1, 1, 3));
        assert_eq!(report.last_ns, 310);
        assert!((report.loss_ratio() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn jitter_follows_rfc_3550() {
        // Transit times 100, 116, 100, 100: D = 16, 16, 0.
        let mut receiver = StreamReceiver::new(StreamId(1), 4, u64::MAX);
        for (sequence, transit) in [100, 116, 100, 100].into_iter().enumerate() {
            let due = sequence as u64 * 1000;
            receiver.take(&payload(1, sequence as u32, due), due + transit);
        }
        let (a, b) = (1.0, 1.0 + (16.0 - 1.0) / 16.0);
        let c = b + (0.0 - b) / 16.0;
        assert!(a < b);
        assert!((receiver.finish().jitter_ns - c).abs() < 1e-9);
    }

    #[test]
    fn delay_counts_from_the_due_time() {
        let mut receiver = StreamReceiver::new(StreamId(1), 3, u64::MAX);
        for sequence in 0..3 {
            receiver.take(&payload(1, sequence, u64::from(sequence) * 1_000_000), 5_000_000);
        }
        assert!(receiver.is_complete());
        let report = receiver.finish();
        let max = report.delay_us(1.0).unwrap();
        assert!((max - 5000.0).abs() < 10.0, "{max}");
        assert!((report.delay_us_mean().unwrap() - 4000.0).abs() < 10.0);
        assert_eq!(StreamReceiver::new(StreamId(1), 3, 0).finish().delay_us(0.5), None);
    }
}
