//! Meter-mod (clause 6.6).

use openflow::meter::MeterMod;

use super::{Applied, ApplyResult, Bridge};
use crate::counters::Counter;

pub(super) fn meter_mod(bridge: &Bridge, meter_mod: &MeterMod) -> ApplyResult {
    bridge.counters.bump(Counter::MeterMod);
    let now = bridge.clock.now();
    let done = bridge.with_control(|control| control.meter_mod(meter_mod, now));
    done.ok_or_else(Bridge::no_tables)??;
    Ok(Applied::Nothing)
}
