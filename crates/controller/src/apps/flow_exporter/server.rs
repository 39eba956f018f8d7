//! The HTTP side of the exporter: `GET /metrics`, on a thread of its own.
//!
//! Connections are bounded in number and in time, requests in size, so that a peer that is slow or
//! means ill costs this thread a little and the controller nothing.

use super::metrics::Samples;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

/// Connections served at once; others are closed.
const CONNECTIONS_MAX: usize = 32;
/// Bytes of a request's head.
const HEAD_MAX: usize = 16 << 10;
/// A request must have come by then.
const HEAD_DEADLINE: Duration = Duration::from_secs(5);
/// A connection lasts no longer.
const CONNECTION_DEADLINE: Duration = Duration::from_secs(60);

/// Why the exporter could not start.
#[derive(Debug, thiserror::Error)]
pub enum ExporterError {
    /// Its address is taken, or not of this machine.
    #[error("flow-exporter: cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        error: std::io::Error,
    },
    /// The system gave no thread.
    #[error("flow-exporter: cannot start: {0}")]
    Start(#[from] std::io::Error),
}

/// The server; it ends when this is dropped.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Serves `samples` on an address; with port 0 the system chooses one.
    ///
    /// # Errors
    /// When it cannot listen there.
    pub fn start(address: SocketAddr, samples: Arc<Samples>) -> Result<Self, ExporterError> {
        let listen = |error| ExporterError::Listen { address, error };
        let listener = TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("weir-metrics".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = accept(listener, samples) => {}
                }
            });
        })?;
        tracing::info!("flow-exporter: statistics at http://{address}/metrics");
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed and concerns nobody else.
            drop(thread.join());
        }
    }
}

async fn accept(listener: TcpListener, samples: Arc<Samples>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("flow-exporter: cannot listen: {error}"),
    };
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, say.
            tokio::time::sleep(Duration::from_millis(500)).await;
            continue;
        };
        if let Ok(permit) = Arc::clone(&room).try_acquire_owned() {
            let samples = Arc::clone(&samples);
            tokio::spawn(async move {
                serve(stream, samples).await;
                drop(permit);
            });
        }
    }
}

async fn serve(stream: TcpStream, samples: Arc<Samples>) {
    let service = service_fn(move |request| {
        let response = answer(&request, &samples);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_DEADLINE).max_buf_size(HEAD_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    // What goes wrong on a connection is its peer's business.
    drop(tokio::time::timeout(CONNECTION_DEADLINE, connection).await);
}

fn answer(request: &Request<Incoming>, samples: &Samples) -> Response<Full<Bytes>> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => (StatusCode::OK, samples.text(Instant::now())),
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "the statistics are at /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    }
    response
}
