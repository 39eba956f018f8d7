//! `weir ctl`: asks one switch something, or has it do something, over OpenFlow.
//!
//! It does the work of `dpctl` and `ovs-ofctl`, under their names. A command is a type with its
//! arguments and help, in the file of its family, and a row in `commands`. It speaks OpenFlow with
//! any switch, and with ours over the control socket; the commands of Weir's own (`trace`,
//! `workers`, ..) ask that socket directly.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod address;
mod commands;
mod context;
mod counters;
mod echo;
mod failure;
mod flow_file;
mod flow_sets;
mod flows;
mod groups;
mod messages;
mod meters;
mod monitor;
mod ovs_ofctl;
mod own;
mod packet;
mod port_names;
mod ports;
mod replug;
mod run;
mod session;
mod settings;
mod socket;
mod switch;
mod tables;
mod top;
mod value;

pub use failure::EXIT_CODES;
pub use ovs_ofctl::{CtlLine, CtlTip, absent, as_meant, running_bridges, running_ports};
pub use ports::port_settings;
pub use run::{CtlArgs, run};
pub use settings::FRAGMENT_MODES;
