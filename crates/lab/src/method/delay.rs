//! Delay by the generator's open-loop probes: each frame has a due time and carries it, so that a
//! stall counts once for every frame that it delayed. Of the cell's own frames one way, and of
//! small ones there and back.

use std::time::Duration;

use generator::method::on_ports::QUIET;
use generator::method::{Measurer as _, TrialOutput};
use generator::receiver::{Distribution, StreamReport};
use stats::Observed;

use super::{
    Method, MethodContext, Metric, Trial, TrialError, Values, distribution_us, exactly,
    leave_out_quantile, loss_pct, traffic, widen, within, wrong,
};

/// Those that hold the difference of two clocks, where host 2 is on another box than host 1; jitter
/// is a difference of two delays, in which it cancels.
const ONE_WAY: &[&str] = &["delay_p50_us", "delay_p99_us", "delay_mean_us"];

/// Probes a second, where the cell says nothing else: one way, and there and back.
const RATE_PPS: f64 = 1_000.0;
const PROBE_PPS: f64 = 250.0;

/// The generator's histogram tells delays apart that differ by so much of themselves, and its clock
/// those that differ by so many nanoseconds.
const BUCKET: f64 = 1.0 / 1024.0;
const TICK_NS: f64 = 1.0;

/// Late answers count: the distribution shows how late.
const GRACE_S: f64 = 2.0;
const PROBE_GRACE_S: f64 = 3.0;

/// Points of the probe's distribution that the raw data keep.
const QUANTILES: [f64; 16] =
    [0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0];

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
    run,
    ..Method::USUAL
};

pub(super) const PROBE: Method = Method {
    id: "probe",
    label: "RTT by open-loop probe",
    about: "Small UDP frames at a fixed schedule, reflected by host 2; delay from the due time",
    metrics: &[
        Metric::lower("probe_p50_us", "probe p50", "µs", 0),
        Metric::lower("probe_p99_us", "probe p99", "µs", 0),
        Metric::lower("probe_max_us", "probe max", "µs", 0),
        Metric::lower("probe_mean_us", "probe mean", "µs", 0),
        Metric::lower("probe_loss_pct", "probe loss", "%", 2),
    ],
    cost: |settings| Duration::from_secs_f64(settings.duration_s() + 0.3),
    run: probe,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let settings = context.settings;
    let rate_pps = settings.rate_pps.unwrap_or(RATE_PPS);
    let input = traffic::input(settings, rate_pps, settings.duration_s(), GRACE_S);
    let waiting = traffic::waiting_for(rate_pps);
    let (outcome, load) = context.observe(|| {
        traffic::with_measurer(context, waiting, QUIET, |measurer| Ok(measurer.trial(input)?))
    });
    let (TrialOutput { unsent, sent_late, report, .. }, clock) = outcome?;
    let (Some(delay), Some(ipdv)) = (&report.delay, &report.ipdv) else {
        let StreamReport { received, sent, .. } = report;
        let what = format!("{received} of {sent} frames came through; a delay needs two");
        return Err(wrong("delay", what));
    };
    let mut values = figures(&report, delay, ipdv);
    widen(&mut values, ONE_WAY, clock.as_ref().map_or(0.0, |clock| clock.error_us));
    Ok(Trial {
        values,
        tool: traffic::TOOL.into(),
        load,
        distributions: vec![
            distribution_us("delay_p50_us", delay),
            distribution_us("jitter_us", ipdv),
        ],
        raw: serde_json::json!({
            "sent": report.sent.saturating_sub(unsent),
            "received": report.received,
            "unsent": unsent,
            "sent_late": sent_late,
            "clock": clock.map(|clock| clock.of_metrics(ONE_WAY)),
        }),
        ..Trial::default()
    })
}

/// A time in microseconds with what the clock and the histogram leave open; `step` is a bucket's
/// width as a part of the time.
fn time_us(ns: f64, step: f64) -> Observed {
    let us = ns / 1e3;
    within(us, step * us.abs() + TICK_NS / 1e3)
}

/// A quantile of delays in microseconds.
pub(super) fn quantile_us(of: &Distribution, share: f64) -> Observed {
    time_us(of.at_ns(share), BUCKET)
}

/// The figures of an account, with what its histogram and its number of frames leave open.
pub(super) fn figures(account: &StreamReport, delay: &Distribution, ipdv: &Distribution) -> Values {
    let mut values = vec![
        ("delay_p50_us", quantile_us(delay, 0.5)),
        ("delay_p99_us", quantile_us(delay, 0.99)),
        ("delay_mean_us", time_us(delay.mean_ns, 0.0)),
        ("jitter_us", time_us(ipdv.mean_amount_ns, 0.0)),
        ("delay_loss_pct", loss_pct(account.loss_ratio(), account.sent)),
    ];
    leave_out_quantile(&mut values, "delay_p99_us", (0.99, delay.count));
    values
}

fn probe(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let settings = context.settings;
    let rate_pps = settings.rate_pps.unwrap_or(PROBE_PPS);
    let input = traffic::input(settings, rate_pps, settings.duration_s(), PROBE_GRACE_S);
    let (outcome, load) = context.observe(|| context.bed.round_trip(&input, context.cancel));
    let TrialOutput { unsent, sent_late, report, .. } = outcome?;
    let Some(delay) = &report.delay else {
        return Err(wrong("probe", format!("none of {} probes came back", report.sent)));
    };
    let at_us = |share: f64| delay.at_ns(share) / 1e3;
    let mut values = exactly([
        ("probe_p50_us", at_us(0.5)),
        ("probe_p99_us", at_us(0.99)),
        ("probe_max_us", at_us(1.0)),
        ("probe_mean_us", delay.mean_ns / 1e3),
    ]);
    values.push(("probe_loss_pct", loss_pct(report.loss_ratio(), report.sent)));
    leave_out_quantile(&mut values, "probe_p99_us", (0.99, report.received));
    let raw = serde_json::json!({
        "sent": report.sent.saturating_sub(unsent),
        "received": report.received,
        "refused": unsent,
        "sent_late": sent_late,
        "quantiles_us": QUANTILES.map(|share| (share, at_us(share))),
    });
    let tool = "Weir's open-loop probe".into();
    Ok(Trial { values, tool, load, raw, ..Trial::default() })
}
