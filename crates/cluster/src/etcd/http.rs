//! One HTTP/1.1 connection to one of etcd's members, and the next member when it breaks.
//!
//! An answer is read to a bound and within a time. A request whose time is over takes the
//! connection with it, since nobody reads the answer any more.

use super::EtcdError;
use crate::EtcdServers;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use rustls::pki_types::ServerName;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

/// The longest answer, in bytes: a page of keys takes far less.
const ANSWER_MAX: usize = 32 << 20;

pub(super) struct Http {
    servers: EtcdServers,
    current: usize,
    open: Option<Open>,
}

/// A connection, and the task that moves its bytes.
struct Open {
    sender: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection's bytes, with TLS or without.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An error as the gateway writes it; old and new ones differ in which of both they have.
#[derive(Deserialize)]
struct Refusal {
    error: Option<Value>,
    message: Option<String>,
}

impl Http {
    pub(super) fn new(servers: &EtcdServers) -> Self {
        Self { servers: servers.clone(), current: 0, open: None }
    }

    fn server(&self) -> &str {
        self.servers.names.get(self.current).map_or("", String::as_str)
    }

    /// Sends a request and gives the whole answer.
    pub(super) async fn post(
        &mut self,
        path: &str,
        body: &Value,
        within: Duration,
    ) -> Result<Bytes, EtcdError> {
        let answered = tokio::time::timeout(within, self.exchange(path, body)).await;
        let answered = answered.unwrap_or_else(|_| Err(self.silent(within)));
        if matches!(answered, Err(EtcdError::Unreachable { .. } | EtcdError::Silent { .. })) {
            self.next_server();
        }
        answered
    }

    async fn exchange(&mut self, path: &str, body: &Value) -> Result<Bytes, EtcdError> {
        // It is put back when the answer is whole: what is given up half way is not used again.
        let mut open = match self.open.take() {
            Some(open) if !open.sender.is_closed() => open,
            Some(_) | None => self.connect().await?,
        };
        let response = self.send(&mut open, path, body).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
        let body = body.map_err(|error| self.unreachable(&error))?.to_bytes();
        self.open = Some(open);
        if status.is_success() { Ok(body) } else { Err(self.refused(status.as_u16(), &body)) }
    }

    /// Sends a request whose answer comes line by line, for as long as the connection lives.
    pub(super) async fn stream(
        self,
        path: &str,
        body: &Value,
        within: Duration,
    ) -> Result<Lines, EtcdError> {
        let begun = tokio::time::timeout(within, async {
            let mut open = self.connect().await?;
            let response = self.send(&mut open, path, body).await?;
            Ok((open, response))
        });
        let (open, response) = begun.await.unwrap_or_else(|_| Err(self.silent(within)))?;
        if !response.status().is_success() {
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), ANSWER_MAX).collect();
            let body = tokio::time::timeout(within, body).await.ok().and_then(Result::ok);
            return Err(self.refused(status, &body.map_or_else(Bytes::new, |it| it.to_bytes())));
        }
        let body = response.into_body();
        Ok(Lines { http: self, body, _open: open, read: Vec::new(), searched: 0 })
    }

    async fn connect(&self) -> Result<Open, EtcdError> {
        let stream = TcpStream::connect(self.server()).await.map_err(|e| self.unreachable(&e))?;
        stream.set_nodelay(true).map_err(|error| self.unreachable(&error))?;
        watch_over(&stream).map_err(|error| self.unreachable(&error))?;
        let stream = self.secured(stream).await?;
        let shaken = handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|error| self.unreachable(&error))?;
        let task = tokio::spawn(async move {
            // A caller that waits for an answer gets the error; nobody else needs to know.
            let ended = connection.await;
            tracing::trace!(?ended, "a connection to etcd has ended");
        });
        Ok(Open { sender, task })
    }

    /// The stream, with TLS where that is asked for.
    async fn secured(&self, stream: TcpStream) -> Result<Box<dyn Stream>, EtcdError> {
        let Some(tls) = &self.servers.tls else { return Ok(Box::new(stream)) };
        let host = self.server().rsplit_once(':').map_or("", |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(|error| self.unreachable(&error))?;
        let secured = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await;
        Ok(Box::new(secured.map_err(|error| self.unreachable(&format!("TLS: {error}")))?))
    }

    async fn send(
        &self,
        open: &mut Open,
        path: &str,
        body: &Value,
    ) -> Result<Response<Incoming>, EtcdError> {
        let request = Request::post(path)
            .header(HOST, self.server())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body.to_string())));
        let request = request.map_err(|error| self.unreachable(&error))?;
        open.sender.ready().await.map_err(|error| self.unreachable(&error))?;
        open.sender.send_request(request).await.map_err(|error| self.unreachable(&error))
    }

    fn next_server(&mut self) {
        self.open = None;
        self.current = (self.current + 1) % self.servers.names.len().max(1);
    }

    fn silent(&self, within: Duration) -> EtcdError {
        EtcdError::Silent { server: self.server().into(), within }
    }

    fn unreachable(&self, cause: &(impl std::fmt::Display + ?Sized)) -> EtcdError {
        EtcdError::Unreachable { server: self.server().into(), cause: cause.to_string() }
    }

    pub(super) fn malformed(&self, cause: &impl std::fmt::Display) -> EtcdError {
        EtcdError::Malformed { server: self.server().into(), cause: cause.to_string() }
    }

    fn refused(&self, status: u16, body: &[u8]) -> EtcdError {
        let refusal = serde_json::from_slice::<Refusal>(body).ok();
        let message =
            refusal.and_then(|it| it.message.or_else(|| Some(it.error?.as_str()?.to_owned())));
        let message = message.unwrap_or_else(|| format!("HTTP status {status}"));
        EtcdError::Refused { server: self.server().into(), message }
    }
}

/// Has the kernel ask a silent peer every few seconds: a watch only reads, and would never learn
/// that the other machine has gone.
fn watch_over(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(2))?;
    sockopt::set_tcp_keepcnt(stream, 3)
}

/// The lines of an answer that does not end.
pub(super) struct Lines {
    http: Http,
    body: Incoming,
    _open: Open,
    read: Vec<u8>,
    /// Bytes of `read` that are known to have no line feed.
    searched: usize,
}

impl Lines {
    /// The next line, without its end. May be given up and asked again.
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, EtcdError> {
        loop {
            let fresh = self.read.get(self.searched..).unwrap_or_default();
            if let Some(at) = fresh.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(self.searched + at + 1);
                let mut line = std::mem::replace(&mut self.read, rest);
                line.pop();
                self.searched = 0;
                return Ok(line);
            }
            self.searched = self.read.len();
            if self.read.len() > ANSWER_MAX {
                return Err(self.http.malformed(&"a line without an end"));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.read.extend_from_slice(data);
                    }
                }
                Some(Err(error)) => return Err(self.http.unreachable(&error)),
                None => return Err(self.http.unreachable(&"the watch has ended")),
            }
        }
    }

    pub(super) fn silent(&self, within: Duration) -> EtcdError {
        self.http.silent(within)
    }

    pub(super) fn malformed(&self, cause: &impl std::fmt::Display) -> EtcdError {
        self.http.malformed(cause)
    }

    pub(super) fn refused(&self, message: String) -> EtcdError {
        EtcdError::Refused { server: self.http.server().into(), message }
    }
}
