//! Methods of RFC 2544 and its successors, which measure a device under test by trials.
//!
//! A [`Measurer`] performs trials: a generator on real ports, or a simulated device in virtual
//! time. A method decides which, and reports their result with a 99 % interval. All trials are
//! open loop: offered load follows its schedule whatever the device does. A method must never let a
//! queue pass for throughput, nor take a tester that could not send for a device that lost.
//!
//! | method | is | after |
//! |---|---|---|
//! | [`throughput`] | the highest rate without loss, by binary search | RFC 2544, 26.1 |
//! | [`mlrsearch`] | rates for several loss ratios at once: NDR and PDR | MLRsearch (IETF bmwg) |
//! | [`latency`] | delay at a given load | RFC 2544, 26.2; RFC 7679 |
//! | [`frame_loss`] | loss at each of several loads | RFC 2544, 26.3 |
//! | [`back_to_back`] | the longest burst without loss | RFC 9004 |
//! | [`recovery`] | time from overload to no loss | RFC 2544, 26.5 |
//! | [`reset`] | time that a reset takes | RFC 6201 |

pub mod back_to_back;
pub mod estimate;
pub mod frame_loss;
pub mod latency;
mod learning;
pub mod mlrsearch;
pub mod on_ports;
pub mod recovery;
pub mod reset;
pub mod throughput;

use serde::{Deserialize, Serialize};

use crate::receiver::StreamReport;

pub use estimate::Estimate;

/// The load that a trial offers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialInput {
    /// Bytes of a frame, FCS counted.
    pub frame_size: usize,
    /// Offered load, frames a second.
    pub rate_pps: f64,
    /// For how long, seconds.
    pub duration_s: f64,
    /// Frames that arrive later than this after the end are late: they count as loss. Seconds.
    pub grace_s: f64,
}

impl TrialInput {
    /// A burst of `frames`, as fast as `rate_pps`.
    #[must_use]
    pub fn burst(frame_size: usize, rate_pps: f64, frames: u64, grace_s: f64) -> Self {
        Self { frame_size, rate_pps, duration_s: frames as f64 / rate_pps, grace_s }
    }

    /// The frames of the schedule; at least one.
    #[must_use]
    pub fn frames(&self) -> u64 {
        ((self.rate_pps * self.duration_s).round() as u64).max(1)
    }
}

/// The outcome of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialOutput {
    /// The load that was offered.
    pub input: TrialInput,
    /// When the first frame was due, nanoseconds of the measurer's clock.
    pub start_ns: u64,
    /// Frames of the schedule that the tester could not send. They are part of
    /// [`StreamReport::sent`], which counts the schedule, and so of its loss.
    pub unsent: u64,
    /// Those of them that were due while the link of the sending port was down: not the tester's
    /// doing.
    #[serde(default)]
    pub unsent_down: u64,
    /// Frames that left later than they were due, by more than the tester's threshold.
    #[serde(default)]
    pub sent_late: u64,
    /// The frames of the schedule that arrived.
    pub report: StreamReport,
}

impl TrialOutput {
    /// Share of the frames of the schedule that did not arrive in time.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        self.report.loss_ratio()
    }

    /// Whether the tester kept so near to its schedule that loss is the device's: at most one frame
    /// in 10,000 was not sent, and at most one in 100 left late, which means in a burst behind the
    /// one that it waited for.
    #[must_use]
    pub fn is_tester_able(&self) -> bool {
        let sent = self.report.sent;
        self.unsent_by_tester().saturating_mul(10_000) <= sent
            && self.sent_late.saturating_mul(100) <= sent
    }

    /// Frames that the tester could not send for another reason than a link that is down.
    #[must_use]
    pub fn unsent_by_tester(&self) -> u64 {
        self.unsent.saturating_sub(self.unsent_down)
    }

    /// The rate at which frames arrived in time, frames a second: over the time of the schedule, or
    /// that of the arrivals when it is longer. What a queue delivers after the end is no faster for
    /// it.
    #[must_use]
    pub fn forwarding_rate_pps(&self) -> f64 {
        let report = &self.report;
        let (Some(first_ns), Some(last_ns)) = (report.first_ns, report.last_ns) else {
            return 0.0;
        };
        let intervals = report.in_time().saturating_sub(1) as f64;
        let arrivals_s = last_ns.saturating_sub(first_ns) as f64 / 1e9;
        let schedule_s = report.sent.saturating_sub(1) as f64 / self.input.rate_pps;
        let time_s = schedule_s.max(arrivals_s);
        if time_s > 0.0 { intervals / time_s } else { 0.0 }
    }

    /// The trial in one row.
    #[must_use]
    pub fn row(&self) -> TrialRow {
        TrialRow {
            rate_pps: self.input.rate_pps,
            duration_s: self.input.duration_s,
            sent: self.report.sent,
            in_time: self.report.in_time(),
            unsent: self.unsent,
            unsent_down: self.unsent_down,
            sent_late: self.sent_late,
            forwarding_rate_pps: self.forwarding_rate_pps(),
        }
    }
}

/// One trial of a result, for a reader of the details. Counts are frames.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRow {
    /// Offered load, frames a second.
    pub rate_pps: f64,
    /// For how long, seconds.
    pub duration_s: f64,
    /// Frames of the schedule.
    pub sent: u64,
    /// Those that arrived in time.
    pub in_time: u64,
    /// Those that the tester could not send.
    pub unsent: u64,
    /// Those of them that were due while the sender's link was down.
    #[serde(default)]
    pub unsent_down: u64,
    /// Those that left late.
    #[serde(default)]
    pub sent_late: u64,
    /// See [`TrialOutput::forwarding_rate_pps`].
    pub forwarding_rate_pps: f64,
}

/// Performs trials.
pub trait Measurer {
    /// Reasons why a trial fails.
    type Error;

    /// Offers the loads one after the other without a pause, waits for what is still on its way,
    /// and returns the outcome of each.
    ///
    /// # Errors
    /// As the measurer says; a device that loses everything is no error.
    fn run(&mut self, phases: &[TrialInput]) -> Result<Vec<TrialOutput>, Self::Error>;

    /// One trial.
    ///
    /// # Errors
    /// As [`Measurer::run`]; a measurer that says nothing about the trial.
    fn trial(&mut self, input: TrialInput) -> Result<TrialOutput, MethodError<Self::Error>> {
        let outputs = self.run(&[input]).map_err(MethodError::Trial)?;
        outputs.into_iter().next().ok_or(MethodError::NoOutput)
    }
}

/// Why a method has no result.
#[derive(Debug, thiserror::Error)]
pub enum MethodError<E> {
    /// A trial could not be performed.
    #[error(transparent)]
    Trial(E),
    /// The measurer reported fewer loads than it was given.
    #[error("the measurer reported nothing about a trial")]
    NoOutput,
    /// The question makes no sense.
    #[error("{0}")]
    Options(&'static str),
}

#[cfg(test)]
mod tests {
    use super::back_to_back::{BackToBackOptions, back_to_back};
    use super::frame_loss::{FrameLossOptions, frame_loss};
    use super::latency::{LatencyOptions, latency};
    use super::mlrsearch::{MlrsearchOptions, mlrsearch};
    use super::on_ports::PortTrialError;
    use super::recovery::{RecoveryOptions, recovery};
    use super::throughput::{ThroughputOptions, throughput};
    use super::{Measurer, TrialInput, TrialOutput, reset::reset};
    use crate::testing::{DeviceModel, SimulatedMeasurer};

    /// A tester that sends every tenth frame late, or every thousandth not at all.
    struct SlowTester {
        inner: SimulatedMeasurer,
        is_late: bool,
    }

    impl Measurer for SlowTester {
        type Error = PortTrialError;

        fn run(&mut self, phases: &[TrialInput]) -> Result<Vec<TrialOutput>, PortTrialError> {
            let mut outputs = self.inner.run(phases)?;
            for output in &mut outputs {
                let share = if self.is_late { 10 } else { 1_000 };
                let count = output.report.sent.div_ceil(share);
                *(if self.is_late { &mut output.sent_late } else { &mut output.unsent }) = count;
            }
            Ok(outputs)
        }
    }

    /// Whether each method says so.
    fn are_limited<M: Measurer>(measurer: &mut M) -> Vec<bool>
    where
        M::Error: std::fmt::Debug,
    {
        let (frame_size, rate_pps) = (64, 2_000.0);
        let input = TrialInput { frame_size, rate_pps, duration_s: 0.5, grace_s: 0.1 };
        let search = ThroughputOptions { trial_s: 0.5, ..ThroughputOptions::new(64, rate_pps) };
        let bursts = BackToBackOptions {
            frame_size,
            line_pps: rate_pps,
            longest: 100,
            resolution: 10,
            repeats: 1,
            throughput_pps: None,
        };
        let loss = FrameLossOptions { frame_size, max_pps: rate_pps, step: 0.5, trial_s: 0.5 };
        let delays = LatencyOptions { frame_size, rate_pps, trial_s: 0.5, trials: 2 };
        let overload = RecoveryOptions {
            frame_size,
            throughput_pps: rate_pps,
            overload: 1.1,
            reduced: 0.5,
            overload_s: 0.2,
            reduced_s: 0.2,
            repeats: 1,
        };
        let ndr = MlrsearchOptions::ndr_pdr(64, rate_pps);
        vec![
            throughput(measurer, &search).unwrap().is_tester_limited,
            back_to_back(measurer, &bursts).unwrap().is_tester_limited,
            frame_loss(measurer, &loss).unwrap()[0].is_tester_limited,
            latency(measurer, &delays).unwrap().unwrap().is_tester_limited,
            recovery(measurer, &overload).unwrap().is_tester_limited,
            reset(measurer, input, |_| {}).unwrap().is_tester_limited,
            mlrsearch(measurer, &ndr).unwrap().is_tester_limited,
        ]
    }

    #[test]
    fn every_method_separates_limits_of_tester_and_device() {
        let measurer = || SimulatedMeasurer::new(DeviceModel::perfect(1_500.0, 4), 1);
        assert_eq!(are_limited(&mut measurer()), [false; 7]);
        for is_late in [false, true] {
            let mut slow = SlowTester { inner: measurer(), is_late };
            assert_eq!(are_limited(&mut slow), [true; 7], "late: {is_late}");
        }
    }
}
