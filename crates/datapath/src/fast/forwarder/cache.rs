//! The decision cache: from the digest of a packet's un-wildcarded bits to a decision.
//!
//! One decision is one cache line, so a hit reads and writes one line and nothing else: the digest
//! stands for the key (see [`super::digest`] for the chance of a mistake), and counts are kept in
//! the line until they are flushed. A decision lies in one of two slots that its digest names, or
//! beside one of them: with a choice of two, half a table fills without anything to give up, where
//! four lines in one slot turned 1.7 % of 100,000 flows away. The table begins small and grows
//! while packets pass, line by line: no packet waits for a growth. Lines in use are not given up
//! for new ones, so a flood of new flows costs them their misses but not the working set its hits.
//! The table grows only for flows of more than one packet: that flood would fill any table, and one
//! of hundreds of megabytes pushes everything else out of the processor's caches. In a full table a
//! flow that is silent for two ticks beside a flood loses its line, and is decided about anew.
//! It must never decide anything itself.

use super::path::PathId;
use super::program::Decided;
use super::program::{Guard, ProgramId};
use crate::fast::sys::{HUGE, advise_huge, prefetch};

/// 64-bit words of a line.
const WORDS: usize = 8;
/// Bytes of a line.
const LINE: usize = 8 * WORDS;
/// Lines that move to a grown table with each batch.
const MOVES: usize = 64;
/// Lines, or misses, that are looked at before the table grows.
const SAMPLE: u32 = 64;
/// Number of them that must be of flows that came before.
const AGAIN_LEAST: u32 = SAMPLE / 2;
/// The misses of one flow in this number are looked at, and places for those: enough for the flows
/// of the largest table.
const MISS_SAMPLE_RATE: u64 = 1_024;
const MISS_SAMPLES: usize = 8_192;
/// Ticks, ten seconds, after which a line that was not used is given to any other decision.
const LONG_UNUSED: u16 = 150;
/// Marks in the word of bytes: the counts of the line were taken once, and packets came after its
/// first.
const TAKEN: u64 = 1 << 62;
const AGAIN: u64 = 1 << 63;
/// Number of lines ahead of the one that is read that a flush prefetches.
const FLUSH_AHEAD: usize = 12;

/// One decision: the digest in two words; program and path; the stamp; packets; bytes and marks;
/// versions, guard and last use; until when it holds.
#[derive(Debug)]
pub(super) struct DecisionLine<'a>(&'a mut [u64; WORDS]);

impl DecisionLine<'_> {
    #[inline]
    fn digest(&self) -> u128 {
        u128::from(self.0[0]) | u128::from(self.0[1]) << 64
    }

    /// The program for packets.
    #[inline]
    pub(super) fn program(&self) -> ProgramId {
        ProgramId(self.0[2] as u32)
    }

    /// The path that the counts belong to.
    #[inline]
    pub(super) fn path(&self) -> PathId {
        PathId((self.0[2] >> 32) as u32)
    }

    /// The decision.
    #[inline]
    pub(super) fn decided(&self) -> Decided {
        Decided { program: self.program(), path: self.path() }
    }

    pub(super) fn decide(&mut self, decided: Decided, guard: Guard) {
        let Decided { program, path } = decided;
        self.0[2] = u64::from(program.0) | u64::from(path.0) << 32;
        let guard = u64::from(guard.at) << 40 | u64::from(guard.above) << 32;
        self.0[6] = self.0[6] & !(0xffff << 32) | guard;
    }

    /// The program's condition on frames.
    #[inline]
    pub(super) fn guard(&self) -> Guard {
        Guard { at: (self.0[6] >> 40) as u8, above: (self.0[6] >> 32) as u8 }
    }

    /// Whether this is what was decided for a digest, and holds without asking anything else.
    #[inline]
    pub(super) fn holds_for(&self, digest: u128, epoch: u64, now: u64) -> bool {
        let differs = self.0[0] ^ digest as u64 | self.0[1] ^ (digest >> 64) as u64;
        differs | self.0[3] ^ epoch == 0 && self.until() > now && !self.path().is_timed()
    }

    /// The state of the tables for which this was decided or seen to hold; zero for an empty line.
    #[inline]
    pub(super) fn stamp(&self) -> u64 {
        self.0[3]
    }

    #[inline]
    pub(super) fn set_stamp(&mut self, stamp: u64) {
        self.0[3] = stamp;
    }

    /// Adds packets; whether there were none before.
    #[inline]
    pub(super) fn count(&mut self, packets: u64, bytes: u64) -> bool {
        let before = self.0[4];
        self.0[4] = before + packets;
        self.0[5] += bytes;
        before == 0
    }

    /// Takes the counts.
    pub(super) fn take_counts(&mut self) -> (u64, u64) {
        let counts = (self.0[4], self.0[5] & !(TAKEN | AGAIN));
        self.0[5] = if is_used_again(self.0) { TAKEN | AGAIN } else { TAKEN };
        self.0[4] = 0;
        counts
    }

    /// Sum of the versions of what the packet shows.
    #[inline]
    pub(super) fn versions(&self) -> u32 {
        self.0[6] as u32
    }

    pub(super) fn set_versions(&mut self, versions: u32) {
        self.0[6] = self.0[6] >> 32 << 32 | u64::from(versions);
    }

    #[inline]
    fn used(&self) -> u16 {
        (self.0[6] >> 48) as u16
    }

    /// Whether that is the tick of the line's last use.
    #[inline]
    pub(super) fn is_used_at(&self, tick: u16) -> bool {
        self.used() == tick
    }

    /// Sets the time of the line's last use, in ticks of [`tick`].
    #[inline]
    pub(super) fn use_at(&mut self, tick: u16) {
        if !self.is_used_at(tick) {
            self.0[6] = self.0[6] & (u64::MAX >> 16) | u64::from(tick) << 48;
        }
    }

    /// When an entry's time is over, at the earliest; all ones for never.
    #[inline]
    pub(super) fn until(&self) -> u64 {
        self.0[7]
    }

    #[inline]
    pub(super) fn set_until(&mut self, until: u64) {
        self.0[7] = until;
    }
}

/// Ticks since a line was used.
#[inline]
fn age(line: &[u64; WORDS], tick: u16) -> u16 {
    tick.wrapping_sub((line[6] >> 48) as u16)
}

/// Whether packets have come for a line after its first.
fn is_used_again(line: &[u64; WORDS]) -> bool {
    let first = if line[5] & TAKEN == 0 { 1 } else { 0 };
    line[4] > first || line[5] & AGAIN != 0
}

/// Coarse time of lines: units of 67 ms, which begin anew after 73 minutes; a line that was not
/// used for so long may be given up a little later.
#[inline]
pub(super) fn tick(now: crate::time::Nanos) -> u16 {
    (now.0 >> 26) as u16
}

/// An array of lines that begin at cache lines.
#[derive(Debug)]
struct Table {
    words: Vec<u64>,
    skew: usize,
    /// Number of lines less one; a power of two less one.
    mask: usize,
    used: usize,
    /// Lines with counts, without those that wait for the flush under way.
    dirty: Vec<u32>,
    /// Lines that the flush under way takes the counts of.
    flushing: Vec<u32>,
}

impl Table {
    fn new(lines: usize) -> Self {
        // Zeroed memory comes from the system untouched, so a large table costs nothing until it
        // is used. One that fills large pages begins at one: lines lie scattered, and with pages
        // of 4 KB asking for a line took three times as long.
        let align = if lines * LINE < HUGE { LINE } else { HUGE };
        let spare = align / size_of::<u64>();
        let mut words = vec![0_u64; lines * WORDS + spare];
        let skew = words.as_ptr().align_offset(align).min(spare);
        advise_huge(&mut words[skew..]);
        let (dirty, flushing) = (Vec::new(), Vec::new());
        Self { words, skew, mask: lines - 1, used: 0, dirty, flushing }
    }

    /// Begins a flush of all counts that there are.
    fn begin_flush(&mut self) {
        debug_assert!(self.flushing.is_empty(), "the last flush is done");
        std::mem::swap(&mut self.dirty, &mut self.flushing);
    }

    /// Marks a line whose counts were in another one; during a flush it may have waited there.
    fn mark_moved(&mut self, index: usize, is_flushing: bool) {
        let marked = if is_flushing { &mut self.flushing } else { &mut self.dirty };
        marked.push(index as u32);
    }

    #[inline]
    fn lines(&self) -> &[[u64; WORDS]] {
        self.words[self.skew..].as_chunks().0
    }

    #[inline]
    fn line(&mut self, index: usize) -> DecisionLine<'_> {
        DecisionLine(&mut self.words[self.skew..].as_chunks_mut().0[index])
    }

    #[inline]
    fn primary_slot(&self, digest: u128) -> usize {
        digest as usize & self.mask
    }

    /// The lines that a decision may lie in, the first one first.
    #[inline]
    fn slots(&self, digest: u128) -> [usize; 4] {
        let (first, second) = (self.primary_slot(digest), (digest >> 32) as usize & self.mask);
        [first, first ^ 1, second, second ^ 1]
    }

    #[inline]
    fn is_at(&self, index: usize, digest: u128) -> bool {
        let line = &self.lines()[index];
        line[0] == digest as u64 && line[1] == (digest >> 64) as u64 && line[3] != 0
    }

    fn find(&self, digest: u128) -> Option<usize> {
        self.slots(digest).into_iter().find(|index| self.is_at(*index, digest))
    }

    /// Whether seven of eight lines are used, so that it does not pay to look for an empty one. The
    /// search reads twelve lines that lie anywhere, and took more than half of the time of a flood
    /// of new flows; where few lines are empty, one that was not used for a while is as good.
    fn is_crowded(&self) -> bool {
        self.used > self.mask / 8 * 7
    }

    /// An empty line for a digest, if need be by moving another decision to its other slot.
    fn make_room(&mut self, digest: u128, is_flushing: bool) -> Option<usize> {
        let slots = self.slots(digest);
        if let Some(empty) = slots.into_iter().find(|index| self.lines()[*index][3] == 0) {
            return Some(empty);
        }
        for index in slots {
            let digest = self.line(index).digest();
            let theirs = self.slots(digest);
            let Some(empty) = theirs.into_iter().find(|other| self.lines()[*other][3] == 0) else {
                continue;
            };
            let words = std::mem::replace(self.line(index).0, [0; WORDS]);
            if words[4] != 0 {
                self.mark_moved(empty, is_flushing);
            }
            *self.line(empty).0 = words;
            return Some(index);
        }
        None
    }

    /// A slot for a digest: an empty line, or one that was not used for a while. `draw` is a
    /// number that cannot be foreseen.
    fn choose_slot(&self, digest: u128, tick: u16, draw: u32) -> Option<usize> {
        let lines = self.lines();
        let mut oldest: Option<(u16, usize)> = None;
        for index in self.slots(digest) {
            let line = &lines[index];
            if line[3] == 0 {
                return Some(index);
            }
            let age = age(line, tick);
            if oldest.is_none_or(|(highest, _)| age > highest) {
                oldest = Some((age, index));
            }
        }
        // A line that was used just now is given up once in a while, so that nothing stays for
        // ever only because it was first.
        oldest.filter(|(age, _)| *age > 1 || draw.is_multiple_of(64)).map(|(_, index)| index)
    }
}

/// Counts that were removed from the cache, to be flushed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evicted {
    pub(super) path: PathId,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// The lines of the cache while a burst is looked up: see [`Cache::primary`].
#[derive(Debug)]
pub(super) struct PrimarySlots<'a> {
    lines: &'a mut [[u64; WORDS]],
    mask: usize,
    dirty: &'a mut Vec<u32>,
}

impl PrimarySlots<'_> {
    /// The line where a digest should lie, and its slot.
    #[inline]
    pub(super) fn line(&mut self, digest: u128) -> (usize, DecisionLine<'_>) {
        let slot = digest as usize & self.mask;
        (slot, DecisionLine(&mut self.lines[slot]))
    }

    /// Marks a line that has counts now and had none.
    #[inline]
    pub(super) fn mark_dirty(&mut self, index: usize) {
        self.dirty.push(index as u32);
    }
}

/// A look at some flows of many.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    size: u32,
    again: u32,
    /// Whether enough of the last full sample came again.
    is_enough: bool,
}

impl Sample {
    fn add(&mut self, is_again: bool) {
        self.size += 1;
        self.again += u32::from(is_again);
        if self.size == SAMPLE {
            *self = Self { size: 0, again: 0, is_enough: self.again >= AGAIN_LEAST };
        }
    }
}

/// The cache.
#[derive(Debug)]
pub(super) struct Cache {
    table: Table,
    /// The table before the last growth, until all of its lines have moved.
    old: Option<Table>,
    moved: usize,
    lines_max: usize,
    /// A flush is under way.
    is_flushing: bool,
    draw: u32,
    /// Whether lines of the table were used again.
    lines: Sample,
    /// Whether flows without a line came again: lines say nothing of flows that are too many.
    misses: Sample,
    /// Some of the flows that had no line, as parts of their digests.
    missed: Vec<u32>,
    pub(super) evictions: u64,
}

impl Cache {
    /// A cache that begins with `lines` lines and grows up to `lines_max`; both powers of two.
    pub(super) fn new(lines: usize, lines_max: usize) -> Self {
        let table = Table::new(lines);
        Self {
            table,
            old: None,
            moved: 0,
            lines_max,
            is_flushing: false,
            draw: 1,
            lines: Sample::default(),
            misses: Sample::default(),
            missed: vec![0; MISS_SAMPLES],
            evictions: 0,
        }
    }

    /// Asks for the line where a digest with this low word should lie.
    #[inline]
    pub(super) fn prefetch(&self, low: u64) {
        prefetch(&self.table.lines()[self.table.primary_slot(low.into())]);
    }

    /// All lines, for decisions that lie in their primary slot.
    #[inline]
    pub(super) fn primary(&mut self) -> PrimarySlots<'_> {
        let Table { words, skew, dirty, mask, .. } = &mut self.table;
        PrimarySlots { lines: words[*skew..].as_chunks_mut().0, mask: *mask, dirty }
    }

    /// Asks for the other lines where a digest may lie.
    #[inline]
    pub(super) fn prefetch_alternates(&self, digest: u128) {
        let [_, beside, second, third] = self.table.slots(digest);
        let lines = self.table.lines();
        prefetch(&lines[beside]);
        prefetch(&lines[second]);
        prefetch(&lines[third]);
    }

    /// The slot of a digest.
    pub(super) fn find(&mut self, digest: u128) -> Option<usize> {
        self.table
            .find(digest)
            .or_else(|| if self.old.is_some() { self.fetch(digest) } else { None })
    }

    /// Moves a line over from the table before the growth.
    #[cold]
    fn fetch(&mut self, digest: u128) -> Option<usize> {
        let old = self.old.as_mut()?;
        let index = old.find(digest)?;
        self.move_over(index)
    }

    fn move_over(&mut self, index: usize) -> Option<usize> {
        let old = self.old.as_mut()?;
        let line = old.line(index);
        if line.stamp() == 0 {
            return None;
        }
        // A grown table has room: four times the lines, and only these to move.
        let to = self.table.choose_slot(line.digest(), line.used().wrapping_add(8), 0)?;
        if self.table.line(to).stamp() != 0 {
            return None;
        }
        let words = std::mem::replace(line.0, [0; WORDS]);
        if words[4] != 0 {
            self.table.mark_moved(to, self.is_flushing);
        }
        *self.table.line(to).0 = words;
        self.table.used += 1;
        Some(to)
    }

    /// Moves a decision that is used to its first slot, where it is found at once, if what lies
    /// there was not used after its first packet, or not for long; with that, if it had to go. Of
    /// two that are used now and then, none makes way for the other.
    pub(super) fn promote(&mut self, index: usize, tick: u16) -> Option<Evicted> {
        let digest = self.table.line(index).digest();
        let first = self.table.primary_slot(digest);
        let line = &self.table.lines()[first];
        let age = age(line, tick);
        let is_unused = line[3] == 0 || age > 0 && !is_used_again(line) || age > LONG_UNUSED;
        if first == index || !is_unused {
            return None;
        }
        let words = std::mem::replace(self.table.line(index).0, [0; WORDS]);
        if words[4] != 0 {
            self.table.mark_moved(first, self.is_flushing);
        }
        let mut gone = std::mem::replace(self.table.line(first).0, words);
        let mut gone = DecisionLine(&mut gone);
        if gone.stamp() == 0 {
            return None;
        }
        self.table.used -= 1;
        self.evictions += 1;
        let (packets, bytes) = gone.take_counts();
        Some(Evicted { path: gone.path(), packets, bytes })
    }

    /// A line.
    #[inline]
    pub(super) fn line(&mut self, index: usize) -> DecisionLine<'_> {
        self.table.line(index)
    }

    /// Marks a line that has counts now and had none.
    #[inline]
    pub(super) fn mark_dirty(&mut self, index: usize) {
        self.table.dirty.push(index as u32);
    }

    /// Adds packets to a line.
    #[inline]
    pub(super) fn count(&mut self, index: usize, packets: u64, bytes: u64) {
        if self.table.line(index).count(packets, bytes) {
            self.table.dirty.push(index as u32);
        }
    }

    /// Makes a line for a digest, without counts and not yet decided; with what had to go for it.
    /// None when all lines around are in use.
    pub(super) fn insert(&mut self, digest: u128, tick: u16) -> Option<(usize, Option<Evicted>)> {
        self.draw_again();
        self.note_miss(digest);
        let room = if self.table.is_crowded() {
            None
        } else {
            self.table.make_room(digest, self.is_flushing)
        };
        let index = match room {
            Some(index) => index,
            None => self.table.choose_slot(digest, tick, self.draw)?,
        };
        let mut line = self.table.line(index);
        let evicted = (line.stamp() != 0).then(|| {
            let (packets, bytes) = line.take_counts();
            Evicted { path: line.path(), packets, bytes }
        });
        *line.0 = [digest as u64, (digest >> 64) as u64, 0, 0, 0, 0, 0, u64::MAX];
        if evicted.is_some() {
            self.evictions += 1;
        } else {
            self.table.used += 1;
        }
        Some((index, evicted))
    }

    fn draw_again(&mut self) {
        self.draw ^= self.draw << 13;
        self.draw ^= self.draw >> 17;
        self.draw ^= self.draw << 5;
    }

    /// Looks at one more line; whether the table is to grow for what flows come again.
    fn is_worth_growing(&mut self) -> bool {
        self.draw_again();
        let line = &self.table.lines()[self.draw as usize & self.table.mask];
        if line[3] != 0 {
            self.lines.add(is_used_again(line));
        }
        if !self.lines.is_enough && !self.misses.is_enough {
            return false;
        }
        (self.lines, self.misses) = Default::default();
        true
    }

    /// Notes that a flow had no line, if it is one of those that are looked at.
    #[inline]
    fn note_miss(&mut self, digest: u128) {
        let drawn = (digest >> 64) as u64;
        // The digests of ports have nothing there.
        if drawn % MISS_SAMPLE_RATE == 1 {
            let place = &mut self.missed[(drawn / MISS_SAMPLE_RATE) as usize % MISS_SAMPLES];
            let flow = (drawn >> 32) as u32;
            self.misses.add(std::mem::replace(place, flow) == flow);
        }
    }

    /// Grows when it is half full and flows mostly come again, and moves some lines of the
    /// last growth; between batches. What finds no slot is handed to `lost`.
    pub(super) fn maintain(&mut self, mut lost: impl FnMut(Evicted)) {
        if self.old.is_some() {
            for _ in 0..MOVES {
                let Some(old) = &mut self.old else { return };
                if self.moved > old.mask {
                    self.old = None;
                    return;
                }
                let index = self.moved;
                self.moved += 1;
                if old.line(index).stamp() == 0 || self.move_over(index).is_some() {
                    continue;
                }
                if let Some(old) = &mut self.old {
                    let mut line = old.line(index);
                    let (packets, bytes) = line.take_counts();
                    lost(Evicted { path: line.path(), packets, bytes });
                    *line.0 = [0; WORDS];
                }
            }
        } else if self.table.used * 2 > self.table.mask
            && self.table.mask + 1 < self.lines_max
            && self.is_worth_growing()
        {
            let lines = (4 * (self.table.mask + 1)).min(self.lines_max);
            self.old = Some(std::mem::replace(&mut self.table, Table::new(lines)));
            self.moved = 0;
        }
    }

    /// Begins a flush of the counts that there are now; no other is under way. Counts that come
    /// later wait for the next one: with busy ports there may be as many of them as a call of
    /// [`Cache::flush`] takes, and the flush would have no end.
    pub(super) fn begin_flush(&mut self) {
        if self.is_flushing {
            return;
        }
        self.is_flushing = true;
        self.table.begin_flush();
        if let Some(old) = &mut self.old {
            old.begin_flush();
        }
    }

    /// Goes on with the flush under way: hands the counts of up to `lines_max` lines to `flush`;
    /// whether there are more.
    pub(super) fn flush(&mut self, lines_max: usize, mut flush: impl FnMut(Evicted)) -> bool {
        for _ in 0..lines_max {
            let table = match &mut self.old {
                Some(old) if !old.flushing.is_empty() => old,
                _ => &mut self.table,
            };
            let Some(index) = table.flushing.pop() else { break };
            // Lines lie anywhere: one is asked for while those before it are read.
            if let Some(ahead) = table.flushing.len().checked_sub(FLUSH_AHEAD) {
                prefetch(&table.lines()[table.flushing[ahead] as usize]);
            }
            let mut line = table.line(index as usize);
            let (packets, bytes) = line.take_counts();
            if packets != 0 {
                flush(Evicted { path: line.path(), packets, bytes });
            }
        }
        let is_done = |table: &Table| table.flushing.is_empty();
        self.is_flushing = !(is_done(&self.table) && self.old.as_ref().is_none_or(is_done));
        self.is_flushing
    }

    /// Lines, and how many of them are in use.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.table.mask + 1, self.table.used)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, LONG_UNUSED};
    use crate::select::mix;

    fn digest(flow: u64) -> u128 {
        u128::from(mix(flow)) | u128::from(mix(!flow)) << 64
    }

    /// A packet of a flow, at a tick.
    fn pass(cache: &mut Cache, flow: u64, tick: u16) {
        let found = cache.find(digest(flow));
        let index = found.or_else(|| cache.insert(digest(flow), tick).map(|(index, _)| index));
        if let Some(index) = index {
            let mut line = cache.line(index);
            line.set_stamp(1);
            line.use_at(tick);
            cache.count(index, 1, 60);
        }
    }

    fn flush(cache: &mut Cache) -> (u64, u64) {
        let mut sum = (0, 0);
        cache.begin_flush();
        while cache.flush(10, |it| sum = (sum.0 + it.packets, sum.1 + it.bytes)) {}
        sum
    }

    #[test]
    fn a_flood_of_new_flows_grows_no_table() {
        let mut cache = Cache::new(256, 4_096);
        for packet in 0..50_000 {
            // Among them, forty that go on.
            for flow in [packet % 40, 1_000 + packet] {
                pass(&mut cache, flow, (packet / 1_000) as u16);
            }
            cache.maintain(|_| {});
            if packet % 700 == 0 {
                flush(&mut cache);
            }
        }
        assert_eq!(cache.size().0, 256);
        assert!((0..40).all(|flow| cache.find(digest(flow)).is_some()));
    }

    /// Each comes again only when the table has lost it.
    #[test]
    fn flows_that_are_too_many_grow_the_table() {
        let mut cache = Cache::new(1 << 12, 1 << 20);
        for packet in 0..1_000_000_u64 {
            pass(&mut cache, packet % 200_000, (packet / 2_000) as u16);
            cache.maintain(|_| {});
        }
        assert_eq!(cache.size(), (1 << 20, 200_000));
    }

    #[test]
    fn a_decision_that_is_used_comes_to_its_first_slot() {
        let mut cache = Cache::new(64, 64);
        (0..500).for_each(|flow| pass(&mut cache, flow, (flow % 3) as u16));
        // One that lies elsewhere, in whose first slot lies one of a single packet.
        let (flow, first) = (1_000..2_000)
            .find_map(|flow| {
                pass(&mut cache, flow, 5);
                let first = cache.table.primary_slot(digest(flow));
                let is_elsewhere = cache.find(digest(flow)).is_some_and(|index| index != first);
                (is_elsewhere && cache.line(first).used() < 5).then_some((flow, first))
            })
            .expect("one of a thousand");
        let (lines, index) = (cache.size().1, cache.find(digest(flow)).unwrap());
        assert_eq!(cache.promote(index, 5).map(|gone| gone.packets), Some(1));
        assert_eq!((cache.find(digest(flow)), cache.size().1), (Some(first), lines - 1));
        assert_eq!(cache.line(first).take_counts(), (1, 60), "its counts came along");
        assert!(cache.promote(first, 9).is_none(), "it is there");
        // What is used again stays, and so does what is new.
        let beside = first ^ 1;
        let words = *cache.line(first).0;
        for (packets, tick, goes) in [(2, 9, false), (1, 5, false), (2, 5 + LONG_UNUSED + 1, true)]
        {
            *cache.line(first).0 = words;
            cache.line(first).count(packets, 60);
            *cache.line(beside).0 = words;
            assert_eq!(cache.promote(beside, tick).is_some(), goes, "{packets} packets at {tick}");
        }
    }

    #[test]
    fn flows_that_go_on_grow_the_table_despite_frequent_flushes() {
        for takes_each in [1, 2_000, 100_000] {
            let mut cache = Cache::new(256, 4_096);
            let mut taken = (0, 0);
            for packet in 0..20_000 {
                pass(&mut cache, packet % 1_000, (packet / 1_000) as u16);
                cache.maintain(|it| taken = (taken.0 + it.packets, taken.1 + it.bytes));
                if packet % takes_each == 0 {
                    let (packets, bytes) = flush(&mut cache);
                    taken = (taken.0 + packets, taken.1 + bytes);
                }
            }
            let found = (0..1_000).filter(|flow| cache.find(digest(*flow)).is_some()).count();
            assert_eq!((cache.size().0, found), (4_096, 1_000), "taken after {takes_each}");
            let (packets, bytes) = flush(&mut cache);
            let (packets, bytes) = (taken.0 + packets, taken.1 + bytes);
            assert!(packets > 10_000 && bytes == 60 * packets, "{packets} {bytes}");
        }
    }
}
