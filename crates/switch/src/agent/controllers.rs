//! Connections that the switch makes: a main connection to each controller, and the auxiliary ones
//! beside it (clause 6.3.6).

use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::time::{Duration, Instant};

use channel::driver::now;
use channel::{Backoff, DownReason, Endpoint, LogLine, Pass, Stream, TransportError};

use super::connection::{ConnectionKind, serve};
use super::{Agent, Peer};
use crate::counters::Counter;

/// First wait before connecting again.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// Connects to a controller, and again whenever the connection ends, until the bridge goes.
pub(crate) async fn keep_connected(agent: Rc<Agent>, endpoint: Endpoint) {
    let endpoint = Rc::new(endpoint);
    let kind = ConnectionKind::Main(Rc::clone(&endpoint));
    connect_again(agent, &endpoint, endpoint.to_string(), &kind).await;
}

/// Begins the auxiliary connections of a main connection that has come up. Each ends with it.
pub(super) fn begin_auxiliaries(agent: &Rc<Agent>, endpoint: &Rc<Endpoint>, main: &Rc<Peer>) {
    if !main.version.has_auxiliary_connections() {
        return;
    }
    for id in 1..=agent.config().auxiliary {
        let (agent, endpoint, main) = (Rc::clone(agent), Rc::clone(endpoint), Rc::clone(main));
        tokio::task::spawn_local(async move {
            let name = format!("{endpoint} auxiliary {id}");
            let kind = ConnectionKind::Auxiliary(id, Rc::clone(&main));
            tokio::select! {
                biased;
                () = main.over() => {}
                () = connect_again(agent, &endpoint, name, &kind) => {}
            }
        });
    }
}

/// Connects and serves again and again, until the bridge goes.
async fn connect_again(agent: Rc<Agent>, endpoint: &Endpoint, name: String, kind: &ConnectionKind) {
    let mut backoff = Backoff::new(BACKOFF_FIRST, agent.config().max_backoff);
    let mut is_reported = false;
    loop {
        let tls = agent.tls();
        let stream = tokio::select! {
            biased;
            () = agent.going() => return,
            stream = Stream::connect(endpoint, tls.as_ref()) => stream,
        };
        match stream {
            Ok(stream) => {
                is_reported = false;
                let served = serve(Rc::clone(&agent), stream, &name, kind.clone()).await;
                if let Some(since) = served.up_since {
                    backoff.up(since);
                }
                if served.was_used {
                    backoff.used();
                }
                let reason = served.reason;
                // One that we close ends with its bridge.
                if reason != DownReason::Closed
                    && let Some(Pass { suppressed, bridges }) =
                        agent.log_pass(LogLine::Disconnected)
                {
                    let (bridge, controller) = (agent.log_name(), &name);
                    let text = "disconnected";
                    tracing::warn!(bridge, controller, %reason, suppressed, bridges, "{text}");
                }
            }
            Err(error) => {
                agent.counters.bump(Counter::ChannelFailed);
                let (bridge, controller) = (agent.log_name(), &name);
                // Once a row of failures, not once a second.
                let pass = if is_reported { None } else { agent.log_pass(LogLine::NotConnected) };
                if let Some(Pass { suppressed, bridges }) = pass {
                    let text = format!("connection failed ({}); trying again", reason_of(&error));
                    tracing::warn!(bridge, controller, suppressed, bridges, "{text}");
                    is_reported = true;
                } else {
                    tracing::debug!(bridge, controller, %error, "still not connected");
                }
            }
        }
        backoff.set_most(agent.config().max_backoff);
        tokio::select! {
            biased;
            () = agent.going() => return,
            () = tokio::time::sleep(backoff.down(now(), chance())) => {}
        }
    }
}

/// Why a connection could not be made, without its endpoint, as Open vSwitch logs it.
fn reason_of(error: &TransportError) -> String {
    let TransportError::Connect(_, system) = error else { return error.to_string() };
    let text = system.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// A number from 0 to 1 that differs between switches; its quality does not matter.
fn chance() -> f64 {
    let hash = RandomState::new().hash_one(Instant::now());
    f64::from((hash >> 32) as u32) / f64::from(u32::MAX)
}
