//! The OpenFlow channel without traffic: how long echo and barrier take over the connections to all
//! bridges of one process, and what these connections cost the switch.

use std::time::{Duration, Instant};

use client::ClientError;
use openflow::Message;
use stats::quantile;

use super::{Method, MethodContext, Metric, Trial, TrialError, distribution, exactly, idle_cpu};
use crate::switch_client::SwitchClient;

/// Questions of each kind, one after the other, and the most bridges that are asked so.
const QUESTIONS: usize = 200;

/// Connections that are made one after another, and timed. With many bridges each takes Open
/// vSwitch 40 ms, so that the others are made [`AT_ONCE`] at a time.
const ONE_BY_ONE: usize = 100;
const AT_ONCE: usize = 8;

/// Rounds in which all bridges are asked at once.
const ROUNDS: usize = 5;

pub(super) const CHANNEL: Method = Method {
    id: "channel",
    label: "OpenFlow channel",
    about: "One connection to each bridge: echo and barrier one after the other over the first \
            200, echo over all at once, and the switch's CPU while they are idle for `duration_s`",
    metrics: &[
        Metric::lower("channel_echo_ms", "echo, one after the other", "ms", 3),
        Metric::lower("channel_all_ms", "echo, all bridges at once, the last", "ms", 3),
        Metric::lower("channel_barrier_ms", "barrier, one after the other", "ms", 3),
        Metric::lower("channel_cores", "CPU, connected and idle", "cores", 4),
        Metric::lower("channel_connect_ms", "connecting, the first 100, mean", "ms", 2),
    ],
    cost: |settings| {
        let bridges = settings.bridges() as f64;
        Duration::from_secs_f64(settings.duration_s() + 0.3 + 0.01 * bridges)
    },
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    if context.setup.bridges().is_empty() {
        return Err(TrialError::Unfit("has no OpenFlow channel"));
    }
    let (mut clients, connect_ms) = connect_all(context)?;
    // What follows a connection is over: the features, the first table of entries.
    ask_all(&mut clients)?;
    let cores = idle_cpu::of_switch(context)?;
    let echo = times(&mut clients, |client| client.echo(Vec::new()))?;
    let barrier = times(&mut clients, |client| client.barrier())?;
    let all: Result<Vec<f64>, _> = (0..ROUNDS).map(|_| ask_all(&mut clients)).collect();
    let mut all = all?;
    all.sort_by(f64::total_cmp);
    let mut values = vec![
        ("channel_echo_ms", quantile(&echo, 0.5)),
        ("channel_all_ms", quantile(&all, 0.5)),
        ("channel_barrier_ms", quantile(&barrier, 0.5)),
        ("channel_connect_ms", connect_ms),
    ];
    values.extend(cores.map(|(cores, _)| ("channel_cores", cores)));
    let of = |metric, sorted: &[f64]| {
        let quantiles = SHARES.iter().map(|share| (*share, quantile(sorted, *share)));
        distribution(metric, sorted.len() as u64, quantiles.collect())
    };
    Ok(Trial {
        values: exactly(values),
        tool: "the lab's OpenFlow client".into(),
        distributions: vec![of("channel_echo_ms", &echo), of("channel_barrier_ms", &barrier)],
        raw: serde_json::json!({ "connections": clients.len(), "all_ms": all }),
        ..Trial::default()
    })
}

/// The shares of a distribution that are kept.
const SHARES: [f64; 9] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

/// Connections to all bridges, and how long one of them took, in milliseconds: the mean of the
/// first [`ONE_BY_ONE`], made one after another.
fn connect_all(context: &MethodContext<'_>) -> anyhow::Result<(Vec<SwitchClient>, f64)> {
    let connect = |bridges: &[usize]| -> anyhow::Result<Vec<SwitchClient>> {
        let connect =
            |bridge: &usize| context.setup.connect(context.setup.version, *bridge, context.cancel);
        bridges.iter().map(connect).collect()
    };
    let all = Vec::from_iter(0..context.setup.bridges().len());
    let (first, rest) = all.split_at(all.len().min(ONE_BY_ONE));
    let begun = Instant::now();
    let mut clients = connect(first)?;
    let connect_ms = begun.elapsed().as_secs_f64() * 1e3 / clients.len() as f64;
    std::thread::scope(|scope| {
        let shares = rest.chunks(rest.len().div_ceil(AT_ONCE).max(1));
        let threads: Vec<_> = shares.map(|share| scope.spawn(move || connect(share))).collect();
        for thread in threads {
            let connected = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            clients.extend(connected?);
        }
        Ok((clients, connect_ms))
    })
}

/// Milliseconds of each answer, ascending; of many bridges the first [`QUESTIONS`] are asked.
fn times(
    clients: &mut [SwitchClient],
    ask: fn(&mut SwitchClient) -> Result<(), ClientError>,
) -> Result<Vec<f64>, ClientError> {
    let count = clients.len().min(QUESTIONS);
    let rounds = QUESTIONS.div_ceil(count.max(1));
    let mut times = Vec::with_capacity(rounds * count);
    for _ in 0..rounds {
        for client in &mut clients[..count] {
            let begun = Instant::now();
            ask(client)?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Asks all at once: milliseconds until the last has answered.
fn ask_all(clients: &mut [SwitchClient]) -> Result<f64, ClientError> {
    let begun = Instant::now();
    for client in clients.iter_mut() {
        client.send(&Message::EchoRequest(Vec::new()))?;
        client.flush()?;
    }
    for client in clients.iter_mut() {
        while !matches!(client.next_in_time()?.1, Message::EchoReply(_)) {}
    }
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}
