//! The lanes: each step is a process of its own, and a lane runs one at a time.
//!
//! A process can be ended when it takes too long, and one that dies has a name. While several lanes
//! run, a step's output goes into a file and is printed whole when the step ends, so that it stays
//! readable. It must never wait for ever: for a step, for one that it needs, or after Ctrl-C.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::inputs::Tree;
use super::leftovers;
use super::report::{Report, Tally};
use super::step::{Lane, Step};
use super::{Context, RUN_MARK, STEP_MARK};

/// The pause between two looks at the steps.
const LOOK: Duration = Duration::from_millis(50);

/// The time after which the steps that run are printed.
const STILL_RUNNING: Duration = Duration::from_secs(60);

/// The time that steps have to end by themselves after Ctrl-C, which reaches them as well.
const GRACE: Duration = Duration::from_secs(5);

/// Settings and facts that all lanes share.
pub(super) struct Run<'a> {
    pub(super) context: &'a Context,
    /// The command of the process for a step of this name.
    pub(super) process: &'a dyn Fn(&str) -> Command,
    /// Set by Ctrl-C and SIGTERM.
    pub(super) interrupted: &'a AtomicBool,
    /// Knows which steps have nothing new to say; none where all of them run.
    pub(super) tree: Option<Tree>,
    /// Whether steps may take longer than their rows allow.
    pub(super) is_unbounded: bool,
    /// Whether a later run builds on what this one has built.
    pub(super) is_built_on: bool,
}

struct Running {
    step: &'static Step,
    child: Child,
    began: Instant,
    /// The file for its output; none where it goes where ours does.
    log: Option<PathBuf>,
}

#[derive(Default)]
struct LaneState {
    queue: VecDeque<&'static Step>,
    running: Option<Running>,
    /// Whether it takes steps that either lane may run, once it has ended its own.
    takes_either: bool,
}

impl Run<'_> {
    /// Runs these steps, those of each lane one after the other.
    ///
    /// # Errors
    /// When a step cannot be started or waited for.
    pub(super) fn steps(&self, steps: &[&'static Step], report: &mut Report) -> Result<()> {
        let of = |lane: Lane| LaneState {
            queue: steps.iter().copied().filter(|step| step.lane == lane).collect(),
            running: None,
            takes_either: lane != Lane::WaitLong,
        };
        self.until_done(&mut [of(Lane::First)], VecDeque::new(), steps, report)?;
        let either = of(Lane::Either).queue;
        let mut lanes = [Lane::Wait, Lane::WaitLong, Lane::Compute].map(of);
        self.until_done(&mut lanes, either, steps, report)
    }

    fn until_done(
        &self,
        lanes: &mut [LaneState],
        mut either: VecDeque<&'static Step>,
        steps: &[&Step],
        report: &mut Report,
    ) -> Result<()> {
        let filled = lanes.iter().filter(|lane| !lane.queue.is_empty()).count();
        let is_alone = filled + either.len() == 1;
        let mut printed = Instant::now();
        let is_busy = |lane: &LaneState| lane.running.is_some() || !lane.queue.is_empty();
        while lanes.iter().any(is_busy) || !either.is_empty() {
            if self.interrupted.load(Ordering::Relaxed) {
                lanes[0].queue.append(&mut either);
                return self.interrupt(lanes, report);
            }
            for lane in lanes.iter_mut() {
                if let Some(running) = &mut lane.running
                    && let Some(tally) = self.ended(running)?
                {
                    self.close(running, tally, report)?;
                    lane.running = None;
                }
                if !is_busy(lane) && lane.takes_either {
                    lane.queue.extend(either.pop_front());
                }
                let waits_for = |name: &str| {
                    let runs = steps.iter().any(|step| step.name == name);
                    runs && report.has_passed(name).is_none()
                };
                let next = lane.queue.front();
                let is_early = next.is_some_and(|step| step.after.iter().any(|n| waits_for(n)));
                if lane.running.is_none() && !is_early {
                    self.start_next(lane, report, is_alone)?;
                }
            }
            if printed.elapsed() > STILL_RUNNING && !is_alone {
                printed = Instant::now();
                println!("... {}", still_running(lanes));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Starts the next step of a lane when what it needs has passed.
    fn start_next(&self, lane: &mut LaneState, report: &mut Report, is_alone: bool) -> Result<()> {
        let Some(step) = lane.queue.front().copied() else { return Ok(()) };
        let needs: Vec<_> =
            step.needs.iter().map(|need| (*need, report.has_passed(need))).collect();
        if needs.iter().any(|(_, passed)| passed.is_none()) {
            return Ok(());
        }
        lane.queue.pop_front();
        let missing = needs.iter().find(|(_, passed)| *passed == Some(false));
        let why = match (missing, self.tree.as_ref().and_then(|tree| tree.unchanged_since(step))) {
            (Some((need, _)), _) => format!("needs the step {need}, which failed"),
            (None, Some(commit)) => format!("unchanged since {commit}"),
            (None, None) => {
                lane.running = Some(self.start(step, is_alone)?);
                return Ok(());
            }
        };
        println!("\n==> {}: {}\nNOT RUN: {why}", step.name, step.purpose);
        report.add(step.name, Ok(Tally::left_out(why)), Duration::ZERO);
        Ok(())
    }

    /// Starts the process of a step: this program, with the words that it was started with.
    fn start(&self, step: &'static Step, is_alone: bool) -> Result<Running> {
        // What an earlier run left says nothing about this one.
        let outcome = self.context.outcome_of(step.name);
        let folder = outcome.parent().context("a file has a folder")?;
        std::fs::create_dir_all(folder).context("making the folder of the steps")?;
        if outcome.exists() {
            std::fs::remove_file(&outcome).context("removing the outcome of an earlier run")?;
        }
        let mut command = (self.process)(step.name);
        command.stdin(Stdio::null());
        command.env(RUN_MARK, &self.context.mark).env(STEP_MARK, step.name);
        let log = (!is_alone).then(|| folder.join(format!("{}.log", step.name)));
        if let Some(log) = &log {
            let file = File::create(log).with_context(|| format!("making {}", log.display()))?;
            command.stdout(file.try_clone().context("sharing a log")?).stderr(file);
            println!("--> {} begins", step.name);
        } else {
            println!("\n==> {}: {}", step.name, step.purpose);
        }
        let child = command.spawn().with_context(|| format!("starting the step {}", step.name))?;
        Ok(Running { step, child, began: Instant::now(), log })
    }

    /// The outcome of a step that has ended, or that is ended because it takes too long.
    fn ended(&self, running: &mut Running) -> Result<Option<Result<Tally>>> {
        let step = running.step;
        let status = running.child.try_wait().context("waiting for a step")?;
        if let Some(status) = status {
            let text = std::fs::read_to_string(self.context.outcome_of(step.name));
            let tally = text.ok().and_then(|text| serde_json::from_str(&text).ok());
            return Ok(Some(match tally {
                Some(tally) if status.success() => Ok(tally),
                Some(_) | None => Err(anyhow::anyhow!("the step died: {status}")),
            }));
        }
        if running.began.elapsed() < step.limit || self.is_unbounded {
            return Ok(None);
        }
        leftovers::end(&[(RUN_MARK, &self.context.mark), (STEP_MARK, step.name)])?;
        running.child.wait().context("waiting for a step that was ended")?;
        let limit = step.limit.as_secs();
        Ok(Some(Err(anyhow::anyhow!("did not end within {limit} s and was ended"))))
    }

    /// Prints the output of a step that has ended, and takes its tally in.
    fn close(&self, running: &Running, tally: Result<Tally>, report: &mut Report) -> Result<()> {
        let Running { step, began, log, .. } = running;
        if let Some(log) = log {
            println!("\n==> {}: {}", step.name, step.purpose);
            let mut file = File::open(log).with_context(|| format!("{}", log.display()))?;
            std::io::copy(&mut file, &mut std::io::stdout()).context("printing a step's output")?;
        }
        if !self.is_built_on {
            // The disk is small where runs begin without anything; a folder may not be there.
            let folders = step.scratch.iter().map(|name| self.context.target().join(name));
            folders.for_each(|folder| drop(std::fs::remove_dir_all(folder)));
        }
        let is_whole = tally.as_ref().is_ok_and(Tally::is_whole);
        report.add(step.name, tally, began.elapsed());
        match &self.tree {
            Some(tree) if is_whole => tree.keep(step),
            Some(_) | None => Ok(()),
        }
    }

    /// Ends what runs, after Ctrl-C: the steps that ran have failed, and no other begins.
    fn interrupt(&self, lanes: &mut [LaneState], report: &mut Report) -> Result<()> {
        println!("\ninterrupted: ending {}", still_running(lanes));
        let deadline = Instant::now() + GRACE;
        let mark = [(RUN_MARK, self.context.mark.as_str())];
        while !leftovers::carrying(&mark).is_empty() && Instant::now() < deadline {
            for running in lanes.iter_mut().filter_map(|lane| lane.running.as_mut()) {
                running.child.try_wait().context("waiting for a step")?;
            }
            std::thread::sleep(LOOK);
        }
        leftovers::end(&mark)?;
        for lane in lanes {
            if let Some(mut running) = lane.running.take() {
                running.child.wait().context("waiting for a step")?;
                self.close(&running, Err(anyhow::anyhow!("interrupted")), report)?;
            }
            for step in lane.queue.drain(..) {
                report.add(step.name, Ok(Tally::left_out("interrupted")), Duration::ZERO);
            }
        }
        Ok(())
    }
}

/// The steps that run, with their minutes.
fn still_running(lanes: &[LaneState]) -> String {
    let running = lanes.iter().filter_map(|lane| lane.running.as_ref());
    let text = running.map(|running| {
        format!("{} for {} min", running.step.name, running.began.elapsed().as_secs() / 60)
    });
    let text: Vec<String> = text.collect();
    if text.is_empty() { "nothing".to_owned() } else { text.join(", ") }
}

/// Runs a step in this process, which was started for it, and writes its outcome.
///
/// # Errors
/// When there is no such step, or the outcome cannot be written.
pub(super) fn as_step(context: &Context, name: &str) -> Result<()> {
    let Some(step) = super::step::named(name) else { bail!("no step `{name}`") };
    let mut tally = outcome(step, context);
    tally.cpu_seconds = cpu_seconds().unwrap_or_default();
    let path = context.outcome_of(name);
    std::fs::write(&path, serde_json::to_string(&tally)?)
        .with_context(|| format!("writing {}", path.display()))
}

/// Tally of a step, perhaps of its second try: then what failed in the first is flaky.
fn outcome(step: &Step, context: &Context) -> Tally {
    let run = || {
        (step.run)(context).unwrap_or_else(|error| {
            println!("{}: {error:#}", step.name);
            Tally::failure(format!("{error:#}"))
        })
    };
    let first = run();
    if first.failed == 0 || !step.has_second_try {
        return first;
    }
    println!("\n{}: failed, and runs once more", step.name);
    let second = run();
    if second.failed == 0 { Tally { flaky: first.failures, ..second } } else { second }
}

/// Seconds of the processor that this process has taken, and all that it started and waited for.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which may hold anything, follow the state and nine numbers.
    let (_, numbers) = stat.rsplit_once(')')?;
    let ticks = numbers.split_whitespace().skip(11).take(4).map(str::parse::<f64>);
    let ticks = ticks.sum::<Result<f64, _>>().ok()?;
    Some(ticks / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use super::{Lane, Run, Step};
    use crate::test::report::{Report, Tally};
    use crate::test::{Context, TestOptions};
    use std::path::Path;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    /// A step of a test; its process is a script.
    const fn step(lane: Lane, name: &'static str) -> Step {
        crate::test::step::step(lane, name, "a step of a test", |_| Ok(Tally::of(true)))
    }

    #[test]
    fn what_fails_once_and_passes_then_is_flaky() {
        static TRIES: AtomicBool = AtomicBool::new(false);
        let run = |_: &Context| {
            let is_second = TRIES.fetch_xor(true, Ordering::Relaxed);
            Ok(if is_second { Tally::of(true) } else { Tally::failure("a ping") })
        };
        let once = crate::test::step::step(Lane::Wait, "once", "a step of a test", run);
        let context = Context::new(Path::new("/"), &TestOptions::default());
        assert_eq!(super::outcome(&once, &context).failed, 1);
        TRIES.store(false, Ordering::Relaxed);
        let tally = super::outcome(&once.second_try(), &context);
        assert_eq!(
            (tally.passed, tally.failed, &tally.flaky[..]),
            (1, 0, &["a ping".to_owned()][..])
        );
    }

    static FIRST: Step = step(Lane::First, "first");
    static WAITS: Step = step(Lane::Wait, "waits");
    static COMPUTES: Step = step(Lane::Compute, "computes");
    static NEEDS: Step = step(Lane::Compute, "needs").needs(&["waits"]);
    static AFTER: Step = step(Lane::Wait, "after").after(&["computes", "absent"]);
    static EITHER: Step = step(Lane::Either, "either");
    static LARGE: Step = step(Lane::Wait, "large").scratch(&["large", "absent"]);
    static SHORT: Step = Step { limit: Duration::from_millis(500), ..step(Lane::Wait, "short") };

    /// Runs steps whose processes are scripts; `$out` is the folder for outcomes.
    fn run(
        steps: &[&'static Step],
        script: &dyn Fn(&str) -> String,
        interrupted: &AtomicBool,
    ) -> Report {
        let folder = tempfile::tempdir().unwrap();
        let mut context = Context::new(Path::new("/"), &TestOptions::default());
        context.target = folder.path().into();
        context.mark = format!("unit-test-{}-{}", std::process::id(), steps[0].name);
        let process = |name: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", &script(name)]).env("out", folder.path().join("test-steps"));
            command
        };
        let run = Run {
            context: &context,
            process: &process,
            interrupted,
            tree: None,
            is_unbounded: false,
            is_built_on: false,
        };
        let mut report = Report::default();
        run.steps(steps, &mut report).unwrap();
        report
    }

    /// A script that passes.
    fn pass(name: &str) -> String {
        let tally = serde_json::to_string(&Tally::of(true)).unwrap();
        format!("echo '{tally}' > $out/{name}.json")
    }

    #[test]
    fn both_lanes_run_at_a_time_after_the_first() {
        // Each of two waits for a file of the other, after the first has made its own.
        let meet = |name: &str| match name {
            "first" => "touch $out/ready; ".to_owned() + &pass(name),
            _ => {
                let other = if name == "waits" { "computes" } else { "waits" };
                let wait = format!("while ! [ -e $out/at-{other} ]; do sleep 0.01; done");
                format!("[ -e $out/ready ] && touch $out/at-{name}; {wait}; ") + &pass(name)
            }
        };
        let report = run(&[&COMPUTES, &WAITS, &FIRST], &meet, &AtomicBool::new(false));
        for name in ["first", "waits", "computes"] {
            assert_eq!(report.has_passed(name), Some(true), "{name}");
        }
    }

    #[test]
    fn a_step_comes_after_another_where_that_one_runs() {
        let script = |name: &str| match name {
            "after" => "[ -e $out/computes.json ] && ".to_owned() + &pass(name),
            _ => "sleep 0.2; ".to_owned() + &pass(name),
        };
        let report = run(&[&AFTER, &COMPUTES], &script, &AtomicBool::new(false));
        assert_eq!(report.has_passed("after"), Some(true));
        let alone = run(&[&AFTER], &pass, &AtomicBool::new(false));
        assert_eq!(alone.has_passed("after"), Some(true));
    }

    #[test]
    fn scratch_of_a_step_goes_when_it_has_ended() {
        let script = |name: &str| match name {
            "large" => "mkdir -p $out/../large/of/it $out/../small; ".to_owned() + &pass(name),
            _ => "[ -d $out/../small ] && ! [ -e $out/../large ] && ".to_owned() + &pass(name),
        };
        let report = run(&[&LARGE, &WAITS], &script, &AtomicBool::new(false));
        assert_eq!(report.has_passed("waits"), Some(true));
    }

    #[test]
    fn a_step_that_dies_is_named_and_none_that_needs_it_begins() {
        let script = |name: &str| match name {
            "waits" => pass(name) + "; kill -KILL $$",
            _ => pass(name),
        };
        let report = run(&[&WAITS, &NEEDS], &script, &AtomicBool::new(false));
        assert_eq!(report.has_passed("waits"), Some(false));
        assert_eq!(report.not_run("needs"), ["needs the step waits, which failed"]);
    }

    #[test]
    fn a_step_that_hangs_is_ended_with_all_that_it_started() {
        let began = Instant::now();
        let script = |_: &str| "setsid sleep 600 & sleep 600".to_owned();
        let report = run(&[&SHORT], &script, &AtomicBool::new(false));
        assert_eq!(report.has_passed("short"), Some(false));
        assert!(began.elapsed() < Duration::from_secs(300), "nobody waited for its end");
    }

    #[test]
    fn an_interrupted_run_ends_both_lanes() {
        let interrupted = AtomicBool::new(false);
        let report = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                interrupted.store(true, Ordering::Relaxed);
            });
            let steps = [&WAITS, &COMPUTES, &NEEDS, &EITHER];
            run(&steps, &|_| "sleep 600".to_owned(), &interrupted)
        });
        assert_eq!(report.has_passed("waits"), Some(false));
        assert_eq!(report.has_passed("computes"), Some(false));
        assert_eq!(report.not_run("needs"), ["interrupted"]);
        assert_eq!(report.not_run("either"), ["interrupted"]);
    }

    #[test]
    fn a_lane_that_is_free_takes_what_either_may_run() {
        let script = |name: &str| match name {
            // The other lane ends after the step that it could have taken.
            "waits" => {
                "while ! [ -e $out/either.json ]; do sleep 0.01; done; ".to_owned() + &pass(name)
            }
            _ => pass(name),
        };
        let report = run(&[&WAITS, &COMPUTES, &EITHER], &script, &AtomicBool::new(false));
        assert_eq!(report.has_passed("waits"), Some(true));
        assert_eq!(report.has_passed("either"), Some(true));
        let alone = run(&[&EITHER], &pass, &AtomicBool::new(false));
        assert_eq!(alone.has_passed("either"), Some(true));
    }
}
