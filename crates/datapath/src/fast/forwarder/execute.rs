//! Carrying programs out: a batch of frames, each with its program, to their verdicts.
//!
//! Most programs end in one output: their frames are changed in place and collected by port, so
//! that a port gets a whole batch by one call, and a batch of which all frames leave by one port is
//! handed over as it is. Frames of one port keep their order. What is left (copies, meters,
//! packet-ins, packets without a program) is done one by one, behind what was collected before it.

use std::sync::PoisonError;

use openflow::meter::BandKind;
use openflow::{MeterId, PortNo, QueueId};
use packet::header::{ethernet, mpls, vlan};
use packet::{Meta, Network, PacketBuf, Shape};

use super::decide::{count_step, flush_counts};
use super::emit::Emit;
use super::path::Steps;
use super::program::{Decided, Message, MicroOp, ProgramId, Programs, Terminal};
use super::replica::Replica;
use super::{Core, Sink, Sizes};
use crate::counter::{Counter, DropReason};
use crate::fast::interpreter::{
    Executed, Interpreter, Packet, WalkFlow, execute, forward_as_switch, refusal, remark,
};
use crate::time::Nanos;
use crate::verdict::packet_in_data;

/// Frames that were collected for one end.
#[derive(Debug)]
pub(super) struct StagedFrames {
    terminal: Terminal,
    frames: Vec<PacketBuf>,
}

/// Bytes before the header behind one VLAN tag.
const TAGGED: usize = ethernet::HEADER_LEN + vlan::TAG_LEN;

/// Packets whose values are asked for ahead, where programs differ.
const AHEAD: usize = 4;

/// Most ends that frames are collected for at a time.
const STAGES: usize = 64;

impl Core {
    /// Carries out what was decided about frames from one port; the list is empty afterwards.
    pub(super) fn execute(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        decided: &[Decided],
        sizes: &Sizes,
        in_port: PortNo,
        now: Nanos,
        sink: &mut impl Sink,
    ) {
        if let Some((terminal, is_same)) = self.run_changes(frames, decided, in_port) {
            let sizes = if is_same { *sizes } else { Sizes::of(frames) };
            return end_all(&self.replica, terminal, frames, &sizes, now, sink);
        }
        let mut staged = 0;
        for (at, (frame, decided)) in frames.drain(..).zip(decided).enumerate() {
            if let Some(terminal) = self.programs.terminal(decided.program) {
                staged = self.stage(terminal, frame, staged, now, sink);
                continue;
            }
            send_staged(&self.replica, &mut self.stages[..staged], now, sink);
            staged = 0;
            self.run_one(frame, *decided, (at, in_port), now, sink);
        }
        send_staged(&self.replica, &mut self.stages[..staged], now, sink);
    }

    /// Changes frames whose programs have one end, in place; that end, if all have the same, and
    /// whether the frames are as they were.
    fn run_changes(
        &self,
        frames: &mut [PacketBuf],
        decided: &[Decided],
        in_port: PortNo,
    ) -> Option<(Terminal, bool)> {
        let first = decided.first()?.program;
        let program = self.programs.get(first)?;
        // Without an end before the last one, so that eight are compared at once.
        let differs = decided.iter().fold(0, |sum, decided| sum | decided.program.0 ^ first.0);
        if differs == 0 {
            let terminal = program.terminal?;
            let micro_ops = &program.code.micro_ops;
            if !micro_ops.is_empty() {
                for frame in frames {
                    run_micro_ops(&self.replica, micro_ops, program.values, frame, in_port);
                }
            }
            return Some((terminal, micro_ops.is_empty()));
        }
        let mut common = program.terminal;
        let upcoming = decided.get(AHEAD..).unwrap_or_default();
        for (at, (frame, decided)) in frames.iter_mut().zip(decided).enumerate() {
            if let Some(ahead) = upcoming.get(at) {
                self.programs.prefetch_values(ahead.program);
            }
            let program = self.programs.get(decided.program);
            let terminal = program.and_then(|program| program.terminal);
            if let Some(program) = program.filter(|_| terminal.is_some()) {
                let micro_ops = &program.code.micro_ops;
                run_micro_ops(&self.replica, micro_ops, program.values, frame, in_port);
            }
            if terminal != common {
                common = None;
            }
        }
        Some((common?, false))
    }

    /// Puts a frame to the others of its end; how many ends there are then.
    fn stage(
        &mut self,
        terminal: Terminal,
        frame: PacketBuf,
        mut staged: usize,
        now: Nanos,
        sink: &mut impl Sink,
    ) -> usize {
        let place = self.stages[..staged].iter().position(|stage| stage.terminal == terminal);
        let place = place.unwrap_or_else(|| {
            // Frames of one port keep their order, also when their queues differ.
            let port = |terminal: Terminal| match terminal {
                Terminal::Output(port, _) => Some(port),
                Terminal::Drop(_) => None,
            };
            let same = |stage: &StagedFrames| {
                port(terminal).is_some() && port(stage.terminal) == port(terminal)
            };
            if staged == STAGES || self.stages[..staged].iter().any(same) {
                send_staged(&self.replica, &mut self.stages[..staged], now, sink);
                staged = 0;
            }
            if self.stages.len() == staged {
                self.stages.push(StagedFrames { terminal, frames: Vec::new() });
            }
            self.stages[staged].terminal = terminal;
            staged += 1;
            staged - 1
        });
        self.stages[place].frames.push(frame);
        staged
    }

    /// Carries out a program that has more than one end, or none.
    fn run_one(
        &mut self,
        frame: PacketBuf,
        decided: Decided,
        (at, in_port): (usize, PortNo),
        now: Nanos,
        sink: &mut impl Sink,
    ) {
        if decided.program == ProgramId::WALK {
            self.figures.walked += 1;
            return walk(&self.replica, frame, in_port, now, sink);
        }
        let matched =
            run_general(&self.replica, &self.programs, decided, frame, in_port, now, sink);
        if let Some((matched, bytes)) = matched {
            self.take_back(decided, at, matched.into(), bytes);
        }
    }

    /// Takes back what was counted for tables that a packet did not come to: a meter ended its way
    /// after it had matched `matched` entries.
    fn take_back(&mut self, decided: Decided, at: usize, matched: usize, bytes: u64) {
        let Steps::Many(steps) = self.paths.steps(decided.path) else { return };
        let Some(beyond) = steps.get(matched..).filter(|beyond| !beyond.is_empty()) else { return };
        // The packet may stand in the line still; then its count comes to the entries first, so
        // that nothing is ever seen to count below zero.
        let digest = self.digests.get(at).copied();
        if let Some(index) = digest.and_then(|digest| self.cache.find(digest)) {
            let mut line = self.cache.line(index);
            if line.path() == decided.path {
                let (packets, bytes) = line.take_counts();
                let counts = super::cache::Evicted { path: decided.path, packets, bytes };
                flush_counts(&self.replica, &self.paths, counts);
            }
        }
        for step in beyond {
            count_step(&self.replica, *step, 1_u64.wrapping_neg(), bytes.wrapping_neg());
        }
    }
}

/// Carries out the terminals of the collected frames.
fn send_staged(replica: &Replica, stages: &mut [StagedFrames], now: Nanos, sink: &mut impl Sink) {
    for stage in stages {
        let sizes = Sizes::of(&stage.frames);
        end_all(replica, stage.terminal, &mut stage.frames, &sizes, now, sink);
    }
}

/// Carries out the terminal of frames; the list is empty afterwards.
pub(super) fn end_all(
    replica: &Replica,
    terminal: Terminal,
    frames: &mut Vec<PacketBuf>,
    sizes: &Sizes,
    now: Nanos,
    sink: &mut impl Sink,
) {
    match terminal {
        Terminal::Output(port, queue) => {
            replica.count_tx(port, queue, sizes.packets, sizes.bytes, now);
            sink.output_all(port, queue, frames, sizes.shortest);
        }
        Terminal::Drop(reason) => drop_all(replica, reason, frames, sink),
    }
}

/// Drops frames; the list is empty afterwards.
pub(super) fn drop_all(
    replica: &Replica,
    reason: DropReason,
    frames: &mut Vec<PacketBuf>,
    sink: &mut impl Sink,
) {
    replica.count_drops(reason, Sizes::of(frames).packets);
    for _ in 0..frames.len() {
        sink.dropped(reason);
    }
    sink.done_all(frames);
}

/// Carries out micro-ops that give no verdict, with the values that they write.
#[inline]
fn run_micro_ops(
    replica: &Replica,
    micro_ops: &[MicroOp],
    mut values: &[u64],
    frame: &mut PacketBuf,
    in_port: PortNo,
) {
    for micro_op in micro_ops {
        match micro_op {
            MicroOp::Rewrite(rewrite) => {
                rewrite.run(micro_op.take_values(&mut values), frame.bytes_mut());
            }
            MicroOp::PopTag => pop_tag(frame),
            MicroOp::TagToMpls(eth_type, ttl_at) => {
                let entry = micro_op.take_values(&mut values).first().copied().unwrap_or(0);
                tag_to_mpls(frame, *eth_type, entry as u32, *ttl_at);
            }
            MicroOp::PushMpls(eth_type, shape) => push_mpls(frame, *eth_type, *shape),
            MicroOp::Truncate(len) => frame.truncate(*len),
            MicroOp::Apply(action) => {
                let executed = execute(frame, &mut Meta::port(in_port), action);
                if executed == Executed::Rewritten(false) {
                    replica.count(Counter::ActionsWithoutEffect, frame.on_wire().0);
                }
                debug_assert_ne!(
                    executed,
                    Executed::TtlInvalid,
                    "a guard let a TTL pass that is used up"
                );
            }
            MicroOp::Group(id) => {
                let (packets, bytes) = frame.on_wire();
                replica.count_group(*id, packets, bytes);
            }
            MicroOp::Bucket(id, index) => {
                let (packets, bytes) = frame.on_wire();
                replica.count_bucket(*id, *index, packets, bytes);
            }
            MicroOp::Meter(..)
            | MicroOp::Output(..)
            | MicroOp::ToController(_)
            | MicroOp::Drop(_)
            | MicroOp::RefusedTx(..)
            | MicroOp::Normal(..)
            | MicroOp::Learn(_)
            | MicroOp::Shorten(..)
            | MicroOp::BeginCopy
            | MicroOp::EndCopy => {
                debug_assert!(false, "{micro_op:?} is not for a program with one end")
            }
        }
    }
}

/// Takes the outermost VLAN tag off. The addresses are moved as a value of known size, which costs
/// a third of a move of any size.
#[inline]
fn pop_tag(frame: &mut PacketBuf) {
    let addresses: Option<[u8; ethernet::ADDRESSES_LEN]> = frame.bytes().first_chunk().copied();
    frame.remove(0, vlan::TAG_LEN);
    if let (Some(addresses), Some(place)) = (addresses, frame.bytes_mut().first_chunk_mut()) {
        *place = addresses;
    }
}

/// Puts an MPLS entry in the place of the VLAN tag, with the TTL that stands there.
#[inline]
fn tag_to_mpls(frame: &mut PacketBuf, eth_type: u16, entry: u32, ttl_at: Option<u8>) {
    let bytes = frame.bytes_mut();
    let ttl = ttl_at.and_then(|at| bytes.get(usize::from(at)).copied()).unwrap_or(0);
    let [a, b] = eth_type.to_be_bytes();
    let [c, d, e, f] = (entry | u32::from(ttl)).to_be_bytes();
    if let Some(place) = bytes.get_mut(ethernet::ETHER_TYPE..ethernet::ETHER_TYPE + 6) {
        place.copy_from_slice(&[a, b, c, d, e, f]);
    }
}

/// Pushes an MPLS entry onto a frame of a shape, as [`packet::rewrite::push_mpls`] does.
fn push_mpls(frame: &mut PacketBuf, eth_type: u16, shape: Shape) {
    let l3 = shape.l3();
    let bytes = frame.bytes();
    let byte = |at| bytes.get(at).copied().unwrap_or(0);
    let entry = match shape.network() {
        Network::Mpls => {
            u32::from_be_bytes([byte(l3), byte(l3 + 1), byte(l3 + 2), byte(l3 + 3)]) & !mpls::BOS
        }
        Network::Ipv4 | Network::Ipv6 => {
            let ttl = super::program::ttl_at(shape).map_or(0, byte);
            mpls::entry(0, 0, true, ttl)
        }
        Network::Other | Network::Pbb | Network::Arp => mpls::entry(0, 0, true, 0),
    };
    // As many bytes as a tagged frame has before its header, of known number.
    if let Some(head) = bytes.first_chunk::<TAGGED>().filter(|_| l3 <= TAGGED).copied() {
        frame.insert(0, mpls::ENTRY_LEN);
        if let Some(place) = frame.bytes_mut().first_chunk_mut() {
            *place = head;
        }
    } else {
        frame.insert(l3, mpls::ENTRY_LEN);
    }
    if let Some(place) = frame.bytes_mut().get_mut(l3 - 2..l3 + mpls::ENTRY_LEN) {
        let [a, b] = eth_type.to_be_bytes();
        let [c, d, e, f] = entry.to_be_bytes();
        place.copy_from_slice(&[a, b, c, d, e, f]);
    }
}

/// Meters a packet, which may be remarked; whether it goes on.
fn pass_meter(
    replica: &Replica,
    id: MeterId,
    packet: &mut PacketBuf,
    in_port: PortNo,
    now: Nanos,
) -> bool {
    let Some(meter) = replica.meter(id) else { return true };
    let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
    let band = meter.pass(packet.len() as u64, now);
    drop(meter);
    if let Some((_, BandKind::Drop)) = band {
        return false;
    }
    remark(band, packet, &Meta::port(in_port));
    true
}

fn hand_up<S: Sink>(emit: &mut Emit<'_, S>, packet: &PacketBuf, len: u64, message: &Message) {
    let data = packet_in_data(packet, len as usize);
    emit.give_packet_in(data, message.matching.clone(), &message.hand_up);
}

/// Takes a frame that its port has let in through the tables step by step, at the price of finding
/// everything out anew: what programs cannot say goes this way (results that depend on bytes
/// outside of any key, TTLs that are used up).
fn walk(replica: &Replica, frame: PacketBuf, in_port: PortNo, now: Nanos, sink: &mut impl Sink) {
    let mut emit = Emit::step_by_step(replica, sink, now);
    if let Some(reason) = refusal(replica.settings.fragments, frame.bytes()) {
        replica.count_rx_dropped(in_port, 1);
        emit.drop(reason);
        emit.close();
        return emit.sink.done(frame);
    }
    let mut walk = Interpreter::new(emit);
    // Whatever ended the packet's way has given its verdict.
    let _end: WalkFlow = walk.enter(Packet::new(frame, in_port));
    walk.finish().close();
}

fn normal<S: Sink>(
    emit: &mut Emit<'_, S>,
    frame: &mut PacketBuf,
    in_port: PortNo,
    (queue, mirrored): (Option<QueueId>, u32),
) {
    emit.mirrored |= mirrored;
    let packet = Packet::new(std::mem::take(frame), in_port);
    // Who forwards now is stopped by nothing.
    let _end: WalkFlow = forward_as_switch(emit, &packet, queue);
    *frame = packet.frame;
}

/// Carries out any program on one frame. When a meter ended the packet's way: how many entries it
/// had matched, and its length.
fn run_general(
    replica: &Replica,
    programs: &Programs,
    decided: Decided,
    frame: PacketBuf,
    in_port: PortNo,
    now: Nanos,
    sink: &mut impl Sink,
) -> Option<(u16, u64)> {
    let mut emit = Emit::new(replica, sink, now);
    let Some(program) = programs.get(decided.program) else {
        emit.drop(DropReason::NoOutput);
        emit.sink.done(frame);
        return None;
    };
    emit.stands_for = frame.on_wire().0;
    let (bytes, mut packet, mut outer, mut ended) = (frame.len() as u64, frame, Vec::new(), None);
    for (at, (micro_op, values)) in (1..).zip(program.micro_ops()) {
        match micro_op {
            MicroOp::Rewrite(_)
            | MicroOp::PopTag
            | MicroOp::PushMpls(..)
            | MicroOp::TagToMpls(..)
            | MicroOp::Truncate(_)
            | MicroOp::Apply(_)
            | MicroOp::Group(_)
            | MicroOp::Bucket(..) => {
                let micro_ops = std::slice::from_ref(micro_op);
                run_micro_ops(replica, micro_ops, values, &mut packet, in_port);
            }
            MicroOp::Meter(id, matched) => {
                if !pass_meter(replica, *id, &mut packet, in_port, now) {
                    emit.drop(DropReason::Meter);
                    ended = Some((*matched, bytes));
                    break;
                }
            }
            MicroOp::Output(port, queue) if at == program.code.micro_ops.len() => {
                emit.hand_over(packet, *port, *queue);
                emit.close();
                return None;
            }
            MicroOp::Output(port, queue) => {
                let copy = emit.copy(&packet);
                emit.hand_over(copy, *port, *queue);
            }
            MicroOp::ToController(message) => hand_up(&mut emit, &packet, bytes, message),
            MicroOp::Drop(reason) => emit.drop(*reason),
            MicroOp::RefusedTx(port, reason) => emit.refuse(*port, *reason),
            MicroOp::Normal(queue, mirrored) => {
                normal(&mut emit, &mut packet, in_port, (*queue, *mirrored));
            }
            MicroOp::Learn(learning) => replica.teach(learning, now),
            MicroOp::Shorten(id, timeouts) => replica.shorten(*id, *timeouts, now),
            MicroOp::BeginCopy => {
                let copy = emit.copy(&packet);
                outer.push(std::mem::replace(&mut packet, copy));
            }
            MicroOp::EndCopy => {
                if let Some(before) = outer.pop() {
                    emit.sink.done(std::mem::replace(&mut packet, before));
                }
            }
        }
    }
    emit.close();
    outer.push(packet);
    sink.done_all(&mut outer);
    ended
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openflow::field::FIELDS;
    use openflow::{Action, Field, MacAddr, PortNo};
    use packet::{Meta, PacketBuf, Shape};
    use testkit::Random;

    use super::run_micro_ops;
    use crate::config::DatapathConfig;
    use crate::fast::forwarder::program::{CompiledProgram, Guard, MicroOp};
    use crate::fast::forwarder::replica::Replica;
    use crate::fast::interpreter::{Executed, execute};
    use crate::fast::shared::Shared;

    struct Draw(Random);

    impl Draw {
        fn below(&mut self, limit: u64) -> u64 {
            self.0.below(limit)
        }

        /// Bytes among which the limits of ones' complement come often.
        fn byte(&mut self) -> u8 {
            match self.below(4) {
                0 => 0,
                1 => 0xff,
                _ => self.below(256) as u8,
            }
        }

        fn frame(&mut self) -> Vec<u8> {
            let mut frame: Vec<u8> = (0..60 + self.below(30)).map(|_| self.byte()).collect();
            let mut at = 12;
            if self.below(2) == 0 {
                frame[12..14].copy_from_slice(&[0x81, 0]);
                at = 16;
            }
            let types = [0x0800_u16, 0x0800, 0x86dd, 0x0806, 0x8847, 0x1234];
            let eth_type = types[self.below(6) as usize];
            frame[at..at + 2].copy_from_slice(&eth_type.to_be_bytes());
            let l3 = at + 2;
            let proto = [1, 6, 17, 17, 58, 132, 200][self.below(7) as usize];
            match eth_type {
                0x0800 => {
                    frame[l3] = 0x45;
                    frame[l3 + 2..l3 + 4].copy_from_slice(&[0, 42]);
                    frame[l3 + 6..l3 + 8].fill(0);
                    frame[l3 + 9] = proto;
                }
                0x86dd => {
                    frame[l3] = 0x60;
                    frame[l3 + 4..l3 + 6].copy_from_slice(&[0, 20]);
                    frame[l3 + 6] = if proto == 1 { 58 } else { proto };
                }
                _ => frame[l3..l3 + 6].copy_from_slice(&[0, 1, 8, 0, 6, 4]),
            }
            frame
        }

        fn action(&mut self) -> Action {
            let value = self.0.u128();
            let value = [0, u128::MAX, value][self.below(3) as usize];
            let short = value as u16;
            let settable: Vec<Field> =
                FIELDS.iter().filter(|row| row.settable).map(|row| row.field).collect();
            match self.below(20) {
                0 => Action::PopVlan,
                1 => Action::StripVlan,
                2 => Action::PushVlan(0x8100),
                3 | 4 => Action::PushMpls(0x8847),
                5 => Action::SetVlanVid(short & 0xfff),
                6 => Action::SetVlanPcp(short as u8 & 7),
                7 => Action::SetNwTos(short as u8),
                8 => Action::SetTpSrc(short),
                9 => Action::SetTpDst(short),
                10 => Action::SetDlSrc(MacAddr::from_u64(value as u64)),
                11 => Action::SetNwDst((value as u32).into()),
                12 => Action::SetNwTtl(short as u8),
                13 => Action::SetMplsTtl(short as u8),
                14 => Action::DecNwTtl,
                15 => Action::DecMplsTtl,
                16 => Action::PopMpls(0x0800),
                _ => {
                    let field = settable[self.below(settable.len() as u64) as usize];
                    Action::set_field(field, value & field.full_mask())
                }
            }
        }
    }

    /// Joined changes against the actions one after the other, byte for byte.
    #[test]
    fn programs_change_frames_as_their_actions_do() {
        let config = DatapathConfig::default();
        let shared = Arc::new(Shared::new(1, &config));
        let replica = Replica::new(&config, shared, 0, 1);
        let mut draw = Draw(Random::new(1));
        let mut joined = 0;
        for round in 0..40_000 {
            let bytes = draw.frame();
            let actions: Vec<Action> = (0..draw.below(7)).map(|_| draw.action()).collect();
            let mut expected = PacketBuf::from_slice(&bytes);
            let mut meta = Meta::port(PortNo(1));
            let dead = actions
                .iter()
                .any(|action| execute(&mut expected, &mut meta, action) == Executed::TtlInvalid);
            if dead {
                continue;
            }
            let micro_ops: Vec<MicroOp> = actions.iter().cloned().map(MicroOp::Apply).collect();
            let shape = Shape::of(&bytes);
            let program = CompiledProgram::of(micro_ops, Guard::default(), shape);
            let mut frame = PacketBuf::from_slice(&bytes);
            let CompiledProgram { code, values, .. } = program;
            run_micro_ops(&replica, &code.micro_ops, &values, &mut frame, PortNo(1));
            assert_eq!(frame, expected, "round {round}: {shape:?} {actions:?}\n{bytes:02x?}");
            let combined =
                code.micro_ops.iter().filter(|micro_op| !matches!(micro_op, MicroOp::Apply(_)));
            joined += combined.count();
        }
        assert!(joined > 20_000, "{joined}");
    }
}
