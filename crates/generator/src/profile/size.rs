//! The sizes of a stream's frames, FCS included: one, several in turn, a mix, or a range.
//!
//! A size is that of the whole frame as the literature counts it, so that 64 is the shortest frame
//! of Ethernet. Every stream goes through its own sequence, and rates in bits are computed from it.

use std::fmt;
use std::str::FromStr;

use openflow::text::{parse_decimal, zero_advice};
use serde::{Deserialize, Serialize};

use super::FCS_LEN;
use crate::random::SplitMix64;

/// The shortest and the longest frame, FCS included.
pub const FRAME_SIZES: std::ops::RangeInclusive<u32> =
    64..=(packet::FRAME_CAPACITY as u32 + FCS_LEN);

/// Frames after which a mix begins anew, at most.
const CYCLE_MAX: u64 = 100_000;

/// The simple IMIX: 40, 576 and 1,500 bytes of IP as 7 : 4 : 1, in frames with FCS.
const IMIX_SIMPLE: [(u32, u32); 3] = [(64, 7), (594, 4), (1518, 1)];

/// The sizes of RFC 6985 (section 4.1), whose letters make up an IMIX genome.
const GENOME: [(char, u32); 8] = [
    ('a', 64),
    ('b', 128),
    ('c', 256),
    ('d', 512),
    ('e', 1024),
    ('f', 1280),
    ('g', 1518),
    ('h', 2112),
];

/// The sizes of a stream's frames in bytes, FCS included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a size is 64, [64, 128], { imix = \"simple\" }, \
                 { weights = [[64, 7], [594, 4], [1518, 1]] }, { min = 64, max = 1518, step = 1 } \
                 or { min = 64, max = 1518, random = SEED }"
)]
pub enum FrameSize {
    /// One size.
    Fixed(u32),
    /// Several, in turn.
    Cycle(Vec<u32>),
    /// A known mix.
    Imix {
        /// `simple` (64, 594 and 1518 as 7 : 4 : 1), or a genome of RFC 6985 such as `aafg`.
        imix: String,
    },
    /// Several with weights, spread evenly.
    Weighted {
        /// Pairs of size and weight.
        weights: Vec<(u32, u32)>,
    },
    /// All from `min` to `max` by `step`, in turn or at random.
    Range {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
        /// From one to the next.
        #[serde(default = "one")]
        step: u32,
        /// The seed, where they are drawn at random with equal chances.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        random: Option<u64>,
    },
}

fn one() -> u32 {
    1
}

/// Sizes that are none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameSizeError {
    /// A size that no frame has.
    #[error(
        "{0} bytes: a frame has {least} to {most} bytes, FCS included",
        least = FRAME_SIZES.start(),
        most = FRAME_SIZES.end()
    )]
    Size(u32),
    /// No size at all, or weights that are all zero.
    #[error("there is no size")]
    Empty,
    /// The smallest is larger than the largest.
    #[error("min {min} is above max {max}")]
    Order {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// A step of zero.
    #[error("a step of 0 goes nowhere; use 1 or more")]
    Step,
    /// The weights have no short cycle.
    #[error("the weights add up to {0}; at most {CYCLE_MAX} can be kept")]
    Cycle(u64),
    /// No mix of that name.
    #[error(
        "unknown mix {0:?}: use simple, or a genome of RFC 6985 with the letters a to h for 64, \
         128, 256, 512, 1024, 1280, 1518 and 2112 bytes"
    )]
    Imix(String),
    /// A text that is no size.
    #[error(
        "{0:?} is no size: write 64, 64,128, 64-1518, 64-1518/8 (step), 64-1518~1 (at random, \
         seed), 64x7,594x4,1518x1 (weights), imix or imix:aafg (a genome of RFC 6985){advice}",
        advice = zero_advice(.0)
    )]
    Text(String),
}

/// The sizes of a stream's frames, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeSequence {
    sizes: Vec<u32>,
    order: Order,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Order {
    /// Indices of sizes, again and again, and the place of the next.
    Cycle { indices: Vec<u32>, at: usize },
    /// Indices with equal chances.
    Random(SplitMix64),
}

impl FrameSize {
    /// The sequence from its beginning.
    ///
    /// # Errors
    /// Sizes that are none.
    pub fn sequence(&self) -> Result<SizeSequence, FrameSizeError> {
        let sequence = match self {
            Self::Fixed(size) => SizeSequence::in_turn(vec![*size]),
            Self::Cycle(sizes) => SizeSequence::in_turn(sizes.clone()),
            Self::Weighted { weights } => SizeSequence::weighted(weights)?,
            Self::Imix { imix } if imix == "simple" => SizeSequence::weighted(&IMIX_SIMPLE)?,
            Self::Imix { imix } => SizeSequence::in_turn(genome(imix)?),
            Self::Range { min, max, step, random } => {
                let step_size = usize::try_from(*step).unwrap_or(usize::MAX);
                if min > max {
                    return Err(FrameSizeError::Order { min: *min, max: *max });
                }
                if step_size == 0 {
                    return Err(FrameSizeError::Step);
                }
                // Before the list is made: it could have four thousand million sizes.
                check_size(*min)?;
                check_size(*max)?;
                let sizes: Vec<u32> = (*min..=*max).step_by(step_size).collect();
                match random {
                    None => SizeSequence::in_turn(sizes),
                    Some(seed) => {
                        SizeSequence { sizes, order: Order::Random(SplitMix64::new(*seed)) }
                    }
                }
            }
        };
        sequence.sizes.iter().try_for_each(|size| check_size(*size))?;
        if sequence.sizes.is_empty() { Err(FrameSizeError::Empty) } else { Ok(sequence) }
    }

    /// The mean of the sizes, each as often as it is sent.
    ///
    /// # Errors
    /// Sizes that are none.
    pub fn mean(&self) -> Result<f64, FrameSizeError> {
        self.sequence().map(|sequence| sequence.mean())
    }
}

fn check_size(size: u32) -> Result<(), FrameSizeError> {
    if FRAME_SIZES.contains(&size) { Ok(()) } else { Err(FrameSizeError::Size(size)) }
}

fn genome(text: &str) -> Result<Vec<u32>, FrameSizeError> {
    let size = |letter| GENOME.iter().find(|(known, _)| *known == letter).map(|(_, size)| *size);
    let sizes: Option<Vec<u32>> = text.chars().map(size).collect();
    sizes.ok_or_else(|| FrameSizeError::Imix(text.to_owned()))
}

impl SizeSequence {
    fn in_turn(list: Vec<u32>) -> Self {
        let mut sizes = list.clone();
        sizes.sort_unstable();
        sizes.dedup();
        let indices =
            list.iter().map(|size| sizes.partition_point(|known| known < size) as u32).collect();
        Self { sizes, order: Order::Cycle { indices, at: 0 } }
    }

    /// Smooth weighted round robin: at each step every size gains its weight, the one with the most
    /// is next and loses the sum. Each prefix is then as near to the weights as it can be.
    fn weighted(weights: &[(u32, u32)]) -> Result<Self, FrameSizeError> {
        let divisor = weights.iter().fold(0, |sum, (_, weight)| greatest_divisor(sum, *weight));
        if divisor == 0 {
            return Err(FrameSizeError::Empty);
        }
        let weights: Vec<(u32, i64)> =
            weights.iter().map(|(size, weight)| (*size, i64::from(weight / divisor))).collect();
        let total: i64 = weights.iter().map(|(_, weight)| weight).sum();
        if total as u64 > CYCLE_MAX {
            return Err(FrameSizeError::Cycle(total as u64));
        }
        let mut gained = vec![0_i64; weights.len()];
        let list = (0..total).filter_map(|_| {
            for (gain, (_, weight)) in gained.iter_mut().zip(&weights) {
                *gain += weight;
            }
            // The first of those with the most.
            let next = (0..gained.len()).rev().max_by_key(|index| gained[*index])?;
            gained[next] -= total;
            Some(weights[next].0)
        });
        Ok(Self::in_turn(list.collect()))
    }

    /// The sizes that occur, ascending.
    #[must_use]
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// The mean size.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let of = |index: u32| f64::from(self.sizes[index as usize]);
        match &self.order {
            Order::Cycle { indices, .. } => {
                indices.iter().map(|index| of(*index)).sum::<f64>() / indices.len() as f64
            }
            Order::Random(_) => {
                self.sizes.iter().map(|size| f64::from(*size)).sum::<f64>()
                    / self.sizes.len() as f64
            }
        }
    }

    /// The next size, as an index of [`SizeSequence::sizes`].
    #[inline]
    pub fn next_index(&mut self) -> usize {
        match &mut self.order {
            Order::Cycle { indices, at } => {
                let index = indices[*at];
                *at += 1;
                if *at == indices.len() {
                    *at = 0;
                }
                index as usize
            }
            Order::Random(random) => random.below(self.sizes.len() as u64) as usize,
        }
    }
}

fn greatest_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

impl fmt::Display for FrameSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |texts: Vec<String>| texts.join(",");
        match self {
            Self::Fixed(size) => write!(f, "{size}"),
            Self::Cycle(sizes) => f.write_str(&join(sizes.iter().map(u32::to_string).collect())),
            Self::Imix { imix } if imix == "simple" => f.write_str("imix"),
            Self::Imix { imix } => write!(f, "imix:{imix}"),
            Self::Weighted { weights } => {
                let pair = |(size, weight): &(u32, u32)| format!("{size}x{weight}");
                f.write_str(&join(weights.iter().map(pair).collect()))
            }
            Self::Range { min, max, step, random } => {
                write!(f, "{min}-{max}")?;
                if *step != 1 {
                    write!(f, "/{step}")?;
                }
                random.map_or(Ok(()), |seed| write!(f, "~{seed}"))
            }
        }
    }
}

impl FromStr for FrameSize {
    type Err = FrameSizeError;

    fn from_str(text: &str) -> Result<Self, FrameSizeError> {
        let read = |text: &str| -> Option<Self> {
            if let Some(imix) = text.strip_prefix("imix") {
                let imix = if imix.is_empty() { "simple" } else { imix.strip_prefix(':')? };
                return Some(Self::Imix { imix: imix.to_owned() });
            }
            if text.contains('x') {
                let pair = |pair: &str| -> Option<(u32, u32)> {
                    let (size, weight) = pair.split_once('x')?;
                    Some((parse_decimal(size.trim())?, parse_decimal(weight.trim())?))
                };
                let weights: Option<Vec<(u32, u32)>> = text.split(',').map(pair).collect();
                return Some(Self::Weighted { weights: weights? });
            }
            if let Some((min, rest)) = text.split_once('-') {
                let (rest, random) = match rest.split_once('~') {
                    None => (rest, None),
                    Some((rest, seed)) => (rest, Some(parse_decimal(seed)?)),
                };
                let (max, step) = rest.split_once('/').unwrap_or((rest, "1"));
                let (min, max) = (parse_decimal(min.trim())?, parse_decimal(max.trim())?);
                let step = parse_decimal(step)?;
                return Some(Self::Range { min, max, step, random });
            }
            let sizes = text.split(',').map(|size| parse_decimal(size.trim()));
            let sizes: Option<Vec<u32>> = sizes.collect();
            match sizes?.as_slice() {
                [size] => Some(Self::Fixed(*size)),
                sizes => Some(Self::Cycle(sizes.to_vec())),
            }
        };
        let size = read(text.trim()).ok_or_else(|| FrameSizeError::Text(text.to_owned()))?;
        size.sequence()?;
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::{FrameSize, FrameSizeError, SizeSequence};

    fn take(sequence: &mut SizeSequence, count: usize) -> Vec<u32> {
        let mut next = || {
            let index = sequence.next_index();
            sequence.sizes()[index]
        };
        (0..count).map(|_| next()).collect()
    }

    fn sizes(text: &str, count: usize) -> Vec<u32> {
        take(&mut text.parse::<FrameSize>().unwrap().sequence().unwrap(), count)
    }

    #[test]
    fn sizes_come_in_their_order() {
        assert_eq!(sizes("64", 3), [64, 64, 64]);
        assert_eq!(sizes("128,64", 3), [128, 64, 128]);
        assert_eq!(sizes("64-66", 4), [64, 65, 66, 64]);
        assert_eq!(sizes("64-130/32", 4), [64, 96, 128, 64]);
        assert_eq!(sizes("imix:abg", 4), [64, 128, 1518, 64]);
        assert_eq!(sizes("64x2,128x1", 6), [64, 128, 64, 64, 128, 64]);
    }

    #[test]
    fn the_simple_mix_has_its_weights_and_its_mean() {
        let mut sequence = FrameSize::Imix { imix: "simple".into() }.sequence().unwrap();
        let drawn = take(&mut sequence, 120);
        let count = |size| drawn.iter().filter(|drawn| **drawn == size).count();
        assert_eq!((count(64), count(594), count(1518)), (70, 40, 10));
        let mean = f64::from(64 * 7 + 594 * 4 + 1518) / 12.0;
        assert!((sequence.mean() - mean).abs() < 1e-9);
    }

    #[test]
    fn random_sizes_repeat_with_their_seed_and_reach_both_ends() {
        let drawn = sizes("64-80~7", 2_000);
        assert_eq!(drawn, sizes("64-80~7", 2_000));
        assert_ne!(drawn, sizes("64-80~8", 2_000));
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&64), Some(&80)));
    }

    #[test]
    fn texts_print_back() {
        for text in ["64", "64,128", "imix", "imix:aafg", "64x7,594x4", "64-1518", "64-90/2~3"] {
            assert_eq!(text.parse::<FrameSize>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn wrong_sizes_are_refused_with_the_reason() {
        let error = |text: &str| text.parse::<FrameSize>().unwrap_err();
        assert_eq!(error("63"), FrameSizeError::Size(63));
        assert_eq!(error("64-4000000000"), FrameSizeError::Size(4_000_000_000));
        assert_eq!(error("70-64"), FrameSizeError::Order { min: 70, max: 64 });
        assert_eq!(error("64-70/0"), FrameSizeError::Step);
        assert_eq!(error("64x0"), FrameSizeError::Empty);
        assert_eq!(error("imix:"), FrameSizeError::Empty);
        assert_eq!(error("64x1,65x1000000"), FrameSizeError::Cycle(1_000_001));
        assert!(matches!(error("imix:xyz"), FrameSizeError::Imix(_)));
        for text in ["", "a", "64,", "64-", "64~1", "x", "64-70~", "9999999999"] {
            assert!(matches!(error(text), FrameSizeError::Text(_)), "{text}");
        }
        assert_eq!(FrameSize::Cycle(Vec::new()).sequence(), Err(FrameSizeError::Empty));
    }
}
