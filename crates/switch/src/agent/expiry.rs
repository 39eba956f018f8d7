//! Timed work of a bridge: flow entries whose timeout has passed, and removed entries whose last
//! counts are outstanding.

use std::rc::Rc;
use std::time::Duration;

use super::Agent;

/// Shortest time between two checks for expired entries.
const EVERY: Duration = Duration::from_millis(20);

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
