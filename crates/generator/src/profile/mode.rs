//! The number of frames of a stream and their spread in time, the bytes after their headers, and
//! the replay of a capture file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The number of frames that a stream sends, and their gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Until it is stopped.
    #[default]
    Continuous,
    /// So many frames.
    Burst(u64),
    /// Several bursts.
    Bursts {
        /// The number of bursts.
        count: u64,
        /// Frames of each.
        packets: u64,
        /// Microseconds between the end of a burst, its last frame's share of the rate included,
        /// and the first frame of the next.
        gap_us: f64,
    },
}

impl Mode {
    /// The number of frames that the stream has in all; `None` when it does not end.
    #[must_use]
    pub fn frames(self) -> Option<u64> {
        match self {
            Self::Continuous => None,
            Self::Burst(count) => Some(count),
            Self::Bursts { count, packets, .. } => Some(count.saturating_mul(packets)),
        }
    }
}

/// The spread of frames in time at a given rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// At constant intervals.
    #[default]
    Constant,
    /// At exponentially distributed intervals, drawn from this seed.
    Poisson(u64),
}

/// The bytes after the headers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// Zeros.
    #[default]
    Zero,
    /// The letters from a to z, again and again.
    Abc,
    /// This text, again and again.
    User(String),
}

impl Payload {
    /// `len` bytes of it.
    #[must_use]
    pub fn bytes(&self, len: usize) -> Vec<u8> {
        let pattern = match self {
            Self::Zero => &[0][..],
            Self::Abc => b"abcdefghijklmnopqrstuvwxyz",
            Self::User(text) if text.is_empty() => &[0],
            Self::User(text) => text.as_bytes(),
        };
        pattern.iter().copied().cycle().take(len).collect()
    }
}

/// Frames of a capture file, pcap or pcapng.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureReplay {
    /// The file.
    pub file: PathBuf,
    /// When its frames are sent.
    #[serde(default)]
    pub timing: CaptureTiming,
    /// The number of times that the file is sent; 0 is for ever.
    #[serde(default = "once")]
    pub loops: u64,
}

fn once() -> u64 {
    1
}

/// When the frames of a capture file are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CaptureTiming {
    /// In the distances of the file.
    #[default]
    Original,
    /// In the distances of the file times this number: 2.0 takes twice as long.
    Scale(f64),
    /// At the stream's rate.
    Rate,
}

#[cfg(test)]
mod tests {
    use super::{Mode, Payload};

    #[test]
    fn frames_of_each_mode() {
        assert_eq!(Mode::Continuous.frames(), None);
        assert_eq!(Mode::Burst(7).frames(), Some(7));
        assert_eq!(Mode::Bursts { count: 3, packets: 5, gap_us: 1.0 }.frames(), Some(15));
    }

    #[test]
    fn patterns_repeat() {
        assert_eq!(Payload::Zero.bytes(2), [0, 0]);
        assert_eq!(&Payload::Abc.bytes(28)[24..], b"yzab");
        assert_eq!(Payload::User("xy".into()).bytes(3), b"xyx");
        assert_eq!(Payload::User(String::new()).bytes(1), [0]);
    }
}
