//! What is left to one host's packets when another's begin a new flow each, in percent of what they
//! have beside a second copy of themselves.
//!
//! Both come in by a port of their own, both as fast as their hosts send, to the same forwarding
//! thread. The entries look at addresses and ports, so that no cache knows the answer for a new
//! flow.

use anyhow::{Context, Result, ensure};

use super::dut::RunningDut;
use super::flood::{self, Flood, Flows};
use crate::bench::common::Run;

/// Percent of its fair share that host 1's flow to host 2 has beside new flows from host 3 to host
/// 4, and thousands of its packets a second then.
///
/// # Errors
/// A port cannot be opened, nothing came, or the run was interrupted.
pub(super) fn measure(dut: &RunningDut, run: &Run) -> Result<[f64; 2]> {
    let fair = beside(dut, &Flows::One, run)?;
    ensure!(fair > 0.0, "no frame has come");
    let left = beside(dut, &Flows::New, run)?;
    Ok([100.0 * left / fair, left])
}

fn beside(dut: &RunningDut, flows: &Flows, run: &Run) -> Result<f64> {
    let _victim = Flood::start(&dut.bed, 0, 1, &Flows::One)?;
    let _other = Flood::start(&dut.bed, 2, 3, flows)?;
    flood::kpps(&dut.bed, &[1], run)?.first().copied().context("no host")
}
