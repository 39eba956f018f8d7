//! Programs: what the actions of a path come to, found out once and carried out for every packet.
//!
//! A program is a straight list of micro-ops. Whatever the tables, groups and ports decided is in
//! it already; what only the packet can say (meters, `NORMAL`, whether an action fits) is decided
//! by its micro-ops. Programs of equal content are one, so that packets of many entries that do the
//! same run together. A program must be thrown away when anything that was decided has changed.

use std::collections::HashMap;

use openflow::message::PacketInReason;
use openflow::{Action, Cookie, Field, GroupId, Match, MeterId, PortNo, QueueId, TableId};
use packet::header::mpls;
use packet::{Network, Shape};

use super::header_rewrite::HeaderRewrite;
use crate::action_set::Origin;
use crate::counter::DropReason;
use crate::fast::sys::prefetch;

/// One thing that a program does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum MicroOp {
    /// An action that changes the packet where it fits.
    Apply(Action),
    /// Several changes in one pass.
    Rewrite(Box<HeaderRewrite>),
    /// Takes off the only VLAN tag, which is there.
    PopTag,
    /// Pushes an MPLS entry onto a frame of this shape.
    PushMpls(u16, Shape),
    /// Puts an MPLS entry in the place of the only VLAN tag, which is there: the EtherType, the
    /// entry without TTL, and where the tagged frame has the TTL to copy.
    TagToMpls(u16, u32, Option<u8>),
    /// Counts a group.
    Group(GroupId),
    /// Counts a bucket.
    Bucket(GroupId, usize),
    /// Meters the packet, which has matched so many entries by then.
    Meter(MeterId, u16),
    /// Leaves by a port that can send.
    Output(PortNo, Option<QueueId>),
    /// Goes to the controller.
    ToController(Box<Message>),
    /// Goes nowhere.
    Drop(DropReason),
    /// Goes nowhere, because this port cannot send.
    RefusedTx(PortNo, DropReason),
    /// Goes where the learning switch says.
    Normal(Option<QueueId>),
    /// What follows is done to a copy.
    BeginCopy,
    /// The copy is done with.
    EndCopy,
}

/// What a packet-in says beside the packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Message {
    pub(super) matching: Match,
    pub(super) reason: PacketInReason,
    pub(super) table_id: TableId,
    pub(super) cookie: Cookie,
    pub(super) is_miss: bool,
    pub(super) max_len: u16,
}

impl Message {
    pub(super) fn origin(&self) -> Origin {
        Origin { table_id: self.table_id, cookie: self.cookie, is_miss: self.is_miss }
    }
}

/// What the packet's way ends with, when it is the only verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Terminal {
    /// It leaves by a port.
    Output(PortNo, Option<QueueId>),
    /// It goes nowhere.
    Drop(DropReason),
}

/// What a frame must have for the program to be right: a byte at `at` above `above`. Zero and zero
/// for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Guard {
    pub(super) at: u8,
    pub(super) above: u8,
}

impl Guard {
    /// What no frame has: no byte is above the highest.
    pub(super) const NEVER: Self = Self { at: u8::MAX, above: u8::MAX };

    /// Whether the frame is as the program needs it.
    #[inline]
    pub(super) fn holds(self, frame: &[u8]) -> bool {
        self.at == 0 || frame.get(usize::from(self.at)).is_some_and(|byte| *byte > self.above)
    }
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Program {
    /// With a terminal, only changes of the frame and counts.
    pub(super) micro_ops: Box<[MicroOp]>,
    pub(super) terminal: Option<Terminal>,
    pub(super) guard: Guard,
}

impl Program {
    /// The program of compiled micro-ops for frames of a shape.
    pub(super) fn of(micro_ops: Vec<MicroOp>, guard: Guard, shape: Shape) -> Self {
        let mut micro_ops = fuse(micro_ops, shape);
        let terminal = take_terminal(&mut micro_ops);
        Self { micro_ops: micro_ops.into(), terminal, guard }
    }
}

impl Program {
    /// Whether it may end before its end.
    pub(super) fn has_meter(&self) -> bool {
        self.terminal.is_none()
            && self.micro_ops.iter().any(|micro_op| matches!(micro_op, MicroOp::Meter(..)))
    }

    /// Whether it does nothing to a frame, but sends it somewhere or drops it.
    pub(super) fn is_bare(&self) -> bool {
        self.micro_ops.is_empty() && self.terminal.is_some() && self.guard == Guard::default()
    }
}

/// Joins changes at known places.
fn fuse(micro_ops: Vec<MicroOp>, shape: Shape) -> Vec<MicroOp> {
    let mut fused = Fuse {
        micro_ops: Vec::with_capacity(micro_ops.len()),
        shape,
        rewrite: HeaderRewrite::of(shape),
    };
    let mut outer = Vec::new();
    for micro_op in micro_ops {
        match micro_op {
            MicroOp::Apply(action) => fused.change(action),
            MicroOp::BeginCopy => {
                fused.flush();
                outer.push(fused.shape);
                fused.micro_ops.push(MicroOp::BeginCopy);
            }
            MicroOp::EndCopy => {
                fused.flush();
                fused.micro_ops.push(MicroOp::EndCopy);
                fused.turn(outer.pop().unwrap_or(Shape::RARE));
            }
            other => {
                fused.flush();
                fused.micro_ops.push(other);
            }
        }
    }
    fused.flush();
    fused.micro_ops
}

struct Fuse {
    micro_ops: Vec<MicroOp>,
    shape: Shape,
    rewrite: Option<HeaderRewrite>,
}

impl Fuse {
    fn flush(&mut self) {
        if let Some(rewrite) = self.rewrite.take().filter(|rewrite| !rewrite.is_empty()) {
            self.micro_ops.push(MicroOp::Rewrite(Box::new(rewrite)));
        }
        self.rewrite = HeaderRewrite::of(self.shape);
    }

    fn turn(&mut self, shape: Shape) {
        self.shape = shape;
        self.rewrite = HeaderRewrite::of(shape);
    }

    /// Puts a field of the MPLS entry that takes a tag's place into it; whether it is one.
    fn label(&mut self, action: &Action) -> bool {
        let Some(MicroOp::TagToMpls(_, entry, _)) = self.micro_ops.last_mut() else { return false };
        let Action::SetField { field, value } = action else { return false };
        let (label, tc) = (mpls::label(*entry), mpls::tc(*entry));
        let value = u32::try_from(value & field.full_mask()).unwrap_or(0);
        *entry = match field {
            Field::MplsLabel => mpls::entry(value, tc, mpls::bos(*entry), 0),
            Field::MplsTc => mpls::entry(label, value as u8, mpls::bos(*entry), 0),
            _other => return false,
        };
        true
    }

    fn change(&mut self, action: Action) {
        if self.rewrite.as_ref().is_some_and(HeaderRewrite::is_empty) && self.label(&action) {
            return;
        }
        if let Some(rewrite) = &mut self.rewrite {
            if rewrite.add(&action) {
                return;
            }
            self.flush();
            if self.rewrite.as_mut().is_some_and(|rewrite| rewrite.add(&action)) {
                return;
            }
        }
        let (micro_op, shape) = match action {
            Action::PopVlan | Action::StripVlan if self.shape.is_tagged() => {
                (MicroOp::PopTag, self.shape.untagged())
            }
            Action::PushMpls(eth_type) if !self.shape.is_rare() => {
                let of_tag = self.micro_ops.last() == Some(&MicroOp::PopTag);
                let stacks = self.shape.network() == Network::Mpls;
                if of_tag && !stacks {
                    // Four bytes go and four come: nothing has to move.
                    self.micro_ops.pop();
                    let ttl = ttl_at(self.shape.tagged()).and_then(|at| u8::try_from(at).ok());
                    let entry = mpls::entry(0, 0, true, 0);
                    (MicroOp::TagToMpls(eth_type, entry, ttl), self.shape.behind_mpls())
                } else {
                    (MicroOp::PushMpls(eth_type, self.shape), self.shape.behind_mpls())
                }
            }
            other => {
                let shape = shape_after(self.shape, &other);
                (MicroOp::Apply(other), shape)
            }
        };
        self.micro_ops.push(micro_op);
        self.turn(shape);
    }
}

/// The shape of a frame after an action that was carried out where it fits.
fn shape_after(shape: Shape, action: &Action) -> Shape {
    match action {
        Action::CopyTtlOut
        | Action::CopyTtlIn
        | Action::SetMplsTtl(_)
        | Action::DecMplsTtl
        | Action::SetNwTtl(_)
        | Action::DecNwTtl
        | Action::SetDlSrc(_)
        | Action::SetDlDst(_)
        | Action::SetNwSrc(_)
        | Action::SetNwDst(_)
        | Action::SetNwTos(_)
        | Action::SetTpSrc(_)
        | Action::SetTpDst(_) => shape,
        Action::SetField { field, .. } => match field {
            Field::EthType | Field::IpProto | Field::Icmpv6Type => Shape::RARE,
            _other => shape,
        },
        Action::PopVlan | Action::StripVlan => shape.untagged(),
        Action::PushVlan(_) if !shape.is_tagged() && !shape.is_rare() => shape.tagged(),
        Action::SetVlanVid(_) | Action::SetVlanPcp(_) if !shape.is_rare() => shape.tagged(),
        Action::PushVlan(_)
        | Action::SetVlanVid(_)
        | Action::SetVlanPcp(_)
        | Action::PushMpls(_)
        | Action::PopMpls(_)
        | Action::PushPbb(_)
        | Action::PopPbb => Shape::RARE,
        Action::Output { .. }
        | Action::Enqueue { .. }
        | Action::Group(_)
        | Action::SetQueue(_)
        | Action::Experimenter { .. } => shape,
    }
}

/// Takes the end off a program whose only verdict it is.
fn take_terminal(micro_ops: &mut Vec<MicroOp>) -> Option<Terminal> {
    // A copy that nothing follows may as well be the packet itself.
    while let Some(MicroOp::EndCopy) = micro_ops.last() {
        let mut depth = 0_usize;
        let enter = micro_ops.iter().rposition(|micro_op| {
            match micro_op {
                MicroOp::EndCopy => depth += 1,
                MicroOp::BeginCopy => depth -= 1,
                _other => {}
            }
            depth == 0
        });
        let Some(enter) = enter else { break };
        micro_ops.pop();
        micro_ops.remove(enter);
    }
    let is_straight = |micro_op: &MicroOp| {
        matches!(
            micro_op,
            MicroOp::Apply(_)
                | MicroOp::Rewrite(_)
                | MicroOp::PopTag
                | MicroOp::PushMpls(..)
                | MicroOp::TagToMpls(..)
                | MicroOp::Group(_)
                | MicroOp::Bucket(..)
        )
    };
    let (last, before) = micro_ops.split_last()?;
    if !before.iter().all(is_straight) {
        return None;
    }
    let terminal = match last {
        MicroOp::Output(port, queue) => Terminal::Output(*port, *queue),
        MicroOp::Drop(reason) => Terminal::Drop(*reason),
        _other => return None,
    };
    micro_ops.pop();
    Some(terminal)
}

/// Number of a program; the highest bit says whether it has micro-ops besides its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ProgramId(pub(super) u32);

const HAS_MICRO_OPS: u32 = 1 << 31;

impl ProgramId {
    /// No program: the packet goes step by step.
    pub(super) const WALK: Self = Self(0);

    #[inline]
    fn index(self) -> usize {
        (self.0 & !HAS_MICRO_OPS) as usize
    }
}

/// All programs of a forwarder.
#[derive(Debug, Default)]
pub(super) struct Programs {
    known: HashMap<Program, ProgramId>,
    list: Vec<Program>,
    has_meters: bool,
}

impl Programs {
    /// No programs but the one that stands for none.
    pub(super) fn new() -> Self {
        let walk = Program { micro_ops: Box::default(), terminal: None, guard: Guard::NEVER };
        Self { known: HashMap::new(), list: vec![walk], has_meters: false }
    }

    /// The number of a program.
    pub(super) fn put(&mut self, program: Program) -> ProgramId {
        if let Some(id) = self.known.get(&program) {
            return *id;
        }
        let number = u32::try_from(self.list.len()).ok().filter(|number| *number < HAS_MICRO_OPS);
        let Some(number) = number else { return ProgramId::WALK };
        let id =
            ProgramId(if program.micro_ops.is_empty() { number } else { number | HAS_MICRO_OPS });
        self.has_meters |= program.has_meter();
        self.list.push(program.clone());
        self.known.insert(program, id);
        id
    }

    /// A program.
    #[inline]
    pub(super) fn get(&self, id: ProgramId) -> Option<&Program> {
        self.list.get(id.index())
    }

    /// Asks for a program that is to be carried out in a moment. Those without micro-ops are few.
    #[inline]
    pub(super) fn prefetch(&self, id: ProgramId) {
        if id.0 & HAS_MICRO_OPS != 0
            && let Some(program) = self.get(id)
        {
            prefetch(program);
        }
    }

    /// Asks for the micro-ops of a program that is to be carried out soon.
    #[inline]
    pub(super) fn prefetch_micro_ops(&self, id: ProgramId) {
        if let Some(micro_op) = self.get(id).and_then(|program| program.micro_ops.first()) {
            prefetch(micro_op);
        }
    }

    /// Whether some program meters packets.
    pub(super) fn has_meters(&self) -> bool {
        self.has_meters
    }

    /// Whether a frame is as a program needs it; never for [`ProgramId::WALK`].
    #[inline]
    pub(super) fn fits(&self, id: ProgramId, frame: &[u8]) -> bool {
        self.guard(id).holds(frame)
    }

    /// What frames must have for a program.
    #[inline]
    pub(super) fn guard(&self, id: ProgramId) -> Guard {
        self.get(id).map_or(Guard::NEVER, |program| program.guard)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }
}

/// Whether a shape has a TTL that is visible, and where.
pub(super) fn ttl_at(shape: Shape) -> Option<usize> {
    match shape.network() {
        Network::Ipv4 => Some(shape.l3() + packet::header::ipv4::TTL),
        Network::Ipv6 => Some(shape.l3() + packet::header::ipv6::HOP_LIMIT),
        Network::Mpls => Some(shape.l3() + packet::header::mpls::TTL),
        Network::Other | Network::Pbb | Network::Arp => None,
    }
}
