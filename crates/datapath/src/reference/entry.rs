//! One flow entry: its match, what it does, its age and its counters.

use std::sync::Arc;

use openflow::flow::{FlowMod, FlowModFlags, FlowRemoved, FlowRemovedReason, FlowStats};
use openflow::{Action, Cookie, GroupId, Instruction, Match, MeterId, PortNo, TableId, Version};

use crate::action_set::{EntryRef, Origin};
use crate::groups::group_of;
use crate::precedence::{EntryRank, Precedence, is_table_miss};
use crate::seam::Removed;
use crate::time::Nanos;

/// A flow entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// As it was sent.
    pub(super) priority: u16,
    pub(super) precedence: Precedence,
    ranks_exact_first: bool,
    is_table_miss: bool,
    pub(super) matching: Match,
    pub(super) cookie: Cookie,
    pub(super) idle_timeout_s: u16,
    pub(super) hard_timeout_s: u16,
    pub(super) flags: FlowModFlags,
    pub(super) importance: u16,
    /// Its age: of two entries the older one has the lower number.
    pub(super) seq: u64,
    /// In the order of the message; executed in the order of [`openflow::InstructionKind`].
    pub(super) instructions: Arc<[Instruction]>,
    pub(super) created: Nanos,
    pub(super) last_used: Nanos,
    /// When a packet last taught it.
    pub(super) taught: Option<Nanos>,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Entry {
    pub(super) fn new(flow_mod: &FlowMod, version: Version, now: Nanos, seq: u64) -> Self {
        Self {
            priority: flow_mod.priority,
            precedence: Precedence::of_flow_mod(flow_mod, version),
            ranks_exact_first: version.ranks_exact_first(),
            is_table_miss: is_table_miss(flow_mod.priority, &flow_mod.matching, version),
            matching: flow_mod.matching.clone(),
            cookie: flow_mod.cookie,
            idle_timeout_s: flow_mod.idle_timeout_s,
            hard_timeout_s: flow_mod.hard_timeout_s,
            flags: flow_mod.kept_flags(version),
            importance: flow_mod.importance,
            seq,
            instructions: flow_mod.instructions.as_slice().into(),
            created: now,
            last_used: now,
            taught: None,
            packets: 0,
            bytes: 0,
        }
    }

    pub(super) fn rank(&self) -> EntryRank {
        EntryRank {
            precedence: self.precedence,
            priority: self.priority,
            ranks_exact_first: self.ranks_exact_first,
        }
    }

    pub(super) fn origin(&self, table_id: TableId) -> Origin {
        let (cookie, is_miss, entry) = (self.cookie, self.is_table_miss, EntryRef(Some(self.seq)));
        Origin { table_id, cookie, is_miss, entry }
    }

    /// All actions of the entry itself, applied or written; not those of its groups.
    fn actions(&self) -> impl Iterator<Item = &Action> {
        self.instructions.iter().flat_map(Instruction::all_actions)
    }

    /// The entry's parts in conjunctive matches: id, number of dimensions, dimension.
    pub(super) fn conjunctions(&self) -> impl Iterator<Item = (u32, u8, u8)> {
        self.actions().filter_map(|action| {
            let Action::Conjunction { dimension, n_dimensions, id } = *action else { return None };
            Some((id, n_dimensions, dimension))
        })
    }

    /// Whether the entry itself outputs to the port (clause 6.4: not through a group).
    pub(super) fn outputs_to(&self, wanted: PortNo) -> bool {
        self.actions().any(|action| {
            matches!(action, Action::Output { port, .. } | Action::Enqueue { port, .. }
                if *port == wanted)
        })
    }

    /// The groups that the entry itself leads to.
    pub(super) fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.actions().filter_map(group_of)
    }

    /// The meter that the entry's packets pass.
    pub(super) fn meter(&self) -> Option<MeterId> {
        self.instructions.iter().find_map(Instruction::meter)
    }

    pub(super) fn count(&mut self, bytes: u64, now: Nanos) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
        self.last_used = self.last_used.max(now);
    }

    /// Packets; all ones when the entry keeps no such count.
    pub(super) fn packet_count(&self) -> u64 {
        if self.flags.contains(FlowModFlags::NO_PKT_COUNTS) { u64::MAX } else { self.packets }
    }

    /// Bytes; all ones when the entry keeps no such count.
    pub(super) fn byte_count(&self) -> u64 {
        if self.flags.contains(FlowModFlags::NO_BYT_COUNTS) { u64::MAX } else { self.bytes }
    }

    /// When the entry expires if no packet matches it before, and why. When both timeouts pass at
    /// the same moment, the hard one is named.
    pub(super) fn expiry(&self) -> Option<(Nanos, FlowRemovedReason)> {
        let timeout = |from: Nanos, seconds: u16, reason| {
            (seconds != 0).then(|| (from.plus_s(seconds.into()), reason))
        };
        let begin = self.created.max(self.taught.unwrap_or_default());
        let hard = timeout(begin, self.hard_timeout_s, FlowRemovedReason::HardTimeout);
        let idle = timeout(self.last_used, self.idle_timeout_s, FlowRemovedReason::IdleTimeout);
        hard.into_iter().chain(idle).min_by_key(|(at, _)| *at)
    }

    /// Whether a timeout has passed. Such an entry matches no packet any more, even before
    /// `expire` takes it away: what happens must not depend on how often that is called.
    pub(super) fn is_expired(&self, now: Nanos) -> bool {
        self.expired(now).is_some()
    }

    /// The timeout that has passed.
    pub(super) fn expired(&self, now: Nanos) -> Option<FlowRemovedReason> {
        self.expiry().filter(|(at, _)| *at <= now).map(|(_, reason)| reason)
    }

    pub(super) fn removed(
        &self,
        table_id: TableId,
        reason: FlowRemovedReason,
        now: Nanos,
    ) -> Removed {
        let (duration_s, duration_ns) = now.age(self.created);
        let flow = FlowRemoved {
            cookie: self.cookie,
            priority: self.priority,
            reason,
            table_id,
            duration_s,
            duration_ns,
            idle_timeout_s: self.idle_timeout_s,
            hard_timeout_s: self.hard_timeout_s,
            packet_count: self.packet_count(),
            byte_count: self.byte_count(),
            matching: self.matching.clone(),
        };
        Removed { flow, notify: self.flags.contains(FlowModFlags::SEND_FLOW_REM) }
    }

    pub(super) fn stats(&self, table_id: TableId, now: Nanos) -> FlowStats {
        let (duration_s, duration_ns) = now.age(self.created);
        FlowStats {
            table_id,
            duration_s,
            duration_ns,
            priority: self.priority,
            idle_timeout_s: self.idle_timeout_s,
            hard_timeout_s: self.hard_timeout_s,
            flags: self.flags,
            importance: self.importance,
            cookie: self.cookie,
            packet_count: self.packet_count(),
            byte_count: self.byte_count(),
            matching: self.matching.clone(),
            instructions: self.instructions.to_vec(),
        }
    }
}
