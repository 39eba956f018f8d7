//! Reset (RFC 6201): how long a device forwards nothing because it is reset.
//!
//! Offered load runs on while the caller resets the device. Two ways are reported: the frames that
//! were lost over the rate (frame loss method), and the longest time without an arrival (time stamp
//! method). They differ where the device also loses frames at other times.
//!
//! A device that resets often takes the link down. What the sending port then does not take is lost
//! as if it had been sent, and is not sent when the link is up again; that is not the tester's
//! doing.

use serde::{Deserialize, Serialize};

use super::{Estimate, Measurer, MethodError, TrialInput, TrialRow};

/// The result of one reset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResetReport {
    /// By the time stamps of arrivals, seconds: at most the longest time without an arrival, at
    /// least that without the two intervals beside it and the variation of the delay.
    pub by_time_stamps_s: Estimate,
    /// By the number of lost frames, seconds.
    pub by_frame_loss_s: Estimate,
    /// Whether frames arrived before and after: without, the trial did not see the reset's end.
    pub is_finished: bool,
    /// Whether the tester itself could not keep its schedule: the result may then be the
    /// tester's.
    #[serde(default)]
    pub is_tester_limited: bool,
    /// The trial.
    pub trial: TrialRow,
}

/// Offers `input` to the measurer; `cause` makes the reset happen in the course of it.
///
/// # Errors
/// [`MethodError`].
pub fn reset<M: Measurer>(
    measurer: &mut M,
    input: TrialInput,
    cause: impl FnOnce(&mut M),
) -> Result<ResetReport, MethodError<M::Error>> {
    cause(measurer);
    let output = measurer.trial(input)?;
    let report = &output.report;
    let interval_s = 1.0 / input.rate_pps;
    let gap_s = report.longest_gap_ns as f64 / 1e9;
    // The reset, where there was one, explains no more than its own time.
    let held_back_s = (output.unsent + output.sent_late) as f64 * interval_s;
    let variation_s = report.pdv.as_ref().map_or(0.0, |pdv| pdv.max_ns as f64 / 1e9);
    let least_s = (gap_s - 2.0 * interval_s - variation_s).max(0.0);
    let value = (gap_s - interval_s).max(0.0);
    let lost_s = report.lost as f64 * interval_s;
    let lost = Estimate { value: lost_s, low: lost_s, high: lost_s };
    let is_finished = report.last_lost.is_none_or(|number| number + 1 < report.sent);
    Ok(ResetReport {
        by_time_stamps_s: Estimate { value, low: least_s, high: gap_s + variation_s },
        by_frame_loss_s: lost.widened(interval_s.min(lost_s), interval_s),
        is_finished: is_finished && report.received > 0,
        is_tester_limited: !output.is_tester_able() && (least_s <= 0.0 || held_back_s > gap_s),
        trial: output.row(),
    })
}

#[cfg(test)]
mod tests {
    use super::reset;
    use crate::method::TrialInput;
    use crate::testing::{DelayVariation, DeviceModel, SimulatedMeasurer};

    const INPUT: TrialInput =
        TrialInput { frame_size: 64, rate_pps: 2_000.0, duration_s: 1.0, grace_s: 2.0 };

    #[test]
    fn a_known_reset_is_found_by_both_ways() {
        let model = DeviceModel {
            reset_ns: 300_000_000,
            delay_ns: 1_000_000,
            variation: DelayVariation::Uniform(200_000),
            ..DeviceModel::perfect(10_000.0, 16)
        };
        let mut measurer = SimulatedMeasurer::new(model, 1);
        let cause = |m: &mut SimulatedMeasurer| m.device.reset_at(m.now_ns() + 400_123_456);
        let found = reset(&mut measurer, INPUT, cause).unwrap();
        assert!(found.by_time_stamps_s.contains(0.3), "{found:?}");
        assert!(found.by_frame_loss_s.contains(0.3), "{found:?}");
        assert!(found.is_finished);
    }

    #[test]
    fn a_reset_that_outlasts_the_trial_is_said_to() {
        let model = DeviceModel { reset_ns: u64::MAX, ..DeviceModel::perfect(10_000.0, 16) };
        let mut measurer = SimulatedMeasurer::new(model, 1);
        let cause = |m: &mut SimulatedMeasurer| m.device.reset_at(m.now_ns() + 400_000_000);
        assert!(!reset(&mut measurer, INPUT, cause).unwrap().is_finished);
        let mut idle = SimulatedMeasurer::new(DeviceModel::perfect(10_000.0, 16), 1);
        let none = reset(&mut idle, INPUT, |_| {}).unwrap();
        assert!(none.is_finished && none.by_frame_loss_s.contains(0.0), "{none:?}");
    }
}
