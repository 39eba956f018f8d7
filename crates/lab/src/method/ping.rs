//! Round-trip time by `ping`.

use std::time::Duration;

use programs::tools::Tool;

use super::{Method, MethodContext, Metric, Trial, TrialError, Values, exactly, wrong};
use crate::host_program::{ECHO_INTERVAL, HostProgram};
use crate::hosts::HOSTS;
use crate::load::Load;
use stats::mean_and_squares;

/// Echo requests, where the cell does not count them.
const REQUESTS: u32 = 100;

pub(super) const PING: Method = Method {
    id: "ping",
    label: "RTT by ping",
    about: "ICMP echo between the hosts, one after the other, at low rate",
    metrics: &[
        Metric::lower("ping_avg_ms", "ping avg", "ms", 3),
        Metric::lower("ping_min_ms", "ping min", "ms", 3),
        Metric::lower("ping_max_ms", "ping max", "ms", 3),
        Metric::lower("ping_mdev_ms", "ping mdev", "ms", 3),
        Metric::lower("ping_loss_pct", "ping loss", "%", 1),
    ],
    tools: &[Tool::PING],
    cost: |settings| {
        let warm_up = settings.warm_up_requests.map_or(0, |count| requests(Some(count)));
        let all = requests(settings.count).saturating_add(warm_up);
        Duration::from_millis(300) + ECHO_INTERVAL * all
    },
    fits: |bed| bed.check_hosts("in-memory ports have no kernel hosts to ping"),
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    if let Some(count) = context.settings.warm_up_requests {
        measure(context, requests(Some(count)))?;
    }
    let (sent, rtt_ms, load) = measure(context, requests(context.settings.count))?;
    let values = values(sent, &rtt_ms)
        .ok_or_else(|| wrong("ping", format!("none of {sent} echo requests was answered")))?;
    let raw = serde_json::json!({ "sent": sent, "rtt_ms": rtt_ms });
    Ok(Trial { values, tool: "ping".into(), load, raw, ..Trial::default() })
}

/// The answers without the first tenth, the warm-up: the first has asked for addresses, and perhaps
/// a controller.
fn steady(rtt_ms: &[f64]) -> &[f64] {
    &rtt_ms[rtt_ms.len().saturating_sub(1).min(rtt_ms.len().div_ceil(10))..]
}

/// Number of echo requests.
fn requests(count: Option<u64>) -> u32 {
    count.and_then(|count| u32::try_from(count).ok()).unwrap_or(REQUESTS).max(1)
}

/// Requests sent, and round-trip times of those that were answered, milliseconds.
fn measure(
    context: &MethodContext<'_>,
    requests: u32,
) -> Result<(u32, Vec<f64>, Option<Load>), TrialError> {
    let program = HostProgram::Ping { target: HOSTS[1].ip, requests };
    let limit = (PING.cost)(context.settings) * 3 + Duration::from_secs(10);
    context.bed.with_hosts((context.dir, context.cancel), |hosts| {
        // The exit code is 1 when an answer is missing, which is a result.
        let (output, load) = context.observe(|| hosts.run(0, &program, limit));
        let (sent, rtt_ms) = parse(&output?.text)?;
        Ok((sent, rtt_ms, load))
    })
}

/// The figures; none without an answer.
fn values(sent: u32, rtt_ms: &[f64]) -> Option<Values> {
    let steady = steady(rtt_ms);
    let (mean, squares) = mean_and_squares(steady);
    Some(exactly([
        ("ping_avg_ms", mean),
        ("ping_min_ms", steady.iter().copied().reduce(f64::min)?),
        ("ping_max_ms", steady.iter().copied().reduce(f64::max)?),
        ("ping_mdev_ms", (squares / steady.len() as f64).sqrt()),
        ("ping_loss_pct", 100.0 * (1.0 - rtt_ms.len() as f64 / f64::from(sent))),
    ]))
}

/// Reads the output of iputils' `ping`. Its own summary is not used: the samples are all there.
fn parse(text: &str) -> Result<(u32, Vec<f64>), TrialError> {
    let no_result = |what: &str| wrong("ping", format!("{what}: {}", text.trim_end()));
    let rtt_ms = text
        .lines()
        .filter(|line| !line.contains("DUP!"))
        .filter_map(|line| line.split_once(" time=")?.1.split_ascii_whitespace().next())
        .map(|word| word.parse::<f64>().map_err(|_| no_result("unreadable time")))
        .collect::<Result<Vec<f64>, TrialError>>()?;
    let sent = text
        .lines()
        .find_map(|line| line.split_once(" packets transmitted")?.0.parse().ok())
        .ok_or_else(|| no_result("no summary"))?;
    Ok((sent, rtt_ms))
}

#[cfg(test)]
mod tests {
    use super::{PING, parse, steady, values};

    #[test]
    fn a_recorded_output_is_read() {
        let (sent, rtt_ms) = parse(include_str!("../../tests/data/ping.txt")).unwrap();
        assert_eq!((sent, &rtt_ms[..]), (5, &[0.853, 0.064, 0.063, 0.061, 0.061][..]));
        assert_eq!((steady(&rtt_ms).len(), steady(&[7.0]), steady(&[])), (4, &[7.0][..], &[][..]));
        let values = values(sent, &rtt_ms).unwrap();
        let ids: Vec<&str> = values.iter().map(|value| value.0).collect();
        assert_eq!(ids, PING.metrics.iter().map(|metric| &*metric.id).collect::<Vec<_>>());
        assert!(values[4].1.value.abs() < 1e-9);
    }

    #[test]
    fn silence_is_a_result_and_an_error_text_is_none() {
        let lost = parse(include_str!("../../tests/data/ping-lost.txt")).unwrap();
        assert_eq!(lost, (3, Vec::new()));
        let error = parse("ping: connect: Network is unreachable\n").unwrap_err();
        assert!(error.to_string().contains("unreachable"), "{error}");
        assert!(parse("x time=fast\n").is_err());
    }
}
