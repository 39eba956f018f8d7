//! Table-mod (clause 7.3.3), and table features, to be read and to be set.

use openflow::table::{TableFeatures, TableMod};
use openflow::{Error, Version, message::MultipartReplyBody};

use super::{Applied, ApplyResult, Bridge};
use crate::counters::Counter;

pub(super) fn table_mod(bridge: &Bridge, table_mod: &TableMod) -> ApplyResult {
    bridge.counters.bump(Counter::TableMod);
    let done = bridge.with_control(|control| control.table_mod(table_mod));
    done.ok_or_else(Bridge::no_tables)??;
    Ok(Applied::Nothing)
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
