//! The forwarding pipeline: flow tables, groups, meters, actions, counters and trace.
//!
//! A datapath is a function from a frame, a port and a moment to verdicts, and a state that
//! commands change. It has no thread, clock, socket or randomness, so that every run can be
//! replayed. The seam is the trait [`Datapath`]; [`Reference`] is the specification as plain code
//! behind it.
#![deny(unsafe_code)]

mod action_set;
mod config;
mod counter;
pub mod fast;
mod features;
mod groups;
mod known_fields;
mod macs;
mod memory;
mod meters;
mod pipeline;
mod ports;
mod precedence;
mod queues;
mod reassembly;
mod reference;
mod seam;
mod select;
mod time;
mod trace;
mod validate;
mod verdict;
mod vlans;

pub use config::{DatapathConfig, Fragments, Miss, Settings};
pub use counter::{Counter, DatapathCounters, DropReason};
pub use features::{action_bits, capabilities};
pub use memory::{MemoryBudget, MemoryNeed};
pub use precedence::Precedence;
pub use queues::{BadQueues, QueueRates, QueueTally, Scheduler, check_queues};
pub use reference::Reference;
pub use seam::{CommandOutcome, Datapath, Removed};
pub use time::{NS_PER_S, Nanos};
pub use trace::{Trace, TraceStep};
pub use verdict::{Out, Verdict};
pub use vlans::{BadVlans, Native, PortVlans, Vids};
