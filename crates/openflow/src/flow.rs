//! Flow entries as messages speak of them: flow-mod, flow-removed, flow statistics
//! (clauses 7.3.4.1, 7.4.2 and 7.3.5.2).

use crate::id::{BufferId, Cookie, GroupId, PortNo, TableId};
use crate::instruction::Instruction;
use crate::matching::Match;
use crate::numbered::numbered;
use crate::version::Version;

numbered! {
    /// Command of a flow-mod.
    pub enum FlowModCommand: u8 {
        /// Add a flow entry, replacing one of equal match and priority.
        Add = 0 => "ADD",
        /// Change the instructions of all entries that the match covers.
        Modify = 1 => "MOD",
        /// Change the instructions of the entry of equal match and priority.
        ModifyStrict = 2 => "MOD_STRICT",
        /// Delete all entries that the match covers.
        Delete = 3 => "DEL",
        /// Delete the entry of equal match and priority.
        DeleteStrict = 4 => "DEL_STRICT",
    }
}

numbered! {
    /// Why a flow entry is gone.
    pub enum FlowRemovedReason: u8 {
        /// Not used for the idle timeout.
        IdleTimeout = 0 => "idle",
        /// The hard timeout has passed.
        HardTimeout = 1 => "hard",
        /// Deleted by a flow-mod.
        Delete = 2 => "delete",
        /// Deleted because a group it used was.
        GroupDelete = 3 => "group_delete" since V1_1,
        /// Deleted because a meter it used was.
        MeterDelete = 4 => "meter_delete" since V1_4,
        /// Evicted, to make room for another.
        Eviction = 5 => "eviction" since V1_4,
    }
}

impl FlowRemovedReason {
    /// The reason as a version has it: an entry that went for one of later versions was deleted.
    #[must_use]
    pub fn nearest_in(self, version: Version) -> Self {
        match self {
            Self::GroupDelete | Self::MeterDelete | Self::Eviction if !self.is_in(version) => {
                Self::Delete
            }
            Self::IdleTimeout
            | Self::HardTimeout
            | Self::Delete
            | Self::GroupDelete
            | Self::MeterDelete
            | Self::Eviction
            | Self::Unknown(_) => self,
        }
    }
}

bitflags::bitflags! {
    /// Flags of a flow-mod (`OFPFF_*`), which the flow entry keeps.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct FlowModFlags: u16 {
        /// Send a flow-removed message when the entry goes.
        const SEND_FLOW_REM = 1;
        /// Refuse an entry that overlaps one of equal priority.
        const CHECK_OVERLAP = 1 << 1;
        /// Reset the counters of an entry that is replaced or modified. 1.0 has `EMERG` here.
        const RESET_COUNTS = 1 << 2;
        /// Keep no packet count.
        const NO_PKT_COUNTS = 1 << 3;
        /// Keep no byte count.
        const NO_BYT_COUNTS = 1 << 4;
        /// 1.0 only: an emergency entry. Weir refuses it.
        const EMERG = 1 << 15;
        const _ = !0;
    }
}

/// A command on flow entries. In 1.0 the action list is one `ApplyActions` instruction (none when
/// the list is empty), an add is one to table 0, and modifies and deletes are of all tables, unless
/// Nicira's extension names one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlowMod {
    /// The command.
    pub command: FlowModCommand,
    /// In which table; [`TableId::ALL`] for deletes, and modifies of 1.0.
    pub table_id: TableId,
    /// Kept with the entry; a filter together with the mask.
    pub cookie: Cookie,
    /// Cookie bits that filter a modify or delete.
    pub cookie_mask: u64,
    /// Modify only: the cookie that entries get which the mask has filtered; `None` leaves theirs.
    /// Nicira's form of 1.0 carries it.
    pub new_cookie: Option<Cookie>,
    /// Seconds without a packet until the entry expires; 0 for never.
    pub idle_timeout_s: u16,
    /// Seconds until the entry expires; 0 for never.
    pub hard_timeout_s: u16,
    /// Higher wins.
    pub priority: u16,
    /// A buffered packet to process by the new entry.
    pub buffer_id: Option<BufferId>,
    /// Deletes only: entries that output there; [`PortNo::ANY`] for no restriction.
    pub out_port: PortNo,
    /// Deletes only: entries that use the group; [`GroupId::ANY`] for no restriction.
    pub out_group: GroupId,
    /// Flags.
    pub flags: FlowModFlags,
    /// Rank among the entries that a full table may evict; 1.4 on.
    pub importance: u16,
    /// Match for packets.
    pub matching: Match,
    /// Instructions for packets that match.
    pub instructions: Vec<Instruction>,
}

impl FlowMod {
    /// A flow-mod with everything at its neutral value: priority 32,768, table 0, no restriction.
    #[must_use]
    pub fn new(command: FlowModCommand) -> Self {
        Self {
            command,
            table_id: TableId(0),
            cookie: Cookie(0),
            cookie_mask: 0,
            new_cookie: None,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            priority: 0x8000,
            buffer_id: None,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            flags: FlowModFlags::empty(),
            importance: 0,
            matching: Match::any(),
            instructions: Vec::new(),
        }
    }
}

impl FlowMod {
    /// The flags that an entry keeps which this adds. An add resets counters in versions without a
    /// flag for that, so its entry has the flag where others show it.
    #[must_use]
    pub fn kept_flags(&self, version: Version) -> FlowModFlags {
        let resets = self.command == FlowModCommand::Add && !version.has_reset_counts();
        if resets { self.flags | FlowModFlags::RESET_COUNTS } else { self.flags }
    }

    /// The cookie that a modify gives to the entries.
    #[must_use]
    pub fn given_cookie(&self, version: Version) -> Option<Cookie> {
        if self.cookie_mask != 0 {
            return self.new_cookie;
        }
        let is_given = version.modify_sets_cookie() && self.cookie != Cookie::NONE;
        is_given.then_some(self.cookie)
    }

    /// Whether a modify that finds no entry adds one: in 1.0 and 1.1, unless it looks for a cookie.
    #[must_use]
    pub fn adds_where_none(&self, version: Version) -> bool {
        version.has_modify_or_add() && self.cookie_mask == 0
    }
}

/// A flow entry is gone. In 1.0 the table is 0 and there is no hard timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRemoved {
    /// The entry's cookie.
    pub cookie: Cookie,
    /// The entry's priority.
    pub priority: u16,
    /// Why.
    pub reason: FlowRemovedReason,
    /// From which table.
    pub table_id: TableId,
    /// Whole seconds that it lived.
    pub duration_s: u32,
    /// Nanoseconds beyond the whole seconds.
    pub duration_ns: u32,
    /// Its idle timeout.
    pub idle_timeout_s: u16,
    /// Its hard timeout.
    pub hard_timeout_s: u16,
    /// Packets; all ones where not counted.
    pub packet_count: u64,
    /// Bytes of frames without FCS; all ones where not counted.
    pub byte_count: u64,
    /// Its match.
    pub matching: Match,
}

/// Filter of a request for flow statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStatsRequest {
    /// In which table; [`TableId::ALL`] for all.
    pub table_id: TableId,
    /// Only those that output there; [`PortNo::ANY`] for no restriction.
    pub out_port: PortNo,
    /// Only those that use the group; [`GroupId::ANY`] for no restriction.
    pub out_group: GroupId,
    /// Cookie bits wanted.
    pub cookie: Cookie,
    /// Cookie bits that are compared.
    pub cookie_mask: u64,
    /// Only those that the match covers.
    pub matching: Match,
    /// Form of the request and of its reply.
    pub form: FlowForm,
}

/// Layout of flow entries in messages of OpenFlow 1.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowForm {
    /// The specification's, with the twelve-tuple.
    #[default]
    Standard,
    /// Nicira's, whose match has all fields (`NXFF_NXM`).
    Nicira,
}

impl FlowStatsRequest {
    /// All entries of all tables.
    #[must_use]
    pub fn all() -> Self {
        Self {
            table_id: TableId::ALL,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            cookie: Cookie(0),
            cookie_mask: 0,
            matching: Match::any(),
            form: FlowForm::Standard,
        }
    }
}

/// One flow entry in a statistics reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStats {
    /// Its table.
    pub table_id: TableId,
    /// Whole seconds that it has lived.
    pub duration_s: u32,
    /// Nanoseconds beyond the whole seconds.
    pub duration_ns: u32,
    /// Its priority.
    pub priority: u16,
    /// Its idle timeout.
    pub idle_timeout_s: u16,
    /// Its hard timeout.
    pub hard_timeout_s: u16,
    /// Its flags; 1.0 does not carry them.
    pub flags: FlowModFlags,
    /// Its importance; only 1.4 and later carry it.
    pub importance: u16,
    /// Its cookie.
    pub cookie: Cookie,
    /// Packets; all ones where not counted.
    pub packet_count: u64,
    /// Bytes of frames without FCS; all ones where not counted.
    pub byte_count: u64,
    /// Its match.
    pub matching: Match,
    /// Its instructions.
    pub instructions: Vec<Instruction>,
}

/// Sums over flow entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AggregateStats {
    /// Packets.
    pub packet_count: u64,
    /// Bytes.
    pub byte_count: u64,
    /// Entries.
    pub flow_count: u32,
}
