//! Logging to standard error, filtered by `--log` or `RUST_LOG`. No thread waits until its line is
//! read (`files::log_line`), and a panic's report is such a line too.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

/// The end of a program waits no longer than this for a reader of its log.
pub(crate) const END_WITHIN: Duration = Duration::from_secs(1);

/// Writes the rest of the log when it is dropped, at the end of the program.
pub(crate) struct Log;

impl Drop for Log {
    fn drop(&mut self) {
        files::flush_log(END_WITHIN);
    }
}

/// Starts logging, until what comes back is dropped.
///
/// # Errors
/// A filter that cannot be read. What stands wrong in `RUST_LOG` is an error too: whoever sets it
/// wants to see something.
pub(crate) fn start(filter: Option<&str>) -> Result<Log, String> {
    let from_environment = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let text = filter.or(from_environment.as_deref()).unwrap_or("info");
    let place = if filter.is_some() { "--log" } else { "RUST_LOG" };
    let filter = EnvFilter::builder().parse(text).map_err(|error| format!("{place}: {error}"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| files::LogWriter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    std::panic::set_hook(Box::new(log_panic));
    Ok(Log)
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let mut text = format!("thread '{}' {panic}", thread.name().unwrap_or("<unnamed>"));
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        text += &format!("\n{trace}");
    }
    files::log_line(&text);
}
