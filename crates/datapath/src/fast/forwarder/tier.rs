//! The forwarder's side of the kernel tier: the choice of decisions that the kernel carries out,
//! and the credit for its counts.
//!
//! A frame that the kernel hands over is decided as any other. Where its decision holds for all
//! frames with the same masked bytes, needs nothing of this process and changes no more than the
//! headers of the frame before it leaves, it is proposed to the [`KernelTable`]; so the tier's key
//! is that of the frame cache, and with `NORMAL` also what that looks at (see `stations`). Entries
//! of the table hold until an op concerns them: what a flow shows is held against what the op
//! raises, as in the caches, and before the next command is looked at no frame is decided by what
//! was. An op about groups, meters, ports or settings ends them all before it is applied, so that
//! no count ever meets a group or port that is another one by now.
//!
//! An entry with a timeout holds for a lease, which ends while there is time left: with an idle
//! timeout after half of it. Then it is asked when it was used last, and the lease goes on from
//! there. So neither the other shards nor the agent, which expires entries, see an entry run out
//! that frames in the kernel still use.

mod admission;
mod credit;
mod listed;
mod stations;
mod table;

use std::collections::{BTreeSet, HashMap};

use openflow::PortNo;
use packet::{PacketBuf, Shape};

use self::admission::Admission;
use self::credit::{Credit, credits_of, owners_of};
use self::listed::Listed;
pub(super) use self::stations::UsedStation;
pub use self::table::{
    KeptCounts, KernelTable, NoKernel, TIER_BYTES, TIER_OUTPUTS_MAX, TierFlow, TierOwner,
    TierSlotCounts, TierVerdict,
};
use super::bundle::{BundleStep, Concerned};
use super::decide::flush_counts;
use super::path::{PathId, Paths, Steps};
use super::program::{Decided, ProgramId};
use super::replica::Replica;
use super::tiers::Applied;
use super::versions::Invalidated;
use super::{Core, Flush};
use crate::counter::Counter;
use crate::fast::classifier::BURST;
use crate::fast::forwarder::cache::Evicted;
use crate::fast::ids::EntryId;
use crate::fast::mix_hasher::BuildMixHasher;
use crate::fast::op::{Change, Op};
use crate::fast::shared::SeenMoves;
use crate::fast::sys::{ShapeMasks, digest_frames};
use crate::time::Nanos;

/// Rest of the tier after a change of the tables: while changes follow each other, making entries
/// anew for each would cost more than they save.
const REST_NS: u64 = 1_000_000;

/// Leases that end within this time are renewed together: far less than half of the shortest idle
/// timeout.
const RENEWAL_NS: u64 = 100_000_000;

/// Proposals kept at most until the table takes them.
const PROPOSALS_MAX: usize = 256;

/// A decision that the kernel may carry out.
#[derive(Debug)]
struct Proposal {
    flow: TierFlow,
    digest: u128,
    /// With one user, the proposal.
    path: PathId,
    verdict: KernelVerdict,
    lease: Lease,
}

/// The kernel's part in a decision: what it does with a frame, and what that counts.
#[derive(Debug, PartialEq, Eq)]
struct KernelVerdict {
    credits: Box<[Credit]>,
    does: TierVerdict,
    /// The stations that it hangs on.
    stations: Box<[UsedStation]>,
}

/// The time for which an entry may decide without being looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lease {
    until: Nanos,
    /// Whether it goes on when the entry was used: it has an idle timeout, or hangs on stations.
    goes_on: bool,
}

/// An entry's place. One whose path is none is dead: it counts nothing, though its key may stand in
/// the table.
#[derive(Debug)]
struct Slot {
    flow: TierFlow,
    digest: u128,
    path: PathId,
    verdict: KernelVerdict,
    lease: Lease,
    /// Number of the entry among all that were made.
    serial: u32,
    /// Index in [`Tier::live`].
    live_at: usize,
    /// The counts of the slot when it was last looked at.
    seen: TierSlotCounts,
    /// It has counted since the hand passed.
    is_used: bool,
    /// Whether it decides. One that does not any more has its path until its counts are credited.
    holds: bool,
}

/// Leases that are being renewed.
#[derive(Debug, Default)]
struct Renewal {
    /// The slot from which on they are not yet.
    at: usize,
    /// When the next one of the others ends.
    next: Option<Nanos>,
}

/// The state of the tier.
#[derive(Debug, Default)]
pub(super) struct Tier {
    /// The flows that are worth an entry, and the ports whose frames come by way of the kernel's
    /// program.
    admission: Admission,
    /// Ports that the program can send by.
    outputs: BTreeSet<PortNo>,
    is_running: bool,
    /// The bits of frames that the keys have.
    masks: ShapeMasks,
    /// Whether those that `NORMAL` looks at are among them, until the pipeline mask changes.
    has_stations: bool,
    /// They are to have it.
    lacks_stations: bool,
    /// The moves of stations after which entries were ended.
    moves: SeenMoves,
    /// The number of moves that this forwarder has seen and reported.
    moves_reported: u64,
    rests_until: u64,
    proposals: Vec<Proposal>,
    slots: Vec<Slot>,
    /// Slots whose flows have left the table.
    free: Vec<u32>,
    /// Slots that hold, in no order.
    live: Vec<u32>,
    /// Slots that do not any more, and whose counts are not credited yet.
    ended: Vec<u32>,
    /// The slots of flows by their digests, which are keyed.
    known: HashMap<u128, u32, BuildMixHasher>,
    /// The entries about flows that show a value of an index, or have a station of it.
    by_index: HashMap<u16, Listed, BuildMixHasher>,
    /// The last serial.
    serial: u32,
    /// When the next lease that goes on ends.
    lease_ends: Option<Nanos>,
    renewal: Option<Renewal>,
    /// Entries to end, while they are collected.
    ending: Vec<u32>,
    /// Index of the slot from which the search for one to give up goes on.
    hand: usize,
}

impl Core {
    /// A port's next batch comes, behind which frames wait or do not.
    pub(super) fn note_waiting(&mut self, port: PortNo, waits: bool, now: Nanos) {
        self.tier.admission.note_waiting(port, waits, now);
    }

    pub(super) fn set_tier_outputs(&mut self, outputs: BTreeSet<PortNo>) {
        self.tier.outputs = outputs;
    }

    pub(super) fn enter_tier(&mut self, port: PortNo) {
        self.tier.admission.ports.insert(port, None);
    }

    pub(super) fn leave_tier(&mut self, port: PortNo, table: &mut dyn KernelTable, now: Nanos) {
        self.stop_tier(table, now);
        let Tier { admission, known, slots, free, .. } = &mut self.tier;
        admission.ports.remove(&port);
        let flow_of = |slot: u32| slots.get(slot as usize).map(|slot| slot.flow);
        let is_of_port = |slot: u32| flow_of(slot).is_some_and(|flow| flow.in_port == port);
        let gone: Vec<u32> =
            known.extract_if(|_, slot| is_of_port(*slot)).map(|(_, slot)| slot).collect();
        let flows: Vec<TierFlow> = gone.iter().filter_map(|slot| flow_of(*slot)).collect();
        free.extend(gone);
        table.leave(&flows);
    }

    /// Whether frames of a port may be decided about in the kernel.
    #[inline]
    pub(super) fn is_in_tier(&self, in_port: PortNo) -> bool {
        let ports = &self.tier.admission.ports;
        self.caches.kernel && !ports.is_empty() && ports.contains_key(&in_port)
    }

    /// Ends all entries of the tier. What they have counted is credited by [`Core::credit_ended`].
    pub(super) fn stop_tier(&mut self, table: &mut dyn KernelTable, now: Nanos) {
        self.tier.rests_until = now.0.saturating_add(REST_NS);
        for proposal in self.tier.proposals.drain(..) {
            self.paths.release(proposal.path);
        }
        if !std::mem::take(&mut self.tier.is_running) {
            return;
        }
        table.stop();
        let Tier { live, ended, slots, .. } = &mut self.tier;
        for number in live.drain(..) {
            if let Some(slot) = slots.get_mut(number as usize) {
                slot.holds = false;
                ended.push(number);
            }
        }
        self.tier.by_index.clear();
        self.tier.lease_ends = None;
        self.tier.renewal = None;
        self.figures.kernel_entries = 0;
    }

    /// Credits the counts of entries that hold no more, a piece at a time, so that no port waits
    /// long; whether all are credited. Before that no op may be applied: the credits are about what
    /// was there while the entries held.
    pub(super) fn credit_ended(&mut self, table: &mut dyn KernelTable, now: Nanos) -> bool {
        self.credit_some_ended(table.slots_at_once(), table, now);
        self.tier.ended.is_empty()
    }

    /// The same of at most `most`; of how many.
    fn credit_some_ended(&mut self, most: usize, table: &mut dyn KernelTable, now: Nanos) -> usize {
        for credited in 0..most {
            let Some(number) = self.tier.ended.pop() else { return credited };
            let Some(slot) = self.tier.slots.get_mut(number as usize) else { continue };
            let context = (&self.replica, &self.paths, now);
            self.figures.kernel_hits += credit_slot(slot, number, table, context);
            self.paths.release(std::mem::replace(&mut slot.path, PathId::NONE));
        }
        most
    }

    /// Prepares for an op, a piece at a time: ends the entries of the tier where it is about more
    /// than entries, and credits what has ended. Whether it may be applied now.
    fn prepare_for(&mut self, op: &Op, table: &mut dyn KernelTable, now: Nanos) -> bool {
        if !op.is_about_entries() {
            self.stop_tier(table, now);
        }
        self.credit_ended(table, now)
    }

    /// Applies an op, once the tier is prepared for it, and ends the entries that it concerns.
    pub(super) fn apply_in_tier(
        &mut self,
        op: Op,
        table: &mut dyn KernelTable,
        now: Nanos,
    ) -> Applied {
        if let Change::Bundle(ops) = &op.0 {
            let step = self.advance(ops);
            if self.replica.is_mask_stale {
                self.tier.has_stations = false;
                self.stop_tier(table, now);
            }
            if step == BundleStep::Show && self.prepare_for(&op, table, now) {
                self.show_in_tier(ops, table, now);
            }
            return self.applied(op, step);
        }
        if !self.prepare_for(&op, table, now) {
            return Applied::Busy(op);
        }
        if !op.is_about_entries() {
            return self.apply(op);
        }
        for proposal in self.tier.proposals.drain(..) {
            self.paths.release(proposal.path);
        }
        // What was invalidated while the tier did not run concerns no entry.
        self.versions.take_invalidated();
        let applied = self.apply(op);
        let invalidated = self.versions.take_invalidated();
        if self.replica.is_mask_stale {
            self.tier.has_stations = false;
            self.stop_tier(table, now);
            return applied;
        }
        match invalidated {
            Invalidated::All => self.stop_tier(table, now),
            Invalidated::One(index) if self.tier.is_running => self.end_concerned(&[index], table),
            Invalidated::One(_) | Invalidated::Nothing => {}
        }
        applied
    }

    /// The moment of a bundle: the entries of the tier that it concerns end before the worker's
    /// next packet.
    fn show_in_tier(&mut self, ops: &[Op], table: &mut dyn KernelTable, now: Nanos) {
        for proposal in self.tier.proposals.drain(..) {
            self.paths.release(proposal.path);
        }
        match self.replica.show(ops, &mut self.versions) {
            Concerned::All => self.stop_tier(table, now),
            Concerned::Values(indices) if self.tier.is_running => {
                self.end_concerned(&indices, table);
            }
            Concerned::Values(_) => {}
        }
    }

    /// Ends the entries about flows that show a value of an index, or have a station of it.
    fn end_concerned(&mut self, indices: &[u16], table: &mut dyn KernelTable) {
        for index in indices {
            let listed = self.tier.by_index.remove(index).unwrap_or_default();
            let mut ending = std::mem::take(&mut self.tier.ending);
            ending.extend(listed.entries().filter(|it| self.tier.has(*it)).map(|it| it.0));
            self.tier.ending = ending;
        }
        self.end_collected(table);
    }

    /// Ends the entries whose frames leave by a port.
    pub(super) fn end_tier_output(&mut self, port: PortNo, table: &mut dyn KernelTable) {
        let Tier { live, slots, ending, .. } = &mut self.tier;
        let leaves_by_it = |number: &&u32| {
            let slot = slots.get(**number as usize);
            slot.is_some_and(|slot| slot.verdict.does.outputs.contains(&port))
        };
        ending.extend(live.iter().filter(leaves_by_it));
        self.end_collected(table);
    }

    fn end_collected(&mut self, table: &mut dyn KernelTable) {
        let mut ending = std::mem::take(&mut self.tier.ending);
        table.end(&ending);
        for slot in ending.drain(..) {
            self.tier.end(slot);
        }
        self.tier.ending = ending;
        self.figures.kernel_entries = self.tier.live.len() as u64;
    }

    /// When [`Core::maintain_tier`] is due.
    pub(super) fn tier_due(&self) -> Option<Nanos> {
        let is_due = !self.tier.ended.is_empty() || self.is_behind_moves();
        if is_due { Some(Nanos(0)) } else { self.tier.lease_ends }
    }

    /// Ends the entries about stations that have moved, and credits what has ended. If that is
    /// done, renews the leases of entries that were used: of a bounded number of slots at once.
    /// Nothing before it is due.
    pub(super) fn maintain_tier(&mut self, table: &mut dyn KernelTable, now: Nanos) {
        self.end_moved(table);
        if !self.tier.ended.is_empty() {
            self.credit_ended(table, now);
            return;
        }
        if self.tier.lease_ends.is_none_or(|at| at > now) {
            return;
        }
        let Renewal { at, mut next } = self.tier.renewal.take().unwrap_or_default();
        let end = at.saturating_add(table.slots_at_once()).min(self.tier.slots.len());
        for (number, slot) in (0..).zip(&mut self.tier.slots).take(end).skip(at) {
            if !slot.holds || !slot.lease.goes_on {
                continue;
            }
            let context = (&self.replica, &self.paths, now);
            self.figures.kernel_hits += credit_slot(slot, number, table, context);
            let lease = lease_of(slot.path, &self.replica, &self.paths)
                .of_stations(&slot.verdict.stations, &self.replica);
            if lease.until > slot.lease.until {
                slot.lease = lease;
                table.extend(number, lease.until);
            }
            if slot.lease.until > now {
                next = next.into_iter().chain([slot.lease.until]).min();
            }
        }
        if end < self.tier.slots.len() {
            self.tier.renewal = Some(Renewal { at: end, next });
            return;
        }
        // Those that end soon are asked together.
        self.tier.lease_ends = next.map(|at| at.max(Nanos(now.0.saturating_add(RENEWAL_NS))));
    }

    /// Credits the counts of the tier's entries from slot `at` on, a piece at a time, so that no
    /// port waits for long; whether there is more to do.
    pub(super) fn collect_counts(
        &mut self,
        at: usize,
        table: &mut dyn KernelTable,
        now: Nanos,
    ) -> bool {
        // What ended comes first, but changes that end something each time do not hold it up.
        let piece = table.slots_at_once();
        let credited = self.credit_some_ended(piece, table, now);
        if !self.tier.ended.is_empty() {
            return true;
        }
        let left = (piece - credited).max(1);
        let end = at.saturating_add(left).min(self.tier.slots.len());
        for (number, slot) in (0..).zip(&mut self.tier.slots).take(end).skip(at) {
            if slot.holds {
                let context = (&self.replica, &self.paths, now);
                self.figures.kernel_hits += credit_slot(slot, number, table, context);
            }
        }
        self.flush = Flush::Kernel(end);
        end < self.tier.slots.len()
    }

    /// Makes entries of what the last batch has proposed, and begins when the tier has rested.
    pub(super) fn update_tier(&mut self, table: &mut dyn KernelTable, now: Nanos) {
        if !self.caches.kernel || self.tier.admission.ports.is_empty() {
            return;
        }
        self.end_moved(table);
        if self.tier.is_running && self.tier.lacks_stations {
            self.stop_tier(table, now);
        }
        let is_credited = self.credit_ended(table, now);
        if !self.tier.is_running || !is_credited {
            // What stays of the proposals is known again when their flows go on.
            for proposal in self.tier.proposals.drain(..) {
                self.paths.release(proposal.path);
            }
            // The pipeline mask is that of the replica only when a batch has passed.
            let rests = now.0 < self.tier.rests_until || self.replica.is_mask_stale;
            if self.tier.is_running || rests || !is_credited {
                return;
            }
            table.start(self.tier.set_masks(&self.pipeline_mask.masks));
            let moves = self.replica.shared().moves();
            moves.watch();
            self.tier.moves.catch_up(moves);
            self.tier.admission.begin(table.slots());
            self.tier.is_running = true;
        }
        for proposal in std::mem::take(&mut self.tier.proposals) {
            self.make_entry(proposal, table, now);
        }
    }

    /// Proposes the decisions of a batch that the kernel may carry out.
    pub(super) fn propose(
        &mut self,
        frames: &[PacketBuf],
        decided: &[Decided],
        in_port: PortNo,
        now: Nanos,
    ) {
        if !self.tier.is_running
            || self.replica.ports.get(in_port).is_none_or(|port| port.looks_at_frames())
            || !self.tier.admission.may_make(in_port, now)
        {
            return;
        }
        for (frames, decided) in frames.chunks(BURST).zip(decided.chunks(BURST)) {
            let results = (&mut self.scratch.shapes[..], &mut self.scratch.digests[..]);
            let with = (&self.tier.masks, &self.keys.lines[0]);
            digest_frames(self.level, frames, with, in_port.0.into(), results, |_| {});
            self.pipeline_mask.hide_long(&mut self.scratch.shapes[..frames.len()]);
            for (at, (frame, decided)) in frames.iter().zip(decided).enumerate() {
                let (shape, digest) = (self.scratch.shapes[at], self.scratch.digests[at]);
                if !shape.is_rare() && self.tier.is_wanted(digest, decided.path, now) {
                    self.propose_one(frame, (shape, digest), *decided, in_port, now);
                }
            }
        }
    }

    fn propose_one(
        &mut self,
        frame: &PacketBuf,
        (shape, digest): (Shape, u128),
        decided: Decided,
        in_port: PortNo,
        now: Nanos,
    ) {
        if self.tier.proposals.len() >= PROPOSALS_MAX {
            return;
        }
        if let Some((verdict, lease)) = self.for_kernel(decided, (frame, shape), in_port, now) {
            let mut bytes = [0; TIER_BYTES];
            let masks = &self.tier.masks.0[shape.index()];
            for ((place, byte), mask) in bytes.iter_mut().zip(frame.bytes()).zip(masks) {
                *place = byte & mask;
            }
            let flow = TierFlow { in_port, shape, bytes };
            self.paths.share(decided.path);
            let path = decided.path;
            self.tier.proposals.push(Proposal { flow, digest, path, verdict, lease });
        } else if self.programs.get(decided.program).is_some_and(|it| it.has_normal()) {
            self.tier.admission.refuse(digest, now);
        }
    }

    /// The kernel's part in a decision, if the kernel can carry it out, and its lease.
    fn for_kernel(
        &mut self,
        decided: Decided,
        (frame, shape): (&PacketBuf, Shape),
        in_port: PortNo,
        now: Nanos,
    ) -> Option<(KernelVerdict, Lease)> {
        if decided.program == ProgramId::WALK || decided.path == PathId::NONE {
            return None;
        }
        let is_known = match self.paths.steps(decided.path) {
            Steps::One(_) => true,
            Steps::Many(steps) => !steps.is_empty() && steps.iter().all(|step| step.len_delta == 0),
        };
        let lease = lease_of(decided.path, &self.replica, &self.paths);
        if !is_known || lease.until <= now {
            return None;
        }
        let (switched, stations) = self.switched(decided, (frame, shape), in_port, now)?;
        let lease = lease.of_stations(&stations, &self.replica);
        if lease.until <= now {
            return None;
        }
        let program = match &switched {
            Some(program) => program.as_program(),
            None => self.programs.get(decided.program)?,
        };
        let (credits, rewrite) = credits_of(program, shape)?;
        let outputs: Vec<PortNo> = credits
            .iter()
            .filter_map(|credit| match credit {
                Credit::Output(port) => Some(*port),
                Credit::Drop(_) | Credit::Group(_) | Credit::Bucket(..) => None,
            })
            .collect();
        let can_send = outputs.len() <= TIER_OUTPUTS_MAX
            && outputs.iter().all(|port| self.tier.outputs.contains(port));
        let verdict = || KernelVerdict {
            credits: credits.into(),
            does: TierVerdict { rewrite, outputs: outputs.into() },
            stations: stations.into(),
        };
        can_send.then(|| (verdict(), lease))
    }

    fn make_entry(&mut self, proposal: Proposal, table: &mut dyn KernelTable, now: Nanos) {
        let Proposal { flow, digest, path, verdict, lease } = proposal;
        let known = self.tier.known.get(&digest).copied();
        // Twice in one batch, or its lease was over.
        let held = known.and_then(|slot| self.tier.slots.get_mut(slot as usize));
        if let (Some(number), Some(slot)) = (known, held.filter(|slot| slot.holds)) {
            let is_longer = slot.path == path && lease.until > slot.lease.until;
            if !is_longer || slot.verdict == verdict {
                if is_longer {
                    slot.lease = lease;
                    table.extend(number, lease.until);
                    self.tier.note_lease(lease);
                }
                return self.paths.release(path);
            }
            // A station was forgotten, and is somewhere else now.
            table.end(&[number]);
            self.tier.end(number);
            self.credit_ended(table, now);
        }
        let slot = known.or_else(|| self.free_slot(table, now));
        // Read while nothing counts there: from `put` on the kernel does.
        let seen = slot.map(|slot| table.counts(slot)).unwrap_or_default();
        let owners = table.keeps_owners().then(|| {
            let mut owners = owners_of(&verdict.credits);
            each_entry(path, &self.paths, |id| owners.push(TierOwner::Entry(id)));
            owners
        });
        let put = |slot: &u32| {
            owners.is_none_or(|owners| table.note_owners(*slot, &owners))
                && table.put(*slot, &flow, &verdict.does, lease.until)
        };
        let Some(slot) = slot.filter(put) else {
            self.figures.kernel_refused += 1;
            self.tier.admission.refuse(digest, now);
            // A slot that another flow had, and no flow has now.
            let made = self.tier.slots.len();
            let left = slot.filter(|slot| known.is_none() && (*slot as usize) < made);
            self.tier.free.extend(left);
            return self.paths.release(path);
        };
        self.tier.serial = self.tier.serial.wrapping_add(1);
        let serial = self.tier.serial;
        let live_at = self.tier.live.len();
        let (is_used, holds) = (true, true);
        let held =
            Slot { flow, digest, path, verdict, lease, serial, live_at, seen, is_used, holds };
        self.tier.note_lease(lease);
        let tier = &mut self.tier;
        self.versions.indices_of_frame(flow.shape, &flow.bytes, |index| {
            tier.list_index(index, (slot, serial));
        });
        for used in &held.verdict.stations {
            tier.list_index(used.index(), (slot, serial));
        }
        match self.tier.slots.get_mut(slot as usize) {
            Some(place) => *place = held,
            None => self.tier.slots.push(held),
        }
        self.tier.known.insert(digest, slot);
        self.tier.admission.note_made();
        self.tier.live.push(slot);
        self.figures.kernel_entries = self.tier.live.len() as u64;
    }

    /// A slot that no flow has: a new one, a dead one, or one that was not used since the hand
    /// passed.
    fn free_slot(&mut self, table: &mut dyn KernelTable, now: Nanos) -> Option<u32> {
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
            let is_live = slot.holds;
            if is_live {
                let context = (&self.replica, &self.paths, now);
                self.figures.kernel_hits += credit_slot(slot, number, table, context);
                if std::mem::take(&mut slot.is_used) {
                    continue;
                }
            }
            table.remove(&slot.flow);
            self.tier.known.remove(&slot.digest);
            if is_live {
                // With what came between the look and the removal: it is the only one that ended.
                self.tier.end(number);
                self.credit_ended(table, now);
                self.figures.kernel_evictions += 1;
            }
            return Some(number);
        }
        None
    }
}

impl Tier {
    /// The entry in a slot holds no more.
    fn end(&mut self, number: u32) {
        let Some(slot) = self.slots.get_mut(number as usize).filter(|slot| slot.holds) else {
            return;
        };
        slot.holds = false;
        let at = slot.live_at;
        self.live.swap_remove(at);
        if let Some(moved) = self.live.get(at)
            && let Some(moved) = self.slots.get_mut(*moved as usize)
        {
            moved.live_at = at;
        }
        self.ended.push(number);
    }

    /// Whether a slot has the entry of this serial still.
    fn has(&self, (slot, serial): (u32, u32)) -> bool {
        let found = self.slots.get(slot as usize);
        found.is_some_and(|slot| slot.serial == serial && slot.holds)
    }

    /// Lists an entry under an index.
    fn list_index(&mut self, index: u16, entry: (u32, u32)) {
        let mut listed = std::mem::take(self.by_index.entry(index).or_default());
        listed.push(entry, |entry| self.has(entry));
        self.by_index.insert(index, listed);
    }

    /// An entry has this lease from now on.
    fn note_lease(&mut self, lease: Lease) {
        if lease.goes_on {
            self.lease_ends = self.lease_ends.into_iter().chain([lease.until]).min();
            if let Some(renewal) = &mut self.renewal {
                renewal.next = renewal.next.into_iter().chain([lease.until]).min();
            }
        }
    }

    /// Whether an entry for a flow is wanted: the flow is worth it and has none, or had one before,
    /// or has one of the same path whose lease is over; and it was not refused a moment ago.
    fn is_wanted(&mut self, digest: u128, path: PathId, now: Nanos) -> bool {
        let is_worth = self.admission.is_worth(digest, now);
        let slot = self.known.get(&digest).and_then(|slot| self.slots.get(*slot as usize));
        let is_wanted = match slot {
            Some(slot) => !slot.holds || slot.path == path && slot.lease.until <= now,
            None => is_worth,
        };
        is_wanted && !self.admission.rests(digest, now)
    }
}

/// The lease of a decision on this path.
fn lease_of(path: PathId, replica: &Replica, paths: &Paths) -> Lease {
    let mut lease = Lease { until: Nanos(u64::MAX), goes_on: false };
    each_entry(path, paths, |id| {
        let Some(entry) = replica.entry(id) else { return lease.until = Nanos(0) };
        let life = entry.life;
        if !life.is_limited() {
            return;
        }
        let half_s = u64::from(life.idle_timeout_s) * 500_000_000;
        let used = replica.used(id);
        let idle = life.idle_at(used.last);
        let idle = idle.map(|at| Nanos(at.0.saturating_sub(half_s)));
        lease.goes_on |= idle.is_some();
        lease.until =
            idle.into_iter().chain(life.hard_at(used.taught)).fold(lease.until, Nanos::min);
    });
    lease
}

fn each_entry(path: PathId, paths: &Paths, mut each: impl FnMut(EntryId)) {
    match paths.steps(path) {
        Steps::One(id) => each(id),
        Steps::Many(steps) => steps.iter().filter_map(|step| step.entry).for_each(each),
    }
}

/// Credits what was counted in a slot since it was last looked at; how many packets.
fn credit_slot(
    slot: &mut Slot,
    number: u32,
    table: &mut dyn KernelTable,
    (replica, paths, now): (&Replica, &Paths, Nanos),
) -> u64 {
    table.take_back_unsent(number, &slot.verdict.does.outputs);
    let counts = table.counts(number);
    let new = counts.since(&slot.seen);
    let (packets, bytes) = (new.packets, new.bytes);
    // They are not counted at once: bytes that come alone wait for their packet.
    if packets == 0 && new.sent_packets == 0 && new.lost == 0 {
        return 0;
    }
    slot.seen = counts;
    slot.is_used = true;
    table.note_credited(number, &counts);
    let in_port = slot.flow.in_port;
    replica.count(Counter::Received, packets);
    if let Some(cell) = replica.port_cell(in_port) {
        cell.rx.add(packets, bytes);
    }
    slot.refresh_stations(counts.last_used, replica);
    if slot.lease.goes_on {
        each_entry(slot.path, paths, |id| {
            if let Some(entry) = replica.entry(id) {
                replica.touch(id, entry.life, counts.last_used);
            }
        });
    }
    flush_counts(replica, paths, Evicted { path: slot.path, packets, bytes });
    for credit in &slot.verdict.credits {
        match credit {
            Credit::Output(port) => {
                replica.count_tx(*port, None, new.sent_packets, new.sent_bytes, now);
            }
            Credit::Drop(reason) => replica.count_drops(*reason, packets),
            Credit::Group(id) => replica.count_group(*id, packets, bytes),
            Credit::Bucket(id, index) => replica.count_bucket(*id, *index, packets, bytes),
        }
    }
    table.credit(in_port, &slot.verdict.does.outputs, &new);
    packets
}
