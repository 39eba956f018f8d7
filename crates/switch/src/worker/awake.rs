//! The ports that a worker asks for frames in every round.
//!
//! A worker with few ports asks all of them: that costs less than to be told by the kernel which
//! have something. With more ports it asks those that have had frames lately and those that cannot
//! wake it; all others sleep, and are named by the worker's watch when they have something. So a
//! thousand silent bridges cost a round nothing, and a frame in any of them waits no longer.

/// Up to so many ports all are asked.
const FEW: usize = 8;

/// Rounds without a frame after which a port may sleep.
const EMPTY_ROUNDS: u32 = 64;

/// A port that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Awake {
    /// Its branch.
    pub(super) place: usize,
    /// Its place among the branch's ports.
    pub(super) index: usize,
    /// Rounds since it had a frame.
    empty_rounds: u32,
}

/// The list.
#[derive(Debug)]
pub(super) struct Roster {
    ports: Vec<Awake>,
    is_small: bool,
    /// A port has been silent for long.
    is_any_silent: bool,
}

impl Roster {
    /// Empty, for a worker with so many ports.
    pub(super) fn new(ports: usize) -> Self {
        Self { ports: Vec::new(), is_small: ports <= FEW, is_any_silent: false }
    }

    /// Whether ports may sleep while the worker does not.
    pub(super) fn lets_sleep(&self) -> bool {
        !self.is_small
    }

    /// Those that are asked.
    pub(super) fn ports(&self) -> &[Awake] {
        &self.ports
    }

    /// A port that was not on the list is asked from now on.
    pub(super) fn add(&mut self, place: usize, index: usize) {
        self.ports.push(Awake { place, index, empty_rounds: 0 });
    }

    /// The port at this place of the list gave so many frames.
    pub(super) fn gave(&mut self, at: usize, frames: usize) {
        let Some(port) = self.ports.get_mut(at) else { return };
        port.empty_rounds = if frames > 0 { 0 } else { port.empty_rounds.saturating_add(1) };
        self.is_any_silent |= port.empty_rounds >= EMPTY_ROUNDS;
    }

    /// Takes ports off the list that have been silent for long, or all, as far as `may` lets them;
    /// those that it is asked about gave no frame when they were asked last.
    pub(super) fn lay_down(&mut self, all: bool, mut may: impl FnMut(usize, usize) -> bool) {
        if self.is_small || !(all || self.is_any_silent) {
            return;
        }
        self.is_any_silent = false;
        self.ports.retain_mut(|port| {
            let is_meant = port.empty_rounds >= EMPTY_ROUNDS || (all && port.empty_rounds > 0);
            // One that may not is asked about again after as many rounds.
            let stays = !is_meant || !may(port.place, port.index);
            if is_meant && stays {
                port.empty_rounds = 1;
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{EMPTY_ROUNDS, FEW, Roster};

    fn places(roster: &Roster) -> Vec<usize> {
        roster.ports().iter().map(|port| port.place).collect()
    }

    #[test]
    fn silent_ports_lie_down_and_those_that_cannot_wake_stay() {
        let mut roster = Roster::new(FEW + 1);
        for place in 0..4 {
            roster.add(place, 0);
        }
        for _ in 0..EMPTY_ROUNDS {
            roster.lay_down(false, |_, _| panic!("too early"));
            for at in 0..4 {
                roster.gave(at, usize::from(at == 1));
            }
        }
        roster.lay_down(false, |place, _| place != 3);
        assert_eq!(places(&roster), [1, 3]);
        roster.gave(0, 5);
        roster.lay_down(true, |place, _| place != 3);
        assert_eq!(places(&roster), [1, 3], "the last answer of 1 was not empty");
        roster.gave(0, 0);
        roster.lay_down(true, |place, _| place != 3);
        assert_eq!(places(&roster), [3]);
    }

    #[test]
    fn few_ports_are_always_asked() {
        let mut roster = Roster::new(FEW);
        roster.add(0, 0);
        for _ in 0..2 * EMPTY_ROUNDS {
            roster.gave(0, 0);
        }
        roster.lay_down(true, |_, _| true);
        assert_eq!(places(&roster), [0]);
    }
}
