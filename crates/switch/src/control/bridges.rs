//! `weir ctl list-bridges`, `add-bridge` and `del-bridge`: the bridges of a running switch.
//!
//! All that may fail is tried before anything is made: names, datapath ids, devices, keys,
//! listeners. Devices are opened and closed off the agent's thread. A bridge that goes ends its
//! connections first, in order, so that no controller sees its ports go one by one.

use std::rc::Rc;

use channel::{Listener, Tls};
use netdev::Port;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::answer::{Record, Records, gone};
use super::opening::{KEY, open_within};
use super::ports::{Settings, add_port, check_device, close, open};
use crate::agent::{Agent, Bridges};
use crate::assemble::{made_dpid, tls_of};
use crate::config::{BridgeConfig, Forward, PortConfig, SwitchArgs};
use crate::serve::{listen, serve_bridge, serve_controllers};
use crate::worker::WorkerPort;

/// Adds a bridge; its record.
pub(super) async fn add(
    all: &Bridges,
    name: Option<&str>,
    options: &[String],
) -> Result<Records, String> {
    let args = SwitchArgs::of_bridge(name.unwrap_or_default(), options)?;
    let config = args.resolve().map_err(|error| error.to_string())?;
    let _alone = all.change().await;
    let mut agents = Vec::new();
    for bridge in config.bridges {
        agents.push(NewBridge::prepare(all, bridge, &[]).await?.begin(all).await?);
    }
    Ok(agents.iter().map(|agent| record(agent)).collect())
}

/// Removes a bridge; no record.
pub(super) async fn remove(all: &Bridges, name: Option<&str>) -> Result<Records, String> {
    name.ok_or("name the bridge that is to go")?;
    let _alone = all.change().await;
    end(all, all.find(name)?).await?;
    Ok(Vec::new())
}

/// A bridge that is to come, with all that could fail for it.
pub(super) struct NewBridge {
    config: BridgeConfig,
    tls: Option<Tls>,
    listeners: Vec<Listener>,
    ports: Vec<WorkerPort>,
}

impl NewBridge {
    /// Opens what a bridge needs; `leaving` are bridges that go before it comes.
    ///
    /// # Errors
    /// Why there cannot be such a bridge; then nothing stays open.
    pub(super) async fn prepare(
        all: &Bridges,
        config: BridgeConfig,
        leaving: &[Rc<Agent>],
    ) -> Result<Self, String> {
        let mut ports = Vec::new();
        let name = config.name.clone();
        match Self::try_prepare(all, config, leaving, &mut ports).await {
            Ok((config, tls, listeners)) => Ok(Self { config, tls, listeners, ports }),
            Err(why) => {
                close(devices(ports)).await;
                Err(format!("bridge {name}: {why}"))
            }
        }
    }

    async fn try_prepare(
        all: &Bridges,
        mut config: BridgeConfig,
        leaving: &[Rc<Agent>],
        ports: &mut Vec<WorkerPort>,
    ) -> Result<(BridgeConfig, Option<Tls>, Vec<Listener>), String> {
        let stays = |agent: &Rc<Agent>| !leaving.iter().any(|other| Rc::ptr_eq(other, agent));
        let staying: Vec<Rc<Agent>> = all.all().into_iter().filter(stays).collect();
        if staying.iter().any(|agent| agent.config.name == config.name) {
            return Err("there is a bridge of this name already".to_owned());
        }
        match config.forward {
            Forward::Openflow => {}
            Forward::Wire(_) => {
                let why = "a bridge without tables comes with a new start only";
                return Err(why.to_owned());
            }
        }
        for PortConfig { spec, .. } in &config.ports {
            check_device(all, spec)?;
        }
        for PortConfig { number, spec } in &config.ports {
            let port = open(all.fresh_serial(), *number, spec.clone()).await?;
            let (number, speed_bps) = (port.number, port.info.speed_bps);
            ports.push(port);
            Settings::in_config(&config, number).shape(number, speed_bps)?;
        }
        let taken: Vec<_> = staying.iter().map(|agent| agent.bridge.identity.dpid).collect();
        let dpid = config.dpid.unwrap_or_else(|| made_dpid(ports, &taken));
        config.dpid = Some(dpid);
        if let Some(other) = staying.iter().find(|agent| agent.bridge.identity.dpid == dpid) {
            let other = &other.config.name;
            return Err(format!("{dpid} is the datapath id of bridge {other}; give another dpid"));
        }
        let of = config.clone();
        let tls = open_within(KEY, "keys and certificates", move || tls_of(&of)).await?;
        let tls = tls.map_err(|error| error.to_string())?;
        let listeners = listen(&config, tls.as_ref()).await.map_err(|error| error.to_string())?;
        Ok((config, tls, listeners))
    }

    /// Closes everything again.
    pub(super) async fn close(self) {
        close(devices(self.ports)).await;
    }

    /// Makes the bridge, and then serves its controllers.
    pub(super) async fn begin(self, all: &Bridges) -> Result<Rc<Agent>, String> {
        let Self { config, tls, listeners, mut ports } = self;
        let begun = all.assembly().begin_bridge(&config, tls);
        let (agent, begun) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                close(devices(ports)).await;
                return Err(error.to_string());
            }
        };
        let agent = Rc::new(agent);
        serve_bridge(&agent);
        if let Err(why) = begin_ports(&agent, begun, &mut ports).await {
            close(devices(ports)).await;
            return Err(match take_apart(all, &agent).await {
                Ok(()) => why,
                Err(more) => format!("{why}; {more}"),
            });
        }
        agent.set_listening(&listeners);
        all.add(Rc::clone(&agent));
        serve_controllers(&agent, listeners);
        Ok(agent)
    }
}

/// Waits for the shards of a new bridge, and gives it these ports; those that it does not get are
/// left there.
async fn begin_ports(
    agent: &Agent,
    begun: Vec<oneshot::Receiver<()>>,
    ports: &mut Vec<WorkerPort>,
) -> Result<(), String> {
    for is_begun in begun {
        is_begun.await.map_err(|_| gone())?;
    }
    agent.bridge.barrier().await;
    let (name, dpid) = (agent.config.name.as_str(), agent.bridge.identity.dpid);
    tracing::info!(bridge = name, %dpid, "bridge added");
    while !ports.is_empty() {
        let port = ports.remove(0);
        let settings = Settings::in_config(&agent.config, port.number);
        add_port(agent, port, &settings).await?;
    }
    Ok(())
}

fn devices(mut ports: Vec<WorkerPort>) -> Vec<Port> {
    ports.iter_mut().filter_map(WorkerPort::take_device).collect()
}

/// Has a bridge go: its connections, its ports, and then all that is left of it.
pub(super) async fn end(all: &Bridges, agent: Rc<Agent>) -> Result<(), String> {
    let name = &agent.config.name;
    if !all.remove(&agent) {
        return Err(format!("{name} is the only bridge; stop the switch instead"));
    }
    agent.end_connections().await;
    take_apart(all, &agent).await
}

/// Takes ports, shards, name and tasks of a bridge away that no list has any more, or not yet.
async fn take_apart(all: &Bridges, agent: &Agent) -> Result<(), String> {
    let name = &agent.config.name;
    let devices = agent.bridge.remove_all_ports().await;
    let mut is_whole = devices.is_ok();
    close(devices.unwrap_or_default()).await;
    let ended = all.assembly().end_bridge(name);
    let mut shards = Vec::new();
    for shard in ended {
        match shard.await {
            Ok(shard) => shards.extend(shard),
            // A worker has ended; the others' shards go all the same.
            Err(_) => is_whole = false,
        }
    }
    agent.end_tasks();
    let tables = agent.bridge.close();
    // Giving back the memory of many entries takes long.
    if let Err(error) = spawn_blocking(move || drop((shards, tables))).await {
        tracing::error!(%error, "dropping a bridge has failed");
    }
    tracing::info!(bridge = name, "bridge removed");
    is_whole.then_some(()).ok_or_else(gone)
}

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
