//! The tasks of a bridge: those that it needs while it is there, and those of its controllers.
//!
//! It must never begin a task outside of the agent, which ends with all of its tasks.

use std::rc::Rc;

use channel::{Endpoint, Listener, Tls, TransportError};

use crate::agent::{Agent, deliver, expire_restored, run_expiry, run_fail_standalone, run_journal};
use crate::config::BridgeConfig;

/// Listens at the endpoints of a bridge, each as it was asked for.
///
/// # Errors
/// An endpoint at which the process cannot listen.
pub(crate) async fn listen(
    config: &BridgeConfig,
    tls: Option<&Tls>,
) -> Result<Vec<(Endpoint, Listener)>, TransportError> {
    let mut listeners = Vec::new();
    for endpoint in &config.listeners {
        listeners.push((endpoint.clone(), Listener::bind(endpoint, tls).await?));
    }
    Ok(listeners)
}

/// Has the agent get what a bridge's shards answer.
pub(crate) fn serve_shards(agent: &Rc<Agent>) {
    agent.spawn(deliver(Rc::clone(agent)));
}

/// Begins the timed work of a bridge, for as long as it is there. What was restored has its counts
/// and the times at which it was used; what is over has gone when this returns.
pub(crate) async fn serve_time(agent: &Rc<Agent>) {
    if agent.bridge.keeps_state() {
        expire_restored(agent).await;
    }
    agent.spawn(run_expiry(Rc::clone(agent)));
    if agent.bridge.keeps_state() {
        agent.spawn(run_journal(Rc::clone(agent)));
    }
}

/// Begins the tasks of a bridge that have to do with controllers.
pub(crate) fn serve_controllers(agent: &Rc<Agent>, listeners: Vec<(Endpoint, Listener)>) {
    for (wanted, listener) in listeners {
        agent.add_listener(wanted, listener);
    }
    for endpoint in &agent.config().controllers {
        agent.add_controller(endpoint.clone());
    }
    agent.spawn_for_controllers(run_fail_standalone(Rc::clone(agent)));
}
