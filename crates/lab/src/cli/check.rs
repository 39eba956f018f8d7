//! `weir lab check`.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use conformance::cases::{self, Case, CaseFinding, CaseVerdict, PlayPace, obedience, play_all};
use conformance::{CheckReport, Finding, Truth, barrier, probe_features, table};
use programs::cancel::Cancel;
use programs::scratch;

use super::{PathArgs, TestbedArg, testbed_kind};
use crate::dut::{self, Dut};
use crate::progress::RunProgress;
use crate::settings::Settings;
use crate::setup::{Setup, SetupParts};
use crate::switch_at_ports::SwitchAtPorts;

const EXAMPLES: &str = "\
Examples:
  weir lab check ovs
  weir lab check weir --entries 100000 --json
  weir lab check ovs --of 1.3 --cases my.case
  weir lab check mine=./start-my-switch.sh
  weir lab check external --inventory box.toml --of 1.0";

/// Rounds of the question about barriers.
const ROUNDS: u32 = 50;

/// Ports of a switch that the lab starts: the cases have as many.
const PORTS: usize = 4;

/// Entries before each barrier.
const BARRIER_ENTRIES: u32 = 100;

/// The switch, and the extent of the check.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArgs {
    /// The switch under test (see `weir lab list`), or NAME=PROGRAM
    dut: String,
    /// Versions of OpenFlow
    #[arg(long, value_delimiter = ',', default_value = "1.0,1.3")]
    of: Vec<String>,
    /// Cases in place of those that are built in: a file, or a folder of *.case files
    #[arg(long, value_name = "PATH")]
    cases: Option<PathBuf>,
    /// Play no cases
    #[arg(long, conflicts_with = "cases")]
    skip_cases: bool,
    /// Entries that the table is asked to hold
    #[arg(
        long,
        default_value_t = 2000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    entries: u32,
    /// Place of the hosts
    #[arg(long, value_enum, default_value_t = TestbedArg::Auto)]
    testbed: TestbedArg,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    paths: PathArgs,
}

/// The area of the finding whether a switch speaks a version.
const VERSION: &str = "version";

impl CheckArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let cancel = Cancel::on_signals().context("cannot catch signals")?;
        let dut = dut::named(&self.dut)?;
        let cases = match (self.skip_cases, self.cases.as_deref()) {
            (true, _) => Vec::new(),
            (false, path) => cases::load(path)?,
        };
        let reports = self.of.iter().map(|of| self.report(dut, of, &cases, &cancel));
        let reports = reports.collect::<Result<Vec<CheckReport>>>()?;
        files::print(&if self.json {
            serde_json::to_string_pretty(&reports)? + "\n"
        } else {
            reports.iter().map(report_text).collect()
        })?;
        let is_good = reports.iter().all(CheckReport::is_good);
        let mut findings = reports.iter().flat_map(|report| &report.findings);
        let speaks = findings.any(|one| one.area == VERSION && one.verdict == Truth::Yes);
        Ok(if is_good && speaks { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn report(
        &self,
        dut: &'static Dut,
        of: &str,
        cases: &[Case],
        cancel: &Cancel,
    ) -> Result<CheckReport> {
        // The version itself is the first finding.
        let (area, feature, note) = (VERSION.to_owned(), of.to_owned(), String::new());
        let speaks = Finding { area, feature, verdict: Truth::Yes, note };
        let report = |cases, findings| {
            Ok(CheckReport { dut: dut.name.to_owned(), version: of.to_owned(), cases, findings })
        };
        let refuses =
            |note| report(Vec::new(), vec![Finding { verdict: Truth::No, note, ..speaks.clone() }]);
        let settings =
            Settings { version: Some(of.to_owned()), ports: Some(PORTS), ..Settings::default() };
        settings.check()?;
        let version = settings.version()?;
        let paths = self.paths.resolve()?;
        if let Err(why) = (dut.check)(dut, &settings, &paths) {
            return refuses(why);
        }
        (dut.programs)(dut, &paths)?;
        let folder = scratch::make()?;
        let started = Setup::start(&SetupParts {
            settings: &settings,
            dut,
            controller: None,
            kind: testbed_kind(self.testbed)?,
            paths: &paths,
            dir: folder.path(),
            cancel,
        });
        let mut setup = match started {
            Ok(setup) => setup,
            Err(error) if error.is_stop() => return Err(error.into()),
            Err(error) => return refuses(error.to_string()),
        };
        let Some(client) = setup.take_client() else {
            bail!("{} has no OpenFlow channel", dut.name);
        };
        let mut switch = SwitchAtPorts::new(client, &setup, cancel)?;
        // A thousand lines of progress are for a bar only.
        let is_quiet = self.json || !std::io::stderr().is_terminal();
        let progress = RunProgress::new(cases.len() as u64, is_quiet);
        let played = play_all(&mut switch, version, cases, PlayPace::default(), |case| {
            progress.begin(&case.name);
            progress.advance(1);
        })?;
        drop(progress);
        let mut findings = vec![speaks.clone()];
        findings.extend(obedience(&played));
        findings.extend(probe_features(&mut switch, version)?);
        findings.push(barrier(&mut switch, ROUNDS, BARRIER_ENTRIES)?);
        findings.push(table(&mut switch, self.entries)?);
        report(played, findings)
    }
}

/// The cases: how many came to what in each folder, those that fail, and why others are left out.
fn cases_text(report: &CheckReport) -> String {
    if report.cases.is_empty() {
        return String::new();
    }
    let mut areas: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let mut reasons: BTreeMap<(CaseVerdict, &str), Vec<&CaseFinding>> = BTreeMap::new();
    for found in &report.cases {
        let area = found.file.rsplit_once('/').map_or(found.file.as_str(), |(area, _)| area);
        areas.entry(area).or_default()[found.verdict as usize] += 1;
        reasons.entry((found.verdict, &found.note)).or_default().push(found);
    }
    let width = areas.keys().map(|area| area.len()).max().unwrap_or(0);
    let titles = CaseVerdict::ALL.map(CaseVerdict::text);
    let titles = titles.map(|title| format!("{title:>15}")).concat();
    let mut text = format!("  {:width$}  {titles}\n", "cases");
    for (area, counts) in &areas {
        let counts = counts.map(|count| format!("{count:>15}")).concat();
        text += &format!("  {area:width$}  {counts}\n");
    }
    for ((verdict, note), found) in &reasons {
        match verdict {
            CaseVerdict::Passed => {}
            CaseVerdict::Failed => {
                for CaseFinding { file, line, case, .. } in found {
                    text += &format!("  FAILED {file}:{line} ({case}): {note}\n");
                }
            }
            CaseVerdict::NotSupported | CaseVerdict::NotPlayed => {
                let more = match found.len() {
                    1 => String::new(),
                    count => format!(" and {} more", count - 1),
                };
                text += &format!("  {}: {note}: {}{more}\n", verdict.text(), found[0].case);
            }
        }
    }
    text
}

/// The report, for people.
fn report_text(report: &CheckReport) -> String {
    let mut text = format!("{}, OpenFlow {}\n", report.dut, report.version);
    text += &cases_text(report);
    let width = report.findings.iter().map(|finding| finding.feature.len()).max().unwrap_or(0);
    for Finding { area, feature, verdict, note } in &report.findings {
        let line = format!("  {area:8} {feature:width$}  {:7}  {note}", verdict.text());
        text += &format!("{}\n", line.trim_end());
    }
    text
}
