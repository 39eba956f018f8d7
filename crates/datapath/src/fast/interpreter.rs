//! The meaning of the pipeline, once: from a packet through tables, instructions, the action set,
//! groups and meters to its verdicts (clauses 5.1 to 5.12).
//!
//! The interpreter decides; a [`Target`] carries out. Three targets exist: one forwards now (the
//! slow path and packet-outs), one writes a trace, one compiles a program. So the three cannot
//! differ in the meaning of an instruction, an action, a group or a port. The reference shares no
//! code with the interpreter: it is the oracle that the interpreter is tested against.

mod action;
mod mirror;
mod normal;
mod pause;
mod pipeline_packet;

use std::ops::ControlFlow;
use std::slice::Iter;

use openflow::action::MAX_LEN_NO_BUFFER;
use openflow::group::GroupType;
use openflow::message::PacketInReason;
use openflow::meter::BandKind;
use openflow::text::{format_actions, format_flow_mod};
use openflow::{
    Action, Field, GroupId, Instruction, Learn, MeterId, PortNo, QueueId, TableId, ToController,
};
use packet::rewrite::set_field;
use packet::{Meta, PacketBuf, extract};

pub(super) use self::action::{
    Executed, execute, header_effect, register_write, reveals_hidden, shape_after, writes_a_type,
};
use self::mirror::mirror;
pub(super) use self::normal::{Stations, forward_as_switch};
use self::pause::Pause;
pub(super) use self::pipeline_packet::{Packet, refusal};
use crate::action_set::{ActionSet, EntryRef, FinTimeouts, Origin};
use crate::config::{Miss, Settings};
use crate::counter::DropReason;
use crate::groups::{Group, Groups, MAX_CHAIN};
use crate::member_choice::{member, weight};
use crate::meters::remarked;
use crate::mirrors::Side;
use crate::ports::{Port, Ports};
use crate::verdict::HandUp;

/// Copies that groups and clones may make of one packet. Groups lead to no loop, but a chain of
/// groups with many buckets each asks for more copies than anyone can make.
pub(super) const MAX_COPIES: usize = 4_096;

/// The most resubmits of one packet, gotos and outputs to `TABLE` included, and the most that lie
/// inside each other and lead to the same or an earlier table (`MAX_RESUBMITS`, `MAX_DEPTH` of Open
/// vSwitch).
const MAX_RESUBMITS: usize = 4_096;
const MAX_RESUBMIT_DEPTH: usize = 64;

/// The most actions of one packet. Where one sends to all ports, each port is one more. Lists that
/// are resubmitted to thousands of times ask for more than a thread can do between two packets.
pub(super) const MAX_ACTIONS: usize = 65_536;

/// The most values on the stack of a packet: 64 kB.
const MAX_STACK: usize = 4_096;

/// Extent of an early end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The packet, or a copy of a group or clone: it goes no further.
    Packet,
    /// All lists, those around a clone too, but not those around a group.
    Lists,
    /// The packet with all its copies: it is dropped.
    Walk,
    /// The whole walk: the target cannot carry it out.
    Unsupported,
}

/// Whether the walk goes on.
pub(super) type WalkFlow<T = ()> = ControlFlow<Stop, T>;

/// Settings, groups and ports beside the tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) settings: &'a Settings,
    pub(super) groups: &'a Groups,
    pub(super) ports: &'a Ports,
}

/// The content of a flow entry that a packet matched.
#[derive(Clone, Copy, Debug)]
pub(super) struct MatchedEntry<'a> {
    pub(super) instructions: &'a [Instruction],
    pub(super) origin: Origin,
}

/// A receiver of the interpreter's decisions, which carries them out.
pub(super) trait Target<'a> {
    /// Settings, groups and ports; the same during a walk.
    fn surroundings(&self) -> Surroundings<'a>;

    /// The entry of a table that the packet matches.
    fn lookup(&mut self, table: TableId, packet: &Packet) -> Option<MatchedEntry<'a>>;

    /// Meters the packet: the band that acts, if one does.
    fn meter(&mut self, id: MeterId, packet: &Packet) -> Option<(usize, BandKind)>;

    /// Carries out an action as far as it is about the packet itself: see [`execute`].
    fn execute(&mut self, packet: &mut Packet, action: &Action) -> WalkFlow<Executed>;

    /// The packet teaches an entry, which holds for later ones. `Break` when that is not for this
    /// target.
    fn teach(&mut self, packet: &Packet, learn: &Learn) -> WalkFlow;

    /// The entry of this number has at most these timeouts from now on, if the packet ends its TCP
    /// connection. `Break` when that is not for this target.
    fn shorten(&mut self, packet: &Packet, entry: EntryRef, timeouts: FinTimeouts) -> WalkFlow;

    /// The packet comes to a group. `Break` when its buckets cannot be chosen for this target.
    fn enter_group(&mut self, id: GroupId, group: &Group, packet: &Packet) -> WalkFlow;

    /// A copy for a clone, which is the `copies`th of the packet.
    fn begin_clone(&mut self, packet: &Packet, copies: usize) -> WalkFlow<Packet>;

    /// A copy for a bucket, which is the `copies`th of the packet.
    fn begin_bucket(
        &mut self,
        id: GroupId,
        index: usize,
        packet: &Packet,
        copies: usize,
    ) -> WalkFlow<Packet>;

    /// The copy has been through its bucket or clone.
    fn end_bucket(&mut self, copy: Packet);

    /// The packet as it enters the pipeline anew, from a packet-out.
    fn fresh(&mut self, packet: &Packet) -> Packet;

    /// A packet is no longer needed.
    fn discard(&mut self, packet: Packet);

    /// A copy of the packet leaves by a port that can send.
    fn output(&mut self, packet: &Packet, port: PortNo, queue: Option<QueueId>);

    /// A copy of the packet goes where the learning switch says. `Break` when that is not for this
    /// target.
    fn normal(&mut self, packet: &Packet, queue: Option<QueueId>) -> WalkFlow;

    /// A copy of the packet goes to the controller.
    fn packet_in(&mut self, packet: &Packet, hand_up: &HandUp);

    /// An entry has a table searched while its list runs; whether that is the last thing that the
    /// entry does. `Break` when it is not for this target.
    fn resubmit(&mut self, _is_last: bool) -> WalkFlow {
        WalkFlow::Continue(())
    }

    /// Takes back all verdicts so far. `Break` when they cannot be taken back.
    fn withdraw(&mut self) -> WalkFlow;

    /// The packet or a copy goes nowhere.
    fn drop(&mut self, reason: DropReason);

    /// The packet or a copy goes nowhere, because this port refuses to send.
    fn refuse(&mut self, port: PortNo, reason: DropReason);

    /// The mirrors that the packet has been sent to.
    fn mirrored(&mut self) -> &mut u32;

    /// The next steps depend on the VLAN of the packet as it is now.
    fn looks_at_vlan(&mut self) {}

    /// A copy that is changed for a port.
    fn begin_copy(&mut self, packet: &Packet) -> Packet {
        self.fresh(packet)
    }

    /// Cuts a copy off behind this number of bytes.
    fn truncate(&mut self, copy: &mut Packet, len: usize) {
        copy.frame.truncate(len);
    }

    /// The copy has left.
    fn end_copy(&mut self, copy: Packet) {
        self.discard(copy);
    }

    /// Writes down what happens, for people.
    fn note(&mut self, _text: impl FnOnce() -> String) {}

    /// Notes from here on are a level deeper, or one less deep.
    fn indent(&mut self, _deeper: bool) {}
}

/// An entry whose instructions are carried out, or the list of a packet-out. While it resubmits,
/// what was found stands above it: on a list and not on the thread's stack, because thousands may.
struct Activation<'a> {
    instructions: &'a [Instruction],
    /// Number of the rows of [`INSTRUCTIONS`](openflow::instruction::INSTRUCTIONS) that are done.
    row: usize,
    /// The rest of the list of actions, while one is carried out.
    actions: Option<Iter<'a, Action>>,
    origin: Origin,
    next: Option<TableId>,
    /// Resubmits to the same or an earlier table that it lies in.
    depth: usize,
    is_resubmitted: bool,
    /// Whether actions to the controller have the reason of a bucket.
    was_in_bucket: bool,
}

/// The walk of one packet.
pub(super) struct Interpreter<'a, T> {
    target: T,
    around: Surroundings<'a>,
    has_verdict: bool,
    /// The entries that are carried out, each of which resubmitted to the one above it.
    active: Vec<Activation<'a>>,
    /// The action set of the packet.
    set: ActionSet,
    /// Resubmits so far, and actions.
    resubmits: usize,
    actions: usize,
    /// Whether the present list of actions is a bucket's.
    in_bucket: bool,
    /// Copies that groups and clones have made so far.
    copies: usize,
    /// Groups and clones that the packet is in just now, one inside the other.
    chained: usize,
    /// Whether an output to `TABLE` is allowed: in the actions of a packet-out only.
    table_allowed: bool,
    /// Whether the packet has left the tables, and its action set is carried out.
    in_action_set: bool,
    /// The pause of the packet or of the present copy, whose way ends with it.
    pause: Option<Pause>,
}

impl<'a> Activation<'a> {
    /// Of an entry that the tables lead to.
    fn of(matched: MatchedEntry<'a>) -> Self {
        Self {
            instructions: matched.instructions,
            row: 0,
            actions: None,
            origin: matched.origin,
            next: None,
            depth: 0,
            is_resubmitted: false,
            was_in_bucket: false,
        }
    }

    /// The next instruction in the order of the rows, which is that of clause 5.9.
    fn next_instruction(&self) -> Option<&'a Instruction> {
        let row = |one: &&Instruction| one.kind() as usize;
        self.instructions.iter().filter(|one| row(one) >= self.row).min_by_key(row)
    }

    /// Whether nothing comes after the present action.
    fn is_at_its_end(&self) -> bool {
        let is_last = self.actions.as_ref().is_some_and(|rest| rest.len() == 0);
        is_last && self.next.is_none() && self.next_instruction().is_none()
    }

    /// The present table: the first one while the list of a packet-out is carried out.
    fn table(&self) -> TableId {
        self.origin.table_id
    }
}

impl<'a, T: Target<'a>> Interpreter<'a, T> {
    pub(super) fn new(target: T) -> Self {
        let around = target.surroundings();
        Self {
            target,
            around,
            has_verdict: false,
            active: Vec::new(),
            set: ActionSet::default(),
            resubmits: 0,
            actions: 0,
            in_bucket: false,
            copies: 0,
            chained: 0,
            table_allowed: false,
            in_action_set: false,
            pause: None,
        }
    }

    /// Ends the walk: a packet without any verdict is dropped here.
    pub(super) fn finish(mut self) -> T {
        if !self.has_verdict {
            self.drop(DropReason::NoOutput);
        }
        self.target
    }

    /// Drops the packet or a copy.
    pub(super) fn drop(&mut self, reason: DropReason) {
        self.has_verdict = true;
        self.target.note(|| format!("dropped: {}", reason.name()));
        self.target.drop(reason);
    }

    /// A packet that its port has let in enters the pipeline.
    pub(super) fn enter(&mut self, packet: Packet) -> WalkFlow {
        mirror(&mut self.target, self.around.ports, &packet, packet.meta.in_port, Side::In);
        self.pipeline(packet)
    }

    /// Takes a packet through the tables from the first on.
    fn pipeline(&mut self, mut packet: Packet) -> WalkFlow {
        let end = self.tables(&mut packet);
        self.target.discard(packet);
        end
    }

    /// Carries out the actions of a packet-out, and the action set that entries have written to
    /// which they resubmit.
    pub(super) fn packet_out(&mut self, mut packet: Packet, actions: &'a [Action]) {
        self.table_allowed = true;
        self.active.push(Activation {
            actions: Some(actions.iter()),
            ..Activation::of(MatchedEntry { instructions: &[], origin: Origin::NONE })
        });
        let end = self.run(&mut packet, 0);
        if end.is_continue() && self.set.in_order().next().is_some() {
            // Whatever ends it has given its verdict.
            let _end: WalkFlow = self.action_set(&mut packet);
        }
        self.end_pause(&packet, false);
        self.target.discard(packet);
    }

    fn tables(&mut self, packet: &mut Packet) -> WalkFlow {
        let Some(matched) = self.target.lookup(TableId(0), packet) else {
            self.miss(packet, TableId(0));
            return WalkFlow::Continue(());
        };
        let before = std::mem::take(&mut self.set);
        let base = self.active.len();
        self.active.push(Activation { depth: self.depth(), ..Activation::of(matched) });
        let mut end = self.run(packet, base);
        if end == WalkFlow::Continue(true) {
            end = self.action_set(packet).map_continue(|()| true);
        }
        self.end_pause(packet, false);
        self.set = before;
        end.map_continue(|_| ())
    }

    /// Carries out the action set at the end of the pipeline. What an entry that it resubmits to
    /// writes to the set comes too late.
    fn action_set(&mut self, packet: &mut Packet) -> WalkFlow {
        self.target.note(|| "action set".to_owned());
        let set = std::mem::take(&mut self.set);
        self.in_action_set = true;
        let end = self.deeper(|walk| walk.run_set(packet, &set, None));
        self.in_action_set = false;
        self.set = ActionSet::default();
        end
    }

    /// Carries out the activations beyond the first `base`; whether the last of them came to its
    /// end and not to a table without a match.
    fn run(&mut self, packet: &mut Packet, base: usize) -> WalkFlow<bool> {
        let mut has_ended = true;
        while self.active.len() > base {
            match self.step(packet) {
                WalkFlow::Continue(ended) => has_ended = ended,
                WalkFlow::Break(stop) => {
                    while self.active.len() > base {
                        self.keep_for_pause();
                        self.leave();
                    }
                    return WalkFlow::Break(stop);
                }
            }
        }
        WalkFlow::Continue(has_ended)
    }

    /// Carries out the next action or instruction of the activation on top, in the order of clause
    /// 5.9; false when it has come to a table without a match.
    fn step(&mut self, packet: &mut Packet) -> WalkFlow<bool> {
        let Some(top) = self.active.last_mut() else { return WalkFlow::Continue(true) };
        let origin = top.origin;
        if let Some(actions) = &mut top.actions {
            if let Some(action) = actions.next() {
                let end = if let Action::Clone(list) = action {
                    self.run_clone(packet, action, list, origin)
                } else {
                    self.action(packet, action, origin)
                };
                return end.map_continue(|()| true);
            }
            top.actions = None;
            self.target.indent(false);
            return WalkFlow::Continue(true);
        }
        if let Some(instruction) = top.next_instruction() {
            top.row = instruction.kind() as usize + 1;
            self.instruction(packet, instruction, origin)?;
            return WalkFlow::Continue(true);
        }
        let Some(next) = top.next.take() else {
            self.leave();
            return WalkFlow::Continue(true);
        };
        self.count_search()?;
        let found = self.target.lookup(next, packet);
        if let (Some(matched), Some(top)) = (found, self.active.last_mut()) {
            (top.instructions, top.origin, top.row) = (matched.instructions, matched.origin, 0);
            return WalkFlow::Continue(true);
        }
        self.miss(packet, next);
        self.leave();
        WalkFlow::Continue(false)
    }

    fn instruction(
        &mut self,
        packet: &mut Packet,
        instruction: &'a Instruction,
        origin: Origin,
    ) -> WalkFlow {
        match instruction {
            Instruction::Meter(id) => self.meter(packet, *id)?,
            Instruction::ApplyActions(actions) => {
                self.target.indent(true);
                if let Some(top) = self.active.last_mut() {
                    top.actions = Some(actions.iter());
                }
            }
            Instruction::ClearActions => self.set.clear(),
            Instruction::WriteActions(actions) => self.set.write(actions, origin),
            Instruction::WriteMetadata { metadata, mask } => {
                packet.meta.metadata = packet.meta.metadata & !mask | metadata & mask;
            }
            Instruction::GotoTable(table) => {
                if let Some(top) = self.active.last_mut() {
                    top.next = Some(*table);
                }
            }
            // Refused when the entry came.
            Instruction::Experimenter { .. } => {}
        }
        WalkFlow::Continue(())
    }

    /// The activation on top is over.
    fn leave(&mut self) {
        let Some(top) = self.active.pop() else { return };
        if top.actions.is_some() {
            self.target.indent(false);
        }
        if top.is_resubmitted {
            self.target.indent(false);
            self.in_bucket = top.was_in_bucket;
        }
    }

    /// The packet asks for too much: it is dropped, and nothing of it is sent.
    fn withdraw(&mut self, reason: DropReason) -> WalkFlow {
        self.target.withdraw()?;
        self.drop(reason);
        WalkFlow::Break(Stop::Walk)
    }

    /// Resubmits to the same or an earlier table that the packet is in.
    fn depth(&self) -> usize {
        self.active.last().map_or(0, |top| top.depth)
    }

    /// Counts a search of a further table.
    fn count_search(&mut self) -> WalkFlow {
        if self.depth() >= MAX_RESUBMIT_DEPTH || self.resubmits >= MAX_RESUBMITS {
            return self.withdraw(DropReason::TooManyResubmits);
        }
        self.resubmits += 1;
        WalkFlow::Continue(())
    }

    /// Counts so many actions.
    fn count_actions(&mut self, count: usize) -> WalkFlow {
        self.actions += count;
        if self.actions > MAX_ACTIONS {
            return self.withdraw(DropReason::TooManyActions);
        }
        WalkFlow::Continue(())
    }

    /// Searches a table as if the packet had come by `port`; what is found there is carried out
    /// before anything else (Open vSwitch, ovs-actions(7)). A table without a match changes
    /// nothing.
    fn resubmit(&mut self, packet: &mut Packet, port: PortNo, table: TableId) -> WalkFlow {
        let is_entry = self.chained == 0 && !self.in_action_set;
        let is_at_its_end = self.active.last().is_some_and(Activation::is_at_its_end);
        self.target.resubmit(is_entry && is_at_its_end)?;
        self.count_search()?;
        // The action set is carried out in the first table.
        let here = self.active.last().map_or(TableId(0), Activation::table);
        let table = if table == TableId::ALL { here } else { table };
        let depth = self.depth();
        let in_port = packet.meta.in_port;
        if port != PortNo::IN_PORT {
            packet.meta.in_port = port;
        }
        self.target.indent(true);
        let found = self.target.lookup(table, packet);
        packet.meta.in_port = in_port;
        match found {
            Some(matched) => self.active.push(Activation {
                depth: depth + usize::from(table <= here),
                is_resubmitted: true,
                was_in_bucket: std::mem::replace(&mut self.in_bucket, false),
                ..Activation::of(matched)
            }),
            None => {
                self.target.note(|| format!("table {}: no match", table.0));
                self.target.indent(false);
            }
        }
        WalkFlow::Continue(())
    }

    fn deeper<R>(&mut self, inner: impl FnOnce(&mut Self) -> R) -> R {
        self.target.indent(true);
        let result = inner(self);
        self.target.indent(false);
        result
    }

    /// Executes an action set; `origin` stands for those of the actions that no entry wrote.
    fn run_set(
        &mut self,
        packet: &mut Packet,
        set: &ActionSet,
        origin: Option<Origin>,
    ) -> WalkFlow {
        self.run_list(packet, set.in_order().map(|(action, by)| (action, origin.unwrap_or(by))))
    }

    /// Carries out actions that no activation has.
    fn run_list<'l>(
        &mut self,
        packet: &mut Packet,
        mut list: impl Iterator<Item = (&'l Action, Origin)>,
    ) -> WalkFlow {
        let base = self.active.len();
        while let Some((action, by)) = list.next() {
            self.action(packet, action, by)?;
            if let WalkFlow::Break(stop) = self.run(packet, base) {
                self.keep_list_for_pause(list);
                return WalkFlow::Break(stop);
            }
        }
        WalkFlow::Continue(())
    }

    /// No entry matched, not even a table-miss entry.
    fn miss(&mut self, packet: &Packet, table_id: TableId) {
        self.target.note(|| format!("table {}: no match", table_id.0));
        let settings = self.around.settings;
        match settings.miss {
            Miss::Drop => self.drop(DropReason::NoMatch),
            Miss::Controller => {
                let origin = Origin { table_id, is_miss: true, ..Origin::NONE };
                let (reason, max_len) = (PacketInReason::NoMatch, settings.miss_send_len);
                self.packet_in(packet, reason, origin, max_len);
            }
        }
    }

    fn meter(&mut self, packet: &mut Packet, id: MeterId) -> WalkFlow {
        let band = self.target.meter(id, packet);
        if let Some((index, BandKind::Drop)) = band {
            self.target.note(|| format!("meter {}: band {index} drops", id.0));
            self.drop(DropReason::Meter);
            return WalkFlow::Break(Stop::Packet);
        }
        if let Some((index, BandKind::DscpRemark { .. })) = band {
            self.target.note(|| format!("meter {}: band {index} remarks", id.0));
        }
        remark(band, &mut packet.frame, &packet.meta);
        WalkFlow::Continue(())
    }

    /// Executes one action on a packet.
    fn action(&mut self, packet: &mut Packet, action: &Action, origin: Origin) -> WalkFlow {
        self.target.note(|| format_actions(std::slice::from_ref(action)));
        self.count_actions(weight(action))?;
        match self.target.execute(packet, action)? {
            Executed::Rewritten(true) => {}
            Executed::Rewritten(false) => {
                self.target.note(|| "does not fit the packet: skipped".to_owned());
            }
            Executed::TtlInvalid => return self.invalid_ttl(packet, action, origin),
            Executed::Output { port, queue, max_len } => {
                return self.output(packet, queue.or(packet.queue), port, max_len, origin);
            }
            Executed::Group(id) => return self.group(packet, id, origin),
            Executed::SetQueue(queue) => packet.queue = queue,
            Executed::Member => return self.member(packet, action, origin),
            Executed::Pushed if packet.stack.len() > MAX_STACK => {
                return self.withdraw(DropReason::StackTooDeep);
            }
            Executed::Pushed => {}
            Executed::Resubmit(port, table) => return self.resubmit(packet, port, table),
            Executed::Learn => {
                let Some(learn) = action.learns() else { return WalkFlow::Continue(()) };
                self.target.note(|| {
                    let entry = learn.flow_mod(|field| packet.key().get(field));
                    format!("learns {}", format_flow_mod(&entry))
                });
                self.target.teach(packet, learn)?;
            }
            Executed::FinTimeout => {
                let Action::FinTimeout { idle_timeout: idle_s, hard_timeout: hard_s } = *action
                else {
                    return WalkFlow::Continue(());
                };
                if packet.ends_connection() {
                    self.target.note(|| {
                        "the packet ends its connection: the timeouts are shortened".to_owned()
                    });
                }
                let timeouts = FinTimeouts { idle_s, hard_s };
                self.target.shorten(packet, origin.entry, timeouts)?;
            }
            Executed::Controller => return self.controller(packet, action, origin),
            // What came before it holds.
            Executed::Exit => return WalkFlow::Break(Stop::Lists),
        }
        WalkFlow::Continue(())
    }

    /// Sends the packet to a member of a bundle, or writes the member's number.
    fn member(&mut self, packet: &mut Packet, action: &Action, origin: Origin) -> WalkFlow {
        let Some(bundle) = action.members() else { return WalkFlow::Continue(()) };
        let port = member(bundle, &packet.key(), self.around.ports);
        let Some((bits, dst)) = bundle.dst else {
            if let Some(port) = port {
                return self.output(packet, packet.queue, port, MAX_LEN_NO_BUFFER, origin);
            }
            self.drop(DropReason::NoLiveBucket);
            return WalkFlow::Continue(());
        };
        let number = u128::from(port.unwrap_or(PortNo::ANY).0 & 0xffff);
        let value = (number & bits.largest()) as u64;
        if self.target.execute(packet, &Action::Load { bits, dst, value })?
            == Executed::Rewritten(false)
        {
            self.target.note(|| "does not fit the packet: skipped".to_owned());
        }
        WalkFlow::Continue(())
    }

    /// Takes a copy of the packet through a list, and then through the action set as it is, unless
    /// that is carried out already. The packet itself goes on as it came, unless the list exits.
    fn run_clone(
        &mut self,
        packet: &Packet,
        action: &Action,
        list: &'a [Action],
        origin: Origin,
    ) -> WalkFlow {
        self.target.note(|| format_actions(std::slice::from_ref(action)));
        self.count_actions(1)?;
        if self.chained >= usize::from(MAX_CHAIN) {
            return self.withdraw(DropReason::TooManyResubmits);
        }
        if self.copies >= MAX_COPIES {
            self.drop(DropReason::TooManyCopies);
            return WalkFlow::Continue(());
        }
        self.copies += 1;
        let mut copy = self.target.begin_clone(packet, self.copies)?;
        let (set, base, depth) = (self.set.clone(), self.active.len(), self.depth());
        self.chained += 1;
        self.target.indent(true);
        let entry = MatchedEntry { instructions: &[], origin };
        let actions = Some(list.iter());
        self.active.push(Activation { actions, depth, ..Activation::of(entry) });
        let mut end = self.run(&mut copy, base).map_continue(|_| ());
        let has_set = !self.in_action_set && self.set.in_order().next().is_some();
        if end.is_continue() && has_set {
            end = self.deeper(|walk| walk.action_set(&mut copy));
        }
        self.end_pause(&copy, false);
        self.set = set;
        self.chained -= 1;
        self.target.end_bucket(copy);
        match end {
            WalkFlow::Break(Stop::Packet) => WalkFlow::Continue(()),
            WalkFlow::Break(Stop::Lists | Stop::Walk | Stop::Unsupported)
            | WalkFlow::Continue(()) => end,
        }
    }

    /// The packet goes no further (clause 5.12); the controller may want to know.
    fn invalid_ttl(&mut self, packet: &Packet, action: &Action, origin: Origin) -> WalkFlow {
        let settings = self.around.settings;
        let controller_ids = action.invalid_ttl_to();
        if !settings.invalid_ttl_to_controller || controller_ids.is_empty() {
            self.drop(DropReason::InvalidTtl);
            return WalkFlow::Break(Stop::Packet);
        }
        self.count_actions(controller_ids.len())?;
        let (reason, max_len) = (PacketInReason::InvalidTtl, settings.miss_send_len);
        for controller_id in controller_ids {
            let plain = HandUp::plain(reason, origin, max_len);
            self.hand_up(packet, &HandUp { controller_id: *controller_id, ..plain });
        }
        WalkFlow::Break(Stop::Packet)
    }

    /// Carries out a `controller` action. A meter of its own bounds what goes up, and nothing else.
    fn controller(&mut self, packet: &Packet, action: &Action, origin: Origin) -> WalkFlow {
        let Some(asked) = action.to_controller() else { return WalkFlow::Continue(()) };
        if asked.pauses {
            return self.begin_pause(asked, origin);
        }
        self.hand_up_as_asked(packet, asked, origin, Vec::new());
        WalkFlow::Continue(())
    }

    fn hand_up_as_asked(
        &mut self,
        packet: &Packet,
        asked: ToController,
        origin: Origin,
        continuation: Vec<u8>,
    ) {
        let meter = asked.meter;
        let hand_up = HandUp::asked(asked, origin, continuation);
        let Some(meter) = meter else { return self.hand_up(packet, &hand_up) };
        let mut copy = packet.clone();
        if self.meter(&mut copy, meter).is_continue() {
            self.hand_up(&copy, &hand_up);
        }
    }

    fn hand_up(&mut self, packet: &Packet, hand_up: &HandUp) {
        self.has_verdict = true;
        self.target.note(|| format!("to the controller: {}", hand_up.reason.text()));
        self.target.packet_in(packet, hand_up);
    }

    fn packet_in(&mut self, packet: &Packet, reason: PacketInReason, origin: Origin, max_len: u16) {
        let in_port = self.around.ports.get(packet.meta.in_port);
        if reason == PacketInReason::NoMatch && in_port.is_some_and(Port::no_packet_in) {
            return self.drop(DropReason::NoPacketIn);
        }
        self.hand_up(packet, &HandUp::plain(reason, origin, max_len));
    }

    /// Executes an output (clauses 4.5 and 5.12). A packet never leaves by the port that it came in
    /// by, except by `IN_PORT`.
    fn output(
        &mut self,
        packet: &Packet,
        queue: Option<QueueId>,
        port: PortNo,
        max_len: u16,
        origin: Origin,
    ) -> WalkFlow {
        let in_port = packet.meta.in_port;
        if matches!(port, PortNo::ALL | PortNo::FLOOD | PortNo::NORMAL) {
            self.count_actions(self.around.ports.len())?;
        }
        match port {
            PortNo::IN_PORT => self.send(packet, in_port, queue),
            PortNo::ALL => self.flood(packet, queue, |_| true),
            PortNo::FLOOD => self.flood(packet, queue, |port| !port.no_flood()),
            PortNo::NORMAL => {
                self.has_verdict = true;
                return self.target.normal(packet, queue);
            }
            PortNo::TABLE => return self.table(packet),
            PortNo::CONTROLLER => self.packet_in(packet, self.reason(origin), origin, max_len),
            _ if port == in_port => self.drop(DropReason::ToIngress),
            _ => self.send(packet, port, queue),
        }
        WalkFlow::Continue(())
    }

    /// The reason of an output to the controller.
    fn reason(&self, origin: Origin) -> PacketInReason {
        if origin.is_miss {
            PacketInReason::NoMatch
        } else if self.in_bucket {
            PacketInReason::Group
        } else if self.in_action_set {
            PacketInReason::ActionSet
        } else if self.table_allowed {
            PacketInReason::PacketOut
        } else {
            PacketInReason::Action
        }
    }

    fn send(&mut self, packet: &Packet, number: PortNo, queue: Option<QueueId>) {
        self.has_verdict = true;
        send(&mut self.target, self.around.ports, packet, number, queue);
    }

    fn flood(&mut self, packet: &Packet, queue: Option<QueueId>, wanted: impl Fn(&Port) -> bool) {
        self.has_verdict = true;
        let ports = self.around.ports;
        flood(&mut self.target, ports, packet, wanted, |target, number, _| {
            leave(target, ports, packet, number, queue);
        });
    }

    /// Starts the pipeline for a packet-out: a new packet without metadata and queue.
    fn table(&mut self, packet: &Packet) -> WalkFlow {
        if !self.table_allowed {
            self.drop(DropReason::ReentrantTable);
            return WalkFlow::Continue(());
        }
        self.count_search()?;
        let fresh = self.target.fresh(packet);
        self.table_allowed = false;
        let end = self.deeper(|walk| walk.pipeline(fresh));
        self.table_allowed = true;
        flow_after_copy(end)
    }

    /// Takes a packet through a group: a copy for each chosen bucket, which runs as an action set
    /// (clause 5.6). The packet itself goes on as it came.
    fn group(&mut self, packet: &Packet, id: GroupId, origin: Origin) -> WalkFlow {
        // A group that entries use exists: deleting it takes them along.
        let Some(group) = self.around.groups.get(id) else {
            self.drop(DropReason::NoBucket);
            return WalkFlow::Continue(());
        };
        if self.chained >= usize::from(MAX_CHAIN) {
            if self.depth() > 0 {
                return self.withdraw(DropReason::TooManyResubmits);
            }
            self.drop(DropReason::ChainTooLong);
            return WalkFlow::Continue(());
        }
        self.target.enter_group(id, group, packet)?;
        if group.buckets().is_empty() {
            self.target.note(|| format!("group {}: no buckets, nothing changes", id.0));
            return WalkFlow::Continue(());
        }
        let ports = self.around.ports;
        let is_fragment = group.group_type() == GroupType::Select && packet.is_fragment();
        let chosen = self.around.groups.chosen(id, &packet.key(), is_fragment, ports);
        if chosen.is_empty() {
            let groups = self.around.groups;
            self.target.note(|| groups.unused(id, ports));
            self.drop(DropReason::NoLiveBucket);
        }
        for index in chosen {
            let Some(bucket) = group.buckets().get(index) else { continue };
            if self.copies >= MAX_COPIES {
                self.drop(DropReason::TooManyCopies);
                break;
            }
            self.copies += 1;
            let kind = group.group_type().text();
            self.target.note(|| format!("group {} ({kind}): bucket {index}", id.0));
            let mut copy = self.target.begin_bucket(id, index, packet, self.copies)?;
            let set = ActionSet::of(&bucket.actions);
            self.chained += 1;
            let in_bucket = std::mem::replace(&mut self.in_bucket, true);
            let end = self.deeper(|walk| walk.run_set(&mut copy, &set, Some(origin)));
            self.in_bucket = in_bucket;
            self.chained -= 1;
            self.end_pause(&copy, true);
            self.target.end_bucket(copy);
            flow_after_copy(end)?;
        }
        WalkFlow::Continue(())
    }
}

/// Effect of a copy's end on the walk of its packet: none, unless the walk is over.
fn flow_after_copy(end: WalkFlow) -> WalkFlow {
    match end {
        WalkFlow::Break(Stop::Walk | Stop::Unsupported) => end,
        WalkFlow::Break(Stop::Packet | Stop::Lists) | WalkFlow::Continue(()) => {
            WalkFlow::Continue(())
        }
    }
}

/// Sends a copy by one port, whatever port the packet came in by.
fn send<'a, T: Target<'a>>(
    target: &mut T,
    ports: &Ports,
    packet: &Packet,
    number: PortNo,
    queue: Option<QueueId>,
) {
    let reason = match ports.get(number) {
        None => DropReason::NoSuchPort,
        Some(port) => match port.refuses_tx() {
            None => return leave(target, ports, packet, number, queue),
            Some(reason) => {
                target.note(|| format!("dropped: {}", reason.name()));
                return target.refuse(number, reason);
            }
        },
    };
    target.note(|| format!("dropped: {}", reason.name()));
    target.drop(reason);
}

fn leave<'a, T: Target<'a>>(
    target: &mut T,
    ports: &Ports,
    packet: &Packet,
    number: PortNo,
    queue: Option<QueueId>,
) {
    mirror(target, ports, packet, number, Side::Out);
    target.note(|| format!("leaves by port {number}"));
    target.output(packet, number, queue);
}

/// Calls `send` for every port that can send and is `wanted`, except the ingress port. Ports that
/// cannot send are left out, so they count no drop.
fn flood<'a, T: Target<'a>>(
    target: &mut T,
    ports: &Ports,
    packet: &Packet,
    wanted: impl Fn(&Port) -> bool,
    mut send: impl FnMut(&mut T, PortNo, &Port),
) {
    let mut any = false;
    for (number, port) in ports.iter() {
        if number != packet.meta.in_port && port.refuses_tx().is_none() && wanted(port) {
            any = true;
            send(target, number, port);
        }
    }
    if !any {
        target.note(|| format!("dropped: {}", DropReason::NoPortLeft.name()));
        target.drop(DropReason::NoPortLeft);
    }
}

/// Lowers the DSCP as a meter's band asks.
pub(super) fn remark(band: Option<(usize, BandKind)>, frame: &mut PacketBuf, meta: &Meta) {
    if let Some((_, BandKind::DscpRemark { prec_level })) = band {
        let dscp = extract(frame.bytes(), meta).get(Field::IpDscp);
        let dscp = u8::try_from(dscp).unwrap_or(0);
        let remarked = remarked(dscp, prec_level);
        if remarked != dscp {
            set_field(frame, Field::IpDscp, remarked.into());
        }
    }
}
