//! Open vSwitch's codec, through `ovs-ofctl`, asked about random messages in both directions.
//!
//! A random flow-mod in our text goes to `ovs-ofctl`, which sends what it makes of it to a socket
//! of ours: the same message must come, and we encode it to the same bytes. A random reply in our
//! bytes goes to `ovs-ofctl ofp-parse`, which prints it: our text must be the same. What Open
//! vSwitch does not have is left out by name, never by looking whether it fails.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use openflow::action::MAX_LEN_NO_BUFFER;
use openflow::field::VID_PRESENT;
use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason};
use openflow::flow_monitor::FlowUpdate;
use openflow::group::{GroupDesc, GroupMod, GroupModCommand, GroupType};
use openflow::instruction::ActionsRun;
use openflow::message::{Hello, MultipartReply, MultipartReplyBody};
use openflow::meter::{Band, BandKind, MeterConfig, MeterFlags, MeterMod, MeterModCommand};
use openflow::{
    Action, Cookie, Field, GroupId, Instruction, Match, Message, MeterId, PortNo, TableId, Version,
    Xid, text,
};

use super::{Sample, samples};
use crate::nicira;

/// Longest run of `ovs-ofctl`.
const DEADLINE: Duration = Duration::from_secs(30);

/// Messages of `ovs-ofctl` to a switch that agrees with everything, without hello and barriers.
struct Sent {
    frames: Vec<Vec<u8>>,
    complaint: Option<String>,
}

/// Runs a command of `ovs-ofctl` against us, with the form of flow entries that all have.
fn ovs_ofctl(dir: &Path, version: Version, command: &[&str], text: &str) -> Sent {
    let form = if version.has_oxm() { None } else { Some("OpenFlow10") };
    ovs_ofctl_in(dir, version, form, command, text)
}

fn ovs_ofctl_in(
    dir: &Path,
    version: Version,
    form: Option<&str>,
    command: &[&str],
    text: &str,
) -> Sent {
    let path = dir.join("switch");
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let mut arguments = vec!["-O", version.name(), "--no-names"];
    if let Some(form) = form {
        arguments.extend(["-F", form]);
    }
    arguments.extend(command);
    let target = format!("unix:{}", path.display());
    let child = Command::new("ovs-ofctl")
        .args(arguments)
        .args([&target, text])
        .env("OVS_RUNDIR", dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("ovs-ofctl (Debian's openvswitch-common): {error}"));
    let switch = std::thread::spawn(move || switch(&listener, version));
    let output = child.wait_with_output().unwrap();
    // Wakes the thread when ovs-ofctl refused the text and never connected.
    drop(UnixStream::connect(&path));
    let frames = switch.join().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let complaint = (!output.status.success() || !stderr.is_empty()).then_some(stderr);
    Sent { frames, complaint }
}

/// Agrees to the version, answers barriers, and keeps everything else until the peer hangs up.
fn switch(listener: &UnixListener, version: Version) -> Vec<Vec<u8>> {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let hello = Message::Hello(Hello { versions: None });
    // A peer that has gone already is no failure of ours.
    let _ = stream.write_all(&wire::encode(version, Xid(0), &hello).unwrap());
    let mut frames = Vec::new();
    let mut bytes = Vec::new();
    let mut chunk = [0; 65_536];
    while let Ok(count @ 1..) = stream.read(&mut chunk) {
        bytes.extend_from_slice(&chunk[..count]);
        while let Some(len) = wire::frame_len(&bytes).unwrap().filter(|len| *len <= bytes.len()) {
            let frame: Vec<u8> = bytes.drain(..len).collect();
            if frame[1] == 0 {
                continue;
            }
            let (_, xid, message) = wire::decode(&frame).unwrap();
            if message == Message::BarrierRequest {
                let reply = wire::encode(version, xid, &Message::BarrierReply).unwrap();
                let _ = stream.write_all(&reply);
            } else {
                frames.push(frame);
            }
        }
    }
    frames
}

/// Fields and actions that Open vSwitch 3.1 does not have (reference page of its fields).
fn has_field(field: Field) -> bool {
    !matches!(field, Field::InPhyPort | Field::PbbIsid | Field::PbbUca | Field::Ipv6Exthdr)
}

fn has_action(action: &Action) -> bool {
    match action {
        Action::CopyTtlOut
        | Action::CopyTtlIn
        | Action::PushPbb(_)
        | Action::PopPbb
        | Action::Experimenter { .. } => false,
        Action::SetField { field, .. } => has_field(*field),
        _ => true,
    }
}

/// A port number that Open vSwitch takes: 1 to 0xfeff, or a reserved one that has a name.
fn usual_port(port: PortNo) -> PortNo {
    let named = port.to_string().parse::<u32>().is_err();
    if named || (1..0xff00).contains(&port.0) { port } else { PortNo(port.0 % 0xfeff + 1) }
}

/// The match without what Open vSwitch does not have. Weir's prerequisite of ICMP is the protocol
/// number alone, as in the specification; Open vSwitch's is that of IP of that version.
fn usual_match(matching: &Match) -> Match {
    let mut usual = Match::any();
    let ip = matching.exact(Field::EthType);
    for held in matching.fields() {
        let of_version = match held.field {
            Field::Icmpv4Type | Field::Icmpv4Code => Some(0x0800),
            Field::Icmpv6Type | Field::Icmpv6Code => Some(0x86dd),
            Field::Ipv6NdTarget | Field::Ipv6NdSll | Field::Ipv6NdTll => Some(0x86dd),
            _ => None,
        };
        // Open vSwitch 3.1 takes a mask that begins with a decimal digit for a length.
        let mask = match held.field {
            Field::Ipv6Src | Field::Ipv6Dst => held.mask | 0xffff << 112,
            Field::IpFrag => held.mask | held.value >> 1,
            _ => held.mask,
        };
        let value = match held.field {
            Field::InPort => usual_port(PortNo(held.value as u32)).0.into(),
            // One byte in Open vSwitch, and frames with a length have no EtherType.
            Field::ArpOp => held.value & 0xff,
            Field::EthType if held.value < 0x600 => 0x88b5,
            // An id without a tag is neither of the two forms.
            Field::VlanVid if held.value & VID_PRESENT == 0 => 0,
            // What is later than the first fragment is one.
            Field::IpFrag => held.value | held.value >> 1,
            _ => held.value,
        };
        if has_field(held.field) && of_version.is_none_or(|version| ip == Some(version)) {
            usual.add(held.field, value & mask, mask).unwrap();
        }
    }
    if usual.check_prerequisites().is_ok() { usual } else { Match::any() }
}

/// The actions that Open vSwitch takes for packets of the match, each needing no other.
fn usual_actions(version: Version, matching: &Match, actions: &[Action]) -> Vec<Action> {
    let is = |types: &[u128]| matching.exact(Field::EthType).is_some_and(|t| types.contains(&t));
    let ip = is(&[0x0800, 0x86dd]);
    let mpls = is(&[0x8847, 0x8848]);
    let tagged = matching.exact(Field::VlanVid).is_some_and(|vid| vid & VID_PRESENT != 0);
    let mut usual = Vec::new();
    for action in actions.iter().filter(|action| has_action(action)) {
        usual.push(match action {
            Action::Output { port, max_len } => {
                let port = match usual_port(*port) {
                    PortNo::ANY | PortNo::TABLE => PortNo(1),
                    port => port,
                };
                Action::Output { port, max_len: *max_len }
            }
            Action::Enqueue { port, queue } => {
                Action::Enqueue { port: PortNo(port.0 % 0xfeff + 1), queue: *queue }
            }
            Action::SetNwTos(tos) => Action::SetNwTos(tos & 0xfc),
            // It knows two tags.
            Action::PushVlan(_) if tagged || usual.iter().any(is_push_vlan) => continue,
            Action::PushVlan(tpid) => Action::PushVlan(0x8100 + (tpid & 1) * 0x7a8),
            Action::SetField { field, value } => {
                let free = [Field::EthSrc, Field::EthDst, Field::TunnelId];
                let vlan = [Field::VlanVid, Field::VlanPcp];
                let dscp = [Field::IpDscp, Field::IpEcn];
                let known = free.contains(field)
                    || vlan.contains(field) && tagged
                    || dscp.contains(field) && ip
                    || [Field::MplsLabel, Field::MplsTc].contains(field) && mpls;
                if !known {
                    continue;
                }
                Action::SetField { field: *field, value: *value }
            }
            Action::SetMplsTtl(_) | Action::DecMplsTtl if !mpls => continue,
            Action::SetNwTtl(_) | Action::DecNwTtl if !ip => continue,
            // What comes behind them would need another match.
            Action::PushMpls(_) | Action::PopMpls(_) | Action::PopVlan | Action::StripVlan => {
                continue;
            }
            other => other.clone(),
        });
    }
    if !version.has_oxm() {
        usual.retain(|action| !matches!(action, Action::SetQueue(_)));
    }
    usual
}

fn is_push_vlan(action: &Action) -> bool {
    matches!(action, Action::PushVlan(_))
}

/// At most one instruction of a type, in the order in which Open vSwitch writes them.
fn usual_instructions(
    version: Version,
    matching: &Match,
    table: TableId,
    instructions: &[Instruction],
) -> Vec<Instruction> {
    let mut usual: Vec<Instruction> = Vec::new();
    for instruction in instructions {
        let kind = instruction.kind();
        // ovs-ofctl has text for 1.3's own, one to six.
        if kind.number(version).is_some_and(|number| number > 6) {
            continue;
        }
        let list = |list: &[Action]| Ok::<_, ()>(usual_actions(version, matching, list));
        let mut one = instruction.map_actions(list).unwrap();
        if let Some((metadata, mask)) = instruction.metadata() {
            one = Instruction::WriteMetadata { metadata: metadata & mask, mask };
        } else if instruction.goto_table().is_some() {
            if table.0 >= 253 {
                continue;
            }
            one = Instruction::GotoTable(TableId(table.0 + 1));
        }
        let is_empty = kind.row().actions != ActionsRun::Never && one.actions().is_empty();
        if !is_empty && usual.iter().all(|other| other.kind() != kind) {
            usual.push(one);
        }
    }
    usual.sort_by_key(Instruction::kind);
    usual
}

const COMMANDS: &[(FlowModCommand, &[&str])] = &[
    (FlowModCommand::Add, &["add-flow"]),
    (FlowModCommand::Modify, &["mod-flows"]),
    (FlowModCommand::ModifyStrict, &["--strict", "mod-flows"]),
    (FlowModCommand::Delete, &["del-flows"]),
    (FlowModCommand::DeleteStrict, &["--strict", "del-flows"]),
];

/// A flow-mod that the text of `ovs-ofctl` can say for the command.
fn usual_flow_mod(version: Version, command: FlowModCommand, flow: FlowMod) -> FlowMod {
    let deletes = matches!(command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
    let matching = usual_match(&flow.matching);
    let table_id = match version.has_oxm() {
        false if deletes => TableId::ALL,
        false => TableId(0),
        true => TableId(flow.table_id.0 % 254),
    };
    let cookie_mask = if deletes && version.has_oxm() { flow.cookie_mask } else { 0 };
    let cookie = match command {
        FlowModCommand::Add => flow.cookie,
        _ => Cookie(flow.cookie.0 & cookie_mask),
    };
    let settable = FlowModFlags::SEND_FLOW_REM | FlowModFlags::CHECK_OVERLAP;
    let settable =
        if !version.has_oxm() { settable } else { settable | FlowModFlags::NO_PKT_COUNTS };
    let strict = matches!(command, FlowModCommand::ModifyStrict | FlowModCommand::DeleteStrict);
    let usual = FlowMod::new(command);
    FlowMod {
        cookie,
        cookie_mask,
        instructions: if deletes {
            Vec::new()
        } else {
            usual_instructions(version, &matching, table_id, &flow.instructions)
        },
        matching,
        table_id,
        idle_timeout_s: if deletes { 0 } else { flow.idle_timeout_s },
        hard_timeout_s: if deletes { 0 } else { flow.hard_timeout_s },
        priority: if strict || command == FlowModCommand::Add { flow.priority } else { 0x8000 },
        out_port: if deletes { usual_port(flow.out_port) } else { PortNo::ANY },
        out_group: if deletes { flow.out_group } else { GroupId::ANY },
        flags: if deletes { FlowModFlags::empty() } else { flow.flags & settable },
        ..usual
    }
}

/// A group-mod that the text of `ovs-ofctl` can say, with its command and text.
fn usual_group(group: GroupMod) -> (GroupMod, &'static str, String) {
    let mut group = GroupMod {
        command: GroupModCommand::from_number(group.command.number() % 2),
        group_type: GroupType::from_number(group.group_type.number() % 4),
        group_id: GroupId(group.group_id.0 % 0xffff_ff00),
        ..group
    };
    if group.group_type == GroupType::Indirect {
        group.buckets.truncate(1);
    }
    for bucket in &mut group.buckets {
        bucket.actions = usual_actions(Version::V1_3, &Match::any(), &bucket.actions);
        bucket.weight = if group.group_type == GroupType::Select { bucket.weight } else { 0 };
        let watches = group.group_type == GroupType::FastFailover;
        bucket.watch_port = if watches { usual_port(bucket.watch_port) } else { PortNo::ANY };
        bucket.watch_group = GroupId::ANY;
    }
    let desc = GroupDesc {
        group_type: group.group_type,
        group_id: group.group_id,
        buckets: group.buckets.clone(),
        ..GroupDesc::default()
    };
    let word = if group.command == GroupModCommand::Add { "add-group" } else { "mod-group" };
    (group, word, text::format_group(&desc))
}

/// The same for meters. The text of a command has commas where the printed one has lines.
fn usual_meter(meter: MeterMod) -> (MeterMod, &'static str, String) {
    let known = MeterFlags::BURST | MeterFlags::STATS;
    let unit =
        if meter.flags.contains(MeterFlags::KBPS) { MeterFlags::KBPS } else { MeterFlags::PKTPS };
    let mut meter = MeterMod {
        command: MeterModCommand::from_number(meter.command.number() % 2),
        flags: meter.flags & known | unit,
        meter_id: MeterId(meter.meter_id.0 % 0xffff + 1),
        ..meter
    };
    meter.bands.retain(|band| !matches!(band.kind, BandKind::Experimenter { .. }));
    if meter.bands.is_empty() {
        meter.bands.push(Band { kind: BandKind::Drop, rate: 1, burst_size: 1 });
    }
    for band in &mut meter.bands {
        // Zero is no level there.
        if let BandKind::DscpRemark { prec_level } = &mut band.kind {
            *prec_level = (*prec_level).max(1);
        }
    }
    let has_burst = meter.flags.contains(MeterFlags::BURST);
    for band in meter.bands.iter_mut().filter(|_| !has_burst) {
        band.burst_size = 0;
    }
    let config =
        MeterConfig { flags: meter.flags, meter_id: meter.meter_id, bands: meter.bands.clone() };
    let line = text::format_meter(&config).replace("bands=\n", "bands=").replace([' ', '\n'], ",");
    let word = if meter.command == MeterModCommand::Add { "add-meter" } else { "mod-meter" };
    (meter, word, line)
}

/// The `ovs-ofctl` command that takes the text of a message, and the message meant.
fn usual_command(sample: &Sample) -> Option<(Message, Vec<&'static str>, String)> {
    Some(match sample.message.clone() {
        Message::FlowMod(flow) => {
            let (command, words) = COMMANDS[sample.seed % COMMANDS.len()];
            let flow = usual_flow_mod(sample.version, command, flow);
            let line = text::format_flow_mod(&flow);
            let line = match sample.version.has_oxm() {
                // The word of 1.0 for a packet without a tag.
                false => line.replace("vlan_tci=0x0000/0x1fff", "dl_vlan=0xffff"),
                true => line,
            };
            (Message::FlowMod(comparable(sample.version, flow)), words.to_vec(), line)
        }
        Message::GroupMod(group) => {
            let (mut group, word, line) = usual_group(group);
            group.buckets.iter_mut().for_each(|bucket| without_max_len(&mut bucket.actions));
            (Message::GroupMod(group), vec![word], line)
        }
        Message::MeterMod(meter) => {
            let (meter, word, line) = usual_meter(meter);
            (Message::MeterMod(meter), vec![word], line)
        }
        _ => return None,
    })
}

/// The same message, with what the text does not say: how much of a packet goes to a port that is
/// not the controller, the table in 1.0, and that a tag is meant when it is absent.
fn comparable(version: Version, mut flow: FlowMod) -> FlowMod {
    for instruction in &mut flow.instructions {
        if let Instruction::ApplyActions(list) | Instruction::WriteActions(list) = instruction {
            without_max_len(list);
        }
    }
    if !version.has_oxm() {
        flow.table_id = TableId(0);
    }
    flow
}

fn without_max_len(actions: &mut [Action]) {
    for action in actions {
        if let Action::Output { port, max_len } = action
            && *port != PortNo::CONTROLLER
        {
            *max_len = MAX_LEN_NO_BUFFER;
        }
    }
}

/// Open vSwitch writes the fields of a match in an order of its own, and in 1.0 it says of a packet
/// without a tag that its priority, which it does not have, is matched too.
fn same_bytes(ours: &[u8], theirs: &[u8]) -> bool {
    let sorted = |frame: &[u8]| {
        let mut bytes = frame.to_vec();
        if bytes[0] == 1 && bytes[26..28] == [0xff, 0xff] {
            bytes[9] |= 0x10;
        }
        bytes.sort_unstable();
        bytes
    };
    sorted(ours) == sorted(theirs)
}

/// Checks that the message sent is the one meant, and that we write it with the same bytes.
fn check_sent(version: Version, wanted: &Message, sent: &Sent) -> Result<(), String> {
    let Some(frame) = sent.frames.first() else {
        return Err(format!("they refuse it: {}", sent.complaint.clone().unwrap_or_default()));
    };
    let (_, xid, message) = wire::decode(frame).map_err(|error| error.to_string())?;
    let again = wire::encode(version, xid, &message).map_err(|error| error.to_string())?;
    let theirs = match message {
        Message::FlowMod(flow) => Message::FlowMod(comparable(version, flow)),
        Message::GroupMod(mut group) => {
            group.buckets.iter_mut().for_each(|bucket| without_max_len(&mut bucket.actions));
            Message::GroupMod(group)
        }
        other => other,
    };
    if theirs != *wanted {
        return Err(format!("they say {theirs:?}\nwe say   {wanted:?}"));
    }
    if !same_bytes(&again, frame) {
        return Err(format!("they write {frame:02x?}\nwe {again:02x?}"));
    }
    Ok(())
}

#[test]
#[ignore = "needs ovs-ofctl: cargo xtask test as root installs it"]
fn open_vswitch_sends_what_our_text_says() {
    let dir = tempfile::tempdir().unwrap();
    let mut failures = Vec::new();
    let mut compared = 0;
    for sample in samples() {
        let version = sample.version;
        let Some((wanted, words, line)) = usual_command(&sample) else { continue };
        let sent = ovs_ofctl(dir.path(), version, &words, &line);
        compared += 1;
        if let Err(failure) = check_sent(version, &wanted, &sent) {
            failures.push(format!("{}: {} {line}\n{failure}", sample.name(), words.join(" ")));
        }
    }
    let shown = failures.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {compared}:\n{shown}", failures.len());
}

/// The reply without what Open vSwitch does not have; `None` when nothing of it is left.
fn usual_reply(version: Version, message: Message) -> Option<Message> {
    Some(match message {
        Message::FlowRemoved(mut gone) => {
            gone.matching = usual_match(&gone.matching);
            gone.reason = FlowRemovedReason::from_number(gone.reason.number() % 3);
            Message::FlowRemoved(gone)
        }
        Message::FeaturesReply(mut features) => {
            for port in &mut features.ports {
                port.port_no = usual_port(port.port_no);
            }
            Message::FeaturesReply(features)
        }
        Message::MultipartReply(reply) => {
            let body = usual_body(version, reply.body)?;
            Message::MultipartReply(MultipartReply { more: false, body })
        }
        // Ports, reasons and bits that are made up are faults to it; the text of these is tested
        // with `weir ctl`, whose answers are compared with its own.
        Message::PortStatus(_) | Message::QueueGetConfigReply(_) | Message::GetAsyncReply(_) => {
            return None;
        }
        other => other,
    })
}

/// It prints no priority, and reasons that it knows.
fn make_usual(version: Version, update: &mut FlowUpdate) {
    let FlowUpdate::Change(change) = update else { return };
    change.priority = FlowMod::new(FlowModCommand::Add).priority;
    change.reason = change.reason.map(|_| FlowRemovedReason::Delete);
    change.matching = usual_match(&change.matching);
    let (matching, table) = (&change.matching, change.table_id);
    change.instructions = usual_instructions(version, matching, table, &change.instructions);
}

fn usual_body(version: Version, body: MultipartReplyBody) -> Option<MultipartReplyBody> {
    use MultipartReplyBody as Body;
    Some(match body {
        Body::Experimenter(_) => return None,
        // It prints what changes from table to table.
        Body::Table(_) if !version.has_oxm() => return None,
        Body::TableFeatures(_) => return None,
        Body::Table(mut tables) => {
            tables.truncate(1);
            Body::Table(tables)
        }
        Body::MeterConfig(mut meters) => {
            for meter in &mut meters {
                let has = |band: &Band| !matches!(band.kind, BandKind::Experimenter { .. });
                meter.bands.retain(has);
                meter.flags &= MeterFlags::from_bits_truncate(0xf);
            }
            Body::MeterConfig(meters)
        }
        Body::GroupFeatures(mut features) => {
            let others = [11, 12, 26, 27].iter().fold(0, |bits, number| bits | 1 << number);
            features.actions = features.actions.map(|bits| bits & !others);
            Body::GroupFeatures(features)
        }
        Body::Flow(mut flows) => {
            for flow in &mut flows {
                flow.matching = usual_match(&flow.matching);
                flow.flags &= FlowModFlags::from_bits_truncate(0x1f);
                let (matching, table) = (&flow.matching, flow.table_id);
                flow.instructions =
                    usual_instructions(version, matching, table, &flow.instructions);
            }
            Body::Flow(flows)
        }
        Body::FlowMonitor(mut updates) => {
            updates.iter_mut().for_each(|update| make_usual(version, update));
            Body::FlowMonitor(updates)
        }
        Body::GroupDesc(mut groups) => {
            for group in &mut groups {
                group.group_type = GroupType::from_number(group.group_type.number() % 4);
                for bucket in &mut group.buckets {
                    bucket.actions = usual_actions(version, &Match::any(), &bucket.actions);
                    bucket.watch_port = usual_port(bucket.watch_port);
                }
            }
            Body::GroupDesc(groups)
        }
        Body::PortDesc(mut ports) => {
            for port in &mut ports {
                port.port_no = usual_port(port.port_no);
            }
            Body::PortDesc(ports)
        }
        Body::PortStats(mut ports) => {
            for port in &mut ports {
                port.port_no = usual_port(port.port_no);
            }
            Body::PortStats(ports)
        }
        Body::Queue(mut queues) => {
            for queue in &mut queues {
                queue.port_no = usual_port(queue.port_no);
            }
            Body::Queue(queues)
        }
        other => other,
    })
}

/// Output of `ovs-ofctl` for a message.
fn printed(dir: &Path, frame: &[u8]) -> String {
    let path = dir.join("message");
    std::fs::write(&path, frame).unwrap();
    let output = Command::new("ovs-ofctl").arg("ofp-parse").arg(&path).output();
    let output = output.unwrap_or_else(|error| panic!("ovs-ofctl: {error}"));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// The first lines that differ.
fn difference(ours: &str, theirs: &str) -> String {
    let lines = ours.lines().map(Some).chain(std::iter::repeat(None));
    let mut pairs = lines.zip(theirs.lines().map(Some).chain(std::iter::repeat(None)));
    let (our, their) = pairs.find(|(our, their)| our != their).unwrap();
    format!("we   {}\nthey {}", our.unwrap_or("end"), their.unwrap_or("end"))
}

#[test]
#[ignore = "needs ovs-ofctl: cargo xtask test as root installs it"]
fn open_vswitch_prints_replies_as_we_do() {
    let dir = tempfile::tempdir().unwrap();
    let mut failures = Vec::new();
    let mut compared = 0;
    for sample in samples() {
        let (version, xid) = (sample.version, Xid(7));
        let Some(message) = usual_reply(version, sample.message.clone()) else { continue };
        let Some(ours) = text::format_reply(version, xid, &message) else { continue };
        let theirs = printed(dir.path(), &wire::encode(version, xid, &message).unwrap());
        compared += 1;
        // Open vSwitch forgets a blank, and leaves one behind where an update has no match.
        let theirs = theirs.replace("KLINK_DOWN", "K LINK_DOWN").replace("NLINK", "N LINK");
        let is_update = |line: &str| line.starts_with(" event=");
        let tidied = theirs.lines().map(|l| if is_update(l) { l.trim_end() } else { l });
        let theirs = tidied.collect::<Vec<_>>().join("\n");
        if theirs != ours {
            failures.push(format!("{}:\n{}", sample.name(), difference(&ours, &theirs)));
        }
    }
    let shown = failures.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {compared}:\n{shown}", failures.len());
}

/// The fields' matches that Open vSwitch has, each once.
fn usual_matches() -> Vec<Match> {
    let mut usual: Vec<Match> = nicira::matches(6).iter().map(usual_match).collect();
    // It has ICMP's fields, and those of neighbours, with the protocol of that IP version alone.
    usual.retain(|matching| matching.check_prerequisites().is_ok());
    usual.sort_unstable();
    usual.dedup();
    usual
}

#[test]
#[ignore = "needs ovs-ofctl: cargo xtask test as root installs it"]
fn open_vswitch_sends_nicira_flow_mods_as_we_do() {
    let dir = tempfile::tempdir().unwrap();
    let (mut failures, mut compared) = (Vec::new(), 0);
    for matching in usual_matches() {
        let wanted = FlowMod { matching, ..FlowMod::new(FlowModCommand::Add) };
        let line = text::format_flow_mod(&wanted);
        let sent = ovs_ofctl_in(dir.path(), Version::V1_0, Some("NXM"), &["add-flow"], &line);
        let Some(theirs) = sent.frames.last() else {
            failures.push(format!("{line}: {:?}", sent.complaint));
            continue;
        };
        compared += 1;
        let (_, xid, message) = wire::decode(theirs).unwrap();
        let mut ours = Vec::new();
        wire::encode_in(&mut ours, nicira::NXM, Version::V1_0, xid, &message).unwrap();
        if message != Message::FlowMod(wanted) {
            failures.push(format!("{line}: {message:?}"));
        } else if !same_bytes(&ours, theirs) {
            failures.push(format!("{line}: they {theirs:02x?}\nwe {ours:02x?}"));
        }
    }
    assert!(failures.is_empty(), "{} of {compared}:\n{}", failures.len(), failures.join("\n"));
    assert!(compared > 100, "{compared}");
}

#[test]
#[ignore = "needs ovs-ofctl: cargo xtask test as root installs it"]
fn open_vswitch_prints_nicira_statistics_as_we_do() {
    let dir = tempfile::tempdir().unwrap();
    let mut failures = Vec::new();
    for matching in usual_matches() {
        let body = MultipartReplyBody::Flow(vec![nicira::entry(matching)]);
        let message = Message::MultipartReply(MultipartReply { more: false, body });
        let ours = text::format_reply(Version::V1_0, Xid(7), &message).unwrap();
        let mut frame = Vec::new();
        wire::encode_in(&mut frame, nicira::NXM, Version::V1_0, Xid(7), &message).unwrap();
        let theirs = printed(dir.path(), &frame).replace("NXST_", "OFPST_");
        if theirs != ours {
            failures.push(difference(&ours, &theirs));
        }
    }
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}
