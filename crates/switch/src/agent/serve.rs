//! One connection's task: bytes in, commands to the bridge; mail out.
//!
//! What all messages of one read change goes to the workers as one batch, and all mail that waits
//! goes out with one write. What the peer sends never ends more than its own connection. Answers
//! leave in the order of their requests, though some come later than others.
//!
//! A multipart reply may be as long as the flow tables, and a delete may mean all entries. A
//! connection has one of them at a time: what comes behind the request waits until the reply is
//! sent or the entries are gone, and when much waits nothing more is read meanwhile, so that a peer
//! which asks a thousand times does not make a thousand copies. Echo requests are answered between
//! the parts.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use channel::driver::now;
use channel::{AcceptedConnection, DownReason, Endpoint, Event, Link, SendError, Stream};
use datapath::fast::Sweep;
use openflow::message::{MultipartReply, MultipartRequest, Sender};
use openflow::{Error, Message, MessageKind, Version, Xid};
use tokio::net::UnixStream;

use super::answers::Answers;
use super::connection_log::{LogLine, Pass};
use super::controllers::begin_auxiliaries;
use super::parts::{Parts, Sent};
use super::peer::Letter;
use super::request::{Handling, handle};
use super::spanning::Spanning;
use super::{Agent, Peer};
use crate::bridge::{Answer, Listed};
use crate::counters::Counter;
use crate::worker::{ConnectionId, Quote, Request, Turn};

/// With more commands on their way to a worker nothing is read any more from controllers.
const PENDING_MAX: usize = 8_192;

/// With more requests behind one that takes long nothing is read: echo requests would wait with it.
const BEHIND_MAX: usize = 16;

/// How long until it is looked again whether the workers have caught up.
const PENDING_LOOK: Duration = Duration::from_millis(1);

/// Messages in one read, and frames of a long reply, after which others have their turn.
const TURN_MAX: usize = 256;
const FRAMES_MAX: usize = 8;

/// What a connection is.
#[derive(Clone)]
pub(super) enum ConnectionKind {
    /// The main connection to a controller that we connect to.
    Main(Rc<Endpoint>),
    /// An auxiliary connection of this number beside a main one.
    Auxiliary(u8, Rc<Peer>),
    /// A controller has connected to a listener.
    Accepted(Rc<AcceptedConnection>),
    /// A tool on this machine, by the control socket; no controller.
    ControlSocket,
}

/// A connection in service.
struct Service {
    agent: Rc<Agent>,
    link: Link,
    name: String,
    kind: ConnectionKind,
    /// Set while the connection is up.
    peer: Option<Membership>,
    up_since: Option<Instant>,
    was_used: bool,
    /// The workers do not keep up.
    is_congested: bool,
    /// The peer sends much: others have their turn before more is read.
    is_greedy: bool,
    /// There is more to send at once; others have their turn first.
    is_unfinished: bool,
    /// The reply to a multipart request is awaited or being sent, or a command of many entries is
    /// under way.
    awaited: Option<Turn>,
    /// Requests behind it.
    behind: VecDeque<(Request, Message)>,
    /// Requests of which parts have come.
    spanning: Spanning,
    answers: Answers,
    parts: Option<Parts>,
}

/// How a connection went.
pub(super) struct Served {
    /// Why it ended.
    pub(super) reason: DownReason,
    /// When its hello exchange was done, if ever.
    pub(super) up_since: Option<Instant>,
    /// Whether the controller used the switch: flow-mod, packet-out, statistics, barrier, role.
    pub(super) was_used: bool,
}

/// Messages that set a connection up; every other request of a controller uses the switch.
const SETUP: [MessageKind; 5] = [
    MessageKind::FeaturesRequest,
    MessageKind::GetConfigRequest,
    MessageKind::SetConfig,
    MessageKind::GetAsyncRequest,
    MessageKind::SetAsync,
];

/// Serves a connection until it is over.
pub(super) async fn serve(
    agent: Rc<Agent>,
    stream: Stream,
    name: &str,
    kind: ConnectionKind,
) -> Served {
    let settings = match &kind {
        ConnectionKind::Main(_) | ConnectionKind::Accepted(_) => agent.settings(),
        ConnectionKind::Auxiliary(_, main) => agent.settings().with_versions(&[main.version]),
        // Whatever controllers are offered.
        ConnectionKind::ControlSocket => agent.settings().with_versions(Version::ALL),
    };
    let link = Link::new(stream, settings);
    let mut service = Service {
        agent,
        link,
        name: name.to_owned(),
        kind,
        peer: None,
        up_since: None,
        was_used: false,
        is_congested: false,
        is_greedy: false,
        is_unfinished: false,
        awaited: None,
        behind: VecDeque::new(),
        spanning: Spanning::default(),
        answers: Answers::default(),
        parts: None,
    };
    let reason = service.run().await;
    if service.up_since.is_none() {
        service.agent.counters.bump(Counter::ChannelFailed);
    }
    let (up_since, was_used) = (service.up_since, service.was_used);
    service.leave();
    service.link.finish().await;
    Served { reason, up_since, was_used }
}

/// Serves OpenFlow on a connection of the control socket until it is over.
pub(crate) async fn serve_tool(agent: Rc<Agent>, stream: UnixStream) {
    let stream = Stream::Unix(stream);
    let reason = serve(agent, stream, "control socket", ConnectionKind::ControlSocket).await.reason;
    tracing::debug!(%reason, "a connection of the control socket ended");
}

/// However a connection ends, also by its task being dropped, the agent forgets it.
struct Membership {
    agent: Rc<Agent>,
    peer: Rc<Peer>,
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.agent.leave(&self.peer);
    }
}

impl ConnectionKind {
    fn auxiliary_id(&self) -> u8 {
        match self {
            Self::Main(_) | Self::Accepted(_) | Self::ControlSocket => 0,
            Self::Auxiliary(id, _) => *id,
        }
    }
}

impl Service {
    async fn run(&mut self) -> DownReason {
        loop {
            match &self.peer {
                Some(Membership { peer, .. }) => tokio::select! {
                    () = self.link.turn() => {}
                    () = peer.mailed() => {}
                    () = tokio::time::sleep(PENDING_LOOK), if self.is_congested => {}
                    () = tokio::task::yield_now(), if self.is_unfinished => {}
                },
                None => self.link.turn().await,
            }
            if let Some(reason) = self.take_events() {
                return reason;
            }
            self.is_unfinished = self.send_mail();
            if self.is_greedy {
                tokio::task::yield_now().await;
            }
            self.is_congested = self.agent.bridge.pending() > PENDING_MAX;
            let hold = self.is_congested || self.behind.len() > BEHIND_MAX;
            self.link.connection().hold_input(hold);
        }
    }

    /// Takes what has come; the reason when the connection is over.
    fn take_events(&mut self) -> Option<DownReason> {
        let mut over = None;
        let mut count = 0;
        while let Some(event) = self.link.connection().poll_event() {
            match event {
                Event::Up { version } => self.up(version),
                Event::Message { xid, message } => {
                    self.take_message(xid, message);
                    count += 1;
                }
                Event::Refused { xid, error } => {
                    self.agent.counters.bump(Counter::ErrorSent);
                    let (xid, error) = (xid.0, error.name());
                    let bridge = self.agent.told();
                    tracing::debug!(bridge, controller = self.name, xid, error, "bad message");
                }
                Event::Down(reason) => over = Some(reason),
            }
        }
        self.agent.flush();
        if let ConnectionKind::Accepted(accepted) = &self.kind {
            accepted.report(self.link.connection(), self.was_used);
        }
        self.is_greedy = count > TURN_MAX;
        over
    }

    /// The hello exchange is done: joins the agent, unless the listener is full.
    fn up(&mut self, version: Version) {
        let accepted = match &self.kind {
            ConnectionKind::Accepted(accepted) => accepted.mark_up(),
            ConnectionKind::Main(_)
            | ConnectionKind::Auxiliary(..)
            | ConnectionKind::ControlSocket => Ok(()),
        };
        let Err(reason) = accepted else { return self.join(version) };
        self.agent.counters.bump(Counter::ChannelTurnedAway);
        if let Some(Pass { suppressed }) = self.agent.log.pass(LogLine::TurnedAway) {
            let bridge = self.agent.told();
            tracing::warn!(bridge, peer = self.name, %reason, suppressed, "turned away");
        }
        self.link.connection().close();
    }

    fn join(&mut self, version: Version) {
        let agent = Rc::clone(&self.agent);
        match &self.kind {
            ConnectionKind::Main(_)
            | ConnectionKind::Auxiliary(..)
            | ConnectionKind::Accepted(_) => {
                if let Some(Pass { suppressed }) = agent.log.pass(LogLine::Connected) {
                    let (bridge, controller) = (agent.told(), &self.name);
                    tracing::info!(bridge, controller, %version, suppressed, "connected");
                }
            }
            ConnectionKind::ControlSocket => {}
        }
        let peer = match &self.kind {
            ConnectionKind::Main(endpoint) => {
                let peer = agent.join(&self.name, version, true);
                begin_auxiliaries(&agent, endpoint, &peer);
                peer
            }
            ConnectionKind::Auxiliary(id, main) => agent.join_auxiliary(&self.name, *id, main),
            ConnectionKind::Accepted(_) => agent.join(&self.name, version, false),
            ConnectionKind::ControlSocket => agent.join_tool(&self.name, version),
        };
        self.peer = Some(Membership { agent, peer });
        self.up_since = Some(now());
    }

    /// The agent forgets the connection.
    fn leave(&mut self) {
        self.peer = None;
    }

    fn take_message(&mut self, xid: Xid, message: Message) {
        let Some(Membership { peer, .. }) = &self.peer else { return };
        let kind = message.kind();
        self.was_used |= kind.row().sender == Sender::Controller && !SETUP.contains(&kind);
        let handling = match self.spanning.take(xid, message) {
            Ok(Some(message)) => handle(&self.agent, peer, message),
            Ok(None) => Handling::Nothing,
            Err(error) => Handling::Refused(error),
        };
        match handling {
            Handling::Bridge(message) if self.awaited.is_some() => {
                let request = self.request(xid);
                self.behind.push_back((request, message));
            }
            Handling::Bridge(message) => self.carry_out(xid, None, message),
            Handling::Reply(message) => self.answer(xid, None, Ok(message)),
            Handling::Refused(error) => self.answer(xid, None, Err(error)),
            Handling::Nothing => {}
        }
    }

    /// The request that the connection has just given, for an answer that comes later.
    fn request(&mut self, xid: Xid) -> Request {
        let quote = Quote::new(self.link.connection().quote());
        let (from, version) = match &self.peer {
            Some(Membership { peer, .. }) => (peer.id, peer.version),
            None => (ConnectionId(0), Version::V1_3),
        };
        Request { from, version, xid, turn: self.answers.next(), quote }
    }

    /// Carries out a message. `held` is its request when it is not the last one any more that the
    /// connection has given.
    fn carry_out(&mut self, xid: Xid, held: Option<Request>, message: Message) {
        let Some(Membership { peer, .. }) = &self.peer else { return };
        let (from, version) = (peer.id, peer.version);
        let is_answered_later =
            matches!(message, Message::BarrierRequest | Message::MultipartRequest(_));
        let turn = match is_answered_later {
            true => self.answers.reserve(),
            false => self.answers.next(),
        };
        let connection = self.link.connection();
        let request = || {
            let quote = || Quote::new(connection.quote());
            let quote = held.as_ref().map_or_else(quote, |held| held.quote);
            Request { from, version, xid, turn, quote }
        };
        if let Message::MultipartRequest(asked) = message {
            let request = request();
            self.awaited = Some(turn);
            tokio::task::spawn_local(post_statistics(Rc::clone(&self.agent), request, asked));
            return;
        }
        match self.agent.bridge.apply(version, message, request) {
            Ok(Answer::Reply(message)) => self.answer(xid, held, Ok(message)),
            Ok(Answer::News(status)) => self.agent.tell_port(status),
            Ok(Answer::Nothing | Answer::Later) => {}
            Ok(Answer::Sweep(sweep)) => {
                let turn = self.answers.reserve();
                self.awaited = Some(turn);
                let quote = Quote::new(self.link.connection().quote());
                let quote = held.as_ref().map_or(quote, |held| held.quote);
                let request = Request { from, version, xid, turn, quote };
                tokio::task::spawn_local(post_sweep(Rc::clone(&self.agent), request, sweep));
            }
            Err(error) => self.answer(xid, held, Err(error)),
        }
    }

    /// Answers a message: at once, unless answers before this one are still to come.
    fn answer(&mut self, xid: Xid, held: Option<Request>, answer: Result<Message, Error>) {
        if !self.answers.is_empty() || self.parts.is_some() || held.is_some() {
            let request = held.unwrap_or_else(|| self.request(xid));
            self.answers.push(match answer {
                Ok(message) => Letter::Reply(request, message),
                Err(error) => Letter::Refused(request, error),
            });
            return;
        }
        let sent = match answer {
            Ok(message) => {
                let message = self.of_this_connection(message);
                self.link.connection().send_as(xid, &message)
            }
            Err(error) => {
                self.agent.counters.bump(Counter::ErrorSent);
                self.link.connection().refuse(xid, error)
            }
        };
        self.count_unsent(sent);
    }

    /// The list that was awaited has been sent: the requests behind it go on.
    fn go_on(&mut self) {
        self.awaited = None;
        while self.awaited.is_none() {
            let Some((request, message)) = self.behind.pop_front() else { break };
            self.carry_out(request.xid, Some(request), message);
        }
        self.agent.flush();
    }

    /// Sends mail; the parts of a long reply as long as the output has room. Everything else goes
    /// to the output at once, which the connection bounds. Whether there is more to send at once.
    fn send_mail(&mut self) -> bool {
        let Some(Membership { peer, .. }) = &self.peer else { return false };
        let mail = peer.take_mail();
        for letter in mail.letters {
            self.answers.fill(letter);
        }
        // They need no place in the order of the answers, which may wait for a long one.
        for message in &mail.news {
            let sent = self.link.connection().send_as(Xid(0), message);
            self.count_unsent(sent);
        }
        for packet in &mail.packets {
            match self.link.connection().offer(Xid(0), packet) {
                Ok(true) => self.agent.counters.bump(Counter::PacketIn),
                Ok(false) => self.agent.counters.bump(Counter::PacketInControllerBusy),
                Err(error) => self.count_unsent(Err(error)),
            }
        }
        self.send_answers()
    }

    /// Sends the answers that are there; whether there is more to send at once.
    fn send_answers(&mut self) -> bool {
        let mut frames = 0;
        loop {
            if let Some(parts) = &mut self.parts {
                if self.link.connection().is_full() {
                    return false;
                }
                if frames == FRAMES_MAX {
                    return true;
                }
                frames += 1;
                let mut unsayable = 0;
                let (connection, bridge) = (self.link.connection(), &self.agent.bridge);
                let sent = parts.send_next(connection, bridge, &mut unsayable);
                self.agent.counters.add(Counter::Unsayable, unsayable);
                if let Ok(Sent::More) = sent {
                    continue;
                }
                self.parts = None;
                self.count_unsent(sent.map(|_| ()));
                self.go_on();
                continue;
            }
            let Some(letter) = self.answers.pop() else { return false };
            self.send_letter(letter);
        }
    }

    /// Says in a features reply which connection it goes by.
    fn of_this_connection(&self, message: Message) -> Message {
        match message {
            Message::FeaturesReply(mut features) => {
                features.auxiliary_id = self.kind.auxiliary_id();
                Message::FeaturesReply(features)
            }
            other => other,
        }
    }

    fn send_letter(&mut self, letter: Letter) {
        let sent = match letter {
            Letter::Reply(request, Message::MultipartReply(reply)) => {
                self.parts = Some(Parts::whole(request.version, request.xid, reply.body));
                Ok(())
            }
            Letter::Flows(request, list) => {
                let bridge = &self.agent.bridge;
                self.parts = Some(Parts::of_flows(request.version, request.xid, list, bridge));
                Ok(())
            }
            Letter::Done(_) => {
                self.go_on();
                Ok(())
            }
            Letter::Reply(request, message) => {
                let message = self.of_this_connection(message);
                self.link.connection().send_as(request.xid, &message)
            }
            Letter::Refused(request, error) => {
                self.agent.counters.bump(Counter::ErrorSent);
                let connection = self.link.connection();
                let sent = connection.send_error(request.xid, error, request.quote.bytes());
                if self.awaited == Some(request.turn) {
                    self.go_on();
                }
                sent
            }
        };
        self.count_unsent(sent);
    }

    /// A message that the version cannot say is counted; one for a connection that is over is not
    /// missed by anybody.
    fn count_unsent(&self, sent: Result<(), SendError>) {
        match sent {
            Ok(()) | Err(SendError::NotUp) => {}
            Err(SendError::Encode(error)) => {
                self.agent.counters.bump(Counter::Unsayable);
                let bridge = self.agent.told();
                tracing::debug!(bridge, controller = self.name, %error, "a message was not sent");
            }
        }
    }
}

/// Carries out a command of many entries in pieces, between which others have their turn. When it
/// is dropped, the entries stay that it has not come to.
pub(super) async fn sweep_all(agent: &Agent, mut sweep: Box<Sweep>) -> Result<(), Error> {
    let done = loop {
        if let Some(done) = agent.bridge.sweep(&mut sweep) {
            break done;
        }
        agent.flush();
        tokio::task::yield_now().await;
        while agent.bridge.pending() > PENDING_MAX {
            tokio::time::sleep(PENDING_LOOK).await;
        }
    };
    agent.flush();
    done
}

/// Carries out a command of many entries, and posts that it is done.
async fn post_sweep(agent: Rc<Agent>, request: Request, sweep: Box<Sweep>) {
    let done = sweep_all(&agent, sweep).await;
    let Some(peer) = agent.peer(request.from) else { return };
    peer.post(match done {
        Ok(()) => Letter::Done(request),
        Err(error) => Letter::Refused(request, error),
    });
}

/// Has the bridge answer a multipart request, and posts the answer.
async fn post_statistics(agent: Rc<Agent>, request: Request, asked: MultipartRequest) {
    let answer = agent.bridge.statistics(request.version, asked).await;
    let Some(peer) = agent.peer(request.from) else { return };
    peer.post(match answer {
        Ok(Listed::Whole(body)) => {
            let reply = MultipartReply { more: false, body };
            Letter::Reply(request, Message::MultipartReply(reply))
        }
        Ok(Listed::Flows(list)) => Letter::Flows(request, list),
        Err(error) => Letter::Refused(request, error),
    });
}
