//! Meter-mod (clause 6.6).

use openflow::meter::MeterMod;

use super::{Answer, Worker};
use crate::counters::Counter;

pub(super) fn meter_mod(worker: &mut Worker, meter_mod: &MeterMod) -> Answer {
    worker.counters.bump(Counter::MeterMod);
    let now = worker.now();
    let outcome = worker.datapath.meter_mod(meter_mod, now)?;
    worker.tell_removed(outcome.removed);
    Ok(None)
}
