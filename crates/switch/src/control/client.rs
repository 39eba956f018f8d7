//! `weir ctl`: sends one command to a running switch and prints the answer.
//!
//! Exit codes: 0 done, 1 refused or not reached, 2 wrong usage (by `clap`).

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::{Command, Line, Request};
use crate::config::default_control;

/// How long a switch may be silent before it is given up.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// What `weir ctl` takes.
#[derive(Args, Clone, Debug)]
pub struct CtlArgs {
    /// The switch's control socket [default: /run/weir/switch.sock for root, else
    /// $XDG_RUNTIME_DIR/weir/switch.sock]
    #[arg(long, value_name = "PATH", global = true)]
    pub control: Option<PathBuf>,

    /// Print one JSON value a line
    #[arg(long, global = true)]
    pub json: bool,

    /// What to ask
    #[command(subcommand)]
    pub command: Command,
}

/// Asks the switch and prints its answer on `out`, errors on `err`.
pub fn run(args: &CtlArgs, out: &mut dyn Write, err: &mut dyn Write) -> ExitCode {
    match ask(args, out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Pipe) => ExitCode::from(1),
        Err(Failure::Told(message)) => {
            // Where even the error stream is closed, the exit code is what is left to say.
            let _ = writeln!(err, "weir ctl: {message}");
            ExitCode::from(1)
        }
    }
}

enum Failure {
    /// The reader of our output has gone: nothing to tell.
    Pipe,
    Told(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Pipe,
            _ => Self::Told(error.to_string()),
        }
    }
}

/// What to do where the control socket cannot be reached.
fn what_helps(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied => "run as the user whose switch it is, or as root",
        _ => "start weir switch, or name the socket of another by --control",
    }
}

fn ask(args: &CtlArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let path = args.control.clone().unwrap_or_else(default_control);
    let told = |what: &str, error: &dyn std::fmt::Display| {
        Failure::Told(format!("{what} {}: {error}", path.display()))
    };
    let mut stream = UnixStream::connect(&path).map_err(|error| {
        let told = format!("no switch answers on the control socket {}: {error}", path.display());
        Failure::Told(format!("{told}; {}", what_helps(error.kind())))
    })?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    let request = Request { json: args.json, command: args.command.clone() };
    let mut line = serde_json::to_vec(&request).map_err(|error| told("asking", &error))?;
    line.push(b'\n');
    // A switch that refuses the connection says why without having read what is asked.
    let asked = stream.write_all(&line);
    let mut lines = BufReader::new(stream);
    let mut text = Vec::new();
    loop {
        text.clear();
        let count =
            lines.read_until(b'\n', &mut text).map_err(|error| told("reading from", &error))?;
        if count == 0 {
            asked.map_err(|error| told("asking", &error))?;
            return Err(Failure::Told("the switch ended the connection".to_owned()));
        }
        match serde_json::from_slice(&text).map_err(|error| told("answer of", &error))? {
            Line::Text(text) => writeln!(out, "{text}")?,
            Line::Value(value) => writeln!(out, "{value}")?,
            Line::Done => return Ok(out.flush()?),
            Line::Refused(why) => return Err(Failure::Told(why)),
        }
    }
}
