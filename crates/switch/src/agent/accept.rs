//! Serving the controllers that connect to a listener.
//!
//! Silent or slow peers do not keep others out, see [`channel::Admission`]; the log lines that they
//! cause are limited.

use std::rc::Rc;
use std::time::Duration;

use channel::{
    AcceptedConnection, AdmissionLimits, ConnectionGate, DownReason, Incoming, Listener, LogLine,
    Pass,
};

use super::Agent;
use super::connection::{ConnectionKind, serve};
use super::ending::Ending;
use super::storm;
use crate::counters::Counter;

/// The number of controllers that one listener serves.
const LIMITS: AdmissionLimits = AdmissionLimits { half_open: 256, up: 1_024 };

/// Memory of all connections of a listener.
const BYTES_MAX: usize = 256 << 20;

/// Wait after a failed accept: without descriptors the next one would fail at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves every controller that connects, until the task is ended. The connections end when the
/// listener goes.
pub(super) async fn accept_all(agent: Rc<Agent>, listener: Listener, gone: Rc<Ending>) {
    let gate = ConnectionGate::new(LIMITS, BYTES_MAX);
    loop {
        match listener.accept().await {
            Ok(incoming) => {
                let accepted = Rc::new(gate.admit(&incoming).await);
                let (agent, gone) = (Rc::clone(&agent), Rc::clone(&gone));
                tokio::task::spawn_local(async move {
                    storm::begin();
                    serve_unless_evicted(agent, incoming, accepted, &gone).await;
                    if storm::end() {
                        tokio::task::spawn_local(storm::release_after_storm());
                    }
                });
            }
            Err(error) => {
                // No descriptor is left: those that are open go on, and others can come later.
                if let Some(Pass { suppressed, bridges }) = agent.log_pass(LogLine::NotAccepted) {
                    let listener = listener.endpoint();
                    let bridge = agent.log_name();
                    let text = "accepting failed";
                    tracing::warn!(bridge, %listener, %error, suppressed, bridges, "{text}");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve_unless_evicted(
    agent: Rc<Agent>,
    incoming: Incoming,
    accepted: Rc<AcceptedConnection>,
    gone: &Ending,
) {
    let name = incoming.name().to_owned();
    tokio::select! {
        biased;
        () = accepted.evicted() => {
            agent.counters.bump(Counter::ChannelEvicted);
            if let Some(Pass { suppressed, bridges }) = agent.log_pass(LogLine::Evicted) {
                let bridge = agent.log_name();
                let text = "the listener is full: a silent, slow or idle connection is closed";
                tracing::warn!(bridge, peer = name, suppressed, bridges, "{text}");
            }
            if !accepted.was_up() {
                agent.counters.bump(Counter::ChannelFailed);
            }
        }
        () = gone.come() => {}
        () = agent.restart() => {}
        () = serve_accepted(&agent, incoming, &name, &accepted) => {}
    }
}

async fn serve_accepted(
    agent: &Rc<Agent>,
    incoming: Incoming,
    name: &str,
    accepted: &Rc<AcceptedConnection>,
) {
    let opened = tokio::select! {
        biased;
        () = agent.going() => return,
        opened = incoming.open(|| accepted.handshake_begun()) => opened,
    };
    let stream = match opened {
        Ok(stream) => stream,
        Err(error) => {
            agent.counters.bump(Counter::ChannelFailed);
            if let Some(Pass { suppressed, bridges }) = agent.log_pass(LogLine::Failed) {
                let bridge = agent.log_name();
                tracing::warn!(bridge, %error, suppressed, bridges, "connection failed");
            }
            return;
        }
    };
    let kind = ConnectionKind::Accepted(Rc::clone(accepted));
    let served = serve(Rc::clone(agent), stream, name, kind).await;
    let (bridge, reason) = (agent.log_name(), served.reason);
    if served.up_since.is_some() {
        tracing::debug!(bridge, client = name, %reason, "disconnected");
    } else if !is_mistake(&reason) {
        tracing::debug!(bridge, peer = name, %reason, "connection failed");
    } else if let Some(Pass { suppressed, bridges }) = agent.log_pass(LogLine::Failed) {
        tracing::warn!(bridge, peer = name, %reason, suppressed, bridges, "connection failed");
    }
}

/// Whether the reason points to a wrong set-up, other than a peer that was silent and went.
fn is_mistake(reason: &DownReason) -> bool {
    match reason {
        DownReason::NotHello { .. }
        | DownReason::NoCommonVersion(_)
        | DownReason::RefusedByPeer(_)
        | DownReason::BadLength(_)
        | DownReason::Stream(_) => true,
        DownReason::NoHello
        | DownReason::HalfMessage
        | DownReason::NoEchoReply
        | DownReason::NotReading(_)
        | DownReason::PeerClosed
        | DownReason::Closed => false,
    }
}
