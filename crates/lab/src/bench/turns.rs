//! Several switches measured in turns on one core: all but the measured one are stopped.
//!
//! So what other programs do to the machine falls on all alike. The order goes up and down, as in
//! A B C C B A. A measurement in which a switch did not have its core is made again, and counted.

use anyhow::Result;

use super::common::Run;
use super::measure::{AGAIN_MAX, RUN_IN, Series, once};
use super::subject::{Held, Subject};
use super::weir::Weir;

/// Measures each of `switches`, all of which run when this begins and when it ends.
///
/// # Errors
/// Counters cannot be read, or the run was interrupted.
pub(super) fn in_turns(run: &Run, switches: &mut [Weir]) -> Result<Vec<Series>> {
    let mut all = vec![Series::default(); switches.len()];
    let mut held = Vec::new();
    for switch in switches.iter() {
        held.push(Some(Held::hold(switch.pid())?));
    }
    for round in 0..run.repeats {
        for step in 0..switches.len() {
            let index = if round % 2 == 0 { step } else { switches.len() - 1 - step };
            held[index] = None;
            let (switch, series) = (&mut switches[index], &mut all[index]);
            loop {
                run.cancel.sleep(RUN_IN)?;
                let sample = once(switch, run.window, &run.cancel)?;
                if sample.stalled && series.again < run.repeats * AGAIN_MAX {
                    series.again += 1;
                } else {
                    series.mpps.push(sample.mpps);
                    break;
                }
            }
            held[index] = Some(Held::hold(switch.pid())?);
        }
    }
    Ok(all)
}
