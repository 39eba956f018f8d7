//! One connection: sends batches of messages and holds every answer against the oracle.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use channel::Endpoint;
use client::{Client, ClientSettings};
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::group::{GroupMod, GroupModCommand, GroupType};
use openflow::message::{
    AsyncConfig, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::meter::{MeterFlags, MeterMod, MeterModCommand};
use openflow::port::PortDesc;
use openflow::{
    Action, Cookie, Error, Field, GroupId, Instruction, Match, Message, MessageKind, MeterId,
    TableId, Version, Xid,
};
use testkit::vectors::Vector;

use super::entropy::Entropy;
use super::make::Maker;
use super::oracle::{Expected, expected, judge};
use super::tame::{PRIORITY, UNRELATED, tame};
use super::{oracle, spoil};

/// The cookie of the unrelated flow's entry.
const UNRELATED_COOKIE: u64 = 0x5afe_0000_dead_beef;

/// The time that an answer may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// The messages sent, and their outcome.
#[derive(Default)]
pub(crate) struct Tally {
    connections: u64,
    done: u64,
    refused: u64,
    ignored: u64,
    ended: u64,
    asynchronous: u64,
    errors: BTreeMap<&'static str, u64>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} connections, {} of them ended by a header; {} messages done, {} refused, {} not \
             to be answered; {} asynchronous messages; errors by name:",
            self.connections, self.ended, self.done, self.refused, self.ignored, self.asynchronous
        )?;
        let errors = self.errors.iter().map(|(name, count)| format!("{name} {count}"));
        f.write_str(&errors.collect::<Vec<_>>().join(", "))
    }
}

/// A connection whose hello exchange is done.
pub(crate) struct Connection {
    client: Client,
    version: Version,
    next_xid: u32,
}

/// A message that waits for its answers.
struct Sent {
    frame: Vec<u8>,
    expected: Expected,
    answers: Vec<Message>,
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

impl Connection {
    pub(crate) fn open(socket: &Path, version: Version) -> Result<Self, String> {
        let mut settings = ClientSettings::of(&[version]).with_answer_deadline(DEADLINE);
        settings.connection.hello_deadline = DEADLINE;
        // Nothing goes to the switch but what the fuzzer makes.
        settings.connection.probe_after = None;
        let endpoint = Endpoint::Unix(socket.to_owned());
        let client = Client::connect(&endpoint, settings).map_err(text)?;
        Ok(Self { client, version, next_xid: 1 })
    }

    fn xid(&mut self) -> Xid {
        self.next_xid += 1;
        Xid(self.next_xid)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.client.send_bytes(bytes).map_err(|error| format!("sending: {error}"))
    }

    fn send(&mut self, xid: Xid, message: &Message) -> Result<(), String> {
        self.client.send_as(xid, message).map_err(text)
    }

    /// The next message; `None` when the switch has closed the connection.
    fn next(&mut self) -> Result<Option<(Xid, Message)>, String> {
        let Some(frame) = self.client.next_frame().map_err(text)? else { return Ok(None) };
        let (version, xid, message) = wire::decode(&frame)
            .map_err(|error| format!("the switch sent {frame:02x?}: {error}"))?;
        if version != self.version {
            return Err(format!("the switch speaks {version} in the middle"));
        }
        Ok(Some((xid, message)))
    }

    /// Sends and gives the answer; asynchronous messages before it are left out.
    fn request(&mut self, message: &Message) -> Result<Message, String> {
        let xid = self.xid();
        self.send(xid, message)?;
        loop {
            let (got, answer) = self.next()?.ok_or("the switch closed the connection")?;
            if got == xid {
                return Ok(answer);
            }
        }
    }

    fn barrier(&mut self) -> Result<(), String> {
        let answer = self.request(&Message::BarrierRequest)?;
        if answer != Message::BarrierReply {
            return Err(format!("a barrier is answered by {answer:?}"));
        }
        Ok(())
    }

    /// Adds the entry that nothing else may disturb, and asks for no asynchronous messages.
    pub(crate) fn install_unrelated(&mut self) -> Result<(), String> {
        let none = AsyncConfig::new([0; 2], [0; 2], [0; 2]);
        let xid = self.xid();
        self.send(xid, &Message::SetAsync(none))?;
        let [from, to] = UNRELATED;
        let entry = FlowMod {
            priority: PRIORITY,
            cookie: Cookie(UNRELATED_COOKIE),
            matching: Match::any().with(Field::InPort, from.0.into()),
            instructions: vec![Instruction::ApplyActions(vec![Action::output(to)])],
            ..FlowMod::new(FlowModCommand::Add)
        };
        let xid = self.xid();
        self.send(xid, &Message::FlowMod(entry))?;
        self.barrier()
    }

    /// The ports of the switch.
    pub(crate) fn ports(&mut self) -> Result<Vec<PortDesc>, String> {
        let body = MultipartRequestBody::PortDesc;
        let request = Message::MultipartRequest(MultipartRequest { more: false, body });
        let answer = self.request(&request)?;
        let Message::MultipartReply(MultipartReply {
            body: MultipartReplyBody::PortDesc(ports),
            ..
        }) = answer
        else {
            return Err(format!("no ports: {answer:?}"));
        };
        Ok(ports)
    }

    /// Deletes all that the fuzzer has added.
    pub(crate) fn clean(&mut self) -> Result<(), String> {
        // Every entry whose cookie differs somewhere from the unrelated one's.
        let differing = |bit: u32| FlowMod {
            table_id: TableId::ALL,
            cookie: Cookie(!UNRELATED_COOKIE & 1 << bit),
            cookie_mask: 1 << bit,
            ..FlowMod::new(FlowModCommand::Delete)
        };
        let groups = GroupMod {
            command: GroupModCommand::Delete,
            group_type: GroupType::All,
            group_id: GroupId::ALL,
            buckets: Vec::new(),
            ..GroupMod::default()
        };
        let meters = MeterMod {
            command: MeterModCommand::Delete,
            flags: MeterFlags::empty(),
            meter_id: MeterId::ALL,
            bands: Vec::new(),
        };
        let flow_mods = (0..64).map(differing).map(Message::FlowMod);
        let rest = [Message::GroupMod(groups), Message::MeterMod(meters)];
        for message in flow_mods.chain(rest) {
            let xid = self.xid();
            self.send(xid, &message)?;
        }
        self.barrier()
    }
}

/// Sends a batch and judges all answers; false when the connection is over, rightly.
pub(crate) fn batch(
    connection: &mut Connection,
    maker: &Maker,
    e: &mut Entropy,
    count: usize,
    tally: &mut Tally,
) -> Result<bool, String> {
    let version = connection.version;
    if connection.next_xid == 1 {
        tally.connections += 1;
    }
    let (mut sent, mut bytes) = (BTreeMap::new(), Vec::new());
    let mut put = |xid: Xid, frame: Vec<u8>| {
        bytes.extend_from_slice(&frame);
        let expected = expected(version, &frame);
        sent.insert(xid, Sent { frame, expected, answers: Vec::new() });
    };
    for _ in 0..count {
        let xid = connection.xid();
        let frame = if e.once_in(2) {
            maker.frame(e, version, xid)
        } else {
            spoil::frame(maker, e, version, xid)
        };
        if let Some(frame) = tame(frame) {
            put(xid, frame);
        }
    }
    let echo = Message::EchoRequest(e.bytes(24));
    for last in [echo, Message::BarrierRequest] {
        let xid = connection.xid();
        put(xid, wire::encode(version, xid, &last).map_err(text)?);
    }
    let barrier = Xid(connection.next_xid);
    connection.write(&bytes)?;
    read_answers(connection, &mut sent, barrier, tally)?;
    for (xid, sent) in &sent {
        judge(version, &sent.frame, &sent.expected, &sent.answers).map_err(|wrong| {
            let Sent { frame, expected, answers } = sent;
            format!("{wrong}\nsent {frame:02x?}\nxid {xid:?}, {expected:?}, got {answers:?}")
        })?;
        tally.count(version, sent);
    }
    if e.once_in(100) {
        return end(connection, e, tally).map(|()| false);
    }
    Ok(true)
}

/// Reads until everything sent before the barrier, and an echo, are answered.
fn read_answers(
    connection: &mut Connection,
    sent: &mut BTreeMap<Xid, Sent>,
    barrier: Xid,
    tally: &mut Tally,
) -> Result<(), String> {
    let echo = Xid(barrier.0 - 1);
    let mut waited = vec![barrier, echo];
    while !waited.is_empty() {
        let (xid, message) =
            connection.next()?.ok_or("the switch closed a connection that it should keep")?;
        let is_asynchronous = xid == Xid(0)
            && matches!(
                message.kind(),
                MessageKind::PacketIn | MessageKind::PortStatus | MessageKind::FlowRemoved
            );
        if is_asynchronous {
            tally.asynchronous += 1;
            continue;
        }
        let Some(sent) = sent.get_mut(&xid) else {
            return Err(format!("an answer that nothing was sent for: {xid:?} {message:?}"));
        };
        sent.answers.push(message);
        waited.retain(|other| *other != xid);
    }
    Ok(())
}

/// Sends a header that ends the connection, which must be refused and closed.
fn end(connection: &mut Connection, e: &mut Entropy, tally: &mut Tally) -> Result<(), String> {
    let xid = connection.xid();
    let frame = spoil::fatal(e, connection.version, xid);
    connection.write(&frame)?;
    let is_error = matches!(frame.get(1), Some(1));
    let mut is_refused = is_error;
    while let Some((got, message)) = connection.next()? {
        if let (true, Message::Error(error)) = (got == xid, message) {
            is_refused = error.error(connection.version) == Some(Error::BadRequestBadLen);
        }
    }
    tally.ended += 1;
    if is_refused {
        Ok(())
    } else {
        Err(format!("an impossible length is not refused: {frame:02x?}"))
    }
}

/// Sends a known wrong message on a connection of its own; the error must be the one that somebody
/// has looked up for it.
pub(crate) fn refuses(socket: &Path, known: &Vector, tally: &mut Tally) -> Result<(), String> {
    let frame = &known.bytes;
    let is_whole = wire::frame_len(frame).is_ok_and(|length| length == Some(frame.len()));
    let version = frame.first().copied().and_then(Version::from_number);
    let (Some(version), true) = (version, is_whole) else { return Ok(()) };
    let Expected::Error(_) = oracle::expected(version, frame) else { return Ok(()) };
    let wanted = known.error.as_deref().and_then(Error::from_name);
    let wanted = wanted.ok_or_else(|| format!("{}: unknown error", known.place()))?;
    let mut connection = Connection::open(socket, version)?;
    connection.write(frame)?;
    loop {
        let next = connection.next()?;
        let (_, message) = next.ok_or_else(|| format!("{}: closed", known.place()))?;
        let Message::Error(error) = message else { continue };
        if (error.error_type, error.code) != wanted.numbers(version) {
            let name = error.error(version).map_or("unknown", Error::name);
            return Err(format!("{}: {name} in place of {}", known.place(), wanted.name()));
        }
        tally.connections += 1;
        tally.refused += 1;
        *tally.errors.entry(wanted.name()).or_default() += 1;
        return Ok(());
    }
}

impl Tally {
    /// Messages whose answers were judged.
    pub(crate) fn messages(&self) -> u64 {
        self.done + self.refused + self.ignored
    }

    fn count(&mut self, version: Version, sent: &Sent) {
        let error = sent.answers.iter().find_map(|answer| {
            if let Message::Error(error) = answer { error.error(version) } else { None }
        });
        match (&sent.expected, error) {
            (_, Some(error)) => {
                self.refused += 1;
                *self.errors.entry(error.name()).or_default() += 1;
            }
            (Expected::Nothing, None) => self.ignored += 1,
            (
                Expected::Error(_) | Expected::Done(_) | Expected::Reply(_, _) | Expected::Echo(_),
                None,
            ) => self.done += 1,
        }
    }
}
