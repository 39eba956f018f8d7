//! `weir lab check`.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::{PathArgs, TestbedArg, testbed_kind};
use crate::cancel::Cancel;
use crate::check::{CheckReport, Finding, SwitchAtPorts, Truth, barrier, probe_features, table};
use crate::dut::{self, Dut};
use crate::scratch;
use crate::settings::Settings;
use crate::setup::{Setup, SetupParts};

const EXAMPLES: &str = "\
Examples:
  weir lab check ovs
  weir lab check weir --entries 100000 --json
  weir lab check external --inventory box.toml --of 1.0";

/// Rounds of the question about barriers.
const ROUNDS: u32 = 50;

/// Entries before each barrier.
const BARRIER_ENTRIES: u32 = 100;

/// Which switch, and how far.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArgs {
    /// The switch under test (see `weir lab list`)
    dut: String,
    /// Versions of OpenFlow
    #[arg(long, value_delimiter = ',', default_value = "1.0,1.3")]
    of: Vec<String>,
    /// Entries that the table is asked to hold
    #[arg(
        long,
        default_value_t = 2000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    entries: u32,
    /// Where the hosts are
    #[arg(long, value_enum, default_value_t = TestbedArg::Auto)]
    testbed: TestbedArg,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    paths: PathArgs,
}

/// The version itself, as a finding.
fn version_finding(of: &str, verdict: Truth, note: String) -> Finding {
    Finding { area: "version".to_owned(), feature: of.to_owned(), verdict, note }
}

impl CheckArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let cancel = Cancel::on_signals().context("cannot catch signals")?;
        let Some(dut) = dut::find(&self.dut) else {
            let known: Vec<&str> = dut::ALL.iter().map(|dut| dut.name()).collect();
            bail!("no switch under test {:?}: there is {}", self.dut, known.join(", "));
        };
        let reports = self.of.iter().map(|of| {
            let findings = self.findings(dut, of, &cancel)?;
            Ok(CheckReport { dut: dut.name().to_owned(), version: of.clone(), findings })
        });
        let reports = reports.collect::<Result<Vec<CheckReport>>>()?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&reports)?);
        } else {
            reports.iter().for_each(print);
        }
        let has_lies = reports.iter().any(CheckReport::has_lies);
        Ok(if has_lies { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn findings(&self, dut: &'static dyn Dut, of: &str, cancel: &Cancel) -> Result<Vec<Finding>> {
        let settings = Settings { version: Some(of.to_owned()), ..Settings::default() };
        settings.check()?;
        let paths = self.paths.resolve()?;
        if let Err(why) = dut.check(&settings, &paths) {
            return Ok(vec![version_finding(of, Truth::No, why)]);
        }
        dut.programs(&paths)?;
        let folder = scratch::make(scratch::LAB)?;
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
            Err(error) => return Ok(vec![version_finding(of, Truth::No, error.to_string())]),
        };
        let Some(client) = setup.take_client() else {
            bail!("{} has no OpenFlow channel", dut.name());
        };
        let mut switch = SwitchAtPorts::new(client, &setup)?;
        let mut findings = vec![version_finding(of, Truth::Yes, String::new())];
        findings.extend(probe_features(&mut switch, settings.version()?)?);
        findings.push(barrier(&mut switch, ROUNDS, BARRIER_ENTRIES)?);
        findings.push(table(&mut switch, self.entries)?);
        Ok(findings)
    }
}

fn print(report: &CheckReport) {
    println!("{}, OpenFlow {}", report.dut, report.version);
    let width = report.findings.iter().map(|finding| finding.feature.len()).max().unwrap_or(0);
    for Finding { area, feature, verdict, note } in &report.findings {
        let line = format!("  {area:8} {feature:width$}  {:7}  {note}", verdict.text());
        println!("{}", line.trim_end());
    }
}
