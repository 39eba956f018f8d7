//! The key that signs probes, and the clock by which they are dated.
//!
//! A controller alone has a key of its run and its own clock. The nodes of a cluster share a key,
//! which the first of them puts into etcd, and date probes by the time of day, since a probe that
//! one of them sends may come to another. It must never sign with a key that the others lack.

use super::probe::ProbeKey;
use crate::handle::Handle;
use cluster::{ClusterState, KeyName, StateError};
use ring::rand::{SecureRandom as _, SystemRandom};
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The app in the state of the cluster that has the key.
const APP: &str = "discovery";
const PROBE_KEY: &str = "probe-key";

/// Before etcd is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The key of a controller alone, or that of its cluster.
#[derive(Debug)]
pub(super) struct Keys {
    own: ProbeKey,
    /// In a cluster: its key, once it is known.
    shared: Option<Arc<OnceLock<ProbeKey>>>,
}

impl Keys {
    /// Of a controller alone.
    pub(super) fn own(own: ProbeKey) -> Self {
        Self { own, shared: None }
    }

    /// The key and the date of a probe that is sent or taken `now`; nothing while the cluster's key
    /// is not known.
    pub(super) fn at(&self, now: Duration) -> Option<(&ProbeKey, Duration)> {
        match &self.shared {
            None => Some((&self.own, now)),
            Some(shared) => {
                let date = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
                Some((shared.get()?, date))
            }
        }
    }

    /// Whether other controllers sign with the same key.
    pub(super) fn are_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Asks for the cluster's key, if this controller is in one.
    pub(super) fn share(&mut self, handle: &Handle) {
        let Ok(name) = APP.parse::<KeyName>() else { return };
        let Ok(state) = handle.state(&name) else { return };
        let shared = Arc::new(OnceLock::new());
        self.shared = Some(Arc::clone(&shared));
        // A controller in a cluster has a runtime; a simulation is in none.
        tokio::spawn(async move {
            if let Some(secret) = secret_of(&state).await {
                // It is set here alone.
                shared.set(ProbeKey::from_secret(secret.as_bytes())).ok();
            }
        });
    }
}

/// The cluster's secret, which the first that asks makes; nothing when the node has left.
async fn secret_of(state: &ClusterState) -> Option<String> {
    loop {
        match ask(state).await {
            Ok(Some(secret)) => return Some(secret),
            // Another node has been faster, or etcd does not answer; the cluster's log says so.
            Ok(None) | Err(StateError::Etcd(_) | StateError::Full) => {}
            Err(StateError::Left) => return None,
            Err(
                error @ (StateError::BadKey | StateError::TooLong(_) | StateError::TooManyWatches),
            ) => {
                tracing::warn!("the cluster's key of probes: {error}");
                return None;
            }
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

async fn ask(state: &ClusterState) -> Result<Option<String>, StateError> {
    if let Some(entry) = state.get(PROBE_KEY).await? {
        return Ok(Some(entry.value));
    }
    let mut bytes = [0_u8; 32];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        return Ok(None);
    }
    let secret = bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        write!(text, "{byte:02x}").ok();
        text
    });
    Ok(state.put_if(PROBE_KEY, &secret, 0).await?.then_some(secret))
}
