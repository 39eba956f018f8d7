//! Programs: what the actions of a path come to, found out once and carried out for every packet.
//!
//! A program is a straight list of micro-ops. Whatever the tables, groups and ports decided is in
//! it already; what only the packet can say (meters, `NORMAL`, whether an action fits) is decided
//! by its micro-ops. Programs of equal content are one, so that packets of many entries that do the
//! same run together. A program must be thrown away when anything that was decided has changed.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use openflow::{Action, GroupId, Match, MeterId, PortNo, QueueId};
use packet::{Network, Shape};

use super::fuse::{fuse, take_terminal};
use super::header_rewrite::HeaderRewrite;
use super::path::PathId;
use crate::action_set::FinTimeouts;
use crate::counter::DropReason;
use crate::fast::ids::EntryId;
use crate::fast::learning::Learning;
use crate::fast::mix_hasher::BuildMixHasher;
use crate::fast::sys::prefetch;
use crate::verdict::HandUp;

/// One thing that a program does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum MicroOp {
    /// An action that changes the packet where it fits.
    Apply(Action),
    /// Several changes in one pass, which write the next values.
    Rewrite(Box<HeaderRewrite>),
    /// Takes off the outermost VLAN tag, which is there.
    PopTag,
    /// Pushes an MPLS entry onto a frame of this shape.
    PushMpls(u16, Shape),
    /// Puts an MPLS entry in the place of the only VLAN tag, which is there: the EtherType, and
    /// where the tagged frame has the TTL to copy. The next value is the entry without TTL.
    TagToMpls(u16, Option<u8>),
    /// Counts a group.
    Group(GroupId),
    /// Counts a bucket.
    Bucket(GroupId, usize),
    /// Meters the packet, which has matched this number of entries by then.
    Meter(MeterId, u16),
    /// Leaves by a port that can send.
    Output(PortNo, Option<QueueId>),
    /// Goes to the controller.
    ToController(Box<Message>),
    /// Goes nowhere.
    Drop(DropReason),
    /// Goes nowhere, because this port cannot send.
    RefusedTx(PortNo, DropReason),
    /// Goes where the learning switch says; these mirrors have had it by then.
    Normal(Option<QueueId>, u32),
    /// Teaches an entry.
    Learn(Arc<Learning>),
    /// Ends its TCP connection: an entry has at most these timeouts.
    Shorten(EntryId, FinTimeouts),
    /// Is cut off behind this number of bytes.
    Truncate(usize),
    /// The micro-ops from here on are for a copy.
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
            | Self::Truncate(_)
            | Self::Group(_)
            | Self::Bucket(..) => true,
            Self::Meter(..)
            | Self::Output(..)
            | Self::ToController(_)
            | Self::Drop(_)
            | Self::RefusedTx(..)
            | Self::Normal(..)
            | Self::Learn(_)
            | Self::Shorten(..)
            | Self::BeginCopy
            | Self::EndCopy => false,
        }
    }

    /// Number of values that it writes.
    #[inline]
    fn values_len(&self) -> usize {
        match self {
            Self::Rewrite(rewrite) => rewrite.values_len(),
            Self::TagToMpls(..) => 1,
            Self::Apply(_)
            | Self::PopTag
            | Self::PushMpls(..)
            | Self::Truncate(_)
            | Self::Group(_)
            | Self::Bucket(..)
            | Self::Meter(..)
            | Self::Output(..)
            | Self::ToController(_)
            | Self::Drop(_)
            | Self::RefusedTx(..)
            | Self::Normal(..)
            | Self::Learn(_)
            | Self::Shorten(..)
            | Self::BeginCopy
            | Self::EndCopy => 0,
        }
    }

    /// Takes the values that it writes off a program's.
    #[inline]
    pub(super) fn take_values<'a>(&self, values: &mut &'a [u64]) -> &'a [u64] {
        let (own, rest) = values.split_at_checked(self.values_len()).unwrap_or_default();
        *values = rest;
        own
    }
}

/// The part of a packet-in beside the packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Message {
    pub(super) matching: Match,
    pub(super) hand_up: HandUp,
}

/// The end of the packet's way, when it is the only verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Terminal {
    /// It leaves by a port.
    Output(PortNo, Option<QueueId>),
    /// It goes nowhere.
    Drop(DropReason),
}

/// The condition on frames under which the program is right: a byte at `at` above `above`. Zero and
/// zero for nothing. From [`Guard::OF_LENGTH`] on, `at` is no place: its other bits and `above` are
/// the greatest length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Guard {
    pub(super) at: u8,
    pub(super) above: u8,
}

impl Guard {
    const OF_LENGTH: u8 = 0x80;

    /// The condition that no frame fulfils: none has no bytes.
    pub(super) const NEVER: Self = Self { at: Self::OF_LENGTH, above: 0 };

    /// The condition of a byte above so much; none where there is no room for the place.
    pub(super) fn above(at: usize, above: u8) -> Option<Self> {
        let at = u8::try_from(at).ok().filter(|at| *at < Self::OF_LENGTH)?;
        Some(Self { at, above })
    }

    /// The condition of no more bytes than this; none where there is no room for the number.
    pub(super) fn up_to(len: usize) -> Option<Self> {
        let [at, above] = u16::try_from(len).ok()?.to_be_bytes();
        (at < Self::OF_LENGTH).then_some(Self { at: at | Self::OF_LENGTH, above })
    }

    /// The greatest length, if that is the condition.
    #[inline]
    pub(super) fn len_max(self) -> Option<usize> {
        let [at, above] = [self.at & !Self::OF_LENGTH, self.above];
        (self.at >= Self::OF_LENGTH).then(|| u16::from_be_bytes([at, above]).into())
    }

    /// Whether the frame is as the program needs it.
    #[inline]
    pub(super) fn holds(self, frame: &[u8]) -> bool {
        self.at == 0
            || match self.len_max() {
                Some(most) => frame.len() <= most,
                None => frame.get(usize::from(self.at)).is_some_and(|byte| *byte > self.above),
            }
    }
}

/// The common part of programs that differ only in values and in their ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Code {
    /// With a terminal, only changes of the frame and counts.
    pub(super) micro_ops: Box<[MicroOp]>,
    pub(super) guard: Guard,
}

impl Code {
    /// Whether it may end before its end.
    fn has_meter(&self) -> bool {
        self.micro_ops.iter().any(|micro_op| matches!(micro_op, MicroOp::Meter(..)))
    }

    fn values_len(&self) -> usize {
        self.micro_ops.iter().map(MicroOp::values_len).sum()
    }
}

/// A program as it is compiled.
#[derive(Clone, Debug)]
pub(super) struct CompiledProgram {
    pub(super) code: Code,
    pub(super) terminal: Option<Terminal>,
    /// In the order of the micro-ops that write them.
    pub(super) values: Vec<u64>,
}

impl CompiledProgram {
    /// The program of compiled micro-ops for frames of a shape.
    pub(super) fn of(micro_ops: Vec<MicroOp>, guard: Guard, shape: Shape) -> Self {
        let (mut micro_ops, values) = fuse(micro_ops, shape);
        let terminal = take_terminal(&mut micro_ops);
        Self { code: Code { micro_ops: micro_ops.into(), guard }, terminal, values }
    }

    /// The same, to be carried out.
    pub(super) fn as_program(&self) -> Program<'_> {
        Program { code: &self.code, terminal: self.terminal, values: &self.values }
    }
}

/// A program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program<'a> {
    pub(super) code: &'a Code,
    pub(super) terminal: Option<Terminal>,
    pub(super) values: &'a [u64],
}

impl<'a> Program<'a> {
    /// Whether it may end before its end.
    pub(super) fn has_meter(&self) -> bool {
        self.terminal.is_none() && self.code.has_meter()
    }

    /// Whether packets go where a learning switch says.
    pub(super) fn has_normal(&self) -> bool {
        self.code.micro_ops.iter().any(|micro_op| matches!(micro_op, MicroOp::Normal(..)))
    }

    /// Whether it does nothing to a frame, but sends it somewhere or drops it.
    pub(super) fn is_bare(&self) -> bool {
        let Code { micro_ops, guard } = self.code;
        micro_ops.is_empty() && self.terminal.is_some() && *guard == Guard::default()
    }

    /// Its micro-ops, each with the values that it writes.
    pub(super) fn micro_ops(&self) -> impl Iterator<Item = (&'a MicroOp, &'a [u64])> {
        let mut values = self.values;
        self.code
            .micro_ops
            .iter()
            .map(move |micro_op| (micro_op, micro_op.take_values(&mut values)))
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

/// The decision about one packet. It fits a register: as it came back through memory, in pieces
/// that were read as a whole, deciding about a packet took a third longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decided {
    pub(super) program: ProgramId,
    /// Path whose entries it counts; meaningless with [`ProgramId::WALK`].
    pub(super) path: PathId,
}

impl Decided {
    pub(super) const WALK: Self = Self { program: ProgramId::WALK, path: PathId::NONE };
}

/// Values that a line has room for: a change of Ethernet's and IPv4's addresses and of two ports
/// behind a tag.
const VALUES: usize = 5;

/// The part of a program that it has for itself, in one cache line: with twenty thousand programs
/// of a code this is all that each packet waits for. Equal lines are equal programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(align(64))]
struct ProgramLine {
    code: u32,
    values_len: u32,
    terminal: Option<Terminal>,
    /// Its values; where they are more, the place of their list.
    values: [u64; VALUES],
}

const _: () = assert!(size_of::<ProgramLine>() == 64, "a program is asked for as one line");

/// Codes, and programs, at most.
const CODES_MAX: usize = 1 << 16;
const LINES_MAX: usize = 1 << 20;

/// All programs of a forwarder. One that shares its code takes about 150 bytes.
#[derive(Debug)]
pub(super) struct Programs {
    lines: Vec<ProgramLine>,
    /// Programs by their hashes. Of two with one hash the later one is known; another number for
    /// the earlier one would be right as well.
    known: HashMap<u64, ProgramId, BuildMixHasher>,
    codes: Vec<Code>,
    known_codes: HashMap<Code, u32, BuildMixHasher>,
    /// Lists of values that no line has room for, one behind the other, and where each begins.
    lists: Vec<u64>,
    known_lists: HashMap<Box<[u64]>, u64, BuildMixHasher>,
    has_meters: bool,
}

impl Programs {
    /// No programs but the one that stands for none.
    pub(super) fn new() -> Self {
        let mut programs = Self {
            lines: Vec::new(),
            known: HashMap::default(),
            codes: Vec::new(),
            known_codes: HashMap::default(),
            lists: Vec::new(),
            known_lists: HashMap::default(),
            has_meters: false,
        };
        let code = Code { micro_ops: Box::default(), guard: Guard::NEVER };
        let walk = programs.put(CompiledProgram { code, terminal: None, values: Vec::new() });
        debug_assert_eq!(walk, ProgramId::WALK, "the first one");
        programs
    }

    /// The number of a program.
    pub(super) fn put(&mut self, program: CompiledProgram) -> ProgramId {
        let CompiledProgram { code, terminal, values } = program;
        debug_assert_eq!(code.values_len(), values.len(), "each micro-op takes its own");
        let has_micro_ops = !code.micro_ops.is_empty();
        self.has_meters |= terminal.is_none() && code.has_meter();
        let (Some(code), Ok(values_len)) = (self.put_code(code), u32::try_from(values.len()))
        else {
            return ProgramId::WALK;
        };
        let mut line = ProgramLine { code, values_len, terminal, values: [0; VALUES] };
        match line.values.get_mut(..values.len()) {
            Some(place) => place.copy_from_slice(&values),
            None => line.values[0] = self.put_list(values),
        }
        let hash = BuildMixHasher::default().hash_one(line);
        if let Some(id) = self.known.get(&hash)
            && self.lines.get(id.index()) == Some(&line)
        {
            return *id;
        }
        let number = u32::try_from(self.lines.len()).ok().filter(|number| *number < HAS_MICRO_OPS);
        let Some(number) = number else { return ProgramId::WALK };
        let id = ProgramId(if has_micro_ops { number | HAS_MICRO_OPS } else { number });
        self.lines.push(line);
        self.known.insert(hash, id);
        id
    }

    fn put_code(&mut self, code: Code) -> Option<u32> {
        if let Some(known) = self.known_codes.get(&code) {
            return Some(*known);
        }
        let number = u32::try_from(self.codes.len()).ok()?;
        self.codes.push(code.clone());
        self.known_codes.insert(code, number);
        Some(number)
    }

    fn put_list(&mut self, values: Vec<u64>) -> u64 {
        if let Some(known) = self.known_lists.get(values.as_slice()) {
            return *known;
        }
        let begin = self.lists.len() as u64;
        self.lists.extend_from_slice(&values);
        self.known_lists.insert(values.into(), begin);
        begin
    }

    /// A program.
    #[inline]
    pub(super) fn get(&self, id: ProgramId) -> Option<Program<'_>> {
        let line = self.lines.get(id.index())?;
        let code = self.codes.get(line.code as usize)?;
        let len = line.values_len as usize;
        let values = match line.values.get(..len) {
            Some(values) => values,
            None => self.lists.get(line.values[0] as usize..)?.get(..len)?,
        };
        Some(Program { code, terminal: line.terminal, values })
    }

    /// End of a program, where it has one.
    #[inline]
    pub(super) fn terminal(&self, id: ProgramId) -> Option<Terminal> {
        self.lines.get(id.index())?.terminal
    }

    /// Asks for a program that is to be carried out in a moment. Those without micro-ops are few.
    #[inline]
    pub(super) fn prefetch(&self, id: ProgramId) {
        if id.0 & HAS_MICRO_OPS != 0
            && let Some(line) = self.lines.get(id.index())
        {
            prefetch(line);
        }
    }

    /// Asks for the values of a program that is to be carried out soon, where its line has no room
    /// for them.
    #[inline]
    pub(super) fn prefetch_values(&self, id: ProgramId) {
        if !self.lists.is_empty()
            && let Some(line) = self.lines.get(id.index())
            && line.values_len as usize > VALUES
            && let Some(value) = self.lists.get(line.values[0] as usize)
        {
            prefetch(value);
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

    /// The condition of a program on frames.
    #[inline]
    pub(super) fn guard(&self, id: ProgramId) -> Guard {
        self.get(id).map_or(Guard::NEVER, |program| program.code.guard)
    }

    /// Number of programs.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are too many, so that all are to be forgotten, and compiled again when needed.
    pub(super) fn is_full(&self) -> bool {
        self.lines.len() > LINES_MAX || self.codes.len() > CODES_MAX
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

#[cfg(test)]
mod tests {
    use openflow::{Action, Field, MacAddr, PortNo};
    use packet::Shape;
    use packet::build::{FrameBuilder, Ipv6};

    use super::{CompiledProgram, Guard, MicroOp, Programs, Terminal, VALUES};

    /// Writes the addresses of IPv6 and, if asked to, those of Ethernet.
    fn program(values: u128, ethernet: bool, port: u32) -> CompiledProgram {
        let address = std::net::Ipv6Addr::LOCALHOST;
        let frame = FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1));
        let frame = frame.ipv6(Ipv6::new(address, address)).udp(1, 2).fill_to(80).build();
        let fields: &[Field] = if ethernet {
            &[Field::Ipv6Src, Field::Ipv6Dst, Field::EthDst, Field::EthSrc]
        } else {
            &[Field::Ipv6Src]
        };
        let set = |field: &Field| Action::set_field(*field, values & field.full_mask());
        let micro_ops = fields.iter().map(|field| MicroOp::Apply(set(field)));
        let output = MicroOp::Output(PortNo(port), None);
        let micro_ops = micro_ops.chain([output]).collect();
        CompiledProgram::of(micro_ops, Guard::default(), Shape::of(&frame))
    }

    #[test]
    fn programs_that_differ_in_values_and_ports_share_their_code() {
        let mut programs = Programs::new();
        let mut put = Vec::new();
        for number in 0..100 {
            for ethernet in [false, true] {
                let program = program(0x0123_4567 << (number / 2), ethernet, number % 2);
                put.push((programs.put(program.clone()), program));
            }
        }
        // The one that stands for none has a code too.
        assert_eq!((programs.lines.len(), programs.codes.len()), (1 + 200, 1 + 2));
        let wide = put.iter().filter(|(_, program)| program.values.len() > VALUES).count();
        assert_eq!((wide, programs.known_lists.len()), (100, 50), "a list of values is kept once");
        for (id, program) in put {
            let held = programs.get(id).unwrap();
            assert_eq!((held.values, held.code), (program.values.as_slice(), &program.code));
            assert_eq!(held.terminal, program.terminal);
            assert!(matches!(programs.terminal(id), Some(Terminal::Output(PortNo(0 | 1), None))));
            assert_eq!(programs.put(program), id, "it is known");
        }
    }
}
