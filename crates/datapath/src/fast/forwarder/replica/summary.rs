//! Knowledge of entries for lookups: a summary of the instruction list, and the four bytes that are
//! enough for most of them.

use std::sync::Arc;

use openflow::instruction::ActionsRun;
use openflow::{Action, Instruction, InstructionKind, MeterId, PortNo, TableId};
use packet::Registers;

use super::ReplicaEntry;
use crate::fast::conjunction::{self, Part};
use crate::fast::forwarder::bundle_progress::Mark;
use crate::fast::interpreter::{header_effect, register_write};
use crate::fast::op::InstructionList;
use crate::member_choice::weight;

/// All that a lookup has to know of most entries: it decides where the packet goes on.
///
/// It takes four bytes, so that those of 60,000 entries lie in a near cache: a lookup in 64 tables
/// waited for the lines of entries, two for each table, for a third of its time.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast::forwarder) enum PackedSummary<'a> {
    /// Nothing but this happens to the packet; the entry lives for ever.
    Goto(TableId),
    /// The entry lives for ever; whether it is a table-miss entry.
    Summary(&'a InstructionSummary, bool),
    /// Parts in conjunctive matches; the entry lives for ever.
    Parts(&'a [Part]),
    /// The entry must be looked at.
    Look,
}

/// The marks of a goto, of a table-miss entry's summary and of one with parts, and a number that no
/// summary has, for an entry that must be looked at.
pub(super) const GOTO: u32 = 1 << 31;
pub(super) const MISS: u32 = 1 << 30;
pub(super) const PARTS: u32 = 1 << 29;
pub(super) const LOOK: u32 = PARTS - 1;

/// Knowledge of an instruction list for lookups, made once for all entries that have it.
#[derive(Debug)]
pub(in crate::fast::forwarder) struct InstructionSummary {
    /// Never given twice, unlike the instruction list's number.
    pub(in crate::fast::forwarder) id: u32,
    pub(super) instruction_list: Arc<InstructionList>,
    /// The table to go on in, by a goto or by a resubmit after which the entry does nothing.
    pub(in crate::fast::forwarder) next: Option<TableId>,
    /// Metadata bits that are written, and which.
    pub(in crate::fast::forwarder) metadata: Option<(u64, u64)>,
    /// Whether it does nothing but lead to the next table, perhaps writing metadata.
    pub(in crate::fast::forwarder) is_plain: bool,
    /// Applied actions that change what later tables see, in their order.
    pub(in crate::fast::forwarder) changes: Box<[Action]>,
    /// The number of actions that they count as.
    pub(in crate::fast::forwarder) weight: usize,
    /// Values and masks that they write, where all of them write registers.
    pub(in crate::fast::forwarder) register_writes: Option<(Registers, Registers)>,
    /// The meter, which comes before everything else.
    pub(in crate::fast::forwarder) meter: Option<MeterId>,
    /// Whether one of its actions has a table searched, or leaves to later entries what only a
    /// walk knows; whether the former is `next`, and there is none of the latter.
    pub(super) resubmits: bool,
    resubmits_to_next: bool,
    /// Its parts in conjunctive matches; a lookup ends with no entry that has any.
    pub(super) parts: Box<[Part]>,
}

impl InstructionSummary {
    pub(super) fn new(id: u32, instruction_list: &Arc<InstructionList>) -> Self {
        let mut summary = Self {
            id,
            instruction_list: Arc::clone(instruction_list),
            next: None,
            metadata: None,
            is_plain: true,
            changes: Box::default(),
            weight: 0,
            register_writes: None,
            meter: None,
            resubmits: false,
            resubmits_to_next: false,
            parts: conjunction::parts(&instruction_list.instructions).collect(),
        };
        for instruction in &instruction_list.instructions {
            summary.next = summary.next.or_else(|| instruction.goto_table());
            summary.metadata = summary.metadata.or_else(|| instruction.metadata());
            summary.meter = summary.meter.or_else(|| instruction.meter());
            summary.is_plain &= instruction.only_leads_on();
            let is_recorded = |one: &Action| one.resubmits() || one.is_of_a_walk();
            summary.resubmits |= instruction.all_actions().any(is_recorded);
            if instruction.kind().row().actions == ActionsRun::AtOnce {
                let changes = instruction.actions().iter().filter(|a| header_effect(a).rewrites());
                summary.changes = changes.cloned().collect();
            }
        }
        // No table comes after an exit, not even one of a clone, or a pause.
        let instructions = || instruction_list.instructions.iter();
        let exits = |one: &Action| *one == Action::Exit;
        if instructions().flat_map(Instruction::actions).any(Action::ends_lists)
            || instructions().flat_map(Instruction::all_actions).any(exits)
        {
            summary.next = None;
        } else if let Some(next) = last_resubmit(&instruction_list.instructions) {
            (summary.next, summary.resubmits_to_next) = (Some(next), true);
        }
        summary.register_writes = register_writes(&summary.changes);
        summary.weight = summary.changes.iter().map(weight).sum();
        summary
    }

    /// Whether a walk has to find out what follows its entries in this table: they have others
    /// searched than a later one at their end.
    #[inline]
    pub(in crate::fast::forwarder) fn is_recorded_in(&self, table: TableId) -> bool {
        self.resubmits && !(self.resubmits_to_next && self.next > Some(table))
    }

    pub(in crate::fast::forwarder) fn instructions(&self) -> &[Instruction] {
        &self.instruction_list.instructions
    }
}

/// The table that an entry resubmits to, from the packet's own port, if it does so once and nothing
/// after that. But for a packet that matches nothing there this is a goto.
fn last_resubmit(instructions: &[Instruction]) -> Option<TableId> {
    let is_early = |one: &Instruction| one.kind() as u8 <= InstructionKind::ApplyActions as u8;
    let actions = instructions.iter().flat_map(Instruction::actions);
    let mut all = instructions.iter().flat_map(Instruction::all_actions);
    let number = all.clone().filter(|action| action.resubmits()).count();
    if all.any(Action::is_of_a_walk) {
        return None;
    }
    let Some(Action::ResubmitTable { port, table }) = actions.last() else { return None };
    let is_it = number == 1 && port.port() == PortNo::IN_PORT && *table != TableId::ALL;
    (is_it && instructions.iter().all(is_early)).then_some(*table)
}

/// The values and the mask that actions write to registers; none where one does anything else.
fn register_writes(actions: &[Action]) -> Option<(Registers, Registers)> {
    let (mut values, mut all) = (Registers::ZERO, Registers::ZERO);
    for action in actions {
        let (number, mask, value) = register_write(action)?;
        values.set(number, values.get(number) & !mask | value);
        all.set(number, all.get(number) | mask);
    }
    Some((values, all))
}

/// The number of an entry's packed summary.
pub(super) fn packed_of(entry: &ReplicaEntry) -> u32 {
    let summary = &entry.summary;
    if entry.life.is_limited() || entry.mark != Mark::default() {
        return LOOK;
    }
    if !summary.parts.is_empty() {
        return PARTS | summary.instruction_list.number;
    }
    match summary.next.filter(|_| summary.is_plain && summary.metadata.is_none()) {
        Some(next) => GOTO | u32::from(next.0),
        // Numbers are those of slots, so that there are never nearly as many.
        None if entry.origin.is_miss => MISS | summary.instruction_list.number,
        None => summary.instruction_list.number,
    }
}
