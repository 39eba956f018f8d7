//! `weir ctl workers`: the ports of each worker, and the use of its time.
//!
//! The placement is printed like testpmd's banner, the figures like VPP's `show runtime`.

use serde_json::{Value, json};

use super::answer::{Record, Records};
use super::caches;
use crate::agent::Agent;
use crate::reconcile::gone;
use crate::worker::{PerfReading, PortAssignment, WorkerState};

/// One record for each worker.
pub(super) async fn workers(agent: &Agent) -> Result<Records, String> {
    let states = agent.bridge.worker_states().await.ok_or_else(gone)?;
    let forward = agent.config().forward.name();
    Ok(states.iter().map(|state| record(state, forward, state.poll.name())).collect())
}

fn record(state: &WorkerState, forward: &str, poll: &str) -> Record {
    let shares = Shares::of(&state.perf);
    Record {
        text: text(state, &shares, forward, poll),
        value: value(state, &shares, forward, poll),
    }
}

/// The mean of fewer timed frames is that of single moments: of a worker that was woken.
const TIMED_LEAST: u64 = 100;

/// Nanoseconds and shares that follow from the figures; `None` where nothing was counted.
struct Shares {
    batch_size: Option<f64>,
    rx_ns: Option<f64>,
    forward_ns: Option<f64>,
    tx_ns: Option<f64>,
    idle: Option<f64>,
    asleep: Option<f64>,
}

impl Shares {
    fn of(figures: &PerfReading) -> Self {
        let is_mean = figures.timed_packets >= TIMED_LEAST;
        let per_frame = |ns| ratio(ns, figures.timed_packets).filter(|_| is_mean);
        Self {
            batch_size: ratio(figures.packets, figures.batches),
            rx_ns: per_frame(figures.rx_ns),
            forward_ns: per_frame(figures.forward_ns),
            tx_ns: per_frame(figures.tx_ns),
            idle: share(figures.idle_ns + figures.asleep_ns, figures.lived_ns),
            asleep: share(figures.asleep_ns, figures.lived_ns),
        }
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The worker goes on while its counters are read one by one.
fn share(part: u64, whole: u64) -> Option<f64> {
    ratio(part.min(whole), whole)
}

fn text(state: &WorkerState, shares: &Shares, forward: &str, poll: &str) -> String {
    let figures = &state.perf;
    let cpu = state.cpu.map_or("any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let mut text = format!("worker {}: {cpu}, forward {forward}, poll {poll}", state.index);
    for port in &state.ports {
        text += &format!("\n  receives {}", place(port));
    }
    text += &format!(
        "\n  frames: {} received, {} sent; batches: {} of {} frames on average",
        figures.packets,
        figures.sent,
        figures.batches,
        shown(shares.batch_size, 1.0, ""),
    );
    text += &format!(
        "\n  ns a frame: receiving {}, forwarding {}, sending {} ({} frames timed)",
        shown(shares.rx_ns, 1.0, ""),
        shown(shares.forward_ns, 1.0, ""),
        shown(shares.tx_ns, 1.0, ""),
        figures.timed_packets,
    );
    if let Some((set, forwarder)) = &state.forwarder {
        text += &format!("\n  {}", caches::hits_text(*set, forwarder));
    }
    text += &format!(
        "\n  idle {}, asleep {} of the time; {} sleeps, {} commands",
        shown(shares.idle, 100.0, " %"),
        shown(shares.asleep, 100.0, " %"),
        figures.sleeps,
        figures.commands,
    );
    if figures.yielded_ns > 0 {
        let yielded = share(figures.yielded_ns, figures.lived_ns);
        text +=
            &format!("\n  yielded to other threads {} of the time", shown(yielded, 100.0, " %"));
    }
    text
}

fn place(port: &PortAssignment) -> String {
    let queue = match port.queues {
        1 => String::new(),
        queues => format!("queue {} of {queues}, ", port.queue),
    };
    let place = format!("{queue}{}={}", port.number, port.spec);
    match port.leaves_by {
        Some(other) => format!("{place}, sends by {other}"),
        None if port.is_in_tier => format!("{place}, after the kernel tier"),
        None => place,
    }
}

fn shown(value: Option<f64>, scale: f64, unit: &str) -> String {
    value.map_or("-".to_owned(), |value| format!("{:.1}{unit}", value * scale))
}

fn value(state: &WorkerState, shares: &Shares, forward: &str, poll: &str) -> Value {
    let figures = &state.perf;
    let ports: Vec<Value> = state
        .ports
        .iter()
        .map(|port| {
            let leaves_by = port.leaves_by.map(|number| number.0);
            json!({
                "port_no": port.number.0,
                "spec": port.spec,
                "queue": port.queue,
                "queues": port.queues,
                "leaves_by": leaves_by,
                "kernel_tier": port.is_in_tier,
            })
        })
        .collect();
    let decided = state.forwarder.as_ref().map(|(set, figures)| caches::value(*set, figures));
    json!({
        "caches": decided,
        "worker": state.index,
        "cpu": state.cpu,
        "forward": forward,
        "poll": poll,
        "ports": ports,
        "rounds": figures.rounds,
        "batches": figures.batches,
        "packets": figures.packets,
        "sent": figures.sent,
        "commands": figures.commands,
        "sleeps": figures.sleeps,
        "asleep_ns": figures.asleep_ns,
        "idle_ns": figures.idle_ns,
        "yielded_ns": figures.yielded_ns,
        "lived_ns": figures.lived_ns,
        "timed_packets": figures.timed_packets,
        "timed_ns": {
            "rx": figures.rx_ns,
            "forward": figures.forward_ns,
            "tx": figures.tx_ns,
        },
        "batch_size": shares.batch_size,
        "ns_per_packet": {
            "rx": shares.rx_ns,
            "forward": shares.forward_ns,
            "tx": shares.tx_ns,
        },
        "idle_share": shares.idle,
        "asleep_share": shares.asleep,
    })
}

#[cfg(test)]
mod tests {
    use super::{Shares, record};
    use crate::config::Poll;
    use crate::worker::{PerfReading, WorkerState};

    fn state(index: usize, cpu: Option<usize>, perf: PerfReading) -> WorkerState {
        let (poll, ports, forwarder) = (Poll::Busy, Vec::new(), None);
        WorkerState { index, cpu, poll, ports, perf, forwarder }
    }

    #[test]
    fn what_was_never_counted_is_a_dash_and_null() {
        let figures = PerfReading::default();
        let state = state(0, None, figures);
        let record = record(&state, "io", "busy");
        assert!(record.text.contains("receiving -"), "{}", record.text);
        assert!(record.value["batch_size"].is_null());
    }

    #[test]
    fn shares_are_of_what_was_timed() {
        let figures = PerfReading {
            packets: 640,
            batches: 20,
            timed_packets: 100,
            rx_ns: 250,
            lived_ns: 1_000,
            idle_ns: 100,
            asleep_ns: 400,
            ..PerfReading::default()
        };
        let state = state(3, Some(1), figures);
        let record = record(&state, "io", "busy");
        assert_eq!(record.value["batch_size"], 32.0);
        assert_eq!(record.value["ns_per_packet"]["rx"], 2.5);
        let few = PerfReading { timed_packets: 1, rx_ns: 250, ..PerfReading::default() };
        assert!(Shares::of(&few).rx_ns.is_none(), "of one frame");
        assert_eq!(record.value["idle_share"], 0.5);
        assert!(record.text.starts_with("worker 3: CPU 1, forward io, poll busy"));
    }
}
