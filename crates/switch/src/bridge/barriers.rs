//! The barriers of a bridge that not every worker has reached yet, and their waiters. See
//! [`BarrierId`] for the rule.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use crate::request::RequestContext;
use crate::worker::BarrierId;

/// What waits for a barrier.
#[derive(Debug)]
pub(crate) enum BarrierWaiter {
    /// A barrier request, to be answered.
    Barrier(RequestContext),
    /// Removed entries have their last counts.
    Reap,
    /// A task of the agent.
    Task(oneshot::Sender<()>),
}

/// The pending barriers.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    next: u64,
    waiting: BTreeMap<BarrierId, (usize, BarrierWaiter)>,
}

impl Barriers {
    /// A barrier that `workers` workers are to reach.
    pub(super) fn add(&mut self, workers: usize, waiter: BarrierWaiter) -> BarrierId {
        let barrier = BarrierId(self.next);
        self.next += 1;
        self.waiting.insert(barrier, (workers, waiter));
        barrier
    }

    /// A worker has reached a barrier: the waiter, when it was the last worker.
    pub(super) fn reached(&mut self, barrier: BarrierId) -> Option<BarrierWaiter> {
        let (left, _) = self.waiting.get_mut(&barrier)?;
        *left = left.saturating_sub(1);
        if *left > 0 {
            return None;
        }
        self.waiting.remove(&barrier).map(|(_, waiter)| waiter)
    }
}

#[cfg(test)]
mod tests {
    use super::{BarrierWaiter, Barriers};

    #[test]
    fn the_last_worker_counts() {
        let mut barriers = Barriers::default();
        let a = barriers.add(2, BarrierWaiter::Reap);
        let b = barriers.add(1, BarrierWaiter::Reap);
        assert!(a != b && barriers.reached(a).is_none());
        assert!(matches!(barriers.reached(b), Some(BarrierWaiter::Reap)));
        assert!(matches!(barriers.reached(a), Some(BarrierWaiter::Reap)));
        assert!(barriers.reached(a).is_none(), "only once");
    }
}
