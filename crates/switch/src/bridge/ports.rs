//! The ports of a bridge on the agent's side: state reported by workers, and the configuration that
//! controllers set.

use std::collections::HashMap;

use netdev::{PortCounters, PortInfo, PortSpec};
use openflow::port::{PortConfig, PortDesc, PortFeatures, PortReason, PortState, PortStats};
use openflow::port::{PortMod, PortStatus};
use openflow::{Error, MacAddr, PortNo};

use super::Bridge;
use crate::worker::{CountedPorts, PortSerial, Shard, ShardCommand, WorkerPort};

/// A port.
#[derive(Clone, Debug)]
pub(crate) struct BridgePort {
    /// Its number.
    pub(crate) number: PortNo,
    /// The opening of the number.
    pub(crate) serial: PortSerial,
    /// The device that was opened.
    pub(crate) spec: PortSpec,
    /// Whether the device is the port's own, so that `PORT_DOWN` takes its link down.
    pub(crate) owns_link: bool,
    /// Whether the tables and the controllers know of it.
    pub(crate) is_announced: bool,
    /// The state that its worker reported last.
    pub(crate) info: PortInfo,
    /// The configuration set by controllers.
    pub(crate) config: PortConfig,
}

impl BridgePort {
    /// The agent's side of an open port, before anybody knows of it.
    pub(crate) fn of(port: &WorkerPort) -> Self {
        Self {
            number: port.number,
            serial: port.serial,
            spec: port.spec.clone(),
            owns_link: port.owns_link,
            is_announced: false,
            config: config_of(PortConfig::empty(), &port.info),
            info: port.info.clone(),
        }
    }

    /// The description for the datapath and for controllers.
    pub(super) fn desc(&self) -> PortDesc {
        let up = self.info.link_up && self.info.exists;
        let mut state = if up { PortState::empty() } else { PortState::LINK_DOWN };
        if up && !self.config.contains(PortConfig::PORT_DOWN) {
            state |= PortState::LIVE;
        }
        let speed_kbps = u32::try_from(self.info.speed_bps / 1000).unwrap_or(u32::MAX);
        PortDesc {
            port_no: self.number,
            hw_addr: MacAddr(self.info.mac),
            name: self.info.name.clone(),
            config: self.config,
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

/// The configuration of a port, where it follows from the device too that somebody has set it down.
fn config_of(config: PortConfig, info: &PortInfo) -> PortConfig {
    match info.is_set_down {
        Some(true) => config | PortConfig::PORT_DOWN,
        Some(false) => config - PortConfig::PORT_DOWN,
        None => config,
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

impl Bridge {
    /// Announces all ports to the tables.
    pub(super) fn announce_ports(&self) {
        let now = self.clock.now();
        for port in &mut *self.ports.borrow_mut() {
            port.is_announced = true;
            self.with_control(|control| control.port_set(port.desc(), now));
        }
    }

    /// The ports' descriptions, by number.
    pub(crate) fn port_descs(&self) -> Vec<PortDesc> {
        let ports = self.ports.borrow();
        ports.iter().filter(|port| port.is_announced).map(BridgePort::desc).collect()
    }

    /// The notes on each port.
    pub(crate) fn port_notes(&self) -> Vec<(PortNo, Vec<String>)> {
        let ports = self.ports.borrow();
        ports.iter().map(|port| (port.number, port.info.notes.clone())).collect()
    }

    /// Whether there is such a port.
    pub(super) fn has_port(&self, number: PortNo) -> bool {
        self.ports.borrow().iter().any(|port| port.is_announced && port.number == number)
    }

    /// A worker has reported a changed port: the port status for controllers, if any.
    pub(crate) fn port_changed(
        &self,
        number: PortNo,
        serial: PortSerial,
        info: PortInfo,
    ) -> Option<PortStatus> {
        let mut ports = self.ports.borrow_mut();
        let is_meant = |port: &&mut BridgePort| (port.number, port.serial) == (number, serial);
        let port = ports.iter_mut().find(is_meant)?;
        let is_other_way = (port.info.mtu, port.info.peer) != (info.mtu, info.peer);
        let is_back = info.exists && !port.info.exists;
        port.config = config_of(port.config, &info);
        port.info = info;
        if is_back {
            // It may be in a tier that was not there before, or by another device.
            self.stage_for_all(|| ShardCommand::Ask(Box::new(Shard::refresh_tier_outputs)));
        }
        if is_other_way {
            // Entries of the kernel tier name the length that their outputs can carry, and their
            // far ends.
            let end = move |shard: &mut Shard| shard.end_tier_output(number);
            self.stage_for_all(|| ShardCommand::Ask(Box::new(end)));
        }
        if !port.is_announced {
            return None;
        }
        let desc = port.desc();
        let now = self.clock.now();
        let reason = self.with_control(|control| control.port_set(desc.clone(), now))??;
        Some(PortStatus { reason, desc })
    }

    /// Carries out a port-mod (clause 7.3.4.2).
    pub(super) fn port_mod(&self, port_mod: &PortMod) -> Result<Option<PortStatus>, Error> {
        let desc = self.with_control(|control| control.port_mod(port_mod));
        desc.ok_or_else(Self::no_tables)??;
        Ok(self.port_modded(port_mod.port_no))
    }

    /// The tables have other settings of a port, perhaps: so has its device then, and the status
    /// is for all controllers.
    pub(super) fn port_modded(&self, number: PortNo) -> Option<PortStatus> {
        let config = self.with_control(|control| control.port_config(number))??;
        let mut ports = self.ports.borrow_mut();
        let port = ports.iter_mut().find(|port| port.number == number)?;
        if port.config == config {
            return None;
        }
        let is_down = config.contains(PortConfig::PORT_DOWN);
        if port.owns_link && is_down != port.config.contains(PortConfig::PORT_DOWN) {
            self.set_link(port.number, !is_down);
        }
        port.config = config;
        // Whether the port is live depends on its configuration.
        let desc = port.desc();
        let now = self.clock.now();
        self.with_control(|control| control.port_set(desc.clone(), now));
        Some(PortStatus { reason: PortReason::Modify, desc })
    }

    /// Takes the link of a port's own device down or up.
    pub(crate) fn set_link(&self, number: PortNo, up: bool) {
        let Some(place) = self.map.borrow().location(number) else { return };
        if let Some(link) = self.links.get(place.worker) {
            link.staged.borrow_mut().push(ShardCommand::SetLink(place.index, up));
        }
    }

    /// Counters of a port or of all. What was received and sent is what the devices have counted,
    /// since the datapath does not see what is lost before and behind it.
    pub(crate) async fn port_stats(&self, port: PortNo) -> Result<Vec<PortStats>, Error> {
        self.flush_counters().await;
        let devices = self.port_counters(Some(0)).await.unwrap_or_default();
        self.port_stats_over(port, devices)
    }

    /// The counts of the devices of the ports from an index of each worker on, if there are any,
    /// and the frames that these refused; those of a port with several queues more than once. Some
    /// ports are asked at a time, so that no frame waits for all of them. `None` when a worker has
    /// ended.
    pub(crate) async fn port_counters(&self, mut next: Option<usize>) -> Option<CountedPorts> {
        let mut all = Vec::new();
        while let Some(from) = next {
            next = None;
            for (counted, more) in self.ask(move |shard| shard.port_counters(from)).await? {
                all.extend(counted);
                next = next.max(more);
            }
        }
        Some(all)
    }

    /// As [`Bridge::port_stats`], where the devices' counts and refused frames are there already,
    /// those of a port with several queues more than once.
    pub(crate) fn port_stats_over(
        &self,
        port: PortNo,
        devices: impl IntoIterator<Item = (PortNo, PortCounters, u64)>,
    ) -> Result<Vec<PortStats>, Error> {
        let now = self.clock.now();
        let mut all = match self.with_control(|control| control.port_stats(port, now)) {
            Some(all) => all?,
            None => self.port_stats_of_a_wire(port)?,
        };
        // Of a port with several queues the home has counted, and each has refused frames.
        let mut by_port: HashMap<PortNo, (PortCounters, u64)> = HashMap::new();
        for (number, counted, refused) in devices {
            let sums = by_port.entry(number).or_default();
            *sums = ([sums.0, counted].into_iter().sum(), sums.1 + refused);
        }
        for stats in &mut all {
            if let Some((counted, refused)) = by_port.get(&stats.port_no) {
                add_device(stats, counted, *refused);
            }
            if self.dummies_of(stats.port_no).next().is_some() {
                hide_losses(stats);
            }
        }
        Ok(all)
    }

    fn port_stats_of_a_wire(&self, port: PortNo) -> Result<Vec<PortStats>, Error> {
        let (duration_s, duration_ns) = self.clock.now().age(self.clock.begun());
        let ports = self.ports.borrow();
        let meant = ports.iter().filter(|held| port == PortNo::ANY || held.number == port);
        let all: Vec<PortStats> = meant
            .map(|held| PortStats {
                port_no: held.number,
                duration_s,
                duration_ns,
                ..PortStats::default()
            })
            .collect();
        if all.is_empty() && port != PortNo::ANY { Err(Error::BadRequestBadPort) } else { Ok(all) }
    }
}

/// Puts what a device has counted, and the frames that found no room at it, into statistics.
fn add_device(stats: &mut PortStats, counted: &PortCounters, refused: u64) {
    stats.rx_packets = counted.rx_packets;
    stats.rx_bytes = counted.rx_bytes;
    stats.tx_packets = counted.tx_packets;
    stats.tx_bytes = counted.tx_bytes;
    stats.rx_dropped += counted.rx_drops;
    stats.rx_errors = counted.rx_errors;
    stats.tx_dropped += counted.tx_drops + refused;
    stats.tx_errors = counted.tx_errors;
}

/// A dummy of Open vSwitch counts no losses, and its suites expect unknown counts.
fn hide_losses(stats: &mut PortStats) {
    let losses =
        [&mut stats.rx_dropped, &mut stats.tx_dropped, &mut stats.rx_errors, &mut stats.tx_errors];
    losses.into_iter().filter(|count| **count == 0).for_each(|count| *count = u64::MAX);
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
    fn a_port_is_live_when_its_device_is_up_and_it_is_not_set_down() {
        let info = netdev::open_text("null:x").unwrap().info();
        let mut port = BridgePort {
            number: PortNo(3),
            serial: PortSerial(0),
            spec: "null:x".parse().unwrap(),
            owns_link: false,
            is_announced: true,
            info,
            config: PortConfig::empty(),
        };
        assert_eq!(port.desc().state, PortState::LIVE);
        port.config = PortConfig::PORT_DOWN;
        assert_eq!(port.desc().state, PortState::empty());
        port.info.exists = false;
        assert_eq!(port.desc().state, PortState::LINK_DOWN);
    }
}
