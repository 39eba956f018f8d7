//! The client for programs on tokio, with the same calls as [`crate::Client`].
//!
//! A call may be dropped at any time; what it had sent stays sent, and its answer, should it come,
//! is a message of [`AsyncClient::next_message`].

use std::path::PathBuf;
use std::time::Instant;

use channel::{Endpoint, Link, Stream, driver};
use openflow::message::{
    ErrorMessage, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::{Message, Version, Xid};
use tokio::time::timeout_at;

use crate::core::{Core, Operation};
use crate::error::ClientError;
use crate::operation::{Greet, Load, Next, Parts, Refusal, Request, Room};
use crate::settings::ClientSettings;

/// A connection to a switch as its controller. Dropping it ends the connection.
#[derive(Debug)]
pub struct AsyncClient {
    core: Core,
    link: Link,
    version: Version,
}

impl AsyncClient {
    /// Connects to a switch and agrees on a version.
    ///
    /// # Errors
    /// As [`crate::Client::connect`].
    pub async fn connect(
        endpoint: &Endpoint,
        settings: ClientSettings,
    ) -> Result<Self, ClientError> {
        let stream = Stream::connect(endpoint, settings.tls.as_ref()).await?;
        Self::over(stream, &endpoint.to_string(), settings).await
    }

    /// Connects to a bridge of our own switch over its control socket; to the only one where none
    /// is named.
    ///
    /// # Errors
    /// As [`crate::Client::over_control`].
    pub async fn over_control(
        socket: PathBuf,
        bridge: Option<String>,
        settings: ClientSettings,
    ) -> Result<Self, ClientError> {
        let name = socket.display().to_string();
        // A few bytes each way; the thread ends within seconds in any case.
        let asked =
            tokio::task::spawn_blocking(move || control::openflow(&socket, bridge.as_deref()));
        let stream = asked.await.map_err(|error| ClientError::Stream(error.into()))??;
        stream.set_nonblocking(true).map_err(ClientError::Stream)?;
        let stream = tokio::net::UnixStream::from_std(stream).map_err(ClientError::Stream)?;
        Self::over(Stream::Unix(stream), &name, settings).await
    }

    /// Greets the peer on an open stream; `name` is the peer's in errors.
    ///
    /// # Errors
    /// As [`crate::Client::connect`].
    pub async fn over(
        stream: Stream,
        name: &str,
        settings: ClientSettings,
    ) -> Result<Self, ClientError> {
        let link = Link::new(stream, settings.connection.clone());
        let core = Core::new(settings, name, driver::now());
        let mut client = Self { core, link, version: Version::OLDEST };
        client.version = client.drive(None, Greet).await?;
        Ok(client)
    }

    /// The version agreed on.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The peer, for people.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Messages that came while others were waited for and for which there was no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.core.dropped()
    }

    /// Queues a message under a fresh xid; it goes with the next call that waits.
    ///
    /// # Errors
    /// The version cannot say it, or the connection is over.
    pub fn send(&mut self, message: &Message) -> Result<Xid, ClientError> {
        self.core.send(self.link.connection(), message)
    }

    /// Queues bytes as they are: messages that are encoded already.
    ///
    /// # Errors
    /// The connection is over.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.core.send_bytes(self.link.connection(), bytes)
    }

    /// Waits until everything that was sent is in the stream, and keeps what has come.
    ///
    /// # Errors
    /// The peer does not read, or the connection is over.
    pub async fn flush(&mut self) -> Result<(), ClientError> {
        self.drive(Some(()), Room(0)).await
    }

    /// Sends a request and waits for its answer, as [`crate::Client::request`].
    ///
    /// # Errors
    /// The peer's error, or there is no answer.
    pub async fn request(&mut self, request: &Message) -> Result<Message, ClientError> {
        self.request_in_parts(std::slice::from_ref(request)).await.map(|(_, answer)| answer)
    }

    /// The same for a request of several parts, all under one xid (clause 7.3.5); the answer's xid
    /// too.
    ///
    /// # Errors
    /// As [`AsyncClient::request`].
    pub async fn request_in_parts(
        &mut self,
        parts: &[Message],
    ) -> Result<(Xid, Message), ClientError> {
        self.drive(Some(()), Request::new(parts)).await
    }

    /// Asks for a description or statistics, and waits for the whole of it.
    ///
    /// # Errors
    /// As [`AsyncClient::request`].
    pub async fn multipart(
        &mut self,
        body: MultipartRequestBody,
    ) -> Result<MultipartReplyBody, ClientError> {
        let request = Message::MultipartRequest(MultipartRequest { more: false, body });
        match self.request(&request).await? {
            Message::MultipartReply(MultipartReply { body, .. }) => Ok(body),
            other => Err(ClientError::Unexpected(other.kind().row().name)),
        }
    }

    /// Asks for a list and hands each part on as it comes, as [`crate::Client::each_part`].
    ///
    /// # Errors
    /// As [`AsyncClient::request`].
    pub async fn each_part<E>(
        &mut self,
        body: MultipartRequestBody,
        take: impl FnMut(Xid, MultipartReplyBody) -> Result<(), E>,
    ) -> Result<Result<(), E>, ClientError> {
        self.drive(Some(()), Parts::new(body, take)).await
    }

    /// Waits until everything that was sent before is done.
    ///
    /// # Errors
    /// As [`AsyncClient::request`].
    pub async fn barrier(&mut self) -> Result<(), ClientError> {
        self.request(&Message::BarrierRequest).await.map(drop)
    }

    /// Has the switch carry out messages in their order, as [`crate::Client::load`].
    ///
    /// # Errors
    /// The connection ends, or there is no answer to the barrier.
    pub async fn load(
        &mut self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<(u64, Vec<Refusal>), ClientError> {
        self.drive(Some(()), Load::new(messages.into_iter())).await
    }

    /// The next message that nobody has waited for, however long that takes.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn next_message(&mut self) -> Result<(Xid, Message), ClientError> {
        self.drive(None, Next).await
    }

    /// The oldest error message that answers a message of [`AsyncClient::send`].
    pub fn take_error(&mut self) -> Option<(Xid, ErrorMessage)> {
        self.core.kept_error()
    }

    /// Sends what waits, for at most a second, and ends the connection.
    pub async fn close(mut self) {
        self.link.connection().close();
        self.link.finish().await;
    }

    /// Until the operation is done; with `answer`, within the settings' time for one.
    async fn drive<O: Operation>(
        &mut self,
        answer: Option<()>,
        mut operation: O,
    ) -> Result<O::Output, ClientError> {
        self.core.begin(Instant::now());
        loop {
            if let Some(output) = operation.step(&mut self.core, self.link.connection())? {
                return Ok(output);
            }
            self.core.check_up()?;
            let Some(()) = answer else {
                self.link.turn().await;
                continue;
            };
            let deadline = self.core.deadline();
            let turn = timeout_at(deadline.into(), self.link.turn()).await;
            if turn.is_err() || Instant::now() >= deadline {
                return Err(self.core.silent(self.core.settings.answer_deadline));
            }
        }
    }
}
