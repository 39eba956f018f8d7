//! A network of switches with real datapaths, joined by links, with hosts at its ports.
//!
//! The controller's side is its test kit; flow-mods and packet-outs go to a datapath, whose frames
//! go over links to other datapaths or arrive at a host. A frame that goes round for ever fails the
//! test.

use controller::AppList;
use controller::apps::{AppConfig, AppName, ReadyApps};
use controller::testing::{TestNetwork, TestSwitch};
use controller::topology::Topology;
use datapath::fast::Fast;
use datapath::{Datapath, DatapathConfig, Miss, Nanos, Out, Settings, Verdict};
use openflow::message::{
    AsyncEvent, ErrorMessage, MultipartReply, MultipartReplyBody, MultipartRequest,
    MultipartRequestBody, SwitchConfig,
};
use openflow::port::{PortDesc, PortState};
use openflow::text::format_flow_stats;
use openflow::{DatapathId, Error, MacAddr, Message, PortNo, Version, Xid};
use packet::PacketBuf;
use packet::build::{Arp, FrameBuilder, Ipv4};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Frames that one event may cause.
const FRAMES_MAX: usize = 5_000;

/// Flow tables of a switch.
const N_TABLES: u8 = 3;

/// A port by the numbers of switch and port.
pub(crate) type At = (u64, u32);

struct OneSwitch {
    datapath: Fast,
    version: Version,
    now: Nanos,
}

/// The network.
pub(crate) struct Fabric {
    pub(crate) network: TestNetwork,
    pub(crate) topology: Arc<Topology>,
    pub(crate) printed: Arc<Mutex<String>>,
    switches: BTreeMap<u64, Rc<RefCell<OneSwitch>>>,
    links: HashMap<At, At>,
    cut: Vec<At>,
    arrived: Vec<(At, Vec<u8>)>,
    pub(crate) errors: Vec<(u64, Error)>,
    pub(crate) packet_ins: usize,
}

impl Fabric {
    /// A controller with these apps and settings, and no switch.
    pub(crate) fn new(apps: &[AppName], settings: &str) -> Self {
        Self::with(apps, settings, AppList::new(Vec::new))
    }

    /// The same with further apps behind those.
    pub(crate) fn with(apps: &[AppName], settings: &str, behind: AppList) -> Self {
        let printed = Arc::new(Mutex::new(String::new()));
        let page = Arc::clone(&printed);
        let print: controller::apps::Print = Arc::new(move |text| {
            let mut page = page.lock().unwrap();
            page.push_str(text);
            page.push('\n');
        });
        let config = AppConfig::parse(settings).unwrap();
        let ready = ReadyApps::new(apps, &config, &print).unwrap();
        Self { topology: ready.topology, printed, ..Self::of(ready.list.then(behind)) }
    }

    /// A controller with these apps, and no switch.
    pub(crate) fn of(apps: AppList) -> Self {
        Self {
            network: TestNetwork::new(apps),
            topology: Arc::default(),
            printed: Arc::default(),
            switches: BTreeMap::new(),
            links: HashMap::new(),
            cut: Vec::new(),
            arrived: Vec::new(),
            errors: Vec::new(),
            packet_ins: 0,
        }
    }

    /// Connects a switch with ports from 1 on.
    pub(crate) fn add_switch(&mut self, dpid: u64, ports: u32, version: Version) {
        let miss = if version.has_table_miss_entry() { Miss::Drop } else { Miss::Controller };
        let settings = Settings { miss, ..Settings::default() };
        let config = DatapathConfig { n_tables: N_TABLES, settings, ..DatapathConfig::default() };
        let now = Nanos(u64::try_from(self.network.now().as_nanos()).unwrap());
        let mut datapath = Fast::new(config, dpid);
        for port in 1..=ports {
            datapath.port_set(desc(port), now);
        }
        let one = OneSwitch { datapath, version, now };
        let one = Rc::new(RefCell::new(one));
        self.switches.insert(dpid, Rc::clone(&one));
        let test_switch = TestSwitch::new(dpid, ports).with_version(version).with_tables(N_TABLES);
        let id = self.network.add_switch(test_switch);
        self.network.answer(id, move |message| one.borrow().statistics(message));
        self.run_until_idle();
    }

    /// A switch is told something from beside the apps.
    pub(crate) fn send_all(&mut self, dpid: u64, messages: Vec<Message>) {
        let mut frames = VecDeque::new();
        for message in messages {
            self.take(dpid, message, &mut frames);
        }
        self.carry(frames);
        self.run_until_idle();
    }

    /// A switch is gone, with its connection and its forwarding.
    pub(crate) fn disconnect(&mut self, dpid: u64) {
        self.switches.remove(&dpid);
        self.network.disconnect(DatapathId(dpid));
        self.run_until_idle();
    }

    /// Joins two ports by a cable.
    pub(crate) fn link(&mut self, one: At, other: At) {
        self.links.insert(one, other);
        self.links.insert(other, one);
    }

    /// Both ends of a link go down, or come up.
    pub(crate) fn set_link_up(&mut self, one: At, is_up: bool) {
        for at in [Some(one), self.links.get(&one).copied()].into_iter().flatten() {
            self.set_port_up(at, is_up);
        }
    }

    /// A port goes down, or comes up.
    pub(crate) fn set_port_up(&mut self, (dpid, port): At, is_up: bool) {
        let state = if is_up { PortState::LIVE } else { PortState::LINK_DOWN };
        let one = Rc::clone(&self.switches[&dpid]);
        let now = self.now();
        one.borrow_mut().datapath.port_set(PortDesc { state, ..desc(port) }, now);
        self.network.set_port_up(DatapathId(dpid), port, is_up);
        self.run_until_idle();
    }

    /// A link carries nothing any more, and its ports do not know.
    pub(crate) fn cut(&mut self, one: At) {
        let other = self.links[&one];
        self.cut.extend([one, other]);
    }

    /// A host's frame comes in by a port; what that causes runs to its end.
    pub(crate) fn send(&mut self, at: At, frame: &[u8]) {
        self.carry(VecDeque::from([(at, frame.to_vec())]));
        self.run_until_idle();
    }

    /// Frames that have arrived at ports without links since this was called last, in the order of
    /// their ports.
    pub(crate) fn arrived(&mut self) -> Vec<(At, Vec<u8>)> {
        let mut arrived = std::mem::take(&mut self.arrived);
        // Probes go to hosts too.
        arrived.retain(|(_, frame)| frame.get(12..14) != Some(&[0x88, 0xcc]));
        arrived.sort();
        arrived
    }

    /// The probes that have arrived at hosts since anything was asked last.
    pub(crate) fn probes_arrived(&mut self) -> Vec<(At, Vec<u8>)> {
        let arrived = std::mem::take(&mut self.arrived).into_iter();
        arrived.filter(|(_, frame)| frame.get(12..14) == Some(&[0x88, 0xcc])).collect()
    }

    /// Packets of LLDP that have arrived, but for the probes that discovery sends to every port.
    pub(crate) fn lldp_arrived(&mut self) -> usize {
        let probe = |frame: &[u8]| frame.windows(4).any(|part| part == [0x00, 0x26, 0xe1, b'W']);
        let lldp = self.arrived.iter().filter(|(_, frame)| !probe(frame));
        lldp.filter(|(_, frame)| frame.get(12..14) == Some(&[0x88, 0xcc])).count()
    }

    /// The ports of [`Fabric::arrived`].
    pub(crate) fn arrived_at(&mut self) -> Vec<At> {
        self.arrived().into_iter().map(|(at, _)| at).collect()
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, time: Duration) {
        let end = self.network.now() + time;
        while self.network.now() < end {
            let step = Duration::from_millis(100).min(end - self.network.now());
            self.network.advance(step);
            self.run_until_idle();
        }
    }

    /// The flow entries of a switch, as text, in the order of tables and priorities.
    pub(crate) fn entries(&self, dpid: u64) -> Vec<String> {
        let one = self.switches[&dpid].borrow();
        let all = openflow::flow::FlowStatsRequest::all();
        let stats = one.datapath.flow_stats(&all, self.now()).unwrap();
        stats.iter().map(|entry| format_flow_stats(one.version, entry)).collect()
    }

    /// The number of flow entries of a switch whose text has this part.
    pub(crate) fn count_entries(&self, dpid: u64, part: &str) -> usize {
        self.entries(dpid).iter().filter(|entry| entry.contains(part)).count()
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.network.now().as_nanos()).unwrap())
    }

    /// Carries out what the controller has sent, until it sends nothing more.
    pub(crate) fn run_until_idle(&mut self) {
        for _ in 0..FRAMES_MAX {
            let mut frames = VecDeque::new();
            let mut is_idle = true;
            let dpids: Vec<_> = self.switches.keys().copied().collect();
            for dpid in dpids {
                for message in self.network.take_messages(DatapathId(dpid)) {
                    is_idle = false;
                    self.take(dpid, message, &mut frames);
                }
            }
            self.expire();
            self.carry(frames);
            if is_idle {
                return;
            }
        }
        panic!("controller and switches talk for ever");
    }

    fn expire(&mut self) {
        let now = self.now();
        for one in self.switches.values() {
            let mut one = one.borrow_mut();
            one.now = now;
            one.datapath.expire(now);
        }
    }

    /// A switch gets a message.
    fn take(&mut self, dpid: u64, message: Message, frames: &mut VecDeque<(At, Vec<u8>)>) {
        let (one, now) = (Rc::clone(&self.switches[&dpid]), self.now());
        let mut one = one.borrow_mut();
        let version = one.version;
        let done = match &message {
            Message::FlowMod(flow_mod) => one.datapath.flow_mod(flow_mod, version, now).map(drop),
            Message::GroupMod(group_mod) => one.datapath.group_mod(group_mod, now).map(drop),
            Message::MeterMod(meter_mod) => one.datapath.meter_mod(meter_mod, now).map(drop),
            Message::SetAsync(config) => {
                let to_controller = config.of(AsyncEvent::PacketIn)[0] & 1 << 2 != 0;
                let settings = one.datapath.settings();
                one.datapath.set_settings(Settings {
                    invalid_ttl_to_controller: to_controller,
                    ..settings
                });
                Ok(())
            }
            Message::SetConfig(config) if version.has_invalid_ttl_flag() => {
                let settings = one.datapath.settings();
                one.datapath.set_settings(Settings {
                    invalid_ttl_to_controller: config.flags & SwitchConfig::INVALID_TTL != 0,
                    ..settings
                });
                Ok(())
            }
            Message::PacketOut(packet_out) => {
                let mut out = Out::new();
                let done = one.datapath.packet_out(packet_out, now, &mut out);
                self.verdicts(dpid, &mut out, frames);
                done
            }
            Message::MultipartRequest(_) | Message::BarrierRequest => Ok(()),
            other => panic!("{other:?}"),
        };
        if let Err(error) = done {
            self.errors.push((dpid, error));
            let error = Message::Error(ErrorMessage::new(version, error, Vec::new()));
            self.network.send(DatapathId(dpid), Xid(0), &error);
        }
    }

    /// Carries frames until all have arrived or are gone.
    fn carry(&mut self, mut frames: VecDeque<(At, Vec<u8>)>) {
        let mut carried = 0;
        while let Some(((dpid, port), frame)) = frames.pop_front() {
            carried += 1;
            assert!(carried < FRAMES_MAX, "frames go round for ever");
            let mut out = Out::new();
            let now = self.now();
            // A switch that has not come yet, or is gone.
            let Some(one) = self.switches.get(&dpid).map(Rc::clone) else { continue };
            let buf = PacketBuf::from_slice(&frame);
            one.borrow_mut().datapath.process(buf, PortNo(port), now, &mut out);
            self.verdicts(dpid, &mut out, &mut frames);
        }
    }

    fn verdicts(&mut self, dpid: u64, out: &mut Out, frames: &mut VecDeque<(At, Vec<u8>)>) {
        for verdict in out.drain() {
            match verdict {
                Verdict::Output { port, frame, .. } => {
                    let from = (dpid, port.0);
                    let frame = frame.bytes().to_vec();
                    if self.cut.contains(&from) {
                        continue;
                    }
                    match self.links.get(&from) {
                        Some(to) => frames.push_back((*to, frame)),
                        None => self.arrived.push((from, frame)),
                    }
                }
                Verdict::PacketIn { message, .. } => {
                    self.packet_ins += 1;
                    let message = Message::PacketIn(message);
                    self.network.send(DatapathId(dpid), Xid(0), &message);
                }
                Verdict::Held | Verdict::Drop { .. } => {}
            }
        }
    }
}

impl OneSwitch {
    /// The statistics that apps ask for.
    fn statistics(&self, message: &Message) -> Option<Message> {
        let Message::MultipartRequest(MultipartRequest { body, .. }) = message else { return None };
        let (datapath, now) = (&self.datapath, self.now);
        let body = match body {
            MultipartRequestBody::Flow(request) => {
                MultipartReplyBody::Flow(datapath.flow_stats(request, now).unwrap())
            }
            MultipartRequestBody::PortStats(port) => {
                MultipartReplyBody::PortStats(datapath.port_stats(*port, now).unwrap())
            }
            MultipartRequestBody::Table => MultipartReplyBody::Table(datapath.table_stats()),
            _ => return None,
        };
        Some(Message::MultipartReply(MultipartReply { more: false, body }))
    }
}

fn desc(port: u32) -> PortDesc {
    PortDesc { port_no: PortNo(port), state: PortState::LIVE, ..PortDesc::default() }
}

/// The Ethernet address of a host.
pub(crate) fn mac(host: u64) -> MacAddr {
    MacAddr::from_u64(0x0a00_0000_0000 | host)
}

/// The IPv4 address of a host.
pub(crate) fn ip(host: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0000 | host)
}

/// An ARP request of one host for another, to everybody.
pub(crate) fn arp_request(from: u32, to: u32) -> Vec<u8> {
    let (sha, spa) = (mac(from.into()), ip(from));
    let arp = Arp { op: 1, sha, spa, tha: MacAddr::default(), tpa: ip(to) };
    FrameBuilder::ethernet(MacAddr([0xff; 6]), sha).arp(arp).fill_to(60).build()
}

/// The reply to it.
pub(crate) fn arp_reply(from: u32, to: u32) -> Vec<u8> {
    let (sha, tha) = (mac(from.into()), mac(to.into()));
    let arp = Arp { op: 2, sha, spa: ip(from), tha, tpa: ip(to) };
    FrameBuilder::ethernet(tha, sha).arp(arp).fill_to(60).build()
}

/// A UDP packet of one host to another of the same network.
pub(crate) fn udp(from: u32, to: u32, dst_port: u16) -> Vec<u8> {
    FrameBuilder::ethernet(mac(to.into()), mac(from.into()))
        .ipv4(Ipv4::new(ip(from), ip(to)))
        .udp(4_000, dst_port)
        .fill_to(60)
        .build()
}

/// So many seconds.
pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
