//! Share of the forwarding rate that is left while the switch has other work, beside its rate in
//! peace.
//!
//! The work is an even stream of adds, changes and deletions in the table that the packets meet, or
//! lists of all flow entries, one behind the other. A phase in peace comes first, so that what the
//! machine does falls on both. In each, what left is read every tenth of a second, and another
//! connection asks for an echo every millisecond: so long would a controller have waited. At the
//! ends the ports say what was lost. A packet that found the ring of its port full was lost for
//! want of time; beside it stands how long the forwarding threads did not have their cores.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use files::proc::ProcFolder;
use openflow::flow::FlowModCommand;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::replay::{RUN_IN, Replaying, bed_of, packets_come, run, trial};
use super::series::{spans, watch};
use super::{Method, Metric, Trial, leave_out_quantile};
use crate::settings::Settings;
use crate::switch_client::{Storm, SwitchClient};
use crate::workload::made;
use stats::{median, quantile};

/// The length of a window.
const STEP: Duration = Duration::from_millis(100);

/// Between two phases, so that what one has left over is no part of the next.
const PAUSE: Duration = Duration::from_millis(200);

/// Between the answer to an echo request and the next one.
const ECHO_PAUSE: Duration = Duration::from_millis(1);

/// Entries that the stream of changes goes round about.
const CHANGED: u32 = 1_000;

/// Changes a second, where the cell says nothing else.
const CHANGES_PS: u64 = 100_000;

const UPDATES: &[Metric] = &[
    Metric::higher("updates_ps", "flow-mods, to the barrier", "flow-mods/s", 0),
    Metric::lower("updates_dip_pct", "rate below that in peace", "%", 2),
    Metric::lower("updates_missed", "packets without room", "packets", 0),
    Metric::lower("updates_lost", "packets that did not leave", "packets", 0),
    Metric::lower("updates_echo_p99_ms", "answer to another, 99 %", "ms", 3),
];

const DUMP: &[Metric] = &[
    Metric::lower("dump_s", "list of all flow entries", "s", 3),
    Metric::lower("dump_dip_pct", "rate below that in peace", "%", 2),
    Metric::lower("dump_missed", "packets without room", "packets", 0),
    Metric::lower("dump_lost", "packets that did not leave", "packets", 0),
    Metric::lower("dump_echo_p99_ms", "answer to another, 99 %", "ms", 3),
];

/// Beside flow-mods.
pub(super) const BESIDE_UPDATES: Method = Method {
    id: "replay-updates",
    label: "Replayed trace beside flow-mods",
    about: "`count` flow entries a second (100,000) added, changed and deleted in the table that a \
            replayed trace meets: what the switch takes, its rate beside that in peace, and what \
            another connection waits for an echo",
    metrics: UPDATES,
    cost,
    fits: |bed| bed_of(bed).and_then(packets_come),
    run: |context| run(context, updates),
    ..Method::USUAL
};

/// Beside lists of all flow entries.
pub(super) const BESIDE_DUMP: Method = Method {
    id: "replay-dump",
    label: "Replayed trace beside lists of flow entries",
    about: "All flow entries listed again and again while a trace is replayed: how long a list \
            takes, the switch's rate beside that in peace, and what another connection waits for \
            an echo",
    metrics: DUMP,
    cost,
    fits: |bed| bed_of(bed).and_then(packets_come),
    run: |context| run(context, dump),
    ..Method::USUAL
};

fn cost(settings: &Settings) -> Duration {
    2 * (Duration::from_secs_f64(settings.duration_s()) + PAUSE) + RUN_IN
}

fn updates(replaying: &Replaying<'_>) -> Result<Trial> {
    let settings = replaying.settings;
    let commands =
        [FlowModCommand::Add, FlowModCommand::ModifyStrict, FlowModCommand::DeleteStrict];
    // Others than those of the trace.
    let made = settings.replay.as_ref().and_then(|replay| replay.flows.max(replay.entries));
    let first = made.unwrap_or(0);
    let round = commands.into_iter().flat_map(|command| {
        (first..first + CHANGED).map(move |number| made::flow_mod(command, number))
    });
    let wanted_ps = settings.count.unwrap_or(CHANGES_PS);
    let wanted_ps = u32::try_from(wanted_ps).unwrap_or(u32::MAX);
    let storm = Storm::new(settings.version()?, round, wanted_ps)?;
    let mut client = replaying.setup.connect(0, replaying.cancel)?;
    let (mut sent, mut seconds) = (0, 0.0);
    let compared = compare(replaying, |until| {
        let begun = Instant::now();
        sent = client.write_evenly(&storm, until)?;
        seconds = begun.elapsed().as_secs_f64();
        Ok(())
    })?;
    let values = [sent as f64 / f64::max(seconds, 1e-9)].into_iter().chain(compared.values());
    let mut values = UPDATES.iter().map(|metric| metric.id).zip(values).collect();
    leave_out_quantile(&mut values, "updates_echo_p99_ms", compared.echoes());
    let raw = json!({ "compared": compared, "changes": sent, "change_s": seconds });
    Ok(trial(values, raw))
}

fn dump(replaying: &Replaying<'_>) -> Result<Trial> {
    let wanted = replaying.setup.loaded().map_or(0, |loaded| loaded.entries);
    let mut client = replaying.setup.connect(0, replaying.cancel)?;
    let (mut lists_s, mut bytes) = (Vec::new(), 0);
    let compared = compare(replaying, |until| {
        loop {
            let listed = client.list_flows()?;
            let entries = listed.entries;
            ensure!(entries == wanted, "{entries} entries were listed, and there are {wanted}");
            bytes = listed.bytes;
            lists_s.push(listed.seconds);
            if Instant::now() >= until {
                return Ok(());
            }
        }
    })?;
    let list_s = median(&lists_s).unwrap_or(0.0);
    let values = [list_s].into_iter().chain(compared.values());
    let mut values = DUMP.iter().map(|metric| metric.id).zip(values).collect();
    leave_out_quantile(&mut values, "dump_echo_p99_ms", compared.echoes());
    let raw = json!({ "compared": compared, "lists_s": lists_s, "bytes": bytes });
    Ok(trial(values, raw))
}

/// A phase in peace, and one with work.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PhasePair {
    pub(crate) quiet: BusyPhase,
    pub(crate) busy: BusyPhase,
    /// Seconds that the work took.
    pub(crate) work_s: f64,
}

/// One phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BusyPhase {
    /// Millions of packets a second that left, window by window.
    pub(crate) mpps: Vec<f64>,
    /// Seconds that the answers to echo requests took.
    pub(crate) echoes_s: Vec<f64>,
    /// Packets that left.
    pub(crate) packets: u64,
    /// Packets for which there was no room at the port where they came in.
    pub(crate) missed: u64,
    /// Packets that came in and did not leave.
    pub(crate) lost: i64,
    /// Time in which the forwarding threads waited for their cores, in milliseconds.
    pub(crate) kept_off_ms: f64,
}

impl PhasePair {
    /// The quantile of the answers' times that is a metric, and their number.
    fn echoes(&self) -> (f64, u64) {
        (0.99, self.busy.echoes_s.len() as u64)
    }

    /// In the order of the metrics behind the first.
    fn values(&self) -> [f64; 4] {
        let middle = |phase: &BusyPhase| median(&phase.mpps).unwrap_or(0.0);
        let mut echoes_ms: Vec<f64> = self.busy.echoes_s.iter().map(|s| 1e3 * s).collect();
        echoes_ms.sort_by(f64::total_cmp);
        let dip = 1.0 - middle(&self.busy) / middle(&self.quiet);
        let (missed, lost) = (self.busy.missed as f64, self.busy.lost as f64);
        [100.0 * dip, missed, lost, quantile(&echoes_ms, 0.99)]
    }
}

/// Measures the switch in peace, and while `work` is done, which is given the moment until which it
/// should go on.
fn compare(
    replaying: &Replaying<'_>,
    work: impl FnOnce(Instant) -> Result<()> + Send,
) -> Result<PhasePair> {
    replaying.warm_up()?;
    let mut other = replaying.setup.connect(0, replaying.cancel)?;
    let cancel = replaying.cancel;
    let quiet = phase(replaying, &mut other, |until| {
        Ok(cancel.sleep(until.saturating_duration_since(Instant::now()))?)
    })?;
    let begun = Instant::now();
    let busy = phase(replaying, &mut other, work)?;
    Ok(PhasePair { quiet, busy, work_s: begun.elapsed().as_secs_f64() })
}

fn phase(
    replaying: &Replaying<'_>,
    other: &mut SwitchClient,
    work: impl FnOnce(Instant) -> Result<()> + Send,
) -> Result<BusyPhase> {
    let cancel = replaying.cancel;
    cancel.sleep(PAUSE)?;
    let pids = replaying.setup.switch_pids();
    let (first, waited) = (replaying.counts()?, waited_s(&pids));
    let zero = Instant::now();
    let until = zero + Duration::from_secs_f64(replaying.settings.duration_s());
    let is_over = AtomicBool::new(false);
    let (worked, points, echoes) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(other, &is_over));
        let working = scope.spawn(|| work(until));
        let points = watch(|| replaying.point(zero), STEP, cancel, || working.is_finished());
        let worked = joined(working);
        is_over.store(true, Ordering::Relaxed);
        (worked, points, joined(asking))
    });
    worked?;
    let last = replaying.counts()?;
    Ok(BusyPhase {
        mpps: spans(&points?).iter().map(|span| span.mpps).collect(),
        echoes_s: echoes?,
        packets: last.sent.saturating_sub(first.sent),
        missed: last.missed.saturating_sub(first.missed),
        lost: last.lost_since(&first),
        kept_off_ms: 1e3 * (waited_s(&pids) - waited).max(0.0),
    })
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Seconds that answers to echo requests take, one after the other until it is over. One that is
/// still out then is waited for: the late ones are what is looked for.
fn ask(client: &mut SwitchClient, is_over: &AtomicBool) -> Result<Vec<f64>> {
    let mut times_s = Vec::new();
    loop {
        let asked = Instant::now();
        client.echo()?;
        times_s.push(asked.elapsed().as_secs_f64());
        if is_over.load(Ordering::Relaxed) {
            return Ok(times_s);
        }
        std::thread::sleep(ECHO_PAUSE);
    }
}

/// Seconds that the threads which forward have waited for a core since they began: what `/proc`
/// says of Weir's workers and of those that Open vSwitch calls PMD threads.
fn waited_s(pids: &[u32]) -> f64 {
    let threads = pids.iter().flat_map(|pid| ProcFolder::of(*pid).threads().unwrap_or_default());
    let waited = threads.filter_map(|(_, thread)| {
        let name = thread.read("comm").ok()?;
        let forwards = name.starts_with("worker") || name.starts_with("pmd");
        forwards.then_some(thread.sched_time()?.waited_ns as f64 / 1e9)
    });
    waited.sum()
}

#[cfg(test)]
mod tests {
    use super::{BusyPhase, PhasePair};

    #[test]
    fn a_dip_is_what_is_missing_and_a_late_answer_is_seen() {
        let phase = |mpps: &[f64]| BusyPhase { mpps: mpps.to_vec(), ..BusyPhase::default() };
        let mut busy = BusyPhase { missed: 2, lost: 1, ..phase(&[19.0, 18.0, 20.0]) };
        busy.echoes_s = vec![0.001; 99];
        busy.echoes_s.push(0.5);
        let pair = PhasePair { quiet: phase(&[20.0]), busy, work_s: 1.0 };
        let [dip, missed, lost, echo_ms] = pair.values();
        assert!((dip - 5.0).abs() < 1e-9 && (missed, lost) == (2.0, 1.0));
        assert!(echo_ms > 1.0, "{echo_ms}");
    }
}
