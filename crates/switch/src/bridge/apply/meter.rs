//! Meter-mod (clause 6.6).

use openflow::meter::MeterMod;

use super::flow::applied;
use super::{ApplyResult, Bridge};
use crate::counters::Counter;

pub(super) fn meter_mod(bridge: &Bridge, meter_mod: &MeterMod) -> ApplyResult {
    bridge.counters.bump(Counter::MeterMod);
    let now = bridge.clock.now();
    let begun = bridge.with_control(|control| control.begin_meter_mod(meter_mod, now));
    Ok(applied(begun.ok_or_else(Bridge::no_tables)??))
}
