//! The OpenFlow controller framework: the [`App`] trait, its runtime, and ready apps.
//!
//! An app is a value with handlers; a handler queues messages on a [`Switch`]. [`Controller`] and
//! [`Session`] run an app on connections without input and output; [`serve`] runs it on real ones.
//! The words are those of OpenFlow 1.3.4 and 1.0.2.
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

mod app;
pub mod apps;
#[cfg(feature = "cli")]
pub mod cli;
mod runtime;
mod session;
mod stats;
mod switch;

pub use app::App;
pub use openflow::message::PacketIn;
pub use runtime::{Error, Options, StatusWriter, serve};
pub use session::{Controller, Outcome, Session};
pub use stats::{Rates, Stats};
pub use switch::{Switch, delete_all};
