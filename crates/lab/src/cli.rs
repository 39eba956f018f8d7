//! The arguments of `weir lab` and `weir demo`, and what they do.
//!
//! The binary hands its arguments over and takes an exit code back; no other crate knows what a
//! run is made of.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use openflow::Version;

use crate::cancel::{Cancel, EXIT_INTERRUPTED};
use crate::controller::AppKind;
use crate::method::{self, Method, Timing};
use crate::rate::{self, LinkRate};
use crate::report::{CellKey, Report, html, table};
use crate::run::{Plan, execute};
use crate::samples::SampleFile;
use crate::scenario::HostScenario;
use crate::service::ProgramPaths;
use crate::setup::TestbedKind;
use crate::{controller, demo, dut, scenario, tools};

mod campaign;
mod results;

/// Measure any OpenFlow switch.
#[derive(Args, Debug)]
pub struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand, Debug)]
enum LabCommand {
    /// List scenarios, switches under test, controllers and methods.
    List,
    /// Run scenarios, or all of a published evaluation.
    Run(Box<campaign::CampaignArgs>),
    /// Print a scenario's file, to be copied and changed.
    Show(campaign::ShowArgs),
    /// Measure hub and learning switch between two hosts (E1).
    Hub(Box<RunArgs>),
    /// Draw results as tables, CSV or a page.
    Report(results::ReportArgs),
}

const RUN_EXAMPLES: &str = "\
Examples:
  weir lab run packet-in-hub
  weir lab run packet-in-hub --dut weir,ovs --controller weir,os-ken \\
      --port-rate 100M,1G --control-rate none,100M --repeats 5 --out e1
  weir lab run packet-in-hub --of 1.3 --app hub --method pps,ping --quick";

/// What to measure and how.
#[derive(Args, Debug)]
#[command(after_help = RUN_EXAMPLES)]
struct RunArgs {
    /// The scenario (see `weir lab list`).
    scenario: String,
    /// Switches under test.
    #[arg(long, value_delimiter = ',', default_value = "weir")]
    dut: Vec<String>,
    /// Controllers.
    #[arg(long, value_delimiter = ',', default_value = "weir")]
    controller: Vec<String>,
    /// Applications of the controllers: hub, learning-switch. Default: those of the scenario.
    #[arg(long, value_delimiter = ',')]
    app: Vec<AppKind>,
    /// OpenFlow versions: 1.0, 1.3.
    #[arg(long, value_delimiter = ',', default_value = "1.0", value_parser = rate::release::parse)]
    of: Vec<Version>,
    /// Rates of the hosts' links, both directions: none, 100M, 1G...
    #[arg(long, value_delimiter = ',', default_value = "100M")]
    port_rate: Vec<LinkRate>,
    /// Rates of the link between switch and controller: none, 100M...
    #[arg(long, value_delimiter = ',', default_value = "none")]
    control_rate: Vec<LinkRate>,
    /// Methods (see `weir lab list`). Default: those of the scenario.
    #[arg(long, value_delimiter = ',')]
    method: Vec<String>,
    /// How often every cell is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: u16,
    /// Short measurements, for a look.
    #[arg(long)]
    quick: bool,
    /// Seconds of each TCP and UDP run.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=3600))]
    duration: Option<u32>,
    /// Seconds that the whole run may take; cells that do not fit are left out and named.
    #[arg(long)]
    budget: Option<u64>,
    /// Where the hosts are.
    #[arg(long, value_enum, default_value_t = TestbedArg::Auto)]
    testbed: TestbedArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    paths: PathArgs,
    /// Install what is missing of os-ken into its own virtual environment first.
    #[arg(long)]
    install_peers: bool,
}

/// Where the hosts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TestbedArg {
    /// Network namespaces as root, in-memory ports otherwise.
    Auto,
    /// Network namespaces; needs root.
    Kernel,
    /// In-memory ports.
    Memory,
}

/// Where results go.
#[derive(Args, Debug)]
struct OutputArgs {
    /// Folder for report.json, report.html and samples.jsonl (raw samples, as they are made).
    #[arg(long, default_value = ".")]
    out: PathBuf,
    /// Print the report as JSON on standard output instead of the table.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

/// Where programs are.
#[derive(Args, Debug)]
struct PathArgs {
    /// The weir binary whose switch and controller are measured. Default: this one.
    #[arg(long, value_name = "PATH")]
    weir: Option<PathBuf>,
    /// Virtual environment with os-ken.
    #[arg(long, value_name = "DIR", env = "WEIR_OS_KEN_DIR")]
    os_ken: Option<PathBuf>,
}

const DEMO_EXAMPLES: &str = "\
Examples:
  weir demo
  weir demo --out /tmp/demo --repeats 2";

/// Show it: hub and learning switch beside each other, in under two minutes.
#[derive(Args, Debug)]
#[command(after_help = DEMO_EXAMPLES)]
pub struct DemoArgs {
    /// How often every cell is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    repeats: u16,
    /// Seconds that the demo may take; what does not fit is left out and named.
    #[arg(long, default_value_t = 110)]
    budget: u64,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    paths: PathArgs,
}

impl PathArgs {
    fn resolve(&self) -> anyhow::Result<ProgramPaths> {
        let weir = match &self.weir {
            Some(path) => path.clone(),
            None => std::env::current_exe().context("cannot find the running program")?,
        };
        let os_ken_dir = self.os_ken.clone().unwrap_or_else(tools::os_ken_default_dir);
        Ok(ProgramPaths { weir, os_ken_dir })
    }
}

impl LabArgs {
    /// Does what was asked.
    ///
    /// # Errors
    /// Wrong names, missing rights, files that cannot be written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            LabCommand::List => {
                print!("{}", list());
                Ok(ExitCode::SUCCESS)
            }
            LabCommand::Run(args) => args.run(),
            LabCommand::Show(args) => args.run(),
            LabCommand::Hub(args) => args.run(),
            LabCommand::Report(args) => args.run(),
        }
    }
}

impl DemoArgs {
    /// Runs the demo.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let cancel = Cancel::on_signals().context("cannot catch signals")?;
        let kind = testbed_kind(TestbedArg::Auto)?;
        let limit = Duration::from_secs(self.budget);
        let mut plan = demo::plan(self.paths.resolve()?, kind, usize::from(self.repeats), limit);
        plan.quiet = self.output.quiet;
        carry_out(&plan, &self.output, &cancel)
    }
}

/// Everything that the lab knows by name.
#[must_use]
pub fn list() -> String {
    let mut text = String::from("scenarios:\n");
    for scenario in scenario::ALL {
        text += &format!("  {:24} {}\n", scenario.id(), scenario.question());
    }
    for scenario in crate::campaign::catalogue::all().unwrap_or_default() {
        let of = scenario.evaluation.as_deref().unwrap_or("--");
        text += &format!("  {of} {:21} {}\n", scenario.id, scenario.question);
    }
    text += "switches under test:\n";
    for dut in dut::ALL {
        text += &format!("  {:20} {}\n", dut.name(), dut.about());
    }
    text += "controllers:\n";
    for controller in controller::ALL {
        text += &format!("  {:20} {}\n", controller.name(), controller.about());
    }
    text += "methods:\n";
    for method in method::ALL {
        text += &format!("  {:20} {}\n", method.id(), method.about());
    }
    text
}

impl RunArgs {
    fn run(self) -> anyhow::Result<ExitCode> {
        let cancel = Cancel::on_signals().context("cannot catch signals")?;
        let plan = self.plan()?;
        if self.install_peers {
            eprintln!("installing os-ken into {}", plan.paths.os_ken_dir.display());
            if let Err(error) = tools::install_os_ken(&plan.paths.os_ken_dir, &cancel) {
                return if cancel.check().is_err() { Ok(interrupted()) } else { Err(error) };
            }
        }
        carry_out(&plan, &self.output, &cancel)
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let Some(scenario) = scenario::find(&self.scenario) else {
            let known: Vec<&str> = scenario::ALL.iter().map(|s| s.id()).collect();
            bail!("no scenario {:?}: there is {}", self.scenario, known.join(", "));
        };
        for name in &self.dut {
            if dut::find(name).is_none() {
                let known: Vec<&str> = dut::ALL.iter().map(|d| d.name()).collect();
                bail!("no switch under test {name:?}: there is {}", known.join(", "));
            }
        }
        for name in &self.controller {
            if controller::find(name).is_none() {
                let known: Vec<&str> = controller::ALL.iter().map(|c| c.name()).collect();
                bail!("no controller {name:?}: there is {}", known.join(", "));
            }
        }
        let mut timing = if self.quick { Timing::quick() } else { Timing::full() };
        if let Some(duration) = self.duration {
            timing.load_s = duration;
        }
        let kind = testbed_kind(self.testbed)?;
        Ok(Plan {
            scenario,
            cells: self.cells(scenario, kind),
            methods: methods(scenario, &self.method)?,
            timing,
            repeats: usize::from(self.repeats),
            idle_repeats: usize::from(self.repeats),
            kind,
            paths: self.paths.resolve()?,
            limit: self.budget.map(Duration::from_secs),
            notes: Vec::new(),
            quiet: self.output.quiet,
        })
    }

    /// The whole matrix, links outermost, so that what is compared stands together.
    /// In-memory ports have no links and so no rates.
    fn cells(&self, scenario: &dyn HostScenario, kind: TestbedKind) -> Vec<CellKey> {
        let free = [LinkRate(None)];
        let (port_rates, control_rates) = match kind {
            TestbedKind::Kernel => (&self.port_rate[..], &self.control_rate[..]),
            TestbedKind::Memory => (&free[..], &free[..]),
        };
        let apps = if self.app.is_empty() { scenario.apps() } else { &self.app };
        let mut cells = Vec::new();
        for version in &self.of {
            for port_rate in port_rates {
                for control_rate in control_rates {
                    for app in apps {
                        for dut in &self.dut {
                            cells.extend(self.controller.iter().map(|controller| CellKey {
                                dut: dut.clone(),
                                controller: controller.clone(),
                                app: *app,
                                version: *version,
                                port_rate: *port_rate,
                                control_rate: *control_rate,
                            }));
                        }
                    }
                }
            }
        }
        cells
    }
}

fn methods(
    scenario: &dyn HostScenario,
    names: &[String],
) -> anyhow::Result<Vec<&'static dyn Method>> {
    if names.is_empty() {
        return Ok(scenario.methods().to_vec());
    }
    names
        .iter()
        .map(|name| {
            let known: Vec<&str> = method::ALL.iter().map(|m| m.id()).collect();
            method::find(name)
                .with_context(|| format!("no method {name:?}: there is {}", known.join(", ")))
        })
        .collect()
}

/// Finds out by trying whether namespaces may be made.
fn testbed_kind(wish: TestbedArg) -> anyhow::Result<TestbedKind> {
    let may = netdev::sys::netns::Namespace::new();
    match (wish, may) {
        (TestbedArg::Memory, _) => Ok(TestbedKind::Memory),
        (TestbedArg::Auto | TestbedArg::Kernel, Ok(_)) => Ok(TestbedKind::Kernel),
        (TestbedArg::Kernel, Err(error)) => {
            bail!("network namespaces need root (or use --testbed memory): {error}")
        }
        (TestbedArg::Auto, Err(error)) => {
            eprintln!(
                "no network namespaces ({error}): in-memory ports and Weir's own traffic instead; \
                 run as root for real hosts"
            );
            Ok(TestbedKind::Memory)
        }
    }
}

fn interrupted() -> ExitCode {
    ExitCode::from(EXIT_INTERRUPTED)
}

fn carry_out(plan: &Plan, output: &OutputArgs, cancel: &Cancel) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(&output.out)
        .with_context(|| format!("cannot make the folder {}", output.out.display()))?;
    let mut samples = sample_file(&output.out)?;
    let Ok(report) = execute(plan, &mut samples, cancel) else {
        eprintln!("interrupted; what was measured until then: {}", shown(samples.path()));
        return Ok(interrupted());
    };
    publish(&report, output, samples.path())?;
    Ok(if report.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The file of raw samples. It is made before the first measurement, so that a folder that takes no
/// files is found out then and not after the last.
fn sample_file(folder: &Path) -> anyhow::Result<SampleFile> {
    SampleFile::create(folder).with_context(|| {
        format!("cannot write into {}; another folder: --out FOLDER", folder.display())
    })
}

/// Shows the report, then writes it: what was measured is seen even when the disk is full.
fn publish(report: &Report, output: &OutputArgs, samples: &Path) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(report).context("cannot write the report as JSON")?;
    if output.json {
        println!("{json}");
    } else {
        println!("{}", table::render(report, terminal_width()));
    }
    let json_path = write_whole(&output.out, "report.json", &json)?;
    let html_path = write_whole(&output.out, "report.html", &html::render(report))?;
    if !output.json {
        println!("{}\n{}\n{}", shown(&html_path), shown(&json_path), shown(samples));
    }
    Ok(())
}

/// Writes a file under its name only once it is whole.
fn write_whole(folder: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let path = folder.join(name);
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new()
            .permissions(std::fs::Permissions::from_mode(0o644))
            .tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(&path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn shown(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// Columns of the terminal; a pipe gets a fixed width.
fn terminal_width() -> Option<u16> {
    const PIPE: u16 = 180;
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    Some(size.ok().map(|size| size.ws_col).filter(|columns| *columns > 0).unwrap_or(PIPE))
}

#[cfg(test)]
mod tests {
    use super::{sample_file, write_whole};
    use std::path::Path;

    #[test]
    fn a_folder_that_takes_no_files_is_named_before_anything_is_measured() {
        let error = sample_file(Path::new("/proc/self")).unwrap_err().to_string();
        assert!(error.contains("/proc/self") && error.contains("--out"), "{error}");
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = write_whole(folder.path(), "report.json", "{}").unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "{}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write_whole(&folder.path().join("none"), "report.json", "{}").is_err());
    }
}
