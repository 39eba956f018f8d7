//! Groups that are deleted in pieces: see [`PendingDelete`].

use std::sync::Arc;

use openflow::{Error, GroupId};

use super::{Group, Groups};
use crate::pending_delete::PendingDelete;

impl Groups {
    /// Whether entries and buckets may name a group: it is there, and no delete of it is under way.
    pub(crate) fn is_nameable(&self, id: GroupId) -> bool {
        self.get(id).is_some_and(|group| !self.deletes.mean(id, group.seq))
    }

    /// Begins a delete of a group or of all. Those that lead to a group must go before it.
    ///
    /// # Errors
    /// `OFPGMFC_CHAINED_GROUP`.
    pub(crate) fn begin_delete(
        &mut self,
        id: GroupId,
    ) -> Result<Arc<PendingDelete<GroupId>>, Error> {
        if self.forwarders.contains_key(&id) {
            return Err(Error::GroupModChainedGroup);
        }
        Ok(self.deletes.begin(Some(id).filter(|id| *id != GroupId::ALL), self.next_seq))
    }

    /// Whether a delete selects a group.
    pub(crate) fn is_selected(&self, delete: &PendingDelete<GroupId>, id: GroupId) -> bool {
        self.get(id).is_some_and(|group| delete.selects(id, group.seq))
    }

    /// Looks at up to `most` groups after `after` and removes those that a delete selects, no
    /// entry of which may be left; these, and the last that was looked at, or none at the end.
    pub(crate) fn delete_some(
        &mut self,
        delete: &PendingDelete<GroupId>,
        after: Option<GroupId>,
        groups_max: usize,
    ) -> (Vec<GroupId>, Option<GroupId>) {
        let seq = |group: &Group| group.seq;
        let (gone, last) = delete.selected_in(&self.groups, seq, after, groups_max);
        for id in &gone {
            self.unlink(*id);
            self.groups.remove(id);
        }
        (gone, last)
    }
}
