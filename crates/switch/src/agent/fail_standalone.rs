//! Fail-standalone (clause 6.3.3): a switch without its controllers forwards as a learning switch.
//!
//! When no configured controller has been connected for three times the inactivity probe, the flow
//! tables are the switch's own: it deletes all entries and adds one that sends everything to
//! `NORMAL`. When a configured controller is back, that entry goes. Controllers that connect to a
//! listener do not end the mode, so a look by `ovs-ofctl` does not. It must never touch the tables
//! while a controller is connected: one that connects while they are being emptied finds the rest
//! of them. Nor may it keep the agent from the other bridges.
//!
//! A switch that is started anew with the entries of before gives its controllers the same time,
//! and goes on as a learning switch where it was one.

use std::rc::Rc;
use std::time::Duration;

use openflow::flow::{FlowForm, FlowMod, FlowModCommand, FlowStatsRequest};
use openflow::group::{GroupMod, GroupModCommand, GroupType};
use openflow::meter::{MeterFlags, MeterMod, MeterModCommand};
use openflow::{Action, Cookie, GroupId, Instruction, MeterId, PortNo, TableId, Version, Xid};

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

/// Watches the mode and the connections to the controllers, for ever.
pub(crate) async fn run_fail_standalone(agent: Rc<Agent>) {
    loop {
        agent.is_flushed.set(false);
        // Before the first connection there is nothing that could be lost.
        let grace = match agent.is_alone_at_once.take() {
            true => Duration::ZERO,
            false => Duration::from_secs(agent.config().inactivity_probe_s.max(1).into()) * 3,
        };
        let was_alone = agent.was_alone.take();
        let is_alone = tokio::select! {
            biased;
            () = std::future::ready(()), if was_alone => true,
            () = ended(&agent) => false,
            () = tokio::time::sleep(grace) => true,
        };
        if is_alone {
            let bridge = agent.log_name();
            tracing::warn!(bridge, "no controller: forwarding as a learning switch");
            tokio::select! {
                biased;
                () = ended(&agent) => {}
                () = take_over(&agent), if !was_alone => ended(&agent).await,
            }
            tracing::info!(bridge, "no longer a learning switch");
            send(&agent, normal(FlowModCommand::DeleteStrict)).await;
        }
        while !agent.is_left_alone() {
            agent.connections_changed().await;
        }
    }
}

/// The tables have the entries of before the start.
pub(crate) fn note_restored(agent: &Agent) {
    let own = FlowStatsRequest { cookie: COOKIE, cookie_mask: u64::MAX, ..FlowStatsRequest::all() };
    let now = agent.bridge.clock.now();
    let found = agent.bridge.with_control(|control| control.flow_stats(&own, now));
    let has_own = matches!(found, Some(Ok(found)) if !found.is_empty());
    // Without a controller the tables are what tools have made of them.
    let has_tools_only = agent.config().controllers.is_empty() && agent.is_left_alone();
    agent.was_alone.set(has_own || has_tools_only);
    agent.is_alone_at_once.set(false);
}

/// Done when a controller is there, or the mode is another one, or the tables are empty.
async fn ended(agent: &Agent) {
    while agent.is_left_alone() && !agent.is_flushed.get() {
        agent.connections_changed().await;
    }
}

/// Removes all flow entries, groups and meters, as Open vSwitch does where the set of controllers
/// becomes empty or is no longer empty.
///
/// `is_alone`: there is no controller to wait for, so that a learning switch is one at once.
pub(crate) async fn flush_tables(agent: &Agent, is_alone: bool) {
    send(agent, delete_all()).await;
    let all_groups = GroupMod {
        command: GroupModCommand::Delete,
        group_type: GroupType::All,
        group_id: GroupId::ALL,
        buckets: Vec::new(),
        ..GroupMod::default()
    };
    send(agent, BridgeCommand::GroupMod(all_groups)).await;
    let all_meters = MeterMod {
        command: MeterModCommand::Delete,
        flags: MeterFlags::empty(),
        meter_id: MeterId::ALL,
        bands: Vec::new(),
    };
    send(agent, BridgeCommand::MeterMod(all_meters)).await;
    agent.set_flushed(is_alone);
}

/// Makes the tables the switch's own.
async fn take_over(agent: &Agent) {
    send(agent, delete_all()).await;
    send(agent, normal(FlowModCommand::Add)).await;
}

async fn send(agent: &Agent, command: BridgeCommand) {
    let request = || RequestContext {
        from: NO_CONNECTION,
        version: OWN_VERSION,
        xid: Xid(0),
        position: ReplyPosition::Before(0),
        form: FlowForm::Standard,
        error_data: ErrorData::new(&[]),
    };
    let done = match agent.bridge.apply(OWN_VERSION, command, request) {
        Ok(Applied::Later(Task::Sweep(sweep))) => sweep_all(agent, sweep, None).await,
        Ok(
            Applied::Reply(_)
            | Applied::Nothing
            | Applied::PortStatus(_)
            | Applied::AtBarrier
            | Applied::Bundle(_)
            | Applied::BundleRefused(_)
            | Applied::Later(Task::Statistics(_)),
        ) => Ok(()),
        Err(error) => Err(error),
    };
    agent.send_ops();
    if let Err(error) = done {
        tracing::warn!(
            error = error.name(),
            "a change of the tables by the switch itself is refused"
        );
    }
}

fn delete_all() -> BridgeCommand {
    let all = FlowMod { table_id: TableId::ALL, ..FlowMod::new(FlowModCommand::Delete) };
    BridgeCommand::FlowMod(all)
}

fn normal(command: FlowModCommand) -> BridgeCommand {
    BridgeCommand::FlowMod(FlowMod {
        cookie: COOKIE,
        // Only ours is deleted, not one that a controller has put in its place.
        cookie_mask: u64::MAX,
        priority: 0,
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo::NORMAL)])],
        ..FlowMod::new(command)
    })
}
