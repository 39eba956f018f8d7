//! A host with a kernel of its own behind an interface, and the program that it runs for a lab.
//!
//! The host is a network namespace without a name with a macvlan on the interface, and is gone with
//! its value, whatever ends the agent. It must never run anything but a [`HostProgram`].

use std::io;
use std::os::fd::AsFd as _;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use netdev::sys::event::wait;
use netdev::sys::link::{Macvlan, Rtnl};
use netdev::sys::spawn::{Spawn, kill_group};

use crate::host_program::HostProgram;
use crate::hosts::{HOST_DEVICE, HostAddress, NamespaceContext};

/// Time between two looks whether the program has ended.
const LOOK: Duration = Duration::from_millis(10);

/// The exit code of an agent whose program did not end by itself or did not start: that of `ssh`
/// for a box that is lost.
pub const NO_PROGRAM: u8 = 255;

/// A host.
pub struct BoxHost {
    context: NamespaceContext,
}

impl BoxHost {
    /// Makes a host behind an interface, with the others as its neighbours.
    pub(super) fn make(
        interface: &str,
        host: HostAddress,
        others: &[HostAddress],
    ) -> io::Result<Self> {
        let make = || -> io::Result<Self> {
            let context = NamespaceContext::new()?;
            let device =
                Macvlan { name: HOST_DEVICE, mac: host.mac, on: interface, inside: &context.ns };
            Rtnl::open()?.add_macvlan(&device)?;
            let made = Self { context };
            made.context.bring_host_up(host, others.iter().copied())?;
            Ok(made)
        };
        make().map_err(|error| io::Error::other(format!("a host behind {interface}: {error}")))
    }

    /// Runs a program, whose output is that of this process, until it ends or the standard input
    /// does; its exit code, or [`NO_PROGRAM`] where a signal killed it.
    pub fn run(self, program: &HostProgram) -> io::Result<ExitCode> {
        let mut command = program.command().map_err(io::Error::other)?;
        command.stdin(Stdio::null());
        let spawn = Spawn::new(command).own_group().in_namespace(&self.context.ns)?;
        let (mut child, input) = (spawn.spawn()?, io::stdin());
        loop {
            if let Some(status) = child.try_wait()? {
                let code = status.code().and_then(|code| u8::try_from(code).ok());
                return Ok(ExitCode::from(code.unwrap_or(NO_PROGRAM)));
            }
            if wait(&[input.as_fd()], Some(LOOK))? {
                kill_group(&child)?;
                child.wait()?;
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

impl Drop for BoxHost {
    fn drop(&mut self) {
        // The line is free at once, and not when the kernel comes to take the namespace down: the
        // next host there has the same address.
        if let Err(error) = self.context.rtnl.delete(HOST_DEVICE) {
            tracing::warn!(%error, "the device of a host is left to the end of its namespace");
        }
    }
}
