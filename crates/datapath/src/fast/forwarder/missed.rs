//! Packets that no cache decides about: from keys to the entries that they meet, table by table.
//!
//! All packets of a burst pass one table before the next one is begun, so that what the first of
//! them waits for is asked for by all. What is found here is a list of entries for each packet and
//! the program that follows from it; nothing is counted and nothing is cached here.

use openflow::{Field, PortNo, TableId};
use packet::{FlowKey, Meta, PacketBuf, Shape, extract};

use super::Forwarder;
use super::decide::{Decided, Scratch};
use super::memo::Facts;
use super::path::Step;
use super::program::ProgramId;
use super::record::{Recorder, hides_what_it_shows};
use super::replica::{Entry, Kind, Replica};
use super::walk::{Changed, change, refusal};
use crate::fast::classifier::BURST;
use crate::time::Nanos;

/// A packet that the tables decide about.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// Its place in the burst.
    pub(super) at: usize,
    pub(super) meta: Meta,
    /// The frame with the changes of actions that were applied, once there were any.
    pub(super) changed: Option<PacketBuf>,
    pub(super) steps: Vec<Step>,
    /// How much longer that is than the frame, in bytes.
    pub(super) longer: i32,
    /// Whether the result holds for this packet only.
    pub(super) is_single: bool,
    /// What decides about its program.
    pub(super) facts: Facts,
    /// Whether some entry has an idle timeout, and when the first of them is over.
    pub(super) is_timed: bool,
    pub(super) until: u64,
}

impl Forwarder {
    /// Decides about the packets that the first cache did not.
    #[cold]
    pub(super) fn decide_missed(
        &mut self,
        frames: &[PacketBuf],
        missed: u64,
        in_port: PortNo,
        now: Nanos,
        out: &mut [Decided],
    ) {
        let mut opened = 0;
        for (at, frame) in frames.iter().enumerate().filter(|(at, _)| missed >> at & 1 != 0) {
            let shape = self.scratch.shapes[at];
            if shape.is_rare() && refusal(self.replica.settings.fragments, frame.bytes()).is_some()
            {
                continue;
            }
            let key = extract(frame.bytes(), &Meta::port(in_port));
            if (shape.is_rare() || !self.caches.exact)
                && let Some(decided) = self.hit_key(at, frame, &key, in_port, now)
            {
                out[at] = decided;
                continue;
            }
            self.open(opened, at, key, in_port);
            opened += 1;
        }
        self.look_up(frames, opened, now);
        for index in 0..opened {
            let at = self.scratch.open[index].at;
            out[at] = self.conclude(index, &frames[at], in_port, now);
        }
    }

    fn open(&mut self, index: usize, at: usize, key: FlowKey, in_port: PortNo) {
        let scratch = &mut self.scratch;
        if scratch.open.len() <= index {
            scratch.open.push(Open::default());
            scratch.keys.push(FlowKey::default());
        }
        let open = &mut scratch.open[index];
        open.at = at;
        open.meta = Meta::port(in_port);
        open.changed = None;
        open.longer = 0;
        open.steps.clear();
        open.is_single = false;
        open.facts.begin(in_port, scratch.shapes[at]);
        open.is_timed = false;
        open.until = u64::MAX;
        scratch.keys[index] = key;
    }

    /// Takes the open packets through the tables, all of them through one table before the next.
    fn look_up(&mut self, frames: &[PacketBuf], opened: usize, now: Nanos) {
        if opened == 0 {
            return;
        }
        let Scratch { open, keys, found, waiting, shapes, .. } = &mut self.scratch;
        let replica = &self.replica;
        let counts_at_once = !self.caches.exact && !self.caches.flow;
        let mut last = 0;
        waiting[0] = if opened < BURST { (1 << opened) - 1 } else { u64::MAX };
        let mut number = 0_u8;
        loop {
            let among = std::mem::take(&mut waiting[usize::from(number)]);
            if let Some(table) = replica.tables().get(usize::from(number)).filter(|_| among != 0) {
                let table_id = TableId(number);
                table.lookup_among(&keys[..opened], among, found);
                // Entries lie as randomly as the packets are: all are asked for before one is
                // read. Of a lookup in 100,000 entries half of the time was waiting here.
                for index in (0..opened).filter(|index| among >> index & 1 != 0) {
                    if let Some(id) = found[index] {
                        replica.prefetch(id, counts_at_once);
                    }
                }
                for index in (0..opened).filter(|index| among >> index & 1 != 0) {
                    let open = &mut open[index];
                    let key = &mut keys[index];
                    let met = found[index].and_then(|id| replica.alive(table_id, key, id, now));
                    let entry = met.map(|(id, _)| id);
                    open.steps.push(Step { table: table_id, entry, longer: open.longer });
                    let Some((_, entry)) = met else {
                        open.facts.missed(table_id);
                        continue;
                    };
                    open.meet(entry, now);
                    let Some(next) = entry.kind.next else { continue };
                    open.pass(&entry.kind, key, &frames[open.at], shapes[open.at], replica);
                    waiting[usize::from(next.0)] |= 1 << index;
                    last = last.max(next.0);
                }
            }
            if number >= last {
                break;
            }
            number += 1;
        }
    }

    /// Whether a meter may end the packet's way before an entry with an idle timeout: that entry is
    /// told of its use when the packet is decided about, which cannot be taken back.
    pub(super) fn may_end_before_idle(&self, index: usize) -> bool {
        let steps = self.scratch.open[index].steps.iter();
        let mut entries = steps.filter_map(|step| self.replica.entry(step.entry?));
        let metered = entries.find(|entry| entry.kind.meter.is_some());
        metered.is_some() && entries.any(|entry| entry.life.idle_timeout_s != 0)
    }

    /// The program of an open packet; none when it goes step by step.
    pub(super) fn program(
        &mut self,
        index: usize,
        frame: &PacketBuf,
        shape: Shape,
        in_port: PortNo,
    ) -> Option<ProgramId> {
        let open = &self.scratch.open[index];
        if let Some(program) = self.memo.get(&open.facts) {
            return Some(program);
        }
        let entries: Vec<&Entry> =
            open.steps.iter().filter_map(|step| self.replica.entry(step.entry?)).collect();
        let miss = open.steps.last().filter(|step| step.entry.is_none()).map(|step| step.table);
        let copy = PacketBuf::from_slice(frame.bytes());
        let recorded = Recorder::new(&self.replica, shape, copy, in_port).record(&entries, miss)?;
        self.figures.recorded += 1;
        let program = self.programs.put(recorded.program);
        if !recorded.is_own && !recorded.is_of_flow {
            self.memo.put(&self.scratch.open[index].facts, program);
        }
        Some(program)
    }
}

impl Open {
    /// Notes what an entry means for the packet's program and for how long that holds.
    #[inline]
    fn meet(&mut self, entry: &Entry, now: Nanos) {
        if !entry.kind.is_plain {
            self.facts.met(entry.kind.id);
            // A meter's act says how many entries were met before it.
            if entry.kind.meter.is_some() {
                self.facts.met(u32::try_from(self.steps.len()).unwrap_or(u32::MAX));
            }
        }
        if entry.life.is_limited() {
            self.is_timed |= entry.life.idle_timeout_s != 0;
            self.until = self.until.min(ends(entry, now));
        }
    }

    /// Takes a packet on to the next table: what the entry's metadata and actions make of it.
    fn pass(
        &mut self,
        kind: &Kind,
        key: &mut FlowKey,
        frame: &PacketBuf,
        shape: Shape,
        replica: &Replica,
    ) {
        if let Some((metadata, mask)) = kind.metadata {
            self.meta.metadata = self.meta.metadata & !mask | metadata & mask;
            key.set(Field::Metadata, self.meta.metadata.into());
        }
        if kind.meter.is_some() && replica.is_dscp_live {
            // A remark may change what the next table sees.
            self.is_single = true;
        }
        if kind.changes.is_empty() {
            return;
        }
        let mut copy = self.changed.take().unwrap_or_else(|| PacketBuf::from_slice(frame.bytes()));
        for action in &kind.changes {
            self.is_single |= hides_what_it_shows(action, shape);
            if let Some(Changed::TtlInvalid) = change(&mut copy, &mut self.meta, action) {
                self.is_single = true;
            }
        }
        let length = |frame: &PacketBuf| i32::try_from(frame.len()).unwrap_or(i32::MAX);
        let longer = length(&copy).saturating_sub(length(frame));
        if longer != self.longer {
            self.longer = longer;
            // Whether such an action fits a rare frame is not in its key.
            self.is_single |= shape.is_rare();
        }
        *key = extract(copy.bytes(), &self.meta);
        self.changed = Some(copy);
    }
}

/// When an entry is over if nothing uses it after now.
pub(super) fn ends(entry: &Entry, now: Nanos) -> u64 {
    let hard = entry.life.hard_at().map_or(u64::MAX, |at| at.0);
    let idle = entry.life.idle_at(now).map_or(u64::MAX, |at| at.0);
    hard.min(idle)
}
