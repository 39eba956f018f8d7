//! Fail-standalone (clause 6.3.3): a switch without its controllers forwards as a learning switch.
//!
//! When contact with every controller that is connected to has been lost for three times the
//! inactivity probe, the flow tables are the switch's own: it deletes what is in them and adds one
//! entry that sends everything to `NORMAL`. When a controller is back, that entry goes. Controllers
//! that come by themselves do not end it, so that a look by `ovs-ofctl` does not. It must never
//! touch the tables while a controller is connected: one that comes while they are being emptied
//! finds what is left of them. Nor may it keep the agent from the other bridges.

use std::rc::Rc;
use std::time::Duration;

use openflow::flow::{FlowMod, FlowModCommand};
use openflow::{Action, Cookie, Instruction, Message, PortNo, TableId, Version, Xid};

use super::Agent;
use super::serve::sweep_all;
use crate::bridge::Answer;
use crate::worker::{ConnectionId, Quote, Request, Turn};

/// The cookie of the entry: "weir" and "alon".
const COOKIE: Cookie = Cookie(0x7765_6972_616c_6f6e);

/// No connection: nobody gets the answers.
const NOBODY: ConnectionId = ConnectionId(0);

/// Watches over the contact with the controllers, for ever.
pub(crate) async fn stand_alone(agent: Rc<Agent>) {
    // Before the first connection there is nothing that could be lost.
    let mut grace = Duration::ZERO;
    loop {
        while agent.has_contact() {
            agent.contact_changed().await;
        }
        let is_alone = tokio::select! {
            biased;
            () = contact(&agent) => false,
            () = tokio::time::sleep(grace) => true,
        };
        grace = Duration::from_secs(agent.config.inactivity_probe_s.max(1).into()) * 3;
        if !is_alone {
            continue;
        }
        tracing::warn!(bridge = agent.told(), "no controller: forwarding as a learning switch");
        tokio::select! {
            biased;
            () = contact(&agent) => {}
            () = take_over(&agent) => contact(&agent).await,
        }
        tracing::info!(bridge = agent.told(), "a controller is back: no longer a learning switch");
        send(&agent, normal(FlowModCommand::DeleteStrict)).await;
    }
}

async fn contact(agent: &Agent) {
    while !agent.has_contact() {
        agent.contact_changed().await;
    }
}

/// Makes the tables the switch's own.
async fn take_over(agent: &Agent) {
    send(agent, delete_all()).await;
    send(agent, normal(FlowModCommand::Add)).await;
}

async fn send(agent: &Agent, flow_mod: FlowMod) {
    let request = || Request {
        from: NOBODY,
        version: Version::V1_3,
        xid: Xid(0),
        turn: Turn::Before(0),
        quote: Quote::new(&[]),
    };
    let done = match agent.bridge.apply(Version::V1_3, Message::FlowMod(flow_mod), request) {
        Ok(Answer::Sweep(sweep)) => sweep_all(agent, sweep).await,
        Ok(Answer::Reply(_) | Answer::Nothing | Answer::News(_) | Answer::Later) => Ok(()),
        Err(error) => Err(error),
    };
    agent.flush();
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
