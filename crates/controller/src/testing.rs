//! A test kit for apps: switches without a network, in virtual time.
//!
//! Events go in, messages come out. The apps run in a real shard and every message passes the codec
//! of the switch's version, so a message that the version cannot say never arrives here either.
//! Sockets and flow tables are left out: a switch keeps what it is sent for the test to
//! look at, and answers only what every switch answers, or what [`TestNetwork::answer`] says.
//!
//! The test of an app, whole:
//!
//! ```
//! use controller::testing::{TestNetwork, TestSwitch};
//! use controller::{AppList, apps::Hub};
//! use openflow::Message;
//!
//! let mut network = TestNetwork::new(AppList::one(|| Hub));
//! let sw = network.add_switch(TestSwitch::new(1, 4));
//! network.take_messages(sw);
//! network.packet_in(sw, 3, &[0xff; 60]);
//! assert!(matches!(network.take_messages(sw)[..], [Message::PacketOut(_)]));
//! ```

use crate::app_list::AppList;
use crate::events::SwitchPort;
use crate::handle::Handle;
use crate::options::Options;
use crate::session::{Outcome, Session};
use crate::shard::Shard;
use crate::shared::{Inbox, Shared};
use crate::stats::Stats;
use channel::{Connection, ConnectionSettings, Event, Side};
use openflow::action::Action;
use openflow::message::{
    Features, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody, PacketIn,
    PacketInReason, PacketOut, SwitchConfig,
};
use openflow::port::{PortDesc, PortReason, PortState, PortStatus};
use openflow::{Cookie, DatapathId, Field, MacAddr, Match, Message, PortNo, TableId, Version, Xid};
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Packets that may go over links before a test fails since they go round for ever.
const PACKETS_MAX: usize = 100_000;

/// Ports of one part of the answer that names them.
const PART_PORTS: usize = 1_000;

/// Virtual time after which a future that is waited for is given up.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// A switch to be made.
#[derive(Clone, Debug)]
pub struct TestSwitch {
    dpid: DatapathId,
    version: Version,
    n_tables: u8,
    ports: Vec<PortDesc>,
}

impl TestSwitch {
    /// A switch of 1.3 with the ports 1 to `ports`, all up.
    #[must_use]
    pub fn new(dpid: u64, ports: u32) -> Self {
        let ports = (1..=ports)
            .map(|port| PortDesc {
                port_no: PortNo(port),
                hw_addr: MacAddr::from_u64(
                    0x0200_0000_0000 | (dpid & 0xffff) << 16 | u64::from(port),
                ),
                name: format!("p{port}"),
                ..PortDesc::default()
            })
            .collect();
        Self { dpid: DatapathId(dpid), version: Version::V1_3, n_tables: 254, ports }
    }

    /// The same with another version.
    #[must_use]
    pub fn with_version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// The same with another number of flow tables than 254.
    #[must_use]
    pub fn with_tables(mut self, n_tables: u8) -> Self {
        self.n_tables = n_tables;
        self
    }

    /// The same with other ports.
    #[must_use]
    pub fn with_ports(mut self, ports: Vec<PortDesc>) -> Self {
        self.ports = ports;
        self
    }
}

/// A test's answers in a switch's place.
type Answering = Box<dyn FnMut(&Message) -> Option<Message>>;

/// Both ends of one connection.
struct Simulated {
    dpid: DatapathId,
    session: Session,
    controller: Connection,
    switch: Connection,
    n_tables: u8,
    ports: BTreeMap<PortNo, PortDesc>,
    got: Vec<Message>,
    /// Frames that packet-outs have sent, by the port they leave by.
    left: Vec<(PortNo, Vec<u8>)>,
    answering: Option<Answering>,
    is_over: bool,
}

/// A controller with switches, all in memory. See the module.
pub struct TestNetwork {
    shard: Shard,
    inbox: Inbox,
    options: Options,
    started: Instant,
    now: Instant,
    switches: BTreeMap<DatapathId, Simulated>,
    links: HashMap<SwitchPort, SwitchPort>,
    outcomes: Vec<Outcome>,
}

impl TestNetwork {
    /// A controller that runs these apps, and no switch.
    #[must_use]
    pub fn new(apps: AppList) -> Self {
        // Each switch has the version of its own.
        Self::with_options(&apps, Options { versions: Version::ALL.to_vec(), ..Options::default() })
    }

    /// The same with bounds and times other than the usual ones. Endpoints and shards do not count.
    #[must_use]
    pub fn with_options(apps: &AppList, options: Options) -> Self {
        let options = Options { shards: 1, ..options };
        let (shared, mut inboxes) = Shared::new(&options);
        let inbox = inboxes.pop().expect("one shard has one inbox");
        // An epoch only: what passes of it is up to the test.
        let now = Instant::now();
        Self {
            shard: Shard::of(shared, 0, apps.make(), now),
            inbox,
            options,
            started: now,
            now,
            switches: BTreeMap::new(),
            links: HashMap::new(),
            outcomes: Vec::new(),
        }
    }

    /// Connects a switch, which is ready when this returns. One with the same datapath id takes the
    /// place of the one before.
    pub fn add_switch(&mut self, switch: TestSwitch) -> DatapathId {
        let TestSwitch { dpid, version, n_tables, ports } = switch;
        let settings = ConnectionSettings::new(Side::Switch).with_versions(&[version]);
        let simulated = Simulated {
            dpid,
            session: self.shard.session(&format!("test:{dpid}"), self.now),
            controller: Connection::new(self.options.connection(), self.now),
            switch: Connection::new(settings, self.now),
            n_tables,
            ports: ports.into_iter().map(|port| (port.port_no, port)).collect(),
            got: Vec::new(),
            left: Vec::new(),
            answering: None,
            is_over: false,
        };
        if let Some(mut before) = self.switches.insert(dpid, simulated) {
            self.shard.end(&mut before.session);
        }
        self.run_until_idle();
        dpid
    }

    /// Ends a switch's connection.
    pub fn disconnect(&mut self, dpid: DatapathId) {
        if let Some(simulated) = self.switches.get_mut(&dpid) {
            simulated.controller.stream_ended(channel::DownReason::PeerClosed);
        }
        self.run_until_idle();
        self.switches.remove(&dpid);
        self.links.retain(|from, to| from.dpid != dpid && to.dpid != dpid);
    }

    /// Joins two ports: what the controller has sent out of one comes in by the other as a
    /// packet-in, since there are no flow tables. Takes datapath ids and port numbers.
    pub fn link(&mut self, one: (u64, u32), other: (u64, u32)) {
        let port = |(dpid, port)| SwitchPort { dpid: DatapathId(dpid), port: PortNo(port) };
        self.links.insert(port(one), port(other));
        self.links.insert(port(other), port(one));
    }

    /// A packet comes in by a port and matches no flow entry.
    pub fn packet_in(&mut self, dpid: DatapathId, port: u32, frame: &[u8]) {
        self.send(dpid, Xid(0), &packet_in(PortNo(port), frame));
    }

    /// The switch sends any message.
    ///
    /// # Panics
    /// When there is no such switch, or its version cannot encode the message.
    pub fn send(&mut self, dpid: DatapathId, xid: Xid, message: &Message) {
        let simulated = self.simulated(dpid);
        simulated.switch.send_as(xid, message).expect("the switch's version has this message");
        self.run_until_idle();
    }

    /// The link of a port goes down or comes up.
    ///
    /// # Panics
    /// When there is no such switch or port.
    pub fn set_port_up(&mut self, dpid: DatapathId, port: u32, is_up: bool) {
        let desc = self.simulated(dpid).ports.get_mut(&PortNo(port)).expect("there is such a port");
        desc.state.set(PortState::LINK_DOWN, !is_up);
        let status = PortStatus { reason: PortReason::Modify, desc: desc.clone() };
        self.send(dpid, Xid(0), &Message::PortStatus(status));
    }

    /// From now on `answer` is asked about each message that the switch gets: what it gives is sent
    /// back with the message's xid. What it does not answer is answered as usual.
    ///
    /// # Panics
    /// When there is no such switch.
    pub fn answer(
        &mut self,
        dpid: DatapathId,
        answer: impl FnMut(&Message) -> Option<Message> + 'static,
    ) {
        self.simulated(dpid).answering = Some(Box::new(answer));
    }

    /// Messages that the switch has got since the last call, in order, but for those of
    /// connecting (hello, features, ports, set-config) and echo.
    ///
    /// # Panics
    /// When there is no such switch.
    pub fn take_messages(&mut self, dpid: DatapathId) -> Vec<Message> {
        std::mem::take(&mut self.simulated(dpid).got)
    }

    /// Changes of connections since the last call.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// Lets virtual time pass, with the ticks, timers and deadlines in it.
    pub fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        self.run_until_idle();
        while let Some(due) = self.next_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.run_timeouts();
            self.run_until_idle();
        }
        self.now = end;
    }

    /// The virtual time since the controller's start.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now - self.started
    }

    /// A handle, as other threads would have it.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.shard.handle()
    }

    /// The counts of the controller.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shard.handle().stats()
    }

    /// Runs a future, of a handle say, while switches answer and virtual time passes as far as it
    /// must.
    ///
    /// # Panics
    /// When the future is not done within ten minutes of virtual time.
    pub fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        let give_up = self.now + WAIT_MAX;
        loop {
            for _ in 0..2 {
                if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                    return output;
                }
                self.run_until_idle();
            }
            let due = self.next_timeout().filter(|due| *due <= give_up);
            let due = due.expect("the future is done within ten minutes of virtual time");
            self.advance(due.saturating_duration_since(self.now));
        }
    }

    fn simulated(&mut self, dpid: DatapathId) -> &mut Simulated {
        self.switches.get_mut(&dpid).expect("there is such a switch")
    }

    fn next_timeout(&self) -> Option<Instant> {
        let of_one = |one: &Simulated| {
            let of_shard = self.shard.next_timeout(&one.session);
            let of_ends = [one.controller.next_timeout(), one.switch.next_timeout()];
            of_ends.into_iter().chain([of_shard]).flatten().min()
        };
        self.switches.values().filter(|one| !one.is_over).filter_map(of_one).min()
    }

    fn run_timeouts(&mut self) {
        let (shard, now) = (&mut self.shard, self.now);
        for one in self.switches.values_mut() {
            one.controller.handle_timeout(now);
            one.switch.handle_timeout(now);
            if shard.next_timeout(&one.session).is_some_and(|due| due <= now) {
                shard.handle_timeout(&mut one.session, &mut one.controller, now);
            }
        }
    }

    /// Until nothing is on its way any more.
    fn run_until_idle(&mut self) {
        let mut packets = 0;
        loop {
            let mut has_moved = false;
            while let Ok(event) = self.inbox.try_recv() {
                has_moved = true;
                self.shard.deliver_to_all(&event);
            }
            let mut on_links = Vec::new();
            for (dpid, one) in &mut self.switches {
                has_moved |= one.turn(&mut self.shard, self.now);
                self.outcomes.extend(one.session.take_outcomes());
                for (port, frame) in one.left.drain(..) {
                    let to = self.links.get(&SwitchPort { dpid: *dpid, port });
                    on_links.extend(to.map(|to| (*to, frame)));
                }
            }
            for (at, frame) in on_links {
                packets += 1;
                assert!(packets < PACKETS_MAX, "packets go round for ever");
                if let Some(one) = self.switches.get_mut(&at.dpid).filter(|one| one.is_up(at.port))
                    && one.switch.send_as(Xid(0), &packet_in(at.port, &frame)).is_ok()
                {
                    has_moved = true;
                }
            }
            if !has_moved {
                break;
            }
        }
    }
}

impl Simulated {
    /// Carries what waits on both ends; whether anything did.
    fn turn(&mut self, shard: &mut Shard, now: Instant) -> bool {
        if self.is_over {
            return false;
        }
        let mut has_moved = carry(&mut self.switch, &mut self.controller, now);
        while let Some(event) = self.controller.poll_event() {
            has_moved = true;
            self.is_over |= matches!(event, Event::Down(_));
            shard.take_event(&mut self.session, &mut self.controller, event, now);
        }
        shard.finish_turn(&mut self.session, &mut self.controller, now);
        has_moved |= carry(&mut self.controller, &mut self.switch, now);
        while let Some(event) = self.switch.poll_event() {
            has_moved = true;
            if let Event::Message { xid, message } = event {
                self.take(xid, message);
            }
        }
        has_moved
    }

    /// The switch gets a message.
    fn take(&mut self, xid: Xid, message: Message) {
        let answer = self.answering.as_mut().and_then(|answer| answer(&message));
        let answers = answer.map_or_else(|| self.usual_answers(&message), |answer| vec![answer]);
        for answer in answers {
            self.switch.send_as(xid, &answer).expect("the switch's version has this answer");
        }
        if let Message::PacketOut(packet_out) = &message {
            self.send_out(packet_out);
        }
        let is_of_connecting = matches!(
            message,
            Message::FeaturesRequest
                | Message::SetConfig(SwitchConfig { flags: 0, .. })
                | Message::MultipartRequest(MultipartRequest {
                    body: MultipartRequestBody::PortDesc,
                    ..
                })
        );
        if !is_of_connecting {
            self.got.push(message);
        }
    }

    /// A packet leaves by ports that are up.
    fn send_out(&mut self, packet_out: &PacketOut) {
        let (frame, in_port) = (&packet_out.data, packet_out.in_port);
        for action in &packet_out.actions {
            let Action::Output { port, .. } = action else { continue };
            let out: Vec<PortNo> = match *port {
                PortNo::FLOOD | PortNo::ALL => {
                    self.ports.keys().copied().filter(|port| *port != in_port).collect()
                }
                PortNo::IN_PORT => vec![in_port],
                port => vec![port],
            };
            let out = out.into_iter().filter(|port| self.is_up(*port));
            self.left.extend(out.map(|port| (port, frame.clone())).collect::<Vec<_>>());
        }
    }

    /// The answer that every switch gives, in its parts.
    fn usual_answers(&self, message: &Message) -> Vec<Message> {
        let has_port_desc = self.switch.version().is_some_and(Version::has_port_desc);
        if let Message::FeaturesRequest = message {
            let ports = if has_port_desc { Vec::new() } else { self.ports() };
            let (datapath_id, n_tables) = (self.dpid, self.n_tables);
            let features = Features { datapath_id, n_tables, ports, ..Features::default() };
            vec![Message::FeaturesReply(features)]
        } else if let Message::BarrierRequest = message {
            vec![Message::BarrierReply]
        } else if let Message::MultipartRequest(MultipartRequest {
            body: MultipartRequestBody::PortDesc,
            ..
        }) = message
        {
            let ports = self.ports();
            let mut parts = ports.chunks(PART_PORTS).map(<[PortDesc]>::to_vec).collect::<Vec<_>>();
            let last = parts.pop().unwrap_or_default();
            let parts = parts.into_iter().map(|ports| (true, ports)).chain([(false, last)]);
            let reply = |(more, ports)| {
                let body = MultipartReplyBody::PortDesc(ports);
                Message::MultipartReply(MultipartReply { more, body })
            };
            parts.map(reply).collect()
        } else {
            Vec::new()
        }
    }

    fn ports(&self) -> Vec<PortDesc> {
        self.ports.values().cloned().collect()
    }

    fn is_up(&self, port: PortNo) -> bool {
        self.ports.get(&port).is_some_and(|desc| !desc.state.contains(PortState::LINK_DOWN))
    }
}

/// Carries what one end has to send to the other; whether there was anything.
fn carry(from: &mut Connection, to: &mut Connection, now: Instant) -> bool {
    let bytes = from.transmit().to_vec();
    from.transmitted(bytes.len(), now);
    to.receive(&bytes, now);
    !bytes.is_empty()
}

fn packet_in(port: PortNo, frame: &[u8]) -> Message {
    Message::PacketIn(PacketIn {
        buffer_id: None,
        total_len: u16::try_from(frame.len()).unwrap_or(u16::MAX),
        reason: PacketInReason::NoMatch,
        table_id: TableId(0),
        cookie: Cookie(u64::MAX),
        matching: Match::any().with(Field::InPort, port.0.into()),
        data: frame.to_vec(),
        userdata: Vec::new(),
        continuation: Vec::new(),
        controller_id: 0,
    })
}
