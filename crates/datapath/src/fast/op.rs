//! An op: one change of a forwarder's replica, in the order in which control made them.
//!
//! Control makes each change once and numbers it; each shard hands a copy to its forwarder.
//! A forwarder that has applied the first `n` of them has exactly the state that control had then.
//! An op is complete in itself: nothing about it may be looked up in control's state, which is
//! further on by the time the op is applied.

use std::sync::{Arc, Mutex};

use openflow::message::PacketOut;
use openflow::{GroupId, Instruction, MeterId, PortNo, TableId};

use super::compiled_match::CompiledMatch;
use super::ids::{EntryId, Ticket};
use super::shared::{GroupCounters, PortCounters};
use crate::action_set::Origin;
use crate::config::Settings;
use crate::groups::Group;
use crate::meters::Meter;
use crate::mirrors::Mirrors;
use crate::ports::Port;
use crate::precedence::Precedence;
use crate::time::Nanos;

/// One change, in a form that only this crate can read.
#[derive(Clone, Debug)]
pub struct Op(pub(crate) Change);

impl Op {
    /// Whether it changes what packets find; all but packet-outs and flushes of counters do.
    pub(in crate::fast) fn is_change(&self) -> bool {
        !matches!(self.0, Change::PacketOut(..) | Change::Flush(_))
    }

    /// Whether it changes nothing but flow entries.
    pub(in crate::fast) fn is_about_entries(&self) -> bool {
        match self.0 {
            Change::Insert(_)
            | Change::Exchange { .. }
            | Change::Replace { .. }
            | Change::Remove { .. }
            | Change::PacketOut(..) => true,
            Change::Bundle(ref ops) => ops.iter().all(Self::is_about_entries),
            Change::Group { .. }
            | Change::Meter { .. }
            | Change::Port { .. }
            | Change::Mirrors(_)
            | Change::Settings(_)
            | Change::Flush(_) => false,
        }
    }
}

/// The changes there are.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// An entry is new. No entry of the table has its match and precedence.
    Insert(Insert),
    /// An entry takes the place of another one with the same match, precedence and age, at once:
    /// no packet finds neither. Its counts begin anew.
    Exchange { old: EntryId, new: Insert },
    /// An entry does something else, or has a new cookie or life. Its place in the order stays.
    Replace {
        table: TableId,
        id: EntryId,
        origin: Origin,
        life: Life,
        instruction_list: Arc<InstructionList>,
    },
    /// An entry is gone. Its counts are flushed by the next [`Change::Flush`], not later.
    Remove { table: TableId, id: EntryId, compiled: CompiledMatch, precedence: Precedence },
    /// A group is new, different (its buckets may be others), or gone.
    Group { id: GroupId, group: Option<Arc<GroupReplica>> },
    /// A meter is new, configured anew (`Some` of the same), or gone.
    Meter { id: MeterId, meter: Option<Arc<Mutex<Meter>>> },
    /// A port is new, has a new description or settings, or is gone.
    Port { port: PortNo, state: Option<Arc<PortReplica>> },
    /// The mirrors are other ones.
    Mirrors(Arc<Mirrors>),
    /// The treatments of misses, fragments and TTLs.
    Settings(Settings),
    /// A packet-out of a bundle, which control has checked, at this time. The first forwarder sends
    /// it.
    PacketOut(Arc<PacketOut>, Nanos),
    /// All of these, at one moment between two packets.
    Bundle(Arc<[Op]>),
    /// Move every count that is kept anywhere else to the shared counters, in pieces between
    /// batches; when that is done, `flushed` is set to this ticket.
    Flush(Ticket),
}

/// A new entry.
#[derive(Clone, Debug)]
pub(crate) struct Insert {
    pub(crate) table: TableId,
    pub(crate) id: EntryId,
    pub(crate) compiled: CompiledMatch,
    pub(crate) precedence: Precedence,
    /// Age: of two entries with the same precedence that both match, the one with the lower number
    /// wins.
    pub(crate) seq: u64,
    pub(crate) origin: Origin,
    pub(crate) life: Life,
    pub(crate) instruction_list: Arc<InstructionList>,
}

/// When an entry was used, as far as its end hangs on that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// When a packet last matched it; zero if none did.
    pub(crate) last: Nanos,
    /// When a packet last taught it, from when on its hard timeout counts; zero if none did.
    pub(crate) taught: Nanos,
}

/// When an entry ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) created: Nanos,
    /// Zero for none.
    pub(crate) idle_timeout_s: u16,
    /// Zero for none.
    pub(crate) hard_timeout_s: u16,
}

impl Life {
    /// Whether the entry ever expires.
    pub(crate) fn is_limited(self) -> bool {
        self.idle_timeout_s != 0 || self.hard_timeout_s != 0
    }

    /// When the hard timeout passes for an entry that was last taught then.
    pub(crate) fn hard_at(self, taught: Nanos) -> Option<Nanos> {
        let from = self.created.max(taught);
        (self.hard_timeout_s != 0).then(|| from.plus_s(self.hard_timeout_s.into()))
    }

    /// When the idle timeout passes for an entry that was last used then.
    pub(crate) fn idle_at(self, last_used: Nanos) -> Option<Nanos> {
        let from = self.created.max(last_used);
        (self.idle_timeout_s != 0).then(|| from.plus_s(self.idle_timeout_s.into()))
    }

    /// Whether a timeout has passed: such an entry matches no packet any more.
    pub(crate) fn is_over(self, used: Used, now: Nanos) -> bool {
        let passed = |at: Option<Nanos>| at.is_some_and(|at| at <= now);
        passed(self.hard_at(used.taught)) || passed(self.idle_at(used.last))
    }
}

/// Instructions of an entry: one object for all entries that have the same.
#[derive(Debug)]
pub(crate) struct InstructionList {
    /// Equal for equal instructions while an entry has them, so that what is compiled from them
    /// can be shared. Given to others later.
    pub(crate) number: u32,
    /// In the order of the message; executed in the order of [`openflow::InstructionKind`].
    pub(crate) instructions: Box<[Instruction]>,
}

/// A group as packets need it.
#[derive(Clone, Debug)]
pub(crate) struct GroupReplica {
    /// Type, buckets and identities. Its own counters are not used.
    pub(crate) group: Group,
    pub(crate) counters: Arc<GroupCounters>,
}

/// A port as packets need it.
#[derive(Clone, Debug)]
pub(crate) struct PortReplica {
    /// Description and settings. Its own counters are not used.
    pub(crate) port: Port,
    pub(crate) counters: Arc<PortCounters>,
}
