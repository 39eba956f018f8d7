//! The HTTP side of the exporter: `GET /metrics`, on a thread of its own.
//!
//! A client that is slow or means ill costs this thread a little and the controller nothing.

use super::metrics::Samples;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};
use web::{Limits, Server};

const LIMITS: Limits =
    Limits { connections: 32, head_bytes: 16 << 10, patience: Duration::from_secs(5) };

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

/// Serves `samples` on an address until what comes back is dropped; with port 0 the system chooses
/// one.
///
/// # Errors
/// When it cannot listen there.
pub fn serve_metrics(address: SocketAddr, samples: Arc<Samples>) -> Result<Server, ExporterError> {
    let listen = |error| ExporterError::Listen { address, error };
    let listener = TcpListener::bind(address).map_err(listen)?;
    let service = service_fn(move |request| {
        let response = answer(&request, &samples);
        async move { Ok::<_, Infallible>(response) }
    });
    let serve = move |listener| web::serve(listener, LIMITS, service);
    let server = Server::start("weir-metrics", listener, serve)?;
    tracing::info!("flow-exporter: statistics at http://{}/metrics", server.address());
    Ok(server)
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
