//! Opening files and devices while the switch runs, on a thread for each that is under way.
//!
//! Opening a FIFO waits for its writer, and a file system of the network may wait for ever. When
//! its time is over the thread is left alone: neither controllers nor the end of the switch wait
//! for it. Other changes of ports and bridges wait while a device or a key is opened, and not while
//! the configuration file is.

use std::cell::RefCell;
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
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
    /// The thread that has opened something last, which waits for more.
    static IDLE: RefCell<Option<SyncSender<Job>>> = const { RefCell::new(None) };
}

/// A thread that waits for more to open ends after this time. The kernel lets a new thread wait
/// for those that run, and one that is woken not: `ovs-vsctl add-port` waits for it.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// Something to open.
type Job = Box<dyn FnOnce() + Send>;

/// Runs a job on the thread that waits for one, or on a new one.
fn run(job: Job) -> io::Result<()> {
    let job = match IDLE.take() {
        // No room where it is at work, no receiver where it has ended.
        Some(idle) => match idle.try_send(job) {
            Ok(()) => {
                IDLE.set(Some(idle));
                return Ok(());
            }
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => job,
        },
        None => job,
    };
    let (jobs, for_thread) = sync_channel(0);
    let work = move || run_jobs(job, &for_thread);
    Builder::new().name("opening".to_owned()).spawn(work)?;
    IDLE.set(Some(jobs));
    Ok(())
}

/// Runs a job, and those that come until none does.
fn run_jobs(first: Job, jobs: &Receiver<Job>) {
    let mut job = Some(first);
    while let Some(open) = job {
        open();
        job = jobs.recv_timeout(IDLE_MAX).ok();
    }
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
    let started = run(Box::new(move || {
        let opened = open();
        drop(under_way);
        // Nobody may wait any more.
        drop(done.send(opened));
    }));
    started.map_err(|error| format!("{what}: starting a thread to open it: {error}"))?;
    match tokio::time::timeout(time_max, is_done).await {
        Ok(opened) => opened.map_err(|_| format!("{what}: opening it has failed; see the log")),
        Err(_) => Err(format!(
            "{what}: not opened within {} s; is it a pipe without a writer, or on a file system \
             that hangs?",
            time_max.as_secs()
        )),
    }
}
