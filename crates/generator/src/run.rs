//! Carrying a stream over endpoints: the paced sender, the receiver's loop, and the reflector.
//!
//! One-way: sender at one host, receiver at the other. Round trip: sender and receiver at one host
//! and a reflector at the other. It must never let the receiving side slow the sending side.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::RunClock;
use crate::endpoint::{SendOutcome, TrafficEndpoint};
use crate::pacing::Schedule;
use crate::receiver::{ReceiverOptions, StreamReceiver, StreamReport};
use crate::stream::TestStream;

/// Frames sent between two looks at the clock and the stop flag.
const BURST: u64 = 64;

/// The shortest sleep between bursts: below it the timer's slack dominates and the sender would
/// take a core that the switch under test needs.
const NAP_NS: u64 = 50_000;

/// Room for the largest payload.
const BUFFER: usize = 2048;

/// The sender's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendReport {
    /// Frames that the kernel or the port took.
    pub sent: u64,
    /// Frames that it refused because its queue was full.
    pub refused: u64,
    /// How late the latest frame left, nanoseconds after it was due.
    pub late_ns_max: u64,
}

/// How long a receiver waits after the schedule's end. All in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveLimits {
    /// Frames that arrive this long after the end of the schedule are still in time.
    pub grace_ns: u64,
    /// After the end, silence of this length ends the run.
    pub quiet_ns: u64,
    /// This long after the end the run ends whatever still arrives.
    pub drain_ns: u64,
}

/// The result of one trial.
#[derive(Clone, Debug)]
pub struct TrialResult {
    /// When the first frame was due, nanoseconds of the run's clock.
    pub start_ns: u64,
    /// The sender's side.
    pub sent: SendReport,
    /// The receiver's side. [`StreamReport::sent`] counts the schedule: what the sender was refused
    /// is lost too.
    pub report: StreamReport,
}

/// Sends `stream` as `schedule` says, until its end or until `stop`.
///
/// # Errors
/// Of the endpoint.
pub fn send(
    endpoint: &mut dyn TrafficEndpoint,
    stream: &mut TestStream,
    schedule: &Schedule,
    clock: &RunClock,
    stop: &AtomicBool,
) -> io::Result<SendReport> {
    let mut report = SendReport::default();
    let mut next = 0;
    while next < schedule.count() && !stop.load(Ordering::Relaxed) {
        let now = clock.now_ns();
        let due = schedule.due_count(now);
        if due == next {
            clock.sleep_until(schedule.due_ns(next).max(now + NAP_NS));
            continue;
        }
        let last = due.min(next + BURST);
        report.late_ns_max = report.late_ns_max.max(now - schedule.due_ns(next));
        while next < last {
            let payload = stream.payload(next as u32, schedule.due_ns(next));
            match endpoint.send(payload)? {
                SendOutcome::Taken => report.sent += 1,
                SendOutcome::Refused => report.refused += 1,
            }
            next += 1;
        }
    }
    Ok(report)
}

/// Feeds `receiver` until all frames of `schedule` have come, `stop` is set, or `limits` are over.
///
/// # Errors
/// Of the endpoint.
pub fn receive(
    endpoint: &mut dyn TrafficEndpoint,
    receiver: &mut StreamReceiver,
    schedule: &Schedule,
    limits: &ReceiveLimits,
    clock: &RunClock,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut buffer = [0; BUFFER];
    let end_ns = schedule.end_ns();
    let mut last_ns = end_ns;
    while receiver.received() < schedule.count() && !stop.load(Ordering::Relaxed) {
        let length = endpoint.receive(&mut buffer)?;
        let now = clock.now_ns();
        if let Some(length) = length
            && receiver.take(&buffer[..length.min(BUFFER)], now)
        {
            last_ns = last_ns.max(now);
        }
        if now > last_ns + limits.quiet_ns || now > end_ns + limits.drain_ns {
            break;
        }
    }
    Ok(())
}

/// Sends every payload that arrives back to where it came from, until `stop`. Returns how many.
///
/// # Errors
/// Of the endpoint.
pub fn reflect(endpoint: &mut dyn TrafficEndpoint, stop: &AtomicBool) -> io::Result<u64> {
    let mut buffer = [0; BUFFER];
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        if let Some(length) = endpoint.receive(&mut buffer)?
            && endpoint.send(&buffer[..length.min(BUFFER)])? == SendOutcome::Taken
        {
            count += 1;
        }
    }
    Ok(count)
}

/// One trial: `tx` sends, `rx` receives, each on a thread of its own.
///
/// # Errors
/// Of either endpoint.
pub fn trial(
    tx: &mut dyn TrafficEndpoint,
    rx: &mut dyn TrafficEndpoint,
    stream: &mut TestStream,
    schedule: &Schedule,
    limits: &ReceiveLimits,
    clock: &RunClock,
    stop: &AtomicBool,
) -> io::Result<TrialResult> {
    let deadline_ns = schedule.end_ns() + limits.grace_ns;
    let options = ReceiverOptions { deadline_ns, ..ReceiverOptions::default() };
    let mut receiver = StreamReceiver::new(stream.id(), options);
    let sent = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(rx, &mut receiver, schedule, limits, clock, stop));
        let sent = send(tx, stream, schedule, clock, stop);
        let received = receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        received.and(sent)
    })?;
    let report = receiver.report(Some(schedule.count()));
    Ok(TrialResult { start_ns: schedule.start_ns(), sent, report })
}

#[cfg(test)]
mod tests {
    use super::{ReceiveLimits, TrialResult, reflect, trial};
    use crate::clock::RunClock;
    use crate::endpoint::UdpEndpoint;
    use crate::pacing::Schedule;
    use crate::probe::StreamId;
    use crate::stream::TestStream;
    use std::sync::atomic::{AtomicBool, Ordering};

    const LIMITS: ReceiveLimits = ReceiveLimits {
        grace_ns: 10_000_000_000,
        quiet_ns: 5_000_000_000,
        drain_ns: 10_000_000_000,
    };

    fn run(tx: &mut UdpEndpoint, rx: &mut UdpEndpoint, stop: &AtomicBool) -> TrialResult {
        let clock = RunClock::start();
        let mut stream = TestStream::new(StreamId(1), 64).unwrap();
        let schedule = Schedule::new(clock.now_ns(), 2000.0, 0.05);
        trial(tx, rx, &mut stream, &schedule, &LIMITS, &clock, stop).unwrap()
    }

    #[test]
    fn every_frame_of_a_slow_stream_crosses_the_loopback() {
        let (mut a, mut b) = UdpEndpoint::loopback_pair().unwrap();
        let outcome = run(&mut a, &mut b, &AtomicBool::new(false));
        assert_eq!(outcome.sent.sent + outcome.sent.refused, 100);
        assert_eq!(outcome.report.received, outcome.sent.sent);
    }

    #[test]
    fn a_reflector_makes_a_round_trip() {
        let (mut a, mut b) = UdpEndpoint::loopback_pair().unwrap();
        let mut a_rx = a.share().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reflector = scope.spawn(|| reflect(&mut b, &done));
            let outcome = run(&mut a, &mut a_rx, &AtomicBool::new(false));
            done.store(true, Ordering::Relaxed);
            assert_eq!(outcome.report.received, outcome.sent.sent);
            assert!(reflector.join().unwrap().unwrap() >= outcome.report.received);
        });
    }

    #[test]
    fn a_stopped_trial_returns_at_once() {
        let (mut a, mut b) = UdpEndpoint::loopback_pair().unwrap();
        let outcome = run(&mut a, &mut b, &AtomicBool::new(true));
        assert_eq!(outcome.report.received, 0);
    }
}
