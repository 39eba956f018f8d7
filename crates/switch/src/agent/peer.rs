//! A controller whose connection is up, as the rest of the agent sees it.
//!
//! A controller may have auxiliary connections beside its main one (clause 6.3.6); role and masks
//! are the controller's, answers go where the request came from.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use openflow::message::{
    AsyncConfig, AsyncEvent, ControllerRole, PacketInReason, Role, RoleReason, RoleStatus,
};
use openflow::{Cookie, Error, Message, MessageKind, Version};
use tokio::sync::Notify;

use super::asynchronous;
use super::ending::Ending;
use super::monitors::{InitialEntries, Monitors};
use crate::bridge::FlowDump;
use crate::request::{ConnectionId, RequestContext};

/// Packet-ins in the send queue of one connection; more are dropped and counted.
const PACKETS_MAX: usize = 16_384;

/// A connection that is up.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The connection's number.
    pub(crate) id: ConnectionId,
    /// Its endpoint, for people.
    pub(crate) name: String,
    /// The version agreed on.
    pub(crate) version: Version,
    /// 0 for the main connection.
    pub(crate) auxiliary_id: u8,
    /// Whether this is a configured controller, to which the switch connects.
    pub(crate) is_configured: bool,
    /// Whether it came by the control socket: a tool, no controller.
    pub(crate) is_tool: bool,
    /// The state shared by the connections of its controller.
    pub(crate) controller: Rc<ControllerState>,
    /// Its flow monitors, and their reports.
    pub(super) monitors: RefCell<Monitors>,
    queue: RefCell<SendQueue>,
    notify: Notify,
    over: Ending,
}

/// The state of a controller, shared by its connections.
#[derive(Debug)]
pub(crate) struct ControllerState {
    /// Its role.
    pub(crate) role: Cell<ControllerRole>,
    /// The number by which `controller` actions name it, or 0 as all others
    /// (`NXT_SET_CONTROLLER_ID`).
    pub(crate) number: Cell<u16>,
    /// The asynchronous messages that it gets.
    pub(crate) asynchronous: Cell<AsyncConfig>,
    /// The auxiliary connections that are up.
    auxiliaries: RefCell<Vec<Rc<Peer>>>,
}

impl ControllerState {
    fn new(version: Version) -> Self {
        Self {
            role: Cell::new(ControllerRole::Equal),
            number: Cell::new(0),
            asynchronous: Cell::new(asynchronous::default_in(version)),
            auxiliaries: RefCell::default(),
        }
    }
}

/// The messages that wait for the task of a connection.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    /// Packet-ins, each the message itself.
    pub(crate) packets: Vec<Rc<Message>>,
    /// Other asynchronous messages.
    pub(crate) messages: Vec<Rc<Message>>,
    /// Replies and errors.
    pub(crate) replies: VecDeque<Reply>,
}

/// The outcome of a request on its connection.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A reply message.
    Message(RequestContext, Message),
    /// A request was refused.
    Refused(RequestContext, Error),
    /// A multipart reply with a dump of flow entries.
    Flows(RequestContext, FlowDump),
    /// A multipart reply with the entries that flow monitors find.
    Monitored(RequestContext, InitialEntries),
    /// No message: a long command is done, and later requests may go on.
    Done(RequestContext),
}

impl Reply {
    /// The request that it answers.
    pub(crate) fn request(&self) -> &RequestContext {
        match self {
            Self::Message(request, _)
            | Self::Refused(request, _)
            | Self::Flows(request, _)
            | Self::Monitored(request, _)
            | Self::Done(request) => request,
        }
    }
}

/// A connection as it is shown to people.
#[derive(Clone, Debug)]
pub(crate) struct PeerInfo {
    /// Its endpoint.
    pub(crate) name: String,
    /// The version agreed on.
    pub(crate) version: Version,
    /// Its role.
    pub(crate) role: ControllerRole,
}

impl Peer {
    /// The main connection of a controller.
    pub(crate) fn main(
        id: ConnectionId,
        name: String,
        version: Version,
        is_configured: bool,
    ) -> Self {
        Self {
            id,
            name,
            version,
            auxiliary_id: 0,
            is_configured,
            is_tool: false,
            controller: Rc::new(ControllerState::new(version)),
            monitors: RefCell::default(),
            queue: RefCell::default(),
            notify: Notify::new(),
            over: Ending::default(),
        }
    }

    /// A connection of the control socket.
    pub(crate) fn tool(id: ConnectionId, name: String, version: Version) -> Self {
        Self { is_tool: true, ..Self::main(id, name, version, false) }
    }

    /// An auxiliary connection beside `main`.
    pub(crate) fn auxiliary(id: ConnectionId, name: String, auxiliary_id: u8, main: &Self) -> Self {
        let controller = Rc::clone(&main.controller);
        Self {
            auxiliary_id,
            controller,
            is_configured: false,
            ..Self::main(id, name, main.version, false)
        }
    }

    /// Whether it is a main connection.
    pub(crate) fn is_main(&self) -> bool {
        self.auxiliary_id == 0
    }

    /// Its controller's role.
    pub(crate) fn role(&self) -> ControllerRole {
        self.controller.role.get()
    }

    /// The connection for packet-ins of this flow: one of the auxiliary ones, if any is up.
    pub(crate) fn connection_for(self: &Rc<Self>, flow: u32) -> Rc<Self> {
        let auxiliaries = self.controller.auxiliaries.borrow();
        let count = u32::try_from(auxiliaries.len()).unwrap_or(u32::MAX);
        let chosen = flow.checked_rem(count).and_then(|index| auxiliaries.get(index as usize));
        Rc::clone(chosen.unwrap_or(self))
    }

    /// This auxiliary connection is up.
    pub(crate) fn join_main(self: &Rc<Self>) {
        self.controller.auxiliaries.borrow_mut().push(Rc::clone(self));
    }

    /// The connection is over; the auxiliary ones of a main connection end with it.
    pub(crate) fn end(&self) {
        self.over.begin();
        self.controller.auxiliaries.borrow_mut().retain(|peer| peer.id != self.id);
    }

    /// Done when the connection is over.
    pub(crate) async fn over(&self) {
        self.over.come().await;
    }

    /// Its description for people.
    pub(crate) fn info(&self) -> PeerInfo {
        PeerInfo { name: self.name.clone(), version: self.version, role: self.role() }
    }

    /// Whether it gets a packet-in, which is for the controllers of a number. A packet that missed
    /// where there is no table-miss entry, so that no entry's cookie is known, goes up by the rule
    /// of 1.0, and to controllers of 1.0 only.
    pub(crate) fn wants_packet_in(
        &self,
        reason: PacketInReason,
        cookie: Cookie,
        controller_id: u16,
    ) -> bool {
        let by_rule_of_1_0 = reason == PacketInReason::NoMatch && cookie == Cookie(u64::MAX);
        let by_rule = !self.version.has_table_miss_entry() || !by_rule_of_1_0;
        let is_meant = self.controller.number.get() == controller_id;
        is_meant
            && by_rule
            && self.wants(AsyncEvent::PacketIn, reason.nearest_in(self.version).number())
    }

    /// Whether it gets messages of this kind and reason.
    pub(crate) fn wants(&self, event: AsyncEvent, reason: u8) -> bool {
        asynchronous::wants(&self.controller.asynchronous.get(), self.role(), event, reason)
    }

    /// Queues a packet-in; false when there is no room. [`Peer::wake`] wakes the task.
    pub(crate) fn queue_packet_in(&self, packet: Rc<Message>) -> bool {
        let mut queue = self.queue.borrow_mut();
        let room = queue.packets.len() < PACKETS_MAX;
        if room {
            queue.packets.push(packet);
        }
        room
    }

    /// Queues an asynchronous message that is never dropped, and wakes the task.
    pub(crate) fn send_async(&self, message: Rc<Message>) {
        self.queue.borrow_mut().messages.push(message);
        self.notify.notify_one();
    }

    /// Queues a reply and wakes the task.
    pub(crate) fn send_reply(&self, reply: Reply) {
        self.queue.borrow_mut().replies.push_back(reply);
        self.notify.notify_one();
    }

    /// Sends the role that its controller has now, unless it does not want that or has no message
    /// for it. Auxiliary connections have the role of their main one.
    pub(super) fn report_role(&self, reason: RoleReason, generation_id: u64) {
        let wants = self.is_main() && self.wants(AsyncEvent::RoleStatus, reason.number());
        if wants && MessageKind::RoleStatus.is_in(self.version) {
            let role = Role { role: self.role(), generation_id };
            self.send_async(Rc::new(Message::RoleStatus(RoleStatus { role, reason })));
        }
    }

    /// Wakes the task if packet-ins are queued.
    pub(crate) fn wake(&self) {
        if !self.queue.borrow().packets.is_empty() {
            self.notify.notify_one();
        }
    }

    /// Has the task read its settings again.
    pub(super) fn refresh(&self) {
        self.notify.notify_one();
    }

    /// Waits until something is queued.
    pub(crate) async fn queued(&self) {
        self.notify.notified().await;
    }

    /// Takes the queue.
    pub(crate) fn take_queue(&self) -> SendQueue {
        self.queue.take()
    }
}
