//! Deciding about a burst: from frames to programs, by the caches or by the tables.
//!
//! Everything is done for all packets of the burst before the next thing is begun: digests, asking
//! for lines, comparing lines, keys, lookups table by table. So the loads of up to 64 packets are
//! on their way at once: a line that is not in the processor's cache costs a tenth of its latency.
//! What is counted here is exact whichever way was taken; what is decided must not depend on it.

use openflow::{Field, PortNo, TableId};
use packet::{FlowKey, Layout, Meta, PacketBuf, Shape, WORDS, extract};

use super::cache::{Evicted, tick};
use super::memo::Facts;
use super::path::{PathId, Step, Steps};
use super::program::{Program, ProgramId};
use super::record::{Recorder, hides_what_it_shows};
use super::replica::{Entry, Kind, Replica};
use super::versions::Versions;
use super::walk::{Changed, change, refusal};
use super::{Forwarder, Level};
use crate::fast::classifier::BURST;
use crate::fast::op::EntryId;
use crate::fast::sys::{digest_frames, digest_words};
use crate::select::mix;
use crate::time::Nanos;

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

/// Room for what is found out about a burst.
#[derive(Debug)]
pub(super) struct Scratch {
    shapes: [Shape; BURST],
    digests: [u128; BURST],
    /// The packets that no cache decided about.
    open: Vec<Open>,
    keys: Vec<FlowKey>,
    found: [Option<EntryId>; BURST],
    /// Open packets that wait for each table.
    waiting: Vec<u64>,
}

/// A packet that the tables decide about.
#[derive(Debug, Default)]
struct Open {
    /// Its place in the burst.
    at: usize,
    meta: Meta,
    /// The frame with the changes of actions that were applied, once there were any.
    changed: Option<PacketBuf>,
    steps: Vec<Step>,
    /// How much longer that is than the frame, in bytes.
    longer: i32,
    /// Whether the result holds for this packet only.
    is_single: bool,
    /// What decides about its program.
    facts: Facts,
    /// Whether some entry has an idle timeout, and when the first of them is over.
    is_timed: bool,
    until: u64,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self {
            shapes: [Shape::RARE; BURST],
            digests: [0; BURST],
            open: Vec::new(),
            keys: Vec::new(),
            found: [None; BURST],
            waiting: vec![0; 256],
        }
    }
}

impl Forwarder {
    /// Decides about up to [`BURST`] frames that their port has let in.
    pub(super) fn decide(
        &mut self,
        frames: &[PacketBuf],
        in_port: PortNo,
        now: Nanos,
        out: &mut Vec<Decided>,
    ) {
        let frames = &frames[..frames.len().min(BURST)];
        let base = out.len();
        let mut missed = 0_u64;
        if self.caches.exact {
            self.ask(frames, in_port);
            let mut elsewhere = 0_u64;
            let (epoch, tick) = (self.versions.epoch, tick(now));
            out.resize(base + frames.len(), Decided::WALK);
            for (at, frame) in frames.iter().enumerate() {
                let (shape, digest) = (self.scratch.shapes[at], self.scratch.digests[at]);
                if shape.is_rare() {
                    missed |= 1 << at;
                    continue;
                }
                let Some((index, mut line)) = self.cache.at_home(digest) else {
                    self.cache.prefetch_others(digest);
                    elsewhere |= 1 << at;
                    continue;
                };
                let (program, path) = (line.program(), line.path());
                let is_easy = line.stamp() == epoch && line.until() > now.0 && !path.is_timed();
                if is_easy && self.programs.fits(program, frame.bytes()) {
                    self.programs.prefetch(program);
                    line.use_at(tick);
                    if line.count(1, frame.len() as u64) {
                        self.cache.soil(index);
                    }
                    out[base + at] = Decided { program, path };
                    continue;
                }
                match self.hit_frame(index, shape, frame, now) {
                    Some(decided) => out[base + at] = decided,
                    None => missed |= 1 << at,
                }
            }
            while elsewhere != 0 {
                let at = elsewhere.trailing_zeros() as usize;
                elsewhere &= elsewhere - 1;
                let (shape, digest) = (self.scratch.shapes[at], self.scratch.digests[at]);
                let found = self.cache.find(digest);
                match found.and_then(|it| self.hit_frame(it, shape, &frames[at], now)) {
                    Some(decided) => out[base + at] = decided,
                    None => missed |= 1 << at,
                }
            }
            self.figures.exact(frames.len(), missed);
        } else {
            missed = if frames.len() < BURST { (1 << frames.len()) - 1 } else { u64::MAX };
            for (shape, frame) in self.scratch.shapes.iter_mut().zip(frames) {
                *shape = Shape::of(frame.bytes());
            }
            out.resize(base + frames.len(), Decided::WALK);
        }
        if missed != 0 {
            self.decide_missed(frames, missed, in_port, now, &mut out[base..]);
        }
        if self.programs.has_meters() || base == 0 {
            self.digests.truncate(base);
            self.digests.extend_from_slice(&self.scratch.digests[..frames.len()]);
        }
    }

    /// Finds shapes and digests of frames out, and asks for the lines where they should lie.
    fn ask(&mut self, frames: &[PacketBuf], in_port: PortNo) {
        let results = (&mut self.scratch.shapes[..], &mut self.scratch.digests[..]);
        let (masks, keys) = (&self.lives.masks, &self.keys.lines[0]);
        digest_frames(self.level, frames, masks, keys, in_port.0.into(), results);
        for digest in &self.scratch.digests[..frames.len()] {
            self.cache.prefetch(*digest);
        }
    }

    fn hit_frame(
        &mut self,
        index: usize,
        shape: Shape,
        frame: &PacketBuf,
        now: Nanos,
    ) -> Option<Decided> {
        self.hit(index, frame, now, |versions| versions.of_frame(shape, frame.bytes()))
    }

    /// What a line says, counting the packet; none when it holds no longer. A packet that its
    /// program does not fit goes step by step and is counted there.
    fn hit(
        &mut self,
        index: usize,
        frame: &PacketBuf,
        now: Nanos,
        versions: impl FnOnce(&Versions) -> u32,
    ) -> Option<Decided> {
        let epoch = self.versions.epoch;
        let mut line = self.cache.line(index);
        if line.stamp() != epoch {
            let holds = self.versions.may_hold(line.stamp());
            if !holds || line.versions() != versions(&self.versions) {
                return None;
            }
            line.set_stamp(epoch);
        }
        if line.until() <= now.0 {
            return None;
        }
        let (program, path) = (line.program(), line.path());
        if !self.programs.fits(program, frame.bytes()) {
            return Some(Decided::WALK);
        }
        self.programs.prefetch(program);
        line.use_at(tick(now));
        if line.count(1, frame.len() as u64) {
            self.cache.soil(index);
        }
        if path.is_timed() {
            let until = self.use_timed(path, now);
            self.cache.line(index).set_until(until);
        }
        Some(Decided { program, path })
    }

    /// Tells entries with an idle timeout that they are in use; when the first of the path's
    /// entries is over if nothing uses it any more.
    fn use_timed(&self, path: PathId, now: Nanos) -> u64 {
        let mut until = u64::MAX;
        let mut each = |id: EntryId| {
            if let Some(entry) = self.replica.entry(id) {
                self.replica.touch(id, entry.life, now);
                until = until.min(ends(entry, now));
            }
        };
        match self.paths.steps(path) {
            Steps::One(id) => each(id),
            Steps::Many(steps) => steps.iter().filter_map(|step| step.entry).for_each(each),
        }
        until
    }

    /// Decides about the packets that the first cache did not.
    #[cold]
    fn decide_missed(
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

    /// What the second cache has for a key. The digest is kept for an insertion.
    fn hit_key(
        &mut self,
        at: usize,
        frame: &PacketBuf,
        key: &FlowKey,
        in_port: PortNo,
        now: Nanos,
    ) -> Option<Decided> {
        if !self.caches.flow {
            return None;
        }
        let shape = self.scratch.shapes[at];
        let fragment = self.replica.is_select_live
            && Layout::of(frame.bytes()).is_some_and(|layout| layout.fragment);
        let mut words = [0; WORDS + 1];
        let live = self.lives.of_key(key, &mut words);
        let apart = u64::from(in_port.0) << 16 | u64::from(fragment) << 8 | shape.index() as u64;
        let digest = digest_words(self.level, live, &self.keys)
            ^ (u128::from(!apart) << 64 | u128::from(mix(apart)));
        self.scratch.digests[at] = digest;
        let found = self.cache.find(digest);
        let decided =
            found.and_then(|it| self.hit(it, frame, now, |versions| versions.of_key(key)));
        self.figures.flow(decided.is_some());
        decided
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
    fn may_end_before_idle(&self, index: usize) -> bool {
        let steps = self.scratch.open[index].steps.iter();
        let mut entries = steps.filter_map(|step| self.replica.entry(step.entry?));
        let metered = entries.find(|entry| entry.kind.meter.is_some());
        metered.is_some() && entries.any(|entry| entry.life.idle_timeout_s != 0)
    }

    /// Finds or records the program of an open packet, puts it into the cache and counts it.
    fn conclude(
        &mut self,
        index: usize,
        frame: &PacketBuf,
        in_port: PortNo,
        now: Nanos,
    ) -> Decided {
        if self.scratch.open[index].is_single || self.may_end_before_idle(index) {
            return Decided::WALK;
        }
        let at = self.scratch.open[index].at;
        let shape = self.scratch.shapes[at];
        let Some(program) = self.program(index, frame, shape, in_port) else {
            return Decided::WALK;
        };
        let digest = self.scratch.digests[at];
        let level = if shape.is_rare() || !self.caches.exact {
            if self.caches.flow { Some(Level::Flow) } else { None }
        } else {
            Some(Level::Exact)
        };
        let fits = self.programs.fits(program, frame.bytes());
        let Open { until, is_timed, .. } = self.scratch.open[index];
        if fits && until != u64::MAX {
            for id in self.scratch.open[index].steps.iter().filter_map(|step| step.entry) {
                if let Some(entry) = self.replica.entry(id) {
                    self.replica.touch(id, entry.life, now);
                }
            }
        }
        let Some(level) = level else {
            // Only a meter needs to know the path of a packet whose counts stand in no line.
            let metered = self.programs.get(program).is_some_and(Program::has_meter);
            let path = if metered { self.take_path(index, is_timed) } else { None };
            return self.count_steps(index, path, fits, program, frame);
        };
        let Some(path) = self.take_path(index, is_timed) else { return Decided::WALK };
        let versions = match level {
            Level::Exact => self.versions.of_frame(shape, frame.bytes()),
            Level::Flow => self.key_versions(frame, in_port),
        };
        let Some(place) = self.place(digest, path, now) else {
            self.figures.refused += 1;
            return self.count_steps(index, Some(path), fits, program, frame);
        };
        let mut line = self.cache.line(place);
        line.decide(program, path);
        line.set_stamp(self.versions.epoch);
        line.set_versions(versions);
        line.set_until(until);
        line.use_at(tick(now));
        if !fits {
            return Decided::WALK;
        }
        self.cache.count(place, 1, frame.len() as u64);
        Decided { program, path }
    }

    fn take_path(&mut self, index: usize, is_timed: bool) -> Option<PathId> {
        self.paths.take(&self.scratch.open[index].steps, is_timed)
    }

    fn key_versions(&self, frame: &PacketBuf, in_port: PortNo) -> u32 {
        self.versions.of_key(&extract(frame.bytes(), &Meta::port(in_port)))
    }

    /// Keeps what was decided about a packet for all packets of its port: nothing but the port
    /// makes a difference, and nothing is done to them.
    pub(super) fn keep_for_port(&mut self, decided: Decided, in_port: PortNo, now: Nanos) {
        let Some(digest) = self.digests.first().copied() else { return };
        let program = self.programs.get(decided.program);
        if !program.is_some_and(Program::is_bare) || decided.path.is_timed() {
            return;
        }
        let Some(index) = self.cache.find(digest) else {
            return;
        };
        let until = self.cache.line(index).until();
        self.paths.share(decided.path);
        let Some(place) = self.place(port_digest(in_port), decided.path, now) else {
            return self.paths.give(decided.path);
        };
        let mut line = self.cache.line(place);
        line.decide(decided.program, decided.path);
        line.set_stamp(self.versions.epoch);
        line.set_until(until);
        line.use_at(tick(now));
    }

    /// A line for a digest: its own, or one that was free or had to go. The path has a user more.
    fn place(&mut self, digest: u128, path: PathId, now: Nanos) -> Option<usize> {
        if let Some(index) = self.cache.find(digest) {
            let mut line = self.cache.line(index);
            let old = line.path();
            if old != path {
                let (packets, bytes) = line.take_counts();
                fold(&self.replica, &self.paths, Evicted { path: old, packets, bytes });
            }
            self.paths.give(old);
            return Some(index);
        }
        let (index, evicted) = self.cache.insert(digest, tick(now))?;
        if let Some(evicted) = evicted {
            fold(&self.replica, &self.paths, evicted);
            self.paths.give(evicted.path);
        }
        Some(index)
    }

    /// Counts an open packet at its entries, as no line does.
    fn count_steps(
        &mut self,
        index: usize,
        path: Option<PathId>,
        fits: bool,
        program: ProgramId,
        frame: &PacketBuf,
    ) -> Decided {
        if let Some(path) = path {
            // Its steps stay readable until the batch is over.
            self.paths.give(path);
        }
        if !fits {
            return Decided::WALK;
        }
        let path = path.unwrap_or(PathId::NONE);
        for step in &self.scratch.open[index].steps {
            count_step(&self.replica, *step, 1, frame.len() as u64);
        }
        Decided { program, path }
    }

    /// The program of an open packet; none when it goes step by step.
    fn program(
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

/// What the place of a decision about all packets of a port is called.
pub(super) fn port_digest(in_port: PortNo) -> u128 {
    u128::from(in_port.0) << 96 | u128::from(mix(in_port.0.into()))
}

/// When an entry is over if nothing uses it after now.
fn ends(entry: &Entry, now: Nanos) -> u64 {
    let hard = entry.life.hard_at().map_or(u64::MAX, |at| at.0);
    let idle = entry.life.idle_at(now).map_or(u64::MAX, |at| at.0);
    hard.min(idle)
}

/// Gives counts to the entries whose they are.
pub(super) fn fold(replica: &Replica, paths: &super::path::Paths, counts: Evicted) {
    let Evicted { path, packets, bytes } = counts;
    if packets == 0 {
        return;
    }
    match paths.steps(path) {
        Steps::One(id) => {
            if let Some(entry) = replica.entry(id) {
                replica.count_hit(entry.table, id, packets, bytes);
            }
        }
        Steps::Many(steps) => {
            for step in steps {
                count_step(replica, *step, packets, bytes);
            }
        }
    }
}

/// Counts packets in one table, with the bytes that they came with.
pub(super) fn count_step(replica: &Replica, step: Step, packets: u64, bytes: u64) {
    let bytes = bytes.wrapping_add((i64::from(step.longer) as u64).wrapping_mul(packets));
    match step.entry {
        Some(id) => replica.count_hit(step.table, id, packets, bytes),
        None => replica.count_miss(step.table, packets),
    }
}
