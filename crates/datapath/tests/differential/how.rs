//! How the fast datapath runs a scenario: all of it must change nothing but speed.

use std::fmt;

use datapath::fast::Fast;

use crate::rng::Rng;

/// A way to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {}

impl How {
    /// A way that follows from the scenario's seed.
    pub(crate) fn new(seed: u64) -> Self {
        let _rng = Rng::new(!seed);
        Self {}
    }

    pub(crate) fn set(self, _fast: &mut Fast) {}
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("as it comes")
    }
}
