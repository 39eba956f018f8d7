//! Lookups of a burst of keys: group by group, each in three loops.
//!
//! One loop hashes all keys that the group can still matter to and asks for their lines, the next
//! compares tags and asks for the records, the last compares records. So up to 64 misses of the
//! processor's cache are on their way at once, and a group that has nothing for a key costs no
//! branch that is a coin flip.

use packet::FlowKey;

use super::Classifier;
use super::exact::Default;
use super::group::{GROUPS_MAX, TupleGroup};
use super::hash::masked;
use super::index::Probe;
use super::list::Item;
use super::records::{NOWHERE, RecordLine};
use crate::fast::ids::EntryId;
use crate::fast::sys::prefetch;

/// Keys that are looked up together: a set of them is a word.
pub const BURST: usize = 64;

/// So many keys are looked up one after the other.
const ALONE_MAX: u32 = 4;

/// Candidates that are compared together. More than one for a key is rare.
const CANDIDATES: usize = 2 * BURST;

/// Every key of a burst, in order.
const ALL: [u8; BURST] = {
    let mut all = [0; BURST];
    let mut at = 0;
    while at < BURST {
        all[at] = at as u8;
        at += 1;
    }
    all
};

/// Knowledge so far about the keys of a burst.
struct Work<'a> {
    keys: &'a [FlowKey],
    /// The keys that are asked for.
    asked: [u8; BURST],
    asked_len: usize,
    /// Rank of the best entry so far, and its id.
    best: [u64; BURST],
    id: [EntryId; BURST],
    /// The keys that the group at hand may have something for, and where they lie in it.
    open: [u8; BURST],
    probes: [Probe<'a>; BURST],
    /// Keys and the records they may match.
    candidates: [(u8, u32); CANDIDATES],
    lines: [&'a RecordLine; CANDIDATES],
}

impl Classifier {
    /// The entries that some packets match; `out` has an element for each key.
    pub fn lookup_burst(&self, keys: &[FlowKey], out: &mut [Option<EntryId>]) {
        for (keys, out) in keys.chunks(BURST).zip(out.chunks_mut(BURST)) {
            self.lookup_among(keys, u64::MAX, out);
        }
    }

    /// Like [`Self::lookup_burst`] for those of at most [`BURST`] keys whose bit is set in `among`;
    /// the elements of the others in `out` are left as they are.
    pub fn lookup_among(&self, keys: &[FlowKey], among: u64, out: &mut [Option<EntryId>]) {
        let len = keys.len().min(out.len()).min(BURST);
        let all = if len == 0 { 0 } else { u64::MAX >> (BURST - len) };
        let among = among & all;
        let (keys, out) = (&keys[..len], &mut out[..len]);
        if among.count_ones() <= ALONE_MAX {
            return self.lookup_alone(keys, among, out);
        }
        let always = self.always.first_key_value();
        let (rank, id) = always.map_or((u64::MAX, EntryId(0)), |(rank, id)| (*rank, *id));
        if among == all
            && let Some(group) = self.only_exact()
        {
            let default = Default { rank, answer: always.map(|(_, id)| *id) };
            if self.lookup_exact(group, keys, default, out) {
                return;
            }
        }
        let mut work = Work {
            keys,
            asked: ALL,
            asked_len: len,
            best: [rank; BURST],
            id: [id; BURST],
            open: [0; BURST],
            probes: [Probe::NONE; BURST],
            candidates: [(0, 0); CANDIDATES],
            lines: [&NOWHERE; CANDIDATES],
        };
        if among != all {
            work.asked_len = 0;
            for at in 0..len {
                work.asked[work.asked_len % BURST] = at as u8;
                work.asked_len += (among >> at & 1) as usize;
            }
        }
        if self.filter.is_active() {
            self.ask_possible(&mut work);
        } else {
            self.ask_groups(&mut work);
        }
        self.ask_list(&mut work);
        for at in &work.asked[..work.asked_len] {
            let at = usize::from(*at) % BURST;
            out[at] = (work.best[at] != u64::MAX).then_some(work.id[at]);
        }
    }

    /// Few keys, one after the other: a burst's lists would cost more than they save.
    fn lookup_alone(&self, keys: &[FlowKey], among: u64, out: &mut [Option<EntryId>]) {
        let mut rest = among;
        while rest != 0 {
            let at = rest.trailing_zeros() as usize;
            out[at] = self.lookup(&keys[at]);
            rest &= rest - 1;
        }
    }

    fn ask_groups<'a>(&'a self, work: &mut Work<'a>) {
        let (mut alive, mut alive_len) = (work.asked, work.asked_len);
        for group in self.groups.in_order() {
            let open = work.open_for(group, &mut alive, &mut alive_len);
            if alive_len == 0 {
                return;
            }
            self.ask(group, work, open);
        }
    }

    /// Asks the groups that the filter finds possible.
    fn ask_possible<'a>(&'a self, work: &mut Work<'a>) {
        let mut keys = [[0_u8; BURST]; GROUPS_MAX];
        let mut lens = [0_u8; GROUPS_MAX];
        for at in &work.asked[..work.asked_len] {
            let key = &work.keys[usize::from(*at)];
            let mut possible = self.filter.possible(key) & self.groups.numbers;
            while possible != 0 {
                let group = possible.trailing_zeros() as usize % GROUPS_MAX;
                keys[group][usize::from(lens[group]) % BURST] = *at;
                lens[group] += 1;
                possible &= possible - 1;
            }
        }
        for group in self.groups.in_order() {
            let number = usize::from(group.number) % GROUPS_MAX;
            let mut len = usize::from(lens[number]);
            if len != 0 {
                let open = work.open_for(group, &mut keys[number], &mut len);
                self.ask(group, work, open);
            }
        }
    }

    /// Asks a group for the keys that are open.
    fn ask<'a>(&'a self, group: &'a TupleGroup, work: &mut Work<'a>, open: usize) {
        match (group.bits.words.len(), group.is_exact) {
            (1, true) => self.ask_exact::<1>(group, work, open),
            (2, true) => self.ask_exact::<2>(group, work, open),
            (3, true) => self.ask_exact::<3>(group, work, open),
            (4, true) => self.ask_exact::<4>(group, work, open),
            (5, true) => self.ask_exact::<5>(group, work, open),
            (6, true) => self.ask_exact::<6>(group, work, open),
            (1, _) => self.ask_mixed::<1>(group, work, open),
            (2, _) => self.ask_mixed::<2>(group, work, open),
            (3, _) => self.ask_mixed::<3>(group, work, open),
            (4, _) => self.ask_mixed::<4>(group, work, open),
            _ => self.ask_wide(group, work, open),
        }
    }

    /// A group with one mask, of `N` words: what was hashed is what is compared.
    fn ask_exact<'a, const N: usize>(
        &'a self,
        group: &'a TupleGroup,
        work: &mut Work<'a>,
        open: usize,
    ) {
        let Some(words) = group.bits.words.first_chunk::<N>() else { return };
        let mut rows = [[0; N]; BURST];
        for index in 0..open.min(BURST) {
            let at = usize::from(work.open[index]) % BURST;
            let row = masked(&work.keys[at], words);
            rows[at] = row;
            work.probes[index] = group.index.probe(self.secrets.of_row(&row));
        }
        self.probe(group, work, open, |_, at, line, _| {
            let row = &rows[at % BURST];
            let differs = row.iter().zip(line.near()).fold(0, |bits, (a, b)| bits | (a ^ b));
            differs == 0
        });
    }

    /// A group with several masks, whose own mask has `N` words.
    fn ask_mixed<'a, const N: usize>(
        &'a self,
        group: &'a TupleGroup,
        work: &mut Work<'a>,
        open: usize,
    ) {
        let Some(words) = group.bits.words.first_chunk::<N>() else { return };
        for index in 0..open.min(BURST) {
            let at = usize::from(work.open[index]) % BURST;
            let hash = self.secrets.of_row(&masked(&work.keys[at], words));
            work.probes[index] = group.index.probe(hash);
        }
        self.probe(group, work, open, |keys, at, line, slot| {
            self.masks.matches(&keys[at], line, slot, &self.records)
        });
    }

    /// Any group.
    fn ask_wide<'a>(&'a self, group: &'a TupleGroup, work: &mut Work<'a>, open: usize) {
        for index in 0..open.min(BURST) {
            let at = usize::from(work.open[index]) % BURST;
            let hash = self.secrets.of_masked(&work.keys[at], &group.bits.words);
            work.probes[index] = group.index.probe(hash);
        }
        self.probe(group, work, open, |keys, at, line, slot| {
            self.masks.matches(&keys[at], line, slot, &self.records)
        });
    }

    #[inline(always)]
    fn probe<'a>(
        &'a self,
        group: &'a TupleGroup,
        work: &mut Work<'a>,
        open: usize,
        matches: impl Fn(&[FlowKey], usize, &RecordLine, u32) -> bool,
    ) {
        let mut found = 0;
        let is_plain = group.index.is_plain;
        for index in 0..open.min(BURST) {
            let (at, probe) = (work.open[index], work.probes[index]);
            let first = probe.first(is_plain);
            work.candidates[found % CANDIDATES] = (at, first.slot);
            found += first.found;
            if first.has_rest {
                group.index.rest(probe, first.rest, |slot| {
                    if found >= BURST {
                        self.resolve(work, found, &matches);
                        found = 0;
                    }
                    work.candidates[found % CANDIDATES] = (at, slot);
                    found += 1;
                });
            }
        }
        self.resolve(work, found, &matches);
    }

    /// Compares the candidates and keeps the best.
    #[inline(always)]
    fn resolve<'a>(
        &'a self,
        work: &mut Work<'a>,
        found: usize,
        matches: &impl Fn(&[FlowKey], usize, &RecordLine, u32) -> bool,
    ) {
        let Work { keys, best, id, candidates, lines, .. } = work;
        let candidates = &candidates[..found.min(CANDIDATES)];
        for ((_, slot), line) in candidates.iter().zip(lines.iter_mut()) {
            *line = self.records.get(*slot);
            prefetch(*line);
        }
        for ((at, slot), line) in candidates.iter().zip(lines.iter()) {
            let at = usize::from(*at) % BURST;
            let better = matches(keys, at, line, *slot) & (line.rank() < best[at]);
            best[at] = if better { line.rank() } else { best[at] };
            id[at] = if better { line.id() } else { id[at] };
        }
    }

    fn ask_list(&self, work: &mut Work<'_>) {
        work.open = work.asked;
        let mut open = work.asked_len;
        for item in self.list.items() {
            if open == 0 {
                return;
            }
            let line = self.records.get(item.slot);
            let compare = self.masks.compare(line.mask());
            let near = line.near();
            open = match compare.len() {
                1 => work.offer(item, open, |key| compare.differs_in::<1>(key, near) == 0),
                2 => work.offer(item, open, |key| compare.differs_in::<2>(key, near) == 0),
                3 => work.offer(item, open, |key| compare.differs_in::<3>(key, near) == 0),
                4 => work.offer(item, open, |key| compare.differs_in::<4>(key, near) == 0),
                _ => work.offer(item, open, |key| {
                    self.masks.matches(key, line, item.slot, &self.records)
                }),
            };
        }
    }
}

impl Work<'_> {
    /// Offers an entry of the list to the open keys, and keeps those that a later one can win.
    #[inline(always)]
    fn offer(&mut self, item: &Item, open: usize, matches: impl Fn(&FlowKey) -> bool) -> usize {
        let mut kept = 0;
        for index in 0..open.min(BURST) {
            let at = self.open[index];
            let key = usize::from(at) % BURST;
            let wins = (self.best[key] > item.rank) & matches(&self.keys[key]);
            self.best[key] = if wins { item.rank } else { self.best[key] };
            self.id[key] = if wins { item.id } else { self.id[key] };
            self.open[kept] = at;
            kept += usize::from(self.best[key] > item.rank);
        }
        kept
    }

    /// Lists the keys that the group may have something for, and says how many there are. Of the
    /// keys that are alive only those stay that this group can win: later ones can win no others.
    #[inline(always)]
    fn open_for(&mut self, group: &TupleGroup, alive: &mut [u8; BURST], len: &mut usize) -> usize {
        let needed = group.bits.present;
        let (mut open, mut kept) = (0, 0);
        for index in 0..(*len).min(BURST) {
            let at = alive[index];
            let can_win = self.best[usize::from(at) % BURST] > group.best;
            let key = &self.keys[usize::from(at)];
            alive[kept] = at;
            kept += usize::from(can_win);
            self.open[open] = at;
            open += usize::from(can_win & (needed & !key.present() == 0));
        }
        *len = kept;
        open
    }
}
