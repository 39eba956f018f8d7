//! The forwarder's side of the kernel tier: which decisions may be carried out in the kernel, and
//! what becomes of the counts.
//!
//! A frame that the kernel hands over is decided as any other. Where its decision holds for all
//! frames with the same masked bytes, needs nothing of this process and does nothing to the frame,
//! it is proposed to the [`KernelTable`]; so the tier's key is that of the frame cache. Entries of
//! the table hold until the next op: the shard stops the tier before an op is applied, and only
//! then, so that no count ever meets an entry, group or port that is another one by now.

use std::collections::{BTreeSet, HashMap};

use openflow::{GroupId, PortNo};
use packet::header::ethernet;
use packet::{PacketBuf, Shape};

use super::Forwarder;
use super::decide::flush_counts;
use super::path::{PathId, Paths, Steps};
use super::program::{Decided, MicroOp, Program, ProgramId, Terminal};
use super::replica::Replica;
use crate::counter::{Counter, DropReason};
use crate::fast::forwarder::cache::Evicted;
use crate::fast::mix_hasher::BuildMixHasher;
use crate::select::mix;
use crate::time::Nanos;

/// First bytes of a frame that make up a key.
pub const TIER_BYTES: usize = 64;

/// Most ports that the kernel sends one frame by.
pub const TIER_OUTPUTS_MAX: usize = 8;

/// After a change of the tables the tier rests for so long: while changes follow each other, making
/// entries anew for each would cost more than they save.
const REST_NS: u64 = 1_000_000;

/// Places for flows that were seen once.
const SEEN: usize = 4_096;

/// Proposals kept at most until the table takes them.
const PROPOSALS_MAX: usize = 256;

/// What the kernel asks for an entry by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TierFlow {
    /// The port.
    pub in_port: PortNo,
    /// The frames' shape.
    pub shape: Shape,
    /// The first bytes of the frame that make a difference; the others are zero.
    pub bytes: [u8; TIER_BYTES],
}

/// A table in the kernel that decides about frames before the forwarder sees them.
pub trait KernelTable {
    /// How many entries there is room for.
    fn slots(&self) -> usize;

    /// Begins with no entry. Frames are masked by these masks, one for each shape.
    fn start(&mut self, masks: &[[u8; TIER_BYTES]; Shape::COUNT]);

    /// Ends all entries. When it returns, none decides or counts any more.
    fn stop(&mut self);

    /// Makes an entry in a slot, which no other has; frames leave by all of these ports, or go
    /// nowhere without any. Whether it could be made.
    fn put(&mut self, slot: u32, flow: &TierFlow, outputs: &[PortNo]) -> bool;

    /// Removes an entry. When it returns, it does not decide or count any more.
    fn remove(&mut self, flow: &TierFlow);

    /// Packets and bytes that were ever counted in a slot.
    fn counts(&self, slot: u32) -> (u64, u64);

    /// Credits packets to the devices of the ports that they came and left by.
    fn credit(&mut self, in_port: PortNo, outputs: &[PortNo], packets: u64, bytes: u64);
}

/// What a decision counts beside its path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Credit {
    Output(PortNo),
    Drop(DropReason),
    Group(GroupId),
    Bucket(GroupId, usize),
}

/// A decision that the kernel may carry out.
#[derive(Debug)]
struct Proposal {
    flow: TierFlow,
    /// With one user, the proposal.
    path: PathId,
    verdict: KernelVerdict,
}

/// What the kernel does with a frame.
#[derive(Debug)]
struct KernelVerdict {
    credits: Box<[Credit]>,
    /// Nowhere, where there is none.
    outputs: Box<[PortNo]>,
}

/// An entry's place. One whose path is none is dead: it counts nothing, though its key may stand in
/// the table.
#[derive(Debug)]
struct Slot {
    flow: TierFlow,
    path: PathId,
    verdict: KernelVerdict,
    /// What was counted in the slot when it was last looked at.
    seen: (u64, u64),
    /// It has counted since the hand passed.
    is_used: bool,
}

/// The state of the tier.
#[derive(Debug, Default)]
pub(super) struct Tier {
    /// Ports whose frames come by way of the kernel's program.
    ports: BTreeSet<PortNo>,
    /// Ports that the program can send by.
    outputs: BTreeSet<PortNo>,
    is_running: bool,
    rests_until: u64,
    proposals: Vec<Proposal>,
    slots: Vec<Slot>,
    /// Slots whose flows have left the table.
    free: Vec<u32>,
    /// Slots that hold, in no order.
    live: Vec<u32>,
    known: HashMap<TierFlow, u32, BuildMixHasher>,
    /// Digests of flows that were seen once. So a flood of new flows makes no entries.
    seen: Vec<u64>,
    /// Where the search for a slot to give up goes on.
    hand: usize,
}

impl Forwarder {
    /// Says by which ports the kernel can send.
    pub fn set_tier_outputs(&mut self, outputs: BTreeSet<PortNo>) {
        self.tier.outputs = outputs;
    }

    /// A port has the kernel's program from now on.
    pub fn enter_tier(&mut self, port: PortNo) {
        self.tier.ports.insert(port);
    }

    /// A port's device goes, or another one takes its place: all entries end, and those of its
    /// flows leave the table, since a later device is known by another name there.
    pub fn leave_tier(&mut self, port: PortNo, table: &mut impl KernelTable, now: Nanos) {
        self.stop_tier(table, now);
        self.tier.ports.remove(&port);
        let gone: Vec<TierFlow> =
            self.tier.known.keys().filter(|flow| flow.in_port == port).copied().collect();
        for flow in gone {
            table.remove(&flow);
            if let Some(slot) = self.tier.known.remove(&flow) {
                self.tier.free.push(slot);
            }
        }
    }

    /// Whether frames of a port may be decided about in the kernel.
    #[inline]
    pub(super) fn is_in_tier(&self, in_port: PortNo) -> bool {
        self.caches.kernel && !self.tier.ports.is_empty() && self.tier.ports.contains(&in_port)
    }

    /// Whether entries of the tier hold.
    pub(super) fn tier_is_running(&self) -> bool {
        self.tier.is_running
    }

    /// Ends all entries of the tier, and credits what they have counted. Before every op, and
    /// before the caches are chosen anew.
    pub fn stop_tier(&mut self, table: &mut impl KernelTable, now: Nanos) {
        self.tier.rests_until = now.0.saturating_add(REST_NS);
        for proposal in self.tier.proposals.drain(..) {
            self.paths.release(proposal.path);
        }
        if !std::mem::take(&mut self.tier.is_running) {
            return;
        }
        table.stop();
        self.harvest_tier(table, now);
        for slot in self.tier.live.drain(..) {
            if let Some(slot) = self.tier.slots.get_mut(slot as usize) {
                self.paths.release(std::mem::replace(&mut slot.path, PathId::NONE));
            }
        }
        self.figures.kernel_entries = 0;
    }

    /// Credits what the tier's entries have counted since the last time.
    pub fn harvest_tier(&mut self, table: &mut impl KernelTable, now: Nanos) {
        let context = (&self.replica, &self.paths, now);
        for slot in &self.tier.live {
            if let Some(held) = self.tier.slots.get_mut(*slot as usize) {
                self.figures.kernel_hits += harvest(held, *slot, table, context);
            }
        }
    }

    /// Makes entries of what the last batch has proposed, and begins when the tier has rested.
    pub fn update_tier(&mut self, table: &mut impl KernelTable, now: Nanos) {
        if !self.caches.kernel || self.tier.ports.is_empty() {
            return;
        }
        if !self.tier.is_running {
            // What stays of the proposals is known again when their flows go on.
            for proposal in self.tier.proposals.drain(..) {
                self.paths.release(proposal.path);
            }
            // The pipeline mask is that of the replica only when a batch has passed.
            if now.0 < self.tier.rests_until || self.replica.is_mask_stale {
                return;
            }
            table.start(&self.pipeline_mask.masks.0);
            self.tier.is_running = true;
        }
        for proposal in std::mem::take(&mut self.tier.proposals) {
            self.make_entry(proposal, table, now);
        }
    }

    /// Proposes the decisions of a batch that the kernel may carry out.
    pub(super) fn propose(&mut self, frames: &[PacketBuf], decided: &[Decided], in_port: PortNo) {
        if !self.tier.is_running
            || self.replica.ports.get(in_port).is_none_or(|port| port.looks_at_frames())
        {
            return;
        }
        for (frame, decided) in frames.iter().zip(decided) {
            if self.tier.proposals.len() >= PROPOSALS_MAX {
                return;
            }
            let shape = Shape::of(frame.bytes());
            // The kernel hands short frames over, which are filled up on their way out.
            if shape.is_rare() || frame.len() < ethernet::FRAME_MIN_LEN {
                continue;
            }
            let mut bytes = [0; TIER_BYTES];
            let masks = &self.pipeline_mask.masks.0[shape.index()];
            for ((place, byte), mask) in bytes.iter_mut().zip(frame.bytes()).zip(masks) {
                *place = byte & mask;
            }
            let flow = TierFlow { in_port, shape, bytes };
            if !self.tier.is_wanted(&flow) {
                continue;
            }
            if let Some(verdict) = self.for_kernel(*decided) {
                self.paths.share(decided.path);
                self.tier.proposals.push(Proposal { flow, path: decided.path, verdict });
            }
        }
    }

    /// What a decision counts and where it sends, if the kernel can carry it out.
    fn for_kernel(&self, decided: Decided) -> Option<KernelVerdict> {
        if decided.program == ProgramId::WALK || decided.path == PathId::NONE {
            return None;
        }
        let lives_for_ever =
            |id| self.replica.entry(id).is_some_and(|entry| !entry.life.is_limited());
        let is_eternal = match self.paths.steps(decided.path) {
            Steps::One(id) => lives_for_ever(id),
            Steps::Many(steps) => {
                !steps.is_empty()
                    && steps
                        .iter()
                        .all(|step| step.longer == 0 && step.entry.is_none_or(lives_for_ever))
            }
        };
        if decided.path.is_timed() || !is_eternal {
            return None;
        }
        let credits = credits_of(self.programs.get(decided.program)?)?;
        let outputs: Vec<PortNo> = credits
            .iter()
            .filter_map(|credit| match credit {
                Credit::Output(port) => Some(*port),
                Credit::Drop(_) | Credit::Group(_) | Credit::Bucket(..) => None,
            })
            .collect();
        let can_send = outputs.len() <= TIER_OUTPUTS_MAX
            && outputs.iter().all(|port| self.tier.outputs.contains(port));
        can_send.then(|| KernelVerdict { credits: credits.into(), outputs: outputs.into() })
    }

    fn make_entry(&mut self, proposal: Proposal, table: &mut impl KernelTable, now: Nanos) {
        let Proposal { flow, path, verdict } = proposal;
        let known = self.tier.known.get(&flow).copied();
        let is_live = |slot: u32| {
            self.tier.slots.get(slot as usize).is_some_and(|slot| slot.path != PathId::NONE)
        };
        // Twice in one batch.
        if known.is_some_and(is_live) {
            return self.paths.release(path);
        }
        let slot = known.or_else(|| self.free_slot(table, now));
        let Some(slot) = slot.filter(|slot| table.put(*slot, &flow, &verdict.outputs)) else {
            self.figures.kernel_refused += 1;
            // A slot that was somebody's, and is nobody's now.
            let made = self.tier.slots.len();
            let left = slot.filter(|slot| known.is_none() && (*slot as usize) < made);
            self.tier.free.extend(left);
            return self.paths.release(path);
        };
        let held = Slot { flow, path, verdict, seen: table.counts(slot), is_used: true };
        match self.tier.slots.get_mut(slot as usize) {
            Some(place) => *place = held,
            None => self.tier.slots.push(held),
        }
        self.tier.known.insert(flow, slot);
        self.tier.live.push(slot);
        self.figures.kernel_entries = self.tier.live.len() as u64;
    }

    /// A slot that nobody has: a new one, a dead one, or one that was not used since the hand
    /// passed.
    fn free_slot(&mut self, table: &mut impl KernelTable, now: Nanos) -> Option<u32> {
        if let Some(free) = self.tier.free.pop() {
            return Some(free);
        }
        let made = self.tier.slots.len();
        if made < table.slots() {
            return u32::try_from(made).ok();
        }
        // A bounded part of the way round for each entry.
        for _ in 0..64 {
            let index = self.tier.hand % made.max(1);
            self.tier.hand = index + 1;
            let number = u32::try_from(index).ok()?;
            let slot = self.tier.slots.get_mut(index)?;
            let is_live = slot.path != PathId::NONE;
            if is_live {
                let context = (&self.replica, &self.paths, now);
                self.figures.kernel_hits += harvest(slot, number, table, context);
                if std::mem::take(&mut slot.is_used) {
                    continue;
                }
            }
            table.remove(&slot.flow);
            self.tier.known.remove(&slot.flow);
            if is_live {
                // What came between the look and the removal.
                let context = (&self.replica, &self.paths, now);
                self.figures.kernel_hits += harvest(slot, number, table, context);
                self.paths.release(std::mem::replace(&mut slot.path, PathId::NONE));
                self.tier.live.retain(|live| *live != number);
                self.figures.kernel_evictions += 1;
            }
            return Some(number);
        }
        None
    }
}

impl Tier {
    /// Whether an entry for a flow is wanted: the flow was seen before, and has none.
    fn is_wanted(&mut self, flow: &TierFlow) -> bool {
        if let Some(slot) = self.known.get(flow).and_then(|slot| self.slots.get(*slot as usize)) {
            return slot.path == PathId::NONE;
        }
        let mut digest = mix(u64::from(flow.in_port.0) << 8 | flow.shape.index() as u64);
        for word in flow.bytes.as_chunks::<8>().0 {
            digest = mix(digest ^ u64::from_ne_bytes(*word));
        }
        if self.seen.is_empty() {
            self.seen = vec![0; SEEN];
        }
        let Some(place) = self.seen.get_mut(digest as usize % SEEN) else { return false };
        std::mem::replace(place, digest) == digest
    }
}

/// Credits what was counted in a slot since it was last looked at; how many packets.
fn harvest(
    slot: &mut Slot,
    number: u32,
    table: &mut impl KernelTable,
    (replica, paths, now): (&Replica, &Paths, Nanos),
) -> u64 {
    let counts = table.counts(number);
    let packets = counts.0.wrapping_sub(slot.seen.0);
    let bytes = counts.1.wrapping_sub(slot.seen.1);
    // Packets and bytes are not counted at once: bytes that come alone wait for their packet.
    if packets == 0 {
        return 0;
    }
    slot.seen = counts;
    slot.is_used = true;
    let in_port = slot.flow.in_port;
    replica.count(Counter::Received, packets);
    if let Some(cell) = replica.port_cell(in_port) {
        cell.rx.add(packets, bytes);
    }
    flush_counts(replica, paths, Evicted { path: slot.path, packets, bytes });
    for credit in &slot.verdict.credits {
        match credit {
            Credit::Output(port) => replica.count_tx(*port, None, packets, bytes, now),
            Credit::Drop(reason) => replica.count_drops(*reason, packets),
            Credit::Group(id) => replica.count_group(*id, packets, bytes),
            Credit::Bucket(id, index) => replica.count_bucket(*id, *index, packets, bytes),
        }
    }
    table.credit(in_port, &slot.verdict.outputs, packets, bytes);
    packets
}

/// What a program counts, if it does nothing to a frame and only sends it by ports or drops it.
fn credits_of(program: &Program) -> Option<Vec<Credit>> {
    if program.guard != super::program::Guard::default() {
        return None;
    }
    let mut credits = Vec::new();
    for micro_op in &program.micro_ops {
        match micro_op {
            MicroOp::Group(id) => credits.push(Credit::Group(*id)),
            MicroOp::Bucket(id, index) => credits.push(Credit::Bucket(*id, *index)),
            MicroOp::Output(port, None) => credits.push(Credit::Output(*port)),
            MicroOp::Drop(reason) => credits.push(Credit::Drop(*reason)),
            // Copies of a frame that nothing changes are as the frame.
            MicroOp::BeginCopy | MicroOp::EndCopy => {}
            MicroOp::Apply(_)
            | MicroOp::Rewrite(_)
            | MicroOp::PopTag
            | MicroOp::PushMpls(..)
            | MicroOp::TagToMpls(..)
            | MicroOp::Meter(..)
            | MicroOp::Output(_, Some(_))
            | MicroOp::ToController(_)
            | MicroOp::RefusedTx(..)
            | MicroOp::Normal(_) => return None,
        }
    }
    match program.terminal {
        Some(Terminal::Output(port, None)) => credits.push(Credit::Output(port)),
        Some(Terminal::Output(_, Some(_))) => return None,
        Some(Terminal::Drop(reason)) => credits.push(Credit::Drop(reason)),
        None => {}
    }
    Some(credits)
}
