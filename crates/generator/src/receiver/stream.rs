//! The account of one stream.

use super::ReceiverOptions;
use super::delay::DelayAccount;
use super::reordering::Reordering;
use super::report::StreamReport;
use super::window::{SequenceClass, SequenceWindow, WINDOW};
use crate::probe::{ProbeHeader, ProbeWords, StreamId, delay_ns};

/// Counts the probes of one stream. About 320 KiB, however long the stream runs.
#[derive(Clone, Debug)]
pub struct StreamReceiver {
    stream: StreamId,
    options: ReceiverOptions,
    window: SequenceWindow,
    reordering: Reordering,
    delay: DelayAccount,
    received: u64,
    late: u64,
    duplicated: u64,
    corrupted: u64,
    beyond_window: u64,
    stale: u64,
    foreign: u64,
    /// [`NEVER`] before the first frame.
    first_ns: u64,
    last_ns: u64,
    last_arrival_ns: u64,
    longest_gap_ns: u64,
}

/// No time: later than any.
const NEVER: u64 = u64::MAX;

impl StreamReceiver {
    /// An account from frame number 0 on.
    #[must_use]
    pub fn new(stream: StreamId, options: ReceiverOptions) -> Self {
        Self::starting_at(stream, 0, options)
    }

    /// An account from frame number `first` on: earlier ones are stale.
    #[must_use]
    pub fn starting_at(stream: StreamId, first: u64, options: ReceiverOptions) -> Self {
        Self {
            stream,
            options,
            window: SequenceWindow::starting_at(first),
            reordering: Reordering::new(),
            delay: DelayAccount::new(),
            received: 0,
            late: 0,
            duplicated: 0,
            corrupted: 0,
            beyond_window: 0,
            stale: 0,
            foreign: 0,
            first_ns: NEVER,
            last_ns: NEVER,
            last_arrival_ns: NEVER,
            longest_gap_ns: 0,
        }
    }

    /// The stream's number.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.stream
    }

    /// Distinct frames so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether anything of it has come, whole or not.
    pub(crate) fn has_come(&self) -> bool {
        self.received + self.corrupted + self.duplicated > 0
    }

    /// Payloads that were no probes of this stream.
    #[must_use]
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Takes a payload that arrived at `now_ns`. Returns whether it was a new frame of the stream.
    /// One that looks like a frame of the stream and was changed is counted as corrupted, any other
    /// as foreign.
    pub fn take(&mut self, payload: &[u8], now_ns: u64) -> bool {
        let words = ProbeWords::read(payload);
        let probe = words.probe();
        match (probe.stream == self.stream, words.is_whole()) {
            (true, true) => return self.take_probe(&probe, now_ns),
            (true, false) if self.resembles(&probe, now_ns) => self.corrupted += 1,
            (true | false, false) | (false, true) => self.foreign += 1,
        }
        false
    }

    /// Takes a probe of this stream. Returns whether it was new.
    #[inline]
    pub fn take_probe(&mut self, probe: &ProbeHeader, now_ns: u64) -> bool {
        let delay = delay_ns(probe.due_ns, now_ns);
        match self.window.take(probe.sequence) {
            SequenceClass::Next => {
                self.reordering.in_order(probe.sequence);
                self.delay.next(delay);
            }
            SequenceClass::Ahead => {
                self.reordering.after_gap(probe.sequence);
                self.delay.ahead(delay);
            }
            SequenceClass::Behind => {
                self.reordering.reordered(probe.sequence);
                self.delay.any(delay);
            }
            old @ (SequenceClass::Duplicate
            | SequenceClass::BeyondWindow
            | SequenceClass::Stale) => {
                self.count_old(old);
                return false;
            }
        }
        self.received += 1;
        if now_ns > self.options.deadline_ns || delay > self.options.late_after_ns {
            self.late += 1;
        } else {
            self.last_ns = now_ns;
        }
        self.first_ns = self.first_ns.min(now_ns);
        let gap = now_ns.saturating_sub(self.last_arrival_ns);
        self.longest_gap_ns = self.longest_gap_ns.max(gap);
        self.last_arrival_ns = now_ns;
        true
    }

    #[cold]
    fn count_old(&mut self, arrival: SequenceClass) {
        match arrival {
            SequenceClass::Duplicate => self.duplicated += 1,
            SequenceClass::BeyondWindow => self.beyond_window += 1,
            SequenceClass::Stale => self.stale += 1,
            SequenceClass::Next | SequenceClass::Ahead | SequenceClass::Behind => {}
        }
    }

    /// Whether all checksums of its frames are checked.
    pub(super) fn verifies(&self) -> bool {
        self.options.verify_checksums
    }

    /// A frame of this stream that was changed on the way.
    pub(super) fn count_corrupted(&mut self) {
        self.corrupted += 1;
    }

    /// Whether a probe with a wrong check looks like one of this stream: its number or its due time
    /// is near those of the last ones. Other bytes do by chance in 5 of 10,000 frames at most; zero
    /// bytes, which are usual, do not.
    pub(super) fn resembles(&self, probe: &ProbeHeader, now_ns: u64) -> bool {
        const NEAR_NS: u64 = 60_000_000_000;
        let apart = probe.sequence.wrapping_sub(self.window.next()).cast_signed();
        let delay = delay_ns(probe.due_ns, now_ns);
        let is_near = u64::from(apart.unsigned_abs()) <= WINDOW || delay > 0 && delay < NEAR_NS;
        is_near && (probe.sequence, probe.due_ns) != (0, 0)
    }

    /// The report so far. `sent` is how many frames the sender sent since the start of the account;
    /// while it still sends, or when it does not say, only gaps in the numbers count as loss.
    #[must_use]
    pub fn report(&self, sent: Option<u64>) -> StreamReport {
        let span = self.window.span();
        let sent = sent.unwrap_or(span).max(self.received);
        // The numbers after the highest that arrived are lost too when they were sent.
        let last_lost = if sent > span {
            Some(sent - 1)
        } else {
            self.window.last_lost().map(|number| number - self.window.first())
        };
        StreamReport {
            stream: self.stream.0,
            sent,
            received: self.received,
            late: self.late,
            lost: sent - self.received,
            duplicated: self.duplicated,
            reordered: self.reordering.count(),
            reordering: self.reordering.report(),
            corrupted: self.corrupted,
            beyond_window: self.beyond_window,
            stale: self.stale,
            last_lost,
            first_ns: Some(self.first_ns).filter(|at| *at != NEVER),
            last_ns: Some(self.last_ns).filter(|at| *at != NEVER),
            longest_gap_ns: self.longest_gap_ns,
            jitter_ns: self.delay.jitter_ns(),
            delay: self.delay.delay(),
            ipdv: self.delay.ipdv(),
            pdv: self.delay.pdv(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StreamReceiver;
    use crate::probe::{PROBE_LEN, ProbeHeader, StreamId};
    use crate::receiver::ReceiverOptions;

    fn payload(stream: u16, sequence: u32, due_ns: u64) -> [u8; PROBE_LEN] {
        let mut bytes = [0; PROBE_LEN];
        ProbeHeader { stream: StreamId(stream), sequence, due_ns }.write(&mut bytes);
        bytes
    }

    fn receiver(deadline_ns: u64) -> StreamReceiver {
        let options = ReceiverOptions { deadline_ns, ..ReceiverOptions::default() };
        StreamReceiver::new(StreamId(7), options)
    }

    #[test]
    fn counts_loss_duplicates_reordering_and_foreign_frames() {
        let mut receiver = receiver(1000);
        assert!(receiver.take(&payload(7, 0, 0), 100));
        assert!(receiver.take(&payload(7, 2, 200), 300));
        assert!(receiver.take(&payload(7, 1, 100), 310));
        assert!(!receiver.take(&payload(7, 1, 100), 320));
        assert!(receiver.take(&payload(7, 5, 500), 1001));
        assert!(!receiver.take(&payload(8, 3, 300), 400));
        assert!(!receiver.take(b"something else that came", 400));
        let report = receiver.report(Some(8));
        assert_eq!((report.sent, report.received, report.late, report.lost), (8, 4, 1, 4));
        assert_eq!((report.duplicated, report.reordered, receiver.foreign()), (1, 1, 2));
        assert_eq!((report.first_ns, report.last_ns), (Some(100), Some(310)));
        assert_eq!((report.last_lost, report.longest_gap_ns), (Some(7), 691));
        assert!((report.loss_ratio() - 5.0 / 8.0).abs() < 1e-9);
        let so_far = receiver.report(None);
        assert_eq!((so_far.sent, so_far.lost, so_far.last_lost), (6, 2, Some(4)));
    }

    #[test]
    fn a_frame_is_late_by_its_own_delay_too() {
        let options = ReceiverOptions { late_after_ns: 50, ..ReceiverOptions::default() };
        let mut receiver = StreamReceiver::new(StreamId(7), options);
        receiver.take(&payload(7, 0, 0), 50);
        receiver.take(&payload(7, 1, 10), 61);
        assert_eq!(receiver.report(None).late, 1);
    }

    #[test]
    fn delay_counts_from_the_due_time() {
        let mut receiver = receiver(u64::MAX);
        for sequence in 0..3 {
            receiver.take(&payload(7, sequence, u64::from(sequence) * 1_000_000), 5_000_000);
        }
        let report = receiver.report(None);
        assert!((report.delay_us(1.0).unwrap() - 5000.0).abs() < 10.0);
        assert!((report.delay_us_mean().unwrap() - 4000.0).abs() < 10.0);
        let nothing = StreamReceiver::new(StreamId(1), ReceiverOptions::default()).report(Some(3));
        assert_eq!((nothing.delay_us(0.5), nothing.lost), (None, 3));
    }

    #[test]
    fn a_report_survives_json() {
        let mut receiver = receiver(u64::MAX);
        receiver.take(&payload(7, 0, 0), 100);
        receiver.take(&payload(7, 1, 50), 170);
        let report = receiver.report(Some(2));
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<crate::receiver::StreamReport>(&text).unwrap(), report);
    }
}
