//! Maintenance of a worker's ports: link state, faults, and reopening of devices that are back.
//!
//! The kernel notifies of changes of devices; only ports without notifications are asked by the
//! clock, and the far ends of veths in the kernel tier are looked at, on the thread of devices. So
//! a worker over a thousand bridges with quiet devices has next to no maintenance to do.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::{Duration, Instant};

use channel::LogThrottle;
use netdev::{LinkChange, LinkMonitor, LinkNotification, TierPort};

use super::device_thread::Opened;
use super::port::Unreported;
use super::{Shard, Slots, Worker, WorkerEvent, WorkerPort};
use crate::counters::Counter;

/// The interval at which ports without notifications are read: a link that goes down is known
/// within this time.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// The interval at which far ends of veths in the kernel tier, and what is at their egress, are
/// looked at: the kernel does not notify of these.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Those that are looked at each time, in turn.
const LOOKS_AT_ONCE: usize = 20;
/// While the kernel tier gets no frame, only each tenth time.
const IDLE_LOOK_FACTOR: u32 = 10;

/// Failures of reading link notifications are logged no oftener than this.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// A port of the worker: the index of its shard, and its index there.
pub(super) type PortIndex = (usize, usize);

/// The pause after a failed read of the monitor, which lists all devices each time: however often
/// the kernel notifies of changes meanwhile, the next read is not before its end.
#[derive(Debug)]
struct ReadPause {
    end: Option<Instant>,
    failures: LogThrottle,
}

impl Default for ReadPause {
    fn default() -> Self {
        Self { end: None, failures: LogThrottle::new(LOG_EVERY) }
    }
}

impl ReadPause {
    /// Whether the monitor may not be read yet.
    fn holds(&self, now: Instant) -> bool {
        self.end.is_some_and(|end| now < end)
    }

    /// A read has failed; `Some` when that may be logged, see [`LogThrottle::pass`].
    fn begin(&mut self, now: Instant) -> Option<u64> {
        self.end = Some(now + ASK_EVERY);
        self.failures.pass(now)
    }
}

/// The maintenance that is due, and the ports that it concerns.
#[derive(Debug)]
pub(super) struct Maintenance {
    monitor: Option<LinkMonitor>,
    read_pause: ReadPause,
    /// The monitor has changes to read.
    pub(super) has_link_changes: bool,
    /// Devices have been opened.
    pub(super) has_opened: bool,
    /// The ports of each device.
    devices: BTreeMap<u32, Vec<PortIndex>>,
    /// Ports to be compared with the monitor, each with the interface index of its device: newly
    /// opened ones, and those of which it reported a change.
    unconfirmed: Vec<(PortIndex, u32)>,
    /// Devices on which addresses of the host may have come or gone.
    addressed: BTreeSet<u32>,
    /// When they are compared again, or the monitor is asked again.
    compare_at: Option<Instant>,
    /// Ports without notifications.
    asked: Vec<PortIndex>,
    ask_at: Instant,
    /// Veths in the kernel tier, whose far ends are looked at, and those of which something has
    /// changed.
    far_ends: BTreeMap<PortIndex, TierPort>,
    changed_ends: BTreeSet<PortIndex>,
    /// The last one that was looked at in turn, and when the next ones are.
    looked_at: PortIndex,
    look_at: Instant,
    /// The frames that the kernel tiers had got by then, and how often there was none.
    frames_at_look: u64,
    idle_looks: u32,
    /// When a faulted port is due.
    service_at: Option<Instant>,
    /// Faulted ports are due at once: one is new or has changed.
    pub(super) has_new_fault: bool,
}

impl Maintenance {
    pub(super) fn new(
        shards: &Slots<Shard>,
        mut monitor: Option<LinkMonitor>,
        now: Instant,
    ) -> Self {
        // As the monitor found them. Of each port the kernel was asked a moment ago whether the
        // host uses its device; to ask all of a thousand once more takes seconds.
        let addressed = monitor.as_mut().map(LinkMonitor::take_addressed).unwrap_or_default();
        let mut doubtful = BTreeSet::new();
        let mut maintenance = Self {
            monitor,
            read_pause: ReadPause::default(),
            // The state of a port may have changed since it was opened.
            has_link_changes: true,
            has_opened: false,
            devices: BTreeMap::new(),
            unconfirmed: Vec::new(),
            addressed: BTreeSet::new(),
            compare_at: None,
            asked: Vec::new(),
            ask_at: now + ASK_EVERY,
            far_ends: BTreeMap::new(),
            changed_ends: BTreeSet::new(),
            looked_at: (0, 0),
            look_at: now,
            frames_at_look: 0,
            idle_looks: 0,
            service_at: None,
            has_new_fault: false,
        };
        for (index, shard) in shards.iter() {
            for (port, found) in shard.ports.all().iter() {
                maintenance.register((index, port), found, now);
                if let LinkNotification::Netlink(device) = found.notification
                    && found.may_have_stale_tier_choice(addressed.contains(&device))
                {
                    doubtful.insert(device);
                }
            }
        }
        maintenance.addressed = doubtful;
        maintenance
    }

    /// Registers a port under its source of change notifications.
    pub(super) fn register(&mut self, port: PortIndex, found: &WorkerPort, now: Instant) {
        if let Some(far_end) = found.with_far_end() {
            self.far_ends.insert(port, far_end);
            self.look_soon(port, now);
        }
        match found.notification {
            LinkNotification::Never => {}
            LinkNotification::Netlink(index) if self.monitor.is_some() => {
                let ports = self.devices.entry(index).or_default();
                if !ports.contains(&port) {
                    ports.push(port);
                }
                // A message may have come before the port was registered.
                self.unconfirmed.push((port, index));
                self.addressed.insert(index);
                self.compare_at = Some(now);
            }
            LinkNotification::Netlink(_) | LinkNotification::Polled => {
                if !self.asked.contains(&port) {
                    self.asked.push(port);
                }
            }
        }
    }

    /// Something has changed of a port that may have a far end.
    fn look_soon(&mut self, port: PortIndex, now: Instant) {
        if self.far_ends.contains_key(&port) {
            self.changed_ends.insert(port);
            self.look_at = now;
        }
    }

    /// A port is gone.
    pub(super) fn unregister(&mut self, port: PortIndex) {
        self.devices.retain(|_, ports| {
            ports.retain(|registered| *registered != port);
            !ports.is_empty()
        });
        self.unconfirmed.retain(|(unconfirmed, _)| *unconfirmed != port);
        self.asked.retain(|asked| *asked != port);
        self.far_ends.remove(&port);
    }

    /// Whether there is a monitor of devices.
    pub(super) fn has_monitor(&self) -> bool {
        self.monitor.is_some()
    }

    /// Devices are monitored from now on.
    pub(super) fn set_monitor(&mut self, monitor: LinkMonitor) {
        self.monitor = Some(monitor);
        self.has_link_changes = true;
    }

    /// When maintenance is due next.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let ask_at = (!self.asked.is_empty()).then_some(self.ask_at);
        let look_at = (!self.far_ends.is_empty()).then_some(self.look_at);
        ask_at.into_iter().chain(look_at).chain(self.service_at).chain(self.compare_at).min()
    }
}

impl Worker {
    /// Does the maintenance that is due; whether there was any.
    pub(super) fn maintain(&mut self, now: Instant) -> bool {
        if std::mem::take(&mut self.maintenance.has_opened) {
            self.take_opened(now);
        }
        let mut worked = std::mem::take(&mut self.maintenance.has_link_changes)
            && !self.maintenance.read_pause.holds(now);
        if worked || self.maintenance.compare_at.is_some_and(|due| now >= due) {
            self.read_link_changes(now);
            self.compare_links(now);
            self.recheck_host_use(now);
        }
        if !self.maintenance.asked.is_empty() && now >= self.maintenance.ask_at {
            worked = true;
            self.maintenance.ask_at = now + ASK_EVERY;
            // One that has come to notify is not among them afterwards.
            for port in self.maintenance.asked.clone() {
                self.check_port(port, now);
            }
        }
        if !self.maintenance.far_ends.is_empty() && now >= self.maintenance.look_at {
            self.look_at_far_ends(now);
        }
        let is_due = self.maintenance.service_at.is_some_and(|due| now >= due);
        if std::mem::take(&mut self.maintenance.has_new_fault) || is_due {
            self.service_all(now);
        }
        worked
    }

    /// Has far ends looked at: those of ports that have changed, and some of the others in turn.
    fn look_at_far_ends(&mut self, now: Instant) {
        let frames = self.shards.iter().map(|(_, shard)| shard.tier_frames().seen).sum();
        let looks = &mut self.maintenance;
        let is_idle = std::mem::replace(&mut looks.frames_at_look, frames) == frames;
        looks.idle_looks = if is_idle { looks.idle_looks + 1 } else { 0 };
        let mut ports = std::mem::take(&mut looks.changed_ends);
        if looks.idle_looks.is_multiple_of(IDLE_LOOK_FACTOR) {
            let later = looks.far_ends.range((Bound::Excluded(looks.looked_at), Bound::Unbounded));
            let most = LOOKS_AT_ONCE.min(looks.far_ends.len());
            let next = later.chain(&looks.far_ends).take(most).map(|(port, _)| *port);
            let next: Vec<PortIndex> = next.collect();
            looks.looked_at = next.last().copied().unwrap_or_default();
            ports.extend(next);
        }
        let with_device = |port| Some((port, looks.far_ends.get(&port)?.clone()));
        let list: Vec<(PortIndex, TierPort)> =
            ports.iter().copied().filter_map(with_device).collect();
        let is_begun = list.is_empty() || self.devices.look(list);
        looks.look_at = now + if is_begun { LOOK_EVERY } else { ASK_EVERY };
        if !is_begun {
            looks.changed_ends = ports;
        }
    }

    /// Reads the monitor's changes.
    fn read_link_changes(&mut self, now: Instant) {
        let Some(monitor) = &mut self.maintenance.monitor else { return };
        let pause = &mut self.maintenance.read_pause;
        if pause.holds(now) {
            return;
        }
        pause.end = None;
        let changes = monitor.changes().unwrap_or_else(|error| {
            if let Some(suppressed) = pause.begin(now) {
                let suppressed = (suppressed > 0).then_some(suppressed);
                tracing::warn!(%error, suppressed, "reading link notifications failed");
            }
            Vec::new()
        });
        self.maintenance.addressed.extend(monitor.take_addressed());
        for LinkChange { index, name, exists, .. } in changes {
            let ports = self.maintenance.devices.get(&index).into_iter().flatten();
            self.maintenance.unconfirmed.extend(ports.map(|port| (*port, index)));
            if exists {
                self.device_appeared(&name, now);
            } else {
                self.maintenance.devices.remove(&index);
            }
        }
    }

    /// Rechecks the ports on whose devices addresses of the host have come or gone; again later
    /// where the kernel gave no answer.
    fn recheck_host_use(&mut self, now: Instant) {
        for index in std::mem::take(&mut self.maintenance.addressed) {
            let ports = self.maintenance.devices.get(&index).cloned().unwrap_or_default();
            for (shard, port) in ports {
                let Some(found) = self.shards.get_mut(shard) else { continue };
                match found.recheck_host_use(port, now) {
                    Ok(is_due) => self.maintenance.has_new_fault |= is_due,
                    Err(error) => {
                        let (bridge, port, name) = log_fields(found, port);
                        tracing::debug!(bridge, port, name, %error, "the host is asked again");
                        self.maintenance.addressed.insert(index);
                        self.maintenance.compare_at = Some(now + ASK_EVERY);
                    }
                }
                self.update_lists(shard);
            }
        }
    }

    /// Reads the state of the unconfirmed ports; of each again until port and monitor agree on its
    /// link, since the one may have seen a change that the other has not.
    fn compare_links(&mut self, now: Instant) {
        let mut unconfirmed = std::mem::take(&mut self.maintenance.unconfirmed);
        unconfirmed.sort_unstable();
        unconfirmed.dedup();
        unconfirmed.retain(|(port, index)| {
            self.check_port(*port, now);
            self.maintenance.look_soon(*port, now);
            let monitor = self.maintenance.monitor.as_ref();
            let device = monitor.and_then(|monitor| monitor.device(*index));
            let reported = device.is_some_and(LinkChange::link_up);
            // The monitor knows nothing of a device that has gone to another namespace.
            self.notification(*port) == Some(LinkNotification::Netlink(*index))
                && self.link_is_up(*port).is_some_and(|link_up| link_up != reported)
        });
        let again = self.maintenance.read_pause.end.is_some() || !unconfirmed.is_empty();
        self.maintenance.compare_at = again.then_some(now + ASK_EVERY);
        self.maintenance.unconfirmed = unconfirmed;
    }

    fn notification(&self, (shard, port): PortIndex) -> Option<LinkNotification> {
        Some(self.shards.get(shard)?.ports.all().get(port)?.notification)
    }

    /// Whether the link of a port was up when its state was read last; `None` without a device.
    fn link_is_up(&self, (shard, port): PortIndex) -> Option<bool> {
        let port = self.shards.get(shard)?.ports.all().get(port)?;
        port.device().map(|_| port.info.link_up)
    }

    /// A device of this name exists, perhaps anew: a lost port of this name is due at once.
    fn device_appeared(&mut self, name: &str, now: Instant) {
        for index in &self.faulted {
            let Some(shard) = self.shards.get_mut(*index) else { continue };
            for port in shard.ports.all_mut().iter_mut() {
                self.maintenance.has_new_fault |= port.device_appeared(name, now);
            }
        }
    }

    /// Reads the state of a port.
    fn check_port(&mut self, (index, port): PortIndex, now: Instant) {
        let Some(shard) = self.shards.get_mut(index) else { return };
        if let Some(found) = shard.ports.all_mut().get_mut(port) {
            let before = found.notification;
            found.refresh(now);
            if found.notification != before {
                self.maintenance.unregister((index, port));
                self.maintenance.register((index, port), found, now);
            }
        }
        shard.ports.note_fault(port);
        self.update_lists(index);
    }

    /// Serves the faulted ports that are due.
    fn service_all(&mut self, now: Instant) {
        self.maintenance.service_at = None;
        let mut faulted = std::mem::take(&mut self.faulted);
        faulted.retain(|index| self.service_shard(*index, now));
        // Service makes no port faulted, so that nothing was added meanwhile.
        self.faulted = faulted;
    }

    /// Serves the faulted ports of a shard; whether any is still faulted.
    fn service_shard(&mut self, index: usize, now: Instant) -> bool {
        let mut at = 0;
        while let Some(port) = self.faulted_at(index, at) {
            self.service((index, port), now);
            at += 1;
        }
        let Some(shard) = self.shards.get_mut(index) else { return false };
        shard.send_upcalls();
        shard.is_listed_faulted = shard.ports.end_service();
        shard.is_listed_faulted
    }

    fn faulted_at(&self, shard: usize, at: usize) -> Option<usize> {
        self.shards.get(shard)?.ports.faulted().get(at).copied()
    }

    fn service(&mut self, (index, port): PortIndex, now: Instant) {
        let Some(shard) = self.shards.get_mut(index) else { return };
        let tier = shard.tier_entry(port);
        let Some(found) = shard.ports.all_mut().get_mut(port) else { return };
        if let Some(lost) = found.take_lost(&self.watch) {
            self.devices.close(lost);
        }
        if found.start_opening(now)
            && !self.devices.open((index, port), found.serial, found.spec.clone(), tier)
        {
            found.retry_later(now);
        }
        // Ends the pause when its time is over.
        let (is_open, is_paused) = (found.device().is_some(), found.is_paused(now));
        found.watch(&self.watch, super::run::watch_key(index, port));
        if found.is_changed() {
            self.report((index, port));
        }
        let Some(shard) = self.shards.get(index) else { return };
        let due = shard.ports.all().get(port).and_then(WorkerPort::service_at);
        self.maintenance.service_at = self.maintenance.service_at.into_iter().chain(due).min();
        if is_open && due.is_none() && !is_paused {
            self.start_polling(index, port);
        }
    }

    /// Takes the devices that were opened, and reports their ports; so of those whose far ends are
    /// others.
    pub(super) fn take_opened(&mut self, now: Instant) {
        for port in self.devices.take_changed() {
            self.check_port(port, now);
        }
        for Opened { port: (index, port), serial, result } in self.devices.take_opened() {
            let shard = self.shards.get_mut(index);
            let found = shard.and_then(|shard| shard.ports.all_mut().get_mut(port));
            let Some(found) = found.filter(|found| found.awaits(serial)) else {
                // The port was removed meanwhile.
                if let Ok(opened) = result {
                    self.devices.close(opened.device);
                }
                continue;
            };
            let is_back = found.opened(result, now);
            let Some(shard) = self.shards.get_mut(index) else { continue };
            if is_back {
                shard.port_reopened(port);
                self.has_tier |= shard.has_tier();
            }
            shard.ports.note_fault(port);
            if is_back {
                shard.counters.bump(Counter::PortReopened);
                let (bridge, number, name) = log_fields(shard, port);
                tracing::info!(bridge, port = number, name, "the port is back");
                self.maintenance.unregister((index, port));
                if let Some(found) = shard.ports.all().get(port) {
                    self.maintenance.register((index, port), found, now);
                }
                self.hand_out((index, port));
            }
            self.update_lists(index);
            self.maintenance.has_new_fault = true;
        }
    }

    /// Reports a changed port to the agent.
    fn report(&mut self, (index, port): PortIndex) {
        let Some(shard) = self.shards.get_mut(index) else { return };
        let Some(found) = shard.ports.all_mut().get_mut(port) else { return };
        let (number, serial) = (found.number, found.serial);
        let (info, is_home) = (Box::new(found.info.clone()), found.is_home());
        let unreported = std::mem::replace(&mut found.unreported, Unreported::Nothing);
        let is_newly_lost = unreported == Unreported::Loss;
        if is_newly_lost {
            self.publish_loss((index, port));
        }
        if !is_home {
            return;
        }
        let Some(shard) = self.shards.get_mut(index) else { return };
        if is_newly_lost {
            shard.counters.bump(Counter::PortGone);
            let (bridge, port, name) = log_fields(shard, port);
            tracing::warn!(bridge, port, name, "error receiving frames: the port is gone");
        }
        if info.exists {
            shard.publish_address(number, info.mac);
        }
        shard.pending.events.push(WorkerEvent::PortChanged(number, serial, info));
    }
}

/// The bridge, number and name of a port, for the log.
fn log_fields(shard: &Shard, port: usize) -> (Option<&str>, String, &str) {
    let port = shard.ports.all().get(port);
    let number = port.map_or_else(String::new, |port| port.number.to_string());
    (shard.bridge.as_deref(), number, port.map_or("", |port| port.info.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::{ASK_EVERY, LOG_EVERY, ReadPause};
    use std::time::{Duration, Instant};

    #[test]
    fn after_a_failed_read_the_monitor_is_left_alone_for_a_while() {
        let (mut pause, start) = (ReadPause::default(), Instant::now());
        assert!(!pause.holds(start));
        let (mut reads, mut lines) = (0, 0);
        // A notification each millisecond, and each read fails.
        for now in (0..1_000).map(|elapsed| start + Duration::from_millis(elapsed)) {
            if !pause.holds(now) {
                reads += 1;
                lines += u32::from(pause.begin(now).is_some());
            }
        }
        assert_eq!((reads, lines), (10, 1));
        assert_eq!(pause.begin(start + LOG_EVERY), Some(9));
        assert!(!pause.holds(start + LOG_EVERY + ASK_EVERY));
    }
}
