//! No hosts and no switch: emulated switches load a controller, which has cores of its own.
//!
//! It must never let the emulator run on a core of the controller, unless there are no others.

use anyhow::{Context as _, Result, bail, ensure};
use netdev::sys::affinity;

use super::replay::{OffCores, list};
use crate::settings::Settings;

/// The cores of both sides.
#[derive(Debug)]
pub struct FleetTestbed {
    controller: Vec<usize>,
    emulator: Vec<usize>,
}

impl FleetTestbed {
    /// A core for each worker of a controller that the lab starts, the last ones or those from
    /// `core` on; all others are the emulator's.
    pub fn new(settings: &Settings, is_started: bool) -> Result<Self> {
        let all = affinity::allowed_cpus().context("asking for the cores")?;
        if !is_started {
            return Ok(Self { controller: Vec::new(), emulator: all });
        }
        let count = usize::from(settings.workers.unwrap_or(1));
        ensure!(count <= all.len(), "{count} workers need as many cores, there are {}", all.len());
        let controller = match settings.core {
            Some(first) => (first..first + count).collect(),
            // Not each number between two cores is one of ours.
            None => all[all.len() - count..].to_vec(),
        };
        if let Some(missing) = controller.iter().find(|core| !all.contains(core)) {
            bail!("no core {missing} for the controller, there is {}: set core", list(&all));
        }
        ensure!(all.len() > 1, "one core is not enough: the controller has one, all else another");
        let mut emulator: Vec<usize> =
            all.iter().copied().filter(|core| !controller.contains(core)).collect();
        if emulator.is_empty() {
            emulator = all;
        }
        Ok(Self { controller, emulator })
    }

    /// The controller's cores; none where the lab does not start it.
    pub fn controller_cores(&self) -> &[usize] {
        &self.controller
    }

    /// The cores of the emulated switches.
    pub fn emulator_cores(&self) -> &[usize] {
        &self.emulator
    }

    /// Keeps the calling thread, and those that it will start, off the controller's cores.
    pub(super) fn keep_off(&self) -> std::io::Result<OffCores> {
        OffCores::leave(&self.emulator)
    }
}

#[cfg(test)]
mod tests {
    use super::FleetTestbed;
    use crate::settings::Settings;

    #[test]
    fn both_sides_have_cores_of_their_own() {
        let bed = FleetTestbed::new(&Settings::default(), false).unwrap();
        assert!(bed.controller_cores().is_empty() && !bed.emulator_cores().is_empty());
        let settings = Settings { workers: Some(u16::MAX), ..Settings::default() };
        let error = FleetTestbed::new(&settings, true).unwrap_err().to_string();
        assert!(error.contains("as many cores"), "{error}");
        let settings = Settings { core: Some(4_000), ..Settings::default() };
        let error = FleetTestbed::new(&settings, true).unwrap_err().to_string();
        assert!(error.contains("no core 4000") && error.contains("set core"), "{error}");
        if let Ok(bed) = FleetTestbed::new(&Settings::default(), true) {
            let [core] = bed.controller_cores() else { panic!("{bed:?}") };
            assert!(!bed.emulator_cores().contains(core), "{bed:?}");
        }
    }
}
