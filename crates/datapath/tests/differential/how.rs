//! How the fast datapath runs a scenario: all of it must change nothing but speed.

use std::fmt;

use datapath::fast::{Caches, Fast};

use crate::rng::Rng;

/// A way to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    caches: Caches,
    /// Plain code for what the processor has wide instructions for.
    plain: bool,
    /// Lines of the cache at first and at most: often so few that decisions are given up.
    lines: (usize, usize),
    /// Whether caches are switched on and off in between.
    pub(crate) switches: bool,
}

/// Caches in use: both twice, as that is the usual way.
const CACHES: [(bool, bool); 5] =
    [(true, true), (true, true), (true, false), (false, true), (false, false)];

impl How {
    /// A way that follows from the scenario's seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(!seed);
        let (exact, flow) = *rng.pick(&CACHES);
        let plain = rng.percent(30);
        let lines = *rng.pick(&[(16, 16), (16, 128), (256, 1 << 16), (1 << 12, 1 << 12)]);
        let switches = rng.percent(20);
        Self { caches: Caches { exact, flow }, plain, lines, switches }
    }

    pub(crate) fn set(self, fast: &mut Fast) {
        fast.forwarder().set_lines(self.lines.0, self.lines.1);
        self.switch(fast);
    }

    /// Another way from here on, but for what is set once.
    pub(crate) fn switch(self, fast: &mut Fast) {
        let forwarder = fast.forwarder();
        forwarder.set_caches(self.caches);
        forwarder.set_plain(self.plain);
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { caches: Caches { exact, flow }, plain, lines, switches } = self;
        write!(f, "caches: exact {exact}, flow {flow}, lines {lines:?}, switched {switches}; ")?;
        write!(f, "plain code {plain}")
    }
}
