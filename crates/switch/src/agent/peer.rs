//! A controller whose connection is up, as the rest of the agent sees it.
//!
//! A controller may have auxiliary connections beside its main one (clause 6.3.6); role and masks
//! are the controller's, answers go where the request came from.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use openflow::message::{AsyncConfig, ControllerRole, PacketInReason};
use openflow::{Cookie, Error, Message, Version};
use tokio::sync::Notify;

use super::asynchronous;
use crate::bridge::FlowList;
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
    /// 0 for the main connection.
    pub(crate) auxiliary_id: u8,
    /// Whether this is a controller that the switch connects to, as it is told to.
    pub(crate) is_contact: bool,
    /// Whether it has come by the control socket: no controller.
    pub(crate) is_tool: bool,
    /// What it shares with the other connections of its controller.
    pub(crate) standing: Rc<Standing>,
    mail: RefCell<Mail>,
    notify: Notify,
    is_over: Cell<bool>,
    over: Notify,
}

/// What all connections of a controller share.
#[derive(Debug)]
pub(crate) struct Standing {
    /// Its role.
    pub(crate) role: Cell<ControllerRole>,
    /// Which asynchronous messages it gets.
    pub(crate) asynchronous: Cell<AsyncConfig>,
    /// The auxiliary connections that are up.
    auxiliaries: RefCell<Vec<Rc<Peer>>>,
}

impl Default for Standing {
    fn default() -> Self {
        Self {
            role: Cell::new(ControllerRole::Equal),
            asynchronous: Cell::new(asynchronous::DEFAULT),
            auxiliaries: RefCell::default(),
        }
    }
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
    /// A reply that is a list of flow entries.
    Flows(Request, FlowList),
    /// Nothing is said: a command that took long is done, and those behind it may go on.
    Done(Request),
}

impl Letter {
    /// The request that it answers.
    pub(crate) fn request(&self) -> &Request {
        match self {
            Self::Reply(request, _)
            | Self::Refused(request, _)
            | Self::Flows(request, _)
            | Self::Done(request) => request,
        }
    }
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
    /// The main connection of a controller.
    pub(crate) fn main(id: ConnectionId, name: String, version: Version, is_contact: bool) -> Self {
        Self {
            id,
            name,
            version,
            auxiliary_id: 0,
            is_contact,
            is_tool: false,
            standing: Rc::default(),
            mail: RefCell::default(),
            notify: Notify::new(),
            is_over: Cell::new(false),
            over: Notify::new(),
        }
    }

    /// A connection of the control socket.
    pub(crate) fn tool(id: ConnectionId, name: String, version: Version) -> Self {
        Self { is_tool: true, ..Self::main(id, name, version, false) }
    }

    /// An auxiliary connection beside `main`.
    pub(crate) fn auxiliary(id: ConnectionId, name: String, auxiliary_id: u8, main: &Self) -> Self {
        let standing = Rc::clone(&main.standing);
        Self {
            auxiliary_id,
            standing,
            is_contact: false,
            ..Self::main(id, name, main.version, false)
        }
    }

    /// Whether it is a main connection.
    pub(crate) fn is_main(&self) -> bool {
        self.auxiliary_id == 0
    }

    /// Its controller's role.
    pub(crate) fn role(&self) -> ControllerRole {
        self.standing.role.get()
    }

    /// The connection that packet-ins of this flow go by: one of the auxiliary ones, if any is up.
    pub(crate) fn way_of(self: &Rc<Self>, flow: u32) -> Rc<Self> {
        let auxiliaries = self.standing.auxiliaries.borrow();
        let count = u32::try_from(auxiliaries.len()).unwrap_or(u32::MAX);
        let chosen = flow.checked_rem(count).and_then(|index| auxiliaries.get(index as usize));
        Rc::clone(chosen.unwrap_or(self))
    }

    /// This auxiliary connection is up.
    pub(crate) fn join_main(self: &Rc<Self>) {
        self.standing.auxiliaries.borrow_mut().push(Rc::clone(self));
    }

    /// The connection is over; the auxiliary ones of a main connection end with it.
    pub(crate) fn end(&self) {
        self.is_over.set(true);
        self.over.notify_waiters();
        self.standing.auxiliaries.borrow_mut().retain(|peer| peer.id != self.id);
    }

    /// Done when the connection is over.
    pub(crate) async fn over(&self) {
        let notified = self.over.notified();
        if !self.is_over.get() {
            notified.await;
        }
    }

    /// What people see.
    pub(crate) fn info(&self) -> PeerInfo {
        PeerInfo { name: self.name.clone(), version: self.version, role: self.role() }
    }

    /// Whether it gets a packet-in. A packet that missed where there is no table-miss entry, so
    /// that no entry's cookie is known, goes up by 1.0's rule, and to controllers of 1.0 only.
    pub(crate) fn wants_packet_in(&self, reason: PacketInReason, cookie: Cookie) -> bool {
        let by_rule_of_1_0 = reason == PacketInReason::NoMatch && cookie == Cookie(u64::MAX);
        let by_rule = match self.version {
            Version::V1_0 => true,
            Version::V1_3 => !by_rule_of_1_0,
        };
        let masks = self.standing.asynchronous.get();
        by_rule && asynchronous::wants_packet_in(&masks, self.role(), reason)
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
