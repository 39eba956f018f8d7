//! A connection to a switch, as its controller: requests with their answers, changes with a barrier
//! behind them.
//!
//! The connection itself asks whether the switch lives; an answer that a living switch does not
//! give is waited for as long as the control socket is. Nothing that the switch sends makes it
//! grow without bound.

use std::collections::BTreeMap;
use std::time::Duration;

use channel::Unanswered;
use channel::{
    ConnectionSettings, DownReason, Event, Link, Paired, Pending, SendError, Side, Stream,
};
use openflow::message::{ErrorMessage, MultipartReplyBody, MultipartRequest, MultipartRequestBody};
use openflow::{Error, Message, Version, Xid};
use tokio::time::{Instant, timeout_at};

use super::failure::Failure;
use super::socket::SILENCE_MAX;

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
    /// How long an answer, or its next part, may take.
    silence_max: Duration,
}

/// What has come: a message, or one that could not be read.
type Came = Result<Message, Error>;

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
        let mut settings = ConnectionSettings::new(Side::Controller).with_versions(versions);
        settings.hello_deadline = HELLO_DEADLINE;
        let mut link = Link::new(stream, settings);
        loop {
            link.turn().await;
            while let Some(event) = link.connection().poll_event() {
                match event {
                    Event::Up { version } => {
                        let (name, silence_max) = (name.to_owned(), SILENCE_MAX);
                        return Ok(Self { link, version, name, next_xid: 2, silence_max });
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

    /// The next message, without a deadline: for what the switch tells by itself.
    pub(super) async fn next(&mut self) -> Result<(Xid, Message), Failure> {
        loop {
            if let (xid, Ok(message)) = self.come().await? {
                return Ok((xid, message));
            }
        }
    }

    /// What comes next.
    async fn come(&mut self) -> Result<(Xid, Came), Failure> {
        loop {
            match self.link.connection().poll_event() {
                Some(Event::Message { xid, message }) => return Ok((xid, Ok(message))),
                Some(Event::Down(reason)) => return Err(ended(&self.name, &reason)),
                Some(Event::Refused { xid, error }) => {
                    let (name, told) = (&self.name, error.name());
                    tracing::warn!(switch = name, xid = xid.0, error = told, "not read");
                    return Ok((xid, Err(error)));
                }
                Some(Event::Up { .. }) => {}
                None => self.link.turn().await,
            }
        }
    }

    /// What comes next of the answers that are waited for, within the time of silence. What else
    /// comes meanwhile gives the answers no further time.
    async fn answer(
        &mut self,
        is_awaited: impl Fn(Xid) -> bool,
    ) -> Result<(Xid, Message), Failure> {
        let until = Instant::now() + self.silence_max;
        while Instant::now() < until {
            match timeout_at(until, self.come()).await {
                Ok(came) => match came? {
                    (xid, Ok(message)) if is_awaited(xid) => return Ok((xid, message)),
                    (xid, Err(error)) if is_awaited(xid) => {
                        return Err(Failure::Refused(unread(error)));
                    }
                    _ => {}
                },
                Err(_) => break,
            }
        }
        Err(self.silent())
    }

    fn silent(&self) -> Failure {
        let seconds = self.silence_max.as_secs();
        Failure::Unreached(format!("{}: no answer within {seconds} seconds", self.name))
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
            let (got, message) = self.answer(|got| got == xid).await?;
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
            match self.answer(|got| got == xid).await? {
                (_, Message::MultipartReply(part)) => {
                    take(xid, part.body)?;
                    if !part.more {
                        return Ok(());
                    }
                }
                (_, Message::Error(error)) => {
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
            let until = Instant::now() + self.silence_max;
            while self.link.connection().is_full() {
                timeout_at(until, self.link.turn()).await.map_err(|_| self.silent())?;
                self.take_refusals(&sent, &mut refused)?;
            }
        }
        let barrier = self.send(&Message::BarrierRequest)?;
        loop {
            let is_awaited = |xid: Xid| xid == barrier || sent.contains_key(&xid.0);
            let (xid, message) = self.answer(is_awaited).await?;
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
                Event::Refused { xid, error } if sent.contains_key(&xid.0) => {
                    return Err(Failure::Refused(unread(error)));
                }
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

/// An answer that cannot be read, for people.
fn unread(error: Error) -> String {
    format!("the switch gave an answer that cannot be read: {}", error.name())
}

fn ended(name: &str, reason: &DownReason) -> Failure {
    Failure::Unreached(format!("{name}: {reason}"))
}

/// The switch has answered something else.
pub(super) fn odd(message: &Message) -> Failure {
    let name = message.kind().row().name;
    Failure::refused(format!("the switch gave another answer than asked: {name}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use channel::Stream;
    use openflow::message::MultipartRequestBody;
    use openflow::{Message, Version};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    use super::Session;
    use crate::failure::Failure;

    /// A switch that greets, and sends this for every further message, with its xid.
    async fn answering(mut stream: UnixStream, answer: &[u8]) -> std::io::Result<()> {
        stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).await?;
        loop {
            let mut header = [0; 8];
            stream.read_exact(&mut header).await?;
            let rest = u16::from_be_bytes([header[2], header[3]]).saturating_sub(8);
            stream.read_exact(&mut vec![0; rest.into()]).await?;
            if header[1] != 0 && !answer.is_empty() {
                stream.write_all(&answer[..4]).await?;
                stream.write_all(&header[4..]).await?;
                stream.write_all(&answer[8..]).await?;
            }
        }
    }

    /// What asking in each way ends with.
    fn failures(answer: &'static [u8], silence_max: Duration) -> Vec<Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let switch = tokio::spawn(answering(theirs, answer));
            let greeted = Session::greet(Stream::Unix(ours), "switch", &[Version::V1_3]).await;
            let mut session = greeted.map_err(|failure| format!("{failure:?}")).unwrap();
            session.silence_max = silence_max;
            let failures = vec![
                session.ask(&Message::FeaturesRequest).await.unwrap_err(),
                session.each_part(MultipartRequestBody::PortDesc, |_, _| Ok(())).await.unwrap_err(),
                session.change(vec![]).await.unwrap_err(),
            ];
            session.end().await;
            switch.abort();
            failures
        })
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_a_failure() {
        // A message of type 200, which there is not.
        let failures = failures(&[4, 200, 0, 8, 0, 0, 0, 0], Duration::from_secs(60));
        let why = "the switch gave an answer that cannot be read: OFPBRC_BAD_TYPE";
        assert_eq!(failures, vec![Failure::refused(why); 3]);
    }

    #[test]
    fn silence_is_a_failure_whatever_else_comes() {
        let silent = failures(&[], Duration::from_millis(10));
        let told = Failure::Unreached("switch: no answer within 0 seconds".into());
        assert_eq!(silent, vec![told; 3]);
    }
}
