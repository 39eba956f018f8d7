//! Group-mod (clause 6.5).

use openflow::group::GroupMod;

use super::{Applied, ApplyResult, Bridge};
use crate::counters::Counter;

pub(super) fn group_mod(bridge: &Bridge, group_mod: &GroupMod) -> ApplyResult {
    bridge.counters.bump(Counter::GroupMod);
    let now = bridge.clock.now();
    let done = bridge.with_control(|control| control.group_mod(group_mod, now));
    done.ok_or_else(Bridge::no_tables)??;
    Ok(Applied::Nothing)
}
