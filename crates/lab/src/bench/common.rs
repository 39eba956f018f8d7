//! Options, rows and exit codes of `weir bench controller`.
//!
//! Rows come out one by one, as text or as lines of JSON, as soon as each is measured. Exit code 0
//! says that everything was measured and nothing was lost where nothing may be; 1 that something
//! was lost or could not be measured; 130 that a signal came.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use openflow::text::decimal_where;
use programs::cancel::{Cancel, EXIT_INTERRUPTED};
use serde::Serialize;

use crate::progress::RunProgress;

/// The options of every subcommand.
#[derive(Args, Debug, Clone)]
pub(super) struct Common {
    /// The core of the forwarding thread; everything else stays off it
    #[arg(long, default_value_t = 1)]
    pub(super) core: u16,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    pub(super) seconds: f64,
    /// Measurements of each figure
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(super) repeats: u16,
    /// Print lines of JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Show no progress
    #[arg(long)]
    pub(super) quiet: bool,
    /// The weir binary that is measured [default: this one]
    #[arg(long, value_name = "PATH")]
    pub(super) weir: Option<PathBuf>,
}

/// From a tenth of a second, below which counters are read more than packets forwarded, to an hour.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    decimal_where(text, |seconds| (0.1..=3_600.0).contains(seconds), "use 0.1 to 3600")
}

/// A printed row.
pub(super) trait Row: Serialize {
    /// The lines for people.
    fn text(&self) -> String;

    /// Whether it was measured and nothing was lost.
    fn is_good(&self) -> bool;
}

/// A run of a subcommand.
#[derive(Debug)]
pub(super) struct Run {
    /// The program.
    pub(super) weir: PathBuf,
    /// The core of the forwarding thread.
    pub(super) core: usize,
    /// Seconds of each measurement.
    pub(super) seconds: f64,
    /// Measurements of each figure.
    pub(super) repeats: usize,
    /// Whether the run is interrupted.
    pub(super) cancel: Cancel,
    /// Progress for the user.
    pub(super) progress: RunProgress,
    json: bool,
    is_good: bool,
}

impl Run {
    /// Prints a row.
    ///
    /// # Errors
    /// Nobody reads it.
    pub(super) fn row(&mut self, row: &impl Row) -> Result<()> {
        self.is_good &= row.is_good();
        let text = if self.json {
            serde_json::to_string(row).context("writing JSON")? + "\n"
        } else {
            row.text()
        };
        Ok(files::print(&text)?)
    }
}

impl Common {
    /// Does `work`, which has `steps` steps, and reports how it ended.
    ///
    /// # Errors
    /// Of `work`; cores that are missing.
    pub(super) fn run(
        &self,
        steps: usize,
        work: impl FnOnce(&mut Run) -> Result<()>,
    ) -> Result<ExitCode> {
        let weir = match &self.weir {
            Some(path) => path.clone(),
            None => std::env::current_exe().context("cannot find the running program")?,
        };
        let core = usize::from(self.core);
        let cancel = Cancel::on_signals().context("cannot catch signals")?;
        ensure_cores(core)?;
        let mut run = Run {
            weir,
            core,
            seconds: self.seconds,
            repeats: usize::from(self.repeats),
            cancel,
            progress: RunProgress::new(steps as u64, self.quiet),
            json: self.json,
            is_good: true,
        };
        match work(&mut run) {
            Ok(()) if run.is_good => Ok(ExitCode::SUCCESS),
            Ok(()) => Ok(ExitCode::FAILURE),
            Err(_) if run.cancel.check().is_err() => Ok(ExitCode::from(EXIT_INTERRUPTED)),
            Err(error) => Err(error),
        }
    }
}

/// Whether `core` is one that there is, and not the only one.
fn ensure_cores(core: usize) -> Result<()> {
    let cores = netdev::sys::affinity::allowed_cpus().context("asking for the cores")?;
    let list = cores.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    ensure!(
        cores.contains(&core),
        "no core {core} to forward on, there is {list}: choose with --core"
    );
    ensure!(cores.len() > 1, "one core is not enough: one forwards, one does everything else");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{ensure_cores, seconds};

    #[test]
    fn times_are_neither_nothing_nor_for_ever() {
        assert_eq!(seconds("0.5"), Ok(0.5));
        assert!(seconds("0.01").is_err() && seconds("x").is_err() && seconds("4000").is_err());
    }

    #[test]
    fn a_core_that_is_not_there_is_reported() {
        let error = ensure_cores(4_000).unwrap_err().to_string();
        assert!(error.contains("no core 4000") && error.contains("--core"), "{error}");
    }
}
