//! Bridges that come to a running worker and go from it: commands to the worker itself, which each
//! of its shards is too small for.
//!
//! A shard comes without ports and goes without ports, which come and go by commands of its own
//! ([`super::port_change`]). A shard that goes is dropped by the caller that waits for it: giving
//! back the memory of a million entries takes long, and the others would wait.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::commands::Commands;
use super::{Doorbell, Shard, ShardParts, Worker};

/// The doorbell's entry for commands to the worker; no shard has this index.
pub(super) const WORKER: usize = usize::MAX - 1;

/// A command to a worker.
pub(crate) enum WorkerCommand {
    /// A shard without ports for an index that no other has; the caller waits until it is served.
    AddShard(usize, Box<ShardParts>, oneshot::Sender<()>),
    /// Gives up the shard at an index, which has no port any more; the caller drops it.
    RemoveShard(usize, oneshot::Sender<Option<Box<Shard>>>),
    /// Close the ports of all shards and end.
    Stop,
}

impl fmt::Debug for WorkerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AddShard(..) => "AddShard",
            Self::RemoveShard(..) => "RemoveShard",
            Self::Stop => "Stop",
        })
    }
}

/// The queue of commands to a worker.
pub(crate) type WorkerQueue = Commands<WorkerCommand>;

impl WorkerQueue {
    /// The queue of the worker with this doorbell.
    pub(crate) fn of_worker(doorbell: Arc<Doorbell>) -> Self {
        Self::new(doorbell, WORKER)
    }
}

impl Worker {
    /// Carries out the commands to the worker.
    pub(super) fn run_worker_commands(&mut self) {
        self.commands.acknowledge();
        let mut commands = VecDeque::new();
        self.commands.take(&mut commands);
        self.commands.done(commands.len());
        for command in commands {
            match command {
                WorkerCommand::AddShard(index, parts, done) => {
                    self.has_tier |= parts.forwarding.tier().is_some();
                    self.shards.put(index, Shard::new(*parts, Arc::clone(&self.info)));
                    // It may have got work before it was here.
                    self.ring(index);
                    // The caller has gone: then the switch ends.
                    let _ = done.send(());
                }
                WorkerCommand::RemoveShard(index, done) => {
                    let shard = self.shards.take(index);
                    self.forget(index);
                    self.has_tier = self.shards.iter().any(|(_, shard)| shard.has_tier());
                    // The caller has gone: then the switch ends.
                    let _ = done.send(shard.map(Box::new));
                }
                WorkerCommand::Stop => self.stop(),
            }
        }
    }
}
