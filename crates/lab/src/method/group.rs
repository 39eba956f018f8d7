//! Copies that a group makes of the frames of port 1, and the ports by which they leave.

use super::{Method, MethodContext, Metric, Trial, TrialError, exactly, traffic, wrong};
use crate::testbed::Testbed;

/// Frames a second, where the cell says nothing else.
const RATE_PPS: f64 = 5_000.0;

pub(super) const GROUP: Method = Method {
    id: "group",
    label: "Group",
    about: "Frames into port 1, counted at every other port, of which the buckets should reach the \
            first `count` (all, where the cell says nothing else); shares are of the frames sent",
    metrics: &[
        Metric::higher("group_copies", "copies of each frame", "frames", 3),
        Metric::higher("group_least_pct", "port with the fewest frames", "%", 2),
        Metric::lower("group_most_pct", "port with the most frames", "%", 2),
    ],
    fits: |bed| match bed {
        Testbed::Kernel(_) | Testbed::External(_) => Ok(()),
        Testbed::Memory(_) | Testbed::Replay(_) => Err("in-memory ports are two"),
        Testbed::Fleet(_) => Err("needs a switch"),
    },
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let settings = context.settings;
    drop(context.client("has no groups")?);
    let rate_pps = settings.rate_pps.unwrap_or(RATE_PPS);
    let burst = traffic::burst(settings, rate_pps, settings.duration_s());
    let (outcome, load) = context.observe(|| {
        context.bed.with_ports(context.cancel.flag(), |ports| {
            traffic::exchange(ports, &[(0, burst)], context, |_, _| Ok(()))
        })
    });
    let (seen, _) = outcome?;
    // Further copies too.
    let came = |port: usize| {
        let reports = seen.streams.iter().filter_map(|stream| traffic::report(stream, port));
        reports.map(|report| report.received + report.duplicated).sum()
    };
    let counts: Vec<u64> = (1..seen.ports.len()).map(came).collect();
    let sent: u64 = seen.streams.iter().map(|stream| stream.sent).sum();
    let wanted = settings.count.map_or(counts.len(), |count| count as usize);
    let [copies, least_pct, most_pct] =
        spread(sent, &counts, wanted).ok_or_else(|| wrong("group", "nothing sent"))?;
    let values = exactly([
        ("group_copies", copies),
        ("group_least_pct", least_pct),
        ("group_most_pct", most_pct),
    ]);
    let raw = serde_json::json!({ "sent": sent, "arrived_by_port": counts });
    Ok(Trial { values, tool: traffic::TOOL.into(), load, raw, ..Trial::default() })
}

/// Copies of a frame at all ports, and the least and the most of the first `wanted` ports in
/// percent; none where nothing was sent.
fn spread(sent: u64, counts: &[u64], wanted: usize) -> Option<[f64; 3]> {
    let share = |count: u64| 100.0 * count as f64 / sent as f64;
    let wanted = &counts[..wanted.clamp(1, counts.len().max(1)).min(counts.len())];
    let (least, most) = (wanted.iter().min()?, wanted.iter().max()?);
    let copies = counts.iter().sum::<u64>() as f64 / sent as f64;
    (sent > 0).then(|| [copies, share(*least), share(*most)])
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn copies_and_shares_are_of_what_was_sent() {
        for (sent, counts, wanted, found) in [
            (100, vec![100, 100], 2, Some([2.0, 100.0, 100.0])),
            (100, vec![40, 60], 2, Some([1.0, 40.0, 60.0])),
            (100, vec![100, 0], 1, Some([1.0, 100.0, 100.0])),
            (100, vec![], 2, None),
            (0, vec![0], 1, None),
        ] {
            assert_eq!(spread(sent, &counts, wanted), found);
        }
    }
}
