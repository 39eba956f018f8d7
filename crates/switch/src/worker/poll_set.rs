//! The poll set of a worker: the ports that it polls in every round.
//!
//! A worker with few ports polls all of them, which costs less than asking the kernel which are
//! ready. With more ports it polls those that had frames lately and those that cannot wake it; the
//! others are suspended and come back when the worker's watch (epoll) reports them. So a thousand
//! idle bridges cost a round nothing, and a frame for any of them waits no longer.

/// Up to so many ports, all are polled.
const FEW: usize = 8;

/// Rounds without a frame after which a port may be suspended.
const EMPTY_ROUNDS: u32 = 64;

/// A polled port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PolledPort {
    /// The index of its shard.
    pub(super) shard: usize,
    /// Its index in the shard.
    pub(super) port: usize,
    /// Rounds since its last frame.
    empty_rounds: u32,
}

/// The polled ports of a worker.
#[derive(Debug)]
pub(super) struct PollSet {
    ports: Vec<PolledPort>,
    is_small: bool,
    /// A port has had no frame for long.
    is_any_idle: bool,
}

impl PollSet {
    /// An empty set, for a worker with `ports` ports.
    pub(super) fn new(ports: usize) -> Self {
        Self { ports: Vec::new(), is_small: ports <= FEW, is_any_idle: false }
    }

    /// The worker has so many ports now; whether all of them are to be polled from now on.
    pub(super) fn set_count(&mut self, ports: usize) -> bool {
        let was_small = std::mem::replace(&mut self.is_small, ports <= FEW);
        self.is_small && !was_small
    }

    /// Removes a port.
    pub(super) fn remove(&mut self, shard: usize, port: usize) {
        self.ports.retain(|polled| (polled.shard, polled.port) != (shard, port));
    }

    /// Whether ports may be suspended while the worker polls others.
    pub(super) fn may_suspend(&self) -> bool {
        !self.is_small
    }

    /// The polled ports.
    pub(super) fn ports(&self) -> &[PolledPort] {
        &self.ports
    }

    /// Adds a port that is not in the set.
    pub(super) fn add(&mut self, shard: usize, port: usize) {
        self.ports.push(PolledPort { shard, port, empty_rounds: 0 });
    }

    /// Records the number of frames received from the port at this position of the set.
    pub(super) fn record_rx(&mut self, at: usize, frames: usize) {
        let Some(port) = self.ports.get_mut(at) else { return };
        port.empty_rounds = if frames > 0 { 0 } else { port.empty_rounds.saturating_add(1) };
        self.is_any_idle |= port.empty_rounds >= EMPTY_ROUNDS;
    }

    /// Removes the idle ports, or with `all` every port without a frame in its last poll, where
    /// `may` allows it. It is called only for ports whose last poll was empty.
    pub(super) fn suspend(&mut self, all: bool, mut may: impl FnMut(usize, usize) -> bool) {
        if self.is_small || !(all || self.is_any_idle) {
            return;
        }
        self.is_any_idle = false;
        self.ports.retain_mut(|port| {
            let is_idle = port.empty_rounds >= EMPTY_ROUNDS || (all && port.empty_rounds > 0);
            // A port that must stay is tried again after as many rounds.
            let stays = !is_idle || !may(port.shard, port.port);
            if is_idle && stays {
                port.empty_rounds = 1;
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{EMPTY_ROUNDS, FEW, PollSet};

    fn shards(poll_set: &PollSet) -> Vec<usize> {
        poll_set.ports().iter().map(|port| port.shard).collect()
    }

    #[test]
    fn idle_ports_are_suspended_and_those_that_cannot_wake_stay() {
        let mut poll_set = PollSet::new(FEW + 1);
        for shard in 0..4 {
            poll_set.add(shard, 0);
        }
        for _ in 0..EMPTY_ROUNDS {
            poll_set.suspend(false, |_, _| panic!("too early"));
            for at in 0..4 {
                poll_set.record_rx(at, usize::from(at == 1));
            }
        }
        poll_set.suspend(false, |shard, _| shard != 3);
        assert_eq!(shards(&poll_set), [1, 3]);
        poll_set.record_rx(0, 5);
        poll_set.suspend(true, |shard, _| shard != 3);
        assert_eq!(shards(&poll_set), [1, 3], "the last poll of 1 was not empty");
        poll_set.record_rx(0, 0);
        poll_set.suspend(true, |shard, _| shard != 3);
        assert_eq!(shards(&poll_set), [3]);
    }

    #[test]
    fn a_port_that_is_removed_is_polled_no_more() {
        let mut poll_set = PollSet::new(FEW);
        (0..3).for_each(|port| poll_set.add(0, port));
        poll_set.remove(0, 1);
        poll_set.remove(0, 7);
        let left: Vec<usize> = poll_set.ports().iter().map(|port| port.port).collect();
        assert_eq!(left, [0, 2]);
        assert!(!poll_set.set_count(FEW + 1) && poll_set.may_suspend());
        assert!(poll_set.set_count(FEW), "those that were suspended are polled again");
        assert!(!poll_set.set_count(1) && !poll_set.may_suspend());
    }

    #[test]
    fn few_ports_are_always_polled() {
        let mut poll_set = PollSet::new(FEW);
        poll_set.add(0, 0);
        for _ in 0..2 * EMPTY_ROUNDS {
            poll_set.record_rx(0, 0);
        }
        poll_set.suspend(true, |_, _| true);
        assert_eq!(shards(&poll_set), [0]);
    }
}
