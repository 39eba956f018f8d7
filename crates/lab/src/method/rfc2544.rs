//! The four figures of RFC 2544 that a look at a switch needs, by the generator's own methods:
//! throughput without any loss, latency at nine tenths of it, loss at the line's end, and the
//! longest burst.
//!
//! veth has no line rate: where the cell has no port rate, the most that is offered is a bound of
//! the search, and the loss is that at the bound.

use std::time::Duration;

use generator::method::back_to_back::{BackToBackOptions, back_to_back};
use generator::method::frame_loss::{FrameLossOptions, frame_loss};
use generator::method::latency::{LatencyOptions, latency};
use generator::method::throughput::{ThroughputOptions, throughput};
use generator::session::Waiting;

use super::{Better, Method, MethodContext, Metric, Trial, TrialError, traffic};
use crate::settings::Settings;
use crate::testbed::{Testbed, method_error};

/// The method.
pub(super) struct Rfc2544;

const METRICS: &[Metric] = &[
    figure("rfc2544_throughput_pps", "throughput, no loss", "frames/s", Better::Higher, 0),
    figure("rfc2544_latency_us", "latency at 90 % of it", "µs", Better::Lower, 1),
    figure("rfc2544_loss_pct", "frame loss at the highest load", "%", Better::Lower, 2),
    figure("rfc2544_burst", "longest burst without loss", "frames", Better::Higher, 0),
];

const fn figure(
    id: &'static str,
    label: &'static str,
    unit: &'static str,
    better: Better,
    decimals: usize,
) -> Metric {
    Metric { id, label, unit, better, decimals }
}

/// The most that is offered without a port rate, frames a second, where the cell says nothing else.
const MAX_PPS: f64 = 1_000_000.0;

/// The search for throughput ends when its bounds are so close.
const PRECISION: f64 = 0.05;

/// The longest burst that is tried, and the resolution, frames.
const LONGEST: u64 = 65_536;
const RESOLUTION: u64 = 256;

/// The load of the latency, as a share of the throughput.
const LATENCY_LOAD: f64 = 0.9;

/// Trials of all parts together, about.
const TRIALS: f64 = 26.0;

impl Method for Rfc2544 {
    fn id(&self) -> &'static str {
        "rfc2544"
    }

    fn label(&self) -> &'static str {
        "RFC 2544"
    }

    fn about(&self) -> &'static str {
        "Throughput without loss by bisection, latency at 90 % of it, frame loss at the highest \
         load, the longest burst without loss"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn saturates(&self) -> bool {
        true
    }

    fn cost(&self, settings: &Settings) -> Duration {
        Duration::from_secs_f64(TRIALS * (settings.duration_s() + 0.1))
    }

    fn fits(&self, _bed: &Testbed) -> Result<(), &'static str> {
        Ok(())
    }

    fn run(&self, context: &MethodContext<'_>) -> Result<Trial, TrialError> {
        let settings = context.settings;
        let (frame_size, trial_s) = (settings.frame_size() as usize, settings.duration_s());
        let line = context.bed.port_rate().map(|bps| bps as f64 / (8 * (frame_size + 20)) as f64);
        let max_pps = line.or(settings.rate_pps).unwrap_or(MAX_PPS);
        let (outcome, load) = context.observe(|| {
            context.bed.with_session(Waiting::Sparing, |session| {
                let mut measurer = traffic::measurer(session, context, traffic::QUIET);
                let search = ThroughputOptions {
                    trial_s,
                    precision: PRECISION,
                    loss_ratio: settings.loss.unwrap_or(0.0),
                    ..ThroughputOptions::new(frame_size, max_pps)
                };
                let most = throughput(&mut measurer, &search).map_err(method_error)?;
                let throughput_pps = most.rate_pps.value;
                let delay = if throughput_pps > 0.0 {
                    let rate_pps = LATENCY_LOAD * throughput_pps;
                    let at = LatencyOptions { frame_size, rate_pps, trial_s, trials: 2 };
                    latency(&mut measurer, &at).map_err(method_error)?
                } else {
                    None
                };
                // One step of the whole load: the loss at the highest.
                let at = FrameLossOptions { frame_size, max_pps, step: 1.0, trial_s };
                let loss = frame_loss(&mut measurer, &at).map_err(method_error)?;
                let bursts = BackToBackOptions {
                    frame_size,
                    line_pps: max_pps,
                    longest: LONGEST,
                    resolution: RESOLUTION,
                    repeats: 1,
                    throughput_pps: Some(throughput_pps).filter(|rate| *rate > 0.0),
                };
                let burst = back_to_back(&mut measurer, &bursts).map_err(method_error)?;
                Ok((most, delay, loss, burst))
            })
        });
        let (most, delay, loss, burst) = outcome?;
        let mut values = vec![
            ("rfc2544_throughput_pps", most.rate_pps.value),
            ("rfc2544_burst", burst.burst.value),
        ];
        values
            .extend(delay.as_ref().map(|delay| ("rfc2544_latency_us", delay.mean_ns.value / 1e3)));
        let at_most = loss.first().map(|point| 100.0 * point.loss_ratio.value);
        values.extend(at_most.map(|percent| ("rfc2544_loss_pct", percent)));
        let is_tester_limited = loss.first().is_some_and(|point| point.is_tester_limited);
        Ok(Trial {
            values,
            tool: traffic::TOOL.into(),
            commands: Vec::new(),
            load,
            carried: None,
            distributions: Vec::new(),
            raw: serde_json::json!({
                "max_pps": max_pps,
                "is_at_max": most.is_at_max,
                "is_tester_limited": is_tester_limited,
                "burst_is_at_longest": burst.is_at_longest,
                "throughput": most.trials,
            }),
        })
    }
}
