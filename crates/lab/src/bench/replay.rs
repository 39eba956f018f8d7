//! The scenarios `datapath-*` of the lab, for the commands that are views of them: the values of
//! the axis are those that the command names, and what was measured is set beside each other.
//!
//! A switch that could not be measured ends the command with the reason; no figure stands in.

use anyhow::{Context, Result, bail};
use programs::tools;
use serde::de::DeserializeOwned;

use super::common::Run;
use super::figures::{self, Figures, Level};
use super::outcome::rounded;
use super::scratch;
use crate::campaign::catalogue;
use crate::campaign::job::Campaign;
use crate::campaign::run::execute;
use crate::campaign::scenario::Scenario;
use crate::dut::{self, Dut};
use crate::results::{CellResults, CellState, ScenarioResults, TrialRecord};
use crate::service::ProgramPaths;
use crate::settings::{Replay, Settings};
use crate::setup::TestbedKind;
use crate::workload::Workload;

/// Weir in user space, never asleep.
pub(super) fn weir() -> Result<&'static dyn Dut> {
    dut::find("weir-busy").context("the lab has no switch weir-busy")
}

/// A part of a scenario.
pub(super) struct ReplayPlan<'a> {
    pub(super) scenario: &'a str,
    /// The values of its axis, with what each sets.
    pub(super) values: Vec<(String, Settings)>,
    pub(super) duts: Vec<&'static dyn Dut>,
    pub(super) repeats: usize,
}

/// Settings for the packets and entries of a workload; its packets get numbers at that offset.
pub(super) fn of_workload(workload: &Workload, number_at: Option<u16>) -> Result<Settings> {
    let folder = workload.trace.parent().map(std::path::Path::to_owned);
    let name = Some(workload.name.clone());
    Ok(Settings {
        version: Some(workload.version()?.to_string()),
        replay: Some(Replay { folder, name, number_at, ..Replay::default() }),
        ..Settings::default()
    })
}

impl ReplayPlan<'_> {
    /// Measures it; what came of each value on each switch, in this order.
    ///
    /// # Errors
    /// A switch that could not be measured; the run was interrupted.
    pub(super) fn measure(&self, run: &Run) -> Result<Vec<Replayed>> {
        let folder = scratch()?;
        let (scenarios, duts) = (vec![self.scenario(run)?], self.duts.clone());
        let paths = ProgramPaths::new(run.weir.clone(), tools::os_ken_default_dir());
        let (kind, out) = (TestbedKind::Memory, folder.path().to_owned());
        let campaign = Campaign {
            starts: Some(self.repeats),
            quiet: run.quiet,
            ..Campaign::new(scenarios, duts, kind, paths, out)
        };
        let results = execute(&campaign, &run.cancel)?;
        let Some(found) = results.scenarios.first() else { bail!("no results") };
        let mut all = Vec::new();
        for (value, _) in &self.values {
            for dut in &self.duts {
                all.push(self.replayed(found, value, dut.name())?);
            }
        }
        Ok(all)
    }

    /// Measures it, where it is one value on one switch.
    ///
    /// # Errors
    /// As [`ReplayPlan::measure`].
    pub(super) fn measure_one(&self, run: &Run) -> Result<Replayed> {
        self.measure(run)?.pop().context("no results")
    }

    /// The scenario with these values: as a file, so that what is measured is what it says.
    fn scenario(&self, run: &Run) -> Result<Scenario> {
        let known = catalogue::find(self.scenario)?;
        let [scenario] = &known[..] else { bail!("{} is no single scenario", self.scenario) };
        let mut file: toml::Table = scenario.source.parse().context(scenario.id.clone())?;
        let axis = scenario.axis_infos(false)?.into_iter().next().context("it has no axis")?.name;
        for key in ["quick", "plot"] {
            file.remove(key);
        }
        let base = Settings {
            duration_s: Some(run.window.seconds),
            is_core_time: run.window.is_core_time.then_some(true),
            core: Some(run.core),
            ..Settings::default()
        };
        file.insert("settings".to_owned(), toml::Value::try_from(base)?);
        let value = |(name, set): &(String, Settings)| -> Result<toml::Value> {
            let mut value = toml::Table::new();
            value.insert("name".to_owned(), name.clone().into());
            value.insert("set".to_owned(), toml::Value::try_from(set)?);
            Ok(value.into())
        };
        let values = self.values.iter().map(value).collect::<Result<Vec<_>>>()?;
        let mut table = toml::Table::new();
        table.insert("name".to_owned(), axis.into());
        table.insert("value".to_owned(), values.into());
        file.insert("axis".to_owned(), vec![toml::Value::from(table)].into());
        let text = toml::to_string(&file).context("writing the scenario")?;
        Scenario::from_toml(&text).with_context(|| text)
    }

    fn replayed(&self, found: &ScenarioResults, value: &String, dut: &str) -> Result<Replayed> {
        let is_it = |cell: &&CellResults| cell.dut == dut && cell.at.values().any(|at| at == value);
        let cell = found.cells.iter().find(is_it).context("it is not among the results")?;
        match &cell.state {
            CellState::Measured => {}
            CellState::NotSupported(why)
            | CellState::Missing(why)
            | CellState::Failed(why)
            | CellState::Skipped(why)
            | CellState::Pending(why) => bail!("{dut}: {why}"),
        }
        let (good, failed): (Vec<_>, Vec<_>) =
            cell.trials.iter().cloned().partition(|trial| trial.error.is_none());
        let of = |trial: &TrialRecord| (trial.method.clone(), trial.start);
        let is_made_up = |one: &TrialRecord| good.iter().any(|other| of(other) == of(one));
        if let Some(why) = failed.into_iter().find(|one| !is_made_up(one)) {
            bail!("{dut}: {}", why.error.unwrap_or_default());
        }
        Ok(Replayed { dut: dut.to_owned(), trials: good })
    }
}

/// Outcome of a value on a switch: a trial for each method and repeat.
#[derive(Debug)]
pub(super) struct Replayed {
    pub(super) dut: String,
    trials: Vec<TrialRecord>,
}

impl Replayed {
    /// Millions of packets a second, repeat by repeat.
    pub(super) fn mpps(&self) -> Vec<f64> {
        self.values("replay_mpps")
    }

    /// The values of any metric, repeat by repeat.
    pub(super) fn values(&self, metric: &str) -> Vec<f64> {
        self.trials.iter().filter_map(|trial| trial.values.get(metric).copied()).collect()
    }

    /// The sum of the values.
    pub(super) fn sum(&self, metric: &str) -> f64 {
        self.values(metric).iter().sum()
    }

    /// Further output of the trials under a key, of those that have it.
    ///
    /// # Errors
    /// It is something else.
    pub(super) fn raw<T: DeserializeOwned>(&self, key: &str) -> Result<Vec<T>> {
        let all = self.trials.iter().filter_map(|trial| trial.raw.get(key).cloned());
        all.map(|one| serde_json::from_value(one).with_context(|| key.to_owned())).collect()
    }

    /// The same with as many digits as they have.
    pub(super) fn samples(&self) -> Vec<f64> {
        self.mpps().into_iter().map(rounded).collect()
    }

    /// Packets that came in and did not leave.
    pub(super) fn lost(&self) -> i64 {
        self.sum("replay_lost") as i64
    }

    /// Number of windows that were measured again.
    pub(super) fn again(&self) -> usize {
        let again = self.trials.iter().filter_map(|trial| trial.raw["again"].as_u64());
        again.sum::<u64>() as usize
    }

    /// Another value, of the first trial.
    pub(super) fn value(&self, metric: &str) -> Option<f64> {
        self.values(metric).first().copied()
    }

    /// Another number, of the first trial.
    pub(super) fn number(&self, key: &str) -> f64 {
        self.trials.first().and_then(|trial| trial.raw[key].as_f64()).unwrap_or(0.0)
    }

    /// The times and caches of the forwarding threads from the first window to the last.
    pub(super) fn stages(&self) -> Vec<Figures> {
        self.between(figures::between)
    }

    /// The levels of the lookup from the first window to the last.
    pub(super) fn levels(&self) -> Vec<Level> {
        self.between(figures::levels)
    }

    fn between<T>(&self, of: fn(&serde_json::Value, &serde_json::Value) -> Vec<T>) -> Vec<T> {
        let (Some(first), Some(last)) = (self.trials.first(), self.trials.last()) else {
            return Vec::new();
        };
        let (before, after) = (&first.raw["workers"][0], &last.raw["workers"][1]);
        if after.is_null() { Vec::new() } else { of(before, after) }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{ReplayPlan, weir};
    use crate::bench::common::{Common, Run};
    use crate::settings::{CacheSet, Forwarding, Settings};

    fn run(work: impl FnOnce(&Run)) {
        let weir = Some(PathBuf::from("/nonexistent/weir"));
        let core = netdev::sys::affinity::allowed_cpus().unwrap()[0] as u16;
        let common = Common { core, seconds: 0.5, repeats: 3, json: true, quiet: true, weir };
        let code = common.run(0, |run| {
            work(run);
            Ok(())
        });
        code.unwrap();
    }

    #[test]
    fn a_scenario_has_the_values_that_are_asked_for() {
        let set = |caches| Settings { caches: Some(caches), ..Settings::default() };
        let io = Settings { forwarding: Some(Forwarding::Io), ..Settings::default() };
        let plan = ReplayPlan {
            scenario: "datapath-tiers",
            values: vec![("a".into(), set(CacheSet::Key)), ("b".into(), io)],
            duts: vec![weir().unwrap()],
            repeats: 2,
        };
        run(|run| {
            let scenario = plan.scenario(run).unwrap();
            let cells = scenario.cells(false).unwrap();
            assert_eq!((cells.len(), scenario.is_held), (2, true));
            assert_eq!(cells[0].settings.caches(), CacheSet::Key);
            assert_eq!(
                (cells[1].settings.duration_s(), cells[1].settings.core),
                (0.5, Some(run.core))
            );
            assert_eq!(cells[1].settings.forwarding(), Forwarding::Io);
        });
    }

    #[test]
    fn a_switch_that_does_not_start_is_no_figure() {
        let replay = crate::settings::Replay { flows: Some(1), entries: Some(1), ..<_>::default() };
        let made = Settings { replay: Some(replay), ..Settings::default() };
        let plan = ReplayPlan {
            scenario: "datapath-rate",
            values: vec![("made".to_owned(), made)],
            duts: vec![weir().unwrap()],
            repeats: 1,
        };
        run(|run| {
            let error = plan.measure(run).unwrap_err().to_string();
            assert!(error.starts_with("weir-busy: ") && error.contains("weir"), "{error}");
        });
    }
}
