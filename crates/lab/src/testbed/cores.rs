//! The cores of a run whose subject has some to itself, a switch that replays or a controller, and
//! those of everything else.
//!
//! It must never let the lab run on a core of the subject, unless there are no others.

use std::io;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use netdev::sys::affinity;

use crate::settings::Settings;

/// The cores of both sides.
#[derive(Debug)]
pub struct Cores {
    /// The subject's, one for each of its workers; none where the lab does not start it.
    pub subject: Vec<usize>,
    /// All others that this process may use.
    pub others: Vec<usize>,
}

/// Cores in words.
fn list(cores: &[usize]) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

fn allowed() -> Result<Vec<usize>> {
    affinity::allowed_cpus().context("asking for the cores")
}

impl Cores {
    /// A core for each worker: the last ones or those from `core` on. `purpose` is for errors.
    pub fn of(settings: &Settings, purpose: &str) -> Result<Self> {
        Self::among(&allowed()?, settings, purpose)
    }

    fn among(all: &[usize], settings: &Settings, purpose: &str) -> Result<Self> {
        let count = usize::from(settings.workers.unwrap_or(1));
        ensure!(count <= all.len(), "{count} workers need as many cores, there are {}", all.len());
        let subject = match settings.core {
            Some(first) => (first..).take(count).collect(),
            // Not each number between two cores is one of ours.
            None => all[all.len() - count..].to_vec(),
        };
        if let Some(missing) = subject.iter().find(|core| !all.contains(core)) {
            bail!("no core {missing} {purpose}, there is {}: set core", list(all));
        }
        let others = all.iter().copied().filter(|core| !subject.contains(core)).collect();
        Ok(Self { subject, others })
    }

    /// Those of a controller, where the lab starts it, and of the switches that load it.
    pub fn of_fleet(settings: &Settings, is_started: bool) -> Result<Self> {
        if !is_started {
            return Ok(Self { subject: Vec::new(), others: allowed()? });
        }
        let mut cores = Self::of(settings, "for the controller")?;
        if cores.others.is_empty() {
            let one = "one core is not enough: the controller has one, all else another";
            ensure!(cores.subject.len() > 1, one);
            cores.others.clone_from(&cores.subject);
        }
        Ok(cores)
    }

    /// One of the others, for what has to have a core of its own.
    pub(crate) fn control_core(&self) -> Result<usize> {
        self.others.first().copied().ok_or_else(|| {
            anyhow!(
                "DPDK's own thread needs a core that forwards nothing, and this process may use \
                 only {}: give it one more, or fewer workers",
                list(&self.subject)
            )
        })
    }

    /// Keeps the calling thread, and those that it will start, on the others, where there are some.
    pub(crate) fn keep_off(&self) -> io::Result<OffCores> {
        let all = affinity::allowed_cpus()?;
        affinity::allow(None, &self.others)?;
        Ok(OffCores(all))
    }

    /// Keeps all threads of a process but the forwarding ones off the cores that forward.
    pub(crate) fn keep_process_off(&self, pid: u32) -> io::Result<()> {
        for thread in netdev::sys::cpu::threads(pid)? {
            if !thread.name.starts_with("worker") {
                affinity::allow(Some(thread.tid), &self.others)?;
            }
        }
        Ok(())
    }
}

/// The cores that a thread may use again when this goes.
#[derive(Debug)]
pub(crate) struct OffCores(Vec<usize>);

impl Drop for OffCores {
    fn drop(&mut self) {
        if let Err(error) = affinity::allow(None, &self.0) {
            tracing::warn!(%error, "a thread stays off the forwarding cores");
        }
    }
}

#[cfg(test)]
mod tests {
    use netdev::sys::affinity;

    use super::Cores;
    use crate::settings::Settings;

    #[test]
    fn both_sides_have_cores_of_their_own() {
        let bed = Cores::of_fleet(&Settings::default(), false).unwrap();
        assert!(bed.subject.is_empty() && !bed.others.is_empty());
        let among = |workers: u16, core: Option<usize>| {
            let settings = Settings { workers: Some(workers), core, ..Settings::default() };
            let cores = Cores::among(&[4, 5, 70, 71], &settings, "to forward on");
            cores.map_err(|error| error.to_string())
        };
        let last = among(1, None).unwrap();
        assert_eq!((last.subject, last.others), (vec![71], vec![4, 5, 70]));
        let first = among(2, Some(4)).unwrap();
        assert_eq!(first.control_core().unwrap(), 70, "neither 0, nor 4 and 5 that forward");
        let error = among(4, None).unwrap().control_core().unwrap_err().to_string();
        assert!(error.contains("may use only 4, 5, 70, 71"), "{error}");
        for (workers, core, why) in [
            (5, None, "5 workers need as many cores, there are 4"),
            (2, Some(5), "no core 6 to forward on, there is 4, 5, 70, 71: set core"),
        ] {
            assert_eq!(among(workers, core).unwrap_err(), why);
        }
    }

    #[test]
    fn the_subject_s_cores_are_left_to_it_for_a_while() {
        let all = affinity::allowed_cpus().unwrap();
        let cores = Cores::of(&Settings::default(), "to forward on").unwrap();
        let off = cores.keep_off().unwrap();
        let now = affinity::allowed_cpus().unwrap();
        assert!(all.len() == 1 || !now.contains(all.last().unwrap()), "{now:?}");
        drop(off);
        assert_eq!(affinity::allowed_cpus().unwrap(), all);
    }
}
