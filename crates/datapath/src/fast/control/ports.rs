//! Ports: their descriptions and settings (clauses 4.6 and 7.3.4.2), and their counters.
//!
//! The rules are those of [`crate::ports`]; the counters are the forwarders'.

use std::sync::Arc;

use openflow::port::{PortConfig, PortDesc, PortMod, PortReason, PortStats, QueueStats};
use openflow::{Error, MacAddr, PortNo, QueueId};

use super::Control;
use crate::fast::op::{Change, PortReplica};
use crate::fast::shared::PortCounters;
use crate::macs::{AddressStats, LearntAddress};
use crate::mirrors::{Mirror, Mirrors};
use crate::time::Nanos;
use crate::vlans::PortVlans;

impl Control {
    /// Adds a port or replaces its description and settings; says which it was, or `None` when
    /// nothing changed. Flow entries stay (clause 4.6).
    pub fn port_set(&mut self, desc: PortDesc, now: Nanos) -> Option<PortReason> {
        let number = desc.port_no;
        let reason = self.ports.set(desc, now)?;
        let forwarders = self.shared.forwarders();
        let fresh = || Arc::new(PortCounters::new(forwarders));
        self.port_counters.entry(number).or_insert_with(fresh);
        self.emit_port(number);
        Some(reason)
    }

    /// Removes a port, with the description that it had. Flow entries stay (clause 4.6).
    pub fn port_remove(&mut self, port: PortNo) -> Option<PortDesc> {
        self.shared.with_macs(|macs| macs.forget_port(port));
        let desc = self.ports.remove(port)?;
        self.port_counters.remove(&port);
        self.emit_op(Change::Port { port, state: None });
        Some(desc)
    }

    /// Changes a port's settings (clause 7.3.4.2); the description as it is afterwards.
    ///
    /// # Errors
    /// `OFPPMFC_BAD_PORT`, `OFPPMFC_BAD_HW_ADDR`, `OFPPMFC_BAD_CONFIG`, `OFPPMFC_BAD_ADVERTISE`.
    pub fn port_mod(&mut self, port_mod: &PortMod) -> Result<PortDesc, Error> {
        self.note_ports();
        let desc = self.ports.port_mod(port_mod)?;
        self.emit_port(desc.port_no);
        Ok(desc)
    }

    /// Sets how a port of this number takes part in VLANs when `NORMAL` forwards. It stays so when
    /// the port comes and goes.
    pub fn port_vlans(&mut self, port: PortNo, vlans: PortVlans) {
        if self.ports.set_vlans(port, vlans) {
            self.shared.with_macs(|macs| macs.forget_port(port));
            self.emit_port(port);
        }
    }

    /// Sets the mirrors: at most [`crate::MIRRORS_MAX`] of them.
    pub fn set_mirrors(&mut self, mirrors: Vec<Mirror>) {
        let mirrors = Arc::new(Mirrors::new(mirrors));
        if self.ports.set_mirrors(Arc::clone(&mirrors)) {
            self.emit_op(Change::Mirrors(mirrors));
        }
    }

    /// The addresses that `NORMAL` has learnt, by VLAN and address.
    #[must_use]
    pub fn learnt_addresses(&self, now: Nanos) -> Vec<LearntAddress> {
        self.shared.with_macs(|macs| macs.known(&self.config, now).collect())
    }

    /// Sets by hand where `NORMAL` finds an address of a VLAN; false where there is no room.
    pub fn set_address(&mut self, vlan: u16, address: MacAddr, port: PortNo, now: Nanos) -> bool {
        let (station, config) = ((vlan, address), &self.config);
        self.shared.with_macs(|macs| {
            let is_set = macs.set(station, port, config, now);
            self.shared.moves().note(station);
            is_set
        })
    }

    /// Forgets an address that was set by hand; false where none was.
    pub fn unset_address(&mut self, vlan: u16, address: MacAddr) -> bool {
        self.shared.with_macs(|macs| {
            self.shared.moves().note((vlan, address));
            macs.unset((vlan, address))
        })
    }

    /// Forgets the addresses that `NORMAL` has learnt.
    pub fn flush_addresses(&mut self) {
        self.shared.with_macs(|macs| {
            macs.flush().into_iter().for_each(|station| self.shared.moves().note(station));
        });
    }

    /// Sets the seconds until `NORMAL` forgets an address that sent nothing.
    pub fn set_address_age(&mut self, age_s: u16) {
        self.shared.with_macs(|macs| {
            let known = macs.set_age(age_s, &self.config);
            // What the kernel does with their frames holds for the time before.
            known.into_iter().for_each(|station| self.shared.moves().note(station));
        });
    }

    /// Counts of the addresses that `NORMAL` knows.
    #[must_use]
    pub fn address_stats(&self, now: Nanos) -> AddressStats {
        self.shared.with_macs(|macs| macs.stats(&self.config, now))
    }

    /// Counts of what became of addresses begin at zero.
    pub fn clear_address_stats(&mut self) {
        self.shared.with_macs(crate::macs::Macs::clear_stats);
    }

    /// The part in VLANs of the port of a number when `NORMAL` forwards.
    #[must_use]
    pub fn vlans_of(&self, port: PortNo) -> PortVlans {
        self.ports.vlans_of(port)
    }

    fn emit_port(&mut self, number: PortNo) {
        let Some(port) = self.ports.get(number) else { return };
        let Some(counters) = self.port_counters.get(&number) else { return };
        let state = PortReplica { port: port.clone(), counters: Arc::clone(counters) };
        self.emit_op(Change::Port { port: number, state: Some(Arc::new(state)) });
    }

    /// All ports, by number.
    #[must_use]
    pub fn ports(&self) -> Vec<PortDesc> {
        self.ports.descs()
    }

    /// Settings of a port.
    #[must_use]
    pub fn port_config(&self, port: PortNo) -> Option<PortConfig> {
        self.ports.config(port)
    }

    /// Ports' counters, of one port or of all ([`PortNo::ANY`]).
    ///
    /// # Errors
    /// `OFPBRC_BAD_PORT`.
    pub fn port_stats(&self, port: PortNo, now: Nanos) -> Result<Vec<PortStats>, Error> {
        let mut stats = self.ports.stats(port, now)?;
        for stats in &mut stats {
            let Some(counters) = self.port_counters.get(&stats.port_no) else { continue };
            for cell in counters.cells() {
                stats.rx_packets += cell.rx.packets.get();
                stats.rx_bytes += cell.rx.bytes.get();
                stats.rx_dropped += cell.rx_dropped.get();
                stats.tx_packets += cell.tx.packets.get();
                stats.tx_bytes += cell.tx.bytes.get();
                stats.tx_dropped += cell.tx_dropped.get();
            }
        }
        Ok(stats)
    }

    /// Counters of the queues that packets were sent to, of one port or all ([`PortNo::ANY`]), of
    /// one queue or all ([`QueueId::ALL`]).
    ///
    /// # Errors
    /// `OFPQOFC_BAD_PORT`, `OFPQOFC_BAD_QUEUE`.
    pub fn queue_stats(
        &self,
        port: PortNo,
        queue: QueueId,
        now: Nanos,
    ) -> Result<Vec<QueueStats>, Error> {
        if port != PortNo::ANY && self.ports.get(port).is_none() {
            return Err(Error::QueueOpBadPort);
        }
        let ports = self.port_counters.iter();
        let mut found = Vec::new();
        for (port_no, counters) in ports.filter(|(own, _)| port == PortNo::ANY || **own == port) {
            let queues = counters.queues().into_iter();
            for (queue_id, counters) in queues.filter(|(own, _)| wants(queue, *own)) {
                let (duration_s, duration_ns) = now.age(counters.since());
                let (tx_packets, tx_bytes) = counters.sum();
                found.push(QueueStats {
                    port_no: *port_no,
                    queue_id,
                    tx_bytes,
                    tx_packets,
                    tx_errors: u64::MAX,
                    duration_s,
                    duration_ns,
                });
            }
        }
        if found.is_empty() && queue != QueueId::ALL {
            return Err(Error::QueueOpBadQueue);
        }
        Ok(found)
    }
}

fn wants(wanted: QueueId, own: QueueId) -> bool {
    wanted == QueueId::ALL || wanted == own
}
