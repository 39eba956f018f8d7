//! The program compiler: the way of one packet over found entries, written down as micro-ops.
//!
//! The compiler decides what tables, groups and ports decide, for a real packet, and leaves to the
//! micro-ops what only each packet can say. It gives nothing out and counts nothing. Where the
//! result would hold for this one packet only, it says so and the packet goes step by step: a wrong
//! program would be wrong a million times.

use std::ops::ControlFlow;

use openflow::action::MAX_LEN_NO_BUFFER;
use openflow::instruction::INSTRUCTIONS;
use openflow::message::PacketInReason;
use openflow::{Action, Field, GroupId, Instruction, PortNo, QueueId, TableId};
use packet::{Meta, PacketBuf, Shape, extract};

use super::program::{Guard, Message, MicroOp, Program, ttl_at};
use super::replica::{InstructionSummary, Replica, ReplicaEntry, changes};
use super::walk::{MAX_CHAIN, change, reason_of};
use crate::action_set::{ActionSet, Origin};
use crate::config::Miss;
use crate::counter::DropReason;
use crate::ports::Port;
use crate::verdict::packet_in_context;

/// Most copies that a program makes; packets of groups that ask for more go step by step.
const MAX_COPIES: usize = 64;

/// Most micro-ops of a program.
const MAX_MICRO_OPS: usize = 512;

/// What is known of the TTL that is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ttl {
    /// The frame shows none.
    None,
    /// The byte of the incoming frame at this place, less so much.
    Of(usize, u8),
    /// Written by an action.
    Is(u8),
    /// It depends on more than is known.
    Unknown,
}

/// A program, and for whom it is right.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) program: Program,
    /// Whether it holds only for packets that matched these very entries, as it tells their
    /// cookies.
    pub(super) is_own: bool,
    /// Whether it holds only for packets of this flow.
    pub(super) is_of_flow: bool,
}

/// A compiler. `None` and `Break` mean that the packet goes step by step.
pub(super) struct Compiler<'a> {
    replica: &'a Replica,
    shape: Shape,
    frame: PacketBuf,
    meta: Meta,
    queue: Option<QueueId>,
    ttl: Ttl,
    /// What every frame must have for its TTL to be right.
    guard: Guard,
    micro_ops: Vec<MicroOp>,
    /// Whether the packet shows headers that no key has.
    is_opaque: bool,
    is_own: bool,
    is_of_flow: bool,
    copies: usize,
    chained: usize,
}

type Goes = ControlFlow<()>;

impl<'a> Compiler<'a> {
    /// For packets like this one, in a buffer that may be changed.
    pub(super) fn new(
        replica: &'a Replica,
        shape: Shape,
        frame: PacketBuf,
        in_port: PortNo,
    ) -> Self {
        let ttl = match ttl_at(shape) {
            Some(at) => Ttl::Of(at, 0),
            None if shape.is_rare() => Ttl::Unknown,
            None => Ttl::None,
        };
        Self {
            replica,
            shape,
            frame,
            meta: Meta::port(in_port),
            queue: None,
            ttl,
            guard: Guard::default(),
            micro_ops: Vec::new(),
            is_opaque: false,
            is_own: false,
            is_of_flow: false,
            copies: 0,
            chained: 0,
        }
    }

    /// The program of packets that match these entries and then, with `miss`, none in that table.
    pub(super) fn compile(
        &mut self,
        entries: &[&ReplicaEntry],
        miss: Option<TableId>,
    ) -> Option<Compiled> {
        let done = self.run(entries, miss);
        if done.is_break() || self.micro_ops.len() > MAX_MICRO_OPS {
            return None;
        }
        let gives = |micro_op: &MicroOp| {
            matches!(
                micro_op,
                MicroOp::Output(..)
                    | MicroOp::ToController(_)
                    | MicroOp::Drop(_)
                    | MicroOp::RefusedTx(..)
                    | MicroOp::Normal(_)
            )
        };
        if !self.micro_ops.iter().any(gives) {
            self.micro_ops.push(MicroOp::Drop(DropReason::NoOutput));
        }
        Some(Compiled {
            program: Program::of(std::mem::take(&mut self.micro_ops), self.guard, self.shape),
            is_own: self.is_own,
            is_of_flow: self.is_of_flow,
        })
    }

    fn run(&mut self, entries: &[&ReplicaEntry], miss: Option<TableId>) -> Goes {
        let mut set = ActionSet::default();
        for (index, entry) in entries.iter().enumerate() {
            self.instructions(&entry.summary, &mut set, entry.origin, index)?;
        }
        if let Some(table) = miss {
            self.miss(table);
            return ControlFlow::Continue(());
        }
        for (action, origin) in set.in_order() {
            self.action(action, origin)?;
        }
        ControlFlow::Continue(())
    }

    fn instructions(
        &mut self,
        summary: &InstructionSummary,
        set: &mut ActionSet,
        origin: Origin,
        index: usize,
    ) -> Goes {
        for row in INSTRUCTIONS {
            let Some(instruction) = summary.instructions().iter().find(|i| i.kind() == row.kind)
            else {
                continue;
            };
            match instruction {
                Instruction::Meter(id) => {
                    let matched = u16::try_from(index + 1).unwrap_or(u16::MAX);
                    self.micro_ops.push(MicroOp::Meter(*id, matched));
                }
                Instruction::ApplyActions(actions) => {
                    actions.iter().try_for_each(|action| self.action(action, origin))?;
                }
                Instruction::ClearActions => set.clear(),
                Instruction::WriteActions(actions) => set.write(actions, origin),
                Instruction::WriteMetadata { metadata, mask } => {
                    self.meta.metadata = self.meta.metadata & !mask | metadata & mask;
                }
                Instruction::GotoTable(_) | Instruction::Experimenter { .. } => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn miss(&mut self, table_id: TableId) {
        let settings = self.replica.settings;
        match settings.miss {
            Miss::Drop => self.micro_ops.push(MicroOp::Drop(DropReason::NoMatch)),
            Miss::Controller => {
                let origin = Origin { table_id, is_miss: true, ..Origin::NONE };
                self.hand_up(PacketInReason::NoMatch, origin, settings.miss_send_len);
            }
        }
    }

    fn hand_up(&mut self, reason: PacketInReason, origin: Origin, max_len: u16) {
        self.is_own = true;
        let in_port = self.replica.ports.get(self.meta.in_port);
        if reason == PacketInReason::NoMatch && in_port.is_some_and(Port::no_packet_in) {
            return self.micro_ops.push(MicroOp::Drop(DropReason::NoPacketIn));
        }
        let Origin { table_id, cookie, is_miss } = origin;
        let matching = packet_in_context(&self.meta);
        let message = Message { matching, reason, table_id, cookie, is_miss, max_len };
        self.micro_ops.push(MicroOp::ToController(Box::new(message)));
    }

    fn action(&mut self, action: &Action, origin: Origin) -> Goes {
        if changes(action) {
            self.ttl(action)?;
            self.is_opaque |= hides_what_it_shows(action, self.shape);
            self.micro_ops.push(MicroOp::Apply(action.clone()));
            // A TTL that is used up here is a later matter: the guard looks at it.
            let _changed = change(&mut self.frame, &mut self.meta, action);
            return ControlFlow::Continue(());
        }
        match action {
            Action::Output { port, max_len } => {
                self.output(self.queue, *port, *max_len, origin);
            }
            Action::Enqueue { port, queue } => {
                self.output(Some(*queue), *port, MAX_LEN_NO_BUFFER, origin);
            }
            Action::Group(id) => self.group(*id, origin)?,
            Action::SetQueue(queue) => self.queue = Some(*queue),
            // Refused when the entry came.
            _experimenter => {}
        }
        ControlFlow::Continue(())
    }

    /// Follows the visible TTL through an action.
    fn ttl(&mut self, action: &Action) -> Goes {
        let is_mpls = |ttl: Ttl, shape: Shape| match ttl {
            Ttl::Of(at, _) => shape.network() == packet::Network::Mpls && Some(at) == ttl_at(shape),
            Ttl::None | Ttl::Is(_) | Ttl::Unknown => false,
        };
        match action {
            Action::DecNwTtl | Action::DecMplsTtl => {
                let of_mpls = matches!(action, Action::DecMplsTtl);
                match self.ttl {
                    // Where the two kinds of header could be mixed up, nothing is known.
                    Ttl::Of(at, by) if of_mpls == is_mpls(self.ttl, self.shape) => {
                        self.need(at, by.saturating_add(1))?;
                        self.ttl = Ttl::Of(at, by.saturating_add(1));
                    }
                    Ttl::None => {}
                    Ttl::Of(..) | Ttl::Is(_) | Ttl::Unknown => return ControlFlow::Break(()),
                }
            }
            Action::SetNwTtl(ttl) | Action::SetMplsTtl(ttl) if self.ttl != Ttl::None => {
                self.ttl = Ttl::Is(*ttl);
            }
            Action::CopyTtlOut
            | Action::CopyTtlIn
            | Action::PushMpls(_)
            | Action::PopMpls(_)
            | Action::PushPbb(_)
            | Action::PopPbb
            | Action::SetField { field: Field::EthType, .. } => self.ttl = Ttl::Unknown,
            _other => {}
        }
        ControlFlow::Continue(())
    }

    /// Asks of every frame that this byte is above so much.
    fn need(&mut self, at: usize, above: u8) -> Goes {
        let Ok(at) = u8::try_from(at) else { return ControlFlow::Break(()) };
        if self.guard.at != 0 && self.guard.at != at {
            return ControlFlow::Break(());
        }
        self.guard = Guard { at, above: self.guard.above.max(above) };
        ControlFlow::Continue(())
    }

    fn output(&mut self, queue: Option<QueueId>, port: PortNo, max_len: u16, origin: Origin) {
        let in_port = self.meta.in_port;
        match port {
            PortNo::IN_PORT => self.send(in_port, queue),
            PortNo::ALL => self.flood(queue, |_| true),
            PortNo::FLOOD => self.flood(queue, |port| !port.no_flood()),
            PortNo::NORMAL => self.micro_ops.push(MicroOp::Normal(queue)),
            PortNo::TABLE => self.micro_ops.push(MicroOp::Drop(DropReason::ReentrantTable)),
            PortNo::CONTROLLER => self.hand_up(reason_of(origin), origin, max_len),
            _ if port == in_port => self.micro_ops.push(MicroOp::Drop(DropReason::ToIngress)),
            _ => self.send(port, queue),
        }
    }

    fn send(&mut self, number: PortNo, queue: Option<QueueId>) {
        self.micro_ops.push(match self.replica.ports.get(number) {
            None => MicroOp::Drop(DropReason::NoSuchPort),
            Some(port) => match port.refuses_tx() {
                Some(reason) => MicroOp::RefusedTx(number, reason),
                None => MicroOp::Output(number, queue),
            },
        });
    }

    fn flood(&mut self, queue: Option<QueueId>, wanted: impl Fn(&Port) -> bool) {
        let before = self.micro_ops.len();
        for (number, port) in self.replica.ports.iter() {
            if number != self.meta.in_port && port.refuses_tx().is_none() && wanted(port) {
                self.micro_ops.push(MicroOp::Output(number, queue));
            }
        }
        if self.micro_ops.len() == before {
            self.micro_ops.push(MicroOp::Drop(DropReason::NoPortLeft));
        }
    }

    fn group(&mut self, id: GroupId, origin: Origin) -> Goes {
        let replica = self.replica;
        let Some(group) = replica.groups.get(id) else {
            self.micro_ops.push(MicroOp::Drop(DropReason::NoBucket));
            return ControlFlow::Continue(());
        };
        if self.chained >= MAX_CHAIN {
            self.micro_ops.push(MicroOp::Drop(DropReason::ChainTooLong));
            return ControlFlow::Continue(());
        }
        self.micro_ops.push(MicroOp::Group(id));
        if group.buckets().is_empty() {
            return ControlFlow::Continue(());
        }
        for index in self.chosen(id)? {
            let Some(bucket) = group.buckets().get(index) else { continue };
            self.copies += 1;
            if self.copies > MAX_COPIES || self.micro_ops.len() > MAX_MICRO_OPS {
                return ControlFlow::Break(());
            }
            self.micro_ops.push(MicroOp::BeginCopy);
            self.micro_ops.push(MicroOp::Bucket(id, index));
            self.bucket(&bucket.actions, origin)?;
            self.micro_ops.push(MicroOp::EndCopy);
        }
        ControlFlow::Continue(())
    }

    /// The buckets that the packet goes to; a drop is compiled when there are none.
    fn chosen(&mut self, id: GroupId) -> ControlFlow<(), Vec<usize>> {
        let replica = self.replica;
        let is_select = replica.groups.get(id).is_some_and(|group| {
            group.group_type() == openflow::group::GroupType::Select && group.buckets().len() > 1
        });
        let mut is_fragment = false;
        if is_select {
            // The choice depends on fields; the key must have them.
            if self.is_opaque || !replica.keys_have_select_fields {
                return ControlFlow::Break(());
            }
            is_fragment = self.shape.is_rare()
                && packet::Layout::of(self.frame.bytes()).is_some_and(|layout| layout.fragment);
            self.is_of_flow = true;
        }
        let key = extract(self.frame.bytes(), &self.meta);
        let chosen = replica.groups.chosen(id, &key, is_fragment, &replica.ports);
        if chosen.is_empty() {
            self.micro_ops.push(MicroOp::Drop(DropReason::NoLiveBucket));
        }
        ControlFlow::Continue(chosen)
    }

    /// Runs a bucket's actions on what stands for a copy.
    fn bucket(&mut self, actions: &[Action], origin: Origin) -> Goes {
        let (frame, meta, queue) = (self.frame.clone(), self.meta, self.queue);
        let (ttl, is_opaque) = (self.ttl, self.is_opaque);
        let set = ActionSet::of(actions);
        self.chained += 1;
        for (action, _) in set.in_order() {
            self.action(action, origin)?;
        }
        self.chained -= 1;
        (self.frame, self.meta, self.queue) = (frame, meta, queue);
        (self.ttl, self.is_opaque) = (ttl, is_opaque);
        ControlFlow::Continue(())
    }
}

/// Whether an action brings forth headers or fields that were hidden, so that what a later table
/// sees is not in the key of the incoming packet.
pub(super) fn hides_what_it_shows(action: &Action, shape: Shape) -> bool {
    match action {
        Action::PopMpls(_) | Action::PopPbb => true,
        Action::PopVlan | Action::StripVlan => shape.is_rare(),
        Action::SetField { field, .. } => {
            matches!(field, Field::EthType | Field::IpProto | Field::Icmpv6Type)
        }
        Action::PushPbb(_) => true,
        _other => false,
    }
}
