//! Service of a run, a switch under test or a controller: its programs and their facts.
//!
//! Dropping a [`Service`] ends its programs, last started first.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::anyhow;
use channel::TlsFiles;
use netdev::sys::netns::Namespace;
use netdev::sys::peer_redirect::PeerRedirect;
use openflow::Version;
use programs::cancel::Cancel;
use programs::cpu_share::{CpuGroup, GroupError};
use programs::process::{Process, ProcessError};
use programs::{clean, scratch};

use crate::keys::ChannelKeys;
use crate::load::{ProcessRole, Watched};

/// Paths of programs that are not found in `PATH`.
#[derive(Clone, Debug, Default)]
pub struct ProgramPaths {
    /// The `weir` binary whose switch and controller are measured.
    pub weir: PathBuf,
    /// os-ken's virtual environment.
    pub os_ken_dir: PathBuf,
    /// The inventory of the switch that is not started by the lab.
    pub inventory: Option<PathBuf>,
}

impl ProgramPaths {
    /// Weir's binary and os-ken's virtual environment, and no other switch.
    pub fn new(weir: PathBuf, os_ken_dir: PathBuf) -> Self {
        Self { weir, os_ken_dir, inventory: None }
    }
}

/// Context of a service's start.
#[derive(Clone, Copy, Debug)]
pub struct ServiceContext<'a> {
    /// The namespace that it runs in; that of the lab when `None`.
    pub namespace: Option<&'a Namespace>,
    /// A scratch folder of its own, for sockets, databases and logs.
    pub dir: &'a Path,
    /// The OpenFlow version to speak, and no other.
    pub version: Version,
    /// Keys and certificates, where the channel is TLS.
    pub keys: Option<&'a ChannelKeys>,
    /// Paths.
    pub paths: &'a ProgramPaths,
    /// Ends every wait.
    pub cancel: &'a Cancel,
}

impl ServiceContext<'_> {
    /// Starts a program there.
    pub fn start(&self, name: &str, command: Command) -> Result<Process, ProcessError> {
        Process::start(name, command, self.namespace, self.dir)
    }

    /// Writes a file in its folder; the path.
    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.dir.join(name);
        std::fs::write(&path, text)
            .map_err(|error| anyhow!("cannot write {}: {error}", path.display()))?;
        Ok(path)
    }
}

/// The files of TLS by the names of the options of Weir's programs and of Open vSwitch's.
pub(crate) fn key_options(files: &TlsFiles) -> [(&'static str, String); 3] {
    let text = |path: &Path| path.display().to_string();
    [
        ("private-key", text(&files.private_key)),
        ("certificate", text(&files.certificate)),
        ("ca-cert", text(&files.ca_cert)),
    ]
}

/// Running programs.
#[derive(Debug, Default)]
pub struct Service {
    /// The programs, in the order of their starts.
    pub programs: Vec<Process>,
    watched: Vec<Watched>,
    /// Every command that was run, in order.
    pub commands: Vec<String>,
    /// Programs of the kernel, at their hooks as long as the service is there.
    pub in_kernel: Option<PeerRedirect>,
    /// The scratch folder of programs that start others: those carry its mark, are watched with
    /// them, and are ended after them.
    pub children_of: Option<PathBuf>,
}

impl Service {
    /// One program, whose CPU time is watched. `cores_max` is how many cores it can use at once,
    /// and 0 where there is no limit.
    pub fn of(process: Process, role: ProcessRole, cores_max: usize) -> Self {
        let mut service = Self::default();
        service.add(process, Some(role), cores_max);
        service
    }

    /// Adds a program; with a role its CPU time is watched.
    pub fn add(&mut self, process: Process, role: Option<ProcessRole>, cores_max: usize) {
        self.commands.push(process.command.clone());
        if let Some(role) = role {
            let name = process.name.clone();
            let cores_max = (cores_max > 0).then_some(cores_max as f64);
            self.watched.push(Watched { role, name, pid: process.pid(), cores_max });
        }
        self.programs.push(process);
    }

    /// Holds all programs together to the share of a group, where there is one, from now on.
    pub fn held_to(mut self, group: Option<&CpuGroup>) -> Result<Self, GroupError> {
        let Some(group) = group else { return Ok(self) };
        if self.programs.is_empty() {
            let why = "the lab starts no program that could be held to a CPU share";
            return Err(GroupError(why.to_owned()));
        }
        self.programs.iter().try_for_each(|program| group.add(program.pid()))?;
        let cores = group.share.cores();
        for watched in &mut self.watched {
            let before = watched.cores_max.unwrap_or(cores);
            watched.cores_max = Some(before.min(cores));
        }
        Ok(self)
    }

    /// The programs whose CPU time is watched, and the children that they have now.
    pub fn watched(&self) -> Vec<Watched> {
        let mut all = self.watched.clone();
        let (Some(folder), Some(first)) = (&self.children_of, self.watched.first()) else {
            return all;
        };
        for child in scratch::marked(folder).unwrap_or_default() {
            if all.iter().all(|known| known.pid != child.pid) {
                all.push(Watched { pid: child.pid, ..first.clone() });
            }
        }
        all
    }

    /// The last lines of every program's output.
    pub fn tails(&self) -> String {
        let tail = |process: &Process| format!("{}:\n{}\n", process.name, process.tail());
        self.programs.iter().map(tail).collect()
    }

    /// Fails if one of the programs has ended.
    pub fn check(&mut self) -> Result<(), ProcessError> {
        self.programs.iter_mut().try_for_each(Process::check)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        while let Some(process) = self.programs.pop() {
            drop(process);
        }
        if let Some(folder) = &self.children_of
            && let Err(error) = clean::end_programs(folder)
        {
            tracing::warn!(%error, "cannot look for what a switch left");
        }
    }
}
