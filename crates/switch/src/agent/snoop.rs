//! Snoopers: programs that read what a bridge and its controllers send each other, as
//! `ovs-ofctl snoop` does.
//!
//! Each gets a copy of every message of the connections that the bridge makes to controllers, in
//! the version in which it was sent. One that does not read loses copies; no controller must ever
//! wait for it.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

use channel::{Endpoint, Event, Link, Listener, Stream};
use openflow::Version;
use tokio::sync::Notify;

use super::Agent;

/// Snoopers of a bridge at a time; further ones are turned away.
const SNOOPERS_MAX: usize = 16;

/// Bytes of copies that wait for one of them.
const COPIES_MAX: usize = 1 << 20;

/// Wait after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The snoopers of a bridge.
#[derive(Default)]
pub(super) struct Snoopers {
    has_socket: Cell<bool>,
    all: RefCell<Vec<Weak<Snooper>>>,
}

/// The messages that wait for one snooper.
#[derive(Default)]
struct Snooper {
    copies: RefCell<Vec<u8>>,
    notify: Notify,
}

impl Snoopers {
    /// Whether there are any.
    pub(super) fn are_there(&self) -> bool {
        self.all.borrow().iter().any(|snooper| snooper.strong_count() > 0)
    }

    /// Sends copies of whole messages to all of them.
    pub(super) fn send(&self, copies: &[u8]) {
        if copies.is_empty() {
            return;
        }
        let all = self.all.borrow();
        for snooper in all.iter().filter_map(Weak::upgrade) {
            let mut waiting = snooper.copies.borrow_mut();
            if waiting.len() + copies.len() <= COPIES_MAX {
                waiting.extend_from_slice(copies);
                snooper.notify.notify_one();
            }
        }
    }

    /// Adds one, if there is room.
    fn add(&self) -> Option<Rc<Snooper>> {
        let mut all = self.all.borrow_mut();
        all.retain(|snooper| snooper.strong_count() > 0);
        if all.len() == SNOOPERS_MAX {
            return None;
        }
        let snooper = Rc::new(Snooper::default());
        all.push(Rc::downgrade(&snooper));
        Some(snooper)
    }
}

impl Agent {
    /// Accepts snoopers at a socket from now on, for as long as the bridge is there.
    pub(crate) async fn listen_for_snoopers(self: &Rc<Self>, endpoint: &Endpoint) {
        if self.snoopers.has_socket.replace(true) {
            return;
        }
        let listener = match Listener::bind(endpoint, None).await {
            Ok(listener) => listener,
            Err(error) => {
                return tracing::warn!(bridge = self.name, %error, "ovs-ofctl snoop has no socket");
            }
        };
        self.spawn_for_controllers(accept_snoopers(Rc::clone(self), listener));
    }
}

async fn accept_snoopers(agent: Rc<Agent>, listener: Listener) {
    loop {
        let Ok(incoming) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (opened, snooper) = (incoming.open(|| ()).await, agent.snoopers.add());
        if let (Ok(stream), Some(snooper)) = (opened, snooper) {
            // Connections that wait for a message copy it.
            agent.peers().iter().for_each(|peer| peer.refresh());
            tokio::task::spawn_local(serve_snooper(Rc::clone(&agent), stream, snooper));
        }
    }
}

/// Serves a snooper until it goes.
async fn serve_snooper(agent: Rc<Agent>, stream: Stream, snooper: Rc<Snooper>) {
    let mut settings = agent.connection_config().with_versions(Version::ALL);
    // It does not answer.
    settings.probe_after = None;
    let mut link = Link::new(stream, settings);
    loop {
        tokio::select! {
            () = link.turn() => {}
            () = snooper.notify.notified() => {}
            () = agent.going() => return,
        }
        let connection = link.connection();
        while let Some(event) = connection.poll_event() {
            if let Event::Down(reason) = event {
                return tracing::debug!(bridge = agent.name, %reason, "a snooper has gone");
            }
        }
        if connection.version().is_some() && !connection.is_full() {
            let sent = connection.send_frame(&snooper.copies.take());
            debug_assert!(sent.is_ok(), "the connection is up");
        }
    }
}
