//! Streams for programs with threads instead of a runtime: TCP, TLS and Unix sockets that are read
//! and written without waiting, and waited for in one place.
//!
//! The same endpoints, certificates and error texts as [`crate::transport`]. Nothing here knows
//! OpenFlow.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use crate::endpoint::Endpoint;
use crate::tls::{Tls, TlsFiles, explain};
use crate::transport::TransportError;

/// The longest that connecting takes, over all addresses of a name, with a TLS handshake after it.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// Bytes read at once when nobody wants them any more.
const DROPPED_CHUNK_BYTES: usize = 1 << 14;

/// A stream of bytes to a peer. Reading and writing never wait; they fail with
/// [`io::ErrorKind::WouldBlock`] where they would, and [`BlockingStream::wait`] is for waiting.
#[derive(Debug)]
pub struct BlockingStream {
    carrier: Carrier,
}

#[derive(Debug)]
enum Carrier {
    Tcp(TcpStream),
    Tls(Box<TlsStream>),
    Unix(UnixStream),
}

/// TLS over a socket that does not wait.
#[derive(Debug)]
struct TlsStream {
    session: ClientConnection,
    socket: TcpStream,
    /// Ours, for the words of errors.
    files: Arc<TlsFiles>,
}

impl BlockingStream {
    /// Connects to an active endpoint, within 10 s, and within 10 s more for TLS. The addresses of
    /// a name share the time; what its resolver takes for them comes on top.
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
            Endpoint::Unix(path) => {
                connect_unix(path, CONNECT_DEADLINE).and_then(Self::unix).map_err(failed)
            }
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
    /// the socket does not show.
    ///
    /// # Errors
    /// When the system call fails.
    pub fn wait(&self, for_room: bool, timeout: Duration) -> io::Result<()> {
        let tls_waits = match &self.carrier {
            Carrier::Tls(stream) => stream.session.wants_write(),
            Carrier::Tcp(_) | Carrier::Unix(_) => false,
        };
        wait_for(self.carrier.socket(), in_or_out(for_room || tls_waits), timeout)
    }

    /// Sends `rest` and what TLS still holds, ends the stream, and waits until the peer has ended
    /// it too, all by `deadline`. What the peer sends meanwhile is read and dropped: a socket that
    /// is closed with bytes unread resets the connection (RFC 2525, 2.17), and the last bytes that
    /// were sent are lost with it.
    ///
    /// # Errors
    /// When the stream fails, or the time is over first.
    pub fn finish(mut self, mut rest: &[u8], deadline: Instant) -> io::Result<()> {
        let (mut is_sent, mut peer_has_ended) = (false, false);
        loop {
            if !is_sent && self.carrier.send_rest(&mut rest)? {
                self.carrier.end()?;
                is_sent = true;
            }
            peer_has_ended = peer_has_ended || self.carrier.drop_input()?;
            if is_sent && peer_has_ended {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            // A stream that has ended is always ready to be read.
            let input = if peer_has_ended { PollFlags::empty() } else { PollFlags::IN };
            let room = if is_sent { PollFlags::empty() } else { PollFlags::OUT };
            wait_for(self.carrier.socket(), input | room, left)?;
        }
    }
}

impl Carrier {
    fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.socket.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }

    /// Writes what the socket takes of `rest`, which it shortens, and of what TLS holds, with its
    /// close_notify (RFC 8446, 6.1) behind; whether that was all.
    fn send_rest(&mut self, rest: &mut &[u8]) -> io::Result<bool> {
        loop {
            let written = match self {
                Self::Tcp(_) | Self::Unix(_) if rest.is_empty() => return Ok(true),
                Self::Tcp(stream) => write_part(stream, rest),
                Self::Unix(stream) => write_part(stream, rest),
                Self::Tls(stream) => {
                    let TlsStream { session, socket, .. } = &mut **stream;
                    if !rest.is_empty() {
                        write_part(&mut session.writer(), rest)?;
                    }
                    if rest.is_empty() {
                        session.send_close_notify();
                        if !session.wants_write() {
                            return Ok(true);
                        }
                    }
                    session.write_tls(socket).map(drop)
                }
            };
            match written {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends our direction of the stream.
    fn end(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Tls(stream) => stream.socket.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }

    /// Reads once from the socket, without TLS, and drops what came; whether the peer has ended the
    /// stream.
    fn drop_input(&mut self) -> io::Result<bool> {
        let mut dropped = [0; DROPPED_CHUNK_BYTES];
        let read = match self {
            Self::Tcp(stream) => stream.read(&mut dropped),
            Self::Tls(stream) => stream.socket.read(&mut dropped),
            Self::Unix(stream) => stream.read(&mut dropped),
        };
        match read {
            Ok(count) => Ok(count == 0),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// Writes once, and shortens `rest` by what was taken.
fn write_part(to: &mut impl Write, rest: &mut &[u8]) -> io::Result<()> {
    let count = to.write(rest)?;
    *rest = rest.get(count..).unwrap_or_default();
    Ok(())
}

/// Connects to the first address of a name that answers.
fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    connect_first(&addresses, Instant::now, |address, limit| {
        TcpStream::connect_timeout(address, limit)
    })
}

/// Tries the addresses in their order, all within [`CONNECT_DEADLINE`]; each has an equal part of
/// the time that is left, so that one which does not answer keeps none of the others from being
/// tried.
fn connect_first<T>(
    addresses: &[SocketAddr],
    now: impl Fn() -> Instant,
    connect: impl Fn(&SocketAddr, Duration) -> io::Result<T>,
) -> io::Result<T> {
    let end = now() + CONNECT_DEADLINE;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for (address, untried) in addresses.iter().zip((1..=addresses.len()).rev()) {
        let left = end.saturating_duration_since(now());
        let limit = left / u32::try_from(untried).unwrap_or(u32::MAX);
        if limit.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match connect(address, limit) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Connects to a Unix socket. Without the limit a listener whose queue is full would be waited for
/// without end.
fn connect_unix(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(limit))?;
    match rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address)) {
        Ok(()) => {}
        Err(rustix::io::Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
        Err(error) => return Err(error.into()),
    }
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, None)?;
    Ok(socket.into())
}

fn encrypt(stream: TcpStream, host: &str, tls: &Tls) -> io::Result<BlockingStream> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let session = ClientConnection::new(tls.client(), name).map_err(io::Error::other)?;
    TlsStream::shake_hands(session, stream, tls)
}

impl TlsStream {
    /// The handshake, within [`CONNECT_DEADLINE`].
    fn shake_hands(
        session: ClientConnection,
        socket: TcpStream,
        tls: &Tls,
    ) -> io::Result<BlockingStream> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let mut stream = Self { session, socket, files: Arc::clone(tls.files()) };
        let end = Instant::now() + CONNECT_DEADLINE;
        while stream.session.is_handshaking() {
            match stream.session.complete_io(&mut stream.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        let why =
                            "the handshake was not done within 10 s; does the peer speak TLS?";
                        return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                    }
                    let wanted = in_or_out(stream.session.wants_write());
                    wait_for(stream.socket.as_fd(), wanted, left)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(BlockingStream { carrier: Carrier::Tls(Box::new(stream)) })
    }
}

impl Read for TlsStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.session, &mut self.socket).read(into)
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.session, &mut self.socket).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        rustls::Stream::new(&mut self.session, &mut self.socket).flush()
    }
}

/// Bytes to read and, where that is asked for, room to write.
fn in_or_out(for_room: bool) -> PollFlags {
    if for_room { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
}

fn wait_for(socket: BorrowedFd<'_>, wanted: PollFlags, timeout: Duration) -> io::Result<()> {
    let mut watched = [PollFd::new(&socket, wanted)];
    let timeout = Timespec::try_from(timeout).ok();
    match poll(&mut watched, timeout.as_ref()) {
        // A signal: the caller looks at its clock and waits again.
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The error of a TLS stream in words that name our files.
fn explained(error: io::Error, files: &TlsFiles) -> io::Error {
    let is_tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
    if is_tls { io::Error::new(error.kind(), explain(&error, files)) } else { error }
}

impl Read for BlockingStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.carrier {
            Carrier::Tcp(stream) => stream.read(into),
            Carrier::Tls(stream) => {
                stream.read(into).map_err(|error| explained(error, &stream.files))
            }
            Carrier::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.carrier {
            Carrier::Tcp(stream) => stream.write(bytes),
            Carrier::Tls(stream) => match stream.write(bytes) {
                // Its buffer is full, since the socket takes no more.
                Ok(0) if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
                outcome => outcome.map_err(|error| explained(error, &stream.files)),
            },
            Carrier::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.carrier {
            Carrier::Tcp(stream) => stream.flush(),
            Carrier::Tls(stream) => stream.flush().map_err(|error| explained(error, &stream.files)),
            Carrier::Unix(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io;
    use std::net::SocketAddr;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

    use super::{CONNECT_DEADLINE, connect_first, connect_unix};

    fn addresses(count: u16) -> Vec<SocketAddr> {
        (1..=count).map(|port| SocketAddr::from(([192, 0, 2, 1], port))).collect()
    }

    #[test]
    fn the_addresses_of_a_name_share_one_deadline() {
        let (start, spent) = (Instant::now(), Cell::new(Duration::ZERO));
        let tried = Cell::new(0);
        let silent = |_: &SocketAddr, limit: Duration| {
            tried.set(tried.get() + 1);
            spent.set(spent.get() + limit);
            Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut))
        };
        let outcome = connect_first(&addresses(7), || start + spent.get(), silent);
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(tried.get(), 7, "each has its part of the time");
        assert!(spent.get() <= CONNECT_DEADLINE, "{:?}", spent.get());
        assert!(spent.get() > CONNECT_DEADLINE - Duration::from_millis(1), "{:?}", spent.get());
    }

    #[test]
    fn the_time_that_an_address_leaves_is_for_the_others() {
        let (start, limits) = (Instant::now(), Cell::new(Vec::new()));
        let third_answers = |address: &SocketAddr, limit: Duration| {
            let mut seen = limits.take();
            seen.push(limit);
            limits.set(seen);
            if address.port() == 3 { Ok(3) } else { Err(io::ErrorKind::ConnectionRefused.into()) }
        };
        // Refused at once, so that no time passes.
        assert_eq!(connect_first(&addresses(4), || start, third_answers).unwrap(), 3);
        let parts = [4, 3, 2].map(|untried| CONNECT_DEADLINE / untried);
        assert_eq!(limits.take(), parts);
        let none = connect_first(&[], || start, third_answers).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_listener_whose_queue_is_full_is_not_waited_for_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&listener, 0).unwrap();
        let _first = UnixStream::connect(&path).unwrap();
        let error = connect_unix(&path, Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    }
}
