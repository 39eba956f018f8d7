//! Streams that carry a connection: TCP, TLS and Unix sockets, made or accepted.
//!
//! Every failure names the endpoint and the remedy. Nothing here knows OpenFlow.

use crate::admission::Source;
use crate::endpoint::Endpoint;
use crate::socket::Socket;
use crate::tls::{Tls, TlsFiles, explain};
use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use rustix::process::{Resource, getrlimit};
use rustls::pki_types::ServerName;
use rustls::server::Acceptor;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio_rustls::{LazyConfigAcceptor, TlsConnector, TlsStream};

/// Deadline of an attempt to connect.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// Deadline of a TLS handshake, on either side.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// Peers that may wait to be accepted; the system has a limit of its own (`net.core.somaxconn`).
/// With the usual 1,024, of ten thousand switches that come at once many try again a second later.
const BACKLOG: u32 = 8192;

/// Descriptors of a process that connections of listeners do not take, but for half of a low limit.
const DESCRIPTORS_KEPT: u64 = 64;

/// Why a stream or a listener could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// Somebody listens there already.
    #[error(
        "cannot listen on {0}: the address is in use; end the program that listens there or choose \
         another port or path"
    )]
    AddressInUse(Endpoint),
    /// No interface has the address.
    #[error(
        "cannot listen on {0}: this machine does not have the address; 0.0.0.0 means all it has"
    )]
    NotOurs(Endpoint),
    /// The address or path is for others.
    #[error(
        "cannot listen on {0}: permission denied; ports below 1024 and others' folders need root"
    )]
    Forbidden(Endpoint),
    /// Listening failed otherwise.
    #[error("cannot listen on {0}: {1}")]
    Listen(Endpoint, #[source] io::Error),
    /// Connecting failed.
    #[error("cannot connect to {0}: {1}")]
    Connect(Endpoint, #[source] io::Error),
    /// A passive endpoint where one to connect to is needed.
    #[error("{0} is a place to accept connections, not to connect to; use tcp:, ssl: or unix:")]
    NotActive(Endpoint),
    /// TLS without certificates.
    #[error("{0} needs --private-key, --certificate and --ca-cert; weir pki makes them")]
    NoCertificates(Endpoint),
    /// The TLS handshake failed.
    #[error("TLS with {peer}: {why}")]
    Tls {
        /// The peer.
        peer: String,
        /// Why, and what helps.
        why: String,
    },
}

/// A stream of bytes to a peer.
#[derive(Debug)]
pub enum Stream {
    /// TCP, with small writes sent at once.
    Tcp(TcpStream),
    /// TLS over TCP, after its handshake.
    Tls(Box<Encrypted>),
    /// Unix.
    Unix(UnixStream),
}

/// A TLS stream whose errors name our files.
#[derive(Debug)]
pub struct Encrypted {
    stream: TlsStream<Socket>,
    files: Arc<TlsFiles>,
}

impl Encrypted {
    fn explained(&self, error: io::Error) -> io::Error {
        let is_tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
        if is_tls { io::Error::new(error.kind(), explain(&error, &self.files)) } else { error }
    }
}

impl Stream {
    /// Connects to an active endpoint, within 10 s, and within 10 s more for TLS.
    ///
    /// # Errors
    /// When nobody listens there, the name is unknown, time is up, the endpoint is passive, or TLS
    /// fails, for which `tls` says who we are.
    pub async fn connect(endpoint: &Endpoint, tls: Option<&Tls>) -> Result<Self, TransportError> {
        let failed = |error| TransportError::Connect(endpoint.clone(), error);
        match endpoint {
            Endpoint::Tcp { host, port } => within(TcpStream::connect((host.as_str(), *port)))
                .await
                .and_then(Self::tcp)
                .map_err(failed),
            Endpoint::Ssl { host, port } => {
                let tls = tls.ok_or_else(|| TransportError::NoCertificates(endpoint.clone()))?;
                let stream = within(TcpStream::connect((host.as_str(), *port))).await;
                let stream = stream.map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                encrypt_as_client(stream, host, tls, endpoint).await
            }
            Endpoint::Unix(path) => {
                within(UnixStream::connect(path)).await.map(Self::Unix).map_err(failed)
            }
            Endpoint::PassiveTcp { .. }
            | Endpoint::PassiveSsl { .. }
            | Endpoint::PassiveUnix(_) => Err(TransportError::NotActive(endpoint.clone())),
        }
    }

    fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }

    /// Takes the stream out of this thread's runtime, so that another thread can go on with it.
    ///
    /// # Errors
    /// The system's error; the stream is closed then.
    pub fn detach(self) -> io::Result<DetachedStream> {
        Ok(DetachedStream(match self {
            Self::Tcp(stream) => Detached::Tcp(stream.into_std()?),
            Self::Tls(mut tls) => {
                tls.stream.get_mut().0.detach()?;
                Detached::Tls(tls)
            }
            Self::Unix(stream) => Detached::Unix(stream.into_std()?),
        }))
    }
}

/// A stream that belongs to no runtime, on its way to another thread.
#[derive(Debug)]
pub struct DetachedStream(Detached);

#[derive(Debug)]
enum Detached {
    Tcp(std::net::TcpStream),
    Tls(Box<Encrypted>),
    Unix(std::os::unix::net::UnixStream),
}

impl DetachedStream {
    /// The stream in the runtime of the calling thread.
    ///
    /// # Errors
    /// The system's error; the stream is closed then.
    pub fn attach(self) -> io::Result<Stream> {
        Ok(match self.0 {
            Detached::Tcp(stream) => Stream::Tcp(TcpStream::from_std(stream)?),
            Detached::Tls(mut tls) => {
                tls.stream.get_mut().0.attach()?;
                Stream::Tls(tls)
            }
            Detached::Unix(stream) => Stream::Unix(UnixStream::from_std(stream)?),
        })
    }
}

/// An attempt to connect, with its deadline.
async fn within<T>(attempt: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(CONNECT_DEADLINE, attempt)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn encrypt_as_client(
    stream: TcpStream,
    host: &str,
    tls: &Tls,
    endpoint: &Endpoint,
) -> Result<Stream, TransportError> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| TransportError::Tls {
        peer: endpoint.to_string(),
        why: format!("{host:?} is neither a host name nor an address"),
    })?;
    let handshake = TlsConnector::from(tls.client()).connect(name, Socket::new(stream));
    encrypt(handshake, endpoint.to_string(), tls).await
}

async fn encrypt<S: Into<TlsStream<Socket>>>(
    handshake: impl Future<Output = io::Result<S>>,
    peer: String,
    tls: &Tls,
) -> Result<Stream, TransportError> {
    let files = Arc::clone(tls.files());
    match tokio::time::timeout(HANDSHAKE_DEADLINE, handshake).await {
        Ok(Ok(stream)) => Ok(Stream::Tls(Box::new(Encrypted { stream: stream.into(), files }))),
        Ok(Err(error)) => Err(TransportError::Tls { peer, why: explain(&error, &files) }),
        Err(_) => {
            let why = "the handshake was not done within 10 s; does the peer speak TLS?".to_owned();
            Err(TransportError::Tls { peer, why })
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, into),
            Self::Tls(tls) => {
                let polled = Pin::new(&mut tls.stream).poll_read(cx, into);
                polled.map_err(|error| tls.explained(error))
            }
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(tls) => {
                let polled = Pin::new(&mut tls.stream).poll_write(cx, bytes);
                polled.map_err(|error| tls.explained(error))
            }
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(tls) => Pin::new(&mut tls.stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(tls) => Pin::new(&mut tls.stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// A place where connections are accepted.
#[derive(Debug)]
pub struct Listener {
    kind: Kind,
    endpoint: Endpoint,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    Tls(TcpListener, Tls),
    /// The file goes when the listener does.
    Unix(UnixListener, SocketFile),
}

#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(path = %self.0.display(), %error, "socket file was not removed");
        }
    }
}

impl Listener {
    /// Listens at an endpoint, of either direction. A socket file that nobody listens on any more
    /// is replaced.
    ///
    /// # Errors
    /// When the address is in use or not ours, or the endpoint is one for TLS and `tls` does not
    /// say who we are. They name the endpoint as it was given.
    pub async fn bind(endpoint: &Endpoint, tls: Option<&Tls>) -> Result<Self, TransportError> {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "an enum of std, which may grow: what is not explained is quoted"
        )]
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => TransportError::AddressInUse(endpoint.clone()),
            io::ErrorKind::AddrNotAvailable => TransportError::NotOurs(endpoint.clone()),
            io::ErrorKind::PermissionDenied => TransportError::Forbidden(endpoint.clone()),
            _ => TransportError::Listen(endpoint.clone(), error),
        };
        match endpoint {
            Endpoint::PassiveTcp { host, port } | Endpoint::Tcp { host, port } => {
                let listener = bind_tcp(host, *port).await.map_err(failed)?;
                let port = listener.local_addr().map_err(failed)?.port();
                let endpoint = Endpoint::PassiveTcp { host: host.clone(), port };
                Ok(Self { kind: Kind::Tcp(listener), endpoint })
            }
            Endpoint::PassiveSsl { host, port } | Endpoint::Ssl { host, port } => {
                let tls = tls.ok_or_else(|| TransportError::NoCertificates(endpoint.clone()))?;
                let listener = bind_tcp(host, *port).await.map_err(failed)?;
                let port = listener.local_addr().map_err(failed)?.port();
                let endpoint = Endpoint::PassiveSsl { host: host.clone(), port };
                Ok(Self { kind: Kind::Tls(listener, tls.clone()), endpoint })
            }
            Endpoint::PassiveUnix(path) | Endpoint::Unix(path) => {
                let listener = bind_unix(path).map_err(failed)?;
                let kind = Kind::Unix(listener, SocketFile(path.clone()));
                Ok(Self { kind, endpoint: Endpoint::PassiveUnix(path.clone()) })
            }
        }
    }

    /// The address where it listens, with the port that the system chose.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The next connection. It waits for nothing that the peer has to do: a TLS handshake is for
    /// [`Incoming::open`]. One whose peer has gone again already is left out.
    ///
    /// # Errors
    /// The system's error, for example that there are no more descriptors.
    pub async fn accept(&self) -> io::Result<Incoming> {
        loop {
            match self.accept_one().await {
                Err(error) if is_gone(&error) => {}
                accepted => return accepted,
            }
        }
    }

    async fn accept_one(&self) -> io::Result<Incoming> {
        Ok(match &self.kind {
            Kind::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                let source = Source::from(peer.ip());
                let raw = Raw::Ready(Stream::tcp(stream)?);
                Incoming { raw, source, name: format!("tcp:{peer}") }
            }
            Kind::Tls(listener, tls) => {
                let (stream, peer) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let source = Source::from(peer.ip());
                let raw = Raw::Tls(stream, tls.clone());
                Incoming { raw, source, name: format!("ssl:{peer}") }
            }
            Kind::Unix(listener, file) => {
                let (stream, _) = listener.accept().await?;
                let raw = Raw::Ready(Stream::Unix(stream));
                let name = format!("unix:{}", file.0.display());
                Incoming { raw, source: Source::Local, name }
            }
        })
    }
}

/// Whether an error is about the one peer that has just come, and not about accepting.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected
            | io::ErrorKind::InvalidInput
    )
}

/// A connection that has come, before its TLS handshake if it has one.
#[derive(Debug)]
pub struct Incoming {
    raw: Raw,
    source: Source,
    name: String,
}

#[derive(Debug)]
enum Raw {
    Ready(Stream),
    Tls(TcpStream, Tls),
}

impl Incoming {
    /// The peer's name for people, for example `tcp:192.0.2.7:40312`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Source of the connection, for [`crate::Admission`].
    #[must_use]
    pub fn source(&self) -> Source {
        self.source
    }

    /// Whether only those descriptors are left that a process keeps for other than connections of
    /// its listeners: its control socket, files and devices. A descriptor has the lowest number
    /// that is free.
    pub(crate) fn is_last_descriptor(&self) -> bool {
        let number = match &self.raw {
            Raw::Ready(Stream::Tcp(stream)) | Raw::Tls(stream, _) => stream.as_raw_fd(),
            Raw::Ready(Stream::Unix(stream)) => stream.as_raw_fd(),
            // One that was accepted becomes this after its handshake only.
            Raw::Ready(Stream::Tls(_)) => return false,
        };
        let Some(limit) = getrlimit(Resource::Nofile).current else { return false };
        u64::try_from(number).unwrap_or(0) + DESCRIPTORS_KEPT.min(limit / 2) >= limit
    }

    /// The stream, after the TLS handshake, which may take 10 s. `has_begun` is called when the
    /// peer has begun one.
    ///
    /// # Errors
    /// When TLS fails: why, and what helps.
    pub async fn open(self, has_begun: impl FnOnce()) -> Result<Stream, TransportError> {
        match self.raw {
            Raw::Ready(stream) => Ok(stream),
            Raw::Tls(stream, tls) => {
                let config = tls.server();
                let handshake = async {
                    let first = LazyConfigAcceptor::new(Acceptor::default(), Socket::new(stream));
                    let first = first.await?;
                    has_begun();
                    first.into_stream(config).await
                };
                encrypt(handshake, self.name, &tls).await
            }
        }
    }
}

/// Listens on the first address of `host` that can be listened on, as `TcpListener::bind` does, but
/// with room for [`BACKLOG`] peers that come at once.
async fn bind_tcp(host: &str, port: u16) -> io::Result<TcpListener> {
    let mut last = None;
    for address in tokio::net::lookup_host((host, port)).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let listener = socket.and_then(|socket| {
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            socket.listen(BACKLOG)
        });
        match listener {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()))
}

fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match listen_unix(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
            std::fs::remove_file(path)?;
            listen_unix(path)
        }
        outcome => outcome,
    }
}

/// Listens on a socket that only its owner may connect to, whatever the umask: the file gets the
/// mode that the socket has when it is bound (unix(7)), so that there is no moment without it.
fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, BACKLOG.cast_signed())?;
    UnixListener::from_std(socket.into())
}

/// Whether the path is a socket on which nobody listens.
fn is_stale(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|at| at.file_type().is_socket());
    let refused = std::os::unix::net::UnixStream::connect(path)
        .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    is_socket && refused
}
