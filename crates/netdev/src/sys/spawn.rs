//! Starting programs that cannot outlive this process.
//!
//! `PR_SET_PDEATHSIG` is sent when the *thread* that forked ends, not the process. So all programs
//! are forked by one thread that lives as long as the process does. Programs that these programs
//! start in turn are not covered: for those there is [`Spawn::own_group`] and [`kill_group`].
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError, mpsc};

use super::netns::Namespace;

/// A program to be started: a command, and where and how.
#[derive(Debug)]
pub struct Spawn {
    command: Command,
    namespace: Option<OwnedFd>,
    cpus: Vec<usize>,
}

/// A child to start, and the channel for the answer.
type Order = (Spawn, mpsc::SyncSender<io::Result<Child>>);

impl Spawn {
    /// Starts from `command`: program, arguments, environment, standard streams as set there.
    #[must_use]
    pub fn new(command: Command) -> Self {
        Self { command, namespace: None, cpus: Vec::new() }
    }

    /// Runs the program inside `namespace`.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn in_namespace(mut self, namespace: &Namespace) -> io::Result<Self> {
        self.namespace = Some(namespace.fd().try_clone_to_owned()?);
        Ok(self)
    }

    /// Makes the program the leader of its own process group, for [`kill_group`]; signals of the
    /// terminal (Ctrl-C) then do not reach it.
    #[must_use]
    pub fn own_group(mut self) -> Self {
        self.command.process_group(0);
        self
    }

    /// Lets the program run only on these CPUs (numbers from 0).
    #[must_use]
    pub fn on_cpus(mut self, cpus: &[usize]) -> Self {
        self.cpus = cpus.to_vec();
        self
    }

    /// Starts the program. It is killed by the kernel when this process ends in whatever way.
    ///
    /// # Errors
    /// Program not found, no right to enter the namespace, no process left.
    pub fn spawn(self) -> io::Result<Child> {
        let (reply, answer) = mpsc::sync_channel(1);
        let gone = || io::Error::other("the spawner thread has ended");
        spawner()?.send((self, reply)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

/// Starts `command`, inside `namespace` if one is given; short for [`Spawn`].
///
/// # Errors
/// As [`Spawn::spawn`].
pub fn spawn(command: Command, namespace: Option<&Namespace>) -> io::Result<Child> {
    let spawn = Spawn::new(command);
    match namespace {
        Some(namespace) => spawn.in_namespace(namespace)?.spawn(),
        None => spawn.spawn(),
    }
}

/// Sends SIGKILL to the whole process group that `child` leads (see [`Spawn::own_group`]). Does
/// not wait; a group that has ended is no error.
///
/// # Errors
/// When the group may not be signalled.
pub fn kill_group(child: &Child) -> io::Result<()> {
    signal_group(child, rustix::process::Signal::KILL)
}

/// Sends SIGINT to the whole process group that `child` leads, the polite end.
///
/// # Errors
/// When the group may not be signalled.
pub fn interrupt_group(child: &Child) -> io::Result<()> {
    signal_group(child, rustix::process::Signal::INT)
}

fn signal_group(child: &Child, signal: rustix::process::Signal) -> io::Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let Some(pid) = pid else { return Err(io::ErrorKind::InvalidInput.into()) };
    match rustix::process::kill_process_group(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The way to the one thread that forks.
fn spawner() -> io::Result<mpsc::Sender<Order>> {
    static SPAWNER: Mutex<Option<mpsc::Sender<Order>>> = Mutex::new(None);
    let mut slot = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sender) = slot.as_ref() {
        return Ok(sender.clone());
    }
    let (sender, orders) = mpsc::channel::<Order>();
    std::thread::Builder::new().name("spawner".into()).spawn(move || {
        for (spawn, reply) in orders {
            // A caller that has gone away loses the child, and with it nobody would reap it.
            if let Err(mpsc::SendError(Ok(mut child))) = reply.send(fork_and_exec(spawn)) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    })?;
    Ok(slot.insert(sender).clone())
}

fn fork_and_exec(spawn: Spawn) -> io::Result<Child> {
    let Spawn { mut command, namespace, cpus } = spawn;
    let parent = rustix::process::getpid();
    let cpu_set = super::affinity::cpu_set(&cpus)?;
    let before_exec = move || {
        // SAFETY: `prctl` with PR_SET_PDEATHSIG takes one number and touches no memory.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // The parent may have died between fork and prctl; then no signal would ever come.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        if let Some(namespace) = &namespace {
            // SAFETY: `setns` takes a descriptor, open as long as this closure lives, and a flag.
            let done = unsafe { libc::setns(namespace.as_fd().as_raw_fd(), libc::CLONE_NEWNET) };
            if done != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        if let Some(set) = &cpu_set {
            rustix::thread::sched_setaffinity(None, set)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls run: no allocation, no lock.
    unsafe { command.pre_exec(before_exec) };
    command.spawn()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_program_outlives_the_thread_that_asked_for_it() {
        let mut child = std::thread::spawn(|| {
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            Spawn::new(command).own_group().on_cpus(&[0]).spawn().unwrap()
        })
        .join()
        .unwrap();
        drop(child.stdin.take());
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(text, "");
    }

    #[test]
    fn a_missing_program_is_an_error_and_the_next_spawn_works() {
        assert!(spawn(Command::new("/no/such/program"), None).is_err());
        assert!(spawn(Command::new("true"), None).unwrap().wait().unwrap().success());
    }

    #[test]
    fn a_group_is_killed_whole() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & wait"]).stdout(Stdio::piped());
        let mut child = Spawn::new(command).own_group().spawn().unwrap();
        kill_group(&child).unwrap();
        child.wait().unwrap();
        // The grandchild holds the pipe: its end is seen only when both are dead.
        let mut rest = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        kill_group(&child).unwrap();
    }

    #[test]
    #[ignore = "needs root"]
    fn a_program_runs_inside_the_namespace() {
        let ns = Namespace::new().expect("needs root");
        let mut command = Command::new("readlink");
        command.arg("/proc/self/ns/net").stdout(Stdio::piped());
        let output = spawn(command, Some(&ns)).unwrap().wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(&ns.id().unwrap().to_string()), "{text}");
    }
}
