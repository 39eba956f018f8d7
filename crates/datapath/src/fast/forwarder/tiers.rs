//! The forwarder as its shard has it: the stages of a batch, and the kernel's table before them.
//!
//! The order that must hold between the two is kept here: what the kernel counted for an entry is
//! credited before an op about it is applied, the entries that an op concerns end with it, and new
//! ones are made after a batch. A shard applies ops, gives batches and takes turns. All that needs
//! time is done in pieces, so that no port waits for long.

use std::collections::BTreeSet;
use std::sync::Arc;

use openflow::message::{PacketIn, PacketOut};
use openflow::{Error, PortNo};
use packet::PacketBuf;

use super::cache::Cache;
use super::{Caches, Core, Flush, ForwarderFigures, KeptCounts, KernelTable, NoKernel, Sink};
use crate::config::DatapathConfig;
use crate::fast::classifier::Template;
use crate::fast::learning::Taught;
use crate::fast::op::Op;
use crate::fast::shared::Shared;
use crate::fast::sys;
use crate::time::Nanos;

/// Outcome of [`Forwarder::apply`].
#[derive(Debug)]
#[must_use]
pub enum Applied {
    /// The op is applied.
    Done,
    /// The op, or work that comes before it, is not finished, but a piece of it is. The op is to be
    /// applied again, before any other.
    Busy(Op),
    /// The same, and no packet may come before that: a bundle is at its moment. What its
    /// packet-outs send is given meanwhile, so that it does not pile up.
    AtOnce(Op),
}

impl Applied {
    /// The op, if it is to be applied again.
    #[must_use]
    pub fn again(self) -> Option<Op> {
        match self {
            Self::Done => None,
            Self::Busy(op) | Self::AtOnce(op) => Some(op),
        }
    }
}

/// One shard's datapath, with the kernel's table that carries out some of its decisions.
#[derive(Debug)]
pub struct Forwarder<K = NoKernel> {
    core: Core,
    kernel: Option<K>,
    /// Whether the kernel tier is to be used where there is a table.
    wants_kernel: bool,
}

impl<K: KernelTable> Forwarder<K> {
    /// The forwarder of this number, with the counters that it shares. It knows nothing until ops
    /// come. The seed keeps peers from choosing packets that collide; it changes no verdict.
    #[must_use]
    pub(crate) fn new(
        config: &DatapathConfig,
        shared: Arc<Shared>,
        number: usize,
        seed: u64,
    ) -> Self {
        Self { core: Core::new(config, shared, number, seed), kernel: None, wants_kernel: false }
    }

    /// Applies an op. Ops come in the order in which control made them, each once.
    pub fn apply(&mut self, op: Op, now: Nanos) -> Applied {
        let applied = match &mut self.kernel {
            Some(kernel) if op.is_change() => self.core.apply_in_tier(op, kernel, now),
            Some(_) | None => self.core.apply(op),
        };
        if matches!(applied, Applied::Done) {
            self.core.replica.note_applied();
        }
        applied
    }

    /// Forwards a batch of frames from one port; the list is empty afterwards. When these have
    /// left, [`Forwarder::make_entries`] is to follow.
    pub fn process_batch(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        in_port: PortNo,
        now: Nanos,
        sink: &mut impl Sink,
    ) {
        self.core.process_batch(frames, in_port, now, sink);
    }

    /// Makes entries in the kernel of what the last batch has shown, once its frames have left: the
    /// next ones of their flows are not to overtake them.
    pub fn make_entries(&mut self, now: Nanos) {
        if let Some(kernel) = &mut self.kernel {
            self.core.update_tier(kernel, now);
        }
    }

    /// Whether frames of a port wait behind its next batch. While they do, flows of the port get no
    /// entries, by which later frames would overtake these; after 10 ms without a break they do.
    pub fn note_waiting(&mut self, port: PortNo, waits: bool, now: Nanos) {
        if self.kernel.is_some() {
            self.core.note_waiting(port, waits, now);
        }
    }

    /// Carries out a packet-out (clause 7.3.7); gives at least one verdict.
    ///
    /// # Errors
    /// `OFPBRC_BUFFER_UNKNOWN` for any buffer, `OFPBRC_BAD_PORT`, `OFPBRC_BAD_PACKET`, and the
    /// errors of its actions; nothing is sent then.
    pub fn packet_out(
        &mut self,
        packet_out: &PacketOut,
        now: Nanos,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        self.core.packet_out(packet_out, now, sink)
    }

    /// Gives the verdicts on the packet-outs of bundles that [`Forwarder::apply`] has carried out
    /// since the last call; whether there are any. To be called after each piece of a bundle.
    pub fn give_sent(&mut self, sink: &mut impl Sink) -> bool {
        self.core.give_sent(sink)
    }

    /// Whether [`Forwarder::give_sent`] has any.
    #[must_use]
    pub fn has_sent(&self) -> bool {
        !self.core.sent.is_empty()
    }

    /// Whether [`Forwarder::take_taught`] has any, which is asked after every batch.
    #[must_use]
    #[inline]
    pub fn has_taught(&self) -> bool {
        self.core.replica.has_taught()
    }

    /// Gives the entries that packets have taught since: each is to be given to
    /// [`crate::fast::Control::learn`], in this order.
    pub fn take_taught(&mut self) -> Vec<Taught> {
        self.core.replica.take_taught()
    }

    /// Goes on with a packet that a controller resumes (`NXT_RESUME`); gives at least one verdict.
    ///
    /// # Errors
    /// `NXR_STALE` for a continuation that is none of this datapath's, `OFPBRC_BAD_PORT`,
    /// `OFPBRC_BAD_PACKET`, and the errors of what is still to be done; nothing is sent then.
    pub fn resume(
        &mut self,
        paused: &PacketIn,
        now: Nanos,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        self.core.resume(paused, now, sink)
    }

    /// Maintains the entries in the kernel: ends those about stations that have moved, credits what
    /// has ended, and renews leases. Nothing before [`Forwarder::due`].
    pub fn turn(&mut self, now: Nanos) {
        if let Some(kernel) = &mut self.kernel {
            self.core.maintain_tier(kernel, now);
        }
    }

    /// Credits what a kernel's table has counted for an earlier process.
    pub fn credit_kept(&self, kept: &[KeptCounts]) {
        kept.iter().for_each(|counts| self.core.credit_kept(counts));
    }

    /// When [`Forwarder::turn`] is due.
    #[must_use]
    pub fn due(&self) -> Option<Nanos> {
        self.core.tier_due()
    }

    /// Whether packets have shown since the last call that a station has moved, and some shard of
    /// the bridge has a table: the forwarders of the other shards take a turn then, though they may
    /// be asleep.
    pub fn has_seen_moves(&mut self) -> bool {
        self.core.has_seen_moves()
    }

    /// Moves counts that are kept in the kernel and in the cache to the shared counters, those of
    /// up to `decisions_max` decisions of the cache; whether the flush under way has more of them.
    /// It moves the counts that were there when it began: those of later packets are the next
    /// one's, so that it ends however many packets come. A flush that control requested before it
    /// began is reported as done when it ends. Called between batches.
    pub fn flush_some(&mut self, decisions_max: usize, now: Nanos) -> bool {
        let core = &mut self.core;
        if core.flush == Flush::Idle {
            core.flush_begun = core.flush_asked.take();
            core.flush = Flush::Kernel(0);
        }
        if let Flush::Kernel(slot) = core.flush {
            if let Some(kernel) = &mut self.kernel
                && core.collect_counts(slot, kernel, now)
            {
                return true;
            }
            core.flush = Flush::Cache;
            core.cache.begin_flush();
        }
        core.flush_cache(decisions_max)
    }

    /// The caches that are in use.
    #[must_use]
    pub fn caches(&self) -> Caches {
        self.core.caches
    }

    /// Chooses the caches that are used from the next batch on; the kernel tier only where there is
    /// a table, or as soon as there is one.
    pub fn set_caches(&mut self, caches: Caches, now: Nanos) {
        self.wants_kernel = caches.kernel;
        if let Some(kernel) = &mut self.kernel {
            self.core.stop_tier(kernel, now);
            while !self.core.credit_ended(kernel, now) {}
        }
        self.core.caches = Caches { kernel: caches.kernel && self.kernel.is_some(), ..caches };
    }

    /// Makes the cache anew, with these numbers of lines at first and at most, both of them powers
    /// of two above 15. Before the first packet only.
    ///
    /// # Panics
    /// When packets have passed: they are counted in the lines.
    pub fn set_lines(&mut self, lines: usize, lines_max: usize) {
        assert_eq!(self.core.figures.packets, 0, "packets are counted in the lines");
        self.core.cache = Cache::new(lines, lines_max);
    }

    /// The figures of the forwarder itself.
    #[must_use]
    pub fn figures(&self) -> ForwarderFigures {
        self.core.figures()
    }

    /// Measures the stages of one batch of sixteen by this clock, in nanoseconds.
    pub fn measure_stages(&mut self, clock: Option<fn() -> u64>) {
        self.core.clock = clock;
    }

    /// The kernel's table, where there is one.
    #[must_use]
    pub fn kernel(&self) -> Option<&K> {
        self.kernel.as_ref()
    }

    /// Gives the forwarder a kernel's table, which it has none of yet.
    pub fn set_kernel(&mut self, kernel: K) {
        self.kernel = Some(kernel);
        self.core.caches.kernel = self.wants_kernel;
    }

    /// Sets the ports by which the kernel can send.
    pub fn set_tier_outputs(&mut self, outputs: BTreeSet<PortNo>) {
        self.core.set_tier_outputs(outputs);
    }

    /// A port has the kernel's program from now on.
    pub fn enter_tier(&mut self, port: PortNo) {
        self.core.enter_tier(port);
    }

    /// A port's device goes, or another one takes its place: all entries end, and those of its
    /// flows leave the table, since a later device is known by another name there.
    pub fn leave_tier(&mut self, port: PortNo, now: Nanos) {
        if let Some(kernel) = &mut self.kernel {
            self.core.leave_tier(port, kernel, now);
        }
    }

    /// Ends the entries in the kernel that send by a port. What they have counted is credited by
    /// the next turns.
    pub fn end_tier_output(&mut self, port: PortNo) {
        if let Some(kernel) = &mut self.kernel {
            self.core.end_tier_output(port, kernel);
        }
    }

    /// See [`crate::fast::testing::set_plain`].
    pub(in crate::fast) fn set_plain(&mut self, is_plain: bool) {
        self.core.level = if is_plain { sys::SimdLevel::SCALAR } else { sys::SimdLevel::best() };
        self.core.replica.set_plain(is_plain);
    }

    /// See [`crate::fast::testing::set_template`].
    pub(in crate::fast) fn set_template(&mut self, template: Option<Template>) {
        self.core.replica.force(template);
    }
}
