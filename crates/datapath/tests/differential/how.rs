//! Settings of the fast datapath for a scenario: all of them must change nothing but speed.

use std::fmt;

use datapath::fast::testing::{Template, set_plain, set_template};
use datapath::fast::{Caches, Fast};
use testkit::Random;

/// A way to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    caches: Caches,
    /// Plain code for what the processor has wide instructions for.
    plain: bool,
    /// Lines of the cache at first and at most: often so few that decisions are given up.
    lines: (usize, usize),
    /// The template of flow tables.
    pub(crate) template: Option<Template>,
    /// Whether all that is switched in between.
    pub(crate) switches: bool,
}

/// Caches in use: both twice, as that is the usual way.
const CACHES: [(bool, bool); 5] =
    [(true, true), (true, true), (true, false), (false, true), (false, false)];

/// Ways to search the flow tables that can be forced, and what suits the table, which with the
/// small tables of scenarios is nearly always a list.
const TEMPLATES: [Option<Template>; 5] = [
    None,
    Some(Template::Few),
    Some(Template::Exact),
    Some(Template::General),
    Some(Template::Pruned),
];

impl How {
    /// A way that follows from the scenario's seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Random::new(!seed);
        let (frame, key) = *rng.pick(&CACHES);
        let plain = rng.percent(30);
        let lines = *rng.pick(&[(16, 16), (16, 128), (256, 1 << 16), (1 << 12, 1 << 12)]);
        let switches = rng.percent(20);
        let template = TEMPLATES[(seed % TEMPLATES.len() as u64) as usize];
        let caches = Caches { frame, key, kernel: false };
        Self { caches, plain, lines, template, switches }
    }

    pub(crate) fn set(self, fast: &mut Fast) {
        fast.forwarder().set_lines(self.lines.0, self.lines.1);
        self.switch(fast);
    }

    /// Another way from here on, but for what is set once.
    pub(crate) fn switch(self, fast: &mut Fast) {
        let forwarder = fast.forwarder();
        forwarder.set_caches(self.caches, datapath::Nanos(0));
        set_plain(forwarder, self.plain);
        set_template(forwarder, self.template);
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { caches: Caches { frame, key, kernel: _ }, plain, lines, template, switches } =
            self;
        write!(f, "caches: frame {frame}, key {key}, lines {lines:?}, switched {switches}; ")?;
        let template = template.map_or("any", Template::name);
        write!(f, "plain code {plain}, template {template}")
    }
}
