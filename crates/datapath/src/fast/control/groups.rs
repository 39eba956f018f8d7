//! Group-mods (clause 6.5) and the statistics of groups.
//!
//! The rules are those of [`crate::groups`]; the counters are the forwarders'.

use std::sync::Arc;

use openflow::flow::FlowRemovedReason;
use openflow::group::{
    BucketCounter, GroupDesc, GroupFeatures, GroupMod, GroupModCommand, GroupStats,
};
use openflow::{Error, GroupId, Version};

use super::sweep::{AT_ONCE, CommandProgress, SweptCommand};
use super::{CommandCounts, Control};
use crate::fast::op::{Change, GroupReplica};
use crate::fast::shared::GroupCounters;
use crate::features;
use crate::memory::{MemoryNeed, buckets_size};
use crate::pending_delete::PendingDelete;
use crate::time::Nanos;

impl Control {
    /// Changes a group (clause 6.5); a deleted group takes the entries that use it along.
    ///
    /// # Errors
    /// Those of clause 6.5, found before anything is changed.
    pub fn group_mod(&mut self, group_mod: &GroupMod, now: Nanos) -> Result<CommandCounts, Error> {
        let whole = self.groups.whole(group_mod)?.into_owned();
        let group_mod = &whole;
        self.check_group_memory(group_mod)?;
        self.note_groups();
        let gone = self.groups.apply(group_mod, &self.config, now)?;
        // The entries first: no packet may be led to a group that is not there.
        let with_group =
            |id: &GroupId| self.store.instruction_lists.with_group(&self.store.slab, *id);
        let users = gone.iter().flat_map(with_group).collect();
        let done = self.remove_users(users, FlowRemovedReason::GroupDelete, now);
        for id in &gone {
            self.group_counters.remove(id);
            self.emit_op(Change::Group { id: *id, group: None });
        }
        if gone.is_empty() {
            self.emit_group(group_mod.group_id);
        }
        Ok(done)
    }

    /// Changes a group as [`Self::group_mod`] does, or begins with it when that may mean many
    /// groups or entries.
    ///
    /// # Errors
    /// Those of [`Self::group_mod`].
    pub fn begin_group_mod(
        &mut self,
        group_mod: &GroupMod,
        now: Nanos,
    ) -> Result<CommandProgress, Error> {
        let (id, lists) = (group_mod.group_id, &self.store.instruction_lists);
        let means_many = id == GroupId::ALL && self.groups.len() > AT_ONCE
            || lists.has_more_group_users(id, AT_ONCE);
        if group_mod.command != GroupModCommand::Delete || !means_many {
            return self.group_mod(group_mod, now).map(CommandProgress::Done);
        }
        self.begin_group_delete(id)
    }

    pub(super) fn begin_group_delete(&mut self, id: GroupId) -> Result<CommandProgress, Error> {
        let delete = self.groups.begin_delete(id)?;
        Ok(self.new_sweep(SweptCommand::GroupDelete { delete, after: None }))
    }

    /// Deletes groups whose entries are gone, looking at up to `most` after `after`; the last
    /// that was looked at, or none at the end.
    pub(super) fn delete_some_groups(
        &mut self,
        delete: &PendingDelete<GroupId>,
        after: Option<GroupId>,
        groups_max: usize,
    ) -> Option<GroupId> {
        let (gone, last) = self.groups.delete_some(delete, after, groups_max);
        for id in gone {
            self.group_counters.remove(&id);
            self.emit_op(Change::Group { id, group: None });
        }
        last
    }

    /// A modify may need room for its buckets, however few it had.
    fn check_group_memory(&mut self, group_mod: &GroupMod) -> Result<(), Error> {
        let held = self.groups.len();
        let bytes = buckets_size(&group_mod.buckets);
        let is_known = self.groups.get(group_mod.group_id).is_some();
        match group_mod.command {
            GroupModCommand::Add | GroupModCommand::AddOrModify if !is_known => {
                let need = self.groups_peak.need(held);
                let allows = self.memory_allows(need, bytes);
                if allows { Ok(()) } else { Err(Error::GroupModOutOfGroups) }
            }
            GroupModCommand::Modify | GroupModCommand::AddOrModify
                if is_known && !group_mod.buckets.is_empty() =>
            {
                let allows = self.memory_allows(MemoryNeed::Reused, bytes);
                if allows { Ok(()) } else { Err(Error::GroupModOutOfBuckets) }
            }
            GroupModCommand::Add
            | GroupModCommand::Modify
            | GroupModCommand::AddOrModify
            | GroupModCommand::InsertBucket
            | GroupModCommand::RemoveBucket
            | GroupModCommand::Delete
            | GroupModCommand::Unknown(_) => Ok(()),
        }
    }

    /// Emits the op of a group that was added or modified: the group's own counters stay, those of
    /// its buckets start at zero.
    fn emit_group(&mut self, id: GroupId) {
        let Some(group) = self.groups.get(id) else { return };
        let buckets = group.buckets().len();
        let counters = match self.group_counters.get(&id) {
            Some(counters) => counters.with_buckets(buckets),
            None => GroupCounters::new(self.shared.forwarders(), buckets),
        };
        let counters = Arc::new(counters);
        let state = GroupReplica { group: group.clone(), counters: Arc::clone(&counters) };
        self.group_counters.insert(id, counters);
        self.emit_op(Change::Group { id, group: Some(Arc::new(state)) });
    }

    /// Counters of a group, or of all ([`GroupId::ALL`]); none for a group that does not exist.
    #[must_use]
    pub fn group_stats(&self, group: GroupId, now: Nanos) -> Vec<GroupStats> {
        let users = |id| self.store.instruction_lists.group_users(id);
        let mut stats = self.groups.stats(group, now, &users);
        for stats in &mut stats {
            let Some(counters) = self.group_counters.get(&stats.group_id) else { continue };
            (stats.packet_count, stats.byte_count) = counters.sum();
            for (index, bucket) in stats.buckets.iter_mut().enumerate() {
                let (packet_count, byte_count) = counters.bucket_sum(index);
                *bucket = BucketCounter { packet_count, byte_count };
            }
        }
        stats
    }

    /// All groups' descriptions, by number.
    #[must_use]
    pub fn group_desc(&self) -> Vec<GroupDesc> {
        self.groups.descs()
    }

    /// Features of groups.
    #[must_use]
    pub fn group_features(&self, version: Version) -> GroupFeatures {
        features::group_features(&self.config, version)
    }
}
