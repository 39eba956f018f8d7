//! Whole sets of flow entries: replacing those of a switch by those of a file, and comparing two.

use std::collections::BTreeMap;
use std::path::Path;

use channel::Endpoint;
use clap::Args;
use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowStats, FlowStatsRequest};
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::text::{PortNames, format_instructions, format_match};
use openflow::{Instruction, Match, Message, TableId, Version};
use serde_json::json;

use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::messages::{Bundled, Line, carry_out, lines_of, read_all};
use super::session::Session;
use super::{flow_file, switch};

/// Identity of a flow entry: table, match as text (which orders them), priority.
type Key = (u8, String, u16);

/// A flow entry of a set.
#[derive(Clone, Debug)]
struct Entry {
    flow: FlowMod,
}

/// Entries by what identifies them.
type Set = BTreeMap<Key, Entry>;

impl Entry {
    fn of_stats(flow: FlowStats) -> Self {
        let mut entry = FlowMod::new(FlowModCommand::Add);
        entry.table_id = flow.table_id;
        entry.priority = flow.priority;
        entry.matching = flow.matching;
        entry.cookie = flow.cookie;
        entry.idle_timeout_s = flow.idle_timeout_s;
        entry.hard_timeout_s = flow.hard_timeout_s;
        entry.flags = flow.flags;
        entry.importance = flow.importance;
        entry.instructions = flow.instructions;
        Self { flow: entry }
    }

    fn key(&self) -> Key {
        (self.flow.table_id.0, format_match(&self.flow.matching), self.flow.priority)
    }

    /// Whether the switch does the same to packets by both, for as long, under the same cookie.
    /// Flags are not compared, as by `ovs-ofctl`: an entry that differs by them alone is equal.
    fn is_like(&self, other: &Self) -> bool {
        let of = |entry: &Self| {
            let flow = &entry.flow;
            (flow.cookie, flow.idle_timeout_s, flow.hard_timeout_s, flow.importance)
        };
        let instructions = |entry: &Self| normal(&entry.flow.instructions);
        of(self) == of(other) && instructions(self) == instructions(other)
    }

    /// As `ovs-ofctl diff-flows` prints it.
    fn text(&self) -> String {
        let FlowMod {
            table_id, priority, cookie, idle_timeout_s, hard_timeout_s, importance, ..
        } = self.flow;
        let mut text = String::new();
        if table_id != TableId(0) {
            text += &format!("table={} ", table_id.0);
        }
        text += &rule(priority, &self.flow.matching);
        if cookie.0 != 0 {
            text += &format!(" cookie={:#x}", cookie.0);
        }
        if idle_timeout_s != 0 {
            text += &format!(" idle_timeout={idle_timeout_s}");
        }
        if hard_timeout_s != 0 {
            text += &format!(" hard_timeout={hard_timeout_s}");
        }
        if importance != 0 {
            text += &format!(" importance={importance}");
        }
        text + " actions=" + &format_instructions(&self.flow.instructions)
    }
}

/// Priority and match; the priority that a flow has without saying so is left out.
fn rule(priority: u16, matching: &Match) -> String {
    let text = format_match(matching);
    match (priority, text.is_empty()) {
        (0x8000, _) => text,
        (_, true) => format!("priority={priority}"),
        (_, false) => format!("priority={priority},{text}"),
    }
}

/// Without instructions that do nothing, in the order of their execution.
fn normal(instructions: &[Instruction]) -> Vec<Instruction> {
    let does =
        |one: &&Instruction| !matches!(one, Instruction::ApplyActions(list) if list.is_empty());
    let mut kept: Vec<Instruction> = instructions.iter().filter(does).cloned().collect();
    kept.sort_by_key(Instruction::kind);
    kept
}

/// The entries of a file, as they are written.
async fn read_file(
    context: &mut CommandContext<'_>,
    file: &str,
) -> Result<Vec<(Line, FlowMod)>, Failure> {
    let lines = lines_of(file)?;
    let read =
        |line: &Line, names: &PortNames| flow_file::flow_mod(line, FlowModCommand::Add, names);
    let flows = read_all(context, &lines, read).await?;
    let only_adds = |(line, flow): (Line, FlowMod)| {
        if flow.command != FlowModCommand::Add {
            let place = line.place;
            return Err(Failure::Refused(format!("{place}: a set of entries has nothing but add")));
        }
        Ok((line, flow))
    };
    lines.into_iter().zip(flows).map(only_adds).collect()
}

/// The entries of a file in the words of a version.
fn translated(version: Version, lines: Vec<(Line, FlowMod)>) -> Result<Set, Failure> {
    let mut set = Set::new();
    for (line, mut flow) in lines {
        flow_file::say_in(version, &line, &mut flow)?;
        let entry = Entry { flow };
        set.insert(entry.key(), entry);
    }
    Ok(set)
}

/// The entries of a switch.
async fn of_switch(session: &mut Session) -> Result<Set, Failure> {
    let body = MultipartRequestBody::Flow(FlowStatsRequest::all());
    let MultipartReplyBody::Flow(flows) = session.statistics(body).await? else {
        return Err(Failure::refused("the switch gave another answer than asked"));
    };
    let entries = flows.into_iter().map(Entry::of_stats);
    Ok(entries.map(|entry| (entry.key(), entry)).collect())
}

/// Make the switch's flow entries those of a file: add, change and delete what differs
#[derive(Args, Clone, Debug)]
#[command(after_help = "Nothing is sent when a line of the file is not understood. What is equal \
stays as it is, with its
counters; with --readd it is added again, which resets them in OpenFlow 1.0, and in 1.3 where the
entry says reset_counts.

Examples:
  weir ctl replace-flows flows.txt
  weir ctl replace-flows - < flows.txt")]
pub(super) struct ReplaceFlows {
    /// The file, or - for the standard input
    file: String,
    /// Add also what is there already
    #[arg(long)]
    readd: bool,
    #[command(flatten)]
    bundled: Bundled,
}

impl Execute for ReplaceFlows {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let lines = read_file(context, &self.file).await?;
        let session = context.session().await?;
        let wanted = translated(session.version, lines)?;
        let held = of_switch(session).await?;
        let mut messages = Vec::new();
        for (key, entry) in &held {
            if !wanted.contains_key(key) {
                let mut flow = entry.flow.clone();
                flow.command = FlowModCommand::DeleteStrict;
                flow.instructions = Vec::new();
                flow.flags = FlowModFlags::empty();
                messages.push(Message::FlowMod(flow));
            }
        }
        for (key, entry) in &wanted {
            let is_there = held.get(key).is_some_and(|there| there.is_like(entry));
            if self.readd || !is_there {
                messages.push(Message::FlowMod(entry.flow.clone()));
            }
        }
        carry_out(context, &[], messages, self.bundled).await
    }
}

/// Differences between two sets of flow entries, each of a file or a switch
#[derive(Args, Clone, Debug)]
#[command(after_help = "A line of - stands only in the first, one of + only in the second. A \
source is a file, or a switch as
tcp:HOST[:PORT], ssl:HOST[:PORT] or unix:PATH; with one source, it is compared with the switch that
--control or --switch names. Exit code 0: no difference, 2: some, 1: it could not be found out.

Examples:
  weir ctl diff-flows flows.txt
  weir ctl diff-flows before.txt after.txt
  weir ctl diff-flows tcp:192.0.2.1:6634 tcp:192.0.2.2:6634")]
pub(super) struct DiffFlows {
    /// A file or a switch
    #[arg(value_name = "SOURCE")]
    first: String,
    /// A file or a switch [default: the switch, with which the file is compared]
    #[arg(value_name = "SOURCE2")]
    second: Option<String>,
}

impl Execute for DiffFlows {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let (first, second) = match self.second {
            Some(second) => {
                let first = source(context, &self.first).await?;
                (first, source(context, &second).await?)
            }
            // As `diff-flows SWITCH FILE`: + is what the file has more.
            None => {
                let lines = read_file(context, &self.first).await?;
                let session = context.session().await?;
                let held = of_switch(session).await?;
                (held, translated(session.version, lines)?)
            }
        };
        let mut differs = false;
        for key in first.keys().chain(second.keys().filter(|key| !first.contains_key(*key))) {
            let (one, other) = (first.get(key), second.get(key));
            let is_like = one.zip(other).is_some_and(|(one, other)| one.is_like(other));
            if is_like {
                continue;
            }
            differs = true;
            for (sign, entry) in [("-", one), ("+", other)] {
                if let Some(entry) = entry {
                    let text = entry.text();
                    let line = format!("{sign}{text}");
                    context.out.record(line, || json!({ "sign": sign, "flow": text }))?;
                }
            }
        }
        if differs { Err(Failure::Differs) } else { Ok(()) }
    }
}

/// The entries of a file or a switch. A name with a colon is a switch, unless it begins as a path.
async fn source(context: &mut CommandContext<'_>, name: &str) -> Result<Set, Failure> {
    let place = context.place;
    let is_path = name.starts_with(['/', '.']) || name == "-" || !name.contains(':');
    if is_path || Path::new(name).exists() {
        let version = switch::versions(place).into_iter().max().unwrap_or(Version::NEWEST);
        return translated(version, read_file(context, name).await?);
    }
    let endpoint: Endpoint = name.parse().map_err(|error| Failure::refused(format!("{error}")))?;
    let mut session = switch::connect_to(&endpoint, place).await?;
    let set = of_switch(&mut session).await;
    session.end().await;
    set
}
