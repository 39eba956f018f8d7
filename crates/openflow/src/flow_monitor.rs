//! Flow monitors as messages speak of them (1.4, clause 7.3.5.17; Nicira's before, ONF's in 1.3): a
//! controller hears of the changes of flow entries that others make.
//!
//! Flags and events are those of 1.4; the codec has Nicira's numbers.

use crate::flow::{FlowRemovedReason, FlowStats};
use crate::id::{Cookie, GroupId, PortNo, TableId, Xid};
use crate::instruction::Instruction;
use crate::matching::Match;
use crate::numbered::numbered;

numbered! {
    /// Command of a request (`OFPFMC_*`); versions before 1.4 only add by one.
    pub enum FlowMonitorCommand: u8 {
        /// Begin to monitor.
        Add = 0 => "add",
        /// Monitor other entries, or other changes, under the same number.
        Modify = 1 => "modify",
        /// Monitor no longer.
        Delete = 2 => "delete",
    }
}

bitflags::bitflags! {
    /// Changes that a monitor reports, and what it says of them (`OFPFMF_*`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct FlowMonitorFlags: u16 {
        /// The entries that are there in the beginning.
        const INITIAL = 1;
        /// Entries that are added.
        const ADD = 1 << 1;
        /// Entries that are removed.
        const REMOVED = 1 << 2;
        /// Entries that are changed.
        const MODIFY = 1 << 3;
        /// With instructions.
        const INSTRUCTIONS = 1 << 4;
        /// Changes by the controller itself in full, as those of others.
        const NO_ABBREV = 1 << 5;
        /// As Open vSwitch and its tools take it, the same; changes of others are reported too.
        const ONLY_OWN = 1 << 6;
        const _ = !0;
    }
}

impl FlowMonitorFlags {
    /// One of these must be set.
    pub const CHANGES: Self = Self::ADD.union(Self::REMOVED).union(Self::MODIFY);

    /// Whether changes by the monitoring controller itself come in full.
    #[must_use]
    pub const fn has_own_in_full(self) -> bool {
        self.intersects(Self::NO_ABBREV.union(Self::ONLY_OWN))
    }
}

/// A request for a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowMonitorRequest {
    /// The monitor's number, chosen by the controller.
    pub monitor_id: u32,
    /// The command on the monitor.
    pub command: FlowMonitorCommand,
    /// The changes that it reports.
    pub flags: FlowMonitorFlags,
    /// In which table; [`TableId::ALL`] for all.
    pub table_id: TableId,
    /// Only entries that output there; [`PortNo::ANY`] for no restriction.
    pub out_port: PortNo,
    /// Only entries that use the group; [`GroupId::ANY`] for no restriction.
    pub out_group: GroupId,
    /// Only entries that the match covers.
    pub matching: Match,
}

impl FlowMonitorRequest {
    /// The end of a monitor.
    #[must_use]
    pub fn delete(monitor_id: u32) -> Self {
        Self {
            monitor_id,
            command: FlowMonitorCommand::Delete,
            flags: FlowMonitorFlags::empty(),
            table_id: TableId::ALL,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            matching: Match::any(),
        }
    }
}

numbered! {
    /// The change of an entry (`OFPFME_*`).
    pub enum FlowEvent: u16 {
        /// It was there when the monitor began.
        Initial = 0 => "INITIAL",
        /// It was added.
        Added = 1 => "ADDED",
        /// It was removed.
        Removed = 2 => "DELETED",
        /// Its instructions or its cookie were changed.
        Modified = 3 => "MODIFIED",
    }
}

/// A report of a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowUpdate {
    /// The change of an entry.
    Change(FlowChange),
    /// The controller's own request of this transaction number has changed entries.
    Abbreviated(Xid),
    /// Changes are not reported for now, but removals are: the controller reads too slowly.
    Paused,
    /// All that has changed meanwhile is reported.
    Resumed,
}

/// The change of an entry, as it is after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowChange {
    /// The change.
    pub event: FlowEvent,
    /// Why the entry was removed; of other changes `None`.
    pub reason: Option<FlowRemovedReason>,
    /// Its table.
    pub table_id: TableId,
    /// Its idle timeout.
    pub idle_timeout_s: u16,
    /// Its hard timeout.
    pub hard_timeout_s: u16,
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: Cookie,
    /// Its match.
    pub matching: Match,
    /// Its instructions; empty where the monitor does not ask for them.
    pub instructions: Vec<Instruction>,
}

impl FlowChange {
    /// Of an entry as it is now.
    #[must_use]
    pub fn of(event: FlowEvent, entry: FlowStats) -> Self {
        Self {
            event,
            reason: None,
            table_id: entry.table_id,
            idle_timeout_s: entry.idle_timeout_s,
            hard_timeout_s: entry.hard_timeout_s,
            priority: entry.priority,
            cookie: entry.cookie,
            matching: entry.matching,
            instructions: entry.instructions,
        }
    }

    /// This change as a monitor without instructions reports it, or with them.
    #[must_use]
    pub fn with_instructions(mut self, are_wanted: bool) -> Self {
        if !are_wanted {
            self.instructions.clear();
        }
        self
    }
}
