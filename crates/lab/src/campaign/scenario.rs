//! A scenario file: a question, its axes, how each cell is set up, and by which methods it is
//! answered.
//!
//! A cell is one value of each axis. Its settings are the base settings, overlaid by those of each
//! value in the order of the axes. Everything is read and checked before anything is started; an
//! error names line and column, or the cell.
//!
//! ```
//! use lab::campaign::scenario::Scenario;
//!
//! let scenario = Scenario::from_toml(
//!     r#"
//!     id = "sizes"
//!     title = "Frame sizes"
//!     question = "How does the delay depend on the size?"
//!     methods = ["delay"]
//!     [settings]
//!     flows = ["in_port=1,actions=output:2"]
//!     [[axis]]
//!     name = "frame_size"
//!     unit = "B"
//!     key = "frame_size"
//!     values = [64, 1518]
//!     "#,
//! )
//! .unwrap();
//! let cells = scenario.cells(false).unwrap();
//! assert_eq!(cells.len(), 2);
//! assert_eq!(cells[1].settings.frame_size(), 1518);
//! ```

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::method::{self, Method};
use crate::names;
use crate::results::{AxisInfo, Coordinates, Plot, Published};
use crate::settings::Settings;

/// Why a text is no scenario, with line and column or the cell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScenarioError(pub String);

/// A scenario.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name on the command line.
    pub id: String,
    /// The published evaluation that it belongs to, `E1` to `E5`.
    #[serde(default)]
    pub evaluation: Option<String>,
    /// Its title.
    pub title: String,
    /// The question.
    pub question: String,
    /// Conclusions of the published evaluation, and the arithmetic that a reader needs.
    #[serde(default)]
    pub background: String,
    /// The methods, by their keys.
    methods: Vec<String>,
    /// Measurements of each cell, each with a new set-up.
    #[serde(default = "usual_starts", alias = "repeats")]
    starts: usize,
    /// Whether one start of each switch serves all turns: all run, and all but the one that is
    /// measured are held still by a signal. For figures that differ by less than two starts do.
    #[serde(default)]
    pub is_held: bool,
    /// The switches for which it is made, where it is not made for all.
    #[serde(default)]
    pub switches: Vec<String>,
    /// Settings of every cell.
    #[serde(default)]
    settings: Settings,
    /// Settings of a method, by its key.
    #[serde(default, rename = "method")]
    of_methods: BTreeMap<String, MethodTable>,
    /// The axes.
    #[serde(default, rename = "axis")]
    axes: Vec<Axis>,
    /// Points of the axes that are left out, each by some of its values.
    #[serde(default)]
    without: Vec<Coordinates>,
    /// Changes by `--quick`.
    #[serde(default)]
    quick: Quick,
    /// The plots that its author wants.
    #[serde(default, rename = "plot")]
    pub plots: Vec<Plot>,
    /// Figures of the published evaluation.
    #[serde(default)]
    pub published: Vec<Published>,
    /// The text that it was read from.
    #[serde(skip)]
    pub source: String,
    /// Settings of the command line, which hold in every cell.
    #[serde(skip)]
    set: Settings,
    /// Keys of their tables, `replay` and `fleet`.
    #[serde(skip)]
    set_tables: BTreeMap<String, toml::Table>,
}

/// The settings that are tables, whose keys `--set` reaches.
const TABLES: [&str; 2] = ["replay", FLEET];
const FLEET: &str = "fleet";

/// The key of a `without` that names a switch.
const DUT: &str = "dut";

/// The range of six starts holds the true median of 97 in 100 figures.
fn usual_starts() -> usize {
    6
}

/// Starts of the quick form, where the scenario names no number.
const QUICK_STARTS: usize = 3;

/// A named list of values.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Axis {
    name: String,
    #[serde(default)]
    label: Option<String>,
    #[serde(default)]
    unit: String,
    /// The one key of the settings that plain values are for.
    #[serde(default)]
    key: Option<String>,
    /// Plain values, of `key`.
    #[serde(default)]
    values: Vec<toml::Value>,
    /// Values that set more than one key.
    #[serde(default, rename = "value")]
    named: Vec<NamedValue>,
}

/// A value of an axis.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedValue {
    name: String,
    #[serde(default)]
    set: Settings,
}

/// Settings of one method.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MethodTable {
    /// Trials in each start: short trials spread more.
    trials: Option<usize>,
    /// Overlaid over the settings of the cell: what is sent, nothing of the set-up.
    set: Settings,
}

/// Changes by `--quick`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Quick {
    #[serde(alias = "repeats")]
    starts: Option<usize>,
    /// The methods that are left; all where it names none.
    methods: Vec<String>,
    /// The values that are left of an axis.
    axes: BTreeMap<String, Vec<String>>,
    /// Overlaid over the base settings.
    settings: Settings,
    /// Laid over what holds for a method.
    #[serde(rename = "method")]
    of_methods: BTreeMap<String, MethodTable>,
}

/// A point of the axes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioCell {
    /// Position on the axes.
    pub at: Coordinates,
    /// Settings of the set-up.
    pub settings: Settings,
}

impl Scenario {
    /// Reads a scenario file, all of it.
    ///
    /// # Errors
    /// With line, column and the allowed keys, or with the cell whose settings are wrong.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        let read = toml::from_str(text);
        let mut scenario: Self =
            read.map_err(|error| ScenarioError(names::explained(&error).trim_end().to_owned()))?;
        text.clone_into(&mut scenario.source);
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), ScenarioError> {
        let wrong = |what: String| Err(ScenarioError(format!("{}: {what}", self.id)));
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if self.id.is_empty() || !self.id.chars().all(is_name) {
            return wrong("an id has letters, digits, - and _ only".to_owned());
        }
        if self.methods.is_empty() || self.starts == 0 {
            return wrong("a scenario has a method and a start at least".to_owned());
        }
        self.methods(false)?;
        if let Some(method) = self.quick.methods.iter().find(|one| !self.methods.contains(one)) {
            return wrong(format!("quick.methods: {method:?} is none of the methods"));
        }
        if self.quick.starts == Some(0) {
            return wrong("quick.starts = 0: a scenario has a start at least".to_owned());
        }
        for (index, axis) in self.axes.iter().enumerate() {
            if self.axes[..index].iter().any(|other| other.name == axis.name) {
                return wrong(format!("the axis {:?} is there twice", axis.name));
            }
            let values = axis.settings().map_err(ScenarioError)?;
            let is_twice = |name: &String| values.iter().filter(|(n, _)| n == name).count() > 1;
            if let Some((twice, _)) = values.iter().find(|(name, _)| is_twice(name)) {
                return wrong(format!("the axis {:?} has {twice:?} twice", axis.name));
            }
            if values.is_empty() {
                return wrong(format!("the axis {:?} has no values", axis.name));
            }
        }
        let known = self.axis_infos(false)?;
        let has = |axis: &String, value: &String| {
            known.iter().any(|info| info.name == *axis && info.values.contains(value))
        };
        let published = self.published.iter().flat_map(|figure| &figure.at);
        let left_out = self.without.iter().flatten().filter(|(axis, _)| *axis != DUT);
        let quick = self.quick.axes.iter();
        let quick = quick.flat_map(|(axis, values)| values.iter().map(move |value| (axis, value)));
        if let Some((axis, value)) =
            published.chain(left_out).chain(quick).find(|(axis, value)| !has(axis, value))
        {
            return wrong(format!("no axis {axis:?} has the value {value:?}"));
        }
        let metrics = self.methods(false)?.into_iter().flat_map(|method| method.metrics);
        let metrics: Vec<&str> = metrics.map(|metric| metric.id).collect();
        let mut named = self.published.iter().map(|figure| &figure.metric);
        let plotted = self.plots.iter().map(|plot| &plot.metric);
        if let Some(metric) =
            named.by_ref().chain(plotted).find(|id| !metrics.contains(&id.as_str()))
        {
            return wrong(names::unknown("metric", metric, metrics));
        }
        for (name, table) in self.of_methods.iter().chain(&self.quick.of_methods) {
            if let Err(why) = self.check_table(name, table) {
                return wrong(format!("[method.{name}]: {why}"));
            }
        }
        self.check_settings()
    }

    /// The first mistake in the settings of a cell.
    fn check_settings(&self) -> Result<(), ScenarioError> {
        for is_quick in [false, true] {
            for cell in self.cells(is_quick)? {
                let place = |error| ScenarioError(format!("{}, {:?}: {error}", self.id, cell.at));
                cell.settings.check().map_err(place)?;
            }
        }
        Ok(())
    }

    /// The mistake in the table of a method.
    fn check_table(&self, name: &String, table: &MethodTable) -> Result<(), String> {
        if !self.methods.contains(name) {
            return Err("it is none of the methods".to_owned());
        }
        if !Settings::default().has_same_setup(&table.set) {
            return Err("set-up is the same for all methods".to_owned());
        }
        if table.trials == Some(0) {
            return Err("trials = 0: one at least".to_owned());
        }
        table.set.check().map_err(|error| format!("set: {error}"))
    }

    /// Whether a switch is left out at a point: by a `without` that names it as `dut`.
    #[must_use]
    pub fn is_without(&self, dut: &str, at: &Coordinates) -> bool {
        self.without.iter().any(|point| {
            point.get(DUT).is_some_and(|name| name == dut)
                && point.iter().all(|(axis, value)| axis == DUT || at.get(axis) == Some(value))
        })
    }

    /// The switches that are left out at a point.
    #[must_use]
    pub fn left_out(&self, at: &Coordinates) -> Vec<String> {
        let named: Vec<&String> = self.without.iter().filter_map(|point| point.get(DUT)).collect();
        named.into_iter().filter(|dut| self.is_without(dut, at)).cloned().collect()
    }

    /// Settings with which a method measures a cell.
    #[must_use]
    pub fn settings_of(&self, method: &Method, cell: &Settings, is_quick: bool) -> Settings {
        let mut settings = cell.clone();
        for table in self.tables(method, is_quick) {
            settings.overlay(&table.set);
        }
        settings.overlay(&self.set.traffic());
        settings
    }

    /// Trials of a method in each start.
    #[must_use]
    pub fn trials(&self, method: &Method, is_quick: bool) -> usize {
        self.tables(method, is_quick).filter_map(|table| table.trials).last().unwrap_or(1).max(1)
    }

    fn tables(&self, method: &Method, is_quick: bool) -> impl Iterator<Item = &MethodTable> {
        let quick = self.quick.of_methods.get(method.id).filter(|_| is_quick);
        self.of_methods.get(method.id).into_iter().chain(quick)
    }

    /// The methods, in order; with `is_quick` those that the quick form leaves.
    ///
    /// # Errors
    /// The first key that is none, and which there are.
    pub fn methods(&self, is_quick: bool) -> Result<Vec<&'static Method>, ScenarioError> {
        let left = |name: &&String| {
            let all = !is_quick || self.quick.methods.is_empty();
            all || self.quick.methods.contains(name)
        };
        let find = |name: &String| {
            method::find(name).ok_or_else(|| {
                let known = method::ALL.iter().map(|method| method.id);
                let unknown = names::unknown("method", name, known);
                ScenarioError(format!("{}: {unknown}", self.id))
            })
        };
        self.methods.iter().filter(left).map(find).collect()
    }

    /// Leaves some values of an axis; false where the scenario has no such axis.
    ///
    /// # Errors
    /// A value that the axis does not have, and which it has.
    pub fn restrict(&mut self, axis: &str, left: &[&str]) -> Result<bool, ScenarioError> {
        let Some(place) = self.axes.iter().position(|one| one.name == axis) else {
            return Ok(false);
        };
        let known = self.axis_infos(false)?.swap_remove(place).values;
        if let Some(wrong) = left.iter().find(|value| !known.iter().any(|one| one == *value)) {
            let known = known.join(", ");
            let what = format!("{}: {axis} has no value {wrong:?}: there is {known}", self.id);
            return Err(ScenarioError(what));
        }
        // Values that are written out stand in place of those of the quick form too.
        self.quick.axes.remove(axis);
        let axis = &mut self.axes[place];
        axis.values.retain(|value| left.contains(&plain_name(value).as_str()));
        axis.named.retain(|value| left.contains(&value.name.as_str()));
        Ok(true)
    }

    /// Sets keys of the settings in every cell, each by `KEY=VALUE`; a value is TOML's, or a text
    /// without quotes. A workload takes the place of what is made.
    ///
    /// # Errors
    /// There is no such key or value, or points of the axes no longer differ.
    pub fn set(&mut self, all: &[String]) -> Result<(), ScenarioError> {
        let before = self.cells(false)?;
        for text in all {
            let wrong = |why: &str| Err(ScenarioError(format!("--set {text}: {why}")));
            let Some((key, value)) = text.split_once('=') else {
                return wrong("write KEY=VALUE, for example duration_s=5");
            };
            let read = format!("value = {value}").parse::<toml::Table>().ok();
            let value = read.and_then(|mut table| table.remove("value"));
            let value = value.unwrap_or_else(|| text[key.len() + 1..].into());
            let of_table = key.split_once('.');
            if let Some((table, key)) = of_table.filter(|(table, _)| TABLES.contains(table)) {
                let keys = self.set_tables.entry(table.to_owned()).or_default();
                keys.insert(key.to_owned(), value);
            } else {
                match Settings::deserialize(toml::Table::from_iter([(key.to_owned(), value)])) {
                    Ok(settings) => self.set.overlay(&settings),
                    Err(error) => return wrong(names::explained(&error).trim_end()),
                }
            }
            // A reader of the results finds it where the scenario is.
            self.source += &format!("\n# --set {text}");
        }
        let after = self.cells(false)?;
        for (at, cell) in before.iter().enumerate() {
            let is_lost = |other: &usize| {
                before[*other].settings != cell.settings
                    && after[*other].settings == after[at].settings
            };
            if let Some(other) = (0..at).find(is_lost) {
                let (one, other) = (&before[other].at, &cell.at);
                let why = format!("--set: {one:?} and {other:?} no longer differ: use --only");
                return Err(ScenarioError(why));
            }
        }
        self.check_settings()
    }

    /// A table of a cell with the keys of the command line.
    fn laid_over<T: Default + Serialize + DeserializeOwned>(
        &self,
        name: &str,
        of: Option<T>,
    ) -> Result<Option<T>, ScenarioError> {
        let Some(set) = self.set_tables.get(name) else { return Ok(of) };
        let wrong =
            |error: &dyn std::fmt::Display| ScenarioError(format!("--set {name}.: {error}"));
        if name == FLEET && of.is_none() {
            return Err(wrong(&format!("{} loads no controller", self.id)));
        }
        let mut table =
            toml::Table::try_from(of.unwrap_or_default()).map_err(|error| wrong(&error))?;
        if set.contains_key("folder") || set.contains_key("name") {
            table.retain(|key, _| key != "flows" && key != "entries");
        }
        table.extend(set.clone());
        T::deserialize(table).map(Some).map_err(|error| wrong(&names::explained(&error).trim_end()))
    }

    /// Starts of each switch in each cell.
    #[must_use]
    pub fn starts(&self, is_quick: bool) -> usize {
        let quick = self.quick.starts.unwrap_or(self.starts.min(QUICK_STARTS));
        if is_quick { quick } else { self.starts }
    }

    /// The axes, with the values that are left.
    ///
    /// # Errors
    /// A value that is none of its key.
    pub fn axis_infos(&self, is_quick: bool) -> Result<Vec<AxisInfo>, ScenarioError> {
        self.axes.iter().map(|axis| Ok(self.axis_values(axis, is_quick)?.0)).collect()
    }

    fn axis_values(
        &self,
        axis: &Axis,
        is_quick: bool,
    ) -> Result<(AxisInfo, Vec<(String, Settings)>), ScenarioError> {
        let mut values = axis.settings().map_err(ScenarioError)?;
        if let Some(left) = self.quick.axes.get(&axis.name).filter(|_| is_quick) {
            values.retain(|(name, _)| left.contains(name));
        }
        let info = AxisInfo {
            name: axis.name.clone(),
            label: axis.label.clone().unwrap_or_else(|| axis.name.replace('_', " ")),
            unit: axis.unit.clone(),
            values: values.iter().map(|(name, _)| name.clone()).collect(),
        };
        Ok((info, values))
    }

    /// The cells; the last axis runs fastest.
    ///
    /// # Errors
    /// A value that is none of its key.
    pub fn cells(&self, is_quick: bool) -> Result<Vec<ScenarioCell>, ScenarioError> {
        let mut base = self.settings.clone();
        if is_quick {
            base.overlay(&self.quick.settings);
        }
        let mut cells = vec![ScenarioCell { at: Coordinates::new(), settings: base }];
        for axis in &self.axes {
            let (_, values) = self.axis_values(axis, is_quick)?;
            let with = |cell: &ScenarioCell, (name, settings): &(String, Settings)| {
                let mut cell = cell.clone();
                cell.at.insert(axis.name.clone(), name.clone());
                cell.settings.overlay(settings);
                cell
            };
            cells = cells
                .iter()
                .flat_map(|cell| values.iter().map(move |value| with(cell, value)))
                .collect();
        }
        let is_left_out = |cell: &ScenarioCell| {
            self.without.iter().any(|point| {
                !point.is_empty()
                    && !point.contains_key(DUT)
                    && point.iter().all(|(axis, value)| cell.at.get(axis) == Some(value))
            })
        };
        cells.retain(|cell| !is_left_out(cell));
        for cell in &mut cells {
            cell.settings.overlay(&self.set);
            let settings = &mut cell.settings;
            settings.replay = self.laid_over("replay", settings.replay.take())?;
            settings.fleet = self.laid_over(FLEET, settings.fleet.take())?;
        }
        Ok(cells)
    }
}

/// The name of a plain value.
fn plain_name(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Axis {
    /// The values with what each sets.
    fn settings(&self) -> Result<Vec<(String, Settings)>, String> {
        let mut values: Vec<(String, Settings)> = Vec::new();
        for value in &self.values {
            let Some(key) = &self.key else {
                return Err(format!("axis {:?}: plain values need a key that they set", self.name));
            };
            let name = plain_name(value);
            let table: toml::Table = [(key.clone(), value.clone())].into_iter().collect();
            let settings = Settings::deserialize(table)
                .map_err(|error| format!("axis {:?}, value {name}: {error}", self.name))?;
            values.push((name, settings));
        }
        values.extend(self.named.iter().map(|value| (value.name.clone(), value.set.clone())));
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::Scenario;

    const TEXT: &str = r#"
id = "two-axes"
title = "Two axes"
question = "What?"
methods = ["delay"]
starts = 3

[settings]
flows = ["in_port=1,actions=output:2"]

[[axis]]
name = "frame_size"
unit = "B"
key = "frame_size"
values = [64, 128, 1518]

[[axis]]
name = "table"
[[axis.value]]
name = "one entry"
[[axis.value]]
name = "a hundred"
set = { series = [{ count = 100, flow = "ip,nw_dst={10.0.0.1+n},actions=output:2" }] }

[[without]]
frame_size = "128"
table = "a hundred"

[quick]
starts = 2
axes = { frame_size = ["64"] }
settings = { duration_s = 0.1 }

[[published]]
switch = "X"
metric = "delay_p50_us"
at = { frame_size = "64" }
value = 120.0
"#;

    #[test]
    fn cells_are_the_points_of_the_axes() {
        let scenario = Scenario::from_toml(TEXT).unwrap();
        let cells = scenario.cells(false).unwrap();
        assert_eq!(cells.len(), 5, "one of six is left out");
        assert_eq!(cells[1].at["table"], "a hundred");
        assert_eq!(cells[1].settings.flow_count(), 101);
        assert_eq!((scenario.starts(false), scenario.starts(true)), (3, 2));
        let quick = scenario.cells(true).unwrap();
        assert_eq!(quick.len(), 2);
        assert_eq!(quick[0].settings.duration_s(), 0.1);
        assert_eq!(scenario.axis_infos(true).unwrap()[0].values, ["64"]);
    }

    #[test]
    fn an_axis_is_restricted_to_values_that_it_has() {
        let mut scenario = Scenario::from_toml(TEXT).unwrap();
        assert!(scenario.restrict("frame_size", &["128"]).unwrap());
        assert!(!scenario.restrict("size", &["128"]).unwrap());
        assert_eq!(scenario.axis_infos(true).unwrap()[0].values, ["128"]);
        assert!(
            scenario.restrict("table", &["some"]).unwrap_err().to_string().contains("one entry")
        );
    }

    #[test]
    fn a_method_has_own_settings_and_a_switch_may_be_left_out() {
        let text = TEXT.to_owned()
            + "[[without]]\ndut = \"ovs\"\ntable = \"one entry\"\n\
               [method.delay]\ntrials = 2\nset = { rate_pps = 7.0 }\n\
               [quick.method.delay]\nset = { rate_pps = 9.0 }\n";
        let scenario = Scenario::from_toml(&text).unwrap();
        let (method, cells) = (scenario.methods(false).unwrap()[0], scenario.cells(false).unwrap());
        let rate = |is_quick| scenario.settings_of(method, &cells[0].settings, is_quick).rate_pps;
        assert_eq!((rate(false), rate(true)), (Some(7.0), Some(9.0)));
        assert_eq!(scenario.trials(method, true), 2);
        assert!(scenario.is_without("ovs", &cells[0].at));
        assert!(!scenario.is_without("weir", &cells[0].at));
        assert!(!scenario.is_without("ovs", &cells[1].at));
        let set_up = text.replace("rate_pps = 7.0", "workers = 2");
        assert!(Scenario::from_toml(&set_up).unwrap_err().to_string().contains("set-up"));
    }

    #[test]
    fn a_setting_of_the_command_line_holds_in_every_cell() {
        let text = TEXT.to_owned() + "[method.delay]\nset = { duration_s = 7.0 }\n";
        let mut scenario = Scenario::from_toml(&text).unwrap();
        let set = |scenario: &mut Scenario, all: &[&str]| {
            scenario.set(&all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        set(&mut scenario, &["duration_s=0.5", "port_rate=100M"]).unwrap();
        let (method, cells) = (scenario.methods(false).unwrap()[0], scenario.cells(true).unwrap());
        let settings = scenario.settings_of(method, &cells[0].settings, true);
        assert_eq!((settings.duration_s(), settings.port_rate().to_string()), (0.5, "100M".into()));
        assert!(scenario.source.ends_with("\n# --set duration_s=0.5\n# --set port_rate=100M"));
        for (text, why) in [
            ("duration_s", "KEY=VALUE"),
            ("durations=1", "unknown field `durations`"),
            ("silence_ms=1", "silence_ms is gone: use ports-ping"),
            ("duration_s=-1", "duration_s"),
            ("frame_size=64", "no longer differ"),
            ("replay.folders=x", "unknown field `folders`"),
            ("fleet.switches=4", "loads no controller"),
        ] {
            let error = set(&mut scenario.clone(), &[text]).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        // Published figures may be of values that are left out.
        let mut left = crate::campaign::catalogue::find("loss-free-rate").unwrap().remove(0);
        assert!(left.restrict("forwarding", &["switch"]).unwrap());
        set(&mut left, &["duration_s=0.5"]).unwrap();
        let mut replay = crate::campaign::catalogue::find("datapath-new-flows").unwrap().remove(0);
        set(&mut replay.clone(), &["replay.folder=/w"]).unwrap_err();
        set(&mut replay, &["replay.folder=/w", "replay.name=\"acl\""]).unwrap();
        let cells = replay.cells(false).unwrap();
        let of = |at: usize| cells[at].settings.replay.clone().unwrap();
        assert_eq!((of(0).name.as_deref(), of(0).flows), (Some("acl"), None));
        assert_eq!((of(0).number_at, of(1).number_at), (Some(26), None));
    }

    fn error(from: &str, to: &str) -> String {
        assert!(TEXT.contains(from));
        Scenario::from_toml(&TEXT.replacen(from, to, 1)).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let cases = [
            ("starts = 3", "start = 3", "line 6"),
            ("unit = \"B\"", "units = \"B\"", "line 13"),
            ("[64, 128, 1518]", "[64, \"x\", 1518]", "frame_size"),
            ("starts = 2", "starts = 0", "quick.starts = 0"),
            ("starts = 2", "methods = [\"ping\"]", "\"ping\" is none of the methods"),
            ("[quick]", "[method.delay]\ntrials = 0\n[quick]", "trials = 0"),
            (
                "[quick]",
                "[method.delay]\nset = { duration_s = -1.0 }\n[quick]",
                "[method.delay]: set: duration_s",
            ),
            ("[64, 128, 1518]", "[64, 64, 1518]", "twice"),
            ("key = \"frame_size\"", "key = \"frame_sizes\"", "frame_sizes"),
            ("in_port=1", "in_prot=1", "in_prot"),
            ("{10.0.0.1+n}", "{10.0.0.1+k}", "START"),
            ("\"delay\"", "\"delays\"", "delays"),
            ("delay_p50_us", "delay_p51_us", "delay_p51_us"),
            ("at = { frame_size = \"64\" }", "at = { frame_size = \"65\" }", "65"),
            ("table = \"a hundred\"", "table = \"many\"", "many"),
            ("axes = { frame_size = [\"64\"] }", "axes = { size = [\"64\"] }", "size"),
            ("id = \"two-axes\"", "id = \"two axes\"", "id"),
        ];
        for (from, to, place) in cases {
            let error = error(from, to);
            assert!(error.contains(place), "{to}: {error}");
        }
        assert!(Scenario::from_toml("id").is_err());
    }
}
