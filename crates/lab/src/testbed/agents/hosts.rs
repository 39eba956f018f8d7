//! Hosts with a kernel of their own at the ends of a switch, and the programs that they run.
//!
//! On the lab's machine they are those of its testbed. On a box with an agent, or where an
//! inventory names an interface beside one, each is a network namespace with a macvlan on the
//! interface, for as long as [`Testbed::with_hosts`] works. A method must not know which it is.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use generator::method::on_ports::PortTrialError;

use super::super::netns::NetnsTestbed;
use super::super::{NO_HOSTS, Testbed, host_address, traffic_error};
use super::AgentsTestbed;
use crate::agent::protocol::{AgentAnswer, AgentRequest, EndHost, EndTask, ProgramSeen};
use crate::cancel::Cancel;
use crate::host_program::HostProgram;
use crate::process::{Output, Process, ProcessError};
use crate::trial_error::TrialError;

/// Why a program does not run on a box.
const NO_BOX_HOSTS: &str = "needs hosts with addresses: start each agent with --hosts";

/// Time between two looks at a program on a box.
const LOOK: Duration = Duration::from_millis(25);

/// How much of a program's output an error quotes, lines.
const TAIL_LINES: usize = 12;

/// Hosts that run programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LabHosts<'a> {
    place: HostPlace<'a>,
    dir: &'a Path,
    cancel: &'a Cancel,
}

#[derive(Clone, Copy, Debug)]
enum HostPlace<'a> {
    Kernel(&'a NetnsTestbed),
    Agents(&'a AgentsTestbed),
}

impl Testbed {
    /// Whether there are hosts with addresses, or why there are none: `in_memory` where the ports
    /// are in memory.
    pub(crate) fn check_hosts(&self, in_memory: &'static str) -> Result<(), &'static str> {
        match self {
            Self::Kernel(_) => Ok(()),
            Self::Agents(bed) if bed.makes_hosts() => Ok(()),
            Self::Agents(_) => Err(NO_BOX_HOSTS),
            Self::Memory(_) => Err(in_memory),
            Self::Wired(_) | Self::Replay(_) => Err(NO_HOSTS),
        }
    }

    /// Does `work` with the hosts, whose logs go into `dir` where they are on this machine.
    pub(crate) fn with_hosts<T>(
        &self,
        (dir, cancel): (&Path, &Cancel),
        work: impl FnOnce(LabHosts<'_>) -> Result<T, TrialError>,
    ) -> Result<T, TrialError> {
        match self {
            Self::Kernel(bed) => work(LabHosts { place: HostPlace::Kernel(bed), dir, cancel }),
            Self::Agents(bed) => {
                let count = bed.ports.len();
                let opened = (0..count).try_for_each(|port| bed.open_host(port, count, cancel));
                let hosts = LabHosts { place: HostPlace::Agents(bed), dir, cancel };
                let outcome = opened.and_then(|()| work(hosts));
                bed.asking(cancel.flag()).close(0..count);
                outcome
            }
            Self::Memory(_) | Self::Wired(_) | Self::Replay(_) => Err(TrialError::Unfit(NO_HOSTS)),
        }
    }
}

impl AgentsTestbed {
    fn makes_hosts(&self) -> bool {
        let boxes = self.boxes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        boxes.iter().all(crate::agent::client::TrafficBox::makes_hosts)
    }

    fn open_host(&self, port: usize, count: usize, cancel: &Cancel) -> Result<(), TrialError> {
        let host = |number| EndHost::from(host_address(number));
        let others = (0..count).filter(|other| *other != port).map(host).collect();
        let task = EndTask::Host { host: host(port), others };
        let opened = self.asking(cancel.flag()).open(port, task);
        opened.map(drop).map_err(traffic_error)
    }

    fn run_program(
        &self,
        port: usize,
        program: &HostProgram,
        cancel: &Cancel,
    ) -> Result<(), TrialError> {
        let mut asking = self.asking(cancel.flag());
        let run = |interface| AgentRequest::Run { interface, program: program.clone() };
        match asking.ask(port, run).map_err(traffic_error)? {
            AgentAnswer::Runs {} => Ok(()),
            other @ (AgentAnswer::Clock { .. }
            | AgentAnswer::Opened { .. }
            | AgentAnswer::Started { .. }
            | AgentAnswer::EndSeen(_)
            | AgentAnswer::Closed {}
            | AgentAnswer::Failed { .. }) => asking.odd(port, &other).map_err(traffic_error),
        }
    }

    fn program_seen(&self, port: usize, cancel: &Cancel) -> Result<ProgramSeen, TrialError> {
        let seen = self.asking(cancel.flag()).look(port).map_err(traffic_error)?;
        let none = || PortTrialError::Port("a box says nothing of the program it runs".to_owned());
        seen.program.ok_or_else(|| traffic_error(none()))
    }
}

impl<'a> LabHosts<'a> {
    /// Starts a program at a host, which is counted from 0.
    pub(crate) fn start(
        self,
        host: usize,
        program: &HostProgram,
    ) -> Result<HostRun<'a>, TrialError> {
        let name = program.name();
        match self.place {
            HostPlace::Kernel(bed) => {
                let command = program.command()?;
                let process = Process::start(name, command, Some(bed.host(host)), self.dir)?;
                Ok(HostRun::Here(process, self.cancel))
            }
            HostPlace::Agents(bed) => {
                bed.run_program(host, program, self.cancel)?;
                Ok(HostRun::OnBox { bed, port: host, name, cancel: self.cancel })
            }
        }
    }

    /// Runs a program to its end.
    pub(crate) fn run(
        self,
        host: usize,
        program: &HostProgram,
        limit: Duration,
    ) -> Result<Output, TrialError> {
        self.start(host, program)?.wait_for_end(limit)
    }
}

/// A program that a host runs.
#[derive(Debug)]
pub(crate) enum HostRun<'a> {
    /// On the lab's machine; dropping it ends it.
    Here(Process, &'a Cancel),
    /// On a box, where it ends with its host at the latest.
    OnBox { bed: &'a AgentsTestbed, port: usize, name: &'static str, cancel: &'a Cancel },
}

impl HostRun<'_> {
    /// Waits until its output satisfies `done`, and says what it was; fails if it ends before, or
    /// after `limit`.
    pub(crate) fn wait_until(
        &mut self,
        what: &str,
        limit: Duration,
        done: impl Fn(&str) -> bool,
    ) -> Result<String, TrialError> {
        match self {
            Self::Here(process, cancel) => {
                process.wait_until(what, limit, cancel, |process| done(&process.output()))?;
                Ok(process.output())
            }
            Self::OnBox { .. } => self.follow(what, limit, |seen| match seen.status {
                _ if done(&seen.output) => Some(Ok(seen.output.clone())),
                Some(status) => Some(Err(status)),
                None => None,
            }),
        }
    }

    /// Waits until it ends by itself; a failing exit code is no error.
    pub(crate) fn wait_for_end(&mut self, limit: Duration) -> Result<Output, TrialError> {
        match self {
            Self::Here(process, cancel) => {
                let status = process.wait_for_end(limit, cancel)?;
                Ok(Output { success: status.success(), text: process.output() })
            }
            Self::OnBox { .. } => self.follow("end", limit, |seen| {
                let success = ExitStatus::from_raw(seen.status?).success();
                Some(Ok(Output { success, text: seen.output.clone() }))
            }),
        }
    }

    /// Kills it at once on the lab's machine; on a box it ends with its host.
    pub(crate) fn kill(&mut self) -> Result<(), TrialError> {
        match self {
            Self::Here(process, _) => Ok(process.kill()?),
            Self::OnBox { .. } => Ok(()),
        }
    }

    /// Looks at a program on a box until `found` says something: a result, or the status with
    /// which it ended too early.
    fn follow<T>(
        &self,
        what: &str,
        limit: Duration,
        found: impl Fn(&ProgramSeen) -> Option<Result<T, i32>>,
    ) -> Result<T, TrialError> {
        let Self::OnBox { bed, port, name, cancel } = self else {
            return Err(TrialError::Unfit(NO_HOSTS));
        };
        let begun = Instant::now();
        loop {
            let seen = bed.program_seen(*port, cancel)?;
            let name = || (*name).to_owned();
            let tail = || tail(&seen.output);
            match found(&seen) {
                Some(Ok(result)) => return Ok(result),
                Some(Err(status)) => {
                    let status = ExitStatus::from_raw(status);
                    return Err(ProcessError::Ended { name: name(), status, tail: tail() }.into());
                }
                None if begun.elapsed() >= limit => {
                    let (what, limit_s) = (what.to_owned(), limit.as_secs());
                    let late = ProcessError::Late { name: name(), what, limit_s, tail: tail() };
                    return Err(late.into());
                }
                None => cancel.sleep(LOOK)?,
            }
        }
    }
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
