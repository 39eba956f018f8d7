//! `weir gen`: a console over the generator, with the words of Pktgen 3.1.2 and of today's.
//!
//! A word is a row of a table, with its form, its help and what it does. Words change settings;
//! `streams` makes of them what a port sends, the session sends it, and pages show settings and
//! counts. A terminal gets a live page above a line with history and completion, a pipe gets plain
//! lines. Scripts are checked as a whole before their first line takes effect.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod arp;
mod capture;
mod console;
mod cpu_use;
mod effect;
mod file_conflicts;
mod flood;
mod form;
mod interrupt;
mod line_rate;
mod load;
mod metrics;
mod page;
mod ping;
mod plain;
mod port_args;
mod port_list;
mod report;
mod rfc2544;
mod run;
mod runner;
mod script;
mod serve;
mod state;
mod station;
mod stderr;
mod streams;
mod terminal;
mod usage;
mod words;

pub use self::metrics::declared as declared_metrics;
pub use arguments::{EXAMPLES, GenArgs, run};
