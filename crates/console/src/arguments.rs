//! The arguments of `weir gen`, and what it does with them.
//!
//! Without a subcommand it is the console. All subcommands open their ports by [`PortArgs`].

use std::io::{IsTerminal, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use generator::file_conflicts::FileUse;
use generator::session::{Session, SessionError, SessionOptions};
use netdev::{Port, PortError, PortSpec};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::capture::CaptureArgs;
use crate::console::Console;
use crate::file_conflicts::{files_of, files_with_input};
use crate::flood::FloodArgs;
use crate::line_rate::LineRate;
use crate::load::usage;
use crate::ping::PingArgs;
use crate::plain::{self, PlainEnd};
use crate::rfc2544::Rfc2544Args;
use crate::run::ProfileRunArgs;
use crate::runner::{Next, Runner};
use crate::serve::ServeArgs;
use crate::terminal;

/// Exit code of wrong usage, a wrong profile included.
pub(crate) const EXIT_USAGE: u8 = 2;

/// Exit code after a signal, as shells report SIGINT.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// Shown at the end of the help.
pub const EXAMPLES: &str = "\
Examples:
  weir gen --port af_packet:veth0 --port af_packet:veth1 --line-rate 10G
  weir gen --port tap:left --port tap:right --file range.pkt
  weir gen --port null:a --port null:b < session.txt";

/// Generate traffic.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct GenArgs {
    #[command(subcommand)]
    command: Option<GenCommand>,
    #[command(flatten)]
    console: ConsoleArgs,
}

#[derive(Subcommand, Debug)]
enum GenCommand {
    /// Type commands: the words of Pktgen (also without a subcommand)
    Console(ConsoleArgs),
    /// Send the streams of a profile and report what became of them
    Run(ProfileRunArgs),
    /// Send one stream from each port, as fast as the port takes it
    Flood(FloodArgs),
    /// Ask for echoes through a port, as ping does
    Ping(PingArgs),
    /// Write the frames that arrive at a port into a capture file
    Capture(CaptureArgs),
    /// Put the generator on a control socket, for scripts
    Serve(ServeArgs),
    /// Measure a device between two ports: throughput, loss, latency, NDR, PDR
    Rfc2544(Rfc2544Args),
}

/// The ports that a subcommand uses.
#[derive(Args, Clone, Debug)]
pub(crate) struct PortArgs {
    /// A port; the first one is port 0, and so on
    #[arg(long, value_name = "KIND:NAME")]
    port: Vec<PortSpec>,
    /// Rate of a line, of which rates in percent are parts [default: what the port says, 10G where
    /// it does not know]
    #[arg(long, value_name = "RATE")]
    line_rate: Option<LineRate>,
    /// The cores of the threads: those that send by port, then those that receive by port
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    cores: Vec<usize>,
    /// Most frames that are handed to a port at once
    #[arg(long, value_name = "FRAMES", default_value_t = 64,
        value_parser = clap::value_parser!(u8).range(1..=64))]
    burst: u8,
    /// An address that a port claims, so that ARP and echo requests for it are answered; repeatable
    #[arg(long = "address", value_name = "PORT=ADDRESS", value_parser = claim)]
    claims: Vec<(usize, IpAddr)>,
}

/// The arguments make no sense: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// An error of the session, as one of usage where it is one.
pub(crate) fn session_error(error: SessionError) -> anyhow::Error {
    match error {
        SessionError::Option(_)
        | SessionError::Profile(_)
        | SessionError::NoPort { .. }
        | SessionError::Overlap(_)
        | SessionError::Port(PortError::Spec(_)) => UsageError(error.to_string()).into(),
        SessionError::Port(_)
        | SessionError::NoStreams(_)
        | SessionError::Down { .. }
        // Its text has that of its source, which would be printed twice.
        | SessionError::Thread { .. } => anyhow::Error::msg(error.to_string()),
    }
}

/// Opens one port.
///
/// # Errors
/// As [`PortArgs::open`].
pub(crate) fn open_port(spec: &PortSpec) -> anyhow::Result<Port> {
    netdev::open(spec).map_err(|error| session_error(error.into()))
}

/// The longest time that is taken, in seconds: a hundred years.
const TIME_MAX_S: f64 = 100.0 * 365.25 * 86_400.0;

/// A number of seconds, 0 or more.
fn seconds(text: &str) -> Result<f64, String> {
    let read = text.parse().ok().filter(|seconds| (0.0..=TIME_MAX_S).contains(seconds));
    read.ok_or_else(|| "a number of seconds, 0 or more".to_owned())
}

/// A time, 0 or more.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    seconds(text).map(Duration::from_secs_f64)
}

/// A number of seconds above 0.
pub(crate) fn some_time(text: &str) -> Result<f64, String> {
    let read = seconds(text).ok().filter(|seconds| *seconds > 0.0);
    read.ok_or_else(|| "a number of seconds above 0".to_owned())
}

/// A port's index and an address.
fn claim(text: &str) -> Result<(usize, IpAddr), String> {
    let parts = text.split_once('=');
    let read = parts.and_then(|(port, address)| Some((port.parse().ok()?, address.parse().ok()?)));
    read.ok_or_else(|| format!("{text:?} is none: write PORT=ADDRESS, for example 0=10.0.0.1"))
}

impl PortArgs {
    /// The ports as they were named, in order.
    pub(crate) fn specs(&self) -> &[PortSpec] {
        &self.port
    }

    /// Opens the ports.
    ///
    /// # Errors
    /// [`UsageError`] where there is none, an option is wrong or two of them have one file; one
    /// that cannot be opened.
    pub(crate) fn open(&self) -> anyhow::Result<Session> {
        if self.port.is_empty() {
            let why = "no port: name one or more with --port KIND:NAME, such as af_packet:eth0";
            return Err(UsageError(why.to_owned()).into());
        }
        files_of(&self.port)?;
        let options = SessionOptions {
            line_rate_bps: self
                .line_rate
                .map_or_else(Vec::new, |rate| vec![rate.bps(); self.port.len()]),
            cores: self.cores.clone(),
            claims: self.claims.clone(),
            burst: self.burst.into(),
            ..SessionOptions::default()
        };
        Session::open(&self.port, options).map_err(session_error)
    }
}

#[derive(Args, Debug)]
struct ConsoleArgs {
    #[command(flatten)]
    ports: PortArgs,
    /// Commands to carry out first, if all of them are right; may be given several times
    #[arg(long, short, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Lines in, lines out, on a terminal too
    #[arg(long)]
    plain: bool,
}

/// Does what the arguments say.
///
/// # Errors
/// When ports cannot be opened, a script is wrong or the terminal cannot be used.
pub fn run(arguments: &GenArgs) -> anyhow::Result<ExitCode> {
    match carry_out(arguments) {
        Err(error) if error.is::<UsageError>() => Ok(usage(&format!("{error:#}"))),
        outcome => outcome,
    }
}

fn carry_out(arguments: &GenArgs) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        None => arguments.console.run(),
        Some(GenCommand::Console(console)) => console.run(),
        Some(GenCommand::Run(run)) => run.run(),
        Some(GenCommand::Flood(flood)) => flood.run(),
        Some(GenCommand::Ping(ping)) => ping.run(),
        Some(GenCommand::Capture(capture)) => capture.run(),
        Some(GenCommand::Serve(serve)) => serve.run(),
        Some(GenCommand::Rfc2544(rfc2544)) => rfc2544.run(),
    }
}

impl ConsoleArgs {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let is_interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&is_interrupted))
                .context("signals cannot be caught")?;
        }
        let mut files = files_with_input(self.ports.specs())?;
        for file in &self.file {
            let name = format!("script {}", file.display());
            files.add(&name, file, FileUse::Read).map_err(UsageError::from)?;
        }
        let runner = Runner::new(Console::new(self.ports.open()?), is_interrupted);
        let out = &mut std::io::stdout();
        if let Some(ended) = self.scripts(&runner, out)? {
            return Ok(ended);
        }
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        if is_terminal && !is_dumb && !self.plain {
            terminal::run(&runner)?;
            return Ok(ExitCode::SUCCESS);
        }
        Ok(match plain::run(&runner, out)? {
            PlainEnd::Done => ExitCode::SUCCESS,
            PlainEnd::Errors => ExitCode::FAILURE,
            PlainEnd::Interrupted => ExitCode::from(EXIT_INTERRUPTED),
        })
    }

    /// Carries the scripts out; the exit code where the console ends with them.
    fn scripts(&self, runner: &Runner, out: &mut dyn Write) -> anyhow::Result<Option<ExitCode>> {
        for file in &self.file {
            let commands = runner.console().read_script(file).map_err(anyhow::Error::msg)?;
            let mut output = plain::PlainOutput::new(out);
            let (next, is_right) = runner.commands(commands, &mut output);
            let ended = match (next, is_right) {
                (Next::More, true) => {
                    output.written()?;
                    continue;
                }
                (Next::More, false) => ExitCode::FAILURE,
                (Next::Quit, _) => ExitCode::SUCCESS,
                (Next::Interrupted, _) => ExitCode::from(EXIT_INTERRUPTED),
            };
            plain::finish(runner, &mut output);
            output.written()?;
            return Ok(Some(ended));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::{CommandFactory, Parser};

    use super::{EXAMPLES, GenArgs, some_time, time};

    #[test]
    fn a_time_that_is_no_number_is_refused() {
        assert_eq!(time("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!((time("0"), some_time("1e-3")), (Ok(Duration::ZERO), Ok(0.001)));
        for text in ["nan", "-nan", "inf", "-1", "1e300", "x", ""] {
            assert!(time(text).is_err() && some_time(text).is_err(), "{text}");
        }
        assert!(some_time("0").is_err());
    }

    #[derive(Parser)]
    struct Parsed {
        #[command(flatten)]
        arguments: GenArgs,
    }

    #[test]
    fn examples_of_the_help_are_taken() {
        Parsed::command().debug_assert();
        let mut texts = vec![EXAMPLES.to_owned()];
        for command in Parsed::command().get_subcommands() {
            texts.extend(command.get_after_help().map(ToString::to_string));
        }
        let joined = texts.join("\n").replace("\\\n", " ");
        let calls: Vec<&str> =
            joined.lines().filter_map(|line| line.trim().strip_prefix("weir ")).collect();
        assert!(calls.len() > 10, "{calls:?}");
        for call in calls {
            // The words after these are the shell's.
            let words = call.split_whitespace().take_while(|word| !["|", "<"].contains(word));
            let words = words.map(|word| word.trim_matches('\''));
            if let Err(error) = Parsed::try_parse_from(words) {
                panic!("weir {call}: {error}");
            }
        }
    }
}
