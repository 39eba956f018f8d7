//! Back-to-back frames (RFC 9004): the longest burst at the highest rate of which nothing is lost,
//! and the time that the device's buffer holds.
//!
//! Each repeat searches anew, since a buffer's room varies from burst to burst; the result is their
//! mean. The resolution of the search is part of the interval.

use serde::{Deserialize, Serialize};

use super::{Estimate, Measurer, MethodError, TrialInput};

/// Range and resolution of the search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackToBackOptions {
    /// Bytes of a frame, FCS counted.
    pub frame_size: usize,
    /// The rate of the burst, frames a second: that of the line.
    pub line_pps: f64,
    /// The longest burst that is tried, frames.
    pub longest: u64,
    /// The search ends when its bounds are this number of frames apart.
    pub resolution: u64,
    /// The number of searches. RFC 9004 wants the mean of many.
    pub repeats: u32,
    /// The device's throughput at this frame size, frames a second, where it is known: from it
    /// follows the corrected buffer time.
    pub throughput_pps: Option<f64>,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackToBackReport {
    /// Mean of the longest bursts without loss, frames.
    pub burst: Estimate,
    /// The shortest of them.
    pub least: u64,
    /// The longest of them.
    pub most: u64,
    /// Whether the longest burst that was tried passed in all repeats: the device can take more.
    pub is_at_longest: bool,
    /// The time that such a burst takes at the line's rate (implied buffer time), seconds.
    pub implied_buffer_s: Estimate,
    /// The same less what is forwarded meanwhile (corrected buffer time), seconds; where the
    /// throughput is known and below the line's rate.
    pub corrected_buffer_s: Option<Estimate>,
    /// Whether the tester itself could not keep its schedule in some trial: the result may then be
    /// the tester's.
    #[serde(default)]
    pub is_tester_limited: bool,
}

/// Searches for the longest burst.
///
/// # Errors
/// [`MethodError`].
pub fn back_to_back<M: Measurer>(
    measurer: &mut M,
    options: &BackToBackOptions,
) -> Result<BackToBackReport, MethodError<M::Error>> {
    if options.longest == 0 || options.resolution == 0 || options.repeats == 0 {
        return Err(MethodError::Options("frames, resolution and repeats are above zero"));
    }
    let (mut bursts, mut is_tester_limited) = (Vec::new(), false);
    for _ in 0..options.repeats {
        bursts.push(longest_burst(measurer, options, &mut is_tester_limited)?);
    }
    let samples: Vec<f64> = bursts.iter().map(|burst| *burst as f64).collect();
    let mean = Estimate::of_mean(&samples).ok_or(MethodError::NoOutput)?;
    // Each search found a burst that passes; the next longer one by the resolution does not.
    let burst = mean.widened(0.0, options.resolution as f64);
    let implied = burst.scaled(1.0 / options.line_pps);
    let share = options.throughput_pps.map(|pps| (options.line_pps - pps) / options.line_pps);
    Ok(BackToBackReport {
        burst,
        least: bursts.iter().copied().min().unwrap_or(0),
        most: bursts.iter().copied().max().unwrap_or(0),
        is_at_longest: bursts.iter().all(|burst| *burst == options.longest),
        implied_buffer_s: implied,
        corrected_buffer_s: share.filter(|share| *share > 0.0).map(|share| implied.scaled(share)),
        is_tester_limited,
    })
}

/// One search.
fn longest_burst<M: Measurer>(
    measurer: &mut M,
    options: &BackToBackOptions,
    is_tester_limited: &mut bool,
) -> Result<u64, MethodError<M::Error>> {
    let (mut low, mut high) = (0, options.longest + 1);
    let mut frames = options.longest;
    while high - low > options.resolution {
        // What waits in the device's buffer is not lost: RFC 9004 waits two seconds for it.
        let burst = TrialInput::burst(options.frame_size, options.line_pps, frames, 2.0);
        let output = measurer.trial(burst)?;
        *is_tester_limited |= !output.is_tester_able();
        if output.loss_ratio() > 0.0 {
            high = frames;
        } else {
            low = frames;
        }
        frames = low.midpoint(high);
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::{BackToBackOptions, back_to_back};
    use crate::testing::{DeviceModel, SimulatedMeasurer};

    const OPTIONS: BackToBackOptions = BackToBackOptions {
        frame_size: 64,
        line_pps: 10_000.0,
        longest: 4_000,
        resolution: 1,
        repeats: 3,
        throughput_pps: Some(6_000.0),
    };

    #[test]
    fn the_buffer_is_found_again() {
        let mut measurer = SimulatedMeasurer::new(DeviceModel::perfect(6_000.0, 200), 1);
        let found = back_to_back(&mut measurer, &OPTIONS).unwrap();
        // Due times are whole nanoseconds: the last frame finds room or just does not.
        assert!(found.most - found.least <= 1, "{found:?}");
        // The queue grows by 0.4 frames with each frame of the burst.
        assert!((found.burst.value - 200.0 / 0.4).abs() < 5.0, "{found:?}");
        // 200 frames of buffer are 20 ms of the line's rate.
        let corrected = found.corrected_buffer_s.unwrap();
        assert!((corrected.value - 0.02).abs() < 0.001, "{found:?}");
    }

    #[test]
    fn a_device_faster_than_the_line_takes_every_burst() {
        let mut measurer = SimulatedMeasurer::new(DeviceModel::perfect(60_000.0, 200), 1);
        let options = BackToBackOptions { throughput_pps: Some(60_000.0), ..OPTIONS };
        let found = back_to_back(&mut measurer, &options).unwrap();
        assert!(found.is_at_longest && found.corrected_buffer_s.is_none());
    }
}
