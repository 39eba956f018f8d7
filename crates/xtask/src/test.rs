//! `cargo xtask test`: every test of the project, in named steps, with one total.
//!
//! Each step is announced, timed, bounded and counted; a step that fails does not stop the ones
//! after it, so one run shows everything. The last line is the total in a form that programs read.
//! It must never leave a test out silently: what a run cannot do (without root, without a peer) or
//! need not do (nothing has changed) is named.

mod cargo;
mod datapath;
mod demo;
mod deny;
mod disk;
mod dpdk;
mod inputs;
mod lanes;
mod leftovers;
mod nextest;
mod packages;
mod page;
mod peers;
mod python;
mod report;
mod ryu;
mod step;
mod suites;
mod totals;

use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};

use self::report::{Report, Tally};
use self::step::{LEFTOVERS, STEPS, Step};
use crate::{docs, example, fuzz, instructions, shell, tidy, tool};

/// Marks every process of a run, so that one that stays behind is known.
const RUN_MARK: &str = "WEIR_TEST_RUN";

/// Names the step of a process of a run, so that a step can be ended.
const STEP_MARK: &str = "WEIR_TEST_STEP";

/// Options of `cargo xtask test`.
#[derive(Debug, Default, Args)]
#[command(after_help = HELP)]
pub(crate) struct TestOptions {
    /// Run only these steps and what they need (repeat or separate by commas); see --list
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    only: Vec<String>,
    /// List the steps and end
    #[arg(long)]
    list: bool,
    /// For a change at hand: formatting, house rules, lints, the tests that need neither root nor
    /// the program, the cases on both datapaths, a million random packets
    #[arg(long, conflicts_with_all = ["soak", "only"])]
    smoke: bool,
    /// Everything whole: all of the Ryu tester, a hundred million random packets, ten minutes for
    /// each fuzz target, the demo three times, twenty times the rounds of the kernel tier
    #[arg(long)]
    soak: bool,
    /// Do not install packages, even as root
    #[arg(long)]
    no_install: bool,
    /// Seconds for each fuzz target [default: 15; with --soak 600]
    #[arg(long, value_name = "SECONDS")]
    fuzz_seconds: Option<u32>,
    /// Packets on which the step `sameness` compares the fast datapath with the reference
    /// [default: 10 million; with --soak 100 million]
    #[arg(long, value_name = "PACKETS")]
    differential_packets: Option<u64>,
    /// This process is a step of a run.
    #[arg(long, value_name = "STEP", hide = true)]
    as_step: Option<String>,
}

const HELP: &str = "\
Three lanes of steps run at a time: two that mostly wait (the Ryu tester; suites of other programs,
pages, the demo) and one that computes; steps that build in folders of their own go to one of the
last two when it has ended its own. The output of a step is printed when the step ends, and stays in
target/test-steps. Steps whose inputs have not changed since they passed in this folder are left
out, but not with CI=true, --soak, --only or --fuzz-seconds. Each step is bounded in time, except
with --soak; Ctrl-C ends all of them. A test that fails runs once more, and is named as flaky when
it passes then.

The last line is the total, `N passed, N failed`; target/test-report.json has the seconds of each
step, those of the processor too, and the slowest tests. As root it runs everything and installs
what is missing; what could not run is listed below NOT RUN.";

/// The extent of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Smoke,
    Usual,
    Soak,
}

/// Facts and settings of a run, for all steps.
struct Context {
    root: PathBuf,
    /// The folder in which cargo builds.
    target: PathBuf,
    is_root: bool,
    install: bool,
    extent: Extent,
    fuzz_seconds: u32,
    differential_packets: u64,
    mark: String,
}

impl Context {
    fn new(root: &Path, options: &TestOptions) -> Self {
        let extent = match options {
            TestOptions { smoke: true, .. } => Extent::Smoke,
            TestOptions { soak: true, .. } => Extent::Soak,
            TestOptions { .. } => Extent::Usual,
        };
        let is_soak = extent == Extent::Soak;
        // A step has the mark of its run.
        let mark = std::env::var(RUN_MARK).ok().filter(|_| options.as_step.is_some());
        let own_mark = || format!("{}-{}", std::process::id(), seconds_since_epoch());
        Self {
            root: root.to_path_buf(),
            target: shell::target(root),
            is_root: is_root(),
            install: !options.no_install,
            extent,
            fuzz_seconds: options.fuzz_seconds.unwrap_or(if is_soak { 600 } else { 15 }),
            differential_packets: options.differential_packets.unwrap_or(if is_soak {
                100_000_000
            } else {
                10_000_000
            }),
            mark: mark.unwrap_or_else(own_mark),
        }
    }

    /// A program that runs in the workspace, in the environment that steps have in common.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        self.prepared(Command::new(program))
    }

    fn cargo(&self) -> Command {
        self.prepared(shell::cargo())
    }

    fn prepared(&self, mut command: Command) -> Command {
        command.current_dir(&self.root).env("XDG_CACHE_HOME", self.cache());
        // A property test that fails panics a thousand times while it looks for a small example.
        command.env("RUST_BACKTRACE", "0");
        command
    }

    /// A program that cargo builds; none when it is missing and may not be installed.
    fn tool(&self, tool: &tool::Tool) -> Result<Option<PathBuf>> {
        if self.is_root && self.install {
            return tool::find_or_install(tool, || self.cargo()).map(Some);
        }
        Ok(tool::find(tool))
    }

    /// Whether tests run that need root, and programs that only root installs.
    fn runs_ignored(&self) -> bool {
        self.is_root && self.extent != Extent::Smoke
    }

    fn target(&self) -> &Path {
        &self.target
    }

    /// The program that the step `weir` builds.
    fn weir(&self) -> PathBuf {
        self.target().join(cargo::RELEASE).join("weir")
    }

    /// The folder for what the next run uses again, such as virtual environments of peers.
    fn cache(&self) -> PathBuf {
        self.target().join("peers")
    }

    /// The file with the outcome of a step.
    fn outcome_of(&self, step: &str) -> PathBuf {
        self.target().join("test-steps").join(format!("{step}.json"))
    }
}

/// Runs the steps that are asked for; gives whether all checks passed.
///
/// # Errors
/// When `--only` names no step, or another run is under way in the same target folder.
pub(crate) fn run(root: &Path, options: &TestOptions) -> Result<bool> {
    let began = Instant::now();
    if options.list {
        for step in STEPS {
            println!("{:12} {}", step.name, step.purpose);
        }
        println!("{LEFTOVERS:12} nothing stays behind");
        return Ok(true);
    }
    let steps = chosen(options)?;
    let context = Context::new(root, options);
    if let Some(name) = &options.as_step {
        lanes::as_step(&context, name)?;
        return Ok(true);
    }
    std::fs::create_dir_all(context.target()).context("making the target folder")?;
    let _lock = lock(&context.target().join("test.lock"))?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).context("signals")?;
    }
    let free = disk::free(context.target())?;
    if options.only.is_empty() {
        disk::check(free, context.target().join(cargo::RELEASE).exists())?;
    }
    let before = leftovers::Snapshot::take();
    let mut report = Report::default();
    let in_ci = std::env::var_os("CI").is_some_and(|value| value != "false" && !value.is_empty());
    // A step that ran for fewer seconds than usual proves nothing about the next run.
    let runs_all = in_ci || !options.only.is_empty() || options.fuzz_seconds.is_some();
    let tree = match context.extent {
        Extent::Usual if !runs_all => Some(inputs::Tree::read(root, context.target())?),
        Extent::Usual | Extent::Smoke | Extent::Soak => None,
    };
    let is_unbounded = context.extent == Extent::Soak;
    let process = |name: &str| {
        // The file on disk may be another by now: a step builds this program, too.
        let mut command = Command::new("/proc/self/exe");
        command.args(std::env::args_os().skip(1)).args(["--as-step", name]).current_dir(root);
        command
    };
    let run = lanes::Run {
        context: &context,
        process: &process,
        interrupted: &interrupted,
        tree,
        is_unbounded,
        is_built_on: !in_ci || !options.only.is_empty(),
    };
    if let Err(error) = run.steps(&steps, &mut report) {
        // A full disk, say: what still runs is ended, and what has ended is reported.
        leftovers::end(&[(RUN_MARK, &context.mark)])?;
        report.add("run", Err(error), Duration::ZERO);
    }
    println!("\n==> {LEFTOVERS}: nothing stays behind");
    let last = Instant::now();
    let left = leftovers::check(&before, &context.mark);
    report.add(LEFTOVERS, left, last.elapsed());
    let taken = free.saturating_sub(disk::free(context.target())?);
    println!("\n{} MiB of disk taken", taken >> 20);
    // A full disk must not hide the totals.
    if let Err(error) = report.write(&context.target().join("test-report.json"), began.elapsed()) {
        println!("{error:#}");
    }
    Ok(report.close())
}

/// The steps of a run, in the order of the table, with what they need.
fn chosen(options: &TestOptions) -> Result<Vec<&'static Step>> {
    let mut names: Vec<&str> = options.only.iter().map(String::as_str).collect();
    let mut index = 0;
    while let Some(name) = names.get(index) {
        match step::named(name) {
            Some(step) => names.extend(step.needs),
            // It always runs.
            None if *name == LEFTOVERS => {}
            None => {
                let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
                bail!("no step `{name}`; there are {}", known.join(", "));
            }
        }
        index += 1;
    }
    let is_chosen = |step: &&Step| match names.is_empty() {
        true => step.is_smoke || !options.smoke,
        false => names.contains(&step.name),
    };
    Ok(STEPS.iter().filter(is_chosen).collect())
}

/// The lock of a run; two at once would take each other's ports, files and leftovers for theirs.
fn lock(path: &Path) -> Result<File> {
    let named = || format!("locking {}", path.display());
    let mut options = File::options();
    let mut file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .with_context(named)?;
    match file.try_lock() {
        Ok(()) => {
            file.set_len(0).with_context(named)?;
            writeln!(file, "{}", std::process::id()).with_context(named)?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            file.read_to_string(&mut pid).with_context(named)?;
            bail!("process {} runs the tests in this target folder already", pid.trim())
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(named),
    }
}

fn run_tidy(context: &Context) -> Result<Tally> {
    tidy::run(&context.root)?;
    Ok(Tally::of(true))
}

fn run_docs(context: &Context) -> Result<Tally> {
    let options = docs::DocsOptions { check: true, no_install: !context.install };
    let left_out = docs::run(&context.root, &options)?;
    Ok(Tally { left_out: left_out.into_iter().collect(), ..Tally::of(true) })
}

fn run_example(context: &Context) -> Result<Tally> {
    example::run(&context.root)?;
    Ok(Tally::of(true))
}

fn run_instructions(context: &Context) -> Result<Tally> {
    if !peers::installed("valgrind") {
        return Ok(Tally::left_out("valgrind is missing (Debian's package valgrind)"));
    }
    if context.tool(&instructions::RUNNER)?.is_none() {
        return Ok(Tally::left_out(instructions::RUNNER.how_to_install()));
    }
    instructions::run(&context.root, &instructions::InstructionsOptions::default())?;
    Ok(Tally::of(true))
}

fn run_fuzz(context: &Context) -> Result<Tally> {
    if !peers::installed("c++") {
        return Ok(Tally::left_out("libFuzzer needs a C++ compiler"));
    }
    let mut tally = Tally::default();
    let options =
        fuzz::FuzzOptions { seconds: context.fuzz_seconds, ..fuzz::FuzzOptions::default() };
    for (target, outcome) in fuzz::run_all(&context.root, &options)? {
        tally.check(&target, outcome);
    }
    Ok(tally)
}

/// Whether we may make network namespaces: the effective user is root.
fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uids.and_then(|uids| uids.split_whitespace().nth(1)) == Some("0")
}

fn seconds_since_epoch() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::{TestOptions, chosen, lock};

    fn names(options: &TestOptions) -> Vec<&'static str> {
        chosen(options).unwrap().iter().map(|step| step.name).collect()
    }

    #[test]
    fn an_unknown_step_is_refused_with_the_known_ones() {
        let options = TestOptions { only: vec!["nonsense".into()], ..TestOptions::default() };
        let error = chosen(&options).map(drop).unwrap_err().to_string();
        assert!(error.contains("no step `nonsense`; there are peers, fmt"), "{error}");
    }

    #[test]
    fn a_step_comes_with_what_it_needs() {
        let only = |name: &str| TestOptions { only: vec![name.into()], ..TestOptions::default() };
        assert_eq!(names(&only("ofctl")), ["weir", "ofctl"]);
        assert_eq!(names(&only("cluster")), ["cluster"]);
        assert!(names(&only("leftovers")).is_empty());
    }

    #[test]
    fn a_smoke_run_has_no_step_that_needs_one_it_leaves_out() {
        let smoke = TestOptions { smoke: true, ..TestOptions::default() };
        assert_eq!(names(&smoke), ["fmt", "tidy", "clippy", "tests"]);
        for step in chosen(&smoke).unwrap() {
            assert!(step.needs.iter().all(|need| names(&smoke).contains(need)), "{}", step.name);
        }
    }

    #[test]
    fn a_second_run_in_the_same_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.lock");
        let first = lock(&path).unwrap();
        let refusal = lock(&path).unwrap_err().to_string();
        assert!(refusal.contains(&format!("process {} runs", std::process::id())), "{refusal}");
        drop(first);
        lock(&path).unwrap();
    }
}
