//! Throughput: the highest rate at which nothing is lost (RFC 2544, clause 26.1), by binary search.
//!
//! The interval ends above at the lowest rate that failed. Below it ends at the rate at which the
//! frames of the best trial came out: a queue that only grew during a trial is no throughput.

use serde::{Deserialize, Serialize};

use super::{Estimate, Measurer, MethodError, TrialInput, TrialOutput, TrialRow};

/// Range and exactness of the search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThroughputOptions {
    /// Bytes of a frame, FCS counted.
    pub frame_size: usize,
    /// The highest rate, frames a second: usually that of the line.
    pub max_pps: f64,
    /// Duration of a trial, seconds. RFC 2544 asks for 60.
    pub trial_s: f64,
    /// Frames that arrive later than this after the end count as lost, seconds. RFC 2544 waits 2.
    pub grace_s: f64,
    /// Share of the frames that may be lost: 0 in RFC 2544.
    pub loss_ratio: f64,
    /// The search ends when its bounds are so near, relative to the upper one.
    pub precision: f64,
    /// A failed trial is repeated so often before it counts: a shared machine stalls at times.
    pub repeats: u32,
}

impl ThroughputOptions {
    /// As RFC 2544 has it, for frames of that size and up to that rate.
    #[must_use]
    pub fn new(frame_size: usize, max_pps: f64) -> Self {
        let (trial_s, grace_s, precision) = (60.0, 2.0, 0.005);
        Self { frame_size, max_pps, trial_s, grace_s, loss_ratio: 0.0, precision, repeats: 0 }
    }

    fn check<E>(&self) -> Result<(), MethodError<E>> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if !positive(self.max_pps) || !positive(self.trial_s) {
            return Err(MethodError::Options("rate and duration are above zero"));
        }
        if !(0.0..1.0).contains(&self.loss_ratio) {
            return Err(MethodError::Options("the loss ratio is at least 0 and below 1"));
        }
        if !(1e-6..1.0).contains(&self.precision) {
            return Err(MethodError::Options("the precision is from 0.000001 to below 1"));
        }
        Ok(())
    }
}

/// The result of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThroughputReport {
    /// The throughput, frames a second; 0 when no rate passed.
    pub rate_pps: Estimate,
    /// Whether the highest rate passed: the device can do more than was asked.
    pub is_at_max: bool,
    /// Whether the tester itself could not keep its schedule in some trial: the result may then be
    /// the tester's.
    pub is_tester_limited: bool,
    /// All trials, in order.
    pub trials: Vec<TrialRow>,
}

/// The state of the search.
struct Bisection {
    low_pps: f64,
    sustained_pps: f64,
    high_pps: f64,
    report: ThroughputReport,
}

/// Searches for the throughput.
///
/// # Errors
/// [`MethodError`].
pub fn throughput<M: Measurer>(
    measurer: &mut M,
    options: &ThroughputOptions,
) -> Result<ThroughputReport, MethodError<M::Error>> {
    options.check()?;
    let nothing = Estimate { value: 0.0, low: 0.0, high: 0.0 };
    let mut search = Bisection {
        low_pps: 0.0,
        sustained_pps: 0.0,
        high_pps: f64::INFINITY,
        report: ThroughputReport {
            rate_pps: nothing,
            is_at_max: false,
            is_tester_limited: false,
            trials: Vec::new(),
        },
    };
    let mut offered = options.max_pps;
    // A rate below one frame a trial cannot be offered.
    let least = 1.0 / options.trial_s;
    loop {
        let passes = try_rate(measurer, options, offered, &mut search)?;
        if passes {
            search.low_pps = offered;
        } else {
            search.high_pps = offered;
        }
        let is_near = search.high_pps - search.low_pps <= options.precision * search.high_pps;
        if search.low_pps >= options.max_pps || is_near || search.high_pps <= least {
            break;
        }
        offered = f64::midpoint(search.low_pps, search.high_pps);
    }
    let mut report = search.report;
    report.is_at_max = search.low_pps >= options.max_pps;
    let high = if report.is_at_max { f64::INFINITY } else { search.high_pps };
    let low = search.low_pps.min(search.sustained_pps);
    report.rate_pps = Estimate { value: search.low_pps, low, high };
    Ok(report)
}

/// Whether a rate passes, at the first try or at a repeat.
fn try_rate<M: Measurer>(
    measurer: &mut M,
    options: &ThroughputOptions,
    rate_pps: f64,
    search: &mut Bisection,
) -> Result<bool, MethodError<M::Error>> {
    let (frame_size, duration_s) = (options.frame_size, options.trial_s);
    let input = TrialInput { frame_size, rate_pps, duration_s, grace_s: options.grace_s };
    for _ in 0..=options.repeats {
        let output = measurer.trial(input)?;
        search.report.trials.push(output.row());
        search.report.is_tester_limited |= !output.is_tester_able();
        if output.loss_ratio() <= options.loss_ratio {
            search.sustained_pps = sustained_pps(&output, options.loss_ratio);
            return Ok(true);
        }
    }
    Ok(false)
}

/// The highest load of which the rate at which frames came out is the share that may not be lost.
/// One interval of a frame is taken off: the first arrival and the last are known that exactly.
pub(super) fn sustained_pps(output: &TrialOutput, loss_ratio: f64) -> f64 {
    let forwarded = output.forwarding_rate_pps() / (1.0 - loss_ratio);
    let exactness = 1.0 - 1.0 / output.report.sent.max(1) as f64;
    output.input.rate_pps.min(forwarded * exactness)
}

#[cfg(test)]
mod tests {
    use super::{ThroughputOptions, throughput};
    use crate::method::MethodError;
    use crate::testing::{DeviceModel, SimulatedMeasurer};

    fn options() -> ThroughputOptions {
        let options = ThroughputOptions::new(64, 20_000.0);
        ThroughputOptions { trial_s: 0.5, grace_s: 0.01, ..options }
    }

    #[test]
    fn a_known_capacity_is_found() {
        for capacity in [70.0, 2_345.0, 19_000.0] {
            let mut measurer = SimulatedMeasurer::new(DeviceModel::perfect(capacity, 4), 1);
            let found = throughput(&mut measurer, &options()).unwrap();
            assert!(found.rate_pps.contains(capacity), "{capacity}: {:?}", found.rate_pps);
            let error = (found.rate_pps.value - capacity).abs() / capacity;
            assert!(error < 0.06, "{capacity}: {:?}", found.rate_pps);
            assert!(!found.is_at_max && !found.is_tester_limited);
        }
    }

    #[test]
    fn a_deep_queue_is_no_throughput() {
        let mut measurer = SimulatedMeasurer::new(DeviceModel::perfect(5_000.0, 1_000_000), 1);
        let lenient = ThroughputOptions { grace_s: 2.0, ..options() };
        let found = throughput(&mut measurer, &lenient).unwrap();
        // Everything arrives within the two seconds that RFC 2544 waits, but not at the rate.
        assert!(found.rate_pps.value > 10_000.0, "{:?}", found.rate_pps);
        assert!(found.rate_pps.contains(5_000.0), "{:?}", found.rate_pps);
        let strict = throughput(&mut measurer, &options()).unwrap();
        assert!(strict.rate_pps.value < 5_200.0, "{:?}", strict.rate_pps);
    }

    #[test]
    fn what_exceeds_the_line_is_reported_as_such() {
        let mut measurer = SimulatedMeasurer::new(DeviceModel::perfect(1e6, 4), 1);
        let found = throughput(&mut measurer, &options()).unwrap();
        assert!(found.is_at_max && found.trials.len() == 1);
        assert_eq!(found.rate_pps.value, 20_000.0);
    }

    #[test]
    fn a_device_that_always_loses_has_none() {
        let model = DeviceModel { loss: 1.0, ..DeviceModel::perfect(1e6, 4) };
        let found = throughput(&mut SimulatedMeasurer::new(model, 1), &options()).unwrap();
        assert_eq!((found.rate_pps.value, found.rate_pps.low), (0.0, 0.0));
    }

    #[test]
    fn questions_without_sense_are_refused() {
        let mut measurer = SimulatedMeasurer::new(DeviceModel::perfect(1e6, 4), 1);
        for wrong in [
            ThroughputOptions { max_pps: 0.0, ..options() },
            ThroughputOptions { trial_s: f64::NAN, ..options() },
            ThroughputOptions { loss_ratio: 1.0, ..options() },
            ThroughputOptions { precision: 0.0, ..options() },
        ] {
            let refused = throughput(&mut measurer, &wrong).unwrap_err();
            assert!(matches!(refused, MethodError::Options(_)), "{wrong:?}");
        }
    }
}
