//! Programs in the background of a test: their lines on standard error as they come, a wait for
//! one of them, and an end with the value that stands for the program.
//!
//! Nothing here knows what a program is for. It must never leave one running, nor wait for ever.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The time that anything may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Asks again until there is an answer.
pub(crate) fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(Instant::now() < end, "not within {} s: {what}", DEADLINE.as_secs());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The program of this build, without input.
pub(crate) fn weir(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Everything that a program that has ended printed.
pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Sends a signal, by its name as in `TERM`.
pub(crate) fn signal(child: &Child, name: &str) {
    let kill = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
}

/// A port of this machine that nobody listens on now.
pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[derive(Default)]
struct Log {
    lines: Vec<(Instant, String)>,
    is_closed: bool,
}

/// A program in the background; it ends with the value, and a test that fails shows its lines.
pub(crate) struct Running {
    pub(crate) child: Child,
    log: Arc<Mutex<Log>>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("{name}: {error}; `cargo xtask test` as root installs it")
        });
        let log: Arc<Mutex<Log>> = Arc::default();
        let (from, into) = (BufReader::new(child.stderr.take().unwrap()), Arc::clone(&log));
        std::thread::spawn(move || {
            for line in from.lines().map_while(Result::ok) {
                into.lock().unwrap().lines.push((Instant::now(), line));
            }
            into.lock().unwrap().is_closed = true;
        });
        Self { child, log }
    }

    /// The lines of its standard error, with the times at which they came.
    pub(crate) fn timed_lines(&self) -> Vec<(Instant, String)> {
        self.log.lock().unwrap().lines.clone()
    }

    /// The lines of its standard error.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.timed_lines().into_iter().map(|(_, line)| line).collect()
    }

    /// Waits for a line with this mark; the rest of the line after it.
    pub(crate) fn says(&self, mark: &str) -> String {
        until(mark, || {
            let log = self.log.lock().unwrap();
            let rest = log.lines.iter().find_map(|(_, line)| line.split_once(mark));
            assert!(rest.is_some() || !log.is_closed, "it ended before {mark:?}");
            rest.map(|(_, rest)| rest.to_owned())
        })
    }

    /// Waits for a line with this mark; the word after it.
    pub(crate) fn word_after(&self, mark: &str) -> String {
        self.says(mark).split([',', ' ']).next().unwrap_or_default().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; a stopped one is ended too.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            self.lines().iter().for_each(|line| eprintln!("{}: {line}", self.child.id()));
        }
    }
}
