//! The server of `--metrics`: `GET /metrics`, on a thread of its own.
//!
//! A client that is slow or means ill costs this thread a little and the program nothing.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use web::{Limits, Server};

use crate::{Family, TextFormat, text};

const LIMITS: Limits =
    Limits { connections: 32, head_bytes: 16 << 10, patience: Duration::from_secs(5) };

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The address is taken, or not of this machine.
    #[error("metrics: cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        error: std::io::Error,
    },
    /// The system gave no thread.
    #[error("metrics: cannot start: {0}")]
    Start(#[from] std::io::Error),
}

/// The address of `--metrics`.
///
/// # Errors
/// On a text that is no address: the error has the form that is meant.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let form = "write ADDRESS:PORT, for example 127.0.0.1:9437";
    if text.starts_with("unix:") || text.starts_with('/') {
        return Err(format!("metrics are served over TCP, as Prometheus reads them: {form}"));
    }
    text.parse().map_err(|_| format!("not an address and a port: {form}"))
}

/// Serves metrics until the server is dropped; with port 0 the system chooses one. They are
/// gathered when a client asks; none are there where the program is about to end.
///
/// # Errors
/// When it cannot listen there.
pub fn serve<G>(
    address: SocketAddr,
    gather: impl Fn() -> G + Clone + Send + Sync + 'static,
) -> Result<Server, MetricsError>
where
    G: Future<Output = Option<Vec<Family>>> + Send + 'static,
{
    let listen = |error| MetricsError::Listen { address, error };
    let listener = TcpListener::bind(address).map_err(listen)?;
    let service = service_fn(move |request| {
        let gather = gather.clone();
        async move { Ok::<_, Infallible>(answer(&request, gather).await) }
    });
    let server =
        Server::start("weir-metrics", listener, move |it| web::serve(it, LIMITS, service))?;
    tracing::info!("metrics at http://{}/metrics", server.address());
    Ok(server)
}

async fn answer<G: Future<Output = Option<Vec<Family>>>>(
    request: &Request<Incoming>,
    gather: impl Fn() -> G,
) -> Response<Full<Bytes>> {
    let plain = TextFormat::Text;
    let (status, format, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => match (gather().await, format_for(request)) {
            (Some(families), format) => (StatusCode::OK, format, text(&families, format)),
            (None, _) => (StatusCode::SERVICE_UNAVAILABLE, plain, "it ends\n".to_owned()),
        },
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, plain, "only GET\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, plain, "the metrics are at /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET"));
    }
    response
}

/// OpenMetrics for who accepts it, as Prometheus does.
fn format_for(request: &Request<Incoming>) -> TextFormat {
    let mut accepted = request.headers().get_all(ACCEPT).iter();
    let takes_open = accepted.any(|value| {
        value.to_str().is_ok_and(|value| value.contains("application/openmetrics-text"))
    });
    if takes_open { TextFormat::OpenMetrics } else { TextFormat::Text }
}

#[cfg(test)]
mod tests {
    use super::parse_address;

    #[test]
    fn what_is_no_address_is_refused_with_the_form() {
        for (text, why) in [
            ("unix:/run/weir/metrics", "over TCP"),
            ("/run/weir/metrics", "over TCP"),
            ("127.0.0.1", "an address and a port"),
            ("localhost:9437", "an address and a port"),
        ] {
            let error = parse_address(text).unwrap_err();
            assert!(error.contains(why) && error.contains("127.0.0.1:9437"), "{text}: {error}");
        }
        assert_eq!(parse_address("[::1]:9437").map(|address| address.port()), Ok(9_437));
    }
}
