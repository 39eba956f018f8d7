//! The control socket: how people and scripts ask a running switch.
//!
//! JSON lines over a Unix socket that only its owner may open. The commands are one enum, which is
//! the subcommands of `weir ctl` and the requests of the socket at once.

mod answer;
mod caches;
mod change;
mod client;
mod command;
mod protocol;
mod sample;
mod server;
mod show;
mod socket;
mod value;
mod workers;

pub use client::{CtlArgs, run as ctl};
pub use command::Command;
pub(crate) use protocol::{Line, Request};
pub(crate) use server::serve_control;
pub(crate) use socket::ControlSocket;
pub use socket::SocketError;
