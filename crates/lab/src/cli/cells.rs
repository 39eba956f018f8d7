//! `weir lab cells`, `weir lab cell` and `weir lab gather`: a campaign as single commands, for
//! whatever runs commands on many machines.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use programs::cancel::Cancel;
use programs::scratch::FolderLock;

use super::campaign::{SelectionArgs, publish};
use super::{OutputArgs, PathArgs, interrupted};
use crate::campaign::run::{CampaignError, CellSpec, cell_specs, gather, measure};
use crate::service::ProgramPaths;

const CELLS_EXAMPLES: &str = "\
Examples:
  weir lab cells E4 --dut weir,ovs --quick > cells.jsonl
  sed -n 1p cells.jsonl | weir lab cell > 0.jsonl
  weir lab gather --out /tmp/e4 cells.jsonl 0.jsonl 1.jsonl 2.jsonl";

/// Bytes of a line of `cells`, at most.
const LINE_MAX: u64 = 4 << 20;

/// Bytes of a file of lines, at most.
const FILE_MAX: u64 = 4 << 30;

/// Selection of the cells.
#[derive(Args, Debug)]
#[command(after_help = CELLS_EXAMPLES)]
pub(super) struct CellsArgs {
    #[command(flatten)]
    selection: SelectionArgs,
}

/// Manner of the measurement.
#[derive(Args, Debug)]
#[command(after_help = CELLS_EXAMPLES)]
pub(super) struct CellArgs {
    /// Show no progress
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    paths: PathArgs,
}

/// Files to gather.
#[derive(Args, Debug)]
#[command(after_help = CELLS_EXAMPLES)]
pub(super) struct GatherArgs {
    /// Files with what `weir lab cell` printed; with that of `weir lab cells` among them, all
    /// that is known of missing cells is said
    #[arg(required = true)]
    file: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

impl CellsArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        // Nothing is started here.
        let paths = ProgramPaths::new(PathBuf::new(), PathBuf::new());
        let campaign = self.selection.campaign(paths, PathBuf::new())?;
        let lines = cell_specs(&campaign)?.iter().map(serde_json::to_string).collect::<Vec<_>>();
        let lines = lines.into_iter().collect::<Result<Vec<_>, _>>();
        print(&lines.context("cannot write a cell as JSON")?)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl CellArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let cancel = Cancel::on_signals().context("cannot catch signals")?;
        let mut text = String::new();
        let input = std::io::stdin().take(LINE_MAX);
        { input }.read_to_string(&mut text).context("cannot read a line on standard input")?;
        let spec: CellSpec = serde_json::from_str(&text)
            .context("standard input is not one line of `weir lab cells`")?;
        let measured = match measure(&spec, self.paths.resolve()?, self.quiet, &cancel) {
            Ok(measured) => measured,
            Err(CampaignError::Stopped(_)) => return Ok(interrupted()),
            Err(error) => return Err(error.into()),
        };
        print(&measured.lines)?;
        if let Some(error) = measured.error {
            files::eprint_line(format_args!("{error}"));
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl GatherArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let files = self.file.iter().map(|path| Ok((path.clone(), read(path)?)));
        let gathered = gather(&files.collect::<Result<Vec<_>>>()?)?;
        let out = &self.output.out;
        std::fs::create_dir_all(out)
            .with_context(|| format!("cannot make the folder {}", out.display()))?;
        let _lock = FolderLock::take(out)?;
        publish(&gathered.results, &self.output)?;
        if gathered.missing > 0 {
            let missing = gathered.missing;
            files::eprint_line(format_args!(
                "{missing} cells have no good result; the notes name them"
            ));
        }
        let is_whole = gathered.missing == 0 && gathered.results.is_whole();
        Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn read(path: &Path) -> Result<String> {
    let bytes = files::read(path, FILE_MAX).with_context(|| path.display().to_string())?;
    String::from_utf8(bytes).with_context(|| path.display().to_string())
}

fn print(lines: &[String]) -> std::io::Result<()> {
    files::print(&lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>())
}
