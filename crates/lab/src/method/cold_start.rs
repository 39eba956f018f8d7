//! Time from the first packet to the lasting rate.
//!
//! The flow entries were loaded while port 1 was down (`replay.is_down`), so that no cache has seen
//! a packet that met them. The port is set up, and what leaves is read every few milliseconds.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use openflow::PortNo;
use serde_json::json;

use super::replay::{Replaying, bed_of, run, trial};
use super::series::{Span, spans, watch};
use super::{Method, Metric, Trial};
use stats::median;

/// The part of the steady rate that counts as steady.
const STEADY: f64 = 0.95;

/// Rest of the loaded switch before the first packet.
const REST: Duration = Duration::from_millis(300);

/// Milliseconds of a window, where the cell says nothing else.
const WINDOW_MS: u16 = 10;

pub(super) const COLD_START: Method = Method {
    id: "cold-start",
    label: "Cold start",
    about: "From the command that sets port 1 up to the end of the first window (`window_ms`, 10) \
            with 95 % of the steady rate, which is the median window of the second half of \
            `duration_s`. The cell's switch is not used again",
    metrics: &[
        Metric::lower("cold_steady_ms", "until 95 % of the steady rate", "ms", 1),
        Metric::higher("cold_steady_mpps", "steady rate", "Mpps", 3),
        Metric::higher("cold_first_mpps", "rate in the first window", "Mpps", 3),
        Metric::lower("cold_below_later", "windows below 95 % behind that", "windows", 0),
        Metric::lower("cold_lost", "packets that did not leave", "packets", 0),
    ],
    cost: |settings| Duration::from_secs_f64(settings.duration_s()) + REST,
    spends_setup: true,
    fits: |bed| {
        bed_of(bed).and_then(|bed| match bed.is_down() {
            true => Ok(()),
            false => Err("port 1 is up before: settings.replay.is_down sets it down"),
        })
    },
    run: |context| run(context, measure),
    ..Method::USUAL
};

fn measure(replaying: &Replaying<'_>) -> Result<Trial> {
    let (settings, cancel) = (replaying.settings, replaying.cancel);
    cancel.sleep(REST)?;
    let zero = Instant::now();
    let mut points = vec![replaying.point(zero)?];
    let mut client = replaying.setup.client().context("the switch has no OpenFlow channel")?;
    client.set_port_down(PortNo(1), false)?;
    drop(client);
    let (begun, length) = (Instant::now(), Duration::from_secs_f64(settings.duration_s()));
    let step = Duration::from_millis(settings.window_ms.unwrap_or(WINDOW_MS).into());
    let first = replaying.counts()?;
    let done = || begun.elapsed() >= length;
    points.extend(watch(|| replaying.point(zero), step, cancel, done)?);
    let lost = replaying.counts()?.lost_since(&first);
    let windows = spans(&points);
    let mut values = figures(&windows).context("nothing has left by port 2")?;
    values.push(("cold_lost", lost as f64));
    let series: Vec<(f64, f64)> = windows.iter().map(|span| (1e3 * span.to_s, span.mpps)).collect();
    let entries = replaying.setup.loaded().map_or(0, |loaded| loaded.entries);
    Ok(trial(values, json!({ "flow_entries": entries, "series": series })))
}

/// Figures from the windows; times are counted from the command.
fn figures(windows: &[Span]) -> Option<super::Values> {
    let later: Vec<f64> = windows.iter().skip(windows.len() / 2).map(|span| span.mpps).collect();
    let steady = median(&later).filter(|mpps| *mpps > 0.0)?;
    let is_steady = |span: &Span| span.mpps >= steady * STEADY;
    let first = windows.iter().position(is_steady)?;
    let below = windows.iter().skip(first).filter(|span| !is_steady(span)).count();
    Some(vec![
        ("cold_steady_ms", 1e3 * windows.get(first)?.to_s),
        ("cold_steady_mpps", steady),
        // The first window begins before the port is up.
        ("cold_first_mpps", windows.get(1).or(windows.first())?.mpps),
        ("cold_below_later", below as f64),
    ])
}

#[cfg(test)]
mod tests {
    use super::{Span, figures};

    #[test]
    fn the_first_window_at_the_steady_rate_counts() {
        let rates = [1.0, 5.0, 9.6, 10.0, 9.0, 10.0, 10.0, 10.0, 10.0, 10.0];
        let window = |(n, mpps): (usize, &f64)| Span { to_s: n as f64 + 1.0, mpps: *mpps };
        let windows: Vec<Span> = rates.iter().enumerate().map(window).collect();
        let found: Vec<f64> = figures(&windows).unwrap().iter().map(|(_, value)| *value).collect();
        assert_eq!(found, [3_000.0, 10.0, 5.0, 1.0]);
        assert!(figures(&[]).is_none());
        assert!(figures(&[Span { to_s: 1.0, mpps: 0.0 }]).is_none(), "nothing has left");
    }
}
