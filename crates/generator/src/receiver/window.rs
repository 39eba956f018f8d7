//! A bitmap of the last frames of a stream that have arrived, which slides with the highest
//! sequence number.
//!
//! A window of fixed size instead of a bit for each expected frame: a stream may run for ever. A
//! frame that is behind the window can no longer be told from a duplicate and is counted apart. It
//! must never call a frame new twice.

/// Frames that the window holds; 8 KiB a stream. At 15 million frames a second a frame may be 4 ms
/// behind the latest one, at 1 million 65 ms.
pub(super) const WINDOW: u64 = 1 << 16;

const WORDS: usize = (WINDOW / 64) as usize;

/// A sequence number's relation to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SequenceClass {
    /// The next one, as expected.
    Next,
    /// A later one: those between have not arrived (yet).
    Ahead,
    /// An earlier one that had not arrived.
    Behind,
    /// One that had arrived.
    Duplicate,
    /// One before the window.
    BeyondWindow,
    /// One before the start of the account.
    Stale,
}

/// The window of one stream.
#[derive(Clone, Debug)]
pub(super) struct SequenceWindow {
    /// A bit for each of the last [`WINDOW`] numbers, at its number modulo that; set for those that
    /// arrived and for those before the start.
    seen: Box<[u64; WORDS]>,
    first: u64,
    /// One more than the highest number so far.
    next: u64,
    /// The highest number that left the window without having arrived.
    last_lost: Option<u64>,
}

impl SequenceWindow {
    pub(super) fn starting_at(first: u64) -> Self {
        Self { seen: Box::new([u64::MAX; WORDS]), first, next: first, last_lost: None }
    }

    /// The count of numbers from the start to the highest.
    pub(super) fn span(&self) -> u64 {
        self.next - self.first
    }

    /// The number at which the account starts.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The number that was expected next, modulo 2^32.
    pub(super) fn next(&self) -> u32 {
        self.next as u32
    }

    /// Takes a number modulo 2^32; the full one is the nearest to the highest.
    #[inline]
    pub(super) fn take(&mut self, sequence: u32) -> SequenceClass {
        let ahead = sequence.wrapping_sub(self.next as u32).cast_signed();
        if ahead == 0 {
            self.advance();
            return SequenceClass::Next;
        }
        if ahead > 0 {
            self.skip(u64::from(ahead.unsigned_abs()));
            self.advance();
            return SequenceClass::Ahead;
        }
        let behind = u64::from(ahead.unsigned_abs());
        if behind > self.span() {
            return SequenceClass::Stale;
        }
        if behind > WINDOW {
            return SequenceClass::BeyondWindow;
        }
        let (word, bit) = place(self.next - behind);
        if self.seen[word] & bit != 0 {
            return SequenceClass::Duplicate;
        }
        self.seen[word] |= bit;
        SequenceClass::Behind
    }

    /// Takes the next number; the one whose bit it gets leaves.
    #[inline]
    fn advance(&mut self) {
        let (word, bit) = place(self.next);
        if self.seen[word] & bit == 0 {
            self.last_lost = Some(self.next - WINDOW);
        }
        self.seen[word] |= bit;
        self.next += 1;
    }

    /// Passes over `count` numbers that have not arrived.
    #[cold]
    fn skip(&mut self, count: u64) {
        for _ in 0..count.min(WINDOW) {
            let (word, bit) = place(self.next);
            if self.seen[word] & bit == 0 {
                self.last_lost = Some(self.next - WINDOW);
            }
            self.seen[word] &= !bit;
            self.next += 1;
        }
        if count > WINDOW {
            // All of the window was passed over, and the rest leaves it at once.
            self.next += count - WINDOW;
            self.last_lost = Some(self.next - WINDOW - 1);
        }
    }

    /// The highest number below that which was expected next that has not arrived.
    pub(super) fn last_lost(&self) -> Option<u64> {
        let start = self.first.max(self.next.saturating_sub(WINDOW));
        let missing = |number: &u64| {
            let (word, bit) = place(*number);
            self.seen[word] & bit == 0
        };
        (start..self.next).rev().find(missing).or(self.last_lost)
    }
}

#[inline]
fn place(number: u64) -> (usize, u64) {
    ((number / 64) as usize % WORDS, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::{SequenceClass, SequenceWindow, WINDOW};
    use crate::random::SplitMix64;
    use std::collections::HashSet;

    #[test]
    fn numbers_are_classed() {
        let mut window = SequenceWindow::starting_at(10);
        assert_eq!(window.take(10), SequenceClass::Next);
        assert_eq!(window.take(10), SequenceClass::Duplicate);
        assert_eq!(window.take(9), SequenceClass::Stale);
        assert_eq!(window.take(13), SequenceClass::Ahead);
        assert_eq!(window.last_lost(), Some(12));
        assert_eq!(window.take(12), SequenceClass::Behind);
        assert_eq!(window.take(12), SequenceClass::Duplicate);
        assert_eq!(window.last_lost(), Some(11));
        assert_eq!(window.take(14), SequenceClass::Next);
        assert_eq!(window.span(), 5);
    }

    #[test]
    fn numbers_that_leave_the_window_are_beyond_it() {
        let mut window = SequenceWindow::starting_at(0);
        assert_eq!(window.take(5), SequenceClass::Ahead);
        for number in 6..=WINDOW as u32 + 4 {
            assert_eq!(window.take(number), SequenceClass::Next);
        }
        assert_eq!(window.take(4), SequenceClass::BeyondWindow);
        assert_eq!(window.take(5), SequenceClass::Duplicate);
        assert_eq!(window.last_lost(), Some(4));
        assert_eq!(window.take(WINDOW as u32 * 5), SequenceClass::Ahead);
        assert_eq!(window.last_lost(), Some(WINDOW * 5 - 1));
        assert_eq!(window.take(WINDOW as u32 * 4 + 1), SequenceClass::Behind);
        assert_eq!(window.take(WINDOW as u32 * 4), SequenceClass::BeyondWindow);
    }

    #[test]
    fn a_jump_over_many_windows_loses_all_between() {
        let mut window = SequenceWindow::starting_at(0);
        assert_eq!(window.take(0), SequenceClass::Next);
        assert_eq!(window.take(WINDOW as u32 * 3), SequenceClass::Ahead);
        assert_eq!(window.last_lost(), Some(WINDOW * 3 - 1));
        for number in 1..WINDOW as u32 {
            let number = WINDOW as u32 * 3 + number;
            assert_eq!(window.take(number), SequenceClass::Next);
        }
        assert_eq!(window.last_lost(), Some(WINDOW * 3 - 1));
    }

    #[test]
    fn the_number_goes_round_at_32_bits() {
        let start = (1_u64 << 33) - 2;
        let mut window = SequenceWindow::starting_at(start);
        for number in 0..4_u32 {
            assert_eq!(
                window.take(u32::MAX.wrapping_sub(1).wrapping_add(number)),
                SequenceClass::Next
            );
        }
        assert_eq!((window.span(), window.next()), (4, 2));
        assert_eq!(window.take(u32::MAX), SequenceClass::Duplicate);
    }

    #[test]
    fn as_a_set_of_all_numbers_would_say() {
        let mut random = SplitMix64::new(1);
        for _ in 0..20 {
            let (mut window, mut all, mut next) =
                (SequenceWindow::starting_at(0), HashSet::new(), 0);
            for _ in 0..5_000 {
                let number = (next + random.below(60)).saturating_sub(50);
                let expected = match number {
                    n if all.contains(&n) => SequenceClass::Duplicate,
                    n if n == next => SequenceClass::Next,
                    n if n > next => SequenceClass::Ahead,
                    _ => SequenceClass::Behind,
                };
                assert_eq!(window.take(number as u32), expected);
                all.insert(number);
                next = next.max(number + 1);
            }
            let last_lost = (0..next).rev().find(|number| !all.contains(number));
            assert_eq!(window.last_lost(), last_lost);
        }
    }
}
