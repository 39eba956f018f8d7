//! Cache misses: from flow keys to the entries that they match, table by table.
//!
//! All packets of a burst pass one table before the next one is begun, so that what the first of
//! them waits for is asked for by all. What is found here is a list of entries for each packet and
//! the program that follows from it; nothing is counted and nothing is cached here.

use openflow::{Field, PortNo, TableId};
use packet::{FlowKey, Meta, PacketBuf, Shape, extract, extract_into};

use super::Core;
use super::burst_state::{MissedPacket, Scratch};
use super::compile::{compile, record, record_path};
use super::matched::{MatchedRows, NONE, bits};
use super::program::{Decided, ProgramId};
use super::replica::{Found, InstructionSummary, PackedSummary, Replica, ReplicaEntry};
use crate::fast::classifier::BURST;
use crate::fast::ids::EntryId;
use crate::fast::interpreter::{Executed, MAX_ACTIONS, execute, refusal, reveals_hidden};
use crate::fast::op::Life;
use crate::time::Nanos;

impl Core {
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
        let asked = self.ask_by_key(frames, missed, in_port);
        let mut count = 0;
        for index in 0..asked {
            let at = usize::from(self.scratch.asked[index]);
            let frame = &frames[at];
            if self.goes_by_key(at)
                && let Some(decided) = self.probe_key(at, frame, index, now)
            {
                out[at] = decided;
                continue;
            }
            let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
            // A key is large, and mostly stands where it should.
            if count != index {
                self.scratch.keys.swap(count, index);
            }
            self.begin(count, (at, len), in_port);
            count += 1;
        }
        self.look_up(frames, count, now);
        let mut counted = 0;
        for index in 0..count {
            let at = self.scratch.missed[index].at;
            let (decided, is_counted) = self.conclude(index, &frames[at], in_port, now);
            out[at] = decided;
            counted |= u64::from(!is_counted) << index;
        }
        if counted != 0 {
            self.scratch.matched.count(&self.replica, counted, &self.scratch.lens);
        }
    }

    /// Whether the key cache may have a decision about a packet.
    fn goes_by_key(&self, at: usize) -> bool {
        self.caches.key && (self.scratch.shapes[at].is_rare() || !self.caches.frame)
    }

    /// Computes the keys of packets, and prefetches the primary slots of those that the key cache
    /// may know; the number of keys. Packets that the settings refuse go step by step.
    fn ask_by_key(&mut self, frames: &[PacketBuf], missed: u64, in_port: PortNo) -> usize {
        let fragments = self.replica.settings.fragments;
        let meta = Meta::port(in_port);
        let mut asked = 0;
        for at in bits(missed) {
            let Some(frame) = frames.get(at) else { break };
            if self.scratch.shapes[at].is_rare() && refusal(fragments, frame.bytes()).is_some() {
                continue;
            }
            if self.scratch.keys.len() <= asked {
                self.scratch.keys.push(FlowKey::default());
            }
            extract_into(&mut self.scratch.keys[asked], frame.bytes(), &meta);
            if self.goes_by_key(at) {
                self.digest_key(at, frame, asked, in_port);
            }
            self.scratch.asked[asked] = at as u8;
            asked += 1;
        }
        asked
    }

    fn begin(&mut self, index: usize, (at, len): (usize, u32), in_port: PortNo) {
        let scratch = &mut self.scratch;
        if scratch.missed.len() <= index {
            scratch.missed.push(MissedPacket::default());
        }
        let packet = &mut scratch.missed[index];
        packet.at = at;
        scratch.lens[index] = len;
        packet.meta = Meta::port(in_port);
        packet.changed = None;
        packet.len_delta = 0;
        packet.weight = 0;
        packet.is_metered = false;
        packet.is_uncacheable = false;
        packet.program_key.begin(in_port, scratch.shapes[at]);
        packet.is_recorded = false;
        packet.is_timed = false;
        packet.until = u64::MAX;
    }

    /// Takes the missed packets through the tables, all of them through one table before the next.
    fn look_up(&mut self, frames: &[PacketBuf], count: usize, now: Nanos) {
        let Scratch { missed, keys, found, waiting, shapes, matched, .. } = &mut self.scratch;
        matched.clear();
        if count == 0 {
            return;
        }
        let (missed, keys) = (&mut missed[..count], &mut keys[..count]);
        waiting[0] = u64::MAX >> (BURST - count);
        let replica = &self.replica;
        let mut pass =
            Pass { replica, frames, shapes, now, missed, keys, waiting, resized: 0, last: 0 };
        let mut number = 0_u8;
        loop {
            let among = std::mem::take(&mut pass.waiting[usize::from(number)]);
            if among != 0 {
                let table = replica.entries_of(TableId(number));
                if replica.is_conjunctive(TableId(number)) {
                    // Most lookups would be done again, so each packet is left to its search.
                    bits(among).for_each(|index| found[index] = None);
                } else {
                    table.lookup_among(pass.keys, among, found);
                }
                let lookups = &mut self.figures.lookups[table.template() as usize];
                *lookups += u64::from(among.count_ones());
                pass.table(matched, TableId(number), among, found);
            }
            if number >= pass.last {
                break;
            }
            number += 1;
        }
    }

    /// The program of a missed packet; none when it goes step by step.
    #[inline]
    pub(super) fn program(
        &mut self,
        index: usize,
        frame: &PacketBuf,
        shape: Shape,
        (in_port, now): (PortNo, Nanos),
    ) -> Option<ProgramId> {
        let packet = &self.scratch.missed[index];
        if packet.is_recorded {
            return self.record(index, frame, shape, (in_port, now));
        }
        let known = self.program_cache.get(&packet.program_key);
        known.or_else(|| self.compile(index, frame, shape, (in_port, now)))
    }

    /// Compiles the program of a missed packet.
    #[cold]
    fn compile(
        &mut self,
        index: usize,
        frame: &PacketBuf,
        shape: Shape,
        (in_port, now): (PortNo, Nanos),
    ) -> Option<ProgramId> {
        self.scratch.take_steps(index);
        let steps = &self.scratch.steps;
        let entries: Vec<Option<&ReplicaEntry>> =
            steps.iter().map(|step| self.replica.entry(step.entry?)).collect();
        let copy = PacketBuf::from_slice(frame.bytes());
        let Some(compiled) = compile(&self.replica, shape, copy, in_port, &entries) else {
            // A bucket may resubmit.
            let may_resubmit = self.replica.has_resubmits();
            return may_resubmit.then(|| self.record(index, frame, shape, (in_port, now)))?;
        };
        self.figures.compiled += 1;
        let program = self.programs.put(compiled.program);
        if !compiled.is_entry_specific && !compiled.is_flow_specific {
            self.program_cache.put(&self.scratch.missed[index].program_key, program);
        }
        Some(program)
    }

    /// The program of a missed packet whose entries are found while their actions run; none when it
    /// goes step by step. Its path is kept with it.
    #[inline(never)]
    fn record(
        &mut self,
        index: usize,
        frame: &PacketBuf,
        shape: Shape,
        (in_port, now): (PortNo, Nanos),
    ) -> Option<ProgramId> {
        let (way, from) = (&mut self.scratch.recording, (in_port, now));
        let mut program = None;
        if record_path(&self.replica, shape, frame, from, way) {
            program = self.program_cache.get(&way.program_key);
        }
        if program.is_none() {
            let compiled = record(&self.replica, shape, frame, from, way)?;
            self.figures.compiled += 1;
            let is_shared = !compiled.is_entry_specific && !compiled.is_flow_specific;
            let made = self.programs.put(compiled.program);
            if is_shared {
                self.program_cache.put(&way.program_key, made);
            }
            program = Some(made);
        }
        let packet = &mut self.scratch.missed[index];
        (packet.is_recorded, packet.is_timed, packet.until) = (true, way.is_timed, way.until);
        std::mem::swap(&mut packet.steps, &mut way.steps);
        program
    }
}

/// The packets of a burst on their way through the tables.
struct Pass<'a> {
    replica: &'a Replica,
    frames: &'a [PacketBuf],
    shapes: &'a [Shape],
    now: Nanos,
    missed: &'a mut [MissedPacket],
    keys: &'a mut [FlowKey],
    /// The packets that wait for each table, and the last table that some wait for.
    waiting: &'a mut [u64],
    last: u8,
    /// The packets whose length actions have changed.
    resized: u64,
}

impl<'a> Pass<'a> {
    /// Takes packets on from one table, where each has found its entry.
    fn table(
        &mut self,
        matched: &mut MatchedRows,
        table: TableId,
        among: u64,
        found: &[Option<EntryId>; BURST],
    ) {
        let row = matched.row(table, among);
        // What is to be known of entries lies as randomly as the packets are: all is asked for
        // before anything is read.
        for index in bits(among) {
            row.ids[index] = found[index].map_or(NONE, |id| id.0);
            self.replica.prefetch_packed(row.ids[index]);
        }
        for index in bits(among & self.resized) {
            row.set_len_delta(index, self.missed[index].len_delta);
        }
        let (mut next, mut going, mut others) = (0_u8, 0_u64, 0_u64);
        for index in bits(among) {
            match self.replica.packed(row.ids[index]) {
                PackedSummary::Goto(table) => {
                    if table.0 != next {
                        self.go(next, going);
                        (next, going) = (table.0, 0);
                    }
                    going |= 1 << index;
                }
                PackedSummary::Summary(..) => others |= 1 << index,
                PackedSummary::Parts(_) | PackedSummary::Look => {
                    self.replica.prefetch(row.ids[index]);
                    others |= 1 << index;
                }
            }
        }
        self.go(next, going);
        for index in bits(others) {
            if let Some(next) = self.note_match(matched, table, index) {
                self.go(next.0, 1 << index);
            }
        }
    }

    #[inline]
    fn go(&mut self, table: u8, packets: u64) {
        self.waiting[usize::from(table)] |= packets;
        self.last = self.last.max(table);
    }

    /// The summary of an entry that must be looked at, and whether it is a table-miss entry.
    #[inline(never)]
    fn look(
        &mut self,
        matched: &mut MatchedRows,
        table: TableId,
        index: usize,
    ) -> Option<(&'a InstructionSummary, bool)> {
        let (replica, id) = (self.replica, matched.last(index));
        let found = match replica.is_conjunctive(table) {
            true => replica.search(table, &mut self.keys[index], self.now),
            false => replica.alive(table, &mut self.keys[index], EntryId(*id), self.now),
        };
        *id = found.as_ref().map_or(NONE, |found| found.id.0);
        let Found { id, entry, is_lasting } = found?;
        let packet = &mut self.missed[index];
        packet.note_lifetime(entry.life, replica.ends_at(id, entry.life, self.now));
        packet.is_uncacheable |= !is_lasting;
        Some((&entry.summary, entry.origin.is_miss))
    }

    /// Does with one packet what an entry asks for that does more than lead on; the next table.
    fn note_match(
        &mut self,
        matched: &mut MatchedRows,
        table: TableId,
        index: usize,
    ) -> Option<TableId> {
        let known = match self.replica.packed(*matched.last(index)) {
            PackedSummary::Summary(summary, is_miss) => Some((summary, is_miss)),
            PackedSummary::Goto(_) | PackedSummary::Parts(_) | PackedSummary::Look => {
                self.look(matched, table, index)
            }
        };
        let packet = &mut self.missed[index];
        let Some((summary, is_miss)) = known else {
            packet.program_key.missed(table);
            return None;
        };
        if is_miss && !summary.is_plain {
            packet.program_key.table_miss();
        }
        if summary.is_recorded_in(table) {
            packet.is_recorded = true;
            return None;
        }
        packet.note_summary(summary, || matched.tables(index));
        let next = summary.next?;
        packet.weight = packet.weight.saturating_add(summary.weight);
        if packet.weight > MAX_ACTIONS {
            // It is dropped for that, which is for a walk to do.
            packet.is_uncacheable = true;
            return None;
        }
        let (frame, shape) = (&self.frames[packet.at], self.shapes[packet.at]);
        packet.pass(summary, &mut self.keys[index], frame, shape, self.replica);
        if packet.len_delta != 0 {
            self.resized |= 1 << index;
        }
        Some(next)
    }
}

impl MissedPacket {
    /// Notes what an entry means for the packet's program; `tables` counts the entries so far.
    #[inline]
    fn note_summary(&mut self, summary: &InstructionSummary, tables: impl FnOnce() -> usize) {
        if !summary.is_plain {
            self.program_key.push(summary.id);
            // A meter's micro-op says how many entries were matched before it.
            if summary.meter.is_some() {
                self.program_key.push(u32::try_from(tables()).unwrap_or(u32::MAX));
                self.is_metered = true;
            }
        }
    }

    /// Notes for how long an entry lives.
    fn note_lifetime(&mut self, life: Life, ends_at: u64) {
        if life.is_limited() {
            self.is_timed |= life.idle_timeout_s != 0;
            self.until = self.until.min(ends_at);
            // A meter may drop the packet before it reaches this entry. A cached decision would
            // already have marked the entry as used, which cannot be undone.
            self.is_uncacheable |= self.is_metered && life.idle_timeout_s != 0;
        }
    }

    /// Takes a packet on to the next table: what the entry's metadata and actions make of it.
    fn pass(
        &mut self,
        summary: &InstructionSummary,
        key: &mut FlowKey,
        frame: &PacketBuf,
        shape: Shape,
        replica: &Replica,
    ) {
        if summary.meter.is_some() && replica.is_dscp_matched {
            // A remark may change what the next table sees.
            self.is_uncacheable = true;
        }
        if !summary.changes.is_empty() {
            if let Some((values, mask)) = &summary.register_writes {
                self.meta.registers.write(values, mask);
                key.set_registers(&self.meta.registers);
            } else {
                self.rewrite(summary, key, frame, shape);
            }
        }
        // After the actions (clause 5.5), which may write it, too.
        if let Some((metadata, mask)) = summary.metadata {
            self.meta.metadata = self.meta.metadata & !mask | metadata & mask;
            key.set(Field::Metadata, self.meta.metadata.into());
        }
    }

    /// Carries out the entry's changes on a copy of the frame.
    #[inline(never)]
    fn rewrite(
        &mut self,
        summary: &InstructionSummary,
        key: &mut FlowKey,
        frame: &PacketBuf,
        shape: Shape,
    ) {
        let mut copy = self.changed.take().unwrap_or_else(|| PacketBuf::from_slice(frame.bytes()));
        for action in &summary.changes {
            self.is_uncacheable |= reveals_hidden(action, shape);
            let len = copy.len();
            let executed = execute(&mut copy, &mut self.meta, action);
            self.is_uncacheable |= executed == Executed::TtlInvalid;
            let fits = executed != Executed::Rewritten(false);
            // Whether an action fits a rare frame, and so makes it longer, is not in its key.
            self.is_uncacheable |= shape.is_rare() && (!fits || copy.len() != len);
        }
        let length = |frame: &PacketBuf| i32::try_from(frame.len()).unwrap_or(i32::MAX);
        self.len_delta = length(&copy).saturating_sub(length(frame));
        *key = extract(copy.bytes(), &self.meta);
        self.changed = Some(copy);
    }
}
