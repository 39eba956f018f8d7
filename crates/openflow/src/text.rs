//! The text syntax of `ovs-ofctl`, both ways: flows, matches, actions, groups, meters and replies.
//!
//! People and tools know this syntax, so Weir has no other. What `ovs-ofctl` repairs with a warning
//! (an address with a part over 255, a field whose prerequisite is missing) is an error here: a
//! flow entry must never be broader than what was asked.

pub(crate) mod action;
pub(crate) mod controller;
mod flow;
mod flow_monitor;
mod forms;
mod group;
pub(crate) mod learn;
pub(crate) mod lex;
mod matching;
pub(crate) mod members;
mod meter;
mod notice;
mod ports;
mod reply;
pub(crate) mod subfield;
mod table;
mod value;
mod words;

pub use action::{
    format_actions, format_instructions, parse_actions, parse_instructions, parse_instructions_on,
};
pub use flow::{
    format_flow_match, format_flow_mod, format_flow_removed, format_flow_stats, parse_flow_filter,
    parse_flow_mod,
};
pub use forms::{action_form, instruction_form, other_names};
pub use group::{format_group, parse_group_mod};
pub use learn::parse_subfield;
pub use matching::{
    format_match, match_words, parse_match, protocol_words, shared_words, unpresent_vid,
};
pub use meter::{format_meter, parse_meter_mod};
pub use notice::format_packet_in;
pub use ports::PortNames;
pub use reply::{format_port_desc, format_property, format_reply};
pub use value::{
    decimal_where, format_field, format_value, parse_decimal, parse_number, parse_port,
    parse_value, zero_advice,
};
pub use words::nearest;

use std::fmt;

/// A text that is not what it should be: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// Byte offset in the text.
    pub at: usize,
    /// The mistake and, where it helps, what is allowed.
    pub what: String,
    /// Whether the word there might be the name of a port; see [`PortNames`].
    pub may_be_port: bool,
}

impl TextError {
    /// The same of a word that might be the name of a port.
    pub(crate) fn at_port(mut self) -> Self {
        self.may_be_port = true;
        self
    }

    pub(crate) fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into(), may_be_port: false }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.at + 1, self.what)
    }
}

impl std::error::Error for TextError {}
