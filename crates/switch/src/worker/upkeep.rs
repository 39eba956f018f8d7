//! What a worker does by the clock: it asks its ports how they are, and opens again what is back.

use std::time::{Duration, Instant};

use super::{Upcall, Worker};
use crate::counters::Counter;

/// How often the state of the ports is asked for: a link that goes down is known within this time.
/// It costs some ten microseconds a port.
const PORTS_EVERY: Duration = Duration::from_millis(100);

/// When what is due.
#[derive(Debug)]
pub(super) struct Upkeep {
    ports_at: Instant,
}

impl Upkeep {
    pub(super) fn new(now: Instant) -> Self {
        Self { ports_at: now + PORTS_EVERY }
    }
}

impl Worker {
    /// Does what is due; whether anything was.
    pub(super) fn upkeep(&mut self, now: Instant) -> bool {
        let is_due = now >= self.upkeep.ports_at;
        if is_due {
            self.upkeep.ports_at = now + PORTS_EVERY;
            for slot in self.ports.slots_mut() {
                if slot.look(now) {
                    self.counters.bump(Counter::PortReopened);
                    tracing::info!(port = %slot.number, name = slot.info.name, "the port is back");
                }
            }
        }
        if self.ports.slots().iter().any(|slot| slot.changed) {
            self.tell_ports();
        }
        is_due
    }

    /// When the next thing is due.
    pub(super) fn next_due(&self) -> Instant {
        let quiet = self.ports.slots().iter().filter_map(|slot| slot.quiet_until);
        quiet.fold(self.upkeep.ports_at, Instant::min)
    }

    /// Tells the agent of the ports that have changed.
    fn tell_ports(&mut self) {
        for slot in self.ports.slots_mut().iter_mut().filter(|slot| slot.changed) {
            slot.changed = false;
            if slot.port.is_none() {
                self.counters.bump(Counter::PortGone);
                tracing::warn!(port = %slot.number, name = slot.info.name, "the port is gone");
            }
            let facts = Box::new(slot.info.clone());
            self.up.upcalls.push(Upcall::Port(slot.number, facts));
        }
    }
}
