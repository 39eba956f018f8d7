//! Choices that are the same for the same seed.

use testkit::Random;

/// The source of the fuzzer's choices.
pub(crate) struct Entropy(Random);

impl Entropy {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    pub(crate) fn u64(&mut self) -> u64 {
        self.0.u64()
    }

    pub(crate) fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.byte()
    }

    /// A number below `end`, 0 when there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.index(end)
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        self.0.bytes(count)
    }
}
