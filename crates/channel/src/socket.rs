//! A TCP socket below TLS that can leave the runtime of one thread for that of another.
//!
//! The state of TLS cannot be taken out of the stream that has it, so the socket under it is
//! exchanged. It must never be read or written while it is detached: that is an error.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The socket: in a runtime, or on the way to one.
#[derive(Debug)]
pub(crate) struct Socket {
    registered: Option<TcpStream>,
    detached: Option<std::net::TcpStream>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { registered: Some(stream), detached: None }
    }

    /// Takes it out of this thread's runtime.
    pub(crate) fn detach(&mut self) -> io::Result<()> {
        if let Some(stream) = self.registered.take() {
            self.detached = Some(stream.into_std()?);
        }
        Ok(())
    }

    /// Puts it into this thread's runtime.
    pub(crate) fn attach(&mut self) -> io::Result<()> {
        if let Some(stream) = self.detached.take() {
            self.registered = Some(TcpStream::from_std(stream)?);
        }
        Ok(())
    }

    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        let stream = self.registered.as_mut().map(Pin::new);
        stream.ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, "the socket is detached"))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().stream()?.poll_read(cx, into)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().stream()?.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().stream()?.poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.registered.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream()?.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream()?.poll_shutdown(cx)
    }
}
