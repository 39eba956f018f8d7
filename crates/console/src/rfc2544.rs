//! `weir gen rfc2544`: what a device under test can do, by the methods of RFC 2544, RFC 9004 and
//! MLRsearch.
//!
//! Frames leave by one port and come back by another. A result is a line for people or a JSON
//! object for programs, one for each frame size, with its 99 % interval. It must never print a
//! figure that is the tester's own limit without saying so.

mod reset;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use generator::method::back_to_back::{BackToBackOptions, back_to_back};
use generator::method::frame_loss::{FrameLossOptions, frame_loss};
use generator::method::latency::{LatencyOptions, latency};
use generator::method::mlrsearch::{MlrsearchOptions, SearchGoal, mlrsearch};
use generator::method::on_ports::{PortTrialError, QUIET, SessionMeasurer};
use generator::method::recovery::{RecoveryOptions, recovery};
use generator::method::throughput::{ThroughputOptions, ThroughputReport, throughput};
use generator::method::{Estimate, Measurer, MethodError, TrialInput, TrialOutput, TrialRow};
use generator::profile::{FrameSize, LAYER_1_OVERHEAD, StreamSpec};
use generator::session::Session;
use generator::statistics::DelayFloor;
use openflow::text::decimal_where;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::port_args::PortArgs;
use crate::stderr::print_line;
use crate::usage::{EXIT_INTERRUPTED, UsageError, session_error, some_time, time};

const RFC2544_EXAMPLES: &str = "\
Examples:
  weir gen rfc2544 --port af_packet:veth1 --port af_packet:veth2 --trial 1
  weir gen rfc2544 --port tap:left --port tap:right --method ndr --sizes 64,1518 --json
  weir gen rfc2544 --port af_packet:veth1 --port af_packet:veth2 --method reset --sizes 64 \\
      --trial 30 --load 10 --reset-command ./reset.sh

Before each trial, learning frames show the device where the other port is (RFC 2544, clause 23).
RFC 2544 has trials of 60 seconds; --trial shortens them for a first look. The interval in brackets
is the one in which the truth lies with 99 %.

Exit codes:
  0    done
  1    a port failed, or a trial could not be performed
  2    wrong usage
  130  interrupted";

/// Remark where the tester could not keep its schedule.
const TESTER_LIMITED: &str = "; limited by the tester";

/// A method, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodWord {
    /// The highest rate without loss, by binary search (RFC 2544, 26.1)
    Throughput,
    /// The share of the frames that is lost at each of several loads (RFC 2544, 26.3)
    Loss,
    /// The longest burst without loss (RFC 9004)
    BackToBack,
    /// Delay at the throughput, or at --load (RFC 2544, 26.2)
    Latency,
    /// Time from the end of an overload to the last lost frame (RFC 2544, 26.5)
    Recovery,
    /// Non-drop rate, by MLRsearch
    Ndr,
    /// Partial drop rate with a loss of 0.5 %, by MLRsearch
    Pdr,
    /// The time that a reset takes, in the middle of a trial (RFC 6201)
    Reset,
}

/// Measures a device between two ports.
#[derive(Args, Debug)]
#[command(after_help = RFC2544_EXAMPLES)]
pub(crate) struct Rfc2544Args {
    #[command(flatten)]
    ports: PortArgs,
    /// The method
    #[arg(long, value_enum, default_value = "throughput")]
    method: MethodWord,
    /// Sizes of the frames in bytes, FCS included
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "64,128,256,512,1024,1280,1518"
    )]
    sizes: Vec<usize>,
    /// The headers of the frames, from the outside in
    #[arg(long, value_name = "STACK", default_value = "eth/ipv4/udp")]
    packet: String,
    /// The port that sends
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    from: usize,
    /// The port at which the frames come back
    #[arg(long, value_name = "PORT", default_value_t = 1)]
    to: usize,
    /// Duration of a trial in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = some_time)]
    trial: f64,
    /// Frames that come later than this after the end of a trial count as lost, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = time)]
    grace: Duration,
    /// A search ends when its bounds are so near, in per cent
    #[arg(long, value_name = "PERCENT", default_value = "0.5", value_parser = precision)]
    precision: f64,
    /// Load of --method latency and reset in per cent of the line [default: the throughput,
    /// searched first]
    #[arg(long, value_name = "PERCENT", value_parser = load)]
    load: Option<f64>,
    /// Trials or repeats of latency, back-to-back and recovery
    #[arg(long, value_name = "COUNT", default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repeats: u32,
    /// Command for the shell that resets the device, after a quarter of the trial [default: the
    /// operator, when asked to]
    #[arg(long, value_name = "COMMAND")]
    reset_command: Option<String>,
    /// Send no learning frames
    #[arg(long)]
    no_learning: bool,
    /// One JSON object for each size
    #[arg(long)]
    json: bool,
}

/// A part of the line, in per cent.
fn load(text: &str) -> Result<f64, String> {
    let is_allowed = |percent: &f64| *percent > 0.0 && *percent <= 100.0;
    decimal_where(text, is_allowed, "per cent of the line, above 0 and up to 100")
}

/// The least precision that a search has, in per cent.
fn precision(text: &str) -> Result<f64, String> {
    let is_allowed = |percent: &f64| (1e-4..100.0).contains(percent);
    decimal_where(text, is_allowed, "per cent, from 0.0001 to below 100")
}

/// A measurer that reports each trial on standard error.
struct ReportingMeasurer<M> {
    inner: M,
}

impl<M: Measurer> Measurer for ReportingMeasurer<M> {
    type Error = M::Error;

    fn run(&mut self, phases: &[TrialInput]) -> Result<Vec<TrialOutput>, M::Error> {
        let outputs = self.inner.run(phases)?;
        for output in &outputs {
            let row = output.row();
            print_line(format_args!(
                "{} B, {:.0} packets/s for {:.3} s: {} sent, {} arrived, loss {:.4} %{}",
                output.input.frame_size,
                row.rate_pps,
                row.duration_s,
                row.sent - row.unsent,
                row.in_time,
                100.0 * output.loss_ratio(),
                tester_text(&row),
            ));
        }
        Ok(outputs)
    }
}

/// The answer for one frame size: text for people, and the value for programs.
struct MethodAnswer {
    text: String,
    value: Value,
}

impl Rfc2544Args {
    /// Measures and prints.
    ///
    /// # Errors
    /// Ports that cannot be opened, trials that cannot be performed, standard output.
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .context("signals cannot be caught")?;
        }
        let (mut session, _metrics) = self.ports.open()?;
        let count = session.port_count();
        if let Some(port) = [self.from, self.to].into_iter().find(|port| *port >= count) {
            let why = format!("port {port}: there are {count} ports, from 0 on");
            return Err(UsageError(format!("{why}; --from and --to name two")).into());
        }
        let line_bps = session.line_rate_bps(self.from);
        let stream = StreamSpec { packet: self.packet.clone(), ..StreamSpec::default() };
        self.check_sizes(&mut session, &stream)?;
        if self.method == MethodWord::Latency {
            session.measure_floor(&|| !stop.load(Ordering::Relaxed));
        }
        let floor = session.floor();
        // A device that resets often takes the link down.
        let outlasts = self.method == MethodWord::Reset;
        session.outlast_down(&[self.from], outlasts).map_err(session_error)?;
        let (from, to, is_learning) = (self.from, self.to, !self.no_learning);
        let session = &mut session;
        let mut measurer = ReportingMeasurer {
            inner: SessionMeasurer {
                session,
                from,
                to,
                stream,
                is_learning,
                quiet: QUIET,
                stop: &stop,
            },
        };
        for size in &self.sizes {
            let line_pps = line_bps / (8 * (size + LAYER_1_OVERHEAD as usize)) as f64;
            let answer = match self.measure(&mut measurer, (*size, line_pps), floor.as_ref(), &stop)
            {
                Ok(answer) => answer,
                Err(_) if stop.load(Ordering::Relaxed) => {
                    return Ok(ExitCode::from(EXIT_INTERRUPTED));
                }
                Err(error) => return Err(error).with_context(|| format!("frames of {size} bytes")),
            };
            self.print(*size, line_pps, floor.as_ref(), answer)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Whether frames of all sizes can be sent, before the first trial of the first.
    fn check_sizes(&self, session: &mut Session, stream: &StreamSpec) -> Result<(), UsageError> {
        for size in &self.sizes {
            let wrong = |why: String| UsageError(format!("--sizes {size}: {why}"));
            let bytes = u32::try_from(*size).unwrap_or(u32::MAX);
            let spec = StreamSpec { size: FrameSize::Fixed(bytes), ..stream.clone() };
            session.load(self.from, &[spec]).map_err(|error| match error.field.as_str() {
                "packet" => UsageError(format!("--packet {}: {}", self.packet, error.reason)),
                _ => wrong(error.reason),
            })?;
            let mut streams = session.statistics().streams.into_iter();
            let own = streams.find(|stream| stream.port == self.from && stream.lost.is_none());
            if let Some(stream) = own {
                let least = stream.probe_size;
                return Err(wrong(format!("no room for a sequence number; {least} bytes have")));
            }
        }
        Ok(())
    }

    fn print(
        &self,
        size: usize,
        line_pps: f64,
        floor: Option<&DelayFloor>,
        answer: MethodAnswer,
    ) -> std::io::Result<()> {
        let mut out = files::stdout();
        if self.json {
            let method = self.method.to_possible_value();
            let value = json!({
                "method": method.as_ref().map(|word| word.get_name()),
                "frame_size": size,
                "line_pps": line_pps,
                "floor": floor,
                "result": answer.value,
            });
            return writeln!(out, "{value}");
        }
        writeln!(out, "{size:>5} B  {}", answer.text)
    }

    fn measure<M: Measurer<Error = PortTrialError>>(
        &self,
        measurer: &mut M,
        (frame_size, line_pps): (usize, f64),
        floor: Option<&DelayFloor>,
        stop: &AtomicBool,
    ) -> Result<MethodAnswer, MethodError<PortTrialError>> {
        match self.method {
            MethodWord::Throughput => {
                let found = self.throughput(measurer, frame_size, line_pps)?;
                let text = format!("throughput {}", rate_text(&found.rate_pps, line_pps));
                let text = text + limits(found.is_at_max, found.is_tester_limited);
                Ok(MethodAnswer { text, value: json!(found) })
            }
            MethodWord::Loss => self.loss(measurer, frame_size, line_pps),
            MethodWord::BackToBack => self.back_to_back(measurer, frame_size, line_pps),
            MethodWord::Latency => self.latency(measurer, (frame_size, line_pps), floor),
            MethodWord::Recovery => self.recovery(measurer, frame_size, line_pps),
            MethodWord::Ndr => self.search(measurer, frame_size, line_pps, SearchGoal::ndr()),
            MethodWord::Pdr => self.search(measurer, frame_size, line_pps, SearchGoal::pdr()),
            MethodWord::Reset => {
                let rate_pps = self.rate_pps(measurer, frame_size, line_pps)?;
                let (duration_s, grace_s) = (self.trial, self.grace.as_secs_f64());
                let input = TrialInput { frame_size, rate_pps, duration_s, grace_s };
                reset::measure(measurer, input, self.reset_command.as_deref(), stop)
            }
        }
    }

    fn throughput<M: Measurer<Error = PortTrialError>>(
        &self,
        measurer: &mut M,
        frame_size: usize,
        line_pps: f64,
    ) -> Result<ThroughputReport, MethodError<PortTrialError>> {
        let options = ThroughputOptions {
            trial_s: self.trial,
            grace_s: self.grace.as_secs_f64(),
            precision: self.precision / 100.0,
            ..ThroughputOptions::new(frame_size, line_pps)
        };
        throughput(measurer, &options)
    }

    fn loss<M: Measurer<Error = PortTrialError>>(
        &self,
        measurer: &mut M,
        frame_size: usize,
        line_pps: f64,
    ) -> Result<MethodAnswer, MethodError<PortTrialError>> {
        let (step, trial_s) = (0.1, self.trial);
        let options = FrameLossOptions { frame_size, max_pps: line_pps, step, trial_s };
        let found = frame_loss(measurer, &options)?;
        let points = found.iter().map(|point| {
            let loss = point.loss_ratio.scaled(100.0);
            let load = 100.0 * point.load;
            let tester = if point.is_tester_limited { TESTER_LIMITED } else { "" };
            let (value, low, high) = (loss.value, loss.low, loss.high);
            format!("{load:.0} %: {value:.3} % ({low:.3} to {high:.3}){tester}")
        });
        let text = format!("loss at a load of {}", points.collect::<Vec<_>>().join(", "));
        Ok(MethodAnswer { text, value: json!(found) })
    }

    fn back_to_back<M: Measurer<Error = PortTrialError>>(
        &self,
        measurer: &mut M,
        frame_size: usize,
        line_pps: f64,
    ) -> Result<MethodAnswer, MethodError<PortTrialError>> {
        let longest = ((line_pps * self.trial) as u64).max(2);
        let options = BackToBackOptions {
            frame_size,
            line_pps,
            longest,
            resolution: ((longest as f64 * self.precision / 100.0) as u64).max(1),
            repeats: self.repeats,
            throughput_pps: None,
        };
        let found = back_to_back(measurer, &options)?;
        let text = format!(
            "longest burst {:.0} frames {}, {:.6} s of the line's rate{}",
            found.burst.value,
            ends(&found.burst, 0),
            found.implied_buffer_s.value,
            match (found.is_at_longest, found.is_tester_limited) {
                (true, false) => "; the device can take more",
                (true | false, true) => TESTER_LIMITED,
                (false, false) => "",
            },
        );
        Ok(MethodAnswer { text, value: json!(found) })
    }

    fn latency<M: Measurer<Error = PortTrialError>>(
        &self,
        measurer: &mut M,
        (frame_size, line_pps): (usize, f64),
        floor: Option<&DelayFloor>,
    ) -> Result<MethodAnswer, MethodError<PortTrialError>> {
        let rate_pps = self.rate_pps(measurer, frame_size, line_pps)?;
        let (trial_s, trials) = (self.trial, self.repeats);
        let found = latency(measurer, &LatencyOptions { frame_size, rate_pps, trial_s, trials })?;
        let Some(found) = found else {
            return Err(MethodError::Options("no frame arrived: there is no latency"));
        };
        let us = |estimate: &Estimate| {
            let us = estimate.scaled(1e-3);
            format!("{:.2} us {}", us.value, ends(&us, 2))
        };
        let p99 = found.p99_ns.as_ref().map(us).unwrap_or_else(|| "unknown, too few frames".into());
        let text = format!(
            "latency at {rate_pps:.0} packets/s: mean {}, p99 {p99}, jitter {}, loss {:.4} %",
            us(&found.mean_ns),
            us(&found.jitter_ns),
            100.0 * found.loss_ratio,
        ) + limits(false, found.is_tester_limited);
        let text = text + &floor_text(&found.mean_ns, floor);
        Ok(MethodAnswer { text, value: json!(found) })
    }

    /// The load of methods that have one.
    fn rate_pps<M: Measurer<Error = PortTrialError>>(
        &self,
        measurer: &mut M,
        frame_size: usize,
        line_pps: f64,
    ) -> Result<f64, MethodError<PortTrialError>> {
        let rate_pps = match self.load {
            Some(percent) => line_pps * percent / 100.0,
            None => self.throughput(measurer, frame_size, line_pps)?.rate_pps.value,
        };
        if rate_pps > 0.0 {
            return Ok(rate_pps);
        }
        Err(MethodError::Options("no load passes without loss: give one by --load"))
    }

    fn recovery<M: Measurer<Error = PortTrialError>>(
        &self,
        measurer: &mut M,
        frame_size: usize,
        line_pps: f64,
    ) -> Result<MethodAnswer, MethodError<PortTrialError>> {
        let throughput_pps = self.throughput(measurer, frame_size, line_pps)?.rate_pps.value;
        if throughput_pps <= 0.0 {
            return Err(MethodError::Options("no load passes without loss"));
        }
        let options = RecoveryOptions {
            frame_size,
            throughput_pps,
            // RFC 2544: 110 % of the throughput, or the line's rate where that is less.
            overload: (line_pps / throughput_pps).min(1.1),
            reduced: 0.5,
            overload_s: self.trial,
            reduced_s: self.trial,
            repeats: self.repeats,
        };
        let found = recovery(measurer, &options)?;
        let ms = found.recovery_s.scaled(1e3);
        let text = format!(
            "recovery {:.3} ms {} after an overload with {:.3} % of loss{}",
            ms.value,
            ends(&ms, 3),
            100.0 * found.overload_loss_ratio,
            if found.is_unfinished { "; not over at the end of a trial" } else { "" },
        ) + limits(false, found.is_tester_limited);
        Ok(MethodAnswer { text, value: json!(found) })
    }

    fn search<M: Measurer<Error = PortTrialError>>(
        &self,
        measurer: &mut M,
        frame_size: usize,
        line_pps: f64,
        goal: SearchGoal,
    ) -> Result<MethodAnswer, MethodError<PortTrialError>> {
        let goal = SearchGoal { relative_width: self.precision / 100.0, ..goal };
        // A goal has trials of one second, 21 of them: together about one trial of RFC 2544.
        let goals = vec![goal.with_durations_times(self.trial / goal.duration_sum_s)];
        let options = MlrsearchOptions {
            goals,
            grace_s: self.grace.as_secs_f64(),
            ..MlrsearchOptions::ndr_pdr(frame_size, line_pps)
        };
        let found = mlrsearch(measurer, &options)?;
        let Some(result) = found.results.first() else { return Err(MethodError::NoOutput) };
        let text = format!(
            "rate with a loss of at most {} %: {}",
            100.0 * goal.loss_ratio,
            rate_text(&result.rate_pps, line_pps)
        );
        let text = text + limits(result.upper_bound_pps.is_none(), found.is_tester_limited);
        Ok(MethodAnswer { text, value: json!(found) })
    }
}

/// The interval in brackets; a single sample has none.
fn ends(estimate: &Estimate, decimals: usize) -> String {
    let Estimate { low, high, .. } = *estimate;
    if low.is_finite() && high.is_finite() {
        format!("({low:.decimals$} to {high:.decimals$})")
    } else {
        "(one sample, no interval)".to_owned()
    }
}

/// Frames that the tester did not send, or not in time.
fn tester_text(row: &TrialRow) -> String {
    let count =
        |count: u64, what| if count > 0 { format!(", {count} {what}") } else { String::new() };
    count(row.unsent, "not sent") + &count(row.sent_late, "sent late")
}

/// The delay that the tester itself adds, and whether that is all that was found.
fn floor_text(mean_ns: &Estimate, floor: Option<&DelayFloor>) -> String {
    let Some(floor) = floor else { return String::new() };
    let DelayFloor { p50_ns, resolution_ns, .. } = floor;
    let below = if floor.is_above(mean_ns.value) { "; the mean is below the floor" } else { "" };
    format!("; own floor {:.2} us, resolution {resolution_ns:.0} ns{below}", p50_ns / 1e3)
}

/// A rate with its interval, which has no upper end at the line's rate.
fn rate_text(rate: &Estimate, line_pps: f64) -> String {
    format!(
        "{:.0} packets/s ({:.0} to {:.0}), {:.2} % of the line",
        rate.value,
        rate.low,
        rate.high.min(line_pps),
        100.0 * rate.value / line_pps,
    )
}

/// The limits of a rate.
fn limits(is_at_max: bool, is_tester_limited: bool) -> &'static str {
    match (is_at_max, is_tester_limited) {
        (true, false) => "; the device can do more",
        (true | false, true) => TESTER_LIMITED,
        (false, false) => "",
    }
}

#[cfg(test)]
mod tests {
    use generator::method::Estimate;

    use super::{ends, limits, load, precision};

    #[test]
    fn an_interval_without_ends_is_written_in_words() {
        let one = Estimate::of_mean(&[7.0]).unwrap();
        assert_eq!(ends(&one, 2), "(one sample, no interval)");
        assert_eq!(ends(&Estimate { value: 1.0, low: 0.5, high: 2.0 }, 1), "(0.5 to 2.0)");
    }

    #[test]
    fn loads_and_precisions_are_shares() {
        assert_eq!((load("100"), precision("0.5")), (Ok(100.0), Ok(0.5)));
        for text in ["0", "-1", "nan", "101", "x"] {
            assert!(load(text).is_err() && precision(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_of_the_tester_is_never_shown_as_the_devices() {
        assert_eq!(limits(false, false), "");
        assert_eq!(limits(true, false), "; the device can do more");
        for is_at_max in [false, true] {
            assert_eq!(limits(is_at_max, true), "; limited by the tester");
        }
    }
}
