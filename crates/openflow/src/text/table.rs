//! Tables in text, as `ovs-ofctl` prints them: a table like the one before takes one line
//! for all such tables.

use super::flow::format_count;
use crate::table::{TableMod, TableStats};
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
                (true, false) => features_text(table),
                (false, true | false) => String::new(),
            };
            out += "\n";
        }
    }
    out += &ditto(like);
    out
}

/// A table's settings in a line, as `ovs-ofctl dump-table-desc` has them.
pub(super) fn format_table_desc(table: &TableMod) -> String {
    let bit = |bit: u32| if table.config & bit == 0 { "off" } else { "on" };
    let mut out = format!("  table {}:\n   eviction={}", table.table_id.0, bit(1 << 2));
    out += &format!(" vacancy={}", bit(1 << 3));
    if let Some(vacancy) = table.vacancy {
        let (down, up, now) = (vacancy.down, vacancy.up, vacancy.now);
        out += &format!(" vacancy_down={down}% vacancy_up={up}% vacancy={now}%");
    }
    out
}

fn counts(table: &TableStats) -> String {
    format!(
        "active={}, lookup={}, matched={}",
        table.active_count,
        format_count(table.lookup_count),
        format_count(table.matched_count)
    )
}

fn features(table: &TableStats) -> (u32, u32) {
    (table.wildcards, table.max_entries)
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
    let groups: Vec<String> = WILDCARDS
        .iter()
        .filter_map(|(prefix, fields)| {
            let set: Vec<&str> = fields
                .iter()
                .filter(|(bits, _)| table.wildcards & bits != 0)
                .map(|(_, name)| *name)
                .collect();
            match set.as_slice() {
                [] => None,
                [one] => Some(format!("{prefix}_{one}")),
                more => Some(format!("{prefix}_{{{}}}", more.join(","))),
            }
        })
        .collect();
    if !groups.is_empty() {
        let groups = groups.join(" ");
        out += &format!("\n    matching:\n      exact match or wildcard: {groups}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::format_tables;
    use crate::id::TableId;
    use crate::table::TableStats;
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
}
