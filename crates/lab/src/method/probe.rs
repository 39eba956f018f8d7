//! Round-trip time by the generator's open-loop probe: sent by the clock, measured from the time
//! at which each probe was due, so that a stall counts once for every probe that it delayed.

use std::time::Duration;

use generator::method::TrialInput;

use super::{Method, MethodContext, Metric, Resolution, Trial, TrialError, leave_out_quantile};

/// Probes a second, where the cell says nothing else.
const RATE_PPS: f64 = 250.0;

/// Points of the distribution that the raw data keep.
const QUANTILES: [f64; 16] =
    [0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0];

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
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let input = TrialInput {
        frame_size: context.settings.frame_size() as usize,
        rate_pps: context.settings.rate_pps.unwrap_or(RATE_PPS),
        duration_s: context.settings.duration_s(),
        // Late answers count: the histogram shows how late.
        grace_s: 3.0,
    };
    let (outcome, load) = context.observe(|| context.bed.round_trip(&input, context.cancel));
    let outcome = outcome?;
    let account = &outcome.report;
    let at = |quantile: f64| account.delay_us(quantile);
    let (Some(p50), Some(p99), Some(max), Some(mean)) =
        (at(0.5), at(0.99), at(1.0), account.delay_us_mean())
    else {
        let what = format!("none of {} probes came back", account.sent);
        return Err(TrialError::Output { program: "probe", what });
    };
    let quantiles: Vec<(f64, f64)> =
        QUANTILES.iter().filter_map(|quantile| Some((*quantile, at(*quantile)?))).collect();
    let mut values = vec![
        ("probe_p50_us", p50),
        ("probe_p99_us", p99),
        ("probe_max_us", max),
        ("probe_mean_us", mean),
        ("probe_loss_pct", 100.0 * account.loss_ratio()),
    ];
    leave_out_quantile(&mut values, "probe_p99_us", (0.99, account.received));
    Ok(Trial {
        values,
        tool: "Weir's open-loop probe".into(),
        load,
        resolutions: vec![Resolution::loss_pct(
            "probe_loss_pct",
            account.loss_ratio(),
            account.sent,
        )],
        raw: serde_json::json!({
            "sent": account.sent.saturating_sub(outcome.unsent),
            "received": account.received,
            "refused": outcome.unsent,
            "sent_late": outcome.sent_late,
            "quantiles_us": quantiles,
        }),
        ..Trial::default()
    })
}
