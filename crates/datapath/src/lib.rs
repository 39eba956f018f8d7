//! The forwarding pipeline: flow tables, groups, meters, actions, counters and trace.
//!
//! A datapath is a function from a frame, a port and a time to verdicts, and a state that commands
//! change. It has no thread, clock, socket or randomness, so every run can be replayed. Clauses are
//! those of the OpenFlow Switch Specification 1.3.4 and, where the text says 1.0, of 1.0.2.
//!
//! The trait [`Datapath`] has two implementations: [`fast::Fast`] forwards, and [`Reference`] is
//! the specification as plain code, the oracle of the tests. A switch with several threads uses the
//! parts of `Fast`: one [`fast::Control`] and a [`fast::Forwarder`] for each worker.
//!
//! A datapath with two ports and one flow entry:
//!
//! ```
//! use datapath::fast::Fast;
//! use datapath::{Datapath, DatapathConfig, Nanos, Out, Verdict};
//! use openflow::flow::FlowModCommand;
//! use openflow::{PortNo, Version, port::PortDesc, text::parse_flow_mod};
//! use packet::PacketBuf;
//!
//! let config = DatapathConfig { n_tables: 1, ..Default::default() };
//! let mut datapath = Fast::new(config, 1); // 1 is the seed of its hashes
//! let now = Nanos(0);
//! for port_no in [PortNo(1), PortNo(2)] {
//!     datapath.port_set(PortDesc { port_no, ..Default::default() }, now);
//! }
//! let add = parse_flow_mod("in_port=1,actions=output:2", FlowModCommand::Add)?;
//! assert_eq!(datapath.flow_mod(&add, Version::V1_3, now)?.added, 1);
//!
//! let mut out = Out::new();
//! datapath.process(PacketBuf::from_slice(&[0; 60]), PortNo(1), now, &mut out);
//! assert!(matches!(out.verdicts(), [Verdict::Output { port: PortNo(2), .. }]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod action_set;
mod config;
mod continuation;
mod counter;
pub mod fast;
mod features;
mod groups;
mod known_fields;
mod macs;
mod member_choice;
mod memory;
mod meters;
mod mirrors;
mod pending_delete;
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
pub use macs::{AddressStats, LearntAddress};
pub use memory::{MemoryBudget, MemoryNeed};
pub use mirrors::{BadMirror, MIRRORS_MAX, Mirror, MirrorOutput, SNAPLEN_MIN};
pub use pipeline::FlowTable;
pub use queues::{BadQueues, QueueRate, QueueRates, QueueTally, Scheduler, check_queues};
pub use reference::Reference;
pub use seam::{BundleCommand, BundleRefused, CommandOutcome, Datapath, Removed};
pub use time::{NS_PER_S, Nanos};
pub use trace::{Trace, TraceStep};
pub use verdict::{Out, Verdict};
pub use vlans::{BadVlans, Native, PortVlans, Vids};
