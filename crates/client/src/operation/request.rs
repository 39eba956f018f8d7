//! Hello, and requests with their answers (clauses 6.2, 6.3.1 and 7.3.5).

use std::time::Instant;

use channel::{Connection, Event, Paired, Pending, Unanswered};
use openflow::message::{MultipartReplyBody, MultipartRequest, MultipartRequestBody};
use openflow::{Message, Version, Xid};
use wire::MultipartReplyFrame;

use crate::core::{Came, Core, Operation};
use crate::error::ClientError;

/// Waits for the peer's hello.
#[derive(Debug)]
pub(crate) struct Greet;

impl Operation for Greet {
    type Output = Version;

    fn step(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
    ) -> Result<Option<Version>, ClientError> {
        while let Some(event) = connection.poll_event() {
            if let Event::Up { version } = event {
                return Ok(Some(version));
            }
            core.take_event(event)?;
        }
        Ok(None)
    }
}

/// A request, or several parts of one under one xid, with the whole answer.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    parts: &'a [Message],
    pending: Option<(Xid, Pending<()>)>,
}

impl<'a> Request<'a> {
    /// A request of these parts.
    pub(crate) fn new(parts: &'a [Message]) -> Self {
        Self { parts, pending: None }
    }

    fn send(
        &self,
        core: &mut Core,
        connection: &mut Connection,
    ) -> Result<(Xid, Pending<()>), ClientError> {
        let mut pending = Pending::new(1, core.settings.entries_max);
        let xid = core.fresh_xid();
        if let Some(request) = self.parts.last() {
            pending.expect(xid, request, ())?;
        }
        for part in self.parts {
            core.send_as(connection, xid, part)?;
        }
        Ok((xid, pending))
    }
}

impl Operation for Request<'_> {
    type Output = (Xid, Message);

    fn step(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
    ) -> Result<Option<(Xid, Message)>, ClientError> {
        let (xid, pending) = match &mut self.pending {
            Some(pending) => pending,
            None => {
                let sent = self.send(core, connection)?;
                self.pending.insert(sent)
            }
        };
        loop {
            let message = match core.come(connection)? {
                Came::Nothing => return Ok(None),
                Came::Message(came, Err(error)) if came == *xid => {
                    return Err(ClientError::Unreadable(error));
                }
                Came::Message(_, Err(_)) => continue,
                Came::Message(came, Ok(message)) if came != *xid => {
                    core.keep(came, message);
                    continue;
                }
                Came::Message(_, Ok(message)) => message,
            };
            core.begin(Instant::now());
            match pending.pair(*xid, message) {
                Paired::Done { answer: Ok(reply), .. } => return Ok(Some((*xid, reply))),
                Paired::Done { answer: Err(Unanswered::Error(error)), .. } => {
                    let version = Core::version(connection);
                    return Err(ClientError::Refused { version, error });
                }
                Paired::Done { answer: Err(other), .. } => {
                    return Err(ClientError::Unanswered(other));
                }
                Paired::Part => {}
                Paired::Other(message) => core.keep(*xid, message),
            }
        }
    }
}

fn multipart_request(body: MultipartRequestBody) -> Message {
    Message::MultipartRequest(MultipartRequest { more: false, body })
}

/// A list whose parts are handed on as they come.
pub(crate) struct Parts<F> {
    body: Option<MultipartRequestBody>,
    xid: Xid,
    take: F,
}

impl<F> Parts<F> {
    /// The list that `body` asks for.
    pub(crate) fn new(body: MultipartRequestBody, take: F) -> Self {
        Self { body: Some(body), xid: Xid(0), take }
    }
}

impl<F: FnMut(Xid, MultipartReplyBody) -> Result<(), E>, E> Operation for Parts<F> {
    type Output = Result<(), E>;

    fn step(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
    ) -> Result<Option<Result<(), E>>, ClientError> {
        if let Some(body) = self.body.take() {
            self.xid = core.send(connection, &multipart_request(body))?;
        }
        loop {
            let (came, message) = match core.come(connection)? {
                Came::Nothing => return Ok(None),
                Came::Message(came, message) => (came, message),
            };
            match message {
                Err(error) if came == self.xid => return Err(ClientError::Unreadable(error)),
                Err(_) => {}
                Ok(Message::MultipartReply(part)) if came == self.xid => {
                    core.begin(Instant::now());
                    let taken = (self.take)(came, part.body);
                    if taken.is_err() || !part.more {
                        return Ok(Some(taken));
                    }
                }
                Ok(Message::Error(error)) if came == self.xid => {
                    let version = Core::version(connection);
                    return Err(ClientError::Refused { version, error });
                }
                Ok(message) => core.keep(came, message),
            }
        }
    }
}

/// A list whose parts are handed on as bytes.
pub(crate) struct Frames<F> {
    body: Option<MultipartRequestBody>,
    xid: Xid,
    take: F,
}

impl<F> Frames<F> {
    /// The list that `body` asks for.
    pub(crate) fn new(body: MultipartRequestBody, take: F) -> Self {
        Self { body: Some(body), xid: Xid(0), take }
    }
}

impl<F: FnMut(MultipartReplyFrame<'_>, &[u8])> Operation for Frames<F> {
    type Output = ();

    fn step(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
    ) -> Result<Option<()>, ClientError> {
        if let Some(body) = self.body.take() {
            self.xid = core.send(connection, &multipart_request(body))?;
        }
        loop {
            let mut more = None;
            let event = connection.poll_event_or_take(|header, bytes| {
                if header.xid != self.xid {
                    return false;
                }
                let Some(part) = MultipartReplyFrame::parse(bytes) else { return false };
                more = Some(part.more());
                (self.take)(part, bytes);
                true
            });
            match (more, event) {
                (Some(false), _) => return Ok(Some(())),
                (Some(true), _) => core.begin(Instant::now()),
                (None, None) => return Ok(None),
                (None, Some(event)) => match core.take_event(event)? {
                    Some((came, Ok(Message::Error(error)))) if came == self.xid => {
                        let version = Core::version(connection);
                        return Err(ClientError::Refused { version, error });
                    }
                    Some((came, Err(error))) if came == self.xid => {
                        return Err(ClientError::Unreadable(error));
                    }
                    Some((came, Ok(message))) => core.keep(came, message),
                    Some((_, Err(_))) | None => {}
                },
            }
        }
    }
}
