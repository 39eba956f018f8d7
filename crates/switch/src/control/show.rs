//! The commands that OpenFlow has no message for: show, learnt addresses, counters.

use datapath::LearntAddress;
use serde_json::{Value, json};

use super::answer::{Record, Records};
use crate::agent::Agent;
use crate::reconcile::no_tables;

/// The configuration of the switch, its controllers, and remarks about its ports.
pub(super) fn show(agent: &Agent) -> Record {
    let bridge = &agent.bridge;
    let notes = bridge.port_notes();
    let config = agent.config();
    let versions: Vec<&str> = config.versions.iter().map(|version| version.name()).collect();
    let peers = agent.peer_infos();
    let mut text = format!(
        "versions:{} fail_mode:{} forward:{}",
        versions.join(","),
        config.fail_mode.name(),
        config.forward.name(),
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
    let remarks = agent.remarks();
    for remark in &remarks {
        push_line(&mut text, &format!(" database: {remark}"));
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
        "fail_mode": config.fail_mode.name(),
        "forward": config.forward.name(),
        "sw_desc": bridge.desc().sw_desc,
        "configured_controllers":
            agent.controllers().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "controllers": controllers,
        "port_notes": notes,
        "remarks": remarks,
    });
    Record { text, value }
}

fn push_line(text: &mut String, line: &str) {
    text.push('\n');
    text.push_str(line);
}

/// The addresses that `NORMAL` has learnt, a record each, as `ovs-appctl fdb/show` prints them.
pub(super) async fn macs(agent: &Agent) -> Result<Records, String> {
    agent.bridge.flush_counters().await;
    let now = agent.bridge.clock.now();
    let learnt = agent.bridge.with_control(|control| control.learnt_addresses(now));
    let record = |one: LearntAddress| {
        let LearntAddress { port, vlan, address, age_s, is_static } = one;
        // As a string, so that it is padded.
        let shown = port.to_string();
        let age = if is_static { "static".to_owned() } else { age_s.to_string() };
        Record {
            text: format!("{shown:>5}  {vlan:>4}  {address}  {age:>3}"),
            value: json!({
                "port": port.0, "vlan": vlan, "mac": address.to_string(), "age_s": age_s,
                "static": is_static,
            }),
        }
    };
    Ok(learnt.ok_or_else(no_tables)?.into_iter().map(record).collect())
}

/// The addresses that `NORMAL` has learnt, a line each.
pub(crate) async fn learnt_addresses(agent: &Agent) -> Result<Vec<String>, String> {
    Ok(macs(agent).await?.into_iter().map(|record| record.text).collect())
}

/// Every counter by name, with its value.
pub(crate) async fn named_counters(agent: &Agent) -> Vec<(String, u64)> {
    let named = |record: Record| {
        let name = record.value["name"].as_str()?.to_owned();
        Some((name, record.value["value"].as_u64()?))
    };
    counters(agent).await.into_iter().filter_map(named).collect()
}

/// Every counter: name, value and meaning.
pub(super) async fn counters(agent: &Agent) -> Records {
    agent.bridge.flush_counters().await;
    let counted = agent.bridge.with_control(|control| control.counters()).unwrap_or_default();
    let own = agent.counters.all().map(|(name, value, help)| counter(name.to_owned(), value, help));
    let whole = datapath::Counter::ALL
        .iter()
        .map(|row| counter(format!("datapath_{}", row.name()), counted.get(*row), row.help()));
    let drops = datapath::DropReason::ALL
        .iter()
        .map(|row| counter(format!("drop_{}", row.name()), counted.drops(*row), row.help()));
    own.chain(whole).chain(drops).collect()
}

fn counter(name: String, value: u64, help: &str) -> Record {
    let text = format!("{name} {value}");
    Record { text, value: json!({ "name": name, "value": value, "help": help }) }
}
