//! Reset (RFC 6201): how long a device forwards nothing because it is reset.
//!
//! Offered load runs on while the caller resets the device. Two ways are reported: the frames that
//! were lost over the rate (frame loss method), and the longest time without an arrival (time stamp
//! method). They differ where the device also loses frames at other times.
//!
//! A device that resets often takes the link down. What the sending port then does not take is lost
//! as if it had been sent, and is not sent when the link is up again; that is not the tester's
//! doing. What it does not take for another reason is no part of the reset: it is counted apart, it
//! widens the interval by as much, and the result is then the tester's limit.

use serde::{Deserialize, Serialize};

use super::{Estimate, Measurer, MethodError, TrialInput, TrialOutput, TrialRow};
use crate::transmit::LATE_AFTER_NS;

/// The result of one reset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResetReport {
    /// By the time stamps of arrivals, seconds: at most the longest time without an arrival, at
    /// least that without the two intervals beside it and the variation of the delay.
    pub by_time_stamps_s: Estimate,
    /// By the number of lost frames, seconds. Frames that the tester could not send while its link
    /// was up may have been due in the reset or not: they are part of the upper end alone.
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

/// So late may a frame leave that counts as sent in time, seconds: one that was due in the last
/// moment of an outage leaves when the link is up again.
const LATE_AFTER_S: f64 = LATE_AFTER_NS as f64 / 1e9;

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
    let by_tester = output.unsent_by_tester();
    let held_back_s = (by_tester + output.sent_late) as f64 * interval_s;
    let variation_s = report.pdv.as_ref().map_or(0.0, |pdv| pdv.max_ns as f64 / 1e9);
    let least_s = (gap_s - 2.0 * interval_s - variation_s).max(0.0);
    let value = (gap_s - interval_s).max(0.0);
    let lost_s = report.lost.saturating_sub(by_tester) as f64 * interval_s;
    let lost = Estimate { value: lost_s, low: lost_s, high: lost_s };
    let waited_s = if output.unsent_down > 0 { LATE_AFTER_S } else { 0.0 };
    let unknown_s = by_tester as f64 * interval_s + waited_s;
    let is_finished =
        report.last_lost.is_none_or(|number| number + 1 < report.sent) && !ends_down(&output);
    let has_unsent = by_tester.saturating_mul(10_000) > report.sent;
    let explains = least_s > 0.0 && held_back_s <= gap_s;
    Ok(ResetReport {
        by_time_stamps_s: Estimate { value, low: least_s, high: gap_s + variation_s },
        by_frame_loss_s: lost.widened(interval_s.min(lost_s), interval_s + unknown_s),
        is_finished: is_finished && report.received > 0,
        is_tester_limited: has_unsent || !output.is_tester_able() && !explains,
        trial: output.row(),
    })
}

/// Whether the link was still down at the end: no frame of the schedule's last two intervals came.
fn ends_down(output: &TrialOutput) -> bool {
    let interval_s = 1.0 / output.input.rate_pps;
    let end_s = output.start_ns as f64 / 1e9 + output.input.frames() as f64 * interval_s;
    let is_before = |last_ns: u64| last_ns as f64 / 1e9 + 2.0 * interval_s < end_s;
    output.unsent_down > 0 && output.report.last_ns.is_none_or(is_before)
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

    /// The defect of a reset to which any refusal of more than 100 us was counted.
    #[test]
    fn what_the_tester_does_not_send_is_no_part_of_the_reset() {
        let reset_model = DeviceModel { reset_ns: 300_000_000, ..DeviceModel::perfect(1e4, 16) };
        let at = |ms: u64| {
            move |m: &mut SimulatedMeasurer| m.device.reset_at(m.now_ns() + ms * 1_000_000)
        };
        let found = |model: DeviceModel| {
            reset(&mut SimulatedMeasurer::new(model, 1), INPUT, at(400)).unwrap()
        };
        // Down with the link: nothing leaves, and nothing of it is the tester's.
        let down = found(DeviceModel { reset_takes_link_down: true, ..reset_model });
        assert!(down.by_frame_loss_s.contains(0.3) && down.by_time_stamps_s.contains(0.3));
        assert_eq!(down.trial.unsent, down.trial.unsent_down);
        assert!(down.trial.unsent > 590 && !down.is_tester_limited, "{down:?}");
        // Refused for 1 ms each 10 ms: late and not lost.
        let (refuse_every_ns, refuse_ns) = (10_000_000, 1_000_000);
        let late = found(DeviceModel { refuse_every_ns, refuse_ns, ..reset_model });
        assert!(late.by_frame_loss_s.contains(0.3), "{late:?}");
        assert_eq!((late.trial.unsent, late.trial.unsent_down), (0, 0));
        // Refused for 150 ms each 250 ms: some frames are never sent, which is reported and not the
        // reset's.
        let (refuse_every_ns, refuse_ns) = (250_000_000, 150_000_000);
        let idle = DeviceModel { refuse_every_ns, refuse_ns, ..DeviceModel::perfect(1e4, 600) };
        let idle = reset(&mut SimulatedMeasurer::new(idle, 1), INPUT, |_| {}).unwrap();
        assert!(idle.trial.unsent > 100 && idle.trial.unsent_down == 0, "{idle:?}");
        assert!(idle.by_frame_loss_s.value == 0.0 && idle.is_tester_limited, "{idle:?}");
    }

    #[test]
    fn a_reset_that_outlasts_the_trial_is_reported() {
        let model = DeviceModel { reset_ns: u64::MAX, ..DeviceModel::perfect(10_000.0, 16) };
        let cause = |m: &mut SimulatedMeasurer| m.device.reset_at(m.now_ns() + 400_000_000);
        for reset_takes_link_down in [false, true] {
            let model = DeviceModel { reset_takes_link_down, ..model };
            let found = reset(&mut SimulatedMeasurer::new(model, 1), INPUT, cause).unwrap();
            assert!(!found.is_finished, "{found:?}");
        }
        let mut idle = SimulatedMeasurer::new(DeviceModel::perfect(10_000.0, 16), 1);
        let none = reset(&mut idle, INPUT, |_| {}).unwrap();
        assert!(none.is_finished && none.by_frame_loss_s.contains(0.0), "{none:?}");
    }
}
