//! Quality of service: rules that give packets a queue, a meter or another DSCP.
//!
//! In OpenFlow 1.3 the rules are entries of table 0, and a learning switch forwards in table 1. In
//! 1.0 the controller holds the first packet of each flow against the rules and installs an entry
//! for that flow with an enqueue action. 1.0 has no meters: a rule with one makes the app refuse
//! the switch. Queues are made at the switch (`weir switch --queue`, `ovs-vsctl`), as OpenFlow
//! cannot make them; meters are made here. It must never drop a packet by itself.

use super::behind_rules::{BehindRules, FORWARDING};
use super::config_values::{Fault, MatchText, SwitchId};
use super::frame::entry;
use super::learning_switch::Destination;
use super::log::needs;
use super::microflow::{key_of, microflow};
use crate::app::App;
use crate::switch::Switch;
use openflow::flow::FlowMod;
use openflow::message::PacketIn;
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::port::PortStatus;
use openflow::{
    Action, DatapathId, Field, Instruction, Match, Message, MeterId, PortNo, QueueId, Version,
};
use serde::Deserialize;
use std::collections::HashSet;
use std::sync::Arc;
use toml::Spanned;

/// The first rule's priority; each further one stands one below.
const FIRST_PRIORITY: u16 = 60_000;
/// Most rules.
const RULES_MAX: usize = 50_000;
/// Seconds without a packet after which the entry of a flow goes, in 1.0.
const IDLE_TIMEOUT_S: u16 = 60;
const FLOW_PRIORITY: u16 = 1;

/// `[qos]` in the file of the apps' settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QosConfig {
    /// The meters that rules may name; each switch that has rules for it gets all of them.
    #[serde(default)]
    pub meter: Vec<Spanned<QosMeter>>,
    /// The rules; the first that a packet meets decides.
    pub rule: Vec<Spanned<QosRule>>,
}

/// `[[qos.meter]]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QosMeter {
    /// Its number.
    pub id: u32,
    /// Kilobits per second above which it acts.
    pub rate_kbps: Option<u32>,
    /// Packets per second above which it acts; either this or the other.
    pub rate_pps: Option<u32>,
    /// The burst that may come beside the rate, in kilobits or packets.
    pub burst: Option<u32>,
    /// Raise the drop precedence in the DSCP by this number of steps, and do not drop.
    pub remark: Option<u8>,
}

/// `[[qos.rule]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QosRule {
    /// Packets that it is about, in the words of `ovs-ofctl`: `udp,tp_dst=5001`.
    #[serde(rename = "match")]
    pub matching: MatchText,
    /// The queue that they get.
    pub queue: Option<u32>,
    /// The meter that they get.
    pub meter: Option<u32>,
    /// The DSCP that they get, 0 to 63.
    pub dscp: Option<u8>,
    /// The switch that it is for; all where there is none.
    pub switch: Option<SwitchId>,
}

impl QosConfig {
    pub(super) fn check(&self) -> Result<(), Fault> {
        let mut ids = HashSet::new();
        for meter in &self.meter {
            let (at, QosMeter { id, rate_kbps, rate_pps, .. }) = (meter, *meter.get_ref());
            let wrong = if id == 0 || MeterId(id) > MeterId::MAX {
                Some(format!("id: a meter has a number from 1 to {}", MeterId::MAX.0))
            } else if !ids.insert(id) {
                Some(format!("id: there is another meter {id}"))
            } else if rate_kbps.is_some() == rate_pps.is_some() {
                Some("either rate-kbps or rate-pps".to_owned())
            } else {
                None
            };
            if let Some(wrong) = wrong {
                return Err(Fault::at(at, "qos.meter", wrong));
            }
        }
        for (index, rule) in self.rule.iter().enumerate() {
            if let Some(wrong) = rule.get_ref().fault(&ids, index) {
                return Err(Fault::at(rule, "qos.rule", wrong));
            }
        }
        Ok(())
    }

    /// The rules for a switch.
    fn rules(&self, dpid: DatapathId) -> impl Iterator<Item = &QosRule> {
        let rules = self.rule.iter().map(Spanned::get_ref);
        rules.filter(move |rule| rule.switch.is_none_or(|switch| switch.0 == dpid))
    }
}

impl QosMeter {
    fn add(self) -> MeterMod {
        let unit = if self.rate_pps.is_some() { MeterFlags::PKTPS } else { MeterFlags::KBPS };
        let burst = self.burst.map_or(MeterFlags::empty(), |_| MeterFlags::BURST);
        let kind = match self.remark {
            Some(prec_level) => BandKind::DscpRemark { prec_level },
            None => BandKind::Drop,
        };
        let rate = self.rate_pps.or(self.rate_kbps).unwrap_or(0);
        MeterMod {
            command: MeterModCommand::Add,
            flags: unit | burst | MeterFlags::STATS,
            meter_id: MeterId(self.id),
            bands: vec![Band { kind, rate, burst_size: self.burst.unwrap_or(0) }],
        }
    }
}

impl QosRule {
    fn fault(&self, meters: &HashSet<u32>, index: usize) -> Option<String> {
        let is_ip = self.matching.0.matches(Field::IpDscp.row().prereq);
        if index >= RULES_MAX {
            Some(format!("at most {RULES_MAX} rules"))
        } else if self.queue.is_none() && self.meter.is_none() && self.dscp.is_none() {
            Some("a rule has a queue, a meter or a dscp".to_owned())
        } else if let Some(meter) = self.meter.filter(|meter| !meters.contains(meter)) {
            Some(format!("meter: there is no meter {meter} among [[qos.meter]]"))
        } else if self.dscp.is_some_and(|dscp| dscp > 63) {
            Some("dscp: a number from 0 to 63".to_owned())
        } else if self.dscp.is_some() && !is_ip {
            Some("dscp: the match must be about ip or ipv6".to_owned())
        } else {
            None
        }
    }

    /// The entry of 1.3.
    fn entry(&self, priority: u16) -> FlowMod {
        let dscp = self.dscp.map(|dscp| Action::set_field(Field::IpDscp, dscp.into()));
        let queue = self.queue.map(|queue| Action::SetQueue(QueueId(queue)));
        let actions = dscp.into_iter().chain(queue).collect();
        let mut entry = entry(priority, self.matching.0.clone(), actions);
        if let Some(meter) = self.meter {
            entry.instructions.insert(0, Instruction::Meter(MeterId(meter)));
        }
        entry.instructions.push(Instruction::GotoTable(FORWARDING));
        entry
    }

    /// The actions of 1.0 that send a packet to a port.
    fn actions(&self, port: PortNo) -> Vec<Action> {
        let dscp = self.dscp.map(|dscp| Action::SetNwTos(dscp << 2));
        let out = match self.queue {
            Some(queue) => Action::Enqueue { port, queue: QueueId(queue) },
            None => Action::output(port),
        };
        dscp.into_iter().chain([out]).collect()
    }

    /// The feature for the rule that a version lacks.
    fn lacks(&self, version: Version) -> Option<&'static str> {
        let fields = self.matching.0.fields();
        if self.meter.is_some() && !version.has_meters() {
            Some("meters (OpenFlow 1.3)")
        } else if fields.iter().any(|held| held.field.row().since > version) {
            Some("match fields of its rules that its version does not have")
        } else {
            None
        }
    }
}

/// The app.
#[derive(Debug)]
pub struct Qos {
    config: Arc<QosConfig>,
    forwarding: BehindRules,
    /// Switches that cannot have the rules.
    refused: HashSet<DatapathId>,
}

impl Qos {
    /// An instance with these rules.
    #[must_use]
    pub fn new(config: Arc<QosConfig>) -> Self {
        Self { config, forwarding: BehindRules::default(), refused: HashSet::new() }
    }

    fn install(&self, sw: &mut Switch) {
        let has_meters = sw.version().has_meters();
        for meter in self.config.meter.iter().filter(|_| has_meters) {
            if sw.is_set_up() {
                // To delete a meter is to delete the entries that use it.
                let modify = MeterModCommand::Modify;
                sw.send(Message::MeterMod(MeterMod { command: modify, ..meter.get_ref().add() }));
                continue;
            }
            // The meter may be there from before; then it is changed.
            let delete = MeterMod { command: MeterModCommand::Delete, ..meter.get_ref().add() };
            sw.send(Message::MeterMod(MeterMod { bands: Vec::new(), ..delete }));
            sw.send(Message::MeterMod(meter.get_ref().add()));
        }
        let rules: Vec<_> = self.config.rules(sw.dpid()).cloned().collect();
        for (priority, rule) in (0..=FIRST_PRIORITY).rev().zip(&rules) {
            sw.flow_mod(rule.entry(priority));
        }
        let mut others = entry(0, Match::any(), Vec::new());
        others.instructions.push(Instruction::GotoTable(FORWARDING));
        sw.flow_mod(others);
    }

    /// 1.0: gives a flow what its first packet asks for.
    fn judge(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        let Some(in_port) = packet_in.in_port() else { return };
        let key = key_of(&packet_in.data, in_port);
        match self.forwarding.destination(sw, packet_in) {
            Destination::Nowhere => {}
            Destination::Everywhere => sw.flood(packet_in),
            Destination::Port(port, _) => {
                let mut rules = self.config.rules(sw.dpid());
                let rule = rules.find(|rule| key.matches(&rule.matching.0));
                let plain = || vec![Action::output(port)];
                let actions = rule.map_or_else(plain, |rule| rule.actions(port));
                let flow = entry(FLOW_PRIORITY, microflow(&key), actions.clone());
                sw.flow_mod(FlowMod { idle_timeout_s: IDLE_TIMEOUT_S, ..flow });
                sw.packet_out(packet_in, actions);
            }
        }
    }
}

impl App for Qos {
    fn switch_ready(&mut self, sw: &mut Switch) {
        self.refused.remove(&sw.dpid());
        let lacks = self.config.rules(sw.dpid()).find_map(|rule| rule.lacks(sw.version()));
        if let Some(what) = lacks {
            self.refused.insert(sw.dpid());
            return needs(sw, "qos", what);
        }
        self.forwarding.switch_ready(sw);
        if sw.version().has_pipeline() {
            self.install(sw);
        }
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        self.refused.remove(&dpid);
        self.forwarding.switch_down(dpid);
    }

    fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        if self.refused.contains(&sw.dpid()) {
        } else if sw.version().has_pipeline() {
            self.forwarding.packet_in(sw, packet_in);
        } else {
            self.judge(sw, packet_in);
        }
    }

    fn port_status(&mut self, sw: &mut Switch, status: &PortStatus) {
        self.forwarding.port_status(sw, status);
    }
}
