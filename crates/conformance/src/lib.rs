//! Conformance of an OpenFlow switch: whether it does what the specification says, and has what it
//! announces.
//!
//! The cases come first: what goes in, and what must come out. Further features are asked for by
//! messages: what is refused is not there. Two things that a switch may say and not do are found
//! out by traffic: that entries are in force when it answers a barrier, and that it holds the
//! entries that it took. A switch is anything behind [`PlayedSwitch`](cases::PlayedSwitch) and
//! [`CheckedSwitch`]. It must never believe an answer where a frame can be sent instead.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod cases;
mod features;
mod truth;

use openflow::flow::FlowModCommand;
use openflow::group::GroupModCommand;
use openflow::message::{Message, MultipartReplyBody, MultipartRequestBody};
use openflow::meter::MeterModCommand;
use openflow::text::{parse_flow_mod, parse_group_mod, parse_meter_mod};
use programs::cancel::Stopped;
use serde::Serialize;

use self::cases::{CaseFinding, CaseVerdict};

pub use features::probe_features;
pub use truth::{barrier, table};

/// Why a check or a case ended.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The switch does something else than it should.
    #[error("{0}")]
    Otherwise(String),
    /// The switch refuses it: it does not have what is asked.
    #[error("{0}")]
    Refused(String),
    /// The version cannot say it, or a step cannot be played.
    #[error("{0}")]
    Unsaid(String),
    /// The channel or a port failed.
    #[error("{0}")]
    Broken(String),
    /// It was interrupted.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A change of flows, groups or meters in text syntax, by the key that it has in a case.
fn change(key: &str, text: &str) -> Result<Message, CheckError> {
    let flow = |command| parse_flow_mod(text, command).map(Message::FlowMod);
    let group = |command| parse_group_mod(text, command).map(Message::GroupMod);
    let meter = |command| parse_meter_mod(text, command).map(Message::MeterMod);
    let message = match key {
        "flow" => flow(FlowModCommand::Add),
        "mod_flows" => flow(FlowModCommand::Modify),
        "mod_flows_strict" => flow(FlowModCommand::ModifyStrict),
        "del_flows" => flow(FlowModCommand::Delete),
        "del_flows_strict" => flow(FlowModCommand::DeleteStrict),
        "group" => group(GroupModCommand::Add),
        "mod_group" => group(GroupModCommand::Modify),
        "del_groups" => group(GroupModCommand::Delete),
        "meter" => meter(MeterModCommand::Add),
        "mod_meter" => meter(MeterModCommand::Modify),
        "del_meters" => meter(MeterModCommand::Delete),
        other => return Err(CheckError::Unsaid(format!("`{other}` is no command"))),
    };
    message.map_err(|error| CheckError::Unsaid(error.to_string()))
}

/// A switch that can be checked. Every call fails when its channel or a port does.
pub trait CheckedSwitch {
    /// Deletes all entries, groups and meters.
    fn clear(&mut self) -> Result<(), CheckError>;

    /// Sends messages and a barrier, and waits for its answer: how many were not refused, and the
    /// first refusal.
    fn send(&mut self, messages: Vec<Message>) -> Result<(u64, Option<String>), CheckError>;

    /// Asks for statistics.
    fn multipart(&mut self, body: MultipartRequestBody) -> Result<MultipartReplyBody, CheckError>;

    /// Number of flow entries by its own account.
    fn entries(&mut self) -> Result<u64, CheckError>;

    /// Puts frames in at port 1; which of them came out at port 2 as they were.
    fn forwards(&mut self, frames: &[Vec<u8>]) -> Result<Vec<bool>, CheckError>;
}

/// Finding about one feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Truth {
    /// The switch takes it, or does it.
    Yes,
    /// The switch refuses it.
    No,
    /// The switch says that it does it, and does not.
    Lies,
    /// It could not be found out.
    Unknown,
}

impl Truth {
    /// As a table shows it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Lies => "LIES",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Of what kind: match, action, group...
    pub area: String,
    /// The feature's name.
    pub feature: String,
    /// The finding.
    pub verdict: Truth,
    /// The refusal, or what was counted.
    pub note: String,
}

impl Finding {
    fn new(area: &str, feature: &str, verdict: Truth, note: impl Into<String>) -> Self {
        Self { area: area.to_owned(), feature: feature.to_owned(), verdict, note: note.into() }
    }
}

/// Findings about a switch in one version of OpenFlow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// The switch's name.
    pub dut: String,
    /// The version.
    pub version: String,
    /// The cases that were played, in the order of their files.
    pub cases: Vec<CaseFinding>,
    /// Everything else that was asked.
    pub findings: Vec<Finding>,
}

impl CheckReport {
    /// Whether the switch does what it says: no lie, no case that fails.
    pub fn is_good(&self) -> bool {
        let has_lies = self.findings.iter().any(|finding| finding.verdict == Truth::Lies);
        !has_lies && self.cases.iter().all(|case| case.verdict != CaseVerdict::Failed)
    }
}

#[cfg(test)]
mod tests;
