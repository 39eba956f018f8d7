//! The endpoints of Ryu's `rest_firewall`: switches that forward what a rule allows.
//!
//! A firewall is three kinds of flow entries in table 0: one of the highest priority that drops all
//! while it is disabled, one that lets ARP through, and one of the lowest that drops the rest, or
//! has it logged. Rules lie between. Ryu made every switch a firewall; here a switch becomes one
//! when it is enabled or disabled for the first time, and its other flow entries stay.

use crate::byte_budget::ByteBudget;
use crate::datapath::Target;
use crate::problem::Problem;
use crate::route::{Answer, Body, Call, Reply, Row, endpoints};
use crate::rules::{self, DeletionWords, Rule, Vlan};
use crate::shape::{Of, Shape, key, needed};
use openflow::flow::{FlowMod, FlowModCommand, FlowStats};
use openflow::{Action, Field, Instruction, Match, Message, PortNo};
use serde_json::Value;

/// The entry that drops all while the firewall is disabled.
const STATUS_PRIORITY: u16 = u16::MAX;
/// The entry that lets ARP through.
const ARP_PRIORITY: u16 = STATUS_PRIORITY - 1;
/// The entry for what no rule allows.
const LOG_PRIORITY: u16 = 0;
/// Bytes of a packet that is logged.
const LOGGED_BYTES: u16 = 128;

/// A rule.
pub(crate) static RULE: Shape = Shape {
    name: "rule",
    what: "a rule of the firewall",
    keys: &[
        key("priority", Of::Number(16), "1 to 65533, higher wins; default: 1"),
        rules::IN_PORT,
        rules::DL_SRC,
        rules::DL_DST,
        rules::DL_TYPE,
        rules::NW_SRC,
        rules::NW_DST,
        rules::IPV6_SRC,
        rules::IPV6_DST,
        rules::NW_PROTO,
        rules::TP_SRC,
        rules::TP_DST,
        key("actions", Of::Word(&["ALLOW", "DENY"]), "what happens; default: ALLOW"),
    ],
};

static RULE_ID: Shape = Shape {
    name: "rule_id",
    what: "which rules of the firewall",
    keys: &[needed("rule_id", Of::Scalar, "the rule's number, or `all`")],
};

/// The endpoints.
pub(crate) fn rows() -> [Row; 12] {
    endpoints! {
        GET "/firewall/module/status" "Which firewalls are enabled" Body::None, true => status;
        PUT "/firewall/module/enable/{switch}" "Enable a firewall" Body::None, true => enable;
        PUT "/firewall/module/disable/{switch}" "Drop everything" Body::None, true => disable;
        GET "/firewall/log/status" "Which firewalls log" Body::None, true => log_status;
        PUT "/firewall/log/enable/{switch}" "Log what is dropped" Body::None, true => log_enable;
        PUT "/firewall/log/disable/{switch}" "Log nothing" Body::None, true => log_disable;
        GET "/firewall/rules/{switch}" "Rules for packets of any VLAN" Body::None, true => get;
        GET "/firewall/rules/{switch}/{vlan}" "Rules of a VLAN" Body::None, true => get;
        POST "/firewall/rules/{switch}" "Add a rule" Body::Must(&RULE), true => add;
        POST "/firewall/rules/{switch}/{vlan}" "Add a rule for a VLAN" Body::Must(&RULE), true
            => add;
        DELETE "/firewall/rules/{switch}" "Delete rules" Body::Must(&RULE_ID), true => delete;
        DELETE "/firewall/rules/{switch}/{vlan}" "Delete rules of a VLAN" Body::Must(&RULE_ID),
            true => delete;
    }
}

fn is_rule(priority: u16) -> bool {
    ![STATUS_PRIORITY, ARP_PRIORITY, LOG_PRIORITY].contains(&priority)
}

fn entry(command: FlowModCommand, priority: u16, matching: Match, actions: Vec<Action>) -> Message {
    let mut flow = FlowMod::new(command);
    (flow.priority, flow.matching) = (priority, matching);
    if !actions.is_empty() {
        flow.instructions = vec![Instruction::ApplyActions(actions)];
    }
    Message::FlowMod(flow)
}

fn allow() -> Vec<Action> {
    vec![Action::output(PortNo::NORMAL)]
}

fn log() -> Vec<Action> {
    vec![Action::Output { port: PortNo::CONTROLLER, max_len: LOGGED_BYTES }]
}

/// The entries that every firewall has: ARP, and the one that logs.
fn ground() -> Vec<Message> {
    let arp = Match::any().with(Field::EthType, 0x0806);
    vec![
        entry(FlowModCommand::Add, ARP_PRIORITY, arp, allow()),
        entry(FlowModCommand::Add, LOG_PRIORITY, Match::any(), log()),
    ]
}

/// Whether a switch is a firewall: it has the entry for ARP.
fn is_firewall(flows: &[FlowStats]) -> bool {
    flows.iter().any(|flow| flow.priority == ARP_PRIORITY)
}

fn is_logging(flows: &[FlowStats]) -> bool {
    flows.iter().any(|flow| flow.priority == LOG_PRIORITY && !flow.instructions.is_empty())
}

/// The actions of an entry as the switch has them.
fn actions(flow: &FlowStats) -> &[Action] {
    match flow.instructions.as_slice() {
        [Instruction::ApplyActions(actions)] => actions,
        _ => &[],
    }
}

fn allows(flow: &FlowStats) -> bool {
    matches!(actions(flow), [Action::Output { port: PortNo::NORMAL, .. }])
}

async fn status(call: Call) -> Answer {
    rules::each(rules::targets(&call.services, &call)?, |target| async move {
        let flows = rules::flows(&target).await?;
        let is_stopped = flows.iter().any(|flow| flow.priority == STATUS_PRIORITY);
        let is_enabled = is_firewall(&flows) && !is_stopped;
        let word = if is_enabled { "enable" } else { "disable" };
        Ok(rules::of_switch(&target, "status", word))
    })
    .await
}

async fn enable(call: Call) -> Answer {
    set_status(&call, FlowModCommand::DeleteStrict, "firewall running.").await
}

async fn disable(call: Call) -> Answer {
    set_status(&call, FlowModCommand::Add, "firewall stopped.").await
}

async fn set_status(call: &Call, command: FlowModCommand, details: &str) -> Answer {
    rules::change_each(rules::targets(&call.services, call)?, |target| async move {
        let flows = rules::flows(&target).await?;
        let mut messages = if is_firewall(&flows) { Vec::new() } else { ground() };
        messages.push(entry(command, STATUS_PRIORITY, Match::any(), Vec::new()));
        target.apply(messages).await?;
        Ok(rules::of_switch(&target, "command_result", rules::result(0, "success", details)))
    })
    .await
}

async fn log_status(call: Call) -> Answer {
    rules::each(rules::targets(&call.services, &call)?, |target| async move {
        let flows = rules::flows(&target).await?;
        let is_on = is_firewall(&flows) && is_logging(&flows);
        let word = if is_on { "enable" } else { "disable" };
        Ok(rules::of_switch(&target, "log_status", word))
    })
    .await
}

async fn log_enable(call: Call) -> Answer {
    set_log(&call, true, "Log collection started.").await
}

async fn log_disable(call: Call) -> Answer {
    set_log(&call, false, "Log collection stopped.").await
}

/// Has dropped packets go to the controller or not: entries that allow stay as they are.
async fn set_log(call: &Call, is_on: bool, details: &str) -> Answer {
    rules::change_each(rules::targets(&call.services, call)?, |target| async move {
        let flows = firewall_flows(&target).await?;
        let dropping = |flow: &&FlowStats| {
            ![STATUS_PRIORITY, ARP_PRIORITY].contains(&flow.priority) && !allows(flow)
        };
        let again = |flow: &FlowStats| {
            let actions = if is_on { log() } else { Vec::new() };
            let command = FlowModCommand::Add;
            let mut message = entry(command, flow.priority, flow.matching.clone(), actions);
            if let Message::FlowMod(flow_mod) = &mut message {
                flow_mod.cookie = flow.cookie;
            }
            message
        };
        let messages = flows.iter().filter(dropping).map(again).collect();
        target.apply(messages).await?;
        Ok(rules::of_switch(&target, "command_result", rules::result(0, "success", details)))
    })
    .await
}

/// The entries of a switch that is a firewall.
async fn firewall_flows(target: &Target) -> Result<Vec<FlowStats>, Problem> {
    let flows = rules::flows(target).await?;
    if is_firewall(&flows) {
        return Ok(flows);
    }
    let dpid = target.datapath.dpid;
    let words = format!(
        "switch {dpid} is no firewall yet: PUT /firewall/module/enable/{dpid} makes it one"
    );
    Err(Problem::new(axum::http::StatusCode::CONFLICT, words))
}

async fn get(call: Call) -> Result<Reply, Problem> {
    let vlan = Vlan::of(&call)?;
    let budget = &ByteBudget::of_vlans(&call);
    rules::each_text(rules::targets(&call.services, &call)?, |target| async move {
        let held = rules::rules(firewall_flows(&target).await?, is_rule);
        let show = |rule: &Rule| {
            let mut shown = rules::match_of(target.version(), rule);
            shown.extend(of_rule(rule));
            shown
        };
        let mut text = rules::text_of_switch(&target, "access_control_list");
        rules::by_vlan(&mut text, &held, vlan, "rules", budget, show).await?;
        text.push('}');
        Ok(text)
    })
    .await
}

fn of_rule(rule: &Rule) -> [(String, Value); 3] {
    let word = if allows(&rule.flow) { "ALLOW" } else { "DENY" };
    [
        ("rule_id".to_owned(), rule.number.into()),
        ("priority".to_owned(), rule.flow.priority.into()),
        ("actions".to_owned(), word.into()),
    ]
}

async fn add(call: Call) -> Answer {
    let vlan = Vlan::of(&call)?;
    let call = &call;
    rules::change_each(rules::targets(&call.services, call)?, |target| async move {
        let flows = firewall_flows(&target).await?;
        let is_logging = is_logging(&flows);
        let existing = rules::rules(flows, is_rule);
        let added = rules::added(&call.services.firewall, &target, &existing, vlan);
        let (mut results, mut messages) = (Vec::new(), Vec::new());
        for (number, vlan, mut flow) in added {
            let fields = call.fields(&RULE)?;
            flow.priority = fields.number("priority")?.unwrap_or(1);
            if !is_rule(flow.priority) {
                let words = format!("Invalid priority value. Set [1-{}]", ARP_PRIORITY - 1);
                return Err(fields.problem("priority", words));
            }
            flow.matching = rules::matching(&fields, target.version(), vlan)?;
            let actions = match fields.word("actions")? {
                Some("DENY") if is_logging => log(),
                Some("DENY") => Vec::new(),
                Some(_) | None => allow(),
            };
            if !actions.is_empty() {
                flow.instructions = vec![Instruction::ApplyActions(actions)];
            }
            messages.push(Message::FlowMod(flow));
            results.push(rules::result(vlan, "success", format!("Rule added. : rule_id={number}")));
        }
        target.apply(messages).await?;
        Ok(rules::of_switch(&target, "command_result", results))
    })
    .await
}

static DELETION: DeletionWords =
    DeletionWords { deleted: "Rule deleted.", missing: "Rule is not exist.", number: "ruleID" };

async fn delete(call: Call) -> Answer {
    let vlan = Vlan::of(&call)?;
    let number = rules::number_of(&call.fields(&RULE_ID)?, "rule_id")?;
    let call = &call;
    rules::change_each(rules::targets(&call.services, call)?, |target| async move {
        let held = rules::rules(firewall_flows(&target).await?, is_rule);
        rules::delete(&target, held, number, vlan, &DELETION).await
    })
    .await
}
