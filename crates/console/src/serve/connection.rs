//! One connection of the control socket: lines in, lines out.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use control::{ControlLine, LINE_MAX};

use super::answer::{self, Peer, Served};
use super::words::GeneratorCommand;
use crate::interrupt::Interrupt;
use crate::stderr::bounded;

/// The longest that an answer may stay unread.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// The open connections, so that they can be ended from outside.
#[derive(Debug, Default)]
pub(super) struct Connections {
    open: Mutex<(u64, BTreeMap<u64, UnixStream>)>,
}

impl Connections {
    /// The place of a connection; none when `most` are open or no descriptor is left.
    pub(super) fn add(&self, stream: &UnixStream, most: usize) -> Option<u64> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, streams) = &mut *open;
        if streams.len() >= most {
            return None;
        }
        streams.insert(*next, stream.try_clone().ok()?);
        *next += 1;
        Some(*next - 1)
    }

    pub(super) fn remove(&self, place: u64) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.1.remove(&place);
    }

    /// Ends all of them.
    pub(super) fn shut_down(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in open.1.values() {
            // The only failure is a peer that ended it already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Answers requests until the peer ends the connection. An error is one of this connection alone.
pub(super) fn serve(stream: &UnixStream, served: &Mutex<Served>, interrupt: &Interrupt) {
    if let Err(error) = answer_lines(stream, served, interrupt) {
        tracing::debug!(%error, "a control connection ended");
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// One line to a connection that is not served. It fits an empty socket's buffer; a peer that does
/// not read it sees the end only.
pub(super) fn refuse(mut stream: &UnixStream, line: &ControlLine) {
    let _ = stream.set_nonblocking(true).and_then(|()| stream.write_all(&line.encode()));
}

fn answer_lines(
    mut stream: &UnixStream,
    served: &Mutex<Served>,
    interrupt: &Interrupt,
) -> std::io::Result<()> {
    // Accepted from a listener that does not block.
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let mut read = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut read).take(LINE_MAX as u64 + 1);
        if limited.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.pop_if(|last| *last == b'\n').is_none() {
            let why = if line.len() > LINE_MAX {
                format!("a request is one line of at most {LINE_MAX} bytes")
            } else {
                "the request has no end: it is a line, which ends with a line feed".to_owned()
            };
            return stream.write_all(&ControlLine::Refused(why).encode());
        }
        let outcome = match serde_json::from_slice::<GeneratorCommand>(&line) {
            Ok(command) => answer::answer(served, &command, &Peer { stream, interrupt }),
            Err(error) => Err(bounded(&format!("not a request: {error}"))),
        };
        let mut bytes = Vec::new();
        match outcome {
            Ok(value) => {
                bytes.extend(ControlLine::Value(value).encode());
                bytes.extend(ControlLine::Done.encode());
            }
            Err(why) => bytes.extend(ControlLine::Refused(why).encode()),
        }
        stream.write_all(&bytes)?;
    }
}
