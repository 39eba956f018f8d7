//! Runs a controller on real streams: accepts, connects, pumps, reports.
//!
//! One thread serves all switches. A turn of a connection reads what has come, runs the app on all
//! of it, and writes the answers with one call, so the cost of the system calls is shared by many
//! packets when there are many and paid by one when there is one. Garbage from one peer ends that
//! peer's connection and nothing else.

use crate::app::App;
use crate::session::{Controller, Outcome, Session};
use crate::stats::Stats;
use channel::{
    AcceptedConnection, AdmissionLimits, Backoff, ConnectionGate, ConnectionSettings, DownReason,
    Endpoint, Event, Incoming, Link, Listener, LogThrottle, NotServed, Side, Stream, Tls, TlsError,
    TlsFiles, TransportError, driver,
};
use openflow::Version;
use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{LocalSet, spawn_local};

/// The settings of the runtime.
#[derive(Clone, Debug)]
pub struct Options {
    /// Passive endpoints to accept switches on.
    pub listen: Vec<Endpoint>,
    /// Active endpoints: switches that listen themselves.
    pub connect: Vec<Endpoint>,
    /// Key and certificates, for endpoints with TLS.
    pub tls: Option<TlsFiles>,
    /// Whether a switch that is connected to must have a certificate for its host.
    pub check_peer_name: bool,
    /// Versions offered to switches, not empty.
    pub versions: Vec<Version>,
    /// Echo request after this time of silence; `None` never asks.
    pub probe_after: Option<Duration>,
    /// Report rates this often.
    pub stats_interval: Option<Duration>,
}

/// Why a controller could not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An endpoint could not be opened.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// Key or certificates cannot be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The system gave no runtime or no signals.
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
    /// Nothing to do.
    #[error("no endpoint: give --listen or --connect")]
    NoEndpoint,
    /// No version to speak.
    #[error("no protocol version: give --protocols, for example OpenFlow10,OpenFlow13")]
    NoVersion,
}

/// How many switches one listener serves.
const LIMITS: AdmissionLimits = AdmissionLimits { half_open: 256, up: 8_192 };

/// The least interval between log lines about failures of accepted connections.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Takes lines for people: who connected, rates, failures.
pub type StatusWriter = Rc<dyn Fn(&str)>;

/// What the tasks of one run share.
#[derive(Clone)]
struct Shared {
    controller: Rc<RefCell<Controller>>,
    settings: Rc<ConnectionSettings>,
    tls: Option<Tls>,
    report: StatusWriter,
}

/// Runs `app` until `stop` is done. Reports `listening on ...` for every endpoint once switches can
/// connect, and then what becomes of connections.
///
/// # Errors
/// When an endpoint cannot be listened on, or there is none. Connections never end the run.
pub async fn serve(
    app: Box<dyn App>,
    options: &Options,
    report: StatusWriter,
    stop: impl Future<Output = ()>,
) -> Result<Stats, Error> {
    if options.listen.is_empty() && options.connect.is_empty() {
        return Err(Error::NoEndpoint);
    }
    if options.versions.is_empty() {
        return Err(Error::NoVersion);
    }
    let tls = options.tls.clone();
    let tls = tls.map(|files| Tls::load(files, options.check_peer_name)).transpose()?;
    let mut listeners = Vec::new();
    for endpoint in &options.listen {
        listeners.push(Listener::bind(&endpoint.clone().into_passive(), tls.as_ref()).await?);
    }
    let mut settings = ConnectionSettings::new(Side::Controller).with_versions(&options.versions);
    settings.probe_after = options.probe_after;
    let controller = Rc::new(RefCell::new(Controller::new(app, driver::now())));
    let shared = Shared { controller, settings: Rc::new(settings), tls, report };
    let tasks = LocalSet::new();
    for listener in listeners {
        (shared.report)(&format!("listening on {}", listener.endpoint().clone().into_active()));
        tasks.spawn_local(accept(shared.clone(), listener));
    }
    for endpoint in &options.connect {
        tasks.spawn_local(connect(shared.clone(), endpoint.clone()));
    }
    if let Some(interval) = options.stats_interval {
        tasks.spawn_local(print_rates(shared.clone(), interval));
    }
    tasks.run_until(stop).await;
    drop(tasks);
    let stats = *shared.controller.borrow().stats();
    Ok(stats)
}

async fn accept(shared: Shared, listener: Listener) {
    let gate = ConnectionGate::new(LIMITS);
    let failures = Rc::new(RefCell::new(LogThrottle::new(TELL_EVERY)));
    loop {
        match listener.accept().await {
            Ok(incoming) => admit(&shared, &gate, &failures, incoming).await,
            Err(error) => {
                // Out of descriptors, say: those who wait are served when others have gone.
                let text = format!("{}: cannot accept: {error}", listener.endpoint());
                report_some(&shared, &failures, &text);
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
    }
}

/// Reports, unless something like it has been reported a moment ago.
fn report_some(shared: &Shared, failures: &RefCell<LogThrottle>, text: &str) {
    match failures.borrow_mut().pass(driver::now()) {
        Some(0) => (shared.report)(text),
        Some(suppressed) => (shared.report)(&format!("{text} ({suppressed} others suppressed)")),
        None => {}
    }
}

/// Serves a connection, unless it is evicted for another before its hello exchange is done.
async fn admit(
    shared: &Shared,
    gate: &Rc<ConnectionGate>,
    failures: &Rc<RefCell<LogThrottle>>,
    incoming: Incoming,
) {
    let accepted = gate.admit(incoming.source()).await;
    let (shared, failures) = (shared.clone(), Rc::clone(failures));
    spawn_local(async move {
        let peer = incoming.name().to_owned();
        let opened = tokio::select! {
            biased;
            () = accepted.evicted() => return,
            opened = incoming.open(|| accepted.handshake_begun()) => opened,
        };
        match opened {
            Ok(stream) => serve_accepted(&shared, &failures, stream, &peer, &accepted).await,
            Err(error) => report_some(&shared, &failures, &error.to_string()),
        }
    });
}

async fn serve_accepted(
    shared: &Shared,
    failures: &RefCell<LogThrottle>,
    stream: Stream,
    peer: &str,
    accepted: &AcceptedConnection,
) {
    let on_outcome = |outcome: &Outcome| {
        let is_silent = matches!(
            outcome,
            Outcome::Down { reason: DownReason::PeerClosed | DownReason::NoHello, .. }
        );
        if accepted.was_up() {
            (shared.report)(&format!("{peer}: {outcome}"));
        } else if !is_silent {
            // A peer that was silent and went is not worth a line.
            report_some(shared, failures, &format!("{peer}: {outcome}"));
        }
    };
    let on_refused =
        |refused| report_some(shared, failures, &format!("{peer}: turned away: {refused}"));
    serve_stream(shared, stream, Some(accepted), on_outcome, on_refused).await;
}

async fn connect(shared: Shared, endpoint: Endpoint) {
    let mut backoff = Backoff::default();
    let chance = RandomState::new();
    let mut last_error = None;
    for attempt in 0_u64.. {
        match Stream::connect(&endpoint, shared.tls.as_ref()).await {
            Ok(stream) => {
                last_error = None;
                let peer = endpoint.to_string();
                let on_outcome = |outcome: &Outcome| (shared.report)(&format!("{peer}: {outcome}"));
                let up_since = serve_stream(&shared, stream, None, on_outcome, |_| {}).await;
                if let Some(since) = up_since {
                    backoff.up(since);
                }
            }
            Err(error) => {
                let text = error.to_string();
                if last_error.as_ref() != Some(&text) {
                    (shared.report)(&format!("{text}; trying again"));
                    last_error = Some(text);
                }
            }
        }
        let mut hasher = chance.build_hasher();
        hasher.write_u64(attempt);
        let jitter = hasher.finish() as f64 / u64::MAX as f64;
        tokio::time::sleep(backoff.down(driver::now(), jitter)).await;
    }
}

/// Serves one switch until its connection is over; when its hello exchange was done, if ever.
async fn serve_stream(
    shared: &Shared,
    stream: Stream,
    accepted: Option<&AcceptedConnection>,
    on_outcome: impl Fn(&Outcome),
    on_refused: impl Fn(NotServed),
) -> Option<Instant> {
    let mut link = Link::new(stream, ConnectionSettings::clone(&shared.settings));
    let mut session = shared.controller.borrow_mut().session(driver::now());
    let (mut up_since, mut is_ready) = (None, false);
    loop {
        let due = tokio::time::Instant::from_std(
            session.next_timeout().unwrap_or_else(|| driver::now() + Duration::from_secs(3600)),
        );
        tokio::select! {
            biased;
            () = evicted(accepted) => link.connection().close(),
            () = link.turn() => {}
            () = tokio::time::sleep_until(due) => {}
        }
        let handled = handle(shared, &mut session, &mut link, accepted);
        for outcome in session.take_outcomes() {
            is_ready |= matches!(outcome, Outcome::Ready { .. } | Outcome::Auxiliary { .. });
            on_outcome(&outcome);
        }
        if let Some(refused) = handled.refused {
            on_refused(refused);
        }
        if let Some(accepted) = accepted {
            accepted.report(link.connection(), is_ready);
        }
        up_since = up_since.or(handled.up_since);
        if handled.is_over {
            break;
        }
    }
    link.finish().await;
    up_since
}

/// Done when the connection has been evicted for another.
async fn evicted(accepted: Option<&AcceptedConnection>) {
    match accepted {
        Some(accepted) => accepted.evicted().await,
        None => std::future::pending().await,
    }
}

/// What has happened in a turn of a connection.
#[derive(Default)]
struct Handled {
    up_since: Option<Instant>,
    /// The listener is full.
    refused: Option<NotServed>,
    is_over: bool,
}

/// Hands all events to the controller.
fn handle(
    shared: &Shared,
    session: &mut Session,
    link: &mut Link,
    accepted: Option<&AcceptedConnection>,
) -> Handled {
    let now = driver::now();
    let mut controller = shared.controller.borrow_mut();
    let mut handled = Handled::default();
    if session.next_timeout().is_some_and(|due| due <= now) {
        controller.handle_timeout(session, link.connection(), now);
    }
    while let Some(event) = link.connection().poll_event() {
        match &event {
            Event::Up { .. } => {
                if let Some(Err(refused)) = accepted.map(AcceptedConnection::mark_up) {
                    handled.refused = Some(refused);
                    link.connection().close();
                    continue;
                }
                handled.up_since = Some(now);
            }
            Event::Down(_) => handled.is_over = true,
            Event::Message { .. } | Event::Refused { .. } => {}
        }
        controller.take_event(session, link.connection(), event, now);
    }
    handled
}

async fn print_rates(shared: Shared, interval: Duration) {
    let mut before = *shared.controller.borrow().stats();
    let mut at = driver::now();
    loop {
        tokio::time::sleep(interval).await;
        let (stats, now) = (*shared.controller.borrow().stats(), driver::now());
        (shared.report)(&stats.since(&before, now - at).to_string());
        (before, at) = (stats, now);
    }
}
