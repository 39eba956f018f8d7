//! `weir lab jobs` and `weir lab gather`: a campaign as single commands, for whatever runs commands
//! on many machines.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::OutputArgs;
use super::campaign::{SelectionArgs, publish, take_folder};
use crate::campaign::gather::gather;
use crate::campaign::job::listed;
use crate::service::ProgramPaths;

pub(super) const JOBS_EXAMPLES: &str = "\
Examples:
  weir lab jobs E4 --dut weir,ovs --quick
  weir lab run E4 --dut weir,ovs --quick --job 0 --out jobs/0
  weir lab gather --out /tmp/e4 jobs/*";

/// Ledgers to gather.
#[derive(Args, Debug)]
#[command(after_help = JOBS_EXAMPLES)]
pub(super) struct GatherArgs {
    /// Folders that `weir lab run --job` wrote, or their trials.jsonl under any name
    #[arg(required = true)]
    ledger: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Prints the jobs of a selection; nothing is started.
pub(super) fn list(selection: &SelectionArgs) -> Result<ExitCode> {
    let paths = ProgramPaths::new(PathBuf::new(), PathBuf::new());
    files::print(&listed(&selection.campaign(paths, PathBuf::new())?))?;
    Ok(ExitCode::SUCCESS)
}

impl GatherArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let out = &self.output.out;
        let _lock = take_folder(out)?;
        let (results, missing) = gather(&self.ledger, out)?;
        publish(&results, &self.output)?;
        missing.iter().for_each(|one| files::eprint_line(format_args!("{one}")));
        let is_whole = missing.is_empty() && results.is_whole();
        Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
