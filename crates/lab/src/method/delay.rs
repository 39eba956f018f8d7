//! One-way delay of the cell's own frames, by the generator's open-loop probes: each frame has a
//! due time and carries it, so that a stall counts once for every frame that it delayed.

use std::time::Duration;

use generator::method::on_ports::QUIET;
use generator::method::{Measurer as _, TrialInput};
use generator::receiver::{Distribution, StreamReport};

use super::{
    Method, MethodContext, Metric, Resolution, Trial, TrialError, Values, distribution_us,
    leave_out_quantile, traffic,
};
use crate::testbed::method_error;

/// Those that hold the difference of two clocks, where host 2 is on another box than host 1; jitter
/// is a difference of two delays, in which it cancels.
const ONE_WAY: &[&str] = &["delay_p50_us", "delay_p99_us", "delay_mean_us"];

/// Probes a second, where the cell says nothing else.
const RATE_PPS: f64 = 1_000.0;

/// The generator's histogram tells delays apart that differ by so much of themselves, and its clock
/// those that differ by so many nanoseconds.
const BUCKET: f64 = 1.0 / 1024.0;
const TICK_NS: f64 = 1.0;

/// Late answers count: the distribution shows how late.
const GRACE_S: f64 = 2.0;

pub(super) const DELAY: Method = Method {
    id: "delay",
    label: "One-way delay",
    about: "The cell's frames from port 1 to port 2 at a fixed schedule; delay from the due time",
    metrics: &[
        Metric::lower("delay_p50_us", "delay, median", "µs", 1),
        Metric::lower("delay_p99_us", "delay, 99 %", "µs", 1),
        Metric::lower("delay_mean_us", "delay, mean", "µs", 1),
        // Its distribution is that of the IPDV itself, which has a sign (RFC 3393).
        Metric::lower("jitter_us", "delay variation (mean |IPDV|; CDF of signed IPDV)", "µs", 1),
        Metric::lower("delay_loss_pct", "loss", "%", 3),
    ],
    floors: &["delay_p50_us", "delay_p99_us", "delay_mean_us", "jitter_us"],
    cost: |settings| Duration::from_secs_f64(settings.duration_s() + 0.2),
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let settings = context.settings;
    let input = TrialInput {
        frame_size: settings.frame_size() as usize,
        rate_pps: settings.rate_pps.unwrap_or(RATE_PPS),
        duration_s: settings.duration_s(),
        grace_s: GRACE_S,
    };
    let waiting = traffic::waiting_for(input.rate_pps);
    let (outcome, load) = context.observe(|| {
        context.bed.with_measurer(traffic::plan(context, waiting, QUIET), |measurer| {
            measurer.trial(input).map_err(method_error)
        })
    });
    let (outcome, clock) = outcome?;
    let account = &outcome.report;
    let (Some(delay), Some(ipdv)) = (&account.delay, &account.ipdv) else {
        let what = format!(
            "{} of {} frames came through; a delay needs two",
            account.received, account.sent
        );
        return Err(TrialError::Output { program: "delay", what });
    };
    let (values, mut resolutions) = figures(account, delay, ipdv);
    if let Some(clock) = &clock {
        ONE_WAY
            .iter()
            .for_each(|metric| Resolution::widen(&mut resolutions, metric, clock.error_us));
    }
    Ok(Trial {
        values,
        tool: traffic::TOOL.into(),
        load,
        distributions: vec![
            distribution_us("delay_p50_us", delay),
            distribution_us("jitter_us", ipdv),
        ],
        resolutions,
        raw: serde_json::json!({
            "sent": account.sent.saturating_sub(outcome.unsent),
            "received": account.received,
            "unsent": outcome.unsent,
            "sent_late": outcome.sent_late,
            "clock": clock.map(|clock| clock.of_metrics(ONE_WAY)),
        }),
        ..Trial::default()
    })
}

fn us(ns: f64) -> f64 {
    ns / 1e3
}

/// A time with what the histogram leaves open, in microseconds; `step` is a bucket's width as a
/// part of the time.
fn of_time(metric: &'static str, value_us: f64, step: f64) -> Resolution {
    let reach_us = step * value_us.abs() + us(TICK_NS);
    Resolution::new(metric, value_us - reach_us, value_us + reach_us)
}

/// A quantile of delays in microseconds, and what the histogram leaves open of it.
pub(super) fn quantile_us(
    metric: &'static str,
    of: &Distribution,
    share: f64,
) -> (f64, Resolution) {
    let value_us = us(of.at_ns(share));
    (value_us, of_time(metric, value_us, BUCKET))
}

/// The figures of an account, and what its histogram and its number of frames leave open.
pub(super) fn figures(
    account: &StreamReport,
    delay: &Distribution,
    ipdv: &Distribution,
) -> (Values, Vec<Resolution>) {
    let (p50, open_p50) = quantile_us("delay_p50_us", delay, 0.5);
    let (p99, open_p99) = quantile_us("delay_p99_us", delay, 0.99);
    let (mean, jitter) = (us(delay.mean_ns), us(ipdv.mean_amount_ns));
    let loss = account.loss_ratio();
    let mut values = vec![
        ("delay_p50_us", p50),
        ("delay_p99_us", p99),
        ("delay_mean_us", mean),
        ("jitter_us", jitter),
        ("delay_loss_pct", 100.0 * loss),
    ];
    leave_out_quantile(&mut values, "delay_p99_us", (0.99, delay.count));
    let resolutions = vec![
        open_p50,
        open_p99,
        of_time("delay_mean_us", mean, 0.0),
        of_time("jitter_us", jitter, 0.0),
        Resolution::loss_pct("delay_loss_pct", loss, account.sent),
    ];
    (values, resolutions)
}
