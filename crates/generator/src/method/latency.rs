//! Latency under load (RFC 2544, clause 26.2): one-way delay, its variation and jitter at a given
//! rate.
//!
//! Every frame is a sample, from the time at which it was due: a device that stops forwarding for a
//! while delays all frames of that time, and all of them are counted. The mean is that of the
//! trials (RFC 2544 asks for 20), since frames of one trial are not independent.

use serde::{Deserialize, Serialize};

use super::{Estimate, Measurer, MethodError, TrialInput, TrialRow};

/// The load that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyOptions {
    /// Bytes of a frame, FCS counted.
    pub frame_size: usize,
    /// Offered load, frames a second. RFC 2544 has the throughput.
    pub rate_pps: f64,
    /// Duration of a trial, seconds. RFC 2544 has 120.
    pub trial_s: f64,
    /// Number of trials.
    pub trials: u32,
}

/// The result. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyReport {
    /// Offered load, frames a second.
    pub rate_pps: f64,
    /// The smallest delay of all trials.
    pub min_ns: i64,
    /// Mean delay.
    pub mean_ns: Estimate,
    /// Median. As the other quantiles absent where fewer than 50 frames of a trial lie beyond it:
    /// the trials' own quantiles then say too little about it.
    pub p50_ns: Option<Estimate>,
    /// 90 % of the frames are not slower.
    pub p90_ns: Option<Estimate>,
    /// 99 % of the frames are not slower.
    pub p99_ns: Option<Estimate>,
    /// 99.9 % of the frames are not slower.
    pub p999_ns: Option<Estimate>,
    /// The largest delay of all trials.
    pub max_ns: i64,
    /// Mean amount by which the delays of two frames sent in succession differ (IPDV, RFC 5481).
    pub jitter_ns: Estimate,
    /// Share of the frames that were lost: a load with loss has no latency in the sense of RFC
    /// 2544.
    pub loss_ratio: f64,
    /// Whether the tester itself could not keep its schedule in some trial: the result may then be
    /// the tester's.
    #[serde(default)]
    pub is_tester_limited: bool,
    /// All trials, in order.
    pub trials: Vec<TrialRow>,
}

/// Frames of each trial that lie beyond a quantile which is reported. The expectation of a sample's
/// quantile is off by about 1 / (2 n) of the mean in an exponential tail of n frames.
const TAIL_MIN: f64 = 50.0;

/// Delays are kept to three digits: so much of a value is unknown.
const RESOLUTION: f64 = 1.0 / 1024.0;

/// Measures latency. `None` when no frame arrived in some trial.
///
/// # Errors
/// [`MethodError`].
pub fn latency<M: Measurer>(
    measurer: &mut M,
    options: &LatencyOptions,
) -> Result<Option<LatencyReport>, MethodError<M::Error>> {
    if options.trials == 0 {
        return Err(MethodError::Options("at least one trial"));
    }
    let (frame_size, rate_pps) = (options.frame_size, options.rate_pps);
    let input = TrialInput { frame_size, rate_pps, duration_s: options.trial_s, grace_s: 2.0 };
    let (mut rows, mut delays, mut jitters) = (Vec::new(), Vec::new(), Vec::new());
    let (mut sent, mut received, mut is_tester_limited) = (0, 0, false);
    for _ in 0..options.trials {
        let output = measurer.trial(input)?;
        rows.push(output.row());
        is_tester_limited |= !output.is_tester_able();
        sent += output.report.sent;
        received += output.report.received;
        let Some(delay) = output.report.delay else { return Ok(None) };
        jitters.extend(output.report.ipdv.map(|ipdv| ipdv.mean_amount_ns));
        delays.push(delay);
    }
    let of = |samples: Vec<f64>| Estimate::of_mean(&samples);
    let mean = of(delays.iter().map(|delay| delay.mean_ns).collect());
    let fewest = delays.iter().map(|delay| delay.count).min().unwrap_or(0) as f64;
    let at = |share: f64| {
        if fewest * (1.0 - share) < TAIL_MIN - 1e-6 {
            return None;
        }
        let samples: Vec<f64> = delays.iter().map(|delay| delay.at_ns(share)).collect();
        of(samples).map(|found| {
            let unknown = found.value.abs() * RESOLUTION / 2.0;
            found.widened(unknown, unknown)
        })
    };
    let (Some(mean_ns), Some(jitter_ns)) = (mean, of(jitters)) else { return Ok(None) };
    Ok(Some(LatencyReport {
        rate_pps,
        min_ns: delays.iter().map(|delay| delay.min_ns).min().unwrap_or(0),
        mean_ns,
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        max_ns: delays.iter().map(|delay| delay.max_ns).max().unwrap_or(0),
        jitter_ns,
        loss_ratio: 1.0 - received as f64 / sent.max(1) as f64,
        is_tester_limited,
        trials: rows,
    }))
}

#[cfg(test)]
mod tests {
    use super::{LatencyOptions, latency};
    use crate::method::MethodError;
    use crate::testing::{DelayVariation, DeviceModel, SimulatedMeasurer};

    const OPTIONS: LatencyOptions =
        LatencyOptions { frame_size: 64, rate_pps: 1_000.0, trial_s: 5.0, trials: 5 };

    #[test]
    fn a_known_delay_is_found() {
        let model = DeviceModel {
            delay_ns: 40_000,
            variation: DelayVariation::Uniform(100_000),
            ..DeviceModel::perfect(100_000.0, 16)
        };
        let found = latency(&mut SimulatedMeasurer::new(model, 1), &OPTIONS).unwrap().unwrap();
        assert!(found.mean_ns.contains(100_000.0), "{found:?}");
        assert!(found.p50_ns.unwrap().contains(100_000.0), "{found:?}");
        assert!(found.p99_ns.unwrap().contains(149_000.0), "{found:?}");
        assert_eq!(found.p999_ns, None, "5 frames of a trial say nothing about it");
        assert!(found.jitter_ns.contains(100_000.0 / 3.0), "{found:?}");
        assert!(found.min_ns >= 50_000 && found.max_ns < 150_000);
        assert_eq!(found.loss_ratio, 0.0);
    }

    #[test]
    fn a_stalling_device_hides_no_omission() {
        // For 100 ms of each second nothing is forwarded. A tester that waits for one frame before
        // it sends the next would have one slow sample in a thousand; here all 100 frames of that
        // time are samples, and their delay falls from 100 ms to nothing.
        let model = DeviceModel {
            stall_every_ns: 1_000_000_000,
            stall_ns: 100_000_000,
            ..DeviceModel::perfect(1e6, 1_000_000)
        };
        let found = latency(&mut SimulatedMeasurer::new(model, 1), &OPTIONS).unwrap().unwrap();
        let truth_mean_ns = 0.1 * 50e6;
        assert!((found.mean_ns.value - truth_mean_ns).abs() < 0.02 * truth_mean_ns, "{found:?}");
        assert!((found.p99_ns.unwrap().value - 90e6).abs() < 2e6, "{found:?}");
        assert!(found.p50_ns.unwrap().value < 10_000.0 && found.max_ns >= 99_000_000, "{found:?}");
        assert_eq!(found.loss_ratio, 0.0);
    }

    #[test]
    fn a_device_that_forwards_nothing_has_no_latency() {
        let model = DeviceModel { loss: 1.0, ..DeviceModel::perfect(1e6, 16) };
        let mut measurer = SimulatedMeasurer::new(model, 1);
        assert_eq!(latency(&mut measurer, &OPTIONS).unwrap(), None);
        let none = LatencyOptions { trials: 0, ..OPTIONS };
        assert!(matches!(latency(&mut measurer, &none), Err(MethodError::Options(_))));
    }
}
