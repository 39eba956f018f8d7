//! Edits of a configuration: ports that come, change and go, the numbers that they get, and the
//! changes of a file laid over what runs.
//!
//! Only values are made here; whether a device can be opened shows later.

use std::collections::{BTreeSet, HashMap, HashSet};

use datapath::{PortVlans, QueueRates};
use netdev::PortSpec;
use openflow::PortNo;

use super::{BridgeConfig, BridgeDifference, Config, Difference, PortConfig, PortQueues};
use super::{Setting, highest_port};

/// The rate, the queues and the VLANs of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortSet {
    /// Bits per second; `None` for the device's.
    pub rate_bps: Option<u64>,
    /// Its queues.
    pub queues: Vec<QueueRates>,
    /// Its part in VLANs.
    pub vlans: PortVlans,
}

impl BridgeConfig {
    /// The rate, the queues and the VLANs of a port.
    #[must_use]
    pub fn port_set(&self, number: PortNo) -> PortSet {
        let (rate_bps, queues) = self.shape_of(number);
        PortSet { rate_bps, queues, vlans: self.vlans_of(number) }
    }

    /// Gives a port these settings in place of those that it has.
    pub fn set_port(&mut self, number: PortNo, set: PortSet) {
        self.vlans.retain(|(port, _)| *port != number);
        self.queues.retain(|queues| queues.number != number);
        let PortSet { rate_bps, queues, vlans } = set;
        if vlans != PortVlans::default() {
            self.vlans.push((number, vlans));
        }
        if rate_bps.is_some() || !queues.is_empty() {
            self.queues.push(PortQueues { number, rate_bps, queues });
        }
    }

    /// Adds a port.
    pub fn add_port(&mut self, port: PortConfig, set: PortSet) {
        self.set_port(port.number, set);
        self.ports.push(port);
        self.ports.sort_by_key(|port| port.number);
    }

    /// Takes a port out; what it was set to goes with it.
    pub fn remove_port(&mut self, number: PortNo) -> Option<PortConfig> {
        self.set_port(number, PortSet::default());
        let at = self.ports.iter().position(|port| port.number == number)?;
        Some(self.ports.remove(at))
    }

    /// The number of a new port: what is wanted, or else the lowest that is free.
    ///
    /// # Errors
    /// It is taken, or the versions cannot say it, or none is left.
    pub fn free_number(&self, wanted: Option<PortNo>) -> Result<PortNo, String> {
        let highest = highest_port(&self.versions);
        let taken: BTreeSet<PortNo> = self.ports.iter().map(|port| port.number).collect();
        match wanted {
            Some(number) if taken.contains(&number) => {
                Err(format!("port number {number} is taken"))
            }
            Some(number) if number > highest => Err(format!(
                "port number {number} is above {}, the highest that OpenFlow10 can say",
                highest.0
            )),
            Some(number) => Ok(number),
            None => lowest_free(highest, |free| taken.contains(&free))
                .ok_or_else(|| format!("all port numbers up to {} are taken", highest.0)),
        }
    }
}

fn lowest_free(highest: PortNo, is_taken: impl Fn(PortNo) -> bool) -> Option<PortNo> {
    (1..=highest.0).map(PortNo).find(|number| !is_taken(*number))
}

/// The numbers of ports of which each may want one, where `running` are those that run. A number
/// that is wanted goes to the port that has it and wants it, and else to the first that wants it;
/// the others keep theirs where it is still free, and else get the lowest that is. None for a port
/// that finds all taken.
#[must_use]
pub fn number_ports(
    running: &[PortConfig],
    ports: &[(Option<PortNo>, PortSpec)],
    highest: PortNo,
) -> Vec<Option<PortNo>> {
    // Several ports may have the same spec, as `null:a`.
    let mut held: HashMap<String, Vec<PortNo>> = HashMap::new();
    for port in running.iter().rev() {
        held.entry(port.spec.to_string()).or_default().push(port.number);
    }
    let now: Vec<Option<PortNo>> =
        ports.iter().map(|(_, spec)| held.get_mut(&spec.to_string()).and_then(Vec::pop)).collect();
    let mut taken: HashSet<PortNo> = HashSet::new();
    let mut numbers = vec![None; ports.len()];
    let may_be = |number: PortNo| number == PortNo::LOCAL || number <= highest;
    let wants: Vec<Option<PortNo>> =
        ports.iter().map(|(wanted, _)| wanted.filter(|number| may_be(*number))).collect();
    let has_it = wants.iter().zip(&now).map(|(want, now)| want.filter(|want| Some(*want) == *now));
    let rounds = [has_it.collect(), wants.clone(), now];
    for round in rounds {
        for (number, claim) in numbers.iter_mut().zip(round) {
            if number.is_none() {
                *number = claim.filter(|claim| taken.insert(*claim));
            }
        }
    }
    let mut next = 1;
    for number in numbers.iter_mut().filter(|number| number.is_none()) {
        while taken.contains(&PortNo(next)) {
            next += 1;
        }
        if next <= highest.0 {
            taken.insert(PortNo(next));
            *number = Some(PortNo(next));
        }
    }
    numbers
}

impl Difference {
    /// These changes of a file, over what runs: bridges and ports that are none of the file's stay.
    ///
    /// # Errors
    /// The bridge, and why a change does not fit what runs.
    pub(crate) fn over(self, running: &Config) -> Result<Config, (String, String)> {
        let mut wanted = running.clone();
        // What was removed by hand is gone already.
        wanted.bridges.retain(|bridge| !self.gone.contains(&bridge.name));
        for change in self.changed {
            let name = change.to.name.clone();
            let held = wanted.bridges.iter_mut().find(|bridge| bridge.name == name);
            let held = held.ok_or_else(|| (name.clone(), "it was removed".to_owned()))?;
            change.over(held).map_err(|why| (name, why))?;
        }
        for bridge in self.new {
            if wanted.bridges.iter().any(|other| other.name == bridge.name) {
                return Err((bridge.name, "there is a bridge of this name already".to_owned()));
            }
            wanted.bridges.push(bridge);
        }
        Ok(wanted)
    }
}

impl BridgeDifference {
    /// These changes over a bridge that runs.
    fn over(self, running: &mut BridgeConfig) -> Result<(), String> {
        let caches = match self.has(Setting::Caches) {
            true => self.to.caches,
            false => running.caches,
        };
        let mut merged = BridgeConfig {
            ports: std::mem::take(&mut running.ports),
            vlans: std::mem::take(&mut running.vlans),
            queues: std::mem::take(&mut running.queues),
            caches,
            ..self.to.clone()
        };
        for number in
            self.gone.iter().map(|port| port.number).chain(self.moved.iter().map(|moved| moved.0))
        {
            merged.remove_port(number);
        }
        for port in self.new.into_iter().chain(self.moved.into_iter().map(|(_, port)| port)) {
            let number = port.number;
            if merged.ports.iter().any(|other| other.number == number) {
                return Err(format!("port number {number} was given by weir ctl add-port"));
            }
            merged.add_port(port, self.to.port_set(number));
        }
        for number in self.set {
            if !merged.ports.iter().any(|port| port.number == number) {
                return Err(format!("port {number} was removed"));
            }
            merged.set_port(number, self.to.port_set(number));
        }
        *running = merged;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use openflow::PortNo;

    use super::number_ports;
    use crate::config::PortConfig;

    fn numbers(running: &[(u32, &str)], ports: &[(u32, &str)]) -> Vec<u32> {
        let running: Vec<PortConfig> = running
            .iter()
            .map(|(number, spec)| PortConfig {
                number: PortNo(*number),
                spec: format!("null:{spec}").parse().unwrap(),
            })
            .collect();
        let ports: Vec<_> = ports
            .iter()
            .map(|(wanted, spec)| {
                let wanted = (*wanted > 0).then_some(PortNo(*wanted));
                (wanted, format!("null:{spec}").parse().unwrap())
            })
            .collect();
        let numbers = number_ports(&running, &ports, PortNo(100));
        numbers.iter().map(|number| number.map_or(0, |number| number.0)).collect()
    }

    #[test]
    fn ports_keep_their_numbers_or_get_what_they_want() {
        assert_eq!(numbers(&[], &[(0, "a"), (7, "b"), (0, "c")]), [1, 7, 2]);
        assert_eq!(numbers(&[(5, "a"), (6, "b")], &[(0, "b"), (0, "c"), (0, "a")]), [6, 1, 5]);
        // A wanted number displaces a port that does not want its own, and no other.
        assert_eq!(numbers(&[(5, "a"), (6, "b")], &[(0, "a"), (5, "b")]), [1, 5]);
        assert_eq!(numbers(&[(5, "a"), (6, "b")], &[(5, "b"), (5, "a")]), [6, 5]);
        assert_eq!(numbers(&[], &[(5, "b"), (5, "a")]), [5, 1]);
        // What no version can say is not taken.
        assert_eq!(numbers(&[], &[(101, "a"), (100, "b")]), [1, 100]);
        assert_eq!(numbers(&[(1, "a"), (2, "a")], &[(0, "a"), (0, "a"), (0, "a")]), [1, 2, 3]);
    }
}
