//! The report: everything that a run found, as data; its forms are in the modules below.
//!
//! The JSON form is this structure, raw samples included; the terminal's table and the HTML page
//! are drawn from it and add nothing. It must never hold a figure without its samples.

pub mod html;
mod plot;
#[cfg(test)]
mod sample;
pub mod table;

use openflow::Version;
use serde::{Deserialize, Serialize};

use crate::ceilings::Ceilings;
use crate::controller::AppKind;
use crate::facts::Machine;
use crate::limit::{Limit, Part};
use crate::load::Load;
use crate::method::{Better, Method, Metric, Timing};
use crate::rate::{self, LinkRate};
use crate::settings::{Forwarding, RateText, Settings};
use crate::stats::{CONFIDENCE, Interval, Reported, Summary, ratio_of_means, summarise};
use crate::tools::Program;

/// Version of the JSON form.
pub const FORMAT: u32 = 1;

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's question.
    pub question: String,
    /// When it started, UTC.
    pub started: String,
    /// How long it took, seconds.
    pub duration_s: f64,
    /// How often each cell was to be measured.
    pub repeats: usize,
    /// How often the methods that do not load the path were to measure in each cell.
    pub idle_repeats: usize,
    /// Durations and rates of the methods.
    pub timing: Timing,
    /// The machine.
    pub machine: Machine,
    /// Every program that took part.
    pub programs: Vec<Program>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// The rule by which limiting parts are named.
    pub rule: String,
    /// The cells of the matrix.
    pub cells: Vec<Cell>,
}

impl Report {
    /// Whether nothing failed that could be tried: each cell that was set up has figures. What is
    /// missing on this machine, and what there was no time for, is no failure.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.cells.iter().all(|cell| match cell.state {
            State::Measured | State::Missing(_) | State::Skipped(_) => true,
            State::Failed(_) => false,
        })
    }
}

/// What a cell is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellKey {
    /// The switch under test.
    pub dut: String,
    /// The controller.
    pub controller: String,
    /// What the controller does.
    pub app: AppKind,
    /// OpenFlow version.
    #[serde(with = "rate::release")]
    pub version: Version,
    /// Rate of the hosts' links.
    pub port_rate: LinkRate,
    /// Rate of the control link.
    pub control_rate: LinkRate,
}

impl CellKey {
    /// Switch, controller and application in one line.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} + {} {}", self.dut, self.controller, self.app)
    }

    /// How such a cell is set up.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings {
            forwarding: Some(Forwarding::Controller),
            version: Some(self.version.row().release.to_owned()),
            app: Some(self.app),
            port_rate: Some(RateText(self.port_rate)),
            control_rate: Some(RateText(self.control_rate)),
            ..Settings::default()
        }
    }
}

/// How far a cell came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "reason")]
pub enum State {
    /// It was measured; single measurements may still have failed.
    Measured,
    /// A program is missing, or the testbed cannot carry the switch.
    Missing(String),
    /// Switch, controller or testbed did not start.
    Failed(String),
    /// There was no time left.
    Skipped(String),
}

/// A cell of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What it is about.
    #[serde(flatten)]
    pub key: CellKey,
    /// How far it came.
    pub state: State,
    /// What the links allow at most.
    pub ceilings: Ceilings,
    /// The commands that started switch and controller.
    pub commands: Vec<String>,
    /// Its measurements, one for each method.
    pub measurements: Vec<Measurement>,
}

/// All repeats of one method in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The method's key.
    pub method: String,
    /// The method's name.
    pub label: String,
    /// The programs that measured.
    pub tools: Vec<String>,
    /// The commands that they were started with.
    pub commands: Vec<String>,
    /// Why the method could not be applied here, if so.
    pub unfit: Option<String>,
    /// Repeats that yielded nothing, and why.
    pub errors: Vec<String>,
    /// The part that limited most of the repeats; `None` for methods that do not load the path.
    pub limit: Option<Limit>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Load and raw data of each repeat.
    pub samples: Vec<SampleRecord>,
}

/// One repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleRecord {
    /// Number of the repeat, from 0.
    pub repeat: usize,
    /// The load of every part.
    pub load: Option<Load>,
    /// The limiting part of this repeat.
    pub limit: Option<Limit>,
    /// What else the program said.
    pub raw: serde_json::Value,
}

/// One figure with its samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Key.
    pub id: String,
    /// Name.
    pub label: String,
    /// Unit.
    pub unit: String,
    /// Which way it is good.
    pub better: Better,
    /// Decimals that are printed.
    pub decimals: usize,
    /// The samples, in order of the repeats that yielded one.
    pub samples: Vec<f64>,
    /// Mean, interval and the rest; `None` without samples.
    pub summary: Option<Summary>,
}

impl Figure {
    /// A figure of `metric` without samples.
    #[must_use]
    pub fn new(metric: &Metric) -> Self {
        Self {
            id: metric.id.to_owned(),
            label: metric.label.to_owned(),
            unit: metric.unit.to_owned(),
            better: metric.better,
            decimals: metric.decimals,
            samples: Vec::new(),
            summary: None,
        }
    }

    /// Mean and 99 % interval as text, or that the repeats are too few; a dash without samples.
    #[must_use]
    pub fn text(&self) -> String {
        let text = |summary: &Summary| summary.reported_mean().text(self.decimals);
        self.summary.as_ref().map_or_else(|| "-".to_owned(), text)
    }
}

impl Measurement {
    /// Nothing measured yet by `method`.
    #[must_use]
    pub fn new(method: &dyn Method) -> Self {
        Self {
            method: method.id().to_owned(),
            label: method.label().to_owned(),
            tools: Vec::new(),
            commands: Vec::new(),
            unfit: None,
            errors: Vec::new(),
            limit: None,
            figures: method.metrics().iter().map(Figure::new).collect(),
            samples: Vec::new(),
        }
    }

    /// The figure of that key, if it has samples.
    #[must_use]
    pub fn figure(&self, id: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.id == id && figure.summary.is_some())
    }

    /// Adds the values of a repeat and brings summaries and limit up to date.
    pub fn add(&mut self, values: &[(&'static str, f64)], sample: SampleRecord) {
        for figure in &mut self.figures {
            if let Some((_, value)) = values.iter().find(|(id, _)| *id == figure.id) {
                figure.samples.push(*value);
                figure.summary = summarise(&figure.samples);
            }
        }
        self.samples.push(sample);
        self.limit = common_limit(&self.samples);
    }
}

/// The limit that most repeats share; of equals, the first. Its words are those of the repeat in
/// which it was seen first.
fn common_limit(samples: &[SampleRecord]) -> Option<Limit> {
    let limits: Vec<&Limit> = samples.iter().filter_map(|sample| sample.limit.as_ref()).collect();
    let count = |part: Part| limits.iter().filter(|limit| limit.part == part).count();
    let most = limits.iter().map(|limit| count(limit.part)).max()?;
    limits.iter().find(|limit| count(limit.part) == most).map(|limit| (*limit).clone())
}

impl Cell {
    /// The figure of that key, if it has samples.
    #[must_use]
    pub fn figure(&self, id: &str) -> Option<&Figure> {
        self.measurements.iter().find_map(|measurement| measurement.figure(id))
    }

    /// The measurement of that method.
    #[must_use]
    pub fn measurement(&self, method: &str) -> Option<&Measurement> {
        self.measurements.iter().find(|measurement| measurement.method == method)
    }
}

/// How two cells compare in one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The cell.
    pub cell: String,
    /// The cell that it is compared with.
    pub baseline: String,
    /// The links of both.
    pub links: String,
    /// Mean of the cell over mean of the baseline.
    pub ratio: f64,
    /// Its interval by Fieller; `None` for single repeats.
    pub interval: Option<Interval>,
}

impl Comparison {
    /// The ratio with its interval: `4.1 times (99 %: 3.9 to 4.4)`.
    #[must_use]
    pub fn text(&self) -> String {
        let interval = self.interval.map(|Interval { low, high, .. }| {
            format!(" ({:.0} %: {low:.1} to {high:.1})", 100.0 * CONFIDENCE)
        });
        format!("{:.1} times{}", self.ratio, interval.unwrap_or_default())
    }
}

/// The samples of a figure that is known, with their mean.
fn known<'a>(cell: &'a Cell, id: &str) -> Option<(&'a [f64], f64)> {
    let figure = cell.figure(id)?;
    match figure.summary.as_ref()?.reported_mean() {
        Reported::Known { value, .. } | Reported::Single { value } => {
            Some((&figure.samples, value))
        }
        Reported::TooFew { .. } => None,
    }
}

impl Report {
    /// Of [`Report::comparisons`], the highest ratio for each kind of links.
    #[must_use]
    pub fn headlines(&self) -> Vec<Comparison> {
        let mut headlines: Vec<Comparison> = Vec::new();
        for comparison in self.comparisons() {
            match headlines.iter_mut().find(|old| old.links == comparison.links) {
                None => headlines.push(comparison),
                Some(old) if old.ratio < comparison.ratio => *old = comparison,
                Some(_) => {}
            }
        }
        headlines
    }

    /// Packet rates at saturation of every hub cell over that of Open vSwitch with os-ken's hub
    /// (the way most people would build it), where both were measured at the same links and are
    /// known: of too few repeats nothing is claimed.
    #[must_use]
    pub fn comparisons(&self) -> Vec<Comparison> {
        let hubs = || self.cells.iter().filter(|cell| cell.key.app == AppKind::Hub);
        let mut comparisons = Vec::new();
        for baseline in hubs() {
            if baseline.key.dut != "ovs" || baseline.key.controller != "os-ken" {
                continue;
            }
            for cell in hubs().filter(|cell| *cell != baseline) {
                let same = (cell.key.port_rate, cell.key.control_rate, cell.key.version)
                    == (baseline.key.port_rate, baseline.key.control_rate, baseline.key.version);
                let (Some(ours), Some(theirs), true) =
                    (known(cell, "pps_saturated"), known(baseline, "pps_saturated"), same)
                else {
                    continue;
                };
                let interval = ratio_of_means(ours.0, theirs.0, CONFIDENCE);
                comparisons.push(Comparison {
                    cell: cell.key.title(),
                    baseline: baseline.key.title(),
                    links: links(&cell.key),
                    ratio: ours.1 / theirs.1.max(f64::MIN_POSITIVE),
                    interval: interval.ok().map(|found| found.interval),
                });
            }
        }
        comparisons
    }
}

impl Report {
    /// How often it was measured, in words.
    #[must_use]
    pub fn repeats_text(&self) -> String {
        if self.idle_repeats == self.repeats {
            return format!("{} repeats", self.repeats);
        }
        format!("{} repeats (round-trip rows: {})", self.repeats, self.idle_repeats)
    }
}

/// From so many cores on, other programs have disturbed a measurement.
const DISTURBED_CORES: f64 = 0.3;

impl Report {
    /// How many measurements other programs of the machine disturbed, and of how many.
    #[must_use]
    pub fn disturbed(&self) -> (usize, usize) {
        let samples = || self.cells.iter().flat_map(|c| &c.measurements).flat_map(|m| &m.samples);
        let loads = samples().filter_map(|sample| sample.load.as_ref());
        let disturbed = loads.clone().filter(|load| load.others_cores() >= DISTURBED_CORES);
        (disturbed.count(), loads.count())
    }

    /// A sentence about disturbed measurements, if there were any.
    #[must_use]
    pub fn disturbance(&self) -> Option<String> {
        let (disturbed, all) = self.disturbed();
        (disturbed > 0).then(|| {
            format!(
                "During {disturbed} of {all} measurements other programs (or kernel threads) took \
                 {:.0} % of a core or more; a quiet machine gives better figures.",
                DISTURBED_CORES * 100.0
            )
        })
    }
}

/// The links and the version of a cell in words.
#[must_use]
pub fn links(key: &CellKey) -> String {
    let release = key.version.row().release;
    format!("ports {}, control link {}, OpenFlow {release}", key.port_rate, key.control_rate)
}
