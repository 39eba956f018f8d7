//! The commands that OpenFlow has no message for: show, trace, counters.

use std::fmt::Write;

use openflow::PortNo;
use openflow::text::{format_port_desc, parse_match};
use packet::PacketBuf;
use serde_json::{Value, json};

use super::answer::{Record, VERSION, no_tables};
use super::{sample, value};
use crate::agent::Agent;

/// Who the switch is, its controllers and ports.
pub(super) fn show(agent: &Agent) -> Record {
    let bridge = &agent.bridge;
    let (identity, ports, notes) = (&bridge.identity, bridge.port_descs(), bridge.port_notes());
    let versions: Vec<&str> = agent.config.versions.iter().map(|version| version.name()).collect();
    let peers = agent.peer_infos();
    let mut text = format!(
        "dpid:{} versions:{} n_tables:{} fail_mode:{} forward:{}",
        identity.dpid,
        versions.join(","),
        agent.config.tables,
        agent.config.fail_mode.name(),
        agent.config.forward.name(),
    );
    for endpoint in &agent.config.controllers {
        let name = endpoint.to_string();
        if !peers.iter().any(|peer| peer.name == name) {
            push_line(&mut text, &format!(" controller {name}: not connected"));
        }
    }
    for peer in &peers {
        let line =
            format!(" controller {}: {}, role {}", peer.name, peer.version, peer.role.text());
        push_line(&mut text, &line);
    }
    for port in &ports {
        push_line(&mut text, &format_port_desc(VERSION, port));
        for note in notes.iter().filter(|(no, _)| *no == port.port_no).flat_map(|(_, n)| n) {
            push_line(&mut text, &format!("     note: {note}"));
        }
    }
    let controllers: Vec<Value> = peers
        .iter()
        .map(|peer| {
            json!({
                "name": peer.name,
                "version": peer.version.name(),
                "role": peer.role.text(),
            })
        })
        .collect();
    let value = json!({
        "dpid": identity.dpid.to_string(),
        "versions": versions,
        "n_tables": agent.config.tables,
        "fail_mode": agent.config.fail_mode.name(),
        "forward": agent.config.forward.name(),
        "sw_desc": identity.desc.sw_desc,
        "configured_controllers":
            agent.config.controllers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "controllers": controllers,
        "ports": ports.iter().map(value::port_desc).collect::<Vec<_>>(),
    });
    Record { text, value }
}

fn push_line(text: &mut String, line: &str) {
    text.push('\n');
    text.push_str(line);
}

/// The way of a frame through the tables.
pub(super) async fn trace(agent: &Agent, in_port: u32, frame: String) -> Result<Record, String> {
    let is_hex = |letter: char| letter.is_ascii_hexdigit() || letter.is_whitespace();
    let frame = if frame.chars().all(is_hex) {
        unhex(&frame)?
    } else {
        let matching = parse_match(&frame).map_err(|error| format!("frame: {error}"))?;
        sample::frame_of(&matching)?
    };
    let in_port = PortNo(in_port);
    // What `NORMAL` has learnt and how meters stand is what is folded.
    agent.bridge.fold().await;
    let now = agent.bridge.clock.now();
    let trace = agent
        .bridge
        .with_control(|control| control.trace(PacketBuf::from_slice(&frame), in_port, now))
        .ok_or_else(no_tables)?;
    let mut text = trace.to_string();
    let mut verdicts = Vec::new();
    for verdict in &trace.verdicts {
        let told = match verdict {
            datapath::Verdict::Output { port, queue, frame } => {
                let queue = queue.map_or(String::new(), |queue| format!(" queue {}", queue.0));
                format!("output {port}{queue}: {}", hex(frame.bytes()))
            }
            datapath::Verdict::PacketIn { message, .. } => {
                format!("packet-in {}: {}", message.reason.text(), hex(&message.data))
            }
            datapath::Verdict::Held => "held until the other fragments have come".to_owned(),
            datapath::Verdict::Drop { reason } => {
                format!("drop {}: {}", reason.name(), reason.help())
            }
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{told}");
        verdicts.push(told);
    }
    let steps: Vec<Value> =
        trace.steps.iter().map(|step| json!({ "depth": step.depth, "text": step.text })).collect();
    let text = text.trim_end().to_owned();
    Ok(Record { text, value: json!({ "steps": steps, "verdicts": verdicts }) })
}

/// Every counter by name.
pub(super) async fn counters(agent: &Agent) -> Result<Vec<(String, u64)>, String> {
    agent.bridge.fold().await;
    let counted = agent.bridge.with_control(|control| control.counters()).unwrap_or_default();
    let own = agent.counters.all().map(|(name, value)| (name.to_owned(), value));
    let whole = datapath::Counter::ALL
        .iter()
        .map(|counter| (format!("datapath_{}", counter.name()), counted.get(*counter)));
    let drops = datapath::DropReason::ALL
        .iter()
        .map(|reason| (format!("drop_{}", reason.name()), counted.drops(*reason)));
    Ok(own.chain(whole).chain(drops).collect())
}

/// One counter's record.
pub(super) fn counter((name, value): &(String, u64)) -> Record {
    Record { text: format!("{name} {value}"), value: json!({ "name": name, "value": value }) }
}

pub(super) fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()
        .ok_or("the frame must be hex digits")?;
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("the frame has half a byte at its end".to_owned());
    }
    if pairs.len() > packet::FRAME_CAPACITY {
        return Err(format!("the frame is longer than {} bytes", packet::FRAME_CAPACITY));
    }
    Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::{hex, unhex};

    #[test]
    fn hex_reads_back() {
        assert_eq!(unhex("00ff 1a2B\n").unwrap(), [0, 255, 0x1a, 0x2b]);
        assert_eq!(hex(&[0, 255]), "00ff");
        for bad in ["0", "0g", "\u{e9}\u{e9}"] {
            assert!(unhex(bad).is_err());
        }
        assert!(unhex(&"00".repeat(packet::FRAME_CAPACITY + 1)).is_err());
    }
}
