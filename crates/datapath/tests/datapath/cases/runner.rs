//! Runs one case on one datapath, in virtual time.

use std::collections::VecDeque;

use datapath::{
    CommandOutcome, Counter, Datapath, DropReason, Fragments, Miss, Nanos, Out, Removed, Verdict,
};
use openflow::flow::{FlowMod, FlowModCommand, FlowStats, FlowStatsRequest};
use openflow::group::GroupModCommand;
use openflow::message::{PacketIn, PacketOut};
use openflow::meter::MeterModCommand;
use openflow::port::{PortConfig, PortDesc, PortState};
use openflow::text::{parse_actions, parse_flow_mod, parse_group_mod, parse_meter_mod, parse_port};
use openflow::{Error, GroupId, MacAddr, MeterId, PortNo, QueueId, TableId, Version};
use packet::PacketBuf;
use testkit::cases::{Case, Step};
use testkit::hex;

/// Verdicts of the datapath that no step has named yet.
#[derive(Default)]
struct Unnamed {
    outputs: VecDeque<(PortNo, Option<QueueId>, Vec<u8>)>,
    packet_ins: VecDeque<PacketIn>,
    drops: Vec<DropReason>,
    removed: VecDeque<Removed>,
    error: Option<Error>,
}

impl Unnamed {
    fn take(&mut self, out: &mut Out) {
        for verdict in out.drain() {
            match verdict {
                Verdict::Output { port, queue, frame } => {
                    self.outputs.push_back((port, queue, frame.bytes().to_vec()));
                }
                Verdict::PacketIn { message, .. } => self.packet_ins.push_back(message),
                Verdict::Drop { reason } => self.drops.push(reason),
                // Counted, and asked for as a counter.
                Verdict::Held => {}
            }
        }
    }

    /// A step that does something may come only when all of this has been named.
    fn check_none(&self) -> Result<(), String> {
        if let Some(error) = self.error {
            return Err(format!("refused with {error}"));
        }
        if let Some((port, _, frame)) = self.outputs.front() {
            return Err(format!("nobody expected on port {port}: {}", hex::digits(frame)));
        }
        if let Some(message) = self.packet_ins.front() {
            let reason = message.reason.text();
            return Err(format!(
                "nobody expected a packet-in {reason}: {}",
                hex::digits(&message.data)
            ));
        }
        match self.removed.front() {
            Some(removed) => Err(format!("nobody expected {:?}", removed.flow)),
            None => Ok(()),
        }
    }
}

/// A frame as it looks on Ethernet: the sender fills it up to 60 bytes (IEEE 802.3, 4.2.3.3).
fn padded(frame: &[u8]) -> String {
    let mut frame = frame.to_vec();
    frame.resize(frame.len().max(60), 0);
    hex::digits(&frame)
}

struct Run<'a> {
    datapath: &'a mut dyn Datapath,
    now: Nanos,
    version: Version,
    flows: Vec<FlowMod>,
    unnamed: Unnamed,
}

/// Runs a case.
///
/// # Errors
/// File, line, name, and what was otherwise than the step says.
pub(crate) fn run(case: &Case, datapath: &mut dyn Datapath) -> Result<(), String> {
    let mut run = Run {
        datapath,
        now: Nanos(0),
        version: Version::V1_3,
        flows: Vec::new(),
        unnamed: Unnamed::default(),
    };
    for port in 1..=4 {
        run.port(port, &[])?;
    }
    let place = |line: usize| format!("{}:{line} ({})", case.file.display(), case.name);
    for (line, step) in &case.steps {
        run.step(step).map_err(|failure| format!("{}: {failure}", place(*line)))?;
    }
    run.unnamed
        .check_none()
        .map_err(|failure| format!("{}: at the end: {failure}", place(case.line)))
}

impl Run<'_> {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        if step.acts() {
            self.unnamed.check_none()?;
        }
        match step {
            Step::Flow(text) => {
                let flow_mod = flow_mod(text, FlowModCommand::Add)?;
                self.flows.push(flow_mod.clone());
                self.flow_mod(&flow_mod);
            }
            Step::Group(text) => self.group(text, GroupModCommand::Add)?,
            Step::Meter(text) => self.meter(text, MeterModCommand::Add)?,
            Step::Change { what, text } => self.change(what, text)?,
            Step::Error(name) => {
                let error = self.unnamed.error.take().ok_or("nothing was refused")?;
                expect("the error", error.name(), name.as_str())?;
            }
            Step::Version(name) => {
                self.version = Version::from_name(name).ok_or("no such version")?;
            }
            Step::Setting(text) => self.setting(text)?,
            Step::Port { port, words } => self.port(*port, words)?,
            Step::Wait { ns } => {
                self.now = Nanos(self.now.0 + ns);
                let removed = self.datapath.expire(self.now);
                self.keep(removed);
            }
            Step::Late { ns } => self.now = Nanos(self.now.0 + ns),
            Step::Removed(reason) => {
                let removed = self.unnamed.removed.pop_front().ok_or("nothing was removed")?;
                let found = removed.flow.reason.nearest_in(self.version);
                expect("the reason", found.text(), reason.as_str())?;
            }
            Step::PacketOut { in_port, frame, actions } => {
                self.packet_out(in_port, frame, actions)?;
            }
            Step::In { port, frame } => self.process(*port, frame)?,
            Step::Out { port, queue, frame } => {
                let left = self.unnamed.outputs.pop_front().ok_or("nothing left")?;
                expect("the port", left.0, PortNo(*port))?;
                expect("the queue", left.1, queue.map(QueueId))?;
                expect("the frame", padded(&left.2), padded(frame))?;
            }
            Step::PacketIn { reason, frame } => {
                let sent = self.unnamed.packet_ins.pop_front().ok_or("no packet-in was sent")?;
                let found = sent.reason.nearest_in(self.version);
                expect("the reason", found.text(), reason.as_str())?;
                expect("the frame", hex::digits(&sent.data), hex::digits(frame))?;
            }
            Step::Drop(name) => {
                let drops = &mut self.unnamed.drops;
                let named = |reason: &DropReason| reason.name() == name;
                let at = drops.iter().position(named);
                let at = at.ok_or_else(|| format!("dropped for {drops:?}"))?;
                drops.remove(at);
            }
            Step::Talk { .. } => return Err("a datapath has no controllers".into()),
            Step::Counter { what, value } => {
                expect(what, self.counter(what)?, *value)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, removed: Vec<Removed>) {
        self.unnamed.removed.extend(removed.into_iter().filter(|removed| removed.notify));
    }

    fn done(&mut self, outcome: Result<CommandOutcome, Error>) {
        match outcome {
            Ok(outcome) => self.keep(outcome.removed),
            Err(error) => self.unnamed.error = Some(error),
        }
    }

    fn flow_mod(&mut self, flow_mod: &FlowMod) {
        let outcome = self.datapath.flow_mod(flow_mod, self.version, self.now);
        self.done(outcome);
    }

    fn group(&mut self, text: &str, command: GroupModCommand) -> Result<(), String> {
        let group_mod = parse_group_mod(text, command).map_err(|error| error.to_string())?;
        let outcome = self.datapath.group_mod(&group_mod, self.now);
        self.done(outcome);
        Ok(())
    }

    fn meter(&mut self, text: &str, command: MeterModCommand) -> Result<(), String> {
        let meter_mod = parse_meter_mod(text, command).map_err(|error| error.to_string())?;
        let outcome = self.datapath.meter_mod(&meter_mod, self.now);
        self.done(outcome);
        Ok(())
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
        let mut flow_mod = flow_mod(text, command)?;
        // Messages of 1.0 name no table.
        if !self.version.has_pipeline() {
            flow_mod.table_id = TableId::ALL;
        }
        self.flow_mod(&flow_mod);
        Ok(())
    }

    fn setting(&mut self, text: &str) -> Result<(), String> {
        let mut settings = self.datapath.settings();
        match text {
            "miss=drop" => settings.miss = Miss::Drop,
            "miss=controller" => settings.miss = Miss::Controller,
            "fragments=normal" => settings.fragments = Fragments::Normal,
            "fragments=reassemble" => settings.fragments = Fragments::Reassemble,
            "fragments=drop" => settings.fragments = Fragments::Drop,
            "invalid_ttl=drop" => settings.invalid_ttl_to_controller = false,
            "invalid_ttl=controller" => settings.invalid_ttl_to_controller = true,
            other => return Err(format!("`{other}` is not a setting")),
        }
        self.datapath.set_settings(settings);
        Ok(())
    }

    fn port(&mut self, number: u32, words: &[String]) -> Result<(), String> {
        let mut desc = PortDesc {
            port_no: PortNo(number),
            hw_addr: MacAddr::from_u64(0x0200_0000_0000 + u64::from(number)),
            state: PortState::LIVE,
            ..PortDesc::default()
        };
        for word in words {
            match word.as_str() {
                "port_down" => desc.config |= PortConfig::PORT_DOWN,
                "no_recv" => desc.config |= PortConfig::NO_RECV,
                "no_recv_stp" => desc.config |= PortConfig::NO_RECV_STP,
                "no_flood" => desc.config |= PortConfig::NO_FLOOD,
                "no_fwd" => desc.config |= PortConfig::NO_FWD,
                "no_packet_in" => desc.config |= PortConfig::NO_PACKET_IN,
                "link_down" => desc.state |= PortState::LINK_DOWN,
                "blocked" => desc.state |= PortState::BLOCKED,
                "not_live" => desc.state -= PortState::LIVE,
                vlans if vlans.starts_with("vlans=") => {
                    let vlans = vlans.trim_start_matches("vlans=").parse();
                    let vlans = vlans.map_err(|error: datapath::BadVlans| error.to_string())?;
                    self.datapath.port_vlans(PortNo(number), vlans);
                }
                "gone" => {
                    self.datapath.port_remove(PortNo(number));
                    return Ok(());
                }
                other => return Err(format!("`{other}` is no word for a port")),
            }
        }
        self.datapath.port_set(desc, self.now);
        Ok(())
    }

    /// The trace must say the same and change nothing; then comes the real packet.
    fn process(&mut self, port: u32, frame: &[u8]) -> Result<(), String> {
        let frame = PacketBuf::from_slice(frame);
        let before = self.datapath.counters().clone();
        let trace = self.datapath.trace(frame.clone(), PortNo(port), self.now);
        if *self.datapath.counters() != before {
            return Err("the trace changed a counter".into());
        }
        let mut out = Out::new();
        self.datapath.process(frame, PortNo(port), self.now, &mut out);
        if out.is_empty() {
            return Err("no verdict".into());
        }
        if out.verdicts() != trace.verdicts {
            return Err(format!("the trace says otherwise:\n{trace}"));
        }
        self.unnamed.drops.clear();
        self.unnamed.take(&mut out);
        Ok(())
    }

    fn packet_out(&mut self, in_port: &str, frame: &[u8], actions: &str) -> Result<(), String> {
        let packet_out = PacketOut {
            buffer_id: None,
            in_port: parse_port(in_port).map_err(|error| error.to_string())?,
            actions: parse_actions(actions).map_err(|error| error.to_string())?,
            data: frame.to_vec(),
        };
        let mut out = Out::new();
        let sent = self.datapath.packet_out(&packet_out, self.now, &mut out);
        if sent.is_ok() == out.is_empty() {
            return Err(format!("{sent:?} with {} verdicts", out.len()));
        }
        self.unnamed.error = sent.err();
        self.unnamed.drops.clear();
        self.unnamed.take(&mut out);
        Ok(())
    }

    fn flow_stats(&self, index: usize) -> Result<FlowStats, String> {
        let wanted = self.flows.get(index).ok_or("there is no such flow line")?;
        let request = FlowStatsRequest {
            table_id: wanted.table_id,
            matching: wanted.matching.clone(),
            ..FlowStatsRequest::all()
        };
        let stats = self.datapath.flow_stats(&request, self.now).map_err(|e| e.to_string())?;
        let own = stats
            .into_iter()
            .find(|flow| flow.matching == wanted.matching && flow.priority == wanted.priority);
        own.ok_or_else(|| "the entry is gone".into())
    }

    fn counter(&self, what: &str) -> Result<u64, String> {
        let words: Vec<&str> = what.split_whitespace().collect();
        let number = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}`: no number"));
        let one = |found: Option<u64>| found.ok_or_else(|| "there is none".to_owned());
        match words.as_slice() {
            ["drops", reason] => {
                let reason = DropReason::from_name(reason).ok_or("no such reason")?;
                Ok(self.datapath.counters().drops(reason))
            }
            ["datapath", name] => {
                let counter = Counter::from_name(name).ok_or("no such counter")?;
                Ok(self.datapath.counters().get(counter))
            }
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
            ["table", index, field] => {
                let tables = self.datapath.table_stats();
                let table = tables.get(number(index)? as usize).ok_or("no such table")?;
                match *field {
                    "active" => Ok(table.active_count.into()),
                    "lookups" => Ok(table.lookup_count),
                    "matches" => Ok(table.matched_count),
                    other => Err(format!("`{other}` is not counted")),
                }
            }
            ["port", index, field] => self.port_counter(PortNo(number(index)?), field),
            ["group", id, field] => {
                let stats = self.datapath.group_stats(GroupId(number(id)?), self.now);
                let stats = stats.first();
                match *field {
                    "packets" => one(stats.map(|group| group.packet_count)),
                    "refs" => one(stats.map(|group| group.ref_count.into())),
                    other => Err(format!("`{other}` is not counted")),
                }
            }
            ["bucket", id, index, "packets"] => {
                let stats = self.datapath.group_stats(GroupId(number(id)?), self.now);
                let index = number(index)? as usize;
                one(stats.first().and_then(|g| g.buckets.get(index)).map(|b| b.packet_count))
            }
            ["meter", id, "packets"] => {
                let stats = self.datapath.meter_stats(MeterId(number(id)?), self.now);
                one(stats.map_err(|e| e.to_string())?.first().map(|m| m.packet_in_count))
            }
            ["band", id, index, "packets"] => {
                let stats = self.datapath.meter_stats(MeterId(number(id)?), self.now);
                let stats = stats.map_err(|e| e.to_string())?;
                let index = number(index)? as usize;
                one(stats.first().and_then(|m| m.bands.get(index)).map(|b| b.packet_count))
            }
            _ => Err(format!("`{what}` is not counted")),
        }
    }

    fn port_counter(&self, port: PortNo, field: &str) -> Result<u64, String> {
        let stats = self.datapath.port_stats(port, self.now).map_err(|e| e.to_string())?;
        let stats = stats.first().ok_or("there is no such port")?;
        match field {
            "rx_packets" => Ok(stats.rx_packets),
            "tx_packets" => Ok(stats.tx_packets),
            "rx_dropped" => Ok(stats.rx_dropped),
            "tx_dropped" => Ok(stats.tx_dropped),
            other => Err(format!("`{other}` is not counted")),
        }
    }
}

fn flow_mod(text: &str, command: FlowModCommand) -> Result<FlowMod, String> {
    parse_flow_mod(text, command).map_err(|error| error.to_string())
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{what} is {found:?}, expected {wanted:?}"))
}
