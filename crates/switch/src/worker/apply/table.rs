//! Table-mod (clause 7.3.3), and table features, to be read and to be set.

use openflow::table::{TableFeatures, TableMod};
use openflow::{Error, message::MultipartReplyBody};

use super::{Answer, Worker};
use crate::counters::Counter;

pub(super) fn table_mod(worker: &mut Worker, table_mod: &TableMod) -> Answer {
    worker.counters.bump(Counter::TableMod);
    worker.datapath.table_mod(table_mod)?;
    Ok(None)
}

/// What the tables can do, after a request with a body has changed that (clause 7.3.5.5.1).
pub(super) fn features(
    worker: &mut Worker,
    asked: &[TableFeatures],
) -> Result<MultipartReplyBody, Error> {
    if !asked.is_empty() {
        let now = worker.now();
        worker.datapath.set_table_features(asked, now)?;
    }
    Ok(MultipartReplyBody::TableFeatures(worker.datapath.table_features()))
}
