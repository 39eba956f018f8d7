//! One packet's way: ingress, the tables in turn, the action set at the end (clauses 5.1 to 5.10).
//!
//! The walk only reads the datapath. What it decides goes to the verdicts, what it would change to
//! the effects, and what it did, if somebody wants to know, to the steps of a trace.

use std::ops::ControlFlow;

use openflow::instruction::INSTRUCTIONS;
use openflow::message::PacketInReason;
use openflow::meter::BandKind;
use openflow::text::{format_instructions, format_match};
use openflow::{Field, Instruction, MeterId, PortNo, QueueId, TableId};
use packet::rewrite::set_field;
use packet::{FlowKey, Layout, Meta, PacketBuf, extract};

use super::effect::{Effect, Effects};
use super::view::{MatchedEntry, View};
use crate::action_set::{ActionSet, Origin};
use crate::config::{Fragments, Miss};
use crate::counter::{Counter, DropReason};
use crate::meters::remarked;
use crate::reassembly::Fate;
use crate::time::Nanos;
use crate::trace::TraceStep;
use crate::verdict::{Out, Verdict};

/// Whether the rest of a list of actions, or of the pipeline, still happens to a packet.
pub(super) type Goes = ControlFlow<()>;

/// A packet on its way, with what its bytes do not say. A copy of it shares nothing.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) frame: PacketBuf,
    pub(super) meta: Meta,
    pub(super) queue: Option<QueueId>,
    /// Its length when it came.
    pub(super) arrived_len: usize,
}

impl Packet {
    pub(super) fn new(frame: PacketBuf, in_port: PortNo) -> Self {
        let arrived_len = frame.len();
        Self { frame, meta: Meta::port(in_port), queue: None, arrived_len }
    }

    pub(super) fn key(&self) -> FlowKey {
        extract(self.frame.bytes(), &self.meta)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.frame.len() as u64
    }

    pub(super) fn is_fragment(&self) -> bool {
        Layout::of(self.frame.bytes()).is_some_and(|layout| layout.fragment)
    }
}

/// One packet's walk.
pub(crate) struct Walk<'a> {
    pub(super) dp: &'a dyn View,
    pub(super) now: Nanos,
    out: &'a mut Out,
    effects: Effects,
    steps: Option<Vec<TraceStep>>,
    depth: usize,
    /// Verdicts of this walk so far.
    given: usize,
    /// Copies that groups have made so far.
    pub(super) copies: usize,
    /// Groups that the packet is in just now, one inside the other.
    pub(super) chained: usize,
    /// Whether an output to `TABLE` is allowed: in the actions of a packet-out only.
    pub(super) table_allowed: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(dp: &'a dyn View, now: Nanos, out: &'a mut Out) -> Self {
        Self {
            dp,
            now,
            out,
            effects: Effects::default(),
            steps: None,
            depth: 0,
            given: 0,
            copies: 0,
            chained: 0,
            table_allowed: false,
        }
    }

    /// The same walk, which also writes down its steps.
    pub(crate) fn recording(mut self) -> Self {
        self.steps = Some(Vec::new());
        self
    }

    /// What the packet changes. A packet without any verdict is dropped here,
    /// so that none goes without a verdict.
    pub(super) fn finish(mut self) -> Effects {
        self.close();
        self.effects
    }

    /// The steps that were written down; the changes are forgotten.
    pub(crate) fn into_steps(mut self) -> Vec<TraceStep> {
        self.close();
        self.steps.unwrap_or_default()
    }

    fn close(&mut self) {
        if self.given == 0 {
            self.drop(DropReason::NoOutput);
        }
    }

    /// Writes down a change.
    pub(super) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Writes down a step, if steps are wanted.
    pub(super) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(steps) = &mut self.steps {
            steps.push(TraceStep { depth: self.depth, text: text() });
        }
    }

    /// Runs `inner` with its steps one level deeper.
    pub(super) fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Gives a verdict.
    pub(super) fn give(&mut self, verdict: Verdict) {
        self.given += 1;
        self.out.push(verdict);
    }

    /// Drops the packet or copy, for this reason.
    pub(super) fn drop(&mut self, reason: DropReason) {
        self.note(|| format!("dropped: {}", reason.name()));
        self.effect(Effect::Drop(reason));
        self.give(Verdict::Drop { reason });
    }

    /// Takes a frame from a port; `fate` says what became of it as a fragment.
    pub(crate) fn ingress(&mut self, frame: PacketBuf, in_port: PortNo, fate: Fate) {
        let packet = Packet::new(frame, in_port);
        self.effect(Effect::Count(Counter::Received));
        self.effect(Effect::Received { port: in_port, bytes: packet.bytes() });
        let refused = match self.dp.ports().get(in_port) {
            None => Some(DropReason::UnknownIngress),
            Some(port) => port.refuses_rx(packet.frame.bytes()),
        };
        let refused = refused.or_else(|| {
            let layout = Layout::of(packet.frame.bytes());
            match (layout, self.dp.settings().fragments) {
                (None, _) => Some(DropReason::Malformed),
                (Some(l), Fragments::Drop) if l.fragment => Some(DropReason::Fragment),
                (Some(_), Fragments::Drop | Fragments::Normal | Fragments::Reassemble) => None,
            }
        });
        match (refused, fate) {
            (Some(reason), _) | (None, Fate::Dropped(reason)) => {
                self.effect(Effect::RxDropped(in_port));
                self.drop(reason);
            }
            (None, Fate::Itself) => self.pipeline(packet),
            (None, Fate::Held) => {
                self.note(|| "kept until the other fragments have come".to_owned());
                self.effect(Effect::Count(Counter::FragmentsHeld));
                self.give(Verdict::Held);
            }
            (None, Fate::Whole(frame)) => {
                self.note(|| format!("put together: {} bytes", frame.len()));
                self.effect(Effect::Count(Counter::Reassembled));
                self.pipeline(Packet::new(PacketBuf::from_slice(&frame), in_port));
            }
        }
    }

    /// Takes a packet through the tables from the first on.
    pub(super) fn pipeline(&mut self, mut packet: Packet) {
        let mut set = ActionSet::default();
        let mut table_id = TableId(0);
        loop {
            self.effect(Effect::Lookup(table_id));
            let Some(matched) = self.dp.lookup(table_id, &packet.key(), self.now) else {
                return self.miss(&packet, table_id);
            };
            self.note(|| describe(table_id, &matched));
            let bytes = packet.bytes();
            self.effect(Effect::Hit { table: table_id, index: matched.place, bytes });
            match self.instructions(&mut packet, &mut set, &matched) {
                ControlFlow::Break(()) => return,
                ControlFlow::Continue(Some(next)) => {
                    assert!(next > table_id, "an entry that leads backwards was let in");
                    table_id = next;
                }
                ControlFlow::Continue(None) => break,
            }
        }
        self.note(|| "action set".to_owned());
        // What becomes of the packet behind its action set concerns nobody any more.
        let _done: Goes = self.deeper(|walk| walk.run_set(&mut packet, &set, None));
    }

    /// Executes an entry's instructions in the order of clause 5.9; the table to go on in.
    fn instructions(
        &mut self,
        packet: &mut Packet,
        set: &mut ActionSet,
        matched: &MatchedEntry<'_>,
    ) -> ControlFlow<(), Option<TableId>> {
        let origin = matched.origin;
        let mut next = None;
        for row in INSTRUCTIONS {
            let Some(instruction) = matched.instructions.iter().find(|i| i.kind() == row.kind)
            else {
                continue;
            };
            match instruction {
                Instruction::Meter(id) => self.meter(packet, *id)?,
                Instruction::ApplyActions(actions) => {
                    self.deeper(|walk| {
                        actions.iter().try_for_each(|action| walk.act(packet, action, origin))
                    })?;
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
        ControlFlow::Continue(next)
    }

    /// Executes an action set; `origin` stands for those of the actions that no entry wrote.
    pub(super) fn run_set(
        &mut self,
        packet: &mut Packet,
        set: &ActionSet,
        origin: Option<Origin>,
    ) -> Goes {
        for (action, written_by) in set.in_order() {
            self.act(packet, action, origin.unwrap_or(written_by))?;
        }
        ControlFlow::Continue(())
    }

    /// No entry matched, not even a table-miss entry.
    fn miss(&mut self, packet: &Packet, table_id: TableId) {
        self.note(|| format!("table {}: no match", table_id.0));
        match self.dp.settings().miss {
            Miss::Drop => self.drop(DropReason::NoMatch),
            Miss::Controller => {
                let origin = Origin { table_id, is_miss: true, ..Origin::NONE };
                let max_len = self.dp.settings().miss_send_len;
                self.packet_in(packet, PacketInReason::NoMatch, origin, max_len);
            }
        }
    }

    fn meter(&mut self, packet: &mut Packet, id: MeterId) -> Goes {
        let Some(meter) = self.dp.meter(id) else { return ControlFlow::Continue(()) };
        let buckets = self.effects.buckets(id).unwrap_or(meter.buckets());
        let bytes = packet.bytes();
        let metered = meter.meter(buckets, bytes, self.now);
        let band = metered.band;
        self.effect(Effect::Metered { id, bytes, metered });
        match band {
            None => {
                self.note(|| format!("meter {}: within its rates", id.0));
                ControlFlow::Continue(())
            }
            Some((index, BandKind::Drop)) => {
                self.note(|| format!("meter {}: band {index} drops", id.0));
                self.drop(DropReason::Meter);
                ControlFlow::Break(())
            }
            Some((index, BandKind::DscpRemark { prec_level })) => {
                self.note(|| format!("meter {}: band {index} remarks", id.0));
                let dscp = u8::try_from(packet.key().get(Field::IpDscp)).unwrap_or(0);
                let remarked = remarked(dscp, prec_level);
                if remarked != dscp {
                    set_field(&mut packet.frame, Field::IpDscp, remarked.into());
                }
                ControlFlow::Continue(())
            }
            // Refused when the meter came.
            Some((_, BandKind::Experimenter { .. })) => ControlFlow::Continue(()),
        }
    }
}

/// An entry in one line of a trace.
fn describe(table_id: TableId, matched: &MatchedEntry<'_>) -> String {
    let matching = format_match(&matched.matching);
    let comma = if matching.is_empty() { "" } else { "," };
    let actions = format_instructions(matched.instructions);
    let cookie = matched.origin.cookie.0;
    let priority = matched.priority;
    format!(
        "table {}: priority={priority}{comma}{matching} cookie={cookie:#x} {actions}",
        table_id.0
    )
}
