//! The controller dies in the middle of a load: how many frames are lost, and for how long nothing
//! comes.

use std::time::Duration;

use generator::profile::{Mode, Rate, StreamSpec};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{Method, MethodContext, Metric, Trial, TrialError, traffic};
use crate::load::ProcessRole;

/// Frames a second, where the cell says nothing else.
const RATE_PPS: f64 = 2_000.0;

/// Frames each way before the load.
const FIRST: u64 = 20;

/// The share of a trial behind which the controller is killed.
const KILLED_AT: f64 = 1.0 / 3.0;

pub(super) const CONTROLLER_LOSS: Method = Method {
    id: "controller-loss",
    label: "Controller's death",
    about: "A fixed load from port 1 to port 2; behind a third of it the controller is killed by \
            SIGKILL: the share of the frames behind that is lost, and the longest gap. The cell's \
            switch is not used again",
    metrics: &[
        Metric::lower("orphan_loss_pct", "frames lost after the controller's death", "%", 2),
        Metric::lower("orphan_gap_ms", "longest time without a frame", "ms", 1),
    ],
    spends_setup: true,
    cost: |settings| Duration::from_secs_f64(settings.duration_s() + 0.3),
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let settings = context.settings;
    let controller = context.watched.iter().find(|one| one.role == ProcessRole::Controller);
    let Some(pid) = controller.and_then(|program| Pid::from_raw(program.pid as i32)) else {
        return Err(TrialError::Unfit("has no controller"));
    };
    let failed =
        |what| move |error: rustix::io::Errno| TrialError::Io { what, source: error.into() };
    // The process itself: a number may be another's by the time of the kill.
    let program = pidfd_open(pid, PidfdFlags::empty()).map_err(failed("the controller"))?;
    let rate_pps = settings.rate_pps.unwrap_or(RATE_PPS);
    let burst = traffic::burst(settings, rate_pps, settings.duration_s());
    let (mode, rate) = (Mode::Burst(FIRST), Rate::PacketsPerSecond(100.0));
    let first = StreamSpec { mode, rate, ..burst.clone() };
    let both_ways = [(1, vec![traffic::reversed(&first)]), (0, vec![first])];
    let (outcome, load) = context.observe(|| {
        context.bed.with_session(traffic::waiting_for(rate_pps), |session| {
            // Both hosts are known, and what a controller sets up is set up.
            traffic::exchange(session, &both_ways, context, |_, _| Ok(()))?;
            let kill_after_ns = (settings.duration_s() * KILLED_AT * 1e9) as u64;
            let mut is_killed = false;
            let loads = [(0, vec![burst.clone()])];
            traffic::exchange(session, &loads, context, |session, start_ns| {
                let kill_ns = start_ns + kill_after_ns;
                if !is_killed && session.now_ns() >= kill_ns {
                    is_killed = true;
                    pidfd_send_signal(&program, Signal::KILL)
                        .map_err(failed("killing the controller"))?;
                }
                Ok(())
            })
        })
    });
    let seen = outcome?.statistics;
    let wrong = |what: &str| TrialError::Output { program: "controller-loss", what: what.into() };
    let stream = seen.streams.iter().find(|stream| stream.port == 0);
    let stream = stream.ok_or_else(|| wrong("nothing was sent"))?;
    let report = traffic::report(stream, 1);
    let report = report.ok_or_else(|| wrong("no frame came, before the controller's death"))?;
    let behind = (1.0 - KILLED_AT) * stream.sent as f64;
    let lost = stream.sent.saturating_sub(report.received) as f64;
    // Silence up to the end of the schedule is a gap too.
    let end_ns = report.first_ns.unwrap_or(0) + (settings.duration_s() * 1e9) as u64;
    let silent_ns = end_ns.saturating_sub(report.last_ns.unwrap_or(0));
    let gap_ns = report.longest_gap_ns.max(silent_ns);
    Ok(Trial {
        values: vec![
            ("orphan_loss_pct", (100.0 * lost / behind).min(100.0)),
            ("orphan_gap_ms", gap_ns as f64 / 1e6),
        ],
        tool: traffic::TOOL.into(),
        load,
        raw: serde_json::json!({ "sent": stream.sent, "received": report.received }),
        ..Trial::default()
    })
}
