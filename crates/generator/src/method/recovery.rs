//! System recovery (RFC 2544, clause 26.5): how long a device loses frames after an overload ends.
//!
//! Offered load is above the throughput for a while and then half of it, without a pause between.
//! The recovery time is that from the reduction to the last frame that was lost.

use serde::{Deserialize, Serialize};

use super::{Estimate, Measurer, MethodError, TrialInput};

/// The loads that are offered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecoveryOptions {
    /// Bytes of a frame, FCS counted.
    pub frame_size: usize,
    /// The device's throughput, frames a second.
    pub throughput_pps: f64,
    /// Load of the overload as a share of that. RFC 2544 has 1.1, or the line's rate.
    pub overload: f64,
    /// Load after it as a share of the throughput. RFC 2544 has 0.5.
    pub reduced: f64,
    /// Duration of the overload, seconds. RFC 2544 has 60.
    pub overload_s: f64,
    /// Time for which the reduced load is offered, seconds: longer than the recovery.
    pub reduced_s: f64,
    /// The number of measurements.
    pub repeats: u32,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecoveryReport {
    /// The recovery time, seconds.
    pub recovery_s: Estimate,
    /// Share of the frames that were lost in the overload: with none it was no overload.
    pub overload_loss_ratio: f64,
    /// Whether frames were still lost at the end of some measurement: the recovery takes longer.
    pub is_unfinished: bool,
    /// Whether the tester itself could not keep its schedule in some trial: the result may then be
    /// the tester's.
    #[serde(default)]
    pub is_tester_limited: bool,
}

/// Measures the recovery time.
///
/// # Errors
/// [`MethodError`].
pub fn recovery<M: Measurer>(
    measurer: &mut M,
    options: &RecoveryOptions,
) -> Result<RecoveryReport, MethodError<M::Error>> {
    if options.repeats == 0 {
        return Err(MethodError::Options("at least one repeat"));
    }
    let phase = |share: f64, duration_s: f64| TrialInput {
        frame_size: options.frame_size,
        rate_pps: options.throughput_pps * share,
        duration_s,
        grace_s: 2.0,
    };
    let overload = phase(options.overload, options.overload_s);
    let reduced = phase(options.reduced, options.reduced_s);
    let (mut samples, mut loss) = (Vec::new(), 0.0);
    let (mut is_unfinished, mut is_tester_limited) = (false, false);
    for _ in 0..options.repeats {
        let outputs = measurer.run(&[overload, reduced]).map_err(MethodError::Trial)?;
        let [before, after] = outputs.as_slice() else { return Err(MethodError::NoOutput) };
        is_tester_limited |= outputs.iter().any(|output| !output.is_tester_able());
        loss += before.loss_ratio() / f64::from(options.repeats);
        // Due so long after the reduction: its number over the rate.
        let last_lost = after.report.last_lost;
        samples.push(last_lost.map_or(0.0, |number| number as f64 / reduced.rate_pps));
        is_unfinished |= last_lost == Some(after.report.sent - 1);
    }
    let recovery = Estimate::of_mean(&samples).ok_or(MethodError::NoOutput)?;
    // The device may have recovered at any time between this frame and the next.
    let recovery_s = recovery.widened(0.0, 1.0 / reduced.rate_pps);
    Ok(RecoveryReport { recovery_s, overload_loss_ratio: loss, is_unfinished, is_tester_limited })
}

#[cfg(test)]
mod tests {
    use super::{RecoveryOptions, recovery};
    use crate::testing::{DeviceModel, SimulatedMeasurer};

    const OPTIONS: RecoveryOptions = RecoveryOptions {
        frame_size: 64,
        throughput_pps: 5_000.0,
        overload: 1.1,
        reduced: 0.5,
        overload_s: 0.5,
        reduced_s: 0.5,
        repeats: 2,
    };

    #[test]
    fn a_known_recovery_time_is_found() {
        let model = DeviceModel { recovery_ns: 120_000_000, ..DeviceModel::perfect(5_000.0, 8) };
        let found = recovery(&mut SimulatedMeasurer::new(model, 1), &OPTIONS).unwrap();
        // The frame at the reduction is the last that comes an interval of the overload after
        // another.
        assert!(found.recovery_s.contains(0.12), "{found:?}");
        assert!(found.overload_loss_ratio > 0.5 && !found.is_unfinished);
    }

    #[test]
    fn a_device_that_recovers_at_once_and_one_that_does_not() {
        let mut measurer = SimulatedMeasurer::new(DeviceModel::perfect(5_000.0, 8), 1);
        let found = recovery(&mut measurer, &OPTIONS).unwrap();
        assert!(found.recovery_s.contains(0.0) && found.recovery_s.high < 0.001, "{found:?}");
        let model = DeviceModel { recovery_ns: 9_000_000_000, ..DeviceModel::perfect(5_000.0, 8) };
        let never = recovery(&mut SimulatedMeasurer::new(model, 1), &OPTIONS).unwrap();
        assert!(never.is_unfinished);
    }
}
