//! The worker's loop.
//!
//! A round serves only what has work: shards whose doorbell was rung, ports in the poll set, queues
//! that hold frames back. Without work the worker sleeps on one watch over all its ports, however
//! many there are.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datapath::Nanos;
use netdev::sys::watch::Watch;
use netdev::{LinkMonitor, TierFrames};
use packet::Batch;
use tokio::sync::Notify;

use super::cpu_yield::{CpuYield, WorkerFigures};
use super::device_thread::{DEVICES, DeviceThread, Open, close_all};
use super::idle::{IdlePolicy, Sleep};
use super::maintain::Maintenance;
use super::perf::WorkerInfo;
use super::poll_set::{PollSet, PolledPort};
use super::reshard::WORKER;
use super::shard::{COMMAND_BATCH, RX_BATCH};
use super::{Clock, Doorbell, Shard, ShardParts, Slots, WorkerPort, WorkerQueue};

/// The interval at which a busy worker asks for suspended ports that are ready. Asking costs a
/// system call, some two hundred nanoseconds; a frame at a suspended port waits no longer.
const WATCH_EVERY: Duration = Duration::from_micros(20);

/// The same when no port is suspended: only link notifications are delayed then.
const WATCH_SELDOM: Duration = Duration::from_millis(100);

/// Frames that go on through patch ports in one round: enough for a batch that is flooded to a
/// hundred bridges. What is beyond, as in a loop of bridges, does not hold up other ports.
const WALK_FRAMES: usize = 100 * RX_BATCH;

/// The keys of watched descriptors that are no port's.
const DOORBELL: u64 = u64::MAX;
pub(super) const MONITOR: u64 = u64::MAX - 1;

/// The key of a port on the watch.
pub(super) fn watch_key(shard: usize, port: usize) -> u64 {
    (shard as u64) << 32 | port as u64
}

/// The shard and the index of the port with this key.
fn port_of(key: u64) -> (usize, usize) {
    ((key >> 32) as usize, key as u32 as usize)
}

/// The parts of a new worker.
pub(crate) struct WorkerParts {
    /// Its identity.
    pub(crate) info: WorkerInfo,
    /// The clock of the whole switch.
    pub(crate) clock: Clock,
    /// Its doorbell.
    pub(crate) doorbell: Arc<Doorbell>,
    /// Commands to it.
    pub(crate) commands: Arc<WorkerQueue>,
    /// Its shards, in the order of the indices in their command queues.
    pub(crate) shards: Vec<ShardParts>,
    /// The link monitor of the namespace in which the ports were opened.
    pub(crate) monitor: Option<LinkMonitor>,
    /// Notified when it has ended, however it ended.
    pub(crate) ended: Arc<Notify>,
}

/// A forwarding thread: see the module.
pub(crate) struct Worker {
    pub(super) info: Arc<WorkerInfo>,
    clock: Clock,
    doorbell: Arc<Doorbell>,
    pub(super) commands: Arc<WorkerQueue>,
    pub(super) shards: Slots<Shard>,
    pub(super) watch: Watch,
    pub(super) poll_set: PollSet,
    pub(super) maintenance: Maintenance,
    /// Shards with pending commands or a counter flush under way.
    busy: VecDeque<usize>,
    /// Shards with port queues that hold frames back.
    holding: Vec<usize>,
    /// Shards with a port that needs service.
    pub(super) faulted: Vec<usize>,
    /// Shards whose doorbell was rung, while they are served.
    rung: Vec<usize>,
    /// Keys of patch ports that have got frames from ports of this worker.
    walks_on: Vec<u64>,
    /// Watch keys that are ready, while they are served.
    ready: Vec<u64>,
    /// When the watch was last asked.
    watched_at: Instant,
    idle_policy: IdlePolicy,
    /// Buffers, which the shards use in turn: the memory of a worker does not grow with the number
    /// of its bridges.
    pub(super) buffers: Batch,
    /// It has received [`super::WorkerCommand::Stop`].
    stops: bool,
    /// After the shards, whose devices are closed first.
    pub(super) devices: DeviceThread,
    ended: Arc<Notify>,
    /// Whether some shard has a kernel tier.
    pub(super) has_tier: bool,
    cpu_yield: CpuYield,
}

impl Worker {
    /// # Errors
    /// When no descriptor is left for the watch, or no thread for opening devices.
    pub(crate) fn new(parts: WorkerParts) -> io::Result<Self> {
        Self::with_open(parts, netdev::open_claimed)
    }

    fn with_open(parts: WorkerParts, open: Open) -> io::Result<Self> {
        let info = Arc::new(parts.info);
        let shard = |parts| Shard::new(parts, Arc::clone(&info));
        let shards: Slots<Shard> = parts.shards.into_iter().map(shard).collect();
        let watch = Watch::new()?;
        watch.add(parts.doorbell.fd(), DOORBELL)?;
        if let Some(monitor) = &parts.monitor {
            watch.add(monitor.fd(), MONITOR)?;
        }
        let ports = shards.iter().map(|(_, shard)| shard.ports.all().len()).sum();
        let has_tier = shards.iter().any(|(_, shard)| shard.has_tier());
        let now = Instant::now();
        let mut worker = Self {
            idle_policy: IdlePolicy::new(info.poll),
            devices: DeviceThread::new(Arc::clone(&parts.doorbell), ports, open)?,
            info,
            clock: parts.clock,
            doorbell: parts.doorbell,
            commands: parts.commands,
            maintenance: Maintenance::new(&shards, parts.monitor, now),
            shards,
            watch,
            poll_set: PollSet::new(ports),
            busy: VecDeque::new(),
            holding: Vec::new(),
            faulted: Vec::new(),
            rung: Vec::new(),
            walks_on: Vec::new(),
            ready: Vec::new(),
            watched_at: now,
            buffers: Batch::default(),
            stops: false,
            ended: parts.ended,
            has_tier,
            cpu_yield: CpuYield::new(now),
        };
        for shard in 0..worker.shards.end() {
            for port in 0..worker.shards.get(shard).map_or(0, |shard| shard.ports.all().end()) {
                worker.start_polling(shard, port);
                worker.hand_out((shard, port));
            }
        }
        Ok(worker)
    }

    /// Adds a port to the poll set and to the watch.
    pub(super) fn start_polling(&mut self, shard: usize, port: usize) {
        let key = watch_key(shard, port);
        let ports = self.shards.get_mut(shard).map(|shard| shard.ports.all_mut());
        let Some(found) = ports.and_then(|ports| ports.get_mut(port)) else { return };
        found.watch(&self.watch, key);
        if !found.member.polled {
            found.member.polled = true;
            self.poll_set.add(shard, port);
        }
        if found.patch.is_some()
            && let Some(found) = self.shards.get_mut(shard)
        {
            found.ports.place_patch(port, key);
        }
    }

    /// Serves the patch ports of this worker whose other ends have sent something; whether there
    /// was any. What is beyond a bound waits for the ports' next turns.
    fn walk_on(&mut self, now: Instant, time: Nanos) -> bool {
        let (mut walked, mut left) = (false, WALK_FRAMES);
        while let Some(key) = self.walks_on.pop() {
            walked = true;
            let (shard, port) = port_of(key);
            self.start_polling(shard, port);
            let Some(found) = self.shards.get_mut(shard).filter(|_| left > 0) else { continue };
            let (count, _) = found.forward(port, RX_BATCH, &mut self.buffers, (now, time));
            found.send_upcalls();
            left = left.saturating_sub(count.max(1));
            self.update_lists(shard);
        }
        walked
    }

    /// Forwards until [`super::WorkerCommand::Stop`] comes, then closes the ports.
    pub(crate) fn run(mut self) {
        let _ended = Ended(Arc::clone(&self.ended));
        let begun = Instant::now();
        let (mut before, mut slept) = (begun, Duration::ZERO);
        while !self.stops {
            let now = Instant::now();
            let time = self.clock.at(now);
            let mut worked = self.serve_rings(time);
            if self.has_tier {
                // Before the commands, so that what is answered comes after every ring before it.
                self.maintain_tiers(time);
            }
            worked |= self.run_commands(time);
            worked |= self.forward(now, time);
            worked |= self.maintain(now);
            self.info.perf.rounds.add(1);
            let awake = now.duration_since(before).saturating_sub(std::mem::take(&mut slept));
            // The whole before its parts, which are read first.
            self.info.perf.lived_ns.set(nanos(now.duration_since(begun)));
            if self.has_tier && self.cpu_yield.is_due(now) {
                self.yield_cpu(now);
            }
            if worked {
                self.idle_policy.worked();
                let every = if self.poll_set.may_suspend() { WATCH_EVERY } else { WATCH_SELDOM };
                if now.duration_since(self.watched_at) >= every {
                    self.wait_ready(now, Some(Duration::ZERO));
                }
            } else {
                self.info.perf.idle_ns.add(nanos(awake));
                let all_wake = self.all_wake();
                match self.idle_policy.idle(all_wake) {
                    Sleep::No => self.watch_while_idle(now),
                    Sleep::UntilWoken => slept = self.sleep(now, None),
                    Sleep::Nap(nap) => slept = self.sleep(now, Some(nap)),
                }
            }
            if !slept.is_zero() {
                self.info.perf.lived_ns.set(nanos(now.duration_since(begun) + slept));
                self.info.perf.asleep_ns.add(nanos(slept));
            }
            before = now;
        }
        let ports = self.shards.iter_mut().flat_map(|shard| shard.ports.all_mut().iter_mut());
        close_all(ports.filter_map(WorkerPort::take_device).collect());
    }

    /// Serves the worker's own commands and the shards whose doorbell was rung; whether there was a
    /// command to the worker, or another one has handed over frames.
    fn serve_rings(&mut self, time: Nanos) -> bool {
        self.doorbell.take(&mut self.rung);
        let mut rung = std::mem::take(&mut self.rung);
        let mut worked = false;
        for index in rung.drain(..) {
            match index {
                DEVICES => self.maintenance.has_opened = true,
                WORKER => {
                    self.run_worker_commands();
                    worked = true;
                }
                _ => {}
            }
            let Some(shard) = self.shards.get_mut(index) else { continue };
            worked |= shard.rung(&mut self.buffers, time);
            if !shard.is_listed_busy {
                shard.is_listed_busy = true;
                self.busy.push_back(index);
            }
            self.update_lists(index);
        }
        self.rung = rung;
        worked
    }

    /// Has a shard looked at as if its doorbell had been rung.
    pub(super) fn ring(&self, shard: usize) {
        self.doorbell.ring(shard);
    }

    /// Forgets a shard that has gone, whose index another may have.
    pub(super) fn forget(&mut self, shard: usize) {
        self.busy.retain(|busy| *busy != shard);
        self.holding.retain(|holding| *holding != shard);
        self.faulted.retain(|faulted| *faulted != shard);
    }

    /// Ends after this round.
    pub(super) fn stop(&mut self) {
        self.stops = true;
    }

    /// Sends the frames that queues release and carries out up to a batch of commands in all;
    /// whether there were any.
    fn run_commands(&mut self, time: Nanos) -> bool {
        let mut worked = false;
        let mut holding = std::mem::take(&mut self.holding);
        for index in holding.drain(..) {
            let Some(shard) = self.shards.get_mut(index) else { continue };
            shard.is_listed_holding = false;
            worked |= shard.release(&mut self.buffers, time);
            self.update_lists(index);
        }
        if self.holding.is_empty() {
            // Keeps the memory.
            self.holding = holding;
        }
        let mut done = 0;
        for _ in 0..self.busy.len() {
            if done >= COMMAND_BATCH {
                break;
            }
            let Some(index) = self.busy.pop_front() else { break };
            let Some(shard) = self.shards.get_mut(index) else { continue };
            done += shard.run_commands(&mut self.buffers, time);
            shard.send_upcalls();
            shard.is_listed_busy = shard.has_commands();
            if shard.is_listed_busy {
                self.busy.push_back(index);
            }
            if !shard.port_changes.is_empty() {
                self.change_ports(index);
            }
            self.update_lists(index);
        }
        worked || done > 0
    }

    /// Gives every polled port its turn; whether there was any frame, or a port that waits for its
    /// turn.
    fn forward(&mut self, now: Instant, time: Nanos) -> bool {
        let mut worked = false;
        let mut timed = self.poll_set.begin_round().then_some(now);
        for at in 0..self.poll_set.ports().len() {
            let Some(&PolledPort { shard: index, port, .. }) = self.poll_set.ports().get(at) else {
                break;
            };
            let Some(shard) = self.shards.get_mut(index) else { continue };
            let most = self.poll_set.turn(at);
            if most == 0 {
                worked = true;
                continue;
            }
            let (count, asked) = shard.forward(port, most, &mut self.buffers, (now, time));
            self.poll_set.record_rx(at, count, asked);
            if let Some(begun) = timed.as_mut().filter(|_| count > 0) {
                let ended = Instant::now();
                self.poll_set.record_time(at, count, nanos(ended.duration_since(*begun)));
                *begun = ended;
            }
            worked |= count > 0;
            self.update_lists(index);
        }
        worked |= self.walk_on(now, time);
        // Packet-ins of all ports of a bridge go up together.
        for port in self.poll_set.ports() {
            if let Some(shard) = self.shards.get_mut(port.shard) {
                shard.send_upcalls();
            }
        }
        self.suspend(false);
        worked
    }

    /// Yields the processor to others, or does so no longer, by the kernel tiers' frames.
    #[cold]
    fn yield_cpu(&mut self, now: Instant) {
        let perf = &self.info.perf;
        let mut tier = TierFrames::default();
        for (_, shard) in self.shards.iter() {
            let TierFrames { seen, handed_over } = shard.tier_frames();
            tier.seen += seen;
            tier.handed_over += handed_over;
        }
        let figures = WorkerFigures {
            lived: Duration::from_nanos(perf.lived_ns.get()),
            idle: Duration::from_nanos(perf.idle_ns.get() + perf.asleep_ns.get()),
            taken: perf.packets.get(),
            tier,
        };
        if let Some(yielded) = self.cpu_yield.decide(now, figures) {
            perf.yielded_ns.add(nanos(yielded));
        }
    }

    /// Asks the kernel tiers for what they have used, and ends what does not hold any more.
    fn maintain_tiers(&mut self, time: Nanos) {
        for shard in self.shards.iter_mut() {
            if shard.tier_due().is_some_and(|due| due <= time) {
                shard.maintain_tier(time);
            }
        }
    }

    /// Puts a shard that was served on the lists that it belongs to now.
    pub(super) fn update_lists(&mut self, index: usize) {
        let Some(shard) = self.shards.get_mut(index) else { return };
        shard.ports.take_walks_on(&mut self.walks_on);
        if shard.egress.is_holding() && !shard.is_listed_holding {
            shard.is_listed_holding = true;
            self.holding.push(index);
        }
        if shard.ports.has_new_fault() {
            self.maintenance.has_new_fault = true;
            if !shard.is_listed_faulted {
                shard.is_listed_faulted = true;
                self.faulted.push(index);
            }
        }
    }

    /// Suspends the ports that have been idle for long; or all of them, before the worker sleeps.
    fn suspend(&mut self, all: bool) {
        let (shards, watch) = (&mut self.shards, &self.watch);
        self.poll_set.suspend(all, |shard, port| {
            let key = watch_key(shard, port);
            let ports = shards.get_mut(shard).map(|shard| shard.ports.all_mut());
            let Some(found) = ports.and_then(|ports| ports.get_mut(port)) else { return true };
            let may = found.watch(watch, key);
            found.member.polled = !may;
            may
        });
    }

    /// Whether every polled port can wake the worker.
    fn all_wake(&mut self) -> bool {
        let (shards, watch) = (&mut self.shards, &self.watch);
        self.poll_set.ports().iter().all(|polled| {
            let ports = shards.get_mut(polled.shard).map(|shard| shard.ports.all_mut());
            let port = ports.and_then(|ports| ports.get_mut(polled.port));
            port.is_none_or(|port| {
                port.member.watched || port.watch(watch, watch_key(polled.shard, polled.port))
            })
        })
    }

    /// A worker that never sleeps asks the watch all the same.
    fn watch_while_idle(&mut self, now: Instant) {
        let since = now.duration_since(self.watched_at);
        if since >= WATCH_SELDOM || (self.poll_set.may_suspend() && since >= WATCH_EVERY) {
            self.wait_ready(now, Some(Duration::ZERO));
        }
    }

    /// Sleeps until a port is ready, the doorbell is rung, or something is due, but no longer than
    /// `most`; for how long it did.
    fn sleep(&mut self, now: Instant, most: Option<Duration>) -> Duration {
        if !self.busy.is_empty() {
            return Duration::ZERO;
        }
        let holding = self.holding.iter().filter_map(|index| self.shards.get(*index));
        let release = holding.filter_map(|shard| shard.egress.next_release()).min();
        let release = release.map(|at| self.clock.moment(at));
        let tiers = self.has_tier.then(|| self.shards.iter());
        let tiers = tiers.into_iter().flatten().filter_map(|(_, shard)| shard.tier_due()).min();
        let tiers = tiers.map(|at| self.clock.moment(at));
        let due = self.maintenance.next_due().into_iter().chain(release).chain(tiers).min();
        let due = due.map(|due| due.saturating_duration_since(now));
        let timeout = due.into_iter().chain(most).min();
        if timeout.is_some_and(|timeout| timeout.is_zero()) || !self.doorbell.may_sleep() {
            return Duration::ZERO;
        }
        self.suspend(true);
        let begun = Instant::now();
        self.wait_ready(begun, timeout);
        self.doorbell.awake();
        self.info.perf.sleeps.add(1);
        begun.elapsed()
    }

    /// Waits up to `timeout` for ready descriptors, and serves them.
    fn wait_ready(&mut self, now: Instant, timeout: Option<Duration>) {
        self.watched_at = now;
        let mut ready = std::mem::take(&mut self.ready);
        if let Err(error) = self.watch.wait(timeout, &mut ready) {
            tracing::warn!(%error, "sleeping on the ports failed");
            std::thread::sleep(Duration::from_millis(10));
        }
        for key in ready.drain(..) {
            match key {
                DOORBELL => self.doorbell.reset(),
                MONITOR => self.maintenance.has_link_changes = true,
                key => {
                    let (shard, port) = port_of(key);
                    self.start_polling(shard, port);
                }
            }
        }
        self.ready = ready;
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Notifies the agent when the worker has ended, however it ended.
struct Ended(Arc<Notify>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::{self, JoinHandle};

    use netdev::{LinkNotification, Port, PortCounters, PortDevice, PortError, PortInfo, PortSpec};
    use openflow::PortNo;
    use packet::PacketBuf;

    use super::*;
    use crate::config::{Poll, Wire};
    use crate::counters::{Counter, Counters};
    use crate::upcall::PacketInPolicer;
    use crate::worker::{
        CommandQueue, Forwarding, PerfStats, PortMap, PortSerial, ShardCommand, ShardUpcalls,
        WorkerCommand, distribute_ports,
    };

    const DEADLINE: Duration = Duration::from_secs(30);

    /// Whether the devices of the test may go on: until then opening and closing block.
    static MAY_OPEN: AtomicBool = AtomicBool::new(false);
    static MAY_CLOSE: AtomicBool = AtomicBool::new(false);
    static IS_CLOSING: AtomicBool = AtomicBool::new(false);
    static IS_OPENING: AtomicBool = AtomicBool::new(false);

    fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < DEADLINE, "{what}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn open_slowly(spec: &PortSpec) -> Result<Port, PortError> {
        IS_OPENING.store(true, Ordering::SeqCst);
        until("may open", || MAY_OPEN.load(Ordering::SeqCst));
        netdev::open(spec)
    }

    /// A device that blocks when it is closed.
    struct SlowlyClosed(Box<dyn PortDevice>);

    impl PortDevice for SlowlyClosed {
        fn info(&mut self) -> PortInfo {
            self.0.info()
        }

        fn link_notification(&self) -> LinkNotification {
            self.0.link_notification()
        }

        fn counters(&mut self) -> PortCounters {
            self.0.counters()
        }
    }

    impl Drop for SlowlyClosed {
        fn drop(&mut self) {
            IS_CLOSING.store(true, Ordering::SeqCst);
            until("may close", || MAY_CLOSE.load(Ordering::SeqCst));
        }
    }

    fn worker_port(number: u32, spec: &str) -> WorkerPort {
        WorkerPort::open(PortNo(number), PortSerial(0), spec.parse().unwrap()).unwrap()
    }

    /// A worker of a wire between these ports, one of them maybe without a device, and the ways to
    /// it and to its shard.
    fn wire_worker(
        ports: Vec<WorkerPort>,
        faulted: Option<usize>,
        counters: &Arc<Counters>,
    ) -> (JoinHandle<()>, Arc<WorkerQueue>, Arc<CommandQueue>) {
        let doorbell = Arc::new(Doorbell::new().unwrap());
        let queue = Arc::new(CommandQueue::new(Arc::clone(&doorbell), 0));
        let commands = Arc::new(WorkerQueue::of_worker(Arc::clone(&doorbell)));
        let policer = PacketInPolicer::new(0, 1, Arc::clone(counters));
        let numbers: Vec<_> = ports.iter().map(|port| (port.number, 1)).collect();
        let map = Arc::new(PortMap::new(&numbers, 1));
        let (mut ports, egress) =
            distribute_ports(ports, &map, &[Arc::clone(&queue)], counters).remove(0);
        faulted.into_iter().for_each(|index| ports.note_fault(index));
        let shard = ShardParts {
            bridge: None,
            forwarding: Forwarding::Wire(Wire::Io),
            ports,
            egress,
            commands: Arc::clone(&queue),
            upcalls: Arc::new(ShardUpcalls::new(8, policer)),
            tier_plan: None,
            counters: Arc::clone(counters),
        };
        let info =
            WorkerInfo { index: 0, cpu: None, poll: Poll::Adaptive, perf: PerfStats::default() };
        let parts = WorkerParts {
            info,
            clock: Clock::begin(),
            doorbell,
            commands: Arc::clone(&commands),
            shards: vec![shard],
            monitor: None,
            ended: Arc::default(),
        };
        let worker = Worker::with_open(parts, open_slowly).unwrap();
        (thread::spawn(move || worker.run()), commands, queue)
    }

    #[test]
    fn the_ports_have_their_turn_between_questions() {
        let ports = vec![worker_port(1, "null:a"), worker_port(2, "null:b")];
        let (thread, stop, queue) = wire_worker(ports, None, &Arc::default());
        let (answer, answers) = std::sync::mpsc::channel();
        let question = |_| {
            let answer = answer.clone();
            let ask = move |shard: &mut Shard| answer.send(shard.sample().perf.rounds).unwrap();
            ShardCommand::Ask(Box::new(ask))
        };
        queue.send(&mut (0..100).map(question).collect());
        let rounds: Vec<u64> = answers.iter().take(100).collect();
        assert_eq!(rounds.chunk_by(|a, b| a == b).map(<[u64]>::len).max(), Some(4));
        stop.send(&mut vec![WorkerCommand::Stop]);
        thread.join().unwrap();
    }

    #[test]
    fn the_other_ports_forward_while_a_device_is_closed_and_opened() {
        let mut ports = vec![
            worker_port(1, "memory:slow-a?end=a"),
            worker_port(2, "memory:slow-b?end=a"),
            worker_port(3, "null:x"),
        ];
        let mut hosts =
            ["memory:slow-a?end=b", "memory:slow-b?end=b"].map(|s| netdev::open_text(s).unwrap());
        // The third port has lost its device.
        let (spec, device) = (ports[2].spec.clone(), ports[2].take_device().unwrap());
        let slow = Port { device: Box::new(SlowlyClosed(device.device)), ..device };
        ports[2] = WorkerPort::of_device(PortNo(3), PortSerial(0), slow, spec);
        ports[2].lose(Instant::now());
        let counters = Arc::<Counters>::default();
        let (thread, stop, _) = wire_worker(ports, Some(2), &counters);
        let mut batch = Batch::default();
        let mut forwards = |byte: u8| {
            let frame = vec![byte; 60];
            hosts[0].tx(&[PacketBuf::from_slice(&frame)]).unwrap();
            batch.clear();
            until("forwarded", || hosts[1].rx(&mut batch, 1).unwrap() == 1);
            assert_eq!(batch.frames()[0].bytes(), frame);
        };
        until("closing", || IS_CLOSING.load(Ordering::SeqCst));
        (0..50).for_each(&mut forwards);
        assert!(!IS_OPENING.load(Ordering::SeqCst), "a device is closed before the next is opened");
        MAY_CLOSE.store(true, Ordering::SeqCst);
        until("opening", || IS_OPENING.load(Ordering::SeqCst));
        (50..100).for_each(&mut forwards);
        assert_eq!(counters.get(Counter::PortReopened), 0);
        MAY_OPEN.store(true, Ordering::SeqCst);
        until("reopened", || counters.get(Counter::PortReopened) == 1);
        (100..120).for_each(&mut forwards);
        assert_eq!(counters.get(Counter::PortGone), 1);
        stop.send(&mut vec![WorkerCommand::Stop]);
        thread.join().unwrap();
    }
}
