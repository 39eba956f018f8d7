//! The firewall: a list of rules, of which the first that a packet meets decides.
//!
//! In OpenFlow 1.3 the rules are the entries of table 0: what they allow goes on to table 1, where
//! a learning switch forwards. In 1.0 there is one table: the controller holds the first packet of
//! each flow against the rules and installs an entry for that flow alone. A rule that the version
//! cannot express makes the firewall refuse the switch, since a rule left out would let through
//! what it should stop; then nothing is forwarded.

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
use openflow::port::PortStatus;
use openflow::{Action, DatapathId, Instruction, Match};
use serde::Deserialize;
use std::collections::HashSet;
use std::sync::Arc;
use toml::Spanned;

/// The first rule's priority; each further one stands one below.
const FIRST_PRIORITY: u16 = 60_000;
/// Most rules, which leaves room below for the default.
const RULES_MAX: usize = 50_000;
/// Seconds without a packet after which the entry of a flow goes, in 1.0.
const IDLE_TIMEOUT_S: u16 = 60;
const FLOW_PRIORITY: u16 = 1;

/// `[firewall]` in the file of the apps' settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FirewallConfig {
    /// The action for packets that meet no rule.
    pub default: FirewallAction,
    /// The rules; the first that a packet meets decides.
    #[serde(default)]
    pub rule: Vec<Spanned<FirewallRule>>,
}

/// `[[firewall.rule]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FirewallRule {
    /// Packets that it is about, in the words of `ovs-ofctl`: `tcp,nw_dst=10.0.0.1,tp_dst=80`.
    #[serde(rename = "match")]
    pub matching: MatchText,
    /// The action for them.
    pub action: FirewallAction,
    /// The switch that it is for; all where there is none.
    pub switch: Option<SwitchId>,
}

/// The action of a firewall on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirewallAction {
    /// It is forwarded.
    Allow,
    /// It is dropped.
    Deny,
}

impl FirewallConfig {
    pub(super) fn check(&self) -> Result<(), Fault> {
        match self.rule.get(RULES_MAX) {
            Some(rule) => {
                Err(Fault::at(rule, "firewall.rule", format!("at most {RULES_MAX} rules")))
            }
            None => Ok(()),
        }
    }

    /// The rules for a switch.
    fn rules(&self, dpid: DatapathId) -> impl Iterator<Item = &FirewallRule> {
        let rules = self.rule.iter().map(Spanned::get_ref);
        rules.filter(move |rule| rule.switch.is_none_or(|switch| switch.0 == dpid))
    }
}

/// The app.
#[derive(Debug)]
pub struct Firewall {
    config: Arc<FirewallConfig>,
    /// Forwards what is allowed.
    forwarding: BehindRules,
    /// Switches that cannot have the rules.
    refused: HashSet<DatapathId>,
}

impl Firewall {
    /// An instance with these rules.
    #[must_use]
    pub fn new(config: Arc<FirewallConfig>) -> Self {
        Self { config, forwarding: BehindRules::default(), refused: HashSet::new() }
    }

    fn install(&self, sw: &mut Switch) {
        let rules = self.config.rules(sw.dpid());
        let rules: Vec<_> = rules.map(|rule| (rule.matching.0.clone(), rule.action)).collect();
        for (priority, (matching, action)) in (0..=FIRST_PRIORITY).rev().zip(rules) {
            sw.flow_mod(judged(priority, matching, action));
        }
        // In place of the learning switch's table-miss entry.
        sw.flow_mod(judged(0, Match::any(), self.config.default));
    }

    /// 1.0: judges a flow by its first packet.
    fn judge(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        let Some(in_port) = packet_in.in_port() else { return };
        let key = key_of(&packet_in.data, in_port);
        let mut rules = self.config.rules(sw.dpid());
        let rule = rules.find(|rule| key.matches(&rule.matching.0));
        let actions = match rule.map_or(self.config.default, |rule| rule.action) {
            FirewallAction::Deny => Vec::new(),
            FirewallAction::Allow => match self.forwarding.destination(sw, packet_in) {
                Destination::Nowhere => return,
                Destination::Everywhere => return sw.flood(packet_in),
                Destination::Port(port, _) => vec![Action::output(port)],
            },
        };
        let flow = entry(FLOW_PRIORITY, microflow(&key), actions.clone());
        sw.flow_mod(FlowMod { idle_timeout_s: IDLE_TIMEOUT_S, ..flow });
        if !actions.is_empty() {
            sw.packet_out(packet_in, actions);
        }
    }
}

/// The entry of a rule: on to the next table, or nowhere.
fn judged(priority: u16, matching: Match, action: FirewallAction) -> FlowMod {
    let mut entry = entry(priority, matching, Vec::new());
    match action {
        FirewallAction::Allow => entry.instructions.push(Instruction::GotoTable(FORWARDING)),
        FirewallAction::Deny => {}
    }
    entry
}

impl App for Firewall {
    fn switch_ready(&mut self, sw: &mut Switch) {
        self.refused.remove(&sw.dpid());
        let version = sw.version();
        let is_supported = |rule: &FirewallRule| {
            rule.matching.0.fields().iter().all(|held| held.field.row().since <= version)
        };
        if !self.config.rules(sw.dpid()).all(is_supported) {
            self.refused.insert(sw.dpid());
            sw.clear_flows();
            sw.flow_mod(judged(FLOW_PRIORITY, Match::any(), FirewallAction::Deny));
            return needs(
                sw,
                "firewall",
                "match fields of its rules that its version does not have",
            );
        }
        self.forwarding.switch_ready(sw);
        if version.has_pipeline() {
            self.install(sw);
        }
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        self.refused.remove(&dpid);
        self.forwarding.switch_down(dpid);
    }

    fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        if self.refused.contains(&sw.dpid()) {
            // No app behind this one forwards what a rule might have stopped.
            sw.stop();
        } else if sw.version().has_pipeline() {
            // Only what the rules have let through comes from this table.
            if packet_in.table_id == FORWARDING {
                self.forwarding.packet_in(sw, packet_in);
            }
        } else {
            self.judge(sw, packet_in);
        }
    }

    fn port_status(&mut self, sw: &mut Switch, status: &PortStatus) {
        self.forwarding.port_status(sw, status);
    }
}
