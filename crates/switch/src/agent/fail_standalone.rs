//! Fail-standalone (clause 6.3.3): a switch without its controllers forwards as a learning switch.
//!
//! When no configured controller has been connected for three times the inactivity probe, the flow
//! tables are the switch's own: it deletes all entries and adds one that sends everything to
//! `NORMAL`. When a configured controller is back, that entry goes. Controllers that connect to a
//! listener do not end the mode, so a look by `ovs-ofctl` does not. It must never touch the tables
//! while a controller is connected: one that connects while they are being emptied finds the rest
//! of them. Nor may it keep the agent from the other bridges.

use std::rc::Rc;
use std::time::Duration;

use openflow::flow::{FlowMod, FlowModCommand};
use openflow::{Action, Cookie, Instruction, PortNo, TableId, Version, Xid};

use super::Agent;
use super::connection::sweep_all;
use crate::bridge::{Applied, BridgeCommand, Task};
use crate::request::{ConnectionId, ErrorData, ReplyPosition, RequestContext};

/// The version whose flow-mods these are, whatever versions there are besides.
const OWN_VERSION: Version = Version::V1_3;

/// The cookie of the entry: "weir" and "alon".
const COOKIE: Cookie = Cookie(0x7765_6972_616c_6f6e);

/// No connection: nobody gets the replies.
const NO_CONNECTION: ConnectionId = ConnectionId(0);

/// Watches the connections to the controllers, for ever.
pub(crate) async fn run_fail_standalone(agent: Rc<Agent>) {
    // Before the first connection there is nothing that could be lost.
    let mut grace = Duration::ZERO;
    loop {
        while agent.has_configured_controller() {
            agent.connections_changed().await;
        }
        let is_alone = tokio::select! {
            biased;
            () = controller(&agent) => false,
            () = tokio::time::sleep(grace) => true,
        };
        grace = Duration::from_secs(agent.config.inactivity_probe_s.max(1).into()) * 3;
        if !is_alone {
            continue;
        }
        tracing::warn!(bridge = agent.log_name(), "no controller: forwarding as a learning switch");
        tokio::select! {
            biased;
            () = controller(&agent) => {}
            () = take_over(&agent) => controller(&agent).await,
        }
        tracing::info!(
            bridge = agent.log_name(),
            "a controller is back: no longer a learning switch"
        );
        send(&agent, normal(FlowModCommand::DeleteStrict)).await;
    }
}

async fn controller(agent: &Agent) {
    while !agent.has_configured_controller() {
        agent.connections_changed().await;
    }
}

/// Makes the tables the switch's own.
async fn take_over(agent: &Agent) {
    send(agent, delete_all()).await;
    send(agent, normal(FlowModCommand::Add)).await;
}

async fn send(agent: &Agent, flow_mod: FlowMod) {
    let request = || RequestContext {
        from: NO_CONNECTION,
        version: OWN_VERSION,
        xid: Xid(0),
        position: ReplyPosition::Before(0),
        error_data: ErrorData::new(&[]),
    };
    let done = match agent.bridge.apply(OWN_VERSION, BridgeCommand::FlowMod(flow_mod), request) {
        Ok(Applied::Later(Task::Sweep(sweep))) => sweep_all(agent, sweep).await,
        Ok(
            Applied::Reply(_)
            | Applied::Nothing
            | Applied::PortStatus(_)
            | Applied::AtBarrier
            | Applied::Later(Task::Statistics(_)),
        ) => Ok(()),
        Err(error) => Err(error),
    };
    agent.send_ops();
    if let Err(error) = done {
        tracing::warn!(error = error.name(), "the entry of a learning switch is refused");
    }
}

fn delete_all() -> FlowMod {
    FlowMod { table_id: TableId::ALL, ..FlowMod::new(FlowModCommand::Delete) }
}

fn normal(command: FlowModCommand) -> FlowMod {
    FlowMod {
        cookie: COOKIE,
        // Only ours is deleted, not one that a controller has put in its place.
        cookie_mask: u64::MAX,
        priority: 0,
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo::NORMAL)])],
        ..FlowMod::new(command)
    }
}
