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
use stats::Observed;

use super::{
    Method, MethodContext, Metric, Trial, TrialError, Values, exactly, loss_pct, traffic, widen,
    wrong,
};
use crate::ceilings::frame_line_bits;

/// The most that is offered without a port rate, frames a second, where the cell says nothing else.
const MAX_PPS: f64 = 1_000_000.0;

/// The line that is taken for granted without a port rate, bit/s.
const LINE_BPS: f64 = 10e9;

/// The search for throughput ends when its bounds are so close.
pub(super) const PRECISION: f64 = 0.05;

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
    let search = ThroughputOptions {
        trial_s,
        precision: PRECISION,
        loss_ratio: settings.loss.unwrap_or(0.0),
        ..ThroughputOptions::new(frame_size, max_pps)
    };
    let (outcome, load) = context.observe(|| {
        traffic::with_measurer(context, Waiting::Sleeping, traffic::QUIET, |measurer| {
            Ok(answers(measurer, search, (LONGEST, RESOLUTION))?)
        })
    });
    let (found, clock) = outcome?;
    found.if_any_arrived()?;
    let mut values = found.figures(search, RESOLUTION);
    widen(&mut values, ONE_WAY, clock.as_ref().map_or(0.0, |clock| clock.error_us));
    let Answers { most, loss, burst, .. } = found;
    let is_tester_limited = loss.first().is_some_and(|point| point.is_tester_limited);
    let raw = serde_json::json!({
        "max_pps": max_pps,
        "is_at_max": most.is_at_max,
        "throughput_is_tester_limited": most.is_tester_limited,
        "loss_is_tester_limited": is_tester_limited,
        "burst_is_tester_limited": burst.is_tester_limited,
        "burst_is_at_longest": burst.is_at_longest,
        "throughput": most.trials,
        "clock": clock.map(|clock| clock.of_metrics(ONE_WAY)),
    });
    Ok(Trial { values, tool: traffic::TOOL.into(), load, raw, ..Trial::default() })
}

/// The metrics that hold the difference of two clocks, where host 2 is on another box than host 1.
const ONE_WAY: &[&str] = &["rfc2544_latency_us"];

/// Reports of the generator's methods.
#[derive(Debug)]
pub(super) struct Answers {
    most: ThroughputReport,
    delay: Option<LatencyReport>,
    loss: Vec<FrameLossPoint>,
    burst: BackToBackReport,
}

/// All four; bursts up to `longest` frames, to within `resolution`.
pub(super) fn answers<M: Measurer>(
    measurer: &mut M,
    search: ThroughputOptions,
    (longest, resolution): (u64, u64),
) -> Result<Answers, MethodError<M::Error>> {
    let ThroughputOptions { frame_size, max_pps, trial_s, .. } = search;
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
    /// An error where nothing came through: such a path has no throughput, not 0.
    fn if_any_arrived(&self) -> Result<(), TrialError> {
        let rows = self.most.trials.iter().chain(self.loss.iter().map(|point| &point.trial));
        if rows.clone().any(|row| row.in_time > 0) {
            return Ok(());
        }
        let what = format!("no frame arrived in time in any of {} trials", rows.count());
        Err(wrong("rfc2544", what))
    }

    /// The figures, with what search and counting leave open. Loss and burst only where they are
    /// the switch's: where the tester could not send as fast, they would be the tester's.
    pub(super) fn figures(&self, search: ThroughputOptions, resolution: u64) -> Values {
        let Self { most, delay, loss, burst } = self;
        let Estimate { value, low, high } = most.rate_pps;
        // A bound is no resolution: what the most that is offered hides is not known.
        let is_open = !most.is_at_max;
        let rate = if is_open { Observed { value, low, high } } else { value.into() };
        let mut values = vec![("rfc2544_throughput_pps", rate)];
        if !burst.is_tester_limited {
            let (value, is_open) = (burst.burst.value, !burst.is_at_longest);
            let high = if is_open { value + resolution as f64 } else { value };
            values.push(("rfc2544_burst", Observed { value, low: value, high }));
        }
        let mean_us = delay.as_ref().map(|delay| delay.mean_ns.value / 1e3);
        values.extend(exactly(mean_us.map(|mean_us| ("rfc2544_latency_us", mean_us))));
        if let Some(point) = loss.first().filter(|point| !point.is_tester_limited) {
            let sent = (search.max_pps * search.trial_s) as u64;
            values.push(("rfc2544_loss_pct", loss_pct(point.loss_ratio.value, sent)));
        }
        values
    }
}
