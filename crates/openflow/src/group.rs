//! Groups as messages speak of them (clauses 7.3.4.3, 7.3.5.7 to 7.3.5.9).

use crate::action::Action;
use crate::field::Field;
use crate::id::{BucketId, GroupId, PortNo};
use crate::numbered::numbered;
use std::collections::BTreeSet;

numbered! {
    /// Command of a group-mod.
    pub enum GroupModCommand: u16 {
        /// Add a group.
        Add = 0 => "ADD",
        /// Replace a group's type and buckets.
        Modify = 1 => "MOD",
        /// Delete a group, or all of them.
        Delete = 2 => "DEL",
        /// Insert buckets into a group.
        InsertBucket = 3 => "INSERT_BUCKET" since V1_5,
        /// Remove buckets from a group.
        RemoveBucket = 5 => "REMOVE_BUCKET" since V1_5,
        /// Add a group, or replace it where it is there: an extension of Open vSwitch's.
        AddOrModify = 0x8000 => "ADD_OR_MOD",
    }
}

numbered! {
    /// Use that a group makes of its buckets.
    pub enum GroupType: u8 {
        /// Every bucket gets a copy.
        All = 0 => "all",
        /// One bucket by weight.
        Select = 1 => "select",
        /// The only bucket.
        Indirect = 2 => "indirect",
        /// The first live bucket.
        FastFailover = 3 => "fast_failover",
    }
}

impl GroupType {
    /// The weight of a bucket that names none: equal shares in a select group (clause 5.6.1). Other
    /// types have no weights.
    #[must_use]
    pub const fn default_weight(self) -> u16 {
        if matches!(self, Self::Select) { 1 } else { 0 }
    }
}

bitflags::bitflags! {
    /// Capabilities of a switch's groups (`OFPGFC_*`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct GroupCapabilities: u32 {
        /// Weights of select groups.
        const SELECT_WEIGHT = 1;
        /// Liveness in select groups.
        const SELECT_LIVENESS = 1 << 1;
        /// Groups in buckets.
        const CHAINING = 1 << 2;
        /// Loops are refused.
        const CHAINING_CHECKS = 1 << 3;
        const _ = !0;
    }
}

/// A bucket: actions that run as an action set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Number in its group, since 1.5; one without has that of [`bucket_ids`].
    pub bucket_id: Option<BucketId>,
    /// Share in a select group.
    pub weight: u16,
    /// Port that decides the bucket's liveness; [`PortNo::ANY`] for none.
    pub watch_port: PortNo,
    /// Group that decides the bucket's liveness; [`GroupId::ANY`] for none.
    pub watch_group: GroupId,
    /// The actions.
    pub actions: Vec<Action>,
}

/// The numbers of a group's buckets: that of one without is the lowest that no other has, which is
/// its place where none has one.
pub fn bucket_ids(buckets: &[Bucket]) -> impl Iterator<Item = BucketId> {
    let taken: BTreeSet<BucketId> = buckets.iter().filter_map(|bucket| bucket.bucket_id).collect();
    let mut free = (0..).map(BucketId).filter(move |id| !taken.contains(id));
    buckets.iter().map_while(move |bucket| bucket.bucket_id.or_else(|| free.next()))
}

/// The ways in which a select group may choose its buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SelectionMethod {
    /// By a hash of the named fields; where none is named, of those that make a flow.
    Hash,
    /// By a hash of the fields that make a flow.
    DpHash,
}

impl SelectionMethod {
    /// Every method.
    pub const ALL: [Self; 2] = [Self::Hash, Self::DpHash];

    /// Its name, in text and on the wire.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::DpHash => "dp_hash",
        }
    }

    /// The method of a name.
    #[must_use]
    pub fn from_text(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.text() == name)
    }
}

/// The choice of a select group's bucket: Netronome's property of groups, since 1.5.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    /// The method.
    pub method: SelectionMethod,
    /// A number that makes the choice another one than that of other groups.
    pub param: u64,
    /// The fields that are hashed, each with its bits; of [`SelectionMethod::Hash`] alone.
    pub fields: Vec<(Field, u128)>,
}

/// A command on a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMod {
    /// The command.
    pub command: GroupModCommand,
    /// The type that the group gets.
    pub group_type: GroupType,
    /// The group; [`GroupId::ALL`] for deletes only.
    pub group_id: GroupId,
    /// The bucket after which others are inserted, or that is removed; all of them by default.
    pub command_bucket_id: Option<BucketId>,
    /// The buckets that it gets.
    pub buckets: Vec<Bucket>,
    /// The choice among them in a select group; none where the switch may choose as it likes.
    pub selection: Option<Selection>,
}

impl Default for GroupMod {
    /// The add of a group of number 0 that has no buckets.
    fn default() -> Self {
        Self {
            command: GroupModCommand::Add,
            group_type: GroupType::All,
            group_id: GroupId(0),
            command_bucket_id: None,
            buckets: Vec::new(),
            selection: None,
        }
    }
}

/// One group's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDesc {
    /// Its type.
    pub group_type: GroupType,
    /// The group.
    pub group_id: GroupId,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
    /// The choice among them; replies have it since 1.5.
    pub selection: Option<Selection>,
}

impl Default for GroupDesc {
    /// A group of number 0 that has no buckets.
    fn default() -> Self {
        let (group_type, group_id) = (GroupType::All, GroupId(0));
        Self { group_type, group_id, buckets: Vec::new(), selection: None }
    }
}

/// One group's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStats {
    /// The group.
    pub group_id: GroupId,
    /// Flow entries and groups that use it directly.
    pub ref_count: u32,
    /// Packets.
    pub packet_count: u64,
    /// Bytes.
    pub byte_count: u64,
    /// Whole seconds that it has lived.
    pub duration_s: u32,
    /// Nanoseconds beyond the whole seconds.
    pub duration_ns: u32,
    /// Packets and bytes of each bucket.
    pub buckets: Vec<BucketCounter>,
}

/// One bucket's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketCounter {
    /// Packets.
    pub packet_count: u64,
    /// Bytes.
    pub byte_count: u64,
}

/// Features of a switch's groups; the arrays are in the order all, select, indirect, fast
/// failover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupFeatures {
    /// Bit n: type n is supported.
    pub types: u32,
    /// Capabilities.
    pub capabilities: GroupCapabilities,
    /// Most groups of each type.
    pub max_groups: [u32; 4],
    /// Bit n: action type n may stand in a bucket.
    pub actions: [u32; 4],
}
