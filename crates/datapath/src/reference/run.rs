//! One packet's run through the pipeline, as the specification describes it (clauses 5.1 to 5.10).
//!
//! Nothing here is fast and nothing is shared with the fast datapath's interpreter, which is held
//! against it. A run only reads the datapath: it gives verdicts, lists the effects that it would
//! have, and, for a trace, the steps that it took. Every step takes a packet and gives back what
//! goes on of it, if anything does.

use openflow::message::PacketInReason;
use openflow::meter::BandKind;
use openflow::text::{format_instructions, format_match};
use openflow::{
    Action, BitRange, Field, Instruction, MeterId, PortNo, QueueId, TableId, ToController,
};
use packet::rewrite::set_field;
use packet::{FlowKey, Layout, Meta, PacketBuf, extract};

use super::Reference;
use super::effect::{Effect, Effects};
use super::entry::Entry;
use crate::action_set::{ActionSet, Origin};
use crate::config::{Fragments, Miss};
use crate::continuation::Level;
use crate::counter::{Counter, DropReason};
use crate::meters::remarked;
use crate::mirrors::Side;
use crate::reassembly::Fate;
use crate::time::Nanos;
use crate::trace::TraceStep;
use crate::verdict::{Out, Verdict};

/// A packet inside the pipeline: its bytes, and what they do not say.
#[derive(Clone, Debug)]
pub(super) struct PacketState {
    pub(super) frame: PacketBuf,
    pub(super) meta: Meta,
    pub(super) queue: Option<QueueId>,
    /// Its stack of values, the last one on top.
    pub(super) stack: Vec<u128>,
    /// Its length when it came.
    pub(super) arrived_len: usize,
}

impl PacketState {
    /// A packet that has just come in: no metadata, no queue.
    pub(super) fn arriving(frame: PacketBuf, in_port: PortNo) -> Self {
        let (meta, arrived_len) = (Meta::port(in_port), frame.len());
        Self { arrived_len, frame, meta, queue: None, stack: Vec::new() }
    }

    pub(super) fn key(&self) -> FlowKey {
        extract(self.frame.bytes(), &self.meta)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.frame.len() as u64
    }

    /// Chooses a queue for what is sent, or none. It fits every packet.
    pub(super) fn choose_queue(&mut self, queue: Option<QueueId>) -> bool {
        self.queue = queue;
        true
    }

    /// Writes a field, in the frame or beside it; whether the packet has it.
    pub(super) fn write(&mut self, field: Field, value: u128) -> bool {
        if field.row().place.is_beside_packet() {
            self.meta.write(field, value)
        } else {
            set_field(&mut self.frame, field, value)
        }
    }

    /// Writes bits of a field, one after the other, from the lowest of `value` on.
    pub(super) fn write_bits(&mut self, field: Field, bits: BitRange, value: u128) -> bool {
        let key = self.key();
        let mut written = key.get(field);
        for bit in 0..bits.n_bits {
            let place = 1 << (bit + bits.offset);
            written = if value >> bit & 1 != 0 { written | place } else { written & !place };
        }
        key.has(field) && self.write(field, written)
    }
}

/// A pause of the packet at hand, until its lists have been left.
pub(super) struct Waiting {
    pub(super) packet: PacketState,
    pub(super) asked: ToController,
    pub(super) by: Origin,
    pub(super) is_behind_tables: bool,
    pub(super) is_packet_out: bool,
    pub(super) levels: Vec<Level>,
    pub(super) then: Vec<(Action, Origin)>,
}

/// A thing that is still to be done with a packet, for the entry that asks for it.
pub(super) enum Todo<'a> {
    Instruction(&'a Instruction, Origin),
    Action(&'a Action, Origin),
    /// The search of a table that an entry leads to.
    Table(TableId),
    /// A list of actions has been carried out.
    ListEnds,
    /// All that a resubmit has found has been carried out.
    Return(Place),
}

/// A packet's place among lists and tables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// The table of the entry that is carried out; the first one for a packet-out and for the
    /// action set.
    pub(super) table: TableId,
    /// Resubmits to the same or an earlier table that it is in.
    pub(super) resubmits_deep: usize,
    /// Whether the present list of actions is a bucket's.
    pub(super) is_in_bucket: bool,
    /// Depth of the steps of a trace.
    pub(super) steps_deep: usize,
}

/// The most searches of further tables for one packet (resubmits, gotos, outputs to `TABLE`), and
/// the most resubmits that lie inside each other and lead to the same or an earlier table
/// (`MAX_RESUBMITS`, `MAX_DEPTH` of Open vSwitch).
const SEARCHES_MAX: usize = 4_096;
const RESUBMITS_DEEP_MAX: usize = 64;

/// The most values on the stack of a packet.
pub(super) const STACK_MAX: usize = 4_096;

/// The most actions of one packet, where each port of a flood is one more.
const ACTIONS_MAX: usize = 65_536;

/// One packet's run.
pub(super) struct Run<'a> {
    pub(super) dp: &'a Reference,
    pub(super) now: Nanos,
    out: &'a mut Out,
    effects: Effects,
    steps: Option<Vec<TraceStep>>,
    pub(super) place: Place,
    has_verdict: bool,
    /// The mirrors that the packet has been sent to.
    pub(super) mirrored: u32,
    /// Copies that groups have made so far.
    pub(super) copies: usize,
    /// Groups and clones that the packet is in just now, one inside the other.
    pub(super) groups_deep: usize,
    /// Whether an exit ends the packet's lists, those around a clone too.
    pub(super) has_exited: bool,
    /// Whether an output may start the pipeline: in the actions of a packet-out only.
    pub(super) may_start_pipeline: bool,
    /// Whether the action set is carried out.
    pub(super) is_behind_tables: bool,
    /// The things that are still to be done, the next one last.
    pub(super) todo: Vec<Todo<'a>>,
    /// The action set of the packet.
    pub(super) set: ActionSet,
    /// The pause of the packet, whose way ends with it.
    pub(super) pause: Option<Waiting>,
    /// Searches of further tables so far, and actions.
    searches: usize,
    actions: usize,
    /// Verdicts on the list before those of this packet.
    verdicts_before: usize,
    /// Whether all that was done with the packet is withdrawn.
    pub(super) is_withdrawn: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(dp: &'a Reference, now: Nanos, out: &'a mut Out) -> Self {
        Self {
            dp,
            now,
            verdicts_before: out.len(),
            out,
            effects: Effects::default(),
            steps: None,
            place: Place::default(),
            has_verdict: false,
            mirrored: 0,
            copies: 0,
            groups_deep: 0,
            has_exited: false,
            may_start_pipeline: false,
            is_behind_tables: false,
            todo: Vec::new(),
            set: ActionSet::default(),
            pause: None,
            searches: 0,
            actions: 0,
            is_withdrawn: false,
        }
    }

    /// The same, which also lists its steps.
    pub(super) fn traced(self) -> Self {
        Self { steps: Some(Vec::new()), ..self }
    }

    /// The effects and the steps, at the end. No packet goes without a verdict.
    pub(super) fn end(mut self) -> (Effects, Vec<TraceStep>) {
        if !self.has_verdict {
            self.drop(DropReason::NoOutput);
        }
        (self.effects, self.steps.unwrap_or_default())
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Lists a step, if steps are wanted.
    pub(super) fn step(&mut self, text: impl FnOnce() -> String) {
        let depth = self.place.steps_deep;
        if let Some(steps) = &mut self.steps {
            steps.push(TraceStep { depth, text: text(), is_drop_entry: None });
        }
    }

    pub(super) fn verdict(&mut self, verdict: Verdict) {
        self.has_verdict = true;
        self.out.push(verdict);
    }

    /// A verdict about a copy that is none of the pipeline's.
    pub(super) fn beside(&mut self, verdict: Verdict) {
        self.out.push(verdict);
    }

    pub(super) fn drop(&mut self, reason: DropReason) {
        self.step(|| format!("dropped: {}", reason.name()));
        self.effect(Effect::Drop(reason));
        self.verdict(Verdict::Drop { reason });
    }

    /// A frame comes in by a port; `fate` says what becomes of it as a fragment.
    pub(super) fn ingress(&mut self, frame: PacketBuf, in_port: PortNo, fate: Fate) {
        self.effect(Effect::Count(Counter::Received));
        self.effect(Effect::Received { port: in_port, bytes: frame.len() as u64 });
        if let Some(reason) = self.refusal(&frame, in_port) {
            return self.refuse(in_port, reason);
        }
        match fate {
            Fate::Dropped(reason) => self.refuse(in_port, reason),
            Fate::Itself => self.enter(PacketState::arriving(frame, in_port)),
            Fate::Held => {
                self.step(|| "kept until the other fragments have come".to_owned());
                self.effect(Effect::Count(Counter::FragmentsHeld));
                self.verdict(Verdict::Held);
            }
            Fate::Whole(whole) => {
                self.step(|| format!("put together: {} bytes", whole.len()));
                self.effect(Effect::Count(Counter::Reassembled));
                self.enter(PacketState::arriving(PacketBuf::from_slice(&whole), in_port));
            }
        }
    }

    /// A packet that its port has let in enters the pipeline.
    fn enter(&mut self, packet: PacketState) {
        self.mirror(&packet, packet.meta.in_port, Side::In);
        self.tables(packet);
    }

    /// Why a frame is not let in.
    fn refusal(&self, frame: &PacketBuf, in_port: PortNo) -> Option<DropReason> {
        let Some(port) = self.dp.ports.get(in_port) else {
            return Some(DropReason::UnknownIngress);
        };
        if let Some(reason) = port.refuses_rx(frame.bytes()) {
            return Some(reason);
        }
        let Some(layout) = Layout::of(frame.bytes()) else { return Some(DropReason::Malformed) };
        let drops_fragments = self.dp.settings.fragments == Fragments::Drop;
        (layout.fragment && drops_fragments).then_some(DropReason::Fragment)
    }

    fn refuse(&mut self, in_port: PortNo, reason: DropReason) {
        self.effect(Effect::RxDropped(in_port));
        self.drop(reason);
    }

    /// The pipeline, from the first table on (clause 5.1).
    pub(super) fn tables(&mut self, packet: PacketState) {
        let before = std::mem::take(&mut self.set);
        let (place, until) = (self.place, self.todo.len());
        let in_port = packet.meta.in_port;
        let left = if self.search(&packet, TableId(0), in_port) {
            let left = self.work(packet, until);
            if left.is_none() {
                self.leave(until, true);
            }
            left
        } else {
            self.no_match(&packet, TableId(0));
            None
        };
        self.place = place;
        if let Some(packet) = left {
            self.action_set(packet);
        }
        self.end_pause(false);
        self.has_exited = false;
        self.set = before;
    }

    /// The end of the pipeline: the action set is carried out (clause 5.10). What an entry that it
    /// resubmits to writes to the set comes too late.
    pub(super) fn action_set(&mut self, packet: PacketState) {
        self.step(|| "action set".to_owned());
        let set = std::mem::take(&mut self.set);
        self.is_behind_tables = true;
        self.actions(packet, set.in_order());
        self.is_behind_tables = false;
        self.set = ActionSet::default();
    }

    /// The list of a packet-out, and the action set that entries have written to which it
    /// resubmits.
    pub(super) fn packet_out(&mut self, packet: PacketState, list: &'a [Action]) {
        self.todo.extend(list.iter().rev().map(|action| Todo::Action(action, Origin::NONE)));
        let left = self.work(packet, 0);
        if left.is_none() {
            self.leave(0, true);
        }
        if let Some(packet) = left.filter(|_| self.set.in_order().next().is_some()) {
            self.action_set(packet);
        }
        self.end_pause(false);
    }

    /// Does what is to be done beyond the first `until` things; what is left of the packet. Where
    /// nothing is, some of them may be left, see [`Run::leave`].
    pub(super) fn work(&mut self, mut packet: PacketState, until: usize) -> Option<PacketState> {
        while self.todo.len() > until {
            let Some(todo) = self.todo.pop() else { break };
            packet = self.next(packet, todo, until)?;
        }
        Some(packet)
    }

    fn next(
        &mut self,
        mut packet: PacketState,
        todo: Todo<'a>,
        until: usize,
    ) -> Option<PacketState> {
        match todo {
            Todo::Action(action, by) => {
                return if let Action::Clone(list) = action {
                    self.run_clone(packet, action, list, by)
                } else {
                    self.action(packet, action, by)
                };
            }
            Todo::Instruction(instruction, by) => match instruction {
                Instruction::Meter(id) => return self.meter(packet, *id),
                Instruction::ApplyActions(actions) => {
                    self.place.steps_deep += 1;
                    self.todo.push(Todo::ListEnds);
                    self.todo.extend(actions.iter().rev().map(|action| Todo::Action(action, by)));
                }
                Instruction::ClearActions => self.set.clear(),
                Instruction::WriteActions(actions) => self.set.write(actions, by),
                Instruction::WriteMetadata { metadata, mask } => {
                    packet.meta.metadata = packet.meta.metadata & !mask | metadata & mask;
                }
                Instruction::GotoTable(table) => {
                    assert!(*table > by.table_id, "an entry that leads backwards was let in");
                    self.todo.push(Todo::Table(*table));
                }
                // Refused when the entry came.
                Instruction::Experimenter { .. } => {}
            },
            Todo::Table(table) => {
                self.count_search();
                if self.is_withdrawn {
                    return None;
                }
                let in_port = packet.meta.in_port;
                if !self.search(&packet, table, in_port) {
                    self.no_match(&packet, table);
                    let is_return = |todo: &Todo<'_>| matches!(todo, Todo::Return(_));
                    if !self.todo[until..].iter().any(is_return) {
                        return None;
                    }
                }
            }
            Todo::ListEnds => self.place.steps_deep -= 1,
            Todo::Return(place) => self.place = place,
        }
        Some(packet)
    }

    /// Searches a table for a packet, as if it had come by this port; whether an entry was found,
    /// whose instructions are done next, in the order of clause 5.9.
    fn search(&mut self, packet: &PacketState, table_id: TableId, in_port: PortNo) -> bool {
        self.effect(Effect::Lookup(table_id));
        let shown = Meta { in_port, ..packet.meta };
        let key = extract(packet.frame.bytes(), &shown);
        let table = self.dp.tables.get(usize::from(table_id.0));
        let Some((index, entry)) = table.and_then(|it| it.lookup(&key, self.now)) else {
            return false;
        };
        if let Some(steps) = &mut self.steps {
            let text = describe(table_id, entry);
            steps.push(TraceStep::entry(self.place.steps_deep, text, &entry.instructions));
        }
        self.place.table = table_id;
        self.effect(Effect::Hit { table: table_id, index, bytes: packet.bytes() });
        let origin = entry.origin(table_id);
        let mut in_order: Vec<&Instruction> = entry.instructions.iter().collect();
        in_order.sort_by_key(|instruction| instruction.kind());
        let todo = in_order.into_iter().rev().map(|one| Todo::Instruction(one, origin));
        self.todo.extend(todo);
        true
    }

    /// Has a table searched as if the packet had come by `port`, and what is found there done
    /// before anything else (Open vSwitch, ovs-actions(7)). An entry that is not found changes
    /// nothing. It fits every packet.
    pub(super) fn resubmit(&mut self, packet: &PacketState, port: PortNo, table: TableId) -> bool {
        self.count_search();
        if self.is_withdrawn {
            return true;
        }
        let here = self.place.table;
        let table = if table == TableId::ALL { here } else { table };
        self.todo.push(Todo::Return(self.place));
        self.place.is_in_bucket = false;
        self.place.steps_deep += 1;
        self.place.resubmits_deep += usize::from(table <= here);
        let in_port = if port == PortNo::IN_PORT { packet.meta.in_port } else { port };
        if !self.search(packet, table, in_port) {
            self.step(|| format!("table {}: no match", table.0));
        }
        true
    }

    /// Counts a search of a further table.
    fn count_search(&mut self) {
        if self.place.resubmits_deep == RESUBMITS_DEEP_MAX || self.searches == SEARCHES_MAX {
            return self.withdraw(DropReason::TooManyResubmits);
        }
        self.searches += 1;
    }

    /// Counts so many actions.
    pub(super) fn count_actions(&mut self, count: usize) {
        self.actions += count;
        if self.actions > ACTIONS_MAX {
            self.withdraw(DropReason::TooManyActions);
        }
    }

    /// The packet asks for too much: it is dropped, and nothing of it is sent.
    pub(super) fn withdraw(&mut self, reason: DropReason) {
        self.out.truncate(self.verdicts_before);
        self.effects.withdraw();
        self.is_withdrawn = true;
        self.drop(reason);
    }

    /// A list of actions, one after the other, each with the entry that asked for it.
    pub(super) fn actions<'b>(
        &mut self,
        packet: PacketState,
        mut list: impl Iterator<Item = (&'b Action, Origin)>,
    ) -> Option<PacketState> {
        let before = self.place;
        self.place.steps_deep += 1;
        let until = self.todo.len();
        let left = list.try_fold(packet, |packet, (action, by)| {
            let packet = self.action(packet, action, by)?;
            self.work(packet, until)
        });
        if left.is_none() {
            self.leave(until, false);
            self.leave_list(list);
        }
        self.place = before;
        left
    }

    /// A copy of the packet goes through the list of a bucket.
    pub(super) fn bucket<'b>(
        &mut self,
        packet: &PacketState,
        list: impl Iterator<Item = (&'b Action, Origin)>,
    ) {
        let was_in_bucket = std::mem::replace(&mut self.place.is_in_bucket, true);
        self.actions(packet.clone(), list);
        self.end_pause(true);
        self.has_exited = false;
        self.place.is_in_bucket = was_in_bucket;
    }

    /// A new run of the pipeline that a packet-out asks for.
    pub(super) fn start_pipeline(&mut self, packet: &PacketState) {
        if !self.may_start_pipeline {
            return self.drop(DropReason::ReentrantTable);
        }
        self.count_search();
        if self.is_withdrawn {
            return;
        }
        self.may_start_pipeline = false;
        self.place.steps_deep += 1;
        self.tables(PacketState::arriving(packet.frame.clone(), packet.meta.in_port));
        self.place.steps_deep -= 1;
        self.may_start_pipeline = true;
    }

    /// No entry matches, not even a table-miss entry (clause 5.4).
    fn no_match(&mut self, packet: &PacketState, table_id: TableId) {
        self.step(|| format!("table {}: no match", table_id.0));
        if self.dp.settings.miss == Miss::Drop {
            return self.drop(DropReason::NoMatch);
        }
        let origin = Origin { table_id, is_miss: true, ..Origin::NONE };
        let max_len = self.dp.settings.miss_send_len;
        self.packet_in(packet, PacketInReason::NoMatch, origin, max_len);
    }

    /// A meter measures the packet, and its band acts (clause 5.7).
    pub(super) fn meter(&mut self, mut packet: PacketState, id: MeterId) -> Option<PacketState> {
        let Some(meter) = self.dp.meters.get(id) else { return Some(packet) };
        let buckets = self.effects.buckets(id).unwrap_or(meter.buckets());
        let bytes = packet.bytes();
        let metered = meter.meter(buckets, bytes, self.now);
        let acting = metered.band;
        self.effect(Effect::Metered { id, bytes, metered });
        let Some((index, band)) = acting else {
            self.step(|| format!("meter {}: within its rates", id.0));
            return Some(packet);
        };
        match band {
            BandKind::Drop => {
                self.step(|| format!("meter {}: band {index} drops", id.0));
                self.drop(DropReason::Meter);
                return None;
            }
            BandKind::DscpRemark { prec_level } => {
                self.step(|| format!("meter {}: band {index} remarks", id.0));
                let before = u8::try_from(packet.key().get(Field::IpDscp)).unwrap_or(0);
                let after = remarked(before, prec_level);
                if after != before {
                    set_field(&mut packet.frame, Field::IpDscp, after.into());
                }
            }
            // Refused when the meter came.
            BandKind::Experimenter { .. } => {}
        }
        Some(packet)
    }
}

/// An entry in one line of a trace.
fn describe(table_id: TableId, entry: &Entry) -> String {
    let mut matching = format_match(&entry.matching);
    if !matching.is_empty() {
        matching.insert(0, ',');
    }
    format!(
        "table {}: priority={}{matching} cookie={:#x} {}",
        table_id.0,
        entry.priority,
        entry.cookie.0,
        format_instructions(&entry.instructions)
    )
}
