//! Entries that packets teach, on their way from a forwarder to control.
//!
//! A forwarder may not change tables. It has one [`Learning`] for each entry that its packets
//! teach, and gives it to control when a packet teaches an entry that is not there as it is
//! taught. Control adds or changes the entry and marks the learning as known; until something else
//! changes or removes the entry, packets that teach it only renew its hard timeout, which costs
//! them two stores. So a packet teaches from a cached decision, and nothing that it teaches is
//! lost: where the entry has gone, the next packet gives the learning to control again.
//!
//! A forwarder may not have heard yet that an entry which teaches has gone or changed. What its
//! packets teach until then is passed over, or it would outlive that entry.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use openflow::flow::FlowMod;

use super::ids::EntryId;
use crate::action_set::FinTimeouts;
use crate::time::Nanos;

/// Learnings that may wait for control at a time. Packets that teach more are counted as refused;
/// the next ones of their flows teach it again.
pub(super) const WAITING_MAX: u64 = 4_096;

/// No entry is as it is taught.
const UNKNOWN: u64 = 0;
/// Control has been given the learning.
const GIVEN: u64 = 1;
/// The entry of this number less [`KNOWN`] is as it is taught.
const KNOWN: u64 = 2;

/// An entry that packets teach, and whether it is there.
#[derive(Debug)]
pub(super) struct Learning {
    /// The entry, as an add.
    pub(super) flow_mod: FlowMod,
    state: AtomicU64,
}

impl Learning {
    pub(super) fn new(flow_mod: FlowMod) -> Self {
        Self { flow_mod, state: AtomicU64::new(UNKNOWN) }
    }

    /// The entry, if it is there as it is taught.
    #[inline]
    pub(super) fn known(&self) -> Option<EntryId> {
        let id = self.state.load(Ordering::Relaxed).checked_sub(KNOWN)?;
        u32::try_from(id).ok().map(EntryId)
    }

    /// Whether it is to be given to control, which is noted.
    pub(super) fn begin(&self) -> bool {
        let (old, new) = (UNKNOWN, GIVEN);
        self.state.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    pub(super) fn set_known(&self, id: EntryId) {
        self.state.store(KNOWN + u64::from(id.0), Ordering::Relaxed);
    }

    pub(super) fn set_unknown(&self) {
        self.state.store(UNKNOWN, Ordering::Relaxed);
    }
}

/// The same learning: a program has one of its own.
impl PartialEq for Learning {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Learning {}

impl Hash for Learning {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self).hash(state);
    }
}

/// A change of an entry.
#[derive(Clone, Debug)]
pub(super) enum EntryChange {
    /// It is as it is taught.
    Taught(Arc<Learning>),
    /// It has at most these timeouts, unless it has begun at another time.
    Shortened { id: EntryId, created: Nanos, timeouts: FinTimeouts },
}

/// A change of an entry that a packet has made at a time.
#[derive(Clone, Debug)]
pub struct Taught {
    pub(super) change: EntryChange,
    pub(super) at: Nanos,
    /// Number of ops that the forwarder had applied by then.
    pub(super) ops_applied: u64,
}
