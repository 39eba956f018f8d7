//! Reordering as RFC 4737 measures it: which frames are reordered, by how many frames (reordering
//! extent), and to what degree (n-reordering).
//!
//! A frame is reordered when one with a higher number arrived before it. Frames in order cost two
//! stores; the rest is done when a number is skipped or arrives late. It must never count a
//! duplicate.

use super::report::ReorderingReport;

/// Gaps in the numbers that are remembered. The extent of a frame from an older gap is counted from
/// the oldest that is known, so it is then a lower bound.
const GAPS: usize = 1024;

/// The highest degree of n-reordering that is told apart.
const DEGREES: usize = 32;

/// A gap in the numbers: the frame that skipped it.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    /// Its number, modulo 2^32.
    sequence: u32,
    /// Its place among the arrivals.
    arrival: u64,
}

/// The account of one stream.
#[derive(Clone, Debug)]
pub(super) struct Reordering {
    /// New frames so far.
    arrivals: u64,
    /// The numbers of the last of them.
    recent: [u32; DEGREES],
    /// The last gaps, in a ring, in the order of their numbers.
    gaps: Box<[Gap]>,
    gap_count: usize,
    reordered: u64,
    extent_sum: u64,
    extent_max: u64,
    /// Frames of each degree from 0 on.
    degrees: [u64; DEGREES + 1],
}

impl Reordering {
    pub(super) fn new() -> Self {
        Self {
            arrivals: 0,
            recent: [0; DEGREES],
            gaps: vec![Gap::default(); GAPS].into_boxed_slice(),
            gap_count: 0,
            reordered: 0,
            extent_sum: 0,
            extent_max: 0,
            degrees: [0; DEGREES + 1],
        }
    }

    /// A frame with a higher number than all before.
    #[inline]
    pub(super) fn in_order(&mut self, sequence: u32) {
        self.recent[self.arrivals as usize % DEGREES] = sequence;
        self.arrivals += 1;
    }

    /// The same, where numbers before it were skipped.
    #[cold]
    pub(super) fn after_gap(&mut self, sequence: u32) {
        self.gaps[self.gap_count % GAPS] = Gap { sequence, arrival: self.arrivals };
        self.gap_count += 1;
        self.in_order(sequence);
    }

    /// A frame with a lower number than the highest.
    #[cold]
    pub(super) fn reordered(&mut self, sequence: u32) {
        let is_after = |number: u32| number.wrapping_sub(sequence).cast_signed() > 0;
        // The first frame that overtook this one is the one that skipped its number: the oldest
        // gap that ends after it.
        let oldest = self.gap_count.saturating_sub(GAPS);
        let (mut low, mut high) = (oldest, self.gap_count);
        while low < high {
            let middle = low.midpoint(high);
            if is_after(self.gaps[middle % GAPS].sequence) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let overtaken_at = self.gaps[low % GAPS].arrival;
        let extent = self.arrivals.saturating_sub(overtaken_at);
        self.reordered += 1;
        self.extent_sum += extent;
        self.extent_max = self.extent_max.max(extent);
        let known = self.arrivals.min(DEGREES as u64);
        let recent = (1..=known).map(|back| self.recent[(self.arrivals - back) as usize % DEGREES]);
        let degree = recent.take_while(|number| is_after(*number)).count();
        self.degrees[degree] += 1;
        self.in_order(sequence);
    }

    /// Reordered frames so far.
    pub(super) fn count(&self) -> u64 {
        self.reordered
    }

    pub(super) fn report(&self) -> ReorderingReport {
        let mut n_reordered: Vec<u64> = self.degrees[1..].to_vec();
        for index in (0..n_reordered.len().saturating_sub(1)).rev() {
            n_reordered[index] += n_reordered[index + 1];
        }
        let used = n_reordered.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        n_reordered.truncate(used);
        let mean = self.extent_sum as f64 / self.reordered.max(1) as f64;
        ReorderingReport { extent_mean: mean, extent_max: self.extent_max, n_reordered }
    }
}

#[cfg(test)]
mod tests {
    use super::Reordering;
    use crate::random::SplitMix64;
    use crate::receiver::window::{SequenceClass, SequenceWindow};

    fn account(numbers: &[u32]) -> Reordering {
        let (mut window, mut reordering) = (SequenceWindow::starting_at(0), Reordering::new());
        for &number in numbers {
            match window.take(number) {
                SequenceClass::Next => reordering.in_order(number),
                SequenceClass::Ahead => reordering.after_gap(number),
                SequenceClass::Behind => reordering.reordered(number),
                SequenceClass::Duplicate | SequenceClass::BeyondWindow | SequenceClass::Stale => {}
            }
        }
        reordering
    }

    #[test]
    fn late_and_early_packets_as_in_rfc_4737() {
        // One packet is late: 4 comes after 5, 6, 7 and 8.
        let late = account(&[0, 1, 2, 3, 5, 6, 7, 8, 4, 9, 10]);
        let report = late.report();
        assert_eq!((late.count(), report.extent_max), (1, 4));
        assert_eq!(report.n_reordered, [1, 1, 1, 1]);
        // Two packets are early: 7 and 8 come before 4, 5 and 6, of which only 4 is n-reordered.
        let early = account(&[0, 1, 2, 3, 7, 8, 4, 5, 6, 9]);
        let report = early.report();
        assert_eq!((early.count(), report.extent_max), (3, 4));
        assert!((report.extent_mean - 3.0).abs() < 1e-9);
        assert_eq!(report.n_reordered, [1, 1]);
    }

    #[test]
    fn extents_are_those_of_the_definition() {
        let mut random = SplitMix64::new(4);
        for _ in 0..200 {
            // Each number is sent after a random delay: numbers sorted by that.
            let mut timed: Vec<(u32, u32)> =
                (0..60).map(|n| (n + random.below(6) as u32, n)).collect();
            timed.retain(|_| random.below(10) > 0);
            timed.sort_unstable();
            let numbers: Vec<u32> = timed.iter().map(|(_, number)| *number).collect();
            let found = account(&numbers);
            let (mut count, mut sum, mut max) = (0, 0, 0);
            for (i, number) in numbers.iter().enumerate() {
                if let Some(j) = numbers[..i].iter().position(|other| other > number) {
                    count += 1;
                    sum += i - j;
                    max = max.max(i - j);
                }
            }
            let report = found.report();
            assert_eq!((found.count(), report.extent_max), (count, max as u64), "{numbers:?}");
            let mean = sum as f64 / count.max(1) as f64;
            assert!((report.extent_mean - mean).abs() < 1e-9, "{numbers:?}");
        }
    }

    #[test]
    fn an_old_gap_is_forgotten_but_its_frames_are_counted() {
        let mut numbers: Vec<u32> = (1..3000).map(|n| n * 2).collect();
        numbers.push(1);
        let found = account(&numbers);
        assert_eq!(found.count(), 1);
        assert!(found.report().extent_max >= 1000);
    }
}
