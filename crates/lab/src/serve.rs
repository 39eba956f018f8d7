//! Serves the page of a campaign over HTTP, from its ledger, while it grows and afterwards.
//!
//! It knows the run by nothing but the files of its folder: it may begin before the run and end
//! after it, on another terminal. What clients can cost is bounded, and the page is drawn only when
//! one asks for it: the machine may be measuring. It must never write into the folder.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use hyper_util::service::TowerToHyperService;
use tokio::sync::watch;
use web::{ClientPlace, Limits};

use crate::campaign::follow::{CampaignState, Follower, Seen};
use crate::present::live_page;
use crate::results::Results;

/// Pause between two looks at the ledger.
const LOOK: Duration = Duration::from_millis(500);

/// A client hears at least this often that the server is alive.
const ALIVE: Duration = Duration::from_secs(5);

/// While a run goes on its page is drawn no more often: each of its lines makes it another.
const DRAWN_LEAST: Duration = Duration::from_secs(2);

/// Pages that follow at a time.
const FOLLOWERS_MAX: usize = 64;

/// The bounds on the cost of clients.
const LIMITS: Limits =
    Limits { connections: 128, head_bytes: 64 << 10, patience: Duration::from_secs(10) };

/// Niceness of the server, for measurements on the same machine.
const NICE: i32 = 10;

/// Default address for browsers.
pub const LISTEN: &str = "127.0.0.1:8484";

/// The page has its scripts and styles in it, asks its own server only, and stands in no frame.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Options of the server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The folder that a run writes into.
    pub folder: PathBuf,
    /// `HOST:PORT`.
    pub listen: String,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is none.
    #[error("--listen {0}: is no address: give HOST:PORT, such as 127.0.0.1:8484")]
    Address(String),
    /// It cannot be listened on.
    #[error(
        "cannot listen on {address}: {error}; --listen 127.0.0.1:0 takes any port that is free"
    )]
    Listen {
        /// The address.
        address: String,
        /// Why.
        error: std::io::Error,
    },
    /// There is no thread or runtime for it.
    #[error("cannot start the server: {0}")]
    Start(std::io::Error),
}

/// View of the folder, for all clients.
struct Shown {
    follower: Mutex<Follower>,
    seen: watch::Receiver<Seen>,
    drawn: Mutex<Option<Drawn>>,
    is_loopback: bool,
}

/// A page, and when of what it was drawn.
struct Drawn {
    seen: Seen,
    at: Instant,
    page: Arc<str>,
}

impl Drawn {
    /// Whether it is the page of what is seen now. Of a run that goes on it may lag behind by
    /// [`DRAWN_LEAST`], and never behind its end.
    fn is_of(&self, seen: &Seen) -> bool {
        let is_same = self.seen.standing == seen.standing && self.seen.words == seen.words;
        match seen.standing {
            CampaignState::Running | CampaignState::Silent => {
                is_same && self.at.elapsed() < DRAWN_LEAST
            }
            CampaignState::Waiting
            | CampaignState::Ended
            | CampaignState::Interrupted
            | CampaignState::CutOff
            | CampaignState::Unreadable => is_same && self.seen.version == seen.version,
        }
    }
}

/// A server, until it is dropped.
pub type LabServer = web::Server;

/// Listens, and serves on a thread of its own.
///
/// # Errors
/// [`ServeError`].
pub fn start(options: &ServeOptions) -> Result<LabServer, ServeError> {
    let listen = |error| ServeError::Listen { address: options.listen.clone(), error };
    let addresses: Vec<SocketAddr> = match options.listen.to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(_) => return Err(ServeError::Address(options.listen.clone())),
    };
    let listener = TcpListener::bind(addresses.as_slice()).map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let mut follower = Follower::new(&options.folder);
    let (sender, seen) = watch::channel(look(&mut follower));
    let shown = Arc::new(Shown {
        follower: Mutex::new(follower),
        seen,
        drawn: Mutex::new(None),
        is_loopback: address.ip().is_loopback(),
    });
    LabServer::start("lab-serve", listener, move |listener| async move {
        // Of this thread, and of those that it starts for reading and drawing.
        if let Err(error) = rustix::process::nice(NICE) {
            tracing::warn!(%error, "the page does not give way to what is measured");
        }
        let router = TowerToHyperService::new(router(&shown));
        tokio::select! {
            () = follow(shown, sender) => {}
            () = web::serve(listener, LIMITS, router) => {}
        }
    })
    .map_err(ServeError::Start)
}

/// Reads what is new, and says how the campaign stands.
fn look(follower: &mut Follower) -> Seen {
    match follower.read() {
        Ok(()) => follower.seen(),
        Err(error) => {
            let version = follower.seen().version;
            Seen::nothing(CampaignState::Unreadable, error.to_string(), version)
        }
    }
}

/// Looks at the ledger as long as anyone may ask.
async fn follow(shown: Arc<Shown>, sender: watch::Sender<Seen>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let own = Arc::clone(&shown);
        let looked = tokio::task::spawn_blocking(move || {
            let mut follower = own.follower.lock().unwrap_or_else(PoisonError::into_inner);
            look(&mut follower)
        });
        let Ok(seen) = looked.await else { return };
        sender.send_if_modified(|before| {
            // A page counts seconds by itself.
            let known =
                |seen: &Seen| (seen.standing, seen.version, seen.step.clone(), seen.words.clone());
            let is_new = known(before) != known(&seen);
            *before = seen;
            is_new
        });
    }
}

impl Shown {
    /// The results so far.
    fn results(&self) -> Option<Results> {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner).results()
    }

    /// The page, drawn once for all who ask.
    fn page(&self) -> Arc<str> {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.seen.borrow().clone();
        if let Some(drawn) = drawn.as_ref().filter(|drawn| drawn.is_of(&seen)) {
            return Arc::clone(&drawn.page);
        }
        let results = match seen.standing {
            CampaignState::Waiting | CampaignState::Unreadable => None,
            CampaignState::Running
            | CampaignState::Silent
            | CampaignState::Ended
            | CampaignState::Interrupted
            | CampaignState::CutOff => self.results(),
        };
        let page: Arc<str> = live_page(results.as_ref(), &seen).into();
        *drawn = Some(Drawn { seen, at: Instant::now(), page: Arc::clone(&page) });
        page
    }
}

fn router(shown: &Arc<Shown>) -> Router {
    let guarded = Arc::clone(shown);
    Router::new()
        .route("/", get(page))
        .route("/events", get(events))
        .route("/status", get(status))
        .route("/results.json", get(json))
        .fallback(|| async {
            let known = "there is no such path: /, /events, /status and /results.json are\n";
            text(StatusCode::NOT_FOUND, known.to_owned())
        })
        .layer(middleware::from_fn(move |request: Request, next: Next| {
            let is_own = !guarded.is_loopback || is_own_name(&request);
            async move {
                if is_own {
                    return next.run(request).await;
                }
                let words = "the request names another host than this machine's loopback address\n";
                text(StatusCode::FORBIDDEN, words.to_owned())
            }
        }))
        .with_state(Arc::clone(shown))
}

/// Whether the request came by a number or by `localhost`: a name of a foreign page's own may be
/// made to lead here (DNS rebinding).
fn is_own_name(request: &Request) -> bool {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let authority = host.and_then(|host| host.parse::<Authority>().ok());
    authority.is_some_and(|authority| {
        let name = authority.host();
        let number = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost") || number.parse::<std::net::IpAddr>().is_ok()
    })
}

async fn page(State(shown): State<Arc<Shown>>) -> Response {
    match tokio::task::spawn_blocking(move || shown.page()).await {
        Ok(page) => with_type("text/html; charset=utf-8", page.to_string()),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

async fn status(State(shown): State<Arc<Shown>>) -> Response {
    let seen = shown.seen.borrow().clone();
    with_type("application/json", json_text(&seen) + "\n")
}

async fn json(State(shown): State<Arc<Shown>>) -> Response {
    match tokio::task::spawn_blocking(move || shown.results()).await {
        Ok(Some(results)) => with_type("application/json", json_text(&results) + "\n"),
        Ok(None) => text(StatusCode::NOT_FOUND, "there is no campaign yet\n".to_owned()),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

/// State of the campaign at each change: server-sent events (WHATWG HTML, section 9.2) with a JSON
/// object each.
async fn events(
    State(shown): State<Arc<Shown>>,
    Extension(client): Extension<ClientPlace>,
) -> Response {
    if !client.may_stream(FOLLOWERS_MAX) {
        let words = format!("{FOLLOWERS_MAX} pages follow already\n");
        return text(StatusCode::SERVICE_UNAVAILABLE, words);
    }
    let mut seen = shown.seen.clone();
    // The first event is how it stands now.
    seen.mark_changed();
    let events = stream::unfold(seen, |mut seen| async move {
        let event = match tokio::time::timeout(ALIVE, seen.changed()).await {
            Ok(changed) => {
                changed.ok()?;
                Event::default().data(json_text(&*seen.borrow_and_update()))
            }
            // A comment, which finds out whether the reader is still there.
            Err(_) => Event::default().comment("alive"),
        };
        Some((Ok::<_, std::convert::Infallible>(event), seen))
    });
    guarded(Sse::new(events).into_response())
}

fn json_text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("what is shown is representable as JSON")
}

fn with_type(kind: &'static str, body: String) -> Response {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(kind))];
    guarded((kind, body).into_response())
}

fn text(status: StatusCode, words: String) -> Response {
    guarded((status, words).into_response())
}

/// Adds what every answer says: it is of this moment, and what it may load.
fn guarded(mut response: Response) -> Response {
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests;
