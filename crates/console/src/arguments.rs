//! The arguments of `weir gen`, and what it does with them.
//!
//! Without a subcommand it is the console. All subcommands open their ports by [`PortArgs`].

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use clap::{Args, Subcommand};
use generator::file_conflicts::FileUse;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::capture::CaptureArgs;
use crate::console::Console;
use crate::file_conflicts::files_with_input;
use crate::flood::FloodArgs;
use crate::ping::PingArgs;
use crate::plain::{self, PlainEnd};
use crate::port_args::PortArgs;
use crate::rfc2544::Rfc2544Args;
use crate::run::ProfileRunArgs;
use crate::runner::{Next, Runner};
use crate::serve::ServeArgs;
use crate::terminal;
use crate::usage::{EXIT_INTERRUPTED, UsageError, usage};

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
        let (session, _metrics) = self.ports.open()?;
        let runner = Runner::new(Console::new(session), is_interrupted);
        let out = &mut files::stdout();
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
    use clap::{CommandFactory, Parser};

    use super::{EXAMPLES, GenArgs};

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
