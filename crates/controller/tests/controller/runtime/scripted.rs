//! A switch by hand over a real stream, and a controller on a thread of its own beside it.

use channel::{Connection, ConnectionSettings, Endpoint, Event, Link, Side, Stream, Tls};
use controller::{AppList, Controller, Options, PacketIn, Running};
use openflow::message::{Features, MultipartReply, MultipartReplyBody, PacketInReason};
use openflow::{Cookie, DatapathId, Field, Match, Message, TableId, Version, Xid};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest that anything here may take; far more than it does on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The lines that a controller has reported.
pub(crate) type Lines = Arc<Mutex<Vec<String>>>;

/// A controller that listens on a free port of this machine, unless the options say more.
pub(crate) fn start(apps: AppList, options: Options) -> (Running, Lines) {
    let lines = Lines::default();
    let mut options = options;
    if options.listen.is_empty() {
        options.listen.push("ptcp:0:127.0.0.1".parse().unwrap());
    }
    let noted = lines.clone();
    let controller = Controller::new(apps, options).unwrap();
    let running = controller.start(move |line| noted.lock().unwrap().push(line.to_owned()));
    (running.unwrap(), lines)
}

/// Runs the switches' side of a test.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        tokio::time::timeout(DEADLINE, test).await.expect("the test takes too long")
    })
}

/// Asks again until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < end, "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// One connection of a switch.
pub(crate) struct Scripted {
    link: Link,
    dpid: DatapathId,
    auxiliary_id: u8,
    has_sent_ports: bool,
}

impl Scripted {
    /// Connects and says hello; nothing is read yet.
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        tls: Option<&Tls>,
        dpid: u64,
        auxiliary_id: u8,
    ) -> Self {
        let stream = Stream::connect(endpoint, tls).await.unwrap();
        let settings = ConnectionSettings::new(Side::Switch).with_versions(&[Version::V1_3]);
        Self {
            link: Link::new(stream, settings),
            dpid: DatapathId(dpid),
            auxiliary_id,
            has_sent_ports: false,
        }
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        self.link.connection()
    }

    /// The next message that is not answered here, or the end.
    pub(crate) async fn next(&mut self) -> Option<(Xid, Message)> {
        loop {
            while let Some(event) = self.link.connection().poll_event() {
                match event {
                    Event::Message { xid, message } => {
                        if !self.answer(xid, &message) {
                            return Some((xid, message));
                        }
                    }
                    Event::Up { .. } | Event::Refused { .. } => {}
                    Event::Down(_) => return None,
                }
            }
            self.link.turn().await;
        }
    }

    /// Until an auxiliary connection has said all that it is asked.
    pub(crate) async fn known(&mut self) {
        while !self.has_sent_ports {
            self.link.turn().await;
            while let Some(event) = self.link.connection().poll_event() {
                if let Event::Message { xid, message } = event {
                    self.answer(xid, &message);
                }
            }
            assert!(!self.connection().is_over(), "it stays up");
        }
    }

    /// Answers what a controller must ask; whether it was that.
    fn answer(&mut self, xid: Xid, message: &Message) -> bool {
        let answer = if let Message::FeaturesRequest = message {
            let (datapath_id, auxiliary_id) = (self.dpid, self.auxiliary_id);
            let features = Features { datapath_id, auxiliary_id, ..Features::default() };
            Message::FeaturesReply(features)
        } else if let Message::MultipartRequest(_) = message {
            self.has_sent_ports = true;
            let body = MultipartReplyBody::PortDesc(Vec::new());
            Message::MultipartReply(MultipartReply { more: false, body })
        } else if let Message::BarrierRequest = message {
            Message::BarrierReply
        } else {
            return false;
        };
        // The controller may have ended it already.
        self.connection().send_as(xid, &answer).ok();
        true
    }

    /// Until the controller has begun with it: its first flow-mod.
    pub(crate) async fn ready(&mut self) {
        while !matches!(self.next().await.expect("it stays up"), (_, Message::FlowMod(_))) {}
    }

    /// Sends a packet-in and waits for the packet-out that brings the same bytes back; whether one
    /// came before the end.
    pub(crate) async fn round_trip(&mut self, data: &[u8]) -> bool {
        if self.connection().send_as(Xid(0), &packet_in(data)).is_err() {
            return false;
        }
        while let Some((_, message)) = self.next().await {
            if matches!(&message, Message::PacketOut(out) if out.data == data) {
                return true;
            }
        }
        false
    }

    /// Serves the connection until it ends.
    pub(crate) async fn until_end(&mut self) {
        while self.next().await.is_some() {}
    }
}

pub(crate) fn packet_in(data: &[u8]) -> Message {
    Message::PacketIn(PacketIn {
        buffer_id: None,
        total_len: u16::try_from(data.len()).unwrap(),
        reason: PacketInReason::NoMatch,
        table_id: TableId(0),
        cookie: Cookie(u64::MAX),
        matching: Match::any().with(Field::InPort, 1),
        data: data.to_vec(),
        userdata: Vec::new(),
        continuation: Vec::new(),
        controller_id: 0,
    })
}
