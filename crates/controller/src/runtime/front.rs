//! Sources of connections: listeners, switches that listen themselves; and the line of rates.
//!
//! All of it runs on the thread of the first shard. It must never wait for one peer while another
//! could be served.

use super::serve::{Context, PeerContext, evicted_text};
use crate::options::Options;
use channel::{
    AdmissionLimits, Backoff, ConnectionGate, ConnectionSettings, Endpoint, Incoming, Link,
    Listener, LogLine, Source, Stream, Tls, driver,
};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};

/// Connections of a listener whose hello exchange is not done.
const HALF_OPEN_MAX: usize = 256;

/// Wait of a listener that could not accept.
const ACCEPT_AGAIN: Duration = Duration::from_millis(500);

/// Memory of all connections: buffers, ports, answers.
const BYTES_MAX: usize = 256 << 20;

/// Memory that must have become free before it is given back to the system.
const RELEASED_MIN: usize = 32 << 20;

/// Interval between two looks at the memory of connections.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The part that all tasks of this module share.
#[derive(Clone)]
struct Front {
    context: Context,
    settings: Arc<ConnectionSettings>,
    tls: Option<Tls>,
}

/// Spawns everything that brings connections.
pub(super) fn spawn(
    tasks: &LocalSet,
    context: &Context,
    listeners: Vec<Listener>,
    options: &Options,
    tls: Option<Tls>,
) {
    let settings = Arc::new(options.connection());
    let switches_max = options.switches_max;
    let front = Front { context: context.clone(), settings, tls };
    // Switches that the user has named have a share of their own, as a listener has: neither they
    // nor those that come by themselves end the others.
    let shares = listeners.len() + usize::from(!options.connect.is_empty());
    let bytes_max = BYTES_MAX / shares.max(1);
    for listener in listeners {
        let limits = AdmissionLimits { half_open: HALF_OPEN_MAX, up: switches_max };
        let gate = new_gate(tasks, limits, bytes_max);
        tasks.spawn_local(accept(front.clone(), gate, listener));
    }
    if !options.connect.is_empty() {
        let limits = AdmissionLimits { half_open: usize::MAX, up: usize::MAX };
        let gate = new_gate(tasks, limits, bytes_max);
        for endpoint in &options.connect {
            tasks.spawn_local(connect(front.clone(), Arc::clone(&gate), endpoint.clone()));
        }
    }
    if let Some(interval) = options.stats_interval {
        tasks.spawn_local(print_rates(context.clone(), interval));
    }
}

fn new_gate(tasks: &LocalSet, limits: AdmissionLimits, bytes_max: usize) -> Arc<ConnectionGate> {
    let gate = ConnectionGate::new(limits, bytes_max);
    tasks.spawn_local(release_memory(Arc::clone(&gate)));
    gate
}

async fn accept(front: Front, gate: Arc<ConnectionGate>, listener: Listener) {
    loop {
        match listener.accept().await {
            Ok(incoming) => admit(&front, &gate, incoming).await,
            Err(error) => {
                // Out of descriptors, say: waiting peers are served when others have gone.
                let text = format!("{}: cannot accept: {error}", listener.endpoint());
                front.context.report_peer(LogLine::NotAccepted, &text);
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

/// Gives free memory back to the system when peers that took much of it have gone: the allocator
/// keeps it otherwise.
async fn release_memory(gate: Arc<ConnectionGate>) {
    let mut most = 0;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let bytes = gate.bytes();
        most = bytes.max(most);
        if most >= bytes + RELEASED_MIN {
            most = bytes;
            // It is one call, and no part of any connection.
            drop(tokio::task::spawn_blocking(files::release_free_memory).await);
        }
    }
}

/// Serves a connection, unless it is evicted for another before its hello exchange is done.
async fn admit(front: &Front, gate: &Arc<ConnectionGate>, incoming: Incoming) {
    let accepted = gate.admit(&incoming).await;
    let front = front.clone();
    spawn_local(async move {
        let peer: Arc<str> = Arc::from(incoming.name());
        let opened = tokio::select! {
            biased;
            () = accepted.evicted() => {
                front.context.report_peer(LogLine::Evicted, &evicted_text(&peer));
                return;
            }
            opened = incoming.open(|| accepted.handshake_begun()) => opened,
        };
        match opened {
            Ok(stream) => {
                let link = Link::new(stream, ConnectionSettings::clone(&front.settings));
                let peer_context = PeerContext {
                    peer,
                    admitted: accepted,
                    up_since: None,
                    is_used: false,
                    ended: None,
                };
                front.context.serve(link, peer_context).await;
            }
            Err(error) => {
                front.context.report_peer(LogLine::Failed, &error.to_string());
            }
        }
    });
}

async fn connect(front: Front, gate: Arc<ConnectionGate>, endpoint: Endpoint) {
    let mut backoff = Backoff::default();
    let chance = RandomState::new();
    let mut last_error = None;
    for attempt in 0_u64.. {
        match Stream::connect(&endpoint, front.tls.as_ref()).await {
            Ok(stream) => {
                last_error = None;
                let (ended, has_ended) = oneshot::channel();
                let link = Link::new(stream, ConnectionSettings::clone(&front.settings));
                let peer_context = PeerContext {
                    peer: endpoint.to_string().into(),
                    // The largest of all ends first: they are of one source.
                    admitted: gate.admit_from(Source::Local, false).await,
                    up_since: None,
                    is_used: false,
                    ended: Some(ended),
                };
                // In a task of its own, so that a handler that panics does not end the attempts.
                spawn_local(front.context.clone().serve(link, peer_context));
                if let Ok(Some(since)) = has_ended.await {
                    backoff.up(since);
                }
            }
            Err(error) => {
                let text = error.to_string();
                if last_error.as_ref() != Some(&text)
                    && front
                        .context
                        .report_peer(LogLine::NotConnected, &format!("{text}; trying again"))
                {
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

async fn print_rates(context: Context, interval: Duration) {
    let mut before = context.shared().stats();
    let mut at = driver::now();
    loop {
        tokio::time::sleep(interval).await;
        let (stats, now) = (context.shared().stats(), driver::now());
        context.report(&stats.since(&before, now - at).to_string());
        (before, at) = (stats, now);
    }
}
