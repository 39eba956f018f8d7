//! The snapshot of a session: what its threads and devices say, put together.

use super::rx_thread::{ReceiveCommand, ReceiveReport};
use super::sender::{SendCommand, SendReportSoFar};
use super::{LoadedStream, Session, SessionPort};
use crate::probe::StreamId;
use crate::statistics::{
    PortStatistics, PortTraffic, RxLosses, RxStatistics, SessionStatistics, StreamArrival,
    StreamStatistics, TxStatistics,
};
use crate::transmit::StreamCounts;

/// Rates are those since a baseline of at least this age, and at most twice.
const BASELINE_AGE_NS: u64 = 1_000_000_000;

/// Counts at an earlier time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Baseline {
    at_ns: u64,
    tx: (u64, u64),
    rx: (u64, u64),
}

impl Session {
    /// The counts of sending and receiving so far. It takes a few microseconds for each port, and
    /// some tens of them for each stream that came. After the last frame has left,
    /// [`Session::wait_until_quiet`] first: what is on its way counts as lost.
    pub fn statistics(&mut self) -> SessionStatistics {
        let at_ns = self.clock.now_ns();
        let sent = self.ask_senders();
        let mut asked: Vec<(StreamId, Option<u64>)> = Vec::new();
        for (index, (port, report)) in self.ports.iter().zip(&sent).enumerate() {
            let is_over = !self.is_transmitting(index);
            for (stream, (counts, _)) in port.streams.iter().zip(&report.streams) {
                asked.push((stream.id, is_over.then_some(counts.probes)));
            }
        }
        let requests: Vec<_> = self
            .ports
            .iter()
            .map(|port| {
                port.receiver.request(|answer| ReceiveCommand::Report(asked.clone(), answer))
            })
            .collect();
        let taken: Vec<ReceiveReport> = requests
            .into_iter()
            .map(|inbox| inbox.and_then(|inbox| inbox.recv().ok()).unwrap_or_default())
            .collect();
        // Asked again, so that what has come has also left.
        let sent = self.ask_senders();
        let ports = (0..self.ports.len())
            .map(|port| self.port_statistics(port, at_ns, &sent[port], &taken[port]))
            .collect();
        let streams = self
            .ports
            .iter()
            .zip(&sent)
            .enumerate()
            .flat_map(|(index, (port, report))| stream_statistics(index, port, report, &taken))
            .collect();
        SessionStatistics { at_ns, ports, streams, floor: self.floor }
    }

    fn ask_senders(&self) -> Vec<SendReportSoFar> {
        self.ports.iter().map(|port| port.senders.report()).collect()
    }

    fn port_statistics(
        &mut self,
        index: usize,
        at_ns: u64,
        sent: &SendReportSoFar,
        taken: &ReceiveReport,
    ) -> PortStatistics {
        let link_up = self.watcher.devices.is_up(index);
        let counters = self.watcher.devices.counters(index);
        let transmitting = self.is_transmitting(index);
        let port = &mut self.ports[index];
        let tx = (sent.counts.packets, sent.counts.bytes);
        let rx = (taken.counts.packets, taken.counts.bytes);
        let before = port.baselines[0];
        let passed_s = at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        if at_ns.saturating_sub(port.baselines[1].at_ns) >= BASELINE_AGE_NS {
            port.baselines = [port.baselines[1], Baseline { at_ns, tx, rx }];
        }
        PortStatistics {
            port: index,
            name: port.name.clone(),
            link_up,
            line_rate_bps: port.line_rate_bps,
            transmitting,
            paused: sent.is_paused,
            stopped: sent.stopped.clone(),
            tx: TxStatistics {
                traffic: PortTraffic::since(tx.0, tx.1, before.tx, passed_s),
                unsent: sent.counts.unsent,
                errors: counters.tx_errors.saturating_sub(port.counters.tx_errors),
                unanswered: sent.unanswered,
                late: sent.counts.late,
                late_ns_max: sent.counts.late_ns_max,
                span_ns: sent.counts.departures_ns.map_or(0, |(first, last)| last - first),
                gaps: sent.gaps,
            },
            rx: RxStatistics {
                traffic: PortTraffic::since(rx.0, rx.1, before.rx, passed_s),
                foreign: taken.counts.foreign,
                losses: RxLosses {
                    drops: counters.rx_drops.saturating_sub(port.counters.rx_drops),
                    errors: counters.rx_errors.saturating_sub(port.counters.rx_errors),
                },
                error: taken.error.clone(),
            },
        }
    }

    /// Counts from zero: ports, streams, gaps and delays. What is under way goes on.
    pub fn clear(&mut self) {
        let mut streams = Vec::new();
        for port in &self.ports {
            let numbers = port.senders.numbers(SendCommand::Clear);
            // The senders have the streams in the same order.
            let both = port.streams.iter().zip(numbers);
            streams.extend(both.map(|(stream, (_, first))| stream.expected(first)));
        }
        for (index, port) in self.ports.iter_mut().enumerate() {
            let _ = port.receiver.ask(|answer| ReceiveCommand::Clear(streams.clone(), answer));
            port.counters = self.watcher.devices.counters(index);
            port.baselines = [Baseline { at_ns: self.clock.now_ns(), ..Baseline::default() }; 2];
        }
    }

    /// Rates from now on are those from now on.
    pub(super) fn set_baseline(&mut self, port: usize) {
        let at_ns = self.clock.now_ns();
        let port = &mut self.ports[port];
        let sent = port.senders.report();
        let taken = port.receiver.ask(|answer| ReceiveCommand::Report(Vec::new(), answer));
        let rx = taken.map_or((0, 0), |taken| (taken.counts.packets, taken.counts.bytes));
        let baseline = Baseline { at_ns, tx: (sent.counts.packets, sent.counts.bytes), rx };
        port.baselines = [baseline; 2];
    }
}

fn stream_statistics(
    index: usize,
    port: &SessionPort,
    report: &SendReportSoFar,
    taken: &[ReceiveReport],
) -> Vec<StreamStatistics> {
    let made = |(stream, (counts, active)): (&LoadedStream, &(StreamCounts, bool))| {
        let arrivals: Vec<StreamArrival> = taken
            .iter()
            .enumerate()
            .filter_map(|(port, taken)| {
                let report = taken.streams.iter().find(|report| report.stream == stream.id.0)?;
                Some(StreamArrival { port, report: report.clone() })
            })
            .collect();
        let nowhere = if *active { 0 } else { counts.probes };
        let lost = arrivals.iter().map(|arrival| arrival.report.lost).min().unwrap_or(nowhere);
        StreamStatistics {
            port: index,
            name: stream.name.clone(),
            id: stream.id.0,
            sent: counts.sent,
            sent_bytes: counts.bytes,
            probes: counts.probes,
            unnumbered: match stream.wants_probes {
                true => counts.sent.saturating_sub(counts.probes),
                false => 0,
            },
            probe_size: stream.probe_size,
            unsent: counts.unsent,
            unsent_down: counts.unsent_down,
            late: counts.late,
            active: *active,
            lost: stream.has_probes.then_some(lost),
            arrivals,
        }
    };
    port.streams.iter().zip(&report.streams).map(made).collect()
}
