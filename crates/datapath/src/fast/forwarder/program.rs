//! Programs: what the actions of a path come to, found out once and carried out for every packet.
//!
//! A program is a straight list of micro-ops. Whatever the tables, groups and ports decided is in
//! it already; what only the packet can say (meters, `NORMAL`, whether an action fits) is decided
//! by its micro-ops. Programs of equal content are one, so that packets of many entries that do the
//! same run together. A program must be thrown away when anything that was decided has changed.

use std::collections::HashMap;

use openflow::message::PacketInReason;
use openflow::{Action, GroupId, Match, MeterId, PortNo, QueueId};
use packet::{Network, Shape};

use super::fuse::{fuse, take_terminal};
use super::header_rewrite::HeaderRewrite;
use super::path::PathId;
use crate::action_set::Origin;
use crate::counter::DropReason;
use crate::fast::mix_hasher::BuildMixHasher;
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

impl MicroOp {
    /// Whether frames can be carried through this one after the other, with nothing given out.
    pub(super) fn is_straight(&self) -> bool {
        match self {
            Self::Apply(_)
            | Self::Rewrite(_)
            | Self::PopTag
            | Self::PushMpls(..)
            | Self::TagToMpls(..)
            | Self::Group(_)
            | Self::Bucket(..) => true,
            Self::Meter(..)
            | Self::Output(..)
            | Self::ToController(_)
            | Self::Drop(_)
            | Self::RefusedTx(..)
            | Self::Normal(_)
            | Self::BeginCopy
            | Self::EndCopy => false,
        }
    }
}

/// What a packet-in says beside the packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Message {
    pub(super) matching: Match,
    pub(super) reason: PacketInReason,
    pub(super) origin: Origin,
    pub(super) max_len: u16,
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

/// What was decided about one packet. It fits a register: as it came back through memory, in pieces
/// that were read as a whole, deciding about a packet took a third longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decided {
    pub(super) program: ProgramId,
    /// Where its counts are; meaningless with [`ProgramId::WALK`].
    pub(super) path: PathId,
}

impl Decided {
    pub(super) const WALK: Self = Self { program: ProgramId::WALK, path: PathId::NONE };
}

/// All programs of a forwarder.
#[derive(Debug, Default)]
pub(super) struct Programs {
    known: HashMap<Program, ProgramId, BuildMixHasher>,
    list: Vec<Program>,
    has_meters: bool,
}

impl Programs {
    /// No programs but the one that stands for none.
    pub(super) fn new() -> Self {
        let walk = Program { micro_ops: Box::default(), terminal: None, guard: Guard::NEVER };
        Self { known: HashMap::default(), list: vec![walk], has_meters: false }
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
