//! Deciding about a burst: from frames to programs, by the caches or by the tables.
//!
//! Everything is done for all packets of the burst before the next thing is begun: digests, asking
//! for lines, comparing lines, keys, lookups table by table. So the loads of up to 64 packets are
//! on their way at once: a line that is not in the processor's cache costs a tenth of its latency.
//! The counts are exact whichever way was taken; decisions must not depend on it.

use openflow::PortNo;
use packet::{Layout, Meta, PacketBuf, Shape, WORDS, extract};

use super::burst_state::MissedPacket;
use super::cache::{Evicted, tick};
use super::matched::bits;
use super::path::{PathId, PathStep, Steps};
use super::program::{Decided, Guard};
use super::replica::Replica;
use super::versions::Versions;
use super::{CacheLevel, Core};
use crate::fast::classifier::BURST;
use crate::fast::ids::EntryId;
use crate::fast::sys::{digest_frames, digest_words};
use crate::select::mix;
use crate::time::Nanos;

impl Core {
    /// Decides about up to [`BURST`] frames that their port has let in.
    pub(super) fn decide(
        &mut self,
        frames: &[PacketBuf],
        has_offloads: bool,
        in_port: PortNo,
        now: Nanos,
        out: &mut Vec<Decided>,
    ) {
        let frames = &frames[..frames.len().min(BURST)];
        let base = out.len();
        let mut missed = 0_u64;
        if self.caches.frame {
            self.digest_burst(frames, in_port);
            out.resize(base + frames.len(), Decided::WALK);
            let elsewhere = if has_offloads {
                self.probe_primary::<true>(frames, now, &mut out[base..])
            } else {
                self.probe_primary::<false>(frames, now, &mut out[base..])
            };
            if elsewhere != 0 {
                missed = self.probe_alternate(frames, elsewhere, now, &mut out[base..]);
            }
            self.figures.frame(frames.len(), missed);
        } else {
            missed = if frames.len() < BURST { (1 << frames.len()) - 1 } else { u64::MAX };
            for (shape, frame) in self.scratch.shapes.iter_mut().zip(frames) {
                *shape = Shape::of(frame.bytes());
            }
            out.resize(base + frames.len(), Decided::WALK);
        }
        if missed != 0 {
            self.pipeline_mask.hide_long(&mut self.scratch.shapes[..frames.len()]);
            self.decide_missed(frames, missed, in_port, now, &mut out[base..]);
        }
        let kept = if self.programs.has_meters() { frames.len() } else { 1.min(frames.len()) };
        if base == 0 || kept > 1 {
            self.digests.resize(base, 0);
            self.digests.extend_from_slice(&self.scratch.digests[..kept]);
        }
    }

    /// Decides about the frames whose decisions lie where they should and hold as they are, which
    /// is nearly always so; which ones are left. Frames without offloads are counted without a look
    /// for one.
    #[inline]
    fn probe_primary<const HAS_OFFLOADS: bool>(
        &mut self,
        frames: &[PacketBuf],
        now: Nanos,
        out: &mut [Decided],
    ) -> u64 {
        let (epoch, tick) = (self.versions.epoch, tick(now));
        let mut primary = self.cache.primary();
        let mut left = 0_u64;
        let frames = frames.iter().zip(&self.scratch.digests).zip(out).enumerate();
        for (at, ((frame, digest), out)) in frames {
            let (index, mut line) = primary.line(*digest);
            if !line.holds_for(*digest, epoch, now.0) || !line.guard().holds(frame.bytes()) {
                left |= 1 << at;
                continue;
            }
            *out = line.decided();
            self.programs.prefetch(out.program);
            line.use_at(tick);
            let (packets, bytes) =
                if HAS_OFFLOADS { frame.on_wire() } else { (1, frame.len() as u64) };
            if line.count(packets, bytes) {
                primary.mark_dirty(index);
            }
        }
        left
    }

    /// Decides about the frames that [`Core::probe_primary`] left; which of them the cache
    /// knows nothing of. The digests of rare shapes are in no line.
    #[inline(never)]
    fn probe_alternate(
        &mut self,
        frames: &[PacketBuf],
        left: u64,
        now: Nanos,
        out: &mut [Decided],
    ) -> u64 {
        let mut missed = 0_u64;
        for digest in bits(left).filter_map(|at| self.scratch.digests.get(at)) {
            self.cache.prefetch_alternates(*digest);
        }
        for at in bits(left) {
            let (shape, digest) = (self.scratch.shapes[at], self.scratch.digests[at]);
            let found = if shape.is_rare() { None } else { self.cache.find(digest) };
            // Once in each tick it is looked at whether it may lie where it is found at once.
            let moves = found.filter(|it| !self.cache.line(*it).is_used_at(tick(now)));
            match found.and_then(|it| self.hit_frame(it, shape, &frames[at], now)) {
                Some(decided) => {
                    out[at] = decided;
                    if let Some(gone) = moves.and_then(|it| self.cache.promote(it, tick(now))) {
                        flush_counts(&self.replica, &self.paths, gone);
                        self.paths.release(gone.path);
                    }
                }
                None => missed |= 1 << at,
            }
        }
        missed
    }

    /// Computes shapes and digests of frames; prefetches their primary slots.
    fn digest_burst(&mut self, frames: &[PacketBuf], in_port: PortNo) {
        let results = (&mut self.scratch.shapes[..], &mut self.scratch.digests[..]);
        let with = (&self.pipeline_mask.masks, &self.keys.lines[0]);
        let cache = &self.cache;
        let tweak = in_port.0.into();
        digest_frames(self.level, frames, with, tweak, results, |low| cache.prefetch(low));
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

    /// The decision of a line, counting the packet; none when it holds no longer. A packet that its
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
        let Decided { program, path } = line.decided();
        if !line.guard().holds(frame.bytes()) {
            return Some(Decided::WALK);
        }
        self.programs.prefetch(program);
        line.use_at(tick(now));
        let (packets, bytes) = frame.on_wire();
        if line.count(packets, bytes) {
            self.cache.mark_dirty(index);
        }
        if path.is_timed() {
            let until = self.use_timed(path, now);
            self.cache.line(index).set_until(until);
        }
        Some(Decided { program, path })
    }

    /// Marks the path's entries with an idle timeout as used. Returns the earliest expiry among the
    /// path's entries, if none of them is used again.
    fn use_timed(&self, path: PathId, now: Nanos) -> u64 {
        let mut until = u64::MAX;
        let mut each = |id: EntryId| {
            if let Some(entry) = self.replica.entry(id) {
                self.replica.touch(id, entry.life, now);
                until = until.min(self.replica.ends_at(id, entry.life, now));
            }
        };
        match self.paths.steps(path) {
            Steps::One(id) => each(id),
            Steps::Many(steps) => steps.iter().filter_map(|step| step.entry).for_each(each),
        }
        until
    }

    /// Computes the digest of a packet for the key cache, and prefetches its line; `key` is the
    /// number of its key. The digest is kept, for an insertion too.
    pub(super) fn digest_key(&mut self, at: usize, frame: &PacketBuf, key: usize, in_port: PortNo) {
        let shape = self.scratch.shapes[at];
        let fragment = self.replica.keys_have_select_fields
            && Layout::of(frame.bytes()).is_some_and(|layout| layout.fragment);
        let mut words = [0; WORDS + 1];
        let masked = self.pipeline_mask.of_key(&self.scratch.keys[key], &mut words);
        let apart = u64::from(in_port.0) << 16 | u64::from(fragment) << 8 | shape.index() as u64;
        let digest = digest_words(self.level, masked, &self.keys)
            ^ (u128::from(!apart) << 64 | u128::from(mix(apart)));
        self.scratch.digests[at] = digest;
        self.cache.prefetch(digest as u64);
    }

    /// The key cache's decision for a packet, by the number of its key.
    pub(super) fn probe_key(
        &mut self,
        at: usize,
        frame: &PacketBuf,
        key: usize,
        now: Nanos,
    ) -> Option<Decided> {
        let found = self.cache.find(self.scratch.digests[at]);
        let keys = std::mem::take(&mut self.scratch.keys);
        let decided =
            found.and_then(|it| self.hit(it, frame, now, |versions| versions.of_key(&keys[key])));
        self.scratch.keys = keys;
        self.figures.key(decided.is_some());
        decided
    }

    /// Finds or records the program of a missed packet and puts it into the cache; with that,
    /// whether the packet is counted, or will be when it goes step by step.
    pub(super) fn conclude(
        &mut self,
        index: usize,
        frame: &PacketBuf,
        in_port: PortNo,
        now: Nanos,
    ) -> (Decided, bool) {
        const WALK: (Decided, bool) = (Decided::WALK, true);
        if self.scratch.missed[index].is_uncacheable {
            return WALK;
        }
        let at = self.scratch.missed[index].at;
        let shape = self.scratch.shapes[at];
        let Some(program) = self.program(index, frame, shape, (in_port, now)) else { return WALK };
        let digest = self.scratch.digests[at];
        let level = if shape.is_rare() || !self.caches.frame {
            if self.caches.key { Some(CacheLevel::Key) } else { None }
        } else {
            Some(CacheLevel::Frame)
        };
        let fits = self.programs.fits(program, frame.bytes());
        if !fits && self.programs.guard(program).len_max().is_some() {
            // A packet of another length may have another path.
            return WALK;
        }
        let MissedPacket { until, is_timed, .. } = self.scratch.missed[index];
        if fits && until != u64::MAX {
            self.scratch.take_steps(index);
            for id in self.scratch.steps.iter().filter_map(|step| step.entry) {
                if let Some(entry) = self.replica.entry(id) {
                    self.replica.touch(id, entry.life, now);
                }
            }
        }
        let Some(level) = level else {
            // Only a meter needs to know the path of a packet whose counts stand in no line. Its
            // steps stay readable until the batch is over.
            let metered =
                fits && self.programs.get(program).is_some_and(|program| program.has_meter());
            let path = if metered { self.take_path(index, is_timed) } else { None };
            path.inspect(|path| self.paths.release(*path));
            let path = path.unwrap_or(PathId::NONE);
            // What is counted at once is counted as one packet.
            let fits = fits && !frame.has_offload();
            return if fits { self.uncounted(index, Decided { program, path }) } else { WALK };
        };
        let Some(path) = self.take_path(index, is_timed) else { return WALK };
        let versions = match level {
            CacheLevel::Frame => self.versions.of_frame(shape, frame.bytes()),
            CacheLevel::Key => self.key_versions(frame, in_port),
        };
        let Some(slot) = self.take_line(digest, path, now) else {
            self.figures.refused += 1;
            self.paths.release(path);
            let fits = fits && !frame.has_offload();
            return if fits { self.uncounted(index, Decided { program, path }) } else { WALK };
        };
        let mut line = self.cache.line(slot);
        line.decide(Decided { program, path }, self.programs.guard(program));
        line.set_stamp(self.versions.epoch);
        line.set_versions(versions);
        line.set_until(until);
        line.use_at(tick(now));
        if !fits {
            return WALK;
        }
        let (packets, bytes) = frame.on_wire();
        self.cache.count(slot, packets, bytes);
        (Decided { program, path }, true)
    }

    /// A decision that no line counts. What was recorded of it is counted here; what was matched
    /// with others of the burst is counted with them.
    #[inline]
    fn uncounted(&self, index: usize, decided: Decided) -> (Decided, bool) {
        let is_recorded = self.scratch.missed[index].is_recorded;
        if is_recorded {
            self.count_recorded(index);
        }
        (decided, is_recorded)
    }

    #[inline(never)]
    fn count_recorded(&self, index: usize) {
        for step in &self.scratch.missed[index].steps {
            count_step(&self.replica, *step, 1, self.scratch.lens[index].into());
        }
    }

    fn take_path(&mut self, index: usize, is_timed: bool) -> Option<PathId> {
        self.scratch.take_steps(index);
        self.paths.take(&self.scratch.steps, is_timed)
    }

    fn key_versions(&self, frame: &PacketBuf, in_port: PortNo) -> u32 {
        self.versions.of_key(&extract(frame.bytes(), &Meta::port(in_port)))
    }

    /// Keeps what was decided about a packet for all packets of its port: nothing but the port
    /// makes a difference, and nothing is done to them.
    pub(super) fn keep_for_port(&mut self, decided: Decided, in_port: PortNo, now: Nanos) {
        let Some(digest) = self.digests.first().copied() else { return };
        let program = self.programs.get(decided.program);
        if !program.is_some_and(|program| program.is_bare()) || decided.path.is_timed() {
            return;
        }
        let Some(index) = self.cache.find(digest) else {
            return;
        };
        let until = self.cache.line(index).until();
        self.paths.share(decided.path);
        let Some(slot) = self.take_line(port_digest(in_port), decided.path, now) else {
            return self.paths.release(decided.path);
        };
        let mut line = self.cache.line(slot);
        line.decide(decided, Guard::default());
        line.set_stamp(self.versions.epoch);
        line.set_until(until);
        line.use_at(tick(now));
    }

    /// A line for a digest: its own, or one that was free or had to go. The path has a user more.
    fn take_line(&mut self, digest: u128, path: PathId, now: Nanos) -> Option<usize> {
        if let Some(index) = self.cache.find(digest) {
            let mut line = self.cache.line(index);
            let old = line.path();
            if old != path {
                let (packets, bytes) = line.take_counts();
                flush_counts(&self.replica, &self.paths, Evicted { path: old, packets, bytes });
            }
            self.paths.release(old);
            return Some(index);
        }
        let (index, evicted) = self.cache.insert(digest, tick(now))?;
        if let Some(evicted) = evicted {
            flush_counts(&self.replica, &self.paths, evicted);
            self.paths.release(evicted.path);
        }
        Some(index)
    }
}

/// The digest of the decision about all packets of a port.
pub(super) fn port_digest(in_port: PortNo) -> u128 {
    u128::from(in_port.0) << 96 | u128::from(mix(in_port.0.into()))
}

/// Credits counts to the entries on the path.
pub(super) fn flush_counts(replica: &Replica, paths: &super::path::Paths, counts: Evicted) {
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
pub(super) fn count_step(replica: &Replica, step: PathStep, packets: u64, bytes: u64) {
    let bytes = bytes.wrapping_add((i64::from(step.len_delta) as u64).wrapping_mul(packets));
    match step.entry {
        Some(id) => replica.count_hit(step.table, id, packets, bytes),
        None => replica.count_miss(step.table, packets),
    }
}
