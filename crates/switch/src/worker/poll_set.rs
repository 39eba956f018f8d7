//! The poll set of a worker: the ports that it polls in every round.
//!
//! A worker with few ports polls all of them, which costs less than asking the kernel which are
//! ready. With more ports it polls those that had frames lately and those that cannot wake it; the
//! others are suspended and come back when the worker's watch (epoll) reports them. So a thousand
//! idle bridges cost a round nothing, and a frame for any of them waits no longer.
//!
//! Ports that always have more frames waiting share the worker's time, not its packets: one whose
//! packets are dear, each of a new flow, must not take the time of the others. So long as two such
//! ports are there, each turn is timed; a port that has had more time than the one with the least
//! waits, and turns are cut to a length. Everything here is arithmetic: the time of a turn is an
//! argument.

use super::shard::{RX_BATCH, TURN_FRAMES};

/// Up to this number of ports, all are polled.
const FEW: usize = 8;

/// Rounds without a frame after which a port may be suspended.
const EMPTY_ROUNDS: u32 = 64;

/// A port that had this number of frames in its turn may have more waiting.
const MANY_FRAMES: usize = RX_BATCH / 2;

/// The longest turn while ports share the time, so that the ring of another port that is full does
/// not run over: at 10 million frames a second, a thousand come in this time.
const TURN_NS: u64 = 100_000;

/// The fewest frames of a turn: less than a batch costs a system call or a look at the caches more.
const TURN_LEAST: usize = 16;

/// The lead that a port may have over another.
const LEAD_NS: u64 = 20_000;

/// A turn counts as no longer than this: longer ones were interrupted, which is no port's doing.
const TURN_MOST_NS: u64 = 2_000_000;

/// The turns of ports that share the worker's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    /// The last turn has left frames behind, by the length of its batch.
    is_backlogged: bool,
    /// The time of its turns since sharing began.
    used_ns: u64,
    /// The time of a frame, smoothed; 0 for unknown.
    frame_ns: u64,
}

/// A polled port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PolledPort {
    /// The index of its shard.
    pub(super) shard: usize,
    /// Its index in the shard.
    pub(super) port: usize,
    /// Rounds since its last frame.
    empty_rounds: u32,
    share: Share,
}

/// The polled ports of a worker.
#[derive(Debug)]
pub(super) struct PollSet {
    ports: Vec<PolledPort>,
    is_small: bool,
    /// A port has had no frame for long.
    is_any_idle: bool,
    /// Several ports are backlogged, and share the time.
    is_shared: bool,
    /// The least time that any of them has had.
    least_ns: u64,
}

impl PollSet {
    /// An empty set, for a worker with `ports` ports.
    pub(super) fn new(ports: usize) -> Self {
        Self {
            ports: Vec::new(),
            is_small: ports <= FEW,
            is_any_idle: false,
            is_shared: false,
            least_ns: 0,
        }
    }

    /// The worker has `ports` ports now; whether all of them are to be polled from now on.
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
        self.ports.push(PolledPort { shard, port, empty_rounds: 0, share: Share::default() });
    }

    /// A round begins: whether its turns are to be timed, as ports share the time.
    pub(super) fn begin_round(&mut self) -> bool {
        let backlogged = self.ports.iter().filter(|port| port.share.is_backlogged);
        let (mut count, mut least_ns) = (0, u64::MAX);
        for port in backlogged {
            count += 1;
            least_ns = least_ns.min(port.share.used_ns);
        }
        let was_shared = std::mem::replace(&mut self.is_shared, count > 1);
        if self.is_shared && !was_shared {
            self.ports.iter_mut().for_each(|port| port.share.used_ns = 0);
            least_ns = 0;
        }
        self.least_ns = least_ns;
        self.is_shared
    }

    /// The most frames that the port at this position may have in its turn; 0 when it has to wait.
    #[inline]
    pub(super) fn turn(&self, at: usize) -> usize {
        let Some(port) = self.ports.get(at).filter(|_| self.is_shared) else { return TURN_FRAMES };
        let Share { is_backlogged, used_ns, frame_ns } = port.share;
        if is_backlogged && used_ns > self.least_ns.saturating_add(LEAD_NS) {
            return 0;
        }
        let frames = TURN_NS.checked_div(frame_ns).map_or(TURN_LEAST, |frames| frames as usize);
        frames.clamp(TURN_LEAST, TURN_FRAMES)
    }

    /// Records the time of the turn of the port at this position, after [`PollSet::record_rx`].
    pub(super) fn record_time(&mut self, at: usize, frames: usize, turn_ns: u64) {
        let Some(share) = self.ports.get_mut(at).map(|port| &mut port.share) else { return };
        let turn_ns = turn_ns.min(TURN_MOST_NS);
        share.used_ns = share.used_ns.saturating_add(turn_ns);
        if let Some(frame_ns) = turn_ns.checked_div(frames as u64) {
            let before = if share.frame_ns == 0 { frame_ns } else { share.frame_ns };
            share.frame_ns = ((3 * before + frame_ns) / 4).max(1);
        }
    }

    /// Records the number of frames received from the port at this position of the set.
    pub(super) fn record_rx(&mut self, at: usize, frames: usize, asked: usize) {
        let least_ns = self.least_ns;
        let Some(port) = self.ports.get_mut(at) else { return };
        let was_backlogged =
            std::mem::replace(&mut port.share.is_backlogged, frames >= MANY_FRAMES.min(asked));
        if port.share.is_backlogged && !was_backlogged {
            // Time in which it wanted none is not owed to it.
            port.share.used_ns = port.share.used_ns.max(least_ns);
        }
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
    use super::{EMPTY_ROUNDS, FEW, LEAD_NS, PollSet, TURN_FRAMES, TURN_NS};

    /// Lets ports share for so long of virtual time. A port is the nanoseconds of a frame, and the
    /// frames that come in a microsecond. Returns the time and the frames that each had, and the
    /// longest turn.
    fn share(ports: &[(u64, u64)], run_ns: u64) -> (Vec<(u64, u64)>, u64) {
        let mut poll_set = PollSet::new(FEW);
        (0..ports.len()).for_each(|port| poll_set.add(0, port));
        let (mut now_ns, mut longest) = (0, 0);
        let mut had = vec![(0, 0); ports.len()];
        while now_ns < run_ns {
            let is_timed = poll_set.begin_round();
            let before = now_ns;
            for (at, (frame_ns, per_us)) in ports.iter().enumerate() {
                let asked = poll_set.turn(at);
                if asked == 0 {
                    continue;
                }
                let waiting = (now_ns * per_us / 1_000).saturating_sub(had[at].1);
                let frames = waiting.min(asked as u64);
                let turn_ns = frames * frame_ns;
                now_ns += turn_ns;
                had[at].0 += turn_ns;
                had[at].1 += frames;
                poll_set.record_rx(at, frames as usize, asked);
                if is_timed {
                    poll_set.record_time(at, frames as usize, turn_ns);
                    longest = longest.max(turn_ns);
                }
            }
            // A round without frames takes time too.
            now_ns += if now_ns == before { 500 } else { 0 };
        }
        (had, longest)
    }

    #[test]
    fn busy_ports_share_the_time_whatever_their_frames_cost() {
        const RUN_NS: u64 = 1_000_000_000;
        for ports in [
            vec![(20, 1_000), (5_000, 1_000)],
            vec![(5_000, 1_000), (20, 1_000)],
            vec![(50, 1_000), (50, 1_000), (2_000, 1_000), (10_000, 1_000)],
            vec![(300, 1_000), (300, 1_000)],
        ] {
            let (had, longest) = share(&ports, RUN_NS);
            let fair = RUN_NS / ports.len() as u64;
            for (time_ns, _) in &had {
                assert!(
                    (fair * 95 / 100..fair * 105 / 100).contains(time_ns),
                    "{ports:?}: {had:?}"
                );
            }
            let dearest = ports.iter().map(|(frame_ns, _)| frame_ns * 16).max().unwrap();
            assert!(longest <= 2 * TURN_NS.max(dearest), "{ports:?}: {longest}");
        }
    }

    #[test]
    fn what_a_port_does_not_want_goes_to_the_others() {
        const RUN_NS: u64 = 1_000_000_000;
        // The first wants a tenth of the time: 5 frames of 20 ns in a microsecond.
        let (had, _) = share(&[(20, 5), (5_000, 1_000)], RUN_NS);
        let [(quiet_ns, quiet), (flood_ns, _)] = had[..] else { panic!("{had:?}") };
        assert!(quiet >= RUN_NS * 5 / 1_000 * 99 / 100, "nothing of it is left: {quiet}");
        assert!(quiet_ns + flood_ns >= RUN_NS * 99 / 100, "{had:?}");
    }

    #[test]
    fn a_port_alone_is_never_held_up_or_timed() {
        let mut poll_set = PollSet::new(FEW);
        (0..2).for_each(|port| poll_set.add(0, port));
        for _ in 0..100 {
            assert!(!poll_set.begin_round());
            assert_eq!((poll_set.turn(0), poll_set.turn(1)), (TURN_FRAMES, TURN_FRAMES));
            poll_set.record_rx(0, TURN_FRAMES, TURN_FRAMES);
            poll_set.record_rx(1, 1, TURN_FRAMES);
        }
    }

    /// A stall of the machine is not the port's doing, and a port that was quiet has saved nothing.
    #[test]
    fn neither_stall_nor_silence_is_held_against_a_port_for_long() {
        let mut poll_set = PollSet::new(FEW);
        (0..2).for_each(|port| poll_set.add(0, port));
        let round = |poll_set: &mut PollSet, turns_ns: [u64; 2]| {
            poll_set.begin_round();
            let mut asked = [0; 2];
            for at in 0..2 {
                asked[at] = poll_set.turn(at);
                if asked[at] > 0 {
                    poll_set.record_rx(at, asked[at], asked[at]);
                    poll_set.record_time(at, asked[at], turns_ns[at]);
                }
            }
            asked
        };
        round(&mut poll_set, [LEAD_NS; 2]);
        round(&mut poll_set, [3_600_000_000_000, LEAD_NS]);
        let waited = (0..10_000).take_while(|_| round(&mut poll_set, [LEAD_NS; 2])[0] == 0);
        assert!(waited.count() <= 2_000_000 / LEAD_NS as usize + 1);
        // The second is quiet for long, while the first works beside a third.
        poll_set.add(0, 2);
        for _ in 0..1_000 {
            poll_set.begin_round();
            for at in [0, 2] {
                let asked = poll_set.turn(at);
                poll_set.record_rx(at, asked, asked.max(1));
                poll_set.record_time(at, asked, LEAD_NS);
            }
            poll_set.record_rx(1, 0, TURN_FRAMES);
        }
        poll_set.begin_round();
        poll_set.record_rx(1, TURN_FRAMES, TURN_FRAMES);
        poll_set.record_time(1, TURN_FRAMES, 3 * LEAD_NS);
        poll_set.begin_round();
        assert_eq!(poll_set.turn(1), 0, "it waits for the others at once");
    }

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
                poll_set.record_rx(at, usize::from(at == 1), TURN_FRAMES);
            }
        }
        poll_set.suspend(false, |shard, _| shard != 3);
        assert_eq!(shards(&poll_set), [1, 3]);
        poll_set.record_rx(0, 5, TURN_FRAMES);
        poll_set.suspend(true, |shard, _| shard != 3);
        assert_eq!(shards(&poll_set), [1, 3], "the last poll of 1 was not empty");
        poll_set.record_rx(0, 0, TURN_FRAMES);
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
            poll_set.record_rx(0, 0, TURN_FRAMES);
        }
        poll_set.suspend(true, |_, _| true);
        assert_eq!(shards(&poll_set), [0]);
    }
}
