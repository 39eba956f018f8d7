//! What the bridge needs by the clock: entries whose timeout has passed, and removed entries whose
//! last counts are awaited.

use std::rc::Rc;
use std::time::Duration;

use super::Agent;

/// Shortest time between two looks for expired entries.
const EVERY: Duration = Duration::from_millis(20);

/// Keeps the bridge up, for ever.
pub(crate) async fn keep_up(agent: Rc<Agent>) {
    loop {
        match agent.bridge.upkeep_in() {
            None => agent.bridge.upkeep.notified().await,
            Some(wait) if wait > EVERY => {
                tokio::select! {
                    biased;
                    () = agent.bridge.upkeep.notified() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
            Some(_) => tokio::time::sleep(EVERY).await,
        }
        agent.bridge.expire().await;
        agent.flush();
    }
}
