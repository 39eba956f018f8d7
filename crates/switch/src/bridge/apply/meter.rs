//! Meter-mod (clause 6.6).

use openflow::meter::MeterMod;

use super::{Answer, Bridge, Outcome};
use crate::counters::Counter;

pub(super) fn meter_mod(bridge: &Bridge, meter_mod: &MeterMod) -> Outcome {
    bridge.counters.bump(Counter::MeterMod);
    let now = bridge.clock.now();
    let done = bridge.with_control(|control| control.meter_mod(meter_mod, now));
    done.ok_or_else(Bridge::no_tables)??;
    Ok(Answer::Nothing)
}
