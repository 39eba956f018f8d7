//! Streams for programs with threads instead of a runtime: TCP, TLS and Unix sockets that are read
//! and written without waiting, and waited for in one place.
//!
//! The same endpoints, certificates and error texts as [`crate::transport`]. Nothing here knows
//! OpenFlow.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::endpoint::Endpoint;
use crate::tls::{Tls, TlsFiles, explain};
use crate::transport::TransportError;

/// How long an attempt to connect may take, and a TLS handshake behind it.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// A stream of bytes to a peer. Reading and writing never wait; they fail with
/// [`io::ErrorKind::WouldBlock`] where they would, and [`BlockingStream::wait`] is for waiting.
#[derive(Debug)]
pub struct BlockingStream {
    carrier: Carrier,
}

#[derive(Debug)]
enum Carrier {
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>, Arc<TlsFiles>),
    Unix(UnixStream),
}

impl BlockingStream {
    /// Connects to an active endpoint, within 10 s, and within 10 s more for TLS.
    ///
    /// # Errors
    /// As [`crate::Stream::connect`].
    pub fn connect(endpoint: &Endpoint, tls: Option<&Tls>) -> Result<Self, TransportError> {
        let failed = |error| TransportError::Connect(endpoint.clone(), error);
        match endpoint {
            Endpoint::Tcp { host, port } => {
                connect_tcp(host, *port).and_then(Self::tcp).map_err(failed)
            }
            Endpoint::Ssl { host, port } => {
                let tls = tls.ok_or_else(|| TransportError::NoCertificates(endpoint.clone()))?;
                let stream = connect_tcp(host, *port).map_err(failed)?;
                encrypt(stream, host, tls).map_err(|error| TransportError::Tls {
                    peer: endpoint.to_string(),
                    why: explain(&error, tls.files()),
                })
            }
            Endpoint::Unix(path) => UnixStream::connect(path).and_then(Self::unix).map_err(failed),
            Endpoint::PassiveTcp { .. }
            | Endpoint::PassiveSsl { .. }
            | Endpoint::PassiveUnix(_) => Err(TransportError::NotActive(endpoint.clone())),
        }
    }

    /// An open TCP stream; small writes are sent at once.
    ///
    /// # Errors
    /// When the socket cannot be set so.
    pub fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { carrier: Carrier::Tcp(stream) })
    }

    /// An open Unix stream.
    ///
    /// # Errors
    /// When the socket cannot be set so.
    pub fn unix(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { carrier: Carrier::Unix(stream) })
    }

    /// Waits until there are bytes to read, or, where that is asked for, room to write, or until
    /// the time is over. Read until [`io::ErrorKind::WouldBlock`] before: TLS may hold bytes that
    /// the socket does not tell of.
    ///
    /// # Errors
    /// When the system call fails.
    pub fn wait(&self, for_room: bool, timeout: Duration) -> io::Result<()> {
        let (socket, tls_waits) = match &self.carrier {
            Carrier::Tcp(stream) => (stream.as_fd(), false),
            Carrier::Tls(stream, _) => (stream.sock.as_fd(), stream.conn.wants_write()),
            Carrier::Unix(stream) => (stream.as_fd(), false),
        };
        wait_for(socket, for_room || tls_waits, timeout)
    }

    /// Ends the stream; what was written before still arrives.
    ///
    /// # Errors
    /// When it has ended already.
    pub fn shutdown(&mut self) -> io::Result<()> {
        match &mut self.carrier {
            Carrier::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Carrier::Tls(stream, _) => {
                stream.conn.send_close_notify();
                stream.flush()?;
                stream.sock.shutdown(Shutdown::Write)
            }
            Carrier::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }
}

/// Connects to the first address of a name that answers.
fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_DEADLINE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn encrypt(stream: TcpStream, host: &str, tls: &Tls) -> io::Result<BlockingStream> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let connection = ClientConnection::new(tls.client(), name).map_err(io::Error::other)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let mut stream = StreamOwned::new(connection, stream);
    let end = Instant::now() + CONNECT_DEADLINE;
    while stream.conn.is_handshaking() {
        match stream.conn.complete_io(&mut stream.sock) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    let why = "the handshake was not done within 10 s; does the peer speak TLS?";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
                wait_for(stream.sock.as_fd(), stream.conn.wants_write(), left)?;
            }
            Err(error) => return Err(error),
        }
    }
    let files = Arc::clone(tls.files());
    Ok(BlockingStream { carrier: Carrier::Tls(Box::new(stream), files) })
}

fn wait_for(socket: BorrowedFd<'_>, for_room: bool, timeout: Duration) -> io::Result<()> {
    let room = if for_room { PollFlags::OUT } else { PollFlags::empty() };
    let mut watched = [PollFd::new(&socket, PollFlags::IN | room)];
    let timeout = Timespec::try_from(timeout).ok();
    match poll(&mut watched, timeout.as_ref()) {
        // A signal: the caller looks at its clock and waits again.
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The error of a TLS stream in words that name our files.
fn told(error: io::Error, files: &TlsFiles) -> io::Error {
    let is_tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
    if is_tls { io::Error::new(error.kind(), explain(&error, files)) } else { error }
}

impl Read for BlockingStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.carrier {
            Carrier::Tcp(stream) => stream.read(into),
            Carrier::Tls(stream, files) => stream.read(into).map_err(|error| told(error, files)),
            Carrier::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.carrier {
            Carrier::Tcp(stream) => stream.write(bytes),
            Carrier::Tls(stream, files) => match stream.write(bytes) {
                // Its buffer is full, since the socket takes no more.
                Ok(0) if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
                outcome => outcome.map_err(|error| told(error, files)),
            },
            Carrier::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.carrier {
            Carrier::Tcp(stream) => stream.flush(),
            Carrier::Tls(stream, files) => stream.flush().map_err(|error| told(error, files)),
            Carrier::Unix(stream) => stream.flush(),
        }
    }
}
