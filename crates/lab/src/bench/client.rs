//! The bench's OpenFlow connection to a switch: loads flow entries and reads port counters.
//!
//! OpenFlow over a Unix socket, one thread, no state beyond the bytes that have come: every switch
//! under test is asked the same way. It must never wait without asking whether the run was
//! interrupted.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use openflow::flow::FlowMod;
use openflow::message::{
    ErrorMessage, Hello, Message, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::port::PortStats;
use openflow::{PortNo, Version, Xid};

use crate::cancel::Cancel;

/// How long one answer may take: a barrier behind a million flow entries is the longest.
const ANSWER_LIMIT: Duration = Duration::from_secs(300);

/// How long a read waits before it asks whether to go on.
const STEP: Duration = Duration::from_millis(20);

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

    /// The next whole message that has come.
    fn next(&mut self) -> Result<Option<(Xid, Message)>> {
        let waiting = self.inbox.get(self.parsed..).unwrap_or_default();
        let Some(len) = wire::frame_len(waiting).map_err(anyhow::Error::from)? else {
            return Ok(None);
        };
        let Some(frame) = waiting.get(..len) else { return Ok(None) };
        self.parsed += len;
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

    use openflow::flow::FlowModCommand;
    use openflow::message::{
        ErrorMessage, Hello, Message, MultipartReply, MultipartReplyBody, MultipartRequestBody,
    };
    use openflow::port::PortStats;
    use openflow::text::parse_flow_mod;
    use openflow::{Error, PortNo, TableId, Version, Xid};

    use super::Client;
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
