//! The threads of the shards behind the first one, and what each shard is told by others.
//!
//! A thread whose handler does not return is left behind at the end, with a line in the log; it
//! must never keep the others from ending.

use super::serve::Context;
use super::{Error, StatusWriter};
use crate::app::App;
use crate::blocking::OnShard;
use crate::shared::{Inbox, ShardEvent, Shared};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};
use tokio::task::LocalSet;

/// The threads of all shards but the first.
pub(super) struct ShardThreads {
    stop: watch::Sender<bool>,
    /// One for each thread; it fails when the thread has ended.
    ended: Vec<(usize, oneshot::Receiver<()>)>,
}

/// A shard that is to run: its number, its apps, its inbox.
type ShardParts = (usize, (Vec<Box<dyn App>>, Inbox));

impl ShardThreads {
    pub(super) fn start(
        shards: impl Iterator<Item = ShardParts>,
        shared: &Arc<Shared>,
        report: &StatusWriter,
        started: Instant,
    ) -> Result<Self, Error> {
        let (stop, stopped) = watch::channel(false);
        let mut ended = Vec::new();
        for (index, (apps, inbox)) in shards {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (shared, report, mut stopped) =
                (Arc::clone(shared), Arc::clone(report), stopped.clone());
            let (is_running, has_ended) = oneshot::channel();
            let name = format!("shard {index}");
            std::thread::Builder::new().name(name).spawn(move || {
                let _is_running: oneshot::Sender<()> = is_running;
                let _on_shard = OnShard::mark();
                let tasks = LocalSet::new();
                runtime.block_on(tasks.run_until(async {
                    let context = Context::new(&shared, index, apps, &report, started);
                    let polling = context.clone();
                    tokio::select! {
                        () = polling.poll_busily() => {}
                        () = take_inbox(context, inbox) => {}
                        // An error says that the sender has gone, which is the end too.
                        stopped = stopped.wait_for(|stop| *stop) => drop(stopped),
                    }
                }));
            })?;
            ended.push((index, has_ended));
        }
        Ok(Self { stop, ended })
    }

    /// Ends the threads, and waits for them at most so long; whether all have ended.
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

/// Does what other threads tell the shard.
pub(super) async fn take_inbox(context: Context, mut inbox: Inbox) {
    while let Some(event) = inbox.recv().await {
        match event {
            ShardEvent::Adopt(moved) => context.adopt(*moved),
            ShardEvent::Link(event) => guarded(|| context.shard().take_link(&event)),
            ShardEvent::Host(event) => guarded(|| context.shard().take_host(&event)),
        }
    }
}

/// A handler that panics must not end the inbox; the hook of the process has said where it was.
fn guarded(run: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        tracing::error!("a handler of an app has panicked");
    }
}
