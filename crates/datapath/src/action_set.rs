//! The action set: at most one action of a type, executed in the order of clause 5.10.
//!
//! One set goes with a packet through the tables, and each bucket of a group is one. The set only
//! keeps and orders actions; it must never execute them.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use openflow::action::{InSet, SetStep};
use openflow::{Action, Cookie, TableId};

/// The flow entry that put an action where it is; a packet-in names it to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    /// The entry's table.
    pub(crate) table_id: TableId,
    /// The entry's cookie.
    pub(crate) cookie: Cookie,
    /// Whether it is a table-miss entry.
    pub(crate) is_miss: bool,
    /// The entry itself.
    pub(crate) entry: EntryRef,
}

/// The number of an entry, if there is one: that of a forwarder, or its age in the reference. Two
/// are equal whatever their numbers, so that what entries do in common is one program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryRef(pub(crate) Option<u64>);

impl EntryRef {
    pub(crate) const NONE: Self = Self(None);
}

impl PartialEq for EntryRef {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for EntryRef {}

impl Hash for EntryRef {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// The flags of a TCP packet that ends its connection.
pub(crate) const FIN_OR_RST: u128 = 0b101;

/// Timeouts that an entry is to have at most, in seconds; 0 leaves that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FinTimeouts {
    pub(crate) idle_s: u16,
    pub(crate) hard_s: u16,
}

impl FinTimeouts {
    /// The idle and the hard timeout of an entry that had these.
    pub(crate) fn of(self, idle_s: u16, hard_s: u16) -> (u16, u16) {
        let at_most = |has: u16, most: u16| match (has, most) {
            (has, 0) => has,
            (0, most) => most,
            (has, most) => has.min(most),
        };
        (at_most(idle_s, self.idle_s), at_most(hard_s, self.hard_s))
    }
}

impl Origin {
    /// No entry: a packet-out, whose packet-ins carry the cookie that the specification gives for
    /// "unknown", and the first table, as Open vSwitch's do.
    pub(crate) const NONE: Self = Self {
        table_id: TableId(0),
        cookie: Cookie(u64::MAX),
        is_miss: false,
        entry: EntryRef::NONE,
    };
}

/// A step of the execution and a place in it. Writes of fields come after the places that rows
/// have, in the order of their numbers: one may read what another has written.
type Rank = (SetStep, u8, usize);

/// The place of writes of fields.
const FIELDS: u8 = u8::MAX;

/// An action set.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActionSet {
    slots: BTreeMap<Rank, (Action, Origin)>,
    /// Number of the actions that were written.
    written: usize,
}

impl ActionSet {
    /// The set of a list that no flow entry wrote: a bucket's.
    pub(crate) fn of(actions: &[Action]) -> Self {
        let mut set = Self::default();
        set.write(actions, Origin::NONE);
        set
    }

    /// Merges actions into the set; of each type the last one stays.
    pub(crate) fn write(&mut self, actions: &[Action], origin: Origin) {
        for action in actions {
            self.written += 1;
            if matches!(action.kind().row().in_set, InSet::PerField(_)) {
                let is_it = |held: &Action| {
                    held.kind() == action.kind() && held.writes() == action.writes()
                };
                self.slots.retain(|_, (held, _)| !is_it(held));
            }
            if let Some(slot) = slot(action, self.written) {
                self.slots.insert(slot, (action.clone(), origin));
            }
        }
    }

    /// Empties the set.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
    }

    /// The actions in the order of execution. A group takes precedence over an output, and either
    /// over a resubmit; those are then left out.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (&Action, Origin)> {
        let mut steps = self.slots.keys().map(|(step, ..)| *step);
        let last = steps.find(|step| *step >= SetStep::Group).unwrap_or(SetStep::Group);
        self.slots
            .iter()
            .filter(move |(slot, _)| slot.0 <= last)
            .map(|(_, (action, origin))| (action, *origin))
    }
}

/// `actions` as a set would execute them.
pub(crate) fn in_set_order(actions: &[Action]) -> Vec<Action> {
    ActionSet::of(actions).in_order().map(|(action, _)| action.clone()).collect()
}

/// Place of an action in the order; `None` for one that no set can hold.
///
/// The actions of 1.0 and 1.1 come here in buckets only; they stand where their successors do.
fn slot(action: &Action, written: usize) -> Option<Rank> {
    match action.kind().row().in_set {
        InSet::Never => None,
        InSet::At(step, place) => Some((step, place, 0)),
        InSet::PerField(step) | InSet::Each(step) => Some((step, FIELDS, written)),
    }
}

#[cfg(test)]
mod tests {
    use super::{ActionSet, Origin, in_set_order};
    use openflow::{Action, Field, GroupId, PortNo, QueueId};

    #[test]
    fn the_order_is_that_of_clause_5_10_whatever_was_written_first() {
        let written = [
            Action::output(PortNo(1)),
            Action::SetQueue(QueueId(3)),
            Action::set_field(Field::EthDst, 1),
            Action::DecNwTtl,
            Action::CopyTtlOut,
            Action::PushVlan(0x8100),
            Action::PushPbb(0x88e7),
            Action::PushMpls(0x8847),
            Action::PopVlan,
            Action::CopyTtlIn,
        ];
        let reversed: Vec<Action> = written.iter().rev().cloned().collect();
        assert_eq!(in_set_order(&written), reversed);
        assert_eq!(in_set_order(&reversed), reversed);
    }

    #[test]
    fn one_of_a_type_one_set_field_of_a_field_and_the_last_stays() {
        let first = Action::set_field(Field::EthDst, 1);
        let other = Action::set_field(Field::EthSrc, 2);
        let second = Action::set_field(Field::EthDst, 3);
        let set = in_set_order(&[first, other.clone(), second.clone()]);
        assert_eq!(set, [other, second]);
    }

    #[test]
    fn a_group_beats_an_output_and_clearing_leaves_nothing() {
        let group = Action::Group(GroupId(7));
        let mut set = ActionSet::of(&[Action::output(PortNo(1)), group.clone()]);
        assert_eq!(set.in_order().collect::<Vec<_>>(), [(&group, Origin::NONE)]);
        set.clear();
        assert_eq!(set.in_order().count(), 0);
    }
}
