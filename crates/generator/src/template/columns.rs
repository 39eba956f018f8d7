//! The differences between the frames of a run: the few words of eight bytes that hold all modified
//! fields, the sums of their checksums, and a column of values for a field that needs one.
//!
//! The modified fields of a frame and the checksums over them lie close together. So they are put
//! together in words, for all frames of the run at once, in loops without a branch of which the
//! compiler makes vector code; then a word is one store into each frame. Four fields with two
//! checksums are three stores instead of six. A field that counts changes its word, and each sum
//! that it is a part of, by the same number from frame to frame: all counted fields together are
//! one addition a word and one a sum ([`Progression`]). A word begins with what the template has
//! there. It must never reach beyond the headers of the shortest frame.

use std::ops::Range;

use packet::PacketBuf;

use super::BURST_MAX;

/// A number for each frame of a run.
type Column = [u64; BURST_MAX];

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// The words of a stream's frames.
#[derive(Clone, Debug, Default)]
pub(super) struct WordPlan {
    /// Start of each word.
    places: Vec<usize>,
}

/// A word that a field has bytes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordTarget {
    word: usize,
    /// Bits by which a value that ends with the field's last byte moves to the left in it.
    shift: u32,
}

/// A number that grows, modulo 2^64, by the same step from each frame of a run to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progression {
    pub(super) first: u64,
    pub(super) step: u64,
}

/// By how much a field that counts differs from the frame before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountStep {
    Up(u64),
    Down(u64),
}

impl Progression {
    fn add(&mut self, other: Self, shift: u32) {
        self.first = self.first.wrapping_add(other.first << shift);
        self.step = self.step.wrapping_add(other.step << shift);
    }

    /// The number of one frame of the run.
    #[inline]
    fn at(&self, number: usize) -> u64 {
        self.first.wrapping_add(self.step.wrapping_mul(number as u64))
    }
}

impl WordPlan {
    /// Words that hold these ranges, each whole in one of them; no range is longer than a word. A
    /// word ends where one of them does, so none reaches beyond the last, but that the first eight
    /// bytes are a word too. Of words that overlap, the last is right: it is written last.
    pub(super) fn new(mut bytes: Vec<Range<usize>>) -> Self {
        bytes.sort_unstable_by_key(|range| (range.end, range.start));
        let mut places: Vec<usize> = Vec::new();
        // From the end: a word ends with the last range that no word has.
        for range in bytes.iter().rev() {
            debug_assert!(range.len() <= WORD, "{range:?}");
            if places.last().is_none_or(|place| range.start < *place) {
                places.push(range.end.saturating_sub(WORD));
            }
        }
        places.reverse();
        Self { places }
    }

    /// The number of words.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The words in which a field ends that ends before byte `end`.
    pub(super) fn targets(&self, end: usize) -> Vec<WordTarget> {
        let holds = |place: usize| place < end && end <= place + WORD;
        let places = self.places.iter().enumerate().filter(|(_, place)| holds(**place));
        let shift = |place: usize| 8 * (place + WORD - end) as u32;
        places.map(|(word, place)| WordTarget { word, shift: shift(*place) }).collect()
    }

    /// The words of a frame.
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
    /// Step of all counted fields together in each of these.
    word_steps: Vec<Progression>,
    sum_steps: Vec<Progression>,
    /// The number of frames in the run.
    count: usize,
}

impl Default for RunColumns {
    fn default() -> Self {
        Self {
            values: [0; BURST_MAX],
            words: Vec::new(),
            sums: Vec::new(),
            word_steps: Vec::new(),
            sum_steps: Vec::new(),
            count: 0,
        }
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
fn merge_column(words: &mut [u64], values: &[u64], shift: u32) {
    words.iter_mut().zip(values).for_each(|(word, value)| *word |= value << shift);
}

/// Gives each frame its number of a progression, or adds it to what is there.
#[inline]
fn put_column(column: &mut [u64], progression: &Progression, is_added: bool) {
    // Its own loop for each: the compiler makes vector code of both.
    if is_added {
        for (number, place) in column.iter_mut().enumerate() {
            *place = place.wrapping_add(progression.at(number));
        }
    } else {
        for (number, place) in column.iter_mut().enumerate() {
            *place = progression.at(number);
        }
    }
}

/// A number in the arithmetic of the checksum, 0 to 0xffff, and zero for zero only.
#[inline]
fn folded(value: u64) -> u64 {
    let rest = value % 0xffff;
    if rest == 0 && value != 0 { 0xffff } else { rest }
}

impl RunColumns {
    /// Begins a run of `count` frames with a number of words and sums, to all of which nothing has
    /// been added.
    pub(super) fn begin(&mut self, count: usize, words: usize, sums: usize) {
        self.count = count.min(BURST_MAX);
        for (columns, wanted) in [(&mut self.words, words), (&mut self.sums, sums)] {
            if columns.len() < wanted {
                columns.resize(wanted, [0; BURST_MAX]);
            }
        }
        for (steps, wanted) in [(&mut self.word_steps, words), (&mut self.sum_steps, sums)] {
            steps.clear();
            steps.resize(wanted, Progression::default());
        }
    }

    /// The number of frames in the run.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Adds a field that counts, whose values stand `shift` bits before the end of their last byte,
    /// to its words.
    #[inline]
    pub(super) fn count_in_words(
        &mut self,
        targets: &[WordTarget],
        values: Progression,
        shift: u32,
    ) {
        for target in targets {
            self.word_steps[target.word].add(values, target.shift + shift);
        }
    }

    /// Adds a field that counts from `first` on, whose values stand `shift` bits before the end of
    /// a 16-bit word, to a sum, in the arithmetic of the checksum; a step down is its complement.
    #[inline]
    pub(super) fn count_in_sum(&mut self, sum: usize, (first, step): (u64, CountStep), shift: u32) {
        let step = match step {
            CountStep::Up(step) => folded(step),
            CountStep::Down(step) => 0xffff - folded(step),
        };
        self.sum_steps[sum].add(Progression { first: folded(first), step }, shift);
    }

    /// Gives all words and sums of the run what has been counted, and what their template has.
    #[inline]
    pub(super) fn fill(&mut self, words: &[u64], sums: &[u64]) {
        let count = self.count;
        let columns = self.words.iter_mut().zip(&mut self.word_steps).zip(words);
        let of_sums = self.sums.iter_mut().zip(&mut self.sum_steps).zip(sums);
        for ((column, progression), base) in columns.chain(of_sums) {
            progression.first = progression.first.wrapping_add(*base);
            put_column(&mut column[..count], progression, false);
        }
    }

    /// Gives one frame of the run the words and sums of its template; [`RunColumns::add_counted`]
    /// follows.
    #[inline]
    pub(super) fn set(&mut self, number: usize, words: &[u64], sums: &[u64]) {
        self.words.iter_mut().zip(words).for_each(|(column, word)| column[number] = *word);
        self.sums.iter_mut().zip(sums).for_each(|(column, sum)| column[number] = *sum);
    }

    /// Adds what has been counted to what each frame has.
    #[inline]
    pub(super) fn add_counted(&mut self) {
        let columns = self.words.iter_mut().zip(&self.word_steps);
        for (column, progression) in columns.chain(self.sums.iter_mut().zip(&self.sum_steps)) {
            put_column(&mut column[..self.count], progression, true);
        }
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
            merge_column(words, &self.values[..self.count], target.shift + shift);
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
        // Frame by frame, with few words by loops of known length: a store a word, and what a frame
        // costs by itself once.
        match plan.places[..] {
            [a] => self.write_words([a], bufs),
            [a, b] => self.write_words([a, b], bufs),
            [a, b, c] => self.write_words([a, b, c], bufs),
            [a, b, c, d] => self.write_words([a, b, c, d], bufs),
            _ => {
                for (word, place) in plan.places.iter().enumerate() {
                    write_word(&self.words[word], *place, bufs);
                }
            }
        }
    }

    #[inline]
    fn write_words<const N: usize>(&self, places: [usize; N], bufs: &mut [PacketBuf]) {
        let Some((columns, _)) = self.words.split_first_chunk::<N>() else { return };
        for (number, buf) in bufs.iter_mut().enumerate().take(BURST_MAX) {
            let bytes = buf.bytes_mut();
            for (place, column) in places.iter().zip(columns) {
                put_word(bytes, *place, column[number]);
            }
        }
    }
}

/// Writes one word into all frames.
fn write_word(words: &Column, place: usize, bufs: &mut [PacketBuf]) {
    for (buf, word) in bufs.iter_mut().zip(words) {
        put_word(buf.bytes_mut(), place, *word);
    }
}

#[inline]
fn put_word(bytes: &mut [u8], place: usize, word: u64) {
    let rest = bytes.get_mut(place..);
    if let Some(bytes) = rest.and_then(|rest| rest.first_chunk_mut::<WORD>()) {
        *bytes = word.to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::{CountStep, Progression, RunColumns, WordPlan, WordTarget};
    use packet::PacketBuf;

    #[test]
    fn neighbours_share_a_word_and_each_range_is_whole_in_one() {
        let plan = WordPlan::new(vec![34..36, 24..26, 26..30, 30..34, 36..38, 40..42]);
        assert_eq!(plan.places, [18, 26, 34]);
        assert_eq!(plan.targets(30), [WordTarget { word: 1, shift: 32 }]);
        assert_eq!(plan.targets(42), [WordTarget { word: 2, shift: 0 }]);
        let overlapping = WordPlan::new(vec![48..54, 50..58, 58..60]);
        assert_eq!(overlapping.places, [46, 50, 52]);
        // The words after it get their part of the field: they are written later.
        let shifts: Vec<u32> = overlapping.targets(54).iter().map(|target| target.shift).collect();
        assert_eq!(shifts, [0, 32, 48]);
        assert_eq!(WordPlan::new(vec![0..6, 6..8]).places, [0]);
        assert_eq!(WordPlan::new(vec![0..6, 6..12]).places, [0, 4]);
    }

    #[test]
    fn words_keep_what_the_template_has_beside_the_fields() {
        let template: Vec<u8> = (1..=20).collect();
        let mut erased = template.clone();
        erased[3..9].fill(0);
        let plan = WordPlan::new(vec![3..7, 7..9]);
        let bases = plan.read(&erased);
        let frame = |middle: [u8; 6]| [&[1, 2, 3], &middle[..], &template[9..]].concat();
        let mut columns = RunColumns::default();
        for is_counted in [false, true] {
            let mut bufs = [PacketBuf::from_slice(&template), PacketBuf::from_slice(&template)];
            columns.begin(2, plan.len(), 1);
            if is_counted {
                let values = Progression { first: 0x0a0b_0c0d, step: 0xf5f4_f3f1 };
                columns.count_in_words(&plan.targets(7), values, 0);
                columns.count_in_sum(0, (values.first, CountStep::Up(values.step)), 0);
                columns.fill(&bases, &[1]);
            } else {
                columns.fill(&bases, &[1]);
                columns.values_mut().copy_from_slice(&[0x0a0b_0c0d, 0xffff_fffe]);
                columns.add_values(0, 0);
                columns.merge_values(&plan.targets(7), 0);
            }
            columns.merge_checksums(0, &plan.targets(9), |sum| sum % 0xffff);
            columns.write(&plan, &mut bufs);
            let [first, second] = &bufs;
            assert_eq!(first.bytes(), frame([0x0a, 0x0b, 0x0c, 0x0d, 0x16, 0x19]), "{is_counted}");
            assert_eq!(second.bytes(), frame([0xff, 0xff, 0xff, 0xfe, 0, 0]), "{is_counted}");
        }
    }

    /// Sums of counted fields are those of their values, in the arithmetic of the checksum.
    #[test]
    fn a_counted_sum_is_that_of_the_values() {
        for (first, step) in [(0, 0), (0, 1), (0xffff, 0xffff), (u64::MAX / 2, 0x1_0001)] {
            let mut columns = RunColumns::default();
            for (count, shift) in [(CountStep::Up(step), 0), (CountStep::Down(step), 8)] {
                columns.begin(3, 0, 1);
                columns.count_in_sum(0, (first, count), shift);
                columns.fill(&[], &[7]);
                for (number, sum) in columns.sums[0][..3].iter().enumerate() {
                    let (first, by) = (i128::from(first), i128::from(step) * number as i128);
                    let value =
                        if matches!(count, CountStep::Up(_)) { first + by } else { first - by };
                    let right = (7 + (value << shift)).rem_euclid(0xffff);
                    assert_eq!(i128::from(*sum) % 0xffff, right, "{first} {count:?} {number}");
                }
            }
        }
    }
}
