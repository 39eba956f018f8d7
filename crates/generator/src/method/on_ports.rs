//! Trials on real ports: the frames of a stream leave by one port of a session and come back by
//! another.
//!
//! A device that learns addresses should have seen those of the stream before, so learning frames
//! (RFC 2544, clause 23) can go before each trial: from the port at which the frames arrive, with
//! source and destination exchanged. The measurer waits after each trial until all has come or
//! nothing comes any more, so that the next one finds the device empty. It must never take frames
//! that it could not send for frames that were lost on the way without saying so:
//! [`TrialOutput::unsent`] counts them.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::learning::returning;
use super::{Measurer, TrialInput, TrialOutput};
use crate::profile::{FrameSize, LAYER_1_OVERHEAD, Mode, ProfileError, Rate, StreamSpec};
use crate::receiver::StreamReport;
use crate::session::{Session, SessionError, StartOptions};
use crate::statistics::{SessionStatistics, StreamStatistics};

/// Silence after which nothing is on its way any more, where nothing is known of the device.
pub const QUIET: Duration = Duration::from_millis(300);

/// The longest wait for that.
const DRAIN: Duration = Duration::from_secs(12);

/// Time between two looks at the flag that stops a trial.
const LOOK: Duration = Duration::from_millis(20);

/// Time between two looks at what has come.
const COUNT_EVERY: Duration = Duration::from_millis(2);

/// Learning frames, and the most of them a second; a slow line is half full with them.
const LEARNING_FRAMES: u64 = 3;
const LEARNING_PPS: f64 = 100.0;

/// Why a trial on ports has no result.
#[derive(Debug, thiserror::Error)]
pub enum PortTrialError {
    /// The session could not do it.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The stream cannot be sent at this size and rate.
    #[error(transparent)]
    Stream(#[from] ProfileError),
    /// The frames have no room for a probe.
    #[error("frames of {0} bytes have no room for a probe behind these headers")]
    NoProbe(usize),
    /// A port ended the trial: it went down or disappeared.
    #[error("{0}")]
    Port(String),
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
}

/// The ports of a trial: those of a session, or those of several machines as if they were.
///
/// Each method is as that of [`Session`] with its name.
pub trait TrialPorts: fmt::Debug {
    /// A trial begins whose phases these are.
    ///
    /// # Errors
    /// The ports cannot have it.
    fn begin(&mut self, _phases: &[TrialInput]) -> Result<(), PortTrialError> {
        Ok(())
    }

    /// A trial has ended with these outputs, which may be corrected.
    ///
    /// # Errors
    /// They cannot be, and are worth nothing.
    fn end(&mut self, _outputs: &mut [TrialOutput]) -> Result<(), PortTrialError> {
        Ok(())
    }

    /// The Ethernet address of a port.
    ///
    /// # Errors
    /// The port cannot be asked.
    fn mac(&mut self, port: usize) -> Result<[u8; 6], PortTrialError>;

    /// The rate of a port's line at layer 1, in bit/s, of one that has been asked for its address.
    fn line_rate_bps(&self, port: usize) -> f64;

    /// Replaces the streams of a port.
    ///
    /// # Errors
    /// The mistake in a stream.
    fn load(&mut self, port: usize, streams: &[StreamSpec]) -> Result<(), PortTrialError>;

    /// Starts the streams of these ports at one time, which is returned.
    ///
    /// # Errors
    /// A port that cannot start.
    fn start(&mut self, ports: &[usize]) -> Result<u64, PortTrialError>;

    /// Stops the streams of these ports.
    ///
    /// # Errors
    /// There is no such port.
    fn stop(&mut self, ports: &[usize]) -> Result<(), PortTrialError>;

    /// Waits until no port sends any more, or until `limit` has passed; true when none sends.
    ///
    /// # Errors
    /// The ports cannot be asked.
    fn wait(&mut self, limit: Duration) -> Result<bool, PortTrialError>;

    /// Waits until nothing has come for `quiet`, or until `limit` has passed.
    ///
    /// # Errors
    /// The ports cannot be asked.
    fn wait_until_quiet(&mut self, quiet: Duration, limit: Duration) -> Result<(), PortTrialError>;

    /// The counts of sending and receiving so far.
    ///
    /// # Errors
    /// The ports cannot be asked.
    fn statistics(&mut self) -> Result<SessionStatistics, PortTrialError>;
}

impl TrialPorts for Session {
    fn mac(&mut self, port: usize) -> Result<[u8; 6], PortTrialError> {
        Ok(self.port_info(port).mac)
    }

    fn line_rate_bps(&self, port: usize) -> f64 {
        Session::line_rate_bps(self, port)
    }

    fn load(&mut self, port: usize, streams: &[StreamSpec]) -> Result<(), PortTrialError> {
        Ok(Session::load(self, port, streams)?)
    }

    fn start(&mut self, ports: &[usize]) -> Result<u64, PortTrialError> {
        Ok(Session::start(self, ports, &StartOptions::default())?)
    }

    fn stop(&mut self, ports: &[usize]) -> Result<(), PortTrialError> {
        Ok(Session::stop(self, ports)?)
    }

    fn wait(&mut self, limit: Duration) -> Result<bool, PortTrialError> {
        Ok(Session::wait(self, Some(limit)))
    }

    fn wait_until_quiet(&mut self, quiet: Duration, limit: Duration) -> Result<(), PortTrialError> {
        Session::wait_until_quiet(self, quiet, limit);
        Ok(())
    }

    fn statistics(&mut self) -> Result<SessionStatistics, PortTrialError> {
        Ok(Session::statistics(self))
    }
}

/// Performs trials by a session.
#[derive(Debug)]
pub struct SessionMeasurer<'a> {
    /// The session, or ports like those of one; its streams of the sending port are replaced, and
    /// with `is_learning` those of the receiving port.
    pub session: &'a mut dyn TrialPorts,
    /// The port that sends.
    pub from: usize,
    /// The port at which the frames come back.
    pub to: usize,
    /// The frames; size, rate and mode are those of each trial.
    pub stream: StreamSpec,
    /// Whether learning frames go before each trial.
    pub is_learning: bool,
    /// Silence after which nothing is on its way any more, [`QUIET`] where nothing is known of the
    /// device: each trial in which a frame is lost takes so much longer.
    pub quiet: Duration,
    /// Ends a trial early.
    pub stop: &'a AtomicBool,
}

/// The stream of the learning frames that go before a trial, from the port at which its frames
/// arrive: as long as they are, and slow enough for a line of `line_bps` bit/s at layer 1. `mac` is
/// the address of the port that sends the trial. `None` where there is nothing to learn.
fn learning_stream(
    packet: &str,
    mac: [u8; 6],
    input: &TrialInput,
    line_bps: f64,
) -> Option<StreamSpec> {
    let size = u32::try_from(input.frame_size).unwrap_or(u32::MAX);
    let line_pps = line_bps / (8.0 * f64::from(size.saturating_add(LAYER_1_OVERHEAD)));
    Some(StreamSpec {
        name: "learning".to_owned(),
        packet: returning(packet, mac)?,
        size: FrameSize::Fixed(size),
        rate: Rate::PacketsPerSecond(LEARNING_PPS.min(line_pps / 2.0)),
        mode: Mode::Burst(LEARNING_FRAMES),
        ..StreamSpec::default()
    })
}

/// The streams of the phases, each of which starts the next.
#[must_use]
pub fn phase_streams(stream: &StreamSpec, phases: &[TrialInput]) -> Vec<StreamSpec> {
    let name = |phase: usize| format!("phase-{phase}");
    let of_phase = |(phase, input): (usize, &TrialInput)| StreamSpec {
        name: name(phase),
        size: FrameSize::Fixed(u32::try_from(input.frame_size).unwrap_or(u32::MAX)),
        rate: Rate::PacketsPerSecond(input.rate_pps),
        mode: Mode::Burst(input.frames()),
        next: (phase + 1 < phases.len()).then(|| name(phase + 1)),
        self_start: phase == 0,
        probe: true,
        ..stream.clone()
    };
    phases.iter().enumerate().map(of_phase).collect()
}

/// When the first frame of each phase is due: where the last interval of the one before it ends.
#[must_use]
pub fn phase_starts(start_ns: u64, phases: &[TrialInput]) -> Vec<u64> {
    (0..phases.len()).map(|phase| phases_end(start_ns, &phases[..phase])).collect()
}

/// The end of the last interval of the last phase.
#[must_use]
pub fn phases_end(start_ns: u64, phases: &[TrialInput]) -> u64 {
    let takes_ns = |input: &TrialInput| input.frames() as f64 * 1e9 / input.rate_pps;
    start_ns.saturating_add(phases.iter().map(takes_ns).sum::<f64>() as u64)
}

impl SessionMeasurer<'_> {
    /// Shows the device where the destination of the stream is, and waits until it has been shown.
    fn learn(&mut self, phases: &[TrialInput]) -> Result<(), PortTrialError> {
        let Some(input) = phases.first().filter(|_| self.is_learning && self.from != self.to)
        else {
            return Ok(());
        };
        let mac = self.session.mac(self.from)?;
        let line_bps = self.session.line_rate_bps(self.to);
        let Some(stream) = learning_stream(&self.stream.packet, mac, input, line_bps) else {
            return Ok(());
        };
        self.session.load(self.to, &[stream])?;
        self.session.start(&[self.to])?;
        self.wait(self.to)?;
        // A device that does not forward them may have learnt all the same.
        self.wait_for_arrivals((self.to, self.from), self.quiet)?;
        Ok(())
    }

    /// Waits until nothing is sent any more.
    fn wait(&mut self, port: usize) -> Result<(), PortTrialError> {
        while !self.session.wait(LOOK)? {
            self.check_stop(port)?;
        }
        Ok(())
    }

    /// Ends the trial when the user wants it.
    fn check_stop(&mut self, port: usize) -> Result<(), PortTrialError> {
        if !self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.session.stop(&[port])?;
        Err(PortTrialError::Stopped)
    }

    /// Waits until all frames have come, or none comes any more, or until `limit` has passed. The
    /// streams at that time, and whether it was before the limit.
    fn wait_for_arrivals(
        &mut self,
        (from, to): (usize, usize),
        limit: Duration,
    ) -> Result<(Vec<StreamStatistics>, bool), PortTrialError> {
        let begun = Instant::now();
        let mut last = (begun, None);
        loop {
            let counted = self.counted(from)?;
            let received = |stream: &StreamStatistics| arrived(stream, to).received;
            if counted.iter().all(|stream| received(stream) >= stream.probes) {
                return Ok((counted, true));
            }
            let all: u64 = counted.iter().map(received).sum();
            if last.1 != Some(all) {
                last = (Instant::now(), Some(all));
            }
            if last.0.elapsed() >= self.quiet {
                return Ok((counted, true));
            }
            if begun.elapsed() >= limit {
                return Ok((counted, false));
            }
            self.check_stop(from)?;
            std::thread::sleep(COUNT_EVERY);
        }
    }

    /// The streams of a port as they are now.
    fn counted(&mut self, from: usize) -> Result<Vec<StreamStatistics>, PortTrialError> {
        let statistics = self.session.statistics()?;
        if let Some(stop) = statistics.ports.get(from).and_then(|port| port.stopped.as_ref()) {
            return Err(PortTrialError::Port(stop.reason.clone()));
        }
        let receiver = statistics.ports.get(self.to);
        if let Some(error) = receiver.and_then(|port| port.rx.error.as_ref()) {
            return Err(PortTrialError::Port(error.clone()));
        }
        Ok(statistics.streams.into_iter().filter(|stream| stream.port == from).collect())
    }
}

/// The frames of a stream that arrived at a port.
fn arrived(stream: &StreamStatistics, port: usize) -> StreamReport {
    let arrival = stream.arrivals.iter().find(|arrival| arrival.port == port);
    arrival.map_or_else(StreamReport::default, |arrival| arrival.report.clone())
}

impl Measurer for SessionMeasurer<'_> {
    type Error = PortTrialError;

    fn run(&mut self, phases: &[TrialInput]) -> Result<Vec<TrialOutput>, PortTrialError> {
        self.session.begin(phases)?;
        self.learn(phases)?;
        let streams = phase_streams(&self.stream, phases);
        self.session.load(self.from, &streams)?;
        let start_ns = self.session.start(&[self.from])?;
        self.wait(self.from)?;
        let grace_s = phases.last().map_or(0.0, |phase| phase.grace_s);
        let grace = Duration::try_from_secs_f64(grace_s).unwrap_or(DRAIN);
        // Frames that left late have no more time than the others.
        let now_ns = self.session.statistics()?.at_ns;
        let over_ns = now_ns.saturating_sub(phases_end(start_ns, phases));
        let ports = (self.from, self.to);
        let left = grace.saturating_sub(Duration::from_nanos(over_ns));
        let (in_time, is_complete) = self.wait_for_arrivals(ports, left)?;
        let counted =
            if is_complete { in_time.clone() } else { self.wait_for_arrivals(ports, DRAIN)?.0 };
        let without = phases.iter().zip(&counted).find(|(_, stream)| stream.lost.is_none());
        if let Some((input, _)) = without {
            return Err(PortTrialError::NoProbe(input.frame_size));
        }
        let starts_ns = phase_starts(start_ns, phases);
        let counts = in_time.iter().zip(&counted);
        let mut outputs = Vec::new();
        for ((input, start_ns), (in_time, stream)) in phases.iter().zip(starts_ns).zip(counts) {
            let (in_time, mut report) = (arrived(in_time, self.to), arrived(stream, self.to));
            // The schedule is what was offered: what could not be sent did not arrive either.
            report.sent = stream.probes + stream.unsent;
            report.lost = report.sent.saturating_sub(report.received);
            report.late = report.received.saturating_sub(in_time.received);
            report.last_ns = in_time.last_ns;
            let StreamStatistics { unsent, unsent_down, late: sent_late, .. } = *stream;
            let input = *input;
            outputs.push(TrialOutput { input, start_ns, unsent, unsent_down, sent_late, report });
        }
        self.session.end(&mut outputs)?;
        Ok(outputs)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::{PortTrialError, QUIET, SessionMeasurer};
    use crate::method::{Measurer, MethodError, TrialInput};
    use crate::profile::StreamSpec;
    use crate::session::{Session, SessionOptions};

    fn session(name: &str) -> Session {
        let end = |end: &str| format!("memory:{name}?end={end}").parse().unwrap();
        Session::open(&[end("a"), end("b")], SessionOptions::default()).unwrap()
    }

    fn measurer<'a>(session: &'a mut Session, stop: &'a AtomicBool) -> SessionMeasurer<'a> {
        let (stream, quiet) = (StreamSpec::default(), QUIET);
        SessionMeasurer { session, from: 0, to: 1, stream, is_learning: true, quiet, stop }
    }

    const INPUT: TrialInput =
        TrialInput { frame_size: 128, rate_pps: 2_000.0, duration_s: 0.1, grace_s: 5.0 };

    #[test]
    fn a_wire_loses_nothing_in_two_phases() {
        let (mut session, stop) = (session("generator-trial-a"), AtomicBool::new(false));
        let mut measurer = measurer(&mut session, &stop);
        // The second run finds the numbers of the first used up.
        for _ in 0..2 {
            let halved = TrialInput { rate_pps: 1_000.0, ..INPUT };
            let outputs = measurer.run(&[INPUT, halved]).unwrap();
            let sent: Vec<u64> = outputs.iter().map(|output| output.report.sent).collect();
            assert_eq!(sent, [200, 100]);
            for output in outputs {
                let report = &output.report;
                assert_eq!((report.lost + report.late, report.last_lost), (output.unsent, None));
                assert_eq!(report.received + output.unsent, report.sent);
                assert!(report.delay.is_some());
            }
        }
    }

    #[test]
    fn a_device_sees_where_the_destination_is_before_the_trial() {
        let stop = AtomicBool::new(false);
        for (is_learning, before) in [(true, 3), (false, 0)] {
            let mut session = session(&format!("generator-learning-{is_learning}"));
            let mut measurer = SessionMeasurer { is_learning, ..measurer(&mut session, &stop) };
            let output = measurer.trial(INPUT).unwrap();
            assert_eq!(output.report.sent, 200);
            // What came back the other way are the learning frames, if they left at all.
            let port = &session.statistics().ports[1];
            assert_eq!(port.tx.traffic.packets + port.tx.unsent, before);
            assert_eq!(session.statistics().ports[0].rx.traffic.packets, port.tx.traffic.packets);
        }
    }

    #[test]
    fn a_slow_line_learns_too() {
        let stop = AtomicBool::new(false);
        let end = |end: &str| format!("memory:generator-slow?end={end}").parse().unwrap();
        let options = SessionOptions { line_rate_bps: vec![1e6; 2], ..SessionOptions::default() };
        let mut session = Session::open(&[end("a"), end("b")], options).unwrap();
        let long = TrialInput { frame_size: 1518, rate_pps: 20.0, ..INPUT };
        assert_eq!(measurer(&mut session, &stop).trial(long).unwrap().report.sent, 2);
    }

    #[test]
    fn a_stopped_trial_and_a_frame_that_is_too_short_are_errors() {
        let (mut session, stop) = (session("generator-trial-b"), AtomicBool::new(true));
        let mut measurer = measurer(&mut session, &stop);
        let long = TrialInput { duration_s: 1_000.0, ..INPUT };
        let stopped = measurer.trial(long).unwrap_err();
        assert!(matches!(stopped, MethodError::Trial(PortTrialError::Stopped)));
        let short = measurer.trial(TrialInput { frame_size: 20, ..INPUT }).unwrap_err();
        assert!(matches!(short, MethodError::Trial(PortTrialError::Stream(_))));
    }
}
