//! `weir lab clean`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use programs::clean::{clean, clean_groups};
use programs::cpu_share::Hierarchy;

/// Removes the programs, the scratch folders and the control groups of runs that were killed; what
/// belongs to a run that lives stays.
pub(super) fn run() -> Result<ExitCode> {
    let temporary = std::env::temp_dir();
    let mut found =
        clean(&temporary).with_context(|| format!("cleaning {}", temporary.display()))?;
    // A machine without control groups has none of a run's.
    if let Ok(hierarchy) = Hierarchy::find() {
        let folder = hierarchy.folder();
        let groups = clean_groups(folder);
        found.extend(groups.with_context(|| format!("cleaning {}", folder.display()))?);
    }
    let mut text: String = found.iter().map(|leftover| format!("{leftover}\n")).collect();
    if found.is_empty() {
        text = format!("nothing was left in {}\n", temporary.display());
    }
    files::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
