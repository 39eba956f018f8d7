//! A switch that runs already, a vendor's box for example: the lab connects to its OpenFlow channel
//! and sends at the devices of this machine that lead to its ports.
//!
//! It knows of the switch only what its inventory states. Flow entries, groups and meters of the
//! switch are deleted before those of a cell are loaded.

use channel::Endpoint;
use programs::tools::{Missing, Program};

use super::inventory::{BoxMode, Inventory};
use super::{Dut, DutId, DutPlan, StartedDut};
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::settings::{ChannelTransport, Forwarding, Settings};
use crate::testbed::external::Wiring;

const ABOUT: &str = "A switch that runs already, as its --inventory says: an OpenFlow channel and \
                     network interfaces of this machine, or of boxes with an agent";

/// The switch of `--inventory`.
pub(super) struct External;

fn inventory(paths: &ProgramPaths) -> Result<Inventory, Missing> {
    let path = paths.inventory.as_deref().ok_or_else(|| {
        Missing("no inventory of the switch: --inventory FILE (see docs/lab-agents.md)".to_owned())
    })?;
    Inventory::read(path)
}

/// Why a switch of this inventory cannot run with these settings.
fn fits(inventory: &Inventory, settings: &Settings) -> Result<(), String> {
    match (settings.forwarding(), inventory.mode) {
        (Forwarding::Flows, BoxMode::Openflow) | (Forwarding::Learning, BoxMode::Learning) => {}
        (Forwarding::Flows, BoxMode::Learning) => {
            return Err("its inventory says that it learns".to_owned());
        }
        (Forwarding::Learning, BoxMode::Openflow) => {
            let what = "its inventory says that it forwards by flow entries; set it to learn, and \
                        mode = \"learning\" in the inventory";
            return Err(what.to_owned());
        }
        (Forwarding::Controller, _) => {
            return Err("its controller is not the lab's to set".to_owned());
        }
        (Forwarding::Io, _) => return Err("forwards by flow tables only".to_owned()),
    }
    super::no_caches(settings)?;
    super::one_thread(settings)?;
    if settings.ports() > inventory.port_count() {
        let has = inventory.port_count();
        return Err(format!("its inventory has {has} interfaces of {}", settings.ports()));
    }
    if settings.line() > 1 {
        return Err("its inventory has one switch".to_owned());
    }
    if settings.port_rate.is_some() || settings.control_rate.is_some() {
        return Err("its links are as fast as they are".to_owned());
    }
    if settings.bridges() > 1 {
        return Err("its inventory has one OpenFlow channel".to_owned());
    }
    let has_tls = inventory.endpoint()?.is_some_and(|endpoint| endpoint.is_tls());
    match settings.transport {
        Some(ChannelTransport::Tls) if !has_tls => Err("its channel is not TLS".to_owned()),
        Some(ChannelTransport::Plain) if has_tls => Err("its channel is TLS".to_owned()),
        Some(ChannelTransport::Plain | ChannelTransport::Tls) | None => Ok(()),
    }
}

impl Dut for External {
    fn id(&self) -> DutId {
        DutId::new("external", ABOUT)
    }

    fn check(&self, settings: &Settings, paths: &ProgramPaths) -> Result<(), String> {
        // Without an inventory that is what is missing, and `programs` says so.
        inventory(paths).map_or(Ok(()), |inventory| fits(&inventory, settings))
    }

    fn wiring(&self, paths: &ProgramPaths) -> Result<Option<Wiring>, Missing> {
        let inventory = inventory(paths)?;
        Ok(Some(Wiring { ends: inventory.ends(), makes_hosts: inventory.makes_hosts() }))
    }

    fn keeps_entries(&self) -> bool {
        true
    }

    fn programs(&self, paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        inventory(paths).map(|_| Vec::new())
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let inventory = inventory(plan.context.paths)?;
        let bridges: Vec<Endpoint> =
            inventory.endpoint().map_err(ServiceError::Unfit)?.into_iter().collect();
        let tls = inventory.tls().map_err(ServiceError::Unfit)?;
        let mut service = Service::new();
        for endpoint in &bridges {
            service.note_command(format!("external switch at {endpoint}"));
        }
        Ok(StartedDut { bridges, tls, ..StartedDut::without_channel(service) })
    }
}

#[cfg(test)]
mod tests {
    use super::{Inventory, fits};
    use crate::settings::{CacheSet, Forwarding, Settings};

    #[test]
    fn what_the_inventory_does_not_say_is_not_supported() {
        let text = "interfaces = [\"a\", \"b\"]\nopenflow = \"tcp:h:1\"";
        let inventory = Inventory::from_toml(text).unwrap();
        assert_eq!(fits(&inventory, &Settings::default()), Ok(()));
        for settings in [
            Settings { forwarding: Some(Forwarding::Learning), ..<_>::default() },
            Settings { forwarding: Some(Forwarding::Controller), ..<_>::default() },
            Settings { ports: Some(3), ..<_>::default() },
            Settings { caches: Some(CacheSet::None), ..<_>::default() },
            Settings { workers: Some(2), ..<_>::default() },
            Settings { bridges: Some(2), ..<_>::default() },
            Settings { line: Some(2), ..<_>::default() },
        ] {
            assert!(fits(&inventory, &settings).is_err(), "{settings:?}");
        }
    }
}
