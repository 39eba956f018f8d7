//! The answer to each request of the control socket.

use std::io;

use control::{ControlCommand, ControlLine, ControlRequest};
use serde_json::Value;

use super::server::Lines;
use super::{bridges, caches, counts, ports, reload, show, trace, workers};
use crate::agent::{Agent, Bridges};

/// A record of an answer, in both forms; the request chooses one.
pub(super) struct Record {
    pub(super) text: String,
    pub(super) value: Value,
}

/// Carries out a request and sends its records; the inner error says why the request is refused.
pub(super) async fn answer(
    all: &Bridges,
    request: ControlRequest,
    lines: &mut Lines,
) -> io::Result<Result<(), String>> {
    let json = request.json;
    let named = request.bridge.as_deref();
    let records = match (&request.command, all.find(named)) {
        (ControlCommand::AddBridge { options }, _) => bridges::add(all, named, options).await,
        (ControlCommand::DelBridge, _) => bridges::remove(all, named).await,
        (ControlCommand::ListBridges, _) => {
            Ok(all.all().iter().map(|agent| bridges::record(agent)).collect())
        }
        (ControlCommand::Reload, _) => reload::reload(all).await,
        (ControlCommand::Counts, _) => Ok(counts::counts(all).await),
        (_, Ok(agent)) => records(all, &agent, request.command).await,
        (_, Err(why)) => Err(why),
    };
    let records = match records {
        Ok(records) => records,
        Err(why) => return Ok(Err(why)),
    };
    for Record { text, value } in records {
        let line = if json { ControlLine::Value(value) } else { ControlLine::Text(text) };
        lines.send(&line).await?;
    }
    Ok(Ok(()))
}

/// The records of an answer.
pub(super) type Records = Vec<Record>;

async fn records(all: &Bridges, agent: &Agent, command: ControlCommand) -> Result<Records, String> {
    match command {
        ControlCommand::Show => Ok(vec![show::show(agent)]),
        // The server changes to OpenFlow after the answer.
        ControlCommand::Openflow => Ok(Vec::new()),
        // `answer` lists all bridges; here it is one.
        ControlCommand::ListBridges => Ok(vec![bridges::record(agent)]),
        ControlCommand::Trace { packet, frame } => {
            Ok(vec![trace::trace(agent, &packet, frame.as_deref()).await?])
        }
        ControlCommand::Ports => Ok(ports::ports(agent)),
        ControlCommand::AddPort { port, settings } => {
            ports::add(all, agent, &port, &settings).await
        }
        ControlCommand::SetPort { port, number, settings } => {
            ports::set(all, agent, &port, number, &settings).await
        }
        ControlCommand::Reload
        | ControlCommand::Counts
        | ControlCommand::AddBridge { .. }
        | ControlCommand::DelBridge => Err("this is asked of the whole switch".to_owned()),
        ControlCommand::DelPort { port } => ports::remove(all, agent, &port).await,
        ControlCommand::Workers => workers::workers(agent).await,
        ControlCommand::Caches { set } => caches::caches(all, agent, set.as_deref()).await,
        ControlCommand::Macs => show::macs(agent).await,
        ControlCommand::Counters => Ok(show::counters(agent).await),
    }
}
