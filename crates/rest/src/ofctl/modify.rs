//! Changes: a body becomes a message, and the answer comes when the switch has done it.
//!
//! Ryu answered 200 when the message was sent, whatever the switch made of it. Here a barrier
//! follows each message, and an error of the switch is the answer.

use super::{actions, matching, render};
use crate::datapath::{Target, odd_answer};
use crate::problem::Problem;
use crate::route::{Answer, Call, target_of};
use crate::shape::{Fields, Key, Of, Shape, key, needed};
use crate::words;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::group::{Bucket, GroupMod, GroupModCommand, GroupType};
use openflow::message::{ControllerRole, Experimenter, Role};
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::port::{PortConfig, PortFeatures, PortMod};
use openflow::{BufferId, Cookie, GroupId, MacAddr, Message, MeterId, PortNo, TableId, Version};
use serde_json::Value;

const DPID: Key = needed("dpid", Of::Number(64), "the switch's datapath id");

/// A flow entry.
pub(crate) static FLOW: Shape = Shape {
    name: "flow",
    what: "a flow entry",
    keys: &[
        DPID,
        key("match", Of::Object(|| &matching::MATCH), "what packets must show; default: nothing"),
        key("actions", Of::Typed(|| &actions::FLOW_ACTIONS), "what happens to them; default: drop"),
        key("instructions", Of::Typed(|| &actions::NAMED_INSTRUCTIONS), "the same as instructions"),
        key(
            "priority",
            Of::Number(16),
            "higher wins; default: 0, in 1.0 32768; a delete looks at it only when it is strict",
        ),
        key("table_id", Of::Named(8, &words::TABLES), "the table; default: 0"),
        key("cookie", Of::Number(64), "kept with the entry"),
        key("cookie_mask", Of::Number(64), "bits of the cookie that filter a modify or delete"),
        key("idle_timeout", Of::Number(16), "seconds without a packet; default: for ever"),
        key("hard_timeout", Of::Number(16), "seconds; default: for ever"),
        key("buffer_id", Of::Named(32, &words::BUFFERS), "a packet that the switch keeps"),
        key("out_port", Of::Named(32, &words::PORTS), "delete: entries that output there"),
        key("out_group", Of::Named(32, &words::GROUPS), "delete: entries that use the group"),
        key("flags", Of::Number(16), "OFPFF_* bits"),
        key("importance", Of::Number(16), "rank where entries are evicted, from 1.4; default: 0"),
    ],
};

/// A meter.
pub(crate) static METER: Shape = Shape {
    name: "meter",
    what: "a meter",
    keys: &[
        DPID,
        key("meter_id", Of::Named(32, &words::METERS), "its number; default: 0"),
        METER_FLAGS,
        METER_BANDS,
    ],
};

/// The flags of a meter.
pub(crate) const METER_FLAGS: Key =
    key("flags", Of::Words(&["KBPS", "PKTPS", "BURST", "STATS"]), "its flags");
/// The bands of a meter.
pub(crate) const METER_BANDS: Key = key("bands", Of::Typed(|| BANDS), "its bands");
const RATE: Key = key("rate", Of::Number(32), "kb/s or packets/s; default: 0");
const BURST: Key = key("burst_size", Of::Number(32), "kb or packets; default: 0");
const BAND_TYPE: Key = needed("type", Of::Text, "the band's type");

static BANDS: &[&Shape] = &[&BAND_DROP, &BAND_REMARK, &BAND_EXPERIMENTER];
static BAND_DROP: Shape =
    Shape { name: "DROP", what: "a band that drops", keys: &[BAND_TYPE, RATE, BURST] };
static BAND_REMARK: Shape = Shape {
    name: "DSCP_REMARK",
    what: "a band that remarks",
    keys: &[BAND_TYPE, RATE, BURST, key("prec_level", Of::Number(8), "steps; default: 0")],
};
static BAND_EXPERIMENTER: Shape = Shape {
    name: "EXPERIMENTER",
    what: "an experimenter's band",
    keys: &[BAND_TYPE, RATE, BURST, key("experimenter", Of::Number(32), "whose it is")],
};

/// A group.
pub(crate) static GROUP: Shape = Shape {
    name: "group",
    what: "a group",
    keys: &[
        DPID,
        key("type", Of::Word(&["ALL", "SELECT", "INDIRECT", "FF"]), "its type; default: ALL"),
        key("group_id", Of::Named(32, &words::GROUPS), "its number; default: 0"),
        key("buckets", Of::List(&BUCKET), "its buckets"),
    ],
};

static BUCKET: Shape = Shape {
    name: "bucket",
    what: "a bucket",
    keys: &[
        key("weight", Of::Number(16), "share in a select group; default: 1 there, else 0"),
        key("watch_port", Of::Named(32, &words::PORTS), "port that it lives by; default: ANY"),
        key("watch_group", Of::Named(32, &words::GROUPS), "group that it lives by; default: ANY"),
        key("actions", Of::Typed(|| &actions::BUCKET_ACTIONS), "its actions"),
    ],
};

/// A port's settings.
pub(crate) static PORT: Shape = Shape {
    name: "port",
    what: "a port's settings",
    keys: &[
        DPID,
        needed("port_no", Of::Named(32, &words::PORTS), "which port"),
        key("config", Of::Number(32), "OFPPC_* bits; default: 0"),
        key("mask", Of::Number(32), "which of them change; default: 0"),
        key("hw_addr", Of::Text, "its Ethernet address, as a check; default: the one it has"),
        key("advertise", Of::Number(32), "OFPPF_* bits to advertise; default: no change"),
    ],
};

/// An experimenter's message.
pub(crate) static EXPERIMENTER: Shape = Shape {
    name: "experimenter",
    what: "an experimenter's message",
    keys: &[
        key("dpid", Of::Number(64), "the switch, if it is to be given twice"),
        key("experimenter", Of::Number(32), "whose it is; default: 0"),
        key("exp_type", Of::Number(32), "its type; default: 0"),
        key("data_type", Of::Word(&["ascii", "base64"]), "how the body is written"),
        key("data", Of::Text, "its body"),
    ],
};

/// A role.
pub(crate) static ROLE: Shape = Shape {
    name: "role",
    what: "a role",
    keys: &[
        DPID,
        key("role", Of::Named(32, &words::ROLES), "the role; default: EQUAL"),
        key("generation_id", Of::Number(64), "the election's number; default: 0"),
    ],
};

const FLOW_COMMANDS: [(&str, FlowModCommand); 5] = [
    ("add", FlowModCommand::Add),
    ("modify", FlowModCommand::Modify),
    ("modify_strict", FlowModCommand::ModifyStrict),
    ("delete", FlowModCommand::Delete),
    ("delete_strict", FlowModCommand::DeleteStrict),
];

async fn done(target: &Target, message: Message) -> Answer {
    target.apply(vec![message]).await?;
    Ok(None)
}

pub(crate) async fn flow(call: Call) -> Answer {
    let command = call.command(&FLOW_COMMANDS)?;
    let (target, flow_mod) = {
        let fields = call.fields(&FLOW)?;
        let target = target_of(&call.services, &fields)?;
        let flow_mod = flow_mod(&fields, target.version(), command)?;
        (target, flow_mod)
    };
    done(&target, Message::FlowMod(flow_mod)).await
}

/// The flow-mod of a body of the shape [`FLOW`].
///
/// # Errors
/// When a value cannot be read, or the version has no such thing.
pub(crate) fn flow_mod(
    fields: &Fields<'_>,
    version: Version,
    command: FlowModCommand,
) -> Result<FlowMod, Problem> {
    let mut flow = FlowMod::new(command);
    if version.has_instructions() {
        // Ryu's default is the lowest priority, but in 1.0, where it is OpenFlow's own.
        flow.priority = 0;
    }
    flow.priority = fields.number("priority")?.unwrap_or(flow.priority);
    flow.cookie = Cookie(fields.number("cookie")?.unwrap_or(0));
    flow.cookie_mask = fields.number("cookie_mask")?.unwrap_or(0);
    flow.idle_timeout_s = fields.number("idle_timeout")?.unwrap_or(0);
    flow.hard_timeout_s = fields.number("hard_timeout")?.unwrap_or(0);
    if let Some(table) = fields.named("table_id", &words::TABLES)? {
        let small = u8::try_from(table);
        flow.table_id =
            TableId(small.map_err(|_| fields.problem("table_id", "a table has 8 bits"))?);
    }
    let buffer = fields.named("buffer_id", &words::BUFFERS)?;
    flow.buffer_id = buffer.filter(|id| *id != u32::MAX).map(BufferId);
    if let Some(port) = words::port_of(fields, "out_port", version)? {
        flow.out_port = port;
    }
    if let Some(group) = fields.named("out_group", &words::GROUPS)? {
        flow.out_group = GroupId(group);
    }
    flow.flags = render::flow_flags(version, fields.number("flags")?.unwrap_or(0));
    flow.importance = fields.number("importance")?.unwrap_or(0);
    if flow.importance != 0 && !version.has_importance() {
        let words = format!("{version} has no importance in a flow-mod");
        return Err(fields.problem("importance", words));
    }
    flow.matching = matching::of(fields, version)?;
    flow.instructions = actions::instructions(fields, version)?;
    let beyond = [
        ("table_id", flow.table_id != TableId(0) && flow.table_id != TableId::ALL),
        ("cookie_mask", flow.cookie_mask != 0),
        ("out_group", flow.out_group != GroupId::ANY),
    ];
    if !version.has_pipeline() {
        if let Some((key, _)) = beyond.iter().find(|(_, is_beyond)| *is_beyond) {
            return Err(fields.problem(key, format!("{version} has no {key} in a flow-mod")));
        }
        flow.table_id = TableId(0);
    }
    Ok(flow)
}

pub(crate) async fn clear(call: Call) -> Answer {
    let target = call.target()?;
    let mut flow = FlowMod::new(FlowModCommand::Delete);
    if target.version().has_pipeline() {
        flow.table_id = TableId::ALL;
    }
    done(&target, Message::FlowMod(flow)).await
}

const METER_COMMANDS: [(&str, MeterModCommand); 3] = [
    ("add", MeterModCommand::Add),
    ("modify", MeterModCommand::Modify),
    ("delete", MeterModCommand::Delete),
];

pub(crate) async fn meter(call: Call) -> Answer {
    let command = call.command(&METER_COMMANDS)?;
    let (target, meter_mod) = {
        let fields = call.fields(&METER)?;
        let target = target_of(&call.services, &fields)?;
        if !target.version().has_meters() {
            return Err(Problem::not_in(target.version(), "meters"));
        }
        (target, meter_mod(&fields, command)?)
    };
    done(&target, Message::MeterMod(meter_mod)).await
}

/// The meter-mod of a body of the shape [`METER`].
///
/// # Errors
/// When a value cannot be read.
pub(crate) fn meter_mod(
    fields: &Fields<'_>,
    command: MeterModCommand,
) -> Result<MeterMod, Problem> {
    let words = fields.words("flags")?;
    let named = render::METER_FLAGS.iter().filter(|(_, name)| words.contains(name));
    let flags = named.fold(0, |bits, (bit, _)| bits | bit);
    let flags = u16::try_from(flags).unwrap_or(0);
    let meter_id = MeterId(fields.named("meter_id", &words::METERS)?.unwrap_or(0));
    let bands = fields.list("bands")?;
    let bands = bands.iter().map(|(place, value)| band(value, place)).collect::<Result<_, _>>()?;
    Ok(MeterMod { command, flags: MeterFlags::from_bits_retain(flags), meter_id, bands })
}

fn band(value: &Value, place: &str) -> Result<Band, Problem> {
    let fields = Fields::typed(value, BANDS, place)?;
    let kind = match fields.name() {
        "DSCP_REMARK" => {
            BandKind::DscpRemark { prec_level: fields.number("prec_level")?.unwrap_or(0) }
        }
        "EXPERIMENTER" => {
            BandKind::Experimenter { experimenter: fields.number("experimenter")?.unwrap_or(0) }
        }
        _ => BandKind::Drop,
    };
    Ok(Band {
        kind,
        rate: fields.number("rate")?.unwrap_or(0),
        burst_size: fields.number("burst_size")?.unwrap_or(0),
    })
}

const GROUP_COMMANDS: [(&str, GroupModCommand); 3] = [
    ("add", GroupModCommand::Add),
    ("modify", GroupModCommand::Modify),
    ("delete", GroupModCommand::Delete),
];

pub(crate) async fn group(call: Call) -> Answer {
    let command = call.command(&GROUP_COMMANDS)?;
    let (target, group_mod) = {
        let fields = call.fields(&GROUP)?;
        let target = target_of(&call.services, &fields)?;
        if !target.version().has_groups() {
            return Err(Problem::not_in(target.version(), "groups"));
        }
        let word = fields.word("type")?.unwrap_or("ALL");
        let kind = render::GROUP_TYPES.iter().find(|(_, name)| *name == word);
        let group_type = kind.map_or(GroupType::All, |(kind, _)| *kind);
        let group_id = GroupId(fields.named("group_id", &words::GROUPS)?.unwrap_or(0));
        let buckets = fields.list("buckets")?;
        let one =
            |(place, value): &(String, &Value)| bucket(value, place, target.version(), group_type);
        let buckets = buckets.iter().map(one).collect::<Result<_, _>>()?;
        (target, GroupMod { command, group_type, group_id, buckets, ..GroupMod::default() })
    };
    done(&target, Message::GroupMod(group_mod)).await
}

fn bucket(
    value: &Value,
    place: &str,
    version: Version,
    group_type: GroupType,
) -> Result<Bucket, Problem> {
    let fields = Fields::of(value, &BUCKET, place)?;
    let watch_group = fields.named("watch_group", &words::GROUPS)?;
    Ok(Bucket {
        bucket_id: None,
        weight: fields.number("weight")?.unwrap_or(group_type.default_weight()),
        watch_port: words::port_of(&fields, "watch_port", version)?.unwrap_or(PortNo::ANY),
        watch_group: watch_group.map_or(GroupId::ANY, GroupId),
        actions: actions::applied(&fields, version)?,
    })
}

pub(crate) async fn port(call: Call) -> Answer {
    let (target, port_mod) = {
        let fields = call.fields(&PORT)?;
        let target = target_of(&call.services, &fields)?;
        let version = target.version();
        let port_no = words::port_of(&fields, "port_no", version)?.unwrap_or(PortNo::ANY);
        let ports = &target.datapath.ports;
        let Some(known) = ports.iter().find(|port| port.port_no == port_no) else {
            let numbers = ports.iter().map(|port| words::port_number(version, port.port_no));
            let problem = Problem::not_found(format!("the switch has no port {port_no}"));
            return Err(problem.at("port_no").allowing(numbers));
        };
        let port_mod = PortMod {
            port_no,
            hw_addr: hw_addr(&fields)?.unwrap_or(known.hw_addr),
            config: PortConfig::from_bits_retain(fields.number("config")?.unwrap_or(0)),
            mask: PortConfig::from_bits_retain(fields.number("mask")?.unwrap_or(0)),
            advertise: fields
                .number("advertise")?
                .map_or(PortFeatures::empty(), |bits| render::features_from(version, bits)),
        };
        (target, port_mod)
    };
    done(&target, Message::PortMod(port_mod)).await
}

fn hw_addr(fields: &Fields<'_>) -> Result<Option<MacAddr>, Problem> {
    let Some(text) = fields.text("hw_addr")? else { return Ok(None) };
    let parsed: Result<MacAddr, _> = text.parse();
    parsed.map(Some).map_err(|error| fields.problem("hw_addr", format!("`{text}` is {error}")))
}

pub(crate) async fn experimenter(call: Call) -> Answer {
    let target = call.target()?;
    let message = {
        let fields = call.fields(&EXPERIMENTER)?;
        let twice = fields.number::<u64>("dpid")?;
        if twice.is_some_and(|dpid| dpid != target.datapath.dpid.0) {
            return Err(fields.problem("dpid", "another switch than the path names"));
        }
        let exp_type = fields.number("exp_type")?.unwrap_or(0);
        if exp_type != 0 && !target.version().has_experimenter_types() {
            let words = format!("{} has no types of such messages", target.version());
            return Err(fields.problem("exp_type", words));
        }
        Experimenter {
            experimenter: fields.number("experimenter")?.unwrap_or(0),
            exp_type,
            data: actions::data(&fields)?,
        }
    };
    done(&target, Message::Experimenter(message)).await
}

pub(crate) async fn role(call: Call) -> Answer {
    let (target, role) = {
        let fields = call.fields(&ROLE)?;
        let target = target_of(&call.services, &fields)?;
        if !target.version().has_roles() {
            return Err(Problem::not_in(target.version(), "roles"));
        }
        let number = fields.named("role", &words::ROLES)?;
        let role = number.map_or(ControllerRole::Equal, ControllerRole::from_number);
        (target, Role { role, generation_id: fields.number("generation_id")?.unwrap_or(0) })
    };
    let answer = target.request(Message::RoleRequest(role)).await?;
    let Message::RoleReply(_) = answer else { return Err(odd_answer(&answer)) };
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::{FLOW, FLOW_COMMANDS, bucket, flow_mod};
    use crate::shape::Fields;
    use openflow::Version;
    use openflow::group::GroupType;
    use serde_json::json;

    #[test]
    fn a_bucket_of_a_select_group_has_weight_1_unless_given() {
        let weight = |value, group_type| {
            bucket(&value, "buckets[0]", Version::V1_3, group_type).unwrap().weight
        };
        for (group_type, default) in [
            (GroupType::Select, 1),
            (GroupType::All, 0),
            (GroupType::Indirect, 0),
            (GroupType::FastFailover, 0),
        ] {
            assert_eq!(weight(json!({"actions": []}), group_type), default, "{group_type:?}");
            assert_eq!(weight(json!({"actions": [], "weight": 0}), group_type), 0);
            assert_eq!(weight(json!({"actions": [], "weight": 7}), group_type), 7);
        }
    }

    /// As Ryu does, whose documentation gives each command the whole entry.
    #[test]
    fn every_command_takes_a_whole_entry() {
        let entry = json!({
            "dpid": 1, "match": {"in_port": 1}, "actions": [{"type": "OUTPUT", "port": 2}],
            "priority": 5, "table_id": 1, "cookie": 5, "cookie_mask": 1, "idle_timeout": 60,
            "hard_timeout": 60, "buffer_id": 7, "out_port": 2, "out_group": 2, "flags": 1,
        });
        for (name, command) in FLOW_COMMANDS {
            let fields = Fields::of(&entry, &FLOW, "").unwrap();
            let flow = flow_mod(&fields, Version::V1_3, command).unwrap();
            assert_eq!((flow.command, flow.priority, flow.out_group.0), (command, 5, 2), "{name}");
        }
    }

    #[test]
    fn importance_is_of_1_4() {
        let entry = |importance| json!({"dpid": 1, "importance": importance});
        let read = |version, importance| {
            let entry = entry(importance);
            let fields = Fields::of(&entry, &FLOW, "").unwrap();
            flow_mod(&fields, version, FLOW_COMMANDS[0].1).map(|flow| flow.importance)
        };
        assert_eq!(read(Version::V1_4, 7).unwrap(), 7);
        assert_eq!(read(Version::V1_3, 0).unwrap(), 0);
        assert_eq!(read(Version::V1_3, 7).unwrap_err().to_value()["at"], "importance");
    }

    #[test]
    fn a_field_to_set_by_its_old_name_is_refused_with_its_names() {
        for (name, why, allowed) in [
            ("dl_dst", "it has another name", json!(["eth_dst"])),
            ("tp_dst", "each protocol's has a name of its own", json!(["tcp_dst"])),
        ] {
            let set = json!({"type": "SET_FIELD", "field": name, "value": 1});
            let entry = json!({"dpid": 1, "actions": [set]});
            let fields = Fields::of(&entry, &FLOW, "").unwrap();
            let shown =
                flow_mod(&fields, Version::V1_3, FLOW_COMMANDS[0].1).unwrap_err().to_value();
            assert!(shown["error"].to_string().contains(why), "{shown}");
            assert_eq!(shown["allowed"][0], allowed[0], "{shown}");
        }
    }

    #[test]
    fn a_vlan_id_without_present_bit_is_refused_with_advice() {
        for (value, is_taken) in [(json!(100), false), (json!("100"), false), (json!(4196), true)] {
            let set = json!({"type": "SET_FIELD", "field": "vlan_vid", "value": value});
            let push = json!({"type": "PUSH_VLAN", "ethertype": 33024});
            let entry = json!({"dpid": 1, "actions": [push, set]});
            let fields = Fields::of(&entry, &FLOW, "").unwrap();
            let read = flow_mod(&fields, Version::V1_3, FLOW_COMMANDS[0].1);
            let Err(problem) = read else {
                assert!(is_taken, "{value}");
                continue;
            };
            let shown = problem.to_value();
            assert_eq!(shown["at"], "actions[1].value");
            assert!(shown["error"].to_string().contains("write 4196 (0x1064)"), "{shown}");
        }
    }
}
