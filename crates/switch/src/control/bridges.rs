//! `weir ctl list-bridges`, `add-bridge` and `del-bridge`: the bridges of a running switch.

use serde_json::json;

use super::answer::{Record, Records};
use super::edit::edit;
use crate::agent::{Agent, Bridges};
use crate::config::{Config, SwitchArgs};

/// Adds a bridge; its record.
pub(super) async fn add(
    all: &Bridges,
    name: Option<&str>,
    options: &[String],
) -> Result<Records, String> {
    let args = SwitchArgs::of_bridge(name.unwrap_or_default(), options)?;
    let config = args.resolve().map_err(|error| error.to_string())?;
    let add = |wanted: &mut Config| {
        let has = |name: &str| wanted.bridges.iter().any(|other| other.name == name);
        if let Some(bridge) = config.bridges.iter().find(|bridge| has(&bridge.name)) {
            return Err(format!("bridge {}: there is a bridge of this name already", bridge.name));
        }
        wanted.bridges.extend(config.bridges);
        Ok(())
    };
    edit(all, add).await?;
    Ok(vec![record(&*all.find(name)?)])
}

/// Removes a bridge; no record.
pub(super) async fn remove(all: &Bridges, name: Option<&str>) -> Result<Records, String> {
    let name = name.ok_or("name the bridge that is to go")?;
    let remove = |wanted: &mut Config| {
        let name = &all.find(Some(name))?.name;
        wanted.bridges.retain(|bridge| bridge.name != *name);
        Ok(())
    };
    edit(all, remove).await?;
    Ok(Vec::new())
}

/// One bridge.
pub(super) fn record(agent: &Agent) -> Record {
    let dpid = agent.bridge.dpid();
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
        agent.name,
        if named.is_empty() { "none".to_owned() } else { named.join(" ") },
        controllers.join(", "),
    );
    let states: Vec<_> = endpoints
        .iter()
        .map(|name| json!({ "endpoint": name, "connected": is_up(name) }))
        .collect();
    let listening: Vec<String> = agent.listening().iter().map(ToString::to_string).collect();
    let value = json!({
        "name": agent.name,
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
