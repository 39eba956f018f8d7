//! Ports: descriptions, settings, states, counters, and what each allows.
//!
//! A port here is a number with a description and counters; frames are moved elsewhere. Adding,
//! changing or removing a port never touches a flow entry (clause 4.6).

use std::collections::BTreeMap;
use std::sync::Arc;

use openflow::port::{
    PortConfig, PortDesc, PortFeatures, PortMod, PortReason, PortState, PortStats, QueueStats,
};
use openflow::{Error, PortNo, QueueId};

use crate::counter::DropReason;
use crate::mirrors::Mirrors;
use crate::time::Nanos;
use crate::vlans::PortVlans;

/// The settings that can be changed; the others are unknown to both versions.
const SETTABLE: PortConfig = PortConfig::PORT_DOWN
    .union(PortConfig::NO_STP)
    .union(PortConfig::NO_RECV)
    .union(PortConfig::NO_RECV_STP)
    .union(PortConfig::NO_FLOOD)
    .union(PortConfig::NO_FWD)
    .union(PortConfig::NO_PACKET_IN);

/// The address of spanning tree frames (IEEE 802.1D), which `NO_RECV_STP` is about.
const STP_ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];

/// Counts of a queue.
#[derive(Clone, Copy, Debug)]
struct Queue {
    since: Nanos,
    packets: u64,
    bytes: u64,
}

/// One port.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    desc: PortDesc,
    /// Whether it is the output of a mirror, which takes nothing else.
    is_mirror_output: bool,
    vlans: Arc<PortVlans>,
    since: Nanos,
    rx_packets: u64,
    rx_bytes: u64,
    rx_dropped: u64,
    tx_packets: u64,
    tx_bytes: u64,
    tx_dropped: u64,
    queues: BTreeMap<QueueId, Queue>,
}

impl Port {
    fn has(&self, config: PortConfig) -> bool {
        self.desc.config.intersects(config)
    }

    /// Why a frame that came in here is dropped at once.
    pub(crate) fn refuses_rx(&self, frame: &[u8]) -> Option<DropReason> {
        if self.is_mirror_output {
            Some(DropReason::MirrorOutput)
        } else if self.has(PortConfig::PORT_DOWN) {
            Some(DropReason::IngressDown)
        } else if self.has(PortConfig::NO_RECV) {
            Some(DropReason::NoRecv)
        } else if self.has(PortConfig::NO_RECV_STP) && frame.starts_with(&STP_ADDRESS) {
            Some(DropReason::NoRecvStp)
        } else {
            None
        }
    }

    /// Whether it depends on the frame if it is let in.
    pub(crate) fn looks_at_frames(&self) -> bool {
        self.has(PortConfig::NO_RECV_STP)
    }

    /// Why a frame cannot leave here.
    pub(crate) fn refuses_tx(&self) -> Option<DropReason> {
        if self.is_mirror_output { Some(DropReason::MirrorOutput) } else { self.refuses_mirrored() }
    }

    /// Why not even what a mirror sends can leave here.
    pub(crate) fn refuses_mirrored(&self) -> Option<DropReason> {
        if self.has(PortConfig::PORT_DOWN) {
            Some(DropReason::EgressDown)
        } else if self.has(PortConfig::NO_FWD) {
            Some(DropReason::NoFwd)
        } else if self.desc.state.contains(PortState::LINK_DOWN) {
            Some(DropReason::LinkDown)
        } else {
            None
        }
    }

    /// Whether `FLOOD` leaves the port out.
    pub(crate) fn no_flood(&self) -> bool {
        self.has(PortConfig::NO_FLOOD) || self.desc.state.contains(PortState::BLOCKED)
    }

    /// The port's part in VLANs when `NORMAL` forwards.
    pub(crate) fn vlans(&self) -> &PortVlans {
        &self.vlans
    }

    /// Whether `NORMAL` does not forward from this port to the other one.
    pub(crate) fn is_apart_from(&self, other: &Self) -> bool {
        self.vlans.is_protected() && other.vlans.is_protected()
    }

    /// Whether misses of this port go to no controller.
    pub(crate) fn no_packet_in(&self) -> bool {
        self.has(PortConfig::NO_PACKET_IN)
    }

    /// Live for groups (clause 6.5): the state says so, and neither setting nor link speaks
    /// against it.
    fn is_live(&self) -> bool {
        self.desc.state.contains(PortState::LIVE)
            && !self.desc.state.contains(PortState::LINK_DOWN)
            && !self.has(PortConfig::PORT_DOWN)
    }

    fn stats(&self, now: Nanos) -> PortStats {
        let (duration_s, duration_ns) = now.age(self.since);
        PortStats {
            port_no: self.desc.port_no,
            rx_packets: self.rx_packets,
            tx_packets: self.tx_packets,
            rx_bytes: self.rx_bytes,
            tx_bytes: self.tx_bytes,
            rx_dropped: self.rx_dropped,
            tx_dropped: self.tx_dropped,
            duration_s,
            duration_ns,
            // Only the driver below can know of these.
            rx_errors: u64::MAX,
            tx_errors: u64::MAX,
            rx_frame_err: u64::MAX,
            rx_over_err: u64::MAX,
            rx_crc_err: u64::MAX,
            collisions: u64::MAX,
        }
    }
}

/// All ports, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ports {
    ports: BTreeMap<PortNo, Port>,
    /// VLANs by number, whether there is such a port just now or not.
    vlans: BTreeMap<PortNo, Arc<PortVlans>>,
    mirrors: Arc<Mirrors>,
}

impl Ports {
    pub(crate) fn get(&self, port: PortNo) -> Option<&Port> {
        self.ports.get(&port)
    }

    /// Number of ports.
    pub(crate) fn len(&self) -> usize {
        self.ports.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (PortNo, &Port)> {
        self.ports.iter().map(|(number, port)| (*number, port))
    }

    /// Settings of a port.
    pub(crate) fn config(&self, port: PortNo) -> Option<PortConfig> {
        self.get(port).map(|port| port.desc.config)
    }

    pub(crate) fn descs(&self) -> Vec<PortDesc> {
        self.ports.values().map(|port| port.desc.clone()).collect()
    }

    /// Whether the port exists and is live (clause 6.5).
    pub(crate) fn is_live(&self, port: PortNo) -> bool {
        self.get(port).is_some_and(Port::is_live)
    }

    /// Adds a port or replaces its description; counters and age of a known port stay.
    pub(crate) fn set(&mut self, desc: PortDesc, now: Nanos) -> Option<PortReason> {
        if let Some(port) = self.ports.get_mut(&desc.port_no) {
            if port.desc == desc {
                return None;
            }
            port.desc = desc;
            return Some(PortReason::Modify);
        }
        let port = Port {
            since: now,
            rx_packets: 0,
            rx_bytes: 0,
            rx_dropped: 0,
            tx_packets: 0,
            tx_bytes: 0,
            tx_dropped: 0,
            queues: BTreeMap::new(),
            vlans: self.vlans.get(&desc.port_no).cloned().unwrap_or_default(),
            is_mirror_output: self.mirrors.has_output(desc.port_no),
            desc,
        };
        self.ports.insert(port.desc.port_no, port);
        Some(PortReason::Add)
    }

    /// Sets how a port of this number takes part in VLANs; whether that is a change.
    pub(crate) fn set_vlans(&mut self, port: PortNo, vlans: PortVlans) -> bool {
        let vlans = Arc::new(vlans);
        let old = self.vlans.insert(port, Arc::clone(&vlans)).unwrap_or_default();
        if let Some(port) = self.ports.get_mut(&port) {
            port.vlans = Arc::clone(&vlans);
        }
        old != vlans
    }

    /// The mirrors.
    pub(crate) fn mirrors(&self) -> &Mirrors {
        &self.mirrors
    }

    /// Sets the mirrors; whether they are other ones than before.
    pub(crate) fn set_mirrors(&mut self, mirrors: Arc<Mirrors>) -> bool {
        for (number, port) in &mut self.ports {
            port.is_mirror_output = mirrors.has_output(*number);
        }
        std::mem::replace(&mut self.mirrors, mirrors) != self.mirrors
    }

    /// The part in VLANs of a port of this number.
    pub(crate) fn vlans_of(&self, port: PortNo) -> PortVlans {
        self.vlans.get(&port).map(|vlans| PortVlans::clone(vlans)).unwrap_or_default()
    }

    /// Takes a port as another datapath's command has made it, or takes it away.
    pub(crate) fn put(&mut self, number: PortNo, port: Option<Port>) {
        match port {
            Some(port) => {
                let is_mirror_output = self.mirrors.has_output(number);
                self.ports.insert(number, Port { is_mirror_output, ..port });
            }
            None => drop(self.ports.remove(&number)),
        }
    }

    pub(crate) fn remove(&mut self, port: PortNo) -> Option<PortDesc> {
        self.ports.remove(&port).map(|port| port.desc)
    }

    /// Changes settings as a port-mod asks.
    pub(crate) fn port_mod(&mut self, asked: &PortMod) -> Result<PortDesc, Error> {
        let port = self.ports.get_mut(&asked.port_no).ok_or(Error::PortModBadPort)?;
        let desc = &mut port.desc;
        if desc.hw_addr != asked.hw_addr {
            return Err(Error::PortModBadHwAddr);
        }
        if !SETTABLE.contains(asked.mask) {
            return Err(Error::PortModBadConfig);
        }
        let keeps = asked.advertise == PortFeatures::empty() || asked.advertise == desc.advertised;
        if !keeps {
            return Err(Error::PortModBadAdvertise);
        }
        desc.config = (desc.config & !asked.mask) | (asked.config & asked.mask);
        Ok(desc.clone())
    }

    pub(crate) fn count_rx(&mut self, port: PortNo, bytes: u64) {
        if let Some(port) = self.ports.get_mut(&port) {
            port.rx_packets += 1;
            port.rx_bytes += bytes;
        }
    }

    pub(crate) fn count_rx_dropped(&mut self, port: PortNo) {
        if let Some(port) = self.ports.get_mut(&port) {
            port.rx_dropped += 1;
        }
    }

    pub(crate) fn count_tx(
        &mut self,
        port: PortNo,
        queue: Option<QueueId>,
        bytes: u64,
        now: Nanos,
    ) {
        let Some(port) = self.ports.get_mut(&port) else { return };
        port.tx_packets += 1;
        port.tx_bytes += bytes;
        if let Some(queue) = queue {
            let fresh = Queue { since: now, packets: 0, bytes: 0 };
            let queue = port.queues.entry(queue).or_insert(fresh);
            queue.packets += 1;
            queue.bytes += bytes;
        }
    }

    pub(crate) fn count_tx_dropped(&mut self, port: PortNo) {
        if let Some(port) = self.ports.get_mut(&port) {
            port.tx_dropped += 1;
        }
    }

    pub(crate) fn stats(&self, port: PortNo, now: Nanos) -> Result<Vec<PortStats>, Error> {
        if port == PortNo::ANY {
            return Ok(self.ports.values().map(|port| port.stats(now)).collect());
        }
        let port = self.get(port).ok_or(Error::BadRequestBadPort)?;
        Ok(vec![port.stats(now)])
    }

    pub(crate) fn queue_stats(
        &self,
        wanted_port: PortNo,
        wanted_queue: QueueId,
        now: Nanos,
    ) -> Result<Vec<QueueStats>, Error> {
        if wanted_port != PortNo::ANY && self.get(wanted_port).is_none() {
            return Err(Error::QueueOpBadPort);
        }
        let mut found = Vec::new();
        for port in self.ports.values() {
            if wanted_port != PortNo::ANY && port.desc.port_no != wanted_port {
                continue;
            }
            for (queue_id, queue) in &port.queues {
                if wanted_queue != QueueId::ALL && *queue_id != wanted_queue {
                    continue;
                }
                let (duration_s, duration_ns) = now.age(queue.since);
                found.push(QueueStats {
                    port_no: port.desc.port_no,
                    queue_id: *queue_id,
                    tx_bytes: queue.bytes,
                    tx_packets: queue.packets,
                    tx_errors: u64::MAX,
                    duration_s,
                    duration_ns,
                });
            }
        }
        if found.is_empty() && wanted_queue != QueueId::ALL {
            return Err(Error::QueueOpBadQueue);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::Ports;
    use crate::counter::DropReason;
    use crate::time::Nanos;
    use openflow::port::{PortConfig, PortDesc, PortFeatures, PortMod, PortReason, PortState};
    use openflow::{Error, MacAddr, PortNo, QueueId};

    fn desc(number: u32) -> PortDesc {
        PortDesc {
            port_no: PortNo(number),
            hw_addr: MacAddr::from_u64(u64::from(number)),
            state: PortState::LIVE,
            ..PortDesc::default()
        }
    }

    fn port_mod(number: u32, config: PortConfig, mask: PortConfig) -> PortMod {
        PortMod {
            port_no: PortNo(number),
            hw_addr: MacAddr::from_u64(u64::from(number)),
            config,
            mask,
            advertise: PortFeatures::empty(),
        }
    }

    #[test]
    fn adding_changing_and_repeating_are_distinguished() {
        let mut ports = Ports::default();
        assert_eq!(ports.set(desc(1), Nanos(0)), Some(PortReason::Add));
        assert_eq!(ports.set(desc(1), Nanos(1)), None);
        let changed = PortDesc { state: PortState::LINK_DOWN, ..desc(1) };
        assert_eq!(ports.set(changed.clone(), Nanos(2)), Some(PortReason::Modify));
        assert_eq!(ports.remove(PortNo(1)), Some(changed));
        assert_eq!(ports.remove(PortNo(1)), None);
    }

    #[test]
    fn a_port_mod_is_checked_and_changes_masked_bits_only() {
        let mut ports = Ports::default();
        ports.set(desc(1), Nanos(0));
        let down = PortConfig::PORT_DOWN;
        let asked = port_mod(1, down | PortConfig::NO_FWD, down);
        assert_eq!(ports.port_mod(&asked).unwrap().config, down);
        assert_eq!(ports.port_mod(&port_mod(2, down, down)), Err(Error::PortModBadPort));
        let wrong = PortMod { hw_addr: MacAddr([9; 6]), ..port_mod(1, down, down) };
        assert_eq!(ports.port_mod(&wrong), Err(Error::PortModBadHwAddr));
        let odd = PortConfig::from_bits_retain(1 << 20);
        assert_eq!(ports.port_mod(&port_mod(1, odd, odd)), Err(Error::PortModBadConfig));
        let asked = PortMod { advertise: PortFeatures::FD_1GB, ..port_mod(1, down, down) };
        assert_eq!(ports.port_mod(&asked), Err(Error::PortModBadAdvertise));
    }

    #[test]
    fn live_needs_the_state_the_link_and_the_setting() {
        let mut ports = Ports::default();
        assert!(!ports.is_live(PortNo(1)));
        ports.set(desc(1), Nanos(0));
        assert!(ports.is_live(PortNo(1)));
        ports.set(PortDesc { config: PortConfig::PORT_DOWN, ..desc(1) }, Nanos(0));
        assert!(!ports.is_live(PortNo(1)));
        let no_link = PortState::LIVE | PortState::LINK_DOWN;
        ports.set(PortDesc { state: no_link, ..desc(1) }, Nanos(0));
        assert!(!ports.is_live(PortNo(1)));
        ports.set(PortDesc { state: PortState::empty(), ..desc(1) }, Nanos(0));
        assert!(!ports.is_live(PortNo(1)));
    }

    #[test]
    fn spanning_tree_has_a_setting_of_its_own() {
        let mut ports = Ports::default();
        ports.set(PortDesc { config: PortConfig::NO_RECV_STP, ..desc(1) }, Nanos(0));
        let port = ports.get(PortNo(1)).unwrap();
        let stp = [0x01, 0x80, 0xc2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 38];
        assert_eq!(port.refuses_rx(&stp), Some(DropReason::NoRecvStp));
        assert_eq!(port.refuses_rx(&[0xff; 14]), None);
    }

    #[test]
    fn counters_that_are_not_kept_read_all_ones() {
        let mut ports = Ports::default();
        ports.set(desc(1), Nanos(0));
        ports.count_rx(PortNo(1), 60);
        ports.count_tx(PortNo(1), Some(QueueId(2)), 100, Nanos(5));
        let stats = ports.stats(PortNo::ANY, Nanos::from_s(2)).unwrap();
        assert_eq!((stats[0].rx_bytes, stats[0].tx_bytes), (60, 100));
        assert_eq!((stats[0].rx_crc_err, stats[0].duration_s), (u64::MAX, 2));
        assert_eq!(ports.stats(PortNo(9), Nanos(0)), Err(Error::BadRequestBadPort));
        let queues = ports.queue_stats(PortNo::ANY, QueueId::ALL, Nanos(5)).unwrap();
        assert_eq!((queues[0].queue_id, queues[0].tx_packets), (QueueId(2), 1));
        let missing = ports.queue_stats(PortNo(1), QueueId(7), Nanos(5));
        assert_eq!(missing, Err(Error::QueueOpBadQueue));
    }
}
