//! Frame loss rate (RFC 2544, clause 26.3): the share of the frames that a device loses at each of
//! several loads, from the highest down, until two in succession are without loss.
//!
//! Frames that the device still had queued at the end of a trial are not lost, but they would be in
//! a longer one: the interval reaches up to them.

use serde::{Deserialize, Serialize};

use super::{Estimate, Measurer, MethodError, TrialInput, TrialRow};

/// The loads that are offered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameLossOptions {
    /// Bytes of a frame, FCS counted.
    pub frame_size: usize,
    /// The highest rate, frames a second: usually that of the line.
    pub max_pps: f64,
    /// By how much each load is lower than the one before, as a share of the highest. RFC 2544 has
    /// 0.1 at most.
    pub step: f64,
    /// Duration of a trial, seconds.
    pub trial_s: f64,
}

/// The loss at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameLossPoint {
    /// The load as a share of the highest.
    pub load: f64,
    /// Share of the frames that were lost.
    pub loss_ratio: Estimate,
    /// Whether the tester itself could not keep its schedule: the loss may then be the tester's.
    #[serde(default)]
    pub is_tester_limited: bool,
    /// The trial.
    pub trial: TrialRow,
}

/// Measures the loss at each load.
///
/// # Errors
/// [`MethodError`].
pub fn frame_loss<M: Measurer>(
    measurer: &mut M,
    options: &FrameLossOptions,
) -> Result<Vec<FrameLossPoint>, MethodError<M::Error>> {
    if !(0.001..=1.0).contains(&options.step) {
        return Err(MethodError::Options("the step is from 0.001 to 1"));
    }
    let mut points: Vec<FrameLossPoint> = Vec::new();
    for number in 0.. {
        let load = 1.0 - f64::from(number) * options.step;
        if load < 1e-9 {
            break;
        }
        points.push(point(measurer, options, load)?);
        let mut lossless = points.iter().rev().take_while(|point| point.loss_ratio.value == 0.0);
        if lossless.nth(1).is_some() {
            break;
        }
    }
    Ok(points)
}

/// The loss at one load, a share of the highest.
fn point<M: Measurer>(
    measurer: &mut M,
    options: &FrameLossOptions,
    load: f64,
) -> Result<FrameLossPoint, MethodError<M::Error>> {
    let output = measurer.trial(TrialInput {
        frame_size: options.frame_size,
        rate_pps: options.max_pps * load,
        duration_s: options.trial_s,
        grace_s: 0.0,
    })?;
    let report = &output.report;
    // Without grace, late frames are those that the device had at the end.
    let at_least = Estimate::of_share(report.lost, report.sent);
    let at_most = Estimate::of_share(report.lost + report.late, report.sent);
    let loss_ratio = Estimate { high: at_most.high, ..at_least };
    let is_tester_limited = !output.is_tester_able();
    Ok(FrameLossPoint { load, loss_ratio, is_tester_limited, trial: output.row() })
}

#[cfg(test)]
mod tests {
    use super::{FrameLossOptions, frame_loss};
    use crate::testing::{DeviceModel, SimulatedMeasurer};

    const OPTIONS: FrameLossOptions =
        FrameLossOptions { frame_size: 64, max_pps: 10_000.0, step: 0.1, trial_s: 0.5 };

    #[test]
    fn loss_follows_the_capacity_and_ends_after_two_without() {
        let mut measurer = SimulatedMeasurer::new(DeviceModel::perfect(7_500.0, 16), 1);
        let found = frame_loss(&mut measurer, &OPTIONS).unwrap();
        let loads: Vec<f64> = found.iter().map(|point| (point.load * 10.0).round()).collect();
        assert_eq!(loads, [10.0, 9.0, 8.0, 7.0, 6.0]);
        for point in &found {
            let truth = (1.0 - 7_500.0 / (10_000.0 * point.load)).max(0.0);
            assert!(point.loss_ratio.contains(truth), "{point:?}");
        }
    }

    #[test]
    fn a_device_that_always_loses_is_asked_at_every_load() {
        let model = DeviceModel { loss: 0.2, ..DeviceModel::perfect(1e6, 16) };
        let found = frame_loss(&mut SimulatedMeasurer::new(model, 1), &OPTIONS).unwrap();
        assert_eq!(found.len(), 10);
        assert!(found.iter().all(|point| point.loss_ratio.contains(0.2)));
    }
}
