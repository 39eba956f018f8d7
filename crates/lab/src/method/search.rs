//! The search for the packet rate that a path carries.
//!
//! Offered load doubles from a low start until a trial fails, then the rate is narrowed between
//! the last that passed and the first that failed. A trial passes when at most [`LOSS_MAX`] of the
//! offered frames did not arrive by the end of the schedule plus a short grace: a queue that only
//! grows is no throughput, however long it is. A failed trial is repeated before it counts, since a
//! shared machine stalls at times; the narrowing repeats two. Pure: the path is an argument.

/// The share of frames that a passing trial may lose: one in a thousand.
pub(super) const LOSS_MAX: f64 = 0.001;

/// Narrowing ends when the bounds are this close.
const RESOLUTION: f64 = 0.05;

/// Narrowing ends after as many trials.
const NARROWING_MAX: usize = 6;

/// A path that can be tried.
pub(super) trait Path {
    /// What can go wrong with a trial.
    type Error;

    /// Offers `offered_pps` for one trial.
    fn trial(&mut self, offered_pps: f64) -> Result<Attempt, Self::Error>;
}

/// What one trial showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Attempt {
    /// Frames a second that were offered.
    pub(super) offered_pps: f64,
    /// Frames a second that arrived in time.
    pub(super) received_pps: f64,
    /// Share of the offered frames that did not arrive in time, 0 to 1.
    pub(super) loss: f64,
}

impl Attempt {
    fn passes(&self) -> bool {
        self.loss <= LOSS_MAX
    }
}

/// The bounds of the search, frames a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    /// Where it starts.
    pub(super) start_pps: f64,
    /// The most that is offered: the port's line rate, or what the generator can send.
    pub(super) max_pps: f64,
}

/// What the search found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// The highest offered load that passed; 0 when none did.
    pub(super) carried_pps: f64,
    /// The most that arrived in any trial.
    pub(super) most_received_pps: f64,
    /// Every trial, in order.
    pub(super) attempts: Vec<Attempt>,
}

/// Searches `path` within `range`.
pub(super) fn search<P: Path>(path: &mut P, range: Range) -> Result<Found, P::Error> {
    let mut attempts = Vec::new();
    let mut pass_pps = 0.0_f64;
    let mut fail_pps = None;
    let mut offered = range.start_pps.min(range.max_pps);
    loop {
        let mut repeats = 1;
        if !passes(path, &mut attempts, offered, &mut repeats)? {
            fail_pps = Some(offered);
            break;
        }
        pass_pps = offered;
        if offered >= range.max_pps {
            break;
        }
        offered = (offered * 2.0).min(range.max_pps);
    }
    if let Some(fail_pps) = fail_pps {
        pass_pps = narrow(path, &mut attempts, pass_pps, fail_pps)?;
    }
    let most_received_pps = attempts.iter().map(|a| a.received_pps).fold(0.0, f64::max);
    Ok(Found { carried_pps: pass_pps, most_received_pps, attempts })
}

/// Whether `offered` passes, at the first try or at a repeat as long as there are some left.
fn passes<P: Path>(
    path: &mut P,
    attempts: &mut Vec<Attempt>,
    offered: f64,
    repeats: &mut usize,
) -> Result<bool, P::Error> {
    loop {
        let attempt = path.trial(offered)?;
        attempts.push(attempt);
        if attempt.passes() {
            return Ok(true);
        }
        if *repeats == 0 {
            return Ok(false);
        }
        *repeats -= 1;
    }
}

fn narrow<P: Path>(
    path: &mut P,
    attempts: &mut Vec<Attempt>,
    mut pass_pps: f64,
    mut fail_pps: f64,
) -> Result<f64, P::Error> {
    let mut repeats = 2;
    for _ in 0..NARROWING_MAX {
        if fail_pps - pass_pps <= RESOLUTION * fail_pps {
            break;
        }
        let offered = f64::midpoint(pass_pps, fail_pps);
        if passes(path, attempts, offered, &mut repeats)? {
            pass_pps = offered;
        } else {
            fail_pps = offered;
        }
    }
    Ok(pass_pps)
}

#[cfg(test)]
mod tests {
    use super::{Range, search};
    use crate::method::mock::{path, perfect};
    use generator::testing::DeviceModel;

    const RANGE: Range = Range { start_pps: 500.0, max_pps: 200_000.0 };

    fn found(model: DeviceModel) -> super::Found {
        search(&mut path(model), RANGE).unwrap()
    }

    #[test]
    fn a_known_capacity_is_found() {
        for capacity_pps in [700.0, 2_345.0, 48_000.0, 150_000.0] {
            let found = found(DeviceModel { capacity_pps, ..perfect() });
            let error = (found.carried_pps - capacity_pps).abs() / capacity_pps;
            assert!(error < 0.08, "{capacity_pps}: {}", found.carried_pps);
            let most = (found.most_received_pps - capacity_pps).abs() / capacity_pps;
            assert!(most < 0.08, "{capacity_pps}: {}", found.most_received_pps);
        }
    }

    #[test]
    fn a_deep_queue_is_no_throughput() {
        let found = found(DeviceModel::perfect(5_000.0, 1_000_000));
        assert!(found.carried_pps < 5_600.0, "{}", found.carried_pps);
    }

    #[test]
    fn what_exceeds_the_range_is_reported_as_its_end() {
        let found = found(DeviceModel { capacity_pps: 1e9, ..perfect() });
        assert_eq!(found.carried_pps, RANGE.max_pps);
    }

    #[test]
    fn a_lossy_path_carries_nothing_without_loss() {
        // A few frames in a row may all be among the half that arrives.
        let found = found(DeviceModel { loss: 0.5, ..perfect() });
        assert!(found.carried_pps < 10.0, "{}", found.carried_pps);
        assert!(found.most_received_pps > 0.0);
    }

    #[test]
    fn delay_does_not_count_as_loss() {
        let found = found(DeviceModel { delay_ns: 10_000_000, ..perfect() });
        assert!(found.carried_pps > 90_000.0, "{}", found.carried_pps);
    }
}
