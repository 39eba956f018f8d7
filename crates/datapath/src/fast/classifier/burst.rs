//! Lookups of a burst of keys: group by group, each in three loops.
//!
//! One loop hashes all keys that the group can still matter to and asks for their lines, the next
//! compares tags and asks for the records, the last compares records. So up to 64 misses of the
//! processor's cache are on their way at once, and a group that has nothing for a key costs no
//! branch that is a coin flip.

use packet::FlowKey;

use super::Classifier;
use super::group::Group;
use crate::fast::op::EntryId;
use crate::fast::pattern::MaskWord;

/// Keys that are looked up together: a set of them is a word.
pub const BURST: usize = 64;

/// Candidates that are compared together. More than one for a key is rare.
const CANDIDATES: usize = 2 * BURST;

/// What is known so far about the keys of a burst.
struct Work<'a> {
    keys: &'a [FlowKey],
    /// The keys that are asked for.
    asked: [u8; BURST],
    asked_len: usize,
    /// Rank of the best entry so far.
    best: [u64; BURST],
    id: [EntryId; BURST],
    /// The keys that the group at hand may have something for.
    open: [u8; BURST],
    candidates: [(u8, u32); CANDIDATES],
}

impl Classifier {
    /// The entries that some packets meet; `out` has a place for each key.
    pub fn lookup_burst(&self, keys: &[FlowKey], out: &mut [Option<EntryId>]) {
        for (keys, out) in keys.chunks(BURST).zip(out.chunks_mut(BURST)) {
            self.lookup_among(keys, u64::MAX, out);
        }
    }

    /// Like [`Self::lookup_burst`] for those of at most [`BURST`] keys whose bit is set in `among`;
    /// the places of the others in `out` are left as they are.
    pub fn lookup_among(&self, keys: &[FlowKey], among: u64, out: &mut [Option<EntryId>]) {
        let keys = &keys[..keys.len().min(BURST)];
        let (rank, id) = match self.always.first_key_value() {
            Some((rank, id)) => (*rank, *id),
            None => (u64::MAX, EntryId(0)),
        };
        let mut work = Work {
            keys,
            asked: [0; BURST],
            asked_len: 0,
            best: [rank; BURST],
            id: [id; BURST],
            open: [0; BURST],
            candidates: [(0, 0); CANDIDATES],
        };
        for at in 0..keys.len().min(out.len()) {
            work.asked[work.asked_len] = at as u8;
            work.asked_len += (among >> at & 1) as usize;
        }
        self.ask_groups(&mut work);
        self.ask_list(&mut work);
        for at in &work.asked[..work.asked_len] {
            let at = usize::from(*at);
            out[at] = (work.best[at] != u64::MAX).then_some(work.id[at]);
        }
    }

    fn ask_groups(&self, work: &mut Work<'_>) {
        for group in self.groups.in_order() {
            let (open, is_worth) = work.open_for(group);
            if !is_worth {
                return;
            }
            match group.bits.words.len() {
                1 => self.ask_group::<1>(group, work, open),
                2 => self.ask_group::<2>(group, work, open),
                3 => self.ask_group::<3>(group, work, open),
                4 => self.ask_group::<4>(group, work, open),
                5 => self.ask_group::<5>(group, work, open),
                6 => self.ask_group::<6>(group, work, open),
                _ => self.ask_wide(group, work, open),
            }
        }
    }

    /// A group whose mask has `N` words.
    fn ask_group<const N: usize>(&self, group: &Group, work: &mut Work<'_>, open: usize) {
        let Some(words) = group.bits.words.first_chunk::<N>() else { return };
        let mut hashes = [0; BURST];
        for (at, hash) in work.open[..open].iter().zip(&mut hashes) {
            *hash = self.secrets.of_key(&work.keys[usize::from(*at)], words);
            group.index.prefetch(*hash);
        }
        if group.is_exact {
            self.probe(group, work, &hashes[..open], |key, slot| {
                meets_words(words, key, self.records.get(slot).near())
            });
        } else {
            self.probe(group, work, &hashes[..open], |key, slot| {
                self.masks.meets(key, self.records.get(slot), slot, &self.records)
            });
        }
    }

    /// A group whose mask has more words than a record's first line.
    fn ask_wide(&self, group: &Group, work: &mut Work<'_>, open: usize) {
        let mut hashes = [0; BURST];
        for (at, hash) in work.open[..open].iter().zip(&mut hashes) {
            *hash = self.secrets.of_masked(&work.keys[usize::from(*at)], &group.bits.words);
            group.index.prefetch(*hash);
        }
        self.probe(group, work, &hashes[..open], |key, slot| {
            self.masks.meets(key, self.records.get(slot), slot, &self.records)
        });
    }

    #[inline(always)]
    fn probe(
        &self,
        group: &Group,
        work: &mut Work<'_>,
        hashes: &[u64],
        meets: impl Fn(&FlowKey, u32) -> bool,
    ) {
        let mut found = 0;
        for (place, hash) in hashes.iter().enumerate() {
            let at = work.open[place];
            if found + 1 >= CANDIDATES {
                self.settle(work, found, &meets);
                found = 0;
            }
            let mut first = 0;
            let mut further = |slot| {
                if found + 1 >= CANDIDATES {
                    self.settle(work, found, &meets);
                    found = 0;
                }
                work.candidates[found] = (at, slot);
                found += 1;
            };
            let one = group.index.find_first(*hash, &mut first, &mut further);
            work.candidates[found] = (at, first);
            found += one;
        }
        for (_, slot) in &work.candidates[..found] {
            self.records.prefetch(*slot);
        }
        self.settle(work, found, &meets);
    }

    /// Compares the candidates and keeps the best.
    #[inline(always)]
    fn settle(&self, work: &mut Work<'_>, found: usize, meets: &impl Fn(&FlowKey, u32) -> bool) {
        for place in 0..found {
            let (at, slot) = work.candidates[place];
            let at = usize::from(at);
            let line = self.records.get(slot);
            let better = line.rank() < work.best[at] && meets(&work.keys[at], slot);
            work.best[at] = if better { line.rank() } else { work.best[at] };
            work.id[at] = if better { line.id() } else { work.id[at] };
        }
    }

    fn ask_list(&self, work: &mut Work<'_>) {
        for item in self.list.items() {
            let mut open = 0;
            for place in 0..work.asked_len {
                let at = work.asked[place];
                work.open[open] = at;
                open += usize::from(work.best[usize::from(at)] > item.rank);
            }
            if open == 0 {
                return;
            }
            let line = self.records.get(item.slot);
            for at in &work.open[..open] {
                let at = usize::from(*at);
                let meets = self.masks.meets(&work.keys[at], line, item.slot, &self.records);
                work.best[at] = if meets { item.rank } else { work.best[at] };
                work.id[at] = if meets { item.id } else { work.id[at] };
            }
        }
    }
}

/// Whether a key meets a value of few words; its fields are known to be present.
#[inline(always)]
fn meets_words<const N: usize>(words: &[MaskWord; N], key: &FlowKey, value: &[u64]) -> bool {
    let mut differs = 0;
    for at in 0..N {
        differs |= (key.words()[usize::from(words[at].index)] & words[at].bits) ^ value[at];
    }
    differs == 0
}

impl Work<'_> {
    /// Lists the keys that the group may have something for, and says how many there are, and
    /// whether this group or a later one can still matter to any key.
    #[inline(always)]
    fn open_for(&mut self, group: &Group) -> (usize, bool) {
        let (mut open, mut is_worth) = (0, false);
        for at in &self.asked[..self.asked_len] {
            let can_win = self.best[usize::from(*at)] > group.best;
            let key = &self.keys[usize::from(*at)];
            self.open[open] = *at;
            open += usize::from(can_win & (group.bits.present & !key.present() == 0));
            is_worth |= can_win;
        }
        (open, is_worth)
    }
}
