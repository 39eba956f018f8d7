//! A switch and two methods that do what a test says, so that a whole run can be driven in a
//! fraction of a second: on in-memory ports that nothing is sent over.
//!
//! A run measures on the thread that it is called on, so that what a test says is the thread's own.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use files::proc::ProcFolder;
use programs::tools::{Missing, Program};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::campaign::job::Campaign;
use crate::campaign::scenario::Scenario;
use crate::dut::{self, Dut, StartedDut};
use crate::load::ProcessRole;
use crate::method::{Method, MethodContext, Trial};
use crate::results::Metric;
use crate::service::Service;
use crate::trial_error::TrialError;

/// The methods.
pub(crate) const METHODS: &[&Method] = &[&FAKE, &SPENDER];

/// The switches.
pub(crate) const DUTS: &[&Dut] = &[&switch("fake-switch"), &switch("fake-other")];

/// Two points that one start serves, twice.
pub(crate) const TWO_POINTS: &str = r#"
id = "fakes"
title = "Fakes"
question = "What does the test say?"
methods = ["fake"]
starts = 2
[settings]
forwarding = "learning"
[[axis]]
name = "size"
key = "frame_size"
values = [64, 128]
"#;

/// Its campaign on the fake switch.
pub(crate) fn campaign(text: &str, folder: &Path) -> Campaign {
    Campaign {
        scenarios: vec![Scenario::from_toml(text).unwrap()],
        duts: vec![dut::find("fake-switch").unwrap()],
        folder: folder.to_owned(),
        notes: vec!["a note".to_owned()],
        quiet: true,
        ..Campaign::default()
    }
}

/// Act of the next trial.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Yields this.
    Yields(f64),
    /// Fails with these words.
    Fails(&'static str),
    /// Has no program to measure with.
    Misses,
    /// Kills the switch, and yields this.
    Kills(f64),
    /// Kills the switches that are held still meanwhile, and yields this.
    KillsHeld(f64),
    /// Interrupts the run, as Ctrl-C does.
    Interrupts,
}

#[derive(Debug, Default)]
struct Stage {
    acts: VecDeque<Act>,
    starts_that_fail: usize,
    is_spent: bool,
    log: Vec<&'static str>,
    /// The switches that were started.
    pids: Vec<u32>,
    /// Number of switches that stood still at each trial.
    still: Vec<usize>,
}

thread_local! {
    static STAGE: RefCell<Stage> = RefCell::default();
}

/// Sets the acts of the coming trials, in order; those after them yield 1, 2, 3 and so on.
pub(crate) fn play(acts: &[Act]) {
    STAGE.with_borrow_mut(|stage| {
        *stage = Stage { acts: acts.iter().copied().collect(), ..<_>::default() }
    });
}

/// So many of the next starts fail.
pub(crate) fn fail_starts(count: usize) {
    STAGE.with_borrow_mut(|stage| stage.starts_that_fail = count);
}

/// Events since the last call: `start`, `trial`.
pub(crate) fn happened() -> Vec<&'static str> {
    STAGE.with_borrow_mut(|stage| std::mem::take(&mut stage.log))
}

/// Number of switches that stood still at each trial since [`play`].
pub(crate) fn still() -> Vec<usize> {
    STAGE.with_borrow(|stage| stage.still.clone())
}

/// Whether no switch that was started since [`play`] is left, running or held.
pub(crate) fn is_all_over() -> bool {
    STAGE.with_borrow(|stage| stage.pids.iter().all(|pid| state(*pid).is_none()))
}

/// The letter of a process's state; `None` where there is no such process.
fn state(pid: u32) -> Option<char> {
    let stat = ProcFolder::of(pid).read("stat").ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Whether a process is held still, once it does what it was told to by a signal.
fn is_still(pid: u32, is_stopped: bool) -> bool {
    let begun = Instant::now();
    let is_late = || begun.elapsed() > Duration::from_secs(20);
    while state(pid).is_some_and(|now| (now == 'T') != is_stopped && now != 'Z') && !is_late() {
        std::thread::sleep(Duration::from_millis(1));
    }
    state(pid) == Some('T')
}

/// Kills a switch, which this process has started.
fn kill(pid: u32) {
    let pid = Pid::from_raw(pid as i32).expect("a process has a number");
    kill_process(pid, Signal::KILL).expect("it runs");
    // Until it is dead; who has started it takes note of its end.
    let dead = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), dead).expect("it is this process's child");
}

const FAKE: Method = Method {
    id: "fake",
    label: "Fake",
    about: "What a test says",
    metrics: &[Metric::lower("fake_us", "fake delay", "us", 1)],
    floors: &["fake_us"],
    cost: |_| Duration::from_secs(1),
    run: |context| run(context, "fake_us", false),
    ..Method::USUAL
};

const SPENDER: Method = Method {
    id: "fake-spender",
    metrics: &[Metric::lower("fake_loss", "fake loss", "", 0)],
    floors: &[],
    spends_setup: true,
    run: |context| run(context, "fake_loss", true),
    ..FAKE
};

fn run(
    context: &MethodContext<'_>,
    metric: &'static str,
    spends: bool,
) -> Result<Trial, TrialError> {
    let switch = context.watched.iter().find(|one| one.role == ProcessRole::Switch);
    // On the floor's wire there is no switch, and no act is used up.
    let act = STAGE.with_borrow_mut(|stage| {
        let Some(switch) = switch else {
            stage.log.push("floor");
            return Act::Yields(0.5);
        };
        stage.log.push("trial");
        assert!(!is_still(switch.pid, false), "what is measured runs");
        let others = stage.pids.iter().filter(|pid| **pid != switch.pid);
        stage.still.push(others.filter(|pid| is_still(**pid, true)).count());
        if std::mem::replace(&mut stage.is_spent, spends) {
            return Act::Fails("the set-up is spent");
        }
        stage.acts.pop_front().unwrap_or(Act::Yields(1.0))
    });
    let fails = |what: &str| TrialError::Output { program: "fake", what: what.to_owned() };
    let value = match act {
        Act::Yields(value) => value,
        Act::Fails(what) => return Err(fails(what)),
        Act::Misses => {
            return Err(Missing("fakes not installed: apt-get install fakes".into()).into());
        }
        Act::Kills(value) => {
            kill(switch.ok_or_else(|| fails("no switch"))?.pid);
            value
        }
        Act::KillsHeld(value) => {
            STAGE.with_borrow(|stage| {
                let held = stage.pids.iter().filter(|pid| state(**pid) == Some('T'));
                held.for_each(|pid| kill(*pid));
            });
            value
        }
        Act::Interrupts => {
            context.cancel.stop();
            context.cancel.check()?;
            0.0
        }
    };
    Ok(Trial {
        values: vec![(metric, value.into())],
        tool: "fake 1".into(),
        raw: serde_json::Value::Null,
        ..Trial::default()
    })
}

const fn switch(name: &'static str) -> Dut {
    Dut {
        has_memory_ports: true,
        check: |_, settings, _| {
            if settings.workers.is_some() { Err("has no threads".to_owned()) } else { Ok(()) }
        },
        programs: |_, _| {
            let (name, path) = ("fake-switch".to_owned(), "/bin/sleep".to_owned());
            Ok(vec![Program { name, version: "fake-switch 1".to_owned(), path }])
        },
        start: |plan| {
            let is_failing = STAGE.with_borrow_mut(|stage| {
                stage.log.push("start");
                stage.is_spent = false;
                let is_failing = stage.starts_that_fail > 0;
                stage.starts_that_fail = stage.starts_that_fail.saturating_sub(1);
                is_failing
            });
            anyhow::ensure!(!is_failing, "does not come up");
            let mut command = Command::new("sleep");
            command.arg("600");
            let process = plan.context.start("fake-switch", command)?;
            STAGE.with_borrow_mut(|stage| stage.pids.push(process.pid()));
            let service = Service::of(process, ProcessRole::Switch, 1);
            Ok(StartedDut { service, ..StartedDut::default() })
        },
        ..Dut::new(name, "A program that waits")
    }
}
