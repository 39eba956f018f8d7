//! The demand of a port's streams on its line: more than it carries is refused.
//!
//! The rates of streams that certainly send at the same time are added: those that start together,
//! and those that have no end. A stream that starts later, as another's next or by its own wish, or
//! that has gaps, may find the line free. It must never refuse what the line can carry.

use super::LoadedStream;
use crate::profile::{Mode, ProfileError, Rate, StreamSpec};

/// Rates that are above the line by no more than this share are the line's own, rounded.
const ROUNDING: f64 = 1e-6;

/// A stream's demand on the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineUse {
    rate: Rate,
    /// Bits a second at layer 1.
    l1_bps: f64,
    /// Whether its first frame is due at the port's start.
    is_first: bool,
    /// Whether it sends without gaps and without end.
    is_endless: bool,
}

impl LineUse {
    /// That of frames of `mean_size` bytes with FCS; `None` where it takes what the line leaves.
    pub(super) fn new(spec: &StreamSpec, mean_size: f64, line_rate_bps: f64) -> Option<Self> {
        let has_gaps = match spec.mode {
            Mode::Continuous | Mode::Burst(_) => false,
            Mode::Bursts { gap_us, .. } => gap_us > 0.0,
        };
        let is_added = spec.self_start && !has_gaps;
        Some(Self {
            rate: spec.rate,
            l1_bps: spec.rate.bits_per_second_l1(mean_size, line_rate_bps)?,
            is_first: is_added && spec.start_after_s == 0.0,
            is_endless: is_added && spec.mode.frames().is_none(),
        })
    }
}

/// Whether a line of `line_rate_bps` carries the streams at `factor` times their own rates.
///
/// # Errors
/// The stream with which it is too much, its rate, and the line's.
pub(super) fn check(
    streams: &[LoadedStream],
    factor: f64,
    line_rate_bps: f64,
) -> Result<(), ProfileError> {
    let (mut first_bps, mut endless_bps) = (0.0, 0.0);
    for stream in streams {
        let Some(used) = stream.line_use else { continue };
        let own_bps = used.l1_bps * factor;
        first_bps += if used.is_first { own_bps } else { 0.0 };
        endless_bps += if used.is_endless { own_bps } else { 0.0 };
        let most_bps = own_bps.max(first_bps).max(endless_bps);
        if most_bps <= line_rate_bps * (1.0 + ROUNDING) {
            continue;
        }
        let rate = match factor {
            1e-9..1e9 => used.rate.times(factor).to_string(),
            // Hundreds of digits say nothing.
            _ => format!("{} times {factor:?}", used.rate),
        };
        let others = if most_bps > own_bps { " with the streams before it" } else { "" };
        let reason = format!(
            "{rate}{others} takes {} Gbit/s at layer 1, and the line has {}",
            gigabits(most_bps),
            gigabits(line_rate_bps),
        );
        return Err(ProfileError::new(&stream.name, "rate", reason));
    }
    Ok(())
}

/// Bits as thousand millions, without the digits that say nothing.
fn gigabits(bits: f64) -> String {
    let number = bits / 1e9;
    if number < 1e9 { format!("{number:.6}") } else { format!("{number:.3e}") }
}

#[cfg(test)]
mod tests {
    use super::gigabits;

    #[test]
    fn no_number_has_hundreds_of_digits() {
        assert_eq!((gigabits(10e9), gigabits(f64::INFINITY)), ("10.000000".into(), "inf".into()));
        assert_eq!(gigabits(1.25e300), "1.250e291");
    }
}
