//! The plan of a campaign: a list of jobs, each a start of a subject and the points it serves.
//!
//! Progress, estimate, `--resume` and a pool of machines are this list. A subject is a switch, or
//! the link in its place whose figures are the lab's own floor. Switches take turns at every group
//! of points: a machine that grows slower or busier does so for all of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::ledger::{LEDGER_FORMAT, LedgerHead};
use super::scenario::{PLAN_MAX, Scenario, ScenarioError};
use crate::ceilings;
use crate::dut::{self, Dut, controller};
use crate::facts;
use crate::method::Method;
use crate::names;
use crate::results::{CellState, Coordinates, Metric, ScenarioCell, ScenarioResults};
use crate::service::ProgramPaths;
use crate::settings::{Forwarding, Settings};
use crate::setup::TestbedKind;

/// About how long the testbed takes to make, and how many flow entries are loaded in a second.
const BED_COST: Duration = Duration::from_millis(150);
const ENTRIES_A_SECOND: f64 = 80_000.0;

/// Order for a campaign. What it leaves open: own numbers of starts, no limit, no note, every job.
#[derive(Clone, Default)]
pub struct Campaign {
    /// The scenarios, in order.
    pub scenarios: Vec<Scenario>,
    /// The switches, in the order of the tables.
    pub duts: Vec<&'static Dut>,
    /// Whether the scenarios are quick forms.
    pub is_quick: bool,
    /// Starts of each switch in each cell, where it is not the scenario's own number.
    pub starts: Option<usize>,
    /// The time that it may take.
    pub limit: Option<Duration>,
    /// The testbed.
    pub kind: TestbedKind,
    /// Paths.
    pub paths: ProgramPaths,
    /// Folder of the ledger.
    pub folder: PathBuf,
    /// Whether an earlier campaign is gone on with.
    pub is_resumed: bool,
    /// The one job of its plan that is measured, from 0; none for all of them.
    pub job: Option<usize>,
    /// Notes for the reader, known beforehand.
    pub notes: Vec<String>,
    /// Shows no progress.
    pub quiet: bool,
}

impl Campaign {
    /// The points of a scenario on the campaign's testbed: wires in memory have no rates.
    fn cells(&self, scenario: &Scenario) -> Vec<ScenarioCell> {
        let mut cells = scenario.cells();
        let mut floors: BTreeMap<String, Coordinates> = BTreeMap::new();
        for cell in &mut cells {
            if self.kind == TestbedKind::Memory {
                (cell.settings.port_rate, cell.settings.control_rate) = (None, None);
            }
            let first = floors.entry(format!("{:?}", cell.settings.traffic()));
            cell.floor_at = first.or_insert_with(|| cell.at.clone()).clone();
            cell.bounds = ceilings::upper_limits(&cell.settings);
        }
        cells
    }

    /// Whether there is something to measure and the plan fits into the memory; else why not.
    pub fn check_size(&self) -> Result<(), ScenarioError> {
        let mut is_empty = true;
        for scenario in &self.scenarios {
            let (starts, switches) = (self.starts(scenario), self.duts.len());
            let cells = scenario.cells();
            let has = |dut: &&'static Dut| {
                cells.iter().any(|cell| !cell.without.iter().any(|of| of == dut.name))
            };
            is_empty &= !self.duts.iter().any(has);
            let cells = cells.len();
            if starts.saturating_mul(cells).saturating_mul(switches) > PLAN_MAX {
                let what = format!("{starts} starts of {switches} switches in {cells} cells");
                let why = format!("{}: {what}: {PLAN_MAX} in all at most", scenario.id);
                return Err(ScenarioError(why));
            }
        }
        if is_empty {
            let why =
                "no cell is left to measure: `without` leaves out every one of these switches";
            return Err(ScenarioError(why.to_owned()));
        }
        Ok(())
    }

    /// Starts of each switch in each cell of a scenario.
    pub(super) fn starts(&self, scenario: &Scenario) -> usize {
        self.starts.unwrap_or_else(|| scenario.starts())
    }

    /// Time until which headline figures get further starts, of a plan that takes `cost`: the
    /// limit, or else that time. None of a quick run without a limit, of a single job, where the
    /// number of starts was chosen, or where there is nothing to compare.
    pub fn further_limit(&self, cost: Duration) -> Option<Duration> {
        let is_wanted = self.job.is_none() && self.starts.is_none() && self.duts.len() > 1;
        let limit = self.limit.or_else(|| (!self.is_quick).then_some(cost));
        limit.filter(|limit| is_wanted && *limit >= cost)
    }

    /// Whether what has a floor is measured on a wire too.
    pub(super) fn has_floor(&self) -> bool {
        self.kind == TestbedKind::Kernel
    }
}

/// A start of a subject, and what it serves: points that differ in the traffic only.
#[derive(Clone)]
pub(super) struct Job<'a> {
    pub(super) campaign: &'a Campaign,
    pub(super) scenario: &'a Scenario,
    pub(super) dut: &'static Dut,
    pub(super) start: usize,
    pub(super) methods: Vec<&'static Method>,
    pub(super) cells: Vec<ScenarioCell>,
}

impl Job<'_> {
    /// Settings of the start, which all points share.
    pub(super) fn setup(&self) -> &Settings {
        &self.cells[0].settings
    }

    /// Whether its subject is the lab's own floor.
    pub(super) fn is_floor(&self) -> bool {
        self.dut.name == dut::FLOOR.name
    }

    /// Number of a method's turns at a point.
    pub(super) fn steps(&self) -> u64 {
        (self.cells.len() * self.methods.len()) as u64
    }

    /// About how long it takes.
    pub(super) fn cost(&self) -> Duration {
        let of_cell = |cell: &ScenarioCell| -> Duration {
            let of_method = |method: &&'static Method| {
                let settings = self.scenario.settings_of(method, &cell.settings);
                (method.cost)(&settings) * self.scenario.trials(method) as u32
            };
            self.methods.iter().map(of_method).sum()
        };
        self.start_cost() + self.cells.iter().map(of_cell).sum::<Duration>()
    }

    /// About how long the switch takes to start and to end, with its controller and flow entries.
    fn start_cost(&self) -> Duration {
        let settings = self.setup();
        let entries = settings.flow_count() as f64 / ENTRIES_A_SECOND;
        let controller = controller_of(settings).and_then(Result::ok);
        let controller = controller.map_or(Duration::ZERO, |controller| controller.start_cost);
        let bridges = self.dut.bridge_cost * settings.bridges() as u32;
        let switches = (self.dut.start_cost + bridges) * settings.line() as u32;
        BED_COST + switches + controller + Duration::from_secs_f64(entries)
    }

    /// Whether its switch can run with these settings at all, whatever is installed, and this
    /// machine has a core for each thread that forwards.
    pub(super) fn check_fit(&self) -> Result<(), CellState> {
        let only = &self.scenario.switches;
        if !only.is_empty() && !self.is_floor() && !only.iter().any(|it| it == self.dut.name) {
            let what = format!("this scenario is about {}", only.join(", "));
            return Err(CellState::NotSupported(what));
        }
        let settings = self.setup();
        if settings.fleet.is_some() && !self.dut.is_controller {
            return Err(CellState::NotSupported("is no controller".to_owned()));
        }
        let fits = (self.dut.check)(self.dut, settings, &self.campaign.paths);
        fits.map_err(CellState::NotSupported)?;
        let (threads, cores) = (usize::from(settings.workers.unwrap_or(1)), facts::cores());
        if threads > cores {
            let what = format!("needs a core for each worker, and the machine has {cores}");
            return Err(CellState::Missing(what));
        }
        Ok(())
    }

    /// The positions of its points.
    pub(super) fn at(&self) -> Vec<Coordinates> {
        self.cells.iter().map(|cell| cell.at.clone()).collect()
    }
}

/// The controller that decides, where one does.
pub(super) fn controller_of(settings: &Settings) -> Option<Result<&'static Dut, CellState>> {
    if settings.forwarding() != Forwarding::Controller {
        return None;
    }
    let name = settings.controller.as_deref().unwrap_or("weir");
    Some(controller::find(name).ok_or_else(|| {
        let known = controller::ALL.iter().map(|one| one.name);
        CellState::Failed(names::unknown("controller", name, known))
    }))
}

/// The jobs of a campaign, in order.
pub(super) fn jobs(campaign: &Campaign, has_floor: bool) -> Vec<Job<'_>> {
    let mut jobs = Vec::new();
    for scenario in &campaign.scenarios {
        let cells = campaign.cells(scenario);
        let methods = scenario.methods();
        let floor = floor(campaign, scenario, &cells);
        let floor = Some(floor).filter(|floor| has_floor && floor.steps() > 0);
        let groups = groups(&cells);
        for start in 0..campaign.starts(scenario) {
            jobs.extend(floor.clone().map(|job| Job { start, ..job }));
            let mut turns = Vec::new();
            for group in &groups {
                for dut in &campaign.duts {
                    let has = |cell: &&ScenarioCell| cell.without.iter().all(|of| of != dut.name);
                    let cells: Vec<_> = group.iter().copied().filter(has).cloned().collect();
                    let methods = methods.clone();
                    if !cells.is_empty() {
                        turns.push(Job { campaign, scenario, dut, start, methods, cells });
                    }
                }
            }
            if scenario.is_held && start % 2 == 1 {
                // A B B A: what changes steadily falls on all alike.
                turns.reverse();
            }
            jobs.append(&mut turns);
        }
    }
    jobs
}

/// The first start of the lab's own floor: the methods that have one, at the points that differ in
/// what is sent.
fn floor<'a>(campaign: &'a Campaign, scenario: &'a Scenario, cells: &[ScenarioCell]) -> Job<'a> {
    let mut methods = scenario.methods();
    methods.retain(|method| !method.floors.is_empty());
    let joined = |cell: &ScenarioCell| {
        let settings = cell.settings.traffic();
        ScenarioCell { settings, ..cell.clone() }
    };
    let cells = cells.iter().filter(|cell| cell.floor_at == cell.at).map(joined).collect();
    Job { campaign, scenario, dut: dut::FLOOR, start: 0, methods, cells }
}

/// The points in groups that one start serves, each in the order of its first.
fn groups(cells: &[ScenarioCell]) -> Vec<Vec<&ScenarioCell>> {
    let mut groups: Vec<Vec<&ScenarioCell>> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for cell in cells {
        let group = *known.entry(format!("{:?}", cell.settings.setup())).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(cell);
    }
    groups
}

/// The first line of a campaign's ledger: all that a reader needs to know of it.
pub(super) fn head(campaign: &Campaign) -> LedgerHead {
    let (is_quick, testbed) = (campaign.is_quick, campaign.kind);
    let scenarios = campaign.scenarios.iter().map(|scenario| scenario_head(campaign, scenario));
    LedgerHead { format: LEDGER_FORMAT, is_quick, testbed, scenarios: scenarios.collect() }
}

fn scenario_head(campaign: &Campaign, scenario: &Scenario) -> ScenarioResults {
    let mut cells = campaign.cells(scenario);
    let methods = scenario.methods();
    let metrics: Vec<Metric> = methods.iter().flat_map(|method| method.metrics).cloned().collect();
    let trials = methods.iter().map(|method| (method.id.to_owned(), scenario.trials(method)));
    let conditions = conditions(campaign, &cells);
    for cell in &mut cells {
        // No line has them, so that a head that is read is the same.
        cell.settings = Settings::default();
        cell.bounds.retain(|of| metrics.iter().any(|info| info.id == of.metric));
    }
    ScenarioResults {
        id: scenario.id.clone(),
        evaluation: scenario.evaluation.clone(),
        title: scenario.title.clone(),
        question: scenario.question.clone(),
        background: scenario.background.clone(),
        source: scenario.source.clone(),
        is_held: scenario.is_held,
        starts: scenario.starts(),
        trials: trials.filter(|(_, trials)| *trials > 1).collect(),
        conditions,
        axes: scenario.axis_infos(),
        points: cells,
        metrics,
        plots: scenario.plots.clone(),
        published: scenario.published.clone(),
        cells: Vec::new(),
    }
}

/// Under what a scenario is measured: the testbed, and each single value of the settings that all
/// cells share.
fn conditions(campaign: &Campaign, cells: &[ScenarioCell]) -> Coordinates {
    let is_replay = |cell: &ScenarioCell| cell.settings.replay.is_some();
    let testbed = match campaign.kind {
        _ if cells.iter().all(is_replay) => "a trace that each switch replays by itself",
        TestbedKind::Kernel => "network namespaces joined by veth",
        TestbedKind::Memory => "ports in memory",
    };
    let mut conditions = Coordinates::from([("testbed".to_owned(), testbed.to_owned())]);
    let first = cells.first().map(|cell| json!(cell.settings));
    let mut shared = first.and_then(|first| first.as_object().cloned()).unwrap_or_default();
    // Lists, such as the flow entries, stand with the commands of each cell.
    shared.retain(|_, value| !value.is_array() && !value.is_object() && !value.is_null());
    for cell in cells {
        let values = json!(cell.settings);
        shared.retain(|key, value| values[key.as_str()] == *value);
    }
    for (key, value) in shared {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        conditions.insert(key, text);
    }
    conditions
}

/// The jobs of a campaign, a line of JSON each, with the number for `weir lab run --job`.
pub fn listed(campaign: &Campaign) -> String {
    let jobs = jobs(campaign, campaign.has_floor());
    let line = |(number, job): (usize, &Job<'_>)| {
        let (scenario, dut, start, at) = (&job.scenario.id, job.dut.name, job.start, job.at());
        let line = json!({
            "job": number, "scenario": scenario, "dut": dut, "start": start, "at": at,
        });
        format!("{line}\n")
    };
    jobs.iter().enumerate().map(line).collect()
}

/// A table of the scenarios of a campaign: starts of switches, and about how long each takes. It is
/// no bound: a program may be missing, and trials in which the machine stalls are repeated.
pub fn planned(campaign: &Campaign) -> String {
    let mut jobs = jobs(campaign, campaign.has_floor());
    jobs.retain(|job| job.check_fit().is_ok());
    let time = |duration: Duration| {
        let seconds = duration.as_secs_f64().round() as u64;
        format!("{:3}:{:02}\n", seconds / 60, seconds % 60)
    };
    let row = |name: &str, is_of: &dyn Fn(&&Job<'_>) -> bool| {
        let starts = jobs.iter().filter(is_of).filter(|job| !job.is_floor()).count();
        let cost = jobs.iter().filter(is_of).map(Job::cost).sum();
        (format!("{name:24} {starts:6} starts  about {}", time(cost)), cost)
    };
    let scenarios = campaign.scenarios.iter();
    let rows = scenarios.map(|of| row(&of.id, &|job| job.scenario.id == of.id).0);
    let (all, cost) = row("all", &|_| true);
    let further = campaign.further_limit(cost).map(|limit| {
        let what = "further starts of headlines, until a ratio's interval is within 5 % of it:";
        format!("{what}\n{:38} until {}", "", time(limit))
    });
    rows.chain([all]).chain(further).collect()
}

#[cfg(test)]
mod tests {
    use super::{Campaign, groups};
    use crate::campaign::fake::{TWO_POINTS, campaign};
    use crate::results::ScenarioCell;
    use crate::settings::Settings;

    #[test]
    fn a_plan_that_does_not_fit_into_the_memory_is_refused() {
        let sizes: Vec<String> = (64..165).map(|size| size.to_string()).collect();
        let text = TWO_POINTS.replace("64, 128", &sizes.join(", "));
        let plan = campaign(&text, std::path::Path::new(""));
        assert_eq!(plan.check_size(), Ok(()));
        let error = Campaign { starts: Some(1_000), ..plan }.check_size().unwrap_err();
        let why = "fakes: 1000 starts of 1 switches in 101 cells: 100000 in all at most";
        assert_eq!(error.to_string(), why);
    }

    #[test]
    fn a_plan_without_cells_is_refused() {
        for all in [
            "[[without]]\nsize = \"64\"\n[[without]]\nsize = \"128\"\n",
            "[[without]]\ndut = \"fake-switch\"\n",
        ] {
            let plan = campaign(&format!("{TWO_POINTS}{all}"), std::path::Path::new(""));
            let error = plan.check_size().unwrap_err().to_string();
            assert!(error.starts_with("no cell is left to measure"), "{error}");
        }
    }

    #[test]
    fn cells_of_one_start_stand_together() {
        let cell = |flow: &str, frame_size| ScenarioCell {
            settings: Settings {
                flows: Some(vec![flow.to_owned()]),
                frame_size: Some(frame_size),
                ..Settings::default()
            },
            ..ScenarioCell::default()
        };
        let cells = [cell("a", 64), cell("b", 64), cell("a", 128), cell("b", 128)];
        let [a, b, c, d] = &cells;
        assert_eq!(groups(&cells), [[a, c], [b, d]]);
    }
}
