//! Keeping connected to controllers, and accepting those that come.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::time::{Duration, Instant};

use channel::{Backoff, Endpoint, Listener, Stream};

use super::Agent;
use super::serve::serve;
use crate::counters::Counter;

/// First wait before connecting again.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// A connection that was up for so long counts as a good one.
const STEADY: Duration = Duration::from_secs(10);

/// Most connections that one listener serves at once; further ones are closed at once.
const ACCEPTED_MAX: usize = 256;

/// Connects to a controller, and again whenever the connection ends, for ever.
pub(crate) async fn keep_connected(agent: Rc<Agent>, endpoint: Endpoint) {
    let most = Duration::from_secs(agent.config.max_backoff_s.into());
    let mut backoff = Backoff::new(BACKOFF_FIRST.min(most), most, STEADY);
    let name = endpoint.to_string();
    let mut told = false;
    loop {
        let begun = Instant::now();
        match Stream::connect(&endpoint).await {
            Ok(stream) => {
                told = false;
                let (reason, was_up) = serve(Rc::clone(&agent), stream, &name).await;
                if was_up {
                    backoff.up(begun);
                }
                tracing::warn!(controller = name, %reason, "disconnected; flow entries stay");
            }
            Err(error) => {
                agent.counters.bump(Counter::ChannelFailed);
                // Once a row of failures, not once a second.
                if told {
                    tracing::debug!(controller = name, %error, "still not connected");
                } else {
                    tracing::warn!(controller = name, %error, "not connected; trying again");
                }
                told = true;
            }
        }
        tokio::time::sleep(backoff.down(Instant::now(), chance())).await;
    }
}

/// A number from 0 to 1 that differs between switches; its quality does not matter.
fn chance() -> f64 {
    let hash = RandomState::new().hash_one(Instant::now());
    f64::from((hash >> 32) as u32) / f64::from(u32::MAX)
}

/// Serves every controller that comes, for ever.
pub(crate) async fn accept_all(agent: Rc<Agent>, listener: Listener) {
    let open = Rc::new(Cell::new(0_usize));
    loop {
        let (stream, name) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // No descriptor is left: those that are open go on, and others can come later.
                tracing::warn!(listener = %listener.endpoint(), %error, "accepting failed");
                tokio::time::sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        if open.get() >= ACCEPTED_MAX {
            tracing::warn!(peer = name, "too many connections; this one is closed");
            agent.counters.bump(Counter::ChannelFailed);
            continue;
        }
        open.set(open.get() + 1);
        let (agent, open) = (Rc::clone(&agent), Rc::clone(&open));
        tokio::task::spawn_local(async move {
            let (reason, was_up) = serve(agent, stream, &name).await;
            if was_up {
                tracing::info!(controller = name, %reason, "disconnected");
            } else {
                tracing::debug!(peer = name, %reason, "connection failed");
            }
            open.set(open.get() - 1);
        });
    }
}
