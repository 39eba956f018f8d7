//! Packets a second that a switch forwards of a trace that it replays by itself, by the counters of
//! its own ports, in a window of the clock.
//!
//! Other programs keep a machine busy at times. A window in which the forwarder did not have its
//! core is measured again, and the trial says how often.

use std::time::Duration;

use anyhow::{Result, ensure};
use programs::cancel::Cancel;
use serde_json::json;

use super::{Method, MethodContext, Metric, Trial, TrialError, exactly, idle_cpu};
use crate::dut::DutCounters;
use crate::setup::Setup;
use crate::testbed::Testbed;
use crate::testbed::replay::{Counts, ReplayTestbed, await_steady_rate};

/// Run of a forwarder that was held still, before it is measured.
const RUN_IN: Duration = Duration::from_millis(300);

/// The part of a window that a forwarder may be kept from its core, and still count.
const KEPT_OFF_MAX: f64 = 0.03;

/// Windows of one trial that are measured again at most.
const AGAIN_MAX: usize = 2;

const STEADY_LIMIT: Duration = Duration::from_secs(20);

/// A switch that fills its caches packet by packet takes three quarters of a minute for 100,000
/// flows.
const MISSES_LIMIT: Duration = Duration::from_secs(90);

/// Fewer flow entries than this weigh less than the pages that a process gets at once.
const WEIGHABLE: u64 = 10_000;

pub(super) const REPLAY: Method = Method {
    id: "replay",
    label: "Replayed trace",
    about: "Packets a second of a trace that the switch replays by itself, as fast as it goes, by \
            the counters of its own ports; what was lost, and what the flow entries took",
    metrics: &[
        Metric::higher("replay_mpps", "forwarded packets", "Mpps", 3),
        Metric::lower("replay_lost", "packets that did not leave", "packets", 0),
        Metric::higher("replay_loads_ps", "flow entries loaded", "entries/s", 0),
        Metric::lower("replay_entry_bytes", "memory of a flow entry", "B", 0),
    ],
    cost: |settings| Duration::from_secs_f64(settings.duration_s()) + RUN_IN,
    finds_stalls: true,
    fits: |bed| bed_of(bed).map(drop),
    run,
    ..Method::USUAL
};

fn bed_of(bed: &Testbed) -> Result<&ReplayTestbed, &'static str> {
    bed.replay().ok_or("the switch has no trace to replay: settings.replay names one")
}

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let bed = bed_of(context.bed).map_err(TrialError::Unfit)?;
    let MethodContext { setup, cancel, .. } = *context;
    let counts = || setup.counts(bed.pairs());
    let workers = || setup.counters().map(DutCounters::workers).transpose();
    let warm_up_s = bed.warm_up(|| warm_up(setup, counts, cancel))?;
    cancel.sleep(RUN_IN)?;
    let (empty_bytes, resident_bytes) = setup.memory_bytes();
    let (workers_before, first) = (workers()?, counts()?);
    let (pids, seconds, mut again) = (setup.switch_pids(), context.settings.duration_s(), 0);
    let mpps = loop {
        let (mpps, had_core) = window(&pids, seconds, counts, cancel)?;
        if had_core || again == AGAIN_MAX {
            break mpps;
        }
        again += 1;
    };
    let lost = counts()?.lost_since(&first);
    let workers_after = workers()?;
    let mut values = vec![("replay_mpps", mpps), ("replay_lost", lost as f64)];
    let loaded = setup.loaded;
    let entries = loaded.map_or(0, |loaded| loaded.entries);
    if let Some(loaded) = loaded.filter(|loaded| loaded.entries > 0) {
        values.push(("replay_loads_ps", loaded.entries as f64 / loaded.seconds.max(1e-9)));
    }
    if entries >= WEIGHABLE {
        let grown_bytes = resident_bytes.saturating_sub(empty_bytes);
        values.push(("replay_entry_bytes", grown_bytes as f64 / entries as f64));
    }
    let raw = json!({
        "again": again,
        "flow_entries": entries,
        "warm_up_s": warm_up_s,
        "resident_bytes": resident_bytes,
        "workers": [workers_before, workers_after],
    });
    let (values, tool) = (exactly(values), "the switch's port counters".into());
    Ok(Trial { values, tool, raw, ..Trial::default() })
}

/// Waits until the rate is what it will stay. The seconds that it took.
fn warm_up(
    setup: &Setup,
    mut counts: impl FnMut() -> Result<Counts>,
    cancel: &Cancel,
) -> Result<f64> {
    let by_misses = setup.counters().map(|counters| counters.warm_up(MISSES_LIMIT, cancel));
    let seconds = match by_misses.transpose()?.flatten() {
        Some(seconds) => seconds,
        None => await_steady_rate(&mut counts, STEADY_LIMIT, cancel)?,
    };
    let now = counts()?;
    ensure!(
        now.sent > 0,
        "of {} packets that came in none left by the port behind: do the flow entries belong to \
         the trace?",
        now.received
    );
    Ok(seconds)
}

/// Millions of packets a second that leave in a window, and whether the forwarder had its core.
fn window(
    pids: &[u32],
    seconds: f64,
    mut counts: impl FnMut() -> Result<Counts>,
    cancel: &Cancel,
) -> Result<(f64, bool)> {
    let before = idle_cpu::ran(pids)?;
    let first = counts()?;
    cancel.sleep(Duration::from_secs_f64(seconds))?;
    let last = counts()?;
    let after = idle_cpu::ran(pids)?;
    // Of the thread that ran most.
    let ran_s = idle_cpu::between(&before, &after).max().unwrap_or(0) as f64 / 1e9;
    let clock_s = last.at.duration_since(first.at).as_secs_f64();
    Ok((last.rate_since(&first) / 1e6, ran_s >= clock_s * (1.0 - KEPT_OFF_MAX)))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::window;
    use crate::testbed::replay::Counts;
    use programs::cancel::Cancel;

    #[test]
    fn a_forwarder_without_its_core_is_seen() {
        let mut sent = 0;
        let counts = || {
            sent += 1_000;
            Ok(Counts { at: Instant::now(), received: sent, sent })
        };
        let (mpps, had_core) = window(&[], 0.05, counts, &Cancel::default()).unwrap();
        assert!(mpps > 0.0 && !had_core, "no thread ran: {mpps}");
    }
}
