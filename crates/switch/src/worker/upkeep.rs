//! What a worker does beside forwarding: it learns how its ports are, and opens again what is back.
//!
//! The kernel tells when a device changes; only ports of which nobody tells are asked by the clock.
//! So a worker over a thousand bridges whose devices rest has nothing to do at all.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use netdev::{LinkChange, LinkMonitor, LinkNotification};

use super::{Branch, Slot, Upcall, Worker};
use crate::counters::Counter;

/// How often ports are asked for their state of which nobody tells: a link that goes down is known
/// within this time.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Where a port is: its branch, and its place there.
type Place = (usize, usize);

/// When what is due, and whom it concerns.
#[derive(Debug)]
pub(super) struct Upkeep {
    monitor: Option<LinkMonitor>,
    /// The monitor has something to tell.
    pub(super) has_news: bool,
    /// The ports of each device.
    devices: BTreeMap<u32, Vec<Place>>,
    /// Ports to be compared with the monitor, each with the interface index of its device: newly
    /// opened ones, and those of which it reported a change.
    unconfirmed: Vec<(Place, u32)>,
    /// When they are compared again, or the monitor is asked again.
    compare_at: Option<Instant>,
    /// Ports that must be asked.
    asked: Vec<Place>,
    ask_at: Instant,
    /// When a port in trouble is due.
    care_at: Option<Instant>,
    /// Ports in trouble are due at once: something new is the matter with one of them.
    pub(super) is_alarmed: bool,
}

impl Upkeep {
    pub(super) fn new(branches: &[Branch], monitor: Option<LinkMonitor>, now: Instant) -> Self {
        // The state of a port may have changed since it was opened.
        let has_news = true;
        let mut upkeep = Self {
            monitor,
            has_news,
            devices: BTreeMap::new(),
            unconfirmed: Vec::new(),
            compare_at: None,
            asked: Vec::new(),
            ask_at: now + ASK_EVERY,
            care_at: None,
            is_alarmed: false,
        };
        for (place, branch) in branches.iter().enumerate() {
            for (index, slot) in branch.ports.slots().iter().enumerate() {
                upkeep.enrol((place, index), slot.news, now);
            }
        }
        upkeep
    }

    /// Notes who tells of a port.
    fn enrol(&mut self, place: Place, news: LinkNotification, now: Instant) {
        match news {
            LinkNotification::Never => {}
            LinkNotification::Netlink(index) if self.monitor.is_some() => {
                self.devices.entry(index).or_default().push(place);
                // A message may have come before the port was enrolled.
                self.unconfirmed.push((place, index));
                self.compare_at = Some(now);
            }
            LinkNotification::Netlink(_) | LinkNotification::Polled => {
                if !self.asked.contains(&place) {
                    self.asked.push(place);
                }
            }
        }
    }

    /// When the next thing is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let ask_at = (!self.asked.is_empty()).then_some(self.ask_at);
        ask_at.into_iter().chain(self.care_at).chain(self.compare_at).min()
    }
}

impl Worker {
    /// Does what is due; whether anything was.
    pub(super) fn tend(&mut self, now: Instant) -> bool {
        let mut worked = std::mem::take(&mut self.upkeep.has_news);
        if worked || self.upkeep.compare_at.is_some_and(|due| now >= due) {
            self.hear(now);
            self.compare_links(now);
        }
        if !self.upkeep.asked.is_empty() && now >= self.upkeep.ask_at {
            worked = true;
            self.upkeep.ask_at = now + ASK_EVERY;
            let asked = std::mem::take(&mut self.upkeep.asked);
            for place in &asked {
                self.look_at(*place, now);
            }
            self.upkeep.asked = asked;
        }
        let is_due = self.upkeep.care_at.is_some_and(|due| now >= due);
        if std::mem::take(&mut self.upkeep.is_alarmed) || is_due {
            self.care_for_all(now);
        }
        worked
    }

    /// Reads the monitor's changes.
    fn hear(&mut self, now: Instant) {
        let Some(monitor) = &mut self.upkeep.monitor else { return };
        let changes = monitor.changes().unwrap_or_else(|error| {
            tracing::warn!(%error, "the kernel does not tell how devices are");
            Vec::new()
        });
        for LinkChange { index, name, exists, .. } in changes {
            let ports = self.upkeep.devices.get(&index).into_iter().flatten();
            self.upkeep.unconfirmed.extend(ports.map(|place| (*place, index)));
            if exists {
                self.is_back(&name, now);
            } else {
                self.upkeep.devices.remove(&index);
            }
        }
    }

    /// Reads the state of the unconfirmed ports; of each again until port and monitor agree on its
    /// link, since the one may have seen a change that the other has not.
    fn compare_links(&mut self, now: Instant) {
        let mut unconfirmed = std::mem::take(&mut self.upkeep.unconfirmed);
        unconfirmed.sort_unstable();
        unconfirmed.dedup();
        unconfirmed.retain(|(place, index)| {
            self.look_at(*place, now);
            let device = self.upkeep.monitor.as_ref().and_then(|monitor| monitor.device(*index));
            let reported = device.is_some_and(LinkChange::link_up);
            self.link_is_up(*place).is_some_and(|link_up| link_up != reported)
        });
        let is_stale = self.upkeep.monitor.as_ref().is_some_and(LinkMonitor::is_stale);
        let again = is_stale || !unconfirmed.is_empty();
        self.upkeep.compare_at = again.then_some(now + ASK_EVERY);
        self.upkeep.unconfirmed = unconfirmed;
    }

    /// Whether the link of a port was up when it was last looked at; `None` without a device.
    fn link_is_up(&self, (place, index): Place) -> Option<bool> {
        let slot = self.branches.get(place)?.ports.slots().get(index)?;
        slot.port.as_ref().map(|_| slot.info.link_up)
    }

    /// A device of this name is there, perhaps anew.
    fn is_back(&mut self, name: &str, now: Instant) {
        for place in &self.troubled {
            let Some(branch) = self.branches.get_mut(*place) else { continue };
            for slot in branch.ports.slots_mut() {
                self.upkeep.is_alarmed |= slot.is_back(name, now);
            }
        }
    }

    /// Asks a port how it is.
    fn look_at(&mut self, (place, index): Place, now: Instant) {
        let Some(branch) = self.branches.get_mut(place) else { return };
        if let Some(slot) = branch.ports.slots_mut().get_mut(index) {
            slot.look(now);
        }
        branch.ports.note_trouble(index);
        self.note(place);
    }

    /// Cares for the ports in trouble, where it is time to.
    fn care_for_all(&mut self, now: Instant) {
        self.upkeep.care_at = None;
        let mut troubled = std::mem::take(&mut self.troubled);
        troubled.retain(|place| self.care_for_branch(*place, now));
        // Care makes no trouble, so that nothing has been noted meanwhile.
        self.troubled = troubled;
    }

    /// Cares for the ports of a branch; whether any is still in trouble.
    fn care_for_branch(&mut self, place: usize, now: Instant) -> bool {
        let mut at = 0;
        while let Some(index) = self.troubled_at(place, at) {
            self.care_for((place, index), now);
            at += 1;
        }
        let Some(branch) = self.branches.get_mut(place) else { return false };
        branch.hand_up();
        branch.is_troubled = branch.ports.settle();
        branch.is_troubled
    }

    fn troubled_at(&self, place: usize, at: usize) -> Option<usize> {
        self.branches.get(place)?.ports.troubled().get(at).copied()
    }

    fn care_for(&mut self, (place, index): Place, now: Instant) {
        let Some(branch) = self.branches.get_mut(place) else { return };
        let Some(slot) = branch.ports.slots_mut().get_mut(index) else { return };
        let was_there = slot.port.is_some();
        let is_back = !was_there && slot.reopen(now);
        // Ends the silence when its time is over.
        let is_quiet = slot.is_quiet(now);
        slot.watch(&self.watch, super::run::name_of(place, index));
        let (news, changed) = (slot.news, std::mem::take(&mut slot.changed));
        if is_back {
            branch.counters.bump(Counter::PortReopened);
            let (bridge, port, name) = told(branch, index);
            tracing::info!(bridge, port, name, "the port is back");
            self.upkeep.enrol((place, index), news, now);
        }
        if changed {
            self.tell((place, index));
        }
        let Some(branch) = self.branches.get(place) else { return };
        let due = branch.ports.slots().get(index).and_then(Slot::care_at);
        self.upkeep.care_at = self.upkeep.care_at.into_iter().chain(due).min();
        if due.is_none() && !is_quiet {
            self.wake(place, index);
        }
    }

    /// Tells the agent of a port that has changed.
    fn tell(&mut self, (place, index): Place) {
        let Some(branch) = self.branches.get_mut(place) else { return };
        let Some(slot) = branch.ports.slots().get(index) else { return };
        let (number, facts) = (slot.number, Box::new(slot.info.clone()));
        if slot.port.is_none() {
            branch.counters.bump(Counter::PortGone);
            let (bridge, port, name) = told(branch, index);
            tracing::warn!(bridge, port, name, "the port is gone");
        }
        branch.up.upcalls.push(Upcall::Port(number, facts));
    }
}

/// Whose port it is, its number and its name, for the log.
fn told(branch: &Branch, index: usize) -> (Option<&str>, String, &str) {
    let slot = branch.ports.slots().get(index);
    let number = slot.map_or_else(String::new, |slot| slot.number.to_string());
    (branch.bridge.as_deref(), number, slot.map_or("", |slot| slot.info.name.as_str()))
}
