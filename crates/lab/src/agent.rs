//! Hosts on other boxes: the lab's ends of a switch that stands between them.
//!
//! On each box runs an agent (`weir lab agent`), which opens the interfaces that it was given,
//! sends and receives there what a lab asks for, and counts. The lab asks by the messages of
//! [`protocol`], over TLS; [`clock`] says by how much the boxes' clocks differ, and how well that
//! is known. An agent must never do more than that: it reads no file and changes no interface for a
//! lab. It runs no program either, unless its operator has allowed it: then hosts of the lab's
//! stand behind its interfaces and run those of [`crate::host_program`], and go when they are
//! closed.

pub mod client;
pub mod clock;
pub mod executor;
mod host;
pub mod protocol;
pub mod server;
mod stream;

#[cfg(test)]
mod tests;
