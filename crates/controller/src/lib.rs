//! The OpenFlow controller framework: the [`App`] trait, its runtime, and ready apps.
//!
//! An app is a value with handlers; a handler queues messages on a [`Switch`]. [`Controller`] runs
//! a list of apps on real connections, its switches sharded over threads by datapath id; a
//! [`Handle`] reaches any switch from any thread. [`Shard`] and [`Session`] are what it is made of,
//! without input and output. The words are those of OpenFlow 1.3.4 and 1.0.2.
//!
//! An app and its test, which needs no network:
//!
//! ```
//! use controller::{App, PacketIn, Switch};
//! use openflow::message::Features;
//! use openflow::{Message, Version};
//!
//! #[derive(Default)]
//! struct Counting {
//!     packets: u64,
//! }
//!
//! impl App for Counting {
//!     fn switch_ready(&mut self, sw: &mut Switch) {
//!         sw.miss_to_controller();
//!     }
//!     fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
//!         self.packets += 1;
//!         sw.flood(packet_in);
//!     }
//! }
//!
//! let (mut app, mut sw) = (Counting::default(), Switch::new(Version::V1_3, Features::default()));
//! app.switch_ready(&mut sw);
//! let sent = sw.take_messages();
//! assert!(matches!(sent[..], [Message::FlowMod(_)]), "the table-miss entry");
//! ```
#![forbid(unsafe_code)]

mod answers;
mod app;
mod app_list;
pub mod apps;
mod batch;
mod blocking;
#[cfg(feature = "cli")]
pub mod cli;
mod commands;
pub mod discovery;
mod dispatch;
mod error;
mod events;
mod handle;
mod handler_progress;
mod info;
mod mastership;
mod metrics;
mod options;
mod parse;
mod role;
mod runtime;
mod session;
mod shard;
mod shared;
mod stats;
mod switch;
pub mod testing;
pub mod topology;
mod watchers;
mod xid;

pub use self::metrics::declared as declared_metrics;
pub use ::metrics::parse_address as parse_metrics_address;
pub use app::App;
pub use app_list::AppList;
pub use batch::MessageBatch;
pub use cluster::{
    ClusterAddress, ClusterError, ClusterSettings, ClusterState, EtcdPairFiles, EtcdTlsError,
    EtcdTlsFiles, KeyName, Sharing, StateEntry, StateError, StateEvent, StateWatch,
};
pub use error::HandleError;
pub use events::{
    ControllerEvent, HostEvent, LinkEvent, RoleChange, RoleReason, SwitchPort, TopologyHost,
    TopologyLink, role_name,
};
pub use files::{fault_of_secret, raise_open_files};
pub use handle::Handle;
pub use info::SwitchInfo;
pub use openflow::message::PacketIn;
pub use options::Options;
pub use packet::PacketView;
pub use parse::ParsedPacketIn;
pub use runtime::{Controller, Error, Running, StatusWriter, serve};
pub use session::{Outcome, Session};
pub use shard::Shard;

pub use stats::{Rates, Stats};
pub use switch::{Switch, TimerId, delete_all};
pub use watchers::{EventError, EventReceiver};
pub use xid::of_app as xid_of_app;

/// The tour of the documentation, whose examples are run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/controller.md")]
pub struct Tour;

/// The page about clusters, whose example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/cluster.md")]
pub struct ClusterPage;
