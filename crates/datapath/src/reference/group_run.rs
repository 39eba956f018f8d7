//! Copies of a packet: in a group one for each chosen bucket, which runs as an action set (clause
//! 5.6), and one for a clone (Open vSwitch, ovs-actions(7)).
//!
//! The packet itself goes on as it came: what is done to the copies is not seen behind the action.

use openflow::text::format_actions;
use openflow::{Action, GroupId};
use packet::Layout;

use super::effect::Effect;
use super::run::{PacketState, Run, Todo};
use crate::action_set::{ActionSet, Origin};
use crate::counter::DropReason;
use crate::groups::MAX_CHAIN;

/// The most copies of one packet that groups and clones may make in all.
const COPIES_MAX: usize = 4_096;

impl<'a> Run<'a> {
    /// A packet comes to a group; `by` is the entry that sent it there.
    pub(super) fn group(&mut self, packet: &PacketState, id: GroupId, by: Origin) {
        let dp = self.dp;
        let Some(group) = dp.groups.get(id) else { return self.drop(DropReason::NoBucket) };
        if self.groups_deep == usize::from(MAX_CHAIN) && self.place.resubmits_deep > 0 {
            return self.withdraw(DropReason::TooManyResubmits);
        }
        if self.groups_deep == usize::from(MAX_CHAIN) {
            return self.drop(DropReason::ChainTooLong);
        }
        let bytes = packet.bytes();
        self.effect(Effect::Group { id, bytes });
        if group.buckets().is_empty() {
            return self.step(|| format!("group {}: no buckets, nothing changes", id.0));
        }
        let layout = Layout::of(packet.frame.bytes());
        let is_fragment = layout.is_some_and(|layout| layout.fragment);
        let buckets = dp.groups.chosen(id, &packet.key(), is_fragment, &dp.ports);
        if buckets.is_empty() {
            self.step(|| dp.groups.unused(id, &dp.ports));
            return self.drop(DropReason::NoLiveBucket);
        }
        for index in buckets {
            if self.copies == COPIES_MAX {
                return self.drop(DropReason::TooManyCopies);
            }
            self.copies += 1;
            let kind = group.group_type().text();
            self.step(|| format!("group {} ({kind}): bucket {index}", id.0));
            self.effect(Effect::Bucket { id, index, bytes });
            let set = ActionSet::of(&group.buckets()[index].actions);
            self.groups_deep += 1;
            self.bucket(packet, set.in_order().map(|(action, _)| (action, by)));
            self.groups_deep -= 1;
            if self.is_withdrawn {
                return;
            }
        }
    }
    /// A copy of the packet goes through a list, and then through the action set as it is, unless
    /// that is carried out already. What goes on is the packet itself, unless the list exits.
    pub(super) fn run_clone(
        &mut self,
        packet: PacketState,
        action: &Action,
        list: &'a [Action],
        by: Origin,
    ) -> Option<PacketState> {
        self.step(|| format_actions(std::slice::from_ref(action)));
        self.count_actions(1);
        if !self.is_withdrawn && self.groups_deep == usize::from(MAX_CHAIN) {
            self.withdraw(DropReason::TooManyResubmits);
        }
        if self.is_withdrawn {
            return None;
        }
        if self.copies == COPIES_MAX {
            self.drop(DropReason::TooManyCopies);
            return Some(packet);
        }
        self.copies += 1;
        self.groups_deep += 1;
        let (set, place, until) = (self.set.clone(), self.place, self.todo.len());
        self.place.steps_deep += 1;
        self.todo.extend(list.iter().rev().map(|inner| Todo::Action(inner, by)));
        let copy = self.work(packet.clone(), until);
        if copy.is_none() {
            self.leave(until, true);
        }
        self.place = place;
        let has_set = !self.is_behind_tables && self.set.in_order().next().is_some();
        if let Some(copy) = copy.filter(|_| has_set) {
            self.place.steps_deep += 1;
            self.action_set(copy);
        }
        self.end_pause(false);
        (self.set, self.place) = (set, place);
        self.groups_deep -= 1;
        (!self.is_withdrawn && !self.has_exited).then_some(packet)
    }
}
