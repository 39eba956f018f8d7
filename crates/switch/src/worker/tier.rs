//! The kernel tier of a shard: the forwarder's decisions in the tables of [`netdev::KernelTier`],
//! with ports by number.
//!
//! Each shard has a tier of its own for the frames that its ports receive; they may leave by the
//! ports of any shard of the bridge. The forwarder owns it, and ends its entries before it applies
//! what concerns them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use datapath::Nanos;
use datapath::fast::{
    KernelTable, TIER_BYTES, TIER_OUTPUTS_MAX, TierFlow, TierOwner, TierSlotCounts, TierVerdict,
};
use netdev::{
    Entering, KernelTier, LinkNotification, Port, PortError, TierFrames, TierKeeper, TierKey,
    TierPort, TierPrograms, TierQueues, TierQueuesBeside,
};
use openflow::PortNo;
use packet::Shape;

use super::{Clock, PortSerial, WorkerPort};
use crate::config::BridgeConfig;

/// Entries of a shard's tier, and the fewest where many bridges share what one would take. With
/// what is rewritten an entry takes 900 bytes, and 48 more for each processor.
const SLOTS: usize = 1 << 14;
const SLOTS_LEAST: usize = 1 << 8;

const _: () = assert!(
    TIER_BYTES == netdev::TIER_BYTES && TIER_OUTPUTS_MAX == netdev::TIER_OUTPUTS_MAX,
    "forwarder and kernel have the same keys and entries"
);

/// The kernel devices of a bridge.
#[derive(Debug, Default)]
pub(crate) struct TierPorts(RwLock<BTreeMap<PortNo, TierDevice>>);

/// The kernel device of a port.
#[derive(Debug)]
struct TierDevice {
    port: TierPort,
    /// Whether the kernel may send by it. A port with queues sends no faster than these allow,
    /// which the kernel knows nothing of.
    sends: bool,
}

impl TierPorts {
    /// Takes a port's device, which may be another one than before.
    pub(crate) fn set(&self, port: &WorkerPort) {
        if !port.is_home() {
            return;
        }
        let found = port.device().and_then(|device| device.device.tier_port());
        let mut ports = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match found {
            Some(found) => {
                let device = TierDevice { port: found, sends: !port.has_queues };
                ports.insert(port.number, device);
            }
            None => drop(ports.remove(&port.number)),
        }
    }

    /// Whether any of them is a device.
    fn has_device(&self) -> bool {
        self.with(|ports| ports.values().any(|device| !device.port.is_patch()))
    }

    /// The ports that the kernel may send by.
    pub(crate) fn outputs(&self) -> BTreeSet<PortNo> {
        let sending = |(number, device): (&PortNo, &TierDevice)| device.sends.then_some(*number);
        self.with(|ports| ports.iter().filter_map(sending).collect())
    }

    /// The kernel may send by a port from now on, or may not.
    pub(super) fn set_sends(&self, port: PortNo, sends: bool) {
        let mut ports = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(port) = ports.get_mut(&port) {
            port.sends = sends;
        }
    }

    /// A port has gone.
    pub(super) fn forget(&self, port: PortNo) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&port);
    }

    fn with<T>(&self, inner: impl FnOnce(&BTreeMap<PortNo, TierDevice>) -> T) -> T {
        inner(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The plan by which the shards of a bridge get their tiers: each with the first port that can be
/// in one, or the first queue of one.
#[derive(Clone, Debug)]
pub(crate) struct TierPlan {
    ports: Arc<TierPorts>,
    /// The tiers, by the bridge's workers.
    tiers: Arc<[Mutex<PlannedTier>]>,
    slots: usize,
    /// Whether devices are taken that the host uses itself.
    takes_all: bool,
    clock: Clock,
    /// The keeper of tiers that outlive the process, and the bridge's name there.
    kept: Option<(Arc<TierKeeper>, String)>,
}

/// The tier of a shard. Others put its program at devices, so that it is made once, by whoever
/// opens the first of these.
#[derive(Debug, Default)]
enum PlannedTier {
    #[default]
    None,
    /// It waits for its shard.
    Made(Box<ShardTier>),
    /// The shard has it.
    Taken(TierPrograms),
}

impl TierPlan {
    /// A plan for a bridge on `workers` workers, of a process with `bridges` bridges.
    pub(crate) fn new(
        config: &BridgeConfig,
        workers: usize,
        bridges: usize,
        clock: Clock,
        kept: Option<(Arc<TierKeeper>, String)>,
    ) -> Self {
        let slots = (SLOTS / bridges.max(1).next_power_of_two()).max(SLOTS_LEAST);
        let tiers = (0..workers).map(|_| Mutex::default()).collect();
        Self { ports: Arc::default(), tiers, slots, takes_all: config.is_tier_asked, clock, kept }
    }

    /// A port of the bridge, on whatever worker.
    pub(crate) fn add(&self, port: &WorkerPort) {
        self.ports.set(port);
    }

    /// The kernel does not send by a port: no tier would learn of its next device.
    pub(crate) fn remove(&self, port: PortNo) {
        self.ports.forget(port);
    }

    /// Whether the bridge has a device beside its patch ports. These alone are not worth a tier:
    /// thousands of bridges may have no other ports.
    pub(super) fn has_device(&self) -> bool {
        self.ports.has_device()
    }

    /// Whether a device is left to the host where it uses it.
    pub(super) fn leaves_used_devices(&self) -> bool {
        !self.takes_all
    }

    /// The means to put the tiers of these workers at a device, one for each of its queues.
    pub(crate) fn entry(&self, workers: Vec<usize>) -> TierEntry {
        TierEntry { plan: self.clone(), workers }
    }

    /// The same for a port whose home is at a worker.
    pub(crate) fn entry_of(&self, port: &WorkerPort, home: usize) -> TierEntry {
        let further = port.further().iter().map(|place| place.worker);
        self.entry(std::iter::once(home).chain(further).collect())
    }

    fn tier(&self, worker: usize) -> MutexGuard<'_, PlannedTier> {
        self.tiers[worker].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The programs of a worker's tier, which is made if there is none.
    fn programs(&self, worker: usize) -> Result<TierPrograms, PortError> {
        let mut tier = self.tier(worker);
        if let PlannedTier::None = *tier {
            *tier = PlannedTier::Made(Box::new(ShardTier::new(self)?));
        }
        Ok(match &*tier {
            PlannedTier::Made(made) => made.kernel.programs().clone(),
            PlannedTier::Taken(programs) => programs.clone(),
            PlannedTier::None => unreachable!("it is made"),
        })
    }

    /// Gives the shard of a worker its tier. It waits for nobody: a tier whose program is at a
    /// device is made.
    pub(crate) fn take(&self, worker: usize) -> Option<ShardTier> {
        let mut tier = self.tier(worker);
        match std::mem::take(&mut *tier) {
            PlannedTier::Made(made) => {
                *tier = PlannedTier::Taken(made.kernel.programs().clone());
                Some(*made)
            }
            earlier @ (PlannedTier::None | PlannedTier::Taken(_)) => {
                *tier = earlier;
                None
            }
        }
    }

    /// A device could not enter: drops the tier that was made for it, unless another one has.
    fn discard(&self, worker: usize) {
        let mut tier = self.tier(worker);
        if let PlannedTier::Made(made) = &*tier
            && made.kernel.programs().is_unused()
        {
            *tier = PlannedTier::None;
        }
    }
}

/// Why a device is not in the tier.
#[derive(Debug)]
pub(crate) struct TierRefusal {
    pub(super) why: String,
    /// The host uses the device itself, which may end.
    pub(super) is_for_the_host: bool,
}

impl TierRefusal {
    pub(super) fn of(error: &PortError) -> Self {
        let is_for_the_host = matches!(error, PortError::HostUses(_));
        let remedy = match is_for_the_host {
            true => "; --caches frame,key,kernel has it taken all the same",
            false => "",
        };
        Self { why: format!("{error}{remedy}"), is_for_the_host }
    }
}

/// The means to put the programs of shards' tiers at a device, on any thread.
#[derive(Debug)]
pub(crate) struct TierEntry {
    plan: TierPlan,
    /// The worker of each queue.
    workers: Vec<usize>,
}

impl TierEntry {
    /// Puts the program at a device, whose super-frames go on coming whole, or reports why not;
    /// `None` where the user does not expect it. It takes milliseconds.
    pub(super) fn enter(&self, device: &mut Port) -> Option<Result<(), TierRefusal>> {
        // Of other ports the user does not expect it, unless the configuration wants it.
        let is_kernels = matches!(device.link_notification(), LinkNotification::Netlink(_));
        let is_expected = self.plan.takes_all || is_kernels;
        if device.device.tier_port().is_none() {
            let why = || Err(TierRefusal::of(&PortError::NoTier(device.info().kind)));
            return is_expected.then(why);
        }
        if device.device.patch().is_some() && !self.plan.has_device() {
            return None;
        }
        let attached = self.attach(device);
        if attached.is_err() {
            self.discard();
        }
        let entered = attached.map_err(|error| TierRefusal::of(&error));
        (is_expected || entered.is_ok()).then_some(entered)
    }

    fn discard(&self) {
        self.workers.iter().for_each(|worker| self.plan.discard(*worker));
    }

    fn programs(&self) -> Result<Vec<TierPrograms>, PortError> {
        self.workers.iter().map(|worker| self.plan.programs(*worker)).collect()
    }

    /// The queues of a port that goes on meanwhile.
    fn open(&self, port: &TierPort) -> Result<TierQueues, PortError> {
        if self.plan.leaves_used_devices()
            && let Some(used) = port.host_use()?
        {
            return Err(PortError::HostUses(used));
        }
        TierPrograms::open(&self.programs()?, self.workers.len(), port, Entering::Later)
    }

    fn attach(&self, device: &mut Port) -> Result<(), PortError> {
        if self.plan.leaves_used_devices()
            && let Some(used) = device.device.host_use()?
        {
            return Err(PortError::HostUses(used));
        }
        TierPrograms::attach(&self.programs()?, device)?;
        device.rx.keep_offloads();
        for queue in &mut device.more {
            queue.rx.keep_offloads();
        }
        Ok(())
    }
}

/// The place of a port in its shard, the opening of its number, and its device there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpeningOfPort {
    pub(super) index: usize,
    pub(super) serial: PortSerial,
    pub(super) device: u64,
}

/// A port that is open and not in the tier: a device that may forward before it enters, or a patch
/// port that came before the bridge's first device.
#[derive(Debug)]
pub(crate) struct OutsidePort {
    pub(super) opening: OpeningOfPort,
    pub(super) port: TierPort,
    pub(super) entry: TierEntry,
}

/// A step of a port on its way into the tier, or why it stays outside.
pub(crate) type TierStep = (OpeningOfPort, Result<StepInto, TierRefusal>);

/// The two steps of a device. A patch port takes the first one only.
pub(crate) enum StepInto {
    /// It receives by these queues too.
    Beside(TierQueues),
    /// The program has taken over.
    Within(TierQueuesBeside),
}

impl OutsidePort {
    /// Has the program receive at the port; frames wait until the shard has the result. It takes
    /// milliseconds.
    pub(crate) fn enter(self) -> TierStep {
        let Self { opening, port, entry } = self;
        let queues = entry.open(&port);
        if queues.is_err() {
            entry.discard();
        }
        (opening, queues.map(StepInto::Beside).map_err(|error| TierRefusal::of(&error)))
    }
}

/// The program takes the frames of a device over that has taken the first step. It takes
/// milliseconds.
pub(crate) fn take_over((opening, mut beside): (OpeningOfPort, TierQueuesBeside)) -> TierStep {
    let done = beside.take_over();
    (opening, done.map(|()| StepInto::Within(beside)).map_err(|error| TierRefusal::of(&error)))
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ShardTier {
    kernel: KernelTier,
    /// The difference between the kernel's time and the switch's.
    epoch_ns: u64,
    ports: Arc<TierPorts>,
}

impl ShardTier {
    /// A tier without entries, and with the program at none of the ports.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn new(plan: &TierPlan) -> Result<Self, PortError> {
        // In this order, so that entries hold rather too short than too long.
        let kernel_ns = KernelTier::now_ns();
        let epoch_ns = kernel_ns.saturating_sub(plan.clock.now().0);
        let ports = Arc::clone(&plan.ports);
        let kernel = match &plan.kept {
            Some((keeper, bridge)) => KernelTier::kept(plan.slots, keeper, bridge)?,
            None => KernelTier::new(plan.slots)?,
        };
        Ok(Self { kernel, epoch_ns, ports })
    }

    /// The frames that its programs have got so far.
    pub(super) fn frames(&self) -> TierFrames {
        self.kernel.frames()
    }

    /// A time as the kernel has it; the last one stands for always in both.
    fn kernel_time(&self, time: Nanos) -> u64 {
        time.0.saturating_add(self.epoch_ns)
    }

    /// The kernel devices of the bridge.
    pub(super) fn ports(&self) -> &TierPorts {
        &self.ports
    }

    /// The kernel's key of a flow; none without a device.
    fn key(&self, flow: &TierFlow) -> Option<TierKey> {
        let device = self.ports.with(|ports| ports.get(&flow.in_port).map(|it| it.port.index()))?;
        Some(TierKey { device, shape: flow.shape, bytes: flow.bytes })
    }
}

impl KernelTable for ShardTier {
    fn slots(&self) -> usize {
        self.kernel.slots()
    }

    fn start(&mut self, masks: &[[u8; TIER_BYTES]; Shape::COUNT]) {
        self.kernel.start(masks);
    }

    fn stop(&mut self) {
        self.kernel.stop();
    }

    fn put(&mut self, slot: u32, flow: &TierFlow, verdict: &TierVerdict, until: Nanos) -> bool {
        let Some(key) = self.key(flow) else { return false };
        let until_ns = self.kernel_time(until);
        let kernel = &mut self.kernel;
        self.ports.with(|ports| {
            let sending = |port| ports.get(port).filter(|it| it.sends).map(|it| &it.port);
            let outputs: Option<Vec<&TierPort>> = verdict.outputs.iter().map(sending).collect();
            let Some(outputs) = outputs else { return false };
            let made = kernel.put(slot, &key, &outputs, (until_ns, &verdict.rewrite));
            made.inspect_err(|error| tracing::debug!(%error, "no entry in the kernel")).is_ok()
        })
    }

    fn keeps_owners(&self) -> bool {
        self.kernel.keeps_owners()
    }

    fn note_owners(&mut self, slot: u32, owners: &[TierOwner]) -> bool {
        let owners: Vec<u64> = owners.iter().map(|owner| owner.to_number()).collect();
        self.kernel.note_owners(slot, &owners)
    }

    fn note_credited(&mut self, slot: u32, counts: &TierSlotCounts) {
        self.kernel.note_credited(slot, counts.packets, counts.bytes);
    }

    fn remove(&mut self, flow: &TierFlow) {
        if let Some(key) = self.key(flow) {
            self.kernel.remove(&key);
        }
    }

    fn leave(&mut self, flows: &[TierFlow]) {
        let keys: Vec<TierKey> = flows.iter().filter_map(|flow| self.key(flow)).collect();
        self.kernel.leave(keys);
    }

    fn slots_at_once(&self) -> usize {
        self.kernel.slots_at_once()
    }

    fn extend(&mut self, slot: u32, until: Nanos) {
        self.kernel.extend(slot, self.kernel_time(until));
    }

    fn end(&mut self, slots: &[u32]) {
        self.kernel.end(slots);
    }

    fn counts(&self, slot: u32) -> TierSlotCounts {
        let counts = self.kernel.counts(slot);
        TierSlotCounts {
            packets: counts.packets,
            bytes: counts.bytes,
            last_used: Nanos(counts.last_used_ns.saturating_sub(self.epoch_ns)),
            sent_packets: counts.sent_packets,
            sent_bytes: counts.sent_bytes,
            lost: counts.lost,
        }
    }

    fn credit(&mut self, in_port: PortNo, outputs: &[PortNo], counts: &TierSlotCounts) {
        self.ports.with(|ports| {
            if let Some(port) = ports.get(&in_port) {
                port.port.count_rx(counts.packets, counts.bytes);
            }
            for port in outputs.iter().filter_map(|port| ports.get(port)) {
                port.port.count_tx(counts.sent_packets, counts.sent_bytes);
                port.port.count_tx_dropped(counts.lost);
            }
        });
    }

    fn take_back_unsent(&mut self, slot: u32, outputs: &[PortNo]) {
        for (nth, output) in outputs.iter().enumerate() {
            let (packets, bytes) = self.kernel.take_unsent(slot, nth);
            if packets | bytes != 0 {
                self.ports.with(|ports| {
                    if let Some(port) = ports.get(output) {
                        port.port.count_unsent(packets, bytes);
                    }
                });
            }
        }
    }
}
