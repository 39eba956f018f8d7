//! From a configuration to bridges and workers, and to bridges of a switch that runs.
//!
//! All ports of the start are opened here, in the order of the bridges; a bridge that comes later
//! is made without ports, which are added to it. The workers are few and serve all bridges: a
//! bridge takes as many of them as it has pairs of ports, and bridges take them in turns.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use channel::{ConnectionLog, Tls, TlsFiles};
use datapath::fast::{Control, RemovalReport, Restored};
use datapath::{MemoryBudget, QueueRates};
use netdev::{LinkMonitor, LinkNotification};
use openflow::{DatapathId, MacAddr, PortNo};
use tokio::sync::{Notify, oneshot};

use crate::agent::{Agent, Bridges, note_restored};
use crate::bridge::{Bridge, BridgePort, BridgeQueues, Identity};
use crate::config::{BridgeConfig, Config, Forward, PortConfig, PortQueues, Wire};
use crate::counters::Counters;
use crate::error::{SwitchError, failed};
use crate::journal::{Journal, JournalOwner, StateFolder};
use crate::kept_tiers::KeptTiers;
use crate::memory::ProcessMemory;
use crate::upcall::PacketInPolicer;
use crate::worker::{
    Clock, CommandQueue, Doorbell, Forwarding, PerfStats, PortMap, PortSerial, Ports, Shaper,
    Shard, ShardParts, ShardUpcalls, TierPlan, Worker, WorkerCommand, WorkerInfo, WorkerParts,
    WorkerPort, WorkerQueue, distribute_ports,
};

/// Bridges and workers, ready to run.
pub(crate) struct Assembled {
    /// All bridges.
    pub(crate) bridges: Rc<Bridges>,
    /// The workers.
    pub(crate) workers: Vec<Worker>,
    /// Notified when a worker has ended.
    pub(crate) ended: Arc<Notify>,
    /// The kernel tiers that outlive the process.
    pub(crate) kept: Option<Rc<KeptTiers>>,
}

/// Opens the ports of all bridges and makes what serves them.
pub(crate) fn assemble(config: &Config) -> Result<Assembled, SwitchError> {
    let mut assembly = Assembly::new(config)?;
    let mut agents = Vec::new();
    let mut dpids = BTreeMap::new();
    for bridge in &config.bridges {
        let agent = assembly.bridge(bridge).map_err(|error| assembly.in_bridge(bridge, error))?;
        let dpid = agent.bridge.dpid();
        if let Some(other) = dpids.insert(dpid, bridge.name.clone()) {
            return Err(assembly.in_bridge(bridge, SwitchError::SameDpid { dpid, other }));
        }
        agents.push(Rc::new(agent));
    }
    if let Some(state) = &assembly.state {
        state.retire_others(config.bridges.iter().map(|bridge| bridge.name.as_str()))?;
    }
    let (workers, ended) = assembly.workers(config)?;
    let kept = assembly.kept.clone();
    kept.iter().for_each(|kept| kept.end_unclaimed());
    let bridges = Bridges::new(agents, config, assembly);
    Ok(Assembled { bridges: Rc::new(bridges), workers, ended, kept })
}

/// A worker from the side of who makes bridges.
struct WorkerPlace {
    doorbell: Arc<Doorbell>,
    commands: Arc<WorkerQueue>,
    /// The indices that shards have.
    taken: Vec<bool>,
    /// Its shards, until it starts.
    shards: Vec<ShardParts>,
}

impl WorkerPlace {
    fn new() -> io::Result<Self> {
        let doorbell = Arc::new(Doorbell::new()?);
        let commands = Arc::new(WorkerQueue::of_worker(Arc::clone(&doorbell)));
        Ok(Self { doorbell, commands, taken: Vec::new(), shards: Vec::new() })
    }

    /// The lowest index that no shard has.
    fn free_index(&self) -> usize {
        let free = self.taken.iter().position(|taken| !taken);
        free.unwrap_or(self.taken.len())
    }

    fn set_taken(&mut self, index: usize, taken: bool) {
        if self.taken.len() <= index {
            self.taken.resize(index + 1, false);
        }
        if let Some(slot) = self.taken.get_mut(index) {
            *slot = taken;
        }
    }
}

/// The place of a shard: its worker, and its index there.
type ShardPlace = (usize, usize);

/// The parts that were made so far, from which more are made.
pub(crate) struct Assembly {
    are_several: bool,
    bridges: usize,
    clock: Clock,
    workers: Vec<WorkerPlace>,
    /// The places of the shards of each bridge.
    places: BTreeMap<String, Vec<ShardPlace>>,
    /// The worker that the next bridge begins with.
    next_worker: usize,
    /// Lines of each forwarder's cache at first and at most.
    lines: Option<(usize, usize)>,
    has_devices: bool,
    /// The memory that all bridges together may take.
    memory: Option<Arc<ProcessMemory>>,
    /// Rate limits of log lines about connections.
    connection_log: Rc<ConnectionLog>,
    /// The folder in which the state of the bridges is kept.
    state: Option<StateFolder>,
    /// The kernel tiers that outlive the process with it.
    kept: Option<Rc<KeptTiers>>,
    /// Keys and certificates that have been read.
    tls: Vec<(TlsFiles, bool, Tls)>,
}

impl Assembly {
    fn new(config: &Config) -> Result<Self, SwitchError> {
        let workers: io::Result<Vec<_>> = (0..config.workers).map(|_| WorkerPlace::new()).collect();
        let state = config.state.as_deref().map(StateFolder::open).transpose()?;
        Ok(Self {
            are_several: config.bridges.len() > 1,
            bridges: config.bridges.len(),
            kept: state.as_ref().and_then(KeptTiers::open).map(Rc::new),
            clock: if state.is_some() { Clock::of_machine() } else { Clock::begin() },
            state,
            workers: workers.map_err(failed("making an eventfd"))?,
            places: BTreeMap::new(),
            next_worker: 0,
            lines: lines(config.bridges.len()),
            has_devices: false,
            memory: ProcessMemory::of(config.max_memory).map(Arc::new),
            connection_log: Rc::default(),
            tls: Vec::new(),
        })
    }

    /// The error as one of this bridge, where there are several.
    fn in_bridge(&self, bridge: &BridgeConfig, error: SwitchError) -> SwitchError {
        if !self.are_several {
            return error;
        }
        SwitchError::Bridge { name: bridge.name.clone(), source: Box::new(error) }
    }

    /// Makes a bridge of the start and its shards.
    fn bridge(&mut self, config: &BridgeConfig) -> Result<Agent, SwitchError> {
        let worker_ports = open_ports(&config.ports)?;
        self.has_devices |= worker_ports
            .iter()
            .any(|port| matches!(port.link_notification(), LinkNotification::Netlink(_)));
        let tls = self.tls(config)?;
        let workers = self.workers_for(worker_ports.len());
        let dpid = config.dpid.unwrap_or_else(|| made_dpid(first_mac(&worker_ports), |_| false));
        let (agent, shards) = self.make(config, dpid, tls, worker_ports, &workers)?;
        for ((worker, _), parts) in shards {
            if let Some(place) = self.workers.get_mut(worker) {
                place.shards.push(parts);
            }
        }
        Ok(agent)
    }

    /// Prepares for bridges that come to a switch that runs: the memory of each depends on their
    /// number.
    pub(crate) fn expect_bridges(&mut self, coming: usize) {
        self.are_several = true;
        self.bridges = self.places.len() + coming;
        self.lines = lines(self.bridges);
    }

    /// Makes a bridge without ports for a switch that runs. Its shards are where each of the
    /// receivers says so.
    ///
    /// # Errors
    /// Keys and certificates that cannot be read are an error of [`tls_of`], not of this.
    pub(crate) fn begin_bridge(
        &mut self,
        config: &BridgeConfig,
        dpid: DatapathId,
        tls: Option<Tls>,
    ) -> Result<(Agent, Vec<oneshot::Receiver<()>>), SwitchError> {
        self.state.as_ref().map_or(Ok(()), |state| state.forget(&config.name))?;
        // Where its ports are not known yet, any worker may get one.
        let workers = match config.ports.len() {
            0 => (0..self.workers.len()).collect(),
            ports => self.workers_for(ports),
        };
        let (agent, shards) = self.make(config, dpid, tls, Vec::new(), &workers)?;
        let mut begun = Vec::new();
        for ((worker, index), parts) in shards {
            let Some(place) = self.workers.get_mut(worker) else { continue };
            let (done, is_done) = oneshot::channel();
            let command = WorkerCommand::AddShard(index, Box::new(parts), done);
            place.commands.send(&mut vec![command]);
            begun.push(is_done);
        }
        Ok((agent, begun))
    }

    /// Takes the shards of a bridge without ports away; the receiver of one drops it.
    pub(crate) fn end_bridge(&mut self, name: &str) -> Vec<oneshot::Receiver<Option<Box<Shard>>>> {
        let mut ended = Vec::new();
        for (worker, index) in self.places.remove(name).unwrap_or_default() {
            let Some(place) = self.workers.get_mut(worker) else { continue };
            place.set_taken(index, false);
            let (done, is_done) = oneshot::channel();
            place.commands.send(&mut vec![WorkerCommand::RemoveShard(index, done)]);
            ended.push(is_done);
        }
        ended
    }

    /// Ends the workers.
    pub(crate) fn stop(&self) {
        for place in &self.workers {
            place.commands.send(&mut vec![WorkerCommand::Stop]);
        }
    }

    /// Places for a shard on each of these workers, and its queue of commands.
    fn claim(&mut self, workers: &[usize]) -> (Vec<ShardPlace>, Vec<Arc<CommandQueue>>) {
        let (mut places, mut queues) = (Vec::new(), Vec::new());
        for worker in workers {
            let Some(place) = self.workers.get_mut(*worker) else { continue };
            let index = place.free_index();
            place.set_taken(index, true);
            places.push((*worker, index));
            queues.push(Arc::new(CommandQueue::new(Arc::clone(&place.doorbell), index)));
        }
        (places, queues)
    }

    /// The tables of a bridge with `forwarders` forwarders, or the mode of one that has none; and
    /// where its state is kept, the journal that they are restored from.
    #[expect(clippy::type_complexity, reason = "each part goes to another place at once")]
    fn tables(
        &self,
        config: &BridgeConfig,
        forwarders: usize,
        owner: JournalOwner,
    ) -> Result<(Result<Control, Wire>, Option<(Journal, Restored)>), SwitchError> {
        let mut control = control_of(config, forwarders);
        if let (Ok(control), Some(memory)) = (&mut control, &self.memory) {
            control.set_memory_budget(Arc::clone(memory) as Arc<dyn MemoryBudget>);
        }
        let kept = self.state.as_ref().zip(control.as_mut().ok());
        let now = self.clock.now();
        let journal = kept.map(|(state, control)| Journal::open(state, owner, control, now));
        Ok((control, journal.transpose()?))
    }

    /// A bridge with these ports, and its shards with their places.
    fn make(
        &mut self,
        config: &BridgeConfig,
        dpid: DatapathId,
        tls: Option<Tls>,
        mut worker_ports: Vec<WorkerPort>,
        workers: &[usize],
    ) -> Result<(Agent, Vec<(ShardPlace, ShardParts)>), SwitchError> {
        let shaped = shape(&config.queues, &mut worker_ports)?;
        let identity = Identity { dpid, desc: config.desc.clone() };
        let numbers: Vec<(PortNo, usize)> =
            worker_ports.iter().map(|port| (port.number, port.queue_count())).collect();
        let counters = Arc::new(Counters::default());
        let (rate, burst) = (config.packet_in_rate, config.packet_in_burst);
        let policer = PacketInPolicer::new(rate, burst, Arc::clone(&counters));
        let upcalls = Arc::new(ShardUpcalls::new(config.packet_in_queue, policer));
        let owner = owner_of(config, dpid, &worker_ports, &counters);
        let (control, journal) = self.tables(config, workers.len(), owner)?;
        let log_name: Option<Arc<str>> = self.are_several.then(|| config.name.as_str().into());
        let (places, queues) = self.claim(workers);
        let map = port_map(&numbers, queues.len(), &worker_ports);
        let spread = distribute_ports(worker_ports, &map, &queues, &counters);
        let tier_plan = self.tier_plan(config, queues.len());
        for (_, port) in spread.iter().flat_map(|(ports, _)| ports.all().iter()) {
            tier_plan.iter().for_each(|plan| plan.add(port));
        }
        let (mut ports, mut shards) = (Vec::new(), Vec::new());
        let places_of_queues = places.iter().zip(&queues).zip(spread).enumerate();
        for (index, ((place, queue), (mut shard_ports, egress))) in places_of_queues {
            let tables = control.as_ref().map_err(|wire| *wire);
            let mut forwarding = forwarding(config, tables, index, self.lines);
            enter_tier((tier_plan.as_ref(), index), &mut forwarding, &mut shard_ports);
            let homes = shard_ports.all().iter().filter(|(_, port)| port.is_home());
            ports.extend(homes.map(|(_, port)| BridgePort::of(port)));
            let parts = ShardParts {
                bridge: log_name.clone(),
                forwarding,
                ports: shard_ports,
                tier_plan: tier_plan.clone(),
                egress,
                commands: Arc::clone(queue),
                upcalls: Arc::clone(&upcalls),
                counters: Arc::clone(&counters),
            };
            shards.push((*place, parts));
        }
        // Once all of them have found which of their ports are in a tier.
        for (_, parts) in &mut shards {
            parts.forwarding.refresh_tier_outputs();
        }
        self.places.insert(config.name.clone(), places);
        ports.sort_unstable_by_key(|port| port.number);
        let bridge = Bridge::new(
            identity,
            self.clock,
            control.ok(),
            queues,
            map,
            ports,
            Arc::clone(&counters),
        );
        let (journal, restored) = journal.unzip();
        let bridge = bridge.with_queues(shaped).with_journal(journal);
        let log = Rc::clone(&self.connection_log);
        let agent = Agent::new(config.clone(), log_name, tls, counters, upcalls, bridge, log);
        restored.into_iter().for_each(|restored| self.note_restored(&agent, restored));
        Ok((agent, shards))
    }

    /// The plan by which the shards of a bridge get kernel tiers; `None` where it uses none.
    fn tier_plan(&self, config: &BridgeConfig, workers: usize) -> Option<TierPlan> {
        let has_tables = matches!(config.forward, Forward::Openflow);
        let is_wanted = has_tables && config.caches.0.kernel;
        let kept = || self.kept.as_ref().map(|kept| kept.of_bridge(&config.name));
        is_wanted.then(|| TierPlan::new(config, workers, self.bridges, self.clock, kept()))
    }

    /// Keeps what the next steps need of a state that was restored.
    fn note_restored(&self, agent: &Agent, restored: Restored) {
        if restored.entries > 0 {
            note_restored(agent);
        }
        if let Some(kept) = &self.kept {
            kept.note_restored(&agent.config().name, &agent.bridge, restored.numbers);
        }
    }

    /// The workers of a bridge with `ports` ports: all of them for one that is alone, and else one
    /// for each pair of ports.
    fn workers_for(&mut self, ports: usize) -> Vec<usize> {
        let all = self.workers.len();
        let count = if self.are_several { ports.div_ceil(2).clamp(1, all) } else { all };
        let chosen = (0..count).map(|nth| (self.next_worker + nth) % all).collect();
        self.next_worker = (self.next_worker + count) % all;
        chosen
    }

    /// Key and certificates of a bridge; read once for all bridges that have the same.
    fn tls(&mut self, config: &BridgeConfig) -> Result<Option<Tls>, SwitchError> {
        let Some(files) = &config.tls else { return Ok(None) };
        let checks = config.check_peer_name;
        let mut known = self.tls.iter();
        if let Some((.., tls)) = known.find(|(known, name, _)| known == files && *name == checks) {
            return Ok(Some(tls.clone()));
        }
        let tls = tls_of(config)?;
        self.tls.extend(tls.clone().map(|tls| (files.clone(), checks, tls)));
        Ok(tls)
    }

    /// The workers, and what is notified when one has ended.
    fn workers(&mut self, config: &Config) -> Result<(Vec<Worker>, Arc<Notify>), SwitchError> {
        let ended = Arc::new(Notify::new());
        let mut workers = Vec::new();
        let all = self.workers.len();
        // Bridges come to the workers in order, so that those without one are the last. Those of a
        // switch without bridges wait for what comes.
        if !config.bridges.is_empty() {
            self.workers.retain(|place| !place.shards.is_empty());
        }
        let may_get_devices = self.has_devices || config.bridges.is_empty();
        self.next_worker = 0;
        for (index, place) in self.workers.iter_mut().enumerate() {
            let cpu = config.worker_cores.get(index).copied();
            let worker = Worker::new(WorkerParts {
                info: WorkerInfo { index, cpu, poll: config.poll, perf: PerfStats::default() },
                clock: self.clock,
                doorbell: Arc::clone(&place.doorbell),
                commands: Arc::clone(&place.commands),
                shards: std::mem::take(&mut place.shards),
                monitor: if may_get_devices { monitor() } else { None },
                ended: Arc::clone(&ended),
            });
            workers.push(worker.map_err(failed("making what a worker sleeps on"))?);
        }
        if workers.len() < all {
            let started = workers.len();
            tracing::warn!(
                workers = all,
                started,
                "the bridges have too few ports for all workers"
            );
        }
        Ok((workers, ended))
    }
}

/// Key and certificates of a bridge, read now.
///
/// # Errors
/// A file cannot be read, or is no key or certificate.
pub(crate) fn tls_of(config: &BridgeConfig) -> Result<Option<Tls>, SwitchError> {
    let load = |files: &TlsFiles| Tls::load(files.clone(), config.check_peer_name);
    Ok(config.tls.as_ref().map(load).transpose()?)
}

/// The monitor of devices; without it ports are asked again and again.
fn monitor() -> Option<LinkMonitor> {
    LinkMonitor::open()
        .inspect_err(|error| {
            tracing::warn!(%error, "the kernel reports no devices; ports are asked instead");
        })
        .ok()
}

/// Lines of a forwarder's cache at first and at most, with `bridges` bridges; `None` for the usual.
/// Caches grow with the flows that they hold. For a thousand bridges the usual would be gigabytes
/// at first and hundreds of them at most. A line has 64 bytes.
fn lines(bridges: usize) -> Option<(usize, usize)> {
    const FIRST: usize = 1 << 16;
    const MOST: usize = 1 << 24;
    let bridges = (bridges > 1).then(|| bridges.next_power_of_two())?;
    let most = (MOST / bridges).clamp(1 << 12, 1 << 22);
    Some(((FIRST / bridges).max(1 << 8), most))
}

fn open_ports(ports: &[PortConfig]) -> Result<Vec<WorkerPort>, SwitchError> {
    let mut worker_ports = Vec::new();
    for PortConfig { number, spec } in ports {
        let port = WorkerPort::open(*number, PortSerial(0), spec.clone())
            .map_err(|source| SwitchError::Port { number: *number, source })?;
        for note in &port.info.notes {
            tracing::info!(port = %number, name = port.info.name, note, "port opened");
        }
        worker_ports.push(port);
    }
    Ok(worker_ports)
}

/// The places of ports and their queues; those with a rate are sent to from one place.
fn port_map(
    numbers: &[(PortNo, usize)],
    workers: usize,
    worker_ports: &[WorkerPort],
) -> Arc<PortMap> {
    let mut map = PortMap::new(numbers, workers);
    for port in worker_ports.iter().filter(|port| port.shaper.is_some()) {
        map = map.sent_from_home(port.number).unwrap_or(map);
    }
    Arc::new(map)
}

/// A bridge as its journal knows it.
fn owner_of(
    config: &BridgeConfig,
    dpid: DatapathId,
    worker_ports: &[WorkerPort],
    counters: &Arc<Counters>,
) -> JournalOwner {
    JournalOwner {
        name: config.name.clone(),
        dpid,
        ports: worker_ports.iter().map(|it| (it.number, it.info.name.clone())).collect(),
        counters: Arc::clone(counters),
    }
}

/// Gives the shard of a worker its kernel tier, with the programs at the ports where that is
/// possible; the others have a note why not. None where there is no such port. Its outputs are
/// still to be set, and further queues enter when they are handed out.
fn enter_tier(
    (plan, worker): (Option<&TierPlan>, usize),
    forwarding: &mut Forwarding,
    ports: &mut Ports,
) {
    let (Forwarding::Tables(forwarder), Some(plan)) = (forwarding, plan) else { return };
    for port in ports.all_mut().iter_mut() {
        port.enter_tier(&plan.entry_of(port, worker));
        if port.is_in_tier() {
            forwarder.enter_tier(port.number);
        }
    }
    let is_used = ports.all().iter().any(|(_, port)| port.is_in_tier());
    match is_used.then(|| plan.take(worker)).flatten() {
        Some(tier) => forwarder.set_kernel(tier),
        None => {
            let homes = ports.all().iter().filter(|(_, port)| port.is_home());
            homes.for_each(|(_, port)| plan.remove(port.number));
        }
    }
}

/// Installs the queues of ports on their workers; returns the agent's side of them.
fn shape(
    wanted: &[PortQueues],
    worker_ports: &mut [WorkerPort],
) -> Result<Vec<BridgeQueues>, SwitchError> {
    let mut held = Vec::new();
    for PortQueues { number, rate_bps, queues } in wanted {
        let Some(port) = worker_ports.iter_mut().find(|port| port.number == *number) else {
            continue;
        };
        let (shaper, queues) = queues_of(*number, port.info.speed_bps, *rate_bps, queues)?;
        port.shaper = Some(shaper);
        held.push(queues);
    }
    Ok(held)
}

/// The queues of a port whose device has this speed: the worker's side and the agent's.
pub(crate) fn queues_of(
    number: PortNo,
    speed_bps: u64,
    wanted_bps: Option<u64>,
    queues: &[QueueRates],
) -> Result<(Shaper, BridgeQueues), SwitchError> {
    // Everything else was found when the configuration was checked.
    let rate_bps = wanted_bps.unwrap_or(speed_bps);
    let shaper = Shaper::new(rate_bps, queues).map_err(|_| SwitchError::NoRate(number))?;
    let cells = Arc::clone(shaper.cells());
    Ok((shaper, BridgeQueues::new(number, rate_bps, queues.to_vec(), cells)))
}

/// The tables of a bridge with `forwarders` forwarders; the mode of one that has none.
fn control_of(config: &BridgeConfig, forwarders: usize) -> Result<Control, Wire> {
    match config.forward {
        Forward::Openflow => {
            let sizes = datapath::DatapathConfig {
                n_tables: config.tables,
                max_entries: config.max_entries,
                mac_age_s: config.mac_age_s,
                ..datapath::DatapathConfig::default()
            };
            let mut control = Control::new(sizes, forwarders, RemovalReport::Asked);
            for (port, vlans) in &config.vlans {
                control.port_vlans(*port, vlans.clone());
            }
            control.set_flow_tables(config.flow_tables.clone(), datapath::Nanos(0));
            control.set_mirrors(config.mirrors.clone());
            Ok(control)
        }
        Forward::Wire(wire) => Err(wire),
    }
}

fn forwarding(
    config: &BridgeConfig,
    control: Result<&Control, Wire>,
    index: usize,
    lines: Option<(usize, usize)>,
) -> Forwarding {
    match control {
        Ok(control) => {
            // Nobody outside knows the seed, which keeps packets from being chosen to collide.
            let seed = RandomState::new().hash_one(index);
            let mut forwarder = control.forwarder(index, seed);
            if let Some((first, most)) = lines {
                forwarder.set_lines(first, most);
            }
            forwarder.set_caches(config.caches.0, datapath::Nanos(0));
            Forwarding::Tables(Box::new(forwarder))
        }
        Err(wire) => Forwarding::Wire(wire),
    }
}

/// The address of the first port, which the datapath id is made of.
pub(crate) fn first_mac(worker_ports: &[WorkerPort]) -> Option<MacAddr> {
    worker_ports.first().map(|port| MacAddr(port.info.mac))
}

/// A datapath id from the first port's address; the lowest that is free for a switch without ports.
pub(crate) fn made_dpid(
    first: Option<MacAddr>,
    is_taken: impl Fn(DatapathId) -> bool,
) -> DatapathId {
    let mac = first.map(MacAddr::to_u64).filter(|mac| *mac != 0);
    let free = || (1..).find(|id| !is_taken(DatapathId(*id)));
    DatapathId(mac.or_else(free).unwrap_or(1))
}
