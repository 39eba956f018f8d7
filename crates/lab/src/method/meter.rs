//! Exactness of a meter: the rate through a drop band at an offered load above its rate.
//!
//! The first third of a trial empties the meter's bucket, which tells its burst; the rest shows the
//! rate that it settles at. Bits are those of the frames without FCS, which is what a switch in
//! software has of them.

use std::time::Duration;

use generator::method::{Measurer as _, MethodError, TrialInput};
use generator::session::Waiting;
use openflow::meter::{MeterFlags, MeterMod};

use super::{Method, MethodContext, Metric, Resolution, Trial, TrialError, Values, traffic};
use crate::testbed::method_error;

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
    cost: |settings| Duration::from_secs_f64(settings.duration_s() + 0.2),
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let settings = context.settings;
    let meters = settings.meter_mods().map_err(|error| wrong(error.to_string()))?;
    let frame_size = settings.frame_size();
    let frame_bits = f64::from(frame_size.saturating_sub(generator::profile::FCS_LEN) * 8);
    let first = meters.first().and_then(|meter| rate_pps(meter, frame_bits));
    let Some(configured_pps) = first else {
        return Err(wrong("the cell has no meter with a band".to_owned()));
    };
    drop(context.client("has no meters")?);
    let offered_pps = settings
        .rate_pps
        .or_else(|| settings.load_bps.map(|bps| bps / frame_bits))
        .unwrap_or(OVERLOAD * configured_pps);
    let phase = |share: f64| TrialInput {
        frame_size: frame_size as usize,
        rate_pps: offered_pps,
        duration_s: settings.duration_s() * share,
        grace_s: GRACE_S,
    };
    let phases = [phase(EMPTYING), phase(1.0 - EMPTYING)];
    let (outcome, load) = context.observe(|| {
        let plan = traffic::plan(context, Waiting::Sleeping, traffic::QUIET);
        context.bed.with_measurer(plan, |measurer| {
            measurer.run(&phases).map_err(|error| method_error(MethodError::Trial(error)))
        })
    });
    let (outcome, _) = outcome?;
    let [first, then] = &outcome[..] else {
        return Err(wrong(format!("{} phases of 2", outcome.len())));
    };
    let passed = |of: &generator::method::TrialOutput| of.report.received as f64;
    let found = Metered::of(
        [passed(first), passed(then)],
        [phases[0].duration_s, phases[1].duration_s],
        configured_pps.min(offered_pps),
    );
    let (values, resolutions) = found.figures(frame_bits);
    Ok(Trial {
        values,
        tool: traffic::TOOL.into(),
        load,
        resolutions,
        raw: serde_json::json!({
            "configured_pps": configured_pps,
            "offered_pps": offered_pps,
            "frame_bits": frame_bits,
            "sent": [first.report.sent, then.report.sent],
            "unsent": [first.unsent, then.unsent],
            "passed": [first.report.received, then.report.received],
        }),
        ..Trial::default()
    })
}

fn wrong(what: String) -> TrialError {
    TrialError::Output { program: "meter", what }
}

/// Measured work of a meter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Metered {
    /// Frames a second behind the emptying.
    pub(super) pps: f64,
    /// By how much that is not the expected rate, in percent of it.
    pub(super) error_pct: f64,
    /// Frames of the emptying above the rate that it settles at.
    pub(super) burst_frames: f64,
    /// Steps of `error_pct`, `pps` and `burst_frames` by whole frames.
    steps: [f64; 3],
}

impl Metered {
    /// Of the frames that passed in both phases and of their durations in seconds.
    pub(super) fn of(passed: [f64; 2], durations_s: [f64; 2], expected_pps: f64) -> Self {
        let pps = passed[1] / durations_s[1];
        let step_pps = 1.0 / durations_s[1];
        Self {
            pps,
            error_pct: 100.0 * (pps - expected_pps).abs() / expected_pps,
            burst_frames: (passed[0] - pps * durations_s[0]).max(0.0),
            // The emptying may end in the middle of a frame, and the bucket too.
            steps: [100.0 * step_pps / expected_pps, step_pps, 2.0 + step_pps * durations_s[0]],
        }
    }

    /// The figures for frames of that size in bits, and their bounds by whole frames.
    pub(super) fn figures(&self, frame_bits: f64) -> (Values, Vec<Resolution>) {
        let kbit = |frames: f64| frames * frame_bits / 1e3;
        let [error, rate, burst] = self.steps;
        let values = vec![
            ("meter_kbps", kbit(self.pps)),
            ("meter_error_pct", self.error_pct),
            ("meter_burst_kbit", kbit(self.burst_frames)),
        ];
        let steps = [kbit(rate), error, kbit(burst)];
        let resolutions = values.iter().zip(steps).map(|((metric, value), step)| {
            Resolution::new(metric, (value - step).max(0.0), value + step)
        });
        let resolutions = resolutions.collect();
        (values, resolutions)
    }
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
