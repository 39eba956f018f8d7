//! `weir bench ports`: how fast a switch forwards between devices of the kernel, beside other
//! switches.
//!
//! A view of campaigns: the scenarios `ports-*` of the lab, measured on every switch in turns, each
//! start between hosts of its own. Here stand the names of the rows, and the peers that each figure
//! of Weir stands beside. It must never show a switch as what
//! it is not: one that fell back to something else has no figure.

mod figure;
mod rows;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use netdev::sys::affinity::allowed_cpus;
use netdev::sys::netns::Namespace;
use programs::tools;

use super::common::{Common, Run};
use super::peer::AbsentRow;
use super::scratch;
use crate::campaign::catalogue;
use crate::campaign::job::Campaign;
use crate::campaign::run::execute;
use crate::campaign::scenario::Scenario;
use crate::dut::{self, Dut};
use crate::host_program::ECHO_INTERVAL;
use crate::results::{CellResults, CellState, ScenarioResults};
use crate::service::ProgramPaths;
use crate::settings::{Forwarding, Settings};
use crate::setup::TestbedKind;
use figure::{Figure, ROWS, RowKind, values_of_repeats};
use rows::Samples;

const EXAMPLES: &str = "\
Examples:
  weir bench ports
  weir bench ports --dut weir,weir-kernel,linux-bridge --rows tcp_1,ping
  weir bench ports --dut weir,ovs-tso --rows udp64 --seconds 5 --repeats 7 --json

The rows are figures of the scenarios ports-* (weir lab list), which weir lab run measures with all
that a report has. It needs root: hosts and switches live in network namespaces that go with it. Of
others' programs it uses iperf3 and ping, and Open vSwitch for ovs and ovs-tso (apt-get install
iperf3 iputils-ping openvswitch-switch); what is not installed has a row that says so, and makes the
exit code 1.";

/// The switches that are measured where no others are named, by their names in the rows.
#[cfg(test)]
const DUTS: [&str; 7] =
    ["weir", "weir-busy", "weir-kernel", "ovs", "ovs-tso", "linux-bridge", "peer-redirect"];

/// A switch under test and its name in the rows. Weir without more words is the one in user space
/// here.
#[derive(Clone, Copy)]
struct NamedDut {
    name: &'static str,
    dut: &'static dyn Dut,
}

impl NamedDut {
    fn find(name: &str) -> Result<Self> {
        let dut = dut::named(if name == "weir" { "weir-user" } else { name })?;
        Ok(Self { name: if dut.name() == "weir-user" { "weir" } else { dut.name() }, dut })
    }
}

/// The axis on which a scenario says what decides, and its values.
const FORWARDING: &str = "forwarding";
const BY_ENTRIES: &str = "flow entries";
const BY_LEARNING: &str = "learning";

/// Selection and manner of the measurement.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct PortsArgs {
    /// Switches under test, by their names in `weir lab list`, but that `weir` is in user space
    /// here; each of Weir's is held against each of the others
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "weir,weir-busy,weir-kernel,ovs,ovs-tso,linux-bridge,peer-redirect"
    )]
    dut: Vec<String>,
    /// Measure these rows only, by the beginnings of their names
    #[arg(long, value_delimiter = ',', value_name = "ROW")]
    rows: Vec<String>,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=3_600))]
    seconds: u16,
    /// Measurements of each figure, with a new start of the switch
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: u16,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
    /// The weir binary that is measured [default: this one]
    #[arg(long, value_name = "PATH")]
    weir: Option<PathBuf>,
}

impl PortsArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let (rows, duts) = (self.wanted_rows()?, self.duts()?);
        // Without the right to make it there is nothing to measure.
        Namespace::new()
            .context("kernel ports are measured in network namespaces (run as root)")?;
        let core = allowed_cpus().context("asking for the cores")?.last().copied().unwrap_or(0);
        let common = Common {
            core: u16::try_from(core).context("a core with a number beyond all limits")?,
            seconds: f64::from(self.seconds),
            repeats: self.repeats,
            json: self.json,
            quiet: self.quiet,
            weir: self.weir.clone(),
        };
        common.run(0, |run| {
            for rows in rows.chunk_by(|one, next| one.scenario == next.scenario) {
                self.measure(rows, &duts, run)?;
            }
            Ok(())
        })
    }

    fn wanted_rows(&self) -> Result<Vec<&'static RowKind>> {
        let all = || ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
        for wanted in &self.rows {
            let is_known = ROWS.iter().any(|row| row.name.starts_with(wanted.as_str()));
            ensure!(is_known && !wanted.is_empty(), "no row {wanted:?}: use {}", all());
        }
        let is_wanted = |row: &&RowKind| {
            let is_meant = |wanted: &String| row.name.starts_with(wanted.as_str());
            self.rows.is_empty() || self.rows.iter().any(is_meant)
        };
        Ok(ROWS.iter().filter(is_wanted).collect())
    }

    fn duts(&self) -> Result<Vec<NamedDut>> {
        let mut duts: Vec<NamedDut> = Vec::new();
        for name in &self.dut {
            let dut = NamedDut::find(name)?;
            ensure!(duts.iter().all(|it| it.name != dut.name), "--dut names {name} twice");
            duts.push(dut);
        }
        Ok(duts)
    }

    /// Measures rows of one scenario, and prints them.
    fn measure(&self, rows: &[&'static RowKind], duts: &[NamedDut], run: &mut Run) -> Result<()> {
        let mut wanted = Vec::new();
        for row in rows {
            match row.tool.map(tools::Tool::find) {
                Some(Err(missing)) => absent(run, row, None, missing.to_string())?,
                Some(Ok(_)) | None => wanted.push(*row),
            }
        }
        let Some(first) = wanted.first() else { return Ok(()) };
        let paths = ProgramPaths::new(run.weir.clone(), tools::os_ken_default_dir());
        let scenario = self.scenario(first.scenario, &wanted, duts, &paths)?;
        let folder = scratch()?;
        let of = duts.iter().map(|it| it.dut).collect();
        let (kind, out) = (TestbedKind::Kernel, folder.path().to_owned());
        let campaign = Campaign {
            starts: Some(run.repeats),
            quiet: self.quiet,
            ..Campaign::new(vec![scenario], of, kind, paths.clone(), out)
        };
        let results = execute(&campaign, &run.cancel)?;
        let Some(found) = results.scenarios.first() else { bail!("no results") };
        for row in wanted {
            let mut samples = Vec::new();
            for dut in duts {
                match figures(row, *dut, found, run.repeats, &paths) {
                    Ok(figures) => samples.extend(figures),
                    Err(why) => absent(run, row, Some(dut.name), why)?,
                }
            }
            for line in rows::lines(&samples) {
                run.row(&line)?;
            }
            if !self.quiet {
                let remarks = row.remarks(&found.cells);
                remarks.iter().for_each(|remark| files::eprint_line(format_args!("{remark}")));
            }
        }
        Ok(())
    }

    /// The scenario with the durations that are wanted, without the points that no row shows: as
    /// a file, so that what is measured is what it says.
    fn scenario(
        &self,
        name: &str,
        rows: &[&RowKind],
        duts: &[NamedDut],
        paths: &ProgramPaths,
    ) -> Result<Scenario> {
        let known = catalogue::find(name)?;
        let [scenario] = &known[..] else { bail!("{name} is no single scenario") };
        let mut file: toml::Table = scenario.source.parse().context(scenario.id.clone())?;
        let settings = file.entry("settings").or_insert_with(|| toml::Table::new().into());
        let settings = settings.as_table_mut().context("settings are no table")?;
        if settings.contains_key("duration_s") {
            settings.insert("duration_s".to_owned(), f64::from(self.seconds).into());
        } else {
            let requests = f64::from(self.seconds) / ECHO_INTERVAL.as_secs_f64();
            settings.insert("count".to_owned(), (requests.round() as i64).into());
        }
        let mut without: Vec<toml::Value> = Vec::new();
        let mut leave_out = |point: &[(&str, &str)]| {
            let point = point.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).into()));
            without.push(point.collect::<toml::Table>().into());
        };
        for cell in scenario.cells(false)? {
            let is_wanted = |figure: &Figure| {
                figure
                    .at
                    .iter()
                    .all(|(axis, value)| cell.at.get(*axis).is_some_and(|it| it == value))
            };
            if !rows.iter().any(|row| row.figures.iter().any(is_wanted)) {
                let point: Vec<_> = cell.at.iter().map(|(a, v)| (a.as_str(), v.as_str())).collect();
                leave_out(&point);
            }
        }
        if scenario.axis_infos(false)?.iter().any(|axis| axis.name == FORWARDING) {
            for dut in duts {
                let other = if has_tables(dut.dut, paths) { BY_LEARNING } else { BY_ENTRIES };
                leave_out(&[("dut", dut.dut.name()), (FORWARDING, other)]);
            }
        }
        if !without.is_empty() {
            file.insert("without".to_owned(), without.into());
        }
        let text = toml::to_string(&file).context("writing the scenario")?;
        Scenario::from_toml(&text).with_context(|| text)
    }
}

/// Whether a switch forwards by flow entries.
fn has_tables(dut: &dyn Dut, paths: &ProgramPaths) -> bool {
    let settings = Settings { forwarding: Some(Forwarding::Flows), ..<_>::default() };
    dut.check(&settings, paths).is_ok()
}

/// A row that says why there is no figure, for who reads rows only.
fn absent(run: &mut Run, row: &RowKind, dut: Option<&'static str>, absent: String) -> Result<()> {
    run.row(&AbsentRow { row: row.name, dut, absent })
}

/// The figures of a row on one switch, or why there are none. Without flow tables there is no row
/// that needs them.
fn figures(
    row: &RowKind,
    NamedDut { name: dut_name, dut }: NamedDut,
    found: &ScenarioResults,
    repeats: usize,
    paths: &ProgramPaths,
) -> Result<Vec<Samples>, String> {
    let by = if has_tables(dut, paths) { BY_ENTRIES } else { BY_LEARNING };
    let mut all = Vec::new();
    for figure in row.figures {
        let is_it = |cell: &&CellResults| {
            let is_at =
                |(axis, value): &(&str, &str)| cell.at.get(*axis).is_some_and(|it| it == value);
            cell.dut == dut.name()
                && cell.at.get(FORWARDING).is_none_or(|it| it == by)
                && figure.at.iter().all(is_at)
        };
        let cell = found.cells.iter().find(is_it).ok_or("it is not among the results")?;
        match &cell.state {
            CellState::Measured => {}
            CellState::NotSupported(_) if by == BY_LEARNING => return Ok(Vec::new()),
            CellState::NotSupported(why)
            | CellState::Missing(why)
            | CellState::Failed(why)
            | CellState::Skipped(why)
            | CellState::Pending(why) => return Err(why.clone()),
        }
        let has_tier = dut_name == "weir-kernel" && row.is_traffic;
        let values = values_of_repeats(cell, figure, repeats, has_tier)?;
        let Figure { name, unit, is_compared, .. } = *figure;
        all.push(Samples { row: name, unit, is_compared, dut: dut_name, values });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::figure::ROWS;
    use super::{BY_ENTRIES, BY_LEARNING, DUTS, FORWARDING, NamedDut, PortsArgs};
    use crate::service::ProgramPaths;

    fn args() -> PortsArgs {
        PortsArgs {
            dut: DUTS.map(str::to_owned).to_vec(),
            rows: Vec::new(),
            seconds: 7,
            repeats: 3,
            json: true,
            quiet: true,
            weir: None,
        }
    }

    #[test]
    fn a_scenario_has_the_points_of_its_rows_and_its_durations() {
        let duts: Vec<_> = DUTS.iter().map(|name| NamedDut::find(name).unwrap()).collect();
        let paths = ProgramPaths::new(std::path::PathBuf::new(), std::path::PathBuf::new());
        let scenario = |row: &str| {
            let rows: Vec<_> = ROWS.iter().filter(|it| it.name == row).collect();
            args().scenario(rows[0].scenario, &rows, &duts, &paths).unwrap()
        };
        let tcp = scenario("tcp_4_reverse");
        let cells = tcp.cells(false).unwrap();
        assert_eq!(cells.len(), 2, "by flow entries and by learning: {cells:?}");
        assert!(cells.iter().all(|cell| cell.settings.streams == Some(4)));
        assert!(cells.iter().all(|cell| cell.settings.is_reverse == Some(true)));
        assert!(cells.iter().all(|cell| cell.settings.duration_s() == 7.0));
        let by = |by: &str| cells.iter().find(|cell| cell.at[FORWARDING] == by).unwrap();
        for (dut, entries) in [("weir-user", true), ("ovs-tso", true), ("linux-bridge", false)] {
            assert_eq!(tcp.is_without(dut, &by(BY_LEARNING).at), entries, "{dut}");
            assert_eq!(tcp.is_without(dut, &by(BY_ENTRIES).at), !entries, "{dut}");
        }
        assert_eq!(scenario("ping_avg").cells(false).unwrap()[0].settings.count, Some(700));
        for row in ROWS {
            let cells = scenario(row.name).cells(false).unwrap();
            assert!(cells.len() >= row.figures.len().min(2) - 1, "{}", row.name);
        }
    }

    #[test]
    fn the_entries_are_as_many_as_the_rows_say() {
        let count = |scenario: &str, at: &str| {
            let found = crate::campaign::catalogue::find(scenario).unwrap();
            let cells = found[0].cells(false).unwrap();
            let cell = cells.iter().find(|cell| cell.at.values().any(|it| it.contains(at)));
            let settings = &cell.unwrap().settings;
            let all: Vec<_> = settings.flow_mods().map(|entry| entry.unwrap()).collect();
            let distinct: std::collections::HashSet<_> = all
                .iter()
                .map(|entry| format!("{:?} {:?}", entry.table_id, entry.matching))
                .collect();
            assert_eq!(distinct.len(), all.len(), "{scenario}: an entry twice");
            let tables =
                all.iter().map(|entry| entry.table_id).collect::<std::collections::BTreeSet<_>>();
            (all.len(), tables.len())
        };
        assert_eq!(count("ports-flows", "one of"), (10_000, 1));
        assert_eq!(count("ports-flows", "64 tables"), (60_992, 64));
        assert_eq!(count("ports-fair-share", BY_ENTRIES), (104, 1));
        assert_eq!(count("ports-tcp", BY_ENTRIES), (2, 1));
    }
}
