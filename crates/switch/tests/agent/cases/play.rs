//! Plays one case on a switch of its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use openflow::flow::{FlowMod, FlowModCommand, FlowRemoved, FlowStats, FlowStatsRequest};
use openflow::group::GroupModCommand;
use openflow::message::{
    AsyncConfig, MultipartReplyBody, MultipartRequestBody, PacketIn, PacketOut, SwitchConfig,
};
use openflow::meter::MeterModCommand;
use openflow::port::{PortConfig, PortDesc, PortFeatures, PortMod, PortState, PortStats};
use openflow::text::{parse_actions, parse_flow_mod, parse_group_mod, parse_meter_mod, parse_port};
use openflow::{Error, GroupId, Message, MeterId, PortNo, Version};
use testkit::cases::{Case, Step};
use testkit::hex;

use super::wire::{Host, PATIENCE, ask, multipart, within};
use crate::harness::{Controller, Switch};

const PORTS: u32 = 4;
/// What a controller of 1.0 alone can set.
const OF_V1_0: PortConfig = PortConfig::NO_FLOOD.union(PortConfig::NO_RECV_STP);

/// Why a case cannot be played over a connection, if so.
pub(super) fn obstacle(case: &Case) -> Option<&'static str> {
    case.steps.iter().find_map(|(_, step)| match step {
        Step::Wait { .. } | Step::Late { .. } => Some("time"),
        Step::Port { port, .. } | Step::In { port, .. } | Step::Out { port, .. }
            if !(1..=PORTS).contains(port) =>
        {
            Some("a port that the switch does not have")
        }
        Step::Port { words, .. } if words.iter().any(|word| word.starts_with("vlans=")) => {
            Some("an option of the switch")
        }
        Step::Port { words, .. }
            if words
                .iter()
                .any(|word| ["blocked", "not_live", "gone"].contains(&word.as_str())) =>
        {
            Some("a state that a memory port does not have")
        }
        _ => None,
    })
}

pub(super) struct Player {
    patience: Duration,
    hosts: Vec<Host>,
    new: Controller,
    old: Option<Controller>,
    /// Whose packet-ins count.
    listener: Version,
    version: Version,
    config: SwitchConfig,
    ports: Vec<PortDesc>,
    flows: Vec<FlowMod>,
    packet_ins: VecDeque<PacketIn>,
    removed: VecDeque<FlowRemoved>,
    error: Option<Error>,
    drops: BTreeMap<String, u64>,
    switch: Switch,
}

impl Player {
    /// A switch of four ports with a controller of 1.3.
    pub(super) fn start() -> Self {
        static PLAYERS: AtomicU32 = AtomicU32::new(0);
        let number = PLAYERS.fetch_add(1, Ordering::Relaxed);
        let names: Vec<_> = (1..=PORTS).map(|port| format!("case{number}p{port}")).collect();
        let hosts = names.iter().map(|name| Host::new(name)).collect();
        let specs: Vec<_> = names.iter().map(|name| format!("\"memory:{name}\"")).collect();
        let switch = Switch::with_ports(&specs.join(","), Vec::new(), "");
        let mut new = switch.controller(Version::V1_3);
        let ports = match new.multipart(MultipartRequestBody::PortDesc) {
            MultipartReplyBody::PortDesc(ports) => ports,
            other => panic!("{other:?}"),
        };
        Self {
            patience: PATIENCE,
            hosts,
            new,
            old: None,
            listener: Version::V1_3,
            version: Version::V1_3,
            config: SwitchConfig { flags: 0, miss_send_len: 0xffff },
            ports,
            flows: Vec::new(),
            packet_ins: VecDeque::new(),
            removed: VecDeque::new(),
            error: None,
            drops: BTreeMap::new(),
            switch,
        }
    }

    /// How long to wait for what must come.
    pub(super) fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Plays the case.
    ///
    /// # Errors
    /// File, line, name, and what was otherwise than the step says.
    pub(super) fn play(mut self, case: &Case) -> Result<(), String> {
        let place = |line: usize| format!("{}:{line} ({})", case.file.display(), case.name);
        for (line, step) in &case.steps {
            let done = if step.acts() { self.check_none() } else { Ok(()) };
            let done = done.and_then(|()| self.step(step));
            done.map_err(|failure| format!("{}: {failure}", place(*line)))?;
        }
        self.check_none().map_err(|failure| format!("{}: at the end: {failure}", place(case.line)))
    }

    /// A step that does something may come only when everything before has been named.
    fn check_none(&mut self) -> Result<(), String> {
        self.ask(self.listener, &Message::BarrierRequest)?;
        if let Some(error) = self.error {
            return Err(format!("refused with {error}"));
        }
        for (port, host) in (1..).zip(&mut self.hosts) {
            if let Some(frame) = host.poll() {
                return Err(format!("nobody expected on port {port}: {}", hex::digits(&frame)));
            }
        }
        if let Some(message) = self.packet_ins.front() {
            let reason = message.reason.text();
            return Err(format!(
                "nobody expected a packet-in {reason}: {}",
                hex::digits(&message.data)
            ));
        }
        match self.removed.front() {
            Some(removed) => Err(format!("nobody expected {removed:?}")),
            None => Ok(()),
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Flow(text) => {
                let flow_mod = parse_flow_mod(text, FlowModCommand::Add).map_err(said)?;
                self.flows.push(flow_mod.clone());
                self.command(&Message::FlowMod(flow_mod))
            }
            Step::Group(text) => self.group(text, GroupModCommand::Add),
            Step::Meter(text) => self.meter(text, MeterModCommand::Add),
            Step::Change { what, text } => self.change(what, text),
            Step::Error(name) => {
                let error = self.error.take().ok_or("nothing was refused")?;
                expect("the error", error.name(), name.as_str())
            }
            Step::Version(name) => {
                self.version = Version::from_name(name).ok_or("no such version")?;
                self.connect(self.version);
                Ok(())
            }
            Step::Setting(text) => self.setting(text),
            Step::Port { port, words } => self.port(*port, words),
            Step::Wait { .. } | Step::Late { .. } => Err("time does not wait here".into()),
            Step::Removed(reason) => {
                let removed = self.removed.pop_front().ok_or("nothing was removed")?;
                expect("the reason", removed.reason.text(), reason.as_str())
            }
            Step::PacketOut { in_port, frame, actions } => {
                let packet_out = PacketOut {
                    buffer_id: None,
                    in_port: parse_port(in_port).map_err(said)?,
                    actions: parse_actions(actions).map_err(said)?,
                    data: frame.clone(),
                };
                self.command(&Message::PacketOut(packet_out))
            }
            Step::In { port, frame } => self.arrive(*port, frame),
            Step::Out { port, frame } => {
                let host = &mut self.hosts[*port as usize - 1];
                let left = within(self.patience, || Ok(host.poll()));
                let left = left.map_err(|_| format!("nothing left by port {port}"))?;
                expect("the frame", padded(&left), padded(frame))
            }
            Step::PacketIn { reason, frame } => {
                let sent = self.packet_in()?;
                expect("the reason", sent.reason.text(), reason.as_str())?;
                expect("the frame", hex::digits(&sent.data), hex::digits(frame))
            }
            Step::Drop(name) => {
                let wanted = self.drops.entry(name.clone()).or_default();
                *wanted += 1;
                let wanted = *wanted;
                self.dropped(name, |found| found >= wanted)
            }
            Step::Talk { .. } => Err("the cases of controllers are played in another way".into()),
            // Frames of which nothing leaves are still on their way when these are asked for.
            Step::Counter { what, value } => match what.split_once(' ') {
                Some(("drops", name)) => self.dropped(name, |found| found == *value),
                Some(("datapath", name)) => {
                    self.reaches(&format!("datapath_{name}"), |found| found == *value)
                }
                _ => self.counted(what, *value),
            },
        }
    }

    fn connect(&mut self, version: Version) {
        if version == Version::V1_0 && self.old.is_none() {
            self.old = Some(self.switch.controller(version));
        }
    }

    fn controller(&mut self, version: Version) -> Result<&mut Controller, String> {
        match version {
            Version::V1_0 => self.old.as_mut().ok_or_else(|| "no controller of 1.0".into()),
            Version::V1_3 => Ok(&mut self.new),
        }
    }

    fn ask(&mut self, version: Version, message: &Message) -> Result<Message, String> {
        let (before, answer) = ask(self.controller(version)?, message);
        before.into_iter().for_each(|message| self.keep(version, message));
        Ok(answer)
    }

    fn multipart(&mut self, body: MultipartRequestBody) -> Result<MultipartReplyBody, String> {
        let (before, reply) = multipart(&mut self.new, body)?;
        before.into_iter().for_each(|message| self.keep(Version::V1_3, message));
        Ok(reply)
    }

    /// What came on the switch's own account, or as the answer to a command.
    fn keep(&mut self, version: Version, message: Message) {
        match message {
            Message::Error(error) => self.error = error.error(version),
            Message::PacketIn(packet) if version == self.listener => {
                self.packet_ins.push_back(packet);
            }
            Message::FlowRemoved(gone) if version == Version::V1_3 => self.removed.push_back(gone),
            _ => {}
        }
    }

    /// Sends a command in the version of the case and waits until it is done.
    fn command(&mut self, message: &Message) -> Result<(), String> {
        let version = self.version;
        self.controller(version)?.send(message);
        self.ask(version, &Message::BarrierRequest)?;
        if version != self.listener {
            self.ask(self.listener, &Message::BarrierRequest)?;
        }
        Ok(())
    }

    fn group(&mut self, text: &str, command: GroupModCommand) -> Result<(), String> {
        let group_mod = parse_group_mod(text, command).map_err(said)?;
        self.command(&Message::GroupMod(group_mod))
    }

    fn meter(&mut self, text: &str, command: MeterModCommand) -> Result<(), String> {
        let meter_mod = parse_meter_mod(text, command).map_err(said)?;
        self.command(&Message::MeterMod(meter_mod))
    }

    fn change(&mut self, what: &str, text: &str) -> Result<(), String> {
        let command = match what {
            "mod_flows" => FlowModCommand::Modify,
            "mod_flows_strict" => FlowModCommand::ModifyStrict,
            "del_flows" => FlowModCommand::Delete,
            "del_flows_strict" => FlowModCommand::DeleteStrict,
            "mod_group" => return self.group(text, GroupModCommand::Modify),
            "del_groups" => return self.group(text, GroupModCommand::Delete),
            "mod_meter" => return self.meter(text, MeterModCommand::Modify),
            "del_meters" => return self.meter(text, MeterModCommand::Delete),
            other => return Err(format!("`{other}` is not run here")),
        };
        let flow_mod = parse_flow_mod(text, command).map_err(said)?;
        self.command(&Message::FlowMod(flow_mod))
    }

    fn setting(&mut self, text: &str) -> Result<(), String> {
        let wanted = |reasons| AsyncConfig {
            packet_in: [reasons, 0],
            port_status: [0b111, 0b111],
            flow_removed: [0b1111, 0],
        };
        let message = match text {
            // In 1.0 a miss goes to the controller.
            "miss=controller" => {
                self.connect(Version::V1_0);
                self.listener = Version::V1_0;
                self.ask(Version::V1_0, &Message::BarrierRequest)?;
                return Ok(());
            }
            "fragments=normal" | "fragments=drop" | "fragments=reassemble" => {
                self.config.flags = match text {
                    "fragments=drop" => 1,
                    "fragments=reassemble" => 2,
                    _ => 0,
                };
                Message::SetConfig(self.config)
            }
            "invalid_ttl=drop" => Message::SetAsync(wanted(0b011)),
            "invalid_ttl=controller" => Message::SetAsync(wanted(0b111)),
            other => return Err(format!("`{other}` is not a setting")),
        };
        self.new.send(&message);
        self.ask(Version::V1_3, &Message::BarrierRequest).map(|_| ())
    }

    fn port(&mut self, number: u32, words: &[String]) -> Result<(), String> {
        let (mut config, mut link) = (PortConfig::empty(), true);
        for word in words {
            match word.as_str() {
                "port_down" => config |= PortConfig::PORT_DOWN,
                "no_recv" => config |= PortConfig::NO_RECV,
                "no_recv_stp" => config |= PortConfig::NO_RECV_STP,
                "no_flood" => config |= PortConfig::NO_FLOOD,
                "no_fwd" => config |= PortConfig::NO_FWD,
                "no_packet_in" => config |= PortConfig::NO_PACKET_IN,
                "link_down" => link = false,
                other => return Err(format!("`{other}` is no word for a port here")),
            }
        }
        let desc = self.ports.iter().find(|port| port.port_no == PortNo(number));
        let (hw_addr, held) = desc.map(|port| (port.hw_addr, port.config)).ok_or("no such port")?;
        let all = PortConfig::PORT_DOWN
            | PortConfig::NO_RECV
            | PortConfig::NO_FWD
            | PortConfig::NO_PACKET_IN;
        let port_mod = |config, mask| {
            let advertise = PortFeatures::empty();
            Message::PortMod(PortMod { port_no: PortNo(number), hw_addr, config, mask, advertise })
        };
        self.new.send(&port_mod(config & all, all));
        self.ask(Version::V1_3, &Message::BarrierRequest)?;
        if (config | held).intersects(OF_V1_0) {
            self.connect(Version::V1_0);
            self.controller(Version::V1_0)?.send(&port_mod(config & OF_V1_0, OF_V1_0));
            self.ask(Version::V1_0, &Message::BarrierRequest)?;
        }
        for port in self.ports.iter_mut().filter(|port| port.port_no == PortNo(number)) {
            port.config = config;
        }
        self.link(number, link)
    }

    fn link(&mut self, number: u32, up: bool) -> Result<(), String> {
        let host = &mut self.hosts[number as usize - 1];
        if host.has_link() == up {
            return Ok(());
        }
        host.set_link(up);
        within(self.patience, || match self.multipart(MultipartRequestBody::PortDesc)? {
            MultipartReplyBody::PortDesc(ports) => {
                let port = ports.iter().find(|port| port.port_no == PortNo(number));
                let is_up = port.is_some_and(|port| !port.state.contains(PortState::LINK_DOWN));
                Ok((is_up == up).then_some(()))
            }
            other => Err(format!("{other:?}")),
        })
    }

    fn port_stats(&mut self, port: u32) -> Result<PortStats, String> {
        match self.multipart(MultipartRequestBody::PortStats(PortNo(port)))? {
            MultipartReplyBody::PortStats(mut ports) => ports.pop().ok_or("no such port".into()),
            other => Err(format!("{other:?}")),
        }
    }

    /// A frame arrives, and the switch is done with it.
    fn arrive(&mut self, port: u32, frame: &[u8]) -> Result<(), String> {
        let seen = |stats: &PortStats| stats.rx_packets + stats.rx_dropped + stats.rx_errors;
        let before = seen(&self.port_stats(port)?);
        self.hosts[port as usize - 1].send(frame)?;
        within(self.patience, || Ok((seen(&self.port_stats(port)?) > before).then_some(())))
            .map_err(|_| "the frame was not seen".into())
    }

    fn packet_in(&mut self) -> Result<PacketIn, String> {
        within(self.patience, || {
            if self.packet_ins.is_empty() {
                self.ask(self.listener, &Message::BarrierRequest)?;
            }
            Ok(self.packet_ins.pop_front())
        })
        .map_err(|_| "no packet-in was sent".into())
    }

    fn dropped(&self, name: &str, wanted: impl Fn(u64) -> bool) -> Result<(), String> {
        self.reaches(&format!("drop_{name}"), wanted)
    }

    fn reaches(&self, name: &str, wanted: impl Fn(u64) -> bool) -> Result<(), String> {
        let found = || self.switch.counter(name);
        within(self.patience, || Ok(wanted(found()).then_some(())))
            .map_err(|_| format!("{name} is {}", found()))
    }

    fn flow_stats(&mut self, index: usize) -> Result<FlowStats, String> {
        let wanted = self.flows.get(index).cloned().ok_or("there is no such flow line")?;
        let request = FlowStatsRequest {
            table_id: wanted.table_id,
            matching: wanted.matching.clone(),
            ..FlowStatsRequest::all()
        };
        match self.multipart(MultipartRequestBody::Flow(request))? {
            MultipartReplyBody::Flow(flows) => flows
                .into_iter()
                .find(|flow| flow.matching == wanted.matching && flow.priority == wanted.priority)
                .ok_or("the entry is gone".into()),
            other => Err(format!("{other:?}")),
        }
    }

    /// The counter gets there: a packet that has left may not have been counted yet.
    fn counted(&mut self, what: &str, value: u64) -> Result<(), String> {
        let mut found = 0;
        within(self.patience, || {
            found = self.counter(what)?;
            Ok((found == value).then_some(()))
        })
        .map_err(|failure| match failure.as_str() {
            "in vain" => format!("{what} is {found}, expected {value}"),
            other => other.to_owned(),
        })
    }

    fn counter(&mut self, what: &str) -> Result<u64, String> {
        let words: Vec<&str> = what.split_whitespace().collect();
        let number = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}`: no number"));
        match words.as_slice() {
            ["flow", index, field] => {
                let flow = self.flow_stats(number(index)? as usize)?;
                match *field {
                    "packets" => Ok(flow.packet_count),
                    "bytes" => Ok(flow.byte_count),
                    "cookie" => Ok(flow.cookie.0),
                    "duration" => Ok(flow.duration_s.into()),
                    other => Err(format!("`{other}` is not counted")),
                }
            }
            ["table", index, field] => self.table_counter(number(index)?, field),
            ["port", index, field] => {
                let stats = self.port_stats(number(index)?)?;
                match *field {
                    "rx_packets" => Ok(stats.rx_packets),
                    "tx_packets" => Ok(stats.tx_packets),
                    "rx_dropped" => Ok(stats.rx_dropped),
                    "tx_dropped" => Ok(stats.tx_dropped),
                    other => Err(format!("`{other}` is not counted")),
                }
            }
            ["group", id, field] => self.group_counter(number(id)?, None, field),
            ["bucket", id, index, field] => {
                self.group_counter(number(id)?, Some(number(index)? as usize), field)
            }
            ["meter", id, "packets"] => self.meter_counter(number(id)?, None),
            ["band", id, index, "packets"] => {
                self.meter_counter(number(id)?, Some(number(index)? as usize))
            }
            _ => Err(format!("`{what}` is not counted")),
        }
    }

    fn table_counter(&mut self, table: u32, field: &str) -> Result<u64, String> {
        let MultipartReplyBody::Table(tables) = self.multipart(MultipartRequestBody::Table)? else {
            return Err("another reply".into());
        };
        let table = tables.get(table as usize).ok_or("no such table")?;
        match field {
            "active" => Ok(table.active_count.into()),
            "lookups" => Ok(table.lookup_count),
            "matches" => Ok(table.matched_count),
            other => Err(format!("`{other}` is not counted")),
        }
    }

    fn group_counter(
        &mut self,
        id: u32,
        bucket: Option<usize>,
        field: &str,
    ) -> Result<u64, String> {
        let reply = self.multipart(MultipartRequestBody::Group(GroupId(id)))?;
        let MultipartReplyBody::Group(groups) = reply else { return Err("another reply".into()) };
        let group = groups.first().ok_or("no such group")?;
        match (bucket, field) {
            (None, "packets") => Ok(group.packet_count),
            (None, "refs") => Ok(group.ref_count.into()),
            (Some(index), "packets") => {
                let bucket = group.buckets.get(index).ok_or("no such bucket")?;
                Ok(bucket.packet_count)
            }
            (_, other) => Err(format!("`{other}` is not counted")),
        }
    }

    fn meter_counter(&mut self, id: u32, band: Option<usize>) -> Result<u64, String> {
        let reply = self.multipart(MultipartRequestBody::Meter(MeterId(id)))?;
        let MultipartReplyBody::Meter(meters) = reply else { return Err("another reply".into()) };
        let meter = meters.first().ok_or("no such meter")?;
        match band {
            None => Ok(meter.packet_in_count),
            Some(index) => Ok(meter.bands.get(index).ok_or("no such band")?.packet_count),
        }
    }
}

/// A frame as it looks on Ethernet: the sender fills it up to 60 bytes (IEEE 802.3, 4.2.3.3).
fn padded(frame: &[u8]) -> String {
    let mut frame = frame.to_vec();
    frame.resize(frame.len().max(60), 0);
    hex::digits(&frame)
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{what} is {found:?}, expected {wanted:?}"))
}
