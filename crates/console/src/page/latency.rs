//! The latency page: delay and jitter of each stream at each port where it arrives.

use generator::statistics::{DelayFloor, StreamArrival, StreamStatistics};

use super::{PageInput, table, title};
use crate::report::delay_text;

const HEADS: [&str; 8] = ["Stream > port", "min", "mean", "p50", "p90", "p99", "max", "jitter"];

pub(super) fn lines(input: &PageInput<'_>) -> Vec<String> {
    let head = "Delay in us, from the time at which a frame was due".to_owned();
    let mut lines = vec![title(input, "Latency"), head];
    let floor = input.statistics.floor.as_ref();
    if let Some(DelayFloor { p50_ns, resolution_ns, .. }) = floor {
        let floor_us = p50_ns / 1e3;
        lines.push(format!(
            "Own floor {floor_us:.1} us, resolution {resolution_ns:.0} ns; * is below the floor"
        ));
    }
    let streams = &input.statistics.streams;
    let arrivals = |stream: &'_ StreamStatistics| -> Vec<Vec<String>> {
        stream.arrivals.iter().filter_map(|arrival| row(stream, arrival, floor)).collect()
    };
    let rows: Vec<Vec<String>> = streams.iter().flat_map(arrivals).collect();
    lines.extend(table(input, HEADS, rows));
    let short = streams.iter().filter(|stream| stream.unnumbered > 0);
    let unnumbered: u64 = short.clone().map(|stream| stream.unnumbered).sum();
    if let Some(size) = short.map(|stream| stream.probe_size).max() {
        lines.push(format!(
            "{unnumbered} frames had no room for number and time stamp; {size} bytes have"
        ));
    }
    let without = streams.iter().filter(|stream| stream.lost.is_none()).count();
    if without > 0 {
        lines.push(format!("{without} streams have no time stamps (latency off, or no room)"));
    }
    lines
}

/// The row of a stream at a port; `None` where nothing of it has arrived.
fn row(
    stream: &StreamStatistics,
    arrival: &StreamArrival,
    floor: Option<&DelayFloor>,
) -> Option<Vec<String>> {
    let report = &arrival.report;
    let delay = report.delay.as_ref()?;
    let us = |ns: f64| delay_text(ns, floor);
    Some(vec![
        format!("{}:{} > {}", stream.port, stream.name, arrival.port),
        us(delay.min_ns as f64),
        us(delay.mean_ns),
        us(delay.at_ns(0.5)),
        us(delay.at_ns(0.9)),
        us(delay.at_ns(0.99)),
        us(delay.max_ns as f64),
        format!("{:.1}", report.jitter_ns / 1e3),
    ])
}
