//! Ends of a switch on other boxes, each served by an agent (`weir lab agent`).
//!
//! The lab starts an agent by `ssh` and sends it the requests of [`protocol`], a line of JSON each,
//! over its standard input; [`clock`] says by how much the boxes' clocks differ, and how well that
//! is known. An agent must never do more than that: it changes no interface for a lab, and runs no
//! program but those of [`crate::host_program`], in hosts that go with it.

pub mod client;
pub mod clock;
pub mod host;
pub mod protocol;
pub mod server;

#[cfg(test)]
mod tests;
