//! Cost of an idle switch: the CPU time of all its threads while nothing is sent, from the
//! scheduler's own account in nanoseconds.

use std::time::{Duration, Instant};

use files::proc::ProcFolder;
use programs::cancel::Cancel;
use serde_json::json;

use super::{Method, MethodContext, Metric, Trial, TrialError, exactly, wrong};
use crate::load::ProcessRole;

/// Time after the start in which a switch may still have work of its start.
const REST: Duration = Duration::from_millis(500);

pub(super) const IDLE_CPU: Method = Method {
    id: "idle-cpu",
    label: "CPU without traffic",
    about: "CPU time of all threads of the switch while nothing is sent",
    metrics: &[Metric::lower("idle_cores", "CPU without traffic", "cores", 4)],
    cost: |settings| Duration::from_secs_f64(settings.duration_s()) + REST,
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let Some((cores, threads)) = of_switch(context)? else {
        return Err(TrialError::Unfit("has no process whose CPU time could be counted"));
    };
    let (values, raw) = (exactly([("idle_cores", cores)]), json!({ "threads": threads }));
    Ok(Trial { values, tool: "the kernel's schedstat".into(), raw, ..Trial::default() })
}

/// The cores that the switch uses for the duration of a trial, and how many threads it has; none of
/// a switch without a process.
pub(super) fn of_switch(context: &MethodContext<'_>) -> Result<Option<(f64, usize)>, TrialError> {
    let switch = context.watched.iter().filter(|one| one.role == ProcessRole::Switch);
    let pids: Vec<u32> = switch.map(|program| program.pid).collect();
    if pids.is_empty() {
        return Ok(None);
    }
    let duration = Duration::from_secs_f64(context.settings.duration_s());
    cores(&pids, duration, context.cancel).map(Some)
}

/// The cores that the processes use for so long, and how many threads they have.
pub(super) fn cores(
    pids: &[u32],
    duration: Duration,
    cancel: &Cancel,
) -> Result<(f64, usize), TrialError> {
    cancel.sleep(REST)?;
    let before = ran(pids)?;
    let begun = Instant::now();
    cancel.sleep(duration)?;
    let seconds = begun.elapsed().as_secs_f64();
    let after = ran(pids)?;
    let used_ns: u64 = between(&before, &after).sum();
    Ok((used_ns as f64 / 1e9 / seconds, after.len()))
}

/// The threads of the processes, each with the nanoseconds that it has run.
pub(super) fn ran(pids: &[u32]) -> Result<Vec<(u32, u64)>, TrialError> {
    let mut all = Vec::new();
    for pid in pids {
        let failed = |source| TrialError::Io { what: "the switch's threads", source };
        for (tid, folder) in ProcFolder::of(*pid).threads().map_err(failed)? {
            match folder.sched_time() {
                Some(time) => all.push((tid, time.ran_ns)),
                // It has ended since it was listed.
                None if folder.read("stat").is_err() => {}
                None => return Err(wrong("idle-cpu", "this kernel keeps no /proc/PID/schedstat")),
            }
        }
    }
    Ok(all)
}

/// Nanoseconds that each thread has run in between; one that began meanwhile counts whole.
pub(super) fn between(before: &[(u32, u64)], after: &[(u32, u64)]) -> impl Iterator<Item = u64> {
    let begun = move |tid: u32| before.iter().find(|thread| thread.0 == tid).map_or(0, |one| one.1);
    after.iter().map(move |(tid, ran_ns)| ran_ns.saturating_sub(begun(*tid)))
}

#[cfg(test)]
mod tests {
    use super::{between, ran};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn threads_count_each_and_new_ones_whole() {
        let ran: Vec<u64> = between(&[(1, 10), (2, 5)], &[(1, 30), (3, 4)]).collect();
        assert_eq!(ran, [20, 4]);
    }

    #[test]
    fn threads_that_end_meanwhile_are_no_error() {
        let pids = [std::process::id()];
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::thread::spawn(|| ()).join().unwrap();
                }
            });
            let wrong = (0..2_000).find_map(|_| ran(&pids).err());
            is_over.store(true, Ordering::Relaxed);
            assert!(wrong.is_none(), "{wrong:?}");
        });
    }

    #[test]
    fn a_thread_that_works_has_run() {
        let pids = [std::process::id()];
        let before = ran(&pids).unwrap();
        let mut number = 1_u64;
        while between(&before, &ran(&pids).unwrap()).sum::<u64>() < 2_000_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        assert_ne!(number, 0);
    }
}
