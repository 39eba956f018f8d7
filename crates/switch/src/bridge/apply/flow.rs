//! Flow-mod (clause 6.4).

use openflow::flow::{FlowMod, FlowModCommand};
use openflow::{Error, Version};

use super::{Answer, Bridge, Outcome};
use crate::counters::Counter;

pub(super) fn flow_mod(bridge: &Bridge, version: Version, flow_mod: &FlowMod) -> Outcome {
    bridge.counters.bump(Counter::FlowMod);
    let deletes = match flow_mod.command {
        FlowModCommand::Delete | FlowModCommand::DeleteStrict => true,
        FlowModCommand::Add
        | FlowModCommand::Modify
        | FlowModCommand::ModifyStrict
        | FlowModCommand::Unknown(_) => false,
    };
    // No packet is ever buffered, so that no id can be known. Deletes ignore the field.
    if flow_mod.buffer_id.is_some() && !deletes {
        return Err(Error::BadRequestBufferUnknown);
    }
    let now = bridge.clock.now();
    let done = bridge.with_control(|control| control.flow_mod(flow_mod, version, now));
    done.ok_or_else(Bridge::no_tables)??;
    if flow_mod.idle_timeout_s > 0 || flow_mod.hard_timeout_s > 0 {
        bridge.upkeep.notify_one();
    }
    Ok(Answer::Nothing)
}
