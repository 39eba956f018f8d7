//! The endpoints of Ryu's `rest_qos`, as far as OpenFlow carries them: rules that mark, meter or
//! queue packets, and meters.
//!
//! A rule is a flow entry of table 0 that goes on in table 1, where forwarding is another app's. An
//! entry of the lowest priority takes the other packets there; it comes with the first rule. Queues
//! are set up by no OpenFlow message: they are shown, and a request to make some is refused.

use crate::byte_budget::ByteBudget;
use crate::datapath::Target;
use crate::ofctl::{modify, render, stats};
use crate::problem::Problem;
use crate::route::{Answer, Body, Call, Reply, Row, endpoints};
use crate::rules::{self, DeletionWords, Rule, Vlan};
use crate::shape::{Fields, Of, Shape, key, needed};
use crate::words;
use axum::http::StatusCode;
use openflow::flow::{FlowMod, FlowModCommand, FlowStats};
use openflow::meter::MeterModCommand;
use openflow::{Action, Field, Instruction, Message, MeterId, PortNo, QueueId, TableId};
use serde_json::{Value, json};

/// The table in which forwarding begins.
const NEXT_TABLE: TableId = TableId(1);
/// The priority of the entry that takes other packets there.
const DEFAULT_PRIORITY: u16 = 0;
const PRIORITY_MAX: u16 = u16::MAX - 1;

static RULE: Shape = Shape {
    name: "qos",
    what: "a rule of QoS",
    keys: &[
        needed("match", Of::Object(|| &MATCH), "packets that it is for"),
        key("actions", Of::Object(|| &ACTIONS), "what happens to them; default: queue 0"),
        key("priority", Of::Number(16), "1 to 65534, higher wins; default: 1"),
    ],
};

static MATCH: Shape = Shape {
    name: "qos_match",
    what: "the packets of a rule of QoS",
    keys: &[
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
        key("ip_dscp", Of::Scalar, "DSCP"),
    ],
};

static ACTIONS: Shape = Shape {
    name: "qos_actions",
    what: "the actions of a rule of QoS",
    keys: &[
        key("mark", Of::Number(6), "the DSCP that packets get"),
        key("meter", Of::Number(32), "the meter that they go through"),
        key("queue", Of::Number(32), "the queue that they are sent by"),
    ],
};

static QOS_ID: Shape = Shape {
    name: "qos_id",
    what: "which rules of QoS",
    keys: &[needed("qos_id", Of::Scalar, "the rule's number, or `all`")],
};

static METER: Shape = Shape {
    name: "qos_meter",
    what: "a meter of the switches in the path",
    keys: &[
        needed("meter_id", Of::Named(32, &words::METERS), "its number"),
        modify::METER_FLAGS,
        modify::METER_BANDS,
    ],
};

static QUEUES: Shape = Shape {
    name: "queues",
    what: "queues of ports",
    keys: &[
        key("port_name", Of::Text, "the port; default: all"),
        key("type", Of::Text, "linux-htb or linux-other"),
        key("max_rate", Of::Scalar, "the highest rate of all queues, b/s"),
        key("queues", Of::List(&QUEUE), "the queues, counted from zero"),
    ],
};

static QUEUE: Shape = Shape {
    name: "queue",
    what: "a queue of a port",
    keys: &[
        key("max_rate", Of::Scalar, "its highest rate, b/s"),
        key("min_rate", Of::Scalar, "its guaranteed rate, b/s"),
    ],
};

/// The endpoints.
pub(crate) fn rows() -> [Row; 13] {
    endpoints! {
        GET "/qos/queue/{switch}" "Queues" Body::None, true => queues;
        POST "/qos/queue/{switch}" "OpenFlow sets up no queues" Body::May(&QUEUES), true
            => no_queues;
        DELETE "/qos/queue/{switch}" "OpenFlow deletes no queues" Body::None, true => no_queues;
        GET "/qos/queue/status/{switch}" "Counters of queues" Body::None, true => queue_status;
        GET "/qos/rules/{switch}" "Rules for packets of any VLAN" Body::None, true => get;
        GET "/qos/rules/{switch}/{vlan}" "Rules of a VLAN" Body::None, true => get;
        POST "/qos/rules/{switch}" "Add a rule" Body::Must(&RULE), true => add;
        POST "/qos/rules/{switch}/{vlan}" "Add a rule for a VLAN" Body::Must(&RULE), true => add;
        DELETE "/qos/rules/{switch}" "Delete rules" Body::Must(&QOS_ID), true => delete;
        DELETE "/qos/rules/{switch}/{vlan}" "Delete rules of a VLAN" Body::Must(&QOS_ID), true
            => delete;
        GET "/qos/meter/{switch}" "Counters of meters" Body::None, true => meters;
        POST "/qos/meter/{switch}" "Add a meter" Body::Must(&METER), true => add_meter;
        DELETE "/qos/meter/{switch}" "Delete a meter" Body::Must(&METER), true => delete_meter;
    }
}

fn is_rule(priority: u16) -> bool {
    priority != DEFAULT_PRIORITY
}

/// The switches of the path, all with more tables than one.
fn targets(call: &Call) -> Result<Vec<Target>, Problem> {
    let targets = rules::targets(&call.services, call)?;
    let old = targets.iter().find(|target| !target.version().has_pipeline());
    match old {
        Some(target) => Err(Problem::not_in(target.version(), "tables behind each other")
            .at(target.datapath.dpid.to_string())),
        None => Ok(targets),
    }
}

async fn no_queues(call: Call) -> Answer {
    rules::targets(&call.services, &call)?;
    let words = "no OpenFlow message sets up queues: set them up at the switch itself, as with \
        `weir switch --queue 1:5,min=30%,max=50%`; GET shows them";
    Err(Problem::new(StatusCode::NOT_IMPLEMENTED, words))
}

async fn queues(call: Call) -> Answer {
    rules::each(rules::targets(&call.services, &call)?, |target| async move {
        let version = target.version();
        // 1.0 asks for the queues of one port.
        let real = target.datapath.ports.iter().map(|port| port.port_no);
        let ports: Vec<PortNo> = if version.has_queues_of_any_port() {
            vec![PortNo::ANY]
        } else {
            real.filter(|port| *port <= PortNo::MAX).collect()
        };
        let mut shown = Vec::new();
        for port in ports {
            let config = target.queues(port).await?;
            if !config.queues.is_empty() {
                shown.push(render::queue_config(version, config.port, &config.queues));
            }
        }
        let result = if shown.is_empty() {
            json!({"result": "failure", "details": "Queue is not exists."})
        } else {
            json!({"result": "success", "details": shown})
        };
        Ok(rules::of_switch(&target, "command_result", result))
    })
    .await
}

async fn queue_status(call: Call) -> Result<Reply, Problem> {
    let budget = &ByteBudget::of_switches(&call);
    rules::each_text(rules::targets(&call.services, &call)?, |target| async move {
        // 1.0 asks for the queues of all ports by the port ALL (its clause 5.3.5).
        let is_new = target.version().has_wide_ports();
        let port = if is_new { PortNo::ANY } else { PortNo::ALL };
        let mut text = rules::text_of_switch(&target, "command_result");
        stats::queues_of(&mut text, &target, port, QueueId::ALL, budget).await?;
        text.push('}');
        Ok(text)
    })
    .await
}

async fn get(call: Call) -> Result<Reply, Problem> {
    let vlan = Vlan::of(&call)?;
    let budget = &ByteBudget::of_vlans(&call);
    rules::each_text(targets(&call)?, |target| async move {
        let held = rules::rules(rules::flows(&target).await?, is_rule);
        let show = |rule: &Rule| {
            let mut shown = rules::match_of(target.version(), rule);
            shown.insert("qos_id".into(), rule.number.into());
            shown.insert("priority".into(), rule.flow.priority.into());
            shown.insert("actions".into(), actions_of(&rule.flow).into());
            shown
        };
        let mut text = rules::text_of_switch(&target, "command_result");
        rules::by_vlan(&mut text, &held, vlan, "qos", budget, show).await?;
        text.push('}');
        Ok(text)
    })
    .await
}

/// The actions of a rule's entry by the keys of a body, their numbers as digits.
fn actions_of(flow: &FlowStats) -> Vec<Value> {
    let mut values = Vec::new();
    let mut put = |key: &str, number: String| values.push(json!({ key: number }));
    for instruction in &flow.instructions {
        if let Some(meter) = instruction.meter() {
            put("meter", meter.0.to_string());
        }
        if let Instruction::ApplyActions(actions) = instruction {
            for action in actions {
                if let Action::SetField { field: Field::IpDscp, value } = action {
                    put("mark", value.to_string());
                } else if let Action::SetQueue(queue) = action {
                    put("queue", queue.0.to_string());
                }
            }
        }
    }
    values
}

/// The instructions of the key `actions`.
fn instructions(fields: &Fields<'_>) -> Result<Vec<Instruction>, Problem> {
    let (mut actions, mut instructions) = (Vec::new(), Vec::new());
    if let Some(value) = fields.get("actions") {
        let fields = Fields::of(value, &ACTIONS, "actions")?;
        if let Some(mark) = fields.number::<u8>("mark")? {
            if mark > 63 {
                return Err(fields.problem("mark", "a DSCP has 6 bits"));
            }
            actions.push(Action::set_field(Field::IpDscp, mark.into()));
        }
        if let Some(meter) = fields.number("meter")? {
            instructions.push(Instruction::Meter(MeterId(meter)));
        }
        if let Some(queue) = fields.number("queue")? {
            actions.push(Action::SetQueue(QueueId(queue)));
        }
    } else {
        actions.push(Action::SetQueue(QueueId(0)));
    }
    if !actions.is_empty() {
        instructions.push(Instruction::ApplyActions(actions));
    }
    instructions.push(Instruction::GotoTable(NEXT_TABLE));
    Ok(instructions)
}

fn default_entry() -> Message {
    let mut flow = FlowMod::new(FlowModCommand::Add);
    flow.priority = DEFAULT_PRIORITY;
    flow.instructions = vec![Instruction::GotoTable(NEXT_TABLE)];
    Message::FlowMod(flow)
}

async fn add(call: Call) -> Answer {
    let vlan = Vlan::of(&call)?;
    let call = &call;
    rules::change_each(targets(call)?, |target| async move {
        let flows = rules::flows(&target).await?;
        let onward = |flow: &FlowStats| {
            flow.priority == DEFAULT_PRIORITY
                && flow.instructions == [Instruction::GotoTable(NEXT_TABLE)]
        };
        let has_default = flows.iter().any(onward);
        let mut messages = if has_default { Vec::new() } else { vec![default_entry()] };
        let existing = rules::rules(flows, is_rule);
        let added = rules::added(&call.services.qos, &target, &existing, vlan);
        let mut results = Vec::new();
        for (number, vlan, mut flow) in added {
            let fields = call.fields(&RULE)?;
            flow.priority = fields.number("priority")?.unwrap_or(1);
            if !(1..=PRIORITY_MAX).contains(&flow.priority) {
                let words = format!("Invalid priority value. Set [1-{PRIORITY_MAX}]");
                return Err(fields.problem("priority", words));
            }
            let matched = fields.get("match").unwrap_or(&Value::Null);
            let matched = Fields::of(matched, &MATCH, "match")?;
            flow.matching = rules::matching(&matched, target.version(), vlan)?;
            flow.instructions = instructions(&fields)?;
            messages.push(Message::FlowMod(flow));
            results.push(rules::result(vlan, "success", format!("QoS added. : qos_id={number}")));
        }
        target.apply(messages).await?;
        Ok(rules::of_switch(&target, "command_result", results))
    })
    .await
}

static DELETION: DeletionWords =
    DeletionWords { deleted: " deleted.", missing: "QoS rule is not exist.", number: "QoS ID" };

async fn delete(call: Call) -> Answer {
    let vlan = Vlan::of(&call)?;
    let number = rules::number_of(&call.fields(&QOS_ID)?, "qos_id")?;
    let call = &call;
    rules::change_each(targets(call)?, |target| async move {
        let held = rules::rules(rules::flows(&target).await?, is_rule);
        rules::delete(&target, held, number, vlan, &DELETION).await
    })
    .await
}

async fn meters(call: Call) -> Result<Reply, Problem> {
    let budget = &ByteBudget::of_switches(&call);
    rules::each_text(targets(&call)?, |target| async move {
        let mut text = rules::text_of_switch(&target, "command_result");
        stats::meters_of(&mut text, &target, MeterId::ALL, budget).await?;
        text.push('}');
        Ok(text)
    })
    .await
}

async fn change_meter(call: &Call, command: MeterModCommand, result: Value) -> Answer {
    let meter_mod = modify::meter_mod(&call.fields(&METER)?, command)?;
    let (meter_mod, result) = (&meter_mod, &result);
    rules::change_each(targets(call)?, |target| async move {
        target.apply(vec![Message::MeterMod(meter_mod.clone())]).await?;
        Ok(rules::of_switch(&target, "command_result", result.clone()))
    })
    .await
}

/// The meter's id as the body writes it.
fn meter_id(call: &Call) -> String {
    let id = call.body.get("meter_id").unwrap_or(&Value::Null);
    words::plain(id)
}

async fn add_meter(call: Call) -> Answer {
    let result =
        [rules::result(0, "success", format!("Meter added. : Meter ID={}", meter_id(&call)))];
    change_meter(&call, MeterModCommand::Add, result.to_vec().into()).await
}

async fn delete_meter(call: Call) -> Answer {
    let result =
        rules::result(0, "success", format!("Meter deleted. : Meter ID={}", meter_id(&call)));
    change_meter(&call, MeterModCommand::Delete, result).await
}
