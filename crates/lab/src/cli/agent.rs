//! `weir lab agent`.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::agent::host::NO_PROGRAM;
use crate::agent::server::{self, Agent};
use crate::testbed::external::check_up;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir lab run E5 --dut external --inventory lab.toml
  ssh root@192.0.2.21 weir lab agent

The inventory names the box, and the lab starts the agent there (see docs/lab-agents.md).";

/// Sends and receives at this box's interfaces for a lab that starts it by ssh, asks over its
/// standard input, and ends it by closing that. It changes nothing of them.
pub(super) fn run() -> Result<ExitCode> {
    let served = {
        let (mut from, mut to) = (io::stdin().lock(), io::stdout().lock());
        server::serve((&mut from, &mut to), Agent::new(), take_interfaces)
    };
    match served.context("the agent")? {
        Some((host, program)) => Ok(host.run(&program).unwrap_or_else(|error| {
            // The lab tells it from a program that has failed.
            files::eprint_line(format_args!("weir lab: the agent: {error}"));
            ExitCode::from(NO_PROGRAM)
        })),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Takes interfaces that are up for one agent, until what is returned is dropped.
fn take_interfaces(interfaces: &[String]) -> io::Result<Vec<UnixListener>> {
    check_up(interfaces)?;
    let take = |interface: &String| {
        // An address without a file, in the interface's namespace: it goes with its process.
        let name = format!("weir-lab-agent-{interface}");
        let taken =
            SocketAddr::from_abstract_name(name).and_then(|at| UnixListener::bind_addr(&at));
        let is_other = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
        taken.map_err(|error| match is_other(&error) {
            true => io::Error::other(format!("{interface}: another lab measures there")),
            false => error,
        })
    };
    interfaces.iter().map(take).collect()
}
