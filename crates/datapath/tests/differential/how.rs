//! How the fast datapath runs a scenario: all of it must change nothing but speed.

use std::fmt;

use datapath::fast::{Caches, Fast};

use crate::rng::Rng;

/// A way to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    caches: Caches,
}

impl How {
    /// A way that follows from the scenario's seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(!seed);
        let (exact, flow) =
            *rng.pick(&[(true, true), (true, true), (true, false), (false, true), (false, false)]);
        Self { caches: Caches { exact, flow } }
    }

    pub(crate) fn set(self, fast: &mut Fast) {
        fast.forwarder().set_caches(self.caches);
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Caches { exact, flow } = self.caches;
        write!(f, "caches: exact {exact}, flow {flow}")
    }
}
