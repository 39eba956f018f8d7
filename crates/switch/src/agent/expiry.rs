//! Timed work of a bridge: flow entries whose timeout has passed, removed entries whose last counts
//! are outstanding, and counts that are to be saved.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Agent;

/// Shortest time between two checks for expired entries.
const EVERY: Duration = Duration::from_millis(20);

/// Shortest time between two saves of counts, and how many times as long as one takes it is.
const SAVE_EVERY: Duration = Duration::from_secs(1);
const SAVE_PAUSE_RATIO: u32 = 20;

/// Saves the counts of the bridge, and writes its journal anew where that is due, for ever.
pub(crate) async fn run_journal(agent: Rc<Agent>) {
    let mut pause = SAVE_EVERY;
    loop {
        tokio::time::sleep(pause).await;
        let begun = Instant::now();
        agent.bridge.save_counts().await;
        agent.bridge.compact().await;
        pause = SAVE_EVERY.max(begun.elapsed() * SAVE_PAUSE_RATIO);
    }
}

/// Expires the entries whose time is over at the start. Nobody is connected yet who would get a
/// flow-removed.
pub(crate) async fn expire_restored(agent: &Agent) {
    agent.bridge.expire().await;
    agent.send_ops();
    // They are reaped when the flush before this one is done.
    agent.bridge.flush_counters().await;
}

/// Expires and reaps the entries of the bridge, for ever.
pub(crate) async fn run_expiry(agent: Rc<Agent>) {
    loop {
        match agent.bridge.upkeep_in() {
            None => agent.bridge.expiry.notified().await,
            Some(wait) if wait > EVERY => {
                tokio::select! {
                    biased;
                    () = agent.bridge.expiry.notified() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
            Some(_) => tokio::time::sleep(EVERY).await,
        }
        agent.bridge.expire().await;
        agent.send_ops();
    }
}
