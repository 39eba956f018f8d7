//! Serving the controllers that come: whom to let in, and what is told of those who fail.
//!
//! Peers that say no hello do not keep others out, see [`channel::Admission`]; and however many
//! come and fail, the log has a line about them once in a while.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use channel::{Door, DownReason, Guest, Incoming, Limits, Listener, Tell};

use super::Agent;
use super::serve::{Part, serve};
use crate::counters::Counter;

/// How many one listener serves.
const LIMITS: Limits = Limits { half_open: 256, up: 1_024 };

/// How often failures of one kind are told.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// What a listener tells of.
struct Tells {
    accepting: Tell,
    refused: Tell,
    evicted: Tell,
    mistaken: Tell,
}

/// Serves every controller that comes, for ever.
pub(crate) async fn accept_all(agent: Rc<Agent>, listener: Listener) {
    let door = Door::new(LIMITS);
    let tell = || Tell::new(TELL_EVERY);
    let tells = Tells { accepting: tell(), refused: tell(), evicted: tell(), mistaken: tell() };
    let tells = Rc::new(RefCell::new(tells));
    loop {
        match listener.accept().await {
            Ok(incoming) => let_in(&agent, &door, &tells, incoming).await,
            Err(error) => {
                // No descriptor is left: those that are open go on, and others can come later.
                if let Some(untold) = tells.borrow_mut().accepting.now(Instant::now()) {
                    let listener = listener.endpoint();
                    let bridge = agent.told();
                    tracing::warn!(bridge, %listener, %error, untold, "accepting failed");
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

async fn let_in(
    agent: &Rc<Agent>,
    door: &Rc<Door>,
    tells: &Rc<RefCell<Tells>>,
    incoming: Incoming,
) {
    let ended = door.ended();
    let guest = match door.admit(incoming.source()).await {
        Ok(guest) => Rc::new(guest),
        Err(refused) => {
            agent.counters.bump(Counter::ChannelTurnedAway);
            if let Some(untold) = tells.borrow_mut().refused.now(Instant::now()) {
                let bridge = agent.told();
                tracing::warn!(bridge, peer = incoming.name(), %refused, untold, "turned away");
            }
            return;
        }
    };
    if door.ended() > ended {
        agent.counters.bump(Counter::ChannelEvicted);
        if let Some(untold) = tells.borrow_mut().evicted.now(Instant::now()) {
            let most = LIMITS.half_open;
            tracing::warn!(
                bridge = agent.told(),
                most,
                untold,
                "many peers say no hello: the oldest is ended"
            );
        }
    }
    let (agent, tells) = (Rc::clone(agent), Rc::clone(tells));
    tokio::task::spawn_local(async move {
        tokio::select! {
            biased;
            () = guest.ended() => agent.counters.bump(Counter::ChannelFailed),
            () = serve_guest(&agent, &tells, incoming, &guest) => {}
        }
    });
}

async fn serve_guest(
    agent: &Rc<Agent>,
    tells: &RefCell<Tells>,
    incoming: Incoming,
    guest: &Rc<Guest>,
) {
    let name = incoming.name().to_owned();
    let stream = match incoming.open(|| guest.has_begun()).await {
        Ok(stream) => stream,
        Err(error) => {
            agent.counters.bump(Counter::ChannelFailed);
            if let Some(untold) = tells.borrow_mut().mistaken.now(Instant::now()) {
                tracing::warn!(bridge = agent.told(), %error, untold, "connection failed");
            }
            return;
        }
    };
    let part = Part::Guest(Rc::clone(guest));
    let (reason, was_up) = serve(Rc::clone(agent), stream, &name, part).await;
    if was_up {
        tracing::info!(bridge = agent.told(), controller = name, %reason, "disconnected");
    } else if is_mistake(&reason) {
        if let Some(untold) = tells.borrow_mut().mistaken.now(Instant::now()) {
            let bridge = agent.told();
            tracing::warn!(bridge, peer = name, %reason, untold, "connection failed");
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
