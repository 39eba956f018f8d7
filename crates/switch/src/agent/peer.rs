//! A controller whose connection is up, as the rest of the agent sees it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use openflow::message::{AsyncConfig, ControllerRole, PacketInReason};
use openflow::{Cookie, Error, Message, Version};
use tokio::sync::Notify;

use super::asynchronous;
use crate::worker::{ConnectionId, Request};

/// Packet-ins that wait for the task of one connection; more are dropped and counted.
const PACKETS_MAX: usize = 16_384;

/// One controller.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Which connection.
    pub(crate) id: ConnectionId,
    /// Where it is, for people.
    pub(crate) name: String,
    /// The version agreed on.
    pub(crate) version: Version,
    /// Its role.
    pub(crate) role: Cell<ControllerRole>,
    /// Which asynchronous messages it gets.
    pub(crate) asynchronous: Cell<AsyncConfig>,
    mail: RefCell<Mail>,
    notify: Notify,
}

/// What waits to be sent to a controller.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    /// Packet-ins, each the message itself.
    pub(crate) packets: Vec<Rc<Message>>,
    /// Other asynchronous messages.
    pub(crate) news: Vec<Rc<Message>>,
    /// Replies and errors.
    pub(crate) letters: VecDeque<Letter>,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Letter {
    /// A reply.
    Reply(Request, Message),
    /// A request was refused.
    Refused(Request, Error),
}

/// A controller for people.
#[derive(Clone, Debug)]
pub(crate) struct PeerInfo {
    /// Where it is.
    pub(crate) name: String,
    /// The version agreed on.
    pub(crate) version: Version,
    /// Its role.
    pub(crate) role: ControllerRole,
}

impl Peer {
    pub(crate) fn new(id: ConnectionId, name: String, version: Version) -> Self {
        Self {
            id,
            name,
            version,
            role: Cell::new(ControllerRole::Equal),
            asynchronous: Cell::new(asynchronous::DEFAULT),
            mail: RefCell::default(),
            notify: Notify::new(),
        }
    }

    /// What people see.
    pub(crate) fn info(&self) -> PeerInfo {
        PeerInfo { name: self.name.clone(), version: self.version, role: self.role.get() }
    }

    /// Whether it gets a packet-in. A packet that missed where there is no table-miss entry, so
    /// that no entry's cookie is known, goes up by 1.0's rule, and to controllers of 1.0 only.
    pub(crate) fn wants_packet_in(&self, reason: PacketInReason, cookie: Cookie) -> bool {
        let by_rule_of_1_0 = reason == PacketInReason::NoMatch && cookie == Cookie(u64::MAX);
        let by_rule = match self.version {
            Version::V1_0 => true,
            Version::V1_3 => !by_rule_of_1_0,
        };
        by_rule && asynchronous::wants_packet_in(&self.asynchronous.get(), self.role.get(), reason)
    }

    /// Puts a packet-in into the mail; false when there is no room. The task is woken by
    /// [`Peer::wake`].
    pub(crate) fn post_packet(&self, packet: Rc<Message>) -> bool {
        let mut mail = self.mail.borrow_mut();
        let room = mail.packets.len() < PACKETS_MAX;
        if room {
            mail.packets.push(packet);
        }
        room
    }

    /// Puts an asynchronous message that must arrive into the mail and wakes the task.
    pub(crate) fn post_news(&self, message: Rc<Message>) {
        self.mail.borrow_mut().news.push(message);
        self.notify.notify_one();
    }

    /// Puts an answer into the mail and wakes the task.
    pub(crate) fn post(&self, letter: Letter) {
        self.mail.borrow_mut().letters.push_back(letter);
        self.notify.notify_one();
    }

    /// Wakes the connection's task if there is mail.
    pub(crate) fn wake(&self) {
        if !self.mail.borrow().packets.is_empty() {
            self.notify.notify_one();
        }
    }

    /// Waits for mail.
    pub(crate) async fn mailed(&self) {
        self.notify.notified().await;
    }

    /// Takes the mail.
    pub(crate) fn take_mail(&self) -> Mail {
        self.mail.take()
    }
}
