//! Ports of a bridge that runs: opened, added, set, removed and closed.
//!
//! A device is opened and closed off the agent's thread, so that neither controllers nor packets
//! wait for it.

use datapath::PortVlans;
use netdev::{Port, PortError, PortSpec};
use openflow::PortNo;
use tokio::task::spawn_blocking;

use super::opening::{DEVICE, open_within};
use super::{gone, no_tables};
use crate::agent::Agent;
use crate::assemble::queues_of;
use crate::bridge::{BridgeQueues, WorkerGone};
use crate::config::PortSet;
use crate::worker::{PortSerial, Shaper, WorkerPort, close_all};

/// The queues of a port with these settings, where it has any.
pub(super) fn shape(
    set: &PortSet,
    number: PortNo,
    speed_bps: u64,
) -> Result<Option<(Shaper, BridgeQueues)>, String> {
    let has_queues = set.rate_bps.is_some() || !set.queues.is_empty();
    has_queues
        .then(|| queues_of(number, speed_bps, set.rate_bps, &set.queues))
        .transpose()
        .map_err(|error| error.to_string())
}

/// Opens a port.
pub(super) async fn open(
    serial: PortSerial,
    number: PortNo,
    spec: PortSpec,
) -> Result<WorkerPort, String> {
    open_by(WorkerPort::open, serial, number, spec).await
}

/// A function that opens a port, and may hang.
pub(super) type OpenPort = fn(PortNo, PortSerial, PortSpec) -> Result<WorkerPort, PortError>;

/// Opens a port by such a function.
pub(super) async fn open_by(
    open: OpenPort,
    serial: PortSerial,
    number: PortNo,
    spec: PortSpec,
) -> Result<WorkerPort, String> {
    let name = spec.to_string();
    let open = move || open(number, serial, spec);
    let opened = open_within(DEVICE, format_args!("port {name}"), open).await?;
    opened.map_err(|error| error.to_string())
}

/// Adds an open port, which is closed where that cannot be.
pub(super) async fn add_port(
    agent: &Agent,
    mut port: WorkerPort,
    set: &PortSet,
) -> Result<(), String> {
    let number = port.number;
    let queues = match shape(set, number, port.info.speed_bps) {
        Ok(queues) => queues,
        Err(error) => {
            close(port.take_device()).await;
            return Err(error);
        }
    };
    let (shaper, queues) = queues.unzip();
    port.shaper = shaper;
    agent.bridge.with_control(|control| control.port_vlans(number, set.vlans.clone()));
    for note in &port.info.notes {
        tracing::info!(bridge = agent.log_name(), port = %number, note, "port opened");
    }
    tracing::info!(bridge = agent.log_name(), port = %number, spec = %port.spec, "port added");
    let status = agent.bridge.add_port(port, queues).await.map_err(|WorkerGone| gone())?;
    if let Some(status) = status {
        agent.publish_port_status(status);
    }
    agent.send_ops();
    Ok(())
}

/// Gives a port other settings than it has.
pub(super) fn set_port(
    agent: &Agent,
    number: PortNo,
    before: &PortSet,
    set: &PortSet,
) -> Result<(), String> {
    if (before.rate_bps, &before.queues) != (set.rate_bps, &set.queues) {
        let speed_bps = agent.bridge.speed_of(number).unwrap_or(0);
        agent.bridge.reshape(number, shape(set, number, speed_bps)?);
    }
    agent.bridge.with_control(|control| control.port_vlans(number, set.vlans.clone()));
    agent.send_ops();
    Ok(())
}

/// Removes a port; its device is to be closed, or used again.
pub(super) async fn remove_port(agent: &Agent, number: PortNo) -> Result<Option<Port>, String> {
    let publish = |status| agent.publish_port_status(status);
    let device = agent.bridge.remove_port(number, publish).await.map_err(|WorkerGone| gone())?;
    agent.bridge.with_control(|control| control.port_vlans(number, PortVlans::default()));
    agent.send_ops();
    tracing::info!(bridge = agent.log_name(), port = %number, "port removed");
    Ok(device)
}

/// Closes devices, many at a time: the kernel takes 25 ms for each.
pub(super) async fn close(devices: impl IntoIterator<Item = Port>) {
    let devices: Vec<Port> = devices.into_iter().collect();
    if devices.is_empty() {
        return;
    }
    if let Err(error) = spawn_blocking(move || close_all(devices)).await {
        tracing::error!(%error, "closing a device has failed");
    }
}

/// Ports in pairs cannot come and go alone.
pub(super) fn may_change_ports(agent: &Agent) -> Result<(), String> {
    agent.bridge.with_control(|_| ()).ok_or_else(|| {
        format!("{}, and its ports stand in pairs; they cannot come and go", no_tables())
    })
}
