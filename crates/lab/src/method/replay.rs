//! Packets a second that a switch forwards of a trace that it replays by itself, by the counters of
//! its own ports, in a window of the clock.
//!
//! Other programs keep a machine busy at times. A window in which the forwarder did not have its
//! core is measured again, and the trial says how often. Where that does not help, rates can be
//! found by the time in which the forwarder had its core (`is_core_time`).

use std::time::Duration;

use anyhow::{Result, ensure};
use programs::cancel::Cancel;
use serde_json::json;

use super::{Method, MethodContext, Metric, Trial, TrialError, Values, channel_error, idle_cpu};
use crate::settings::Settings;
use crate::setup::Setup;
use crate::testbed::Testbed;
use crate::testbed::replay::{Counts, ReplayTestbed, await_steady_rate};

/// Run of a forwarder that was held still, before it is measured.
pub(crate) const RUN_IN: Duration = Duration::from_millis(300);

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
    fits: |bed| bed_of(bed).and_then(packets_come),
    run: |context| run(context, measure),
    ..Method::USUAL
};

/// Measures a switch which replays a trace by itself, while the lab keeps off the cores that
/// forward.
pub(super) fn run(
    context: &MethodContext<'_>,
    measure: fn(&Replaying<'_>) -> Result<Trial>,
) -> Result<Trial, TrialError> {
    let bed = bed_of(context.bed).map_err(TrialError::Unfit)?;
    let setup = context.setup.ok_or(TrialError::Unfit("there is no switch"))?;
    let replaying = Replaying { bed, setup, settings: context.settings, cancel: context.cancel };
    measure(&replaying).map_err(|error| channel_error(&error, context))
}

/// The testbed on which a switch replays.
pub(super) fn bed_of(bed: &Testbed) -> Result<&ReplayTestbed, &'static str> {
    bed.replay().ok_or("the switch has no trace to replay: settings.replay names one")
}

/// Whether packets come by themselves, and at once.
pub(super) fn packets_come(bed: &ReplayTestbed) -> Result<(), &'static str> {
    if bed.is_down() {
        return Err("no packet comes: settings.replay.is_down sets port 1 down");
    }
    match bed.wires() {
        None => Ok(()),
        Some(_) => Err("nothing is replayed: settings.replay has devices = \"wires\""),
    }
}

/// A switch that replays, while the lab keeps off its cores.
pub(super) struct Replaying<'a> {
    pub(super) bed: &'a ReplayTestbed,
    pub(super) setup: &'a Setup,
    pub(super) settings: &'a Settings,
    pub(super) cancel: &'a Cancel,
}

impl Replaying<'_> {
    /// Counts of all its ports.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn counts(&self) -> Result<Counts> {
        self.setup.counts(self.bed.pairs())
    }

    /// Reports of its forwarding threads, if it has them.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn workers(&self) -> Result<Option<serde_json::Value>> {
        self.setup.counters().map(|counters| counters.workers()).transpose()
    }

    /// Waits until the rate is what it will stay. The seconds that it took, the first time.
    ///
    /// # Errors
    /// Nothing leaves, or the run was interrupted.
    pub(super) fn warm_up(&self) -> Result<f64> {
        let warm_up_s = self.bed.warm_up(|| warm_up(self.setup, || self.counts(), self.cancel))?;
        self.cancel.sleep(RUN_IN)?;
        Ok(warm_up_s)
    }

    /// A window of the cell's duration in which the switch had its core, if one of three is, and
    /// how many were measured again.
    ///
    /// # Errors
    /// It does not answer, or the run was interrupted.
    pub(super) fn window(&self) -> Result<(ForwardingSample, usize)> {
        let window = Window {
            seconds: self.settings.duration_s(),
            is_core_time: self.settings.is_core_time == Some(true),
        };
        let pids = self.setup.switch_pids();
        let mut again = 0;
        loop {
            let sample = window.measure(&pids, || self.counts(), self.cancel)?;
            if !sample.is_stalled || again == AGAIN_MAX {
                return Ok((sample, again));
            }
            again += 1;
        }
    }
}

/// Trial by the switch's own counters.
pub(super) fn trial(values: Values, raw: serde_json::Value) -> Trial {
    Trial { values, tool: "the switch's port counters".into(), raw, ..Trial::default() }
}

fn measure(replaying: &Replaying<'_>) -> Result<Trial> {
    let setup = replaying.setup;
    let warm_up_s = replaying.warm_up()?;
    let (empty_bytes, resident_bytes) = setup.memory_bytes();
    let (workers_before, first) = (replaying.workers()?, replaying.counts()?);
    let (sample, again) = replaying.window()?;
    let lost = replaying.counts()?.lost_since(&first);
    let workers_after = replaying.workers()?;
    let mut values = vec![("replay_mpps", sample.mpps), ("replay_lost", lost as f64)];
    let loaded = setup.loaded();
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
    Ok(trial(values, raw))
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

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForwardingSample {
    /// Packets a second out of port 2, in millions.
    pub(crate) mpps: f64,
    /// The same of those that came in by port 1.
    pub(crate) first_mpps: f64,
    /// The same of those that came in by the other ports.
    pub(crate) others_mpps: f64,
    /// Whether the forwarder was kept from its core.
    pub(crate) is_stalled: bool,
}

/// Window of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Its seconds.
    pub(crate) seconds: f64,
    /// Whether a second is one in which the forwarder had its core, instead of one of the clock.
    pub(crate) is_core_time: bool,
}

impl Window {
    /// Measures a forwarder that runs, once.
    ///
    /// # Errors
    /// Its counters cannot be read, or the run was interrupted.
    pub(crate) fn measure(
        self,
        pids: &[u32],
        mut counts: impl FnMut() -> Result<Counts>,
        cancel: &Cancel,
    ) -> Result<ForwardingSample> {
        let before = idle_cpu::ran(pids)?;
        let first = counts()?;
        cancel.sleep(Duration::from_secs_f64(self.seconds))?;
        let last = counts()?;
        let ran_s = idle_cpu::busiest_ns(&before, &idle_cpu::ran(pids)?) as f64 / 1e9;
        let clock_s = last.at.duration_since(first.at).as_secs_f64();
        let part = match self.is_core_time {
            // The kernel counts a running thread's time by ticks of some milliseconds, so that it
            // may seem to have run longer than the clock.
            true => (ran_s / clock_s.max(1e-9)).clamp(1e-3, 1.0),
            false => 1.0,
        };
        let mpps = |packets: u64| packets as f64 / (part * clock_s).max(1e-9) / 1e6;
        let came = last.first.saturating_sub(first.first);
        let all = last.received.saturating_sub(first.received);
        Ok(ForwardingSample {
            mpps: mpps(last.sent.saturating_sub(first.sent)),
            first_mpps: mpps(came),
            others_mpps: mpps(all.saturating_sub(came)),
            is_stalled: !self.is_core_time && ran_s < clock_s * (1.0 - KEPT_OFF_MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::Window;
    use crate::method::find;
    use crate::settings::{Replay, ReplayDevices, Settings};
    use crate::testbed::Testbed;
    use crate::testbed::replay::{Counts, ReplayTestbed};
    use programs::cancel::Cancel;

    #[test]
    fn who_needs_packets_refuses_a_switch_to_which_none_come() {
        let folder = tempfile::tempdir().unwrap();
        let made = Replay { flows: Some(2), entries: Some(1), ..Replay::default() };
        let bed = |replay: &Replay| {
            let bed = ReplayTestbed::new(&Settings::default(), replay, folder.path());
            Testbed::Replay(bed.unwrap())
        };
        let down = bed(&Replay { is_down: true, ..made.clone() });
        let wires = bed(&Replay { devices: ReplayDevices::Wires, ..made.clone() });
        let up = bed(&made);
        for id in ["replay", "victim", "replay-updates", "replay-dump"] {
            let fits = |bed: &Testbed| (find(id).unwrap().fits)(bed);
            assert!(fits(&down).unwrap_err().contains("is_down"), "{id}");
            assert!(fits(&wires).unwrap_err().contains("wires"), "{id}");
            assert_eq!(fits(&up).is_ok(), id != "victim", "{id}");
        }
        for (id, bed) in [("cold-start", &down), ("replay-loading", &down), ("wake-up", &wires)] {
            assert_eq!((find(id).unwrap().fits)(bed), Ok(()), "{id}");
        }
    }

    #[test]
    fn a_forwarder_without_its_core_is_seen_but_by_core_time() {
        let mut packets = 0;
        let mut counts = || {
            packets += 1_000;
            let (received, first, sent) = (3 * packets, 2 * packets, packets);
            Ok(Counts { at: Instant::now(), received, first, sent, missed: 0 })
        };
        let mut measure = |is_core_time| {
            let window = Window { seconds: 0.05, is_core_time };
            window.measure(&[], &mut counts, &Cancel::default()).unwrap()
        };
        let by_clock = measure(false);
        assert!(by_clock.is_stalled && by_clock.mpps > 0.0, "no thread ran: {by_clock:?}");
        let (first, others) = (by_clock.first_mpps, by_clock.others_mpps);
        assert!((first / others - 2.0).abs() < 1e-9, "port 1 has two of three: {by_clock:?}");
        assert!(!measure(true).is_stalled, "core time needs no second try");
    }
}
