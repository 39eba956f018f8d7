//! Exactness of a meter: the rate through a drop band at an offered load above its rate.
//!
//! The first third of a trial empties the meter's bucket, which tells its burst; the rest shows the
//! rate that it settles at. Bits are those of the frames without FCS, which is what a switch in
//! software has of them.

use generator::method::Measurer as _;
use generator::profile::FCS_LEN;
use generator::session::Waiting;
use openflow::meter::{MeterFlags, MeterMod};
use stats::Observed;

use super::{Method, MethodContext, Metric, Trial, TrialError, Values, traffic, within, wrong};

/// The offered load in multiples of the meter's rate, unless the cell sets another.
const OVERLOAD: f64 = 2.0;

/// The share of a trial in which the bucket is emptied.
const EMPTYING: f64 = 1.0 / 3.0;

/// Frames that come later are late; a meter drops and does not delay.
const GRACE_S: f64 = 0.1;

/// Rate of a meter's first band in frames a second, for frames of `frame_bits`.
fn rate_pps(meter: &MeterMod, frame_bits: f64) -> Option<f64> {
    let rate = f64::from(meter.bands.first()?.rate);
    let is_packets = meter.flags.contains(MeterFlags::PKTPS);
    Some(if is_packets { rate } else { 1e3 * rate / frame_bits })
}

pub(super) const METER: Method = Method {
    id: "meter",
    label: "Meter",
    about: "What the first meter lets pass of an offered load, beside its configured rate; what \
            could not pass counts as exact where less was offered than the rate",
    metrics: &[
        Metric::higher("meter_kbps", "metered rate", "kbit/s", 1),
        Metric::lower("meter_error_pct", "error of the metered rate", "%", 2),
        Metric::lower("meter_burst_kbit", "passed above the rate at first", "kbit", 1),
    ],
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let settings = context.settings;
    let meters = settings.meter_mods().map_err(|error| wrong("meter", error.to_string()))?;
    let bytes = settings.frame_size().saturating_sub(FCS_LEN);
    let frame_bits = f64::from(bytes * 8);
    let first = meters.first().and_then(|meter| rate_pps(meter, frame_bits));
    let Some(configured_pps) = first else {
        return Err(wrong("meter", "the cell has no meter with a band"));
    };
    drop(context.client("has no meters")?);
    let offered_pps = settings
        .rate_pps
        .or_else(|| settings.load_bps.map(|bps| bps / frame_bits))
        .unwrap_or(OVERLOAD * configured_pps);
    let durations_s = [EMPTYING, 1.0 - EMPTYING].map(|share| settings.duration_s() * share);
    let phases =
        durations_s.map(|duration_s| traffic::input(settings, offered_pps, duration_s, GRACE_S));
    let (outcome, load) = context.observe(|| {
        traffic::with_measurer(context, Waiting::Sleeping, traffic::QUIET, |measurer| {
            Ok(measurer.run(&phases)?)
        })
    });
    let (outcome, _) = outcome?;
    let [first, then] = &outcome[..] else {
        return Err(wrong("meter", format!("{} phases of 2", outcome.len())));
    };
    let passed = [first.report.received, then.report.received];
    let values = figures(passed, durations_s, configured_pps.min(offered_pps), frame_bits);
    let raw = serde_json::json!({
        "configured_pps": configured_pps,
        "offered_pps": offered_pps,
        "frame_bits": frame_bits,
        "sent": [first.report.sent, then.report.sent],
        "unsent": [first.unsent, then.unsent],
        "passed": passed,
    });
    Ok(Trial { values, tool: traffic::TOOL.into(), load, raw, ..Trial::default() })
}

/// The figures of the frames that passed in both phases, of so many seconds and of frames of that
/// size in bits, with what whole frames leave open.
pub(super) fn figures(
    passed: [u64; 2],
    durations_s: [f64; 2],
    expected_pps: f64,
    frame_bits: f64,
) -> Values {
    let [first, then] = passed.map(|frames| frames as f64);
    let (pps, step_pps) = (then / durations_s[1], 1.0 / durations_s[1]);
    let burst = (first - pps * durations_s[0]).max(0.0);
    let kbit = |frames: f64| frames * frame_bits / 1e3;
    let pct = |pps: f64| 100.0 * pps / expected_pps;
    [
        ("meter_kbps", kbit(pps), kbit(step_pps)),
        ("meter_error_pct", pct((pps - expected_pps).abs()), pct(step_pps)),
        // The emptying may end in the middle of a frame, and the bucket too.
        ("meter_burst_kbit", kbit(burst), kbit(2.0 + step_pps * durations_s[0])),
    ]
    .map(|(metric, value, step)| {
        let of = within(value, step);
        (metric, Observed { low: of.low.max(0.0), ..of })
    })
    .into()
}

#[cfg(test)]
mod tests {
    use super::rate_pps;
    use openflow::meter::MeterModCommand;
    use openflow::text::parse_meter_mod;

    #[test]
    fn rates_are_those_of_the_first_band() {
        let rate =
            |text: &str| rate_pps(&parse_meter_mod(text, MeterModCommand::Add).unwrap(), 1_000.0);
        let bits = rate("meter=1,kbps,burst,band=type=drop,rate=1000,burst_size=100");
        assert_eq!(bits, Some(1_000.0));
        assert_eq!(rate("meter=1,pktps,band=type=drop,rate=500"), Some(500.0));
    }
}
