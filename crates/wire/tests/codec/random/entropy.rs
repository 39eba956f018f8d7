//! Bytes that choices are made from. When they run out every choice is the smallest, so a shorter
//! list of bytes is a smaller message, and proptest shrinks messages by shrinking bytes.

/// A source of choices.
#[derive(Debug)]
pub(crate) struct Entropy<'a> {
    bytes: &'a [u8],
    tame: bool,
}

impl<'a> Entropy<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, tame: false }
    }

    /// Choices among what the specification names: nothing unknown, nothing of experimenters that
    /// a peer has no words for, ASCII alone.
    pub(crate) fn tame(bytes: &'a [u8]) -> Self {
        Self { bytes, tame: true }
    }

    /// A number below `usual + strange`, or below `usual` when only usual things are wanted.
    pub(crate) fn below_or(&mut self, usual: usize, strange: usize) -> usize {
        self.below(if self.tame { usual } else { usual + strange })
    }

    pub(crate) fn u8(&mut self) -> u8 {
        let Some((&byte, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        byte
    }

    pub(crate) fn bool(&mut self) -> bool {
        self.u8() & 1 == 1
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from(self.u8()) << 8 | u16::from(self.u8())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from(self.u32()) << 32 | u64::from(self.u32())
    }

    pub(crate) fn u128(&mut self) -> u128 {
        u128::from(self.u64()) << 64 | u128::from(self.u64())
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.u16()) % end.max(1)
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Up to five elements.
    pub(crate) fn list<T>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(6)).map(|_| make(self)).collect()
    }

    /// Up to 40 bytes, in steps of `step`.
    pub(crate) fn data(&mut self, step: usize) -> Vec<u8> {
        (0..self.below(40 / step) * step).map(|_| self.u8()).collect()
    }

    /// A text of at most `max` bytes.
    pub(crate) fn text(&mut self, max: usize) -> String {
        let mut text = String::new();
        for _ in 0..self.below(max + 1) {
            let letter = ['a', 'Z', '0', '-', 'ä', '語'][self.below_or(4, 2)];
            if text.len() + letter.len_utf8() <= max {
                text.push(letter);
            }
        }
        text
    }
}
