//! Group-mod (clause 6.5).

use openflow::group::GroupMod;

use super::{Answer, Bridge, Outcome};
use crate::counters::Counter;

pub(super) fn group_mod(bridge: &Bridge, group_mod: &GroupMod) -> Outcome {
    bridge.counters.bump(Counter::GroupMod);
    let now = bridge.clock.now();
    let done = bridge.with_control(|control| control.group_mod(group_mod, now));
    done.ok_or_else(Bridge::no_tables)??;
    Ok(Answer::Nothing)
}
