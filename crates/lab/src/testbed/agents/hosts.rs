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
use programs::cancel::Cancel;
use programs::process::{Output, Process, ProcessError, tail_of};

use super::super::netns::NetnsTestbed;
use super::super::{NO_HOSTS, Testbed, traffic_error};
use super::AgentsTestbed;
use crate::agent::protocol::{
    AgentAnswer, AgentRequest, EndHost, EndTask, OutputPart, ProgramSeen,
};
use crate::host_program::HostProgram;
use crate::hosts::host_address;
use crate::trial_error::TrialError;

/// Why a program does not run on a box.
const NO_BOX_HOSTS: &str = "needs hosts with addresses: its inventory has hosts = false";

/// Time between two looks at a program on a box.
const LOOK: Duration = Duration::from_millis(25);

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
            Self::Agents(bed) if bed.makes_hosts => Ok(()),
            Self::Agents(_) => Err(NO_BOX_HOSTS),
            Self::Memory(_) => Err(in_memory),
            Self::Wired(_) | Self::Replay(_) | Self::Fleet(_) => Err(NO_HOSTS),
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
            Self::Memory(_) | Self::Wired(_) | Self::Replay(_) | Self::Fleet(_) => {
                Err(TrialError::Unfit(NO_HOSTS))
            }
        }
    }
}

impl AgentsTestbed {
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
        let answer = asking.ask(port, run).map_err(traffic_error)?;
        let AgentAnswer::Runs {} = answer else {
            return asking.odd(port, &answer).map_err(traffic_error);
        };
        Ok(())
    }

    fn program_seen(&self, port: usize, cancel: &Cancel) -> Result<ProgramSeen, TrialError> {
        let seen = self.asking(cancel.flag()).look(port).map_err(traffic_error)?;
        let none = || PortTrialError::Port("a box says nothing of the program it runs".to_owned());
        seen.program.ok_or_else(|| traffic_error(none()))
    }

    fn output_part(
        &self,
        port: usize,
        from: u64,
        cancel: &Cancel,
    ) -> Result<OutputPart, TrialError> {
        let mut asking = self.asking(cancel.flag());
        let read = |interface| AgentRequest::Read { interface, from };
        let answer = asking.ask(port, read).map_err(traffic_error)?;
        let AgentAnswer::Printed(part) = answer else {
            return asking.odd(port, &answer).map_err(traffic_error);
        };
        Ok(part)
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
                let (port, cancel, fetched) = (host, self.cancel, OutputPart::default());
                Ok(HostRun::OnBox(BoxRun { bed, port, name, cancel, fetched }))
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
    OnBox(BoxRun<'a>),
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
            Self::OnBox(run) => run.wait_until(what, limit, done),
        }
    }

    /// Waits until it ends by itself; a failing exit code is no error.
    pub(crate) fn wait_for_end(&mut self, limit: Duration) -> Result<Output, TrialError> {
        match self {
            Self::Here(process, cancel) => {
                let status = process.wait_for_end(limit, cancel)?;
                Ok(Output { success: status.success(), text: process.output() })
            }
            Self::OnBox(run) => run.wait_for_end(limit),
        }
    }

    /// Kills it at once on the lab's machine; on a box it ends with its host.
    pub(crate) fn kill(&mut self) -> Result<(), TrialError> {
        match self {
            Self::Here(process, _) => Ok(process.kill()?),
            Self::OnBox(_) => Ok(()),
        }
    }
}

/// A program on a box, and what was fetched of its output.
#[derive(Debug)]
pub(crate) struct BoxRun<'a> {
    bed: &'a AgentsTestbed,
    port: usize,
    name: &'static str,
    cancel: &'a Cancel,
    fetched: OutputPart,
}

impl BoxRun<'_> {
    fn wait_until(
        &mut self,
        what: &str,
        limit: Duration,
        done: impl Fn(&str) -> bool,
    ) -> Result<String, TrialError> {
        let begun = Instant::now();
        loop {
            let seen = self.bed.program_seen(self.port, self.cancel)?;
            self.fetch(seen.printed)?;
            if done(&self.fetched.text) {
                return Ok(self.fetched.text.clone());
            }
            if let Some(status) = seen.status {
                let (name, tail) = (self.name.to_owned(), tail_of(&self.fetched.text));
                let status = ExitStatus::from_raw(status);
                return Err(ProcessError::Ended { name, status, tail }.into());
            }
            self.pause(what, (begun, limit), seen.printed)?;
        }
    }

    /// Its output is fetched when it has ended: meanwhile the box is measured.
    fn wait_for_end(&mut self, limit: Duration) -> Result<Output, TrialError> {
        let begun = Instant::now();
        loop {
            let seen = self.bed.program_seen(self.port, self.cancel)?;
            if let Some(status) = seen.status {
                self.fetch(seen.printed)?;
                let success = ExitStatus::from_raw(status).success();
                return Ok(Output { success, text: self.fetched.text.clone() });
            }
            self.pause("end", (begun, limit), seen.printed)?;
        }
    }

    /// Waits for the next look, if there is to be one.
    fn pause(
        &mut self,
        what: &str,
        (begun, limit): (Instant, Duration),
        printed: u64,
    ) -> Result<(), TrialError> {
        if begun.elapsed() < limit {
            return Ok(self.cancel.sleep(LOOK)?);
        }
        self.fetch(printed)?;
        let (name, tail) = (self.name.to_owned(), tail_of(&self.fetched.text));
        let (what, limit_s) = (what.to_owned(), limit.as_secs());
        Err(ProcessError::Late { name, what, limit_s, tail }.into())
    }

    fn fetch(&mut self, printed: u64) -> Result<(), TrialError> {
        let Self { bed, port, cancel, .. } = *self;
        fetch(&mut self.fetched, printed, |from| bed.output_part(port, from, cancel))
    }
}

/// Asks for the parts of an output behind what was fetched, until there are so many bytes.
fn fetch(
    fetched: &mut OutputPart,
    printed: u64,
    mut ask: impl FnMut(u64) -> Result<OutputPart, TrialError>,
) -> Result<(), TrialError> {
    while fetched.next < printed {
        let part = ask(fetched.next)?;
        if part.next <= fetched.next {
            let what = format!("of {printed} bytes of output a box has but {}", fetched.next);
            return Err(traffic_error(PortTrialError::Port(what)));
        }
        fetched.text.push_str(&part.text);
        fetched.next = part.next;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::fetch;
    use crate::agent::protocol::{AgentAnswer, OutputPart, encode};
    use programs::cancel::Cancel;
    use programs::process::{OUTPUT_PART, Process};

    /// Runs a script to its end.
    fn ended(script: &str, dir: &std::path::Path) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut process = Process::start("p", command, None, dir).unwrap();
        process.wait_for_end(Duration::from_secs(60), &Cancel::default()).unwrap();
        process
    }

    #[test]
    fn a_long_output_comes_whole() {
        let dir = tempfile::tempdir().unwrap();
        // Characters of two bytes behind one of one byte: a part ends within one of them.
        let script = "printf a; yes \u{e4}\u{f6}\u{fc}\u{e4}\u{f6}\u{fc} | head -n 50000";
        let process = ended(script, dir.path());
        let printed = process.output_len().unwrap();
        assert_eq!(printed, 1 + 50_000 * 13);
        let (mut fetched, mut parts) = (OutputPart::default(), 0);
        let ask = |from| {
            parts += 1;
            let (text, next) = process.output_from(from)?;
            Ok(OutputPart { text, next })
        };
        fetch(&mut fetched, printed, ask).unwrap();
        assert_eq!(fetched.next, printed);
        assert!(fetched.text == process.output(), "{} bytes", fetched.text.len());
        assert!(parts >= 5, "{parts}");
        // What is there is not asked for again.
        fetch(&mut fetched, printed, |_| panic!("asked")).unwrap();
        let none = fetch(&mut fetched, printed + 1, |from| {
            Ok(OutputPart { text: String::new(), next: from })
        });
        assert!(none.unwrap_err().to_string().contains("of 650002 bytes"));
    }

    #[test]
    fn every_part_has_room_in_a_message() {
        let dir = tempfile::tempdir().unwrap();
        for bytes in ["\\001", "\\377"] {
            let script = format!("head -c 200000 /dev/zero | tr '\\000' '{bytes}'");
            let process = ended(&script, dir.path());
            let (text, next) = process.output_from(0).unwrap();
            assert_eq!(next, OUTPUT_PART as u64);
            encode(&AgentAnswer::Printed(OutputPart { text, next })).unwrap();
        }
    }
}
