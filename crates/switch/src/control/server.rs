//! The server side of the control socket: lines in, lines out, within limits.
//!
//! Whatever comes in harms nothing but its own connection: lines are bounded, silence is bounded,
//! and so is the number of connections.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

use super::protocol::LINE_MAX;
use super::{Command, Line, Request, answer};
use crate::agent::{Agent, serve_tool};
use crate::counters::Counter;

/// Connections at once; further ones are closed.
const CONNECTIONS_MAX: usize = 32;

/// How long a connection may say nothing, or not read what it asked for.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Serves every connection that comes, for ever.
pub(crate) async fn serve_control(agent: Rc<Agent>, listener: UnixListener) {
    let open = Rc::new(Cell::new(0_usize));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "accepting on the control socket failed");
                tokio::time::sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        if open.get() >= CONNECTIONS_MAX {
            agent.counters.bump(Counter::ControlRefused);
            // One line fits an empty socket's buffer; whoever does not read it sees the end only.
            let full = format!("{CONNECTIONS_MAX} control connections are open; end one of them");
            let _ = stream.try_write(&Line::Refused(full).encode());
            continue;
        }
        open.set(open.get() + 1);
        let (agent, open) = (Rc::clone(&agent), Rc::clone(&open));
        tokio::task::spawn_local(async move {
            match serve(&agent, stream).await {
                Ok(Ended::Closed) => {}
                Ok(Ended::Openflow(stream)) => serve_tool(agent, stream).await,
                Err(error) => tracing::debug!(%error, "a control connection ended"),
            }
            open.set(open.get() - 1);
        });
    }
}

/// How the lines of a connection have ended.
enum Ended {
    /// There are no more.
    Closed,
    /// What follows is OpenFlow.
    Openflow(UnixStream),
}

async fn serve(agent: &Agent, stream: UnixStream) -> io::Result<Ended> {
    let (read, write) = stream.into_split();
    let mut read = BufReader::new(read);
    let mut lines = Lines { write: BufWriter::new(write) };
    while let Some(line) = next_line(&mut read).await? {
        agent.counters.bump(Counter::Control);
        let mut speaks_openflow = false;
        let outcome = match serde_json::from_slice::<Request>(&line) {
            Ok(request) => {
                speaks_openflow = request.command == Command::Openflow;
                answer::answer(agent, request, &mut lines).await?
            }
            Err(error) => Err(format!("not a request: {error}")),
        };
        let end = match outcome {
            Ok(()) => Line::Done,
            Err(why) => {
                agent.counters.bump(Counter::ControlRefused);
                Line::Refused(why)
            }
        };
        lines.send(&end).await?;
        lines.flush().await?;
        if speaks_openflow {
            return openflow(read, lines.write);
        }
    }
    Ok(Ended::Closed)
}

/// The stream again, of which nothing may have been read behind the request.
fn openflow(read: BufReader<OwnedReadHalf>, write: BufWriter<OwnedWriteHalf>) -> io::Result<Ended> {
    if !read.buffer().is_empty() {
        let what = "bytes came before the answer to the request for OpenFlow";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let stream = read.into_inner().reunite(write.into_inner()).map_err(io::Error::other)?;
    Ok(Ended::Openflow(stream))
}

/// The next line without its end; `None` at the end of the stream.
async fn next_line(read: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut bounded = read.take(LINE_MAX as u64 + 1);
    let whole = bounded.read_until(b'\n', &mut line);
    let count = tokio::time::timeout(SILENCE_MAX, whole).await.map_err(|_| timed_out())??;
    if count == 0 {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line without end"));
    }
    Ok(Some(line))
}

/// Where an answer's lines go.
pub(super) struct Lines {
    write: BufWriter<OwnedWriteHalf>,
}

impl Lines {
    /// Sends a line; a reader that does not read is given up after a while.
    pub(super) async fn send(&mut self, line: &Line) -> io::Result<()> {
        let bytes = line.encode();
        let write = self.write.write_all(&bytes);
        tokio::time::timeout(SILENCE_MAX, write).await.map_err(|_| timed_out())?
    }

    async fn flush(&mut self) -> io::Result<()> {
        tokio::time::timeout(SILENCE_MAX, self.write.flush()).await.map_err(|_| timed_out())?
    }
}

fn timed_out() -> io::Error {
    io::ErrorKind::TimedOut.into()
}
