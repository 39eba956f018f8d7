//! What the worker does by the clock: expiry of flow entries, and the state of the ports.

use std::time::{Duration, Instant};

use datapath::Nanos;
use openflow::port::PortStatus;

use super::{Upcall, Worker};
use crate::counters::Counter;

/// How often the state of the ports is asked for: a link that goes down is known within this time.
/// It costs some ten microseconds a port.
const PORTS_EVERY: Duration = Duration::from_millis(100);

/// Shortest time between two looks for expired entries.
const EXPIRY_EVERY: Duration = Duration::from_millis(50);

/// When what is due.
#[derive(Debug)]
pub(crate) struct Upkeep {
    ports_at: Instant,
    /// When to look for expired entries; `None` while there is none that expires.
    expiry_at: Option<Instant>,
}

impl Upkeep {
    pub(crate) fn new(now: Instant) -> Self {
        Self { ports_at: now + PORTS_EVERY, expiry_at: None }
    }
}

impl Worker {
    /// Does what is due; whether anything was.
    pub(super) fn upkeep(&mut self, now: Instant) -> bool {
        let mut worked = false;
        if now >= self.upkeep.ports_at {
            self.upkeep.ports_at = now + PORTS_EVERY;
            self.look_at_ports();
            worked = true;
        }
        if self.ports.slots().iter().any(|slot| slot.changed) {
            self.tell_ports();
        }
        if self.upkeep.expiry_at.is_some_and(|at| now >= at) {
            self.expire();
            worked = true;
        }
        worked
    }

    /// When the next thing is due.
    pub(super) fn next_due(&self) -> Instant {
        let quiet = self.ports.slots().iter().filter_map(|slot| slot.quiet_until);
        quiet.chain(self.upkeep.expiry_at).fold(self.upkeep.ports_at, Instant::min)
    }

    /// An entry with a timeout may have come: look soon when the next one expires. Looking costs a
    /// walk over the entries, so that it is not done for each of them.
    pub(super) fn may_expire(&mut self) {
        let soon = Instant::now() + EXPIRY_EVERY;
        self.upkeep.expiry_at = Some(self.upkeep.expiry_at.map_or(soon, |at| at.min(soon)));
    }

    fn expire(&mut self) {
        let now: Nanos = self.now();
        let removed = self.datapath.expire(now);
        self.tell_removed(removed);
        self.upkeep.expiry_at = self
            .datapath
            .next_expiry()
            .map(|at| Instant::now() + Duration::from_nanos(at.since(now)).max(EXPIRY_EVERY));
    }

    /// Sends flow-removed messages for the entries that asked for them.
    pub(super) fn tell_removed(&mut self, removed: Vec<datapath::Removed>) {
        for entry in removed.into_iter().filter(|entry| entry.notify) {
            self.counters.bump(Counter::FlowRemoved);
            self.up.upcalls.push(Upcall::FlowRemoved(entry.flow));
        }
    }

    /// Asks every port how it is, and opens again what is back.
    fn look_at_ports(&mut self) {
        let now = Instant::now();
        for slot in self.ports.slots_mut() {
            if slot.look(now) {
                self.counters.bump(Counter::PortReopened);
                tracing::info!(port = %slot.number, name = slot.info.name, "the port is back");
            }
        }
    }

    /// Tells the datapath, and by it the controllers, of the ports that have changed.
    fn tell_ports(&mut self) {
        let time = self.now();
        for slot in self.ports.slots_mut().iter_mut().filter(|slot| slot.changed) {
            slot.changed = false;
            if slot.port.is_none() {
                self.counters.bump(Counter::PortGone);
                tracing::warn!(port = %slot.number, name = slot.info.name, "the port is gone");
            }
            let desc = slot.desc(slot.settings);
            if let Some(reason) = self.datapath.port_set(desc.clone(), time) {
                self.counters.bump(Counter::PortStatus);
                self.up.upcalls.push(Upcall::PortStatus(PortStatus { reason, desc }));
            }
        }
    }
}
