//! Results of a run, as data: every row with its raw samples and its conditions.
//!
//! It is a view of a ledger (`campaign::record`), which is the file of a run. Every form (terminal,
//! lines, Markdown, HTML, JSON, comparison) is drawn from it and adds nothing. A row must never
//! stand without its samples, and a cell that was not measured must never stand without its reason.

use std::borrow::Cow;
use std::collections::BTreeMap;

use programs::tools::Program;
use serde::{Deserialize, Serialize};

use crate::facts::Machine;
use crate::limit::{Limit, Part};
use crate::load::Load;
use crate::settings::Settings;
use stats::{Comparison, Figure, Observed};

/// Version of the JSON form.
pub const FORMAT: u32 = 4;

/// The good direction of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// The values of a cell on the axes of its scenario, by the axes' names.
pub type Coordinates = BTreeMap<String, String>;

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Results {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of the lab that measured.
    pub weir: String,
    /// When it started, UTC.
    pub started: String,
    /// Duration, seconds; of several parts, their sum.
    pub duration_s: f64,
    /// The command that was typed.
    pub command: Vec<String>,
    /// Whether durations and starts were those of `--quick`.
    pub is_quick: bool,
    /// The machine; of several, the one that made most of the trials.
    pub machine: Machine,
    /// Every machine that measured, where there were several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<Machine>,
    /// The parts of a run that was resumed, or measured job by job, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<RunPart>,
    /// Every program that took part.
    pub programs: Vec<Program>,
    /// The switches under test.
    pub switches: Vec<DutInfo>,
    /// The scenarios with their results.
    pub scenarios: Vec<ScenarioResults>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The rule by which limiting parts are named.
    pub rule: String,
}

/// A part of a run: from its start, or from a `--resume`, to where it ended; or one of its jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPart {
    /// When it began, UTC.
    pub started: String,
    /// The command that was typed.
    pub command: Vec<String>,
    /// The version of the lab.
    pub weir: String,
    /// The machine.
    pub machine: Machine,
    /// The programs that take part.
    pub programs: Vec<Program>,
    /// The switches, in the order of the tables.
    pub switches: Vec<DutInfo>,
    /// Starts of each switch in each cell, where it is not the scenario's own number.
    pub starts: Option<usize>,
    /// The one job that is measured, from 0, and the number of jobs; none for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<(usize, usize)>,
    /// Duration, seconds; none at its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// The way it ended; none at its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<PartEnd>,
}

/// The way a part of a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartEnd {
    /// It is through.
    Whole,
    /// By a signal; everything was taken down.
    Interrupted,
    /// Nobody wrote how: it was killed, or the machine went down; or it still runs.
    CutOff,
}

/// A switch under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DutInfo {
    /// Its name on the command line.
    pub name: String,
    /// One sentence about it.
    pub about: String,
}

/// One scenario. Without cells it is what a ledger's first line says of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioResults {
    /// Its name on the command line.
    pub id: String,
    /// The published evaluation that it belongs to, `E4`; none for a question of our own.
    pub evaluation: Option<String>,
    /// Its title.
    pub title: String,
    /// The question.
    pub question: String,
    /// Conclusions of the published evaluation, and the arithmetic that a reader needs.
    pub background: String,
    /// The scenario file as it was run, so that it can be run again.
    pub source: String,
    /// Whether one start of each switch served all turns: its rows have turns for starts.
    pub is_held: bool,
    /// Starts of each switch at each point.
    pub starts: usize,
    /// Trials of a method in each start, where there are several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trials: BTreeMap<String, usize>,
    /// Under what it was measured, by name: testbed, durations, rates, seeds, starts.
    pub conditions: BTreeMap<String, String>,
    /// The axes, in order.
    pub axes: Vec<AxisInfo>,
    /// Every metric of the rows, in order.
    pub metrics: Vec<Metric>,
    /// The plots that its author wants.
    pub plots: Vec<Plot>,
    /// Figures of the published evaluation.
    pub published: Vec<Published>,
    /// The points of the axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<ScenarioCell>,
    /// The cells: each switch at each point of the axes.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<CellResults>,
}

/// A point of the axes, as it is known before anything is measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioCell {
    /// Position on the axes.
    pub at: Coordinates,
    /// Settings of the set-up: a plan has them, and a ledger those of the scenario's text.
    #[serde(skip)]
    pub settings: Settings,
    /// The first point with the same traffic, at which its floor is measured.
    pub floor_at: Coordinates,
    /// The switches that are left out here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Upper limits of the metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<UpperLimit>,
}

/// An axis: a named list of values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AxisInfo {
    /// Its name, a key of [`Coordinates`].
    pub name: String,
    /// Its name in tables and plots.
    pub label: String,
    /// Its unit, empty where it has none.
    pub unit: String,
    /// The values, in order.
    pub values: Vec<String>,
}

/// A figure that a method yields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// Its key.
    pub id: Cow<'static, str>,
    /// Its name in tables.
    pub label: Cow<'static, str>,
    /// Its unit.
    pub unit: Cow<'static, str>,
    /// The good direction.
    pub better: Better,
    /// Decimals that are printed.
    pub decimals: usize,
}

impl Metric {
    const fn new(texts: [&'static str; 3], better: Better, decimals: usize) -> Self {
        let [id, label, unit] = texts;
        let (id, label, unit) = (Cow::Borrowed(id), Cow::Borrowed(label), Cow::Borrowed(unit));
        Self { id, label, unit, better, decimals }
    }

    /// A figure of which more is better.
    pub(crate) const fn higher(
        id: &'static str,
        label: &'static str,
        unit: &'static str,
        decimals: usize,
    ) -> Self {
        Self::new([id, label, unit], Better::Higher, decimals)
    }

    /// A figure of which less is better.
    pub(crate) const fn lower(
        id: &'static str,
        label: &'static str,
        unit: &'static str,
        decimals: usize,
    ) -> Self {
        Self::new([id, label, unit], Better::Lower, decimals)
    }
}

/// Kind of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// A bar for each switch and value of `x`, with ranges and single starts.
    Bars,
    /// A line over a numeric axis `x`.
    Sweep,
    /// The distribution of a metric.
    Cdf,
}

/// A plot that the scenario's author wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Its kind.
    pub kind: PlotKind,
    /// The metric.
    pub metric: String,
    /// The axis along x; none for a CDF.
    pub x: Option<String>,
    /// Whether the metric's scale is logarithmic.
    #[serde(default)]
    pub log: bool,
}

/// A figure of the published evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The switch, as published.
    pub switch: String,
    /// Position on the axes; an axis that is not named is any value.
    #[serde(default)]
    pub at: Coordinates,
    /// The metric.
    pub metric: String,
    /// The figure, or the lower end of its range, in the metric's unit.
    pub value: f64,
    /// The upper end of its range.
    pub to: Option<f64>,
}

/// State of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "reason")]
pub enum CellState {
    /// It was measured; single trials may still have failed.
    Measured,
    /// The switch cannot do this.
    NotSupported(String),
    /// A program is missing on this machine.
    Missing(String),
    /// Switch, controller or testbed did not start, or no trial gave a figure.
    Failed(String),
    /// There was no time left.
    Skipped(String),
    /// The run has not come to it yet, or was cut off before.
    Pending(String),
}

/// Word of a cell whose switch cannot do what is asked.
pub const NOT_SUPPORTED: &str = "not supported";

impl Default for CellState {
    fn default() -> Self {
        Self::Pending("the run has not come to it".to_owned())
    }
}

impl CellState {
    /// The words instead of a figure, and the reason; none where it was measured.
    pub fn absence(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Measured => None,
            Self::NotSupported(reason) => Some((NOT_SUPPORTED, reason)),
            Self::Missing(reason) => Some(("missing here", reason)),
            Self::Failed(reason) => Some(("failed", reason)),
            Self::Skipped(reason) => Some(("no time left", reason)),
            Self::Pending(reason) => Some(("not measured", reason)),
        }
    }
}

/// A switch at one point of the axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CellResults {
    /// The switch's name.
    pub dut: String,
    /// Position on the axes.
    pub at: Coordinates,
    /// Its state.
    #[serde(flatten)]
    pub state: CellState,
    /// The figures: one for each metric that has a sample.
    pub rows: Vec<ResultRow>,
    /// Upper limits of the metrics, known before anything is measured.
    pub bounds: Vec<UpperLimit>,
    /// The distributions, of all starts.
    pub distributions: Vec<MeasuredDistribution>,
    /// The commands that started switch and controller, and the flow entries' first lines.
    pub commands: Vec<String>,
    /// Every trial, in order, those that failed too.
    pub trials: Vec<TrialRecord>,
}

/// The most that a metric can be, by arithmetic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpperLimit {
    /// The metric's key.
    pub metric: String,
    /// The figure, in the metric's unit.
    pub value: f64,
    /// By what: "ports", "control link".
    pub by: String,
}

/// One metric of one cell with its samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultRow {
    /// The metric's key.
    pub metric: String,
    /// A value for each start that yielded one, in their order: the median of its trials.
    pub samples: Vec<f64>,
    /// The number of the start of each value.
    pub starts: Vec<usize>,
    /// For each sample the lowest and the highest value that agree with what its trial saw, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resolutions: Vec<(f64, f64)>,
    /// The lab's own floor of this metric on this testbed, same unit: measured without a switch.
    pub floor: Option<f64>,
    /// The reach of the error of two boxes' clocks, same unit; the resolutions hold it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_error: Option<f64>,
}

/// The distribution of a metric in one start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredDistribution {
    /// The metric's key.
    pub metric: String,
    /// The start of the switch, from 0.
    pub start: usize,
    /// Number of its values.
    pub count: u64,
    /// Share and value, both ascending: `[0.5, 12.3]` is the median, in the metric's unit.
    pub quantiles: Vec<(f64, f64)>,
}

/// One trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// The method's key.
    pub method: String,
    /// The start of the switch, from 0.
    pub start: usize,
    /// The trial of its method in that start, from 0.
    pub trial: usize,
    /// Number of this attempt at the trial, from 0: one in which the machine stalled is made again.
    pub attempt: usize,
    /// The program that measured.
    pub tool: String,
    /// The machine that measured, as its [`Machine::id`] says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// Milliseconds in which the machine ran none of the lab's threads, the longest.
    pub stall_ms: f64,
    /// The box of an agent at which that was; none for the lab's own machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_at: Option<String>,
    /// Why it was left out: a stall of the machine, an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The values, by metric.
    pub values: BTreeMap<String, f64>,
    /// The lowest and the highest value that agree with what was seen, where they differ.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resolutions: BTreeMap<String, (f64, f64)>,
    /// The load of every part.
    pub load: Option<Load>,
    /// The limiting part.
    pub limit: Option<Limit>,
    /// Packets that a tier inside the kernel decided meanwhile, where the switch may use one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier_hits: Option<u64>,
    /// Why that is not known, in the words of who was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier_error: Option<String>,
    /// Distributions of its metrics; of a trial in results, those of its cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distributions: Vec<MeasuredDistribution>,
    /// Further output of the program.
    pub raw: serde_json::Value,
}

impl CellResults {
    /// The row of a metric, if it has samples.
    pub fn row(&self, metric: &str) -> Option<&ResultRow> {
        self.rows.iter().find(|row| row.metric == metric)
    }

    /// The limiting part that most trials of `method` share, with the words of the first of them.
    pub fn limit(&self, method: &str) -> Option<&Limit> {
        let limits = || {
            let of_method = self.trials.iter().filter(|trial| trial.method == method);
            of_method.filter_map(|trial| trial.limit.as_ref())
        };
        let count = |part: Part| limits().filter(|limit| limit.part == part).count();
        let most = limits().map(|limit| count(limit.part)).max()?;
        limits().find(|limit| count(limit.part) == most)
    }
}

impl ResultRow {
    /// The values by their starts.
    pub fn observed(&self) -> BTreeMap<usize, Observed> {
        let one = |(at, (start, value)): (usize, (&usize, &f64))| {
            let (low, high) = self.resolutions.get(at).copied().unwrap_or((*value, *value));
            (*start, Observed { value: *value, low, high })
        };
        self.starts.iter().zip(&self.samples).enumerate().map(one).collect()
    }

    /// The median of the starts with their range; none where a value is not finite.
    pub fn figure(&self) -> Option<Figure> {
        Figure::of(&self.observed().into_values().collect::<Vec<_>>())
    }

    /// This row beside another by the starts that both have; none where there are less than two.
    pub fn beside(&self, other: &Self) -> Option<Comparison> {
        let (ours, theirs) = (self.observed(), other.observed());
        let pair = |(start, ours): (usize, Observed)| Some((ours, *theirs.get(&start)?));
        Comparison::of(&ours.into_iter().filter_map(pair).collect::<Vec<_>>())
    }
}

impl ScenarioResults {
    /// Its title, or its name on the command line where it has none.
    pub fn name(&self) -> &str {
        if self.title.is_empty() { &self.id } else { &self.title }
    }

    /// The metric of that key.
    pub fn metric(&self, id: &str) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.id == id)
    }

    /// The published figures that hold for a cell at `at`.
    pub fn published_at<'a>(
        &'a self,
        at: &'a Coordinates,
        metric: &'a str,
    ) -> impl Iterator<Item = &'a Published> {
        self.published.iter().filter(move |figure| {
            figure.metric == metric
                && figure.at.iter().all(|(axis, value)| at.get(axis) == Some(value))
        })
    }
}

impl Results {
    /// Whether nothing failed that could be tried. What is missing on this machine, what a switch
    /// does not support, and what there was no time for, is no failure.
    pub fn is_whole(&self) -> bool {
        let mut cells = self.scenarios.iter().flat_map(|scenario| &scenario.cells);
        !cells.any(|cell| matches!(cell.state, CellState::Failed(_) | CellState::Pending(_)))
    }
}
