//! Tables in text, as `ovs-ofctl` prints them: a table like the one before takes one line
//! for all such tables.

use super::flow::format_count;
use super::reply::action_words;
use crate::field::Field;
use crate::instruction::{INSTRUCTIONS, InstructionRow};
use crate::table::{TableAbilities, TableMod, TableStats, TableStatus};
use crate::version::Version;

/// The bits of 1.0's wildcards with the words of their fields; those of one prefix are named
/// together.
const WILDCARDS: &[(&str, &[(u32, &str)])] = &[
    ("in", &[(1, "port")]),
    ("eth", &[(1 << 2, "src"), (1 << 3, "dst"), (1 << 4, "type")]),
    ("vlan", &[(1 << 1, "vid"), (1 << 20, "pcp")]),
    ("ip", &[(0x3f << 8, "src"), (0x3f << 14, "dst")]),
    ("nw", &[(1 << 5, "proto"), (1 << 21, "tos")]),
    ("tcp", &[(1 << 6, "src"), (1 << 7, "dst")]),
];

/// Tables' counters, each table below a line of its own, unless it is like the one before.
pub(super) fn format_tables(version: Version, tables: &[TableStats]) -> String {
    let mut out = String::new();
    let mut like: Option<(u8, u8)> = None;
    let mut before: Option<&TableStats> = None;
    for table in tables {
        let is_like = before.is_some_and(|before| is_like(before, table));
        let has_features = before.is_some_and(|before| features(before) == features(table));
        let abilities_before = before.map(|before| &before.abilities);
        before = Some(table);
        let number = table.table_id.0;
        if is_like && table.name.is_empty() {
            like = Some(like.map_or((number, number), |(first, _)| (first, number)));
            continue;
        }
        out += &ditto(like.take());
        let name =
            if table.name.is_empty() { String::new() } else { format!(" ({:?})", table.name) };
        if is_like {
            out += &format!("\n  table {number}{name}: ditto");
        } else {
            out += &format!("\n  table {number}{name}:\n    {}", counts(table));
            out += &match (version.has_table_desc_in_stats(), has_features) {
                (true, true) => "\n    (same features)".to_owned(),
                (true, false) if version.has_pipeline() => {
                    abilities_text(version, table, abilities_before)
                }
                (true, false) => features_text(table),
                (false, true | false) => String::new(),
            };
            out += "\n";
        }
    }
    out += &ditto(like);
    out
}

/// The bits of a table's rule of eviction (`OFPTMPEF_*`).
const EVICTION_FLAGS: [(u32, &str); 3] =
    [(1, "OTHER"), (1 << 1, "IMPORTANCE"), (1 << 2, "LIFETIME")];

/// A table's settings in three lines, as `ovs-ofctl dump-table-desc` has them.
pub(super) fn format_table_desc(table: &TableMod) -> String {
    let bit = |bit: u32| if table.config & bit == 0 { "off" } else { "on" };
    let flags = match table.eviction {
        None => "(default)".to_owned(),
        Some(0) => "0".to_owned(),
        Some(bits) => {
            let known = EVICTION_FLAGS.iter().filter(|(flag, _)| bits & flag != 0);
            let mut words: Vec<String> = known.map(|(_, word)| (*word).to_owned()).collect();
            let rest = EVICTION_FLAGS.iter().fold(bits, |rest, (flag, _)| rest & !flag);
            words.extend((rest != 0).then(|| format!("{rest:#x}")));
            words.join("|")
        }
    };
    let (evicts, number) = (bit(TableMod::EVICTION), table.table_id.0);
    let mut out = format!("  table {number}:\n   eviction={evicts} eviction_flags={flags}");
    out += &format!("\n   vacancy={}", bit(TableMod::VACANCY_EVENTS));
    let is_on = table.config & TableMod::VACANCY_EVENTS != 0;
    if let Some(vacancy) = table.vacancy.filter(|_| is_on) {
        let (down, up, now) = (vacancy.down, vacancy.up, vacancy.now);
        out += &format!(" vacancy_down={down}% vacancy_up={up}% vacancy={now}%");
    }
    out
}

/// A table status, as `ovs-ofctl monitor` prints it.
pub(super) fn format_table_status(status: &TableStatus) -> String {
    let table = format_table_desc(&status.table);
    format!(" reason={}\ntable_desc:-\n{table}", status.reason.text())
}

fn counts(table: &TableStats) -> String {
    format!(
        "active={}, lookup={}, matched={}",
        table.active_count,
        format_count(table.lookup_count),
        format_count(table.matched_count)
    )
}

fn features(table: &TableStats) -> (u32, u32, TableAbilities) {
    (table.wildcards, table.max_entries, table.abilities)
}

fn is_like(one: &TableStats, other: &TableStats) -> bool {
    let stats = |table: &TableStats| (table.active_count, table.lookup_count, table.matched_count);
    features(one) == features(other) && stats(one) == stats(other)
}

/// The tables that are like the one before them.
fn ditto(like: Option<(u8, u8)>) -> String {
    match like {
        None => String::new(),
        Some((first, last)) if first == last => format!("\n  table {first}: ditto\n"),
        Some((first, last)) => format!("\n  tables {first}...{last}: ditto\n"),
    }
}

/// The features of a table that only 1.0's counters have.
fn features_text(table: &TableStats) -> String {
    let mut out = format!("\n    max_entries={}", table.max_entries);
    let groups = words(WILDCARDS, |bits| table.wildcards & bits != 0);
    if !groups.is_empty() {
        out += &format!("\n    matching:\n      exact match or wildcard: {groups}");
    }
    out
}

/// The words of what is set; those of one prefix are named together.
fn words<T>(groups: &[(&str, &[(T, &str)])], is_set: impl Fn(&T) -> bool) -> String {
    let group = |(prefix, fields): &(&str, &[(T, &str)])| {
        let set = fields.iter().filter(|(field, _)| is_set(field));
        let set: Vec<&str> = set.map(|(_, name)| *name).collect();
        match set.as_slice() {
            [] => None,
            [one] if prefix.is_empty() => Some((*one).to_owned()),
            [one] => Some(format!("{prefix}_{one}")),
            more => Some(format!("{prefix}_{{{}}}", more.join(","))),
        }
    };
    groups.iter().filter_map(group).collect::<Vec<_>>().join(" ")
}

/// The fields of 1.2 with their words, in Open vSwitch's order.
const FIELDS_1_2: &[(&str, &[(Field, &str)])] = &[
    ("", &[(Field::Metadata, "metadata")]),
    ("in", &[(Field::InPort, "port_oxm"), (Field::InPhyPort, "phy_port")]),
    ("eth", &[(Field::EthSrc, "src"), (Field::EthDst, "dst"), (Field::EthType, "type")]),
    ("vlan", &[(Field::VlanVid, "vid"), (Field::VlanPcp, "pcp")]),
    ("mpls", &[(Field::MplsLabel, "label"), (Field::MplsTc, "tc")]),
    ("ip", &[(Field::Ipv4Src, "src"), (Field::Ipv4Dst, "dst")]),
    ("ipv6", &[(Field::Ipv6Src, "src"), (Field::Ipv6Dst, "dst"), (Field::Ipv6Flabel, "label")]),
    ("nw", &[(Field::IpProto, "proto")]),
    ("ip", &[(Field::IpDscp, "dscp")]),
    ("nw", &[(Field::IpEcn, "ecn")]),
    (
        "arp",
        &[
            (Field::ArpOp, "op"),
            (Field::ArpSpa, "spa"),
            (Field::ArpTpa, "tpa"),
            (Field::ArpSha, "sha"),
            (Field::ArpTha, "tha"),
        ],
    ),
    ("tcp", &[(Field::TcpSrc, "src"), (Field::TcpDst, "dst")]),
    ("udp", &[(Field::UdpSrc, "src"), (Field::UdpDst, "dst")]),
    ("sctp", &[(Field::SctpSrc, "src"), (Field::SctpDst, "dst")]),
    ("icmp", &[(Field::Icmpv4Type, "type"), (Field::Icmpv4Code, "code")]),
    ("icmpv6", &[(Field::Icmpv6Type, "type"), (Field::Icmpv6Code, "code")]),
    (
        "nd",
        &[(Field::Ipv6NdTarget, "target"), (Field::Ipv6NdSll, "sll"), (Field::Ipv6NdTll, "tll")],
    ),
];

/// The members of 1.1's match by their numbers, with their words, in Open vSwitch's order.
const MEMBERS_1_1: &[(&str, &[(u32, &str)])] = &[
    ("", &[(15, "metadata")]),
    ("in", &[(0, "port")]),
    ("eth", &[(11, "src"), (12, "dst"), (3, "type")]),
    ("vlan", &[(1, "vid"), (2, "pcp")]),
    ("mpls", &[(8, "label"), (9, "tc")]),
    ("ip", &[(13, "src"), (14, "dst")]),
    ("nw", &[(5, "proto"), (4, "tos")]),
    ("tcp", &[(6, "src"), (7, "dst")]),
];

/// The words of a bitmap of fields.
fn field_words(version: Version, bits: u64) -> String {
    if version.has_tuple_matches() {
        return words(MEMBERS_1_1, |number| bits >> number & 1 != 0);
    }
    words(FIELDS_1_2, |field| bits >> field.row().oxm & 1 != 0)
}

/// The features of a table that the counters of 1.1 and 1.2 have, without those that are the same
/// as in the table before.
fn abilities_text(version: Version, table: &TableStats, before: Option<&TableAbilities>) -> String {
    let can = &table.abilities;
    let mut out = String::new();
    if can.metadata_match != 0 || can.metadata_write != 0 {
        let (matched, written) = (can.metadata_match, can.metadata_write);
        out += &format!("\n    metadata: match={matched:#x} write={written:#x}");
    }
    let miss = ["controller", "continue", "drop"].get(can.config as usize & 3);
    out += &format!("\n    config={}", miss.unwrap_or(&"Unknown"));
    if table.max_entries != 0 {
        out += &format!("\n    max_entries={}", table.max_entries);
    }
    if can.instructions != 0 {
        let is_set = |row: &&InstructionRow| {
            let number = row.kind.number(version).unwrap_or(u16::MAX);
            can.instructions.checked_shr(number.into()).is_some_and(|bits| bits & 1 != 0)
        };
        let known: Vec<&str> = INSTRUCTIONS.iter().filter(is_set).map(|row| row.text).collect();
        out += "\n    instructions (table miss and others):";
        out += &format!("\n      instructions: {}", known.join(" "));
        // As Open vSwitch, which repeats the actions where none sets a field by its name.
        let is_same = can.write_setfields != 0
            && before.is_some_and(|before| actions(before) == actions(can));
        out +=
            &if is_same { "\n      (same actions)".to_owned() } else { actions_text(version, can) };
    }
    let matching = |can: &TableAbilities| (can.matches, can.wildcards);
    if before.is_some_and(|before| matching(before) == matching(can)) {
        return out + "\n    (same matching)";
    }
    let lines = [
        ("exact match or wildcard", field_words(version, can.matches & can.wildcards)),
        ("must exact match", field_words(version, can.matches & !can.wildcards)),
    ];
    if can.matches != 0 {
        out += "\n    matching:";
    }
    for (name, fields) in lines.iter().filter(|(_, fields)| !fields.is_empty()) {
        out += &format!("\n      {name}: {fields}");
    }
    out
}

/// The actions that are written and those that are applied, each with the fields that it sets.
fn actions(can: &TableAbilities) -> [(u32, u64); 2] {
    [(can.write_actions, can.write_setfields), (can.apply_actions, can.apply_setfields)]
}

fn actions_text(version: Version, can: &TableAbilities) -> String {
    let list = |name: &str, (actions, fields): (u32, u64)| {
        let mut out = format!("\n      {name} features:");
        out += &format!("\n        actions: {}", action_words(version, actions));
        let fields = field_words(version, fields);
        if !fields.is_empty() {
            out += &format!("\n        supported on Set-Field: {fields}");
        }
        out
    };
    let [written, applied] = actions(can);
    if written == applied {
        return list("Write-Actions and Apply-Actions", written);
    }
    list("Write-Actions", written) + &list("Apply-Actions", applied)
}

#[cfg(test)]
mod tests {
    use super::{format_table_desc, format_tables};
    use crate::id::TableId;
    use crate::table::{TableAbilities, TableMod, TableStats, Vacancy};
    use crate::version::Version;

    fn table(number: u8, name: &str, wildcards: u32, active_count: u32) -> TableStats {
        TableStats {
            table_id: TableId(number),
            name: name.to_owned(),
            wildcards,
            max_entries: 100,
            active_count,
            ..TableStats::default()
        }
    }

    /// The expected text is what `ovs-ofctl ofp-print` of Open vSwitch 3.1 prints.
    #[test]
    fn like_tables_are_printed_together() {
        let tables = [
            table(0, "", 0x003f_ffff, 1),
            table(1, "", 0x003f_ffff, 1),
            table(2, "", 0x003f_ffff, 2),
            table(3, "x", 0x003f_ffff, 2),
            table(5, "", 1 << 2 | 1, 0),
            table(6, "", 1 << 2 | 1, 0),
            table(9, "", 1 << 2 | 1, 0),
        ];
        let text = format_tables(Version::V1_0, &tables);
        assert_eq!(
            text,
            "
  table 0:
    active=1, lookup=0, matched=0
    max_entries=100
    matching:
      exact match or wildcard: in_port eth_{src,dst,type} vlan_{vid,pcp} ip_{src,dst} \
             nw_{proto,tos} tcp_{src,dst}

  table 1: ditto

  table 2:
    active=2, lookup=0, matched=0
    (same features)

  table 3 (\"x\"): ditto
  table 5:
    active=0, lookup=0, matched=0
    max_entries=100
    matching:
      exact match or wildcard: in_port eth_src

  tables 6...9: ditto
"
        );
        let text = format_tables(Version::V1_3, &tables[4..]);
        assert_eq!(
            text,
            "\n  table 5:\n    active=0, lookup=0, matched=0\n\n  tables 6...9: ditto\n"
        );
    }

    #[test]
    fn settings_of_tables_are_as_open_vswitch_prints_them() {
        let table = |config, eviction, vacancy| TableMod {
            eviction,
            vacancy,
            ..TableMod::new(TableId(3), config)
        };
        let vacancy = Some(Vacancy { down: 20, up: 80, now: 99 });
        let title = "  table 3:\n   eviction=";
        for (table, text) in [
            (table(0, None, None), "off eviction_flags=(default)\n   vacancy=off"),
            (
                table(4, Some(7), vacancy),
                "on eviction_flags=OTHER|IMPORTANCE|LIFETIME\n   vacancy=off",
            ),
            (
                table(8, Some(0x12), vacancy),
                "off eviction_flags=IMPORTANCE|0x10\n   vacancy=on vacancy_down=20% vacancy_up=80% \
                 vacancy=99%",
            ),
        ] {
            assert_eq!(format_table_desc(&table), format!("{title}{text}"));
        }
    }

    /// The expected text is what `ovs-ofctl ofp-print` of Open vSwitch 3.1 prints, but for
    /// `in_phy_port`, which it does not have, and the actions that copy a TTL.
    #[test]
    fn abilities_of_tables_are_printed_once() {
        let all = ((1 << 36) - 1) & !0b10;
        let actions = 0x03ff_8001;
        let can = TableAbilities {
            matches: all,
            wildcards: all,
            write_actions: actions,
            apply_actions: actions,
            write_setfields: 1 << 3,
            apply_setfields: 1 << 3 | 1 << 4,
            metadata_match: u64::MAX,
            metadata_write: 0xff,
            instructions: 0x3e,
            config: 2,
        };
        let second = TableAbilities { instructions: 0x3c, ..can };
        let third =
            TableAbilities { wildcards: 1, matches: 0b100_0001, ..TableAbilities::default() };
        let tables =
            [can, second, third, third].into_iter().enumerate().map(|(number, abilities)| {
                TableStats { abilities, wildcards: 0, ..table(number as u8, "", 0, 0) }
            });
        let text = format_tables(Version::V1_2, &tables.collect::<Vec<_>>());
        assert_eq!(
            text,
            "
  table 0:
    active=0, lookup=0, matched=0
    metadata: match=0xffffffffffffffff write=0xff
    config=drop
    max_entries=100
    instructions (table miss and others):
      instructions: apply_actions clear_actions write_actions write_metadata goto_table
      Write-Actions features:
        actions: output group set_field strip_vlan push_vlan mod_nw_ttl dec_ttl set_mpls_ttl \
             dec_mpls_ttl push_mpls pop_mpls set_queue
        supported on Set-Field: eth_dst
      Apply-Actions features:
        actions: output group set_field strip_vlan push_vlan mod_nw_ttl dec_ttl set_mpls_ttl \
             dec_mpls_ttl push_mpls pop_mpls set_queue
        supported on Set-Field: eth_{src,dst}
    matching:
      exact match or wildcard: metadata in_port_oxm eth_{src,dst,type} vlan_{vid,pcp} \
             mpls_{label,tc} ip_{src,dst} ipv6_{src,dst,label} nw_proto ip_dscp nw_ecn \
             arp_{op,spa,tpa,sha,tha} tcp_{src,dst} udp_{src,dst} sctp_{src,dst} icmp_{type,code} \
             icmpv6_{type,code} nd_{target,sll,tll}

  table 1:
    active=0, lookup=0, matched=0
    metadata: match=0xffffffffffffffff write=0xff
    config=drop
    max_entries=100
    instructions (table miss and others):
      instructions: apply_actions clear_actions write_actions write_metadata
      (same actions)
    (same matching)

  table 2:
    active=0, lookup=0, matched=0
    config=controller
    max_entries=100
    matching:
      exact match or wildcard: in_port_oxm
      must exact match: vlan_vid

  table 3: ditto
"
        );
    }
}
