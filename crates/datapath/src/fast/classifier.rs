//! The classifier of one flow table: from a flow key to the entry that it meets.
//!
//! The definition is a linear search by falling priority, the older entry first among equals. It
//! must never depend on the packets that were seen before, and no mask is made of a packet.

use packet::FlowKey;

use super::op::EntryId;
use super::pattern::{Mask, Pattern};

/// The bits of a flow key, and the presence of fields, that decide what a lookup answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// As [`FlowKey::words`].
    pub words: [u64; packet::WORDS],
    /// As [`FlowKey::present`].
    pub present: u64,
}

impl Live {
    /// Adds what a mask looks at.
    pub fn add(&mut self, mask: &Mask) {
        self.present |= mask.present();
        for word in mask.words() {
            self.words[usize::from(word.index)] |= word.bits;
        }
    }
}

/// A flow table's classifier.
#[derive(Debug, Default)]
pub struct Classifier {
    entries: Vec<(u64, Pattern, EntryId)>,
}

/// Falling priority, then rising age, as one number.
fn rank(priority: u16, seq: u64) -> u64 {
    u64::from(!priority) << 48 | seq & (u64::MAX >> 16)
}

impl Classifier {
    /// An empty classifier. The seed keeps a peer from choosing entries or packets that collide;
    /// it changes no answer.
    #[must_use]
    pub fn new(_seed: u64) -> Self {
        Self::default()
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry. `seq` is its age: the lower wins among equal priorities. It has 48 bits.
    pub fn insert(&mut self, pattern: &Pattern, priority: u16, seq: u64, id: EntryId) {
        let rank = rank(priority, seq);
        let at = self.entries.partition_point(|(held, ..)| *held <= rank);
        self.entries.insert(at, (rank, pattern.clone(), id));
    }

    /// Takes an entry away; `false` when it is not there.
    pub fn remove(&mut self, pattern: &Pattern, priority: u16, id: EntryId) -> bool {
        let is_it = |(rank, held, known): &(u64, Pattern, EntryId)| {
            *known == id && rank >> 48 == u64::from(!priority) && held == pattern
        };
        let found = self.entries.iter().position(is_it);
        found.map(|at| self.entries.remove(at)).is_some()
    }

    /// The entry that a packet meets.
    #[must_use]
    pub fn lookup(&self, key: &FlowKey) -> Option<EntryId> {
        let found = self.entries.iter().find(|(_, pattern, _)| pattern.meets(key));
        found.map(|(.., id)| *id)
    }

    /// The entry that a packet meets among those that `counts` accepts: the way past entries whose
    /// time is over. Slower than [`Self::lookup`]; for when that found such an entry.
    #[must_use]
    pub fn lookup_if(&self, key: &FlowKey, counts: impl Fn(EntryId) -> bool) -> Option<EntryId> {
        let found = self.entries.iter().find(|(_, pattern, id)| pattern.meets(key) && counts(*id));
        found.map(|(.., id)| *id)
    }

    /// The bits of a flow key that some entry looks at.
    #[must_use]
    pub fn live(&self) -> Live {
        let mut live = Live::default();
        for (_, pattern, _) in &self.entries {
            live.add(pattern.mask());
        }
        live
    }

    /// The entries that some packets meet; `out` has a place for each key.
    pub fn lookup_burst(&self, keys: &[FlowKey], out: &mut [Option<EntryId>]) {
        for (key, out) in keys.iter().zip(out) {
            *out = self.lookup(key);
        }
    }
}
