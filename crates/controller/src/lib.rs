//! The OpenFlow controller framework: the [`App`] trait, its runtime, and ready apps.
//!
//! An app is a value with handlers; a handler queues messages on a [`Switch`]. [`Controller`] and
//! [`Session`] run an app on connections without input and output; [`serve`] runs it on real ones.
#![forbid(unsafe_code)]

mod app;
pub mod apps;
pub mod cli;
mod runtime;
mod session;
mod stats;
mod switch;

pub use app::App;
pub use openflow::message::PacketIn;
pub use runtime::{Error, Options, Report, serve};
pub use session::{Controller, Outcome, Session};
pub use stats::{Rates, Stats};
pub use switch::{Switch, delete_all};
