//! The arguments that all commands share, and the way from them to an exit code.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use channel::Endpoint;
use clap::Args;
use openflow::Version;

use super::asking::{Asking, Out};
use super::commands::Command;
use super::failure::{EXIT_CODES, Failure};

/// Arguments of `weir ctl`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXIT_CODES)]
pub struct CtlArgs {
    #[command(flatten)]
    pub(super) place: Place,

    /// Print one JSON value a line
    #[arg(long, global = true)]
    json: bool,

    /// Give up after SECS seconds; a switch that says no hello is given up after 5 in any case, and
    /// an answer that does not come after 60
    #[arg(
        long, short = 't', value_name = "SECS", global = true,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    timeout: Option<u64>,

    #[command(subcommand)]
    command: Command,
}

/// Address of the switch, and the way to reach it.
#[derive(Args, Clone, Debug)]
pub(super) struct Place {
    /// The control socket of our switch [default: /run/weir/switch.sock for root, else
    /// $XDG_RUNTIME_DIR/weir/switch.sock]
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "switch")]
    pub(super) control: Option<PathBuf>,

    /// The bridge of our switch that is asked [default: the only one]
    #[arg(long, value_name = "NAME", global = true, conflicts_with = "switch")]
    pub(super) bridge: Option<String>,

    /// Any OpenFlow switch that listens: tcp:HOST:PORT, ssl:HOST:PORT (PORT is 6653 where left
    /// out) or unix:PATH
    #[arg(long, value_name = "ENDPOINT", global = true)]
    pub(super) switch: Option<Endpoint>,

    /// The version to speak, OpenFlow10 or OpenFlow13 [default: the highest of both]
    #[arg(
        long, short = 'O', value_name = "VERSION", global = true, value_delimiter = ',',
        value_parser = version
    )]
    pub(super) protocols: Vec<Version>,

    /// The private key for ssl:
    #[arg(long, value_name = "FILE", global = true, requires = "certificate")]
    pub(super) private_key: Option<PathBuf>,

    /// The certificate of the private key
    #[arg(long, value_name = "FILE", global = true, requires = "ca_cert")]
    pub(super) certificate: Option<PathBuf>,

    /// The CA that signs the switch's certificate
    #[arg(long, value_name = "FILE", global = true, requires = "private_key")]
    pub(super) ca_cert: Option<PathBuf>,
}

fn version(text: &str) -> Result<Version, String> {
    Version::from_name(text)
        .ok_or_else(|| format!("{text:?} is not a version; use OpenFlow10 or OpenFlow13"))
}

/// Asks the switch and prints its answer on `out`, which may be a terminal, errors on `err`.
pub fn run(
    args: &CtlArgs,
    out: &mut dyn Write,
    is_terminal: bool,
    err: &mut dyn Write,
) -> ExitCode {
    let out = Out::new(out, args.json, is_terminal);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(limited(args, out));
            // A question to the control socket that --timeout has ended is not waited for.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(Failure::refused(format!("no event loop: {error}"))),
    };
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    if let Some(message) = failure.message() {
        // Where even the error stream is closed, the exit code is what is left to say.
        let _ = writeln!(err, "weir ctl: {message}");
    }
    failure.exit_code()
}

/// Within the time that is given; what was printed until then is printed.
async fn limited<'a>(args: &'a CtlArgs, out: Out<'a>) -> Result<(), Failure> {
    let mut asking = Asking::new(&args.place, out);
    let command = args.command.clone().run(&mut asking);
    let outcome = match args.timeout {
        None => command.await,
        Some(seconds) => tokio::time::timeout(Duration::from_secs(seconds), command)
            .await
            .unwrap_or(Err(Failure::TimedOut)),
    };
    asking.end().await;
    asking.out.flush()?;
    outcome
}
