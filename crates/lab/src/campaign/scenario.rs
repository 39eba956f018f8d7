//! A scenario file: a question, its axes, how each cell is set up, and by which methods it is
//! answered.
//!
//! A cell is one value of each axis. Its settings are the base settings, overlaid by those of each
//! value in the order of the axes. Everything is read and checked before anything is started; an
//! error names line and column, or the cell.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::method::{self, Method};
use crate::names;
use crate::results::{AxisInfo, Coordinates, Plot, Published, ScenarioCell};
use crate::settings::{Settings, SettingsError};

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
    #[serde(default, deserialize_with = "count")]
    starts: Option<usize>,
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
    /// The axes, each with what its values set.
    #[serde(default, rename = "axis", deserialize_with = "axes")]
    axes: Vec<(AxisInfo, Vec<Settings>)>,
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
}

/// Beginning of a line behind a scenario's text for a setting of the command line.
const SET_LINE: &str = "# --set ";

/// The key of a `without` that names a switch.
const DUT: &str = "dut";

/// Starts where the scenario names no number: their range holds the true median of 97 in 100
/// figures; and those of the quick form.
const STARTS: usize = 6;
const QUICK_STARTS: usize = 3;

/// The most starts of a cell, and trials in a start.
const COUNT_MAX: usize = 1_000;

/// The most cells of a scenario, and starts of a plan, which has to fit into the memory.
pub(super) const PLAN_MAX: usize = 100_000;

/// A number of starts or trials.
fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    match usize::deserialize(from)? {
        count @ 1..=COUNT_MAX => Ok(Some(count)),
        _ => Err(D::Error::custom(format!("must be 1 to {COUNT_MAX}"))),
    }
}

/// The axes, each with what its values set.
fn axes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(AxisInfo, Vec<Settings>)>, D::Error> {
    let tables = Vec::<Axis>::deserialize(from)?;
    let values = tables.iter().map(|axis| axis.values.len() + axis.named.len());
    let cells = values.fold(1, usize::saturating_mul);
    if cells > PLAN_MAX {
        return Err(D::Error::custom(format!("the axes have {cells} cells: {PLAN_MAX} at most")));
    }
    tables.into_iter().map(|axis| axis.read().map_err(D::Error::custom)).collect()
}

/// A named list of values.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Axis {
    name: String,
    label: Option<String>,
    #[serde(default)]
    unit: String,
    /// The one key of the settings that plain values are for.
    key: Option<String>,
    /// Plain values, of `key`.
    #[serde(default)]
    values: Vec<toml::Value>,
    /// Values that set more than one key.
    #[serde(default, rename = "value")]
    named: Vec<NamedValue>,
}

/// A value of an axis.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedValue {
    name: String,
    #[serde(default)]
    set: Settings,
}

impl Axis {
    fn read(self) -> Result<(AxisInfo, Vec<Settings>), String> {
        let Self { name, label, unit, key, values, named } = self;
        let mut all: Vec<(String, Settings)> = Vec::new();
        for value in values {
            let Some(key) = &key else {
                return Err(format!("axis {name:?}: plain values need a key that they set"));
            };
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let set = Settings::deserialize(toml::Table::from_iter([(key.clone(), value)]))
                .map_err(|error| format!("axis {name:?}, value {text}: {error}"))?;
            all.push((text, set));
        }
        all.extend(named.into_iter().map(|value| (value.name, value.set)));
        let (values, sets): (Vec<String>, Vec<Settings>) = all.into_iter().unzip();
        if let Some(twice) = names::twice(values.iter().map(String::as_str)) {
            return Err(format!("the axis {name:?} has {twice:?} twice"));
        }
        if values.is_empty() {
            return Err(format!("the axis {name:?} has no values"));
        }
        let label = label.unwrap_or_else(|| name.replace('_', " "));
        Ok((AxisInfo { name, label, unit, values }, sets))
    }
}

/// Settings of one method.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MethodTable {
    /// Trials in each start: short trials spread more.
    #[serde(deserialize_with = "count")]
    trials: Option<usize>,
    /// Overlaid over the settings of the cell: what is sent, nothing of the set-up.
    set: Settings,
}

/// Changes by `--quick`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Quick {
    #[serde(deserialize_with = "count")]
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

impl Scenario {
    /// Reads a scenario file, all of it; an error has the line, or the cell that is wrong.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        let read = toml::from_str(text);
        let mut scenario: Self =
            read.map_err(|error| ScenarioError(names::explained(&error).trim_end().to_owned()))?;
        text.clone_into(&mut scenario.source);
        let id = &scenario.id;
        scenario.check().map_err(|what| ScenarioError(format!("{id}: {what}")))?;
        scenario.check_settings()?;
        Ok(scenario)
    }

    /// The first mistake but those in the settings of a cell.
    fn check(&self) -> Result<(), String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if self.id.is_empty() || !self.id.chars().all(is_name) {
            return Err("an id has letters, digits, - and _ only".to_owned());
        }
        if self.methods.is_empty() {
            return Err("a scenario has a method at least".to_owned());
        }
        if let Some(name) = self.methods.iter().find(|name| method::find(name).is_none()) {
            let known = method::ALL.iter().map(|method| method.id);
            return Err(names::unknown("method", name, known));
        }
        if let Some(method) = names::twice(self.methods.iter().map(String::as_str)) {
            return Err(format!("the method {method:?} is there twice"));
        }
        if let Some(method) = self.quick.methods.iter().find(|one| !self.methods.contains(one)) {
            return Err(format!("quick.methods: {method:?} is none of the methods"));
        }
        if let Some((axis, _)) = self.quick.axes.iter().find(|(_, values)| values.is_empty()) {
            return Err(format!("quick.axes: {axis} is left no value"));
        }
        if let Some(axis) = names::twice(self.axes.iter().map(|(axis, _)| &*axis.name)) {
            return Err(format!("the axis {axis:?} is there twice"));
        }
        let has = |axis: &String, value: &String| {
            self.axes.iter().any(|(info, _)| info.name == *axis && info.values.contains(value))
        };
        let published = self.published.iter().flat_map(|figure| &figure.at);
        let left_out = self.without.iter().flatten().filter(|(axis, _)| *axis != DUT);
        let quick = self.quick.axes.iter();
        let quick = quick.flat_map(|(axis, values)| values.iter().map(move |value| (axis, value)));
        if let Some((axis, value)) =
            published.chain(left_out).chain(quick).find(|(axis, value)| !has(axis, value))
        {
            return Err(format!("no axis {axis:?} has the value {value:?}"));
        }
        let metrics = self.methods().into_iter().flat_map(|method| method.metrics);
        let metrics: Vec<&str> = metrics.map(|metric| &*metric.id).collect();
        let named = self.published.iter().map(|figure| &figure.metric);
        let mut named = named.chain(self.plots.iter().map(|plot| &plot.metric));
        if let Some(metric) = named.find(|id| !metrics.contains(&id.as_str())) {
            return Err(names::unknown("metric", metric, metrics));
        }
        for (name, table) in self.of_methods.iter().chain(&self.quick.of_methods) {
            let wrong = |why: &str| Err(format!("[method.{name}]: {why}"));
            if !self.methods.contains(name) {
                return wrong("it is none of the methods");
            }
            if table.set.setup() != Settings::default() {
                return wrong("set-up is the same for all methods");
            }
            table.set.check().map_err(|error| format!("[method.{name}]: set: {error}"))?;
        }
        Ok(())
    }

    /// The first mistake in the settings of a cell, with the line where key and value stand in one,
    /// or where the value is one of an axis.
    fn check_settings(&self) -> Result<(), ScenarioError> {
        let place = |error: SettingsError, at: &Coordinates| {
            let key = error.key.rsplit('.').next().unwrap_or_default();
            let read = DeTable::parse(&self.source).ok();
            let before = read.and_then(|all| offset_in(all.get_ref(), false, key, &error.text));
            let before = before.and_then(|offset| self.source.get(..offset));
            let line = before.map(|text| format!("line {}, ", text.matches('\n').count() + 1));
            let line = line.unwrap_or_default();
            ScenarioError(format!("{}, {line}{at:?}: {error}", self.id))
        };
        for cell in self.cells().into_iter().chain(self.clone().quick().cells()) {
            cell.settings.check().map_err(|error| place(error, &cell.at))?;
        }
        Ok(())
    }

    /// Its quick form: fewer starts, methods and values, and shorter trials.
    pub fn quick(mut self) -> Self {
        let Quick { starts, methods, axes, settings, of_methods } = std::mem::take(&mut self.quick);
        self.starts = starts.or(Some(self.starts().min(QUICK_STARTS)));
        self.methods.retain(|name| methods.is_empty() || methods.contains(name));
        self.settings.overlay(&settings);
        for (name, table) in of_methods {
            let of_method = self.of_methods.entry(name).or_default();
            of_method.trials = table.trials.or(of_method.trials);
            of_method.set.overlay(&table.set);
        }
        for axis in &mut self.axes {
            if let Some(left) = axes.get(&axis.0.name) {
                leave(axis, |value| left.contains(value));
            }
        }
        self
    }

    /// Settings with which a method measures a cell.
    pub fn settings_of(&self, method: &Method, cell: &Settings) -> Settings {
        let mut settings = cell.clone();
        if let Some(table) = self.of_methods.get(method.id) {
            settings.overlay(&table.set);
        }
        settings
    }

    /// Trials of a method in each start.
    pub fn trials(&self, method: &Method) -> usize {
        self.of_methods.get(method.id).and_then(|table| table.trials).unwrap_or(1)
    }

    /// The methods, in order.
    pub fn methods(&self) -> Vec<&'static Method> {
        self.methods.iter().filter_map(|name| method::find(name)).collect()
    }

    /// Leaves some values of an axis, each text one of them or several with commas between; false
    /// where the scenario has no such axis. A value that the axis does not have is an error.
    pub fn restrict(&mut self, axis: &str, texts: &[&str]) -> Result<bool, ScenarioError> {
        let Some(of_axis) = self.axes.iter_mut().find(|(info, _)| info.name == axis) else {
            return Ok(false);
        };
        let info = &of_axis.0;
        let has = |text: &str| info.values.iter().any(|value| value == text);
        let values = texts.iter().flat_map(|text| match has(text) {
            true => vec![*text],
            false => text.split(',').collect(),
        });
        let left: Vec<&str> = values.collect();
        if let Some(wrong) = left.iter().find(|value| !has(value)) {
            let known = info.values.join(", ");
            let what = format!("{}: {axis} has no value {wrong:?}: there is {known}", self.id);
            return Err(ScenarioError(what));
        }
        // Values that are written out stand in place of those of the quick form too.
        self.quick.axes.remove(axis);
        leave(of_axis, |value| left.contains(&value.as_str()));
        Ok(true)
    }

    /// Sets keys of the settings, or of a table of them, in every cell, each by `KEY=VALUE`; a
    /// value is TOML's, or a text without quotes. A workload takes the place of what is made,
    /// unless that is asked for too. Points of the axes that no longer differ are an error.
    pub fn set(&mut self, all: &[String]) -> Result<(), ScenarioError> {
        if all.is_empty() {
            return Ok(());
        }
        let (before, mut keys) = (self.cells(), BTreeMap::new());
        for text in all {
            let wrong = |why: &str| ScenarioError(format!("--set {text}: {}", why.trim_end()));
            let Some((key, value)) = text.split_once('=') else {
                return Err(wrong("write KEY=VALUE, for example duration_s=5"));
            };
            let read = format!("value = {value}").parse::<toml::Table>().ok();
            let read = read.and_then(|mut table| table.remove("value"));
            let one = BTreeMap::from([(key, read.unwrap_or_else(|| value.into()))]);
            with_keys(&Settings::default(), &one, true).map_err(|why| wrong(&why))?;
            let is_of_fleet = key.starts_with("fleet.");
            if is_of_fleet && before.iter().any(|cell| cell.settings.fleet.is_none()) {
                return Err(wrong(&format!("{} loads no controller", self.id)));
            }
            keys.extend(one);
            // A reader of the results finds it where the scenario is.
            self.source += &format!("\n{SET_LINE}{text}");
        }
        let is_workload = ["replay.folder", "replay.name"].iter().any(|key| keys.contains_key(key));
        let axes = self.axes.iter_mut().flat_map(|(_, sets)| sets);
        let methods = self.of_methods.values_mut().chain(self.quick.of_methods.values_mut());
        let others = axes.chain(methods.map(|table| &mut table.set));
        let others = others.chain([&mut self.quick.settings]).map(|settings| (settings, false));
        for (settings, is_base) in others.chain([(&mut self.settings, true)]) {
            if let Some(replay) = settings.replay.as_mut().filter(|_| is_workload) {
                (replay.flows, replay.entries) = (None, None);
            }
            *settings = with_keys(settings, &keys, is_base).map_err(ScenarioError)?;
        }
        let mut known: BTreeMap<String, &ScenarioCell> = BTreeMap::new();
        for (cell, after) in before.iter().zip(self.cells()) {
            let other = *known.entry(format!("{:?}", after.settings)).or_insert(cell);
            if other.settings != cell.settings {
                let (one, other) = (&other.at, &cell.at);
                let why = format!("--set: {one:?} and {other:?} no longer differ: use --only");
                return Err(ScenarioError(why));
            }
        }
        self.check_settings()
    }

    /// Starts of each switch in each cell.
    pub fn starts(&self) -> usize {
        self.starts.unwrap_or(STARTS)
    }

    /// The axes.
    pub fn axis_infos(&self) -> Vec<AxisInfo> {
        self.axes.iter().map(|(info, _)| info.clone()).collect()
    }

    /// The cells; the last axis runs fastest.
    pub fn cells(&self) -> Vec<ScenarioCell> {
        let settings = self.settings.clone();
        let mut cells = vec![ScenarioCell { settings, ..ScenarioCell::default() }];
        for (AxisInfo { name, values, .. }, sets) in &self.axes {
            let with = |cell: &ScenarioCell, value: &String, set: &Settings| {
                let mut cell = cell.clone();
                cell.at.insert(name.clone(), value.clone());
                cell.settings.overlay(set);
                cell
            };
            let all = values.iter().zip(sets);
            cells = cells
                .iter()
                .flat_map(|cell| all.clone().map(move |(value, set)| with(cell, value, set)))
                .collect();
        }
        let without = |cell: &ScenarioCell| -> Vec<&Coordinates> {
            let is_here =
                |(axis, value): (&String, &String)| axis == DUT || cell.at.get(axis) == Some(value);
            self.without.iter().filter(|point| point.iter().all(is_here)).collect()
        };
        let is_left_out = |point: &&Coordinates| !point.is_empty() && !point.contains_key(DUT);
        cells.retain(|cell| !without(cell).iter().any(is_left_out));
        for cell in &mut cells {
            let duts = without(cell).into_iter().filter_map(|point| point.get(DUT)).cloned();
            cell.without = duts.collect();
        }
        cells
    }
}

/// Leaves some values of an axis.
fn leave((info, sets): &mut (AxisInfo, Vec<Settings>), is_left: impl Fn(&String) -> bool) {
    let mut left = info.values.iter().map(&is_left);
    sets.retain(|_| left.next().unwrap_or_default());
    info.values.retain(is_left);
}

/// Offset of a text that a key has as its value, or as one of an axis of that key.
fn offset_in(table: &DeTable<'_>, is_its: bool, key: &str, text: &str) -> Option<usize> {
    let axis = table.get("key").and_then(|key| key.get_ref().as_str());
    table.iter().find_map(|(name, value)| {
        let name = &**name.get_ref();
        let is_its = is_its || name == key || name == "values" && axis == Some(key);
        offset_of(value, is_its, key, text)
    })
}

/// The same in a value, which is one of the key where `is_its`.
fn offset_of(value: &Spanned<DeValue<'_>>, is_its: bool, key: &str, text: &str) -> Option<usize> {
    let is_number = |digits: &str| {
        let number = digits.replace('_', "").parse::<f64>();
        number.is_ok_and(|number| number.to_string() == text)
    };
    let is_text = match value.get_ref() {
        DeValue::Table(table) => return offset_in(table, is_its, key, text),
        DeValue::Array(all) => {
            return all.iter().find_map(|one| offset_of(one, is_its, key, text));
        }
        // A place of a series stands between braces.
        DeValue::String(it) => it == text || it.split(['{', '}']).any(|part| part == text),
        DeValue::Integer(it) => it.as_str() == text || is_number(it.as_str()),
        DeValue::Float(it) => is_number(it.as_str()),
        DeValue::Boolean(_) | DeValue::Datetime(_) => false,
    };
    (is_its && is_text).then(|| value.span().start)
}

/// Settings with keys set, `KEY` or `TABLE.KEY`; those that are no base have only the keys and
/// tables set that they have.
fn with_keys(
    settings: &Settings,
    keys: &BTreeMap<&str, toml::Value>,
    is_base: bool,
) -> Result<Settings, String> {
    let mut all = toml::Table::try_from(settings).map_err(|error| error.to_string())?;
    for (key, value) in keys {
        let (name, inner) = match key.split_once('.') {
            Some((table, key)) => (table, Some(key)),
            None => (*key, None),
        };
        if !is_base && !all.contains_key(name) {
            continue;
        }
        let (table, key) = match inner {
            Some(key) => (all.entry(name).or_insert(toml::Table::new().into()).as_table_mut(), key),
            None => (Some(&mut all), name),
        };
        // Each key was read by itself, so that a key of a table has one.
        if let Some(table) = table {
            table.insert(key.to_owned(), value.clone());
        }
    }
    Settings::deserialize(all).map_err(|error| names::explained(&error))
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
        let cells = scenario.cells();
        assert_eq!(cells.len(), 5, "one of six is left out");
        assert_eq!(cells[1].at["table"], "a hundred");
        assert_eq!(cells[1].settings.flow_count(), 101);
        let quick = scenario.clone().quick();
        assert_eq!((scenario.starts(), quick.starts()), (3, 2));
        assert_eq!(quick.axis_infos()[0].values, ["64"]);
        let quick = quick.cells();
        assert_eq!(quick.len(), 2);
        assert_eq!(quick[0].settings.duration_s(), 0.1);
    }

    #[test]
    fn an_axis_is_restricted_to_values_that_it_has() {
        let mut scenario = Scenario::from_toml(TEXT).unwrap();
        assert!(scenario.restrict("frame_size", &["128"]).unwrap());
        assert!(!scenario.restrict("size", &["128"]).unwrap());
        assert_eq!(scenario.clone().quick().axis_infos()[0].values, ["128"]);
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
        let whole = Scenario::from_toml(&text).unwrap();
        let (method, cells) = (whole.methods()[0], whole.cells());
        let rate = |of: &Scenario| of.settings_of(method, &cells[0].settings).rate_pps;
        let quick = whole.clone().quick();
        assert_eq!((rate(&whole), rate(&quick)), (Some(7.0), Some(9.0)));
        assert_eq!(quick.trials(method), 2);
        assert_eq!((&cells[0].without[..], cells[1].without.len()), (&["ovs".to_owned()][..], 0));
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
        let quick = scenario.clone().quick();
        let settings = quick.settings_of(quick.methods()[0], &quick.cells()[0].settings);
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
        for all in
            [&["replay.folder=/w"][..], &["replay.flows=3", "replay.folder=/w", "replay.name=acl"]]
        {
            set(&mut replay.clone(), all).unwrap_err();
        }
        set(&mut replay, &["replay.folder=/w", "replay.name=\"acl\""]).unwrap();
        let cells = replay.cells();
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
            ("starts = 3", "starts = 0", "6 | starts = 0"),
            ("starts = 3", "starts = 1001", "must be 1 to 1000"),
            ("starts = 3", "repeats = 3", "repeats is gone: use starts"),
            ("starts = 2", "starts = 1000000000", "30 | starts = 1000000000"),
            ("starts = 2", "methods = [\"ping\"]", "\"ping\" is none of the methods"),
            ("[quick]", "[method.delay]\ntrials = 0\n[quick]", "30 | trials = 0"),
            ("[quick]", "[method.delay]\ntrials = 99999\n[quick]", "must be 1 to 1000"),
            ("[settings]", "[settings]\nports = 99999", "line 9, {\"frame_size\": \"64\""),
            ("[settings]", "[settings]\nqueues = 0", "queues: \"0\": must be 1 to 256"),
            ("[64, 128, 1518]", "[64, 128, 9217]", "two-axes, line 15, "),
            ("[settings]", "# ports = 99999\n[settings]\nports = 99999", "line 10, "),
            (
                "name = \"frame_size\"\nunit = \"B\"\nkey = \"frame_size\"\n\
                 values = [64, 128, 1518]",
                "name = \"rate\"\nkey = \"rate_pps\"\nvalues = [9217]\n[[axis]]\n\
                 name = \"frame_size\"\nkey = \"frame_size\"\nvalues = [64, 128, 9217]",
                "two-axes, line 18, ",
            ),
            (
                "[[published]]",
                "[[plot]]\nkind = \"heat-map\"\nmetric = \"delay_p50_us\"\n[[published]]",
                "heat-map is gone: use bars",
            ),
            (
                "[quick]",
                "[method.delay]\nset = { duration_s = -1.0 }\n[quick]",
                "[method.delay]: set: duration_s",
            ),
            ("[64, 128, 1518]", "[64, 64, 1518]", "twice"),
            ("key = \"frame_size\"", "key = \"frame_sizes\"", "frame_sizes"),
            ("in_port=1", "in_prot=1", "in_prot"),
            ("{10.0.0.1+n}", "{10.0.0.1+k}", "START"),
            ("{10.0.0.1+n}", "{10.0.0.1+k}", "line 23, "),
            ("\"delay\"", "\"delays\"", "delays"),
            ("\"delay\"", "\"delay\", \"delay\"", "the method \"delay\" is there twice"),
            ("delay_p50_us", "delay_p51_us", "delay_p51_us"),
            ("at = { frame_size = \"64\" }", "at = { frame_size = \"65\" }", "65"),
            ("table = \"a hundred\"", "table = \"many\"", "many"),
            ("axes = { frame_size = [\"64\"] }", "axes = { size = [\"64\"] }", "size"),
            ("axes = { frame_size = [\"64\"] }", "axes = { frame_size = [] }", "is left no value"),
            ("id = \"two-axes\"", "id = \"two axes\"", "id"),
        ];
        for (from, to, place) in cases {
            let error = error(from, to);
            assert!(error.contains(place), "{to}: {error}");
        }
        let many = error("[64, 128, 1518]", &format!("[{}64]", "64, ".repeat(60_000)));
        assert!(many.contains("the axes have 120002 cells: 100000 at most"), "{many}");
        assert!(Scenario::from_toml("id").is_err());
    }
}
