//! One packet's run through the pipeline, as the specification describes it (clauses 5.1 to 5.10).
//!
//! Nothing here is fast and nothing is shared with the fast datapath's interpreter, which is held
//! against it. A run only reads the datapath: it gives verdicts, lists the effects that it would
//! have, and, for a trace, the steps that it took. Every step takes a packet and gives back what
//! goes on of it, if anything does.

use openflow::message::PacketInReason;
use openflow::meter::BandKind;
use openflow::text::{format_instructions, format_match};
use openflow::{Action, BitRange, Field, Instruction, MeterId, PortNo, QueueId, TableId};
use packet::rewrite::set_field;
use packet::{FlowKey, Layout, Meta, PacketBuf, extract};

use super::Reference;
use super::effect::{Effect, Effects};
use super::entry::Entry;
use crate::action_set::{ActionSet, Origin};
use crate::config::{Fragments, Miss};
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
    /// Its length when it came.
    pub(super) arrived_len: usize,
}

impl PacketState {
    /// A packet that has just come in: no metadata, no queue.
    pub(super) fn arriving(frame: PacketBuf, in_port: PortNo) -> Self {
        Self { arrived_len: frame.len(), frame, meta: Meta::port(in_port), queue: None }
    }

    pub(super) fn key(&self) -> FlowKey {
        extract(self.frame.bytes(), &self.meta)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.frame.len() as u64
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

/// One packet's run.
pub(super) struct Run<'a> {
    pub(super) dp: &'a Reference,
    pub(super) now: Nanos,
    out: &'a mut Out,
    effects: Effects,
    steps: Option<Vec<TraceStep>>,
    depth: usize,
    has_verdict: bool,
    /// The mirrors that the packet has been sent to.
    pub(super) mirrored: u32,
    /// Copies that groups have made so far.
    pub(super) copies: usize,
    /// Groups that the packet is in just now, one inside the other.
    pub(super) groups_deep: usize,
    /// Whether an output may start the pipeline: in the actions of a packet-out only.
    pub(super) may_start_pipeline: bool,
    /// Whether the action set is carried out.
    pub(super) is_behind_tables: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(dp: &'a Reference, now: Nanos, out: &'a mut Out) -> Self {
        Self {
            dp,
            now,
            out,
            effects: Effects::default(),
            steps: None,
            depth: 0,
            has_verdict: false,
            mirrored: 0,
            copies: 0,
            groups_deep: 0,
            may_start_pipeline: false,
            is_behind_tables: false,
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
        if let Some(steps) = &mut self.steps {
            steps.push(TraceStep { depth: self.depth, text: text(), is_drop_entry: None });
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
    pub(super) fn tables(&mut self, mut packet: PacketState) {
        let dp = self.dp;
        let mut set = ActionSet::default();
        let mut table_id = TableId(0);
        loop {
            self.effect(Effect::Lookup(table_id));
            let table = dp.tables.get(usize::from(table_id.0));
            let Some((index, entry)) = table.and_then(|it| it.lookup(&packet.key(), self.now))
            else {
                return self.no_match(&packet, table_id);
            };
            if let Some(steps) = &mut self.steps {
                let text = describe(table_id, entry);
                steps.push(TraceStep::entry(self.depth, text, &entry.instructions));
            }
            self.effect(Effect::Hit { table: table_id, index, bytes: packet.bytes() });
            let Some((left, next)) = self.entry(packet, &mut set, entry, entry.origin(table_id))
            else {
                return;
            };
            packet = left;
            let Some(next) = next else { break };
            assert!(next > table_id, "an entry that leads backwards was let in");
            table_id = next;
        }
        self.step(|| "action set".to_owned());
        self.is_behind_tables = true;
        self.actions(packet, set.in_order());
        self.is_behind_tables = false;
    }

    /// An entry's instructions in the order of clause 5.9; the packet that is left, and the table
    /// to go on in.
    fn entry(
        &mut self,
        mut packet: PacketState,
        set: &mut ActionSet,
        entry: &Entry,
        origin: Origin,
    ) -> Option<(PacketState, Option<TableId>)> {
        let mut in_order: Vec<&Instruction> = entry.instructions.iter().collect();
        in_order.sort_by_key(|instruction| instruction.kind());
        let mut next = None;
        for instruction in in_order {
            match instruction {
                Instruction::Meter(id) => packet = self.meter(packet, *id)?,
                Instruction::ApplyActions(actions) => {
                    let applied = actions.iter().map(|action| (action, origin));
                    packet = self.actions(packet, applied)?;
                }
                Instruction::ClearActions => set.clear(),
                Instruction::WriteActions(actions) => set.write(actions, origin),
                Instruction::WriteMetadata { metadata, mask } => {
                    packet.meta.metadata = packet.meta.metadata & !mask | metadata & mask;
                }
                Instruction::GotoTable(table) => next = Some(*table),
                // Refused when the entry came.
                Instruction::Experimenter { .. } => {}
            }
        }
        Some((packet, next))
    }

    /// A list of actions, one after the other, each with the entry that asked for it.
    pub(super) fn actions<'b>(
        &mut self,
        packet: PacketState,
        mut list: impl Iterator<Item = (&'b Action, Origin)>,
    ) -> Option<PacketState> {
        self.depth += 1;
        let left = list.try_fold(packet, |packet, (action, by)| self.action(packet, action, by));
        self.depth -= 1;
        left
    }

    /// A new run of the pipeline that a packet-out asks for.
    pub(super) fn start_pipeline(&mut self, packet: &PacketState) {
        if !self.may_start_pipeline {
            return self.drop(DropReason::ReentrantTable);
        }
        self.may_start_pipeline = false;
        self.depth += 1;
        self.tables(PacketState::arriving(packet.frame.clone(), packet.meta.in_port));
        self.depth -= 1;
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
    fn meter(&mut self, mut packet: PacketState, id: MeterId) -> Option<PacketState> {
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
