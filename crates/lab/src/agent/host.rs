//! A host with a kernel of its own behind an interface, and the program that it runs for a lab.
//!
//! The host is a network namespace without a name with a macvlan on the interface, and is gone with
//! its value, whatever ends the agent. It must never run anything but a [`HostProgram`].

use std::net::IpAddr;
use std::os::unix::process::ExitStatusExt as _;

use netdev::sys::link::{Macvlan, Rtnl};
use programs::process::{Process, ProcessError};
use programs::scratch;
use tempfile::TempDir;

use super::protocol::{EndHost, OutputPart, ProgramSeen};
use crate::host_program::HostProgram;
use crate::hosts::{HOST_DEVICE, NamespaceContext};

/// A host. Its program goes first; of its device the line is free at once, and not when the kernel
/// comes to take the namespace down: the next host there has the same address.
pub(super) struct BoxHost {
    program: Option<Process>,
    context: NamespaceContext,
    folder: TempDir,
}

impl BoxHost {
    /// Makes a host behind an interface, with the others as its neighbours.
    pub(super) fn make(
        interface: &str,
        host: &EndHost,
        others: &[EndHost],
    ) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("a host behind {interface}: {error}");
        let context = NamespaceContext::new().map_err(|error| failed(&error))?;
        let device =
            Macvlan { name: HOST_DEVICE, mac: host.mac, on: interface, inside: &context.ns };
        Rtnl::open().and_then(|rtnl| rtnl.add_macvlan(&device)).map_err(|error| failed(&error))?;
        let folder = scratch::make(scratch::LAB).map_err(|error| failed(&error))?;
        let made = Self { program: None, context, folder };
        let context = &made.context;
        context.bring_up(HOST_DEVICE, Some(host.ip)).map_err(|error| failed(&error))?;
        for other in others {
            let ip = IpAddr::V4(other.ip);
            let added = context.rtnl.add_neighbour(HOST_DEVICE, ip, other.mac);
            added.map_err(|error| failed(&error))?;
        }
        Ok(made)
    }

    /// Runs a program; one that ran before is ended.
    pub(super) fn run(&mut self, program: &HostProgram) -> Result<(), String> {
        self.program = None;
        let command = program.command().map_err(|missing| missing.to_string())?;
        let (namespace, folder) = (Some(&self.context.ns), self.folder.path());
        let started = Process::start(program.name(), command, namespace, folder);
        self.program = Some(started.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Progress of the program.
    pub(super) fn seen(&mut self) -> Result<Option<ProgramSeen>, String> {
        let Some(program) = &mut self.program else { return Ok(None) };
        // Before the length of its output: what it printed last is in it then.
        let status = match program.check() {
            Ok(()) => None,
            Err(ProcessError::Ended { status, .. }) => Some(status.into_raw()),
            Err(error) => return Err(error.to_string()),
        };
        let printed = program.output_len().map_err(|error| error.to_string())?;
        Ok(Some(ProgramSeen { status, printed }))
    }

    /// Output of the program from a byte on, as much as an answer has room for.
    pub(super) fn read(&self, from: u64) -> Result<OutputPart, String> {
        let Some(program) = &self.program else {
            return Err("no program was run there, whose output could be read".to_owned());
        };
        let (text, next) = program.output_from(from).map_err(|error| error.to_string())?;
        Ok(OutputPart { text, next })
    }
}

impl Drop for BoxHost {
    fn drop(&mut self) {
        self.program = None;
        if let Err(error) = self.context.rtnl.delete(HOST_DEVICE) {
            tracing::warn!(%error, "the device of a host is left to the end of its namespace");
        }
    }
}
