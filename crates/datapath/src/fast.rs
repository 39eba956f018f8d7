//! The fast datapath: one state for commands, and replicas of what packets need in the workers.
//!
//! [`Control`] carries out every command and keeps the authoritative state; it never sees a packet.
//! Each change becomes an [`Op`] for every [`Forwarder`], which applies it to a replica of its own
//! between two batches. So no table is shared and nothing is locked on a packet's way. The
//! shards hand the ops to the forwarders and report when they have applied them, which a barrier
//! waits for. Shared are counters only: each has one writer. [`Fast`] is a control and one
//! forwarder in one thread.
//!
//! Packets must fare as in the reference: the tests compare the two in everything that the seam
//! shows.

mod classifier;
mod compiled_match;
mod conjunction;
mod control;
mod forwarder;
mod ids;
mod interpreter;
mod learning;
mod mix_hasher;
mod op;
mod shared;
mod single;
mod sys;
pub mod testing;

pub use self::control::{
    Changed, CommandCounts, CommandProgress, Control, Dump, RemovalReport, Restored, Saved,
    SavedCounts, SavedEntry, SavedGroup, SavedInstructions, SavedMeter, Sweep, WatchedChange,
};
pub use self::forwarder::{
    Applied, Caches, Forwarder, ForwarderFigures, ForwarderStage, KeptCounts, KernelTable,
    NoKernel, Sink, TIER_BYTES, TIER_OUTPUTS_MAX, TierFlow, TierOwner, TierSlotCounts, TierVerdict,
};
pub use self::ids::{EntryId, Ticket};
pub use self::learning::Taught;
pub use self::op::Op;
pub use self::single::Fast;
