//! A watch: the changes of all keys below a prefix, in the order of their revisions.

use super::EtcdError;
use super::http::Lines;
use super::json::{Change, WatchJson, WatchLine};
use std::time::Duration;

/// A watch that etcd has begun.
pub(crate) struct Watch {
    lines: Lines,
}

/// Changes that came together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchBatch {
    /// All changes up to this revision have been told. It is that of the last change: the header
    /// of a late answer is ahead of the answer.
    pub(crate) revision: i64,
    /// The changes.
    pub(crate) changes: Vec<Change>,
}

impl Watch {
    /// Waits until etcd says that the watch has begun.
    pub(super) async fn created(lines: Lines, within: Duration) -> Result<Self, EtcdError> {
        let mut watch = Self { lines };
        let first = tokio::time::timeout(within, watch.message()).await;
        let first = first.unwrap_or_else(|_| Err(watch.lines.silent(within)))?;
        if !first.created {
            return Err(watch.lines.malformed(&"a watch that does not begin"));
        }
        Ok(watch)
    }

    /// The next changes. May be given up and asked again.
    ///
    /// # Errors
    /// When the connection broke, or etcd has forgotten the revisions that come next: then only a
    /// new look at all keys helps.
    pub(crate) async fn next(&mut self) -> Result<WatchBatch, EtcdError> {
        let message = self.message().await?;
        let changes: Vec<Change> = message.events.into_iter().map(Change::from).collect();
        let revision = changes.iter().map(Change::revision).max().unwrap_or(0);
        Ok(WatchBatch { revision, changes })
    }

    async fn message(&mut self) -> Result<WatchJson, EtcdError> {
        let line = self.lines.next().await?;
        let line: WatchLine =
            serde_json::from_slice(&line).map_err(|error| self.lines.malformed(&error))?;
        match line {
            WatchLine { result: Some(message), .. } if message.canceled => {
                let reason = match message.compact_revision {
                    0 => format!("the watch is cancelled: {}", message.cancel_reason),
                    revision => format!("history before revision {revision} is compacted"),
                };
                Err(self.lines.refused(reason))
            }
            WatchLine { result: Some(message), .. } => Ok(message),
            WatchLine { result: None, error } => {
                let error = error.map_or_else(|| "no reason".to_owned(), |it| it.to_string());
                Err(self.lines.refused(format!("the watch is over: {error}")))
            }
        }
    }
}
