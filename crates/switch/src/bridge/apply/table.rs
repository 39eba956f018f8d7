//! Table-mod (clause 7.3.3), and table features, to be read and to be set.

use datapath::fast::Control;
use openflow::table::{TableAbilities, TableFeatures, TableMod, TableStats};
use openflow::{Error, Version, message::MultipartReplyBody};

use super::{Applied, ApplyResult, Bridge};
use crate::counters::Counter;

/// The bits of a table's settings that say where packets go that no entry matches, in versions that
/// have them (`OFPTC_TABLE_MISS_MASK`): to the controller, if none is set.
const MISS_MASK: u32 = 3;

pub(super) fn table_mod(bridge: &Bridge, version: Version, table_mod: &TableMod) -> ApplyResult {
    bridge.counters.bump(Counter::TableMod);
    if version.has_miss_settings() && table_mod.config & MISS_MASK != 0 {
        return Err(Error::TableModBadConfig);
    }
    let done = bridge.with_control(|control| control.table_mod(table_mod, version));
    done.ok_or_else(Bridge::no_tables)??;
    bridge.save_tables();
    Ok(Applied::Nothing)
}

/// Counters of the tables, with all that they can do in versions that have it there.
pub(super) fn statistics(control: &Control, version: Version) -> Vec<TableStats> {
    let mut tables = control.table_stats();
    if version.has_table_desc_in_stats() && version.has_pipeline() {
        // What 1.1 sets by actions of its own stands among the fields of later versions.
        let described = if version.has_set_field() { version } else { Version::V1_2 };
        for (table, features) in tables.iter_mut().zip(control.table_features(described)) {
            table.abilities = TableAbilities::of(&features, version);
        }
    }
    tables
}

/// Features of the tables, after a request with a body has changed them (clause 7.3.5.5.1).
pub(super) fn features(
    bridge: &Bridge,
    version: Version,
    asked: &[TableFeatures],
) -> Result<MultipartReplyBody, Error> {
    if !asked.is_empty() {
        let now = bridge.clock.now();
        let done = bridge.with_control(|control| control.set_table_features(asked, version, now));
        done.ok_or_else(Bridge::no_tables)??;
    }
    let tables = bridge.with_control(|control| control.table_features(version));
    Ok(MultipartReplyBody::TableFeatures(tables.ok_or_else(Bridge::no_tables)?))
}
