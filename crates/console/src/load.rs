//! A load from start to end: opened, loaded, started, watched each second, and reported.
//!
//! Ctrl-C ends the load and not the report: what was measured until then is printed. Nothing is
//! sent before every stream of every port is known to be right.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use generator::file_conflicts::FileUse;
use generator::profile::Profile;
use generator::session::{Session, StartOptions};
use generator::statistics::{PortStatistics, SessionStatistics};

use crate::file_conflicts::files_of;
use crate::interrupt::{ASK_EVERY, Interrupt};
use crate::port_args::PortArgs;
use crate::report::{Interruption, RunReport, figure};
use crate::stderr::print_line;
use crate::usage::{EXIT_INTERRUPTED, UsageError, session_error, some_time, time, usage};

/// A line of progress stands for this long.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Options of a load.
#[derive(Args, Clone, Debug)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    ports: PortArgs,
    /// Seconds that are sent for [default: until the streams end, or Ctrl-C]
    #[arg(long, short, value_name = "SECONDS", value_parser = some_time)]
    duration: Option<f64>,
    /// Seconds that frames in flight are waited for after the last one has left
    #[arg(long, value_name = "SECONDS", default_value = "0.2", value_parser = time)]
    drain: Duration,
    /// Print the report as one line of JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// The streams of a load, and when it counts as failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load<'a> {
    /// The streams.
    pub(crate) profile: &'a Profile,
    /// The file that it was read from.
    pub(crate) file: Option<&'a Path>,
    /// All rates times this.
    pub(crate) multiplier: f64,
    /// More loss than this, in per cent of the numbered frames, is exit code 1.
    pub(crate) loss_percent_max: Option<f64>,
}

impl LoadArgs {
    /// The number of ports.
    pub(crate) fn port_count(&self) -> usize {
        self.ports.specs().len()
    }

    /// Sends the load and prints the report. 0: done; 1: more loss than allowed, or a port that
    /// stopped; 2: a profile or an option that is wrong; 130: interrupted.
    ///
    /// # Errors
    /// Ports that cannot be opened, and standard output.
    pub(crate) fn carry_out(&self, load: &Load<'_>) -> anyhow::Result<ExitCode> {
        let mut files = files_of(self.ports.specs())?;
        let captures = load.profile.streams.iter().filter_map(|stream| stream.capture.as_ref());
        let captures = captures.map(|capture| ("capture file", capture.file.as_path()));
        for (what, file) in captures.chain(load.file.map(|file| ("profile", file))) {
            let name = format!("{what} {}", file.display());
            files.add(&name, file, FileUse::Read).map_err(UsageError::from)?;
        }
        let interrupt = Interrupt::on_signals().context("cannot catch signals")?;
        let (mut session, _metrics) = self.ports.open()?;
        let ports = match self.load(&mut session, load.profile) {
            Ok(ports) => ports,
            Err(why) => return Ok(usage(&why)),
        };
        let how =
            StartOptions { multiplier: load.multiplier, duration_s: self.duration, at_ns: None };
        session.measure_floor(&|| !interrupt.is_set());
        session.start(&ports, &how).map_err(session_error)?;
        let start = Instant::now();
        self.watch(&mut session, &ports, &interrupt, start)?;
        let took = start.elapsed().as_secs_f64();
        session.stop(&ports)?;
        let interrupted = Interruption::of(interrupt.take(), || wait(self.drain, &interrupt));
        let statistics = session.statistics();
        let sending_s = sending_s(&statistics).unwrap_or(took);
        let report = RunReport { statistics: &statistics, sending_s, interrupted };
        let out = &mut files::stdout();
        if self.json {
            writeln!(out, "{}", report.json())?;
        } else {
            write!(out, "{}", report.text(::terminal::width()))?;
        }
        Ok(exit_code(load, &report))
    }

    /// Loads each port that has streams; gives these ports.
    fn load(&self, session: &mut Session, profile: &Profile) -> Result<Vec<usize>, String> {
        let count = self.port_count();
        if let Some(stream) = profile.streams.iter().find(|stream| stream.port >= count) {
            let (name, port) = (&stream.name, stream.port);
            return Err(format!(
                "stream {name:?}, port: {port}, and there are {count} ports, numbered from 0"
            ));
        }
        let mut ports = Vec::new();
        for port in 0..count {
            let streams = profile.of_port(port);
            if !streams.is_empty() {
                session.load(port, &streams).map_err(|error| error.to_string())?;
                ports.push(port);
            }
        }
        if ports.is_empty() { Err("the profile has no streams".to_owned()) } else { Ok(ports) }
    }

    /// Until nothing is left to be sent, or a signal comes.
    fn watch(
        &self,
        session: &mut Session,
        ports: &[usize],
        interrupt: &Interrupt,
        start: Instant,
    ) -> anyhow::Result<()> {
        let mut reported = 0;
        while !interrupt.is_set() && ports.iter().any(|port| session.is_transmitting(*port)) {
            session.wait(Some(ASK_EVERY));
            let seconds = (start.elapsed().as_nanos() / PROGRESS_EVERY.as_nanos()) as u64;
            if seconds > reported && !self.quiet {
                reported = seconds;
                print_line(format_args!("{}", progress(reported, &session.statistics())));
            }
        }
        Ok(())
    }
}

/// Time of sending, in seconds: from the first frame to the last, and the time to the one that
/// would have been next; of the port that took longest. `None` where no port sent two frames.
fn sending_s(statistics: &SessionStatistics) -> Option<f64> {
    let sent = statistics.ports.iter().map(|port| &port.tx).filter(|tx| tx.traffic.packets > 1);
    let spans = sent.map(|tx| {
        let packets = tx.traffic.packets as f64;
        tx.span_ns as f64 / 1e9 * packets / (packets - 1.0)
    });
    spans.max_by(f64::total_cmp).filter(|span_s| *span_s > 0.0)
}

/// The line of one second of a load.
fn progress(second: u64, statistics: &SessionStatistics) -> String {
    let sum = |of: fn(&PortStatistics) -> f64| -> f64 { statistics.ports.iter().map(of).sum() };
    let sent = sum(|port| port.tx.traffic.pps) / 1e6;
    let sent_bits = sum(|port| port.tx.traffic.l1_bps) / 1e9;
    let received = sum(|port| port.rx.traffic.pps) / 1e6;
    let unsent: u64 = statistics.ports.iter().map(|port| port.tx.unsent).sum();
    format!(
        "{second:>4} s  sent {} Mpps, {} Gbit/s at layer 1, {unsent} unsent; received {} Mpps",
        figure(sent),
        figure(sent_bits),
        figure(received),
    )
}

/// Sleeps, unless a signal comes while it does; whether one came.
fn wait(duration: Duration, interrupt: &Interrupt) -> bool {
    // No clock goes as far as some durations.
    let start = Instant::now();
    loop {
        let left = duration.saturating_sub(start.elapsed());
        if left.is_zero() || interrupt.is_set() {
            return interrupt.is_set();
        }
        std::thread::sleep(left.min(ASK_EVERY));
    }
}

fn exit_code(load: &Load<'_>, report: &RunReport<'_>) -> ExitCode {
    if report.interrupted.is_some() {
        return ExitCode::from(EXIT_INTERRUPTED);
    }
    let too_much = load.loss_percent_max.and_then(|most| beyond(report, most));
    if let Some(why) = &too_much {
        print_line(format_args!("weir gen: {why}"));
    }
    let lossy = too_much.is_some();
    let has_failed = report.statistics.ports.iter().any(has_failed);
    if lossy || has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Why a loss of at most `most` per cent was not shown.
fn beyond(report: &RunReport<'_>, most: f64) -> Option<String> {
    let loss = report.loss_percent();
    if report.numbered() == 0 {
        Some("no frame with a number was sent, so --max-loss cannot be checked".to_owned())
    } else if loss > most {
        Some(format!("{loss} % of the frames were lost, more than --max-loss {most}"))
    } else {
        None
    }
}

/// Whether a port can send or receive no more, or took frames that its device did not carry.
fn has_failed(port: &PortStatistics) -> bool {
    port.stopped.is_some() || port.rx.error.is_some() || port.tx.errors > 0
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;
    use std::time::Duration;

    use generator::profile::Profile;
    use generator::statistics::{
        PortStatistics, PortTraffic, RxStatistics, SessionStatistics, TxStatistics,
    };

    use super::{Load, exit_code, sending_s, wait};
    use crate::interrupt::Interrupt;
    use crate::report::RunReport;

    /// The defect of rates over the duration that was asked for: an overload that took longer, or a
    /// capture that ended earlier, had a rate that it never had.
    #[test]
    fn rates_are_over_the_time_in_which_was_sent() {
        let port = |packets, span_ns| {
            let traffic = PortTraffic { packets, ..PortTraffic::default() };
            let tx = TxStatistics { traffic, span_ns, ..TxStatistics::default() };
            PortStatistics { tx, ..PortStatistics::default() }
        };
        let of = |ports| sending_s(&SessionStatistics { ports, ..SessionStatistics::default() });
        assert_eq!(of(vec![port(11, 1_000_000_000), port(3, 500_000_000)]), Some(1.1));
        assert_eq!(of(vec![port(1, 0), port(0, 0)]), None);
    }

    #[test]
    fn a_port_that_stops_receiving_or_loses_frames_is_a_failure() {
        let profile = Profile::default();
        let (file, loss_percent_max) = (None, None);
        let load = Load { profile: &profile, file, multiplier: 1.0, loss_percent_max };
        let code = |error: Option<&str>, errors| {
            let tx = TxStatistics { errors, ..TxStatistics::default() };
            let rx = RxStatistics { error: error.map(str::to_owned), ..RxStatistics::default() };
            let ports = vec![PortStatistics { rx, tx, ..PortStatistics::default() }];
            let statistics = SessionStatistics { ports, ..SessionStatistics::default() };
            let report = RunReport { statistics: &statistics, sending_s: 1.0, interrupted: None };
            exit_code(&load, &report)
        };
        assert_eq!(code(None, 0), ExitCode::SUCCESS);
        assert_eq!(code(None, 3), ExitCode::FAILURE);
        assert_eq!(code(Some("gone"), 0), ExitCode::FAILURE);
    }

    #[test]
    fn a_wait_beyond_all_clocks_ends_with_a_signal() {
        let interrupt = Interrupt::default();
        let waiting = interrupt.clone();
        let thread = std::thread::spawn(move || wait(Duration::MAX, &waiting));
        interrupt.set();
        assert!(thread.join().unwrap());
        assert!(interrupt.take() && !wait(Duration::ZERO, &interrupt));
    }
}
