//! Service of a run, a switch under test or a controller: its programs and their facts.
//!
//! Dropping a [`Service`] ends its programs, last started first.

use std::path::{Path, PathBuf};
use std::time::Duration;

use netdev::sys::netns::Namespace;
use netdev::sys::peer_redirect::PeerRedirect;
use openflow::Version;
use programs::cancel::Cancel;
use programs::cpu_share::{CpuGroup, GroupError};
use programs::process::{self, Process};
use programs::{clean, scratch};

use crate::load::{ProcessRole, Watched};

/// Paths of programs that are not found in `PATH`.
#[derive(Clone, Debug)]
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
    #[must_use]
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
    /// Paths.
    pub paths: &'a ProgramPaths,
    /// Ends every wait.
    pub cancel: &'a Cancel,
}

/// Why a service did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// One of its programs.
    #[error(transparent)]
    Process(#[from] process::ProcessError),
    /// A program of others is missing.
    #[error(transparent)]
    Missing(#[from] programs::tools::Missing),
    /// A file could not be written.
    #[error("cannot write {path}: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A step of its configuration failed.
    #[error("`{command}` failed: {output}")]
    Step {
        /// The command.
        command: String,
        /// Its output.
        output: String,
    },
    /// The testbed has no ports that this switch can use.
    #[error("{0}")]
    Unfit(String),
    /// It cannot be held to its share of a core.
    #[error(transparent)]
    CpuShare(#[from] GroupError),
}

/// Running programs.
#[derive(Debug, Default)]
pub struct Service {
    programs: Vec<Process>,
    watched: Vec<Watched>,
    commands: Vec<String>,
    in_kernel: Option<PeerRedirect>,
    /// Folder by whose mark children are found of programs that start some.
    children_of: Option<PathBuf>,
}

impl Service {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whatever the programs start whose scratch folder is `folder` is a part of it too: watched
    /// with them, and ended after them.
    #[must_use]
    pub fn with_children(mut self, folder: &Path) -> Self {
        self.children_of = Some(folder.to_owned());
        self
    }

    /// Adds a program; with a role its CPU time is watched. `cores_max` is how many cores it can
    /// use at once, and 0 where there is no limit.
    pub fn add(&mut self, process: Process, role: Option<ProcessRole>, cores_max: usize) {
        self.note_command(process.command().to_owned());
        if let Some(role) = role {
            let name = process.name().to_owned();
            let cores_max = (cores_max > 0).then_some(cores_max as f64);
            self.watched.push(Watched { role, name, pid: process.pid(), cores_max });
        }
        self.programs.push(process);
    }

    /// Keeps programs of the kernel at their hooks as long as the service is there.
    pub fn keep_in_kernel(&mut self, programs: PeerRedirect) {
        self.in_kernel = Some(programs);
    }

    /// Holds all programs together to the share of a group, where there is one, from now on.
    ///
    /// # Errors
    /// The kernel refuses it, or there is no program.
    pub fn held_to(mut self, group: Option<&CpuGroup>) -> Result<Self, ServiceError> {
        let Some(group) = group else { return Ok(self) };
        if self.programs.is_empty() {
            return Err(GroupError::NoProgram.into());
        }
        self.programs.iter().try_for_each(|program| group.add(program.pid()))?;
        let cores = group.share().cores();
        for watched in &mut self.watched {
            let before = watched.cores_max.unwrap_or(cores);
            watched.cores_max = Some(before.min(cores));
        }
        Ok(self)
    }

    /// Notes a command that was run to configure the service.
    pub fn note_command(&mut self, command: String) {
        self.commands.push(command);
    }

    /// The programs whose CPU time is watched, and the children that they have now.
    #[must_use]
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

    /// Every command that was run, in order.
    #[must_use]
    pub fn commands(&self) -> &[String] {
        &self.commands
    }

    /// The last lines of every program's output.
    #[must_use]
    pub fn tails(&self) -> String {
        let tail = |process: &Process| format!("{}:\n{}\n", process.name(), process.tail());
        self.programs.iter().map(tail).collect()
    }

    /// Waits until the output of the program of that name is as wanted; `what` says in an error
    /// what it did not do.
    ///
    /// # Errors
    /// The program ends before or does not do it within `limit`, or the run was interrupted.
    pub fn wait_for_output(
        &mut self,
        name: &str,
        what: &str,
        limit: Duration,
        cancel: &Cancel,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<(), process::ProcessError> {
        for program in self.programs.iter_mut().filter(|program| program.name() == name) {
            program.wait_until(what, limit, cancel, |program| is_wanted(&program.output()))?;
        }
        Ok(())
    }

    /// Fails if one of the programs has ended.
    ///
    /// # Errors
    /// [`process::ProcessError::Ended`] with the end of its log.
    pub fn check(&mut self) -> Result<(), process::ProcessError> {
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
