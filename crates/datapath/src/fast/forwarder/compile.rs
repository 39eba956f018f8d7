//! The program compiler: from the entries that a packet matched to micro-ops.
//!
//! It is the interpreter's target that carries nothing out. What tables, groups and ports decide is
//! decided here, on a copy of a real packet; what only each packet can say is left to micro-ops. If
//! the result would hold for this one packet only, the walk is stopped and the packet goes step by
//! step: a wrong program would be wrong a million times.
//!
//! `NORMAL` is left to each packet too, but not for the kernel tier, which knows no addresses:
//! there the program of packets between two stations says where they go, and which stations that
//! hangs on.

use openflow::action::{HeaderEffect, TtlLayer};
use openflow::field::Header;
use openflow::group::{GroupType, Selection};
use openflow::meter::BandKind;
use openflow::{Action, BitRange, Field, GroupId, Learn, MeterId, PortNo, QueueId, TableId};
use packet::{FlowKey, Network, PacketBuf, Shape, set_meta};

use super::path::PathStep;
use super::program::{CompiledProgram, Guard, Message, MicroOp, ttl_at};
use super::program_cache::ProgramKey;
use super::replica::{Replica, ReplicaEntry};
use super::tier::UsedStation;
use crate::action_set::{EntryRef, FinTimeouts};
use crate::counter::DropReason;
use crate::fast::ids::EntryId;
use crate::fast::interpreter::{
    Executed, Interpreter, MatchedEntry, Packet, Stations, Stop, Surroundings, Target, WalkFlow,
    forward_as_switch, header_effect, register_write, reveals_hidden,
};
use crate::groups::Group;
use crate::macs::Station;
use crate::member_choice::{hash, link};
use crate::time::Nanos;
use crate::verdict::{HandUp, packet_in_context};

/// Most copies that a program makes; packets of groups that ask for more go step by step.
const MAX_COPIES: usize = 64;

/// Most micro-ops of a program.
const MAX_MICRO_OPS: usize = 512;

/// Most steps of a path that is recorded: some more than there are tables, as every flow may have a
/// path of its own.
const MAX_STEPS: usize = 256;

/// Knowledge of the TTL that is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ttl {
    /// The frame shows none.
    None,
    /// The byte of the incoming frame at this place, less this number.
    Of(usize, u8),
    /// It depends on more than is known.
    Unknown,
}

/// A program, and the packets that it is right for.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) program: CompiledProgram,
    /// Whether it holds only for packets that matched these very entries, as it names their
    /// cookies.
    pub(super) is_entry_specific: bool,
    /// Whether it holds only for packets of this flow.
    pub(super) is_flow_specific: bool,
}

/// Knowledge of every packet after the actions so far.
#[derive(Clone, Copy, Debug)]
struct Tracked {
    ttl: Ttl,
    /// Whether the packet shows headers that no key has.
    is_opaque: bool,
}

/// The entries that a packet matches, table by table; none where it matched none.
enum Lookups<'a> {
    /// Those that lead from one table to the next, but not those that are found by a resubmit after
    /// which an entry goes on.
    Chain(&'a [Option<&'a ReplicaEntry>]),
    /// All of them.
    Path(&'a [Option<&'a ReplicaEntry>]),
    /// They are looked up for the packet at hand, and recorded.
    Recorded(&'a mut Recording),
}

/// The entries that a packet has matched so far, and all that their program and its path hang on.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) steps: Vec<PathStep>,
    pub(super) program_key: ProgramKey,
    /// Whether some entry has an idle timeout, and when the first of them is over.
    pub(super) is_timed: bool,
    pub(super) until: u64,
    is_metered: bool,
    now: Nanos,
    in_len: usize,
    /// The copy that is rewritten on the way.
    frame: PacketBuf,
    /// The packet's flow key at the last lookup, and whether its bytes may be others since then.
    key: FlowKey,
    is_key_stale: bool,
}

/// A compilation that is under way.
struct Compiler<'a> {
    replica: &'a Replica,
    lookups: Lookups<'a>,
    matched: usize,
    shape: Shape,
    tracked: Tracked,
    /// Knowledge of the packets of which copies are made.
    outer: Vec<Tracked>,
    /// The condition on frames for their TTL, or their length, to be right.
    guard: Guard,
    /// The length of the frame that has come.
    in_len: usize,
    micro_ops: Vec<MicroOp>,
    /// Whether micro-ops are made: not where only the path is asked for.
    makes_micro_ops: bool,
    has_meter: bool,
    is_entry_specific: bool,
    is_flow_specific: bool,
    /// The mirrors that the packet has been sent to.
    mirrored: u32,
    /// `NORMAL` has sent it to others, which each packet finds out.
    has_passed_normal: bool,
    /// The copies of a mirror are for each packet to find out.
    is_unsupported: bool,
    /// If `NORMAL` is carried out as well: the time, and the stations that it has asked for.
    switched: Option<(Nanos, Vec<UsedStation>)>,
}

/// The program of packets like this one, given in a buffer that may be changed, that match these
/// entries one table after the other. `None` when such packets go step by step or are to be
/// recorded.
pub(super) fn compile(
    replica: &Replica,
    shape: Shape,
    frame: PacketBuf,
    in_port: PortNo,
    entries: &[Option<&ReplicaEntry>],
) -> Option<Compiled> {
    let Compiler { micro_ops, guard, is_entry_specific, is_flow_specific, .. } =
        walk(replica, shape, frame, in_port, Lookups::Chain(entries), None, true)?;
    let program = CompiledProgram::of(micro_ops, guard, shape);
    Some(Compiled { program, is_entry_specific, is_flow_specific })
}

/// The same of a packet whose entries are looked up on the way, and recorded with it.
pub(super) fn record(
    replica: &Replica,
    shape: Shape,
    frame: &PacketBuf,
    (in_port, now): (PortNo, Nanos),
    recording: &mut Recording,
) -> Option<Compiled> {
    let copy = recording.begin(shape, frame, (in_port, now));
    let Compiler { micro_ops, guard, is_entry_specific, is_flow_specific, .. } =
        walk(replica, shape, copy, in_port, Lookups::Recorded(recording), None, true)?;
    let program = CompiledProgram::of(micro_ops, guard, shape);
    Some(Compiled { program, is_entry_specific, is_flow_specific })
}

/// Records the entries of such a packet without making its program, which most often is known by
/// its key; whether that is the program of all packets with the key.
pub(super) fn record_path(
    replica: &Replica,
    shape: Shape,
    frame: &PacketBuf,
    (in_port, now): (PortNo, Nanos),
    recording: &mut Recording,
) -> bool {
    let copy = recording.begin(shape, frame, (in_port, now));
    walk(replica, shape, copy, in_port, Lookups::Recorded(recording), None, false)
        .is_some_and(|compiler| !compiler.is_specific())
}

/// The same of packets between the stations of this one, which match these entries, with what
/// `NORMAL` does with them at this time, and the stations that this hangs on. `None` also when its
/// end is unknown.
pub(super) fn compile_switched(
    replica: &Replica,
    shape: Shape,
    frame: PacketBuf,
    in_port: PortNo,
    entries: &[Option<&ReplicaEntry>],
    now: Nanos,
) -> Option<(CompiledProgram, Vec<UsedStation>)> {
    let switched = Some((now, Vec::new()));
    let Compiler { micro_ops, guard, switched, .. } =
        walk(replica, shape, frame, in_port, Lookups::Path(entries), switched, true)?;
    Some((CompiledProgram::of(micro_ops, guard, shape), switched?.1))
}

fn walk<'a>(
    replica: &'a Replica,
    shape: Shape,
    frame: PacketBuf,
    in_port: PortNo,
    lookups: Lookups<'a>,
    switched: Option<(Nanos, Vec<UsedStation>)>,
    makes_micro_ops: bool,
) -> Option<Compiler<'a>> {
    let ttl = match ttl_at(shape) {
        Some(at) => Ttl::Of(at, 0),
        None if shape.is_rare() => Ttl::Unknown,
        None => Ttl::None,
    };
    let mut walk = Interpreter::new(Compiler {
        replica,
        in_len: frame.len(),
        lookups,
        matched: 0,
        shape,
        tracked: Tracked { ttl, is_opaque: false },
        outer: Vec::new(),
        guard: Guard::default(),
        micro_ops: Vec::new(),
        makes_micro_ops,
        has_meter: false,
        is_entry_specific: false,
        is_flow_specific: false,
        mirrored: 0,
        has_passed_normal: false,
        is_unsupported: false,
        switched,
    });
    if walk.enter(Packet::new(frame, in_port)) == WalkFlow::Break(Stop::Unsupported) {
        return None;
    }
    Some(walk.finish())
        .filter(|compiler| compiler.micro_ops.len() <= MAX_MICRO_OPS && !compiler.is_unsupported)
}

impl Recording {
    /// Nothing is recorded of the packet; a copy of it.
    fn begin(
        &mut self,
        shape: Shape,
        frame: &PacketBuf,
        (in_port, now): (PortNo, Nanos),
    ) -> PacketBuf {
        self.steps.clear();
        self.program_key.begin(in_port, shape);
        self.program_key.recorded();
        (self.is_timed, self.until, self.is_metered) = (false, u64::MAX, false);
        (self.now, self.in_len, self.is_key_stale) = (now, frame.len(), true);
        let mut copy = std::mem::take(&mut self.frame);
        copy.assign(frame.bytes());
        copy
    }

    /// The flow key of the packet now. Most lookups come after writes of registers alone.
    fn key(&mut self, packet: &Packet) -> &mut FlowKey {
        if std::mem::replace(&mut self.is_key_stale, false) {
            self.key = packet.key();
        } else {
            set_meta(&mut self.key, &packet.meta);
        }
        &mut self.key
    }

    /// Records a lookup in a table by a packet that has this length there, in bytes. Whether the
    /// path may be cached.
    fn note(
        &mut self,
        table: TableId,
        found: Option<(EntryId, &ReplicaEntry)>,
        len: usize,
        replica: &Replica,
    ) -> bool {
        let length = |len: usize| i32::try_from(len).unwrap_or(i32::MAX);
        let len_delta = length(len).saturating_sub(length(self.in_len));
        self.steps.push(PathStep { table, entry: found.map(|(id, _)| id), len_delta });
        let fits = self.steps.len() <= MAX_STEPS;
        let Some((id, entry)) = found else {
            self.program_key.missed(table);
            return fits;
        };
        if entry.origin.is_miss {
            self.program_key.table_miss();
        }
        self.program_key.push(entry.summary.id);
        let is_timed = entry.life.idle_timeout_s != 0;
        self.is_timed |= is_timed;
        self.until = self.until.min(replica.ends_at(id, entry.life, self.now));
        // A meter may drop the packet before it reaches this entry. A cached decision would already
        // have marked the entry as used, which cannot be undone.
        fits && !(self.is_metered && is_timed)
    }
}

impl Compiler<'_> {
    /// Whether the program is not that of all packets with its key.
    fn is_specific(&self) -> bool {
        self.is_entry_specific || self.is_flow_specific
    }

    #[inline]
    fn push(&mut self, micro_op: impl FnOnce() -> MicroOp) {
        if self.makes_micro_ops {
            self.micro_ops.push(micro_op());
        }
    }

    /// The packet that is walked with shows other bytes from here on.
    fn changes_bytes(&mut self) {
        if let Lookups::Recorded(recording) = &mut self.lookups {
            recording.is_key_stale = true;
        }
    }

    /// Follows the visible TTL through an action; `reveals` says what [`reveals_hidden`] does.
    fn track_ttl(&mut self, action: &Action, reveals: bool) -> WalkFlow {
        let ttl = &mut self.tracked.ttl;
        match header_effect(action) {
            HeaderEffect::DecTtl(layer) => return self.decrement(layer),
            HeaderEffect::SetTtl(_) if *ttl == Ttl::None => {}
            HeaderEffect::Write if action.writes().contains(&Field::NwTtl) => {
                // A move may write what is not known.
                if *ttl != Ttl::None {
                    *ttl = Ttl::Unknown;
                }
            }
            HeaderEffect::Write if !reveals || !action.writes().contains(&Field::EthType) => {}
            HeaderEffect::None
            | HeaderEffect::WriteTag
            | HeaderEffect::Push(Header::Vlan)
            | HeaderEffect::Pop(Header::Vlan) => {}
            HeaderEffect::SetTtl(_)
            | HeaderEffect::CopyTtl
            | HeaderEffect::Push(_)
            | HeaderEffect::Pop(_)
            | HeaderEffect::Write => *ttl = Ttl::Unknown,
        }
        WalkFlow::Continue(())
    }

    /// The action by which every packet is rewritten: what is beside a packet is known here, and is
    /// asked for by no micro-op.
    fn applied(
        &mut self,
        packet: &Packet,
        action: &Action,
        stays_beside: bool,
    ) -> WalkFlow<Option<Action>> {
        if stays_beside {
            action.reads().iter().try_for_each(|field| self.depend_on(*field))?;
            // One that does not fit is counted, as is a pop without a value.
            let fits = action.reads().iter().all(|field| packet.key().has(*field));
            let is_noted = !fits || action.uses_stack();
            return WalkFlow::Continue(is_noted.then(|| action.clone()));
        }
        let fields = (action.reads(), action.writes());
        if let (([src], [dst]), Some(from), Some(bits)) =
            (fields, action.read_bits(), action.written_bits())
            && src.row().place.is_beside_packet()
        {
            self.depend_on(*src)?;
            let value = from.of(packet.key().get(*src));
            return constant_write(*dst, bits, value).map_continue(Some);
        }
        WalkFlow::Continue(Some(action.as_whole()))
    }

    /// Carries out an action whose outcome is known here, if it is one.
    fn found(&mut self, packet: &mut Packet, action: &Action) -> WalkFlow<Option<Executed>> {
        // What is on the stack follows from the key.
        if let Action::Pop { dst, .. } = action
            && let (Some(bits), Some(value)) = (action.written_bits(), packet.stack.pop())
        {
            return self.execute(packet, &constant_write(*dst, bits, value)?).map_continue(Some);
        }
        // A choice follows from the key, and from ports, with which programs change.
        action.hashes().iter().try_for_each(|field| self.depend_on(*field))?;
        if action.members().is_some() {
            return WalkFlow::Continue(Some(Executed::Member));
        }
        if let Action::CheckPktLarger { pkt_len, offset, dst } = action {
            self.need_short(packet.frame.len(), (*pkt_len).into())?;
            let bit = BitRange { offset: *offset, n_bits: 1 };
            return self.execute(packet, &constant_write(*dst, bit, 0)?).map_continue(Some);
        }
        if let Action::Multipath { fields, basis, algorithm, max_link, bits, dst, .. } = action {
            let flow = hash(*fields, *basis, &packet.key());
            let link = link(*algorithm, flow, *max_link);
            return self
                .execute(packet, &constant_write(*dst, *bits, link.into())?)
                .map_continue(Some);
        }
        WalkFlow::Continue(None)
    }

    /// The way of the packet depends on a field as it is now: the key must have it.
    fn depend_on(&mut self, field: Field) -> WalkFlow {
        if field.row().place.is_beside_packet() {
            // A program is found without the entries that only write metadata.
            self.is_flow_specific |= field == Field::Metadata;
            return WalkFlow::Continue(());
        }
        // A meter may have lowered it.
        let is_metered = field == Field::IpDscp && self.has_meter;
        if self.tracked.is_opaque || is_metered || !self.replica.has_in_keys(field) {
            return WalkFlow::Break(Stop::Unsupported);
        }
        self.is_flow_specific = true;
        WalkFlow::Continue(())
    }

    fn decrement(&mut self, layer: TtlLayer) -> WalkFlow {
        match self.tracked.ttl {
            // Where the two kinds of header could be mixed up, nothing is known.
            Ttl::Of(at, by) if self.is_of(at, layer) => {
                let by = by.saturating_add(1);
                self.need(at, by)?;
                self.tracked.ttl = Ttl::Of(at, by);
                WalkFlow::Continue(())
            }
            Ttl::None => WalkFlow::Continue(()),
            Ttl::Of(..) | Ttl::Unknown => WalkFlow::Break(Stop::Unsupported),
        }
    }

    /// Whether the TTL at this place is that of a layer.
    fn is_of(&self, at: usize, layer: TtlLayer) -> bool {
        let is_mpls = self.shape.network() == Network::Mpls && Some(at) == ttl_at(self.shape);
        match layer {
            TtlLayer::Mpls => is_mpls,
            TtlLayer::Ip => !is_mpls,
        }
    }

    /// Asks of every frame that this byte is above so much.
    fn need(&mut self, at: usize, above: u8) -> WalkFlow {
        let is_same = self.guard == Guard::default() || usize::from(self.guard.at) == at;
        let guard = Guard::above(at, self.guard.above.max(above)).filter(|_| is_same);
        let Some(guard) = guard else { return WalkFlow::Break(Stop::Unsupported) };
        self.guard = guard;
        WalkFlow::Continue(())
    }

    /// Asks of every frame that it is not longer than `most` bytes here, where this one has `len`:
    /// no key has the length, and most packets are shorter than what they are held against.
    fn need_short(&mut self, len: usize, most: usize) -> WalkFlow {
        // What is longer here by an action is so in every frame of the key.
        let limit = (most + self.in_len).checked_sub(len).filter(|_| len <= most);
        let limit = limit.filter(|_| !self.tracked.is_opaque && !self.shape.is_rare());
        let known = match self.guard.len_max() {
            None if self.guard == Guard::default() => Some(usize::MAX),
            known => known,
        };
        let guard = limit.zip(known).and_then(|(limit, known)| Guard::up_to(limit.min(known)));
        let Some(guard) = guard else { return WalkFlow::Break(Stop::Unsupported) };
        self.guard = guard;
        WalkFlow::Continue(())
    }
}

/// The action that writes a value to bits of a field, cut to them. `Break` where no action has room
/// for the value.
fn constant_write(dst: Field, bits: BitRange, value: u128) -> WalkFlow<Action> {
    let value = value & bits.largest();
    if bits == BitRange::all(dst) {
        return WalkFlow::Continue(Action::set_field(dst, value));
    }
    match u64::try_from(value) {
        Ok(value) if u32::from(bits.n_bits) <= u64::BITS => {
            WalkFlow::Continue(Action::Load { bits, dst, value })
        }
        Ok(_) | Err(_) => WalkFlow::Break(Stop::Unsupported),
    }
}

impl<'a> Target<'a> for Compiler<'a> {
    fn surroundings(&self) -> Surroundings<'a> {
        self.replica.surroundings()
    }

    fn lookup(&mut self, table: TableId, packet: &Packet) -> Option<MatchedEntry<'a>> {
        let at = self.matched;
        self.matched += 1;
        let entry = match &mut self.lookups {
            Lookups::Chain(entries) | Lookups::Path(entries) => match entries.get(at) {
                Some(entry) => *entry,
                None => {
                    self.is_unsupported = true;
                    None
                }
            },
            Lookups::Recorded(recording) => {
                // What the packet shows here must follow from its key.
                self.is_unsupported |=
                    self.tracked.is_opaque || recording.is_metered && self.replica.is_dscp_matched;
                let now = recording.now;
                let found = self.replica.lookup(table, recording.key(packet), now);
                self.is_unsupported |= found.as_ref().is_some_and(|found| !found.is_lasting);
                let found = found.map(|found| (found.id, found.entry));
                self.is_unsupported |=
                    !recording.note(table, found, packet.frame.len(), self.replica);
                found.map(|(_, entry)| entry)
            }
        }?;
        Some(MatchedEntry { instructions: entry.summary.instructions(), origin: entry.origin })
    }

    fn meter(&mut self, id: MeterId, _packet: &Packet) -> Option<(usize, BandKind)> {
        let matched = u16::try_from(self.matched).unwrap_or(u16::MAX);
        if let Lookups::Recorded(recording) = &mut self.lookups {
            recording.is_metered = true;
        }
        // It ends the copy only, and with it not what comes after the group.
        self.is_unsupported |= !self.outer.is_empty();
        self.has_meter = true;
        self.push(|| MicroOp::Meter(id, matched));
        None
    }

    fn execute(&mut self, packet: &mut Packet, action: &Action) -> WalkFlow<Executed> {
        if let Some(executed) = self.found(packet, action)? {
            return WalkFlow::Continue(executed);
        }
        // Most actions of long ways are these, which are no part of a program.
        if let Some((number, mask, value)) = register_write(action) {
            let registers = &mut packet.meta.registers;
            registers.set(number, registers.get(number) & !mask | value);
            return WalkFlow::Continue(Executed::Rewritten(true));
        }
        if header_effect(action).rewrites() {
            // A meter may have lowered it, and what it is written to may decide later.
            if self.has_meter && action.reads().contains(&Field::IpDscp) {
                return WalkFlow::Break(Stop::Unsupported);
            }
            let reveals = reveals_hidden(action, self.shape);
            self.track_ttl(action, reveals)?;
            self.tracked.is_opaque |= reveals;
            let is_beside = |field: &Field| field.row().place.is_beside_packet();
            let stays_beside = action.names_fields() && action.writes().iter().all(is_beside);
            if !stays_beside {
                self.changes_bytes();
            }
            if let Some(applied) = self.applied(packet, action, stays_beside)? {
                self.push(|| MicroOp::Apply(applied));
            }
        } else if !action.reads().is_empty() {
            action.reads().iter().try_for_each(|field| self.depend_on(*field))?;
        }
        let len = packet.frame.len();
        let executed = packet.execute(action);
        if let Lookups::Recorded(_) = &self.lookups {
            // The tables that come are those of this packet, with its lengths.
            let fits = executed != Executed::Rewritten(false);
            let is_same = fits && packet.frame.len() == len;
            self.tracked.is_opaque |= self.shape.is_rare() && !is_same;
            self.is_unsupported |= executed == Executed::TtlInvalid;
        }
        // Whether an action fits is for each packet to say, and a TTL that is used up for the
        // guard.
        WalkFlow::Continue(match executed {
            Executed::Rewritten(_) | Executed::TtlInvalid => Executed::Rewritten(true),
            // A pause is of this packet, and a meter may keep a copy back.
            Executed::Controller
                if matches!(action, Action::ControllerProperties(asked)
                if asked.pauses || asked.meter.is_some()) =>
            {
                return WalkFlow::Break(Stop::Unsupported);
            }
            Executed::Output { .. }
            | Executed::Group(_)
            | Executed::Controller
            | Executed::SetQueue(_)
            | Executed::Member
            | Executed::Pushed
            | Executed::Resubmit(..)
            | Executed::Learn
            | Executed::FinTimeout
            | Executed::Exit => executed,
        })
    }

    fn teach(&mut self, packet: &Packet, learn: &Learn) -> WalkFlow {
        learn.reads().try_for_each(|field| self.depend_on(field))?;
        let replica = self.replica;
        self.push(|| {
            let key = packet.key();
            MicroOp::Learn(replica.learning(learn.flow_mod(|field| key.get(field))))
        });
        WalkFlow::Continue(())
    }

    fn shorten(&mut self, packet: &Packet, entry: EntryRef, timeouts: FinTimeouts) -> WalkFlow {
        self.depend_on(Field::TcpFlags)?;
        if let Some(number) = entry.0.filter(|_| packet.ends_connection()) {
            self.is_entry_specific = true;
            self.push(|| MicroOp::Shorten(EntryId(number as u32), timeouts));
        }
        WalkFlow::Continue(())
    }

    fn enter_group(&mut self, id: GroupId, group: &Group, _packet: &Packet) -> WalkFlow {
        self.push(|| MicroOp::Group(id));
        if group.group_type() == GroupType::Select && group.buckets().len() > 1 {
            // The choice depends on fields; the key must have them, as they are now.
            let by_dscp =
                |it: &Selection| it.fields.iter().any(|(field, _)| *field == Field::IpDscp);
            let is_metered = self.has_meter && group.selection().is_some_and(by_dscp);
            let is_known = !self.tracked.is_opaque && !is_metered;
            if !is_known || !self.replica.keys_have_select_fields {
                return WalkFlow::Break(Stop::Unsupported);
            }
            self.is_flow_specific = true;
        }
        WalkFlow::Continue(())
    }

    fn begin_clone(&mut self, packet: &Packet, copies: usize) -> WalkFlow<Packet> {
        if copies > MAX_COPIES || self.micro_ops.len() > MAX_MICRO_OPS {
            return WalkFlow::Break(Stop::Unsupported);
        }
        WalkFlow::Continue(self.begin_copy(packet))
    }

    fn begin_bucket(
        &mut self,
        id: GroupId,
        index: usize,
        packet: &Packet,
        copies: usize,
    ) -> WalkFlow<Packet> {
        let copy = self.begin_clone(packet, copies)?;
        self.push(|| MicroOp::Bucket(id, index));
        WalkFlow::Continue(copy)
    }

    fn end_bucket(&mut self, copy: Packet) {
        self.end_copy(copy);
    }

    fn fresh(&mut self, packet: &Packet) -> Packet {
        self.changes_bytes();
        Packet::new(packet.frame.clone(), packet.meta.in_port)
    }

    fn discard(&mut self, packet: Packet) {
        if let Lookups::Recorded(recording) = &mut self.lookups {
            recording.frame = packet.frame;
            recording.is_key_stale = true;
        }
    }

    fn output(&mut self, _packet: &Packet, port: PortNo, queue: Option<QueueId>) {
        self.push(|| MicroOp::Output(port, queue));
    }

    fn normal(&mut self, packet: &Packet, queue: Option<QueueId>) -> WalkFlow {
        if self.switched.is_some() {
            // Where packets go hangs on what they show; the key must have it.
            if self.tracked.is_opaque {
                return WalkFlow::Break(Stop::Unsupported);
            }
            return forward_as_switch(self, packet, queue);
        }
        // A super-frame is not cut by its own micro-op.
        self.is_unsupported |= self.replica.ports.mirrors().cut_packets();
        self.has_passed_normal = true;
        let mirrored = self.mirrored;
        self.push(|| MicroOp::Normal(queue, mirrored));
        WalkFlow::Continue(())
    }

    fn packet_in(&mut self, packet: &Packet, hand_up: &HandUp) {
        self.is_entry_specific = true;
        self.push(|| {
            let matching = packet_in_context(&packet.meta);
            MicroOp::ToController(Box::new(Message { matching, hand_up: hand_up.clone() }))
        });
    }

    fn mirrored(&mut self) -> &mut u32 {
        &mut self.mirrored
    }

    fn looks_at_vlan(&mut self) {
        // The key must have it.
        self.is_unsupported |= self.tracked.is_opaque || self.has_passed_normal;
        self.is_flow_specific = true;
    }

    fn begin_copy(&mut self, packet: &Packet) -> Packet {
        self.push(|| MicroOp::BeginCopy);
        self.changes_bytes();
        self.outer.push(self.tracked);
        packet.clone()
    }

    fn end_copy(&mut self, _copy: Packet) {
        // All copies end when a packet is withdrawn.
        self.changes_bytes();
        if let Some(tracked) = self.outer.pop() {
            self.push(|| MicroOp::EndCopy);
            self.tracked = tracked;
        }
    }

    fn truncate(&mut self, copy: &mut Packet, len: usize) {
        copy.frame.truncate(len);
        self.changes_bytes();
        self.push(|| MicroOp::Truncate(len));
    }

    fn resubmit(&mut self, is_last: bool) -> WalkFlow {
        // What is no program in the end is not gone on with. A chain leads on at the end of its
        // entries only, be it by a goto or a resubmit.
        let is_elsewhere = matches!(self.lookups, Lookups::Chain(_)) && !is_last;
        let is_made = self.makes_micro_ops || !self.is_specific();
        if is_elsewhere || !is_made || self.is_unsupported || self.micro_ops.len() > MAX_MICRO_OPS {
            return WalkFlow::Break(Stop::Unsupported);
        }
        WalkFlow::Continue(())
    }

    fn withdraw(&mut self) -> WalkFlow {
        // What NORMAL learns is not taken back, and a meter may end the packet's way before this.
        // The entries behind this one, which a chain has, are not matched.
        let is_recorded = matches!(self.lookups, Lookups::Recorded(_));
        if self.has_meter || self.has_passed_normal || !is_recorded {
            return WalkFlow::Break(Stop::Unsupported);
        }
        self.micro_ops.retain(|micro_op| match micro_op {
            MicroOp::Output(..)
            | MicroOp::ToController(_)
            | MicroOp::Drop(_)
            | MicroOp::RefusedTx(..) => false,
            MicroOp::Rewrite(_)
            | MicroOp::PopTag
            | MicroOp::TagToMpls(..)
            | MicroOp::PushMpls(..)
            | MicroOp::Truncate(_)
            | MicroOp::Apply(_)
            | MicroOp::Group(_)
            | MicroOp::Bucket(..)
            | MicroOp::Meter(..)
            | MicroOp::Learn(_)
            | MicroOp::Shorten(..)
            | MicroOp::Normal(..)
            | MicroOp::BeginCopy
            | MicroOp::EndCopy => true,
        });
        self.changes_bytes();
        while let Some(tracked) = self.outer.pop() {
            self.push(|| MicroOp::EndCopy);
            self.tracked = tracked;
        }
        WalkFlow::Continue(())
    }

    fn drop(&mut self, reason: DropReason) {
        self.push(|| MicroOp::Drop(reason));
    }

    fn refuse(&mut self, port: PortNo, reason: DropReason) {
        self.push(|| MicroOp::RefusedTx(port, reason));
    }
}

impl<'a> Stations<'a> for Compiler<'a> {
    fn port_of(&mut self, station: Station) -> WalkFlow<Option<PortNo>> {
        // Packets to unknown stations go step by step: one of them may be known the next moment.
        let Some((now, used)) = &mut self.switched else {
            return WalkFlow::Break(Stop::Unsupported);
        };
        let Some(port) = self.replica.port_of(station, *now) else {
            return WalkFlow::Break(Stop::Unsupported);
        };
        used.push(UsedStation { station, port, is_source: false });
        WalkFlow::Continue(Some(port))
    }

    fn learn(&mut self, station: Station, port: PortNo) {
        if let Some((_, used)) = &mut self.switched {
            used.push(UsedStation { station, port, is_source: true });
        }
    }
}
