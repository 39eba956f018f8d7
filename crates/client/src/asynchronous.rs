//! The client for programs on tokio, with the same calls as [`crate::Client`].
//!
//! A call may be dropped at any time; what it had sent stays sent, and its answer, should it come,
//! is a message of [`AsyncClient::next_message`].

use std::path::PathBuf;
use std::time::Instant;

use channel::{Endpoint, Link, Stream, driver};
use openflow::bundle::BundleControlType;
use openflow::message::{
    ErrorMessage, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::{Message, Version, Xid};
use tokio::time::timeout_at;

use crate::core::{Core, Operation};
use crate::error::ClientError;
use crate::operation::{
    BUNDLE, Greet, Load, LoadOutcome, Next, Parts, Request, Room, bundle_control,
};
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

    /// Queues a message under a fresh xid, and waits for room when the queue is full
    /// ([`channel::ConnectionSettings::output_limit_bytes`]): a peer that reads slowly holds its
    /// sender back. What is queued goes with the next call that waits, [`AsyncClient::flush`] if
    /// there is no other. A message whose call is dropped while it waits is queued all the same.
    ///
    /// # Errors
    /// The version has no encoding for it, the connection is over, or there is no room within the
    /// settings' time for an answer.
    pub async fn send(&mut self, message: &Message) -> Result<Xid, ClientError> {
        let xid = self.core.send(self.link.connection(), message)?;
        self.make_room().await?;
        Ok(xid)
    }

    /// Queues bytes as they are, messages that are encoded already, and waits for room as
    /// [`AsyncClient::send`] does. At most [`channel::ConnectionSettings::output_max_bytes`] at
    /// once, less what a full queue holds.
    ///
    /// # Errors
    /// As [`AsyncClient::send`].
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.core.send_bytes(self.link.connection(), bytes)?;
        self.make_room().await
    }

    /// Waits until half of a full queue is in the stream, and keeps what has come.
    async fn make_room(&mut self) -> Result<(), ClientError> {
        if self.link.connection().is_full() {
            let most = self.core.settings.connection.output_limit_bytes / 2;
            self.drive(Some(()), Room(most)).await?;
        }
        Ok(())
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
        let answer = self.request(&request).await?;
        let Message::MultipartReply(MultipartReply { body, .. }) = answer else {
            return Err(ClientError::Unexpected(answer.kind().row().name));
        };
        Ok(body)
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
    ) -> Result<LoadOutcome, ClientError> {
        self.drive(Some(()), Load::new(messages.into_iter())).await
    }

    /// Has the switch carry out messages together, as [`crate::Client::bundle`].
    ///
    /// # Errors
    /// The connection ends, or the switch refuses the bundle as a whole.
    pub async fn bundle(
        &mut self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<LoadOutcome, ClientError> {
        self.request(&bundle_control(BUNDLE, BundleControlType::OpenRequest)).await?;
        let load = Load::new(messages.into_iter()).in_bundle(BUNDLE);
        self.drive(Some(()), load).await
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

    /// Sends what waits and ends the connection, as [`crate::Client::close`].
    pub async fn close(mut self) {
        self.link.connection().close();
        self.link.finish_both_ways(self.core.settings.close_deadline).await;
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
