//! Messages over a stream of bytes, sent and waited for with a limit.
//!
//! It must never wait without end: every wait has a limit, and asks now and then whether it is to
//! go on.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use channel::BlockingStream;
use rustix::net::sockopt;
use serde::Serialize;

use super::protocol::{self, MessageError};

/// The longest sleep between two looks whether to go on.
const STEP: Duration = Duration::from_millis(50);

/// Bytes that are read at once.
const CHUNK: usize = 1 << 14;

/// Why a message did not go or come.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamError {
    /// The peer has ended the connection.
    #[error("the connection has ended")]
    Ended,
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes received are no message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// Nothing came, or nothing went, in time.
    #[error("silent for {} s", .0.as_secs())]
    Silent(Duration),
}

/// A stream of messages.
#[derive(Debug)]
pub(super) struct MessageStream {
    stream: BlockingStream,
    inbox: Vec<u8>,
}

impl MessageStream {
    pub(super) fn new(stream: BlockingStream) -> Self {
        Self { stream, inbox: Vec::new() }
    }

    /// Sends a message, within `limit`.
    pub(super) fn send(
        &mut self,
        message: &impl Serialize,
        limit: Duration,
    ) -> Result<(), StreamError> {
        let bytes = protocol::encode(message)?;
        let (end, mut rest) = (Instant::now() + limit, bytes.as_slice());
        loop {
            let done = match rest.is_empty() {
                false => self.stream.write(rest).map(|count| rest = &rest[count..]),
                true => match self.stream.flush() {
                    Ok(()) => return Ok(()),
                    failed => failed,
                },
            };
            match done {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(StreamError::Silent(limit));
                    }
                    self.stream.wait(true, left)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The content of the next message; `None` when `goes_on` said before that it is not wanted any
    /// more.
    pub(super) fn receive(
        &mut self,
        limit: Duration,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<u8>>, StreamError> {
        let begun = Instant::now();
        let mut chunk = [0; CHUNK];
        loop {
            if let Some(content) = protocol::take(&mut self.inbox)? {
                return Ok(Some(content));
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(StreamError::Ended),
                Ok(count) => self.inbox.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !goes_on() {
                        return Ok(None);
                    }
                    let left = limit.saturating_sub(begun.elapsed());
                    if left.is_zero() {
                        return Err(StreamError::Silent(limit));
                    }
                    self.stream.wait(false, left.min(STEP))?;
                }
                // The peer's process has ended, or its box has.
                Err(error) if is_end(&error) => return Err(StreamError::Ended),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Ends the stream, and gives what was sent last the time to arrive.
    pub(super) fn finish(self, limit: Duration) {
        // A peer that has gone needs no farewell.
        let _ = self.stream.finish(&[], Instant::now() + limit);
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted
    )
}

/// Has the kernel ask a silent peer every few seconds: of a box that has lost its power nothing
/// else is heard.
pub(super) fn watch_over(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(2))?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    Ok(())
}
