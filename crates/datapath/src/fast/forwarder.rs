//! The forwarder of packets: one for each shard, over a replica of its own.
//!
//! A forwarder applies ops between batches and takes batches of frames from one port to their
//! verdicts. It allocates, locks and waits for nothing on the usual packet's way. What it does must
//! be what the reference does, whatever is cached or compiled.
//!
//! [`Forwarder`] (in `tiers`) is generic over the kernel's table that it owns. The stages that a
//! batch passes do not know that type: they are of [`Core`], so that those without a [`Sink`] are
//! compiled once, in this crate.

mod bundle;
mod bundle_progress;
mod burst_state;
mod cache;
mod compile;
mod decide;
pub(in crate::fast) mod digest;
mod emit;
mod execute;
mod figures;
mod finish;
mod fuse;
mod header_rewrite;
mod kernel_rewrite;
mod matched;
mod missed;
mod packet_out;
mod path;
mod pipeline_mask;
mod program;
mod program_cache;
mod reassemble;
mod replica;
mod resume;
mod tier;
mod tiers;
mod versions;

use std::sync::Arc;

use openflow::message::PacketIn;
use openflow::{Field, PortNo, QueueId};
use packet::PacketBuf;
use packet::header::ethernet;

pub use self::figures::{ForwarderFigures, ForwarderStage};
pub(in crate::fast) use self::packet_out::Verdicts;
pub use self::tier::{
    KeptCounts, KernelTable, NoKernel, TIER_BYTES, TIER_OUTPUTS_MAX, TierFlow, TierOwner,
    TierSlotCounts, TierVerdict,
};
pub use self::tiers::{Applied, Forwarder};

use self::bundle::BundleStep;
use self::burst_state::Scratch;
use self::cache::Cache;
use self::decide::flush_counts;
use self::digest::Keys;
use self::execute::StagedFrames;
use self::path::Paths;
use self::pipeline_mask::PipelineMask;
use self::program::{Decided, Programs, Terminal};
use self::program_cache::ProgramCache;
use self::replica::Replica;
use self::tier::Tier;
use self::versions::Versions;
use super::classifier::BURST;
use super::ids::Ticket;
use super::op::{Change, Op};
use super::shared::Shared;
use super::sys;
use crate::config::{DatapathConfig, Fragments};
use crate::counter::{Counter, DropReason};
use crate::time::Nanos;
use crate::verdict::Out;

/// Destination of a forwarder's verdicts. Every buffer that a forwarder is given or takes comes
/// back by one of these calls.
pub trait Sink {
    /// A frame leaves by a port that exists, is up and may send; never a reserved one but
    /// [`PortNo::LOCAL`].
    fn output(&mut self, port: PortNo, queue: Option<QueueId>, frame: PacketBuf);

    /// All of these frames leave by one port, in their order; the list is empty afterwards. None is
    /// shorter than `shortest` bytes.
    fn output_all(
        &mut self,
        port: PortNo,
        queue: Option<QueueId>,
        frames: &mut Vec<PacketBuf>,
        _shortest: usize,
    ) {
        for frame in frames.drain(..) {
            self.output(port, queue, frame);
        }
    }

    /// A packet goes to the controller; see [`crate::Verdict::PacketIn`].
    fn packet_in(&mut self, message: PacketIn, max_len: u16);

    /// A packet or a copy goes nowhere. Its buffer comes by [`Sink::done`].
    fn dropped(&mut self, reason: DropReason);

    /// A fragment is kept until the others of its packet have come. Its buffer comes by
    /// [`Sink::done`].
    fn held(&mut self) {}

    /// A buffer is no longer needed.
    fn done(&mut self, frame: PacketBuf);

    /// All of these buffers are no longer needed; the list is empty afterwards.
    fn done_all(&mut self, frames: &mut Vec<PacketBuf>) {
        for frame in frames.drain(..) {
            self.done(frame);
        }
    }

    /// A buffer for a copy; what is in it does not matter.
    fn spare(&mut self) -> PacketBuf;

    /// The same for a super-frame ([`packet::Offload`]).
    fn spare_large(&mut self) -> PacketBuf {
        self.spare()
    }
}

/// The caches that are in use. Switching one off changes nothing but speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// The frame cache: from the un-wildcarded bytes of usual frames to decisions.
    pub frame: bool,
    /// The key cache: from the un-wildcarded fields of any frame to decisions.
    pub key: bool,
    /// The kernel tier: decisions of the frame cache that are carried out in the kernel. Without a
    /// [`KernelTable`] it changes nothing.
    pub kernel: bool,
}

impl Default for Caches {
    fn default() -> Self {
        Self { frame: true, key: true, kernel: false }
    }
}

/// The caches that a decision may lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CacheLevel {
    Frame,
    Key,
}

/// Lines of the cache at first, and at most.
const LINES: usize = 1 << 16;
const LINES_MAX: usize = 1 << 22;

/// The stages of one batch in this number are measured.
const MEASURED: u64 = 16;

/// Progress of a flush of counts to the shared counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flush {
    Idle,
    /// Counts of the kernel tier's slots from this one on are still to be credited.
    Kernel(usize),
    /// Those that are kept in the cache are.
    Cache,
}

/// The stages of a forwarder, and its side of the kernel tier.
#[derive(Debug)]
struct Core {
    replica: Replica,
    flush: Flush,
    /// The last flush that control requested, until it begins.
    flush_asked: Option<Ticket>,
    /// The flush under way.
    flush_begun: Option<Ticket>,
    versions: Versions,
    pipeline_mask: PipelineMask,
    keys: Keys,
    level: sys::SimdLevel,
    caches: Caches,
    cache: Cache,
    paths: Paths,
    programs: Programs,
    program_cache: ProgramCache,
    tier: Tier,
    scratch: Scratch,
    decided: Vec<Decided>,
    /// Verdicts on the packet-outs of bundles.
    sent: Out,
    /// Digests of the packets of a batch, where they may be needed once more.
    digests: Vec<u128>,
    stages: Vec<StagedFrames>,
    figures: ForwarderFigures,
    /// Nanoseconds, while stages are measured.
    clock: Option<fn() -> u64>,
}

impl Core {
    fn new(config: &DatapathConfig, shared: Arc<Shared>, number: usize, seed: u64) -> Self {
        Self {
            replica: Replica::new(config, shared, number, seed),
            flush: Flush::Idle,
            flush_asked: None,
            flush_begun: None,
            versions: Versions::new(),
            pipeline_mask: PipelineMask::new(),
            keys: Keys::new(seed),
            level: sys::SimdLevel::best(),
            caches: Caches::default(),
            cache: Cache::new(LINES, LINES_MAX),
            paths: Paths::default(),
            programs: Programs::new(),
            program_cache: ProgramCache::default(),
            tier: Tier::default(),
            scratch: Scratch::new(),
            decided: Vec::new(),
            sent: Out::new(),
            digests: Vec::new(),
            stages: Vec::new(),
            figures: ForwarderFigures::default(),
            clock: None,
        }
    }

    /// Applies an op while the kernel decides nothing; a bundle in pieces.
    fn apply(&mut self, op: Op) -> Applied {
        match &op.0 {
            Change::Flush(ticket) => self.flush_asked = Some(*ticket),
            Change::Bundle(ops) => {
                let step = self.advance(ops);
                if step == BundleStep::Show {
                    self.replica.show(ops, &mut self.versions);
                }
                return self.applied(op, step);
            }
            Change::PacketOut(packet_out, at) => self.send_of_bundle(packet_out, *at),
            Change::Insert(_)
            | Change::Exchange { .. }
            | Change::Replace { .. }
            | Change::Remove { .. }
            | Change::Group { .. }
            | Change::Meter { .. }
            | Change::Port { .. }
            | Change::Mirrors(_)
            | Change::Settings(_) => self.replica.apply(op.0, &mut self.versions),
        }
        Applied::Done
    }

    /// The outcome of a piece of a bundle.
    fn applied(&self, op: Op, step: BundleStep) -> Applied {
        if step == BundleStep::Done {
            Applied::Done
        } else if self.replica.is_at_once() {
            Applied::AtOnce(op)
        } else {
            Applied::Busy(op)
        }
    }

    /// Flushes the cached counts of up to `decisions_max` decisions; whether the flush under way
    /// has more of them.
    fn flush_cache(&mut self, decisions_max: usize) -> bool {
        let (replica, paths) = (&self.replica, &self.paths);
        let more = self.cache.flush(decisions_max, |counts| flush_counts(replica, paths, counts));
        if !more {
            self.flush = Flush::Idle;
            if let Some(ticket) = self.flush_begun.take() {
                self.replica.counters().set_flushed(ticket);
            }
        }
        more
    }

    fn figures(&self) -> ForwarderFigures {
        let (lines, used) = self.cache.size();
        ForwarderFigures {
            evictions: self.cache.evictions,
            programs: self.programs.len() as u64,
            lines: lines as u64,
            lines_used: used as u64,
            ..self.figures
        }
    }

    fn process_batch(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        in_port: PortNo,
        now: Nanos,
        sink: &mut impl Sink,
    ) {
        if frames.is_empty() {
            return;
        }
        self.maintain();
        let count = frames.len();
        let came = Sizes::of(frames);
        self.figures.batches += 1;
        self.figures.packets += came.packets;
        self.replica.count(Counter::Received, came.packets);
        if let Some(cell) = self.replica.port_cell(in_port) {
            cell.rx.add(came.packets, came.bytes);
        }
        if !self.admit(frames, in_port, sink) || !self.reassemble(frames, in_port, now, sink) {
            return;
        }
        let is_cut = came.has_offloads && self.cut_by_flags(frames, sink);
        let is_all = !is_cut
            && frames.len() == count
            && self.replica.settings.fragments != Fragments::Reassemble;
        let sizes = if is_all { came } else { Sizes::of(frames) };
        let is_in_tier = self.is_in_tier(in_port);
        let by_port = !is_in_tier && self.goes_by_port(came.shortest);
        if by_port && let Some(terminal) = self.decide_by_port(&sizes, in_port, now) {
            return execute::end_all(&self.replica, terminal, frames, &sizes, now, sink);
        }
        let clock = self.clock.filter(|_| self.figures.batches.is_multiple_of(MEASURED));
        let begin = clock.map(|clock| clock());
        let mut decided = std::mem::take(&mut self.decided);
        decided.clear();
        for chunk in frames.chunks(BURST) {
            self.decide(chunk, sizes.has_offloads, in_port, now, &mut decided);
        }
        if is_in_tier {
            self.propose(frames, &decided, in_port, now);
        }
        let middle = clock.map(|clock| clock());
        if let Some(first) = decided.first().filter(|_| by_port) {
            self.keep_for_port(*first, in_port, now);
        }
        let sizes =
            if sizes.has_offloads { self.finish(frames, &mut decided, sink) } else { sizes };
        self.execute(frames, &decided, &sizes, in_port, now, sink);
        self.decided = decided;
        if let (Some(clock), Some(begin), Some(middle)) = (clock, begin, middle) {
            self.figures.stages(sizes.packets, [middle - begin, clock() - middle]);
        }
    }

    /// Does the work between batches that changes of the replica have left.
    fn maintain(&mut self) {
        if std::mem::take(&mut self.replica.is_mask_stale) || self.replica.has_changed {
            self.replica.keys_have_select_fields = self.replica.has_select();
            let unwildcarded = self.replica.unwildcarded();
            let selected = self.replica.select_fields();
            let mirrored = self.replica.ports.mirrors().fields().iter().copied();
            let also = selected.into_iter().chain(mirrored).chain(self.replica.read_fields());
            if self.pipeline_mask.set(unwildcarded, also) {
                self.versions
                    .set_unwildcarded(|field, bits| self.pipeline_mask.has_bits(field, bits));
            }
            self.replica.is_dscp_matched = self.pipeline_mask.has(Field::IpDscp);
        }
        let is_full = self.programs.is_full() || self.program_cache.is_full();
        if self.replica.has_changed || is_full {
            self.replica.has_changed = false;
            self.programs.clear();
            self.program_cache.clear();
            self.versions.change_all();
        }
        self.paths.sweep();
        let (replica, paths) = (&self.replica, &mut self.paths);
        self.cache.maintain(|lost| {
            flush_counts(replica, paths, lost);
            paths.release(lost.path);
        });
    }

    /// Removes the frames that their port does not let in; whether there are any others.
    fn admit(&self, frames: &mut Vec<PacketBuf>, in_port: PortNo, sink: &mut impl Sink) -> bool {
        let Some(port) = self.replica.ports.get(in_port) else {
            let reason = DropReason::UnknownIngress;
            execute::drop_all(&self.replica, reason, frames, sink);
            return false;
        };
        if let Some(reason) = port.refuses_rx(&[]) {
            self.replica.count_rx_dropped(in_port, Sizes::of(frames).packets);
            execute::drop_all(&self.replica, reason, frames, sink);
            return false;
        }
        if port.looks_at_frames() {
            let (mut refused, let_in) =
                frames.drain(..).partition(|frame| port.refuses_rx(frame.bytes()).is_some());
            *frames = let_in;
            self.replica.count_rx_dropped(in_port, Sizes::of(&refused).packets);
            execute::drop_all(&self.replica, DropReason::NoRecvStp, &mut refused, sink);
        }
        !frames.is_empty()
    }

    /// Whether nothing but its port makes a difference for a frame of at least this length.
    fn goes_by_port(&self, shortest: usize) -> bool {
        self.pipeline_mask.in_port_only
            && self.caches.frame
            && shortest >= ethernet::HEADER_LEN
            && self.replica.settings.fragments != Fragments::Drop
    }

    /// Decides about all frames of a batch at once, where nothing but their port makes a
    /// difference and nothing has to be done to them.
    fn decide_by_port(&mut self, sizes: &Sizes, in_port: PortNo, now: Nanos) -> Option<Terminal> {
        let index = self.cache.find(decide::port_digest(in_port))?;
        let epoch = self.versions.epoch;
        let line = self.cache.line(index);
        if line.stamp() != epoch || line.until() <= now.0 {
            return None;
        }
        let terminal = self.programs.terminal(line.program())?;
        self.cache.count(index, sizes.packets, sizes.bytes);
        self.figures.port_hits += sizes.packets;
        Some(terminal)
    }
}

/// Packets and bytes that a wire would carry for frames, and the length of the shortest frame.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    packets: u64,
    bytes: u64,
    shortest: usize,
    /// Whether something is left to do to any of them.
    has_offloads: bool,
}

impl Sizes {
    #[inline]
    fn of(frames: &[PacketBuf]) -> Self {
        let mut sizes = Self {
            packets: frames.len() as u64,
            bytes: 0,
            shortest: usize::MAX,
            has_offloads: false,
        };
        for frame in frames {
            sizes.bytes += frame.len() as u64;
            sizes.shortest = sizes.shortest.min(frame.len());
            sizes.has_offloads |= frame.has_offload();
        }
        if sizes.has_offloads { sizes.on_wire(frames) } else { sizes }
    }

    /// The same of frames of which one may stand for several.
    #[cold]
    fn on_wire(self, frames: &[PacketBuf]) -> Self {
        let (packets, bytes) = frames.iter().fold((0, 0), |(packets, bytes), frame| {
            let (more_packets, more_bytes) = frame.on_wire();
            (packets + more_packets, bytes + more_bytes)
        });
        Self { packets, bytes, ..self }
    }
}
