//! The arguments that all commands share, and the way from them to an exit code.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::address::SwitchAddress;
use super::commands::{Command, help_template};
use super::context::{CommandContext, Out};
use super::failure::Failure;
use super::ovs_ofctl::CtlTip;

/// Arguments of `weir ctl`.
#[derive(Args, Clone, Debug)]
#[command(help_template = help_template())]
pub struct CtlArgs {
    #[command(flatten)]
    pub(super) place: SwitchAddress,

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

/// Asks the switch and prints its answer on `out`, which may be a terminal, errors on `err`; with
/// the tip where its word is not understood.
pub fn run(
    args: &CtlArgs,
    tip: Option<&CtlTip>,
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
        let _ = writeln!(err, "weir ctl: {}", files::printable(message));
        let is_about = |tip: &&CtlTip| {
            matches!(failure, Failure::NotUnderstood(_)) && message.contains(&tip.word)
        };
        if let Some(tip) = tip.filter(is_about) {
            let _ = writeln!(err, "tip: {}", files::printable(&tip.text));
        }
    }
    failure.exit_code()
}

/// Within the time that is given; what was printed until then is printed.
async fn limited<'a>(args: &'a CtlArgs, out: Out<'a>) -> Result<(), Failure> {
    let mut context = CommandContext::new(&args.place, out);
    let command = args.command.clone().execute(&mut context);
    let outcome = match args.timeout {
        None => command.await,
        Some(seconds) => tokio::time::timeout(Duration::from_secs(seconds), command)
            .await
            .unwrap_or(Err(Failure::TimedOut)),
    };
    context.end().await;
    context.out.flush()?;
    outcome
}
