//! Pumps a [`Connection`] over a [`Stream`] on tokio, without a task or a channel per message.
//!
//! A turn writes the send queue in as few calls as the stream takes, then waits for bytes, room or
//! a deadline, whichever is first. The owner handles the events of a turn and queues its replies;
//! the next turn writes them all at once, so that one read and one write carry as many messages as
//! have come. It must never read on where [`Connection::wants_input`] says no.

use crate::connection::Connection;
use crate::event::DownReason;
use crate::settings::ConnectionSettings;
use crate::transport::{DetachedStream, Stream};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Sleep;

/// Bytes read at once. Larger gains nothing measurable: 64 KiB holds forty whole frames, and stays
/// in the processor's cache together with the answers.
const CHUNK_BYTES: usize = 1 << 16;

thread_local! {
    /// Bytes of one read, until the connection has taken them. All connections of a thread share
    /// it: a thousand of them had 64 MB of such buffers, which the allocator did not give back.
    static CHUNK: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK_BYTES].into_boxed_slice());
}

/// Deadline of [`Link::finish`].
const FINISH_DEADLINE: Duration = Duration::from_secs(1);

/// Bytes read at once when nobody wants them any more.
const DROPPED_CHUNK_BYTES: usize = 1 << 14;

/// A connection and the stream that carries it.
#[derive(Debug)]
pub struct Link {
    connection: Connection,
    stream: Stream,
    timer: Option<Pin<Box<Sleep>>>,
    /// Writing has failed; what the peer sent before is still read.
    write_failed: Option<String>,
}

/// A connection and its stream on the way from one thread's runtime to another's.
#[derive(Debug)]
pub struct DetachedLink {
    connection: Connection,
    stream: DetachedStream,
    write_failed: Option<String>,
}

impl DetachedLink {
    /// Goes on in the runtime of the calling thread. Events that were not polled before are there
    /// still: poll them before the first turn.
    ///
    /// # Errors
    /// The system's error; the stream is closed then.
    pub fn attach(self) -> io::Result<Link> {
        let Self { connection, stream, write_failed } = self;
        Ok(Link { connection, stream: stream.attach()?, timer: None, write_failed })
    }
}

/// The time of tokio's clock, which a test can stop.
#[must_use]
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl Link {
    /// A new connection over an open stream.
    #[must_use]
    pub fn new(stream: Stream, settings: ConnectionSettings) -> Self {
        Self {
            connection: Connection::new(settings, now()),
            stream,
            timer: None,
            write_failed: None,
        }
    }

    /// The connection.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Writes the send queue, then returns as soon as there are events to poll, or room in an
    /// output that was full. Safe to drop at any time, for use in `select!`.
    pub async fn turn(&mut self) {
        poll_fn(|cx| self.poll_turn(cx)).await;
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let was_full = self.connection.is_full();
            self.write(cx);
            if self.connection.is_over() {
                return Poll::Ready(());
            }
            // Reading comes before room: an owner that fills the room again at once, in the middle
            // of a long reply, must not keep the peer's echo requests unread.
            let came = self.connection.wants_input() && self.read(cx).is_ready();
            if came || (was_full && !self.connection.is_full()) {
                return Poll::Ready(());
            }
            ready!(self.poll_timer(cx));
            self.connection.handle_timeout(now());
        }
    }

    /// Writes until nothing waits or the stream takes no more.
    fn write(&mut self, cx: &mut Context<'_>) {
        while !self.connection.transmit().is_empty() {
            let bytes = self.connection.transmit();
            if self.write_failed.is_some() {
                let count = bytes.len();
                self.connection.transmitted(count, now());
                return;
            }
            match Pin::new(&mut self.stream).poll_write(cx, bytes) {
                Poll::Ready(Ok(count)) if count > 0 => self.connection.transmitted(count, now()),
                Poll::Ready(Ok(_)) => self.write_failed = Some("it takes no more bytes".into()),
                Poll::Ready(Err(error)) => self.write_failed = Some(error.to_string()),
                Poll::Pending => return,
            }
        }
        // TLS keeps what its socket did not take yet; it goes on here whenever there is room.
        if let Poll::Ready(Err(error)) = Pin::new(&mut self.stream).poll_flush(cx) {
            self.write_failed = Some(error.to_string());
        }
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        CHUNK.with_borrow_mut(|chunk| self.read_into(cx, chunk))
    }

    fn read_into(&mut self, cx: &mut Context<'_>, chunk: &mut [u8]) -> Poll<()> {
        let mut into = ReadBuf::new(chunk);
        let outcome = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut into));
        match outcome {
            Ok(()) if into.filled().is_empty() => {
                let reason = match self.write_failed.take() {
                    Some(text) => DownReason::Stream(text),
                    None => DownReason::PeerClosed,
                };
                self.connection.stream_ended(reason);
            }
            Ok(()) => self.connection.receive(into.filled(), now()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // TLS that ends without close_notify: every message says its own length, so that
            // nothing can be cut off unseen.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.connection.stream_ended(DownReason::PeerClosed);
            }
            Err(error) => self.connection.stream_ended(DownReason::Stream(error.to_string())),
        }
        Poll::Ready(())
    }

    /// Ready when the connection's next deadline has come.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.connection.next_timeout() else { return Poll::Pending };
        let at = tokio::time::Instant::from_std(at);
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        // Deadlines mostly move away as bytes come. A timer that is early asks again then, which is
        // cheaper than to move it on every turn.
        if timer.deadline() > at {
            timer.as_mut().reset(at);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= at {
                return Poll::Ready(());
            }
            timer.as_mut().reset(at);
        }
    }

    /// Takes the connection out of this thread's runtime, for another thread to go on with it.
    ///
    /// # Errors
    /// The system's error; the stream is closed then.
    pub fn detach(self) -> io::Result<DetachedLink> {
        let Self { connection, stream, write_failed, .. } = self;
        Ok(DetachedLink { connection, stream: stream.detach()?, write_failed })
    }

    /// Sends what waits, for at most a second, and closes the stream.
    pub async fn finish(mut self) {
        let rest = async {
            while !self.connection.transmit().is_empty() && self.write_failed.is_none() {
                match self.stream.write(self.connection.transmit()).await {
                    Ok(count) if count > 0 => self.connection.transmitted(count, now()),
                    Ok(_) | Err(_) => break,
                }
            }
            self.stream.flush().await?;
            self.stream.shutdown().await
        };
        match tokio::time::timeout(FINISH_DEADLINE, rest).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "stream was closed before its end"),
            Err(_) => tracing::debug!("the peer did not take the last bytes in time"),
        }
    }

    /// Sends what waits, ends the stream, and waits until the peer has ended it too, all within
    /// `limit`. What the peer sends meanwhile is read and dropped, for the reason that
    /// [`crate::BlockingStream::finish`] names.
    pub async fn finish_both_ways(self, limit: Duration) {
        let Self { connection, stream, write_failed, .. } = self;
        if write_failed.is_some() {
            return;
        }
        let (mut reader, mut writer) = tokio::io::split(stream);
        let send_rest = async {
            writer.write_all(connection.transmit()).await?;
            writer.flush().await?;
            writer.shutdown().await
        };
        let drop_input = async {
            let mut dropped = vec![0; DROPPED_CHUNK_BYTES];
            loop {
                match reader.read(&mut dropped).await {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    // TLS that ends without close_notify.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        };
        let both = async { tokio::try_join!(send_rest, drop_input) };
        match tokio::time::timeout(limit, both).await {
            Ok(Ok(((), ()))) => {}
            Ok(Err(error)) => tracing::debug!(%error, "stream was closed before its end"),
            Err(_) => tracing::debug!("the peer did not end the stream in time"),
        }
    }
}
