//! The server side of the control socket: lines in, lines out, within limits.
//!
//! Bad input harms only its own connection: the length of a line, silence and the number of
//! connections are bounded.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use channel::LogThrottle;
use channel::driver::now;
use control::{ControlCommand, ControlLine, ControlRequest, LINE_MAX};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

use super::answer;
use crate::agent::{Agent, Bridges, serve_tool};
use crate::counters::Counter;

/// Connections at once; further ones are closed.
const CONNECTIONS_MAX: usize = 32;

/// The time that a connection may be silent, or leave an answer unread.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Wait after a failed accept: without descriptors the next one would fail at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Failures of accepting are logged no oftener than this.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Accepts and serves connections, for ever.
pub(crate) async fn serve_control(bridges: Rc<Bridges>, listener: UnixListener) {
    let open = Rc::new(Cell::new(0_usize));
    let mut failures = LogThrottle::new(LOG_EVERY);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                if let Some(suppressed) = failures.pass(now()) {
                    let suppressed = (suppressed > 0).then_some(suppressed);
                    tracing::warn!(%error, suppressed, "accepting on the control socket failed");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if open.get() >= CONNECTIONS_MAX {
            count(bridges.first().as_ref(), Counter::ControlRefused);
            // One line fits an empty socket's buffer; one that does not read it sees the end only.
            let full = format!("{CONNECTIONS_MAX} control connections are open; end one of them");
            let _ = stream.try_write(&ControlLine::Refused(full).encode());
            continue;
        }
        open.set(open.get() + 1);
        let (bridges, open) = (Rc::clone(&bridges), Rc::clone(&open));
        tokio::task::spawn_local(async move {
            match serve(&bridges, stream).await {
                Ok(Ended::Closed) => {}
                Ok(Ended::Openflow(agent, stream)) => serve_tool(agent, stream).await,
                Err(error) => tracing::debug!(%error, "a control connection ended"),
            }
            open.set(open.get() - 1);
        });
    }
}

/// Counts with a bridge, where there is one.
fn count(agent: Option<&Rc<Agent>>, counter: Counter) {
    if let Some(agent) = agent {
        agent.counters.bump(counter);
    }
}

/// The end of the lines of a connection.
enum Ended {
    /// The connection was closed.
    Closed,
    /// It speaks OpenFlow with a bridge from now on.
    Openflow(Rc<Agent>, UnixStream),
}

async fn serve(bridges: &Bridges, stream: UnixStream) -> io::Result<Ended> {
    let (read, write) = stream.into_split();
    let mut read = BufReader::new(read);
    let mut lines = Lines { write: BufWriter::new(write) };
    while let Some(line) = next_line(&mut read).await? {
        let request = serde_json::from_slice::<ControlRequest>(&line);
        let meant =
            request.as_ref().ok().and_then(|asked| bridges.find(asked.bridge.as_deref()).ok());
        // A request that names no known bridge counts with the first one.
        let agent = meant.clone().or_else(|| bridges.first());
        count(agent.as_ref(), Counter::Control);
        let mut speaks_openflow = false;
        let outcome = match request {
            Ok(request) => {
                speaks_openflow = request.command == ControlCommand::Openflow && meant.is_some();
                answer::answer(bridges, request, &mut lines).await?
            }
            Err(error) => Err(format!("not a request: {error}")),
        };
        let end = match outcome {
            Ok(()) => ControlLine::Done,
            Err(why) => {
                count(agent.as_ref(), Counter::ControlRefused);
                ControlLine::Refused(why)
            }
        };
        lines.send(&end).await?;
        lines.flush().await?;
        if let Some(agent) = meant.filter(|_| speaks_openflow) {
            let stream = reunited(read, lines.write)?;
            return Ok(Ended::Openflow(agent, stream));
        }
    }
    Ok(Ended::Closed)
}

/// The whole stream again. An error when bytes behind the request have been read already.
fn reunited(
    read: BufReader<OwnedReadHalf>,
    write: BufWriter<OwnedWriteHalf>,
) -> io::Result<UnixStream> {
    if !read.buffer().is_empty() {
        let what = "bytes came before the answer to the request for OpenFlow";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    read.into_inner().reunite(write.into_inner()).map_err(io::Error::other)
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

/// The lines of answers, to one connection.
pub(super) struct Lines {
    write: BufWriter<OwnedWriteHalf>,
}

impl Lines {
    /// Sends a line; an error when the peer does not read for [`SILENCE_MAX`].
    pub(super) async fn send(&mut self, line: &ControlLine) -> io::Result<()> {
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
