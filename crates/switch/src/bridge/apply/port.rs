//! Port-mod (clause 7.3.4.2).

use openflow::port::PortMod;

use super::{Applied, ApplyResult, Bridge};
use crate::counters::Counter;

pub(super) fn port_mod(bridge: &Bridge, port_mod: &PortMod) -> ApplyResult {
    bridge.counters.bump(Counter::PortMod);
    let status = bridge.port_mod(port_mod)?;
    if status.is_some() {
        bridge.counters.bump(Counter::PortStatus);
    }
    Ok(status.map_or(Applied::Nothing, Applied::PortStatus))
}
