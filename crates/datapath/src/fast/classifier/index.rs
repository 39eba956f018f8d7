//! The growing hash of one group: from a hash to the records that may lie there.
//!
//! A bucket is one cache line: twelve tags of 8 bits that are compared at once, and twelve slots
//! of records. Growth is linear hashing: each time the load passes five records a bucket, one
//! bucket, in a fixed order, is split in two. So no insert ever does more than two buckets' worth
//! of work and a million entries never rehash at once. An index must never be asked about a hash
//! made with other secrets or another mask.

use super::chunked::Chunked;
use crate::fast::sys::{equal_tags, prefetch};

/// Records of one bucket.
const WAYS: usize = 12;
/// Buckets of one chunk: 4 KiB.
const CHUNK: usize = 64;
/// Average load at which one more bucket comes, and below which one goes.
const LOAD_MAX: u32 = 5;
const LOAD_MIN: u32 = 2;

#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct Bucket {
    /// Zero where there is no record. The last four bytes hold [`Bucket::next`].
    tags: [u8; 16],
    slots: [u32; WAYS],
}

impl Bucket {
    /// Overflow bucket plus one; zero when there is none.
    #[inline(always)]
    fn next(&self) -> u32 {
        u32::from_le_bytes([self.tags[12], self.tags[13], self.tags[14], self.tags[15]])
    }

    fn set_next(&mut self, next: u32) {
        self.tags[WAYS..].copy_from_slice(&next.to_le_bytes());
    }

    /// An empty bucket in front of another.
    fn before(next: u32) -> Self {
        let mut bucket = Self::default();
        bucket.set_next(next);
        bucket
    }

    /// Each way's tag and record; a tag of zero stands for none.
    fn ways(&self) -> impl Iterator<Item = (u8, u32)> {
        self.tags[..WAYS].iter().copied().zip(self.slots)
    }

    /// One bit for each record whose tag is this.
    #[inline(always)]
    fn tagged(&self, tag: u8, is_plain: bool) -> u32 {
        equal_tags(&self.tags, tag, is_plain) & ((1 << WAYS) - 1)
    }

    fn put(&mut self, tag: u8, slot: u32) -> bool {
        let hole = self.tags[..WAYS].iter().position(|held| *held == 0);
        if let Some(way) = hole {
            self.tags[way] = tag;
            self.slots[way] = slot;
        }
        hole.is_some()
    }
}

/// The tag of a hash: its highest bits, never zero.
#[inline(always)]
fn tag_of(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(1)
}

/// A bucket of an index that is about to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe<'a> {
    bucket: &'a Bucket,
    tag: u8,
}

/// Content of the first bucket of a probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct First {
    /// The first candidate; some other record when `found` is zero.
    pub(super) slot: u32,
    /// One if there is a candidate, zero if not: a number and no branch, because it would be a
    /// coin flip.
    pub(super) found: usize,
    /// Further candidates of the bucket, for [`RecordIndex::rest`].
    pub(super) rest: u32,
    /// Whether there is anything for [`RecordIndex::rest`]; rare.
    pub(super) has_rest: bool,
}

impl Probe<'_> {
    /// A bucket with nothing in it, for lists that are not filled yet.
    pub(super) const NONE: Self = Self { bucket: &EMPTY, tag: 1 };

    #[inline(always)]
    pub(super) fn first(self, is_plain: bool) -> First {
        let tagged = self.bucket.tagged(self.tag, is_plain);
        // Without a candidate the bit behind the last way leads to the last way.
        let way = (tagged | 1 << (WAYS - 1)).trailing_zeros() as usize;
        let rest = tagged & tagged.wrapping_sub(1);
        First {
            slot: self.bucket.slots[way % WAYS],
            found: usize::from(tagged != 0),
            rest,
            has_rest: rest != 0 || self.bucket.next() != 0,
        }
    }
}

static EMPTY: Bucket = Bucket { tags: [0; 16], slots: [0; WAYS] };

/// A growing hash of the slots of records.
#[derive(Debug)]
pub(super) struct RecordIndex {
    buckets: Chunked<Bucket, CHUNK>,
    overflow: Chunked<Bucket, CHUNK>,
    /// First free overflow bucket plus one; linked by `next`.
    overflow_free: u32,
    /// The power of two that is not below the number of buckets, minus one.
    mask: u32,
    len: u32,
    merges: u32,
    /// Whether tags are compared one by one.
    pub(super) is_plain: bool,
}

impl RecordIndex {
    pub(super) fn new() -> Self {
        let mut buckets = Chunked::default();
        buckets.push(Bucket::default());
        let overflow = Chunked::default();
        Self { buckets, overflow, overflow_free: 0, mask: 0, len: 0, merges: 0, is_plain: false }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.bytes() + self.overflow.bytes()
    }

    #[inline(always)]
    fn bucket_of(&self, hash: u64) -> u32 {
        let wide = hash as u32 & self.mask;
        if wide < self.buckets.len() { wide } else { hash as u32 & self.mask >> 1 }
    }

    /// Place of a hash; its line is prefetched.
    #[inline(always)]
    pub(super) fn probe(&self, hash: u64) -> Probe<'_> {
        let bucket = self.buckets.get(self.bucket_of(hash));
        prefetch(bucket);
        Probe { bucket, tag: tag_of(hash) }
    }

    /// Calls `found` with every record that may have the hash.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, mut found: impl FnMut(u32)) {
        let tag = tag_of(hash);
        let mut bucket = self.buckets.get(self.bucket_of(hash));
        loop {
            let mut tagged = bucket.tagged(tag, self.is_plain);
            while tagged != 0 {
                found(bucket.slots[tagged.trailing_zeros() as usize]);
                tagged &= tagged - 1;
            }
            let Some(next) = bucket.next().checked_sub(1) else { return };
            bucket = self.overflow.get(next);
        }
    }

    /// The rest after [`Probe::first`].
    #[cold]
    pub(super) fn rest(&self, probe: Probe<'_>, rest: u32, mut found: impl FnMut(u32)) {
        let (mut bucket, mut tagged) = (probe.bucket, rest);
        loop {
            while tagged != 0 {
                found(bucket.slots[tagged.trailing_zeros() as usize % WAYS]);
                tagged &= tagged - 1;
            }
            let Some(next) = bucket.next().checked_sub(1) else { return };
            bucket = self.overflow.get(next);
            tagged = bucket.tagged(probe.tag, self.is_plain);
        }
    }

    /// Every record, in no order.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.buckets.len()).flat_map(|at| self.slots_of(at))
    }

    /// Number of buckets.
    pub(super) fn buckets(&self) -> u32 {
        self.buckets.len()
    }

    /// Number of times that two buckets became one: the only way for a record to come to a bucket
    /// of a lower number.
    pub(super) fn merges(&self) -> u32 {
        self.merges
    }

    /// The records of one bucket.
    pub(super) fn slots_of(&self, bucket: u32) -> impl Iterator<Item = u32> + '_ {
        let ways = self.chain(bucket).flat_map(Bucket::ways);
        ways.filter(|(tag, _)| *tag != 0).map(|(_, slot)| slot)
    }

    fn chain(&self, at: u32) -> impl Iterator<Item = &Bucket> {
        std::iter::successors(Some(self.buckets.get(at)), |bucket| {
            let next = bucket.next().checked_sub(1)?;
            Some(self.overflow.get(next))
        })
    }

    /// Adds a record. `hash_of` gives the hashes of those that are here, `ask` asks for the line of
    /// one of them. The bucket that is split next is known long before, so its lines are asked for
    /// some inserts earlier, and a split waits for no memory.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        slot: u32,
        hash_of: impl Fn(u32) -> u64,
        ask: impl Fn(u32),
    ) {
        self.put(self.bucket_of(hash), tag_of(hash), slot);
        self.len += 1;
        let next = self.buckets.len() ^ (1 << self.buckets.len().ilog2());
        match (LOAD_MAX * self.buckets.len()).checked_sub(self.len) {
            None => self.split(hash_of),
            Some(0) => {
                let ways = self.buckets.get(next).ways();
                ways.filter(|(tag, _)| *tag != 0).for_each(|(_, slot)| ask(slot));
            }
            Some(2) => prefetch(self.buckets.get(next)),
            Some(_) => {}
        }
    }

    /// Takes a record away; `false` when it is not here.
    pub(super) fn remove(&mut self, hash: u64, slot: u32) -> bool {
        if !self.take(self.bucket_of(hash), tag_of(hash), slot) {
            return false;
        }
        self.len -= 1;
        if self.len < LOAD_MIN * self.buckets.len() && self.buckets.len() > 1 {
            self.merge();
        }
        true
    }

    fn put(&mut self, at: u32, tag: u8, slot: u32) {
        if self.buckets.get_mut(at).put(tag, slot) {
            return;
        }
        let mut next = self.buckets.get(at).next();
        while next != 0 {
            if self.overflow.get_mut(next - 1).put(tag, slot) {
                return;
            }
            next = self.overflow.get(next - 1).next();
        }
        let mut fresh = Bucket::before(self.buckets.get(at).next());
        fresh.put(tag, slot);
        let fresh = self.new_overflow(fresh);
        self.buckets.get_mut(at).set_next(fresh);
    }

    fn new_overflow(&mut self, bucket: Bucket) -> u32 {
        match self.overflow_free {
            0 => self.overflow.push(bucket) + 1,
            free => {
                self.overflow_free = self.overflow.get(free - 1).next();
                *self.overflow.get_mut(free - 1) = bucket;
                free
            }
        }
    }

    fn take(&mut self, at: u32, tag: u8, slot: u32) -> bool {
        // `link` is the overflow bucket plus one, zero for the first of the chain.
        let mut link = 0;
        loop {
            let bucket = self.bucket(at, link);
            let way = bucket.ways().position(|held| held == (tag, slot));
            if let Some(way) = way {
                self.fill_hole(at, link, way);
                return true;
            }
            link = bucket.next();
            if link == 0 {
                return false;
            }
        }
    }

    fn bucket(&mut self, at: u32, link: u32) -> &mut Bucket {
        match link {
            0 => self.buckets.get_mut(at),
            next => self.overflow.get_mut(next - 1),
        }
    }

    /// Empties a way; a record of the first overflow bucket replaces it, so that a chain is
    /// never longer than it must be by more than one bucket.
    fn fill_hole(&mut self, at: u32, link: u32, way: usize) {
        self.bucket(at, link).tags[way] = 0;
        let next = self.buckets.get(at).next();
        if next == 0 {
            return;
        }
        let source = self.overflow.get_mut(next - 1);
        if let Some(last) = source.tags[..WAYS].iter().rposition(|tag| *tag != 0)
            && link != next
        {
            let (tag, slot) = (source.tags[last], source.slots[last]);
            source.tags[last] = 0;
            let hole = self.bucket(at, link);
            hole.tags[way] = tag;
            hole.slots[way] = slot;
        }
        let source = *self.overflow.get(next - 1);
        if source.tags[..WAYS] == [0; WAYS] {
            self.buckets.get_mut(at).set_next(source.next());
            self.free_overflow(next);
        }
    }

    fn free_overflow(&mut self, link: u32) {
        *self.overflow.get_mut(link - 1) = Bucket::before(self.overflow_free);
        self.overflow_free = link;
    }

    /// Adds the next bucket and moves there what belongs there.
    fn split(&mut self, hash_of: impl Fn(u32) -> u64) {
        let fresh = self.buckets.push(Bucket::default());
        if fresh > self.mask {
            self.mask = self.mask << 1 | 1;
        }
        let old = fresh & self.mask >> 1;
        let mut bucket = std::mem::take(self.buckets.get_mut(old));
        loop {
            for (tag, slot) in bucket.ways().filter(|(tag, _)| *tag != 0) {
                self.put(self.bucket_of(hash_of(slot)), tag, slot);
            }
            let Some(next) = bucket.next().checked_sub(1) else { return };
            bucket = *self.overflow.get(next);
            self.free_overflow(next + 1);
        }
    }

    /// Takes the last bucket away; what it held goes back to where it came from.
    fn merge(&mut self) {
        let Some(mut bucket) = self.buckets.pop() else { return };
        self.merges = self.merges.wrapping_add(1);
        let old = self.buckets.len() & self.mask >> 1;
        if self.buckets.len() <= self.mask.div_ceil(2) {
            self.mask >>= 1;
        }
        loop {
            for (tag, slot) in bucket.ways().filter(|(tag, _)| *tag != 0) {
                self.put(old, tag, slot);
            }
            let Some(next) = bucket.next().checked_sub(1) else { return };
            bucket = *self.overflow.get(next);
            self.free_overflow(next + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RecordIndex;

    /// Poor in the low bits and in the tag, so that chains and equal tags come about.
    fn hash_of(slot: u32) -> u64 {
        (u64::from(slot / 5) * 0x9e37_79b9) ^ (u64::from(slot % 7) << 56)
    }

    fn found(index: &RecordIndex, slot: u32) -> Vec<u32> {
        let mut all = Vec::new();
        index.find(hash_of(slot), |slot| all.push(slot));
        let probe = index.probe(hash_of(slot));
        let first = probe.first(false);
        let mut further: Vec<u32> = std::iter::repeat_n(first.slot, first.found).collect();
        if first.has_rest {
            index.rest(probe, first.rest, |slot| further.push(slot));
        }
        assert_eq!(all, further);
        all
    }

    #[test]
    fn grows_and_shrinks_one_bucket_at_a_time_and_loses_nothing() {
        let mut index = RecordIndex::new();
        for round in 0..2 {
            for slot in 0..20_000 {
                let before = index.buckets.len();
                index.insert(hash_of(slot), slot, hash_of, |_| ());
                assert!(index.buckets.len() <= before + 1);
            }
            let mut slots: Vec<u32> = index.slots().collect();
            slots.sort_unstable();
            assert!(slots.into_iter().eq(0..20_000), "round {round}");
            for slot in 0..20_000 {
                assert!(found(&index, slot).contains(&slot), "{slot}");
            }
            for slot in 0..20_000 {
                let slot = slot * 7919 % 20_000;
                assert!(index.remove(hash_of(slot), slot), "{slot}");
                assert!(!index.remove(hash_of(slot), slot), "{slot}");
                assert!(!found(&index, slot).contains(&slot), "{slot}");
            }
            assert_eq!((index.len(), index.buckets.len(), index.mask), (0, 1, 0));
        }
    }
}
