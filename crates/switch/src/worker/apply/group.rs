//! Group-mod (clause 6.5).

use openflow::group::GroupMod;

use super::{Answer, Worker};
use crate::counters::Counter;

pub(super) fn group_mod(worker: &mut Worker, group_mod: &GroupMod) -> Answer {
    worker.counters.bump(Counter::GroupMod);
    let now = worker.now();
    let outcome = worker.datapath.group_mod(group_mod, now)?;
    worker.tell_removed(outcome.removed);
    Ok(None)
}
