//! `cargo xtask test`: every test of the project, in named steps, with one total.
//!
//! Each step is announced, timed and counted; a step that fails does not stop the ones after it, so
//! one run shows everything. The last line is the total in a form that programs read. It must never
//! leave a test out silently: what a run cannot do (without root, without a peer) is said loudly.

mod cargo;
mod datapath;
mod demo;
mod deny;
mod disk;
mod dpdk;
mod leftovers;
mod libtest;
mod page;
mod peers;
mod python;
mod suites;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;

use crate::{docs, example, fuzz, instructions, shell, tidy, tool};

/// Marks every process of a run, so that one that stays behind is known.
const RUN_MARK: &str = "WEIR_TEST_RUN";

/// TestOptions of `cargo xtask test`.
#[derive(Debug, Args)]
pub(crate) struct TestOptions {
    /// Run only these steps (repeat or separate by commas); see --list
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    only: Vec<String>,
    /// List the steps and end
    #[arg(long)]
    list: bool,
    /// Do not install packages, even as root
    #[arg(long)]
    no_install: bool,
    /// Seconds for each fuzz target
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    fuzz_seconds: u32,
    /// Packets on which the fast datapath is compared with the reference
    #[arg(long, value_name = "PACKETS", default_value_t = 10_000_000)]
    differential_packets: u64,
}

/// What the steps know.
struct Context {
    root: PathBuf,
    is_root: bool,
    install: bool,
    fuzz_seconds: u32,
    differential_packets: u64,
    mark: String,
}

impl Context {
    /// A program that runs in the workspace and carries the mark of this run.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        self.marked(Command::new(program))
    }

    fn cargo(&self) -> Command {
        self.marked(shell::cargo())
    }

    fn marked(&self, mut command: Command) -> Command {
        command.current_dir(&self.root).env(RUN_MARK, &self.mark);
        command.env("XDG_CACHE_HOME", self.cache());
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

    /// Where cargo builds.
    fn target(&self) -> PathBuf {
        shell::target(&self.root)
    }

    /// What the run keeps for the next one, such as virtual environments of peers.
    fn cache(&self) -> PathBuf {
        self.target().join("peers")
    }
}

/// How many checks of a step passed and failed, and what it could not do.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    left_out: Vec<String>,
    /// The checks that failed, where they have names, with what they said.
    failures: Vec<String>,
    /// Checks that failed and passed when they ran once more; they count as passed.
    flaky: Vec<String>,
}

impl Tally {
    /// One check.
    fn of(passed: bool) -> Self {
        Self { passed: u64::from(passed), failed: u64::from(!passed), ..Self::default() }
    }

    /// Nothing ran, for this reason.
    fn left_out(why: impl Into<String>) -> Self {
        Self { left_out: vec![why.into()], ..Self::default() }
    }
}

struct Step {
    name: &'static str,
    what: &'static str,
    run: fn(&Context) -> Result<Tally>,
}

const STEPS: &[Step] = &[
    Step { name: "peers", what: "the programs the tests run beside Weir", run: peers::install },
    Step { name: "fmt", what: "formatting", run: cargo::fmt },
    Step { name: "tidy", what: "house rules and crate graph", run: run_tidy },
    Step {
        name: "deny",
        what: "licences, versions and sources of what we depend on",
        run: deny::run,
    },
    Step { name: "clippy", what: "lints, warnings denied", run: cargo::clippy },
    Step { name: "tests", what: "unit, property, vector and end-to-end tests", run: cargo::tests },
    Step {
        name: "cluster",
        what: "controllers that share their switches through etcd",
        run: cargo::cluster,
    },
    Step {
        name: "sameness",
        what: "the fast datapath against the reference, on random packets",
        run: datapath::sameness,
    },
    Step {
        name: "instructions",
        what: "how many instructions classifier, caches, codec and receiver execute",
        run: run_instructions,
    },
    Step { name: "model", what: "shared counters, by a model checker", run: datapath::model },
    Step { name: "doc", what: "documentation, warnings denied", run: cargo::doc },
    Step { name: "dpdk", what: "the feature dpdk over virtual devices", run: dpdk::run },
    Step { name: "docs", what: "the documentation's printed parts, and the book", run: run_docs },
    Step { name: "example", what: "the example of CONTRIBUTING.md", run: run_example },
    Step { name: "fuzz", what: "every fuzz target for a while", run: run_fuzz },
    Step { name: "python", what: "the Python package: wheel, tests, types", run: python::run },
    Step { name: "ofctl", what: "ovs-ofctl against weir switch", run: suites::ofctl },
    Step { name: "ryu", what: "the Ryu switch tester, 1.0 and 1.3", run: suites::ryu },
    Step {
        name: "rest",
        what: "REST beside Ryu's own server, and fuzzed from its OpenAPI document",
        run: suites::rest,
    },
    Step { name: "mininet", what: "weir in Mininet", run: suites::mininet },
    Step { name: "page", what: "the controller's page in headless Chromium", run: page::run },
    Step {
        name: "results-page",
        what: "the page of the lab's results in headless Chromium",
        run: page::run_results,
    },
    Step {
        name: "demo",
        what: "the demo of the README: whole, stopped, without root",
        run: demo::run,
    },
    Step { name: "leftovers", what: "nothing stays behind", run: |_| bail!("runs last") },
];

/// Runs the steps that are asked for; gives whether all checks passed.
///
/// # Errors
/// When `--only` names no step.
pub(crate) fn run(root: &Path, options: &TestOptions) -> Result<bool> {
    if options.list {
        for step in STEPS {
            println!("{:12} {}", step.name, step.what);
        }
        return Ok(true);
    }
    for name in &options.only {
        if !STEPS.iter().any(|step| step.name == name) {
            let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
            bail!("no step `{name}`; there are {}", names.join(", "));
        }
    }
    let context = Context {
        root: root.to_path_buf(),
        is_root: is_root(),
        install: !options.no_install,
        fuzz_seconds: options.fuzz_seconds,
        differential_packets: options.differential_packets,
        mark: format!("{}-{}", std::process::id(), seconds_since_epoch()),
    };
    let free = disk::free(&context.target())?;
    if options.only.is_empty() {
        disk::check(free, context.target().join("release").exists())?;
    }
    let before = leftovers::Snapshot::take();
    let mut report = Report::default();
    for step in STEPS {
        if !options.only.is_empty() && !options.only.iter().any(|name| name == step.name) {
            continue;
        }
        let began = Instant::now();
        println!("\n==> {}: {}", step.name, step.what);
        let tally = match step.name {
            "leftovers" => leftovers::check(&before, &context.mark),
            _ => (step.run)(&context),
        };
        report.add(step.name, tally, began.elapsed());
    }
    let taken = free.saturating_sub(disk::free(&context.target())?);
    println!("\n{} MiB of disk taken", taken >> 20);
    Ok(report.close())
}

#[derive(Default)]
struct Report {
    rows: Vec<(&'static str, Tally, Duration)>,
}

impl Report {
    fn add(&mut self, name: &'static str, tally: Result<Tally>, took: Duration) {
        let tally = tally.unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            Tally { failures: vec![format!("{error:#}")], ..Tally::of(false) }
        });
        println!(
            "<== {name}: {} passed, {} failed in {:.1} s",
            tally.passed,
            tally.failed,
            took.as_secs_f64()
        );
        self.rows.push((name, tally, took));
    }

    /// Prints the totals, the last line for programs; gives whether nothing failed.
    fn close(&self) -> bool {
        println!();
        for (name, tally, took) in &self.rows {
            let word = match (tally.failed, tally.flaky.len()) {
                (0, 0) => "",
                (0, _) => "FLAKY",
                _ => "FAILED",
            };
            let (passed, failed) = (tally.passed, tally.failed);
            let seconds = took.as_secs_f64();
            println!("{name:12} {passed:6} passed {failed:4} failed {seconds:7.1} s  {word}");
        }
        self.list("NOT RUN:", |tally| &tally.left_out);
        self.list("FLAKY: failed, and passed once more alone; find out why:", |tally| &tally.flaky);
        self.list("FAILED:", |tally| &tally.failures);
        let passed: u64 = self.rows.iter().map(|(_, tally, _)| tally.passed).sum();
        let failed: u64 = self.rows.iter().map(|(_, tally, _)| tally.failed).sum();
        println!("\n{passed} passed, {failed} failed");
        failed == 0
    }

    /// Prints what all steps have of one kind, with the steps' names.
    fn list(&self, title: &str, which: impl Fn(&Tally) -> &[String]) {
        let of = |(name, tally, _): &'_ (&'static str, Tally, Duration)| {
            which(tally).iter().map(|text| format!("  {name}: {text}")).collect::<Vec<_>>()
        };
        let lines: Vec<_> = self.rows.iter().flat_map(of).collect();
        if !lines.is_empty() {
            println!("\n{title}\n{}", lines.join("\n"));
        }
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
        match outcome {
            Ok(()) => tally.passed += 1,
            Err(error) => {
                println!("fuzz {target}: {error:#}");
                tally.failed += 1;
            }
        }
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
    use super::{Report, STEPS, Tally, TestOptions, run};
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn an_unknown_step_is_refused_with_the_known_ones() {
        let options = TestOptions {
            only: vec!["nonsense".into()],
            list: false,
            no_install: true,
            fuzz_seconds: 1,
            differential_packets: 1,
        };
        let error = run(Path::new("."), &options).unwrap_err().to_string();
        assert!(error.contains("no step `nonsense`; there are peers, fmt"), "{error}");
    }

    #[test]
    fn one_failure_fails_the_run() {
        let mut report = Report::default();
        report.add("a", Ok(Tally::of(true)), Duration::ZERO);
        assert!(report.close());
        report.add("b", Err(anyhow::anyhow!("broken")), Duration::ZERO);
        assert!(!report.close());
    }

    #[test]
    fn step_names_are_unique() {
        let mut names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
    }
}
