//! Flow-mod (clause 6.4).

use datapath::fast::{CommandProgress, Sweep, Taught};
use openflow::flow::FlowMod;
use openflow::translate;
use openflow::{Error, Version};

use super::{Applied, ApplyResult, Bridge, Task};
use crate::counters::Counter;

/// Entries, groups or meters that a command of many looks at before something else has its turn,
/// twice as many as it changes: some hundred microseconds.
const PIECE: usize = 1_024;

pub(super) fn flow_mod(bridge: &Bridge, version: Version, flow_mod: &FlowMod) -> ApplyResult {
    bridge.counters.bump(Counter::FlowMod);
    let now = bridge.clock.now();
    let flow_mod = &*translate::with_set_fields(version, flow_mod)?;
    let begun = bridge.with_control(|control| control.begin_flow_mod(flow_mod, version, now));
    let begun = begun.ok_or_else(Bridge::no_tables)??;
    if flow_mod.idle_timeout_s > 0 || flow_mod.hard_timeout_s > 0 {
        bridge.expiry.notify_one();
    }
    Ok(applied(begun))
}

/// The outcome of a command that is done or begun.
pub(super) fn applied(progress: CommandProgress) -> Applied {
    match progress {
        CommandProgress::Done(_) => Applied::Nothing,
        CommandProgress::Sweep(sweep) => Applied::Later(Task::Sweep(sweep)),
    }
}

impl Bridge {
    /// Adds and changes the entries that packets have taught.
    pub(crate) fn learn(&self, taught: &[Taught]) {
        self.with_control(|control| taught.iter().for_each(|taught| control.learn(taught)));
        // Entries with a timeout may have come.
        self.expiry.notify_one();
    }

    /// Does a piece of a command that affects many; its result when it is done.
    pub(crate) fn sweep(&self, sweep: &mut Sweep) -> Option<Result<(), Error>> {
        let now = self.clock.now();
        let done = self.with_control(|control| control.sweep(sweep, PIECE, now));
        let done = done.unwrap_or(Some(Err(Self::no_tables())))?;
        // An entry with a timeout may have come.
        self.expiry.notify_one();
        Some(done.map(|_| ()))
    }
}
