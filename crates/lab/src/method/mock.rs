//! A path of known capacity, delay and loss in virtual time, which every method must find again.
//!
//! Frames follow the generator's own schedule and are accounted by its own receiver; only the
//! wires are imagined. A queue of known depth stands before a server of known rate.

use generator::pacing::Schedule;
use generator::probe::StreamId;
use generator::receiver::{ReceiveReport, StreamReceiver};
use generator::stream::TestStream;

use super::search::{Attempt, Path};

/// The imagined path.
#[derive(Clone, Copy, Debug)]
pub(super) struct MockPath {
    /// Frames a second that it forwards.
    pub(super) capacity_pps: f64,
    /// Delay of every frame besides queueing, seconds.
    pub(super) delay_s: f64,
    /// Frames that it queues.
    pub(super) queue: u64,
    /// Every so manieth frame is lost; 0 for none.
    pub(super) lose_every: u64,
}

impl MockPath {
    /// 100,000 frames a second, no delay, a short queue, no loss.
    pub(super) fn perfect() -> Self {
        Self { capacity_pps: 100_000.0, delay_s: 0.0, queue: 64, lose_every: 0 }
    }

    /// Carries one schedule through the path.
    pub(super) fn carry(&self, rate_pps: f64, duration_s: f64, grace_s: f64) -> ReceiveReport {
        let schedule = Schedule::new(0, rate_pps, duration_s);
        let mut stream = TestStream::new(StreamId(0), 64).unwrap();
        let deadline = schedule.end_ns() + (grace_s * 1e9) as u64;
        let mut receiver = StreamReceiver::new(StreamId(0), schedule.count(), deadline);
        let service_ns = 1e9 / self.capacity_pps;
        let mut free_at_ns = 0.0_f64;
        for number in 0..schedule.count() {
            let due_ns = schedule.due_ns(number);
            let waiting = (free_at_ns - due_ns as f64) / service_ns;
            let lost = self.lose_every != 0 && number % self.lose_every == 0;
            if lost || waiting > self.queue as f64 {
                continue;
            }
            free_at_ns = free_at_ns.max(due_ns as f64) + service_ns;
            let arrival = free_at_ns + self.delay_s * 1e9;
            receiver.take(stream.payload(number as u32, due_ns), arrival as u64);
        }
        receiver.finish()
    }
}

impl Path for MockPath {
    type Error = std::convert::Infallible;

    fn trial(&mut self, offered_pps: f64) -> Result<Attempt, Self::Error> {
        let (duration_s, grace_s) = (1.0, 0.05);
        let account = self.carry(offered_pps, duration_s, grace_s);
        Ok(Attempt {
            offered_pps,
            received_pps: super::pps::received_pps(&account, 0, duration_s),
            loss: account.loss_ratio(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::MockPath;

    #[test]
    fn the_account_shows_the_delay_and_the_loss() {
        let path = MockPath { delay_s: 0.002, lose_every: 10, ..MockPath::perfect() };
        let account = path.carry(1_000.0, 1.0, 0.05);
        assert!((account.loss_ratio() - 0.1).abs() < 1e-9);
        let p50 = account.delay_us(0.5).unwrap();
        assert!((p50 - 2_010.0).abs() < 5.0, "{p50}");
        assert!(account.jitter_ns < 1.0);
    }
}
