//! Actions and instructions in the words of Ryu, both ways.
//!
//! A body lists actions and, between them, what are instructions in 1.3 (`GOTO_TABLE`,
//! `WRITE_METADATA`, `METER`, `WRITE_ACTIONS`, `CLEAR_ACTIONS`). Ryu left out an action that it did
//! not know and made up an argument that was missing; both are refused here.

use super::matching::{field_value, single};
use crate::problem::Problem;
use crate::shape::{Fields, Key, Of, Shape, key, needed};
use crate::words;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openflow::field::{FIELDS, FieldRow};
use openflow::{Action, Field, GroupId, Instruction, MacAddr, MeterId, QueueId, TableId, Version};
use serde_json::{Value, json};
use std::net::Ipv4Addr;

const TYPE: Key = needed("type", Of::Text, "the action's type");
const ETHERTYPE: &[Key] = &[TYPE, needed("ethertype", Of::Number(16), "the EtherType")];
const NONE: &[Key] = &[TYPE];

macro_rules! shapes {
    ($($ident:ident $name:literal $what:literal $keys:expr;)+) => {
        $(static $ident: Shape = Shape { name: $name, what: $what, keys: $keys };)+
    };
}

shapes! {
    OUTPUT "OUTPUT" "an output" &[
        TYPE,
        needed("port", Of::Named(32, &words::PORTS), "the port"),
        key("max_len", Of::Named(16, &words::MAX_LENS), "bytes for the controller; default: MAX"),
    ];
    COPY_TTL_OUT "COPY_TTL_OUT" "a copy of the TTL outwards" NONE;
    COPY_TTL_IN "COPY_TTL_IN" "a copy of the TTL inwards" NONE;
    SET_MPLS_TTL "SET_MPLS_TTL" "a TTL for the MPLS entry" &[
        TYPE, needed("mpls_ttl", Of::Number(8), "the TTL"),
    ];
    DEC_MPLS_TTL "DEC_MPLS_TTL" "a decrement of the MPLS entry's TTL" NONE;
    PUSH_VLAN "PUSH_VLAN" "a VLAN tag to push" ETHERTYPE;
    POP_VLAN "POP_VLAN" "a VLAN tag to pop" NONE;
    PUSH_MPLS "PUSH_MPLS" "an MPLS entry to push" ETHERTYPE;
    POP_MPLS "POP_MPLS" "an MPLS entry to pop" ETHERTYPE;
    SET_QUEUE "SET_QUEUE" "a queue for the outputs behind it" &[
        TYPE, needed("queue_id", Of::Named(32, &words::QUEUES), "the queue"),
    ];
    GROUP "GROUP" "a group" &[
        TYPE, needed("group_id", Of::Named(32, &words::GROUPS), "the group"),
    ];
    SET_NW_TTL "SET_NW_TTL" "a TTL for the IP header" &[
        TYPE, needed("nw_ttl", Of::Number(8), "the TTL"),
    ];
    DEC_NW_TTL "DEC_NW_TTL" "a decrement of the IP header's TTL" NONE;
    SET_FIELD "SET_FIELD" "a field to set" &[
        TYPE,
        needed("field", Of::Text, "the field, by its name in 1.3: eth_src"),
        needed("value", Of::Scalar, "its value; a vlan_vid with OFPVID_PRESENT (4096)"),
    ];
    PUSH_PBB "PUSH_PBB" "a PBB header to push" ETHERTYPE;
    POP_PBB "POP_PBB" "a PBB header to pop" NONE;
    EXPERIMENTER "EXPERIMENTER" "an experimenter's action" &[
        TYPE,
        needed("experimenter", Of::Number(32), "whose it is"),
        key("data", Of::Text, "its body"),
        key("data_type", Of::Word(&["ascii", "base64"]), "how the body is written"),
    ];
    SET_VLAN_VID "SET_VLAN_VID" "1.0: a VLAN id to set" &[
        TYPE, needed("vlan_vid", Of::Number(16), "the id"),
    ];
    SET_VLAN_PCP "SET_VLAN_PCP" "1.0: a VLAN priority to set" &[
        TYPE, needed("vlan_pcp", Of::Number(8), "the priority"),
    ];
    STRIP_VLAN "STRIP_VLAN" "1.0: a VLAN tag to strip" NONE;
    SET_DL_SRC "SET_DL_SRC" "1.0: an Ethernet source to set" &[
        TYPE, needed("dl_src", Of::Text, "the address"),
    ];
    SET_DL_DST "SET_DL_DST" "1.0: an Ethernet destination to set" &[
        TYPE, needed("dl_dst", Of::Text, "the address"),
    ];
    SET_NW_SRC "SET_NW_SRC" "1.0: an IPv4 source to set" &[
        TYPE, needed("nw_src", Of::Text, "the address"),
    ];
    SET_NW_DST "SET_NW_DST" "1.0: an IPv4 destination to set" &[
        TYPE, needed("nw_dst", Of::Text, "the address"),
    ];
    SET_NW_TOS "SET_NW_TOS" "1.0: a TOS byte to set" &[
        TYPE, needed("nw_tos", Of::Number(8), "the byte"),
    ];
    SET_TP_SRC "SET_TP_SRC" "1.0: a source port to set" &[
        TYPE, needed("tp_src", Of::Number(16), "the port"),
    ];
    SET_TP_DST "SET_TP_DST" "1.0: a destination port to set" &[
        TYPE, needed("tp_dst", Of::Number(16), "the port"),
    ];
    ENQUEUE "ENQUEUE" "1.0: an output through a queue" &[
        TYPE,
        needed("port", Of::Named(32, &words::PORTS), "the port"),
        needed("queue_id", Of::Named(32, &words::QUEUES), "the queue"),
    ];
    GOTO_TABLE "GOTO_TABLE" "a table to go on in" &[
        TYPE, needed("table_id", Of::Named(8, &words::TABLES), "the table"),
    ];
    WRITE_METADATA "WRITE_METADATA" "metadata to write" &[
        TYPE,
        needed("metadata", Of::Number(64), "the bits"),
        key("metadata_mask", Of::Number(64), "which bits; default: all"),
    ];
    METER "METER" "a meter" &[
        TYPE, needed("meter_id", Of::Named(32, &words::METERS), "the meter"),
    ];
    WRITE_ACTIONS "WRITE_ACTIONS" "actions for the action set" &[
        TYPE, needed("actions", Of::Typed(ACTIONS), "the actions"),
    ];
    APPLY_ACTIONS "APPLY_ACTIONS" "actions to run at once" &[
        TYPE, needed("actions", Of::Typed(ACTIONS), "the actions"),
    ];
    CLEAR_ACTIONS "CLEAR_ACTIONS" "the action set emptied" NONE;
}

/// What may stand in a list of actions of a group's bucket.
pub(crate) static ACTIONS: &[&Shape] = &[
    &OUTPUT,
    &COPY_TTL_OUT,
    &COPY_TTL_IN,
    &SET_MPLS_TTL,
    &DEC_MPLS_TTL,
    &PUSH_VLAN,
    &POP_VLAN,
    &PUSH_MPLS,
    &POP_MPLS,
    &SET_QUEUE,
    &GROUP,
    &SET_NW_TTL,
    &DEC_NW_TTL,
    &SET_FIELD,
    &PUSH_PBB,
    &POP_PBB,
    &EXPERIMENTER,
    &SET_VLAN_VID,
    &SET_VLAN_PCP,
    &STRIP_VLAN,
    &SET_DL_SRC,
    &SET_DL_DST,
    &SET_NW_SRC,
    &SET_NW_DST,
    &SET_NW_TOS,
    &SET_TP_SRC,
    &SET_TP_DST,
    &ENQUEUE,
];

/// What may stand in the list of actions of a flow entry: the actions, and instructions.
pub(crate) static FLOW_ACTIONS: &[&Shape] = &[
    &OUTPUT,
    &COPY_TTL_OUT,
    &COPY_TTL_IN,
    &SET_MPLS_TTL,
    &DEC_MPLS_TTL,
    &PUSH_VLAN,
    &POP_VLAN,
    &PUSH_MPLS,
    &POP_MPLS,
    &SET_QUEUE,
    &GROUP,
    &SET_NW_TTL,
    &DEC_NW_TTL,
    &SET_FIELD,
    &PUSH_PBB,
    &POP_PBB,
    &EXPERIMENTER,
    &SET_VLAN_VID,
    &SET_VLAN_PCP,
    &STRIP_VLAN,
    &SET_DL_SRC,
    &SET_DL_DST,
    &SET_NW_SRC,
    &SET_NW_DST,
    &SET_NW_TOS,
    &SET_TP_SRC,
    &SET_TP_DST,
    &ENQUEUE,
    &GOTO_TABLE,
    &WRITE_METADATA,
    &METER,
    &WRITE_ACTIONS,
    &CLEAR_ACTIONS,
];

/// What may stand in the list of instructions of a flow entry.
pub(crate) static INSTRUCTIONS: &[&Shape] =
    &[&GOTO_TABLE, &WRITE_METADATA, &METER, &WRITE_ACTIONS, &APPLY_ACTIONS, &CLEAR_ACTIONS];

/// The types that a version has, for a refusal of others.
fn types_of(version: Version) -> impl Iterator<Item = &'static str> {
    let all = FLOW_ACTIONS.iter().map(|shape| shape.name);
    all.filter(move |name| is_in(version, name))
}

/// Whether a version has an action or instruction of this type.
fn is_in(version: Version, name: &str) -> bool {
    let only_1_0 = [
        "SET_VLAN_",
        "STRIP_",
        "SET_DL_",
        "SET_NW_SRC",
        "SET_NW_DST",
        "SET_NW_TOS",
        "SET_TP_",
        "ENQUEUE",
    ];
    let both = ["OUTPUT", "EXPERIMENTER"].contains(&name);
    both || only_1_0.iter().any(|start| name.starts_with(start)) != version.has_set_field()
}

/// The instructions of the keys `actions` and `instructions` of a flow entry's body.
///
/// # Errors
/// When an action is unknown, not of the version, or wrong.
pub(crate) fn instructions(
    fields: &Fields<'_>,
    version: Version,
) -> Result<Vec<Instruction>, Problem> {
    let named = fields.list("instructions")?;
    if !named.is_empty() {
        if fields.get("actions").is_some() {
            let words = "a flow entry is given by `actions` or by `instructions`";
            return Err(fields.problem("instructions", words));
        }
        if !version.has_instructions() {
            return Err(Problem::not_in(version, "instructions").at(fields.path("instructions")));
        }
        let one = |(place, value): &(String, &Value)| {
            let fields = Fields::typed(value, INSTRUCTIONS, place)?;
            match instruction(&fields, version)? {
                Some(instruction) => Ok(instruction),
                None => applied(&fields, version).map(Instruction::ApplyActions),
            }
        };
        return named.iter().map(one).collect();
    }
    let (mut instructions, mut actions) = (Vec::new(), Vec::new());
    for (place, value) in fields.list("actions")? {
        let fields = Fields::typed(value, FLOW_ACTIONS, &place)?;
        check_version(&fields, version)?;
        match instruction(&fields, version)? {
            // Ryu leaves an empty list out, which comes to the same.
            Some(Instruction::WriteActions(list)) if list.is_empty() => {}
            Some(instruction) => instructions.push(instruction),
            None => actions.push(action(&fields, version)?),
        }
    }
    if !actions.is_empty() {
        instructions.push(Instruction::ApplyActions(actions));
    }
    Ok(instructions)
}

fn check_version(fields: &Fields<'_>, version: Version) -> Result<(), Problem> {
    if is_in(version, fields.name()) {
        return Ok(());
    }
    let words = format!("{version} has no {}", fields.name());
    Err(fields.problem("type", words).allowing(types_of(version)))
}

/// The instruction that an object is; `None` when it is an action or a list of them to apply.
fn instruction(fields: &Fields<'_>, version: Version) -> Result<Option<Instruction>, Problem> {
    Ok(Some(match fields.name() {
        "GOTO_TABLE" => Instruction::GotoTable(table(fields)?),
        "WRITE_METADATA" => Instruction::WriteMetadata {
            metadata: fields.number("metadata")?.unwrap_or(0),
            mask: fields.number("metadata_mask")?.unwrap_or(u64::MAX),
        },
        "METER" => {
            let meter = fields.named("meter_id", &words::METERS)?;
            Instruction::Meter(MeterId(meter.unwrap_or_default()))
        }
        "WRITE_ACTIONS" => Instruction::WriteActions(applied(fields, version)?),
        "CLEAR_ACTIONS" => Instruction::ClearActions,
        _ => return Ok(None),
    }))
}

fn table(fields: &Fields<'_>) -> Result<TableId, Problem> {
    let number = fields.named("table_id", &words::TABLES)?.unwrap_or_default();
    let small = u8::try_from(number);
    small.map(TableId).map_err(|_| fields.problem("table_id", "a table has 8 bits"))
}

/// The actions of the key `actions`, without instructions.
///
/// # Errors
/// As [`instructions`].
pub(crate) fn applied(fields: &Fields<'_>, version: Version) -> Result<Vec<Action>, Problem> {
    let list = fields.list("actions")?;
    let one = |(place, value): (String, &Value)| {
        let fields = Fields::typed(value, ACTIONS, &place)?;
        check_version(&fields, version)?;
        action(&fields, version)
    };
    list.into_iter().map(one).collect()
}

fn action(fields: &Fields<'_>, version: Version) -> Result<Action, Problem> {
    Ok(match fields.name() {
        "OUTPUT" => Action::Output {
            port: words::port_of(fields, "port", version)?.unwrap_or_default(),
            max_len: max_len(fields)?,
        },
        "COPY_TTL_OUT" => Action::CopyTtlOut,
        "COPY_TTL_IN" => Action::CopyTtlIn,
        "SET_MPLS_TTL" => Action::SetMplsTtl(fields.number("mpls_ttl")?.unwrap_or_default()),
        "DEC_MPLS_TTL" => Action::DecMplsTtl,
        "PUSH_VLAN" => Action::PushVlan(ethertype(fields)?),
        "POP_VLAN" => Action::PopVlan,
        "PUSH_MPLS" => Action::PushMpls(ethertype(fields)?),
        "POP_MPLS" => Action::PopMpls(ethertype(fields)?),
        "SET_QUEUE" => Action::SetQueue(queue(fields)?),
        "GROUP" => {
            let group = fields.named("group_id", &words::GROUPS)?;
            Action::Group(GroupId(group.unwrap_or_default()))
        }
        "SET_NW_TTL" => Action::SetNwTtl(fields.number("nw_ttl")?.unwrap_or_default()),
        "DEC_NW_TTL" => Action::DecNwTtl,
        "SET_FIELD" => set_field(fields, version)?,
        "PUSH_PBB" => Action::PushPbb(ethertype(fields)?),
        "POP_PBB" => Action::PopPbb,
        "EXPERIMENTER" => Action::Experimenter {
            experimenter: fields.number("experimenter")?.unwrap_or_default(),
            data: data(fields)?,
        },
        _ => return action_of_1_0(fields, version),
    })
}

fn action_of_1_0(fields: &Fields<'_>, version: Version) -> Result<Action, Problem> {
    Ok(match fields.name() {
        "SET_VLAN_VID" => Action::SetVlanVid(fields.number("vlan_vid")?.unwrap_or_default()),
        "SET_VLAN_PCP" => Action::SetVlanPcp(fields.number("vlan_pcp")?.unwrap_or_default()),
        "STRIP_VLAN" => Action::StripVlan,
        "SET_DL_SRC" => Action::SetDlSrc(mac(fields, "dl_src")?),
        "SET_DL_DST" => Action::SetDlDst(mac(fields, "dl_dst")?),
        "SET_NW_SRC" => Action::SetNwSrc(ipv4(fields, "nw_src")?),
        "SET_NW_DST" => Action::SetNwDst(ipv4(fields, "nw_dst")?),
        "SET_NW_TOS" => Action::SetNwTos(fields.number("nw_tos")?.unwrap_or_default()),
        "SET_TP_SRC" => Action::SetTpSrc(fields.number("tp_src")?.unwrap_or_default()),
        "SET_TP_DST" => Action::SetTpDst(fields.number("tp_dst")?.unwrap_or_default()),
        "ENQUEUE" => Action::Enqueue {
            port: words::port_of(fields, "port", version)?.unwrap_or_default(),
            queue: queue(fields)?,
        },
        name => return Err(fields.problem("type", format!("{name} is no action"))),
    })
}

fn max_len(fields: &Fields<'_>) -> Result<u16, Problem> {
    let number = fields.named("max_len", &words::MAX_LENS)?.unwrap_or(0xffe5);
    u16::try_from(number).map_err(|_| fields.problem("max_len", "at most 65535 bytes"))
}

fn ethertype(fields: &Fields<'_>) -> Result<u16, Problem> {
    fields.number("ethertype").map(Option::unwrap_or_default)
}

fn queue(fields: &Fields<'_>) -> Result<QueueId, Problem> {
    let number = fields.named("queue_id", &words::QUEUES)?;
    Ok(QueueId(number.unwrap_or_default()))
}

fn mac(fields: &Fields<'_>, key: &str) -> Result<MacAddr, Problem> {
    let text = fields.text(key)?.unwrap_or_default();
    text.parse().map_err(|error| fields.problem(key, format!("`{text}` is {error}")))
}

fn ipv4(fields: &Fields<'_>, key: &str) -> Result<Ipv4Addr, Problem> {
    let text = fields.text(key)?.unwrap_or_default();
    let no_address = |_| fields.problem(key, format!("`{text}` is not an IPv4 address"));
    text.parse().map_err(no_address)
}

fn set_field(fields: &Fields<'_>, version: Version) -> Result<Action, Problem> {
    let name = fields.text("field")?.unwrap_or_default();
    let settable = |row: &&FieldRow| row.settable;
    let row = FIELDS.iter().filter(settable).find(|row| row.name == name);
    let row = row.ok_or_else(|| {
        let words = format!("no field `{name}` can be set");
        let names = FIELDS.iter().filter(settable).map(|row| row.name);
        fields.problem("field", words).allowing(names)
    })?;
    let Some(value) = fields.get("value") else {
        return Err(fields.problem("value", "a value is missing"));
    };
    let read = field_value(version, row.field, value);
    let (bits, mask) = read.map_err(|problem| problem.at(fields.path("value")))?;
    if mask != row.field.full_mask() {
        return Err(fields.problem("value", "set-field takes no mask"));
    }
    Ok(Action::set_field(row.field, bits))
}

/// The body of an experimenter's action or message.
///
/// # Errors
/// When it is not what `data_type` says.
pub(crate) fn data(fields: &Fields<'_>) -> Result<Vec<u8>, Problem> {
    let text = fields.text("data")?.unwrap_or_default();
    match fields.word("data_type")? {
        Some("base64") => {
            let decoded = STANDARD.decode(text);
            decoded.map_err(|error| fields.problem("data", format!("not base64: {error}")))
        }
        Some(_) | None if text.is_ascii() => Ok(text.as_bytes().to_vec()),
        Some(_) | None => {
            Err(fields.problem("data", "not ASCII; other bytes are given by data_type base64"))
        }
    }
}

/// Instructions as Ryu prints them: strings, and an object for those of the action set.
pub(crate) fn to_values(version: Version, instructions: &[Instruction]) -> Vec<Value> {
    let mut values = Vec::new();
    for instruction in instructions {
        match instruction {
            Instruction::ApplyActions(list) => {
                values.extend(list.iter().map(|action| to_text(version, action).into()));
            }
            Instruction::WriteActions(list) => {
                let texts: Vec<_> = list.iter().map(|action| to_text(version, action)).collect();
                if !texts.is_empty() {
                    values.push(json!({ "WRITE_ACTIONS": texts }));
                }
            }
            Instruction::ClearActions => values.push("CLEAR_ACTIONS".into()),
            Instruction::GotoTable(table) => {
                let table = words::plain(&words::TABLES.value(table.0.into()));
                values.push(format!("GOTO_TABLE:{table}").into());
            }
            Instruction::WriteMetadata { metadata, mask: 0 } => {
                values.push(format!("WRITE_METADATA:{metadata:#x}").into());
            }
            Instruction::WriteMetadata { metadata, mask } => {
                values.push(format!("WRITE_METADATA:{metadata:#x}/{mask:#x}").into());
            }
            Instruction::Meter(meter) => {
                let meter = words::plain(&words::METERS.value(meter.0));
                values.push(format!("METER:{meter}").into());
            }
            Instruction::Experimenter { .. } => values.push("UNKNOWN".into()),
        }
    }
    values
}

/// An action as Ryu prints it.
pub(crate) fn to_text(version: Version, action: &Action) -> String {
    let port = |port| words::plain(&words::port_value(version, port));
    let queue = |queue: &QueueId| words::plain(&words::QUEUES.value(queue.0));
    match action {
        Action::Output { port: out, .. } => format!("OUTPUT:{}", port(*out)),
        Action::CopyTtlOut => "COPY_TTL_OUT".to_owned(),
        Action::CopyTtlIn => "COPY_TTL_IN".to_owned(),
        Action::SetMplsTtl(ttl) => format!("SET_MPLS_TTL:{ttl}"),
        Action::DecMplsTtl => "DEC_MPLS_TTL".to_owned(),
        Action::PushVlan(ethertype) => format!("PUSH_VLAN:{ethertype}"),
        Action::PopVlan => "POP_VLAN".to_owned(),
        Action::PushMpls(ethertype) => format!("PUSH_MPLS:{ethertype}"),
        Action::PopMpls(ethertype) => format!("POP_MPLS:{ethertype}"),
        Action::SetQueue(id) => format!("SET_QUEUE:{}", queue(id)),
        Action::Group(group) => {
            format!("GROUP:{}", words::plain(&words::GROUPS.value(group.0)))
        }
        Action::SetNwTtl(ttl) => format!("SET_NW_TTL:{ttl}"),
        Action::DecNwTtl => "DEC_NW_TTL".to_owned(),
        Action::SetField { field, value } => set_field_text(*field, *value),
        Action::PushPbb(ethertype) => format!("PUSH_PBB:{ethertype}"),
        Action::PopPbb => "POP_PBB".to_owned(),
        Action::SetVlanVid(vid) => format!("SET_VLAN_VID:{vid}"),
        Action::SetVlanPcp(pcp) => format!("SET_VLAN_PCP:{pcp}"),
        Action::StripVlan => "STRIP_VLAN".to_owned(),
        Action::SetDlSrc(mac) => format!("SET_DL_SRC:{mac}"),
        Action::SetDlDst(mac) => format!("SET_DL_DST:{mac}"),
        Action::SetNwSrc(address) => format!("SET_NW_SRC:{address}"),
        Action::SetNwDst(address) => format!("SET_NW_DST:{address}"),
        Action::SetNwTos(tos) => format!("SET_NW_TOS:{tos}"),
        Action::SetTpSrc(tp) => format!("SET_TP_SRC:{tp}"),
        Action::SetTpDst(tp) => format!("SET_TP_DST:{tp}"),
        Action::Enqueue { port: out, queue: id } => {
            format!("ENQUEUE:{}:{}", port(*out), queue(id))
        }
        Action::Experimenter { .. } if !version.has_instructions() => "VENDOR".to_owned(),
        Action::Experimenter { experimenter, data } => {
            let data = STANDARD.encode(data);
            format!("EXPERIMENTER: {{experimenter:{experimenter}, data:{data}}}")
        }
    }
}

fn set_field_text(field: Field, value: u128) -> String {
    format!("SET_FIELD: {{{}:{}}}", field.row().name, words::plain(&single(field, value)))
}

#[cfg(test)]
mod tests {
    use super::{FLOW_ACTIONS, instructions, is_in, to_values};
    use crate::shape::{Fields, Of, Shape, key};
    use openflow::Version;
    use serde_json::{Value, json};

    static FLOW: Shape = Shape {
        name: "flow",
        what: "a flow entry",
        keys: &[
            key("actions", Of::Typed(FLOW_ACTIONS), "its actions"),
            key("instructions", Of::Typed(super::INSTRUCTIONS), "its instructions"),
        ],
    };

    fn printed(version: Version, body: &Value) -> Result<Vec<Value>, String> {
        let fields = Fields::of(body, &FLOW, "").unwrap();
        let read = instructions(&fields, version);
        read.map(|it| to_values(version, &it)).map_err(|problem| problem.to_value().to_string())
    }

    #[test]
    fn actions_of_1_3_come_back_as_ryu_prints_them() {
        let body = json!({"actions": [
            {"type": "OUTPUT", "port": "CONTROLLER", "max_len": "NO_BUFFER"},
            {"type": "SET_FIELD", "field": "eth_src", "value": "02:00:00:00:00:01"},
            {"type": "SET_FIELD", "field": "vlan_vid", "value": 4101},
            {"type": "PUSH_VLAN", "ethertype": 33024}, {"type": "SET_QUEUE", "queue_id": 7},
            {"type": "GROUP", "group_id": 1}, {"type": "DEC_NW_TTL"},
            {"type": "WRITE_METADATA", "metadata": "0x5", "metadata_mask": 255},
            {"type": "METER", "meter_id": 3},
            {"type": "WRITE_ACTIONS", "actions": [{"type": "OUTPUT", "port": 2}]},
            {"type": "CLEAR_ACTIONS"}, {"type": "GOTO_TABLE", "table_id": 1},
            {"type": "EXPERIMENTER", "experimenter": 9, "data": "YWI=", "data_type": "base64"},
        ]});
        let expected = json!([
            "WRITE_METADATA:0x5/0xff", "METER:3", {"WRITE_ACTIONS": ["OUTPUT:2"]}, "CLEAR_ACTIONS",
            "GOTO_TABLE:1", "OUTPUT:CONTROLLER", "SET_FIELD: {eth_src:02:00:00:00:00:01}",
            "SET_FIELD: {vlan_vid:4101}", "PUSH_VLAN:33024", "SET_QUEUE:7", "GROUP:1",
            "DEC_NW_TTL", "EXPERIMENTER: {experimenter:9, data:YWI=}",
        ]);
        assert_eq!(Value::from(printed(Version::V1_3, &body).unwrap()), expected);
    }

    #[test]
    fn actions_of_1_0_come_back_as_ryu_prints_them() {
        let body = json!({"actions": [
            {"type": "SET_VLAN_VID", "vlan_vid": 5}, {"type": "SET_VLAN_PCP", "vlan_pcp": 3},
            {"type": "STRIP_VLAN"}, {"type": "SET_DL_DST", "dl_dst": "02:00:00:00:00:01"},
            {"type": "SET_NW_SRC", "nw_src": "10.0.0.1"}, {"type": "SET_NW_TOS", "nw_tos": 8},
            {"type": "SET_TP_DST", "tp_dst": "80"}, {"type": "OUTPUT", "port": 65531},
            {"type": "ENQUEUE", "port": 1, "queue_id": 2},
        ]});
        let expected = json!([
            "SET_VLAN_VID:5",
            "SET_VLAN_PCP:3",
            "STRIP_VLAN",
            "SET_DL_DST:02:00:00:00:00:01",
            "SET_NW_SRC:10.0.0.1",
            "SET_NW_TOS:8",
            "SET_TP_DST:80",
            "OUTPUT:FLOOD",
            "ENQUEUE:1:2"
        ]);
        assert_eq!(Value::from(printed(Version::V1_0, &body).unwrap()), expected);
    }

    #[test]
    fn named_instructions_are_taken_too() {
        let body = json!({"instructions": [
            {"type": "APPLY_ACTIONS", "actions": [{"type": "OUTPUT", "port": 1}]},
            {"type": "GOTO_TABLE", "table_id": 2},
        ]});
        let expected = json!(["OUTPUT:1", "GOTO_TABLE:2"]);
        assert_eq!(Value::from(printed(Version::V1_3, &body).unwrap()), expected);
        assert!(printed(Version::V1_0, &body).unwrap_err().contains("no instructions"));
    }

    #[test]
    fn what_ryu_left_out_or_made_up_is_refused() {
        for (version, action, place) in [
            (Version::V1_3, json!({"type": "OUTPUTT", "port": 1}), "actions[0].type"),
            (Version::V1_3, json!({"type": "OUTPUT"}), "actions[0].port"),
            (Version::V1_3, json!({"type": "OUTPUT", "prot": 1}), "actions[0].prot"),
            (Version::V1_3, json!({"type": "STRIP_VLAN"}), "actions[0].type"),
            (Version::V1_3, json!({"type": "SET_FIELD", "field": "metadata", "value": 1}), "field"),
            (Version::V1_3, json!({"type": "SET_FIELD", "field": "eth_dst", "value": 1}), "value"),
            (Version::V1_3, json!({"type": "PUSH_VLAN"}), "ethertype"),
            (
                Version::V1_3,
                json!({"type": "EXPERIMENTER", "experimenter": 1, "data": "é"}),
                "data",
            ),
            (Version::V1_0, json!({"type": "GOTO_TABLE", "table_id": 1}), "actions[0].type"),
            (Version::V1_0, json!({"type": "SET_NW_SRC", "nw_src": "10.0.0"}), "nw_src"),
            (Version::V1_3, json!("OUTPUT:1"), "actions[0]"),
        ] {
            let said = printed(version, &json!({ "actions": [action] })).unwrap_err();
            assert!(said.contains(place), "{action}: {said}");
        }
    }

    #[test]
    fn every_type_is_of_a_version() {
        for shape in FLOW_ACTIONS {
            assert!(
                Version::ALL.iter().any(|version| is_in(*version, shape.name)),
                "{}",
                shape.name
            );
        }
    }
}
