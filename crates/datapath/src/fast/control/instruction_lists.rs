//! The lists of instructions of all entries, each kept once, and who leads to groups and meters.
//!
//! A million entries that output to a few ports have a few lists. Only lists that lead to a group
//! or a meter know their entries, so that deleting one finds them without looking at the others.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use openflow::learn::LearnFlags;
use openflow::{Action, Cookie, GroupId, Instruction, MeterId, PortNo, TableId};

use super::index::{NONE, NumberIndex};
use super::slab::Slab;
use crate::fast::mix_hasher::MixHasher;
use crate::fast::op::InstructionList;
use crate::groups::group_of;

/// A list of instructions.
#[derive(Clone, Debug)]
struct Record {
    shared: Arc<InstructionList>,
    hash: u64,
    users: u32,
    /// The first of the entries that have it, if it is [`Record::is_linked`].
    first: u32,
    groups: Box<[GroupId]>,
    meter: Option<MeterId>,
    /// The table and cookie of each entry that it teaches and that goes with the last such list.
    taught: Box<[(TableId, Cookie)]>,
    teaches: bool,
}

impl Record {
    fn is_linked(&self) -> bool {
        !self.groups.is_empty() || self.meter.is_some()
    }
}

/// The lists of instructions.
#[derive(Clone, Debug, Default)]
pub(super) struct InstructionLists {
    records: Vec<Option<Record>>,
    free: Vec<u32>,
    index: NumberIndex,
    of_group: BTreeMap<GroupId, BTreeSet<u32>>,
    of_meter: BTreeMap<MeterId, BTreeSet<u32>>,
    of_taught: BTreeMap<(TableId, Cookie), BTreeSet<u32>>,
    /// Those of them that have come or gone since that was last asked for, and whether they were
    /// there then.
    taught_changes: BTreeMap<(TableId, Cookie), bool>,
    /// Whether a list that teaches has gone since that was last asked for.
    has_unlearned: bool,
}

impl InstructionLists {
    fn record(&self, number: u32) -> &Record {
        self.records[number as usize].as_ref().expect("a list that entries have exists")
    }

    fn record_mut(&mut self, number: u32) -> &mut Record {
        self.records[number as usize].as_mut().expect("a list that entries have exists")
    }

    /// The list of a number that an entry names.
    pub(super) fn get(&self, number: u32) -> &Arc<InstructionList> {
        &self.record(number).shared
    }

    /// The number of a list, when an entry has it.
    pub(super) fn find(&self, instructions: &[Instruction]) -> Option<u32> {
        self.find_hashed(instructions, hash(instructions))
    }

    fn find_hashed(&self, instructions: &[Instruction], hash: u64) -> Option<u32> {
        let is_it = |number: u32| *self.record(number).shared.instructions == *instructions;
        self.index.find(hash, is_it)
    }

    /// The number of a list that an entry is going to have.
    pub(super) fn of(&mut self, instructions: &[Instruction]) -> u32 {
        let hash = hash(instructions);
        if let Some(known) = self.find_hashed(instructions, hash) {
            return known;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.records.push(None);
            (self.records.len() - 1) as u32
        });
        let groups: BTreeSet<GroupId> = actions(instructions).filter_map(group_of).collect();
        let meter = instructions.iter().find_map(Instruction::meter);
        for group in &groups {
            self.of_group.entry(*group).or_default().insert(number);
        }
        if let Some(meter) = meter {
            self.of_meter.entry(meter).or_default().insert(number);
        }
        let taught: BTreeSet<_> = actions(instructions).filter_map(taught_for_good).collect();
        for entry in &taught {
            let users = self.of_taught.entry(*entry).or_default();
            if users.is_empty() {
                self.taught_changes.entry(*entry).or_insert(false);
            }
            users.insert(number);
        }
        self.records[number as usize] = Some(Record {
            shared: Arc::new(InstructionList { number, instructions: instructions.into() }),
            hash,
            users: 0,
            first: NONE,
            groups: groups.into_iter().collect(),
            meter,
            taught: taught.into_iter().collect(),
            teaches: actions(instructions).any(|action| action.learns().is_some()),
        });
        self.index.insert(hash, number);
        number
    }

    /// Notes that an entry has a list.
    pub(super) fn link(&mut self, slab: &mut Slab, instruction_list: u32, entry: u32) {
        slab.get_mut(entry).instruction_list = instruction_list;
        let record = self.record_mut(instruction_list);
        record.users += 1;
        if record.is_linked() {
            let next = std::mem::replace(&mut record.first, entry);
            if next != NONE {
                slab.get_mut(next).prev_user = entry;
            }
            let entry = slab.get_mut(entry);
            entry.prev_user = NONE;
            entry.next_user = next;
        }
    }

    /// Notes that an entry has its list no more. A list that no entry has is forgotten.
    pub(super) fn unlink(&mut self, slab: &mut Slab, entry: u32) {
        let (instruction_list, prev, next) = {
            let entry = slab.get(entry);
            (entry.instruction_list, entry.prev_user, entry.next_user)
        };
        let record = self.record_mut(instruction_list);
        record.users -= 1;
        if record.is_linked() {
            if prev == NONE {
                record.first = next;
            } else {
                slab.get_mut(prev).next_user = next;
            }
            if next != NONE {
                slab.get_mut(next).prev_user = prev;
            }
        }
        if record.users == 0 {
            self.forget(instruction_list);
        }
    }

    /// Keeps a list that an entry has, whatever becomes of the entry, until it is released.
    pub(super) fn hold(&mut self, number: u32) {
        self.record_mut(number).users += 1;
    }

    /// Ends a [`Self::hold`].
    pub(super) fn release(&mut self, number: u32) {
        let record = self.record_mut(number);
        record.users -= 1;
        if record.users == 0 {
            self.forget(number);
        }
    }

    fn forget(&mut self, number: u32) {
        let Some(record) = self.records[number as usize].take() else { return };
        self.index.remove(record.hash, number);
        for group in record.groups {
            forget_user(&mut self.of_group, group, number);
        }
        if let Some(meter) = record.meter {
            forget_user(&mut self.of_meter, meter, number);
        }
        self.has_unlearned |= record.teaches;
        for entry in record.taught {
            forget_user(&mut self.of_taught, entry, number);
            if !self.of_taught.contains_key(&entry) {
                self.taught_changes.entry(entry).or_insert(true);
            }
        }
        self.free.push(number);
    }

    /// The tables and cookies of which the last list has gone, since this was last asked, that
    /// teaches such entries and wants them deleted with it.
    pub(super) fn take_unlearned(&mut self) -> Vec<(TableId, Cookie)> {
        let changes = std::mem::take(&mut self.taught_changes).into_iter();
        let gone = |entry: &(TableId, Cookie)| !self.of_taught.contains_key(entry);
        let unlearned = |(entry, was_there)| (was_there && gone(&entry)).then_some(entry);
        changes.filter_map(unlearned).collect()
    }

    /// Whether a list that teaches has gone since [`Self::take_has_unlearned`].
    pub(super) fn has_unlearned(&self) -> bool {
        self.has_unlearned
    }

    /// The same, for the last time.
    pub(super) fn take_has_unlearned(&mut self) -> bool {
        std::mem::take(&mut self.has_unlearned)
    }

    /// Number of entries that use a group themselves.
    pub(super) fn group_users(&self, group: GroupId) -> u32 {
        self.users(self.of_group.get(&group))
    }

    /// Number of entries that use a meter.
    pub(super) fn meter_users(&self, meter: MeterId) -> u32 {
        self.users(self.of_meter.get(&meter))
    }

    fn users(&self, numbers: Option<&BTreeSet<u32>>) -> u32 {
        let users = numbers.into_iter().flatten().map(|number| self.record(*number).users);
        users.fold(0, u32::saturating_add)
    }

    /// Whether more than `most` entries use a group themselves, or any group.
    pub(super) fn has_more_group_users(&self, group: GroupId, most: usize) -> bool {
        if group == GroupId::ALL {
            self.has_more_users(self.of_group.values().flatten(), most)
        } else {
            self.has_more_users(self.of_group.get(&group).into_iter().flatten(), most)
        }
    }

    /// Whether more than `most` entries use a meter, or any meter.
    pub(super) fn has_more_meter_users(&self, meter: MeterId, most: usize) -> bool {
        if meter == MeterId::ALL {
            self.has_more_users(self.of_meter.values().flatten(), most)
        } else {
            self.has_more_users(self.of_meter.get(&meter).into_iter().flatten(), most)
        }
    }

    /// No more lists are looked at than it takes to know.
    fn has_more_users<'a>(&self, mut numbers: impl Iterator<Item = &'a u32>, most: usize) -> bool {
        let mut users = 0;
        numbers.any(|number| {
            users += self.record(*number).users as usize;
            users > most
        })
    }

    /// The groups that a list leads to.
    pub(super) fn groups_of(&self, number: u32) -> &[GroupId] {
        &self.record(number).groups
    }

    /// The meter that a list leads to.
    pub(super) fn meter_of(&self, number: u32) -> Option<MeterId> {
        self.record(number).meter
    }

    /// The entries that use a group themselves.
    pub(super) fn with_group(&self, slab: &Slab, group: GroupId) -> Vec<u32> {
        self.entries(slab, self.of_group.get(&group))
    }

    /// The entries that use a meter.
    pub(super) fn with_meter(&self, slab: &Slab, meter: MeterId) -> Vec<u32> {
        self.entries(slab, self.of_meter.get(&meter))
    }

    fn entries(&self, slab: &Slab, numbers: Option<&BTreeSet<u32>>) -> Vec<u32> {
        let mut found = Vec::new();
        for number in numbers.into_iter().flatten() {
            let mut next = self.record(*number).first;
            while next != NONE {
                found.push(next);
                next = slab.get(next).next_user;
            }
        }
        found
    }

    /// Whether a list outputs to the port (clause 6.4: not through a group).
    pub(super) fn outputs_to(&self, number: u32, wanted: PortNo) -> bool {
        actions(&self.record(number).shared.instructions).any(|action| {
            matches!(action, Action::Output { port, .. } | Action::Enqueue { port, .. }
                if *port == wanted)
        })
    }

    /// Whether a list leads to the group.
    pub(super) fn uses_group(&self, number: u32, group: GroupId) -> bool {
        self.record(number).groups.contains(&group)
    }
}

/// The table and cookie of the entries that an action teaches and that go with the last such
/// action.
fn taught_for_good(action: &Action) -> Option<(TableId, Cookie)> {
    let learn = action.learns()?;
    learn.flags.contains(LearnFlags::DELETE_LEARNED).then_some((learn.table, learn.cookie))
}

fn forget_user<K: Ord>(users: &mut BTreeMap<K, BTreeSet<u32>>, key: K, number: u32) {
    if let Some(numbers) = users.get_mut(&key) {
        numbers.remove(&number);
        if numbers.is_empty() {
            users.remove(&key);
        }
    }
}

/// All actions, applied or written, and those inside them; not those of groups.
fn actions(instructions: &[Instruction]) -> impl Iterator<Item = &Action> {
    instructions.iter().flat_map(Instruction::all_actions)
}

fn hash(instructions: &[Instruction]) -> u64 {
    let mut words = MixHasher::default();
    instructions.hash(&mut words);
    words.finish()
}
