//! Logging to standard error, filtered by `--log` or `RUST_LOG`.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// Starts logging.
///
/// # Errors
/// A filter that cannot be read. What stands wrong in `RUST_LOG` is an error too: whoever sets it
/// wants to see something.
pub(crate) fn start(filter: Option<&str>) -> Result<(), ParseError> {
    let from_environment = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let text = filter.or(from_environment.as_deref()).unwrap_or("info");
    let filter = EnvFilter::builder().parse(text)?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    Ok(())
}
