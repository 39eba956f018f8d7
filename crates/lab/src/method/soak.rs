//! A long load, and what drifts meanwhile: the memory of the switch, and the delay.

use std::time::Duration;

use files::proc::ProcFolder;
use generator::method::on_ports::QUIET;
use generator::method::{Measurer as _, TrialInput};

use super::{Method, MethodContext, Metric, Resolution, Trial, TrialError, traffic};
use crate::agent::clock::ClockComparison;
use crate::load::ProcessRole;
use crate::testbed::method_error;
use stats::{Trend, median, theil_sen};

const DELAY: &str = "soak_delay_us";
const DELAY_DRIFT: &str = "soak_delay_drift_us";

/// Frames a second, where the cell says nothing else.
const RATE_PPS: f64 = 1_000.0;

/// Windows that a soak is looked at in, at most; and the shortest, seconds.
const WINDOWS: f64 = 200.0;
const WINDOW_S: f64 = 0.5;

/// Below this no drift is said, seconds: over a shorter run it is that of the machine.
const DRIFT_S: f64 = 600.0;

/// Errors of clocks in a drift. If two clocks are compared anew in each window, the second half of
/// a soak may rise by the error at both its ends, and the whole by twice that.
const DRIFT_ERRORS: f64 = 4.0;

/// Late frames count.
const GRACE_S: f64 = 2.0;

pub(super) const SOAK: Method = Method {
    id: "soak",
    label: "Soak",
    about: "A fixed load for `duration_s`: the slope of the median delay and of the switch's \
            resident memory over the second half, which a warm-up does not touch, times the \
            duration; below 10 minutes no drift is said",
    metrics: &[
        Metric::lower(DELAY_DRIFT, "drift of the median delay", "µs over the run", 2),
        Metric::lower(
            "soak_memory_drift_kib",
            "drift of the switch's memory",
            "KiB over the run",
            0,
        ),
        Metric::lower(DELAY, "median delay", "µs", 1),
        Metric::lower("soak_lost", "frames lost", "frames", 0),
    ],
    cost: |settings| Duration::from_secs_f64(1.1 * settings.duration_s() + 0.5),
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let duration_s = context.settings.duration_s();
    let window_s = (duration_s / WINDOWS).max(WINDOW_S);
    let (outcome, load) = context.observe(|| windows(context, window_s));
    let (windows, clock) = outcome?;
    let delays: Vec<(f64, f64)> =
        windows.iter().filter_map(|one| Some((one.at_s, one.delay_us?))).collect();
    let memory: Vec<(f64, f64)> =
        windows.iter().filter_map(|one| Some((one.at_s, one.memory_kib?))).collect();
    let medians: Vec<f64> = delays.iter().map(|point| point.1).collect();
    let Some(median) = median(&medians) else {
        let what = "no frame came through".to_owned();
        return Err(TrialError::Output { program: "soak", what });
    };
    let lost: u64 = windows.iter().map(|one| one.lost).sum();
    let mut values = vec![(DELAY, median), ("soak_lost", lost as f64)];
    let mut resolutions = Vec::new();
    let drifts = [(DELAY_DRIFT, &delays), ("soak_memory_drift_kib", &memory)];
    for (metric, points) in drifts {
        let long_enough = Some(points).filter(|_| duration_s >= DRIFT_S);
        let found = long_enough.and_then(|points| drift(points, duration_s));
        let Some(Trend { slope, interval }) = found else { continue };
        values.push((metric, slope));
        let interval = interval.map(|(low, high)| Resolution::new(metric, low, high));
        resolutions.extend(interval);
    }
    if let Some(clock) = &clock {
        let delay = Resolution::new(DELAY, median - clock.error_us, median + clock.error_us);
        resolutions.push(delay);
        let by = DRIFT_ERRORS * clock.error_us;
        Resolution::widen(&mut resolutions, DELAY_DRIFT, by);
    }
    Ok(Trial {
        values,
        tool: traffic::TOOL.into(),
        load,
        resolutions,
        raw: serde_json::json!({
            "window_s": window_s,
            "delay_us": delays,
            "memory_kib": memory,
            "clock": clock.map(|clock| clock.of_metrics(&[DELAY])),
        }),
        ..Trial::default()
    })
}

/// A part of the soak.
#[derive(Clone, Copy, Debug)]
struct Window {
    at_s: f64,
    /// None where all was lost.
    delay_us: Option<f64>,
    lost: u64,
    memory_kib: Option<f64>,
}

/// The windows, and how the boxes' clocks were compared where they are known worst.
fn windows(
    context: &MethodContext<'_>,
    window_s: f64,
) -> Result<(Vec<Window>, Option<ClockComparison>), TrialError> {
    let settings = context.settings;
    let switch = context.watched.iter().find(|one| one.role == ProcessRole::Switch);
    let folder = switch.map(|program| ProcFolder::of(program.pid));
    let input = TrialInput {
        frame_size: settings.frame_size() as usize,
        rate_pps: settings.rate_pps.unwrap_or(RATE_PPS),
        duration_s: window_s,
        grace_s: GRACE_S,
    };
    let begun = std::time::Instant::now();
    let plan = traffic::plan(context, traffic::waiting_for(input.rate_pps), QUIET);
    context.bed.with_measurer(plan, |measurer| {
        let mut windows = Vec::new();
        while begun.elapsed().as_secs_f64() < settings.duration_s() {
            context.cancel.check()?;
            let report = measurer.trial(input).map_err(method_error)?.report;
            let memory = folder.as_ref().and_then(|folder| folder.memory("VmRSS"));
            windows.push(Window {
                at_s: begun.elapsed().as_secs_f64(),
                delay_us: report.delay.as_ref().map(|delay| delay.at_ns(0.5) / 1e3),
                lost: report.lost,
                memory_kib: memory.map(|bytes| bytes as f64 / 1024.0),
            });
        }
        Ok((windows, measurer.clock()))
    })
}

/// By how much the second half of the points rises in `span_s`, in the values' unit, and the
/// interval of it: Theil's slope with Sen's interval. None of fewer than three points.
pub(super) fn drift(points: &[(f64, f64)], span_s: f64) -> Option<Trend> {
    let found = theil_sen(&points[points.len() / 2..]).ok()?;
    let interval = found.interval.map(|(low, high)| (span_s * low, span_s * high));
    Some(Trend { slope: span_s * found.slope, interval })
}

#[cfg(test)]
mod tests {
    use super::{Trend, drift};

    #[test]
    fn a_drift_is_that_of_the_second_half_without_outliers() {
        let warm = |n: u32| if n < 30 { 900.0 } else { 5.0 + 0.25 * f64::from(n) };
        let mut points: Vec<(f64, f64)> = (0..60).map(|n| (f64::from(n), warm(n))).collect();
        points[37].1 = 1_000.0;
        points[50].1 = -50.0;
        let Trend { slope, interval } = drift(&points, 3_600.0).unwrap();
        let (low, high) = interval.unwrap();
        assert!((slope - 900.0).abs() < 1e-6, "{slope}");
        assert!((low..=high).contains(&900.0), "{low} {high}");
        assert_eq!(drift(&points[..4], 3_600.0), None);
        let level: Vec<(f64, f64)> = (0..8).map(|n| (f64::from(n), 3.0)).collect();
        assert_eq!(drift(&level, 3_600.0).unwrap().slope, 0.0);
    }
}
