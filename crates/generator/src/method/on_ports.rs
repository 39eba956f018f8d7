//! Trials on real ports: the frames of a stream leave by one port of a session and come back by
//! another.
//!
//! A device that learns addresses should have seen those of the stream before. The measurer waits
//! after each trial until nothing comes any more, so that the next one finds the device empty. It
//! must never take frames that it could not send for frames that were lost on the way without
//! saying so: [`TrialOutput::unsent`] counts them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Measurer, TrialInput, TrialOutput};
use crate::profile::{FrameSize, Mode, ProfileError, Rate, StreamSpec};
use crate::receiver::StreamReport;
use crate::session::{Session, SessionError, StartOptions};
use crate::statistics::StreamStatistics;

/// Silence after which nothing is on its way any more.
const QUIET: Duration = Duration::from_millis(200);

/// The longest wait for that.
const DRAIN: Duration = Duration::from_secs(12);

/// Time between two looks at the flag that stops a trial.
const LOOK: Duration = Duration::from_millis(50);

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

/// Performs trials by a session.
#[derive(Debug)]
pub struct SessionMeasurer<'a> {
    /// The session; its streams of the sending port are replaced.
    pub session: &'a mut Session,
    /// The port that sends.
    pub from: usize,
    /// The port at which the frames come back.
    pub to: usize,
    /// What the frames are; size, rate and mode are those of each trial.
    pub stream: StreamSpec,
    /// Ends a trial early.
    pub stop: &'a AtomicBool,
}

impl SessionMeasurer<'_> {
    /// The streams of the phases, each of which starts the next.
    fn streams(&self, phases: &[TrialInput]) -> Vec<StreamSpec> {
        let name = |phase: usize| format!("phase-{phase}");
        let of_phase = |(phase, input): (usize, &TrialInput)| StreamSpec {
            name: name(phase),
            port: self.from,
            size: FrameSize::Fixed(u32::try_from(input.frame_size).unwrap_or(u32::MAX)),
            rate: Rate::PacketsPerSecond(input.rate_pps),
            mode: Mode::Burst(input.frames()),
            next: (phase + 1 < phases.len()).then(|| name(phase + 1)),
            self_start: phase == 0,
            probe: true,
            ..self.stream.clone()
        };
        phases.iter().enumerate().map(of_phase).collect()
    }

    /// Waits until nothing is sent any more.
    fn wait(&mut self) -> Result<(), PortTrialError> {
        while !self.session.wait(Some(LOOK)) {
            if self.stop.load(Ordering::Relaxed) {
                self.session.stop(&[self.from])?;
                return Err(PortTrialError::Stopped);
            }
        }
        Ok(())
    }

    /// The streams of the sending port as they are now.
    fn counted(&mut self) -> Result<Vec<StreamStatistics>, PortTrialError> {
        let statistics = self.session.statistics();
        if let Some(stop) = statistics.ports.get(self.from).and_then(|port| port.stopped.as_ref()) {
            return Err(PortTrialError::Port(stop.reason.clone()));
        }
        Ok(statistics.streams.into_iter().filter(|stream| stream.port == self.from).collect())
    }

    fn arrived(&self, stream: &StreamStatistics) -> StreamReport {
        let arrival = stream.arrivals.iter().find(|arrival| arrival.port == self.to);
        arrival.map_or_else(StreamReport::default, |arrival| arrival.report.clone())
    }
}

impl Measurer for SessionMeasurer<'_> {
    type Error = PortTrialError;

    fn run(&mut self, phases: &[TrialInput]) -> Result<Vec<TrialOutput>, PortTrialError> {
        let streams = self.streams(phases);
        self.session.load(self.from, &streams)?;
        let start_ns = self.session.now_ns();
        self.session.start(&[self.from], &StartOptions::default())?;
        self.wait()?;
        let grace_s = phases.last().map_or(0.0, |phase| phase.grace_s);
        // No longer than silence needs: what has come cannot be late.
        self.session.settle(QUIET, Duration::try_from_secs_f64(grace_s).unwrap_or(DRAIN));
        let in_time: Vec<u64> =
            self.counted()?.iter().map(|stream| self.arrived(stream).received).collect();
        self.session.settle(QUIET, DRAIN);
        let counted = self.counted()?;
        let without = phases.iter().zip(&counted).find(|(_, stream)| stream.lost.is_none());
        if let Some((input, _)) = without {
            return Err(PortTrialError::NoProbe(input.frame_size));
        }
        let outputs = phases.iter().zip(counted).zip(in_time);
        Ok(outputs
            .map(|((input, stream), in_time)| {
                let mut report = self.arrived(&stream);
                // The schedule is what was offered: what could not be sent did not arrive either.
                report.sent = stream.probes + stream.unsent;
                report.lost = report.sent.saturating_sub(report.received);
                report.late = report.received.saturating_sub(in_time);
                let (unsent, sent_late) = (stream.unsent, stream.late);
                TrialOutput { input: *input, start_ns, unsent, sent_late, report }
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::{PortTrialError, SessionMeasurer};
    use crate::method::{Measurer, MethodError, TrialInput};
    use crate::profile::StreamSpec;
    use crate::session::{Session, SessionOptions};

    fn session(name: &str) -> Session {
        let end = |end: &str| format!("memory:{name}?end={end}").parse().unwrap();
        Session::open(&[end("a"), end("b")], SessionOptions::default()).unwrap()
    }

    fn measurer<'a>(session: &'a mut Session, stop: &'a AtomicBool) -> SessionMeasurer<'a> {
        SessionMeasurer { session, from: 0, to: 1, stream: StreamSpec::default(), stop }
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
