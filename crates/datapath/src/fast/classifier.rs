//! The classifier of one flow table: from a flow key to the entry that it matches.
//!
//! The definition is a linear search by falling priority, the older entry first among equals.
//! Its template depends on the entries of the table, and changes with them one by one:
//!
//! | template | when | a lookup |
//! |---|---|---|
//! | constant | every entry matches every packet | nothing |
//! | few | up to 16 entries | each is compared, in the order of rank |
//! | exact | one mask | one hash probe |
//! | general | several masks | one probe for each group, best priority first, until none can win |
//! | pruned | ten groups or more | the same, without those that a filter finds impossible |
//!
//! A *group* ([`group`]) is a hash over bits that all its entries look at. While there are few
//! masks each has its own; then masks are merged into groups of fewer bits ([`relax`]), so that
//! prefixes of every length, and lists with a thousand combinations of prefix lengths and ports,
//! need some ten or twenty groups. A prefix table is nothing special here: its groups are asked
//! from long to short because priorities say so, and it stays right where they do not. From ten
//! groups on a few bits of the packet say which of them can hold an entry for it ([`filter`]).
//!
//! There are never more than 64 groups, and only a bounded number of entries of a group share its
//! bits; what finds no place goes to the list, which is compared one by one. So the work of a
//! lookup is bounded by numbers that [`Classifier::figures`] has. Measured in bursts of 64, the
//! keys in the cache: 3-8 ns with a few entries, 5-7 ns in tables of a thousand entries with one
//! mask, 10 ns with 100,000, 20-24 ns with a million, 33 ns for 100,000 prefixes, 32 and 55 ns for
//! firewall lists of 1,000 and 10,000 entries.
//!
//! Everything changes entry by entry: a hash grows by one bucket at a time ([`index`]), groups come
//! and go one at a time, and no insert into a million entries takes longer than some 10 us.
//! An entry takes 77 bytes.
//!
//! Nothing here depends on the packets that were seen before, and no mask is made of a packet.

mod burst;
mod chunked;
mod exact;
mod filter;
mod group;
mod hash;
mod index;
mod list;
mod masks;
mod records;
mod relax;
mod search;
mod template;
#[cfg(test)]
mod tests;
mod update;

use std::collections::BTreeMap;

use packet::FlowKey;

use self::filter::GroupFilter;
use self::group::{Known, TupleGroups};
use self::hash::Secrets;
use self::list::List;
use self::masks::MaskTable;
use self::records::Records;
use super::compiled_match::CompiledMatch;
use super::ids::EntryId;
use crate::precedence::Precedence;

pub use self::burst::BURST;
pub use self::masks::UnwildcardedBits;
pub(in crate::fast) use self::search::Answer;
pub use self::template::Template;

/// A classifier's parts at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassifierFigures {
    /// The way of lookups.
    pub template: Template,
    /// Entries.
    pub entries: usize,
    /// Different masks.
    pub masks: usize,
    /// Groups, each of which may cost a probe.
    pub groups: usize,
    /// Entries of one group, at most, that are compared for one packet. A lookup makes at most
    /// `groups` probes and `groups * sharing + listed` comparisons.
    pub sharing: usize,
    /// Entries that are compared one by one.
    pub listed: usize,
    /// Memory in bytes.
    pub bytes: usize,
}

/// A flow table's classifier.
#[derive(Debug)]
pub struct Classifier {
    secrets: Secrets,
    masks: MaskTable,
    records: Records,
    /// Entries that every packet matches, by rank.
    always: BTreeMap<u64, EntryId>,
    list: List,
    groups: TupleGroups,
    filter: GroupFilter,
    /// Entries that look at `conj_id` and that a packet matches where that is zero.
    of_conj_id_zero: u32,
    /// Behind a record: the entries of the same mask and value with higher ranks.
    /// By record and rank: a tree, because a hash would stop to grow.
    shadows: BTreeMap<(u32, u64), EntryId>,
    /// Most entries that were put together with equal bits of a group, since there are groups.
    sharing: usize,
    /// Exact groups that may be worth merging, now that there are coarser ones.
    merge_candidates: Vec<u8>,
    len: usize,
    /// The template that entries are placed for, whatever the table is.
    forced: Option<Template>,
    /// Whether tags are compared one by one.
    is_plain: bool,
}

/// Falling precedence, then rising age, as one number: the lowest wins.
fn rank_of(precedence: Precedence, seq: u64) -> u64 {
    u64::from(precedence.order()) << SEQ_BITS | seq & (u64::MAX >> Precedence::BITS)
}

/// Bits of an age in a rank; the order of precedence is in the higher ones.
const SEQ_BITS: u32 = u64::BITS - Precedence::BITS;

impl Classifier {
    /// An empty classifier. The seed keeps a peer from choosing entries or packets that collide;
    /// it changes no answer.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            secrets: Secrets::of(seed),
            masks: MaskTable::default(),
            records: Records::default(),
            always: BTreeMap::new(),
            list: List::default(),
            groups: TupleGroups::default(),
            filter: GroupFilter::default(),
            of_conj_id_zero: 0,
            shadows: BTreeMap::new(),
            sharing: 1,
            merge_candidates: Vec::new(),
            len: 0,
            forced: None,
            is_plain: false,
        }
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bits of a flow key that some entry looks at.
    #[must_use]
    pub fn unwildcarded(&self) -> &UnwildcardedBits {
        self.masks.unwildcarded()
    }

    /// A number that changes whenever [`Self::unwildcarded`] does.
    #[must_use]
    pub fn unwildcarded_version(&self) -> u64 {
        self.masks.unwildcarded_version()
    }

    /// The classifier's parts, counted.
    #[must_use]
    pub fn figures(&self) -> ClassifierFigures {
        let groups: usize = self.groups.in_order().map(|group| group.index.bytes()).sum();
        let shadows = (self.shadows.len() + self.always.len()) * 32;
        ClassifierFigures {
            template: self.template(),
            entries: self.len,
            masks: self.masks.len(),
            groups: self.groups.len(),
            sharing: self.sharing,
            listed: self.list.len(),
            bytes: size_of::<Self>()
                + self.records.bytes()
                + self.masks.bytes()
                + self.list.bytes()
                + self.filter.bytes()
                + groups
                + shadows,
        }
    }

    fn known(&self) -> Known<'_> {
        Known { secrets: &self.secrets, masks: &self.masks, records: &self.records }
    }

    /// The entry that a packet matches.
    #[must_use]
    pub fn lookup(&self, key: &FlowKey) -> Option<EntryId> {
        let mut best = self.always.first_key_value().map(|(rank, id)| (*rank, *id));
        let rank_of = |best: Option<(u64, EntryId)>| best.map_or(u64::MAX, |(rank, _)| rank);
        let possible = self.filter.possible(key);
        for group in self.groups.in_order() {
            if rank_of(best) <= group.best {
                break;
            }
            if possible >> group.number & 1 == 0 || group.bits.present & !key.present() != 0 {
                continue;
            }
            let hash = self.secrets.of_masked(key, &group.bits.words);
            group.index.find(hash, |slot| {
                let line = self.records.get(slot);
                if line.rank() < rank_of(best) && self.masks.matches(key, line, slot, &self.records)
                {
                    best = Some((line.rank(), line.id()));
                }
            });
        }
        let listed = self.list.items().iter().take_while(|item| item.rank < rank_of(best));
        let matches = |slot| self.masks.matches(key, self.records.get(slot), slot, &self.records);
        let found = listed.into_iter().find(|item| matches(item.slot)).map(|item| item.id);
        found.or(best.map(|(_, id)| id))
    }

    /// Adds an entry. `seq` is its age: the lower wins among equals. It has 47 bits.
    pub fn insert(
        &mut self,
        compiled: &CompiledMatch,
        precedence: Precedence,
        seq: u64,
        id: EntryId,
    ) {
        let rank = rank_of(precedence, seq);
        self.len += 1;
        self.of_conj_id_zero += u32::from(compiled.takes_conj_id_zero());
        if compiled.is_any() {
            self.always.insert(rank, id);
            return;
        }
        let mask = self.masks.enter(compiled.mask());
        let slot = self.records.add(id, mask, rank, compiled.value());
        self.insert_record(slot);
    }

    /// Takes an entry away; `false` when it is not there.
    pub fn remove(
        &mut self,
        compiled: &CompiledMatch,
        precedence: Precedence,
        id: EntryId,
    ) -> bool {
        let removed = if compiled.is_any() {
            self.remove_always(precedence, id)
        } else {
            self.remove_record(compiled, precedence, id)
        };
        self.len -= usize::from(removed);
        self.of_conj_id_zero -= u32::from(removed && compiled.takes_conj_id_zero());
        removed
    }

    fn remove_always(&mut self, precedence: Precedence, id: EntryId) -> bool {
        let range = rank_of(precedence, 0)..=rank_of(precedence, u64::MAX);
        let found = self.always.range(range).find(|(_, held)| **held == id);
        let rank = found.map(|(rank, _)| *rank);
        rank.and_then(|rank| self.always.remove(&rank)).is_some()
    }
}
