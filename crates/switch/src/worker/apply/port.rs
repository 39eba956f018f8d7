//! Port-mod (clause 7.3.4.2) and the counters of ports.

use openflow::port::{PortMod, PortReason, PortStats, PortStatus};
use openflow::{Error, PortNo};

use super::{Answer, Worker};
use crate::counters::Counter;
use crate::worker::Upcall;

pub(super) fn port_mod(worker: &mut Worker, port_mod: &PortMod) -> Answer {
    worker.counters.bump(Counter::PortMod);
    let settings = worker.datapath.port_mod(port_mod)?.config;
    let now = worker.now();
    let Some(slot) = worker.ports.get_mut(port_mod.port_no) else { return Ok(None) };
    if slot.settings != settings {
        slot.settings = settings;
        let desc = slot.desc(settings);
        // Whether the port is live depends on its settings.
        worker.datapath.port_set(desc.clone(), now);
        worker.counters.bump(Counter::PortStatus);
        let status = PortStatus { reason: PortReason::Modify, desc };
        worker.up.upcalls.push(Upcall::PortStatus(status));
    }
    Ok(None)
}

/// Counters of a port or of all. What was received and sent is what the devices have counted, since
/// the datapath does not see what is lost before and behind it.
pub(crate) fn stats(worker: &mut Worker, port: PortNo) -> Result<Vec<PortStats>, Error> {
    let mut all = worker.datapath.port_stats(port, worker.now())?;
    for stats in &mut all {
        let Some(slot) = worker.ports.get_mut(stats.port_no) else { continue };
        let counted = slot.counters();
        stats.rx_packets = counted.rx_packets;
        stats.rx_bytes = counted.rx_bytes;
        stats.tx_packets = counted.tx_packets;
        stats.tx_bytes = counted.tx_bytes;
        stats.rx_dropped += counted.rx_drops;
        stats.rx_errors = counted.rx_errors;
        stats.tx_dropped += counted.tx_drops + slot.tx_refused;
        stats.tx_errors = counted.tx_errors;
    }
    Ok(all)
}
