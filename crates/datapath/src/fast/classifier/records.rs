//! Entries as lookups need them: one cache line each for masks of up to six words.
//!
//! A record is `[id and mask, rank, value...]`; masks with more words take two or three lines that
//! lie side by side. A record must never move: indexes and lists hold its slot.

use super::chunked::Chunked;
use crate::fast::ids::EntryId;

/// Words of a value that lie in a record's first line.
pub(super) const NEAR: usize = 6;
/// Lines of one chunk: 16 KiB, so that small tables are small and the list of the chunks of a
/// million records still lies in a near cache.
const CHUNK: usize = 256;
const HEAD: usize = 2;
const LINE: usize = 8;
const LINES_MAX: usize = (HEAD + packet::WORDS).div_ceil(LINE);
const NONE: u32 = u32::MAX;
/// Set in the mask's number when further entries follow this one.
const SHADOWS: u64 = 1 << 63;

/// A line of a record. In the first one: id in the low half of word 0, number of the mask above
/// it; rank; the first words of the value, zero where there are none.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct RecordLine(pub(super) [u64; LINE]);

/// A line that wins over nothing, for lists that are not filled yet.
pub(super) static NOWHERE: RecordLine = RecordLine([0, u64::MAX, 0, 0, 0, 0, 0, 0]);

impl RecordLine {
    #[inline(always)]
    pub(super) fn id(&self) -> EntryId {
        EntryId(self.0[0] as u32)
    }

    /// Number of the entry's mask.
    #[inline(always)]
    pub(super) fn mask(&self) -> u32 {
        ((self.0[0] & !SHADOWS) >> 32) as u32
    }

    /// Falling priority and rising age; the lowest wins.
    #[inline(always)]
    pub(super) fn rank(&self) -> u64 {
        self.0[1]
    }

    #[inline(always)]
    pub(super) fn near(&self) -> &[u64; NEAR] {
        let [_, _, near @ ..] = &self.0;
        near
    }

    pub(super) fn has_shadows(&self) -> bool {
        self.0[0] & SHADOWS != 0
    }

    pub(super) fn set_shadows(&mut self, has: bool) {
        self.0[0] = self.0[0] & !SHADOWS | if has { SHADOWS } else { 0 };
    }

    /// Puts another entry of the same mask and value here.
    pub(super) fn set_entry(&mut self, id: EntryId, rank: u64) {
        self.0[0] = self.0[0] & !u64::from(u32::MAX) | u64::from(id.0);
        self.0[1] = rank;
    }
}

fn lines_of(words: usize) -> usize {
    (HEAD + words).div_ceil(LINE)
}

/// All records of a classifier.
#[derive(Debug)]
pub(super) struct Records {
    lines: Chunked<RecordLine, CHUNK>,
    /// First free record of each size in lines; linked by word 0.
    free: [u32; LINES_MAX],
}

impl Default for Records {
    fn default() -> Self {
        Self { lines: Chunked::default(), free: [NONE; LINES_MAX] }
    }
}

impl Records {
    #[inline(always)]
    pub(super) fn get(&self, slot: u32) -> &RecordLine {
        self.lines.get(slot)
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut RecordLine {
        self.lines.get_mut(slot)
    }

    /// A word of a record's value, wherever it lies.
    #[inline]
    pub(super) fn word(&self, slot: u32, at: usize) -> u64 {
        let at = HEAD + at;
        self.lines.get(slot + (at / LINE) as u32).0[at % LINE]
    }

    pub(super) fn bytes(&self) -> usize {
        self.lines.bytes()
    }

    pub(super) fn add(&mut self, id: EntryId, mask: u32, rank: u64, value: &[u64]) -> u32 {
        let lines = lines_of(value.len());
        let slot = self.room(lines);
        let head = [u64::from(mask) << 32 | u64::from(id.0), rank];
        let mut words = head.iter().chain(value).copied();
        for line in 0..lines as u32 {
            let whole = std::array::from_fn(|_| words.next().unwrap_or_default());
            *self.lines.get_mut(slot + line) = RecordLine(whole);
        }
        slot
    }

    /// Frees a record with a value of this number of words.
    pub(super) fn free(&mut self, slot: u32, words: usize) {
        self.link(slot, lines_of(words));
    }

    fn link(&mut self, slot: u32, lines: usize) {
        let first = &mut self.free[lines - 1];
        self.lines.get_mut(slot).0[0] = u64::from(*first);
        *first = slot;
    }

    fn room(&mut self, lines: usize) -> u32 {
        let free = self.free[lines - 1];
        if free != NONE {
            self.free[lines - 1] = self.lines.get(free).0[0] as u32;
            return free;
        }
        // Records do not lie across chunks; what is left of one goes to small records.
        while self.lines.len() as usize % CHUNK + lines > CHUNK {
            let odd = self.lines.push(RecordLine::default());
            self.link(odd, 1);
        }
        let slot = self.lines.push(RecordLine::default());
        for _ in 1..lines {
            self.lines.push(RecordLine::default());
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::{RecordLine, Records};
    use crate::fast::ids::EntryId;

    #[test]
    fn records_of_every_size_keep_their_words_and_are_used_again() {
        assert_eq!(size_of::<RecordLine>(), 64);
        let mut records = Records::default();
        let value = |n: u32| -> Vec<u64> {
            (0..n as usize % (packet::WORDS + 1)).map(|at| u64::from(n) << 32 | at as u64).collect()
        };
        let mut lines = 0;
        for round in 0..3 {
            let slots: Vec<u32> =
                (0..5000).map(|n| records.add(EntryId(n), n, n.into(), &value(n))).collect();
            for (slot, n) in slots.iter().zip(0..) {
                let line = *records.get(*slot);
                assert_eq!((line.id(), line.mask(), line.rank()), (EntryId(n), n, n.into()));
                for (at, word) in value(n).into_iter().enumerate() {
                    assert_eq!(records.word(*slot, at), word);
                }
                records.get_mut(*slot).set_shadows(true);
                assert!(records.get(*slot).has_shadows() && records.get(*slot).mask() == n);
            }
            for (slot, n) in slots.iter().zip(0..) {
                records.free(*slot, value(n).len());
            }
            assert!(round == 0 || records.lines.len() == lines);
            lines = records.lines.len();
        }
    }
}
