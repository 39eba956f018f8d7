//! A hash index from a key that is stored elsewhere to a number: four bytes of key, four of number.
//!
//! The keys are not stored here; the caller compares the key of a number that is found. The
//! index is cut into shards that grow one by one, so that no growth takes longer than a fraction of
//! a millisecond at a million numbers. It must never hold the number [`NONE`].

/// No number.
pub(super) const NONE: u32 = u32::MAX;

const SHARDS: usize = 256;

/// A slot: the lower half of the hash, and the number or [`NONE`].
#[derive(Clone, Copy, Debug)]
struct IndexSlot {
    hash: u32,
    number: u32,
}

const EMPTY: IndexSlot = IndexSlot { hash: 0, number: NONE };

/// Open addressing with linear probing; slots are a power of two, at most seven eighths are taken.
#[derive(Clone, Debug, Default)]
struct Shard {
    slots: Vec<IndexSlot>,
    len: usize,
}

/// The index.
#[derive(Clone, Debug)]
pub(super) struct NumberIndex {
    shards: Vec<Shard>,
}

impl Default for NumberIndex {
    fn default() -> Self {
        Self { shards: vec![Shard::default(); SHARDS] }
    }
}

impl NumberIndex {
    fn shard(hash: u64) -> usize {
        (hash >> 56) as usize
    }

    /// The number with this hash for which `is_it` holds.
    pub(super) fn find(&self, hash: u64, is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let shard = &self.shards[Self::shard(hash)];
        shard.find(hash as u32, is_it).map(|at| shard.slots[at].number)
    }

    /// Adds a number. Whether there is an equal one is not looked at.
    pub(super) fn insert(&mut self, hash: u64, number: u32) {
        self.shards[Self::shard(hash)].insert(IndexSlot { hash: hash as u32, number });
    }

    /// Puts a number in the slot of another one of the same key.
    pub(super) fn replace(&mut self, hash: u64, old: u32, new: u32) {
        let shard = &mut self.shards[Self::shard(hash)];
        if let Some(at) = shard.find(hash as u32, |number| number == old) {
            shard.slots[at].number = new;
        }
    }

    /// Takes a number away.
    pub(super) fn remove(&mut self, hash: u64, number: u32) {
        let shard = &mut self.shards[Self::shard(hash)];
        if let Some(at) = shard.find(hash as u32, |held| held == number) {
            shard.remove(at);
        }
    }
}

impl Shard {
    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<usize> {
        let mut at = hash as usize & self.mask();
        loop {
            let slot = self.slots.get(at)?;
            if slot.number == NONE {
                return None;
            }
            if slot.hash == hash && is_it(slot.number) {
                return Some(at);
            }
            at = (at + 1) & self.mask();
        }
    }

    fn insert(&mut self, slot: IndexSlot) {
        if (self.len + 1) * 8 > self.slots.len() * 7 {
            self.resize((self.slots.len() * 2).max(8));
        }
        self.put(slot);
        self.len += 1;
    }

    fn put(&mut self, slot: IndexSlot) {
        let mut at = slot.hash as usize & self.mask();
        while self.slots[at].number != NONE {
            at = (at + 1) & self.mask();
        }
        self.slots[at] = slot;
    }

    fn resize(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; slots]);
        for slot in old.into_iter().filter(|slot| slot.number != NONE) {
            self.put(slot);
        }
    }

    /// Closes the gap by moving back what follows it, so that no mark of the removed one is
    /// left and an index that is filled and emptied for ever stays as it is.
    fn remove(&mut self, mut gap: usize) {
        let mask = self.mask();
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot.number == NONE {
                break;
            }
            let home = slot.hash as usize & mask;
            // It may move back unless its home lies behind the gap.
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                self.slots[gap] = slot;
                gap = at;
            }
        }
        self.slots[gap] = EMPTY;
        self.len -= 1;
        if self.slots.len() > 64 && self.len * 8 < self.slots.len() {
            self.resize(self.slots.len() / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NumberIndex;
    use crate::select::mix;
    use std::collections::BTreeMap;

    /// Numbers are their own keys; hashes are made to collide.
    fn hash(number: u32, spread: u64) -> u64 {
        mix(u64::from(number) % spread)
    }

    #[test]
    fn finds_what_a_map_finds() {
        for spread in [1, 7, 1000, u64::MAX] {
            let mut index = NumberIndex::default();
            let mut map = BTreeMap::new();
            for step in 0..20_000_u64 {
                let number = u32::try_from(mix(step) % 500).unwrap();
                let hash = hash(number, spread);
                assert_eq!(
                    index.find(hash, |held| held == number),
                    map.get(&number).copied(),
                    "step {step}"
                );
                if map.remove(&number).is_some() {
                    index.remove(hash, number);
                } else {
                    map.insert(number, number);
                    index.insert(hash, number);
                }
            }
        }
    }

    #[test]
    fn a_number_takes_the_place_of_another() {
        let mut index = NumberIndex::default();
        index.insert(5, 1);
        index.replace(5, 1, 2);
        assert_eq!(index.find(5, |_| true), Some(2));
        index.remove(5, 1);
        assert_eq!(index.find(5, |_| true), Some(2));
        index.remove(5, 2);
        assert_eq!(index.find(5, |_| true), None);
    }
}
