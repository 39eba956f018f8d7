//! Flow-mod (clause 6.4).

use openflow::flow::{FlowMod, FlowModCommand};
use openflow::{Error, Version};

use super::{Answer, Worker};
use crate::counters::Counter;

pub(super) fn flow_mod(worker: &mut Worker, version: Version, flow_mod: &FlowMod) -> Answer {
    worker.counters.bump(Counter::FlowMod);
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
    let now = worker.now();
    let outcome = worker.datapath.flow_mod(flow_mod, version, now)?;
    worker.tell_removed(outcome.removed);
    if flow_mod.idle_timeout_s > 0 || flow_mod.hard_timeout_s > 0 {
        worker.may_expire();
    }
    Ok(None)
}
