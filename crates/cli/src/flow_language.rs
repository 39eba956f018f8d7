//! The flow language on a page: each field, action and instruction with its names in texts and in
//! Ryu, from the rows by which texts are read; as a manual page and as Markdown.
//!
//! No row is written here: a new one is on the page by itself.

use std::collections::BTreeSet;

use openflow::action::ACTIONS;
use openflow::field::{ALL_FIELDS, FIELDS, FieldRow, Format, Prereq, RyuName};
use openflow::instruction::INSTRUCTIONS;
use openflow::text::{
    action_form, format_match, instruction_form, other_names, parse_match, protocol_words,
    shared_words,
};
use openflow::{Field, Match, Version};

/// A table of the page.
struct Table {
    title: &'static str,
    text: &'static str,
    columns: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

const HEAD: &str = "A flow entry is a text such as `priority=10,tcp,nw_dst=10.0.0.0/8,\
actions=dec_ttl,output:2`: words of the entry (`table`, `priority`, `cookie`, `idle_timeout`, \
`hard_timeout`, `importance`, `send_flow_rem`, `check_overlap`, `reset_counts`, \
`no_packet_counts`, `no_byte_counts`, `out_port`, `out_group`), a match, and after `actions=` its \
instructions. `weir ctl`, the Python package and the files of `add-flows` take it; `weir ctl \
dump-flows` prints it as `ovs-ofctl` does.";

fn tables() -> [Table; 5] {
    [
        Table {
            title: "Match fields",
            text: "Weir takes all names of the first two columns and prints the first of the \
                   second, which is Open vSwitch's where that has the field; it prints the VLAN \
                   id as `dl_vlan=ID` or `vlan_tci=VALUE/MASK`, and the DSCP as `nw_tos=TOS`, and \
                   takes these too. A field of which another is needed is refused without it. \
                   With `set` a field may be written by `set_field`; with `mask` it takes \
                   VALUE/MASK.",
            columns: &["specification", "in text", "Ryu", "value", "needs", "since", "is"],
            rows: ALL_FIELDS.iter().map(field).collect(),
        },
        Table {
            title: "Words of several fields",
            text: "Each is the field that the protocol beside it has.",
            columns: &["word", "one of"],
            rows: shared_words().map(|(word, fields)| vec![code(word), choices(fields)]).collect(),
        },
        Table {
            title: "Protocol words",
            text: "A word alone stands for the fields behind it.",
            columns: &["word", "stands for"],
            rows: protocol_words().map(|word| vec![code(word), stands_for(word)]).collect(),
        },
        Table {
            title: "Actions",
            text: "After `actions=`, joined by commas, in the order of their execution; `drop` \
                   stands alone: no actions. The words are Open vSwitch's where that has the \
                   action. `NORMAL`, `FLOOD`, `ALL`, `IN_PORT`, `LOCAL`, `TABLE`, \
                   `CONTROLLER:MAX_LEN` and a port's number alone are outputs. An action that \
                   only 1.0 has is translated for 1.3, and the other way round.",
            columns: &["in text", "other names", "Ryu", "versions", "does"],
            rows: ACTIONS
                .iter()
                .filter_map(|row| {
                    let others = other_names(row.kind).map(code).collect::<Vec<_>>().join(", ");
                    let has = |version| row.kind.is_in(version);
                    let form = code(&action_form(row.kind)?);
                    Some(vec![form, others, code(row.ryu), versions(has), sentence(row.doc)])
                })
                .collect(),
        },
        Table {
            title: "Instructions",
            text: "Among the actions. Actions without an instruction are those of \
                   `apply_actions`.",
            columns: &["in text", "Ryu", "versions", "does"],
            rows: INSTRUCTIONS
                .iter()
                .filter_map(|row| {
                    let has = |version| row.kind.is_in(version);
                    let form = code(&instruction_form(row.kind)?);
                    Some(vec![form, code(row.ryu), versions(has), sentence(row.doc)])
                })
                .collect(),
        },
    ]
}

fn choices(fields: &[Field]) -> String {
    fields.iter().map(|field| code(field.row().name)).collect::<Vec<_>>().join(", ")
}

fn code(word: &str) -> String {
    format!("`{word}`")
}

fn sentence(doc: &str) -> String {
    doc.trim().to_owned()
}

/// The versions that have something, of all that Weir speaks.
fn versions(has: impl Fn(Version) -> bool) -> String {
    let names = Version::ALL.iter().filter(|version| has(**version));
    names.map(|version| version.row().release).collect::<Vec<_>>().join(", ")
}

fn field(row: &FieldRow) -> Vec<String> {
    let others = [row.text, row.set_text].into_iter().chain(row.aliases.iter().copied());
    let mut seen = BTreeSet::from([""]);
    let names: Vec<String> = others.filter(|name| seen.insert(name)).map(code).collect();
    let ryu = match row.ryu {
        RyuName::Spec => code(row.name),
        RyuName::Old(old) => format!("`{}`, `{old}`", row.name),
        RyuName::OldIn1_0(old) => format!("`{}`, in 1.0 `{old}`", row.name),
    };
    let kind = match row.format {
        Format::Dec => format!("decimal, {} bits", row.bits),
        Format::Hex => format!("hexadecimal, {} bits", row.bits),
        Format::Port => "port".to_owned(),
        Format::Mac => "Ethernet address".to_owned(),
        Format::Ipv4 => "IPv4 address".to_owned(),
        Format::Ipv6 => "IPv6 address".to_owned(),
        Format::TcpFlags => "flags: `syn|ack`, or `+syn-ack` of those that matter".to_owned(),
        Format::Fragment => "`no`, `yes`, `first`, `later`, `not_later`".to_owned(),
    };
    let mask = if row.maskable { ", mask" } else { "" };
    let set = if row.settable { ", set" } else { "" };
    let needs = match row.prereq {
        Prereq::None => String::new(),
        Prereq::Present(field) => code(field.row().name),
        Prereq::VlanTag => "a VLAN tag".to_owned(),
        Prereq::OneOf(field, values) => {
            values.iter().map(|value| needed(field.row(), *value)).collect::<Vec<_>>().join(" or ")
        }
    };
    let (value, since) = (format!("{kind}{mask}{set}"), row.since.row().release.to_owned());
    vec![code(row.name), names.join(", "), ryu, value, needs, since, sentence(row.doc)]
}

/// A field with a value: by its protocol word, where there is one.
fn needed(row: &FieldRow, value: u128) -> String {
    let mut matching = Match::default();
    matching.set(row.field, value, row.field.full_mask());
    let word = format_match(&matching);
    if word.contains('=') { code(&pair(row, value)) } else { code(&word) }
}

fn pair(row: &FieldRow, value: u128) -> String {
    match row.format {
        Format::Hex => format!("{}={value:#06x}", row.name),
        Format::Dec
        | Format::Port
        | Format::Mac
        | Format::Ipv4
        | Format::Ipv6
        | Format::TcpFlags
        | Format::Fragment => format!("{}={value}", row.name),
    }
}

/// The fields of a protocol word, by their names in the specification.
fn stands_for(word: &str) -> String {
    let Ok(matching) = parse_match(word) else { return String::new() };
    let held = FIELDS.iter().filter_map(|row| Some((row, matching.exact(row.field)?)));
    let named = held.map(|(row, value)| code(&pair(row, value)));
    named.collect::<Vec<_>>().join(", ")
}

/// The page as Markdown.
pub(crate) fn markdown() -> String {
    let mut page = format!("{HEAD}\n");
    for Table { title, text, columns, rows } in tables() {
        page += &format!("\n## {title}\n{text}\n\n| {} |\n", columns.join(" | "));
        page += &format!("|{}\n", "---|".repeat(columns.len()));
        for row in rows {
            page += &format!("| {} |\n", row.join(" | "));
        }
    }
    page
}

/// The page for man(1): weir-flows(7).
pub(crate) fn manual() -> String {
    let mut page = format!(
        ".TH weir-flows 7 \"\" \"weir {}\"\n.SH NAME\nweir\\-flows \\- the language of flow \
         entries\n.SH DESCRIPTION\n{}\n",
        env!("CARGO_PKG_VERSION"),
        roff(HEAD)
    );
    for Table { title, text, columns, rows } in tables() {
        page += &format!(".SH {}\n{}\n", title.to_uppercase(), roff(text));
        for row in rows {
            let (first, rest) = row.split_first().map_or(("", &[][..]), |(f, r)| (f.as_str(), r));
            page += &format!(".TP\n{}\n", roff(first));
            let facts = columns.iter().skip(1).zip(rest).filter(|(_, fact)| !fact.is_empty());
            let facts = facts.map(|(column, fact)| match *column {
                "is" | "does" => roff(fact),
                column => format!("{column}: {}", roff(fact)),
            });
            page += &format!("{}\n", facts.collect::<Vec<_>>().join("\n.br\n"));
        }
    }
    page + ".SH SEE ALSO\nweir\\-ctl(1), ovs\\-fields(7), ovs\\-actions(7)\n"
}

/// Text for man(1): code in bold.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let parts = escaped.split('`').enumerate();
    parts
        .map(|(at, part)| if at % 2 == 1 { format!("\\fB{part}\\fR") } else { part.to_owned() })
        .collect()
}

#[cfg(test)]
mod tests {
    use openflow::action::ACTIONS;
    use openflow::field::ALL_FIELDS;
    use openflow::instruction::INSTRUCTIONS;

    use super::{manual, markdown};

    #[test]
    fn both_pages_have_every_row() {
        let (page, man) = (markdown(), manual().replace("\\-", "-"));
        let fields = ALL_FIELDS.iter().flat_map(|row| [row.name, row.text, row.set_text]);
        let actions = ACTIONS.iter().map(|row| row.ryu);
        let instructions = INSTRUCTIONS.iter().map(|row| row.ryu);
        for word in fields.chain(actions).chain(instructions).filter(|word| *word != "EXPERIMENTER")
        {
            assert!(word.is_empty() || page.contains(&format!("`{word}`")), "{word}");
            assert!(man.contains(word), "{word}");
        }
        for line in ["| `icmp6` | `eth_type=0x86dd`, `ip_proto=58` |", "`set_field:VALUE->FIELD`"] {
            assert!(page.contains(line), "{line} is missing in\n{page}");
        }
        assert!(man.starts_with(".TH weir-flows 7"), "{man}");
    }
}
