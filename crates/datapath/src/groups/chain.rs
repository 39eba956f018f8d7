//! Length of chains of groups: a bucket may lead to another group, and packets follow such a
//! chain only so far.
//!
//! Each group knows its depth, the number of groups on the longest way from it, itself included. An
//! add looks at the groups that it leads to, which must exist; only a modify can change the depths
//! of others, those that lead to it.

use std::collections::BTreeMap;

use openflow::GroupId;
use openflow::group::GroupMod;

use super::{Groups, MAX_CHAIN, forwarded};

/// The depths that a command changes.
pub(super) type Depths = BTreeMap<GroupId, u8>;

impl Groups {
    /// The depths that a group-mod gives, which leads to no loop; none when a chain gets too long.
    pub(super) fn depths_with(&self, asked: &GroupMod) -> Option<Depths> {
        let mut depths = Depths::new();
        let own = self.depth_above(forwarded(&asked.buckets), &depths)?;
        depths.insert(asked.group_id, own);
        if self.get(asked.group_id).is_none_or(|group| group.depth == own) {
            return Some(depths);
        }
        let mut changed = vec![asked.group_id];
        while let Some(id) = changed.pop() {
            for above in self.forwarders.get(&id).into_iter().flatten() {
                let Some(group) = self.get(*above) else { continue };
                let depth = self.depth_above(group.next(), &depths)?;
                if depths.insert(*above, depth).unwrap_or(group.depth) != depth {
                    changed.push(*above);
                }
            }
        }
        Some(depths)
    }

    /// The depth of a group that leads to these.
    fn depth_above(&self, next: impl Iterator<Item = GroupId>, depths: &Depths) -> Option<u8> {
        let known = |id: GroupId| depths.get(&id).copied().or(self.get(id).map(|held| held.depth));
        let depth = 1 + next.filter_map(known).max().unwrap_or(0);
        (depth <= MAX_CHAIN).then_some(depth)
    }

    pub(super) fn set_depths(&mut self, depths: Depths) {
        for (id, depth) in depths {
            if let Some(group) = self.get_mut(id) {
                group.depth = depth;
            }
        }
    }

    /// Notes a group with those that it leads to.
    pub(super) fn link(&mut self, id: GroupId) {
        let Some(group) = self.groups.get(&id) else { return };
        for next in group.next() {
            self.forwarders.entry(next).or_default().insert(id);
        }
    }

    /// Forgets that a group leads to others.
    pub(super) fn unlink(&mut self, id: GroupId) {
        let Some(group) = self.groups.get(&id) else { return };
        for next in group.next() {
            if let Some(forwarders) = self.forwarders.get_mut(&next) {
                forwarders.remove(&id);
                if forwarders.is_empty() {
                    self.forwarders.remove(&next);
                }
            }
        }
    }
}
