//! `weir bench generator`: how fast and how exactly the generator sends, and how fast it accounts
//! for what comes.
//!
//! Ports that cost nothing (`null`) tell what the engine takes, wires in memory what the delay of
//! nothing is, a veth pair what the kernel takes. Everything of ours runs in this process, on the
//! threads of a session; DPDK's testpmd runs beside it, in turns. A row is one figure;
//! `docs/speed.md` has those of one machine.

mod peers;
mod rates;
mod rows;
mod veth;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use generator::profile::{Rate, StreamSpec};
use generator::session::{Session, SessionOptions, StartOptions};
use generator::statistics::{SessionStatistics, TxStatistics};
use netdev::PortSpec;
use netdev::sys::affinity::allowed_cpus;
use programs::cancel::{Cancel, EXIT_INTERRUPTED};
use serde::Serialize;

use super::common::seconds;
use super::measure::{Pairs, median, rounded};
use super::peer::Beside;
use peers::{PeerMode, Peers};

const EXAMPLES: &str = "\
Examples:
  weir bench generator
  weir bench generator --seconds 10 --json
  weir bench generator --rows null_range_4_fields,null_one_stream --repeats 12
  weir bench generator --no-peers
  weir bench generator --tx af_packet:veth0 --rx af_packet:veth1 --json

testpmd is measured in turns with Weir where it can be (apt-get install dpdk-dev; two cores). Debian
has no package of Pktgen. The row veth needs root: it makes a network namespace of its own.";

/// Time that frames have to come after the last has left.
const QUIET: Duration = Duration::from_millis(100);
const DRAIN: Duration = Duration::from_secs(5);

/// A line that carries any rate.
const LINE_BPS: f64 = 1e13;

/// Selection and manner of the measurement.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct GeneratorArgs {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Measurements of each rate
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: u16,
    /// The cores of the threads that send, in order; those that receive come behind them. The first
    /// is testpmd's too [default: the last core there is, and then any]
    #[arg(long, value_delimiter = ',', value_name = "CORE")]
    cores: Vec<usize>,
    /// Measure these rows only, by the beginning of their names
    #[arg(long, value_delimiter = ',', value_name = "ROW", conflicts_with = "tx")]
    rows: Vec<String>,
    /// Leave testpmd out
    #[arg(long)]
    no_peers: bool,
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
    /// The median of all runs.
    value: f64,
    unit: &'static str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    runs: Option<Runs>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    beside: Option<Beside>,
}

/// Result of several measurements.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Runs {
    runs: usize,
    least: f64,
    most: f64,
}

impl Figure {
    fn new(row: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { row: row.into(), value: rounded(value), unit, runs: None, beside: None }
    }

    /// The median of some runs, with the least and the most of them.
    fn of_runs(row: impl Into<String>, values: &[f64], unit: &'static str) -> Self {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let runs = Runs { runs: values.len(), least: rounded(least), most: rounded(most) };
        let several = (values.len() > 1).then_some(runs);
        Self { runs: several, ..Self::new(row, median(values), unit) }
    }

    /// The same beside those of a peer.
    fn of_pairs(row: &str, pairs: &Pairs, unit: &'static str, peer: &'static str) -> Self {
        let beside = pairs.ratio().map(|_| Beside::of(peer, pairs));
        Self { beside, ..Self::of_runs(row, &pairs.ours, unit) }
    }

    /// The line for people.
    fn text(&self) -> String {
        let Self { row, value, unit, runs, beside } = self;
        let mut text = format!("{row:44} {value:>14} {unit}");
        if let Some(Runs { runs, least, most }) = runs {
            text += &format!(" ({least} to {most} in {runs} runs)");
        }
        text + &beside.as_ref().map(Beside::text).unwrap_or_default()
    }
}

/// A run of the bench.
#[derive(Debug)]
struct Bench {
    args: GeneratorArgs,
    cores: Vec<usize>,
    /// None, where they are left out.
    peers: Option<Peers>,
    cancel: Cancel,
}

/// Measures some rows.
type MeasureRow = fn(&mut Bench) -> Result<Vec<Figure>>;

/// All rows, by the beginnings of their names.
const ROWS: [(&str, MeasureRow); 12] = [
    ("null_one_stream", Bench::one_stream),
    ("null_range_4_fields", Bench::four_fields),
    ("null_100_streams", Bench::many_streams),
    ("null_two_threads", Bench::two_threads),
    ("null_two_queues", Bench::two_queues),
    ("receive_accounting", Bench::receiving),
    ("rate_constant", Bench::rate_constant),
    ("rate_bursts", Bench::rate_bursts),
    ("rate_poisson", Bench::rate_poisson),
    ("range_at_80_percent", Bench::range_at_80_percent),
    ("delay_floor", Bench::delay_floor),
    ("veth", Bench::veth),
];

impl GeneratorArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let cancel = Cancel::on_signals().context("cannot catch signals")?;
        let mut bench = Bench::new(&self, cancel)?;
        let measured = match self.wanted_rows() {
            Ok(rows) => rows.into_iter().try_for_each(|row| self.print(row(&mut bench)?)),
            Err(error) => Err(error),
        };
        match measured {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(_) if bench.cancel.check().is_err() => Ok(ExitCode::from(EXIT_INTERRUPTED)),
            Err(error) => Err(error),
        }
    }

    fn wanted_rows(&self) -> Result<Vec<MeasureRow>> {
        if self.tx.is_some() {
            return Ok(vec![Bench::pair]);
        }
        let all = || ROWS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        for wanted in &self.rows {
            let is_known = ROWS.iter().any(|(name, _)| name.starts_with(wanted.as_str()));
            anyhow::ensure!(is_known && !wanted.is_empty(), "no row {wanted:?}: use {}", all());
        }
        let is_wanted = |name: &str| {
            self.rows.is_empty() || self.rows.iter().any(|wanted| name.starts_with(wanted.as_str()))
        };
        Ok(ROWS.iter().filter(|(name, _)| is_wanted(name)).map(|(_, row)| *row).collect())
    }

    fn print(&self, figures: Vec<Figure>) -> Result<()> {
        for figure in figures {
            let text = if self.json {
                serde_json::to_string(&figure).context("writing JSON")?
            } else {
                figure.text()
            };
            files::print(&(text + "\n"))?;
        }
        Ok(())
    }
}

impl Bench {
    fn new(args: &GeneratorArgs, cancel: Cancel) -> Result<Self> {
        let cores = match &args.cores[..] {
            [] => {
                let allowed = allowed_cpus().context("asking for the cores")?;
                allowed.last().copied().into_iter().collect()
            }
            cores => cores.to_vec(),
        };
        let peers = match cores.first() {
            Some(core) if !args.no_peers && args.tx.is_none() => {
                Peers::new(*core).map_err(|error| left_out(&error)).ok()
            }
            Some(_) | None => None,
        };
        Ok(Self { args: args.clone(), cores, peers, cancel })
    }

    /// A session on these ports.
    fn session(&self, ports: &[&str], options: SessionOptions) -> Result<Session> {
        let specs: Result<Vec<PortSpec>, _> = ports.iter().map(|port| port.parse()).collect();
        let options = SessionOptions { cores: self.cores.clone(), ..options };
        Ok(Session::open(&specs?, options)?)
    }

    /// Sends these streams on the first `senders` ports, and waits until all has come.
    fn send(
        &self,
        session: &mut Session,
        senders: usize,
        streams: &[StreamSpec],
        seconds: f64,
    ) -> Result<SessionStatistics> {
        let ports: Vec<usize> = (0..senders).collect();
        for port in &ports {
            session.load(*port, streams)?;
        }
        session.clear();
        let how = StartOptions { duration_s: Some(seconds), ..StartOptions::default() };
        session.start(&ports, &how)?;
        // A signal ends it before its time.
        while !session.wait(Some(Duration::from_millis(50))) {
            self.cancel.check()?;
        }
        session.wait_until_quiet(QUIET, DRAIN);
        Ok(session.statistics())
    }

    /// Sends streams for which more is asked than leaves, until the time is over.
    fn send_overdue(
        &self,
        port: &str,
        streams: &[StreamSpec],
        options: SessionOptions,
    ) -> Result<TxStatistics> {
        let options = SessionOptions { line_rate_bps: vec![LINE_BPS], ..options };
        let mut session = self.session(&[port], options)?;
        session.load(0, streams)?;
        session.clear();
        session.start(&[0], &StartOptions::default())?;
        self.cancel.sleep(Duration::from_secs_f64(self.args.seconds))?;
        session.stop(&[0])?;
        Ok(session.statistics().ports[0].tx)
    }

    /// Measures a rate several times, in turns with the peer where there is one.
    fn repeat(
        &mut self,
        row: &str,
        peer: Option<PeerMode>,
        measure: impl Fn(&Self) -> Result<f64>,
    ) -> Result<Figure> {
        let count = usize::from(self.args.repeats);
        if let Some((mode, mut peers)) = peer.and_then(|mode| Some((mode, self.peers.take()?))) {
            match peers.peer(mode, &self.cancel) {
                Ok(peer) => {
                    let how = (count, self.args.seconds);
                    let pairs = peer.beside(how, &self.cancel, || measure(self))?;
                    self.peers = Some(peers);
                    return Ok(Figure::of_pairs(row, &pairs, "Mpps", mode.name()));
                }
                Err(error) => left_out(&error),
            }
            self.cancel.check()?;
        }
        let values: Result<Vec<f64>> = (0..count).map(|_| measure(self)).collect();
        Ok(Figure::of_runs(row, &values?, "Mpps"))
    }
}

/// Reports why the peer is not measured. Weir is, without it.
fn left_out(why: &anyhow::Error) {
    files::eprint_line(format_args!("testpmd is left out: {why:#}"));
}

/// A stream as fast as it goes, of the shortest frames.
fn greedy(name: &str, probe: bool) -> StreamSpec {
    StreamSpec { name: name.to_owned(), rate: Rate::Max, probe, ..StreamSpec::default() }
}

/// Millions of frames a second that left a port, from the first to the last.
fn mpps(tx: &TxStatistics) -> f64 {
    tx.traffic.packets as f64 / 1e6 / sending_s(tx)
}

/// Time of sending in seconds, with the time to the frame that would have been next: not the time
/// that was ordered, which a port that is too slow does not keep.
fn sending_s(tx: &TxStatistics) -> f64 {
    let packets = tx.traffic.packets as f64;
    tx.span_ns.max(1) as f64 / 1e9 * packets.max(1.0) / (packets - 1.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Bench, Figure, GeneratorArgs, ROWS};
    use crate::bench::measure::Pairs;
    use programs::cancel::Cancel;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: GeneratorArgs,
    }

    pub(super) fn args(words: &[&str]) -> GeneratorArgs {
        let usual = ["bench", "--seconds", "0.1", "--repeats", "2"];
        Line::parse_from(usual.iter().chain(words)).args
    }

    /// A bench without peers.
    pub(super) fn bench<T>(work: impl FnOnce(&mut Bench) -> T) -> T {
        let args = args(&["--no-peers"]);
        work(&mut Bench::new(&args, Cancel::default()).unwrap())
    }

    #[test]
    fn rows_are_chosen_by_the_beginning_of_their_names() {
        let count = |words: &[&str]| args(words).wanted_rows().map(|rows| rows.len());
        assert_eq!(count(&[]).unwrap(), ROWS.len());
        assert_eq!(count(&["--rows", "null_one,rate"]).unwrap(), 4);
        assert_eq!(count(&["--tx", "null:a", "--rx", "null:b"]).unwrap(), 1);
        let unknown = count(&["--rows", "nil"]).unwrap_err().to_string();
        assert!(unknown.contains("\"nil\"") && unknown.contains("veth"), "{unknown}");
    }

    #[test]
    fn a_figure_says_what_it_was_measured_beside() {
        let pairs = Pairs { ours: vec![4.0, 6.0], theirs: vec![2.0, 3.0] };
        let figure = Figure::of_pairs("row", &pairs, "Mpps", "peer");
        let json: serde_json::Value = serde_json::to_value(&figure).unwrap();
        for (key, value) in [("value", 5.0), ("least", 4.0), ("most", 6.0), ("peer_value", 2.5)] {
            assert_eq!(json[key], value, "{json}");
        }
        for key in ["ratio", "low", "high"] {
            assert_eq!(json[key], 2.0, "{json}");
        }
        assert_eq!(json["peer"], "peer");
        assert!(figure.text().contains("5 Mpps (4 to 6 in 2 runs); peer 2.5, ratio 2 (2 to 2)"));
        let alone = serde_json::to_value(Figure::new("row", 1.0, "ns")).unwrap();
        assert_eq!(alone.as_object().unwrap().len(), 3, "{alone}");
    }
}
