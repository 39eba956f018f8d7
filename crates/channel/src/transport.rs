//! Streams that carry a connection: TCP and Unix sockets, made or accepted.
//!
//! Every failure names the endpoint and the remedy. Nothing here knows OpenFlow.

use crate::endpoint::Endpoint;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// How long an attempt to connect may take.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

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
    #[error("{0} is a place to accept connections, not to connect to; use tcp: or unix:")]
    NotActive(Endpoint),
    /// An active endpoint where one to accept on is needed.
    #[error("{0} is a place to connect to, not to accept connections; use ptcp: or punix:")]
    NotPassive(Endpoint),
}

/// A stream of bytes to a peer.
#[derive(Debug)]
pub enum Stream {
    /// TCP, with small writes sent at once.
    Tcp(TcpStream),
    /// Unix.
    Unix(UnixStream),
}

impl Stream {
    /// Connects to an active endpoint, within 10 s.
    ///
    /// # Errors
    /// When nobody listens there, the name is unknown, time is up, or the endpoint is passive.
    pub async fn connect(endpoint: &Endpoint) -> Result<Self, TransportError> {
        let attempt = async {
            match endpoint {
                Endpoint::Tcp { host, port } => {
                    Some(TcpStream::connect((host.as_str(), *port)).await.and_then(Self::tcp))
                }
                Endpoint::Unix(path) => Some(UnixStream::connect(path).await.map(Self::Unix)),
                Endpoint::PassiveTcp { .. } | Endpoint::PassiveUnix(_) => None,
            }
        };
        let outcome = tokio::time::timeout(CONNECT_DEADLINE, attempt)
            .await
            .unwrap_or_else(|_| Some(Err(io::ErrorKind::TimedOut.into())));
        outcome
            .ok_or_else(|| TransportError::NotActive(endpoint.clone()))?
            .map_err(|error| TransportError::Connect(endpoint.clone(), error))
    }

    fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
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
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
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
    /// Listens on a passive endpoint. A socket file that nobody listens on any more is replaced.
    ///
    /// # Errors
    /// When the address is in use or not ours, or the endpoint is active.
    pub async fn bind(endpoint: &Endpoint) -> Result<Self, TransportError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => TransportError::AddressInUse(endpoint.clone()),
            io::ErrorKind::AddrNotAvailable => TransportError::NotOurs(endpoint.clone()),
            io::ErrorKind::PermissionDenied => TransportError::Forbidden(endpoint.clone()),
            _ => TransportError::Listen(endpoint.clone(), error),
        };
        match endpoint {
            Endpoint::PassiveTcp { host, port } => {
                let listener = TcpListener::bind((host.as_str(), *port)).await.map_err(failed)?;
                let port = listener.local_addr().map_err(failed)?.port();
                let endpoint = Endpoint::PassiveTcp { host: host.clone(), port };
                Ok(Self { kind: Kind::Tcp(listener), endpoint })
            }
            Endpoint::PassiveUnix(path) => {
                let listener = bind_unix(path).map_err(failed)?;
                let kind = Kind::Unix(listener, SocketFile(path.clone()));
                Ok(Self { kind, endpoint: endpoint.clone() })
            }
            Endpoint::Tcp { .. } | Endpoint::Unix(_) => {
                Err(TransportError::NotPassive(endpoint.clone()))
            }
        }
    }

    /// Where it listens, with the port that the system chose.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The next connection and a name for its peer.
    ///
    /// # Errors
    /// What the system says, for example that there are no more descriptors.
    pub async fn accept(&self) -> io::Result<(Stream, String)> {
        match &self.kind {
            Kind::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok((Stream::tcp(stream)?, format!("tcp:{peer}")))
            }
            Kind::Unix(listener, file) => {
                let (stream, _) = listener.accept().await?;
                Ok((Stream::Unix(stream), format!("unix:{}", file.0.display())))
            }
        }
    }
}

fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        outcome => outcome,
    }
}

/// Whether the path is a socket on which nobody listens.
fn is_stale(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|at| at.file_type().is_socket());
    let refused = std::os::unix::net::UnixStream::connect(path)
        .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    is_socket && refused
}
