//! Programs that a run starts: their processes, scratch folders and locks, their share of a core,
//! and an end for all of them.
//!
//! Whoever starts programs of others, the lab and the networks of namespaces, has them from here,
//! so that nothing outlives a run, however it ends. It must never know a switch or a measurement.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod cancel;
pub mod clean;
pub mod cpu_share;
pub mod huge_pages;
pub mod listening;
pub mod process;
pub mod scratch;
pub mod tools;
