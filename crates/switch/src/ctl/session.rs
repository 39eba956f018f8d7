//! A connection to a switch, as its controller: requests with their answers, changes with a barrier
//! behind them.
//!
//! It waits as long as the switch lives: the connection itself asks whether it does. Nothing that
//! the switch sends makes it grow without bound.

use std::collections::BTreeMap;
use std::time::Duration;

use channel::Unanswered;
use channel::{DownReason, Event, Link, Paired, Pending, Role, SendError, Settings, Stream};
use openflow::message::{ErrorMessage, MultipartReplyBody, MultipartRequest, MultipartRequestBody};
use openflow::{Error, Message, Version, Xid};

use super::failure::Failure;

/// Entries that an answer may have.
const ENTRIES_MAX: usize = 4_000_000;

/// Refusals that are kept of one change; the first is told.
const REFUSALS_MAX: usize = 1_000;

/// How long the hello may take.
const HELLO_DEADLINE: Duration = Duration::from_secs(10);

/// A connection that is up.
pub(super) struct Session {
    link: Link,
    pub(super) version: Version,
    /// The switch, for people.
    pub(super) name: String,
    next_xid: u32,
}

/// What the switch refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Which of the messages, from 0.
    pub(super) index: usize,
    /// Why, for people.
    pub(super) why: String,
}

impl Session {
    /// Greets a switch on an open stream.
    pub(super) async fn greet(
        stream: Stream,
        name: &str,
        versions: &[Version],
    ) -> Result<Self, Failure> {
        let mut settings = Settings::new(Role::Controller).with_versions(versions);
        settings.hello_deadline = HELLO_DEADLINE;
        let mut link = Link::new(stream, settings);
        loop {
            link.turn().await;
            while let Some(event) = link.connection().poll_event() {
                match event {
                    Event::Up { version } => {
                        return Ok(Self { link, version, name: name.to_owned(), next_xid: 2 });
                    }
                    Event::Down(reason) => return Err(ended(name, &reason)),
                    Event::Message { .. } | Event::Refused { .. } => {}
                }
            }
        }
    }

    fn fresh_xid(&mut self) -> Xid {
        let xid = self.next_xid;
        // The upper half is the connection's own.
        self.next_xid = if xid == 0x7fff_ffff { 1 } else { xid + 1 };
        Xid(xid)
    }

    /// Sends a message.
    pub(super) fn send(&mut self, message: &Message) -> Result<Xid, Failure> {
        let xid = self.fresh_xid();
        self.send_as(xid, message)?;
        Ok(xid)
    }

    fn send_as(&mut self, xid: Xid, message: &Message) -> Result<(), Failure> {
        self.link.connection().send_as(xid, message).map_err(|error| match error {
            SendError::NotUp => self.gone(),
            SendError::Encode(error) => Failure::refused(error.to_string()),
        })
    }

    fn gone(&self) -> Failure {
        Failure::Unreached(format!("{}: the connection has ended", self.name))
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Result<(Xid, Message), Failure> {
        loop {
            match self.link.connection().poll_event() {
                Some(Event::Message { xid, message }) => return Ok((xid, message)),
                Some(Event::Down(reason)) => return Err(ended(&self.name, &reason)),
                Some(Event::Refused { xid, error }) => {
                    let (name, error) = (&self.name, error.name());
                    tracing::warn!(switch = name, xid = xid.0, error, "a message was not read");
                }
                Some(Event::Up { .. }) => {}
                None => self.link.turn().await,
            }
        }
    }

    /// Asks, and waits for the whole answer.
    pub(super) async fn ask(&mut self, request: &Message) -> Result<(Xid, Message), Failure> {
        self.ask_in_parts(std::slice::from_ref(request)).await
    }

    /// Asks by a request of several parts, all under one xid (clause 7.3.5), and waits for the
    /// whole answer.
    pub(super) async fn ask_in_parts(
        &mut self,
        parts: &[Message],
    ) -> Result<(Xid, Message), Failure> {
        let mut pending = Pending::new(1, ENTRIES_MAX);
        let xid = self.fresh_xid();
        for part in parts {
            self.send_as(xid, part)?;
        }
        if let Some(request) = parts.last() {
            let expected = pending.expect(xid, request, ());
            expected.map_err(|error| Failure::refused(format!("asking: {error}")))?;
        }
        loop {
            let (got, message) = self.next().await?;
            match pending.pair(got, message) {
                Paired::Done { answer: Ok(reply), .. } => return Ok((xid, reply)),
                Paired::Done { answer: Err(Unanswered::Error(error)), .. } => {
                    return Err(Failure::Refused(refusal(self.version, &error)));
                }
                Paired::Done { answer: Err(other), .. } => {
                    return Err(Failure::Refused(other.to_string()));
                }
                Paired::Part | Paired::Other(_) => {}
            }
        }
    }

    /// Asks for a description or statistics, and waits for the whole answer.
    pub(super) async fn statistics(
        &mut self,
        body: MultipartRequestBody,
    ) -> Result<MultipartReplyBody, Failure> {
        let request = Message::MultipartRequest(MultipartRequest { more: false, body });
        match self.ask(&request).await? {
            (_, Message::MultipartReply(reply)) => Ok(reply.body),
            (_, other) => Err(odd(&other)),
        }
    }

    /// Asks for a list, and hands each part on as it comes; the first with its xid.
    pub(super) async fn each_part(
        &mut self,
        body: MultipartRequestBody,
        mut take: impl FnMut(Xid, MultipartReplyBody) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let xid = self.send(&Message::MultipartRequest(MultipartRequest { more: false, body }))?;
        loop {
            match self.next().await? {
                (got, Message::MultipartReply(part)) if got == xid => {
                    take(xid, part.body)?;
                    if !part.more {
                        return Ok(());
                    }
                }
                (got, Message::Error(error)) if got == xid => {
                    return Err(Failure::Refused(refusal(self.version, &error)));
                }
                _ => {}
            }
        }
    }

    /// Has the switch carry out messages in their order, and waits until it is done. What it
    /// refuses does not keep the others from being carried out.
    pub(super) async fn carry_out(
        &mut self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<Refusal>, Failure> {
        let mut sent = BTreeMap::new();
        let mut refused = Vec::new();
        for (index, message) in messages.into_iter().enumerate() {
            match self.send(&message) {
                Ok(xid) => {
                    sent.insert(xid.0, index);
                }
                Err(Failure::Refused(why)) if refused.len() < REFUSALS_MAX => {
                    refused.push(Refusal { index, why });
                }
                Err(other) => return Err(other),
            }
            while self.link.connection().is_full() {
                self.link.turn().await;
                self.take_refusals(&sent, &mut refused)?;
            }
        }
        let barrier = self.send(&Message::BarrierRequest)?;
        loop {
            let (xid, message) = self.next().await?;
            match message {
                Message::BarrierReply if xid == barrier => break,
                message => note_refusal(self.version, xid, &message, &sent, &mut refused),
            }
        }
        refused.sort_by_key(|refusal| refusal.index);
        Ok(refused)
    }

    /// Takes what has come while messages are still being sent.
    fn take_refusals(
        &mut self,
        sent: &BTreeMap<u32, usize>,
        refused: &mut Vec<Refusal>,
    ) -> Result<(), Failure> {
        while let Some(event) = self.link.connection().poll_event() {
            match event {
                Event::Message { xid, message } => {
                    note_refusal(self.version, xid, &message, sent, refused);
                }
                Event::Down(reason) => return Err(ended(&self.name, &reason)),
                Event::Refused { .. } | Event::Up { .. } => {}
            }
        }
        Ok(())
    }

    /// Has the switch carry out messages; the first that it refuses is the failure.
    pub(super) async fn change(&mut self, messages: Vec<Message>) -> Result<(), Failure> {
        match self.carry_out(messages).await?.into_iter().next() {
            Some(Refusal { why, .. }) => Err(Failure::Refused(why)),
            None => Ok(()),
        }
    }

    /// Closes the connection.
    pub(super) async fn end(mut self) {
        self.link.connection().close();
        self.link.finish().await;
    }
}

fn note_refusal(
    version: Version,
    xid: Xid,
    message: &Message,
    sent: &BTreeMap<u32, usize>,
    refused: &mut Vec<Refusal>,
) {
    if let (Message::Error(error), Some(index)) = (message, sent.get(&xid.0))
        && refused.len() < REFUSALS_MAX
    {
        refused.push(Refusal { index: *index, why: refusal(version, error) });
    }
}

/// An error message, for people.
pub(super) fn refusal(version: Version, error: &ErrorMessage) -> String {
    match error.error(version) {
        Some(known @ Error::BadRequestBadType) => format!(
            "the switch refuses it: {} (it does not know the request; a switch of ours that was \
             started with --forward has no flow tables)",
            known.name()
        ),
        Some(known) => format!("the switch refuses it: {}", known.name()),
        None => {
            let ErrorMessage { error_type, code, .. } = error;
            format!("the switch refuses it: error of type {error_type}, code {code}")
        }
    }
}

fn ended(name: &str, reason: &DownReason) -> Failure {
    Failure::Unreached(format!("{name}: {reason}"))
}

/// The switch has answered something else.
pub(super) fn odd(message: &Message) -> Failure {
    let name = message.kind().row().name;
    Failure::refused(format!("the switch gave another answer than asked: {name}"))
}
