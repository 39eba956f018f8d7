//! The common part of the blocking and the async client: xids, deadlines, messages that nobody
//! waits for. Without input and output.
//!
//! An [`Operation`] is one thing that is asked of a connection. Its driver calls
//! [`Operation::step`] until that has a result, and lets the connection send and receive in
//! between; all that an operation knows is the connection's events. So both drivers are a loop of
//! three lines, and what a request, a list or a load is stands once, in `operation`.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use channel::{Connection, DownReason, Event};
use openflow::message::ErrorMessage;
use openflow::{Message, Version, Xid};

use crate::error::ClientError;
use crate::settings::ClientSettings;

/// One thing that is asked of a connection.
pub(crate) trait Operation {
    /// The result.
    type Output;

    /// Sends what there is room for and takes what has come. `None` when there is nothing left to
    /// take and the result is not there.
    fn step(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
    ) -> Result<Option<Self::Output>, ClientError>;
}

/// The state of a client beside its connection.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) settings: ClientSettings,
    /// The peer, for people.
    pub(crate) name: String,
    next_xid: u32,
    unclaimed: VecDeque<(Xid, Message)>,
    dropped: u64,
    /// The last sign that the operation goes on.
    since: Instant,
    /// Why the connection is over.
    down: Option<DownReason>,
}

/// The next thing that came over a connection.
pub(crate) enum Came {
    /// A message, or one that could not be read.
    Message(Xid, Result<Message, openflow::Error>),
    /// Nothing more for now.
    Nothing,
}

impl Core {
    pub(crate) fn new(settings: ClientSettings, name: &str, now: Instant) -> Self {
        let next_xid = settings.first_xid;
        Self {
            settings,
            name: name.to_owned(),
            next_xid,
            unclaimed: VecDeque::new(),
            dropped: 0,
            since: now,
            down: None,
        }
    }

    /// A fresh xid. The upper half is the connection's own.
    pub(crate) fn fresh_xid(&mut self) -> Xid {
        let xid = self.next_xid;
        self.next_xid = if xid >= 0x7fff_ffff { 1 } else { xid + 1 };
        Xid(xid)
    }

    /// Begins the time for an answer anew.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.since = now;
    }

    /// When an answer has taken too long.
    pub(crate) fn deadline(&self) -> Instant {
        self.since + self.settings.answer_deadline
    }

    /// The error of an answer that has taken too long.
    pub(crate) fn silent(&self, after: Duration) -> ClientError {
        ClientError::Silent { name: self.name.clone(), after }
    }

    /// Queues a message under a fresh xid.
    pub(crate) fn send(
        &mut self,
        connection: &mut Connection,
        message: &Message,
    ) -> Result<Xid, ClientError> {
        let xid = self.fresh_xid();
        self.send_as(connection, xid, message)?;
        Ok(xid)
    }

    pub(crate) fn send_as(
        &mut self,
        connection: &mut Connection,
        xid: Xid,
        message: &Message,
    ) -> Result<(), ClientError> {
        let sent = connection.send_as(xid, message);
        sent.map_err(|error| ClientError::unsent(&self.name, error))
    }

    pub(crate) fn send_bytes(
        &mut self,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<(), ClientError> {
        let sent = connection.send_frame(bytes);
        sent.map_err(|error| ClientError::unsent(&self.name, error))
    }

    /// The version of the connection; the lowest once it is over, when nothing is sent any more.
    pub(crate) fn version(connection: &Connection) -> Version {
        connection.version().unwrap_or(Version::OLDEST)
    }

    /// The next message that came.
    pub(crate) fn come(&mut self, connection: &mut Connection) -> Result<Came, ClientError> {
        loop {
            let Some(event) = connection.poll_event() else { return Ok(Came::Nothing) };
            if let Some((xid, came)) = self.take_event(event)? {
                return Ok(Came::Message(xid, came));
            }
        }
    }

    /// The message that an event brings, if it brings one.
    pub(crate) fn take_event(&mut self, event: Event) -> Result<Option<Arrived>, ClientError> {
        match event {
            Event::Message { xid, message } => Ok(Some((xid, Ok(message)))),
            Event::Refused { xid, error } => {
                let (switch, name) = (&self.name, error.name());
                tracing::warn!(switch, xid = xid.0, error = name, "not read");
                Ok(Some((xid, Err(error))))
            }
            Event::Down(reason) => {
                self.down = Some(reason);
                self.check_up()?;
                Ok(None)
            }
            Event::Up { .. } => Ok(None),
        }
    }

    /// Fails when the connection is closed, also when that was reported before.
    pub(crate) fn check_up(&self) -> Result<(), ClientError> {
        match &self.down {
            None => Ok(()),
            Some(DownReason::NoHello) => Err(self.silent(self.settings.connection.hello_deadline)),
            Some(reason) => {
                Err(ClientError::Down { name: self.name.clone(), reason: reason.clone() })
            }
        }
    }

    /// Keeps a message that the operation does not wait for.
    pub(crate) fn keep(&mut self, xid: Xid, message: Message) {
        if self.unclaimed.len() >= self.settings.unclaimed_max {
            self.unclaimed.pop_front();
            self.dropped += 1;
        }
        self.unclaimed.push_back((xid, message));
    }

    /// The oldest message that was kept.
    pub(crate) fn kept(&mut self) -> Option<(Xid, Message)> {
        self.unclaimed.pop_front()
    }

    /// Messages that came while others were waited for and for which there was no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The oldest error message that was kept; the others stay.
    pub(crate) fn kept_error(&mut self) -> Option<(Xid, ErrorMessage)> {
        let is_error = |(_, message): &(Xid, Message)| matches!(message, Message::Error(_));
        let at = self.unclaimed.iter().position(is_error)?;
        match self.unclaimed.remove(at) {
            Some((xid, Message::Error(error))) => Some((xid, error)),
            Some(_) | None => None,
        }
    }
}

/// A message with its xid, or the error that reading it was.
pub(crate) type Arrived = (Xid, Result<Message, openflow::Error>);
