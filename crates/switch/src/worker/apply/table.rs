//! Table-mod (clause 7.3.3), and setting table features, which Weir does not do.

use openflow::table::{TableFeatures, TableMod};
use openflow::{Error, message::MultipartReplyBody};

use super::{Answer, Worker};
use crate::counters::Counter;

pub(super) fn table_mod(worker: &mut Worker, table_mod: &TableMod) -> Answer {
    worker.counters.bump(Counter::TableMod);
    worker.datapath.table_mod(table_mod)?;
    Ok(None)
}

/// What the tables can do. A switch that cannot change them refuses a request with a body as one of
/// a wrong length (clause 7.3.5.5.1).
pub(super) fn features(
    worker: &Worker,
    asked: &[TableFeatures],
) -> Result<MultipartReplyBody, Error> {
    if asked.is_empty() {
        Ok(MultipartReplyBody::TableFeatures(worker.datapath.table_features()))
    } else {
        Err(Error::BadRequestBadLen)
    }
}
