//! Traces: the way of one packet through the tables, in the manner of `ovs-appctl ofproto/trace`.
//!
//! First the packet that is assumed, then each step, then what leaves. It must never send or count.

use control::{hex, unhex};
use datapath::{DropReason, Trace, Verdict};
use openflow::text::{PortNames, TextError};
use openflow::{Field, PortNo};
use packet::{PacketBuf, describe};
use serde_json::{Value, json};

use super::answer::Record;
use super::sample;
use crate::agent::Agent;
use crate::reconcile::no_tables;

/// The way of a packet: a match with `in_port`, or a port with the packet as a match or in hex.
pub(super) async fn trace(
    agent: &Agent,
    packet: &str,
    frame: Option<&str>,
) -> Result<Record, String> {
    let descs = agent.bridge.port_descs();
    let names = PortNames::new(descs.iter().map(|desc| (desc.name.as_str(), desc.port_no)));
    let (in_port, frame) = assumed(&names, packet, frame)?;
    // The flush brings the addresses that `NORMAL` has learnt, and the state of meters.
    agent.bridge.flush_counters().await;
    let now = agent.bridge.clock.now();
    let trace = agent
        .bridge
        .with_control(|control| control.trace(PacketBuf::from_slice(&frame), in_port, now))
        .ok_or_else(no_tables)?;
    let described = format!("in_port={in_port},{}", describe(&frame));
    let steps: Vec<Value> =
        trace.steps.iter().map(|step| json!({ "depth": step.depth, "text": step.text })).collect();
    let value = json!({
        "packet": described, "frame": hex(&frame), "steps": steps,
        "verdicts": verdicts(&trace, hex),
    });
    let changed = |bytes: &[u8]| {
        if bytes == frame { "unchanged".to_owned() } else { describe(bytes) }
    };
    let text = format!("packet: {described}\n{trace}{}", verdicts(&trace, changed).join("\n"));
    Ok(Record { text, value })
}

/// The way of a packet as text, for `ovs-appctl`: two last lines are in the words that tools read.
pub(crate) async fn trace_packet(
    agent: &Agent,
    packet: &str,
    frame: Option<&str>,
) -> Result<String, String> {
    trace(agent, packet, frame).await.map(|record| record.text)
}

/// The port and the frame of a request.
fn assumed(
    names: &PortNames,
    packet: &str,
    frame: Option<&str>,
) -> Result<(PortNo, Vec<u8>), String> {
    let wrong = |error: TextError| format!("frame: {error}");
    let named = |packet: &str| -> Result<PortNo, String> {
        let port = packet.strip_prefix("in_port=").unwrap_or(packet);
        names.parse_port(port).map_err(|error| format!("in_port: {error}"))
    };
    let Some(frame) = frame else {
        let matching = names.parse_match(packet).map_err(wrong)?;
        let port = matching.get(Field::InPort).map(|held| PortNo(held.value as u32));
        let port = port.ok_or("the packet has no port: write in_port=PORT in front of it")?;
        return Ok((port, sample::frame_of(&matching)?));
    };
    let is_hex = |letter: char| letter.is_ascii_hexdigit() || letter.is_whitespace();
    let bytes = if frame.chars().all(is_hex) {
        unhex(frame, packet::FRAME_CAPACITY)?
    } else {
        sample::frame_of(&names.parse_match(frame).map_err(wrong)?)?
    };
    Ok((named(packet)?, bytes))
}

/// A line for each verdict, with the frame as `show` has it.
fn verdicts(trace: &Trace, show: impl Fn(&[u8]) -> String) -> Vec<String> {
    let line = |verdict: &Verdict| match verdict {
        Verdict::Output { port, queue, frame } => {
            let queue = queue.map_or(String::new(), |queue| format!(" queue {}", queue.0));
            format!("output {port}{queue}: {}", show(frame.bytes()))
        }
        Verdict::PacketIn { message, .. } => {
            format!("packet-in {}: {}", message.reason.text(), show(&message.data))
        }
        Verdict::Held => "held until the other fragments have come".to_owned(),
        Verdict::Drop { reason: reason @ DropReason::NoOutput } if trace.ends_in_drop_entry() => {
            format!("drop {}: The last entry sends it nowhere: the drop is meant.", reason.name())
        }
        Verdict::Drop { reason } => format!("drop {}: {}", reason.name(), reason.help()),
    };
    trace.verdicts.iter().map(line).collect()
}
