//! Bridges that come to a switch that runs, and go from it.
//!
//! A bridge that goes ends its connections first, in order, so that no controller sees its ports go
//! one by one.

use std::rc::Rc;

use channel::{Endpoint, Listener, Tls};
use futures_util::stream::{self, StreamExt};
use netdev::Port;
use openflow::DatapathId;
use tokio::task::spawn_blocking;

use super::gone;
use super::ports::close;
use crate::agent::{Agent, Bridges};
use crate::bridge::WorkerGone;
use crate::config::BridgeConfig;
use crate::serve::{serve_shards, serve_time};

/// Bridges that come or go at one time: each mostly waits for the workers.
pub(super) const AT_ONCE: usize = 32;

/// A bridge that is to come, with what could fail for it; its ports are the plan's.
pub(super) struct NewBridge {
    pub(super) config: BridgeConfig,
    pub(super) dpid: DatapathId,
    pub(super) tls: Option<Tls>,
    pub(super) listeners: Vec<(Endpoint, Listener)>,
}

/// Makes a bridge without ports, which controllers do not see yet.
pub(super) async fn begin(all: &Bridges, new: &mut NewBridge) -> Result<Rc<Agent>, String> {
    let begun = all.assembly().begin_bridge(&new.config, new.dpid, new.tls.take());
    let (agent, begun) = begun.map_err(|error| error.to_string())?;
    let agent = Rc::new(agent);
    serve_shards(&agent);
    for is_begun in begun {
        if is_begun.await.is_err() {
            take_apart(all, &[agent]).await?;
            return Err(gone());
        }
    }
    agent.bridge.barrier().await;
    serve_time(&agent).await;
    tracing::info!(bridge = agent.name, dpid = %new.dpid, "bridge added");
    Ok(agent)
}

/// Has bridges go: their connections, their ports, and then all that is left of them.
pub(super) async fn end(all: &Bridges, agents: &[Rc<Agent>]) -> Result<(), String> {
    all.remove(agents);
    for agent in agents {
        agent.end_connections().await;
    }
    take_apart(all, agents).await
}

/// Takes ports, shards, names and tasks of bridges away that no list has any more, or not yet.
async fn take_apart(all: &Bridges, agents: &[Rc<Agent>]) -> Result<(), String> {
    let mut is_whole = true;
    let mut devices: Vec<Port> = Vec::new();
    let remove = |agent: &Rc<Agent>| {
        let agent = Rc::clone(agent);
        async move { agent.bridge.remove_all_ports().await }
    };
    let mut removed = stream::iter(agents).map(remove).buffered(AT_ONCE);
    while let Some(ports) = removed.next().await {
        match ports {
            Ok(ports) => devices.extend(ports),
            Err(WorkerGone) => is_whole = false,
        }
    }
    close(devices).await;
    let end = |agent: &Rc<Agent>| all.assembly().end_bridge(&agent.name);
    let ending: Vec<_> = agents.iter().map(end).collect();
    let mut left = Vec::new();
    for (agent, ended) in agents.iter().zip(ending) {
        for shard in ended {
            match shard.await {
                Ok(shard) => left.push((shard, None)),
                // A worker has ended; the others' shards go all the same.
                Err(_) => is_whole = false,
            }
        }
        agent.end_tasks();
        left.push((None, agent.bridge.close()));
        tracing::info!(bridge = agent.name, "bridge removed");
    }
    // Giving back the memory of many entries takes long.
    if let Err(error) = spawn_blocking(move || drop(left)).await {
        tracing::error!(%error, "dropping a bridge has failed");
    }
    is_whole.then_some(()).ok_or_else(gone)
}
