//! Replies in text, as `ovs-ofctl` prints them: what `weir ctl` shows.

use super::flow::{
    format_count, format_duration, format_flow_removed, format_flow_stats, format_flow_update,
};
use super::group::format_group;
use super::meter::format_meter;
use super::notice::{format_async, format_port_status, format_queues, format_role_status};
use super::table::{format_table_desc, format_table_status, format_tables};
use crate::action::{ActionKind, METER};
use crate::group::{GroupFeatures, GroupStats};
use crate::id::{PortNo, TableId, Xid};
use crate::message::{
    Features, Message, MessageKind, MultipartReplyBody, MultipartType, SwitchConfig,
};
use crate::meter::{MeterFeatures, MeterFlags, MeterStats};
use crate::port::{PortConfig, PortDesc, PortFeatures, PortState, PortStats, QueueStats};
use crate::table::{OnPacket, OxmId, TableFeatures, TableProperty, TypeId};
use crate::version::Version;

/// A reply of a switch as `ovs-ofctl` prints it, without a line end. `None` for messages that are
/// no replies to a question about the switch.
#[must_use]
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "all others are no replies that `ovs-ofctl` prints"
)]
pub fn format_reply(version: Version, xid: Xid, message: &Message) -> Option<String> {
    let title = |name: &str| title(version, xid, name);
    Some(match message {
        Message::FeaturesReply(features) => {
            title("OFPT_FEATURES_REPLY") + " " + &format_features(version, features)
        }
        Message::GetConfigReply(config) => {
            title("OFPT_GET_CONFIG_REPLY") + " " + &format_config(version, config)
        }
        Message::FlowRemoved(gone) => {
            title("OFPT_FLOW_REMOVED") + " " + &format_flow_removed(version, gone)
        }
        Message::PortStatus(status) => {
            title("OFPT_PORT_STATUS") + &format_port_status(version, status)
        }
        Message::GetAsyncReply(config) => {
            title("OFPT_GET_ASYNC_REPLY") + &format_async(version, config)
        }
        Message::TableStatus(status) => title("OFPT_TABLE_STATUS") + &format_table_status(status),
        Message::RoleStatus(status) => title("OFPT_ROLE_STATUS") + &format_role_status(status),
        Message::QueueGetConfigReply(config) => {
            title("OFPT_QUEUE_GET_CONFIG_REPLY") + &format_queues(config.port, &config.queues)
        }
        Message::MultipartReply(reply) => {
            let name = reply.body.kind().text().replace("OFPMP_", "OFPST_");
            let is_monitor = reply.body.kind() == MultipartType::FlowMonitor;
            let name = match name.as_str() {
                "OFPST_PORT_STATS" => "OFPST_PORT",
                _ if is_monitor && !version.has_onf_flow_monitor() => "NXST_FLOW_MONITOR",
                _ if is_monitor && !version.has_flow_monitor() => "ONFST_FLOW_MONITOR",
                name => name,
            };
            title(&format!("{name} reply")) + &format_multipart(version, &reply.body)
        }
        _ => return None,
    })
}

/// A message's name with its version and transaction number.
pub(super) fn title(version: Version, xid: Xid, name: &str) -> String {
    format!("{name}{} (xid={:#x}):", version.row().mark, xid.0)
}

fn format_multipart(version: Version, body: &MultipartReplyBody) -> String {
    match body {
        MultipartReplyBody::Desc(desc) => format!(
            "\nManufacturer: {}\nHardware: {}\nSoftware: {}\nSerial Num: {}\nDP Description: {}",
            printable(&desc.mfr_desc),
            printable(&desc.hw_desc),
            printable(&desc.sw_desc),
            printable(&desc.serial_num),
            printable(&desc.dp_desc)
        ),
        MultipartReplyBody::Flow(flows) => {
            lines(flows, |flow| format!(" {}", format_flow_stats(version, flow)))
        }
        MultipartReplyBody::Aggregate(sums) => format!(
            " packet_count={} byte_count={} flow_count={}",
            format_count(sums.packet_count),
            format_count(sums.byte_count),
            sums.flow_count
        ),
        MultipartReplyBody::Table(tables) => format_tables(version, tables).trim_end().to_owned(),
        MultipartReplyBody::PortStats(ports) => {
            format!(" {} ports", ports.len())
                + &lines(ports, |port| format_port_stats(version, port))
        }
        MultipartReplyBody::Queue(queues) => {
            format!(" {} queues", queues.len())
                + &lines(queues, |queue| format_queue(version, queue))
        }
        MultipartReplyBody::Group(groups) => {
            lines(groups, |group| format_group_stats(version, group))
        }
        MultipartReplyBody::GroupDesc(groups) => {
            lines(groups, |group| format!(" {}", format_group(group)))
        }
        MultipartReplyBody::GroupFeatures(features) => format_group_features(version, features),
        MultipartReplyBody::Meter(meters) => {
            paragraphs(meters.iter().map(format_meter_stats).collect())
        }
        MultipartReplyBody::MeterConfig(meters) => {
            paragraphs(meters.iter().map(format_meter).collect())
        }
        MultipartReplyBody::MeterFeatures(features) => format_meter_features(features),
        MultipartReplyBody::TableFeatures(tables) => lines(tables, format_table_features),
        MultipartReplyBody::PortDesc(ports) => format_port_descs(version, ports),
        MultipartReplyBody::TableDesc(tables) => lines(tables, format_table_desc),
        MultipartReplyBody::QueueDesc(queues) => format_queues(PortNo::ANY, queues),
        MultipartReplyBody::FlowMonitor(updates) => {
            lines(updates, |update| format!(" {}", format_flow_update(version, update)))
        }
        MultipartReplyBody::Experimenter(own) => {
            format!(" experimenter={:#x} type={:#x}", own.experimenter, own.exp_type)
        }
    }
}

fn lines<T>(list: &[T], format: impl Fn(&T) -> String) -> String {
    list.iter().fold(String::new(), |text, item| text + "\n" + &format(item))
}

fn paragraphs(list: Vec<String>) -> String {
    if list.is_empty() { String::new() } else { "\n".to_owned() + &list.join("\n\n") }
}

/// A text that a switch chose: its control characters, which a terminal would obey, are escaped as
/// in JSON.
fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |out, letter| match letter {
        '\n' => out + "\\n",
        '\r' => out + "\\r",
        '\t' => out + "\\t",
        letter if letter.is_control() => out + &format!("\\u{:04x}", u32::from(letter)),
        letter => out + letter.encode_utf8(&mut [0; 4]),
    })
}

/// The words of the set bits, blank separated; `0` when there are none.
fn words(bits: u32, names: &[(u32, &str)]) -> String {
    let found: Vec<&str> =
        names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect();
    if found.is_empty() { "0".to_owned() } else { found.join(" ") }
}

/// As [`words`], with the bits behind them that have no word.
fn words_or_bits(bits: u32, names: &[(u32, &str)]) -> String {
    let known = names.iter().fold(0, |known, (bit, _)| known | bit);
    match (bits & known, bits & !known) {
        (_, 0) => words(bits, names),
        (0, rest) => format!("{rest:#x}"),
        (_, rest) => format!("{} {rest:#x}", words(bits, names)),
    }
}

fn format_features(version: Version, features: &Features) -> String {
    let group = if version.has_groups() { "GROUP_STATS" } else { "STP" };
    let last = match version.has_arp_match_capability() {
        true => (1 << 7, "ARP_MATCH_IP"),
        false => (1 << 8, "PORT_BLOCKED"),
    };
    let mut names = vec![
        (1, "FLOW_STATS"),
        (1 << 1, "TABLE_STATS"),
        (1 << 2, "PORT_STATS"),
        (1 << 3, group),
        (1 << 5, "IP_REASM"),
        (1 << 6, "QUEUE_STATS"),
        last,
    ];
    if MessageKind::BundleControl.number(version).is_some() {
        names.extend([(1 << 9, "BUNDLES"), (1 << 10, "FLOW_MONITORING")]);
    }
    let capabilities = words(features.capabilities.bits(), &names);
    let mut out = format!(
        "dpid:{}\nn_tables:{}, n_buffers:{}",
        features.datapath_id, features.n_tables, features.n_buffers
    );
    if features.auxiliary_id != 0 {
        out += &format!(", auxiliary_id:{}", features.auxiliary_id);
    }
    out += &format!("\ncapabilities: {capabilities}");
    if version.has_action_bitmap() {
        out += &format!("\nactions: {}", action_words(version, features.actions));
    }
    if !version.has_port_desc() {
        out += &format_port_descs(version, &features.ports);
    }
    out
}

fn format_port_descs(version: Version, ports: &[PortDesc]) -> String {
    let mut ports = ports.iter().collect::<Vec<_>>();
    ports.sort_by_key(|port| port.port_no);
    lines(&ports, |port| format_port_desc(version, port))
}

/// The names of the actions whose type numbers are set in a bitmap; numbers without an action are
/// left out.
pub(super) fn action_words(version: Version, bits: u32) -> String {
    let others = [
        (ActionKind::SetVlanVid, "set_vlan_vid"),
        (ActionKind::SetVlanPcp, "set_vlan_pcp"),
        (ActionKind::PopVlan, "strip_vlan"),
    ];
    let known = |number: u16| {
        let kind = ActionKind::from_number(version, number)?;
        let other = others.iter().find(|(known, _)| *known == kind);
        Some(other.map_or(kind.row().text, |(_, word)| *word))
    };
    // In the order of Open vSwitch, then what it does not have.
    let order: &[u16] = if version.has_set_field() {
        &[0, 22, 25, 18, 17, 23, 24, 15, 16, 19, 20, 21]
    } else if version.has_push() {
        &[0, 22, 1, 2, 18, 17, 3, 4, 5, 6, 7, 8, 23, 9, 10, 24, 13, 14, 15, 16, 19, 20, 21]
    } else {
        &[0, 11]
    };
    let rest = (0..32).filter(|number| !order.contains(number));
    let words = order.iter().copied().chain(rest).filter(|number| bits & (1 << number) != 0);
    let words = words.filter_map(known).collect::<Vec<_>>().join(" ");
    if words.is_empty() { "<none>".to_owned() } else { words }
}

fn format_config(version: Version, config: &SwitchConfig) -> String {
    let frags = match config.flags & 3 {
        0 => "normal",
        1 => "drop",
        2 => "reassemble",
        _ => "nx-match",
    };
    let has_flag = version.has_invalid_ttl_flag() && config.flags & SwitchConfig::INVALID_TTL != 0;
    let invalid_ttl = if has_flag { " invalid_ttl_to_controller" } else { "" };
    format!("frags={frags}{invalid_ttl} miss_send_len={}", config.miss_send_len)
}

/// A state of the spanning tree in 1.0 that is no state of ours.
const STP_LEARN: u32 = 1 << 8;

/// A port's description as `ovs-ofctl show` prints it: several lines.
#[must_use]
pub fn format_port_desc(version: Version, port: &PortDesc) -> String {
    let spanning_tree = PortConfig::NO_STP | PortConfig::NO_RECV_STP | PortConfig::NO_FLOOD;
    let config =
        if version.has_spanning_tree() { port.config } else { port.config - spanning_tree };
    let config = words(
        config.bits(),
        &[
            (PortConfig::PORT_DOWN.bits(), "PORT_DOWN"),
            (PortConfig::NO_STP.bits(), "NO_STP"),
            (PortConfig::NO_RECV.bits(), "NO_RECV"),
            (PortConfig::NO_RECV_STP.bits(), "NO_RECV_STP"),
            (PortConfig::NO_FLOOD.bits(), "NO_FLOOD"),
            (PortConfig::NO_FWD.bits(), "NO_FWD"),
            (PortConfig::NO_PACKET_IN.bits(), "NO_PACKET_IN"),
        ],
    );
    let down = (PortState::LINK_DOWN.bits(), "LINK_DOWN");
    let states = if version.has_spanning_tree() {
        vec![(PortState::BLOCKED.bits(), "STP_BLOCK"), (STP_LEARN, "STP_LEARN"), down]
    } else {
        let live = (PortState::LIVE.bits(), "LIVE");
        vec![down, (PortState::BLOCKED.bits(), "BLOCKED"), live]
    };
    let number = port_text(version, port.port_no);
    let mut out = format!(" {number}({}): addr:{}", printable(&port.name), port.hw_addr);
    out += &format!("\n     config:     {config}");
    out += &format!("\n     state:      {}", words(port.state.bits(), &states));
    for (name, features) in [
        ("current:    ", port.curr),
        ("advertised: ", port.advertised),
        ("supported:  ", port.supported),
        ("peer:       ", port.peer),
    ] {
        if !features.is_empty() {
            out += &format!("\n     {name}{}", feature_words(features));
        }
    }
    let [now, max] = if version.has_port_speeds() {
        [port.curr_speed_kbps / 1000, port.max_speed_kbps / 1000]
    } else {
        [port.curr, port.supported].map(speed_mbps)
    };
    out + &format!("\n     speed: {now} Mbps now, {max} Mbps max")
}

/// The number as the version writes it, or the name of a reserved port.
fn port_text(version: Version, port: PortNo) -> String {
    match port.reserved_name() {
        Some(name) => name.to_owned(),
        None if version.has_wide_ports() => port.0.to_string(),
        None => (port.0 & 0xffff).to_string(),
    }
}

/// The highest rate among the features; 1.0 says the rate in no other way.
fn speed_mbps(features: PortFeatures) -> u32 {
    let rates = [
        (PortFeatures::HD_10MB | PortFeatures::FD_10MB, 10),
        (PortFeatures::HD_100MB | PortFeatures::FD_100MB, 100),
        (PortFeatures::HD_1GB | PortFeatures::FD_1GB, 1000),
        (PortFeatures::FD_10GB, 10_000),
    ];
    let known = rates.iter().filter(|(bits, _)| features.intersects(*bits));
    known.map(|(_, mbps)| *mbps).max().unwrap_or(0)
}

fn feature_words(features: PortFeatures) -> String {
    words(
        features.bits(),
        &[
            (1, "10MB-HD"),
            (1 << 1, "10MB-FD"),
            (1 << 2, "100MB-HD"),
            (1 << 3, "100MB-FD"),
            (1 << 4, "1GB-HD"),
            (1 << 5, "1GB-FD"),
            (1 << 6, "10GB-FD"),
            (1 << 7, "40GB-FD"),
            (1 << 8, "100GB-FD"),
            (1 << 9, "1TB-FD"),
            (1 << 10, "OTHER"),
            (1 << 11, "COPPER"),
            (1 << 12, "FIBER"),
            (1 << 13, "AUTO_NEG"),
            (1 << 14, "AUTO_PAUSE"),
            (1 << 15, "AUTO_PAUSE_ASYM"),
        ],
    )
}

fn format_port_stats(version: Version, port: &PortStats) -> String {
    let number = match port.port_no.reserved_name() {
        Some(name) => name.to_owned(),
        None => format!("{:>2}", port_text(version, port.port_no)),
    };
    let [rx, tx, rx_bytes, tx_bytes, rx_drop, tx_drop] = [
        port.rx_packets,
        port.tx_packets,
        port.rx_bytes,
        port.tx_bytes,
        port.rx_dropped,
        port.tx_dropped,
    ]
    .map(format_count);
    let [rx_errs, tx_errs, frame, over, crc, coll] = [
        port.rx_errors,
        port.tx_errors,
        port.rx_frame_err,
        port.rx_over_err,
        port.rx_crc_err,
        port.collisions,
    ]
    .map(format_count);
    let mut out = format!(
        "  port {number}: rx pkts={rx}, bytes={rx_bytes}, drop={rx_drop}, errs={rx_errs}, \
         frame={frame}, over={over}, crc={crc}\n           tx pkts={tx}, bytes={tx_bytes}, \
         drop={tx_drop}, errs={tx_errs}, coll={coll}"
    );
    if version.has_durations() {
        let duration = format_duration(port.duration_s, port.duration_ns);
        out += &format!("\n           duration={duration}s");
    }
    out
}

fn format_queue(version: Version, queue: &QueueStats) -> String {
    let out = format!(
        "  port {} queue {}: bytes={}, pkts={}, errors={}",
        port_text(version, queue.port_no),
        queue.queue_id.0,
        format_count(queue.tx_bytes),
        format_count(queue.tx_packets),
        format_count(queue.tx_errors)
    );
    let duration = if version.has_durations() {
        format_duration(queue.duration_s, queue.duration_ns) + "s"
    } else {
        "?".to_owned()
    };
    format!("{out}, duration={duration}")
}

fn format_group_stats(version: Version, group: &GroupStats) -> String {
    let duration = match version.has_durations() {
        true => format!("duration={}s,", format_duration(group.duration_s, group.duration_ns)),
        false => String::new(),
    };
    let mut out = format!(
        " group_id={},{duration}ref_count={},packet_count={},byte_count={}",
        group.group_id.0,
        group.ref_count,
        format_count(group.packet_count),
        format_count(group.byte_count)
    );
    for (index, bucket) in group.buckets.iter().enumerate() {
        out += &format!(
            ",bucket{index}:packet_count={},byte_count={}",
            format_count(bucket.packet_count),
            format_count(bucket.byte_count)
        );
    }
    out
}

fn format_group_features(version: Version, features: &GroupFeatures) -> String {
    let mut out = format!(
        "\n Group table:\n    Types:  {:#x}\n    Capabilities:  {:#x}",
        features.types,
        features.capabilities.bits()
    );
    let names = ["all", "select", "indirect", "fast failover"];
    let groups = names.iter().zip(features.max_groups).zip(features.actions);
    let supported = groups.enumerate().filter(|(number, _)| features.types & 1 << number != 0);
    for (_, ((name, max), actions)) in supported {
        out += &format!(
            "\n    {name} group:\n       max_groups={max:#x}\n       actions: {}",
            action_words(version, actions)
        );
    }
    out
}

fn format_meter_stats(meter: &MeterStats) -> String {
    let mut out = format!(
        "meter:{} flow_count:{} packet_in_count:{} byte_in_count:{} duration:{}s bands:",
        meter.meter_id.0,
        meter.flow_count,
        meter.packet_in_count,
        meter.byte_in_count,
        format_duration(meter.duration_s, meter.duration_ns)
    );
    for (index, band) in meter.bands.iter().enumerate() {
        out += &format!(
            "\n{index}: packet_count:{} byte_count:{}",
            band.packet_count, band.byte_count
        );
    }
    out
}

fn format_meter_features(features: &MeterFeatures) -> String {
    let bands = words_or_bits(features.band_types, &[(1 << 1, "drop"), (1 << 2, "dscp_remark")]);
    let capabilities = words_or_bits(
        features.capabilities,
        &[
            (u32::from(MeterFlags::KBPS.bits()), "kbps"),
            (u32::from(MeterFlags::PKTPS.bits()), "pktps"),
            (u32::from(MeterFlags::BURST.bits()), "burst"),
            (u32::from(MeterFlags::STATS.bits()), "stats"),
        ],
    );
    format!(
        "\nmax_meter:{} max_bands:{} max_color:{}\nband_types: {bands}\n\
         capabilities: {capabilities}",
        features.max_meter, features.max_bands, features.max_color
    )
}

fn format_table_features(table: &TableFeatures) -> String {
    let name = if table.name.is_empty() { String::new() } else { format!(" ({:?})", table.name) };
    let mut out = format!(
        "  table {}{name}:\n    metadata: match={:#x} write={:#x}\n    max_entries={}",
        table.table_id.0, table.metadata_match, table.metadata_write, table.max_entries
    );
    for property in &table.properties {
        out += &format!("\n    {}", format_property(property));
    }
    out
}

/// A property of a table as `ovs-ofctl dump-table-features` prints it: its name, and a list.
#[must_use]
pub fn format_property(property: &TableProperty) -> String {
    let actions = |list: &[TypeId<ActionKind>]| {
        // The meter of 1.5, which has no row among the actions.
        let named = list.iter().map(|id| match id {
            TypeId::Unknown(METER) => TypeId::Known("meter"),
            TypeId::Unknown(number) => TypeId::Unknown(*number),
            TypeId::Known(kind) => TypeId::Known(kind.row().text),
            TypeId::Experimenter(experimenter) => TypeId::Experimenter(*experimenter),
        });
        type_words(&named.collect::<Vec<_>>(), |name| name)
    };
    match property {
        TableProperty::Instructions(on, list) => {
            let list = type_words(list, |kind| kind.row().text);
            format!("instructions ({}): {list}", on_text(*on))
        }
        TableProperty::NextTables(on, list) => {
            format!("next tables ({}): {}", on_text(*on), table_words(list))
        }
        TableProperty::SynchronisedFrom(list) => {
            format!("synchronised from: {}", table_words(list))
        }
        TableProperty::WriteActions(on, list) => {
            format!("write actions ({}): {}", on_text(*on), actions(list))
        }
        TableProperty::ApplyActions(on, list) => {
            format!("apply actions ({}): {}", on_text(*on), actions(list))
        }
        TableProperty::Match(list) => format!("match: {}", field_words(list)),
        TableProperty::Wildcards(list) => format!("wildcards: {}", field_words(list)),
        TableProperty::WriteSetField(on, list) => {
            format!("write set-field ({}): {}", on_text(*on), field_words(list))
        }
        TableProperty::WriteCopyField(on, list) => {
            format!("write copy-field ({}): {}", on_text(*on), field_words(list))
        }
        TableProperty::ApplyCopyField(on, list) => {
            format!("apply copy-field ({}): {}", on_text(*on), field_words(list))
        }
        TableProperty::PacketTypes(list) => {
            let word = |number: &u32| format!("({},{:#x})", number >> 16, number & 0xffff);
            format!("packet types: {}", list.iter().map(word).collect::<Vec<_>>().join(" "))
        }
        TableProperty::ApplySetField(on, list) => {
            format!("apply set-field ({}): {}", on_text(*on), field_words(list))
        }
        TableProperty::Experimenter { on, experimenter, .. } => {
            format!("experimenter ({}): {experimenter:#x}", on_text(*on))
        }
    }
}

fn table_words(list: &[TableId]) -> String {
    let ids: Vec<String> = list.iter().map(|table| table.0.to_string()).collect();
    ids.join(",")
}

fn on_text(on: OnPacket) -> &'static str {
    match on {
        OnPacket::Hit => "hit",
        OnPacket::Miss => "miss",
    }
}

fn type_words<Kind: Copy>(list: &[TypeId<Kind>], text: impl Fn(Kind) -> &'static str) -> String {
    let word = |id: &TypeId<Kind>| match id {
        TypeId::Known(kind) => text(*kind).to_owned(),
        TypeId::Unknown(number) => format!("type{number}"),
        TypeId::Experimenter(experimenter) => format!("experimenter({experimenter:#x})"),
    };
    list.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Names of fields; those that take a mask with `/m`.
fn field_words(list: &[OxmId]) -> String {
    let word = |id: &OxmId| match id {
        OxmId::Basic { field, maskable: true } => format!("{}/m", field.row().name),
        OxmId::Basic { field, maskable: false } => field.row().name.to_owned(),
        OxmId::Unknown(header) => format!("oxm({header:#x})"),
        OxmId::Experimenter { experimenter, .. } => format!("experimenter({experimenter:#x})"),
    };
    list.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::format_port_desc;
    use crate::port::PortDesc;
    use crate::version::Version;

    #[test]
    fn control_characters_of_a_name_are_escaped() {
        let port = PortDesc { name: "a\u{1b}[2J\n\u{9b}é".to_owned(), ..PortDesc::default() };
        let text = format_port_desc(Version::V1_3, &port);
        assert!(text.contains("(a\\u001b[2J\\n\\u009bé):"), "{text}");
    }
}
