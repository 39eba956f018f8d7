//! A program that the lab runs: started in its namespace, its output in a log, ended with its
//! owner.
//!
//! Dropping a [`Process`] ends it: the end of its input, where it has one, SIGTERM, each with a few
//! seconds to obey, then SIGKILL. The kernel kills it too when the lab itself dies. A program must
//! never outlive the value that owns it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use netdev::sys::netns::Namespace;
use netdev::sys::spawn::{Spawn, kill_group};
use rustix::process::Signal;

use crate::cancel::{Cancel, Stopped};
use crate::scratch::{self, signal};

/// Time for a program after the end of its input, and after SIGTERM.
const TERM_WAIT: Duration = Duration::from_secs(3);

/// Between two looks whether it has obeyed.
const TERM_STEP: Duration = Duration::from_millis(1);

/// Lines of a log in an error.
const TAIL_LINES: usize = 12;

/// Errors of a program.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The program of that command line could not be started.
    #[error("cannot start `{0}`: {1}")]
    Start(String, #[source] io::Error),
    /// It ended by itself.
    #[error("`{name}` ended early ({status}); its last lines:\n{tail}")]
    Ended {
        /// Name of the program.
        name: String,
        /// Its exit status.
        status: ExitStatus,
        /// The end of its log.
        tail: String,
    },
    /// It did not do what was waited for.
    #[error("`{name}` did not {what} within {limit_s} s; its last lines:\n{tail}")]
    Late {
        /// Name of the program.
        name: String,
        /// The event that did not come.
        what: String,
        /// For how long, seconds.
        limit_s: u64,
        /// The end of its log.
        tail: String,
    },
    /// The run was interrupted.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The system refused something about the program of that name.
    #[error("`{0}`: {1}")]
    System(String, #[source] io::Error),
}

impl ProcessError {
    /// The exit code of a program that has ended by itself.
    pub fn code(&self) -> Option<i32> {
        if let Self::Ended { status, .. } = self { status.code() } else { None }
    }

    /// The last lines of the program; none where it did not start or was interrupted.
    pub fn tail(&self) -> &str {
        if let Self::Ended { tail, .. } | Self::Late { tail, .. } = self { tail } else { "" }
    }
}

/// A running program.
#[derive(Debug)]
pub struct Process {
    /// The name that it was started with.
    pub name: String,
    /// The command line.
    pub command: String,
    /// The file that has its output.
    pub log: PathBuf,
    child: Child,
    /// The other end of its input.
    stream: Option<UnixStream>,
}

/// Process ids of all programs that the lab runs now, for the load sampler.
static LIVE: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn live_set() -> MutexGuard<'static, BTreeSet<u32>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Process ids of all programs that run now.
pub fn live() -> Vec<u32> {
    live_set().iter().copied().collect()
}

/// The command line as a shell would take it, for reports.
pub fn command_line(command: &Command) -> String {
    let quote = |word: &OsStr| {
        let word = word.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+:,./@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let words: Vec<String> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(quote).collect();
    words.join(" ")
}

impl Process {
    /// Starts `command` as `name`, its output in `dir/name.log`, inside `namespace` if given.
    pub fn start(
        name: &str,
        command: Command,
        namespace: Option<&Namespace>,
        dir: &Path,
    ) -> Result<Self, ProcessError> {
        Self::start_with(name, command, namespace, dir, None)
    }

    /// The same with an input, which [`Process::stream`] is the other end of. With `answers` the
    /// standard output goes there too, and the log has the standard error only.
    pub fn start_over_stream(
        name: &str,
        command: Command,
        answers: bool,
        dir: &Path,
    ) -> Result<Self, ProcessError> {
        Self::start_with(name, command, None, dir, Some(answers))
    }

    fn start_with(
        name: &str,
        mut command: Command,
        namespace: Option<&Namespace>,
        dir: &Path,
        over_stream: Option<bool>,
    ) -> Result<Self, ProcessError> {
        let line = command_line(&command);
        let log = dir.join(format!("{name}.log"));
        let start = || -> io::Result<(Child, Option<UnixStream>)> {
            let file = File::create(&log)?;
            command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
            let mut stream = None;
            if let Some(answers) = over_stream {
                let (ours, theirs) = UnixStream::pair()?;
                if answers {
                    command.stdout(OwnedFd::from(theirs.try_clone()?));
                }
                command.stdin(OwnedFd::from(theirs));
                stream = Some(ours);
            }
            // By this what a killed run left is told from what is another's.
            command.env(scratch::MARK, dir);
            let spawn = Spawn::new(command).own_group();
            let child = match namespace {
                Some(namespace) => spawn.in_namespace(namespace)?.spawn(),
                None => spawn.spawn(),
            };
            Ok((child?, stream))
        };
        let (child, stream) = start().map_err(|error| ProcessError::Start(line.clone(), error))?;
        live_set().insert(child.id());
        Ok(Self { name: name.to_owned(), command: line, child, log, stream })
    }

    /// The other end of its input, where it has one.
    pub fn stream(&self) -> Option<&UnixStream> {
        self.stream.as_ref()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything that it has written so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The last lines of its output, as many as an error quotes.
    pub fn tail(&self) -> String {
        let output = self.output();
        let lines: Vec<&str> = output.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    fn system(&self, error: io::Error) -> ProcessError {
        ProcessError::System(self.name.clone(), error)
    }

    fn late(&self, what: &str, limit: Duration) -> ProcessError {
        let (name, what) = (self.name.clone(), what.to_owned());
        ProcessError::Late { name, what, limit_s: limit.as_secs(), tail: self.tail() }
    }

    /// Fails if the program has ended, with the end of its log.
    pub fn check(&mut self) -> Result<(), ProcessError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                Err(ProcessError::Ended { name: self.name.clone(), status, tail: self.tail() })
            }
            Err(error) => Err(self.system(error)),
        }
    }

    /// Waits until `done` says yes; fails if the program ends before, or after `limit`.
    pub fn wait_until(
        &mut self,
        what: &str,
        limit: Duration,
        cancel: &Cancel,
        mut done: impl FnMut(&Self) -> bool,
    ) -> Result<(), ProcessError> {
        let mut ended = Ok(());
        let reached = cancel.poll(limit, || {
            if done(self) {
                return true;
            }
            ended = self.check();
            ended.is_err()
        })?;
        ended?;
        if reached { Ok(()) } else { Err(self.late(what, limit)) }
    }

    /// Waits until its output holds `text`.
    pub fn wait_for_text(
        &mut self,
        text: &str,
        limit: Duration,
        cancel: &Cancel,
    ) -> Result<(), ProcessError> {
        let what = format!("say {text:?}");
        self.wait_until(&what, limit, cancel, |process| process.output().contains(text))
    }

    /// Waits until the program ends by itself; fails after `limit`.
    pub fn wait_for_end(
        &mut self,
        limit: Duration,
        cancel: &Cancel,
    ) -> Result<ExitStatus, ProcessError> {
        let mut status = None;
        cancel.poll(limit, || {
            status = self.child.try_wait().transpose();
            status.is_some()
        })?;
        match status {
            Some(status) => status.map_err(|error| self.system(error)),
            None => Err(self.late("end", limit)),
        }
    }

    /// Kills it at once, as a power cut does, and waits until it is gone.
    pub fn kill(&mut self) -> Result<(), ProcessError> {
        let killed = kill_group(&self.child).and_then(|()| self.child.wait().map(drop));
        killed.map_err(|error| self.system(error))
    }

    /// Whether it ends within a time.
    pub fn ends_within(&mut self, limit: Duration) -> bool {
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if start.elapsed() >= limit {
                return false;
            }
            std::thread::sleep(TERM_STEP);
        }
        true
    }

    fn end(&mut self) {
        if let Some(stream) = self.stream.take() {
            // One that has gone has closed it.
            let _ = stream.shutdown(Shutdown::Both);
            let _ = self.ends_within(TERM_WAIT);
        }
        if self.ends_within(Duration::ZERO) {
            return;
        }
        // A process that has just ended makes this fail, and then there is nothing to do.
        let _ = signal(self.pid(), Signal::TERM);
        if self.ends_within(TERM_WAIT) {
            return;
        }
        if let Err(error) = kill_group(&self.child) {
            tracing::warn!(name = self.name, %error, "cannot kill");
        }
        if let Err(error) = self.child.wait() {
            tracing::warn!(name = self.name, %error, "cannot wait");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
        live_set().remove(&self.pid());
    }
}

/// A program that a signal holds still, its caches as they are, while another one is measured on
/// its core. A stopped process does not end, so this goes before the program's owner.
#[derive(Debug)]
pub struct Held(u32);

impl Held {
    /// Stops the process until this value goes.
    pub fn hold(pid: u32) -> anyhow::Result<Self> {
        signal(pid, Signal::STOP).context("signalling a forwarder")?;
        Ok(Self(pid))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(error) = signal(self.0, Signal::CONT) {
            tracing::debug!(pid = self.0, %error, "cannot go on");
        }
    }
}

/// Output of a program that has ended.
#[derive(Clone, Debug)]
pub struct Output {
    /// Whether it exited with 0.
    pub success: bool,
    /// Standard output and standard error, in the order of writing.
    pub text: String,
}

/// Runs `command` to its end within `limit`; a failing exit code is no error here.
pub fn run(
    name: &str,
    command: Command,
    namespace: Option<&Namespace>,
    dir: &Path,
    limit: Duration,
    cancel: &Cancel,
) -> Result<Output, ProcessError> {
    let mut process = Process::start(name, command, namespace, dir)?;
    let status = process.wait_for_end(limit, cancel)?;
    Ok(Output { success: status.success(), text: process.output() })
}

#[cfg(test)]
mod tests {
    use super::{Process, ProcessError, command_line, live, run};
    use crate::cancel::Cancel;
    use std::io::{Read as _, Write as _};
    use std::process::Command;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_is_kept_and_readiness_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let cancel = Cancel::default();
        let script = shell("echo is ready >&2; exec sleep 600");
        let mut process = Process::start("p", script, None, dir.path()).unwrap();
        process.wait_for_text("ready", LONG, &cancel).unwrap();
        process.check().unwrap();
        assert_eq!(process.tail(), "is ready");
        let pid = process.pid();
        assert!(live().contains(&pid));
        drop(process);
        assert!(!live().contains(&pid));
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn an_early_end_quotes_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut process =
            Process::start("p", shell("echo no such bridge; exit 3"), None, dir.path()).unwrap();
        let error = process.wait_for_text("ready", LONG, &Cancel::default()).unwrap_err();
        assert!(matches!(error, ProcessError::Ended { .. }));
        assert!(error.to_string().contains("no such bridge"), "{error}");
    }

    #[test]
    fn waiting_has_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut process = Process::start("p", shell("exec sleep 600"), None, dir.path()).unwrap();
        let limit = Duration::from_millis(30);
        let late = process.wait_for_text("ready", limit, &Cancel::default()).unwrap_err();
        assert!(matches!(late, ProcessError::Late { .. }));
        let cancel = Cancel::default();
        cancel.stop();
        let stopped = process.wait_for_text("ready", LONG, &cancel).unwrap_err();
        assert!(matches!(stopped, ProcessError::Stopped(_)));
    }

    #[test]
    fn a_program_that_ignores_sigterm_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let script = shell("trap '' TERM; echo deaf; while :; do sleep 1; done");
        let mut process = Process::start("p", script, None, dir.path()).unwrap();
        process.wait_for_text("deaf", LONG, &Cancel::default()).unwrap();
        let pid = process.pid();
        drop(process);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn a_program_ends_with_its_input() {
        let dir = tempfile::tempdir().unwrap();
        let script = || shell("read word; echo has $word >&2; echo answer $word; cat; echo over");
        for (answers, log) in [(false, "has it\nanswer it\nover\n"), (true, "has it\n")] {
            let process = Process::start_over_stream("p", script(), answers, dir.path()).unwrap();
            process.stream().unwrap().write_all(b"it\n").unwrap();
            if answers {
                let mut answer = [0; 10];
                process.stream().unwrap().read_exact(&mut answer).unwrap();
                assert_eq!(&answer, b"answer it\n");
            }
            drop(process);
            // No signal has cut it short.
            assert_eq!(std::fs::read_to_string(dir.path().join("p.log")).unwrap(), log);
        }
    }

    #[test]
    fn runs_to_the_end_and_names_a_missing_program() {
        let dir = tempfile::tempdir().unwrap();
        let cancel = Cancel::default();
        let output = run("p", shell("echo a; echo b >&2; exit 1"), None, dir.path(), LONG, &cancel);
        let output = output.unwrap();
        assert_eq!((output.success, output.text.as_str()), (false, "a\nb\n"));
        let missing = Command::new("no-such-program-here");
        let error = run("p", missing, None, dir.path(), LONG, &cancel).unwrap_err();
        assert!(error.to_string().contains("no-such-program-here"), "{error}");
    }

    #[test]
    fn command_lines_are_quoted() {
        let mut command = Command::new("a");
        command.args(["--x=1", "two words", "it's", ""]);
        assert_eq!(command_line(&command), r"a --x=1 'two words' 'it'\''s' ''");
    }
}
