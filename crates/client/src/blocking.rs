//! The client for programs with threads: each call returns when what it asks for is done.
//!
//! One thread, one socket, no runtime. What stands between the calls is in the kernel's buffers: a
//! client that is not called answers no echo request, so a switch that probes its controllers may
//! give up one that rests for long.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use channel::{BlockingStream, Connection, DownReason, Endpoint};
use openflow::bundle::BundleControlType;
use openflow::flow::FlowStatsRequest;
use openflow::message::{
    ErrorMessage, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::{Message, Version, Xid};
use wire::MultipartReplyFrame;

use crate::core::{Core, Operation};
use crate::error::ClientError;
use crate::operation::{
    BUNDLE, Drain, Frames, Greet, Load, LoadOutcome, Next, NextFrame, Parts, Request, Room,
    bundle_control,
};
use crate::settings::ClientSettings;

/// Time that a wait goes on before the settings' hook is asked.
const STEP: Duration = Duration::from_millis(20);

/// The longest wait without a deadline.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Bytes read at once.
const CHUNK_BYTES: usize = 1 << 16;

/// A list of flow entries that was counted and not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Entries.
    pub entries: u64,
    /// Bytes of the answer.
    pub bytes: u64,
}

/// A connection to a switch as its controller. Dropping it ends the connection.
#[derive(Debug)]
pub struct Client {
    core: Core,
    connection: Connection,
    stream: BlockingStream,
    chunk: Box<[u8]>,
    version: Version,
    /// Writing has failed; what the peer sent before is still read.
    write_failed: Option<String>,
}

/// The end of a wait of [`Client::turn`], beside bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// The deadline of an answer.
    Answer,
    /// A time of its own.
    Until(Instant),
    /// Nothing ends the wait but the settings' hook.
    Endless,
    /// Not at all.
    None,
}

impl Client {
    /// Connects to a switch and agrees on a version.
    ///
    /// # Errors
    /// Nobody listens, TLS fails, the peer says no hello in time, or no version is common.
    pub fn connect(endpoint: &Endpoint, settings: ClientSettings) -> Result<Self, ClientError> {
        let stream = BlockingStream::connect(endpoint, settings.tls.as_ref())?;
        Self::over(stream, &endpoint.to_string(), settings)
    }

    /// Connects to a bridge of our own switch over its control socket; to the only one where none
    /// is named.
    ///
    /// # Errors
    /// As [`Client::connect`], or the switch refuses.
    pub fn over_control(
        socket: &Path,
        bridge: Option<&str>,
        settings: ClientSettings,
    ) -> Result<Self, ClientError> {
        let stream = control::openflow(socket, bridge)?;
        Self::over_unix(stream, &socket.display().to_string(), settings)
    }

    /// Greets the peer on an open Unix stream.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn over_unix(
        stream: UnixStream,
        name: &str,
        settings: ClientSettings,
    ) -> Result<Self, ClientError> {
        let stream = BlockingStream::unix(stream).map_err(ClientError::Stream)?;
        Self::over(stream, name, settings)
    }

    /// Greets the peer on an open TCP stream.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn over_tcp(
        stream: TcpStream,
        name: &str,
        settings: ClientSettings,
    ) -> Result<Self, ClientError> {
        let stream = BlockingStream::tcp(stream).map_err(ClientError::Stream)?;
        Self::over(stream, name, settings)
    }

    /// Greets the peer on an open stream; `name` is the peer's in errors.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn over(
        stream: BlockingStream,
        name: &str,
        settings: ClientSettings,
    ) -> Result<Self, ClientError> {
        let now = Instant::now();
        let connection = Connection::new(settings.connection.clone(), now);
        let mut client = Self {
            core: Core::new(settings, name, now),
            connection,
            stream,
            chunk: vec![0; CHUNK_BYTES].into_boxed_slice(),
            version: Version::OLDEST,
            write_failed: None,
        };
        client.version = client.drive(Patience::Endless, Greet)?;
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

    /// The connection, for its counters.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Messages that came while others were waited for and for which there was no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.core.dropped()
    }

    /// Sends a message under a fresh xid and does not wait for anything but room. An error that
    /// answers it is a message of [`Client::next_message`] or [`Client::take_error`].
    ///
    /// # Errors
    /// The version has no encoding for it, or the connection is over.
    pub fn send(&mut self, message: &Message) -> Result<Xid, ClientError> {
        let xid = self.core.send(&mut self.connection, message)?;
        self.make_room()?;
        Ok(xid)
    }

    /// The same under a given xid, for example that of the request of which it is a further part.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn send_as(&mut self, xid: Xid, message: &Message) -> Result<(), ClientError> {
        self.core.send_as(&mut self.connection, xid, message)?;
        self.make_room()
    }

    /// Sends bytes as they are: messages that are encoded already, or, for a fuzzer, none at all.
    ///
    /// # Errors
    /// The connection is over.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.core.send_bytes(&mut self.connection, bytes)?;
        self.make_room()
    }

    /// An xid that no message of this client has had lately.
    pub fn fresh_xid(&mut self) -> Xid {
        self.core.fresh_xid()
    }

    /// Writes what the stream takes, and waits until little is left.
    fn make_room(&mut self) -> Result<(), ClientError> {
        self.write();
        if self.connection.is_full() {
            let most = self.core.settings.connection.output_limit_bytes / 2;
            self.drive(Patience::Answer, Room(most))?;
        }
        Ok(())
    }

    /// Waits until everything that was sent is in the stream, and keeps what has come.
    ///
    /// # Errors
    /// The peer does not read, or the connection is over.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        self.drive(Patience::Answer, Room(0))
    }

    /// Sends a request and waits for its answer, which has the same xid; of a multipart answer for
    /// all parts, joined to one. What else comes meanwhile is kept for [`Client::next_message`].
    ///
    /// # Errors
    /// The peer's error, or there is no answer.
    pub fn request(&mut self, request: &Message) -> Result<Message, ClientError> {
        self.request_in_parts(std::slice::from_ref(request)).map(|(_, answer)| answer)
    }

    /// The same for a request of several parts, all under one xid (clause 7.3.5); the answer's xid
    /// too.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub fn request_in_parts(&mut self, parts: &[Message]) -> Result<(Xid, Message), ClientError> {
        self.drive(Patience::Answer, Request::new(parts))
    }

    /// Asks for a description or statistics, and waits for the whole of it.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub fn multipart(
        &mut self,
        body: MultipartRequestBody,
    ) -> Result<MultipartReplyBody, ClientError> {
        let request = Message::MultipartRequest(MultipartRequest { more: false, body });
        let answer = self.request(&request)?;
        let Message::MultipartReply(MultipartReply { body, .. }) = answer else {
            return Err(ClientError::Unexpected(answer.kind().row().name));
        };
        Ok(body)
    }

    /// Asks for a list and hands each part on as it comes, for lists that need not be held whole.
    /// An error of `take` ends it; the outer result is the connection's.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub fn each_part<E>(
        &mut self,
        body: MultipartRequestBody,
        take: impl FnMut(Xid, MultipartReplyBody) -> Result<(), E>,
    ) -> Result<Result<(), E>, ClientError> {
        self.drive(Patience::Answer, Parts::new(body, take))
    }

    /// The same with each part as bytes, which are not decoded.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub fn each_frame(
        &mut self,
        body: MultipartRequestBody,
        take: impl FnMut(MultipartReplyFrame<'_>, &[u8]),
    ) -> Result<(), ClientError> {
        self.drive(Patience::Answer, Frames::new(body, take))
    }

    /// Counts flow entries without a value for each.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub fn count_flows(&mut self, request: FlowStatsRequest) -> Result<Counted, ClientError> {
        let mut counted = Counted::default();
        self.each_frame(MultipartRequestBody::Flow(request), |part, bytes| {
            counted.entries += part.count_sized_entries();
            counted.bytes += bytes.len() as u64;
        })?;
        Ok(counted)
    }

    /// Waits until everything that was sent before is done.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub fn barrier(&mut self) -> Result<(), ClientError> {
        self.request(&Message::BarrierRequest).map(drop)
    }

    /// Asks for an echo and waits for it.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub fn echo(&mut self, data: Vec<u8>) -> Result<(), ClientError> {
        self.request(&Message::EchoRequest(data)).map(drop)
    }

    /// Has the switch carry out messages in their order, with a barrier after them: how many
    /// there were, how many of them were refused, and the first thousand refusals. One that is
    /// refused does not keep the others from being carried out.
    ///
    /// # Errors
    /// The connection ends, or there is no answer to the barrier.
    pub fn load(
        &mut self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<LoadOutcome, ClientError> {
        self.load_all(&mut messages.into_iter())
    }

    /// Has the switch carry out messages in their order and at one moment, or none of them: how
    /// many there were, and those for which it did not. Where any was refused, nothing is done.
    ///
    /// # Errors
    /// The connection ends, or the switch refuses the bundle as a whole: it knows none, or the
    /// version of the connection has none.
    pub fn bundle(
        &mut self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<LoadOutcome, ClientError> {
        self.request(&bundle_control(BUNDLE, BundleControlType::OpenRequest))?;
        let messages: &mut dyn Iterator<Item = Message> = &mut messages.into_iter();
        self.drive(Patience::Answer, Load::new(messages).in_bundle(BUNDLE))
    }

    /// Compiled once, and not in each program with its iterator.
    fn load_all(
        &mut self,
        messages: &mut dyn Iterator<Item = Message>,
    ) -> Result<LoadOutcome, ClientError> {
        self.drive(Patience::Answer, Load::new(messages))
    }

    /// The next message that nobody has waited for, however long that takes.
    ///
    /// # Errors
    /// The connection is over, or the settings' hook says no.
    pub fn next_message(&mut self) -> Result<(Xid, Message), ClientError> {
        self.drive(Patience::Endless, Next)
    }

    /// The same within the settings' time for an answer.
    ///
    /// # Errors
    /// As [`Client::next_message`], or nothing has come.
    pub fn next_in_time(&mut self) -> Result<(Xid, Message), ClientError> {
        self.drive(Patience::Answer, Next)
    }

    /// The same within `limit`; `None` when nothing has come by then.
    ///
    /// # Errors
    /// As [`Client::next_message`].
    pub fn next_within(&mut self, limit: Duration) -> Result<Option<(Xid, Message)>, ClientError> {
        match self.drive(Patience::Until(Instant::now() + limit), Next) {
            Ok(next) => Ok(Some(next)),
            Err(ClientError::Silent { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// The next message as bytes, within the settings' time for an answer; `None` when the peer has
    /// ended the connection. Hellos and echo requests do not show up here either.
    ///
    /// # Errors
    /// The connection has ended otherwise, or nothing has come.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        match self.drive(Patience::Answer, NextFrame) {
            Ok(frame) => Ok(Some(frame)),
            Err(ClientError::Down { reason: DownReason::PeerClosed, .. }) => Ok(None),
            // The peer has ended it with bytes of ours unread, as it does after a fatal one.
            Err(ClientError::Down { reason: DownReason::Stream(_), .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Takes what has come without waiting: answers echo requests and keeps the rest.
    ///
    /// # Errors
    /// The connection is over, or the settings' hook says no.
    pub fn poll(&mut self) -> Result<(), ClientError> {
        self.turn(Patience::None)?;
        self.drive(Patience::None, Drain)
    }

    /// The oldest error message that answers a message of [`Client::send`].
    pub fn take_error(&mut self) -> Option<(Xid, ErrorMessage)> {
        self.core.kept_error()
    }

    /// Sends what waits, ends the connection and waits until the peer has ended it too, all within
    /// [`ClientSettings::close_deadline`]. What the peer sends meanwhile is dropped.
    pub fn close(mut self) {
        let end = Instant::now() + self.core.settings.close_deadline;
        self.connection.close();
        if self.write_failed.is_some() {
            return;
        }
        if let Err(error) = self.stream.finish(self.connection.transmit(), end) {
            tracing::debug!(%error, "stream was closed before its end");
        }
    }

    fn drive<O: Operation>(
        &mut self,
        patience: Patience,
        mut operation: O,
    ) -> Result<O::Output, ClientError> {
        self.core.begin(Instant::now());
        loop {
            if let Some(output) = operation.step(&mut self.core, &mut self.connection)? {
                self.write();
                return Ok(output);
            }
            self.core.check_up()?;
            // Messages that come one after the other must not keep this from being asked.
            if self.core.settings.goes_on() == Some(false) {
                return Err(ClientError::Cancelled);
            }
            self.check_deadline(patience, Instant::now())?;
            self.turn(patience)?;
        }
    }

    /// Writes what waits, then returns as soon as something came: events to poll, or room in an
    /// output that was full.
    fn turn(&mut self, patience: Patience) -> Result<(), ClientError> {
        loop {
            let was_full = self.connection.is_full();
            self.write();
            let came = self.connection.wants_input() && self.read();
            let has_room = was_full && !self.connection.is_full();
            if came || has_room || self.connection.is_over() || patience == Patience::None {
                return Ok(());
            }
            let now = Instant::now();
            self.check_deadline(patience, now)?;
            if self.core.settings.goes_on() == Some(false) {
                return Err(ClientError::Cancelled);
            }
            self.wait(patience, now)?;
            self.connection.handle_timeout(Instant::now());
        }
    }

    /// When a wait of that patience ends.
    fn deadline(&self, patience: Patience) -> Option<Instant> {
        match patience {
            Patience::Answer => Some(self.core.deadline()),
            Patience::Until(end) => Some(end),
            Patience::Endless | Patience::None => None,
        }
    }

    /// Fails after the deadline.
    fn check_deadline(&self, patience: Patience, now: Instant) -> Result<(), ClientError> {
        match self.deadline(patience) {
            Some(end) if now >= end => Err(self.core.silent(self.core.settings.answer_deadline)),
            Some(_) | None => Ok(()),
        }
    }

    /// Waits for the socket, a deadline, or the time to ask the hook.
    fn wait(&self, patience: Patience, now: Instant) -> Result<(), ClientError> {
        let answer = self.deadline(patience);
        let ask = self.core.settings.goes_on().map(|_| now + STEP);
        let next = answer.into_iter().chain(ask).chain(self.connection.next_timeout()).min();
        let timeout = next.map_or(WAIT_MAX, |next| next.saturating_duration_since(now));
        // A system call that rounds down would spin in the last millisecond.
        let timeout = timeout.max(Duration::from_micros(100));
        let wants_room = !self.connection.transmit().is_empty() && self.write_failed.is_none();
        self.stream.wait(wants_room, timeout).map_err(ClientError::Stream)
    }

    /// Writes until nothing waits or the stream takes no more.
    fn write(&mut self) {
        while !self.connection.transmit().is_empty() {
            let bytes = self.connection.transmit();
            if self.write_failed.is_some() {
                let count = bytes.len();
                self.connection.transmitted(count, Instant::now());
                return;
            }
            match self.stream.write(bytes) {
                Ok(count) if count > 0 => self.connection.transmitted(count, Instant::now()),
                Ok(_) => self.write_failed = Some("it takes no more bytes".to_owned()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.write_failed = Some(error.to_string()),
            }
        }
    }

    /// Reads once; whether something came, if only the end.
    fn read(&mut self) -> bool {
        let now = Instant::now();
        match self.stream.read(&mut self.chunk) {
            Ok(0) => {
                let reason = match self.write_failed.take() {
                    Some(text) => DownReason::Stream(text),
                    None => DownReason::PeerClosed,
                };
                self.connection.stream_ended(reason);
            }
            Ok(count) => {
                self.connection.receive(self.chunk.get(..count).unwrap_or_default(), now);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                return false;
            }
            // TLS that ends without close_notify: every message says its own length.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.connection.stream_ended(DownReason::PeerClosed);
            }
            Err(error) => self.connection.stream_ended(DownReason::Stream(error.to_string())),
        }
        true
    }
}
