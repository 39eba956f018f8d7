//! Port-mod (clause 7.3.4.2).

use openflow::port::PortMod;

use super::{Answer, Bridge, Outcome};
use crate::counters::Counter;

pub(super) fn port_mod(bridge: &Bridge, port_mod: &PortMod) -> Outcome {
    bridge.counters.bump(Counter::PortMod);
    let news = bridge.port_mod(port_mod)?;
    if news.is_some() {
        bridge.counters.bump(Counter::PortStatus);
    }
    Ok(news.map_or(Answer::Nothing, Answer::News))
}
