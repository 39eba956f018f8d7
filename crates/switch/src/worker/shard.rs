//! The shard of a bridge on one worker: some of its ports, and a forwarder of its own.
//!
//! Shards of different bridges share only the thread, which serves them in turn, and its buffers.
//! One turn is bounded, so that no bridge delays another by more than a batch of frames or of
//! commands.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use datapath::Nanos;
use datapath::fast::{Applied, Caches, Forwarder, KeptCounts, Op, Sink};
use netdev::{PortError, TierFrames, TierPort};
use openflow::PortNo;
use packet::{Batch, Pool};

use super::command::PendingUpcalls;
use super::egress::TxSink;
use super::perf::{CountedPorts, PortAssignment, ShardSample, StageTimer, WorkerInfo, WorkerState};
use super::port_change::PortChange;
use super::queue::QueueRole;
use super::wire::readdress;
use super::{
    BarrierId, CommandQueue, Egress, GivenPacket, OutsidePort, Ports, ShardCommand, ShardTier,
    ShardUpcalls, TierEntry, TierPlan, WorkerEvent, WorkerPort,
};
use crate::config::Wire;
use crate::counters::{Counter, Counters};

/// Frames taken from one port before the next has its turn: long enough to share the cost of a
/// system call, short enough that a busy port delays the others by microseconds.
pub(super) const RX_BATCH: usize = 64;

/// Frames taken from one port before the next has its turn, four batches, where a batch is no
/// system call. The clock and the look at commands and other ports took 1 ns a frame when they came
/// with every batch.
pub(super) const TURN_FRAMES: usize = 4 * RX_BATCH;

/// Commands carried out before the ports have their turn. A change of the tables takes less than a
/// microsecond, so that packets wait for some ten, for which the smallest of rings has room.
pub(super) const COMMAND_BATCH: usize = 32;

/// Part of a batch of commands that a question counts as.
const QUESTION_COST: usize = COMMAND_BATCH / 4;

/// Ports whose devices a question asks for their counters, by system calls that take up to ten
/// microseconds each.
const PORTS_ASKED: usize = 16;

/// Counts flushed to the shared counters before the ports have their turn.
const FLUSH_BATCH: usize = 256;

/// The way in which a shard forwards.
pub(crate) enum Forwarding {
    /// By flow tables, of which the kernel tier carries out some decisions.
    Tables(Box<Forwarder<ShardTier>>),
    /// Between pairs of ports.
    Wire(Wire),
}

impl Forwarding {
    fn tables(&self) -> Option<&Forwarder<ShardTier>> {
        match self {
            Self::Tables(forwarder) => Some(forwarder),
            Self::Wire(_) => None,
        }
    }

    fn tables_mut(&mut self) -> Option<&mut Forwarder<ShardTier>> {
        match self {
            Self::Tables(forwarder) => Some(forwarder),
            Self::Wire(_) => None,
        }
    }

    /// The kernel tier, where it is there, on or off.
    pub(crate) fn tier(&self) -> Option<&ShardTier> {
        self.tables().and_then(Forwarder::kernel)
    }

    /// Ports of the bridge have come: the kernel may send by them.
    pub(crate) fn refresh_tier_outputs(&mut self) {
        if let Some(forwarder) = self.tables_mut()
            && let Some(outputs) = forwarder.kernel().map(|tier| tier.ports().outputs())
        {
            forwarder.set_tier_outputs(outputs);
        }
    }
}

/// The parts of a new shard.
pub(crate) struct ShardParts {
    /// The bridge's name in the log, where there are several.
    pub(crate) bridge: Option<Arc<str>>,
    /// The way in which it forwards.
    pub(crate) forwarding: Forwarding,
    /// Its ports, and their receive side.
    pub(crate) ports: Ports,
    /// Their transmit side.
    pub(crate) egress: Egress,
    /// Commands to it.
    pub(crate) commands: Arc<CommandQueue>,
    /// Packet-ins and events from it.
    pub(crate) upcalls: Arc<ShardUpcalls>,
    /// The bridge's counters.
    pub(crate) counters: Arc<Counters>,
    /// The plan by which it gets a kernel tier; `None` where none is to be used.
    pub(crate) tier_plan: Option<TierPlan>,
}

/// See the module.
pub(crate) struct Shard {
    pub(super) bridge: Option<Arc<str>>,
    info: Arc<WorkerInfo>,
    forwarding: Forwarding,
    pub(super) ports: Ports,
    pub(super) egress: Egress,
    pub(super) counters: Arc<Counters>,
    pub(super) command_queue: Arc<CommandQueue>,
    upcalls: Arc<ShardUpcalls>,
    tier_plan: Option<TierPlan>,
    /// Packet-ins and events of this turn.
    pub(super) pending: PendingUpcalls,
    /// The queue may hold commands that were not taken.
    has_new_commands: bool,
    commands: VecDeque<ShardCommand>,
    /// Barriers that wait for the flush of counters under way.
    flushing: Vec<BarrierId>,
    /// Barriers that wait for the next one, having come after it began.
    flush_asked: Vec<BarrierId>,
    /// Membership in the lists of [`super::Worker`].
    pub(super) is_listed_busy: bool,
    pub(super) is_listed_holding: bool,
    pub(super) is_listed_faulted: bool,
    /// Ports that the worker is to take or to give up, in this order.
    pub(super) port_changes: Vec<PortChange>,
}

impl GivenPacket {
    fn send(
        &self,
        forwarder: &mut Forwarder<ShardTier>,
        time: Nanos,
        sink: &mut TxSink<'_>,
    ) -> Result<(), openflow::Error> {
        match self {
            Self::Out(packet_out) => forwarder.packet_out(packet_out, time, sink),
            Self::Resumed(paused) => forwarder.resume(paused, time, sink),
        }
    }
}

impl Shard {
    /// A shard on this worker.
    pub(super) fn new(mut parts: ShardParts, info: Arc<WorkerInfo>) -> Self {
        // The address of what the shards of a worker share.
        parts.ports.set_worker(Arc::as_ptr(&info).addr());
        Self {
            bridge: parts.bridge,
            info,
            forwarding: parts.forwarding,
            ports: parts.ports,
            egress: parts.egress,
            counters: parts.counters,
            command_queue: parts.commands,
            upcalls: parts.upcalls,
            tier_plan: parts.tier_plan,
            pending: PendingUpcalls::default(),
            has_new_commands: false,
            commands: VecDeque::new(),
            flushing: Vec::new(),
            flush_asked: Vec::new(),
            is_listed_busy: false,
            is_listed_holding: false,
            is_listed_faulted: false,
            port_changes: Vec::new(),
        }
    }

    /// The state of shard and worker.
    pub(crate) fn state(&self) -> WorkerState {
        let ports = self.ports.all();
        let is_wire = matches!(self.forwarding, Forwarding::Wire(_));
        let assignment = |(_, port): (usize, &WorkerPort)| {
            let (queue, queues) = match port.role() {
                QueueRole::Home(further) => (0, 1 + further.len()),
                QueueRole::Further(nth, of, _) => (*nth, *of),
            };
            let leaves_by = port.pair.filter(|_| is_wire).map(|(number, _)| number);
            PortAssignment {
                number: port.number,
                spec: port.spec.to_string(),
                queue,
                queues,
                leaves_by,
                is_in_tier: port.is_in_tier(),
            }
        };
        WorkerState {
            index: self.info.index,
            cpu: self.info.cpu,
            poll: self.info.poll,
            ports: ports.iter().map(assignment).collect(),
            perf: self.info.perf.read(),
            forwarder: self.forwarding.tables().map(|it| (it.caches(), it.figures())),
        }
    }

    /// Whether the kernel tier is there, on or off.
    pub(crate) fn has_tier(&self) -> bool {
        self.forwarding.tier().is_some()
    }

    /// The frames that the kernel tier has got so far.
    pub(super) fn tier_frames(&self) -> TierFrames {
        self.forwarding.tier().map(ShardTier::frames).unwrap_or_default()
    }

    /// Whether the kernel may send by a port of the bridge from now on.
    pub(crate) fn set_tier_sends(&mut self, port: PortNo, sends: bool) {
        if let Some(tier) = self.forwarding.tier() {
            tier.ports().set_sends(port, sends);
            self.end_tier_output(port);
            self.refresh_tier_outputs();
        }
    }

    /// Chooses the caches; the kernel tier only where it is there.
    pub(crate) fn set_caches(&mut self, caches: Caches) {
        if let Some(forwarder) = self.forwarding.tables_mut() {
            forwarder.set_caches(caches, self.egress.time());
        }
    }

    /// A port is new, or it, or a further queue of one, has another device than before.
    pub(super) fn port_reopened(&mut self, port: usize) {
        let found = self.ports.all().get(port);
        let Some(port) = found.filter(|port| port.is_home() || port.device().is_some()) else {
            return;
        };
        let Some(forwarder) = self.forwarding.tables_mut() else { return };
        if port.is_in_tier()
            && let Some(tier) = self.tier_plan.as_ref().and_then(|it| it.take(self.egress.me()))
        {
            // The first one here that is in it.
            self.ports.all().iter().for_each(|(_, port)| tier.ports().set(port));
            forwarder.set_kernel(tier);
        }
        // The entries of its flows are about the earlier device.
        forwarder.leave_tier(port.number, self.egress.time());
        let Some(tier) = forwarder.kernel() else { return };
        tier.ports().set(port);
        let outputs = tier.ports().outputs();
        if port.is_in_tier() {
            forwarder.enter_tier(port.number);
        }
        forwarder.set_tier_outputs(outputs);
    }

    /// Ends the kernel tier's entries that send by a port: what they hold of it has changed.
    pub(crate) fn end_tier_output(&mut self, port: PortNo) {
        if let Some(forwarder) = self.forwarding.tables_mut() {
            forwarder.end_tier_output(port);
        }
    }

    /// A port goes, or a further queue of one.
    pub(super) fn leave_tier(&mut self, port: &WorkerPort) {
        if let Some(forwarder) = self.forwarding.tables_mut() {
            forwarder.leave_tier(port.number, self.egress.time());
            if let Some(tier) = forwarder.kernel().filter(|_| port.is_home()) {
                tier.ports().forget(port.number);
            }
        }
    }

    /// Credits what the kernel has counted for an earlier process; the first shard alone does.
    pub(crate) fn credit_kept(&self, kept: &[KeptCounts]) {
        if let Some(forwarder) = self.forwarding.tables().filter(|_| self.egress.me() == 0) {
            forwarder.credit_kept(kept);
        }
    }

    /// When [`Shard::maintain_tier`] is due.
    pub(super) fn tier_due(&self) -> Option<Nanos> {
        self.forwarding.tables().and_then(Forwarder::due)
    }

    /// Ends decisions in the kernel about stations that have moved, and renews those that have a
    /// time, where they are in use.
    pub(super) fn maintain_tier(&mut self, time: Nanos) {
        if let Some(forwarder) = self.forwarding.tables_mut() {
            forwarder.turn(time);
        }
    }

    /// A port's device has other addresses of the host than before, perhaps: it leaves the kernel
    /// tier, or comes in, by being opened again. Whether it does.
    ///
    /// # Errors
    /// The kernel does not report what the host uses the device for.
    pub(super) fn recheck_host_use(
        &mut self,
        port: usize,
        now: Instant,
    ) -> Result<bool, PortError> {
        if !self.tier_plan.as_ref().is_some_and(TierPlan::leaves_used_devices) {
            return Ok(false);
        }
        let Some(found) = self.ports.all_mut().get_mut(port) else { return Ok(false) };
        let is_stale = found.is_tier_choice_stale()?;
        if is_stale {
            let (number, was_in_tier) = (found.number, found.is_in_tier());
            tracing::info!(port = %number, was_in_tier, "opened again for the host");
            found.reopen(now);
        }
        self.ports.note_fault(port);
        Ok(is_stale)
    }

    /// A port has changed: on a wire, the ports whose frames leave by it learn its address.
    pub(super) fn publish_address(&self, number: PortNo, mac: [u8; 6]) {
        if matches!(self.forwarding, Forwarding::Wire(_)) {
            self.egress.command_all(|| ShardCommand::SetAddress(number, mac));
        }
    }

    /// The plan by which the bridge's shards get a kernel tier; `None` where none is to be used.
    pub(crate) fn tier_plan(&self) -> Option<&TierPlan> {
        self.tier_plan.as_ref()
    }

    /// The means to put the kernel tier's program at a port, whose home is here.
    pub(super) fn tier_entry(&self, port: usize) -> Option<TierEntry> {
        let found = self.ports.all().get(port).filter(|port| !port.is_policed())?;
        Some(self.tier_plan()?.entry_of(found, self.egress.me()))
    }

    /// Ports of the bridge have come: the kernel may send by them.
    pub(crate) fn refresh_tier_outputs(&mut self) {
        self.forwarding.refresh_tier_outputs();
    }

    /// Some devices that are not in the kernel tier, and may enter it without the loss of a frame;
    /// or patch ports, which do where there is a device.
    pub(crate) fn ports_outside_tier(
        &mut self,
        are_patches: bool,
        most: usize,
    ) -> Vec<OutsidePort> {
        if are_patches && !self.tier_plan().is_some_and(TierPlan::has_device) {
            return Vec::new();
        }
        let outside = |(index, found): (usize, &WorkerPort)| {
            let may_enter =
                |port: &TierPort| port.is_patch() == are_patches && port.may_enter_later();
            let port = found.outside_tier().filter(may_enter)?;
            let entry = self.tier_entry(index)?;
            Some(OutsidePort { opening: found.opening_at(index), port, entry })
        };
        self.ports.all().iter().filter_map(outside).take(most).collect()
    }

    /// The counters of the devices of some ports, from an index on; and the index from which on
    /// there are more, if there are.
    pub(crate) fn port_counters(&mut self, from: usize) -> (CountedPorts, Option<usize>) {
        let (end, to) = (self.ports.all().end(), from + PORTS_ASKED);
        let mut counted = Vec::new();
        for index in from..to.min(end) {
            let Some(port) = self.ports.all_mut().get_mut(index) else { continue };
            counted.push((port.number, port.counters(), port.tx_refused));
        }
        (counted, (to < end).then_some(to))
    }

    /// The counts of the shard and of its worker, and of its first ports.
    pub(crate) fn sample(&mut self) -> ShardSample {
        let (ports, more_ports) = self.port_counters(0);
        ShardSample {
            worker: self.info.index,
            perf: self.info.perf.read(),
            ports,
            more_ports,
            forwarder: self.forwarding.tables().map(Forwarder::figures),
        }
    }

    /// Sends what is queued.
    fn flush(&mut self, pool: &mut Pool) {
        self.info.perf.sent.add(self.egress.flush(&mut self.ports, pool) as u64);
    }

    /// The doorbell was rung for this shard: takes frames from other workers at once; whether there
    /// were any.
    pub(super) fn rung(&mut self, buffers: &mut Batch, time: Nanos) -> bool {
        self.command_queue.acknowledge();
        self.has_new_commands = true;
        self.egress.set_time(time);
        let (_, pool) = buffers.parts_mut();
        let handed = self.egress.accept(&mut self.ports, pool);
        if handed {
            self.flush(pool);
        }
        handed
    }

    /// Sends the frames that the ports' queues release by now; whether there were any.
    pub(super) fn release(&mut self, buffers: &mut Batch, time: Nanos) -> bool {
        self.egress.set_time(time);
        self.ports.set_hops(0);
        let released = self.egress.release(&mut self.ports, buffers.parts_mut().1);
        self.info.perf.sent.add(released as u64);
        released > 0
    }

    /// Carries out a batch of pending commands and a piece of a counter flush. Returns the number
    /// of commands, a question counting as several and a piece of a flush as a batch.
    pub(super) fn run_commands(&mut self, buffers: &mut Batch, time: Nanos) -> usize {
        self.egress.set_time(time);
        let mut done = self.carry_out(time, buffers.parts_mut().1);
        if self.flush_counters(time) {
            done += COMMAND_BATCH;
        }
        done
    }

    /// Whether [`Shard::run_commands`] has more to do.
    pub(super) fn has_commands(&self) -> bool {
        self.has_new_commands
            || !self.commands.is_empty()
            || !self.flushing.is_empty()
            || !self.flush_asked.is_empty()
    }

    fn carry_out(&mut self, time: Nanos, pool: &mut Pool) -> usize {
        if self.commands.is_empty() && std::mem::take(&mut self.has_new_commands) {
            self.command_queue.take(&mut self.commands);
        }
        if self.commands.is_empty() {
            return 0;
        }
        self.ports.set_hops(0);
        let (mut is_to_send, mut is_held, mut count, mut cost) = (false, false, 0, 0);
        while cost < COMMAND_BATCH {
            let Some(command) = self.commands.pop_front() else { break };
            is_to_send |= matches!(command, ShardCommand::PacketOut(_) | ShardCommand::Reshape(..));
            let is_question = matches!(command, ShardCommand::Ask(_));
            if let Some(held) = self.carry_out_one(command, time, pool) {
                // The ports have their turn first.
                self.commands.push_front(held);
                is_held = true;
                break;
            }
            count += 1;
            cost += if is_question { QUESTION_COST } else { 1 };
        }
        if is_to_send {
            self.flush(pool);
        }
        self.command_queue.done(count);
        self.info.perf.commands.add(count as u64);
        if is_held { COMMAND_BATCH } else { cost }
    }

    /// Carries out a command; gives it back where the kernel tier is not prepared for it yet.
    fn carry_out_one(
        &mut self,
        command: ShardCommand,
        time: Nanos,
        pool: &mut Pool,
    ) -> Option<ShardCommand> {
        match (command, &mut self.forwarding) {
            (ShardCommand::Op(op), Forwarding::Tables(_)) => {
                return self.apply(op, time, pool).map(ShardCommand::Op);
            }
            (ShardCommand::PacketOut(packet), Forwarding::Tables(forwarder)) => {
                let (request, packet) = *packet;
                let (egress, ports) = (&mut self.egress, &mut self.ports);
                let mut sink = TxSink { egress, ports, pool, pending: &mut self.pending };
                if let Err(error) = packet.send(forwarder, time, &mut sink) {
                    self.pending.events.push(WorkerEvent::PacketOutRefused(request, error));
                }
                report_learnt(forwarder, &mut self.egress, &mut self.pending);
            }
            (ShardCommand::FlushCounters(barrier), _) => self.flush_asked.push(barrier),
            (ShardCommand::Barrier(barrier), _) => {
                // A packet-out before it may have shown that a station has moved.
                self.maintain_tier(time);
                self.egress.accept(&mut self.ports, pool);
                self.flush(pool);
                self.pending.events.push(WorkerEvent::BarrierReached(barrier));
            }
            (ShardCommand::Ask(question), _) => question(self),
            (ShardCommand::SetMap(map), _) => {
                self.ports.set_map(&map, self.egress.me());
                self.egress.set_map(map);
                self.port_changes.push(PortChange::Poll);
            }
            (ShardCommand::AddPort(index, port, done), _) => {
                self.port_changes.push(PortChange::Add(index, port, done));
            }
            (ShardCommand::Reshape(index, shaper), _) => {
                if let Some(port) = self.ports.all_mut().get_mut(index) {
                    port.has_queues = shaper.is_some();
                }
                self.egress.reshape(index, shaper.map(|shaper| *shaper), pool);
            }
            (ShardCommand::SetLink(index, up), _) => {
                if let Some(port) = self.ports.all_mut().get_mut(index) {
                    port.set_link(up, Instant::now());
                }
                self.ports.note_fault(index);
            }
            (ShardCommand::RemovePort(index, done), _) => {
                self.port_changes.push(PortChange::Remove(index, done));
            }
            (ShardCommand::EnterTier(step, done), _) => {
                self.port_changes.push(PortChange::EnterTier(step, done));
            }
            (ShardCommand::SetQueue(index, opening, queue), _) => {
                self.port_changes.push(PortChange::SetQueue(index, opening, queue));
            }
            (ShardCommand::QueueGone(index, opening), _) => {
                self.port_changes.push(PortChange::QueueGone(index, opening));
            }
            (ShardCommand::SetAddress(number, mac), _) => self.ports.set_address(number, mac),
            // The bridge of a wire has no tables and sends no such commands.
            (ShardCommand::Op(_) | ShardCommand::PacketOut(_), Forwarding::Wire(_)) => {}
        }
        None
    }

    /// Applies an op, or a piece of it; gives it back where the ports have their turn first.
    fn apply(&mut self, mut op: Op, time: Nanos, pool: &mut Pool) -> Option<Op> {
        loop {
            let applied = self.forwarding.tables_mut()?.apply(op, time);
            self.send_of_bundles(pool);
            match applied {
                Applied::Done => return None,
                Applied::Busy(again) => return Some(again),
                Applied::AtOnce(again) => op = again,
            }
        }
    }

    /// Sends the packet-outs of a bundle that packets have come to see.
    fn send_of_bundles(&mut self, pool: &mut Pool) {
        let sending = self.forwarding.tables_mut().filter(|forwarder| forwarder.has_sent());
        let Some(forwarder) = sending else { return };
        let (egress, ports) = (&mut self.egress, &mut self.ports);
        forwarder.give_sent(&mut TxSink { egress, ports, pool, pending: &mut self.pending });
        report_learnt(forwarder, &mut self.egress, &mut self.pending);
        self.flush(pool);
        self.send_upcalls();
    }

    /// Forwards a batch from a port, or several where receiving is no system call, but no more
    /// frames than `most`. Returns the numbers of frames that came and that were asked for.
    pub(super) fn forward(
        &mut self,
        index: usize,
        most: usize,
        buffers: &mut Batch,
        (now, time): (Instant, Nanos),
    ) -> (usize, usize) {
        // A pending flush or command waits for no more than a batch.
        let is_alone = !self.has_commands() && self.ports.has_no_fd(index);
        let most = if is_alone { most } else { most.min(RX_BATCH) };
        let mut frames = 0;
        while frames < most {
            let asked = RX_BATCH.min(most - frames);
            let count = self.forward_batch(index, asked, buffers, (now, time));
            frames += count;
            if count < asked {
                break;
            }
        }
        (frames, most)
    }

    fn forward_batch(
        &mut self,
        index: usize,
        asked: usize,
        buffers: &mut Batch,
        (now, time): (Instant, Nanos),
    ) -> usize {
        let timer = StageTimer::begin(&self.info.perf);
        let taken = self.ports.receive(index, asked, buffers, now);
        let Some((in_port, count)) = taken else { return 0 };
        let (frames, pool) = buffers.parts_mut();
        let received = timer.lap();
        self.egress.set_time(time);
        match &mut self.forwarding {
            Forwarding::Tables(forwarder) => {
                let (egress, ports) = (&mut self.egress, &mut self.ports);
                let mut sink = TxSink { egress, ports, pool, pending: &mut self.pending };
                forwarder.note_waiting(in_port, count == asked, time);
                forwarder.process_batch(frames, in_port, time, &mut sink);
                report_learnt(forwarder, &mut self.egress, &mut self.pending);
            }
            Forwarding::Wire(wire) => {
                if let Some((number, mac)) = self.ports.pair(index) {
                    readdress(*wire, frames, (number, mac));
                    let (egress, pending) = (&mut self.egress, &mut self.pending);
                    let mut sink = TxSink { egress, ports: &mut self.ports, pool, pending };
                    // Frames leave as they are, short ones too.
                    sink.output_all(number, None, frames, usize::MAX);
                }
            }
        }
        let left = frames.len();
        pool.give_front(frames, left);
        let decided = timer.lap();
        self.info.perf.sent.add(self.egress.flush(&mut self.ports, pool) as u64);
        timer.end(count, received, decided);
        if let Forwarding::Tables(forwarder) = &mut self.forwarding {
            forwarder.make_entries(time);
        }
        self.info.perf.batches.add(1);
        self.info.perf.packets.add(count as u64);
        count
    }

    /// Goes on with the flush of counters under way, or begins the next; whether there is one. The
    /// forwarder's flush begins and ends with the one here.
    fn flush_counters(&mut self, time: Nanos) -> bool {
        if self.flushing.is_empty() {
            if self.flush_asked.is_empty() {
                return false;
            }
            std::mem::swap(&mut self.flushing, &mut self.flush_asked);
        }
        let is_done = match &mut self.forwarding {
            Forwarding::Tables(forwarder) => !forwarder.flush_some(FLUSH_BATCH, time),
            Forwarding::Wire(_) => true,
        };
        if is_done {
            let reached = self.flushing.drain(..).map(WorkerEvent::BarrierReached);
            self.pending.events.extend(reached);
        }
        true
    }

    /// Sends packet-ins and events to the agent; packet-ins without room are dropped and counted.
    pub(super) fn send_upcalls(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        self.upcalls.send(&mut self.pending);
        let dropped = self.pending.packets.len() as u64;
        if dropped > 0 {
            self.counters.add(Counter::PacketInQueueFull, dropped);
            self.pending.packets.clear();
        }
    }
}

/// Tells other shards that a station has moved, and the agent of the entries that packets have
/// taught.
fn report_learnt(
    forwarder: &mut Forwarder<ShardTier>,
    egress: &mut Egress,
    pending: &mut PendingUpcalls,
) {
    if forwarder.has_seen_moves() {
        egress.ring_others();
    }
    if forwarder.has_taught() {
        pending.events.push(WorkerEvent::Taught(forwarder.take_taught()));
    }
}
