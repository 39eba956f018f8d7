//! Names of ports in text: `in_port=p1`, `output:p2`, `actions=p2`, as `ovs-ofctl` takes them.
//!
//! Only a switch knows the names of its ports, so whoever reads a text gives them. A name that is
//! also a word of the syntax, or that has blanks or commas, stands in double quotes.

use super::TextError;
use super::action::actions;
use super::flow::{flow_filter, flow_mod};
use super::group::group_mod;
use super::lex::Piece;
use super::value::port;
use crate::action::Action;
use crate::flow::{FlowMod, FlowModCommand, FlowStatsRequest};
use crate::group::{GroupMod, GroupModCommand};
use crate::id::PortNo;
use std::collections::BTreeMap;

/// The ports of a switch by their names. Its methods are the functions of this module's parent that
/// read a text in which ports may occur, for texts with names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortNames(BTreeMap<String, Option<PortNo>>);

impl PortNames {
    /// These ports. A name that two ports have means none of them.
    #[must_use]
    pub fn new<'a>(ports: impl IntoIterator<Item = (&'a str, PortNo)>) -> Self {
        let mut names = BTreeMap::new();
        for (name, number) in ports {
            let held = names.entry(name.to_owned()).or_insert(Some(number));
            if *held != Some(number) {
                *held = None;
            }
        }
        Self(names)
    }

    pub(super) fn find(&self, name: &str) -> Option<PortNo> {
        self.0.get(name).copied().flatten()
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

    /// As [`super::parse_port`].
    ///
    /// # Errors
    /// As there.
    pub fn parse_port(&self, text: &str) -> Result<PortNo, TextError> {
        port(Piece::with_ports(text, self))
    }
}

#[cfg(test)]
mod tests {
    use super::PortNames;
    use crate::flow::FlowModCommand;
    use crate::group::GroupModCommand;
    use crate::id::PortNo;
    use crate::text::{format_flow_mod, parse_flow_mod, parse_port};

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
            ("out_port=p2,actions=drop", "out_port=2,actions=drop"),
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
    fn who_has_no_names_is_told_that_a_name_may_stand_there() {
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
