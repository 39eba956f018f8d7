//! One-way delay of the cell's own frames, by the generator's open-loop probes: each frame has a
//! due time and carries it, so that a stall counts once for every frame that it delayed.

use std::time::Duration;

use generator::method::on_ports::QUIET;
use generator::method::{Measurer as _, TrialInput};
use generator::session::Waiting;

use super::{Better, Method, MethodContext, Metric, Trial, TrialDistribution, TrialError, traffic};
use crate::settings::Settings;
use crate::testbed::{Testbed, method_error};

/// The method.
pub(super) struct Delay;

const METRICS: &[Metric] = &[
    figure("delay_p50_us", "delay, median", "µs", 1),
    figure("delay_p99_us", "delay, 99 %", "µs", 1),
    figure("delay_mean_us", "delay, mean", "µs", 1),
    figure("jitter_us", "jitter (mean |IPDV|)", "µs", 1),
    figure("delay_loss_pct", "loss", "%", 3),
];

const fn figure(
    id: &'static str,
    label: &'static str,
    unit: &'static str,
    decimals: usize,
) -> Metric {
    Metric { id, label, unit, better: Better::Lower, decimals }
}

/// Probes a second, where the cell says nothing else.
const RATE_PPS: f64 = 1_000.0;

/// Up to so many frames a second the lab's threads run in real time; beyond it the one that sends
/// would hold its core for itself.
const REAL_TIME_PPS: f64 = 10_000.0;

/// Late answers count: the distribution shows how late.
const GRACE_S: f64 = 2.0;

impl Method for Delay {
    fn id(&self) -> &'static str {
        "delay"
    }

    fn label(&self) -> &'static str {
        "One-way delay"
    }

    fn about(&self) -> &'static str {
        "The cell's frames from port 1 to port 2 at a fixed schedule; delay from the due time"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn saturates(&self) -> bool {
        false
    }

    fn floors(&self) -> &'static [&'static str] {
        &["delay_p50_us", "delay_p99_us", "delay_mean_us", "jitter_us"]
    }

    fn cost(&self, settings: &Settings) -> Duration {
        Duration::from_secs_f64(settings.duration_s() + 0.2)
    }

    fn fits(&self, _bed: &Testbed) -> Result<(), &'static str> {
        Ok(())
    }

    fn run(&self, context: &MethodContext<'_>) -> Result<Trial, TrialError> {
        let settings = context.settings;
        let input = TrialInput {
            frame_size: settings.frame_size() as usize,
            rate_pps: settings.rate_pps.unwrap_or(RATE_PPS),
            duration_s: settings.duration_s(),
            grace_s: GRACE_S,
        };
        let waiting = match input.rate_pps <= REAL_TIME_PPS {
            true => Waiting::Precise,
            false => Waiting::Sparing,
        };
        let (outcome, load) = context.observe(|| {
            context.bed.with_session(waiting, |session| {
                let mut measurer = traffic::measurer(session, context, QUIET);
                measurer.trial(input).map_err(method_error)
            })
        });
        let outcome = outcome?;
        let account = &outcome.report;
        let (Some(delay), Some(ipdv)) = (&account.delay, &account.ipdv) else {
            let what = format!(
                "{} of {} frames came through; a delay needs two",
                account.received, account.sent
            );
            return Err(TrialError::Output { program: "delay", what });
        };
        let us = |ns: f64| ns / 1e3;
        let distribution = |metric, of: &generator::receiver::Distribution| TrialDistribution {
            metric,
            count: of.count,
            quantiles: of.quantiles.iter().map(|q| (q.share, us(q.value_ns as f64))).collect(),
        };
        Ok(Trial {
            values: vec![
                ("delay_p50_us", us(delay.at_ns(0.5))),
                ("delay_p99_us", us(delay.at_ns(0.99))),
                ("delay_mean_us", us(delay.mean_ns)),
                ("jitter_us", us(ipdv.mean_amount_ns)),
                ("delay_loss_pct", 100.0 * account.loss_ratio()),
            ],
            tool: traffic::TOOL.into(),
            commands: Vec::new(),
            load,
            carried: None,
            distributions: vec![
                distribution("delay_p50_us", delay),
                distribution("jitter_us", ipdv),
            ],
            raw: serde_json::json!({
                "sent": account.sent.saturating_sub(outcome.unsent),
                "received": account.received,
                "unsent": outcome.unsent,
                "sent_late": outcome.sent_late,
            }),
        })
    }
}
