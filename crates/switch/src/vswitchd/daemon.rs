//! The contract of a daemon of Open vSwitch: the name of its process, a locked file with its
//! number, and a parent that returns when the first configuration is carried out.
//!
//! Nothing is forked: the parent starts this program anew with the same words, and waits for a
//! byte on its standard output. Standard error goes through the parent too, so that a shell which
//! reads it does not wait for the daemon's end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::setsid;

/// The name that `ps` and scripts know the process by.
pub(super) const PROCESS_NAME: &str = "ovs-vswitchd";

/// The option that the parent adds for the process in the background.
const DETACHED: &str = "--detached";

/// Names the process; to be called by its first thread.
pub(super) fn name_process() -> io::Result<()> {
    rustix::thread::set_name(c"ovs-vswitchd").map_err(io::Error::from)
}

/// Starts this program in the background and waits until it is ready or has ended.
pub(super) fn start_in_background() -> io::Result<ExitCode> {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_else(|| PROCESS_NAME.into());
    let mut command = Command::new("/proc/self/exe");
    command.arg0(program).args(words).arg(DETACHED);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let errors = child.stderr.take();
    let relay = std::thread::spawn(move || {
        errors.map(|mut errors| io::copy(&mut errors, &mut io::stderr()))
    });
    let mut byte = [0];
    let ready = child.stdout.take().map(|mut stdout| stdout.read(&mut byte));
    match ready {
        Some(Ok(1)) => Ok(ExitCode::SUCCESS),
        Some(_) | None => {
            child.wait()?;
            // It ends with the child's standard error.
            drop(relay.join());
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Leaves the session of the terminal.
pub(super) fn leave_session() -> io::Result<()> {
    setsid()?;
    Ok(())
}

/// Lets the parent return. Standard output and error lead nowhere when it has.
pub(super) fn report_ready() -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(b"1")?;
    stdout.flush()
}

/// The file with the process's number, locked, and removed when it is dropped.
#[derive(Debug)]
pub(super) struct Pidfile {
    path: PathBuf,
    _locked: File,
}

/// Why a file with the process's number cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PidfileError {
    /// Another process has it.
    #[error("{0}: already running as pid {1}, aborting")]
    Running(PathBuf, String),
    /// A system call failed.
    #[error("{0}: {1}; name another by --pidfile")]
    Io(PathBuf, #[source] io::Error),
}

impl Pidfile {
    /// Makes the file, unless a process that runs has locked it.
    pub(super) fn make(path: &Path, overwrites: bool) -> Result<Self, PidfileError> {
        let failed = |error| PidfileError::Io(path.to_owned(), error);
        let held = OpenOptions::new().read(true).write(true).open(path).ok();
        if let Some(held) = held.filter(|_| !overwrites)
            && fcntl_lock(&held, FlockOperation::NonBlockingLockExclusive).is_err()
        {
            let mut number = String::new();
            // Its holder may be writing it just now.
            drop(held.take(32).read_to_string(&mut number));
            return Err(PidfileError::Running(path.to_owned(), number.trim().to_owned()));
        }
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".tmp{}", std::process::id()));
        let fresh = PathBuf::from(name);
        let make = || -> io::Result<File> {
            let mut options = OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o644).open(&fresh)?;
            fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
            writeln!(file, "{}", std::process::id())?;
            std::fs::rename(&fresh, path)?;
            Ok(file)
        };
        Ok(Self { path: path.to_owned(), _locked: make().map_err(failed)? })
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "the pidfile was not removed");
        }
    }
}
