//! What a datapath announces, generated from the rows of fields, instructions and actions.
//!
//! What is announced is what runs: the actions listed here are those that have an arm in the
//! datapath, the fields those that extraction and rewriting know. No list is kept by hand.

use openflow::action::ACTIONS;
use openflow::field::{FIELDS, FieldRow};
use openflow::group::{GroupCapabilities, GroupFeatures};
use openflow::instruction::INSTRUCTIONS;
use openflow::message::Capabilities;
use openflow::meter::{MeterFeatures, MeterFlags};
use openflow::table::{OnPacket, OxmId, TableFeatures, TableProperty, TypeId};
use openflow::{ActionKind, InstructionKind, TableId, Version};

use crate::config::Config;

/// All wildcard bits of 1.0 (`OFPFW_ALL`): tables match on every field or on none.
pub(crate) const WILDCARDS_1_0: u32 = (1 << 22) - 1;

/// Capabilities for a features reply.
#[must_use]
pub fn capabilities(version: Version) -> Capabilities {
    let common = Capabilities::FLOW_STATS
        | Capabilities::TABLE_STATS
        | Capabilities::PORT_STATS
        | Capabilities::QUEUE_STATS;
    match version {
        Version::V1_0 => common | Capabilities::ARP_MATCH_IP,
        Version::V1_3 => common | Capabilities::GROUP_STATS,
    }
}

/// The actions that run, by a version's numbers: bit n for type n. Experimenter actions, whose
/// number is above every bit, run in neither.
#[must_use]
pub fn action_bits(version: Version) -> u32 {
    let numbers = ACTIONS.iter().filter_map(|row| row.kind.number(version));
    numbers.fold(0, |bits, number| bits | 1_u32.checked_shl(number.into()).unwrap_or(0))
}

/// A table's name.
pub(crate) fn table_name(table: TableId) -> String {
    format!("table{}", table.0)
}

/// Features of every table. Tables differ only in the tables that come after them; properties for
/// table-miss entries are left out, as they are the same.
pub(crate) fn table_features(config: &Config) -> Vec<TableFeatures> {
    (0..config.n_tables).map(|number| features_of(TableId(number), config)).collect()
}

fn features_of(table_id: TableId, config: &Config) -> TableFeatures {
    let next: Vec<TableId> = (table_id.0..config.n_tables).skip(1).map(TableId).collect();
    let instructions = INSTRUCTIONS
        .iter()
        .map(|row| row.kind)
        .filter(|kind| runs(*kind, !next.is_empty()))
        .map(TypeId::Known)
        .collect();
    let hit = OnPacket::Hit;
    TableFeatures {
        table_id,
        name: table_name(table_id),
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        config: 0,
        max_entries: config.max_entries,
        properties: vec![
            TableProperty::Instructions(hit, instructions),
            TableProperty::NextTables(hit, next),
            TableProperty::WriteActions(hit, actions()),
            TableProperty::ApplyActions(hit, actions()),
            TableProperty::Match(fields(|_| true, |row| row.maskable)),
            TableProperty::Wildcards(fields(|_| true, |_| false)),
            TableProperty::WriteSetField(hit, fields(|row| row.settable, |_| false)),
            TableProperty::ApplySetField(hit, fields(|row| row.settable, |_| false)),
        ],
    }
}

fn runs(kind: InstructionKind, has_next: bool) -> bool {
    match kind {
        InstructionKind::GotoTable => has_next,
        InstructionKind::Meter
        | InstructionKind::ApplyActions
        | InstructionKind::ClearActions
        | InstructionKind::WriteActions
        | InstructionKind::WriteMetadata => true,
        InstructionKind::Experimenter => false,
    }
}

fn actions() -> Vec<TypeId<ActionKind>> {
    ACTIONS
        .iter()
        .filter(|row| row.v1_3.is_some() && row.kind != ActionKind::Experimenter)
        .map(|row| TypeId::Known(row.kind))
        .collect()
}

fn fields(listed: impl Fn(&FieldRow) -> bool, masked: impl Fn(&FieldRow) -> bool) -> Vec<OxmId> {
    let basic = |row: &FieldRow| OxmId::Basic { field: row.field, maskable: masked(row) };
    FIELDS.iter().filter(|row| listed(row)).map(basic).collect()
}

/// Features of groups.
pub(crate) fn group_features(config: &Config) -> GroupFeatures {
    GroupFeatures {
        types: 0b1111,
        capabilities: GroupCapabilities::SELECT_WEIGHT
            | GroupCapabilities::SELECT_LIVENESS
            | GroupCapabilities::CHAINING
            | GroupCapabilities::CHAINING_CHECKS,
        max_groups: [config.max_groups; 4],
        actions: [action_bits(Version::V1_3); 4],
    }
}

/// Features of meters: bands drop (1) and DSCP remark (2).
pub(crate) fn meter_features(config: &Config) -> MeterFeatures {
    let flags = MeterFlags::KBPS | MeterFlags::PKTPS | MeterFlags::BURST | MeterFlags::STATS;
    MeterFeatures {
        max_meter: config.max_meters,
        band_types: 1 << 1 | 1 << 2,
        capabilities: u32::from(flags.bits()),
        max_bands: config.max_bands,
        max_color: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{action_bits, table_features};
    use crate::config::Config;
    use openflow::table::{OnPacket, TableProperty, TypeId};
    use openflow::{InstructionKind, TableId, Version};

    #[test]
    fn action_bits_are_the_numbers_of_the_version() {
        assert_eq!(action_bits(Version::V1_0), 0x0fff);
        assert_eq!(action_bits(Version::V1_3), 0x0fff_9801);
    }

    #[test]
    fn the_last_table_goes_nowhere() {
        let config = Config { n_tables: 3, ..Config::default() };
        let tables = table_features(&config);
        let next = |table: usize| match &tables[table].properties[1] {
            TableProperty::NextTables(OnPacket::Hit, next) => next.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(next(0), [TableId(1), TableId(2)]);
        assert_eq!(next(2), []);
        let goto = TypeId::Known(InstructionKind::GotoTable);
        let lists_goto = |table: usize| match &tables[table].properties[0] {
            TableProperty::Instructions(OnPacket::Hit, list) => list.contains(&goto),
            other => panic!("{other:?}"),
        };
        assert!(lists_goto(1) && !lists_goto(2));
    }
}
