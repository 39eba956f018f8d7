//! Serving the controllers that come: whom to let in, and what is told of those who fail.
//!
//! Peers that say no hello do not keep others out, see [`channel::Admission`]; and however many
//! come and fail, the log has a line about them once in a while.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use channel::{
    AcceptedConnection, AdmissionLimits, ConnectionGate, DownReason, Incoming, Listener,
    LogThrottle,
};

use super::Agent;
use super::serve::{ConnectionKind, serve};
use crate::counters::Counter;

/// How many one listener serves.
const LIMITS: AdmissionLimits = AdmissionLimits { half_open: 256, up: 1_024 };

/// How often failures of one kind are told.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// What a listener tells of.
struct Tells {
    accepting: LogThrottle,
    refused: LogThrottle,
    evicted: LogThrottle,
    mistaken: LogThrottle,
}

/// Serves every controller that comes, for ever.
pub(crate) async fn accept_all(agent: Rc<Agent>, listener: Listener) {
    let gate = ConnectionGate::new(LIMITS);
    let tell = || LogThrottle::new(TELL_EVERY);
    let tells = Tells { accepting: tell(), refused: tell(), evicted: tell(), mistaken: tell() };
    let tells = Rc::new(RefCell::new(tells));
    loop {
        match listener.accept().await {
            Ok(incoming) => admit(&agent, &gate, &tells, incoming).await,
            Err(error) => {
                // No descriptor is left: those that are open go on, and others can come later.
                if let Some(suppressed) = tells.borrow_mut().accepting.pass(Instant::now()) {
                    let listener = listener.endpoint();
                    let bridge = agent.told();
                    tracing::warn!(bridge, %listener, %error, suppressed, "accepting failed");
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

async fn admit(
    agent: &Rc<Agent>,
    gate: &Rc<ConnectionGate>,
    tells: &Rc<RefCell<Tells>>,
    incoming: Incoming,
) {
    let ended = gate.evicted();
    let accepted = match gate.admit(incoming.source()).await {
        Ok(accepted) => Rc::new(accepted),
        Err(refused) => {
            agent.counters.bump(Counter::ChannelTurnedAway);
            if let Some(suppressed) = tells.borrow_mut().refused.pass(Instant::now()) {
                let bridge = agent.told();
                tracing::warn!(bridge, peer = incoming.name(), %refused, suppressed, "turned away");
            }
            return;
        }
    };
    if gate.evicted() > ended {
        agent.counters.bump(Counter::ChannelEvicted);
        if let Some(suppressed) = tells.borrow_mut().evicted.pass(Instant::now()) {
            let most = LIMITS.half_open;
            tracing::warn!(
                bridge = agent.told(),
                most,
                suppressed,
                "many peers say no hello: the oldest is ended"
            );
        }
    }
    let (agent, tells) = (Rc::clone(agent), Rc::clone(tells));
    tokio::task::spawn_local(async move {
        tokio::select! {
            biased;
            () = accepted.evicted() => agent.counters.bump(Counter::ChannelFailed),
            () = serve_accepted(&agent, &tells, incoming, &accepted) => {}
        }
    });
}

async fn serve_accepted(
    agent: &Rc<Agent>,
    tells: &RefCell<Tells>,
    incoming: Incoming,
    accepted: &Rc<AcceptedConnection>,
) {
    let name = incoming.name().to_owned();
    let stream = match incoming.open(|| accepted.handshake_begun()).await {
        Ok(stream) => stream,
        Err(error) => {
            agent.counters.bump(Counter::ChannelFailed);
            if let Some(suppressed) = tells.borrow_mut().mistaken.pass(Instant::now()) {
                tracing::warn!(bridge = agent.told(), %error, suppressed, "connection failed");
            }
            return;
        }
    };
    let kind = ConnectionKind::Accepted(Rc::clone(accepted));
    let served = serve(Rc::clone(agent), stream, &name, kind).await;
    let reason = served.reason;
    if served.up_since.is_some() {
        tracing::info!(bridge = agent.told(), controller = name, %reason, "disconnected");
    } else if is_mistake(&reason) {
        if let Some(suppressed) = tells.borrow_mut().mistaken.pass(Instant::now()) {
            let bridge = agent.told();
            tracing::warn!(bridge, peer = name, %reason, suppressed, "connection failed");
        }
    } else {
        tracing::debug!(bridge = agent.told(), peer = name, %reason, "connection failed");
    }
}

/// Whether somebody has set something up wrong, other than one who came, was silent and went.
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
