//! Names of ports in text: `in_port=p1`, `output:p2`, `actions=p2`, as `ovs-ofctl` takes and prints
//! them.
//!
//! Only a switch knows the names of its ports, so the reader or writer of a text gives them. A name
//! that is also a word of the syntax, or that has blanks or commas, stands in double quotes.

use super::TextError;
use super::action::actions;
use super::flow::{flow_filter, flow_mod, flow_stats_text};
use super::group::{group_mod, group_text};
use super::lex::Piece;
use super::matching::matching;
use super::value::port;
use crate::action::Action;
use crate::flow::{FlowMod, FlowModCommand, FlowStats, FlowStatsRequest};
use crate::group::{GroupDesc, GroupMod, GroupModCommand};
use crate::id::PortNo;
use crate::matching::Match;
use crate::version::Version;
use std::collections::BTreeMap;

/// The ports of a switch by their names. Its methods are the functions of this module's parent that
/// read or write a text in which ports may occur, for texts with names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortNames {
    /// `None` for a name that two ports have.
    numbers: BTreeMap<String, Option<PortNo>>,
    /// The names as they are printed.
    texts: BTreeMap<PortNo, String>,
}

impl PortNames {
    /// These ports. A name that two ports have means none of them.
    #[must_use]
    pub fn new<'a>(ports: impl IntoIterator<Item = (&'a str, PortNo)>) -> Self {
        let mut numbers = BTreeMap::new();
        for (name, number) in ports {
            let held = numbers.entry(name.to_owned()).or_insert(Some(number));
            if *held != Some(number) {
                *held = None;
            }
        }
        let printed = |(name, number): (&String, &Option<PortNo>)| {
            let number = number.filter(|number| number.reserved_name().is_none())?;
            Some((number, printed(name)?))
        };
        let texts = numbers.iter().filter_map(printed).collect();
        Self { numbers, texts }
    }

    /// A port as it is printed: its reserved name, its name, or its number.
    pub(super) fn text_of(&self, port: PortNo) -> String {
        self.texts.get(&port).cloned().unwrap_or_else(|| port.to_string())
    }

    /// As [`super::format_flow_stats`].
    #[must_use]
    pub fn format_flow_stats(&self, version: Version, flow: &FlowStats) -> String {
        flow_stats_text(version, flow, self, true)
    }

    /// The same without statistics, as `ovs-ofctl --no-stats` prints it.
    #[must_use]
    pub fn format_flow_entry(&self, version: Version, flow: &FlowStats) -> String {
        flow_stats_text(version, flow, self, false)
    }

    /// As [`super::format_group`].
    #[must_use]
    pub fn format_group(&self, group: &GroupDesc) -> String {
        group_text(group, self)
    }

    pub(super) fn find(&self, name: &str) -> Option<PortNo> {
        self.numbers.get(name).copied().flatten()
    }

    /// As [`super::parse_flow_mod`].
    ///
    /// # Errors
    /// As there.
    pub fn parse_flow_mod(
        &self,
        text: &str,
        command: FlowModCommand,
    ) -> Result<FlowMod, TextError> {
        flow_mod(Piece::with_ports(text, self), command)
    }

    /// As [`super::parse_flow_filter`].
    ///
    /// # Errors
    /// As there.
    pub fn parse_flow_filter(&self, text: &str) -> Result<FlowStatsRequest, TextError> {
        flow_filter(Piece::with_ports(text, self))
    }

    /// As [`super::parse_group_mod`].
    ///
    /// # Errors
    /// As there.
    pub fn parse_group_mod(
        &self,
        text: &str,
        command: GroupModCommand,
    ) -> Result<GroupMod, TextError> {
        group_mod(Piece::with_ports(text, self), command)
    }

    /// As [`super::parse_actions`].
    ///
    /// # Errors
    /// As there.
    pub fn parse_actions(&self, text: &str) -> Result<Vec<Action>, TextError> {
        actions(Piece::with_ports(text, self))
    }

    /// As [`super::parse_match`].
    ///
    /// # Errors
    /// As there.
    pub fn parse_match(&self, text: &str) -> Result<Match, TextError> {
        matching(Piece::with_ports(text, self))
    }

    /// As [`super::parse_port`].
    ///
    /// # Errors
    /// As there.
    pub fn parse_port(&self, text: &str) -> Result<PortNo, TextError> {
        port(Piece::with_ports(text, self))
    }
}

/// A name as it is printed, so that it is read back: in double quotes unless it has nothing but
/// letters and digits, of which a letter stands first, as `ovs-ofctl` has it, and is no reserved
/// name. `None` for a name that the quotes cannot hold.
fn printed(name: &str) -> Option<String> {
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric())
        && PortNo::from_reserved_name(name).is_none();
    if is_word {
        return Some(name.to_owned());
    }
    let is_quotable =
        !name.is_empty() && !name.contains(|c: char| c.is_control() || c == '"' || c == '\\');
    is_quotable.then(|| format!("\"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::PortNames;
    use crate::flow::FlowModCommand;
    use crate::group::{GroupDesc, GroupMod, GroupModCommand};
    use crate::id::PortNo;
    use crate::text::{format_flow_mod, parse_flow_mod, parse_group_mod, parse_port};

    fn names() -> PortNames {
        let ports = [("p1", 1), ("p2", 2), ("drop", 3), ("a b", 4), ("x:1", 5), ("two", 6)];
        PortNames::new(ports.into_iter().chain([("two", 7)]).map(|(name, n)| (name, PortNo(n))))
    }

    #[test]
    fn names_stand_wherever_numbers_may() {
        let cases = [
            ("in_port=p1,actions=output:p2", "in_port=1,actions=output:2"),
            ("in_port=\"p1\",actions=p2", "in_port=1,actions=output:2"),
            ("in_port=p1 actions=\"drop\"", "in_port=1,actions=output:3"),
            ("actions=output(port=\"a b\",max_len=7),\"x:1\"", ""),
            ("actions=output:\"a b\",\"x:1\"", "actions=output:4,output:5"),
            (
                "actions=write_actions(p1,enqueue:p2:7)",
                "actions=write_actions(output:1,enqueue:2:7)",
            ),
            ("actions=drop", "actions=drop"),
        ];
        for (text, wanted) in cases {
            match names().parse_flow_mod(text, FlowModCommand::Add) {
                Ok(flow) => assert_eq!(format_flow_mod(&flow), wanted, "{text}"),
                Err(error) => assert!(wanted.is_empty(), "{text}: {error}"),
            }
        }
        let group = "group_id=1,type=ff,bucket=watch_port:p2,actions=p1";
        let group = names().parse_group_mod(group, GroupModCommand::Add).unwrap();
        assert_eq!(group.buckets[0].watch_port, PortNo(2));
        assert_eq!(names().parse_port("p2"), Ok(PortNo(2)));
        assert_eq!(names().parse_actions("p2,p1").unwrap().len(), 2);
        let filter = names().parse_flow_filter("out_port=p2").unwrap();
        assert_eq!(filter.out_port, PortNo(2));
    }

    #[test]
    fn names_are_printed_as_ovs_ofctl_prints_them_and_read_back() {
        let named = [("p1", 1), ("veth0-1", 2), ("local", 3), ("a b", 4), ("7", 5), ("two", 6)];
        let odd = [("two", 7), ("", 8), ("c\"d", 9), ("e\n", 10), ("LO", 0xffff_fffe)];
        let ports = named.into_iter().chain(odd).map(|(name, n)| (name, PortNo(n)));
        let names = PortNames::new(ports);
        let texts = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0xffff_fffe].map(|n| names.text_of(PortNo(n)));
        let wanted = [
            "p1",
            "\"veth0-1\"",
            "\"local\"",
            "\"a b\"",
            "\"7\"",
            "6",
            "7",
            "8",
            "9",
            "10",
            "LOCAL",
        ];
        assert_eq!(texts, wanted);
        for (number, text) in (1..=5).zip(&texts) {
            assert_eq!(names.parse_port(text), Ok(PortNo(number)), "{text}");
        }
        let text = "in_port=1,actions=output:2,enqueue:3:7,CONTROLLER:9,write_actions(output:4)";
        let flow = parse_flow_mod(text, FlowModCommand::Add).unwrap();
        let matched = super::super::matching::match_text(&flow.matching, &names);
        let done = super::super::action::instructions_text(&flow.instructions, &names);
        assert_eq!(
            format!("{matched} {done}"),
            "in_port=p1 output:\"veth0-1\",enqueue:\"local\":7,CONTROLLER:9,\
             write_actions(output:\"a b\")"
        );
        let again = format!("{matched},actions={done}");
        assert_eq!(names.parse_flow_mod(&again, FlowModCommand::Add), Ok(flow));
        let group = "group_id=1,type=ff,bucket=watch_port:1,actions=output:2";
        let group = parse_group_mod(group, GroupModCommand::Add).unwrap();
        let GroupMod { group_type, group_id, buckets, selection, .. } = group;
        let desc = GroupDesc { group_type, group_id, buckets, selection };
        assert_eq!(
            names.format_group(&desc),
            "group_id=1,type=ff,bucket=watch_port:p1,actions=output:\"veth0-1\""
        );
    }

    #[test]
    fn without_names_an_error_says_that_a_name_may_stand_there() {
        for text in ["in_port=p1,actions=drop", "actions=output:p1", "actions=p1"] {
            let error = parse_flow_mod(text, FlowModCommand::Add).unwrap_err();
            assert!(error.may_be_port, "{text}: {error}");
        }
        for text in ["colour=1,actions=drop", "priority=x,actions=drop", "actions=group:p1"] {
            let error = parse_flow_mod(text, FlowModCommand::Add).unwrap_err();
            assert!(!error.may_be_port, "{text}: {error}");
        }
        assert!(parse_port("p1").unwrap_err().may_be_port);
        let twice = names().parse_flow_mod("actions=two", FlowModCommand::Add).unwrap_err();
        assert!(twice.to_string().starts_with("column 9: unknown action `two`"), "{twice}");
    }
}
