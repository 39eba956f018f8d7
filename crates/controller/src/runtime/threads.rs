//! The threads of the shards after the first one, and the inboxes of all.
//!
//! A thread whose handler does not return is left behind at the end, with a line in the log; it
//! must never keep the others from ending.

use super::serve::{Context, MigratingConnection, MigrationInboxes};
use super::{Error, StatusWriter};
use crate::app::App;
use crate::blocking::OnShard;
use crate::shared::{INBOX_MAX, Inbox, Shared};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::LocalSet;

/// The threads of all shards but the first.
pub(super) struct ShardThreads {
    stop: watch::Sender<bool>,
    /// One for each thread; it fails when the thread has ended.
    ended: Vec<(usize, oneshot::Receiver<()>)>,
}

/// A shard that is to run: its number, its apps, its inbox, and that for connections.
pub(super) type ShardParts = (usize, ((Vec<Box<dyn App>>, Inbox), Migrants));

/// A shard's end of its inbox for connections.
pub(super) type Migrants = mpsc::Receiver<Box<MigratingConnection>>;

/// The inboxes for connections of all shards, both ends.
pub(super) fn migration_inboxes(shards: usize) -> (MigrationInboxes, Vec<Migrants>) {
    let (senders, receivers): (Vec<_>, _) = (0..shards).map(|_| mpsc::channel(INBOX_MAX)).unzip();
    (senders.into(), receivers)
}

impl ShardThreads {
    pub(super) fn start(
        shards: impl Iterator<Item = ShardParts>,
        shared: &Arc<Shared>,
        report: &StatusWriter,
        started: Instant,
        migration_inboxes: &MigrationInboxes,
    ) -> Result<Self, Error> {
        let (stop, stopped) = watch::channel(false);
        let mut ended = Vec::new();
        for (index, ((apps, inbox), migrants)) in shards {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (shared, report, mut stopped) =
                (Arc::clone(shared), Arc::clone(report), stopped.clone());
            let inboxes = Arc::clone(migration_inboxes);
            let (is_running, has_ended) = oneshot::channel();
            let name = format!("shard {index}");
            std::thread::Builder::new().name(name).spawn(move || {
                let _is_running: oneshot::Sender<()> = is_running;
                let _on_shard = OnShard::mark();
                let tasks = LocalSet::new();
                runtime.block_on(tasks.run_until(async {
                    let context = Context::new(&shared, index, apps, &report, started, &inboxes);
                    let polling = context.clone();
                    tokio::select! {
                        () = polling.poll_busily() => {}
                        () = take_inbox(context.clone(), inbox) => {}
                        () = adopt_migrants(context, migrants) => {}
                        // An error says that the sender has gone, which is the end too.
                        stopped = stopped.wait_for(|stop| *stop) => drop(stopped),
                    }
                }));
            })?;
            ended.push((index, has_ended));
        }
        Ok(Self { stop, ended })
    }

    /// Ends the threads, and waits for them until the deadline; whether all have ended.
    pub(super) async fn end(self, deadline: Duration) -> bool {
        self.stop.send(true).ok();
        let until = tokio::time::Instant::now() + deadline;
        let mut all = true;
        for (index, ended) in self.ended {
            if tokio::time::timeout_at(until, ended).await.is_err() {
                tracing::warn!(shard = index, "a handler of an app does not return; left behind");
                all = false;
            }
        }
        all
    }
}

/// Delivers the events that other threads send to the shard.
pub(super) async fn take_inbox(context: Context, mut inbox: Inbox) {
    while let Some(event) = inbox.recv().await {
        guarded(|| context.shard().deliver_to_all(&event));
    }
}

/// Goes on with the connections that other threads have greeted.
pub(super) async fn adopt_migrants(context: Context, mut migrants: Migrants) {
    while let Some(migrating) = migrants.recv().await {
        context.adopt(*migrating);
    }
}

/// A handler that panics must not end the inbox; the hook of the process has logged where it was.
fn guarded(run: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        tracing::error!("a handler of an app has panicked");
    }
}
