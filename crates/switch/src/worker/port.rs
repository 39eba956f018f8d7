//! A configured port on its worker: the open device, the counters over all its reopenings, and the
//! time of the next attempt to open it.
//!
//! A port stays configured when its device disappears; it shows `LINK_DOWN` and comes back with the
//! device.

use std::sync::Arc;
use std::time::{Duration, Instant};

use netdev::sys::watch::Watch;
use netdev::{
    LinkNotification, PatchEnd, Port, PortCounters, PortError, PortInfo, PortSpec, TierPort,
    TierQueuesBeside,
};
use openflow::PortNo;
use packet::{Batch, PacketBuf, Pool};

use super::device_thread::OpenDevice;
use super::ingress_rate::IngressRate;
use super::port_map::PortLocation;
use super::queue::{HandedQueue, Opening, QueueRole, port_of_queue};
use super::tier::{OpeningOfPort, StepInto, TierEntry, TierRefusal};
use super::{PortSerial, Shaper};
use crate::counters::{Counter, Counters};

/// First and longest wait between attempts to open a lost device.
const REOPEN_FIRST: Duration = Duration::from_millis(200);
const REOPEN_LAST: Duration = Duration::from_secs(2);

/// Further readings of a lost device's counters, until none is counted meanwhile.
const LOSS_READINGS_MAX: usize = 8;

/// A port whose system call failed is left alone for this time.
const PAUSE: Duration = Duration::from_millis(50);

/// The device of a port.
enum DeviceState {
    /// Open.
    Open {
        device: Port,
        tier: TierPlace,
        /// The port is left alone until then, after a call failed.
        paused_until: Option<Instant>,
    },
    /// Lost, and still to be closed by the worker, which may watch it.
    Lost(Port, Attempt),
    /// There is none. A further queue waits for its home, which opens the device.
    Waiting(Attempt),
    /// Being opened. After a failure the next wait is twice this one, and none where a device of
    /// its name has appeared meanwhile.
    Opening { wait: Duration, has_appeared: bool },
}

impl DeviceState {
    /// An open device.
    fn open(device: Port) -> Self {
        Self::Open { device, tier: TierPlace::None, paused_until: None }
    }
}

/// The next attempt to open a lost device.
#[derive(Clone, Copy)]
struct Attempt {
    at: Instant,
    /// The wait before it.
    wait: Duration,
}

impl Attempt {
    /// The first one after a device was lost.
    fn first(now: Instant) -> Self {
        Self { at: now + REOPEN_FIRST, wait: REOPEN_FIRST }
    }
}

/// The place of an open device in the kernel tier.
enum TierPlace {
    /// The tier has no part in it.
    None,
    /// The tier's program is at the device.
    In,
    /// It should be there, but the host uses the device: the note.
    LeftToHost(String),
    /// It should be there, but cannot: the note.
    Refused(String),
}

impl TierPlace {
    fn of(entered: Result<(), TierRefusal>) -> Self {
        match entered {
            Ok(()) => Self::In,
            Err(TierRefusal { why, is_for_the_host }) => {
                let note = format!("no kernel tier: {why}");
                if is_for_the_host { Self::LeftToHost(note) } else { Self::Refused(note) }
            }
        }
    }

    /// Why the tier's program is not there, where it should be.
    fn note(&self) -> Option<&String> {
        match self {
            Self::None | Self::In => None,
            Self::LeftToHost(note) | Self::Refused(note) => Some(note),
        }
    }
}

/// A change of a port's state that was not reported to the agent yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreported {
    /// There is none.
    Nothing,
    /// The state has changed.
    Change,
    /// The device was lost, and the log does not say so yet.
    Loss,
}

/// The lists of its worker and its shard that a port is on.
#[derive(Default)]
pub(super) struct Membership {
    /// The worker is woken by the port's descriptor.
    pub(super) watched: bool,
    /// It is in the worker's poll set.
    pub(super) polled: bool,
    /// It is on its shard's list of faulted ports.
    pub(super) faulted: bool,
    /// The map of the bridge has it; else nothing is received.
    pub(super) mapped: bool,
}

impl Membership {
    /// Watches the descriptor of a device no more.
    fn unwatch(&mut self, watch: &Watch, port: PortNo, device: &Port) {
        if let Some(fd) = device.fd().filter(|_| self.watched)
            && let Err(error) = watch.remove(fd)
        {
            tracing::debug!(%port, %error, "the port was not watched");
        }
        self.watched = false;
    }
}

/// A configured port.
pub(crate) struct WorkerPort {
    /// Its number.
    pub(crate) number: PortNo,
    /// The opening of its number.
    pub(crate) serial: PortSerial,
    /// The device to open.
    pub(crate) spec: PortSpec,
    device: DeviceState,
    /// The number of devices that it has had.
    devices: u64,
    /// The state that was read last.
    pub(crate) info: PortInfo,
    pub(super) unreported: Unreported,
    /// The port's queues, where any are configured, until a shard's transmit side takes them.
    pub(crate) shaper: Option<Shaper>,
    /// Whether the port has queues.
    pub(crate) has_queues: bool,
    /// Frames that the device refused, over all reopenings.
    pub(crate) tx_refused: u64,
    /// The counters of earlier devices of the port.
    earlier: PortCounters,
    /// The last one of these, by which the kernel tier's counts of it still come, and the tier's
    /// counts that are in `earlier`.
    lost: Option<(TierPort, PortCounters)>,
    /// The source of change notifications.
    pub(super) notification: LinkNotification,
    pub(super) member: Membership,
    /// Whether its link is to be down, where the device is its own.
    is_set_down: bool,
    /// Whether the device is the port's own.
    pub(crate) owns_link: bool,
    /// The caller has the port enter the kernel tier after it forwards.
    may_enter_later: bool,
    /// On a wire, the number and address of the port that sends its frames.
    pub(super) pair: Option<(PortNo, [u8; 6])>,
    role: QueueRole,
    /// The end of a wire between bridges that the port is.
    pub(super) patch: Option<Arc<PatchEnd>>,
    /// The rate at which frames are taken from it.
    ingress_rate: Option<Arc<IngressRate>>,
    /// Packets that came faster.
    rx_policed: u64,
}

impl WorkerPort {
    /// Opens the port for the first time.
    pub(crate) fn open(
        number: PortNo,
        serial: PortSerial,
        spec: PortSpec,
    ) -> Result<Self, PortError> {
        Ok(Self::of_device(number, serial, netdev::open_claimed(&spec)?, spec))
    }

    /// As [`WorkerPort::open`], of a port that is to enter the kernel tier.
    pub(crate) fn open_for_tier(
        number: PortNo,
        serial: PortSerial,
        spec: PortSpec,
    ) -> Result<Self, PortError> {
        Ok(Self::of_device(number, serial, netdev::open_for_tier(&spec)?, spec))
    }

    /// As [`WorkerPort::open`], of a port that is to forward at once and enters the kernel tier
    /// later.
    pub(crate) fn open_before_tier(
        number: PortNo,
        serial: PortSerial,
        spec: PortSpec,
    ) -> Result<Self, PortError> {
        Ok(Self { may_enter_later: true, ..Self::open(number, serial, spec)? })
    }

    /// Whether it is to forward before it enters the kernel tier, and may.
    pub(crate) fn enters_later(&self) -> bool {
        let device = || self.outside_tier().is_some_and(|port| port.may_enter_later());
        self.may_enter_later && !self.is_policed() && device()
    }

    /// The port of a device that is open already.
    pub(crate) fn of_device(
        number: PortNo,
        serial: PortSerial,
        device: Port,
        spec: PortSpec,
    ) -> Self {
        let (owns_link, patch) = (device.device.owns_link(), device.device.patch());
        let OpenDevice { device, info, notification, .. } = OpenDevice::new(device);
        let port = Self::without_device(number, serial, spec, info);
        // A wrong value was refused when the device was opened.
        let policing = port.spec.policing().unwrap_or_default();
        let ingress_rate = IngressRate::of(policing, Instant::now()).map(Arc::new);
        let device = DeviceState::open(device);
        Self { device, notification, owns_link, patch, ingress_rate, ..port }
    }

    /// A further queue of this port, which its home hands out: number `nth` of `of`.
    pub(crate) fn further_queue(&self, (nth, of): (usize, usize), home: PortLocation) -> Self {
        let (spec, info) = (self.spec.clone(), self.info.clone());
        let port = Self::without_device(self.number, self.serial, spec, info);
        let ingress_rate = self.ingress_rate.clone();
        Self { role: QueueRole::Further(nth, of, home), ingress_rate, ..port }
    }

    fn without_device(number: PortNo, serial: PortSerial, spec: PortSpec, info: PortInfo) -> Self {
        Self {
            number,
            serial,
            spec,
            device: DeviceState::Waiting(Attempt::first(Instant::now())),
            devices: 0,
            info,
            unreported: Unreported::Nothing,
            shaper: None,
            has_queues: false,
            tx_refused: 0,
            earlier: PortCounters::default(),
            lost: None,
            notification: LinkNotification::Never,
            member: Membership::default(),
            is_set_down: false,
            owns_link: false,
            may_enter_later: false,
            pair: None,
            role: QueueRole::Home(Vec::new()),
            patch: None,
            ingress_rate: None,
            rx_policed: 0,
        }
    }

    pub(super) fn role(&self) -> &QueueRole {
        &self.role
    }

    /// Whether it has the device of the port, and not a further queue alone.
    pub(crate) fn is_home(&self) -> bool {
        matches!(self.role, QueueRole::Home(_))
    }

    /// The places of the port's further queues, of its home.
    pub(super) fn further(&self) -> &[PortLocation] {
        match &self.role {
            QueueRole::Home(further) => further,
            QueueRole::Further(..) => &[],
        }
    }

    /// Sets the places of the port's further queues.
    pub(crate) fn set_further(&mut self, places: Vec<PortLocation>) {
        self.role = QueueRole::Home(places);
    }

    /// The device that its queue is of.
    pub(super) fn opening(&self) -> Opening {
        Opening { serial: self.serial, devices: self.devices }
    }

    /// Whether it is a further queue of this opening of the port's number.
    pub(super) fn is_further_of(&self, serial: PortSerial) -> bool {
        !self.is_home() && self.serial == serial
    }

    /// The open device.
    pub(crate) fn device(&self) -> Option<&Port> {
        match &self.device {
            DeviceState::Open { device, .. } => Some(device),
            DeviceState::Lost(..) | DeviceState::Waiting(_) | DeviceState::Opening { .. } => None,
        }
    }

    /// The open device, writable.
    pub(super) fn device_mut(&mut self) -> Option<&mut Port> {
        match &mut self.device {
            DeviceState::Open { device, .. } => Some(device),
            DeviceState::Lost(..) | DeviceState::Waiting(_) | DeviceState::Opening { .. } => None,
        }
    }

    /// Takes the device, open or lost, to be closed.
    pub(crate) fn take_device(&mut self) -> Option<Port> {
        let none = DeviceState::Waiting(Attempt::first(Instant::now()));
        match std::mem::replace(&mut self.device, none) {
            DeviceState::Open { device, .. } | DeviceState::Lost(device, _) => Some(device),
            DeviceState::Waiting(_) | DeviceState::Opening { .. } => None,
        }
    }

    /// As [`WorkerPort::take_device`], of one that may be watched.
    pub(super) fn take_watched(&mut self, watch: &Watch) -> Option<Port> {
        let device = self.take_device();
        device.inspect(|device| self.member.unwatch(watch, self.number, device))
    }

    /// Takes the queue that the home has handed out. Returns the earlier one, to be closed: it is
    /// not watched any more.
    pub(super) fn take_queue(
        &mut self,
        HandedQueue { queue, is_in_tier }: HandedQueue,
        opening: Opening,
        watch: &Watch,
    ) -> Option<Port> {
        let earlier = self.take_watched(watch);
        // The home knows of the loss of the earlier one: this report would be about the new one.
        self.unreported = Unreported::Nothing;
        self.devices = opening.devices;
        self.info.exists = true;
        self.device = DeviceState::open(port_of_queue(queue, self.info.clone()));
        if is_in_tier {
            self.set_tier(TierPlace::In);
        }
        earlier
    }

    /// The source of change notifications.
    pub(crate) fn link_notification(&self) -> LinkNotification {
        self.notification
    }

    /// The device has disappeared.
    pub(crate) fn lose(&mut self, now: Instant) {
        let attempt = Attempt::first(now);
        let earlier = std::mem::replace(&mut self.device, DeviceState::Waiting(attempt));
        self.note_change();
        self.device = match earlier {
            DeviceState::Open { mut device, .. } => {
                let tier_port = device.device.tier_port();
                let counted = || tier_port.as_ref().map(TierPort::counted);
                let (mut at_loss, mut counts) = (counted(), device.counters());
                // Another worker may count for the tier while the device is asked.
                for _ in 0..LOSS_READINGS_MAX {
                    let before = std::mem::replace(&mut at_loss, counted());
                    if before == at_loss {
                        break;
                    }
                    counts = device.counters();
                }
                self.earlier = [self.counts_of_lost(), counts].into_iter().sum();
                self.lost = tier_port.zip(at_loss);
                self.unreported = Unreported::Loss;
                DeviceState::Lost(device, attempt)
            }
            DeviceState::Lost(device, _) => DeviceState::Lost(device, attempt),
            DeviceState::Waiting(_) => DeviceState::Waiting(attempt),
            DeviceState::Opening { has_appeared, .. } => {
                DeviceState::Opening { wait: attempt.wait, has_appeared }
            }
        };
        self.info.link_up = false;
        self.info.exists = false;
    }

    /// The state has changed.
    fn note_change(&mut self) {
        if self.unreported == Unreported::Nothing {
            self.unreported = Unreported::Change;
        }
    }

    /// Whether the state has changed and was not reported to the agent yet.
    pub(super) fn is_changed(&self) -> bool {
        self.unreported != Unreported::Nothing
    }

    /// Whether the kernel tier's program is at the device.
    pub(crate) fn is_in_tier(&self) -> bool {
        matches!(&self.device, DeviceState::Open { tier: TierPlace::In, .. })
    }

    /// The device, where the tier may hand frames straight to its far end.
    pub(super) fn with_far_end(&self) -> Option<TierPort> {
        let device = self.device().filter(|_| self.is_in_tier())?;
        device.device.tier_port().filter(TierPort::may_have_far_end)
    }

    /// Whether the device is kept out of the kernel tier because the host uses it.
    fn is_left_to_host(&self) -> bool {
        matches!(&self.device, DeviceState::Open { tier: TierPlace::LeftToHost(_), .. })
    }

    /// Whether the device is perhaps used otherwise than when it was opened, given whether the
    /// host has an address on it.
    pub(super) fn may_have_stale_tier_choice(&self, has_address: bool) -> bool {
        if has_address { self.is_in_tier() } else { self.is_left_to_host() }
    }

    /// The host has addresses on the device that it had not, or the other way round: whether the
    /// port is in the kernel tier and should not be any more, or should be again.
    ///
    /// # Errors
    /// The kernel does not report what the host uses the device for.
    pub(super) fn is_tier_choice_stale(&mut self) -> Result<bool, PortError> {
        let DeviceState::Open { device, tier, .. } = &self.device else { return Ok(false) };
        if !self.is_in_tier() && !self.is_left_to_host() {
            return Ok(false);
        }
        let used = device.device.host_use()?;
        if used.is_some() == self.is_in_tier() {
            return Ok(true);
        }
        // It is as it was, perhaps for another reason.
        if let Some(used) = used {
            let refusal = TierRefusal::of(&PortError::HostUses(used));
            if tier.note().is_none_or(|note| !note.ends_with(&refusal.why)) {
                self.note_change();
            }
            self.set_tier(TierPlace::of(Err(refusal)));
        }
        Ok(false)
    }

    /// Has the device closed and opened again at once, as one that has disappeared and come back.
    pub(super) fn reopen(&mut self, now: Instant) {
        self.lose(now);
        self.unreported = Unreported::Change;
        self.attempt_at(now);
    }

    /// Brings the next attempt to open a device forward.
    fn attempt_at(&mut self, now: Instant) {
        match &mut self.device {
            DeviceState::Lost(_, attempt) | DeviceState::Waiting(attempt) => attempt.at = now,
            DeviceState::Opening { has_appeared, .. } => *has_appeared = true,
            DeviceState::Open { .. } => {}
        }
    }

    /// Reads the state of the device.
    pub(crate) fn refresh(&mut self, now: Instant) {
        let DeviceState::Open { device, tier, .. } = &mut self.device else { return };
        let mut info = device.info();
        // A device in another namespace is asked, since no notification comes from there.
        self.notification = device.link_notification();
        info.notes.extend(tier.note().cloned());
        if !info.exists {
            self.lose(now);
        } else if info != self.info {
            self.info = info;
            self.note_change();
        }
    }

    /// Puts the kernel tier's program at the device, or notes why that is not possible. It is
    /// loaded meanwhile, which takes milliseconds.
    pub(crate) fn enter_tier(&mut self, tier: &TierEntry) {
        let is_policed = self.is_policed();
        let Some(device) = self.device_mut() else { return };
        if is_policed && device.device.tier_port().is_some() {
            let note = "no kernel tier: the port has an ingress rate".to_owned();
            return self.set_tier(TierPlace::Refused(note));
        }
        if let Some(entered) = tier.enter(device) {
            self.set_tier(TierPlace::of(entered));
        }
    }

    /// The device of the port at this index.
    pub(super) fn opening_at(&self, index: usize) -> OpeningOfPort {
        OpeningOfPort { index, serial: self.serial, device: self.devices }
    }

    /// The device, where the kernel tier has no part in it.
    pub(super) fn outside_tier(&self) -> Option<TierPort> {
        match &self.device {
            DeviceState::Open { device, tier: TierPlace::None, .. } => device.device.tier_port(),
            DeviceState::Open { .. }
            | DeviceState::Lost(..)
            | DeviceState::Waiting(_)
            | DeviceState::Opening { .. } => None,
        }
    }

    /// Receives what the kernel tier's program at the device hands over, and then nothing else; or
    /// notes why it could not be put there. What the second step needs.
    pub(super) fn step_into_tier(
        &mut self,
        step: Result<StepInto, TierRefusal>,
        watch: &Watch,
    ) -> Option<TierQueuesBeside> {
        let DeviceState::Open { device, .. } = &mut self.device else { return None };
        let entered = match step {
            Ok(StepInto::Beside(queues)) => {
                self.member.unwatch(watch, self.number, device);
                let installed = queues.install_beside(device);
                device.rx.keep_offloads();
                match installed {
                    Ok(Some(beside)) => return Some(beside),
                    Ok(None) => Ok(()),
                    Err(error) => Err(TierRefusal::of(&error)),
                }
            }
            Ok(StepInto::Within(beside)) => {
                beside.finish(device);
                Ok(())
            }
            Err(refusal) => Err(refusal),
        };
        self.set_tier(TierPlace::of(entered));
        self.note_change();
        None
    }

    /// The program is at the device, or could not be put there.
    fn set_tier(&mut self, place: TierPlace) {
        let DeviceState::Open { tier, .. } = &mut self.device else { return };
        if let Some(earlier) = tier.note() {
            self.info.notes.retain(|note| note != earlier);
        }
        if let Some(note) = place.note() {
            tracing::info!(port = %self.number, name = self.info.name, "{note}");
            self.info.notes.push(note.clone());
        }
        *tier = place;
    }

    /// Whether the port is down, paused or changed, so that the worker must serve it.
    pub(super) fn needs_service(&self) -> bool {
        match &self.device {
            DeviceState::Open { paused_until, .. } => self.is_changed() || paused_until.is_some(),
            DeviceState::Lost(..) | DeviceState::Waiting(_) | DeviceState::Opening { .. } => true,
        }
    }

    /// When a faulted port is due; one that is being opened is due when that has ended.
    pub(super) fn service_at(&self) -> Option<Instant> {
        match &self.device {
            DeviceState::Open { paused_until, .. } => *paused_until,
            DeviceState::Lost(_, attempt) | DeviceState::Waiting(attempt) => {
                self.is_home().then_some(attempt.at)
            }
            DeviceState::Opening { .. } => None,
        }
    }

    /// A device of this name exists: whether it is the lost one, which is then due at once.
    pub(super) fn device_appeared(&mut self, name: &str, now: Instant) -> bool {
        let is_ours = self.is_home() && self.device().is_none() && self.spec.name() == name;
        if is_ours {
            self.attempt_at(now);
        }
        is_ours
    }

    /// Watches the port's descriptor under this key, unless it has none or is paused. Returns
    /// whether the port need not be polled.
    pub(super) fn watch(&mut self, watch: &Watch, key: u64) -> bool {
        let DeviceState::Open { device, paused_until, .. } = &self.device else { return true };
        if paused_until.is_some() {
            self.member.unwatch(watch, self.number, device);
            return true;
        }
        if let Some(fd) = device.fd().filter(|_| !self.member.watched) {
            match watch.add(fd, key) {
                Ok(()) => self.member.watched = true,
                Err(error) => {
                    tracing::debug!(port = %self.number, %error, "the port cannot be watched");
                }
            }
        }
        self.member.watched
    }

    /// The lost device, to be closed: it is no longer watched.
    pub(super) fn take_lost(&mut self, watch: &Watch) -> Option<Port> {
        let DeviceState::Lost(_, attempt) = self.device else { return None };
        let lost = self.take_watched(watch);
        self.device = DeviceState::Waiting(attempt);
        lost
    }

    /// Begins to open the device where that is due; it ends with [`WorkerPort::opened`].
    pub(super) fn start_opening(&mut self, now: Instant) -> bool {
        let DeviceState::Waiting(attempt) = self.device else { return false };
        let is_due = self.is_home() && now >= attempt.at;
        if is_due {
            self.device = DeviceState::Opening { wait: attempt.wait, has_appeared: false };
        }
        is_due
    }

    /// Takes the link of the device down or up, where it is the port's own; so again when it
    /// is opened anew.
    pub(super) fn set_link(&mut self, up: bool, now: Instant) {
        self.is_set_down = !up;
        let Some(device) = self.device_mut() else { return };
        if let Err(error) = device.device.set_link(up) {
            tracing::warn!(port = %self.number, up, %error, "the link stays as it is");
        }
        self.refresh(now);
    }

    /// The device was opened, or could not be; true when it is back.
    pub(super) fn opened(&mut self, result: Result<OpenDevice, PortError>, now: Instant) -> bool {
        match result {
            Ok(OpenDevice { device, info, notification, tier }) => {
                self.info = info;
                self.notification = notification;
                self.device = DeviceState::open(device);
                self.devices += 1;
                if let Some(entered) = tier {
                    self.set_tier(TierPlace::of(entered));
                }
                self.note_change();
                if self.is_set_down {
                    self.set_link(false, now);
                }
                true
            }
            Err(error) => {
                tracing::debug!(port = %self.number, spec = %self.spec, %error, "still lost");
                let notes = vec![format!("cannot be opened: {error}")];
                if self.info.notes != notes {
                    self.note_change();
                }
                self.info.notes = notes;
                self.retry_later(now);
                false
            }
        }
    }

    /// Opening is tried again later, or at once where the device has appeared meanwhile.
    pub(super) fn retry_later(&mut self, now: Instant) {
        let DeviceState::Opening { wait, has_appeared } = self.device else { return };
        let wait = (wait * 2).min(REOPEN_LAST);
        let at = if has_appeared { now } else { now + wait };
        self.device = DeviceState::Waiting(Attempt { at, wait });
    }

    /// Whether frames are taken from it at some rate only, of which the kernel knows nothing.
    pub(super) fn is_policed(&self) -> bool {
        self.ingress_rate.is_some()
    }

    /// Receives up to `most` frames; the number that came, of which some may be dropped.
    pub(super) fn receive(
        &mut self,
        most: usize,
        batch: &mut Batch,
        now: Instant,
        counters: &Counters,
    ) -> usize {
        if self.is_paused(now) || !self.member.mapped {
            return 0;
        }
        let Some(device) = self.device_mut() else { return 0 };
        match device.rx(batch, most) {
            Ok(count) => {
                if let Some(rate) = &self.ingress_rate {
                    let (frames, pool) = batch.parts_mut();
                    let dropped = rate.police(frames, pool, now);
                    counters.add(Counter::RxPoliced, dropped);
                    self.rx_policed += dropped;
                }
                count
            }
            Err(PortError::Gone(_)) => {
                self.lose(now);
                0
            }
            Err(error) => {
                tracing::debug!(port = %self.number, %error, "receiving failed");
                counters.bump(Counter::PortError);
                self.pause(now);
                0
            }
        }
    }

    /// Sends frames; the number that the device accepted. The others are dropped and counted, so
    /// that none is left.
    pub(super) fn transmit(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        pool: &mut Pool,
        counters: &Counters,
    ) -> usize {
        let sent = match self.device_mut().map(|device| device.tx_batch(frames, pool)) {
            Some(Ok(sent)) => sent,
            Some(Err(PortError::Gone(_))) => {
                self.lose(Instant::now());
                0
            }
            Some(Err(error)) => {
                tracing::debug!(port = %self.number, %error, "sending failed");
                counters.bump(Counter::PortError);
                0
            }
            None => 0,
        };
        let why = match self.device() {
            Some(_) => Counter::TxQueueFull,
            None => Counter::TxPortGone,
        };
        self.refuse(frames, why, pool, counters);
        sent
    }

    /// Drops the frames that the port did not take, and counts them.
    pub(super) fn refuse(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        why: Counter,
        pool: &mut Pool,
        counters: &Counters,
    ) {
        let refused = frames.len();
        if refused == 0 {
            return;
        }
        let packets = frames.iter().map(|frame| frame.on_wire().0).sum();
        counters.add(why, packets);
        if self.device().is_some() {
            self.tx_refused += packets;
        }
        pool.give_front(frames, refused);
    }

    /// A call on the port failed: leaves it alone for a while, so that a device that is down does
    /// not keep the worker awake.
    pub(crate) fn pause(&mut self, now: Instant) {
        if let DeviceState::Open { paused_until, .. } = &mut self.device {
            *paused_until = Some(now + PAUSE);
        }
    }

    /// Whether the port is left alone now.
    pub(crate) fn is_paused(&mut self, now: Instant) -> bool {
        let DeviceState::Open { paused_until, .. } = &mut self.device else { return false };
        if paused_until.is_some_and(|until| now >= until) {
            *paused_until = None;
        }
        paused_until.is_some()
    }

    /// Whether this is the opening that a device was opened for.
    pub(super) fn awaits(&self, serial: PortSerial) -> bool {
        self.serial == serial && matches!(self.device, DeviceState::Opening { .. })
    }

    /// The device's counters, over all reopenings.
    pub(crate) fn counters(&mut self) -> PortCounters {
        let device = self.device_mut().map(|device| device.counters());
        let policed = PortCounters { rx_drops: self.rx_policed, ..PortCounters::default() };
        [self.counts_of_lost(), policed].into_iter().chain(device).sum()
    }

    /// The counters of earlier devices, with what the kernel tier has counted for the last of them
    /// before it was lost, and was asked for later.
    fn counts_of_lost(&self) -> PortCounters {
        let late = self.lost.as_ref().map(|(port, at_loss)| port.counted().since(at_loss));
        [self.earlier].into_iter().chain(late).sum()
    }
}

#[cfg(test)]
mod tests {
    use netdev::PortQueue;

    use super::*;

    #[test]
    fn a_lost_port_keeps_its_counts_and_comes_back() {
        let (counters, mut pool) = (Counters::default(), Pool::default());
        let mut port =
            WorkerPort::open(PortNo(3), PortSerial(0), "null:x".parse().unwrap()).unwrap();
        assert!(port.info.link_up && port.info.exists);
        let mut frames = vec![PacketBuf::from_slice(&[0; 60])];
        assert_eq!(port.transmit(&mut frames, &mut pool, &counters), 1);
        let now = Instant::now();
        port.lose(now);
        assert!(port.unreported == Unreported::Loss && !port.info.exists && !port.info.link_up);
        frames.push(PacketBuf::from_slice(&[0; 60]));
        assert_eq!(port.transmit(&mut frames, &mut pool, &counters), 0);
        assert!(frames.is_empty() && counters.get(Counter::TxPortGone) == 1);
        assert!(port.take_lost(&Watch::new().unwrap()).is_some() && !port.start_opening(now));
        let later = now + REOPEN_FIRST;
        assert_eq!(port.service_at(), Some(later));
        assert!(port.start_opening(later) && port.service_at().is_none());
        let missing = || Err(PortError::Gone("x".into()));
        port.unreported = Unreported::Nothing;
        assert!(!port.opened(missing(), later) && port.service_at() > Some(later));
        assert!(port.is_changed(), "the reason is reported");
        assert_eq!(port.info.notes, ["cannot be opened: port x: the device has disappeared"]);
        // A device that appears while it is being opened is tried at once.
        let again = later + REOPEN_LAST;
        assert!(port.start_opening(again) && port.device_appeared("x", again));
        port.unreported = Unreported::Nothing;
        assert!(!port.opened(missing(), again) && port.service_at() == Some(again));
        assert!(!port.is_changed(), "once");
        assert!(port.start_opening(again));
        let device = netdev::open(&port.spec).map(OpenDevice::new);
        assert!(port.opened(device, again) && port.info.notes.is_empty());
        frames.push(PacketBuf::from_slice(&[0; 60]));
        assert_eq!(port.transmit(&mut frames, &mut pool, &counters), 1);
        assert_eq!(port.counters().tx_packets, 2);
        assert!(port.info.exists);
    }

    #[test]
    fn a_queue_handed_out_anew_reports_no_loss_of_the_earlier_one() {
        let queue = || {
            let Port { rx, tx, .. } = netdev::open_text("null:x").unwrap();
            HandedQueue { queue: PortQueue { rx, tx }, is_in_tier: false }
        };
        let spec = "null:x?queues=2".parse().unwrap();
        let home = WorkerPort::open(PortNo(3), PortSerial(0), spec).unwrap();
        let mut port = home.further_queue((1, 2), PortLocation { worker: 0, index: 0 });
        let watch = Watch::new().unwrap();
        let opening = |devices| Opening { serial: PortSerial(0), devices };
        assert!(port.take_queue(queue(), opening(0), &watch).is_none());
        port.lose(Instant::now());
        assert!(port.unreported == Unreported::Loss);
        assert!(port.take_queue(queue(), opening(1), &watch).is_some(), "the earlier one");
        assert!(!port.is_changed() && port.opening() == opening(1));
    }

    /// A device of which the kernel does not report what the host uses it for.
    struct Unreadable(Box<dyn netdev::PortDevice>);

    impl netdev::PortDevice for Unreadable {
        fn info(&mut self) -> PortInfo {
            self.0.info()
        }

        fn link_notification(&self) -> LinkNotification {
            self.0.link_notification()
        }

        fn counters(&mut self) -> PortCounters {
            self.0.counters()
        }

        fn host_use(&self) -> Result<Option<String>, PortError> {
            Err(PortError::Gone("x".into()))
        }
    }

    #[test]
    fn tier_choice_is_unknown_where_the_kernel_reports_no_use() {
        let spec: PortSpec = "null:x".parse().unwrap();
        let device = netdev::open(&spec).unwrap();
        let device = Port { device: Box::new(Unreadable(device.device)), ..device };
        let mut port = WorkerPort::of_device(PortNo(3), PortSerial(0), device, spec);
        let is_stale = port.is_tier_choice_stale();
        assert!(!is_stale.unwrap(), "nobody is asked where the tier has no part");
        port.set_tier(TierPlace::of(Ok(())));
        assert!(port.is_tier_choice_stale().is_err() && port.is_in_tier());
    }
}
