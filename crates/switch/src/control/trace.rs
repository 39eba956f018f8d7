//! Traces: the way of one packet through the tables, in the manner of `ovs-appctl ofproto/trace`.
//!
//! First the packet that is assumed, then each step, then what leaves. It must never send or count.

use control::{hex, unhex};
use datapath::{DropReason, Trace, TraceStep, Verdict};
use openflow::text::PortNames;
use openflow::{Field, Match, PortNo};
use packet::{Meta, PacketBuf, describe};
use serde_json::{Value, json};

use super::answer::Record;
use super::sample;
use crate::agent::Agent;
use crate::reconcile::no_tables;

/// The way of a frame through the tables of a bridge.
pub(crate) struct Traced {
    pub(crate) trace: Trace,
    /// The packet as the pipeline has left it, if it has come there.
    pub(crate) left: Option<(PacketBuf, Meta)>,
}

impl Traced {
    /// Steps and verdicts, a line each.
    pub(crate) fn text(&self, frame: &[u8]) -> String {
        let changed = |bytes: &[u8]| {
            if bytes == frame { "unchanged".to_owned() } else { describe(bytes) }
        };
        format!("{}{}", self.trace, verdicts(&self.trace, changed).join("\n"))
    }
}

/// Traces a frame from a port.
pub(crate) async fn trace_frame(
    agent: &Agent,
    in_port: PortNo,
    frame: &[u8],
) -> Result<Traced, String> {
    // The flush brings the addresses that `NORMAL` has learnt, and the state of meters.
    agent.bridge.flush_counters().await;
    let now = agent.bridge.clock.now();
    let packet = PacketBuf::from_slice(frame);
    let traced = agent.bridge.with_control(|control| control.trace_to_end(packet, in_port, now));
    traced.map(|(trace, left)| Traced { trace, left }).ok_or_else(no_tables)
}

/// The way of a packet: a match with `in_port`, or a port with the packet as a match or in hex.
pub(super) async fn trace(
    agent: &Agent,
    packet: &str,
    frame: Option<&str>,
) -> Result<Record, String> {
    let (in_port, frame) = assumed(agent, packet, frame)?;
    let traced = trace_frame(agent, in_port, &frame).await?;
    let described = format!("in_port={in_port},{}", describe(&frame));
    let step = |step: &TraceStep| json!({ "depth": step.depth, "text": step.text });
    let steps: Vec<Value> = traced.trace.steps.iter().map(step).collect();
    let value = json!({
        "packet": described, "frame": hex(&frame), "steps": steps,
        "verdicts": verdicts(&traced.trace, hex),
    });
    Ok(Record { text: format!("packet: {described}\n{}", traced.text(&frame)), value })
}

/// The port and the frame of a request.
pub(crate) fn assumed(
    agent: &Agent,
    packet: &str,
    frame: Option<&str>,
) -> Result<(PortNo, Vec<u8>), String> {
    let descs = agent.bridge.port_descs();
    let names = PortNames::new(descs.iter().map(|desc| (desc.name.as_str(), desc.port_no)));
    let named = |packet: &str| -> Result<PortNo, String> {
        let port = packet.strip_prefix("in_port=").unwrap_or(packet);
        names.parse_port(port).map_err(|error| format!("in_port: {error}"))
    };
    let Some(frame) = frame else {
        let matching = fields_of(&names, packet)?;
        let port = matching.get(Field::InPort).map(|held| PortNo(held.value as u32));
        let port = port.ok_or("the packet has no port: write in_port=PORT in front of it")?;
        return Ok((port, sample::frame_of(&matching)?));
    };
    let is_hex = |letter: char| letter.is_ascii_hexdigit() || letter.is_whitespace();
    let bytes = if frame.chars().all(is_hex) {
        unhex(frame, packet::FRAME_CAPACITY)?
    } else {
        sample::frame_of(&fields_of(&names, frame)?)?
    };
    Ok((named(packet)?, bytes))
}

fn fields_of(names: &PortNames, text: &str) -> Result<Match, String> {
    names.parse_match(text).map_err(|error| format!("frame: {error}"))
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
