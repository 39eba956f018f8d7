//! A packet in a group: a copy for each chosen bucket, which runs as an action set (clause 5.6).
//!
//! The packet itself goes on as it came: what buckets do to their copies is not seen behind the
//! group action.

use openflow::GroupId;
use packet::Layout;

use super::effect::Effect;
use super::run::{PacketState, Run};
use crate::action_set::{ActionSet, Origin};
use crate::counter::DropReason;
use crate::groups::MAX_CHAIN;

/// The most copies of one packet that groups may make in all.
const COPIES_MAX: usize = 4_096;

impl Run<'_> {
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
}
