//! Serves the endpoints over HTTP, on a thread of its own.
//!
//! The controller's threads never wait for a client of REST: this one has its own runtime and asks
//! them through a handle. What a client can cost is bounded: connections, requests at a time, bytes
//! of a body, and the time for which it may be slow. It must never serve beyond the loopback
//! addresses without a token.

use crate::app_routes::{self, AppRequest};
use crate::body;
use crate::datapath::RestFuture;
use crate::events::EventHistory;
use crate::guard::{Guard, Token};
use crate::openapi;
use crate::page;
use crate::problem::Problem;
use crate::route::{Body, Call, Reply, Row};
use crate::rule_numbers::RuleNumbers;
use crate::services::Services;
use axum::Router;
use axum::body::{Body as HttpBody, Bytes};
use axum::extract::{RawPathParams, Request};
use axum::http::{Method, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bounds on the cost of clients.
#[derive(Clone, Copy, Debug)]
pub struct RestLimits {
    /// Connections at a time; a further one takes the place of another (see the crate `web`).
    pub connections: usize,
    /// Requests at a time; further ones are answered 503.
    pub requests: usize,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// Bytes of a list of statistics; a longer one is refused, never cut.
    pub answer_bytes: usize,
    /// Time that a client may take for the head of a request, for its body, and to read on.
    pub patience: Duration,
}

impl Default for RestLimits {
    fn default() -> Self {
        let patience = Duration::from_secs(10);
        Self {
            connections: 256,
            requests: 64,
            body_bytes: 1 << 20,
            answer_bytes: 128 << 20,
            patience,
        }
    }
}

/// Address and clients of a server.
#[derive(Clone, Debug)]
pub struct RestOptions {
    /// `HOST:PORT`; the port 0 is any that is free.
    pub listen: String,
    /// The token that a client must show, beyond the loopback addresses.
    pub token: Option<Token>,
    /// Bounds on the cost of clients.
    pub limits: RestLimits,
}

/// Why REST cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is none.
    #[error("{0} is no address to serve REST on: give HOST:PORT, such as 127.0.0.1:8080")]
    Address(String),
    /// It is reachable by others.
    #[error(
        "{0} can be reached by other machines, and REST can change every flow entry: give \
         --rest-token-file, or an address of this machine alone such as 127.0.0.1:8080"
    )]
    Open(SocketAddr),
    /// It cannot be listened on.
    #[error("cannot serve REST on {address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        error: std::io::Error,
    },
    /// The token cannot be used.
    #[error("{0}")]
    Token(String),
    /// An endpoint of an app is one of Weir's own.
    #[error("{0}")]
    Taken(String),
    /// There is no thread or runtime for it.
    #[error("cannot start REST: {0}")]
    Start(std::io::Error),
}

/// Every row, of all apps.
pub(crate) fn all_rows() -> Vec<Row> {
    let mut rows = crate::ofctl::rows();
    rows.extend(crate::topology::rows());
    rows.extend(crate::firewall::rows());
    rows.extend(crate::qos::rows());
    rows.extend(crate::router::rows());
    rows.push(Row {
        method: Method::GET,
        path: "/openapi.json",
        what: "This document",
        body: Body::None,
        commands: &[],
        answers: true,
        run: |call| {
            Box::pin(async move { Ok(Reply::Value(call.services.document.as_ref().clone())) })
        },
    });
    rows
}

/// The router of all endpoints, with the checks before them.
pub(crate) fn router(services: &Arc<Services>, guard: Guard, limits: RestLimits) -> Router {
    let mut router = Router::new();
    for row in all_rows() {
        let filter = match row.method {
            Method::POST => MethodFilter::POST,
            Method::PUT => MethodFilter::PUT,
            Method::DELETE => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        let (services, path, row) = (Arc::clone(services), row.path, Arc::new(row));
        let handler = move |parts: RawPathParams, request: Request| {
            let (services, row) = (Arc::clone(&services), Arc::clone(&row));
            async move { run(services, &row, &parts, request, limits).await }
        };
        router = router.route(path, on(filter, handler));
    }
    let router = router.merge(page::events(services)).merge(page::files());
    let others = Arc::clone(services);
    let turns = Arc::new(Semaphore::new(limits.requests));
    let checks = Arc::new((guard, turns));
    router
        .fallback(move |request: Request| of_apps(Arc::clone(&others), request, limits))
        .method_not_allowed_fallback(|| async {
            let words = "the path has no such method; see /openapi.json";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, words)
        })
        .layer(middleware::from_fn(move |mut request: Request, next: middleware::Next| {
            let checks = Arc::clone(&checks);
            async move {
                let (guard, turns) = checks.as_ref();
                if let Err(problem) = guard.check(&request) {
                    return problem.into_response();
                }
                let turn = Arc::clone(turns).try_acquire_owned().map(Turn::new);
                let Ok(turn) = turn else { return too_many().into_response() };
                request.extensions_mut().insert(Turn::clone(&turn));
                let response = next.run(request).await;
                drop(turn);
                response
            }
        }))
}

fn too_many() -> Problem {
    let words = "too many requests at a time; try again";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, words)
}

async fn run(
    services: Arc<Services>,
    row: &Row,
    parts: &RawPathParams,
    request: Request,
    limits: RestLimits,
) -> Result<Response, Problem> {
    if let Some(query) = request.uri().query().filter(|query| !query.is_empty()) {
        let words = format!("the request has no parameters behind a question mark: `{query}`");
        return Err(Problem::bad(words));
    }
    let turn = request.extensions().get::<Turn>().cloned();
    let parts = parts.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let body = read_body(row, request, limits).await?;
    let call = Call { services, parts, body, answer_bytes_max: limits.answer_bytes };
    let reply = if row.method == Method::GET {
        (row.run)(call).await?
    } else {
        whole((row.run)(call), turn).await?
    };
    Ok(match reply {
        Reply::Value(value) => json_response(StatusCode::OK, value.to_string()),
        Reply::Text(text) => json_response(StatusCode::OK, text),
        Reply::Nothing => StatusCode::OK.into_response(),
    })
}

/// The answer to a request for a path that no row has.
async fn of_apps(
    services: Arc<Services>,
    request: Request,
    limits: RestLimits,
) -> Result<Response, Problem> {
    let Some(apps) = &services.apps else {
        return Err(Problem::not_found("there is no such path; see /openapi.json"));
    };
    let (method, uri) = (request.method().to_string(), request.uri().clone());
    let body = read_bytes(request, limits).await?.to_vec();
    let (path, query) = (uri.path().to_owned(), uri.query().unwrap_or_default().to_owned());
    app_routes::ask(apps.as_ref(), AppRequest { method, path, query, body }).await
}

/// A place among the requests that are served at a time.
type Turn = Arc<OwnedSemaphorePermit>;

/// Runs a change to its end, whether or not its client waits: half a change is none. Until then it
/// keeps its turn.
async fn whole(
    change: RestFuture<Result<Reply, Problem>>,
    turn: Option<Turn>,
) -> Result<Reply, Problem> {
    let ended = tokio::spawn(async move {
        let done = change.await;
        drop(turn);
        done
    });
    ended.await.unwrap_or_else(|error| {
        let words = format!("the change has failed: {error}");
        Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, words))
    })
}

async fn read_bytes(request: Request, limits: RestLimits) -> Result<Bytes, Problem> {
    let bytes = axum::body::to_bytes(request.into_body(), limits.body_bytes);
    let bytes = tokio::time::timeout(limits.patience, bytes).await.map_err(|_| {
        let words = format!("the body has not come within {} s", limits.patience.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, words)
    })?;
    bytes.map_err(|error| {
        let words = format!("a body has at most {} bytes ({error})", limits.body_bytes);
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, words)
    })
}

async fn read_body(row: &Row, request: Request, limits: RestLimits) -> Result<Value, Problem> {
    let bytes = read_bytes(request, limits).await?;
    let value = body::parse(&bytes)?;
    let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    match row.body {
        Body::None if !is_empty => Err(Problem::bad("the request takes no body")),
        Body::None => Ok(Value::Null),
        Body::Must(shape) if value.is_null() => {
            Err(Problem::bad(format!("the request needs a body: {}", shape.what)))
        }
        Body::May(_) | Body::Must(_) => Ok(value),
    }
}

fn json_response(status: StatusCode, text: String) -> Response {
    let text = HttpBody::from(text);
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = json_response(self.status, self.to_value().to_string());
        let named = match self.status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
            _ => None,
        };
        if let Some((name, value)) = named {
            response.headers_mut().insert(name, header::HeaderValue::from_static(value));
        }
        response
    }
}

/// Bytes of a request's head.
const HEAD_MAX: usize = 64 << 10;

/// REST that is being served, until this is dropped.
pub type RestServer = web::Server;

/// Listens, and serves on a thread of its own.
///
/// # Errors
/// When the address cannot be listened on, or may not without a token.
pub fn start(options: &RestOptions, services: crate::RestNetwork) -> Result<RestServer, Error> {
    let listener = listen(options)?;
    let listening = |error| Error::Listen { address: options.listen.clone(), error };
    let address = listener.local_addr().map_err(listening)?;
    let recorded = services.events.map(|events| (Arc::new(EventHistory::default()), events));
    let apps = services.apps.as_ref().map_or(&[][..], |apps| apps.routes());
    let rows = all_rows();
    let paths: Vec<_> = rows.iter().map(|row| row.path).collect();
    if let Some(words) = app_routes::taken(apps, &paths) {
        return Err(Error::Taken(words));
    }
    let document = openapi::document(&rows, apps, options.token.is_some());
    let services = Arc::new(Services {
        datapaths: services.datapaths,
        map: services.map,
        events: recorded.as_ref().map(|(history, _)| Arc::clone(history)),
        routers: services.routers,
        apps: services.apps,
        router_turn: tokio::sync::Mutex::new(()),
        document: Arc::new(document),
        firewall: RuleNumbers::default(),
        qos: RuleNumbers::default(),
    });
    let guard = Guard::new(address, options.token.clone());
    let router = router(&services, guard, options.limits);
    let limits = web::Limits {
        connections: options.limits.connections,
        head_bytes: HEAD_MAX,
        patience: options.limits.patience,
    };
    let serve = move |listener| async move {
        if let Some((history, events)) = recorded {
            tokio::spawn(async move { history.record(events).await });
        }
        web::serve(listener, limits, TowerToHyperService::new(router)).await
    };
    RestServer::start("rest", listener, serve).map_err(Error::Start)
}

fn listen(options: &RestOptions) -> Result<TcpListener, Error> {
    let found = options.listen.to_socket_addrs();
    let addresses: Vec<SocketAddr> =
        found.map_err(|_| Error::Address(options.listen.clone()))?.collect();
    if addresses.is_empty() {
        return Err(Error::Address(options.listen.clone()));
    }
    let open = addresses.iter().find(|address| !address.ip().is_loopback());
    if let (Some(open), None) = (open, &options.token) {
        return Err(Error::Open(*open));
    }
    TcpListener::bind(addresses.as_slice())
        .map_err(|error| Error::Listen { address: options.listen.clone(), error })
}
