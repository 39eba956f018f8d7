//! `weir lab clean`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use crate::clean::clean;

/// Removes the programs and the scratch folders of runs that were killed; what belongs to a run
/// that lives stays.
#[derive(Args, Debug)]
pub(super) struct CleanArgs {}

impl CleanArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let Self {} = self;
        let temporary = std::env::temp_dir();
        let found =
            clean(&temporary).with_context(|| format!("cleaning {}", temporary.display()))?;
        for leftover in &found {
            println!("{leftover}");
        }
        if found.is_empty() {
            println!("nothing was left in {}", temporary.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}
