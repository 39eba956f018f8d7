//! The seeded generator of all tests, examples and fuzzers: one seed gives the same numbers again.
//!
//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014),
//! which takes every seed, zero too. It must never decide what a peer is not to foresee.

/// Numbers from a seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Those of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Sixty-four bits.
    pub fn u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A hundred and twenty-eight bits.
    pub fn u128(&mut self) -> u128 {
        u128::from(self.u64()) << 64 | u128::from(self.u64())
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.u64().to_be_bytes()[0]
    }

    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// A number below `end`; zero where `end` is.
    pub fn below(&mut self, end: u64) -> u64 {
        self.u64().checked_rem(end).unwrap_or(0)
    }

    /// An index of a list of this length; zero where it is empty.
    pub fn index(&mut self, len: usize) -> usize {
        (self.u64() as usize).checked_rem(len).unwrap_or(0)
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A standard normal number (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        // Between 0 and 1, neither of them.
        let mut uniform = || ((self.u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
    }

    /// One of a list.
    ///
    /// # Panics
    /// When the list is empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    /// An index of a list of weights, each as often as its weight says; zero where all are zero.
    pub fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            if left < *weight {
                return index;
            }
            left -= weight;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    /// The first numbers of a seed, as Rosetta Code lists them ("Splitmix64").
    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        let first = [random.u64(), random.u64(), random.u64()];
        let known =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, known);
    }

    #[test]
    fn choices_stay_in_their_bounds() {
        let mut random = Random::new(0);
        assert_eq!((random.below(0), random.index(0), random.weighted(&[])), (0, 0, 0));
        let mut often = [0; 3];
        for _ in 0..3_000 {
            assert!(random.below(7) < 7);
            often[random.weighted(&[1, 0, 2])] += 1;
        }
        assert_eq!(often[1], 0);
        assert!((900..1_100).contains(&often[0]), "{often:?}");
        assert_eq!(random.bytes(5).len(), 5);
    }
}
