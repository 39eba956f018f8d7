//! A packet in a group: a copy for each chosen bucket, which runs as an action set (clause 5.6).
//!
//! The packet itself goes on as it came: what buckets do to their copies is not seen behind the
//! group action.

use openflow::GroupId;
use openflow::group::GroupType;

use super::effect::Effect;
use super::walk::{Goes, Packet, Walk};
use crate::action_set::{ActionSet, Origin};
use crate::counter::DropReason;

/// Groups that one packet may run through. Groups lead to no loop, but chained groups of several
/// buckets could ask for more copies than there are atoms.
const MAX_GROUP_RUNS: usize = 4_096;

impl Walk<'_> {
    /// Takes a packet through a group.
    pub(super) fn group(&mut self, packet: &Packet, id: GroupId, origin: Origin) {
        let dp = self.dp;
        // A group that entries use exists: deleting it takes them along.
        let Some(group) = dp.groups.get(id) else { return self.drop(DropReason::NoBucket) };
        if self.group_runs >= MAX_GROUP_RUNS {
            return self.drop(DropReason::TooManyCopies);
        }
        self.group_runs += 1;
        let bytes = packet.bytes();
        self.effect(Effect::Group { id, bytes });
        if group.buckets().is_empty() {
            return self.note(|| format!("group {}: no buckets, nothing changes", id.0));
        }
        let chosen = dp.groups.chosen(id, &packet.key(), packet.is_fragment(), &dp.ports);
        if chosen.is_empty() {
            return self.drop(DropReason::NoLiveBucket);
        }
        for index in chosen {
            let Some(bucket) = group.buckets().get(index) else { continue };
            self.note(|| format!("group {} ({}): bucket {index}", id.0, name(group.group_type())));
            self.effect(Effect::Bucket { id, index, bytes });
            let mut copy = packet.clone();
            let set = ActionSet::of(&bucket.actions);
            // What becomes of the copy behind its bucket concerns nobody any more.
            let _done: Goes = self.deeper(|walk| walk.run_set(&mut copy, &set, Some(origin)));
        }
    }
}

fn name(group_type: GroupType) -> &'static str {
    group_type.text()
}
