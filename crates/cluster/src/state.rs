//! State that apps keep for all controllers of a cluster: texts by key, in a key space of each app,
//! with a watch. It outlives the nodes, and etcd orders all changes.
//!
//! Requests are carried out on the cluster's thread, so that any thread may ask; what waits there
//! is
//! bounded. It must never be asked for each packet: each change is written to disk by etcd.

use crate::EtcdServers;
use crate::address::KeyName;
use crate::etcd::{Change, Compare, Etcd, EtcdError, KeyValue, Op, OpAnswer, Txn};
use crate::keys::state_prefix;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// The longest value, in bytes.
pub const STATE_VALUE_MAX: usize = 64 * 1024;
/// The longest key, in bytes.
pub const STATE_KEY_MAX: usize = 256;
/// Requests that wait for etcd; changes that wait for one watcher.
const QUEUE: usize = 1_024;
/// Watches at one time.
const WATCHES_MAX: usize = 256;
/// Time that etcd may take for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Before a watch that broke is begun anew.
const WATCH_AGAIN: Duration = Duration::from_millis(500);

/// Why an app's state could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// etcd did not do it, or nobody knows whether it did.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// Too many requests wait.
    #[error("{QUEUE} requests wait for etcd; try again later")]
    Full,
    /// A key is empty, too long, or has control characters.
    #[error("a key has 1 to {STATE_KEY_MAX} bytes and no control characters")]
    BadKey,
    /// A value is too long.
    #[error("a value of {0} bytes is too long: at most {STATE_VALUE_MAX}")]
    TooLong(usize),
    /// Too many watches.
    #[error("{WATCHES_MAX} watches at one time are the most")]
    TooManyWatches,
    /// The node has left its cluster.
    #[error("the node has left its cluster")]
    Left,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateEntry {
    /// The key, as the app knows it.
    pub key: String,
    /// Its value.
    pub value: String,
    /// The revision that wrote it, to write it only if nobody else has ([`ClusterState::put_if`]).
    pub revision: i64,
}

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateEvent {
    /// It has this value now.
    Put(StateEntry),
    /// It is gone.
    Delete(String),
}

#[derive(Debug)]
enum Wish {
    Get(String),
    List(String),
    Put { key: String, value: String, if_revision: Option<i64> },
    Delete(String),
    Watch { prefix: String, events: mpsc::Sender<StateEvent> },
}

#[derive(Debug)]
enum Granted {
    Entries(Vec<KeyValue>),
    Written(bool),
}

/// A request, and where its answer goes.
#[derive(Debug)]
pub(crate) struct StateRequest {
    wish: Wish,
    answer: oneshot::Sender<Result<Granted, StateError>>,
}

/// The key space of one app. Clones are the same.
#[derive(Clone, Debug)]
pub struct ClusterState {
    prefix: Arc<str>,
    requests: mpsc::Sender<StateRequest>,
}

/// Changes of an app's keys, first of all what is there.
#[derive(Debug)]
pub struct StateWatch {
    prefix: Arc<str>,
    events: mpsc::Receiver<StateEvent>,
}

/// A queue for requests, and its end.
pub(crate) fn queue() -> (mpsc::Sender<StateRequest>, mpsc::Receiver<StateRequest>) {
    mpsc::channel(QUEUE)
}

impl ClusterState {
    pub(crate) fn new(
        cluster: &KeyName,
        app: &KeyName,
        requests: mpsc::Sender<StateRequest>,
    ) -> Self {
        Self { prefix: state_prefix(cluster, app).into(), requests }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// See [`StateError`].
    pub async fn get(&self, key: &str) -> Result<Option<StateEntry>, StateError> {
        let entries = self.entries(Wish::Get(self.key(key)?)).await?;
        Ok(entries.into_iter().next())
    }

    /// All keys that begin with `prefix`, which may be empty, as they are at one moment.
    ///
    /// # Errors
    /// See [`StateError`].
    pub async fn list(&self, prefix: &str) -> Result<Vec<StateEntry>, StateError> {
        self.entries(Wish::List(self.prefix_of(prefix)?)).await
    }

    /// Writes a key.
    ///
    /// # Errors
    /// See [`StateError`].
    pub async fn put(&self, key: &str, value: &str) -> Result<(), StateError> {
        self.written(self.put_wish(key, value, None)?).await.map(drop)
    }

    /// Writes a key if it was last written at `revision`; zero when it must not exist. Gives
    /// whether it was written.
    ///
    /// # Errors
    /// See [`StateError`].
    pub async fn put_if(&self, key: &str, value: &str, revision: i64) -> Result<bool, StateError> {
        self.written(self.put_wish(key, value, Some(revision))?).await
    }

    /// Writes a key without waiting, for handlers; what becomes of it is in the log only.
    ///
    /// # Errors
    /// When it cannot even be queued.
    pub fn put_soon(&self, key: &str, value: &str) -> Result<(), StateError> {
        let wish = self.put_wish(key, value, None)?;
        self.ask(wish).map(drop)
    }

    /// Deletes a key, if it exists.
    ///
    /// # Errors
    /// See [`StateError`].
    pub async fn delete(&self, key: &str) -> Result<(), StateError> {
        self.written(Wish::Delete(self.key(key)?)).await.map(drop)
    }

    /// Watches the keys that begin with `prefix`, which may be empty: first come all that are
    /// there, then each change. A reader that is slow holds its own watch up and nothing else.
    ///
    /// # Errors
    /// See [`StateError`].
    pub async fn watch(&self, prefix: &str) -> Result<StateWatch, StateError> {
        let (events, received) = mpsc::channel(QUEUE);
        self.written(Wish::Watch { prefix: self.prefix_of(prefix)?, events }).await?;
        Ok(StateWatch { prefix: Arc::clone(&self.prefix), events: received })
    }

    fn key(&self, key: &str) -> Result<String, StateError> {
        if key.is_empty() {
            return Err(StateError::BadKey);
        }
        self.prefix_of(key)
    }

    fn prefix_of(&self, text: &str) -> Result<String, StateError> {
        if text.len() > STATE_KEY_MAX || text.chars().any(char::is_control) {
            return Err(StateError::BadKey);
        }
        Ok(format!("{}{text}", self.prefix))
    }

    fn put_wish(
        &self,
        key: &str,
        value: &str,
        if_revision: Option<i64>,
    ) -> Result<Wish, StateError> {
        if value.len() > STATE_VALUE_MAX {
            return Err(StateError::TooLong(value.len()));
        }
        Ok(Wish::Put { key: self.key(key)?, value: value.into(), if_revision })
    }

    fn ask(
        &self,
        wish: Wish,
    ) -> Result<oneshot::Receiver<Result<Granted, StateError>>, StateError> {
        let (answer, answered) = oneshot::channel();
        self.requests.try_send(StateRequest { wish, answer }).map_err(|error| match error {
            TrySendError::Full(_) => StateError::Full,
            TrySendError::Closed(_) => StateError::Left,
        })?;
        Ok(answered)
    }

    async fn written(&self, wish: Wish) -> Result<bool, StateError> {
        match self.ask(wish)?.await.unwrap_or(Err(StateError::Left))? {
            Granted::Written(is_written) => Ok(is_written),
            Granted::Entries(entries) => Ok(!entries.is_empty()),
        }
    }

    async fn entries(&self, wish: Wish) -> Result<Vec<StateEntry>, StateError> {
        match self.ask(wish)?.await.unwrap_or(Err(StateError::Left))? {
            Granted::Entries(entries) => {
                Ok(entries.into_iter().filter_map(|kv| entry(&self.prefix, kv)).collect())
            }
            Granted::Written(_) => Ok(Vec::new()),
        }
    }
}

impl StateWatch {
    /// The next change; nothing when the node has left its cluster.
    pub async fn next(&mut self) -> Option<StateEvent> {
        loop {
            let short = |key: &str| key.strip_prefix(&*self.prefix).map(str::to_owned);
            match self.events.recv().await? {
                StateEvent::Put(StateEntry { key, value, revision }) => {
                    if let Some(key) = short(&key) {
                        return Some(StateEvent::Put(StateEntry { key, value, revision }));
                    }
                }
                StateEvent::Delete(key) => {
                    if let Some(key) = short(&key) {
                        return Some(StateEvent::Delete(key));
                    }
                }
            }
        }
    }
}

fn entry(prefix: &str, kv: KeyValue) -> Option<StateEntry> {
    let key = kv.key.strip_prefix(prefix)?.to_owned();
    Some(StateEntry { key, value: kv.value, revision: kv.mod_revision })
}

/// Carries requests out until nobody can ask any more.
pub(crate) async fn serve(servers: EtcdServers, mut requests: mpsc::Receiver<StateRequest>) {
    let mut etcd = Etcd::new(&servers);
    let mut watches = JoinSet::new();
    while let Some(StateRequest { wish, answer }) = requests.recv().await {
        while watches.try_join_next().is_some() {}
        let granted = match wish {
            Wish::Watch { .. } if watches.len() >= WATCHES_MAX => Err(StateError::TooManyWatches),
            Wish::Watch { prefix, events } => {
                watches.spawn(watch(servers.clone(), prefix, events));
                Ok(Granted::Written(true))
            }
            Wish::List(prefix) => {
                let listed = etcd.snapshot(&prefix, ANSWER_WITHIN).await;
                listed.map(|it| Granted::Entries(it.keys)).map_err(StateError::from)
            }
            wish @ (Wish::Get(_) | Wish::Put { .. } | Wish::Delete(_)) => {
                carry_out(&mut etcd, wish).await.map_err(StateError::from)
            }
        };
        if let Err(Err(error)) = answer.send(granted) {
            tracing::warn!(%error, "an app's state was not written");
        }
    }
}

async fn carry_out(etcd: &mut Etcd, wish: Wish) -> Result<Granted, EtcdError> {
    let mut compare = Vec::new();
    let op = match wish {
        Wish::Get(key) => Op::Get(key),
        Wish::Delete(key) => Op::Delete(key),
        Wish::Put { key, value, if_revision } => {
            compare.extend(if_revision.map(|revision| Compare::Written(key.clone(), revision)));
            Op::Put { key, value, lease: 0 }
        }
        Wish::List(_) | Wish::Watch { .. } => return Ok(Granted::Written(false)),
    };
    let txn = Txn { compare, success: vec![op], failure: Vec::new() };
    let answer = etcd.txn(&txn, ANSWER_WITHIN).await?;
    Ok(match answer.ops.into_iter().next() {
        Some(OpAnswer::Got(kv)) => Granted::Entries(kv.into_iter().collect()),
        Some(OpAnswer::Done | OpAnswer::Txn(_)) | None => Granted::Written(answer.succeeded),
    })
}

/// Tells all keys below a prefix and then their changes, until nobody listens. After a break what
/// has changed meanwhile is delivered.
async fn watch(servers: EtcdServers, prefix: String, events: mpsc::Sender<StateEvent>) {
    let mut known = BTreeMap::new();
    loop {
        tokio::select! {
            () = events.closed() => return,
            error = watch_once(&servers, &prefix, &events, &mut known) => {
                tracing::debug!(prefix, ?error, "a watch of an app's state is begun anew");
            }
        }
        tokio::time::sleep(WATCH_AGAIN).await;
    }
}

async fn watch_once(
    servers: &EtcdServers,
    prefix: &str,
    events: &mpsc::Sender<StateEvent>,
    known: &mut BTreeMap<String, i64>,
) -> Option<EtcdError> {
    let snapshot = match Etcd::new(servers).snapshot(prefix, ANSWER_WITHIN).await {
        Ok(snapshot) => snapshot,
        Err(error) => return Some(error),
    };
    let from = snapshot.revision.saturating_add(1);
    let watch = Etcd::new(servers).watch(prefix, from, ANSWER_WITHIN).await;
    let mut gone: BTreeMap<String, i64> = std::mem::take(known);
    for kv in snapshot.keys {
        let before = gone.remove(&kv.key);
        known.insert(kv.key.clone(), kv.mod_revision);
        if before != Some(kv.mod_revision) {
            events.send(put(kv)).await.ok()?;
        }
    }
    for key in gone.into_keys() {
        events.send(StateEvent::Delete(key)).await.ok()?;
    }
    let mut watch = match watch {
        Ok(watch) => watch,
        Err(error) => return Some(error),
    };
    loop {
        let batch = match watch.next().await {
            Ok(batch) => batch,
            Err(error) => return Some(error),
        };
        for change in batch.changes {
            let event = match change {
                Change::Put(kv) => {
                    known.insert(kv.key.clone(), kv.mod_revision);
                    put(kv)
                }
                Change::Delete(key, _) => {
                    known.remove(&key);
                    StateEvent::Delete(key)
                }
            };
            events.send(event).await.ok()?;
        }
    }
}

fn put(kv: KeyValue) -> StateEvent {
    StateEvent::Put(StateEntry { key: kv.key, value: kv.value, revision: kv.mod_revision })
}
