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

/// Copies that groups may make of one packet. Groups lead to no loop, but chained groups of several
/// buckets could ask for more copies than there are atoms.
const MAX_COPIES: usize = 4_096;

/// How many groups may lead from one to the next. Each is a call inside the other's, and a
/// controller must not be able to exhaust the stack.
const MAX_CHAIN: usize = 64;

impl Walk<'_> {
    /// Takes a packet through a group.
    pub(super) fn group(&mut self, packet: &Packet, id: GroupId, origin: Origin) {
        let dp = self.dp;
        // A group that entries use exists: deleting it takes them along.
        let Some(group) = dp.groups().get(id) else { return self.drop(DropReason::NoBucket) };
        if self.chained >= MAX_CHAIN {
            return self.drop(DropReason::ChainTooLong);
        }
        let bytes = packet.bytes();
        self.effect(Effect::Group { id, bytes });
        if group.buckets().is_empty() {
            return self.note(|| format!("group {}: no buckets, nothing changes", id.0));
        }
        let chosen = dp.groups().chosen(id, &packet.key(), packet.is_fragment(), dp.ports());
        if chosen.is_empty() {
            return self.drop(DropReason::NoLiveBucket);
        }
        for index in chosen {
            let Some(bucket) = group.buckets().get(index) else { continue };
            if self.copies >= MAX_COPIES {
                return self.drop(DropReason::TooManyCopies);
            }
            self.copies += 1;
            self.note(|| format!("group {} ({}): bucket {index}", id.0, name(group.group_type())));
            self.effect(Effect::Bucket { id, index, bytes });
            let mut copy = packet.clone();
            let set = ActionSet::of(&bucket.actions);
            self.chained += 1;
            // What becomes of the copy behind its bucket concerns nobody any more.
            let _done: Goes = self.deeper(|walk| walk.run_set(&mut copy, &set, Some(origin)));
            self.chained -= 1;
        }
    }
}

fn name(group_type: GroupType) -> &'static str {
    group_type.text()
}
