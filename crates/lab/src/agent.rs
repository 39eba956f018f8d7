//! Hosts on other boxes: the lab's ends of a switch that stands between them.
//!
//! On each box runs an agent (`weir lab agent`), which opens the interfaces that a lab names, sends
//! and receives there what the lab asks for, and counts. The lab starts it by `ssh` and asks by the
//! messages of [`protocol`] over its standard input and output; [`clock`] says by how much the
//! boxes' clocks differ, and how well that is known. An agent must never do more than that: it
//! changes no interface for a lab, and runs no program but those of [`crate::host_program`], in
//! hosts behind its interfaces that go when they are closed.

pub mod client;
pub mod clock;
pub mod executor;
mod host;
pub mod protocol;
pub mod server;

#[cfg(test)]
mod tests;
