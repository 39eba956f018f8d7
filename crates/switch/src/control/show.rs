//! The commands that OpenFlow has no message for: show, trace, counters.

use std::fmt::Write;

use control::{hex, unhex};
use datapath::LearntAddress;
use openflow::PortNo;
use openflow::text::parse_match;
use packet::PacketBuf;
use serde_json::{Value, json};

use super::answer::{Record, Records, no_tables};
use super::sample;
use crate::agent::Agent;

/// The configuration of the switch, its controllers, and remarks about its ports.
pub(super) fn show(agent: &Agent) -> Record {
    let bridge = &agent.bridge;
    let notes = bridge.port_notes();
    let versions: Vec<&str> = agent.config.versions.iter().map(|version| version.name()).collect();
    let peers = agent.peer_infos();
    let mut text = format!(
        "versions:{} fail_mode:{} forward:{}",
        versions.join(","),
        agent.config.fail_mode.name(),
        agent.config.forward.name(),
    );
    for endpoint in &agent.controllers() {
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
    for (port, note) in notes.iter().flat_map(|(no, all)| all.iter().map(move |one| (no, one))) {
        push_line(&mut text, &format!(" port {port}: {note}"));
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
    let notes: Vec<Value> =
        notes.iter().map(|(port, notes)| json!({ "port_no": port.0, "notes": notes })).collect();
    let value = json!({
        "versions": versions,
        "fail_mode": agent.config.fail_mode.name(),
        "forward": agent.config.forward.name(),
        "sw_desc": bridge.identity.desc.sw_desc,
        "configured_controllers":
            agent.controllers().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "controllers": controllers,
        "port_notes": notes,
    });
    Record { text, value }
}

fn push_line(text: &mut String, line: &str) {
    text.push('\n');
    text.push_str(line);
}

/// The path of a frame through the tables.
pub(super) async fn trace(agent: &Agent, in_port: u32, frame: String) -> Result<Record, String> {
    let is_hex = |reply: char| reply.is_ascii_hexdigit() || reply.is_whitespace();
    let frame = if frame.chars().all(is_hex) {
        unhex(&frame, packet::FRAME_CAPACITY)?
    } else {
        let matching = parse_match(&frame).map_err(|error| format!("frame: {error}"))?;
        sample::frame_of(&matching)?
    };
    let in_port = PortNo(in_port);
    // The flush brings the addresses that `NORMAL` has learnt, and the state of meters.
    agent.bridge.flush_counters().await;
    let now = agent.bridge.clock.now();
    let trace = agent
        .bridge
        .with_control(|control| control.trace(PacketBuf::from_slice(&frame), in_port, now))
        .ok_or_else(no_tables)?;
    let mut text = trace.to_string();
    let mut verdicts = Vec::new();
    for verdict in &trace.verdicts {
        let line = match verdict {
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
        let _ = writeln!(text, "{line}");
        verdicts.push(line);
    }
    let steps: Vec<Value> =
        trace.steps.iter().map(|step| json!({ "depth": step.depth, "text": step.text })).collect();
    let text = text.trim_end().to_owned();
    Ok(Record { text, value: json!({ "steps": steps, "verdicts": verdicts }) })
}

/// The addresses that `NORMAL` has learnt, a record each, as `ovs-appctl fdb/show` prints them.
pub(super) async fn macs(agent: &Agent) -> Result<Records, String> {
    agent.bridge.flush_counters().await;
    let now = agent.bridge.clock.now();
    let learnt = agent.bridge.with_control(|control| control.learnt_addresses(now));
    let record = |one: LearntAddress| {
        let LearntAddress { port, vlan, address, age_s } = one;
        // As a string, so that it is padded.
        let shown = port.to_string();
        Record {
            text: format!("{shown:>5}  {vlan:>4}  {address}  {age_s:>3}"),
            value: json!({
                "port": port.0, "vlan": vlan, "mac": address.to_string(), "age_s": age_s,
            }),
        }
    };
    Ok(learnt.ok_or_else(no_tables)?.into_iter().map(record).collect())
}

/// Every counter by name.
pub(super) async fn counters(agent: &Agent) -> Vec<(String, u64)> {
    agent.bridge.flush_counters().await;
    let counted = agent.bridge.with_control(|control| control.counters()).unwrap_or_default();
    let own = agent.counters.all().map(|(name, value)| (name.to_owned(), value));
    let whole = datapath::Counter::ALL
        .iter()
        .map(|counter| (format!("datapath_{}", counter.name()), counted.get(*counter)));
    let drops = datapath::DropReason::ALL
        .iter()
        .map(|reason| (format!("drop_{}", reason.name()), counted.drops(*reason)));
    own.chain(whole).chain(drops).collect()
}

/// One counter's record.
pub(super) fn counter((name, value): &(String, u64)) -> Record {
    Record { text: format!("{name} {value}"), value: json!({ "name": name, "value": value }) }
}
