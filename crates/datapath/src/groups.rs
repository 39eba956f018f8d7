//! Groups: their table, the rules of clause 6.5, and which buckets a packet goes to.
//!
//! Watched ports and groups decide over a bucket in every type of group. In a fast failover group a
//! bucket that watches nothing is not live and never used. In the other types a bucket that watches
//! nothing is always used, and one that watches is used only while it is live. A group must never
//! lead back to itself, neither by its actions nor by what it watches, nor to a longer chain than
//! packets follow.

mod chain;
mod delete;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use openflow::group::{
    Bucket, BucketCounter, GroupDesc, GroupMod, GroupModCommand, GroupStats, GroupType, Selection,
    bucket_ids,
};
use openflow::text::format_actions;
use openflow::{Action, BucketId, Error, Field, GroupId, PortNo};
use packet::FlowKey;

use self::chain::Depths;
use crate::config::DatapathConfig;
use crate::known_fields::KnownFields;
use crate::pending_delete::PendingDeletes;
use crate::ports::Ports;
use crate::select::{FLOW_FIELDS, choose, flow_hash, mix, selection_hash};
use crate::time::Nanos;
use crate::validate::{ActionContext, Existing, check_actions};

/// Most groups of a chain: as many as packets follow, as each is a call inside the other's.
pub(crate) const MAX_CHAIN: u8 = 64;

/// One group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    group_type: GroupType,
    buckets: Vec<Bucket>,
    /// Facts that the choice of a bucket follows from in a select group.
    selection: Option<Selection>,
    /// Identity of each bucket, whatever its place in the list.
    identities: Vec<u64>,
    since: Nanos,
    packets: u64,
    bytes: u64,
    bucket_counters: Vec<BucketCounter>,
    /// Number of groups that a packet may pass from this one on, itself included.
    depth: u8,
    /// Age: groups that came earlier have lower ones.
    seq: u64,
}

impl Group {
    fn new(asked: &GroupMod, now: Nanos, seq: u64) -> Self {
        let mut group = Self {
            group_type: asked.group_type,
            buckets: Vec::new(),
            selection: None,
            identities: Vec::new(),
            since: now,
            packets: 0,
            bytes: 0,
            bucket_counters: Vec::new(),
            depth: 1,
            seq,
        };
        group.configure(asked);
        group
    }

    /// Takes type and buckets; the bucket counters begin anew, the group's own stay.
    fn configure(&mut self, asked: &GroupMod) {
        self.group_type = asked.group_type;
        self.buckets.clone_from(&asked.buckets);
        self.selection.clone_from(&asked.selection);
        self.identities = identities(&asked.buckets);
        self.bucket_counters = vec![BucketCounter::default(); asked.buckets.len()];
    }

    pub(crate) fn group_type(&self) -> GroupType {
        self.group_type
    }

    pub(crate) fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    pub(crate) fn selection(&self) -> Option<&Selection> {
        self.selection.as_ref()
    }

    /// Its beginning.
    pub(crate) fn since(&self) -> Nanos {
        self.since
    }

    pub(crate) fn count(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }

    pub(crate) fn count_bucket(&mut self, index: usize, bytes: u64) {
        if let Some(counter) = self.bucket_counters.get_mut(index) {
            counter.packet_count += 1;
            counter.byte_count += bytes;
        }
    }

    /// The groups that its buckets lead to.
    fn next(&self) -> impl Iterator<Item = GroupId> {
        forwarded(&self.buckets)
    }
}

/// The buckets, each with its number.
fn numbered(buckets: &[Bucket]) -> Vec<Bucket> {
    let numbered =
        |(id, bucket): (BucketId, &Bucket)| Bucket { bucket_id: Some(id), ..bucket.clone() };
    bucket_ids(buckets).zip(buckets).map(numbered).collect()
}

/// The place of the bucket that a command names; none for the first or last of none.
///
/// # Errors
/// `OFPGMFC_UNKNOWN_BUCKET`.
fn bucket_place(buckets: &[Bucket], id: BucketId) -> Result<Option<usize>, Error> {
    if id == BucketId::FIRST || id == BucketId::LAST {
        let last = buckets.len().checked_sub(1);
        return Ok(if id == BucketId::FIRST { last.map(|_| 0) } else { last });
    }
    let place = buckets.iter().position(|bucket| bucket.bucket_id == Some(id));
    place.map(Some).ok_or(Error::GroupModUnknownBucket)
}

/// Inserts buckets before the first, after the last, or after the one of a number.
///
/// # Errors
/// `OFPGMFC_BUCKET_EXISTS` for a number that the group has, and those of [`bucket_place`].
fn insert(buckets: &mut Vec<Bucket>, at: BucketId, new: Vec<Bucket>) -> Result<(), Error> {
    let place = match at {
        BucketId::FIRST => 0,
        _ => bucket_place(buckets, at)?.map_or(0, |place| place + 1),
    };
    let has = |id| buckets.iter().any(|bucket| bucket.bucket_id == id);
    if new.iter().any(|bucket| has(bucket.bucket_id)) {
        return Err(Error::GroupModBucketExists);
    }
    buckets.splice(place..place, new);
    Ok(())
}

/// The groups that a list of buckets leads to.
fn forwarded(buckets: &[Bucket]) -> impl Iterator<Item = GroupId> {
    buckets.iter().flat_map(|bucket| bucket.actions.iter().filter_map(group_of))
}

/// A bucket is its actions and, among equal ones, its turn. So an edit of the list leaves the flows
/// of the other buckets where they are.
fn identities(buckets: &[Bucket]) -> Vec<u64> {
    let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
    let identity = |bucket: &Bucket| {
        let text = format_actions(&bucket.actions);
        let hash = text.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
        let turn = seen.entry(hash).or_insert(0);
        *turn += 1;
        mix(hash ^ *turn)
    };
    buckets.iter().map(identity).collect()
}

/// The groups that a list of buckets leads to or watches.
fn edges(buckets: &[Bucket]) -> impl Iterator<Item = GroupId> {
    buckets.iter().flat_map(|bucket| {
        let watched = Some(bucket.watch_group).filter(|id| *id != GroupId::ANY);
        bucket.actions.iter().filter_map(group_of).chain(watched)
    })
}

/// The group that an action leads to.
pub(crate) fn group_of(action: &Action) -> Option<GroupId> {
    if let Action::Group(id) = action { Some(*id) } else { None }
}

/// All groups, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    groups: BTreeMap<GroupId, Group>,
    /// The groups that lead to a group, where [`Groups::apply`] makes them.
    forwarders: BTreeMap<GroupId, BTreeSet<GroupId>>,
    /// Those that are done in pieces.
    deletes: PendingDeletes<GroupId>,
    /// The age of the next group.
    next_seq: u64,
}

impl Groups {
    pub(crate) fn get(&self, id: GroupId) -> Option<&Group> {
        self.groups.get(&id)
    }

    /// All groups.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }

    /// Number of groups.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    pub(crate) fn get_mut(&mut self, id: GroupId) -> Option<&mut Group> {
        self.groups.get_mut(&id)
    }

    /// Takes a group as another datapath's command has made it, or takes it away.
    pub(crate) fn put(&mut self, id: GroupId, group: Option<Group>) {
        match group {
            Some(group) => drop(self.groups.insert(id, group)),
            None => drop(self.groups.remove(&id)),
        }
    }

    /// The groups that choose one of several buckets.
    fn choosing(&self) -> impl Iterator<Item = &Group> {
        let chooses =
            |group: &&Group| group.group_type == GroupType::Select && group.buckets.len() > 1;
        self.groups.values().filter(chooses)
    }

    /// Whether some group chooses one of several buckets.
    pub(crate) fn has_select(&self) -> bool {
        self.choosing().next().is_some()
    }

    /// The fields of packets that such choices follow from.
    pub(crate) fn select_fields(&self) -> BTreeSet<Field> {
        let named =
            |group: &&Group| group.selection.as_ref().is_some_and(|it| !it.fields.is_empty());
        let mut fields = BTreeSet::new();
        if self.choosing().any(|group| !named(&group)) {
            fields.extend(FLOW_FIELDS);
        }
        let selections = self.choosing().filter_map(|group| group.selection.as_ref());
        fields.extend(selections.flat_map(|it| it.fields.iter().map(|(field, _)| *field)));
        fields.retain(|field| !field.row().place.is_beside_packet());
        fields
    }

    /// The command on whole groups that does the same as an insert or remove of buckets: a modify
    /// to the buckets that the group has then. Others are themselves.
    ///
    /// # Errors
    /// `OFPGMFC_UNKNOWN_GROUP`, and those of [`bucket_place`] and [`insert`].
    pub(crate) fn whole<'a>(&self, asked: &'a GroupMod) -> Result<Cow<'a, GroupMod>, Error> {
        let inserts = asked.command == GroupModCommand::InsertBucket;
        if !inserts && asked.command != GroupModCommand::RemoveBucket {
            return Ok(Cow::Borrowed(asked));
        }
        let group = self.get(asked.group_id).filter(|_| self.is_nameable(asked.group_id));
        let group = group.ok_or(Error::GroupModUnknownGroup)?;
        let mut buckets = numbered(&group.buckets);
        let at = asked.command_bucket_id.unwrap_or(BucketId::ALL);
        if inserts {
            insert(&mut buckets, at, numbered(&asked.buckets))?;
        } else if !asked.buckets.is_empty() {
            return Err(Error::GroupModBadBucket);
        } else if at == BucketId::ALL {
            buckets.clear();
        } else if let Some(place) = bucket_place(&buckets, at)? {
            buckets.remove(place);
        }
        Ok(Cow::Owned(GroupMod {
            command: GroupModCommand::Modify,
            group_type: group.group_type,
            group_id: asked.group_id,
            buckets,
            selection: group.selection.clone(),
            ..GroupMod::default()
        }))
    }

    /// Carries out a group-mod, which is one of [`Self::whole`]; the groups that are gone.
    ///
    /// # Errors
    /// Those of clause 6.5; nothing is changed then.
    pub(crate) fn apply(
        &mut self,
        asked: &GroupMod,
        config: &DatapathConfig,
        now: Nanos,
    ) -> Result<Vec<GroupId>, Error> {
        match asked.command {
            GroupModCommand::Add | GroupModCommand::AddOrModify
                if !self.groups.contains_key(&asked.group_id) =>
            {
                let depths = self.check(asked, config)?;
                if self.groups.len() >= config.max_groups as usize {
                    return Err(Error::GroupModOutOfGroups);
                }
                let group = Group::new(asked, now, self.next_seq);
                self.next_seq += 1;
                self.groups.insert(asked.group_id, group);
                self.link(asked.group_id);
                self.set_depths(depths);
                Ok(Vec::new())
            }
            GroupModCommand::Add => Err(Error::GroupModGroupExists),
            GroupModCommand::Modify | GroupModCommand::AddOrModify
                if self.is_nameable(asked.group_id) =>
            {
                let depths = self.check(asked, config)?;
                self.unlink(asked.group_id);
                if let Some(group) = self.get_mut(asked.group_id) {
                    group.configure(asked);
                }
                self.link(asked.group_id);
                self.set_depths(depths);
                Ok(Vec::new())
            }
            GroupModCommand::Modify | GroupModCommand::AddOrModify => {
                Err(Error::GroupModUnknownGroup)
            }
            GroupModCommand::Delete if asked.group_id == GroupId::ALL => {
                self.forwarders.clear();
                Ok(std::mem::take(&mut self.groups).into_keys().collect())
            }
            GroupModCommand::Delete => self.delete(asked.group_id),
            GroupModCommand::InsertBucket
            | GroupModCommand::RemoveBucket
            | GroupModCommand::Unknown(_) => Err(Error::GroupModBadCommand),
        }
    }

    /// A group that others forward to stays (`OFPGMFC_CHAINED_GROUP`); one that is only watched
    /// goes and is not live from then on. A group that does not exist is no error.
    fn delete(&mut self, id: GroupId) -> Result<Vec<GroupId>, Error> {
        if self.forwarders.contains_key(&id) {
            return Err(Error::GroupModChainedGroup);
        }
        self.unlink(id);
        Ok(self.groups.remove(&id).map(|_| id).into_iter().collect())
    }

    /// The checks of an add or modify; the depths that it changes.
    fn check(&self, asked: &GroupMod, config: &DatapathConfig) -> Result<Depths, Error> {
        if asked.group_id > GroupId::MAX {
            return Err(Error::GroupModInvalidGroup);
        }
        let is_select = match asked.group_type {
            GroupType::All | GroupType::FastFailover => false,
            GroupType::Indirect if asked.buckets.len() != 1 => {
                return Err(Error::GroupModInvalidGroup);
            }
            GroupType::Indirect => false,
            GroupType::Select => true,
            GroupType::Unknown(_) => return Err(Error::GroupModBadType),
        };
        if asked.buckets.len() > config.max_buckets as usize {
            return Err(Error::GroupModOutOfBuckets);
        }
        for bucket in &asked.buckets {
            if bucket.weight != 0 && !is_select {
                return Err(Error::GroupModInvalidGroup);
            }
            self.check_watch(bucket, asked.group_id)?;
            let existing = Existing {
                n_tables: config.n_tables,
                group: &|id| id == asked.group_id || self.is_nameable(id),
                meter: &|_| false,
            };
            check_actions(
                &bucket.actions,
                ActionContext::Bucket,
                &mut KnownFields::any(),
                &existing,
            )?;
        }
        if self.leads_back(asked) {
            return Err(Error::GroupModLoop);
        }
        self.depths_with(asked).ok_or(Error::GroupModChainingUnsupported)
    }

    /// A watched port may appear later; a watched group must be there.
    fn check_watch(&self, bucket: &Bucket, own: GroupId) -> Result<(), Error> {
        let port_is_right = bucket.watch_port == PortNo::ANY || bucket.watch_port.is_port();
        let group = bucket.watch_group;
        let group_is_right = group == GroupId::ANY || group == own || self.is_nameable(group);
        if port_is_right && group_is_right { Ok(()) } else { Err(Error::GroupModBadWatch) }
    }

    /// Whether a group with these buckets would lead back to itself.
    fn leads_back(&self, asked: &GroupMod) -> bool {
        let mut ahead: Vec<GroupId> = edges(&asked.buckets).collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = ahead.pop() {
            if id == asked.group_id {
                return true;
            }
            if seen.insert(id)
                && let Some(group) = self.get(id)
            {
                ahead.extend(edges(&group.buckets));
            }
        }
        false
    }

    /// Whether the port or the group that the bucket watches is live, where a group is live when
    /// any of its buckets is (clause 6.5). So a bucket is live when a live port is watched by it or
    /// by a bucket of any group that its watching leads to; each group is looked at once.
    fn bucket_is_live(&self, bucket: &Bucket, ports: &Ports) -> bool {
        let mut ahead = vec![bucket];
        let mut seen = BTreeSet::new();
        while let Some(bucket) = ahead.pop() {
            if bucket.watch_port != PortNo::ANY && ports.is_live(bucket.watch_port) {
                return true;
            }
            if bucket.watch_group != GroupId::ANY
                && seen.insert(bucket.watch_group)
                && let Some(group) = self.get(bucket.watch_group)
            {
                ahead.extend(&group.buckets);
            }
        }
        false
    }

    /// Whether a packet may go to the bucket: see the head of this file.
    fn is_usable(&self, group_type: GroupType, bucket: &Bucket, ports: &Ports) -> bool {
        let watches = bucket.watch_port != PortNo::ANY || bucket.watch_group != GroupId::ANY;
        (!watches && group_type != GroupType::FastFailover) || self.bucket_is_live(bucket, ports)
    }

    /// The buckets, by their places in the list, that a packet of this flow goes to now.
    pub(crate) fn chosen(
        &self,
        id: GroupId,
        key: &FlowKey,
        is_fragment: bool,
        ports: &Ports,
    ) -> Vec<usize> {
        let Some(group) = self.get(id) else { return Vec::new() };
        let usable = group.buckets.iter().enumerate();
        let usable = usable.filter(|(_, bucket)| self.is_usable(group.group_type, bucket, ports));
        let mut places: Vec<usize> = usable.map(|(place, _)| place).collect();
        match group.group_type {
            GroupType::All | GroupType::Indirect | GroupType::Unknown(_) => {}
            GroupType::FastFailover => places.truncate(1),
            GroupType::Select => {
                let draws: Vec<(u64, u16)> = places
                    .iter()
                    .map(|place| (group.identities[*place], group.buckets[*place].weight))
                    .collect();
                let flow = match &group.selection {
                    Some(selection) => selection_hash(selection, key, is_fragment),
                    None => flow_hash(key, is_fragment),
                };
                let winner = choose(id, flow, &draws);
                places = winner.map(|winner| places[winner]).into_iter().collect();
            }
        }
        places
    }

    /// Why a packet goes to none of a group's buckets, for a trace.
    pub(crate) fn unused(&self, id: GroupId, ports: &Ports) -> String {
        let Some(group) = self.get(id) else { return String::new() };
        let why = |(place, bucket): (usize, &Bucket)| {
            let watches = bucket.watch_port != PortNo::ANY || bucket.watch_group != GroupId::ANY;
            let why = match (self.is_usable(group.group_type, bucket, ports), watches) {
                (true, _) => "has weight 0",
                (false, true) => "is not live",
                (false, false) => "watches nothing",
            };
            format!("bucket {place} {why}")
        };
        let all: Vec<String> = group.buckets.iter().enumerate().map(why).collect();
        format!("group {} ({}): {}", id.0, group.group_type.text(), all.join(", "))
    }

    /// Counters of a group or of all; `flow_count` says how many entries use a group.
    ///
    /// References between groups are counted in one pass, since the table may be full of groups.
    pub(crate) fn stats(
        &self,
        id: GroupId,
        now: Nanos,
        flow_count: &dyn Fn(GroupId) -> u32,
    ) -> Vec<GroupStats> {
        let wanted = self.groups.iter().filter(|(own, _)| id == GroupId::ALL || **own == id);
        let mut forwarding: BTreeMap<GroupId, u32> = BTreeMap::new();
        for group in self.groups.values() {
            let actions = group.buckets.iter().flat_map(|bucket| &bucket.actions);
            for id in actions.filter_map(group_of).collect::<BTreeSet<GroupId>>() {
                *forwarding.entry(id).or_default() += 1;
            }
        }
        let stats = |(id, group): (&GroupId, &Group)| {
            let chained = forwarding.get(id).copied().unwrap_or(0);
            let (duration_s, duration_ns) = now.age(group.since);
            GroupStats {
                group_id: *id,
                ref_count: flow_count(*id).saturating_add(chained),
                packet_count: group.packets,
                byte_count: group.bytes,
                duration_s,
                duration_ns,
                buckets: group.bucket_counters.clone(),
            }
        };
        wanted.map(stats).collect()
    }

    /// Descriptions, by number.
    pub(crate) fn descs(&self) -> Vec<GroupDesc> {
        let desc = |(id, group): (&GroupId, &Group)| GroupDesc {
            group_type: group.group_type,
            group_id: *id,
            buckets: group.buckets.clone(),
            selection: group.selection.clone(),
        };
        self.groups.iter().map(desc).collect()
    }
}
