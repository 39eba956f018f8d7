//! The rows that are measured on ports of this process: sending into nothing, receiving, and over a
//! wire in memory.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use generator::probe::{ProbeHeader, StreamId};
use generator::profile::{FieldModifier, FrameSize, Modifier, ModifierOp, Rate, StreamSpec};
use generator::receiver::{Receiver, ReceiverOptions};
use generator::session::SessionOptions;
use generator::session::floor::clock_resolution_ns;
use packet::Batch;

use super::{Bench, Figure, PeerMode, greedy, mpps, sending_s};

/// Streams of the rows with many of them.
const STREAMS: u16 = 100;

/// Rate of many streams with due times together, in frames a second.
const WANTED_PPS: f64 = 20e6;

/// Rate for all streams together, above that of any machine.
const BEYOND_PPS: f64 = 4e8;

/// Streams of this rate together, each with number and time stamp.
fn timed_streams(pps: f64) -> Vec<StreamSpec> {
    let rate = Rate::PacketsPerSecond(pps / f64::from(STREAMS));
    let stream = |number| StreamSpec { rate, ..greedy(&format!("stream-{number}"), true) };
    (0..STREAMS).map(stream).collect()
}

impl Bench {
    /// Millions of frames a second that one or two ports send into nothing.
    fn sent_to_null(&self, senders: usize, streams: &[StreamSpec]) -> Result<f64> {
        let ports = &["null:bench-0", "null:bench-1"][..senders];
        let mut session = self.session(ports, SessionOptions::default())?;
        let statistics = self.send(&mut session, senders, streams, self.args.seconds)?;
        Ok((0..senders).map(|port| mpps(&statistics.ports[port].tx)).sum())
    }

    pub(super) fn one_stream(&mut self) -> Result<Vec<Figure>> {
        let streams = [greedy("one", false)];
        let peer = Some(PeerMode::Txonly);
        let figure =
            self.repeat("null_one_stream", peer, |bench| bench.sent_to_null(1, &streams))?;
        Ok(vec![figure])
    }

    pub(super) fn four_fields(&mut self) -> Result<Vec<Figure>> {
        let fields = ["ipv4.src", "ipv4.dst", "udp.src", "udp.dst"];
        let count = |field| Modifier::Field(FieldModifier::new(field, ModifierOp::Increment));
        let modifiers = fields.map(count).to_vec();
        let streams = [StreamSpec { modifiers, ..greedy("range", false) }];
        let peer = Some(PeerMode::Flowgen);
        let figure =
            self.repeat("null_range_4_fields", peer, |bench| bench.sent_to_null(1, &streams))?;
        Ok(vec![figure])
    }

    /// Many streams as fast as they go, in turns; with due times of which all are over; and with
    /// due times at a rate that has to be reached.
    pub(super) fn many_streams(&mut self) -> Result<Vec<Figure>> {
        let greedy: Vec<StreamSpec> =
            (0..STREAMS).map(|number| greedy(&format!("stream-{number}"), true)).collect();
        let peer = Some(PeerMode::Flowgen);
        let in_turn =
            self.repeat("null_100_streams_probes", peer, |bench| bench.sent_to_null(1, &greedy))?;
        let overdue = timed_streams(BEYOND_PPS);
        let timed = self.repeat("null_100_streams_due", peer, |bench| {
            let never = u64::MAX;
            let limits = SessionOptions {
                unsent_after_ns: never,
                late_after_ns: never,
                ..SessionOptions::default()
            };
            Ok(mpps(&bench.send_overdue("null:bench-0", &overdue, limits)?))
        })?;
        let options = SessionOptions { line_rate_bps: vec![1e11], ..SessionOptions::default() };
        let mut session = self.session(&["null:bench-0"], options)?;
        let wanted = timed_streams(WANTED_PPS);
        let statistics = self.send(&mut session, 1, &wanted, self.args.seconds)?;
        let tx = &statistics.ports[0].tx;
        let due = (tx.traffic.packets + tx.unsent).max(1) as f64;
        let share = |frames: u64| 100.0 * frames as f64 / due;
        Ok(vec![
            in_turn,
            timed,
            Figure::new("null_100_streams_at_20_mpps", mpps(tx), "Mpps"),
            Figure::new("null_100_streams_at_20_mpps_unsent", share(tx.unsent), "%"),
            Figure::new("null_100_streams_at_20_mpps_late", share(tx.late), "%"),
        ])
    }

    /// Two ports, each with a thread that sends.
    pub(super) fn two_threads(&mut self) -> Result<Vec<Figure>> {
        let streams = [greedy("one", true)];
        self.twice("null_two_threads", |bench, senders| bench.sent_to_null(senders, &streams))
    }

    /// One port with two queues, each with a thread that sends one stream, against one with a
    /// single queue and stream: a thread that sends two in turn makes its frames anew.
    pub(super) fn two_queues(&mut self) -> Result<Vec<Figure>> {
        let both = [greedy("one", true), greedy("two", true)];
        self.twice("null_two_queues", |bench, queues| {
            let (port, streams) = (format!("null:bench-0?queues={queues}"), &both[..queues]);
            let mut session = bench.session(&[&port], SessionOptions::default())?;
            let statistics = bench.send(&mut session, 1, streams, bench.args.seconds)?;
            Ok(mpps(&statistics.ports[0].tx))
        })
    }

    /// The rates of one and of two of something, in turns, and the ratio of the two.
    fn twice(
        &mut self,
        row: &str,
        measure: impl Fn(&Self, usize) -> Result<f64>,
    ) -> Result<Vec<Figure>> {
        let (mut one, mut two, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..self.args.repeats {
            let (first, second) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
            let mut pair = [(first, measure(self, first)?), (second, measure(self, second)?)];
            pair.sort_by_key(|(count, _)| *count);
            let [(_, alone), (_, both)] = pair;
            ensure!(alone > 0.0, "{row}: nothing was sent");
            one.push(alone);
            two.push(both);
            ratios.push(both / alone);
        }
        Ok(vec![
            Figure::of_runs(format!("{row}_one"), &one, "Mpps"),
            Figure::of_runs(row, &two, "Mpps"),
            Figure::of_runs(format!("{row}_to_one"), &ratios, "ratio"),
        ])
    }

    /// Frames a second that one thread accounts for: order, loss and delay of 16 streams.
    pub(super) fn receiving(&mut self) -> Result<Vec<Figure>> {
        let figure = self.repeat("receive_accounting", None, Self::received)?;
        Ok(vec![figure])
    }

    fn received(&self) -> Result<f64> {
        const STREAMS: u16 = 16;
        let mut receiver = Receiver::new(ReceiverOptions::default());
        for stream in 0..STREAMS {
            ensure!(receiver.start_stream(StreamId(stream), 0), "a receiver without room");
        }
        let mut batch = Batch::default();
        (0..64).for_each(|_| batch.push_slice(&[0; 60]));
        let begun = Instant::now();
        let (mut number, mut spent) = (0_u32, Duration::ZERO);
        while begun.elapsed().as_secs_f64() < self.args.seconds {
            let now_ns = u64::from(number) * 50 + 1_000_000;
            for frame in batch.frames_mut() {
                let stream = StreamId((number % u32::from(STREAMS)) as u16);
                let sequence = number / u32::from(STREAMS);
                let due_ns = now_ns - 2_000 - u64::from(number % 13);
                ProbeHeader { stream, sequence, due_ns }.write(frame.bytes_mut());
                number += 1;
            }
            let before = Instant::now();
            receiver.take_batch(&batch, now_ns);
            spent += before.elapsed();
        }
        Ok(f64::from(number) / 1e6 / spent.as_secs_f64())
    }

    /// E3's recipe, which goes wrong where the gap is that of another size. It is measured from the
    /// first departure to the last; how late one left at most says what of the error is the
    /// machine's.
    pub(super) fn range_at_80_percent(&mut self) -> Result<Vec<Figure>> {
        let size = FrameSize::Range { min: 128, max: 1518, step: 1, random: Some(1) };
        let rate = Rate::PercentOfLine(80.0);
        let spec = StreamSpec { size, rate, ..greedy("range", false) };
        let mut session = self.session(&["null:bench-range"], SessionOptions::default())?;
        let statistics = self.send(&mut session, 1, &[spec], self.args.seconds)?;
        let port = &statistics.ports[0];
        let traffic = port.tx.traffic;
        let bits = 8.0 * (traffic.bytes + 20 * traffic.packets) as f64;
        let share = 100.0 * bits / (port.line_rate_bps * sending_s(&port.tx));
        Ok(vec![
            Figure::new("range_at_80_percent_error", (share / 80.0 - 1.0).abs() * 100.0, "%"),
            Figure::new("range_at_80_percent_latest", port.tx.late_ns_max as f64 / 1e3, "us"),
        ])
    }

    /// The delay of a wire in memory, and what the clock can tell apart.
    pub(super) fn delay_floor(&mut self) -> Result<Vec<Figure>> {
        let ports = ["memory:bench-floor?end=a", "memory:bench-floor?end=b"];
        let mut session = self.session(&ports, SessionOptions::default())?;
        let rate = Rate::PacketsPerSecond(1e5);
        let spec = StreamSpec { rate, ..greedy("floor", true) };
        let statistics = self.send(&mut session, 1, &[spec], self.args.seconds)?;
        let arrival = statistics.streams[0].arrivals.first();
        let report = &arrival.context("nothing came over a wire in memory")?.report;
        let delay = |share| report.delay_us(share).unwrap_or_default();
        Ok(vec![
            Figure::new("delay_floor_p50", delay(0.5), "us"),
            Figure::new("delay_floor_p99", delay(0.99), "us"),
            Figure::new("clock_resolution", clock_resolution_ns(), "ns"),
        ])
    }

    /// Rate of a pair of ports.
    pub(super) fn pair(&mut self) -> Result<Vec<Figure>> {
        let ports = [&self.args.tx, &self.args.rx].map(|port| port.as_deref().unwrap_or_default());
        let mut session = self.session(&ports, SessionOptions::default())?;
        let streams = [greedy("one", true)];
        let statistics = self.send(&mut session, 1, &streams, self.args.seconds)?;
        let received = statistics.ports[1].rx.traffic.packets as f64;
        let tx = &statistics.ports[0].tx;
        let sent = tx.traffic.packets as f64;
        Ok(vec![
            Figure::new("pair_sent", mpps(tx), "Mpps"),
            Figure::new("pair_received", received / 1e6 / sending_s(tx).max(1e-9), "Mpps"),
            Figure::new("pair_lost", 100.0 * (1.0 - received / sent.max(1.0)), "%"),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{args, bench};
    use super::super::{Bench, MeasureRow};
    use programs::cancel::Cancel;

    #[test]
    fn every_row_is_measured() {
        let rows: [MeasureRow; 8] = [
            Bench::one_stream,
            Bench::four_fields,
            Bench::many_streams,
            Bench::two_threads,
            Bench::two_queues,
            Bench::receiving,
            Bench::range_at_80_percent,
            Bench::delay_floor,
        ];
        for row in rows {
            let figures = bench(|bench| row(bench).unwrap());
            assert!(!figures.is_empty());
            assert!(figures.iter().all(|figure| figure.value.is_finite()), "{figures:?}");
        }
    }

    #[test]
    fn a_pair_of_ports_is_measured() {
        let args = args(&["--tx", "memory:bench-pair?end=a", "--rx", "memory:bench-pair?end=b"]);
        let figures = Bench::new(&args, Cancel::default()).unwrap().pair().unwrap();
        assert_eq!(figures.len(), 3);
    }
}
