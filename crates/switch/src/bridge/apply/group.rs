//! Group-mod (clause 6.5).

use openflow::group::GroupMod;

use super::flow::applied;
use super::{ApplyResult, Bridge};
use crate::counters::Counter;

pub(super) fn group_mod(bridge: &Bridge, group_mod: &GroupMod) -> ApplyResult {
    bridge.counters.bump(Counter::GroupMod);
    let now = bridge.clock.now();
    let begun = bridge.with_control(|control| control.begin_group_mod(group_mod, now));
    Ok(applied(begun.ok_or_else(Bridge::no_tables)??))
}
