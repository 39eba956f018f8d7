//! One configured port: the device behind it as long as there is one, what it has counted in all
//! its lives, and when to try to open it again.
//!
//! A port stays configured when its device disappears; it shows `LINK_DOWN` and comes back with the
//! device.

use std::time::{Duration, Instant};

use netdev::{Port, PortCounters, PortError, PortInfo, PortSpec};
use openflow::port::{PortConfig, PortDesc, PortFeatures, PortState};
use openflow::{MacAddr, PortNo};
use packet::{Batch, PacketBuf};

use super::run::RX_BATCH;
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
    /// Frames that found no room, of all lives.
    pub(crate) tx_refused: u64,
    /// The settings that controllers have made.
    pub(crate) settings: PortConfig,
    /// Whether the description has changed and the datapath does not know yet.
    pub(crate) changed: bool,
    /// The port is left alone until then, after a call failed.
    pub(crate) quiet_until: Option<Instant>,
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
            port: Some(port),
            info,
            tx: Vec::new(),
            tx_refused: 0,
            settings: PortConfig::empty(),
            changed: false,
            quiet_until: None,
            earlier: PortCounters::default(),
            reopen_at: Instant::now(),
            reopen_wait: REOPEN_FIRST,
        })
    }

    /// The device has disappeared.
    pub(crate) fn lose(&mut self, now: Instant) {
        if let Some(mut port) = self.port.take() {
            self.earlier = sum(self.earlier, port.counters());
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

    /// Tries to open a lost device, when it is time to; true when it is back.
    fn reopen(&mut self, now: Instant) -> bool {
        if self.port.is_some() || now < self.reopen_at {
            return false;
        }
        match netdev::open(&self.spec) {
            Ok(mut port) => {
                self.info = port.info();
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

    /// The description for the datapath and for controllers. Settings are the datapath's.
    pub(crate) fn desc(&self, config: PortConfig) -> PortDesc {
        let up = self.info.link_up && self.port.is_some();
        let mut state = if up { PortState::empty() } else { PortState::LINK_DOWN };
        if up && !config.contains(PortConfig::PORT_DOWN) {
            state |= PortState::LIVE;
        }
        let speed_kbps = u32::try_from(self.info.speed_bps / 1000).unwrap_or(u32::MAX);
        PortDesc {
            port_no: self.number,
            hw_addr: MacAddr(self.info.mac),
            name: self.info.name.clone(),
            config,
            state,
            curr: features(self.info.speed_bps, self.info.full_duplex),
            advertised: PortFeatures::empty(),
            supported: PortFeatures::empty(),
            peer: PortFeatures::empty(),
            curr_speed_kbps: speed_kbps,
            max_speed_kbps: speed_kbps,
        }
    }
}

/// The bit that says speed and duplex; a speed that has none is `OTHER`, an unknown one nothing.
fn features(speed_bps: u64, full_duplex: Option<bool>) -> PortFeatures {
    const MB: u64 = 1_000_000;
    match (speed_bps / MB, full_duplex.unwrap_or(true)) {
        (0, _) => PortFeatures::empty(),
        (10, false) => PortFeatures::HD_10MB,
        (10, true) => PortFeatures::FD_10MB,
        (100, false) => PortFeatures::HD_100MB,
        (100, true) => PortFeatures::FD_100MB,
        (1_000, false) => PortFeatures::HD_1GB,
        (1_000, true) => PortFeatures::FD_1GB,
        (10_000, _) => PortFeatures::FD_10GB,
        (40_000, _) => PortFeatures::FD_40GB,
        (100_000, _) => PortFeatures::FD_100GB,
        (1_000_000, _) => PortFeatures::FD_1TB,
        (_, _) => PortFeatures::OTHER,
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
    fn speeds_have_their_bits() {
        assert_eq!(features(10_000_000_000, Some(true)), PortFeatures::FD_10GB);
        assert_eq!(features(100_000_000, Some(false)), PortFeatures::HD_100MB);
        assert_eq!(features(25_000_000_000, None), PortFeatures::OTHER);
        assert_eq!(features(0, None), PortFeatures::empty());
    }

    #[test]
    fn a_lost_port_shows_link_down_keeps_its_counts_and_comes_back() {
        let mut slot = Slot::open(PortNo(3), "null:x".parse().unwrap()).unwrap();
        assert_eq!(slot.desc(PortConfig::empty()).state, PortState::LIVE);
        assert_eq!(slot.desc(PortConfig::PORT_DOWN).state, PortState::empty());
        slot.port.as_mut().unwrap().tx(&[PacketBuf::from_slice(&[0; 60])]).unwrap();
        let now = Instant::now();
        slot.lose(now);
        assert_eq!(slot.desc(PortConfig::empty()).state, PortState::LINK_DOWN);
        assert!(!slot.reopen(now));
        assert!(slot.reopen(now + REOPEN_FIRST));
        slot.port.as_mut().unwrap().tx(&[PacketBuf::from_slice(&[0; 60])]).unwrap();
        assert_eq!(slot.counters().tx_packets, 2);
        assert_eq!(slot.desc(PortConfig::empty()).state, PortState::LIVE);
    }
}
