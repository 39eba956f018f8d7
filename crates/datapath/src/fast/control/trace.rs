//! Traces: the interpreter over control's state, with a target that writes down.
//!
//! Not over a forwarder's, so that none has to stop. A trace shows what packets do when
//! every op is applied. It must change nothing, neither a counter nor a meter nor what `NORMAL` has
//! learnt.

use std::collections::BTreeMap;

use openflow::meter::BandKind;
use openflow::text::{format_instructions, format_match};
use openflow::{Action, Field, GroupId, Instruction, Learn, MeterId, PortNo, QueueId, TableId};
use packet::{FlowKey, Meta, PacketBuf};

use super::Control;
use super::meters::locked;
use super::tuples::Tuple;
use crate::action_set::{EntryRef, FinTimeouts, Origin};
use crate::counter::DropReason;
use crate::fast::compiled_match::CompiledMatch;
use crate::fast::conjunction;
use crate::fast::ids::EntryId;
use crate::fast::interpreter::{
    Executed, Interpreter, MatchedEntry, Packet, Stations, Surroundings, Target, WalkFlow,
    forward_as_switch, refusal,
};
use crate::groups::Group;
use crate::macs::Station;
use crate::meters::Meter;
use crate::reassembly::{Fate, concerns};
use crate::time::Nanos;
use crate::trace::{Trace, TraceStep};
use crate::verdict::{HandUp, Verdict, packet_in_context, packet_in_data};

impl Control {
    /// The way that a frame from a port would take, changing no counter and no meter.
    #[must_use]
    pub fn trace(&self, frame: PacketBuf, in_port: PortNo, now: Nanos) -> Trace {
        self.trace_to_end(frame, in_port, now).0
    }

    /// The same, and the packet as the pipeline has left it, if it has come there.
    #[must_use]
    pub fn trace_to_end(
        &self,
        frame: PacketBuf,
        in_port: PortNo,
        now: Nanos,
    ) -> (Trace, Option<(PacketBuf, Meta)>) {
        let refused = match self.ports.get(in_port) {
            None => Some(DropReason::UnknownIngress),
            Some(port) => port.refuses_rx(frame.bytes()),
        };
        let fate = if refused.is_none() && concerns(&self.settings, frame.bytes()) {
            // On a copy: a trace changes nothing.
            let mut kept = self.shared.with_reassembler(|kept| kept.clone());
            kept.reassemble(frame.bytes(), in_port, now).fate
        } else {
            Fate::Itself
        };
        let refused = refused.or_else(|| refusal(self.settings.fragments, frame.bytes()));
        let mut tracer = Tracer::new(self, now);
        let frame = match (refused, fate) {
            (Some(reason), _) | (None, Fate::Dropped(reason)) => {
                let mut walk = Interpreter::new(tracer);
                walk.drop(reason);
                return (walk.finish().trace, None);
            }
            (None, Fate::Held) => {
                tracer.write("kept until the other fragments have come".to_owned());
                tracer.trace.verdicts.push(Verdict::Held);
                return (tracer.trace, None);
            }
            (None, Fate::Whole(whole)) => {
                tracer.write(format!("put together: {} bytes", whole.len()));
                PacketBuf::from_slice(&whole)
            }
            (None, Fate::Itself) => frame,
        };
        let mut walk = Interpreter::new(tracer);
        // Whatever ended the packet's way has given its verdict.
        let _end: WalkFlow = walk.enter(Packet::new(frame, in_port));
        let Tracer { trace, left, .. } = walk.finish();
        (trace, left.map(|packet| (packet.frame, packet.meta)))
    }

    /// The entry of a table that wins for a packet, by its number.
    fn winner(&self, table: TableId, key: &FlowKey, now: Nanos) -> Option<u32> {
        let matched = self.matched(table, key, now);
        let mut parts = Vec::new();
        for number in &matched {
            let own = conjunction::parts(self.instructions_of(*number));
            conjunction::add(&mut parts, self.rank(*number).0, own);
        }
        let single = |matched: &[u32]| {
            let singles = matched.iter().copied().filter(|number| {
                conjunction::parts(self.instructions_of(*number)).next().is_none()
            });
            singles.min_by_key(|number| self.rank(*number))
        };
        let first = single(&matched);
        let end = first.map(|number| self.rank(number).0);
        let found = conjunction::resolve(&mut parts, end, |conj_id| {
            let mut key = key.clone();
            key.set(Field::ConjId, conj_id.into());
            single(&self.matched(table, &key, now))
        });
        found.or(first)
    }

    /// The live entries of a table that a packet matches, by their numbers.
    fn matched(&self, table: TableId, key: &FlowKey, now: Nanos) -> Vec<u32> {
        let mut matched = Vec::new();
        for number in self.store.tuples.of_table(table) {
            let tuple = self.store.tuples.get(*number);
            if let Some(value) = tuple.and_then(|tuple| projected(key, tuple)) {
                let same = self.store.with_value(*number, &value);
                matched.extend(same.filter(|number| !self.is_over(*number, now)));
            }
        }
        matched
    }

    fn instructions_of(&self, number: u32) -> &[Instruction] {
        let list = self.store.slab.get(number).instruction_list;
        &self.store.instruction_lists.get(list).instructions
    }

    fn is_over(&self, number: u32, now: Nanos) -> bool {
        let life = self.store.slab.get(number).life();
        life.is_limited() && life.is_over(self.shared.used(EntryId(number)), now)
    }

    /// Lower for the entry that wins.
    fn rank(&self, number: u32) -> (u32, u64) {
        let entry = self.store.slab.get(number);
        (entry.precedence().order(), entry.seq)
    }
}

/// The values that a packet has in the words of a tuple, if it has the tuple's fields at all.
fn projected(key: &FlowKey, tuple: &Tuple) -> Option<Vec<u64>> {
    let present = tuple.mask.present();
    let words = tuple.mask.words().iter();
    let value = words.map(|word| key.words()[usize::from(word.index)] & word.bits);
    (key.present() & present == present).then(|| value.collect())
}

/// The target that writes a packet's way down.
struct Tracer<'a> {
    control: &'a Control,
    now: Nanos,
    trace: Trace,
    depth: usize,
    mirrored: u32,
    /// The packet that was discarded last: a walk ends by discarding its own.
    left: Option<Packet>,
    /// The meters that the packet has passed, as it has left them: a packet can pass one twice.
    metered: BTreeMap<MeterId, Meter>,
}

impl<'a> Tracer<'a> {
    fn new(control: &'a Control, now: Nanos) -> Self {
        Self {
            control,
            now,
            trace: Trace::default(),
            depth: 0,
            mirrored: 0,
            left: None,
            metered: BTreeMap::new(),
        }
    }

    fn write(&mut self, text: String) {
        self.trace.steps.push(TraceStep { depth: self.depth, text, is_drop_entry: None });
    }
}

impl<'a> Target<'a> for Tracer<'a> {
    fn surroundings(&self) -> Surroundings<'a> {
        let Control { settings, groups, ports, .. } = self.control;
        Surroundings { settings, groups, ports }
    }

    fn lookup(&mut self, table: TableId, packet: &Packet) -> Option<MatchedEntry<'a>> {
        let store = &self.control.store;
        let number = self.control.winner(table, &packet.key(), self.now)?;
        let entry = store.slab.get(number);
        let compiled = store.tuple(entry).compiled(entry.at);
        let origin = entry.origin(table, compiled.is_any());
        let instructions = self.control.instructions_of(number);
        let text = describe(entry.priority, &compiled, origin, instructions);
        self.trace.steps.push(TraceStep::entry(self.depth, text, instructions));
        Some(MatchedEntry { instructions, origin })
    }

    fn meter(&mut self, id: MeterId, packet: &Packet) -> Option<(usize, BandKind)> {
        let meter = self.control.meters.get(id)?;
        let copy = self.metered.entry(id).or_insert_with(|| locked(meter).clone());
        let band = copy.pass(packet.bytes(), self.now);
        if band.is_none() {
            self.write(format!("meter {}: within its rates", id.0));
        }
        band
    }

    fn execute(&mut self, packet: &mut Packet, action: &Action) -> WalkFlow<Executed> {
        WalkFlow::Continue(packet.execute(action))
    }

    fn teach(&mut self, _packet: &Packet, _learn: &Learn) -> WalkFlow {
        WalkFlow::Continue(())
    }

    fn shorten(&mut self, _: &Packet, _: EntryRef, _: FinTimeouts) -> WalkFlow {
        WalkFlow::Continue(())
    }

    fn enter_group(&mut self, _id: GroupId, _group: &Group, _packet: &Packet) -> WalkFlow {
        WalkFlow::Continue(())
    }

    fn begin_clone(&mut self, packet: &Packet, _copies: usize) -> WalkFlow<Packet> {
        WalkFlow::Continue(packet.clone())
    }

    fn begin_bucket(
        &mut self,
        _id: GroupId,
        _index: usize,
        packet: &Packet,
        copies: usize,
    ) -> WalkFlow<Packet> {
        self.begin_clone(packet, copies)
    }

    fn end_bucket(&mut self, _copy: Packet) {}

    fn fresh(&mut self, packet: &Packet) -> Packet {
        Packet::new(packet.frame.clone(), packet.meta.in_port)
    }

    fn discard(&mut self, packet: Packet) {
        self.left = Some(packet);
    }

    fn output(&mut self, packet: &Packet, port: PortNo, queue: Option<QueueId>) {
        let frame = packet.frame.clone();
        self.trace.verdicts.push(Verdict::Output { port, queue, frame });
    }

    fn normal(&mut self, packet: &Packet, queue: Option<QueueId>) -> WalkFlow {
        forward_as_switch(self, packet, queue)
    }

    fn packet_in(&mut self, packet: &Packet, hand_up: &HandUp) {
        let data = packet_in_data(&packet.frame, packet.arrived_len);
        let message = hand_up.message(data, packet_in_context(&packet.meta));
        self.trace.verdicts.push(Verdict::PacketIn { message, max_len: hand_up.max_len });
    }

    fn withdraw(&mut self) -> WalkFlow {
        self.trace.verdicts.clear();
        WalkFlow::Continue(())
    }

    fn drop(&mut self, reason: DropReason) {
        self.trace.verdicts.push(Verdict::Drop { reason });
    }

    fn refuse(&mut self, _port: PortNo, reason: DropReason) {
        self.drop(reason);
    }

    fn mirrored(&mut self) -> &mut u32 {
        &mut self.mirrored
    }

    fn note(&mut self, text: impl FnOnce() -> String) {
        self.write(text());
    }

    fn indent(&mut self, deeper: bool) {
        self.depth = if deeper { self.depth + 1 } else { self.depth.saturating_sub(1) };
    }
}

impl<'a> Stations<'a> for Tracer<'a> {
    fn port_of(&mut self, station: Station) -> WalkFlow<Option<PortNo>> {
        let (config, now) = (&self.control.config, self.now);
        WalkFlow::Continue(self.control.shared.with_macs(|macs| macs.port(station, config, now)))
    }

    fn learn(&mut self, _station: Station, _port: PortNo) {}
}

/// An entry in one line.
fn describe(
    priority: u16,
    compiled: &CompiledMatch,
    origin: Origin,
    instructions: &[Instruction],
) -> String {
    let matching = format_match(&compiled.matching());
    let comma = if matching.is_empty() { "" } else { "," };
    let Origin { table_id, cookie, .. } = origin;
    format!(
        "table {}: priority={priority}{comma}{matching} cookie={:#x} {}",
        table_id.0,
        cookie.0,
        format_instructions(instructions)
    )
}
