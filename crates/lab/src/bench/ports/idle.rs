//! What a switch uses of a core while its kernel ports are open and nothing comes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::dut::RunningDut;
use crate::bench::common::Run;
use crate::bench::idle::used_s;

/// Percent of a core, all threads.
///
/// # Errors
/// The switch has no process, or the run was interrupted.
pub(super) fn measure(dut: &RunningDut, run: &Run) -> Result<f64> {
    let pid = dut.pid().context("a switch that is no process")?;
    let (before, begun) = (used_s(pid)?, Instant::now());
    run.cancel.sleep(Duration::from_secs_f64(run.window.seconds))?;
    Ok(100.0 * (used_s(pid)? - before) / begun.elapsed().as_secs_f64())
}
