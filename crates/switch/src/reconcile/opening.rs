//! Opening files and devices while the switch runs, on a thread for each.
//!
//! Opening a FIFO waits for its writer, and a file system of the network may wait for ever. When
//! its time is over the thread is left alone: neither controllers nor the end of the switch wait
//! for it. Other changes of ports and bridges wait while a device or a key is opened, and not while
//! the configuration file is.

use std::fmt::Display;
use std::sync::Arc;
use std::thread::{Builder, LocalKey};
use std::time::Duration;

use tokio::sync::oneshot;

/// The limits of opening a kind of thing.
pub(crate) struct OpeningLimits {
    /// The time that it may take. `weir ctl` waits 5 s for an answer.
    time_max: Duration,
    /// The number of threads that may be under way.
    threads_max: usize,
    under_way: &'static LocalKey<Arc<()>>,
}

thread_local! {
    /// Each thread that is under way has one of it.
    static CONFIGS: Arc<()> = Arc::default();
    static KEYS: Arc<()> = Arc::default();
    static DEVICES: Arc<()> = Arc::default();
}

/// The configuration file. Two readers of one FIFO would take each other's lines.
pub(crate) const CONFIG: OpeningLimits =
    OpeningLimits { time_max: Duration::from_secs(3), threads_max: 1, under_way: &CONFIGS };

/// Keys and certificates.
pub(crate) const KEY: OpeningLimits =
    OpeningLimits { time_max: Duration::from_secs(3), threads_max: 4, under_way: &KEYS };

/// A port's device, or its file.
pub(crate) const DEVICE: OpeningLimits =
    OpeningLimits { time_max: Duration::from_secs(30), threads_max: 8, under_way: &DEVICES };

/// Runs a function that opens `what` and may hang, within these limits.
///
/// # Errors
/// It is not done in time, it has panicked, or others hang already.
pub(crate) async fn open_within<T: Send + 'static>(
    OpeningLimits { time_max, threads_max, under_way }: OpeningLimits,
    what: impl Display,
    open: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let under_way = under_way.with(Arc::clone);
    // One is of the agent's thread, one is ours.
    if Arc::strong_count(&under_way) - 2 >= threads_max {
        return Err(format!(
            "{what}: an earlier attempt to open it still hangs; write to the pipe, or start the \
             switch anew if it is gone"
        ));
    }
    let (done, is_done) = oneshot::channel();
    let thread = Builder::new().name("opening".to_owned()).spawn(move || {
        let opened = open();
        drop(under_way);
        // Nobody may wait any more.
        drop(done.send(opened));
    });
    thread.map_err(|error| format!("{what}: starting a thread to open it: {error}"))?;
    match tokio::time::timeout(time_max, is_done).await {
        Ok(opened) => opened.map_err(|_| format!("{what}: opening it has failed; see the log")),
        Err(_) => Err(format!(
            "{what}: not opened within {} s; is it a pipe without a writer, or on a file system \
             that hangs?",
            time_max.as_secs()
        )),
    }
}
