//! Hosts with a kernel of their own at the ends of a switch, and the programs that they run.
//!
//! On the lab's testbed each is a namespace of it. At the ends of an inventory an agent makes each,
//! for as long as [`Testbed::with_hosts`] works; the agent runs the host's program and ends with
//! it, so that both are processes here whose output is in a log. A method must not know which.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use generator::method::on_ports::PortTrialError;
use programs::cancel::Cancel;
use programs::process::{Output, Process, ProcessError};

use super::external::ExternalTestbed;
use super::netns::NetnsTestbed;
use super::{NO_HOSTS, Testbed, traffic_error};
use crate::agent::client::{self, AgentLink};
use crate::agent::host::NO_PROGRAM;
use crate::agent::protocol::{AgentHello, AgentRequest, VERSION, write_line};
use crate::host_program::HostProgram;
use crate::hosts::{host_address, other_hosts};
use crate::trial_error::TrialError;

/// Why a program does not run at the ends of an inventory.
const NO_BOX_HOSTS: &str = "needs hosts with addresses: its inventory needs hosts = true";

/// The line with which an agent has made its host; the program's output follows.
const MADE: &str = "{\"Ok\":null}\n";

/// Hosts that run programs.
pub(crate) struct LabHosts<'a> {
    /// Those of the lab's testbed; else each agent, until it runs a program.
    kernel: Option<&'a NetnsTestbed>,
    agents: RefCell<Vec<Option<HostRun<'a>>>>,
    dir: &'a Path,
    cancel: &'a Cancel,
}

impl Testbed {
    /// Whether there are hosts with addresses, or why not: `in_memory` where ports are in memory.
    pub(crate) fn check_hosts(&self, in_memory: &'static str) -> Result<(), &'static str> {
        let Self::External(bed) = self else { return self.kernel_or(in_memory).map(drop) };
        if bed.makes_hosts { Ok(()) } else { Err(NO_BOX_HOSTS) }
    }

    /// Does `work` with the hosts; logs go into `dir`.
    pub(crate) fn with_hosts<T>(
        &self,
        (dir, cancel): (&Path, &Cancel),
        work: impl FnOnce(&LabHosts<'_>) -> Result<T, TrialError>,
    ) -> Result<T, TrialError> {
        let hosts = |kernel| LabHosts { kernel, agents: RefCell::default(), dir, cancel };
        let Self::External(bed) = self else {
            return work(&hosts(Some(self.kernel_or(NO_HOSTS).map_err(TrialError::Unfit)?)));
        };
        let (hosts, boxes) = (hosts(None), 0..bed.links().len());
        bed.while_asked(boxes, &AgentRequest::Watch {}, || {
            bed.start_hosts(&hosts)?;
            work(&hosts)
        })
    }
}

impl ExternalTestbed {
    /// Starts an agent for a host at each end, which is to answer with [`MADE`].
    fn start_hosts<'a>(&self, hosts: &LabHosts<'a>) -> Result<(), TrialError> {
        let started: Result<Vec<HostRun<'a>>, TrialError> =
            (0..self.ends.len()).map(|port| self.start_host(port, hosts)).collect();
        for mut host in started? {
            host.wait_until("make its host", client::START_LIMIT, |text| text.contains(MADE))?;
            host.begin = host.process.output().find(MADE).map_or(0, |at| at + MADE.len());
            hosts.agents.borrow_mut().push(Some(host));
        }
        Ok(())
    }

    fn start_host<'a>(&self, port: usize, hosts: &LabHosts<'a>) -> Result<HostRun<'a>, TrialError> {
        let (at, interface) = self.ends[port].clone();
        let facts = self.links().get(at).and_then(AgentLink::facts).cloned().unwrap_or_default();
        let agent = Some(&*facts.address).filter(|address| !address.is_empty());
        let command = client::command(agent, &self.weir);
        let name = format!("host{}", port + 1);
        let process = Process::start_over_stream(&name, command, false, hosts.dir)?;
        let (host, others) = (host_address(port), other_hosts(port, self.ends.len()).collect());
        let at = Some(client::box_name(&facts));
        let mut run = HostRun { process, cancel: hosts.cancel, at, begin: 0 };
        // The agent of the trials has the interface for this lab.
        run.write(&AgentHello { version: VERSION, interfaces: Vec::new() })?;
        run.write(&AgentRequest::Host { interface, host, others })?;
        Ok(run)
    }
}

impl<'a> LabHosts<'a> {
    /// Starts a program at a host, which is counted from 0. A host of an agent runs one.
    pub(crate) fn start(
        &self,
        host: usize,
        program: &HostProgram,
    ) -> Result<HostRun<'a>, TrialError> {
        let Some(bed) = self.kernel else {
            let run = self.agents.borrow_mut().get_mut(host).and_then(Option::take);
            let mut run = run.ok_or(TrialError::Unfit("a host of an agent runs one program"))?;
            run.write(&AgentRequest::Run { program: program.clone() })?;
            return Ok(run);
        };
        let (name, command) = (program.name(), program.command()?);
        let process = Process::start(name, command, Some(&bed.hosts[host].ns), self.dir)?;
        Ok(HostRun { process, cancel: self.cancel, at: None, begin: 0 })
    }

    /// Runs a program to its end.
    pub(crate) fn run(
        &self,
        host: usize,
        program: &HostProgram,
        limit: Duration,
    ) -> Result<Output, TrialError> {
        self.start(host, program)?.wait_for_end(limit)
    }
}

/// A program that a host runs; dropping it ends it.
#[derive(Debug)]
pub(crate) struct HostRun<'a> {
    process: Process,
    cancel: &'a Cancel,
    /// The box of its agent, where it has one.
    at: Option<String>,
    /// The byte of the log with which its own output begins.
    begin: usize,
}

impl HostRun<'_> {
    fn write(&mut self, message: &impl serde::Serialize) -> Result<(), TrialError> {
        let Some(mut stream) = self.process.stream() else { return Ok(()) };
        write_line(&mut stream, message).map_err(|source| {
            // An agent that has ended says more than that nobody reads.
            let _ = self.process.ends_within(client::LAST_LINES);
            let name = self.process.name.clone();
            let ended = self.process.check().err();
            self.error(ended.unwrap_or(ProcessError::System(name, source)))
        })
    }

    /// An error, with the box's name.
    fn error(&self, error: ProcessError) -> TrialError {
        match &self.at {
            Some(at) if !matches!(error, ProcessError::Stopped(_)) => {
                traffic_error(PortTrialError::Port(format!("{at}: {error}")))
            }
            Some(_) | None => error.into(),
        }
    }

    fn text(&self) -> String {
        self.process.output().get(self.begin..).unwrap_or_default().to_owned()
    }

    /// The output, as soon as it satisfies `done`; fails if it ends before, or after `limit`.
    pub(crate) fn wait_until(
        &mut self,
        what: &str,
        limit: Duration,
        done: impl Fn(&str) -> bool,
    ) -> Result<String, TrialError> {
        let begin = self.begin;
        let is_done = |process: &Process| process.output().get(begin..).is_some_and(&done);
        let waited = self.process.wait_until(what, limit, self.cancel, is_done);
        waited.map(|()| self.text()).map_err(|error| self.error(error))
    }

    /// Waits until it ends by itself; a failing exit code is no error. The end of an agent without
    /// one of its program is.
    pub(crate) fn wait_for_end(&mut self, limit: Duration) -> Result<Output, TrialError> {
        let status = self.process.wait_for_end(limit, self.cancel);
        let status = status.map_err(|error| self.error(error))?;
        let is_agents = status.code().is_none_or(|code| code == i32::from(NO_PROGRAM));
        if self.at.is_some() && is_agents {
            self.process.check().map_err(|error| self.error(error))?;
        }
        Ok(Output { success: status.success(), text: self.text() })
    }

    /// Kills it at once on the lab's testbed; at an agent it ends with its host.
    pub(crate) fn kill(&mut self) -> Result<(), TrialError> {
        if self.at.is_none() { Ok(self.process.kill()?) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use programs::cancel::Cancel;
    use programs::process::Process;

    use super::HostRun;
    use crate::agent::protocol::AgentRequest;

    const LONG: Duration = Duration::from_secs(30);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn an_agent_that_dies_is_not_the_end_of_its_program() {
        let (dir, cancel) = (tempfile::tempdir().unwrap(), Cancel::default());
        let run = |script: &str, at: Option<&str>| {
            let process = Process::start("host1", shell(script), None, dir.path()).unwrap();
            let at = at.map(str::to_owned);
            HostRun { process, cancel: &cancel, at, begin: 0 }.wait_for_end(LONG)
        };
        for script in ["echo lost; exit 255", "echo lost; kill -9 $$"] {
            let error = run(script, Some("box1")).unwrap_err().to_string();
            assert!(error.contains("box1") && error.contains("lost"), "{error}");
            assert!(!run(script, None).unwrap().success, "{script}");
        }
        // An answer is missing, says `ping`.
        assert!(!run("exit 1", Some("box1")).unwrap().success);
        assert!(run("exit 0", Some("box1")).unwrap().success);
    }

    #[test]
    fn an_agent_that_has_ended_gives_its_reason() {
        let (dir, cancel) = (tempfile::tempdir().unwrap(), Cancel::default());
        let script = shell("echo 'Permission denied (publickey).'; exit 255");
        let mut process = Process::start_over_stream("host1", script, false, dir.path()).unwrap();
        assert!(process.ends_within(LONG));
        let mut run = HostRun { process, cancel: &cancel, at: Some("box1".to_owned()), begin: 0 };
        let error = run.write(&AgentRequest::Watch {}).unwrap_err().to_string();
        assert!(error.contains("box1: ") && error.ends_with("denied (publickey)."), "{error}");
    }
}
