//! A network from a description: hosts in network namespaces, real switches, links between them.
//!
//! `weir net up` makes it and keeps it; the other commands of `weir net` work in it from outside.
//! Namespaces have no names and are held by the keeper alone, so the kernel removes them with every
//! device in them, whatever ends the keeper; what else it leaves is a folder, which the next run
//! finds. The crate must never touch a device of the namespace that it was started in, nor a
//! process that it has not started.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod description;
mod echo;
mod error;
mod folder;
mod keeper;
mod plan;
mod show;
mod state;
mod tap;
mod traffic;

pub use cli::{EXAMPLES, NetArgs};
pub use description::{HostDescription, NetworkDescription, SwitchDescription};
pub use error::Error;
pub use folder::NetworkFolder;
pub use keeper::NetworkKeeper;
pub use plan::{HostPlan, LinkPlan, NetworkPlan, PlannedEnd, SwitchPlan};
pub use state::NetworkState;
