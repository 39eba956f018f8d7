//! One configured port: the device behind it as long as there is one, what it has counted in all
//! its lives, and when to try to open it again.
//!
//! A port stays configured when its device disappears; it shows `LINK_DOWN` and comes back with the
//! device.

use std::time::{Duration, Instant};

use netdev::sys::watch::Watch;
use netdev::{LinkNotification, Port, PortCounters, PortError, PortInfo, PortSpec};
use openflow::PortNo;
use packet::{Batch, PacketBuf, Pool};

use super::Shaper;
use super::branch::RX_BATCH;
use crate::counters::{Counter, Counters};

/// First and longest wait between attempts to open a lost device.
const REOPEN_FIRST: Duration = Duration::from_millis(200);
const REOPEN_LAST: Duration = Duration::from_secs(2);

/// How long a port whose call failed is left alone.
const QUIET: Duration = Duration::from_millis(50);

/// A configured port.
pub(crate) struct Slot {
    /// Its number.
    pub(crate) number: PortNo,
    /// What is opened.
    pub(crate) spec: PortSpec,
    /// The device; `None` while it is lost.
    pub(crate) port: Option<Box<dyn Port>>,
    /// The facts that were last seen.
    pub(crate) info: PortInfo,
    /// Frames to send at the end of the batch.
    pub(crate) tx: Vec<PacketBuf>,
    /// The port's queues, where any are configured.
    pub(crate) shaper: Option<Shaper>,
    /// Frames that found no room, of all lives.
    pub(crate) tx_refused: u64,
    /// Whether the facts have changed and the agent does not know yet.
    pub(crate) changed: bool,
    /// The port is left alone until then, after a call failed.
    pub(crate) quiet_until: Option<Instant>,
    /// Who tells of changes.
    pub(super) news: LinkNotification,
    /// Whether the worker is woken by the port's descriptor.
    pub(super) is_watched: bool,
    /// Whether the worker asks the port in every round.
    pub(super) is_awake: bool,
    /// Whether the port stands on its branch's list of those to be cared for.
    pub(super) is_troubled: bool,
    /// A device that is lost and may still be watched.
    gone: Option<Box<dyn Port>>,
    earlier: PortCounters,
    reopen_at: Instant,
    reopen_wait: Duration,
}

impl Slot {
    /// Opens the port for the first time.
    pub(crate) fn open(number: PortNo, spec: PortSpec) -> Result<Self, PortError> {
        let mut port = netdev::open(&spec)?;
        let info = port.info();
        Ok(Self {
            number,
            spec,
            info,
            tx: Vec::new(),
            shaper: None,
            tx_refused: 0,
            changed: false,
            quiet_until: None,
            news: port.link_notification(),
            is_watched: false,
            is_awake: false,
            is_troubled: false,
            gone: None,
            port: Some(port),
            earlier: PortCounters::default(),
            reopen_at: Instant::now(),
            reopen_wait: REOPEN_FIRST,
        })
    }

    /// Who tells of changes.
    pub(crate) fn link_notification(&self) -> LinkNotification {
        self.news
    }

    /// The device has disappeared.
    pub(crate) fn lose(&mut self, now: Instant) {
        if let Some(mut port) = self.port.take() {
            self.earlier = sum(self.earlier, port.counters());
            self.gone = Some(port);
        }
        self.info.link_up = false;
        self.info.exists = false;
        self.changed = true;
        self.reopen_wait = REOPEN_FIRST;
        self.reopen_at = now + self.reopen_wait;
    }

    /// Asks the device how it is, or tries to open it when it is lost; true when it is back.
    pub(crate) fn look(&mut self, now: Instant) -> bool {
        let Some(port) = &mut self.port else { return self.reopen(now) };
        let info = port.info();
        if !info.exists {
            self.lose(now);
        } else if info != self.info {
            self.info = info;
            self.changed = true;
        }
        false
    }

    /// Whether the port needs more than to be asked for frames.
    pub(super) fn is_in_trouble(&self) -> bool {
        self.changed || self.quiet_until.is_some() || self.port.is_none()
    }

    /// When a port in trouble is to be cared for next.
    pub(super) fn care_at(&self) -> Option<Instant> {
        if self.port.is_none() { Some(self.reopen_at) } else { self.quiet_until }
    }

    /// A device of this name is there: whether it is the one that is lost, which may then be
    /// opened at once.
    pub(super) fn is_back(&mut self, name: &str, now: Instant) -> bool {
        let is_it = self.port.is_none() && self.spec.name() == name;
        if is_it {
            self.reopen_at = now;
        }
        is_it
    }

    /// Has the worker woken by the port's descriptor, under this name, unless there is none or the
    /// port is to be left alone; whether nobody needs to ask the port again and again.
    pub(super) fn watch(&mut self, watch: &Watch, name: u64) -> bool {
        if let Some(gone) = self.gone.take() {
            self.unwatch(watch, &*gone);
        }
        let Some(port) = self.port.take() else { return true };
        let is_quiet = self.quiet_until.is_some();
        if is_quiet {
            self.unwatch(watch, &*port);
        } else if let Some(fd) = port.fd().filter(|_| !self.is_watched) {
            match watch.add(fd, name) {
                Ok(()) => self.is_watched = true,
                Err(error) => {
                    tracing::debug!(port = %self.number, %error, "the port wakes nobody");
                }
            }
        }
        self.port = Some(port);
        is_quiet || self.is_watched
    }

    fn unwatch(&mut self, watch: &Watch, port: &dyn Port) {
        if let Some(fd) = port.fd().filter(|_| self.is_watched)
            && let Err(error) = watch.remove(fd)
        {
            tracing::debug!(port = %self.number, %error, "the port was not watched");
        }
        self.is_watched = false;
    }

    /// Tries to open a lost device, when it is time to; true when it is back.
    pub(super) fn reopen(&mut self, now: Instant) -> bool {
        if self.port.is_some() || now < self.reopen_at {
            return false;
        }
        match netdev::open(&self.spec) {
            Ok(mut port) => {
                self.info = port.info();
                self.news = port.link_notification();
                self.port = Some(port);
                self.quiet_until = None;
                self.changed = true;
                true
            }
            Err(error) => {
                tracing::debug!(port = %self.number, spec = %self.spec, %error, "still lost");
                self.reopen_wait = (self.reopen_wait * 2).min(REOPEN_LAST);
                self.reopen_at = now + self.reopen_wait;
                false
            }
        }
    }

    /// Takes a batch from the port, if it has any, and says how many frames.
    pub(super) fn receive(
        &mut self,
        batch: &mut Batch,
        now: Instant,
        counters: &Counters,
    ) -> usize {
        if self.is_quiet(now) {
            return 0;
        }
        let Some(port) = &mut self.port else { return 0 };
        match port.rx(batch, RX_BATCH) {
            Ok(count) => count,
            Err(PortError::Gone(_)) => {
                self.lose(now);
                0
            }
            Err(error) => {
                tracing::debug!(port = %self.number, %error, "receiving failed");
                counters.bump(Counter::PortError);
                self.quiet(now);
                0
            }
        }
    }

    /// Sends frames and returns how many the port took; what finds no room is dropped and counted.
    /// None of the frames is left.
    pub(super) fn transmit(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        pool: &mut Pool,
        counters: &Counters,
    ) -> usize {
        let sent = match self.port.as_mut().map(|port| port.tx_batch(frames, pool)) {
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
            if self.port.is_some() {
                counters.add(Counter::TxQueueFull, refused as u64);
                self.tx_refused += refused as u64;
            } else {
                counters.add(Counter::TxPortGone, refused as u64);
            }
            pool.give_front(frames, refused);
        }
        sent
    }

    /// A call on the port failed: leave it alone for a while, so that a device that is down does
    /// not keep the worker awake.
    pub(crate) fn quiet(&mut self, now: Instant) {
        self.quiet_until = Some(now + QUIET);
    }

    /// Whether the port is left alone now.
    pub(crate) fn is_quiet(&mut self, now: Instant) -> bool {
        if self.quiet_until.is_some_and(|until| now >= until) {
            self.quiet_until = None;
        }
        self.quiet_until.is_some()
    }

    /// What all lives of the device have counted.
    pub(crate) fn counters(&mut self) -> PortCounters {
        match &mut self.port {
            Some(port) => sum(self.earlier, port.counters()),
            None => self.earlier,
        }
    }
}

fn sum(a: PortCounters, b: PortCounters) -> PortCounters {
    PortCounters {
        rx_packets: a.rx_packets + b.rx_packets,
        rx_bytes: a.rx_bytes + b.rx_bytes,
        rx_drops: a.rx_drops + b.rx_drops,
        rx_errors: a.rx_errors + b.rx_errors,
        tx_packets: a.tx_packets + b.tx_packets,
        tx_bytes: a.tx_bytes + b.tx_bytes,
        tx_drops: a.tx_drops + b.tx_drops,
        tx_errors: a.tx_errors + b.tx_errors,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_port_keeps_its_counts_and_comes_back() {
        let (counters, mut pool) = (Counters::default(), Pool::default());
        let mut slot = Slot::open(PortNo(3), "null:x".parse().unwrap()).unwrap();
        assert!(slot.info.link_up && slot.info.exists);
        let mut frames = vec![PacketBuf::from_slice(&[0; 60])];
        assert_eq!(slot.transmit(&mut frames, &mut pool, &counters), 1);
        let now = Instant::now();
        slot.lose(now);
        assert!(slot.changed && !slot.info.exists && !slot.info.link_up);
        frames.push(PacketBuf::from_slice(&[0; 60]));
        assert_eq!(slot.transmit(&mut frames, &mut pool, &counters), 0);
        assert!(frames.is_empty() && counters.get(Counter::TxPortGone) == 1);
        assert!(!slot.reopen(now));
        assert!(slot.reopen(now + REOPEN_FIRST));
        frames.push(PacketBuf::from_slice(&[0; 60]));
        assert_eq!(slot.transmit(&mut frames, &mut pool, &counters), 1);
        assert_eq!(slot.counters().tx_packets, 2);
        assert!(slot.info.exists);
    }
}
