//! One connection's task: bytes in, commands to the worker; mail out.
//!
//! All messages of one read go to the worker as one batch of commands, and all mail that waits
//! goes out with one write. What the peer sends never ends more than its own connection.
//!
//! A multipart reply may be as long as the flow tables. A connection has one of them at a time:
//! what comes behind the request waits until the reply is sent, and nothing more is read meanwhile,
//! so that a peer which asks a thousand times does not make a thousand copies. Echo requests that
//! come while nothing else waits are answered between the parts.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use channel::{DownReason, Endpoint, Event, Guest, Link, SendError, Stream};
use openflow::{Message, Version, Xid};
use wire::ReplyFrames;

use super::controllers::begin_auxiliaries;
use super::parts::{Sent, send_next};
use super::peer::Letter;
use super::request::{Handling, handle};
use super::spanning::Spanning;
use super::{Agent, Peer};
use crate::counters::Counter;
use crate::worker::{Command, Quote, Request};

/// With more commands on their way to the worker nothing is read any more from controllers.
const PENDING_MAX: usize = 8_192;

/// How long until it is looked again whether the worker has caught up.
const PENDING_LOOK: Duration = Duration::from_millis(1);

/// Which part a connection has.
#[derive(Clone)]
pub(super) enum Part {
    /// The main connection to a controller that we connect to.
    Main(Rc<Endpoint>),
    /// An auxiliary connection of this number beside a main one.
    Auxiliary(u8, Rc<Peer>),
    /// A controller has come by itself.
    Guest(Rc<Guest>),
}

/// A connection in service.
struct Service {
    agent: Rc<Agent>,
    link: Link,
    name: String,
    part: Part,
    /// Set while the connection is up.
    peer: Option<Membership>,
    /// Commands for the worker, sent at the end of the events.
    commands: Vec<Command>,
    /// The worker does not keep up.
    is_congested: bool,
    /// The reply to a multipart request is awaited or being sent.
    is_awaiting: bool,
    /// Requests behind it.
    behind: VecDeque<(Request, Message)>,
    /// Requests of which parts have come.
    spanning: Spanning,
    letters: VecDeque<Letter>,
    parts: Option<ReplyFrames>,
}

/// Serves a connection until it is over; why it ended, and whether it was ever up.
pub(super) async fn serve(
    agent: Rc<Agent>,
    stream: Stream,
    name: &str,
    part: Part,
) -> (DownReason, bool) {
    let settings = match &part {
        Part::Main(_) | Part::Guest(_) => agent.settings(),
        Part::Auxiliary(_, main) => agent.settings().with_versions(&[main.version]),
    };
    let link = Link::new(stream, settings);
    let mut service = Service {
        agent,
        link,
        name: name.to_owned(),
        part,
        peer: None,
        commands: Vec::new(),
        is_congested: false,
        is_awaiting: false,
        behind: VecDeque::new(),
        spanning: Spanning::default(),
        letters: VecDeque::new(),
        parts: None,
    };
    let reason = service.run().await;
    let was_up = service.peer.is_some();
    if !was_up {
        service.agent.counters.bump(Counter::ChannelFailed);
    }
    service.leave();
    service.link.finish().await;
    (reason, was_up)
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

impl Part {
    fn auxiliary_id(&self) -> u8 {
        match self {
            Self::Main(_) | Self::Guest(_) => 0,
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
                },
                None => self.link.turn().await,
            }
            if let Some(reason) = self.take_events() {
                return reason;
            }
            self.send_mail();
            self.is_congested = self.agent.inbox.pending() > PENDING_MAX;
            let hold = self.is_congested || !self.behind.is_empty();
            self.link.connection().hold_input(hold);
        }
    }

    /// Takes what has come; the reason when the connection is over.
    fn take_events(&mut self) -> Option<DownReason> {
        let mut over = None;
        while let Some(event) = self.link.connection().poll_event() {
            match event {
                Event::Up { version } => {
                    tracing::info!(controller = self.name, %version, "connected");
                    self.join(version);
                }
                Event::Message { xid, message } => self.take_message(xid, message),
                Event::Refused { xid, error } => {
                    self.agent.counters.bump(Counter::ErrorSent);
                    let (xid, error) = (xid.0, error.name());
                    tracing::debug!(controller = self.name, xid, error, "bad message");
                }
                Event::Down(reason) => over = Some(reason),
            }
        }
        self.agent.inbox.send(&mut self.commands);
        over
    }

    /// The hello exchange is done.
    fn join(&mut self, version: Version) {
        let agent = Rc::clone(&self.agent);
        let peer = match &self.part {
            Part::Main(endpoint) => {
                let peer = agent.join(&self.name, version, true);
                begin_auxiliaries(&agent, endpoint, &peer);
                peer
            }
            Part::Auxiliary(id, main) => agent.join_auxiliary(&self.name, *id, main),
            Part::Guest(guest) => {
                guest.up();
                agent.join(&self.name, version, false)
            }
        };
        self.peer = Some(Membership { agent, peer });
    }

    /// The agent forgets the connection.
    fn leave(&mut self) {
        self.peer = None;
    }

    fn take_message(&mut self, xid: Xid, message: Message) {
        let Some(Membership { peer, .. }) = &self.peer else { return };
        let connection = self.link.connection();
        let handling = match self.spanning.take(xid, message) {
            Ok(Some(message)) => handle(&self.agent, peer, message),
            Ok(None) => Handling::Nothing,
            Err(error) => Handling::Refused(error),
        };
        let sent = match handling {
            Handling::Worker(message) => {
                let quote = Quote::new(connection.quote());
                let is_awaited = matches!(message, Message::MultipartRequest(_));
                let (from, version) = (peer.id, peer.version);
                let request = Request { from, version, xid, is_awaited, quote };
                self.hand_over(request, message);
                return;
            }
            Handling::Reply(message) => connection.send_as(xid, &message),
            Handling::Refused(error) => {
                self.agent.counters.bump(Counter::ErrorSent);
                connection.refuse(xid, error)
            }
            Handling::Nothing => Ok(()),
        };
        self.count_unsent(sent);
    }

    /// Hands a request to the worker, or keeps it behind one whose reply is awaited.
    fn hand_over(&mut self, request: Request, message: Message) {
        if self.is_awaiting {
            self.behind.push_back((request, message));
            return;
        }
        self.is_awaiting = request.is_awaited;
        self.commands.push(Command::Message(request, message));
    }

    /// The awaited reply has been sent: the requests behind it go on.
    fn go_on(&mut self) {
        self.is_awaiting = false;
        while !self.is_awaiting {
            let Some((request, message)) = self.behind.pop_front() else { break };
            self.hand_over(request, message);
        }
        self.agent.inbox.send(&mut self.commands);
    }

    /// Sends mail; the parts of a long reply as long as the output has room. Everything else goes
    /// to the output at once, which the connection bounds.
    fn send_mail(&mut self) {
        let Some(Membership { peer, .. }) = &self.peer else { return };
        let mail = peer.take_mail();
        self.letters.extend(mail.letters);
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
        loop {
            if let Some(parts) = &mut self.parts {
                if self.link.connection().is_full() {
                    break;
                }
                let mut unsayable = 0;
                let sent = send_next(parts, self.link.connection(), &mut unsayable);
                self.agent.counters.add(Counter::Unsayable, unsayable);
                if let Ok(Sent::More) = sent {
                    continue;
                }
                self.parts = None;
                self.count_unsent(sent.map(|_| ()));
                self.go_on();
                continue;
            }
            let Some(letter) = self.letters.pop_front() else { break };
            self.send_letter(letter);
        }
    }

    fn send_letter(&mut self, letter: Letter) {
        let connection = self.link.connection();
        let sent = match letter {
            Letter::Reply(request, Message::MultipartReply(reply)) => {
                let version = connection.version().ok_or(SendError::NotUp);
                version.map(|version| {
                    self.parts = Some(ReplyFrames::new(version, request.xid, reply.body));
                })
            }
            Letter::Reply(request, Message::FeaturesReply(mut features)) => {
                features.auxiliary_id = self.part.auxiliary_id();
                connection.send_as(request.xid, &Message::FeaturesReply(features))
            }
            Letter::Reply(request, message) => connection.send_as(request.xid, &message),
            Letter::Refused(request, error) => {
                self.agent.counters.bump(Counter::ErrorSent);
                let sent = connection.send_error(request.xid, error, request.quote.bytes());
                if request.is_awaited {
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
                tracing::debug!(controller = self.name, %error, "a message was not sent");
            }
        }
    }
}
