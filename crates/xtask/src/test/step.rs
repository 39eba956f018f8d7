//! The table of steps: order, lane, needs, inputs and bound of each.
//!
//! Steps that mostly wait (suites of other programs, pages, the demo) run beside those that
//! compute, so that neither leaves a core idle. It must never hold a step that needs one which
//! comes to its turn later: all lanes would wait for ever.

use std::time::Duration;

use anyhow::Result;

use self::Lane::{Compute, Either, First, Wait, WaitLong};
use super::{
    Context, Tally, cargo, datapath, demo, deny, dpdk, packages, page, peers, python, ryu, suites,
};

/// Steps of one lane run one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Before the other lanes begin: what they build on, and what is judged in seconds.
    First,
    /// Programs and suites that wait for each other and for timers.
    Wait,
    /// A suite that does so for as long as many others together.
    WaitLong,
    /// Compilers, and tests that keep the cores busy.
    Compute,
    /// In the first of `Wait` and `Compute` that has ended its own: they build in folders of
    /// their own.
    Either,
}

/// Files of which a step's outcome depends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inputs {
    /// Crates, with all that they import.
    pub(super) crates: &'static [&'static str],
    /// Paths from the root of the workspace, or beginnings of paths.
    pub(super) paths: &'static [&'static str],
}

/// A named part of the test command.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) purpose: &'static str,
    pub(super) lane: Lane,
    /// Steps that must have passed before this one starts.
    pub(super) needs: &'static [&'static str],
    /// Steps that must have ended before, where they run at all.
    pub(super) after: &'static [&'static str],
    /// A step with known inputs is left out while these are as they were when it passed.
    pub(super) inputs: Option<Inputs>,
    /// Large folders of the target folder that no other step reads; where nothing is built twice,
    /// they go when the step has ended.
    pub(super) scratch: &'static [&'static str],
    /// Whether `--smoke` runs it.
    pub(super) is_smoke: bool,
    /// Whether it runs once more when it failed: its peers are slow where others use the machine.
    pub(super) has_second_try: bool,
    /// The step is ended when it takes longer.
    pub(super) limit: Duration,
    pub(super) run: fn(&Context) -> Result<Tally>,
}

impl Step {
    pub(super) const fn needs(mut self, names: &'static [&'static str]) -> Self {
        self.needs = names;
        self
    }

    pub(super) const fn after(mut self, names: &'static [&'static str]) -> Self {
        self.after = names;
        self
    }

    const fn depends_on(
        mut self,
        crates: &'static [&'static str],
        paths: &'static [&'static str],
    ) -> Self {
        self.inputs = Some(Inputs { crates, paths });
        self
    }

    pub(super) const fn scratch(mut self, folders: &'static [&'static str]) -> Self {
        self.scratch = folders;
        self
    }

    pub(super) const fn second_try(mut self) -> Self {
        self.has_second_try = true;
        self
    }

    const fn smoke(mut self) -> Self {
        self.is_smoke = true;
        self
    }
}

pub(super) const fn step(
    lane: Lane,
    name: &'static str,
    purpose: &'static str,
    run: fn(&Context) -> Result<Tally>,
) -> Step {
    Step {
        name,
        purpose,
        lane,
        needs: &[],
        after: &[],
        inputs: None,
        scratch: &[],
        is_smoke: false,
        has_second_try: false,
        limit: Duration::from_secs(3_600),
        run,
    }
}

/// The last step, after all lanes: it compares with the state before the run.
pub(super) const LEFTOVERS: &str = "leftovers";

/// Steps in the order of their lanes.
pub(super) const STEPS: &[Step] = &[
    step(First, "peers", "the programs the tests run beside Weir", peers::install),
    step(First, "fmt", "formatting", cargo::fmt).smoke(),
    step(First, "tidy", "house rules and crate graph", super::run_tidy).smoke(),
    step(First, "deny", "licences, versions and sources of what we depend on", deny::run),
    step(Wait, "weir", "the program that the suites run, as users build it", cargo::weir),
    step(WaitLong, "ryu", "the Ryu switch tester, 1.0, 1.3 and 1.4", ryu::run).needs(&["weir"]),
    step(Wait, "ofctl", "ovs-ofctl against weir switch", suites::ofctl).needs(&["weir"]),
    step(Wait, "rest", "REST beside Ryu's own server, and fuzzed from its document", suites::rest)
        .needs(&["weir"]),
    step(Wait, "mininet", "weir in Mininet", suites::mininet).needs(&["weir"]).second_try(),
    step(Wait, "packages", "the deb in a Debian without a compiler", packages::run)
        .needs(&["weir"])
        .second_try(),
    step(Wait, "vswitchd", "Mininet's own switches, with weir as ovs-vswitchd", suites::vswitchd)
        .needs(&["weir"])
        .second_try(),
    step(
        Wait,
        "ovs-suite",
        "Open vSwitch's own suites, with weir as ovs-vswitchd",
        suites::ovs_suite,
    )
    .needs(&["weir"])
    .second_try(),
    step(Wait, "page", "the controller's page in headless Chromium", page::run).needs(&["weir"]),
    step(
        Wait,
        "results-page",
        "the page of the lab's results in headless Chromium",
        page::run_results,
    )
    .needs(&["weir"]),
    step(Wait, "demo", "the demo of the README: whole, stopped, without root", demo::run)
        .needs(&["weir"])
        .second_try(),
    // Cargo's lock on the debug build would make it wait for the step `tests` anyway.
    step(Wait, "cluster", "controllers that share their switches through etcd", cargo::cluster)
        .after(&["tests"]),
    step(Wait, "ryu-apps", "the apps of Ryu's package, by Ryu and by Weir", suites::ryu_apps)
        .needs(&["weir", "python"])
        .second_try(),
    step(Compute, "clippy", "lints, warnings denied", cargo::clippy).smoke(),
    step(Compute, "tests", "unit, property, vector and end-to-end tests", cargo::tests).smoke(),
    step(Compute, "doctests", "the examples in the documentation of the crates", cargo::doctests),
    step(Compute, "doc", "documentation of the crates, warnings denied", cargo::doc)
        .scratch(&["doc"]),
    step(Compute, "docs", "the documentation's printed parts, and the book", super::run_docs),
    step(
        Compute,
        "sameness",
        "the fast datapath against the reference, on random packets",
        datapath::sameness,
    )
    .needs(&["weir"]),
    step(
        Compute,
        "instructions",
        "how many instructions classifier, caches, codec and receiver execute",
        super::run_instructions,
    )
    .depends_on(&["datapath", "generator", "wire"], &["docs/instructions.json"]),
    step(Compute, "dpdk", "the feature dpdk over virtual devices", dpdk::run)
        .depends_on(&["netdev", "switch"], &["crates/cli/"]),
    step(Compute, "python", "the Python package: wheel, tests, types", python::run).depends_on(
        &["python", "cli"],
        &[
            "python/",
            "pyproject.toml",
            "contrib/lab/",
            "docs/python.md",
            "docs/reference/python.md",
            "docs/rest.md",
        ],
    ),
    step(Either, "example", "the examples of CONTRIBUTING.md", super::run_example)
        .scratch(&["example"]),
    step(Either, "fuzz", "every fuzz target for a while", super::run_fuzz)
        .needs(&["weir"])
        .depends_on(&["switch", "generator", "testkit"], &["fuzz/", "vectors/"]),
    step(Either, "model", "shared counters, by a model checker", datapath::model)
        .depends_on(&["datapath"], &[]),
];

/// The step of this name.
pub(super) fn named(name: &str) -> Option<&'static Step> {
    STEPS.iter().find(|step| step.name == name)
}

#[cfg(test)]
mod tests {
    use super::{LEFTOVERS, Lane, STEPS, Step};

    #[test]
    fn step_names_are_unique() {
        let mut names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        names.push(LEFTOVERS);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len() + 1);
    }

    #[test]
    fn every_step_comes_to_its_turn() {
        let of = |lane| STEPS.iter().filter(move |step| step.lane == lane).collect::<Vec<_>>();
        let mut done: Vec<&str> = Vec::new();
        let mut lanes =
            [Lane::First, Lane::Wait, Lane::WaitLong, Lane::Compute, Lane::Either].map(of);
        lanes.iter_mut().for_each(|lane| lane.reverse());
        while lanes.iter().any(|lane| !lane.is_empty()) {
            let before = done.len();
            for lane in &mut lanes {
                let is_ready = |step: &&&Step| {
                    step.needs.iter().chain(step.after).all(|need| done.contains(need))
                };
                if lane.last().filter(is_ready).is_some() {
                    done.extend(lane.pop().map(|step| step.name));
                }
            }
            assert_ne!(done.len(), before, "{done:?}, and the lanes wait for each other");
        }
    }
}
