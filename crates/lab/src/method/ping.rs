//! Round-trip time by `ping`.

use std::time::Duration;

use programs::tools::Tool;

use super::{Method, MethodContext, Metric, Trial, TrialError};
use crate::host_program::{ECHO_INTERVAL, HostProgram};
use crate::hosts::HOSTS;
use crate::load::Load;
use crate::settings::Settings;
use stats::{Summary, summarise};

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
    tools: &[Tool::Ping],
    cost: |settings| {
        let warm_up = settings.warm_up_requests.unwrap_or(0).min(u64::from(u32::MAX)) as u32;
        Duration::from_millis(300) + ECHO_INTERVAL * requests(settings).saturating_add(warm_up)
    },
    fits: |bed| bed.check_hosts("in-memory ports have no kernel hosts to ping"),
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    if let Some(count) = context.settings.warm_up_requests {
        let settings = Settings { count: Some(count), ..context.settings.clone() };
        measure(&MethodContext { settings: &settings, ..*context })?;
    }
    let (echoes, load) = measure(context)?;
    let summary = summarise(steady(&echoes.rtt_ms)).ok_or_else(|| TrialError::Output {
        program: "ping",
        what: format!("none of {} echo requests was answered", echoes.sent),
    })?;
    Ok(Trial {
        values: values(&echoes, &summary),
        tool: "ping".into(),
        load,
        raw: serde_json::json!({ "sent": echoes.sent, "rtt_ms": echoes.rtt_ms }),
        ..Trial::default()
    })
}

/// The answers without the first tenth, the warm-up: the first has asked for addresses, and perhaps
/// a controller.
fn steady(rtt_ms: &[f64]) -> &[f64] {
    &rtt_ms[rtt_ms.len().saturating_sub(1).min(rtt_ms.len().div_ceil(10))..]
}

/// Outcome of the echo requests.
#[derive(Clone, Debug, PartialEq)]
struct EchoReplies {
    /// Requests sent.
    sent: u32,
    /// Round-trip times of those that were answered, milliseconds.
    rtt_ms: Vec<f64>,
}

/// Number of echo requests.
fn requests(settings: &Settings) -> u32 {
    settings.count.and_then(|count| u32::try_from(count).ok()).unwrap_or(REQUESTS).max(1)
}

fn measure(context: &MethodContext<'_>) -> Result<(EchoReplies, Option<Load>), TrialError> {
    let program = HostProgram::Ping { target: HOSTS[1].ip, requests: requests(context.settings) };
    let limit = (PING.cost)(context.settings) * 3 + Duration::from_secs(10);
    context.bed.with_hosts((context.dir, context.cancel), |hosts| {
        // The exit code is 1 when an answer is missing, which is a result.
        let (output, load) = context.observe(|| hosts.run(0, &program, limit));
        Ok((parse(&output?.text)?, load))
    })
}

fn values(echoes: &EchoReplies, summary: &Summary) -> Vec<(&'static str, f64)> {
    let answered = echoes.rtt_ms.len() as f64;
    vec![
        ("ping_avg_ms", summary.mean),
        ("ping_min_ms", summary.min),
        ("ping_max_ms", summary.max),
        ("ping_mdev_ms", summary.mdev),
        ("ping_loss_pct", 100.0 * (1.0 - answered / f64::from(echoes.sent))),
    ]
}

/// Reads the output of iputils' `ping`. Its own summary is not used: the samples are all there.
///
/// # Errors
/// [`TrialError::Output`] where it is none.
fn parse(text: &str) -> Result<EchoReplies, TrialError> {
    let no_result = |what: &str| TrialError::Output {
        program: "ping",
        what: format!("{what}: {}", text.trim_end()),
    };
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
    Ok(EchoReplies { sent, rtt_ms })
}

#[cfg(test)]
mod tests {
    use super::{PING, parse, steady, values};
    use stats::summarise;

    #[test]
    fn a_recorded_output_is_read() {
        let echoes = parse(include_str!("../../tests/data/ping.txt")).unwrap();
        assert_eq!(echoes.sent, 5);
        assert_eq!(echoes.rtt_ms, [0.853, 0.064, 0.063, 0.061, 0.061]);
        assert_eq!(
            (steady(&echoes.rtt_ms).len(), steady(&[7.0]), steady(&[])),
            (4, &[7.0][..], &[][..])
        );
        let values = values(&echoes, &summarise(steady(&echoes.rtt_ms)).unwrap());
        let ids: Vec<&str> = values.iter().map(|value| value.0).collect();
        assert_eq!(ids, PING.metrics.iter().map(|metric| metric.id).collect::<Vec<_>>());
        assert!(values[4].1.abs() < 1e-9);
    }

    #[test]
    fn silence_is_a_result_and_an_error_text_is_none() {
        let lost = parse(include_str!("../../tests/data/ping-lost.txt")).unwrap();
        assert_eq!((lost.sent, lost.rtt_ms.len()), (3, 0));
        let error = parse("ping: connect: Network is unreachable\n").unwrap_err();
        assert!(error.to_string().contains("unreachable"), "{error}");
        assert!(parse("x time=fast\n").is_err());
    }
}
