//! `weir lab agent`.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use crate::agent::host::NO_PROGRAM;
use crate::agent::server::{self, Agent};
use crate::testbed::external::check_up;

const EXAMPLES: &str = "\
Examples:
  weir lab run E5 --dut external --inventory lab.toml
  ssh root@192.0.2.21 weir lab agent

The inventory names the box, and the lab starts the agent there (see docs/lab-agents.md).";

/// Send and receive at this box's interfaces for a lab on another one.
///
/// A lab starts it by ssh, asks over its standard input, and ends it by closing that. It opens the
/// interfaces that the lab names, which have to be up, and changes nothing of them; it needs root,
/// or CAP_NET_RAW.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct AgentArgs {}

impl AgentArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
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
