//! The blocking client: one connection for one request.
//!
//! A question takes some tens of microseconds, so that a time series can be made of it. Every wait
//! ends after [`SILENCE_MAX`], so that a switch that is stopped is named and not waited for.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with, sockopt};

use crate::place::fault_of;
use crate::{ControlCommand, ControlLine, ControlRequest};

/// Longest silence of the switch.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens there, or it is another user's.
    #[error("no switch answers on the control socket {path}: {source}; {}", remedy(source))]
    Unreached {
        /// The socket.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// It could be another user's.
    #[error("the control socket {path} is not asked: {fault}; name your switch's by --control")]
    NotOurs {
        /// The socket.
        path: PathBuf,
        /// The fault of its place.
        fault: String,
    },
    /// It listens and does not accept, or accepts and says nothing: stopped, or too busy.
    #[error("no answer from {path} after {seconds} s", seconds = after.as_secs())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// The time waited.
        after: Duration,
    },
    /// The connection failed.
    #[error("{what} {path}: {source}")]
    Broken {
        /// The attempt.
        what: &'static str,
        /// The socket.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The connection ended in the middle of an answer.
    #[error("the switch ended the connection")]
    Closed,
    /// A line that is no answer.
    #[error("the switch at {path} gave another answer than asked: {why}")]
    Odd {
        /// The socket.
        path: PathBuf,
        /// The mistake in it.
        why: String,
    },
    /// The switch refuses the request.
    #[error("{0}")]
    Refused(String),
}

/// Remedy for a control socket that cannot be reached.
fn remedy(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied {
        "run as the user whose switch it is, or as root"
    } else {
        "start weir switch, or name the socket of another by --control"
    }
}

/// The records that the switch at `socket` answers.
///
/// # Errors
/// [`AskError`].
pub fn ask(socket: &Path, request: &ControlRequest) -> Result<Vec<ControlLine>, AskError> {
    ask_within(SILENCE_MAX, socket, request)
}

/// The records that the switch at `socket` answers, where it is silent for no longer than a time.
///
/// # Errors
/// [`AskError`].
pub fn ask_within(
    silence_max: Duration,
    socket: &Path,
    request: &ControlRequest,
) -> Result<Vec<ControlLine>, AskError> {
    let mut lines = BufReader::new(open(silence_max, socket, request)?);
    let mut records = Vec::new();
    loop {
        let mut text = Vec::new();
        let read = lines.read_until(b'\n', &mut text);
        if read.map_err(|error| broken("reading from", socket, error, silence_max))? == 0 {
            return Err(AskError::Closed);
        }
        match line(&text, socket)? {
            ControlLine::Done => return Ok(records),
            ControlLine::Refused(why) => return Err(AskError::Refused(why)),
            record @ (ControlLine::Text(_) | ControlLine::Value(_)) => records.push(record),
        }
    }
}

/// A stream to a bridge of the switch at `socket` that speaks OpenFlow, without timeouts.
///
/// # Errors
/// [`AskError`].
pub fn openflow(socket: &Path, bridge: Option<&str>) -> Result<UnixStream, AskError> {
    let bridge = bridge.map(str::to_owned);
    let request = ControlRequest { json: false, bridge, command: ControlCommand::Openflow };
    let mut stream = open(SILENCE_MAX, socket, &request)?;
    // Byte by byte, since the bytes after the line are the switch's hello.
    let mut text = Vec::new();
    while text.last() != Some(&b'\n') {
        let mut byte = [0];
        let read = stream.read_exact(&mut byte);
        read.map_err(|error| {
            if error.kind() == io::ErrorKind::UnexpectedEof {
                AskError::Closed
            } else {
                broken("reading from", socket, error, SILENCE_MAX)
            }
        })?;
        text.extend(byte);
    }
    match line(&text, socket)? {
        ControlLine::Done => {}
        ControlLine::Refused(why) => return Err(AskError::Refused(why)),
        ControlLine::Text(_) | ControlLine::Value(_) => {
            let why = "a record before the end".to_owned();
            return Err(AskError::Odd { path: socket.to_owned(), why });
        }
    }
    set_timeouts(&stream, None)
        .map_err(|error| broken("setting up", socket, error, SILENCE_MAX))?;
    Ok(stream)
}

fn open(
    silence_max: Duration,
    socket: &Path,
    request: &ControlRequest,
) -> Result<UnixStream, AskError> {
    let failed = |what| move |error| broken(what, socket, error, silence_max);
    let path = || socket.to_owned();
    // A place that cannot be looked at cannot be connected to either.
    if let Ok(Some(fault)) = fault_of(socket) {
        return Err(AskError::NotOurs { path: path(), fault });
    }
    let mut stream = connect(silence_max, socket).map_err(|source| {
        if source.kind() == io::ErrorKind::TimedOut {
            AskError::Silent { path: path(), after: silence_max }
        } else {
            AskError::Unreached { path: path(), source }
        }
    })?;
    set_timeouts(&stream, Some(silence_max)).map_err(failed("setting up"))?;
    let line = serde_json::to_vec(request);
    let mut line = line.map_err(io::Error::other).map_err(failed("asking"))?;
    line.push(b'\n');
    // A switch that refuses the connection says why without having read what is asked: what it
    // says is read even where writing fails.
    let _ = stream.write_all(&line);
    Ok(stream)
}

/// Connects within the time: where the listener's queue is full, as that of a process that is
/// stopped may be, the kernel waits for room without end.
fn connect(silence_max: Duration, socket: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(socket)?;
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let stream = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&stream, sockopt::Timeout::Send, Some(silence_max))?;
    match rustix::io::retry_on_intr(|| rustix::net::connect(&stream, &address)) {
        Ok(()) => Ok(stream.into()),
        Err(rustix::io::Errno::AGAIN) => Err(io::ErrorKind::TimedOut.into()),
        Err(error) => Err(error.into()),
    }
}

fn set_timeouts(stream: &UnixStream, timeout: Option<Duration>) -> io::Result<()> {
    stream.set_read_timeout(timeout)?;
    stream.set_write_timeout(timeout)
}

fn line(text: &[u8], socket: &Path) -> Result<ControlLine, AskError> {
    serde_json::from_slice(text).map_err(|error| {
        let why = format!("{error}: {}", String::from_utf8_lossy(text).trim_end());
        AskError::Odd { path: socket.to_owned(), why }
    })
}

fn broken(what: &'static str, socket: &Path, source: io::Error, after: Duration) -> AskError {
    let path = socket.to_owned();
    // A read that has a timeout ends with either.
    if matches!(source.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
        AskError::Silent { path, after }
    } else {
        AskError::Broken { what, path, source }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::time::Duration;

    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

    use super::{AskError, ask, ask_within};
    use crate::{ControlCommand, ControlLine, ControlRequest};

    #[test]
    fn an_answer_is_its_records_up_to_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let answers = [
                "{\"value\":{\"a\":1}}\n{\"value\":2}\n\"done\"\n",
                "{\"refused\":\"no\"}\n",
                "\n",
                "",
            ];
            for answer in answers {
                let (stream, _) = listener.accept().unwrap();
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                assert!(line.contains("\"command\":\"workers\""), "{line}");
                (&stream).write_all(answer.as_bytes()).unwrap();
            }
        });
        let request = ControlRequest { json: true, bridge: None, command: ControlCommand::Workers };
        let values =
            [ControlLine::Value(serde_json::json!({"a": 1})), ControlLine::Value(2.into())];
        assert_eq!(ask(&path, &request).unwrap(), values);
        assert!(matches!(ask(&path, &request), Err(AskError::Refused(why)) if why == "no"));
        assert!(matches!(ask(&path, &request), Err(AskError::Odd { .. })));
        assert!(matches!(ask(&path, &request), Err(AskError::Closed)));
        server.join().unwrap();
    }

    #[test]
    fn a_socket_where_others_may_write_is_not_asked() {
        let folder = tempfile::tempdir().unwrap();
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(folder.path(), all).unwrap();
        let path = folder.path().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        let request = ControlRequest { json: false, bridge: None, command: ControlCommand::Show };
        let error = ask(&path, &request).unwrap_err();
        assert!(matches!(error, AskError::NotOurs { .. }), "{error}");
    }

    #[test]
    fn who_listens_and_is_silent_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        // The kernel accepts for a process that is stopped.
        let _listener = UnixListener::bind(&path).unwrap();
        let request = ControlRequest { json: false, bridge: None, command: ControlCommand::Show };
        let error = ask_within(Duration::from_secs(1), &path, &request).unwrap_err().to_string();
        assert_eq!(error, format!("no answer from {} after 1 s", path.display()));
    }

    #[test]
    fn who_listens_and_does_not_accept_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&listener, 0).unwrap();
        let _fills_the_queue = UnixStream::connect(&path).unwrap();
        let request = ControlRequest { json: false, bridge: None, command: ControlCommand::Show };
        let outcome = ask_within(Duration::from_secs(1), &path, &request);
        assert!(matches!(outcome, Err(AskError::Silent { .. })), "{outcome:?}");
    }
}
