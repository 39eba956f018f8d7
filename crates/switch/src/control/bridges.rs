//! `weir ctl list-bridges`: the bridges and the states of their connections, a record each.

use serde_json::json;

use super::answer::Record;
use crate::agent::Agent;

/// One bridge.
pub(super) fn record(agent: &Agent) -> Record {
    let (config, dpid) = (&agent.config, agent.bridge.identity.dpid);
    let ports = agent.bridge.port_descs();
    let peers = agent.peer_infos();
    let endpoints: Vec<String> = agent.controllers().iter().map(ToString::to_string).collect();
    let is_up = |name: &str| peers.iter().any(|peer| peer.name == name);
    let missing = endpoints.iter().filter(|name| !is_up(name));
    let mut controllers: Vec<String> = peers
        .iter()
        .map(|peer| format!("{} ({}, {})", peer.name, peer.version, peer.role.text()))
        .collect();
    controllers.extend(missing.map(|name| format!("{name} (not connected)")));
    if controllers.is_empty() {
        controllers.push("none".to_owned());
    }
    let named: Vec<String> =
        ports.iter().map(|port| format!("{}={}", port.port_no, port.name)).collect();
    let text = format!(
        "{}: dpid {dpid}, ports {}, controllers {}",
        config.name,
        if named.is_empty() { "none".to_owned() } else { named.join(" ") },
        controllers.join(", "),
    );
    let states: Vec<_> = endpoints
        .iter()
        .map(|name| json!({ "endpoint": name, "connected": is_up(name) }))
        .collect();
    let listening: Vec<String> = agent.listening.borrow().iter().map(ToString::to_string).collect();
    let value = json!({
        "name": config.name,
        "dpid": dpid.to_string(),
        "ports": ports
            .iter()
            .map(|port| json!({ "port_no": port.port_no.0, "name": port.name }))
            .collect::<Vec<_>>(),
        "configured_controllers": states,
        "connections": peers
            .iter()
            .map(|peer| {
                let (version, role) = (peer.version.name(), peer.role.text());
                json!({ "name": peer.name, "version": version, "role": role })
            })
            .collect::<Vec<_>>(),
        "listening": listening,
    });
    Record { text, value }
}
