//! What differs between the frames of a run: a column of values for each field, and the few words
//! of eight bytes in which all of them stand.
//!
//! The modified fields of a frame and the checksums over them lie close together. So they are put
//! together in words, for all frames of the run at once, in loops without a branch of which the
//! compiler makes vector code; then a word is one store into each frame. Four fields with two
//! checksums are three stores instead of six, and a third of the instructions of writing one field
//! of one frame after the other. A word begins with what the template has there. It must never
//! reach behind the headers of the shortest frame.

use std::ops::Range;

use packet::PacketBuf;

use crate::transmit::BURST_MAX;

/// A number for each frame of a run.
type Column = [u64; BURST_MAX];

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// The words of a stream's frames.
#[derive(Clone, Debug, Default)]
pub(super) struct WordPlan {
    /// Where each begins.
    places: Vec<usize>,
}

/// A word that a field has bytes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordTarget {
    word: usize,
    /// How far a value that ends with the field's last byte moves to the left in it; to the right
    /// where it is negative.
    shift: i32,
}

impl WordPlan {
    /// Words that hold these bytes of frames that are never shorter than `least` bytes, which is
    /// more than a word has.
    pub(super) fn new(mut bytes: Vec<Range<usize>>, least: usize) -> Self {
        bytes.sort_unstable_by_key(|range| range.start);
        let mut places: Vec<usize> = Vec::new();
        for range in bytes {
            let mut at = range.start.max(places.last().map_or(0, |place| place + WORD));
            while at < range.end {
                let place = at.min(least - WORD);
                places.push(place);
                at = place + WORD;
            }
        }
        Self { places }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The words that hold a part of the `len` bytes from `at` on.
    pub(super) fn targets(&self, at: usize, len: usize) -> Vec<WordTarget> {
        let end = at + len;
        let holds = |place: usize| place < end && at < place + WORD;
        let places = self.places.iter().enumerate().filter(|(_, place)| holds(**place));
        // A field has eight bytes at most, so it moves by less than a word.
        let shift = |place: usize| 8 * (place as i32 + WORD as i32 - end as i32);
        places.map(|(word, place)| WordTarget { word, shift: shift(*place) }).collect()
    }

    /// What stands in these places of a frame.
    pub(super) fn read(&self, frame: &[u8]) -> Vec<u64> {
        let word =
            |place: &usize| frame[*place..].first_chunk().map_or(0, |b| u64::from_be_bytes(*b));
        self.places.iter().map(word).collect()
    }
}

/// The columns of one run, which all streams of a port use in turn.
#[derive(Debug)]
pub(crate) struct RunColumns {
    values: Column,
    /// For each word of the plan.
    words: Vec<Column>,
    /// For each checksum.
    sums: Vec<Column>,
    /// How many frames the run has.
    count: usize,
}

impl Default for RunColumns {
    fn default() -> Self {
        Self { values: [0; BURST_MAX], words: Vec::new(), sums: Vec::new(), count: 0 }
    }
}

/// Adds, in the arithmetic of the checksum, a value for each frame. 2^16 is 1 in it, so words of 32
/// bits may be added as they are.
#[inline]
fn add_column(sums: &mut [u64], values: &[u64], shift: u32) {
    for (sum, value) in sums.iter_mut().zip(values) {
        let value = value << shift;
        *sum += (value & 0xffff_ffff) + (value >> 32);
    }
}

/// Puts values into the words of a column.
#[inline]
fn merge_column(words: &mut [u64], values: &[u64], shift: i32) {
    let by = shift.unsigned_abs() % u64::BITS;
    if shift < 0 {
        words.iter_mut().zip(values).for_each(|(word, value)| *word |= value >> by);
    } else {
        words.iter_mut().zip(values).for_each(|(word, value)| *word |= value << by);
    }
}

impl RunColumns {
    /// Begins a run of `count` frames with so many words and sums.
    pub(super) fn begin(&mut self, count: usize, words: usize, sums: usize) {
        self.count = count.min(BURST_MAX);
        for (columns, wanted) in [(&mut self.words, words), (&mut self.sums, sums)] {
            if columns.len() < wanted {
                columns.resize(wanted, [0; BURST_MAX]);
            }
        }
    }

    /// The column of a word.
    #[inline]
    pub(super) fn word_mut(&mut self, word: usize) -> &mut [u64] {
        &mut self.words[word][..self.count]
    }

    /// The column of a sum.
    #[inline]
    pub(super) fn sum_mut(&mut self, sum: usize) -> &mut [u64] {
        &mut self.sums[sum][..self.count]
    }

    /// The values of the field that is being written.
    #[inline]
    pub(super) fn values_mut(&mut self) -> &mut [u64] {
        &mut self.values[..self.count]
    }

    /// Adds the values, which stand `shift` bits before the end of a 16-bit word, to a sum.
    #[inline]
    pub(super) fn add_values(&mut self, sum: usize, shift: u32) {
        add_column(&mut self.sums[sum][..self.count], &self.values[..self.count], shift);
    }

    /// Puts the values, which stand `shift` bits before the end of their last byte, into the words.
    #[inline]
    pub(super) fn merge_values(&mut self, targets: &[WordTarget], shift: u32) {
        for target in targets {
            let words = &mut self.words[target.word][..self.count];
            merge_column(words, &self.values[..self.count], target.shift + shift as i32);
        }
    }

    /// Makes checksums of a sum and puts them into the words.
    #[inline]
    pub(super) fn merge_checksums(
        &mut self,
        sum: usize,
        targets: &[WordTarget],
        checksum: impl Fn(u64) -> u64,
    ) {
        let sums = &mut self.sums[sum][..self.count];
        sums.iter_mut().for_each(|sum| *sum = checksum(*sum));
        for target in targets {
            merge_column(&mut self.words[target.word][..self.count], sums, target.shift);
        }
    }

    /// Writes the words into the frames.
    #[inline]
    pub(super) fn write(&self, plan: &WordPlan, bufs: &mut [PacketBuf]) {
        for (place, words) in plan.places.iter().zip(&self.words) {
            for (buf, word) in bufs.iter_mut().zip(&words[..self.count]) {
                let rest = buf.bytes_mut().get_mut(*place..);
                if let Some(bytes) = rest.and_then(|rest| rest.first_chunk_mut::<WORD>()) {
                    *bytes = word.to_be_bytes();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RunColumns, WordPlan, WordTarget};
    use packet::PacketBuf;

    #[test]
    fn neighbours_share_a_word_and_none_reaches_behind_the_shortest_frame() {
        let plan = WordPlan::new(vec![34..36, 24..26, 26..30, 30..34, 36..38, 40..42], 60);
        assert_eq!(plan.places, [24, 32, 40]);
        assert_eq!(plan.targets(26, 4), [WordTarget { word: 0, shift: 16 }]);
        // Two bytes in each.
        let both = [WordTarget { word: 0, shift: -16 }, WordTarget { word: 1, shift: 48 }];
        assert_eq!(plan.targets(30, 4), both);
        let last = WordPlan::new(vec![50..58, 58..60], 60);
        assert_eq!(last.places, [50, 52]);
        // Words that overlap both get the field.
        assert_eq!(last.targets(50, 8).len(), 2);
    }

    #[test]
    fn words_keep_what_the_template_has_beside_the_fields() {
        let template: Vec<u8> = (1..=20).collect();
        let mut erased = template.clone();
        erased[3..7].fill(0);
        erased[7..9].fill(0);
        let plan = WordPlan::new(vec![3..7, 7..9], template.len());
        let bases = plan.read(&erased);
        let mut bufs = [PacketBuf::from_slice(&template), PacketBuf::from_slice(&template)];
        let mut columns = RunColumns::default();
        columns.begin(2, plan.len(), 1);
        for (word, base) in bases.iter().enumerate() {
            columns.word_mut(word).fill(*base);
        }
        columns.sum_mut(0).fill(1);
        columns.values_mut().copy_from_slice(&[0x0a0b_0c0d, 0xffff_fffe]);
        columns.add_values(0, 0);
        columns.merge_values(&plan.targets(3, 4), 0);
        columns.merge_checksums(0, &plan.targets(7, 2), |sum| sum & 0xffff);
        columns.write(&plan, &mut bufs);
        let frame = |middle: [u8; 6]| [&[1, 2, 3], &middle[..], &template[9..]].concat();
        assert_eq!(bufs[0].bytes(), frame([0x0a, 0x0b, 0x0c, 0x0d, 0x0c, 0x0e]));
        assert_eq!(bufs[1].bytes(), frame([0xff, 0xff, 0xff, 0xfe, 0xff, 0xff]));
    }
}
