//! One OpenFlow connection as a state machine: bytes in, events out; messages in, bytes out.
//!
//! The agent of the switch, the runtime of the controller and the clients of crate `client` drive
//! it, all but the blocking client through [`crate::Link`]. The
//! clock is an argument of every call that needs it and there is no input or output here, so a
//! simulation in virtual time runs the same code as the real thing. Bytes from the peer must never
//! make it panic, grow without bound, or answer an error with an error.
//!
//! To drive it, [`Connection::receive`] bytes, then [`Connection::poll_event`] until it is empty,
//! then send what [`Connection::transmit`] holds; call [`Connection::handle_timeout`] when
//! [`Connection::next_timeout`] has come. `driver` does this over real streams.

use crate::event::{ConnectionCounters, DownReason, Event, SendError};
use crate::frame::{Input, Next};
use crate::negotiate;
use crate::output::{Class, Output};
use crate::settings::{ConnectionSettings, Side};
use openflow::message::{ErrorMessage, Sender};
use openflow::{Error, Message, MessageKind, Version, Xid};
use std::convert::Infallible;
use std::ops::Range;
use std::time::{Duration, Instant};
use wire::{EncodeError, Forms, HEADER_LEN, MessageHeader};

/// `OFPET_HELLO_FAILED` in both versions.
const HELLO_FAILED: u16 = 0;

/// The connection's own xids begin here, so that an owner that numbers from 1 stays apart.
const FIRST_XID: u32 = 0x8000_0000;

/// The xid of every probe, which [`Connection::allocate_xid`] never gives.
const PROBE_XID: Xid = Xid(u32::MAX);

/// One connection; see the module.
#[derive(Debug)]
pub struct Connection {
    settings: ConnectionSettings,
    state: State,
    input: Input,
    output: Output,
    /// The time of the owner's latest call.
    now: Instant,
    opened: Instant,
    last_alive: Instant,
    partial_since: Option<Instant>,
    probe_sent: Option<Instant>,
    next_xid: u32,
    /// The frame of the latest message given to the owner.
    last_frame: Range<usize>,
    /// Set by [`Connection::hold_input`].
    is_held: bool,
    /// Set by [`Connection::copy_messages`].
    copies: Option<Vec<u8>>,
    /// Set by [`Connection::set_forms`].
    forms: Forms,
    down: Option<DownReason>,
    counters: ConnectionCounters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    HelloAwaited,
    Up(Version),
    Over,
}

impl Connection {
    /// A connection whose stream has just been opened. Our hello waits to be sent at once.
    ///
    /// # Panics
    /// When `settings.versions` holds no version that Weir speaks.
    #[must_use]
    pub fn new(settings: ConnectionSettings, now: Instant) -> Self {
        let highest = negotiate::highest(settings.versions).expect("a connection has a version");
        let hello = Message::Hello(negotiate::hello(settings.versions));
        let mut connection = Self {
            settings,
            state: State::HelloAwaited,
            input: Input::default(),
            output: Output::default(),
            now,
            opened: now,
            last_alive: now,
            partial_since: None,
            probe_sent: None,
            next_xid: FIRST_XID,
            last_frame: 0..0,
            is_held: false,
            copies: None,
            forms: Forms::default(),
            down: None,
            counters: ConnectionCounters::default(),
        };
        let xid = connection.allocate_xid();
        connection.push(Class::Must, highest, xid, &hello).expect("every version has a hello");
        connection
    }

    /// The agreed version; `None` before the hello exchange is done and after the end.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        match self.state {
            State::Up(version) => Some(version),
            State::HelloAwaited | State::Over => None,
        }
    }

    /// Whether the connection is over: no more is received, only the rest of the output is sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Our side of the connection.
    #[must_use]
    pub fn side(&self) -> Side {
        self.settings.side
    }

    /// Other deadlines of silence, see [`ConnectionSettings::probe_after`] and
    /// [`ConnectionSettings::probe_deadline`]; they hold from now on.
    pub fn set_probe(&mut self, after: Option<Duration>, deadline: Duration) {
        self.settings.probe_after = after;
        self.settings.probe_deadline = deadline;
    }

    /// Its counters.
    #[must_use]
    pub fn counters(&self) -> ConnectionCounters {
        self.counters
    }

    /// When the peer began the message that is not whole yet, if any, or when reading resumed in
    /// the middle of it; as of the latest event polled.
    #[must_use]
    pub fn unfinished_since(&self) -> Option<Instant> {
        self.partial_since
    }

    /// Takes bytes from the peer. Poll all events before the next call.
    pub fn receive(&mut self, bytes: &[u8], now: Instant) {
        self.now = now;
        if self.is_over() || bytes.is_empty() {
            return;
        }
        self.last_alive = now;
        self.probe_sent = None;
        self.last_frame = 0..0;
        self.counters.bytes_received += bytes.len() as u64;
        self.input.push(bytes);
    }

    /// The next event. [`Event::Down`] is the last.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.poll_event_or_take(|_, _| false)
    }

    /// The same, for an owner that takes some messages as they came: `take` is offered header and
    /// bytes of each message in the agreed version, but for hellos and echo requests, and says
    /// whether it took it. What it took is not decoded and is no event, so that a list of a million
    /// entries can be counted without a value for each. Behind a message that was taken there is
    /// `None` too: ask again.
    pub fn poll_event_or_take(
        &mut self,
        mut take: impl FnMut(MessageHeader, &[u8]) -> bool,
    ) -> Option<Event> {
        loop {
            if let Some(reason) = self.down.take() {
                return Some(Event::Down(reason));
            }
            match self.input.next() {
                Next::Empty => {
                    self.partial_since = None;
                    return None;
                }
                Next::Partial(header) => {
                    self.partial_since.get_or_insert(self.now);
                    if !header.is_some_and(|header| self.judge_partial(header)) {
                        return None;
                    }
                }
                Next::Frame(header, at) => {
                    self.partial_since = None;
                    self.input.use_up(at.end);
                    self.last_frame = at;
                    self.counters.messages_received += 1;
                    if let Some(copies) = &mut self.copies {
                        copies.extend_from_slice(self.input.frame(self.last_frame.clone()));
                    }
                    let mut has_taken = false;
                    let event = self.take_frame(header, |header, bytes| {
                        has_taken = take(header, bytes);
                        has_taken
                    });
                    if event.is_some() || has_taken {
                        return event;
                    }
                }
            }
        }
    }

    /// Ends the connection when the header of an unfinished message is already wrong.
    fn judge_partial(&mut self, header: MessageHeader) -> bool {
        let is_error = is_kind(header, MessageKind::Error);
        let is_hello = is_kind(header, MessageKind::Hello);
        if self.state == State::HelloAwaited && !is_hello && !is_error {
            self.refuse_first(header);
            return true;
        }
        if usize::from(header.length) < HEADER_LEN {
            self.counters.refused += 1;
            if !is_error {
                let quote = quote_of(self.input.rest());
                self.answer(header, Error::BadRequestBadLen, &quote);
            }
            self.fail(DownReason::BadLength(header.length));
            return true;
        }
        false
    }

    fn take_frame(
        &mut self,
        header: MessageHeader,
        take: impl FnOnce(MessageHeader, &[u8]) -> bool,
    ) -> Option<Event> {
        match self.state {
            State::HelloAwaited => self.take_first(header),
            State::Up(version) if header.version == version.number() => {
                self.take(version, header, take)
            }
            State::Up(_) => self.take_other_version(header),
            State::Over => None,
        }
    }

    /// The first message of the peer.
    fn take_first(&mut self, header: MessageHeader) -> Option<Event> {
        let frame = self.input.frame(self.last_frame.clone());
        if is_kind(header, MessageKind::Error) {
            let text = match wire::decode(frame) {
                Ok((version, _, Message::Error(error))) => error_text(version, &error),
                Ok(_) | Err(_) => "with an error that is not readable".into(),
            };
            self.fail(DownReason::RefusedByPeer(text));
            return None;
        }
        let Ok((_, hello)) = wire::decode_hello(frame) else {
            self.refuse_first(header);
            return None;
        };
        match negotiate::agree(self.settings.versions, header.version, hello.versions) {
            Ok(version) => {
                self.state = State::Up(version);
                Some(Event::Up { version })
            }
            Err(text) => {
                self.answer(header, Error::HelloIncompatible, text.as_bytes());
                self.fail(DownReason::NoCommonVersion(text));
                None
            }
        }
    }

    /// Ends the connection whose first message is no hello.
    fn refuse_first(&mut self, header: MessageHeader) {
        self.counters.refused += 1;
        let first = self.input.frame(self.last_frame.clone());
        let quote = quote_of(if first.is_empty() { self.input.rest() } else { first });
        self.answer(header, Error::BadRequestBadVersion, &quote);
        let kind = header.message_type;
        self.fail(DownReason::NotHello { version: header.version, kind });
    }

    /// A message in the agreed version.
    fn take(
        &mut self,
        version: Version,
        header: MessageHeader,
        take: impl FnOnce(MessageHeader, &[u8]) -> bool,
    ) -> Option<Event> {
        let at = self.last_frame.clone();
        match MessageKind::from_number(version, header.message_type) {
            Some(MessageKind::Hello) => return None,
            Some(MessageKind::EchoRequest) => {
                self.answer_echo(version, at);
                return None;
            }
            Some(_) | None => {}
        }
        if take(header, self.input.frame(at.clone())) {
            return None;
        }
        let (xid, message) = match wire::decode_in(self.input.frame(at), self.forms) {
            Ok((_, xid, message)) => (xid, message),
            Err(wrong) => {
                tracing::debug!(%wrong, "message refused");
                return Some(self.refuse_received(header, wrong.error));
            }
        };
        if let Message::Error(error) = &message
            && error.error_type == HELLO_FAILED
        {
            self.fail(DownReason::RefusedByPeer(error_text(version, error)));
            return None;
        }
        if !self.peer_may_send(message.kind()) {
            return Some(self.refuse_received(header, Error::BadRequestBadType));
        }
        let is_own_probe = xid == PROBE_XID && message.kind() == MessageKind::EchoReply;
        (!is_own_probe).then_some(Event::Message { xid, message })
    }

    fn peer_may_send(&self, kind: MessageKind) -> bool {
        match (kind.row().sender, self.settings.side) {
            (Sender::Both, _)
            | (Sender::Controller, Side::Switch)
            | (Sender::Switch, Side::Controller) => true,
            (Sender::Controller, Side::Controller) | (Sender::Switch, Side::Switch) => false,
        }
    }

    /// A message in another version than the agreed one: a hello is ignored.
    fn take_other_version(&mut self, header: MessageHeader) -> Option<Event> {
        if is_kind(header, MessageKind::Hello) {
            return None;
        }
        Some(self.refuse_received(header, Error::BadRequestBadVersion))
    }

    /// Counts and answers the wrong message received last; an error is not answered.
    fn refuse_received(&mut self, header: MessageHeader, error: Error) -> Event {
        self.counters.refused += 1;
        if !is_kind(header, MessageKind::Error) {
            let quote = quote_of(self.quote());
            self.answer(header, error, &quote);
        }
        Event::Refused { xid: header.xid, error }
    }

    /// Bytes of the message that [`Connection::poll_event`] gave last, as the peer sent it.
    #[must_use]
    pub fn last_message_len(&self) -> usize {
        self.last_frame.len()
    }

    /// The quote of the message that [`Connection::poll_event`] gave last ([`wire::quote`]), for an
    /// error about it; empty once further bytes have come or the peer has been silent for a while.
    #[must_use]
    pub fn quote(&self) -> &[u8] {
        wire::quote(self.input.frame(self.last_frame.clone()))
    }

    /// The forms of messages from now on, as the controller has chosen them by requests of
    /// Nicira's; they are kept until the next call.
    pub fn set_forms(&mut self, forms: Forms) {
        self.forms = forms;
    }

    /// The forms of messages.
    #[must_use]
    pub fn forms(&self) -> Forms {
        self.forms
    }

    /// A new xid for a message of the owner. The numbers repeat after two thousand million.
    pub fn allocate_xid(&mut self) -> Xid {
        let xid = self.next_xid;
        self.next_xid = if xid + 1 == PROBE_XID.0 { FIRST_XID } else { xid + 1 };
        Xid(xid)
    }

    /// Sends a message under a new xid, which is returned.
    ///
    /// # Errors
    /// When the connection is not up or the version cannot say the message; nothing is sent then.
    pub fn send(&mut self, message: &Message) -> Result<Xid, SendError> {
        let xid = self.allocate_xid();
        self.send_as(xid, message)?;
        Ok(xid)
    }

    /// Sends a message under the given xid: a reply under its request's, an asynchronous message
    /// under 0.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn send_as(&mut self, xid: Xid, message: &Message) -> Result<(), SendError> {
        let State::Up(version) = self.state else { return Err(SendError::NotUp) };
        Ok(self.push(Class::Must, version, xid, message)?)
    }

    /// Sends a frame that is encoded already, in the agreed version: a part of a long reply, see
    /// [`wire::ReplyFrames`].
    ///
    /// # Errors
    /// [`SendError::NotUp`].
    pub fn send_frame(&mut self, frame: &[u8]) -> Result<(), SendError> {
        let State::Up(_) = self.state else { return Err(SendError::NotUp) };
        let written = self.output.push(Class::Must, |out| {
            out.extend_from_slice(frame);
            Ok::<_, Infallible>(())
        });
        self.pushed(written.unwrap_or_else(|never| match never {}));
        Ok(())
    }

    /// Sends a message that may be lost, such as a packet-in, unless the output is full. Returns
    /// whether it was queued; a dropped one counts in [`ConnectionCounters::offers_dropped`].
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn offer(&mut self, xid: Xid, message: &Message) -> Result<bool, SendError> {
        let State::Up(version) = self.state else { return Err(SendError::NotUp) };
        if self.is_full() {
            self.counters.offers_dropped += 1;
            return Ok(false);
        }
        self.push(Class::Offer, version, xid, message)?;
        Ok(true)
    }

    /// Refuses the message that [`Connection::poll_event`] gave last, quoting it.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn refuse(&mut self, xid: Xid, error: Error) -> Result<(), SendError> {
        let quote = quote_of(self.quote());
        self.send_error(xid, error, &quote)
    }

    /// Refuses an earlier message with this xid, quoting what [`Connection::quote`] returned then.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn send_error(&mut self, xid: Xid, error: Error, quote: &[u8]) -> Result<(), SendError> {
        let State::Up(version) = self.state else { return Err(SendError::NotUp) };
        let body = ErrorMessage::new(version, error, quote.to_vec());
        self.send_as(xid, &Message::Error(body))
    }

    /// Whether copies are made of all messages that come and that are queued from now on.
    pub fn copy_messages(&mut self, wanted: bool) {
        self.copies = wanted.then(|| self.copies.take().unwrap_or_default());
    }

    /// Takes the copies, in order; the owner asks for them each time when it has polled events and
    /// sent.
    #[must_use]
    pub fn take_copies(&mut self) -> Vec<u8> {
        self.copies.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The bytes to be sent to the peer.
    #[must_use]
    pub fn transmit(&self) -> &[u8] {
        self.output.waiting()
    }

    /// The stream has taken the first `count` bytes of [`Connection::transmit`]. While input is
    /// held this is the peer's sign of life, so that a slow reader does not pass for a dead one.
    pub fn transmitted(&mut self, count: usize, now: Instant) {
        if count > 0 && !self.wants_input() {
            self.excuse(now);
        }
        self.counters.bytes_sent += count as u64;
        self.output.sent(count);
    }

    /// Restarts all deadlines of the peer: its bytes may wait in the stream while we do not read.
    fn excuse(&mut self, now: Instant) {
        self.last_alive = now;
        self.probe_sent = None;
        self.partial_since = self.partial_since.map(|_| now);
    }

    /// Whether the output is full, so that [`Connection::offer`] drops.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.output.waiting().len() >= self.settings.output_limit_bytes
    }

    /// Stops or resumes reading, for an owner that has replies queued outside the connection. While
    /// input is held the peer's silence does not end the connection, unless it leaves unread what
    /// was sent to it; an unfinished message has its whole deadline again when reading resumes.
    pub fn hold_input(&mut self, hold: bool, now: Instant) {
        if self.is_held && !hold {
            self.partial_since = self.partial_since.map(|_| now);
        }
        self.is_held = hold;
    }

    /// Whether more bytes should be read. A switch takes no further requests while replies fill its
    /// output, which is the flow control of clause 6.3.2; packet-ins do not count, since the
    /// packet-outs that follow them are what empties the peer. A controller reads always, or the
    /// two would wait for each other; it sheds load by ignoring packet-ins while it is full.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        let has_room = match self.settings.side {
            Side::Switch => self.output.must_bytes() < self.settings.output_limit_bytes,
            Side::Controller => true,
        };
        has_room && !self.is_held
    }

    /// When [`Connection::handle_timeout`] is due, if ever.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let settings = &self.settings;
        let of_state = match self.state {
            State::Over => return None,
            State::HelloAwaited => Some(self.opened + settings.hello_deadline),
            State::Up(_) => match self.probe_sent {
                Some(sent) => Some(sent + settings.probe_deadline),
                None => settings.probe_after.map(|after| self.last_alive + after),
            },
        };
        let of_frame = self.partial_since.map(|since| since + settings.frame_deadline);
        of_state.into_iter().chain(of_frame).min()
    }

    /// Does what is due at `now`: sends an echo request or ends the connection.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if !self.wants_input() {
            // The rest of the message may wait in the stream.
            self.partial_since = self.partial_since.map(|_| now);
        }
        if self.is_held && self.output.waiting().is_empty() {
            self.excuse(now);
        }
        let due = |since: Instant, after| now >= since + after;
        match self.state {
            State::Over => return,
            State::HelloAwaited if due(self.opened, self.settings.hello_deadline) => {
                return self.fail(DownReason::NoHello);
            }
            State::HelloAwaited | State::Up(_) => {}
        }
        if self.partial_since.is_some_and(|since| due(since, self.settings.frame_deadline)) {
            return self.fail(DownReason::HalfMessage);
        }
        let State::Up(version) = self.state else { return };
        match (self.probe_sent, self.settings.probe_after) {
            (Some(sent), _) if due(sent, self.settings.probe_deadline) => {
                self.fail(DownReason::NoEchoReply);
            }
            (None, Some(after)) if due(self.last_alive, after) => {
                self.probe_sent = Some(now);
                self.shrink();
                let probe = Message::EchoRequest(Vec::new());
                let sent = self.push(Class::Must, version, PROBE_XID, &probe);
                debug_assert!(
                    sent.is_ok(),
                    "an empty echo request has an encoding in every version"
                );
            }
            (Some(_), _) | (None, _) => {}
        }
    }

    /// Frees the memory of a burst: the peer has been silent for a while.
    fn shrink(&mut self) {
        if self.input.shrink() {
            self.last_frame = 0..0;
        }
        self.output.shrink();
    }

    /// The memory of its buffers in bytes. It grows with the longest message and the fullest send
    /// queue, and is given back when the peer is silent for [`ConnectionSettings::probe_after`].
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.input.capacity() + self.output.capacity()
    }

    /// Ends the connection on our side.
    pub fn close(&mut self) {
        self.end(DownReason::Closed);
    }

    /// The stream has ended; the reason is [`DownReason::PeerClosed`] or [`DownReason::Stream`].
    pub fn stream_ended(&mut self, reason: DownReason) {
        self.end(reason);
    }

    fn end(&mut self, reason: DownReason) {
        if !self.is_over() {
            self.fail(reason);
        }
    }

    fn fail(&mut self, reason: DownReason) {
        self.state = State::Over;
        self.input.clear();
        self.last_frame = 0..0;
        self.partial_since = None;
        self.down = Some(reason);
    }

    /// Answers a message with an error: in the agreed version, or before the agreement in one that
    /// the peer is likely to know.
    fn answer(&mut self, header: MessageHeader, error: Error, data: &[u8]) {
        let version = self
            .version()
            .unwrap_or_else(|| negotiate::answer_version(self.settings.versions, header.version));
        let body = ErrorMessage::new(version, error, data.to_vec());
        let sent = self.push(Class::Must, version, header.xid, &Message::Error(body));
        debug_assert!(sent.is_ok(), "a short error has an encoding in every version");
    }

    /// Sends the received echo request back as its reply, without decoding it.
    fn answer_echo(&mut self, version: Version, at: Range<usize>) {
        let number = MessageKind::EchoReply.number(version).unwrap_or_default();
        let frame = self.input.frame(at);
        let written = self.output.push(Class::Must, |out| {
            if let [first, _, rest @ ..] = frame {
                out.extend([*first, number]);
                out.extend_from_slice(rest);
            }
            Ok::<_, Infallible>(())
        });
        self.pushed(written.unwrap_or_else(|never| match never {}));
    }

    fn push(
        &mut self,
        class: Class,
        version: Version,
        xid: Xid,
        message: &Message,
    ) -> Result<(), EncodeError> {
        let forms = self.forms;
        let write = |out: &mut Vec<u8>| wire::encode_in(out, forms, version, xid, message);
        let written = self.output.push(class, write);
        self.pushed(written?);
        Ok(())
    }

    /// A message of `len` bytes was queued.
    fn pushed(&mut self, len: usize) {
        self.counters.messages_sent += 1;
        if let Some(copies) = &mut self.copies {
            let waiting = self.output.waiting();
            copies.extend_from_slice(waiting.get(waiting.len() - len..).unwrap_or_default());
        }
        let waiting = self.output.waiting().len();
        if waiting > self.settings.output_max_bytes && !self.is_over() {
            self.fail(DownReason::NotReading(waiting));
        }
    }
}

fn is_kind(header: MessageHeader, kind: MessageKind) -> bool {
    // Hello and error have the same numbers in every version.
    kind.number(Version::OLDEST) == Some(header.message_type)
}

fn quote_of(frame: &[u8]) -> Vec<u8> {
    wire::quote(frame).to_vec()
}

/// The text form of a peer's error: its name if known, and its data if that is text.
fn error_text(version: Version, error: &ErrorMessage) -> String {
    let name = match error.error(version) {
        Some(known) => known.name().to_owned(),
        None => format!("error type {} code {}", error.error_type, error.code),
    };
    match std::str::from_utf8(&error.data) {
        Ok(text) if !text.is_empty() && !text.chars().any(char::is_control) => {
            format!("{name}: {text}")
        }
        Ok(_) | Err(_) => name,
    }
}
