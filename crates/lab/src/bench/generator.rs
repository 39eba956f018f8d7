//! `weir bench generator`: how fast and how exactly the generator sends, and how fast it accounts
//! for what comes.
//!
//! Ports that cost nothing (`null`) tell what the engine takes, wires in memory what the delay of
//! nothing is. Everything runs in this process, on the threads of a session. A row is one figure;
//! its threshold is in `docs/generator.md`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use generator::probe::{ProbeHeader, StreamId};
use generator::profile::{
    Arrival, FieldModifier, FrameSize, Mode, Modifier, ModifierOp, Rate, StreamSpec,
};
use generator::receiver::{Receiver, ReceiverOptions};
use generator::session::{Session, SessionOptions, StartOptions};
use generator::statistics::{SessionStatistics, TxStatistics};
use netdev::{Port, open_text};
use packet::Batch;
use serde::Serialize;

use super::common::seconds;
use super::outcome::rounded;
use crate::cancel::{Cancel, EXIT_INTERRUPTED};

const EXAMPLES: &str = "\
Examples:
  weir bench generator
  weir bench generator --seconds 10 --json
  weir bench generator --tx af_packet:veth0 --rx af_packet:veth1 --json";

/// Time that frames have to come after the last has left.
const QUIET: Duration = Duration::from_millis(100);
const DRAIN: Duration = Duration::from_secs(5);

/// The rates whose error is measured, in frames a second.
const RATES: [f64; 4] = [1e3, 1e4, 1e5, 1e6];

/// What to measure and how.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct GeneratorArgs {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// The cores of the threads that send, in order; those that receive come behind them
    #[arg(long, value_delimiter = ',', value_name = "CORE")]
    cores: Vec<usize>,
    /// Measure these two ports instead: what the first can send and the second receives
    #[arg(long, requires = "rx", value_name = "PORT")]
    tx: Option<String>,
    /// The port behind the one of --tx
    #[arg(long, requires = "tx", value_name = "PORT")]
    rx: Option<String>,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Figure {
    row: String,
    value: f64,
    unit: &'static str,
}

impl Figure {
    fn new(row: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { row: row.into(), value: rounded(value), unit }
    }
}

/// Measures some rows.
type MeasureRow = fn(&GeneratorArgs) -> Result<Vec<Figure>>;

impl GeneratorArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let cancel = Cancel::on_signals().context("cannot catch signals")?;
        let rows: &[MeasureRow] = if self.tx.is_some() {
            &[Self::pair]
        } else {
            &[
                Self::one_stream,
                Self::four_fields,
                Self::many_streams,
                Self::two_threads,
                Self::receiving,
                Self::rate_errors,
                Self::range_at_80_percent,
                Self::delay_floor,
            ]
        };
        for row in rows {
            for figure in row(&self)? {
                if self.json {
                    println!("{}", serde_json::to_string(&figure).context("writing JSON")?);
                } else {
                    println!("{:44} {:>14} {}", figure.row, figure.value, figure.unit);
                }
            }
            if cancel.check().is_err() {
                return Ok(ExitCode::from(EXIT_INTERRUPTED));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn session(&self, ports: &[&str]) -> Result<Session> {
        let ports: Result<Vec<Port>, _> = ports.iter().map(|port| open_text(port)).collect();
        let options = SessionOptions { cores: self.cores.clone(), ..SessionOptions::default() };
        Ok(Session::from_ports(ports?, options)?)
    }

    /// Sends these streams on the first `senders` ports, and waits until all has come.
    fn send(
        &self,
        session: &mut Session,
        senders: usize,
        streams: &[StreamSpec],
    ) -> Result<SessionStatistics> {
        let ports: Vec<usize> = (0..senders).collect();
        for port in &ports {
            session.load(*port, streams)?;
        }
        session.clear();
        let how = StartOptions { duration_s: Some(self.seconds), ..StartOptions::default() };
        session.start(&ports, &how)?;
        session.wait(None);
        session.settle(QUIET, DRAIN);
        Ok(session.statistics())
    }

    /// Millions of frames a second that one or two threads send into nothing.
    fn sent_to_null(&self, row: &str, senders: usize, streams: &[StreamSpec]) -> Result<Figure> {
        let mut session = self.session(&["null:bench-0", "null:bench-1"][..senders])?;
        let statistics = self.send(&mut session, senders, streams)?;
        let mpps = |port: usize| mpps(&statistics, port);
        Ok(Figure::new(row, (0..senders).map(mpps).sum(), "Mpps"))
    }

    fn one_stream(&self) -> Result<Vec<Figure>> {
        Ok(vec![self.sent_to_null("null_one_stream", 1, &[greedy("one", false)])?])
    }

    fn four_fields(&self) -> Result<Vec<Figure>> {
        let fields = ["ipv4.src", "ipv4.dst", "udp.src", "udp.dst"];
        let count = |field| Modifier::Field(FieldModifier::new(field, ModifierOp::Increment));
        let modifiers = fields.map(count).to_vec();
        let spec = StreamSpec { modifiers, ..greedy("range", false) };
        Ok(vec![self.sent_to_null("null_range_4_fields", 1, &[spec])?])
    }

    fn many_streams(&self) -> Result<Vec<Figure>> {
        let streams: Vec<StreamSpec> =
            (0..100).map(|number| greedy(&format!("stream-{number}"), true)).collect();
        Ok(vec![self.sent_to_null("null_100_streams_probes", 1, &streams)?])
    }

    fn two_threads(&self) -> Result<Vec<Figure>> {
        let streams = [greedy("one", true)];
        let one = self.sent_to_null("null_one_thread_probes", 1, &streams)?;
        let two = self.sent_to_null("null_two_threads_probes", 2, &streams)?;
        let ratio = Figure::new("two_threads_to_one", two.value / one.value.max(1e-9), "ratio");
        Ok(vec![one, two, ratio])
    }

    /// Frames a second that one thread accounts for: order, loss and delay of 16 streams.
    fn receiving(&self) -> Result<Vec<Figure>> {
        const STREAMS: u16 = 16;
        let mut receiver = Receiver::new(ReceiverOptions::default());
        for stream in 0..STREAMS {
            ensure!(receiver.start_stream(StreamId(stream), 0), "a receiver without room");
        }
        let mut batch = Batch::default();
        (0..64).for_each(|_| batch.push_slice(&[0; 60]));
        let begun = Instant::now();
        let (mut number, mut spent) = (0_u32, Duration::ZERO);
        while begun.elapsed().as_secs_f64() < self.seconds {
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
        let mpps = f64::from(number) / 1e6 / spent.as_secs_f64();
        Ok(vec![Figure::new("receive_accounting", mpps, "Mpps")])
    }

    /// How far the rate of what left is from what was asked, in every mode.
    fn rate_errors(&self) -> Result<Vec<Figure>> {
        let mut figures = Vec::new();
        let bursts = Mode::Bursts { count: u64::MAX, packets: 10, gap_us: 0.0 };
        let modes = [
            ("constant", Mode::Continuous, Arrival::Constant),
            ("bursts", bursts, Arrival::Constant),
            ("poisson", Mode::Continuous, Arrival::Poisson(1)),
        ];
        for (pps, (word, mode, arrival)) in
            RATES.iter().flat_map(|pps| modes.map(|mode| (*pps, mode)))
        {
            let rate = Rate::PacketsPerSecond(pps);
            let spec = StreamSpec { rate, mode, arrival, ..greedy(word, false) };
            let mut session = self.session(&["null:bench-rate"])?;
            let tx = self.send(&mut session, 1, &[spec])?.ports[0].tx;
            let (left, row) = (tx.traffic.packets as f64, format!("rate_{word}_{pps:.0}pps"));
            figures.push(match arrival {
                Arrival::Constant => {
                    let rate = (left - 1.0).max(0.0) * 1e9 / tx.span_ns.max(1) as f64;
                    Figure::new(format!("{row}_error"), 100.0 * (rate / pps - 1.0).abs(), "%")
                }
                // A Poisson process has a number of frames that deviates by its root.
                Arrival::Poisson(_) => {
                    let mean = pps * self.seconds;
                    Figure::new(format!("{row}_deviation"), (left - mean) / mean.sqrt(), "sigma")
                }
            });
            let gaps = [("p50", tx.gaps.p50_ns), ("p99", tx.gaps.p99_ns), ("max", tx.gaps.max_ns)];
            for (which, ns) in gaps {
                figures.push(Figure::new(format!("{row}_gap_{which}"), ns as f64, "ns"));
            }
        }
        Ok(figures)
    }

    /// E3's recipe, which goes wrong where the gap is that of another size.
    fn range_at_80_percent(&self) -> Result<Vec<Figure>> {
        let size = FrameSize::Range { min: 128, max: 1518, step: 1, random: Some(1) };
        let rate = Rate::PercentOfLine(80.0);
        let spec = StreamSpec { size, rate, ..greedy("range", false) };
        let mut session = self.session(&["null:bench-range"])?;
        let statistics = self.send(&mut session, 1, &[spec])?;
        let port = &statistics.ports[0];
        let traffic = port.tx.traffic;
        let bits = 8.0 * (traffic.bytes + 20 * traffic.packets) as f64;
        let share = 100.0 * bits / (port.line_rate_bps * sending_s(&port.tx));
        Ok(vec![Figure::new("range_at_80_percent_error", (share / 80.0 - 1.0).abs() * 100.0, "%")])
    }

    /// The delay of a wire in memory, and what the clock can tell apart.
    fn delay_floor(&self) -> Result<Vec<Figure>> {
        let mut session =
            self.session(&["memory:bench-floor?end=a", "memory:bench-floor?end=b"])?;
        let rate = Rate::PacketsPerSecond(1e5);
        let spec = StreamSpec { rate, ..greedy("floor", true) };
        let statistics = self.send(&mut session, 1, &[spec])?;
        let arrival = statistics.streams[0].arrivals.first();
        let report = &arrival.context("nothing came over a wire in memory")?.report;
        let delay = |share| report.delay_us(share).unwrap_or_default();
        Ok(vec![
            Figure::new("delay_floor_p50", delay(0.5), "us"),
            Figure::new("delay_floor_p99", delay(0.99), "us"),
            Figure::new("clock_resolution", resolution_ns(), "ns"),
        ])
    }

    /// What a pair of ports carries.
    fn pair(&self) -> Result<Vec<Figure>> {
        let ports = [self.tx.as_deref(), self.rx.as_deref()].map(Option::unwrap_or_default);
        let mut session = self.session(&ports)?;
        let statistics = self.send(&mut session, 1, &[greedy("one", true)])?;
        let received = statistics.ports[1].rx.traffic.packets as f64;
        let sent = statistics.ports[0].tx.traffic.packets as f64;
        let seconds = sending_s(&statistics.ports[0].tx);
        Ok(vec![
            Figure::new("pair_sent", mpps(&statistics, 0), "Mpps"),
            Figure::new("pair_received", received / 1e6 / seconds.max(1e-9), "Mpps"),
            Figure::new("pair_lost", 100.0 * (1.0 - received / sent.max(1.0)), "%"),
        ])
    }
}

/// A stream as fast as it goes, of the shortest frames.
fn greedy(name: &str, probe: bool) -> StreamSpec {
    StreamSpec { name: name.to_owned(), rate: Rate::Max, probe, ..StreamSpec::default() }
}

/// Millions of frames a second that left a port, from the first to the last.
fn mpps(statistics: &SessionStatistics, port: usize) -> f64 {
    let tx = &statistics.ports[port].tx;
    tx.traffic.packets as f64 / 1e6 / sending_s(tx)
}

/// How long was sent for in seconds, the time to the frame that would have been next included: not
/// what was asked for, which a port that is too slow does not keep.
fn sending_s(tx: &TxStatistics) -> f64 {
    let packets = tx.traffic.packets as f64;
    tx.span_ns.max(1) as f64 / 1e9 * packets.max(1.0) / (packets - 1.0).max(1.0)
}

/// The smallest difference of two readings of the clock that is not nothing, in nanoseconds; the
/// median of many.
fn resolution_ns() -> f64 {
    let step = || {
        let begun = Instant::now();
        loop {
            let passed = begun.elapsed();
            if passed > Duration::ZERO {
                return passed.as_nanos() as f64;
            }
        }
    };
    let mut steps: Vec<f64> = (0..1_001).map(|_| step()).collect();
    steps.sort_by(f64::total_cmp);
    steps[steps.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::GeneratorArgs;

    fn args() -> GeneratorArgs {
        GeneratorArgs { seconds: 0.1, cores: Vec::new(), tx: None, rx: None, json: false }
    }

    #[test]
    fn every_row_is_measured() {
        let args = args();
        for row in [
            GeneratorArgs::one_stream,
            GeneratorArgs::four_fields,
            GeneratorArgs::many_streams,
            GeneratorArgs::two_threads,
            GeneratorArgs::receiving,
            GeneratorArgs::range_at_80_percent,
            GeneratorArgs::delay_floor,
        ] {
            let figures = row(&args).unwrap();
            assert!(figures.iter().all(|figure| figure.value.is_finite()), "{figures:?}");
        }
    }

    #[test]
    fn a_pair_of_ports_is_measured() {
        let port = |end| Some(format!("memory:bench-pair?end={end}"));
        let args = GeneratorArgs { tx: port('a'), rx: port('b'), ..args() };
        assert_eq!(args.pair().unwrap().len(), 3);
    }
}
