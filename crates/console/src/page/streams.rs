//! The streams page: each stream that is loaded, with what left and what came of it.

use generator::receiver::StreamReport;
use generator::statistics::StreamStatistics;

use super::{PageInput, table, title};

const HEADS: [&str; 9] =
    ["Stream", "sends", "sent", "unsent", "received", "lost", "dup", "reord", "corrupt"];

pub(super) fn lines(input: &PageInput<'_>) -> Vec<String> {
    let mut lines = vec![title(input, "Streams")];
    let streams = &input.statistics.streams;
    lines.extend(table(input, HEADS, streams.iter().map(row)));
    if streams.iter().any(|stream| stream.lost.is_none()) {
        lines.push("- : frames without a sequence number (latency off, or no room)".to_owned());
    }
    lines
}

fn row(stream: &StreamStatistics) -> Vec<String> {
    let arrived = |count: fn(&StreamReport) -> u64| match stream.lost {
        Some(_) => {
            let counts = stream.arrivals.iter().map(|arrival| count(&arrival.report));
            counts.sum::<u64>().to_string()
        }
        None => "-".to_owned(),
    };
    vec![
        format!("{}:{}", stream.port, stream.name),
        if stream.active { "yes" } else { "no" }.to_owned(),
        stream.sent.to_string(),
        stream.unsent.to_string(),
        arrived(|report| report.received),
        stream.lost.map_or_else(|| "-".to_owned(), |lost| lost.to_string()),
        arrived(|report| report.duplicated),
        arrived(|report| report.reordered),
        arrived(|report| report.corrupted),
    ]
}
