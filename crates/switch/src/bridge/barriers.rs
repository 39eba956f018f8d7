//! The barriers of a bridge that not every worker has reached yet, and their waiters. See
//! [`BarrierId`] for the rule.

use std::collections::BTreeMap;

use datapath::fast::Op;
use openflow::bundle::BundleControl;
use tokio::sync::oneshot;

use crate::request::RequestContext;
use crate::worker::BarrierId;

/// The waiter for a barrier.
#[derive(Debug)]
pub(crate) enum BarrierWaiter {
    /// A barrier request, to be answered.
    Barrier(RequestContext),
    /// The commit of a bundle, to be answered by this, and the ops of it.
    Bundle(RequestContext, BundleControl, Vec<Op>),
    /// Removed entries have their last counts.
    Reap,
    /// A task of the agent.
    Task(oneshot::Sender<()>),
}

/// The state of a barrier after an answer of a worker.
#[derive(Debug)]
pub(super) enum BarrierProgress {
    /// Other workers have not reached it, or there is no such barrier.
    Pending,
    /// All have reached it for the first of two times: it is sent to them once more.
    SecondRound,
    /// All have reached it: its waiter.
    Reached(BarrierWaiter),
}

/// A barrier that not every worker has reached.
#[derive(Debug)]
struct PendingBarrier {
    /// Workers that have not reached it in this round.
    left: usize,
    /// The workers that are to reach it once more, if any are.
    second_round: Option<usize>,
    waiter: BarrierWaiter,
}

/// The pending barriers.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    next: u64,
    pending: BTreeMap<BarrierId, PendingBarrier>,
}

impl Barriers {
    /// A barrier that `workers` workers are to reach once, or twice.
    pub(super) fn add(&mut self, workers: usize, twice: bool, waiter: BarrierWaiter) -> BarrierId {
        let barrier = BarrierId(self.next);
        self.next += 1;
        let second_round = twice.then_some(workers);
        self.pending.insert(barrier, PendingBarrier { left: workers, second_round, waiter });
        barrier
    }

    /// A worker has reached a barrier.
    pub(super) fn reached(&mut self, barrier: BarrierId) -> BarrierProgress {
        let Some(pending) = self.pending.get_mut(&barrier) else { return BarrierProgress::Pending };
        pending.left = pending.left.saturating_sub(1);
        if pending.left > 0 {
            return BarrierProgress::Pending;
        }
        if let Some(workers) = pending.second_round.take() {
            pending.left = workers;
            return BarrierProgress::SecondRound;
        }
        let pending = self.pending.remove(&barrier);
        pending.map_or(BarrierProgress::Pending, |it| BarrierProgress::Reached(it.waiter))
    }
}

#[cfg(test)]
mod tests {
    use super::{BarrierProgress, BarrierWaiter, Barriers};

    fn is_pending(progress: &BarrierProgress) -> bool {
        matches!(progress, BarrierProgress::Pending)
    }

    fn is_reached(progress: &BarrierProgress) -> bool {
        matches!(progress, BarrierProgress::Reached(BarrierWaiter::Reap))
    }

    #[test]
    fn the_last_worker_counts() {
        let mut barriers = Barriers::default();
        let a = barriers.add(2, false, BarrierWaiter::Reap);
        let b = barriers.add(1, false, BarrierWaiter::Reap);
        assert!(a != b && is_pending(&barriers.reached(a)));
        assert!(is_reached(&barriers.reached(b)));
        assert!(is_reached(&barriers.reached(a)));
        assert!(is_pending(&barriers.reached(a)), "only once");
    }

    #[test]
    fn a_barrier_of_two_rounds_is_reached_after_the_second() {
        let mut barriers = Barriers::default();
        let barrier = barriers.add(2, true, BarrierWaiter::Reap);
        assert!(is_pending(&barriers.reached(barrier)));
        assert!(matches!(barriers.reached(barrier), BarrierProgress::SecondRound));
        assert!(is_pending(&barriers.reached(barrier)));
        assert!(is_reached(&barriers.reached(barrier)));
    }
}
