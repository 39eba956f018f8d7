//! Who waits until every worker has come to a point in the stream of commands.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use crate::worker::{Mark, Request};

/// What happens when every worker is there.
#[derive(Debug)]
pub(crate) enum Awaited {
    /// A barrier is answered.
    Barrier(Request),
    /// Removed entries have their last counts.
    Reaped,
    /// Somebody waits for it.
    Told(oneshot::Sender<()>),
}

/// The marks that not every worker has reached yet.
#[derive(Debug, Default)]
pub(super) struct Marks {
    next: u64,
    waiting: BTreeMap<Mark, (usize, Awaited)>,
}

impl Marks {
    /// A mark that so many workers are to reach.
    pub(super) fn add(&mut self, workers: usize, awaited: Awaited) -> Mark {
        let mark = Mark(self.next);
        self.next += 1;
        self.waiting.insert(mark, (workers, awaited));
        mark
    }

    /// A worker has reached a mark; what was awaited, when it is the last one.
    pub(super) fn reached(&mut self, mark: Mark) -> Option<Awaited> {
        let (left, _) = self.waiting.get_mut(&mark)?;
        *left = left.saturating_sub(1);
        if *left > 0 {
            return None;
        }
        self.waiting.remove(&mark).map(|(_, awaited)| awaited)
    }
}

#[cfg(test)]
mod tests {
    use super::{Awaited, Marks};

    #[test]
    fn the_last_worker_counts() {
        let mut marks = Marks::default();
        let a = marks.add(2, Awaited::Reaped);
        let b = marks.add(1, Awaited::Reaped);
        assert!(a != b && marks.reached(a).is_none());
        assert!(matches!(marks.reached(b), Some(Awaited::Reaped)));
        assert!(matches!(marks.reached(a), Some(Awaited::Reaped)));
        assert!(marks.reached(a).is_none(), "only once");
    }
}
