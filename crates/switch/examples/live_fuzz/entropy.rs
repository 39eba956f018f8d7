//! Choices that are the same for the same seed.

/// A xorshift generator; its quality is enough for choices.
pub(crate) struct Entropy(u64);

impl Entropy {
    pub(crate) fn new(seed: u64) -> Self {
        Self((seed ^ 0x9e37_79b9_7f4a_7c15).max(1))
    }

    pub(crate) fn u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }

    pub(crate) fn byte(&mut self) -> u8 {
        (self.u64() >> 56) as u8
    }

    /// A number below `end`, 0 when there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.u32() as usize).checked_rem(end).unwrap_or(0)
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }
}
