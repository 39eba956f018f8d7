//! A small generator of random numbers with a seed: SplitMix64 (Steele, Lea and Flood 2014, "Fast
//! splittable pseudorandom number generators", figure 17).
//!
//! For fields, sizes and gaps that a run must be able to repeat. It must never be used for secrets.

/// A sequence of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// The sequence of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `bound`, or any number for a bound of 0. The bias of the multiplication is
    /// at most `bound` / 2^64.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        match bound {
            0 => self.next(),
            _ => ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64,
        }
    }

    /// A number above 0 and at most 1.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// An exponentially distributed number of mean 1.
    #[inline]
    pub(crate) fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix64;

    #[test]
    fn the_published_sequence() {
        // The reference implementation's first outputs for the seed 1234567.
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_have_their_mean() {
        let mut random = SplitMix64::new(1);
        assert!((0..1_000).all(|_| random.below(3) < 3));
        let mean = |mut draw: Box<dyn FnMut() -> f64>| {
            (0..100_000).map(|_| draw()).sum::<f64>() / 100_000.0
        };
        let (mut a, mut b) = (SplitMix64::new(2), SplitMix64::new(3));
        assert!((mean(Box::new(move || a.unit())) - 0.5).abs() < 0.01);
        assert!((mean(Box::new(move || b.exponential())) - 1.0).abs() < 0.02);
    }
}
