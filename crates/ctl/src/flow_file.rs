//! Flow entries as lines of text, and their order.

use std::cmp::Ordering;

use clap::Args;
use openflow::flow::{FlowMod, FlowModCommand, FlowStats};
use openflow::text::PortNames;
use openflow::translate::{Untranslatable, instructions_in};
use openflow::{Field, Version};

use super::failure::Failure;
use super::messages::{Line, LineError};

/// The words that a line may begin with.
const COMMANDS: [(&str, FlowModCommand); 5] = [
    ("add", FlowModCommand::Add),
    ("modify", FlowModCommand::Modify),
    ("modify_strict", FlowModCommand::ModifyStrict),
    ("delete", FlowModCommand::Delete),
    ("delete_strict", FlowModCommand::DeleteStrict),
];

/// A line as a flow-mod; of `command`, unless it begins with the name of one.
pub(super) fn flow_mod(
    line: &Line,
    command: FlowModCommand,
    names: &PortNames,
) -> Result<FlowMod, LineError> {
    let word = line.text.split([' ', '\t', ',']).find(|word| !word.is_empty());
    let named = word.and_then(|word| COMMANDS.iter().find(|(name, _)| *name == word));
    let Some((name, command)) = named else {
        return line.read(|text| names.parse_flow_mod(text, command));
    };
    // Blanks in place of the word, so that columns stay those of the line.
    let text = line.text.replacen(name, &" ".repeat(name.len()), 1);
    names.parse_flow_mod(&text, *command).map_err(|error| line.error(&error))
}

/// Says a flow-mod's actions in the words of the version that is spoken.
pub(super) fn say_in(version: Version, line: &Line, flow: &mut FlowMod) -> Result<(), Failure> {
    let translated = instructions_in(version, &flow.matching, &flow.instructions);
    let refused = |why: Untranslatable| Failure::Refused(format!("{}: {why}", line.place));
    flow.instructions = translated.map_err(refused)?;
    Ok(())
}

/// In which order flow entries are shown.
#[derive(Args, Clone, Debug)]
pub(super) struct Order {
    /// Sort upwards by a field of the match, or by priority, table, cookie, duration, n_packets or
    /// n_bytes; may be given again, for entries that are alike so far
    #[arg(
        long, value_name = "FIELD", num_args = 0..=1, require_equals = true,
        default_missing_value = "priority"
    )]
    sort: Vec<String>,
    /// Sort downwards; behind what --sort sorts by
    #[arg(
        long, value_name = "FIELD", num_args = 0..=1, require_equals = true,
        default_missing_value = "priority"
    )]
    rsort: Vec<String>,
}

/// Sort key of flow entries.
#[derive(Clone, Copy, Debug)]
enum Key {
    Priority,
    Table,
    Cookie,
    Duration,
    Packets,
    Bytes,
    Match(Field),
}

/// One of the things that flow entries are sorted by.
#[derive(Clone, Copy, Debug)]
struct By {
    key: Key,
    is_down: bool,
}

/// An order: what decides first stands first.
#[derive(Clone, Debug)]
pub(super) struct Sorting(Vec<By>);

impl Order {
    /// The order that was asked for, if any.
    pub(super) fn parsed(&self) -> Result<Option<Sorting>, Failure> {
        let up = self.sort.iter().map(|name| (name, false));
        let names = up.chain(self.rsort.iter().map(|name| (name, true)));
        let by = |(name, is_down): (&String, bool)| Ok(By { key: Key::named(name)?, is_down });
        let sorting = names.map(by).collect::<Result<Vec<_>, Failure>>()?;
        Ok((!sorting.is_empty()).then_some(Sorting(sorting)))
    }
}

impl Key {
    fn named(name: &str) -> Result<Self, Failure> {
        Ok(match name {
            "priority" => Self::Priority,
            "table" => Self::Table,
            "cookie" => Self::Cookie,
            "duration" => Self::Duration,
            "n_packets" => Self::Packets,
            "n_bytes" => Self::Bytes,
            other => Self::Match(Field::from_name(other).ok_or_else(|| {
                Failure::refused(format!(
                    "cannot sort by {other:?}: use priority, table, cookie, duration, n_packets, \
                     n_bytes or a field of the match, such as in_port"
                ))
            })?),
        })
    }
}

impl Sorting {
    /// Sorts.
    pub(super) fn sort(&self, flows: &mut [FlowStats]) {
        let compare = |one: &FlowStats, other: &FlowStats| {
            let by = self.0.iter().map(|by| by.compare(one, other));
            by.fold(Ordering::Equal, Ordering::then)
        };
        flows.sort_by(compare);
    }
}

impl By {
    /// Entries without the field come last in either order.
    fn compare(self, one: &FlowStats, other: &FlowStats) -> Ordering {
        match (self.value(one), self.value(other)) {
            (Some(one), Some(other)) if self.is_down => other.cmp(&one),
            (Some(one), Some(other)) => one.cmp(&other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        }
    }

    fn value(self, flow: &FlowStats) -> Option<u128> {
        Some(match self.key {
            Key::Priority => flow.priority.into(),
            Key::Table => flow.table_id.0.into(),
            Key::Cookie => flow.cookie.0.into(),
            Key::Duration => {
                u128::from(flow.duration_s) * 1_000_000_000 + u128::from(flow.duration_ns)
            }
            Key::Packets => flow.packet_count.into(),
            Key::Bytes => flow.byte_count.into(),
            Key::Match(field) => flow.matching.get(field)?.value,
        })
    }
}

#[cfg(test)]
mod tests {
    use openflow::flow::FlowModCommand;
    use openflow::text::PortNames;

    use super::{COMMANDS, flow_mod};
    use crate::failure::Failure;
    use crate::messages::Line;

    /// Rows of all words by all commands; see the head of the file.
    const ENTRY_WORDS: &str = include_str!("../../openflow/tests/data/entry-words.tsv");

    #[test]
    fn a_line_takes_the_words_of_its_command() {
        let mut lines = 0;
        for row in ENTRY_WORDS.lines().filter(|row| !row.starts_with('#')) {
            let [word, _, taken] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
            for (name, command) in COMMANDS.iter().filter(|_| !word.is_empty()) {
                let writes = name.starts_with("add") || name.starts_with("modify");
                let needs =
                    if writes && !word.starts_with("actions") { ",actions=drop" } else { "" };
                let is_taken = taken.split(' ').any(|command| command == *name);
                // In the line, and by the command of `weir ctl` that reads it.
                let named = format!("{name} {word}{needs}");
                let plain = format!("{word}{needs}");
                for (text, other) in [(&named, &FlowModCommand::Delete), (&plain, command)] {
                    let line = Line::argument("flow", text);
                    let read = flow_mod(&line, *other, &PortNames::default());
                    match read.map_err(Failure::from) {
                        Ok(flow) => {
                            assert_eq!((flow.command, is_taken), (*command, true), "{text}")
                        }
                        Err(Failure::NotUnderstood(why)) => {
                            assert!(!is_taken && why.contains("has no effect in"), "{text}: {why}");
                        }
                        Err(other) => panic!("{text}: {other:?}"),
                    }
                    lines += 1;
                }
            }
        }
        assert!(lines > 150, "{lines}");
    }

    #[test]
    fn a_line_may_begin_with_its_command() {
        let names = PortNames::default();
        let read = |text: &str| {
            let line = Line::argument("flow", text);
            flow_mod(&line, FlowModCommand::Add, &names).map_err(Failure::from)
        };
        assert_eq!(read("in_port=1,actions=drop").unwrap().command, FlowModCommand::Add);
        assert_eq!(read("delete in_port=1").unwrap().command, FlowModCommand::Delete);
        let strict = read(" modify_strict, in_port=1,actions=drop").unwrap();
        assert_eq!(strict.command, FlowModCommand::ModifyStrict);
        let Err(Failure::NotUnderstood(why)) = read("delete colour=1") else { panic!("read") };
        assert!(why.contains("column 8") && why.contains("\n  delete colour=1\n"), "{why}");
    }
}
