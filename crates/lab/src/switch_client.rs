//! The lab's OpenFlow connection to a switch: loads flow entries, and is its controller.
//!
//! One thread and [`client::Client`], which asks every switch under test in the same way. No echo
//! request of its own disturbs a measurement, and every wait asks whether the run was interrupted.

use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use channel::{Endpoint, Tls};
use client::{ClientSettings, LoadOutcome};
use openflow::action::MAX_LEN_NO_BUFFER;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::group::{GroupMod, GroupModCommand};
use openflow::message::{ErrorMessage, Message, PacketIn, SwitchConfig};
use openflow::meter::{MeterFlags, MeterMod, MeterModCommand};
use openflow::{GroupId, MeterId, TableId, Version, Xid};
use programs::cancel::Cancel;

/// Longest time for one answer: a barrier after a million flow entries takes longest.
const ANSWER_LIMIT: Duration = Duration::from_secs(300);

/// Longest time for the hello.
const HELLO_LIMIT: Duration = Duration::from_secs(20);

/// Longest time for a switch that connects by itself: it may back off for half a minute.
const SWITCH_LIMIT: Duration = Duration::from_secs(60);

/// The switch answers a message with an error: its name and clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the switch refuses {0}")]
pub struct RefusedMessage(String);

/// Fails with the first refusal, if there is one.
fn refused_first(what: &str, loaded: &LoadOutcome) -> Result<()> {
    let Some(first) = loaded.refusals.first() else { return Ok(()) };
    Err(RefusedMessage(format!("{what} {}: {}", first.index + 1, first.why)).into())
}

/// Cost of loading.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// Flow entries.
    pub entries: u64,
    /// Seconds from the first byte to the barrier reply.
    pub seconds: f64,
}

/// A connection, with what the lab asks for beside what every client does.
#[derive(Debug)]
pub struct SwitchClient {
    client: client::Client,
}

/// The settings of every connection of the lab.
fn settings(version: Version, cancel: &Cancel) -> ClientSettings {
    let cancel = cancel.clone();
    let mut settings = ClientSettings::of(&[version])
        .with_answer_deadline(ANSWER_LIMIT)
        .while_true(move || cancel.check().is_ok());
    settings.connection.hello_deadline = HELLO_LIMIT;
    settings.connection.probe_after = None;
    settings
}

/// Listens without waiting for a switch.
pub(crate) fn listen(at: impl ToSocketAddrs) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Waits for a switch that connects by itself.
fn accept(host: &str, port: u16, cancel: &Cancel) -> Result<TcpStream> {
    let place = format!("ptcp:{port}:{host}");
    let listener = listen((host, port)).with_context(|| place.clone())?;
    let mut accepted = None;
    cancel.poll(SWITCH_LIMIT, || {
        accepted = listener.accept().ok();
        accepted.is_some()
    })?;
    let Some((stream, _)) = accepted else {
        bail!("{place}: no switch connected within {} s", SWITCH_LIMIT.as_secs());
    };
    Ok(stream)
}

impl Deref for SwitchClient {
    type Target = client::Client;

    fn deref(&self) -> &Self::Target {
        &self.client
    }
}

impl DerefMut for SwitchClient {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.client
    }
}

impl SwitchClient {
    /// Connects and says that it speaks that version; with `tls` where the endpoint wants it.
    pub fn connect(
        endpoint: &Endpoint,
        version: Version,
        tls: Option<Tls>,
        cancel: &Cancel,
    ) -> Result<Self> {
        let mut settings = settings(version, cancel);
        settings.tls = tls;
        let client = match endpoint {
            Endpoint::PassiveTcp { host, port } => {
                let stream = accept(host, *port, cancel)?;
                client::Client::over_tcp(stream, &endpoint.to_string(), settings)
            }
            Endpoint::PassiveSsl { .. } | Endpoint::PassiveUnix(_) => {
                bail!("{endpoint}: the lab waits for a switch over ptcp: only")
            }
            Endpoint::Tcp { .. } | Endpoint::Ssl { .. } | Endpoint::Unix(_) => {
                client::Client::connect(endpoint, settings)
            }
        };
        Ok(Self { client: client? })
    }

    /// The same over the connection that a switch has made by itself.
    pub fn over(stream: TcpStream, version: Version, cancel: &Cancel) -> Result<Self> {
        let client = client::Client::over_tcp(stream, "the switch", settings(version, cancel));
        Ok(Self { client: client? })
    }

    /// Deletes all flow entries by one flow-mod, and all groups and meters where the version has
    /// some. A switch that refuses to delete groups or meters has none.
    pub fn clear(&mut self) -> Result<()> {
        let version = self.version();
        let mut entries = FlowMod::new(FlowModCommand::Delete);
        if version.has_pipeline() {
            entries.table_id = TableId::ALL;
        }
        self.send_all([Message::FlowMod(entries)])?;
        if !version.has_groups() {
            return Ok(());
        }
        let (command, group_id) = (GroupModCommand::Delete, GroupId::ALL);
        let group = GroupMod { command, group_id, ..GroupMod::default() };
        let meter = MeterMod {
            command: MeterModCommand::Delete,
            flags: MeterFlags::empty(),
            meter_id: MeterId::ALL,
            bands: Vec::new(),
        };
        let meter = version.has_meters().then_some(Message::MeterMod(meter));
        self.client.load([Message::GroupMod(group)].into_iter().chain(meter))?;
        Ok(())
    }

    /// Connects over the control socket, which speaks OpenFlow from the end of a line on.
    pub fn over_control(path: &Path, version: Version, cancel: &Cancel) -> Result<Self> {
        let client = client::Client::over_control(path, None, settings(version, cancel));
        Ok(Self { client: client? })
    }

    /// Adds the flow entries and waits until they are in force.
    pub fn load(&mut self, entries: impl Iterator<Item = Result<FlowMod>>) -> Result<Loaded> {
        let start = Instant::now();
        let mut wrong = None;
        let messages = entries.map_while(|entry| match entry {
            Ok(entry) => Some(Message::FlowMod(entry)),
            Err(error) => {
                wrong = Some(error);
                None
            }
        });
        let loaded = self.client.load(messages)?;
        if let Some(error) = wrong {
            return Err(error);
        }
        refused_first("flow entry", &loaded)?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(Loaded { entries: loaded.messages, seconds })
    }

    /// Sends messages and waits until they are in force.
    pub fn send_all(&mut self, messages: impl IntoIterator<Item = Message>) -> Result<()> {
        let loaded = self.client.load(messages)?;
        refused_first("message", &loaded)
    }

    /// Sends a message and waits until it is carried out: the error that answers it, and what else
    /// came meanwhile.
    pub fn carry_out(&mut self, message: &Message) -> Result<(Option<ErrorMessage>, Vec<Message>)> {
        let sent = self.client.send(message)?;
        self.client.barrier()?;
        let (mut refused, mut came) = (None, Vec::new());
        for (xid, message) in self.take_unclaimed()? {
            if xid == sent
                && let Message::Error(error) = message
            {
                refused = Some(error);
            } else {
                came.push(message);
            }
        }
        Ok((refused, came))
    }

    /// Messages that have come and that no caller has waited for.
    pub fn take_unclaimed(&mut self) -> Result<Vec<(Xid, Message)>> {
        self.client.poll()?;
        let next = || self.client.next_within(Duration::ZERO).transpose();
        Ok(std::iter::from_fn(next).collect::<Result<_, _>>()?)
    }

    /// Asks for packet-ins, whole packets also where no entry matched. Open vSwitch sends none to a
    /// controller that it did not connect to by itself, unless that says how long they may be.
    pub fn want_packet_ins(&mut self) -> Result<()> {
        let config = SwitchConfig { flags: 0, miss_send_len: MAX_LEN_NO_BUFFER };
        self.send_all([Message::SetConfig(config)])
    }

    /// The next packet-in, waited for so long; other messages are passed over.
    pub fn next_packet_in(&mut self, limit: Duration) -> Result<Option<PacketIn>> {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Some((_, message)) = self.client.next_within(left)? else { return Ok(None) };
            if let Message::PacketIn(packet_in) = message {
                return Ok(Some(packet_in));
            }
            if let Message::Error(error) = message {
                bail!("the switch refuses: {}", error.explained(self.client.version()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::time::Instant;

    use channel::{Connection, ConnectionSettings, Endpoint, Event, Side};
    use openflow::flow::FlowModCommand;
    use openflow::message::{ErrorMessage, Message};
    use openflow::text::parse_flow_mod;
    use openflow::{Error, TableId, Version};

    use super::SwitchClient;
    use programs::cancel::Cancel;

    const VERSION: Version = Version::V1_3;

    /// A switch without groups and meters that refuses entries of table 9, until the connection
    /// ends; which tables were named by deletions.
    fn serve(mut stream: UnixStream) -> Vec<TableId> {
        let mut deleted = Vec::new();
        let now = Instant::now();
        let mut switch = Connection::new(ConnectionSettings::new(Side::Switch), now);
        let mut bytes = vec![0; 1 << 16];
        // The other side may have heard enough.
        while stream.write_all(switch.transmit()).is_ok() {
            switch.transmitted(switch.transmit().len(), now);
            match stream.read(&mut bytes) {
                Ok(count) if count > 0 => switch.receive(&bytes[..count], now),
                Ok(_) | Err(_) => return deleted,
            }
            while let Some(event) = switch.poll_event() {
                let Event::Message { xid, message } = event else { continue };
                if let Message::FlowMod(entry) = &message
                    && entry.command == FlowModCommand::Delete
                {
                    deleted.push(entry.table_id);
                }
                let error = if matches!(message, Message::GroupMod(_) | Message::MeterMod(_)) {
                    Some(Error::BadRequestBadType)
                } else {
                    let is_refused =
                        matches!(&message, Message::FlowMod(entry) if entry.table_id == TableId(9));
                    is_refused.then_some(Error::FlowModBadTableId)
                };
                if message == Message::BarrierRequest {
                    switch.send_as(xid, &Message::BarrierReply).unwrap();
                } else if let Some(error) = error {
                    let error = ErrorMessage::new(VERSION, error, Vec::new());
                    switch.send_as(xid, &Message::Error(error)).unwrap();
                }
            }
        }
        deleted
    }

    /// Does `work` with a client of it; the tables that deletions have named.
    fn served(work: impl FnOnce(&mut SwitchClient)) -> Vec<TableId> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || serve(listener.accept().unwrap().0));
        let (endpoint, cancel) = (Endpoint::Unix(path), Cancel::default());
        work(&mut SwitchClient::connect(&endpoint, VERSION, None, &cancel).unwrap());
        server.join().unwrap()
    }

    #[test]
    fn entries_are_loaded_up_to_one_that_is_not_understood() {
        let entry = parse_flow_mod("in_port=1,actions=output:2", FlowModCommand::Add).unwrap();
        served(|client| {
            let loaded = client.load((0..3_000).map(|_| Ok(entry.clone()))).unwrap();
            assert_eq!(loaded.entries, 3_000);
            let refused = client.load([Ok(entry), Err(anyhow::anyhow!("line 2"))].into_iter());
            assert_eq!(refused.unwrap_err().to_string(), "line 2");
        });
    }

    #[test]
    fn clearing_is_of_all_tables_and_needs_no_groups_and_meters() {
        assert_eq!(served(|client| client.clear().unwrap()), [TableId::ALL]);
    }

    #[test]
    fn a_refused_entry_is_reported() {
        let entry = parse_flow_mod("table=9,actions=drop", FlowModCommand::Add).unwrap();
        served(|client| {
            let refused = client.load([Ok(entry)].into_iter()).unwrap_err().to_string();
            assert!(refused.starts_with("the switch refuses flow entry 1: "), "{refused}");
            assert!(refused.contains("TABLE"), "{refused}");
        });
    }
}
