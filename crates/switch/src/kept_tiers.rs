//! The kernel tiers of a switch with `--state`, which go on forwarding while no process is there.
//!
//! A process that is killed, or ended by SIGUSR2, leaves its programs to the next one of the same
//! folder. That one restores the tables, puts its own programs in their place as soon as its
//! workers run, and credits what the earlier ones have counted to the same entries and groups. It
//! must be done before a controller is served: an entry's number could be another's then. Entries
//! that only the kernel has used are known to be in use before anything looks at their timeouts.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::sync::Arc;

use datapath::Nanos;
use datapath::fast::{EntryId, KeptCounts, TierOwner};
use netdev::{EarlierCounts, KEPT_FOR, KernelTier, TierKeeper};

use crate::agent::Bridges;
use crate::bridge::Bridge;
use crate::journal::{StateFolder, file_name};

/// The numbers that entries had, and those that they have; by the former.
type Numbers = Vec<(EntryId, EntryId)>;

/// The keeper of the process. Dropped, it ends all that is kept, unless that is left to the next
/// process.
#[derive(Debug)]
pub(crate) struct KeptTiers {
    keeper: Arc<TierKeeper>,
    is_done: Cell<bool>,
    /// The lock of the folder: no other process begins with it before all of this has ended.
    _folder: File,
}

impl Drop for KeptTiers {
    fn drop(&mut self) {
        self.end();
    }
}

impl KeptTiers {
    /// The tiers that go with this folder; none where the system cannot keep them.
    pub(crate) fn open(folder: &StateFolder) -> Option<Self> {
        let open = || -> io::Result<Self> {
            let keeper = TierKeeper::open(&folder.file_name())?;
            Ok(Self { keeper, is_done: Cell::default(), _folder: folder.lock()? })
        };
        open()
            .inspect_err(|error| {
                tracing::info!(%error, "the kernel tier is not kept while no process is there");
            })
            .ok()
    }

    /// The keeper, for the tiers of a bridge.
    pub(crate) fn of_bridge(&self, bridge: &str) -> (Arc<TierKeeper>, String) {
        (Arc::clone(&self.keeper), file_name(bridge))
    }

    /// The entries of a bridge have these numbers now, in its journal too: this process may end
    /// before it has taken over, and the next one knows no others. Nothing forwards yet.
    pub(crate) fn note_restored(&self, name: &str, bridge: &Bridge, mut numbers: Numbers) {
        numbers.sort_unstable();
        let epoch_ns = epoch_ns(bridge);
        let mut used = Vec::new();
        let renumbered = self.keeper.renumber_owners(&file_name(name), |owner, last_used_ns| {
            let now = now_of(&numbers, owner);
            if let Some(TierOwner::Entry(id)) = TierOwner::of_number(now) {
                used.push((id, Nanos(last_used_ns.saturating_sub(epoch_ns))));
            }
            now
        });
        if let Err(error) = renumbered {
            tracing::warn!(bridge = name, %error, "the last counts of an earlier tier are lost");
        }
        bridge.with_control(|control| control.note_used(&used));
    }

    /// Nothing forwards yet: ends what no port goes on with.
    pub(crate) fn end_unclaimed(&self) {
        self.keeper.end_unclaimed();
    }

    /// The workers run: takes the place of the earlier programs, and their counts.
    pub(crate) async fn take_over(&self, bridges: &Bridges) {
        let (devices, counts) = self.keeper.take_over();
        let mut credited = 0;
        for agent in bridges.all() {
            let name = file_name(&agent.config().name);
            let Some(earlier) = counts.get(&name) else { continue };
            let epoch_ns = epoch_ns(&agent.bridge);
            let kept = earlier.iter().map(|it| kept_counts(it, epoch_ns));
            let kept: Arc<[KeptCounts]> = kept.collect();
            credited += kept.iter().map(|it| it.packets).sum::<u64>();
            credit(&agent.bridge, kept).await;
        }
        if devices > 0 {
            tracing::info!(devices, packets = credited, "the kernel tier goes on");
        }
    }

    /// Has the programs decide on, as long as the process is there.
    pub(crate) fn put_off(&self) -> impl Future<Output = ()> + 'static {
        let keeper = Arc::clone(&self.keeper);
        async move {
            loop {
                keeper.put_off();
                tokio::time::sleep(KEPT_FOR / 6).await;
            }
        }
    }

    /// The next process goes on with what is kept.
    pub(crate) fn leave(&self) {
        self.is_done.set(true);
        self.keeper.leave();
    }

    /// The switch has ended: all that is kept does, unless it is left.
    pub(crate) fn end(&self) {
        if !self.is_done.replace(true) {
            self.keeper.end();
        }
    }
}

async fn credit(bridge: &Bridge, kept: Arc<[KeptCounts]>) {
    // Where a worker has ended the switch ends.
    let _ = bridge.ask(move |shard| shard.credit_kept(&kept)).await;
}

/// The difference between the kernel's time and the switch's.
fn epoch_ns(bridge: &Bridge) -> u64 {
    KernelTier::now_ns().saturating_sub(bridge.clock.now().0)
}

/// The number that an owner of before has now.
fn now_of(numbers: &[(EntryId, EntryId)], owner: u64) -> u64 {
    match TierOwner::of_number(owner) {
        Some(TierOwner::Entry(id)) => {
            let found = numbers.binary_search_by_key(&id, |(before, _)| *before).ok();
            let now = found.and_then(|at| numbers.get(at));
            now.map_or(TierOwner::NOBODY, |(_, now)| TierOwner::Entry(*now).to_number())
        }
        Some(TierOwner::Group(_) | TierOwner::Bucket(..)) | None => owner,
    }
}

/// Counts with their owners; those whose owner is gone are nobody's.
fn kept_counts(earlier: &EarlierCounts, epoch_ns: u64) -> KeptCounts {
    let owners = earlier.owners.iter();
    KeptCounts {
        owners: owners.filter_map(|owner| TierOwner::of_number(*owner)).collect(),
        packets: earlier.packets,
        bytes: earlier.bytes,
        last_used: Nanos(earlier.last_used_ns.saturating_sub(epoch_ns)),
    }
}
