//! The four figures of RFC 2544 that a look at a switch needs, by the generator's own methods:
//! throughput without any loss, latency at nine tenths of it, loss at the line's end, and the
//! longest burst.
//!
//! veth has no line rate: where the cell has no port rate, the most that is offered is a bound of
//! the search, and the loss is that at the bound.

use std::time::Duration;

use generator::method::back_to_back::{BackToBackOptions, BackToBackReport, back_to_back};
use generator::method::frame_loss::{FrameLossOptions, FrameLossPoint, frame_loss};
use generator::method::latency::{LatencyOptions, LatencyReport, latency};
use generator::method::throughput::{ThroughputOptions, ThroughputReport, throughput};
use generator::method::{Estimate, Measurer, MethodError};
use generator::session::Waiting;

use super::{Method, MethodContext, Metric, Resolution, Trial, TrialError, Values, traffic};
use crate::ceilings::frame_line_bits;
use crate::testbed::method_error;

/// The most that is offered without a port rate, frames a second, where the cell says nothing else.
const MAX_PPS: f64 = 1_000_000.0;

/// The line that is taken for granted without a port rate, bit/s.
const LINE_BPS: f64 = 10e9;

/// The search for throughput ends when its bounds are so close.
const PRECISION: f64 = 0.05;

/// The longest burst that is tried, and the resolution, frames.
const LONGEST: u64 = 65_536;
const RESOLUTION: u64 = 256;

/// The load of the latency, as a share of the throughput.
const LATENCY_LOAD: f64 = 0.9;

/// Trials of all parts together, about.
const TRIALS: f64 = 26.0;

pub(super) const RFC2544: Method = Method {
    id: "rfc2544",
    label: "RFC 2544",
    about: "Throughput without loss by bisection, latency at 90 % of it, frame loss at the highest \
            load, the longest burst without loss",
    metrics: &[
        Metric::higher("rfc2544_throughput_pps", "throughput, no loss", "frames/s", 0),
        Metric::lower("rfc2544_latency_us", "latency at 90 % of it", "µs", 1),
        Metric::lower("rfc2544_loss_pct", "frame loss at the highest load", "%", 2),
        Metric::higher("rfc2544_burst", "longest burst without loss", "frames", 0),
    ],
    saturates: true,
    cost: |settings| Duration::from_secs_f64(TRIALS * (settings.duration_s() + 0.1)),
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let settings = context.settings;
    let (frame_size, trial_s) = (settings.frame_size() as usize, settings.duration_s());
    let most_pps = MAX_PPS.min(LINE_BPS / frame_line_bits(settings.frame_size()));
    let max_pps = traffic::line_pps(context).or(settings.rate_pps).unwrap_or(most_pps);
    let loss_ratio = settings.loss.unwrap_or(0.0);
    let asked = Asked {
        frame_size,
        max_pps,
        trial_s,
        loss_ratio,
        longest: LONGEST,
        resolution: RESOLUTION,
    };
    let (outcome, load) = context.observe(|| {
        let plan = traffic::plan(context, Waiting::Sleeping, traffic::QUIET);
        context.bed.with_measurer(plan, |measurer| answers(measurer, asked).map_err(method_error))
    });
    let (found, clock) = outcome?;
    found.if_any_arrived()?;
    let (values, mut resolutions) = found.figures(asked);
    if let Some(clock) = &clock {
        let latency = values.iter().filter(|(metric, _)| ONE_WAY.contains(metric));
        resolutions.extend(latency.map(|(metric, value)| {
            Resolution::new(metric, value - clock.error_us, value + clock.error_us)
        }));
    }
    let Answers { most, loss, burst, .. } = found;
    let is_tester_limited = loss.first().is_some_and(|point| point.is_tester_limited);
    Ok(Trial {
        values,
        tool: traffic::TOOL.into(),
        load,
        resolutions,
        raw: serde_json::json!({
            "max_pps": max_pps,
            "is_at_max": most.is_at_max,
            "throughput_is_tester_limited": most.is_tester_limited,
            "loss_is_tester_limited": is_tester_limited,
            "burst_is_tester_limited": burst.is_tester_limited,
            "burst_is_at_longest": burst.is_at_longest,
            "throughput": most.trials,
            "clock": clock.map(|clock| clock.of_metrics(ONE_WAY)),
        }),
        ..Trial::default()
    })
}

/// The metrics that hold the difference of two clocks, where host 2 is on another box than host 1.
const ONE_WAY: &[&str] = &["rfc2544_latency_us"];

/// Task for the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) frame_size: usize,
    pub(super) max_pps: f64,
    pub(super) trial_s: f64,
    /// The share of frames that throughput may lose.
    pub(super) loss_ratio: f64,
    /// The longest burst, and how close the search for it comes, frames.
    pub(super) longest: u64,
    pub(super) resolution: u64,
}

/// Reports of the generator's methods.
#[derive(Debug)]
pub(super) struct Answers {
    most: ThroughputReport,
    delay: Option<LatencyReport>,
    loss: Vec<FrameLossPoint>,
    burst: BackToBackReport,
}

/// All four.
pub(super) fn answers<M: Measurer>(
    measurer: &mut M,
    asked: Asked,
) -> Result<Answers, MethodError<M::Error>> {
    let Asked { frame_size, max_pps, trial_s, loss_ratio, longest, resolution } = asked;
    let search = ThroughputOptions {
        trial_s,
        precision: PRECISION,
        loss_ratio,
        ..ThroughputOptions::new(frame_size, max_pps)
    };
    let most = throughput(measurer, &search)?;
    let throughput_pps = most.rate_pps.value;
    let delay = if throughput_pps > 0.0 {
        let rate_pps = LATENCY_LOAD * throughput_pps;
        latency(measurer, &LatencyOptions { frame_size, rate_pps, trial_s, trials: 2 })?
    } else {
        None
    };
    // One step of the whole load: the loss at the highest.
    let loss = frame_loss(measurer, &FrameLossOptions { frame_size, max_pps, step: 1.0, trial_s })?;
    let bursts = BackToBackOptions {
        frame_size,
        line_pps: max_pps,
        longest,
        resolution,
        repeats: 1,
        throughput_pps: Some(throughput_pps).filter(|rate| *rate > 0.0),
    };
    let burst = back_to_back(measurer, &bursts)?;
    Ok(Answers { most, delay, loss, burst })
}

impl Answers {
    /// Whether anything came through at all.
    ///
    /// # Errors
    /// [`TrialError::Output`]: a path through which nothing comes has no throughput, not 0.
    fn if_any_arrived(&self) -> Result<(), TrialError> {
        let rows = self.most.trials.iter().chain(self.loss.iter().map(|point| &point.trial));
        if rows.clone().any(|row| row.in_time > 0) {
            return Ok(());
        }
        let what = format!("no frame arrived in time in any of {} trials", rows.count());
        Err(TrialError::Output { program: "rfc2544", what })
    }

    /// The figures, and what search and counting leave open. Loss and burst only where they are the
    /// switch's: where the tester could not send as fast, they would be the tester's.
    pub(super) fn figures(&self, asked: Asked) -> (Values, Vec<Resolution>) {
        let Self { most, delay, loss, burst } = self;
        let mut values = vec![("rfc2544_throughput_pps", most.rate_pps.value)];
        if !burst.is_tester_limited {
            values.push(("rfc2544_burst", burst.burst.value));
        }
        let mut resolutions = Vec::new();
        // A bound is no resolution: what the most that is offered hides is not known.
        if !most.is_at_max {
            let Estimate { low, high, .. } = most.rate_pps;
            resolutions.push(Resolution::new("rfc2544_throughput_pps", low, high));
        }
        if !burst.is_at_longest && !burst.is_tester_limited {
            let (low, high) = (burst.burst.value, burst.burst.value + asked.resolution as f64);
            resolutions.push(Resolution::new("rfc2544_burst", low, high));
        }
        let mean_us = delay.as_ref().map(|delay| delay.mean_ns.value / 1e3);
        values.extend(mean_us.map(|mean_us| ("rfc2544_latency_us", mean_us)));
        let of_the_switch = loss.first().filter(|point| !point.is_tester_limited);
        if let Some(ratio) = of_the_switch.map(|point| point.loss_ratio.value) {
            values.push(("rfc2544_loss_pct", 100.0 * ratio));
            let sent = (asked.max_pps * asked.trial_s) as u64;
            resolutions.push(Resolution::loss_pct("rfc2544_loss_pct", ratio, sent));
        }
        (values, resolutions)
    }
}
