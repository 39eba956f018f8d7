//! The bench's OpenFlow connection to a switch: loads flow entries and reads port counters.
//!
//! OpenFlow over a Unix socket, one thread, no state beyond the bytes that have come: every switch
//! under test is asked the same way. It must never wait without asking whether the run was
//! interrupted.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use openflow::flow::{FlowMod, FlowStatsRequest};
use openflow::message::{
    ErrorMessage, Hello, Message, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::port::{PortConfig, PortFeatures, PortMod, PortStats};
use openflow::{PortNo, Version, Xid};

use super::ctl;
use crate::cancel::Cancel;

/// How long one answer may take: a barrier behind a million flow entries is the longest.
const ANSWER_LIMIT: Duration = Duration::from_secs(300);

/// How long a read waits before it asks whether to go on.
const STEP: Duration = Duration::from_millis(20);

/// OpenFlow 1.3's type of a multipart reply, and where its flags and its body stand (clause 7.3.5).
const MULTIPART_REPLY: u8 = 19;
const MULTIPART_FLAGS: usize = 11;
const MULTIPART_BODY: usize = 16;

/// Between two writes of an even stream of messages.
const STORM_STEP: Duration = Duration::from_millis(1);

/// Bytes of flow-mods that are written at once.
const CHUNK: usize = 1 << 17;

/// How loading went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    /// Flow entries.
    pub(super) entries: u64,
    /// Seconds from the first byte to the barrier reply.
    pub(super) seconds: f64,
}

/// How listing went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Listed {
    /// Flow entries.
    pub(super) entries: u64,
    /// Bytes of the answer.
    pub(super) bytes: u64,
    /// Seconds from the question to the last byte.
    pub(super) seconds: f64,
}

/// Messages that are sent over and over, encoded once.
#[derive(Debug)]
pub(super) struct Storm {
    bytes: Vec<u8>,
    /// Where each message ends.
    ends: Vec<usize>,
    per_second: u32,
}

impl Storm {
    /// These flow-mods, so many a second.
    ///
    /// # Errors
    /// One of them cannot be said in the version.
    pub(super) fn new(
        version: Version,
        entries: impl Iterator<Item = FlowMod>,
        per_second: u32,
    ) -> Result<Self> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for entry in entries {
            wire::encode_into(&mut bytes, version, Xid(1), &Message::FlowMod(entry))
                .context("encoding a flow-mod")?;
            ends.push(bytes.len());
        }
        Ok(Self { bytes, ends, per_second })
    }

    /// Up to `wanted` messages from number `first` on, and how many those are.
    fn from(&self, first: u64, wanted: u64) -> (&[u8], u64) {
        let all = self.ends.len();
        let Some(at) = usize::try_from(first).ok().and_then(|first| first.checked_rem(all)) else {
            return (&[], wanted);
        };
        let end = all.min(at.saturating_add(usize::try_from(wanted).unwrap_or(all)));
        let place = |n: usize| if n == 0 { 0 } else { self.ends.get(n - 1).copied().unwrap_or(0) };
        (self.bytes.get(place(at)..place(end)).unwrap_or_default(), (end - at) as u64)
    }
}

/// The entries in a part of a list, by the length that each tells.
fn entries_of(frame: &[u8]) -> u64 {
    let mut rest = frame.get(MULTIPART_BODY..).unwrap_or_default();
    let mut count = 0;
    while let Some((head, _)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_be_bytes(*head));
        if len == 0 {
            break;
        }
        count += 1;
        rest = rest.get(len..).unwrap_or_default();
    }
    count
}

/// A connection.
#[derive(Debug)]
pub(super) struct Client {
    stream: UnixStream,
    version: Version,
    cancel: Cancel,
    next_xid: u32,
    /// Bytes that have come, from `parsed` on not yet looked at.
    inbox: Vec<u8>,
    parsed: usize,
}

impl Client {
    /// Connects and says that it speaks that version.
    ///
    /// # Errors
    /// Nobody listens, or it does not speak the version.
    pub(super) fn connect(path: &Path, version: Version, cancel: &Cancel) -> Result<Self> {
        let stream = UnixStream::connect(path)
            .with_context(|| format!("cannot connect to {}", path.display()))?;
        Self::speak(stream, version, cancel)
    }

    /// The same over the control socket, which speaks OpenFlow from the end of a line on.
    ///
    /// # Errors
    /// Nobody listens, or it does not speak the version.
    pub(super) fn over_control(path: &Path, version: Version, cancel: &Cancel) -> Result<Self> {
        Self::speak(ctl::openflow(path)?, version, cancel)
    }

    fn speak(stream: UnixStream, version: Version, cancel: &Cancel) -> Result<Self> {
        stream.set_read_timeout(Some(STEP)).context("setting a timeout")?;
        let cancel = cancel.clone();
        let mut client =
            Self { stream, version, cancel, next_xid: 1, inbox: Vec::new(), parsed: 0 };
        client.send(&Message::Hello(Hello { versions: None }))?;
        client.wait("a hello", |_, message| matches!(message, Message::Hello(_)).then_some(()))?;
        Ok(client)
    }

    /// Adds the flow entries and waits until they are in force.
    ///
    /// # Errors
    /// The first entry that is not understood, or that the switch refuses.
    pub(super) fn load(
        &mut self,
        entries: impl Iterator<Item = Result<FlowMod>>,
    ) -> Result<Loaded> {
        let start = Instant::now();
        let mut count = 0;
        let mut chunk = Vec::with_capacity(2 * CHUNK);
        for entry in entries {
            let xid = self.take_xid();
            wire::encode_into(&mut chunk, self.version, xid, &Message::FlowMod(entry?))
                .with_context(|| format!("flow entry {}", count + 1))?;
            count += 1;
            if chunk.len() >= CHUNK {
                self.write(&chunk)?;
                chunk.clear();
                self.look_for_errors()?;
            }
        }
        self.write(&chunk)?;
        self.barrier()?;
        Ok(Loaded { entries: count, seconds: start.elapsed().as_secs_f64() })
    }

    /// Waits until everything before is done.
    ///
    /// # Errors
    /// An error message that has come, or no answer.
    pub(super) fn barrier(&mut self) -> Result<()> {
        let asked = self.send(&Message::BarrierRequest)?;
        self.wait("a barrier reply", |xid, message| {
            (xid == asked && *message == Message::BarrierReply).then_some(())
        })
    }

    /// The counters of all ports.
    ///
    /// # Errors
    /// An error message that has come, or no answer.
    pub(super) fn port_stats(&mut self) -> Result<Vec<PortStats>> {
        let body = MultipartRequestBody::PortStats(PortNo::ANY);
        let request = MultipartRequest { body, more: false };
        let asked = self.send(&Message::MultipartRequest(request))?;
        let mut all = Vec::new();
        self.wait("port counters", |xid, message| {
            let Message::MultipartReply(reply) = message else { return None };
            if let (MultipartReplyBody::PortStats(part), true) = (&mut reply.body, xid == asked) {
                all.append(part);
                return (!reply.more).then(|| std::mem::take(&mut all));
            }
            None
        })
    }

    /// Asks for an echo and waits for it.
    ///
    /// # Errors
    /// An error message that has come, or no answer.
    pub(super) fn echo(&mut self) -> Result<()> {
        let asked = self.send(&Message::EchoRequest(Vec::new()))?;
        self.wait("an echo reply", |xid, message| {
            (xid == asked && matches!(message, Message::EchoReply(_))).then_some(())
        })
    }

    /// Sets a port down or up, and waits until that is in force.
    ///
    /// # Errors
    /// There is no such port, or no answer.
    pub(super) fn set_port_down(&mut self, number: PortNo, is_down: bool) -> Result<()> {
        let body = MultipartRequestBody::PortDesc;
        let asked =
            self.send(&Message::MultipartRequest(MultipartRequest { body, more: false }))?;
        let found = self.wait("its ports", |xid, message| {
            let Message::MultipartReply(reply) = message else { return None };
            let (MultipartReplyBody::PortDesc(part), true) = (&reply.body, xid == asked) else {
                return None;
            };
            let port = part.iter().find(|port| port.port_no == number);
            (port.is_some() || !reply.more).then(|| port.map(|port| port.hw_addr))
        })?;
        let hw_addr = found.with_context(|| format!("the switch has no port {number}"))?;
        let (config, mask) = if is_down {
            (PortConfig::PORT_DOWN, PortConfig::PORT_DOWN)
        } else {
            (PortConfig::empty(), PortConfig::PORT_DOWN)
        };
        let advertise = PortFeatures::empty();
        let port_no = number;
        self.send(&Message::PortMod(PortMod { port_no, hw_addr, config, mask, advertise }))?;
        self.barrier()
    }

    /// Lists all flow entries of a switch that speaks OpenFlow 1.3. They are counted and not read,
    /// so that the bench takes as little of its core as it can from the switch's agent.
    ///
    /// # Errors
    /// An error message that has come, or no answer.
    pub(super) fn list_flows(&mut self) -> Result<Listed> {
        let begun = Instant::now();
        let body = MultipartRequestBody::Flow(FlowStatsRequest::all());
        let asked =
            self.send(&Message::MultipartRequest(MultipartRequest { body, more: false }))?;
        let mut listed = Listed::default();
        loop {
            while let Some(at) = self.next_frame()? {
                let frame = self.inbox.get(at).unwrap_or_default();
                if frame.get(1) == Some(&MULTIPART_REPLY)
                    && frame.get(4..8) == Some(&asked.0.to_be_bytes())
                {
                    listed.entries += entries_of(frame);
                    listed.bytes += frame.len() as u64;
                    if frame.get(MULTIPART_FLAGS).is_some_and(|flags| flags & 1 == 0) {
                        listed.seconds = begun.elapsed().as_secs_f64();
                        return Ok(listed);
                    }
                } else {
                    let (_, _, message) = wire::decode(frame).context("a message of the switch")?;
                    self.handle(message)?;
                }
            }
            self.cancel.check()?;
            ensure!(begun.elapsed() < ANSWER_LIMIT, "the switch did not end its list of entries");
            self.read()?;
        }
    }

    /// Writes messages that are already encoded, `storm` over and over and evenly, until `until`;
    /// how many, once the last is in force.
    ///
    /// # Errors
    /// The switch refuses one, or does not answer.
    pub(super) fn write_evenly(&mut self, storm: &Storm, until: Instant) -> Result<u64> {
        let begun = Instant::now();
        let mut sent = 0;
        while Instant::now() < until {
            let due = (begun.elapsed().as_secs_f64() * f64::from(storm.per_second)) as u64;
            while sent < due {
                let (bytes, count) = storm.from(sent, due - sent);
                self.stream.write_all(bytes).context("the switch has closed the connection")?;
                sent += count;
            }
            self.look_for_errors()?;
            std::thread::sleep(STORM_STEP);
        }
        self.barrier()?;
        Ok(sent)
    }

    fn take_xid(&mut self) -> Xid {
        self.next_xid = self.next_xid.wrapping_add(1);
        Xid(self.next_xid)
    }

    fn send(&mut self, message: &Message) -> Result<Xid> {
        let xid = self.take_xid();
        let frame = wire::encode(self.version, xid, message).context("encoding a message")?;
        self.write(&frame)?;
        Ok(xid)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).context("the switch has closed the connection")
    }

    /// Reads what has come without waiting and fails if the switch refused something.
    fn look_for_errors(&mut self) -> Result<()> {
        self.cancel.check()?;
        self.stream.set_nonblocking(true).context("setting a socket")?;
        let read = self.read();
        self.stream.set_nonblocking(false).context("setting a socket")?;
        read?;
        while let Some((_, message)) = self.next()? {
            self.handle(message)?;
        }
        Ok(())
    }

    /// Reads once; false when nothing has come.
    fn read(&mut self) -> Result<bool> {
        let mut buffer = [0; 1 << 16];
        match self.stream.read(&mut buffer) {
            Ok(0) => bail!("the switch has closed the connection"),
            Ok(count) => {
                self.inbox.drain(..self.parsed);
                self.parsed = 0;
                self.inbox.extend_from_slice(buffer.get(..count).unwrap_or_default());
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error).context("reading from the switch"),
        }
    }

    /// Where in the inbox the next whole message stands that has come.
    fn next_frame(&mut self) -> Result<Option<Range<usize>>> {
        let waiting = self.inbox.get(self.parsed..).unwrap_or_default();
        let Some(len) = wire::frame_len(waiting).map_err(anyhow::Error::from)? else {
            return Ok(None);
        };
        if waiting.len() < len {
            return Ok(None);
        }
        let start = self.parsed;
        self.parsed += len;
        Ok(Some(start..self.parsed))
    }

    /// The next whole message that has come.
    fn next(&mut self) -> Result<Option<(Xid, Message)>> {
        let Some(at) = self.next_frame()? else { return Ok(None) };
        let frame = self.inbox.get(at).unwrap_or_default();
        if frame.get(1) == Some(&0) {
            return Ok(Some((Xid(0), Message::Hello(Hello { versions: None }))));
        }
        let (_, xid, message) = wire::decode(frame).context("a message of the switch")?;
        Ok(Some((xid, message)))
    }

    /// What every connection has to do with a message that nobody waits for.
    fn handle(&mut self, message: Message) -> Result<()> {
        if let Message::Error(error) = &message {
            bail!("the switch refuses: {}", told(error, self.version));
        }
        if let Message::EchoRequest(body) = message {
            self.send(&Message::EchoReply(body))?;
        }
        Ok(())
    }

    fn wait<T>(
        &mut self,
        what: &str,
        mut wanted: impl FnMut(Xid, &mut Message) -> Option<T>,
    ) -> Result<T> {
        let start = Instant::now();
        loop {
            while let Some((xid, mut message)) = self.next()? {
                if let Some(found) = wanted(xid, &mut message) {
                    return Ok(found);
                }
                self.handle(message)?;
            }
            self.cancel.check()?;
            if start.elapsed() > ANSWER_LIMIT {
                bail!("the switch did not send {what} within {} s", ANSWER_LIMIT.as_secs());
            }
            self.read()?;
        }
    }
}

fn told(error: &ErrorMessage, version: Version) -> String {
    match error.error(version) {
        Some(known) => known.to_string(),
        None => format!("type {} code {}", error.error_type, error.code),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::thread::JoinHandle;

    use openflow::flow::{FlowModCommand, FlowStats};
    use openflow::message::{
        ErrorMessage, Hello, Message, MultipartReply, MultipartReplyBody, MultipartRequestBody,
    };
    use openflow::port::PortStats;
    use openflow::text::parse_flow_mod;
    use openflow::{Error, PortNo, TableId, Version, Xid};

    use super::{Client, Storm};
    use crate::cancel::Cancel;

    const VERSION: Version = Version::V1_3;

    /// What the switch of the tests answers to a message.
    fn answers(message: &Message) -> Vec<Message> {
        match message {
            Message::BarrierRequest => {
                vec![Message::EchoRequest(b"there?".to_vec()), Message::BarrierReply]
            }
            Message::FlowMod(entry) if entry.table_id == TableId(9) => {
                let error = Error::FlowModBadTableId;
                vec![Message::Error(ErrorMessage::new(VERSION, error, Vec::new()))]
            }
            Message::MultipartRequest(request) => {
                assert_eq!(request.body, MultipartRequestBody::PortStats(PortNo::ANY));
                let part = |number, more| {
                    let stats = PortStats { port_no: PortNo(number), ..PortStats::default() };
                    let body = MultipartReplyBody::PortStats(vec![stats]);
                    Message::MultipartReply(MultipartReply { more, body })
                };
                vec![part(1, true), part(2, false)]
            }
            _ => Vec::new(),
        }
    }

    /// Answers one connection until it ends; gives the messages that came.
    fn serve(mut stream: UnixStream) -> Vec<Message> {
        let hello = Message::Hello(Hello { versions: None });
        stream.write_all(&wire::encode(VERSION, Xid(0), &hello).unwrap()).unwrap();
        let mut seen = Vec::new();
        let mut header = [0; wire::HEADER_LEN];
        while stream.read_exact(&mut header).is_ok() {
            let len = wire::frame_len(&header).unwrap().unwrap();
            let mut frame = header.to_vec();
            frame.resize(len, 0);
            stream.read_exact(&mut frame[wire::HEADER_LEN..]).unwrap();
            let (_, xid, message) = wire::decode(&frame).unwrap();
            for answer in answers(&message) {
                // The other side may have heard enough.
                let _ = stream.write_all(&wire::encode(VERSION, xid, &answer).unwrap());
            }
            seen.push(message);
        }
        seen
    }

    fn connected(folder: &std::path::Path) -> (Client, JoinHandle<Vec<Message>>) {
        let path = folder.join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || serve(listener.accept().unwrap().0));
        (Client::connect(&path, VERSION, &Cancel::default()).unwrap(), server)
    }

    #[test]
    fn entries_are_loaded_and_counters_read_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let (mut client, server) = connected(folder.path());
        let entry = parse_flow_mod("in_port=1,actions=output:2", FlowModCommand::Add).unwrap();
        let loaded = client.load((0..3_000).map(|_| Ok(entry.clone()))).unwrap();
        assert_eq!(loaded.entries, 3_000);
        let ports: Vec<PortNo> =
            client.port_stats().unwrap().iter().map(|stats| stats.port_no).collect();
        assert_eq!(ports, [PortNo(1), PortNo(2)]);
        drop(client);
        let seen = server.join().unwrap();
        assert_eq!(seen.iter().filter(|m| matches!(m, Message::FlowMod(_))).count(), 3_000);
        assert!(seen.contains(&Message::EchoReply(b"there?".to_vec())), "echoes are answered");
    }

    #[test]
    fn a_stream_of_messages_goes_round() {
        let entry = parse_flow_mod("in_port=1,actions=output:2", FlowModCommand::Add).unwrap();
        let storm = Storm::new(VERSION, std::iter::repeat_n(entry, 3), 1_000).unwrap();
        let len = storm.bytes.len() / 3;
        let told = |first, wanted| {
            let (bytes, count) = storm.from(first, wanted);
            (bytes.len() / len, count)
        };
        assert_eq!((told(0, 2), told(2, 2), told(3, 9)), ((2, 2), (1, 1), (3, 3)));
    }

    fn of_nothing() -> FlowStats {
        let entry = parse_flow_mod("in_port=1,actions=output:2", FlowModCommand::Add).unwrap();
        FlowStats {
            table_id: entry.table_id,
            duration_s: 0,
            duration_ns: 0,
            priority: entry.priority,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            flags: entry.flags,
            cookie: entry.cookie,
            packet_count: 0,
            byte_count: 0,
            matching: entry.matching,
            instructions: entry.instructions,
        }
    }

    #[test]
    fn entries_of_a_list_are_counted_by_their_lengths() {
        let flows = vec![of_nothing(); 3];
        let body = MultipartReplyBody::Flow(flows);
        let reply = Message::MultipartReply(MultipartReply { more: true, body });
        let frame = wire::encode(VERSION, Xid(1), &reply).unwrap();
        assert_eq!((super::entries_of(&frame), frame[super::MULTIPART_FLAGS]), (3, 1));
        assert_eq!(frame[1], super::MULTIPART_REPLY);
    }

    #[test]
    fn a_refused_entry_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (mut client, server) = connected(folder.path());
        let entry = parse_flow_mod("table=9,actions=drop", FlowModCommand::Add).unwrap();
        let told = client.load([Ok(entry)].into_iter()).unwrap_err().to_string();
        assert!(told.contains("the switch refuses") && told.contains("TABLE"), "{told}");
        drop(client);
        server.join().unwrap();
    }
}
