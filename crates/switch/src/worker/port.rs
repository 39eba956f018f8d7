//! A configured port on its worker: the open device, the counters over all its reopenings, and the
//! time of the next attempt to open it.
//!
//! A port stays configured when its device disappears; it shows `LINK_DOWN` and comes back with the
//! device.

use std::time::{Duration, Instant};

use netdev::sys::watch::Watch;
use netdev::{LinkNotification, Port, PortCounters, PortError, PortInfo, PortQueue, PortSpec};
use openflow::PortNo;
use packet::{Batch, PacketBuf, Pool};

use super::device_thread::OpenDevice;
use super::port_map::PortLocation;
use super::queue::{Opening, QueueRole, port_of_queue};
use super::tier::{ShardTier, TierEntry, TierRefusal};
use super::{PortSerial, Shaper};
use crate::counters::{Counter, Counters};

/// First and longest wait between attempts to open a lost device.
const REOPEN_FIRST: Duration = Duration::from_millis(200);
const REOPEN_LAST: Duration = Duration::from_secs(2);

/// How long a port whose system call failed is left alone.
const PAUSE: Duration = Duration::from_millis(50);

/// A configured port.
pub(crate) struct WorkerPort {
    /// Its number.
    pub(crate) number: PortNo,
    /// The device to open.
    pub(crate) spec: PortSpec,
    /// The open device; `None` while it is lost.
    pub(crate) device: Option<Port>,
    /// The state that was read last.
    pub(crate) info: PortInfo,
    /// The port's queues, where any are configured, until a shard's transmit side takes them.
    pub(crate) shaper: Option<Shaper>,
    /// Whether the port has queues.
    pub(crate) has_queues: bool,
    /// Whether the kernel tier's program is at the device.
    pub(crate) is_in_tier: bool,
    /// Why it is not, where it should be.
    tier_note: Option<String>,
    /// Whether the host's use of the device is why.
    is_left_to_host: bool,
    /// The kernel tier that was made for it, until its shard takes it.
    pub(super) made_tier: Option<ShardTier>,
    /// Frames that the device refused, over all reopenings.
    pub(crate) tx_refused: u64,
    /// The state has changed and was not reported to the agent yet.
    pub(crate) changed: bool,
    /// The port is left alone until then, after a call failed.
    pub(crate) paused_until: Option<Instant>,
    /// The source of change notifications.
    pub(super) notification: LinkNotification,
    /// Whether the worker is woken by the port's descriptor.
    pub(super) is_watched: bool,
    /// Whether the port is in the worker's poll set.
    pub(super) is_in_poll_set: bool,
    /// Whether the port is on its shard's list of faulted ports.
    pub(super) is_listed_faulted: bool,
    /// The device is lost, and the log does not say so yet.
    pub(super) is_newly_lost: bool,
    /// A lost device that may still be watched.
    lost: Option<Port>,
    /// The counters of earlier devices of the port.
    earlier: PortCounters,
    reopen_at: Instant,
    reopen_wait: Duration,
    /// A device is being opened.
    is_opening: bool,
    /// A device of its name has appeared meanwhile.
    appeared: bool,
    /// Which opening of its number it is.
    pub(crate) serial: PortSerial,
    /// Whether its link is to be down, where the device is its own.
    is_set_down: bool,
    /// Whether the device is the port's own.
    pub(crate) owns_link: bool,
    /// Whether the map of the bridge has it; else nothing is received.
    pub(super) is_mapped: bool,
    /// On a wire, the number and address of the port that sends its frames.
    pub(super) pair: Option<(PortNo, [u8; 6])>,
    role: QueueRole,
    /// The devices that it has had.
    devices: u64,
}

impl WorkerPort {
    /// Opens the port for the first time.
    pub(crate) fn open(
        number: PortNo,
        serial: PortSerial,
        spec: PortSpec,
    ) -> Result<Self, PortError> {
        Ok(Self::of_device(number, serial, netdev::open_queues(&spec)?, spec))
    }

    /// The port of a device that is open already.
    pub(crate) fn of_device(
        number: PortNo,
        serial: PortSerial,
        device: Port,
        spec: PortSpec,
    ) -> Self {
        let owns_link = device.device.owns_link();
        let OpenDevice { device, info, notification, .. } = OpenDevice::new(device);
        let port = Self::without_device(number, serial, spec, info);
        Self { device: Some(device), notification, owns_link, ..port }
    }

    /// A further queue of this port, which its home hands out: its number of so many.
    pub(crate) fn further_queue(&self, (nth, of): (usize, usize), home: PortLocation) -> Self {
        let (spec, info) = (self.spec.clone(), self.info.clone());
        let port = Self::without_device(self.number, self.serial, spec, info);
        Self { role: QueueRole::Further(nth, of, home), ..port }
    }

    fn without_device(number: PortNo, serial: PortSerial, spec: PortSpec, info: PortInfo) -> Self {
        Self {
            number,
            spec,
            info,
            shaper: None,
            has_queues: false,
            is_in_tier: false,
            tier_note: None,
            is_left_to_host: false,
            made_tier: None,
            tx_refused: 0,
            changed: false,
            paused_until: None,
            notification: LinkNotification::Never,
            is_watched: false,
            is_in_poll_set: false,
            is_listed_faulted: false,
            is_newly_lost: false,
            lost: None,
            device: None,
            earlier: PortCounters::default(),
            reopen_at: Instant::now(),
            reopen_wait: REOPEN_FIRST,
            is_opening: false,
            appeared: false,
            serial,
            is_set_down: false,
            owns_link: false,
            is_mapped: false,
            pair: None,
            role: QueueRole::Home(Vec::new()),
            devices: 0,
        }
    }

    pub(super) fn role(&self) -> &QueueRole {
        &self.role
    }

    /// Whether it has the device of the port, and not a further queue alone.
    pub(crate) fn is_home(&self) -> bool {
        matches!(self.role, QueueRole::Home(_))
    }

    /// Where the further queues of the port are, of its home.
    pub(super) fn further(&self) -> &[PortLocation] {
        match &self.role {
            QueueRole::Home(further) => further,
            QueueRole::Further(..) => &[],
        }
    }

    /// Where the further queues of the port are from now on.
    pub(crate) fn set_further(&mut self, places: Vec<PortLocation>) {
        self.role = QueueRole::Home(places);
    }

    /// Which device its queue is of.
    pub(super) fn opening(&self) -> Opening {
        Opening { serial: self.serial, devices: self.devices }
    }

    /// Whether it is a further queue of this opening of the port's number.
    pub(super) fn is_further_of(&self, serial: PortSerial) -> bool {
        !self.is_home() && self.serial == serial
    }

    /// Takes the queue that the home has handed out. Returns what it had, to be closed: it is not
    /// watched any more.
    pub(super) fn take_queue(
        &mut self,
        queue: PortQueue,
        opening: Opening,
        watch: &Watch,
    ) -> Option<Port> {
        let earlier = self.device.take().or_else(|| self.lost.take());
        if let Some(earlier) = &earlier {
            self.unwatch(watch, earlier);
        }
        self.devices = opening.devices;
        self.info.exists = true;
        self.device = Some(port_of_queue(queue, self.info.clone()));
        self.paused_until = None;
        earlier
    }

    /// The source of change notifications.
    pub(crate) fn link_notification(&self) -> LinkNotification {
        self.notification
    }

    /// The device has disappeared.
    pub(crate) fn lose(&mut self, now: Instant) {
        if let Some(mut device) = self.device.take() {
            self.earlier = [self.earlier, device.counters()].into_iter().sum();
            self.lost = Some(device);
            self.is_newly_lost = true;
        }
        self.info.link_up = false;
        self.info.exists = false;
        self.changed = true;
        self.reopen_wait = REOPEN_FIRST;
        self.reopen_at = now + self.reopen_wait;
    }

    /// Whether the device is perhaps used otherwise than when it was opened, given whether the
    /// host has an address on it.
    pub(super) fn may_be_misplaced(&self, has_address: bool) -> bool {
        if has_address { self.is_in_tier } else { self.is_left_to_host }
    }

    /// The host has addresses on the device that it had not, or the other way round: whether the
    /// port is in the kernel tier and should not be any more, or should be again.
    ///
    /// # Errors
    /// The kernel does not say what the host uses the device for.
    pub(super) fn is_misplaced(&mut self) -> Result<bool, PortError> {
        let Some(device) = self.device.as_ref().filter(|_| self.is_in_tier || self.is_left_to_host)
        else {
            return Ok(false);
        };
        let used = device.device.host_use()?;
        if used.is_some() == self.is_in_tier {
            return Ok(true);
        }
        // It is as it was, perhaps for another reason.
        if let Some(used) = used {
            let refusal = TierRefusal::of(&PortError::HostUses(used));
            self.changed |= self.tier_note.as_ref().is_none_or(|n| !n.ends_with(&refusal.why));
            self.entered_tier(Err(refusal));
        }
        Ok(false)
    }

    /// Has the device closed and opened again at once, as one that has disappeared and come back.
    pub(super) fn reopen(&mut self, now: Instant) {
        self.lose(now);
        self.is_newly_lost = false;
        self.reopen_at = now;
    }

    /// Reads the state of the device.
    pub(crate) fn refresh(&mut self, now: Instant) {
        let Some(device) = &mut self.device else { return };
        let mut info = device.info();
        // A device in another namespace is asked, since no notification comes from there.
        self.notification = device.link_notification();
        info.notes.extend(self.tier_note.clone());
        if !info.exists {
            self.lose(now);
        } else if info != self.info {
            self.info = info;
            self.changed = true;
        }
    }

    /// Puts the kernel tier's program at the device, or notes why that is not possible. It is
    /// loaded meanwhile, which takes milliseconds.
    pub(crate) fn enter_tier(&mut self, tier: &mut TierEntry) {
        let Some(device) = &mut self.device else { return };
        if let Some(entered) = tier.enter(device) {
            self.entered_tier(entered);
        }
    }

    /// As [`WorkerPort::enter_tier`]; a tier that is made for the port comes to the shard with it.
    pub(crate) fn enter_tier_alone(&mut self, mut tier: TierEntry) {
        self.enter_tier(&mut tier);
        self.made_tier = tier.into_made().filter(|_| self.is_in_tier);
    }

    /// The program is at the device, or could not be put there.
    fn entered_tier(&mut self, entered: Result<(), TierRefusal>) {
        self.is_in_tier = entered.is_ok();
        self.is_left_to_host = entered.as_ref().is_err_and(|refusal| refusal.is_for_the_host);
        let note = entered.err().map(|refusal| format!("no kernel tier: {}", refusal.why));
        if let Some(note) = &note {
            tracing::info!(port = %self.number, name = self.info.name, "{note}");
        }
        self.note_tier(note);
    }

    /// Notes why the kernel tier is not at the port; nothing when it is.
    fn note_tier(&mut self, note: Option<String>) {
        if let Some(earlier) = &self.tier_note {
            self.info.notes.retain(|note| note != earlier);
        }
        self.info.notes.extend(note.clone());
        self.tier_note = note;
    }

    /// Whether the port is down, paused or changed, so that the worker must serve it.
    pub(super) fn needs_service(&self) -> bool {
        self.changed || self.paused_until.is_some() || self.device.is_none()
    }

    /// When a faulted port is due; one that is being opened is due when that has ended.
    pub(super) fn service_at(&self) -> Option<Instant> {
        match (&self.device, self.is_opening) {
            (Some(_), _) => self.paused_until,
            (None, true) => None,
            (None, false) => self.is_home().then_some(self.reopen_at),
        }
    }

    /// A device of this name exists: whether it is the lost one, which is then due at once.
    pub(super) fn device_appeared(&mut self, name: &str, now: Instant) -> bool {
        let is_ours = self.is_home() && self.device.is_none() && self.spec.name() == name;
        if is_ours {
            self.reopen_at = now;
            self.appeared = self.is_opening;
        }
        is_ours
    }

    /// Watches the port's descriptor under this key, unless it has none or is paused. Returns
    /// whether the port need not be polled.
    pub(super) fn watch(&mut self, watch: &Watch, key: u64) -> bool {
        let Some(device) = self.device.take() else { return true };
        let is_paused = self.paused_until.is_some();
        if is_paused {
            self.unwatch(watch, &device);
        } else if let Some(fd) = device.fd().filter(|_| !self.is_watched) {
            match watch.add(fd, key) {
                Ok(()) => self.is_watched = true,
                Err(error) => {
                    tracing::debug!(port = %self.number, %error, "the port cannot be watched");
                }
            }
        }
        self.device = Some(device);
        is_paused || self.is_watched
    }

    /// The lost device, to be closed: it is no longer watched.
    pub(super) fn take_lost(&mut self, watch: &Watch) -> Option<Port> {
        let lost = self.lost.take()?;
        self.unwatch(watch, &lost);
        Some(lost)
    }

    fn unwatch(&mut self, watch: &Watch, device: &Port) {
        if let Some(fd) = device.fd().filter(|_| self.is_watched)
            && let Err(error) = watch.remove(fd)
        {
            tracing::debug!(port = %self.number, %error, "the port was not watched");
        }
        self.is_watched = false;
    }

    /// Whether a lost device is to be opened now, which ends with [`WorkerPort::opened`].
    pub(super) fn start_opening(&mut self, now: Instant) -> bool {
        self.is_opening |= self.device.is_none() && !self.is_opening && now >= self.reopen_at;
        self.is_opening
    }

    /// Takes the link of the device down or up, where it is the port's own; so again when it
    /// is opened anew.
    pub(super) fn set_link(&mut self, up: bool, now: Instant) {
        self.is_set_down = !up;
        let Some(device) = &mut self.device else { return };
        if let Err(error) = device.device.set_link(up) {
            tracing::warn!(port = %self.number, up, %error, "the link stays as it is");
        }
        self.refresh(now);
    }

    /// The device was opened, or could not be; true when it is back.
    pub(super) fn opened(&mut self, result: Result<OpenDevice, PortError>, now: Instant) -> bool {
        self.is_opening = false;
        match result {
            Ok(OpenDevice { device, info, notification, tier, made_tier }) => {
                self.info = info;
                self.notification = notification;
                self.device = Some(device);
                self.devices += 1;
                self.tier_note = None;
                self.is_in_tier = false;
                self.is_left_to_host = false;
                if let Some(entered) = tier {
                    self.entered_tier(entered);
                }
                self.made_tier = made_tier;
                self.paused_until = None;
                self.changed = true;
                if self.is_set_down {
                    self.set_link(false, now);
                }
                true
            }
            Err(error) => {
                tracing::debug!(port = %self.number, spec = %self.spec, %error, "still lost");
                let notes = vec![format!("cannot be opened: {error}")];
                self.changed |= self.info.notes != notes;
                self.info.notes = notes;
                self.retry_later(now);
                false
            }
        }
    }

    /// Opening is tried again later, or at once where the device has appeared meanwhile.
    pub(super) fn retry_later(&mut self, now: Instant) {
        self.is_opening = false;
        self.reopen_wait = (self.reopen_wait * 2).min(REOPEN_LAST);
        let wait = if self.appeared { Duration::ZERO } else { self.reopen_wait };
        self.reopen_at = now + wait;
        self.appeared = false;
    }

    /// Receives up to `most` frames; their number.
    pub(super) fn receive(
        &mut self,
        most: usize,
        batch: &mut Batch,
        now: Instant,
        counters: &Counters,
    ) -> usize {
        if self.is_paused(now) || !self.is_mapped {
            return 0;
        }
        let Some(device) = &mut self.device else { return 0 };
        match device.rx(batch, most) {
            Ok(count) => count,
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
        let sent = match self.device.as_mut().map(|device| device.tx_batch(frames, pool)) {
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
        let refused = frames.len();
        if refused > 0 {
            let packets = frames.iter().map(|frame| frame.on_wire().0).sum();
            if self.device.is_some() {
                counters.add(Counter::TxQueueFull, packets);
                self.tx_refused += packets;
            } else {
                counters.add(Counter::TxPortGone, packets);
            }
            pool.give_front(frames, refused);
        }
        sent
    }

    /// A call on the port failed: leaves it alone for a while, so that a device that is down does
    /// not keep the worker awake.
    pub(crate) fn pause(&mut self, now: Instant) {
        self.paused_until = Some(now + PAUSE);
    }

    /// Whether the port is left alone now.
    pub(crate) fn is_paused(&mut self, now: Instant) -> bool {
        if self.paused_until.is_some_and(|until| now >= until) {
            self.paused_until = None;
        }
        self.paused_until.is_some()
    }

    /// Gives up the port: what is open of it, not watched any more.
    pub(super) fn give_up(mut self, watch: &Watch) -> Option<Port> {
        let device = self.device.take().or_else(|| self.lost.take())?;
        self.unwatch(watch, &device);
        Some(device)
    }

    /// Whether this is the opening that a device was opened for.
    pub(super) fn awaits(&self, serial: PortSerial) -> bool {
        self.serial == serial && self.is_opening
    }

    /// The device's counters, over all reopenings.
    pub(crate) fn counters(&mut self) -> PortCounters {
        match &mut self.device {
            Some(device) => [self.earlier, device.counters()].into_iter().sum(),
            None => self.earlier,
        }
    }
}

#[cfg(test)]
mod tests {
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
        assert!(port.changed && !port.info.exists && !port.info.link_up);
        frames.push(PacketBuf::from_slice(&[0; 60]));
        assert_eq!(port.transmit(&mut frames, &mut pool, &counters), 0);
        assert!(frames.is_empty() && counters.get(Counter::TxPortGone) == 1);
        assert!(!port.start_opening(now));
        let later = now + REOPEN_FIRST;
        assert_eq!(port.service_at(), Some(later));
        assert!(port.start_opening(later) && port.service_at().is_none());
        let missing = || Err(PortError::Gone("x".into()));
        port.changed = false;
        assert!(!port.opened(missing(), later) && port.service_at() > Some(later));
        assert!(port.changed, "the reason is reported");
        assert_eq!(port.info.notes, ["cannot be opened: port x: the device has disappeared"]);
        // A device that appears while it is being opened is tried at once.
        let again = later + REOPEN_LAST;
        assert!(port.start_opening(again) && port.device_appeared("x", again));
        port.changed = false;
        assert!(!port.opened(missing(), again) && port.service_at() == Some(again));
        assert!(!port.changed, "once");
        assert!(port.start_opening(again));
        let device = netdev::open(&port.spec).map(OpenDevice::new);
        assert!(port.opened(device, again) && port.info.notes.is_empty());
        frames.push(PacketBuf::from_slice(&[0; 60]));
        assert_eq!(port.transmit(&mut frames, &mut pool, &counters), 1);
        assert_eq!(port.counters().tx_packets, 2);
        assert!(port.info.exists);
    }

    /// A device of which the kernel does not tell what the host uses it for.
    struct Untold(Box<dyn netdev::PortDevice>);

    impl netdev::PortDevice for Untold {
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
    fn a_port_is_not_taken_for_well_placed_when_the_kernel_does_not_tell() {
        let spec: PortSpec = "null:x".parse().unwrap();
        let device = netdev::open(&spec).unwrap();
        let device = Port { device: Box::new(Untold(device.device)), ..device };
        let mut port = WorkerPort::of_device(PortNo(3), PortSerial(0), device, spec);
        assert!(!port.is_misplaced().unwrap(), "nobody is asked where the tier has no part");
        port.is_in_tier = true;
        assert!(port.is_misplaced().is_err() && port.is_in_tier);
    }
}
