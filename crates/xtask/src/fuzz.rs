//! `cargo xtask fuzz`: builds the fuzz targets on the pinned stable compiler and runs them.
//!
//! The coverage that guides libFuzzer is a stable pass of the compiler's back end, so neither a
//! nightly toolchain nor cargo-fuzz is needed; libFuzzer itself comes with the crate
//! `libfuzzer-sys` and wants a C++ compiler. Seeds come from `vectors/`. It must never pass a
//! target of these that coverage does not guide: such a run finds nothing and looks like success.
//! One more target, `live`, is a program of its own that talks to a running switch.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::shell;

/// Options of `cargo xtask fuzz`.
#[derive(Debug, Args, Default)]
pub(crate) struct FuzzOptions {
    /// Only this target; all when not given
    #[arg(long)]
    pub(crate) target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 30)]
    pub(crate) seconds: u32,
}

/// Instrumentation: edges with counters and their table, and the operands of comparisons.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];

/// The target that fuzzes a running switch over its connections: an example of its crate.
const LIVE: &str = "live";

/// Its program.
pub(crate) const LIVE_PROGRAM: &str = "live_fuzz";

/// Targets that run at a time; each keeps a core busy.
const AT_ONCE: usize = 2;

/// One input may take this long; a slower one is a finding.
const TIMEOUT_S: u32 = 10;
const MEMORY_MIB: u32 = 2048;

/// Runs the targets and fails when one of them does.
///
/// # Errors
/// When the targets do not build, or one finds an input that it should not find.
pub(crate) fn run(root: &Path, options: &FuzzOptions) -> Result<()> {
    let mut failed = Vec::new();
    for (target, outcome) in run_all(root, options)? {
        if let Err(error) = outcome {
            println!("{target}: {error:#}");
            failed.push(target);
        }
    }
    if !failed.is_empty() {
        bail!("fuzz targets failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Runs the targets; gives the outcome of each.
///
/// # Errors
/// When the targets do not build, or `--target` names none.
pub(crate) fn run_all(root: &Path, options: &FuzzOptions) -> Result<Vec<(String, Result<()>)>> {
    let work = root.join("target/fuzz");
    let mut all = targets(root)?;
    all.push(LIVE.to_owned());
    let mut chosen: Vec<String> = match &options.target {
        None => all,
        Some(one) if all.contains(one) => vec![one.clone()],
        Some(one) => bail!("no fuzz target `{one}`; there are {}", all.join(", ")),
    };
    let is_live = chosen.last().is_some_and(|last| last == LIVE);
    chosen.truncate(chosen.len() - usize::from(is_live));
    let mut outcomes = Vec::new();
    if !chosen.is_empty() {
        let programs = build(root, &work)?;
        seed(root, &work)?;
        for pair in chosen.chunks(AT_ONCE) {
            outcomes.extend(run_at_once(pair, &programs, &work, options.seconds));
        }
    }
    if is_live {
        outcomes.push((LIVE.to_owned(), run_live(root, options.seconds)));
    }
    Ok(outcomes)
}

/// Runs some targets beside each other; gives the outcome of each.
fn run_at_once(
    names: &[String],
    programs: &Path,
    work: &Path,
    seconds: u32,
) -> Vec<(String, Result<()>)> {
    std::thread::scope(|scope| {
        let run = |name: &String| {
            let (program, name) = (programs.join(name), name.clone());
            let of_name = name.clone();
            (name, scope.spawn(move || run_target(&program, &of_name, work, seconds)))
        };
        let running: Vec<_> = names.iter().map(run).collect();
        let ended = |(name, thread): (String, std::thread::ScopedJoinHandle<'_, Result<()>>)| {
            (name, thread.join().unwrap_or_else(|_| bail!("panicked")))
        };
        running.into_iter().map(ended).collect()
    })
}

/// Fuzzes a running switch. It compares two moments of the run, so that it takes some seconds.
fn run_live(root: &Path, seconds: u32) -> Result<()> {
    let mut build = shell::cargo();
    build.current_dir(root).args(["build", "--quiet", "--release", "--workspace"]);
    shell::run(build.args(["--example", LIVE_PROGRAM]))?;
    let mut command = Command::new(shell::target(root).join("release/examples").join(LIVE_PROGRAM));
    shell::run(command.current_dir(root).args(["--seconds", &seconds.max(5).to_string()]))
}

/// The names of the targets: the files in `fuzz/fuzz_targets`.
fn targets(root: &Path) -> Result<Vec<String>> {
    let dir = root.join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Builds all targets; gives the folder of the programs.
fn build(root: &Path, work: &Path) -> Result<PathBuf> {
    let version = shell::capture(Command::new("rustc").current_dir(root).arg("-vV"))?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("rustc -vV names no host")?;
    let mut command = shell::cargo();
    // With --target the flags hold for the targets only, not for build scripts.
    command.args(["build", "--quiet", "--release", "--target", host, "--manifest-path"]);
    command.arg(root.join("fuzz/Cargo.toml"));
    command.env("CARGO_TARGET_DIR", work).env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\x1f"));
    shell::run(&mut command)?;
    Ok(work.join(host).join("release"))
}

/// Writes the seeds of every target below `work/seeds`.
fn seed(root: &Path, work: &Path) -> Result<()> {
    let mut command = shell::cargo();
    command.current_dir(root);
    command.args(["run", "--quiet", "--package", "weir-testkit", "--example", "seeds", "--"]);
    shell::run(command.arg(work.join("seeds")))
}

fn run_target(program: &Path, target: &str, work: &Path, seconds: u32) -> Result<()> {
    let corpus = work.join("corpus").join(target);
    let seeds = work.join("seeds").join(target);
    let findings = work.join("findings").join(target);
    for dir in [&corpus, &seeds, &findings] {
        std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    }
    let mut command = Command::new(program);
    command.args([
        format!("-max_total_time={seconds}"),
        format!("-timeout={TIMEOUT_S}"),
        format!("-rss_limit_mb={MEMORY_MIB}"),
        format!("-artifact_prefix={}/", findings.display()),
        "-print_final_stats=1".to_owned(),
        "-verbosity=1".to_owned(),
    ]);
    command.arg(&corpus).arg(&seeds);
    let output = command.output().with_context(|| format!("starting {}", program.display()))?;
    // libFuzzer speaks on standard error.
    let printed = String::from_utf8_lossy(&output.stderr);
    let progress = Progress::read(&printed);
    println!("{target}: {progress}");
    if !output.status.success() {
        bail!("{}", finding(target, &printed));
    }
    if progress.edges_last == 0 {
        bail!("coverage does not guide this target: no edges were counted");
    }
    Ok(())
}

/// The part of libFuzzer's output that says what it found, and how to keep it.
fn finding(target: &str, printed: &str) -> String {
    let from_panic = printed.lines().position(|line| line.contains("panicked at"));
    let from_error = printed.lines().position(|line| line.contains("ERROR: libFuzzer"));
    let first = from_panic.or(from_error).unwrap_or_default();
    let lines: Vec<&str> = printed.lines().skip(first).take(12).collect();
    let input = printed.lines().find_map(|line| line.split_once("Test unit written to "));
    let mut text = lines.join("\n");
    if let Some((_, path)) = input {
        let bytes = std::fs::read(path.trim()).unwrap_or_default();
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&format!("\nmend it, and add a record to vectors/fuzz/{target}.vec:\n"));
        text.push_str(&format!("name: ...\nhex: {}\nnote: ...\n", hex.join(" ")));
    }
    text
}

/// A report of libFuzzer: inputs run, edges at the start and at the end, inputs it learned.
#[derive(Debug, Default, PartialEq, Eq)]
struct Progress {
    runs: u64,
    edges_first: u64,
    edges_last: u64,
    new_inputs: u64,
}

impl Progress {
    /// Reads lines such as `#2  INITED cov: 48 ft: 49 corp: 1/1b ...` and
    /// `stat::number_of_executed_units: 1000`.
    fn read(printed: &str) -> Self {
        let mut progress = Self::default();
        for line in printed.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number_after = |name: &str| {
                let at = words.iter().position(|word| *word == name)?;
                words.get(at + 1)?.parse::<u64>().ok()
            };
            if let Some(edges) = number_after("cov:") {
                if words.get(1) == Some(&"INITED") {
                    progress.edges_first = edges;
                }
                progress.new_inputs += u64::from(words.get(1) == Some(&"NEW"));
                progress.edges_last = edges;
            }
            if let Some(runs) = number_after("stat::number_of_executed_units:") {
                progress.runs = runs;
            }
        }
        progress
    }
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { runs, edges_first, edges_last, new_inputs } = self;
        write!(
            f,
            "{runs} inputs, edges {edges_first} -> {edges_last}, {new_inputs} new inputs kept"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, finding};

    const PRINTED: &str = "\
INFO: Loaded 1 modules   (620 inline 8-bit counters): 620 [0x1, 0x2),
#2\tINITED cov: 48 ft: 49 corp: 1/1b exec/s: 0 rss: 39Mb
#7\tNEW    cov: 52 ft: 60 corp: 2/5b lim: 4 exec/s: 0 rss: 39Mb L: 4/4 MS: 1 InsertByte-
#9\tREDUCE cov: 52 ft: 60 corp: 2/4b lim: 4 exec/s: 0 rss: 39Mb L: 3/3 MS: 1 EraseBytes-
#12\tNEW    cov: 80 ft: 99 corp: 3/9b lim: 4 exec/s: 0 rss: 39Mb L: 5/5 MS: 1 CopyPart-
Done 1000 runs in 1 second(s)
stat::number_of_executed_units: 1000
";

    #[test]
    fn progress_is_read_from_what_libfuzzer_says() {
        let expected = Progress { runs: 1000, edges_first: 48, edges_last: 80, new_inputs: 2 };
        assert_eq!(Progress::read(PRINTED), expected);
        assert_eq!(Progress::read("INFO: nothing").edges_last, 0);
    }

    #[test]
    fn a_finding_is_printed_as_a_record_to_keep() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("crash-1");
        std::fs::write(&path, [0x04, 0xff]).unwrap();
        let printed = format!(
            "#1\tNEW cov: 1\nthread main panicked at a.rs:1:\nindex\n==1== ERROR: libFuzzer\n\
             Test unit written to {}\n",
            path.display()
        );
        let text = finding("wire", &printed);
        assert!(text.starts_with("thread main panicked at a.rs:1:"), "{text}");
        assert!(text.contains("hex: 04 ff\n"), "{text}");
    }
}
