//! The commands about rates and queues of ports.

use std::rc::Rc;

use datapath::QueueRate;

use super::Daemon;
use crate::agent::Agent;
use crate::vswitchd::qos::TYPES;
use crate::vswitchd::wanted::{Wanted, WantedPort};

/// The row of an interface, and its bridge.
fn interface<'a>(
    daemon: &Daemon,
    wanted: &'a Wanted,
    words: &[String],
) -> Result<(&'a WantedPort, Rc<Agent>), String> {
    let port = wanted.ports.iter().find(|port| words.first() == Some(&port.name));
    let port = port.ok_or("no such interface")?;
    Ok((port, daemon.bridges.find(Some(&port.bridge)).map_err(|_| "no such interface")?))
}

/// The rate and the queues of a port, with what has passed them.
pub(super) async fn show(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let wanted = Rc::clone(&daemon.wanted.borrow());
    let (port, agent) = interface(daemon, &wanted, words)?;
    let Some(kind) = &port.qos else {
        return Ok(format!("QoS not configured on {}\n", port.name));
    };
    let (rate_bps, queues) = agent.config().shape_of(port.number);
    let rate_bps = rate_bps.unwrap_or_default();
    let mut text = format!("QoS: {} {kind}\nmax-rate: {rate_bps}\n", port.name);
    let tallies = agent.bridge.queue_tallies(port.number);
    for queue in queues {
        let id = queue.id;
        text += &if id.0 == 0 { "\nDefault:\n".to_owned() } else { format!("\nQueue {}:\n", id.0) };
        if let Some(QueueRate::Bps(min)) = queue.min_rate {
            text += &format!("  min-rate: {min}\n");
        }
        let max = match queue.max_rate {
            Some(QueueRate::Bps(max)) => max,
            Some(QueueRate::Tenths(_)) | None => rate_bps,
        };
        let tally = tallies.iter().find(|(known, _)| *known == id);
        let tally = tally.map(|(_, tally)| *tally).unwrap_or_default();
        text += &format!(
            "  max-rate: {max}\n  tx_packets: {}\n  tx_bytes: {}\n  tx_errors: {}\n",
            tally.packets, tally.bytes, tally.dropped
        );
    }
    Ok(text)
}

/// The types of QoS that a port may have.
pub(super) async fn show_types(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let wanted = Rc::clone(&daemon.wanted.borrow());
    interface(daemon, &wanted, words)?;
    Ok(TYPES.map(|kind| format!("QoS type: {kind}\n")).concat())
}
