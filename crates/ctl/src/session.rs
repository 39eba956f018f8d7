//! A connection to a switch, as its controller: [`client::AsyncClient`] with failures in the words
//! of `weir ctl`.

use client::{AsyncClient, ClientError, ClientSettings, LoadOutcome, RefusalReason};
use openflow::message::{ErrorMessage, MultipartReplyBody, MultipartRequestBody};
use openflow::{Error, Message, Version, Xid};

use super::failure::Failure;

/// The first transaction number, which is that of `ovs-ofctl`.
const FIRST_XID: u32 = 2;

/// A connection that is up.
pub(super) struct Session {
    client: AsyncClient,
    pub(super) version: Version,
    /// The switch, for people.
    pub(super) name: String,
}

/// The refusals of many messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusals {
    /// Messages, with those that were refused.
    pub(super) messages: u64,
    /// Refusals, with those that are not listed.
    pub(super) refused: u64,
    /// The first refusals, in the order of their messages.
    pub(super) listed: Vec<Refusal>,
}

/// A message that the switch refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Number of the message, from 0.
    pub(super) index: usize,
    /// The error that the switch answers, where OpenFlow has it.
    pub(super) error: Option<Error>,
    /// Why, for people.
    pub(super) why: String,
}

/// The settings of every connection of `weir ctl`.
pub(super) fn settings(versions: &[Version]) -> ClientSettings {
    let mut settings = ClientSettings::of(versions);
    settings.first_xid = FIRST_XID;
    settings
}

impl Session {
    /// The session of a client.
    pub(super) fn of(client: AsyncClient) -> Self {
        let (version, name) = (client.version(), client.name().to_owned());
        Self { client, version, name }
    }

    /// The next message, without a deadline: for what the switch sends by itself.
    pub(super) async fn next(&mut self) -> Result<(Xid, Message), Failure> {
        Ok(self.client.next_message().await?)
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
        Ok(self.client.request_in_parts(parts).await?)
    }

    /// Asks for a description or statistics, and waits for the whole answer.
    pub(super) async fn statistics(
        &mut self,
        body: MultipartRequestBody,
    ) -> Result<MultipartReplyBody, Failure> {
        Ok(self.client.multipart(body).await?)
    }

    /// Asks for a list, and hands each part on as it comes; the first with its xid.
    pub(super) async fn each_part(
        &mut self,
        body: MultipartRequestBody,
        take: impl FnMut(Xid, MultipartReplyBody) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.client.each_part(body, take).await?
    }

    /// Has the switch carry out messages in their order, and waits until it is done. What it
    /// refuses does not keep the others from being carried out.
    pub(super) async fn carry_out(
        &mut self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Refusals, Failure> {
        Ok(refusals_of(self.client.load(messages).await?))
    }

    /// Has the switch carry out messages together, or none of them.
    pub(super) async fn bundle(&mut self, messages: Vec<Message>) -> Result<Refusals, Failure> {
        Ok(refusals_of(self.client.bundle(messages).await?))
    }

    /// Has the switch carry out messages; the first that it refuses is the failure.
    pub(super) async fn change(&mut self, messages: Vec<Message>) -> Result<(), Failure> {
        match self.carry_out(messages).await?.listed.into_iter().next() {
            Some(Refusal { why, .. }) => Err(Failure::Refused(why)),
            None => Ok(()),
        }
    }

    /// Closes the connection.
    pub(super) async fn end(self) {
        self.client.close().await;
    }
}

/// The refusals of a load, in words.
fn refusals_of(outcome: LoadOutcome) -> Refusals {
    let LoadOutcome { messages, refused, refusals } = outcome;
    let listed = refusals.into_iter().map(|refused| {
        let (error, why) = match refused.why {
            RefusalReason::Error(version, error) => {
                (error.error(version), refusal(version, &error))
            }
            RefusalReason::NotEncodable(why) => (None, why),
        };
        Refusal { index: usize::try_from(refused.index).unwrap_or(usize::MAX), error, why }
    });
    Refusals { messages, refused, listed: listed.collect() }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused { version, error } => Self::Refused(refusal(version, &error)),
            ClientError::Control(error) => error.into(),
            ClientError::Connect(_)
            | ClientError::Stream(_)
            | ClientError::Down { .. }
            | ClientError::Silent { .. } => Self::Unreached(error.to_string()),
            ClientError::Cancelled
            | ClientError::Encode(_)
            | ClientError::Unreadable(_)
            | ClientError::Unanswered(_)
            | ClientError::Unexpected(_)
            | ClientError::NoAnswer(_) => Self::Refused(error.to_string()),
        }
    }
}

/// An error message, for people.
pub(super) fn refusal(version: Version, error: &ErrorMessage) -> String {
    format!("the switch refuses it: {}", error.explained(version))
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
    use client::AsyncClient;
    use openflow::message::MultipartRequestBody;
    use openflow::{Message, Version};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    use super::{Session, settings};
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

    /// Failures of asking in each way.
    fn failures(answer: &'static [u8], silence_max: Duration) -> Vec<Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let switch = tokio::spawn(answering(theirs, answer));
            let settings = settings(&[Version::V1_3]).with_answer_deadline(silence_max);
            let client = AsyncClient::over(Stream::Unix(ours), "switch", settings).await;
            let mut session = Session::of(client.unwrap());
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
        let why = Failure::Unreached("no answer from switch after 0.01 s".into());
        assert_eq!(silent, vec![why; 3]);
    }
}
