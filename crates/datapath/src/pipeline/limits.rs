//! Limits of one flow table's entries, read from the properties of its features and written as
//! them.
//!
//! The same type says what runs at all, what is asked for and what is announced, so that the three
//! can be compared set by set.

use std::collections::{BTreeMap, BTreeSet};

use openflow::action::{ACTIONS, METER};
use openflow::field::FIELDS;
use openflow::instruction::INSTRUCTIONS;
use openflow::table::{OnPacket, OxmId, TableFeatures, TableProperty, TypeId};
use openflow::{ActionKind, Error, Field, InstructionKind, TableId, Version};

use crate::features::runs;

/// Limits of entries: for table hits and, apart from it, for the table-miss entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EntryLimits {
    pub(super) instructions: BTreeSet<InstructionKind>,
    pub(super) next: BTreeSet<TableId>,
    pub(super) write_actions: BTreeSet<ActionKind>,
    pub(super) apply_actions: BTreeSet<ActionKind>,
    pub(super) write_set: BTreeSet<Field>,
    pub(super) apply_set: BTreeSet<Field>,
}

/// Number of [`EntryLimits::properties`] that come before the properties of the match.
const BEFORE_MATCH: usize = 4;

impl EntryLimits {
    fn within(&self, full: &Self) -> bool {
        self.instructions.is_subset(&full.instructions)
            && self.next.is_subset(&full.next)
            && self.write_actions.is_subset(&full.write_actions)
            && self.apply_actions.is_subset(&full.apply_actions)
            && self.write_set.is_subset(&full.write_set)
            && self.apply_set.is_subset(&full.apply_set)
    }

    /// As properties for a controller of the version, in the order of their numbers.
    fn properties(&self, on: OnPacket, version: Version) -> [TableProperty; 6] {
        let actions = |kinds| known(kinds, |kind: ActionKind| kind.number(version));
        let mut apply_actions = actions(&self.apply_actions);
        if self.instructions.contains(&InstructionKind::Meter) {
            apply_actions.extend(meter_action(version));
        }
        let instructions = |kind: InstructionKind| kind.number(version);
        [
            TableProperty::Instructions(on, known(&self.instructions, instructions)),
            TableProperty::NextTables(on, self.next.iter().copied().collect()),
            TableProperty::WriteActions(on, actions(&self.write_actions)),
            TableProperty::ApplyActions(on, apply_actions),
            TableProperty::WriteSetField(on, whole(&self.write_set, version)),
            TableProperty::ApplySetField(on, whole(&self.apply_set, version)),
        ]
    }
}

/// The packet type of Ethernet frames: that of all packets.
const ETHERNET: u32 = 0;

/// A meter among the actions, in versions that have it there (`OFPAT_METER`).
fn meter_action(version: Version) -> Option<TypeId<ActionKind>> {
    version.has_meter_action().then_some(TypeId::Unknown(METER))
}

/// Limits of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) max_entries: u32,
    pub(super) metadata_match: u64,
    pub(super) metadata_write: u64,
    /// Fields that may be matched, and whether with a mask.
    pub(super) matches: BTreeMap<Field, bool>,
    /// Fields that may be left out.
    pub(super) wildcards: BTreeSet<Field>,
    pub(super) hit: EntryLimits,
    pub(super) miss: EntryLimits,
}

/// The properties for hits, or those for misses, while they are read: each may stand once.
#[derive(Default)]
struct OutcomeProperties {
    instructions: Option<BTreeSet<InstructionKind>>,
    next: Option<BTreeSet<TableId>>,
    write_actions: Option<BTreeSet<ActionKind>>,
    apply_actions: Option<BTreeSet<ActionKind>>,
    write_set: Option<BTreeSet<Field>>,
    apply_set: Option<BTreeSet<Field>>,
    /// Fields that copy-field writes, where a message says it.
    write_copy: Option<BTreeSet<Field>>,
    apply_copy: Option<BTreeSet<Field>>,
    /// Whether a meter is among the actions that are applied, in versions that have it there.
    meters: Option<bool>,
}

impl OutcomeProperties {
    /// Takes what is missing from `other`; an error when it is missing there as well.
    /// Copy-field writes what set-field may, and nothing else can be asked for.
    fn complete(self, other: Option<&EntryLimits>) -> Result<EntryLimits, Error> {
        fn or<T: Clone>(own: Option<T>, other: Option<&T>) -> Result<T, Error> {
            own.or_else(|| other.cloned()).ok_or(Error::TableFeaturesBadArgument)
        }
        let mut limits = EntryLimits {
            instructions: or(self.instructions, other.map(|o| &o.instructions))?,
            next: or(self.next, other.map(|o| &o.next))?,
            write_actions: or(self.write_actions, other.map(|o| &o.write_actions))?,
            apply_actions: or(self.apply_actions, other.map(|o| &o.apply_actions))?,
            write_set: or(self.write_set, other.map(|o| &o.write_set))?,
            apply_set: or(self.apply_set, other.map(|o| &o.apply_set))?,
        };
        if let Some(meters) = self.meters {
            limits.instructions.retain(|kind| *kind != InstructionKind::Meter);
            limits.instructions.extend(meters.then_some(InstructionKind::Meter));
        }
        let copies = [(self.write_copy, &limits.write_set), (self.apply_copy, &limits.apply_set)];
        if copies.iter().any(|(copy, set)| copy.as_ref().is_some_and(|copy| copy != *set)) {
            return Err(Error::TableFeaturesBadArgument);
        }
        Ok(limits)
    }
}

/// The properties of a message while they are read.
#[derive(Default)]
struct ParsedProperties {
    matches: Option<BTreeMap<Field, bool>>,
    wildcards: Option<BTreeSet<Field>>,
    hit: OutcomeProperties,
    miss: OutcomeProperties,
}

impl ParsedProperties {
    fn outcome(&mut self, on: OnPacket) -> &mut OutcomeProperties {
        match on {
            OnPacket::Hit => &mut self.hit,
            OnPacket::Miss => &mut self.miss,
        }
    }

    fn take(&mut self, property: &TableProperty, version: Version) -> Result<(), Error> {
        match property {
            TableProperty::Instructions(on, ids) => {
                once(&mut self.outcome(*on).instructions, types(ids)?)
            }
            TableProperty::NextTables(on, ids) => {
                once(&mut self.outcome(*on).next, ids.iter().copied().collect())
            }
            TableProperty::WriteActions(on, ids) => {
                once(&mut self.outcome(*on).write_actions, types(ids)?)
            }
            TableProperty::ApplyActions(on, listed) => {
                let (mut ids, meter) = (listed.clone(), meter_action(version));
                ids.retain(|id| Some(*id) != meter);
                let outcome = self.outcome(*on);
                outcome.meters = meter.map(|_| ids.len() < listed.len());
                once(&mut outcome.apply_actions, types(&ids)?)
            }
            TableProperty::Match(ids) => once(&mut self.matches, fields(ids)?),
            TableProperty::Wildcards(ids) => {
                once(&mut self.wildcards, fields(ids)?.into_keys().collect())
            }
            TableProperty::WriteSetField(on, ids) => {
                once(&mut self.outcome(*on).write_set, settable(ids)?)
            }
            TableProperty::ApplySetField(on, ids) => {
                once(&mut self.outcome(*on).apply_set, settable(ids)?)
            }
            // No table copies another.
            TableProperty::SynchronisedFrom(ids) if ids.is_empty() => Ok(()),
            TableProperty::SynchronisedFrom(_) => Err(Error::TableFeaturesBadArgument),
            TableProperty::WriteCopyField(on, ids) => {
                once(&mut self.outcome(*on).write_copy, settable(ids)?)
            }
            TableProperty::ApplyCopyField(on, ids) => {
                once(&mut self.outcome(*on).apply_copy, settable(ids)?)
            }
            // All packets are Ethernet frames.
            TableProperty::PacketTypes(types) if types.iter().all(|number| *number == 0) => Ok(()),
            TableProperty::PacketTypes(_) => Err(Error::TableFeaturesBadArgument),
            TableProperty::Experimenter { .. } => Err(Error::TableFeaturesBadType),
        }
    }
}

/// Keeps a property that may stand once.
fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Error> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::TableFeaturesBadArgument),
    }
}

fn types<K: Ord + Copy>(ids: &[TypeId<K>]) -> Result<BTreeSet<K>, Error> {
    let kind = |id: &TypeId<K>| match id {
        TypeId::Known(kind) => Ok(*kind),
        TypeId::Unknown(_) | TypeId::Experimenter(_) => Err(Error::TableFeaturesBadArgument),
    };
    ids.iter().map(kind).collect()
}

fn fields(ids: &[OxmId]) -> Result<BTreeMap<Field, bool>, Error> {
    let field = |id: &OxmId| match id {
        OxmId::Basic { field, maskable } => Ok((*field, *maskable)),
        OxmId::Unknown(header) => without_length(*header).ok_or(Error::TableFeaturesBadArgument),
        OxmId::Experimenter { .. } => Err(Error::TableFeaturesBadArgument),
    };
    ids.iter().map(field).collect()
}

/// The field of a header whose length is zero, as os-ken, and so Faucet, writes them. The
/// specification asks for the length of the field's value, but nothing depends on it here.
fn without_length(header: u32) -> Option<(Field, bool)> {
    let [high, low, number, length] = header.to_be_bytes();
    let class = u16::from_be_bytes([high, low]);
    let field = Field::from_class(class, number >> 1).filter(|_| length == 0)?;
    Some((field, number & 1 != 0))
}

/// Fields that are listed without a mask, as set-field writes whole fields.
fn settable(ids: &[OxmId]) -> Result<BTreeSet<Field>, Error> {
    let fields = fields(ids)?;
    if fields.values().any(|maskable| *maskable) {
        return Err(Error::TableFeaturesBadArgument);
    }
    Ok(fields.into_keys().collect())
}

impl Limits {
    /// Everything that runs in a table, one of `n_tables`.
    pub(super) fn full(table_id: TableId, n_tables: u8, max_entries: u32) -> Self {
        let next: BTreeSet<TableId> = (table_id.0..n_tables).skip(1).map(TableId).collect();
        let instructions = INSTRUCTIONS.iter().map(|row| row.kind);
        let instructions = instructions.filter(|kind| runs(*kind, !next.is_empty())).collect();
        // Those that ended run by their successors.
        let actions = ACTIONS.iter().filter(|row| row.successor.is_none()).map(|row| row.kind);
        let has_number = |version: &Version, kind: &ActionKind| kind.number(*version).is_some();
        let actions =
            actions.filter(|kind| Version::ALL.iter().any(|version| has_number(version, kind)));
        let actions: BTreeSet<_> = actions.filter(|k| *k != ActionKind::Experimenter).collect();
        let set = FIELDS.iter().filter(|row| row.settable).map(|row| row.field);
        let set: BTreeSet<Field> = set.collect();
        let limits = EntryLimits {
            instructions,
            next,
            write_actions: actions.clone(),
            apply_actions: actions,
            write_set: set.clone(),
            apply_set: set,
        };
        Self {
            max_entries,
            metadata_match: u64::MAX,
            metadata_write: u64::MAX,
            matches: FIELDS.iter().map(|row| (row.field, row.maskable)).collect(),
            wildcards: FIELDS.iter().map(|row| row.field).collect(),
            miss: limits.clone(),
            hit: limits,
        }
    }

    /// The limits that a message sets.
    ///
    /// # Errors
    /// `OFPTFFC_BAD_TYPE`, `OFPTFFC_BAD_ARGUMENT`, `OFPTFFC_BAD_METADATA`.
    pub(super) fn of(features: &TableFeatures, version: Version) -> Result<Self, Error> {
        let mut parsed = ParsedProperties::default();
        features.properties.iter().try_for_each(|property| parsed.take(property, version))?;
        parsed.miss.meters = parsed.miss.meters.or(parsed.hit.meters);
        let hit = parsed.hit.complete(None)?;
        let limits = Self {
            max_entries: features.max_entries,
            metadata_match: features.metadata_match,
            metadata_write: features.metadata_write,
            matches: parsed.matches.ok_or(Error::TableFeaturesBadArgument)?,
            wildcards: parsed.wildcards.ok_or(Error::TableFeaturesBadArgument)?,
            miss: parsed.miss.complete(Some(&hit))?,
            hit,
        };
        let matches_none =
            limits.matches.contains_key(&Field::Metadata) && limits.metadata_match == 0;
        let writes =
            |limits: &EntryLimits| limits.instructions.contains(&InstructionKind::WriteMetadata);
        let writes_none =
            (writes(&limits.hit) || writes(&limits.miss)) && limits.metadata_write == 0;
        if matches_none || writes_none {
            return Err(Error::TableFeaturesBadMetadata);
        }
        if limits.wildcards.iter().any(|field| !limits.matches.contains_key(field)) {
            return Err(Error::TableFeaturesBadArgument);
        }
        Ok(limits)
    }

    /// These, without limits for the fields and actions that a controller of the version has no
    /// number for.
    pub(super) fn with_fields_after(mut self, version: Version, full: &Self) -> Self {
        let later = |field: &Field| !field.is_in(version);
        self.matches.extend(full.matches.iter().filter(|(field, _)| later(field)));
        self.wildcards.extend(full.wildcards.iter().filter(|field| later(field)));
        for (own, full) in [(&mut self.hit, &full.hit), (&mut self.miss, &full.miss)] {
            own.write_set.extend(full.write_set.iter().filter(|field| later(field)));
            own.apply_set.extend(full.apply_set.iter().filter(|field| later(field)));
            let later = |kind: &&ActionKind| kind.number(version).is_none();
            own.write_actions.extend(full.write_actions.iter().filter(later));
            own.apply_actions.extend(full.apply_actions.iter().filter(later));
        }
        self
    }

    /// The tables that entries may lead to.
    pub(super) fn next_tables(&self) -> impl Iterator<Item = &TableId> {
        self.hit.next.union(&self.miss.next)
    }

    /// Whether these ask for nothing that is not in `full`.
    pub(super) fn within(&self, full: &Self) -> bool {
        let matches = self.matches.iter().all(|(field, masked)| {
            full.matches.get(field).is_some_and(|maskable| *maskable || !masked)
        });
        matches
            && self.max_entries <= full.max_entries
            && self.metadata_match & !full.metadata_match == 0
            && self.metadata_write & !full.metadata_write == 0
            && self.hit.within(&full.hit)
            && self.miss.within(&full.miss)
    }

    /// The features that say this, in the order of the specification. Properties for misses are
    /// left out where they are those for hits.
    pub(super) fn features(
        &self,
        version: Version,
        table_id: TableId,
        name: &str,
        config: u32,
    ) -> TableFeatures {
        let matches = self.matches.iter().filter(|(field, _)| field.is_in(version));
        let matches =
            matches.map(|(field, maskable)| OxmId::Basic { field: *field, maskable: *maskable });
        let mut properties = Vec::with_capacity(14);
        let hits = self.hit.properties(OnPacket::Hit, version);
        let misses = self.miss.properties(OnPacket::Miss, version);
        let same = self.hit.properties(OnPacket::Miss, version);
        for (place, ((hit, miss), same)) in hits.into_iter().zip(misses).zip(same).enumerate() {
            if place == BEFORE_MATCH {
                properties.push(TableProperty::Match(matches.clone().collect()));
                properties.push(TableProperty::Wildcards(whole(&self.wildcards, version)));
            }
            properties.push(hit);
            properties.extend((miss != same).then_some(miss));
        }
        if version.has_packet_types() {
            properties.push(TableProperty::WriteCopyField(
                OnPacket::Hit,
                whole(&self.hit.write_set, version),
            ));
            properties.push(TableProperty::ApplyCopyField(
                OnPacket::Hit,
                whole(&self.hit.apply_set, version),
            ));
            properties.push(TableProperty::PacketTypes(vec![ETHERNET]));
        }
        TableFeatures {
            table_id,
            name: name.to_owned(),
            metadata_match: self.metadata_match,
            metadata_write: self.metadata_write,
            config,
            max_entries: self.max_entries,
            properties,
        }
    }
}

/// Those that the version has a number for.
fn known<K: Copy>(kinds: &BTreeSet<K>, number: impl Fn(K) -> Option<u16>) -> Vec<TypeId<K>> {
    let numbered = kinds.iter().copied().filter(|kind| number(*kind).is_some());
    numbered.map(TypeId::Known).collect()
}

fn whole(fields: &BTreeSet<Field>, version: Version) -> Vec<OxmId> {
    let known = fields.iter().filter(|field| field.is_in(version));
    known.map(|field| OxmId::Basic { field: *field, maskable: false }).collect()
}
