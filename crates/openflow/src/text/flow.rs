//! Flow entries in text: what `add-flow` takes and `dump-flows` prints.

use super::action::{format_instructions, instructions, instructions_text};
use super::lex::{Pair, Piece, pairs};
use super::matching::{MatchBuilder, match_text, words};
use super::value::{port, unsigned};
use super::words::unknown;
use super::{PortNames, TextError};
use crate::flow::{
    FlowForm, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowStats, FlowStatsRequest,
};
use crate::flow_monitor::FlowUpdate;
use crate::id::{Cookie, GroupId, PortNo, TableId};
use crate::matching::Match;
use crate::version::Version;
use std::fmt::Write;

/// The flags' words, in the order in which `ovs-ofctl` prints them.
const FLAGS: &[(&str, FlowModFlags)] = &[
    ("send_flow_rem", FlowModFlags::SEND_FLOW_REM),
    ("check_overlap", FlowModFlags::CHECK_OVERLAP),
    ("reset_counts", FlowModFlags::RESET_COUNTS),
    ("no_packet_counts", FlowModFlags::NO_PKT_COUNTS),
    ("no_byte_counts", FlowModFlags::NO_BYT_COUNTS),
];

/// Words of a dumped flow that say what was counted; read over, so that a dump can be fed back.
const COUNTED: &[&str] = &["duration", "n_packets", "n_bytes", "idle_age", "hard_age"];

/// The use of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Add,
    Modify,
    ModifyStrict,
    Delete,
    DeleteStrict,
    /// Choice of the entries whose statistics are asked for.
    Filter,
}

use Use::{Add, Delete, DeleteStrict, Filter, Modify, ModifyStrict};

/// All uses in which an entry is written. 1.0 takes what a modify says where nothing matches.
const WRITES: &[Use] = &[Add, Modify, ModifyStrict];
/// All uses that name one entry or write it.
const ENTRIES: &[Use] = &[Add, Modify, ModifyStrict, DeleteStrict];
const CHOICES: &[Use] = &[Delete, DeleteStrict, Filter];
const ALL: &[Use] = &[Add, Modify, ModifyStrict, Delete, DeleteStrict, Filter];

/// Words of an entry beside its match, each with the uses in which it has an effect.
const WORDS: &[(&str, &[Use])] = &[
    ("table", ALL),
    ("cookie", ALL),
    ("priority", ENTRIES),
    ("idle_timeout", WRITES),
    ("hard_timeout", WRITES),
    ("importance", &[Add]),
    ("out_port", CHOICES),
    ("out_group", CHOICES),
    ("actions", WRITES),
];

impl Use {
    const fn of(command: FlowModCommand) -> Self {
        match command {
            FlowModCommand::Add | FlowModCommand::Unknown(_) => Add,
            FlowModCommand::Modify => Modify,
            FlowModCommand::ModifyStrict => ModifyStrict,
            FlowModCommand::Delete => Delete,
            FlowModCommand::DeleteStrict => DeleteStrict,
        }
    }

    /// The command whose neutral values the text begins with.
    const fn command(self) -> FlowModCommand {
        match self {
            Add => FlowModCommand::Add,
            Modify => FlowModCommand::Modify,
            ModifyStrict => FlowModCommand::ModifyStrict,
            Delete | Filter => FlowModCommand::Delete,
            DeleteStrict => FlowModCommand::DeleteStrict,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Add => "an addition",
            Modify => "a modify",
            ModifyStrict => "a strict modify",
            Delete => "a delete that is not strict",
            DeleteStrict => "a strict delete",
            Filter => "a filter of statistics",
        }
    }

    /// The words that are possible beside the match.
    fn words(self) -> impl Iterator<Item = &'static str> {
        let words = WORDS.iter().filter(move |(_, uses)| uses.contains(&self));
        let flags = FLAGS.iter().filter(move |_| WRITES.contains(&self));
        words.map(|(word, _)| *word).chain(flags.map(|(word, _)| *word))
    }

    /// Checks that a word has an effect.
    fn check(self, key: Piece<'_>, uses: &[Self]) -> Result<(), TextError> {
        if uses.contains(&self) {
            return Ok(());
        }
        let (word, text) = (key.text, self.text());
        let words: Vec<&str> = self.words().collect();
        let words = words.join(", ");
        let strict = if self == Delete && uses.contains(&DeleteStrict) {
            "; a strict one takes it: --strict, delete_strict in a file, strict=True in Python"
        } else {
            ""
        };
        Err(key.error(format!("`{word}` has no effect in {text}, which takes {words}{strict}")))
    }
}

/// The priority of a flow whose text names none.
const DEFAULT_PRIORITY: u16 = 0x8000;

/// Reads a flow for a flow-mod: `table=1,priority=10,tcp,tp_dst=80,actions=output:3`.
/// A line of `dump-flows` is such a text too. A cookie with a mask filters, one without is set by
/// an add and a modify and filters a delete.
///
/// # Errors
/// On an unknown word or a bad value, on a word that has no effect with the command or is given
/// twice, and when an add or modify has no `actions=`.
pub fn parse_flow_mod(text: &str, command: FlowModCommand) -> Result<FlowMod, TextError> {
    flow_mod(Piece::whole(text), command)
}

pub(super) fn flow_mod(whole: Piece<'_>, command: FlowModCommand) -> Result<FlowMod, TextError> {
    let flow = entry(whole, Use::of(command))?;
    Ok(FlowMod { command, ..flow })
}

fn entry(whole: Piece<'_>, usage: Use) -> Result<FlowMod, TextError> {
    let split = ["actions=", "action="].iter().find_map(|word| whole.split_at_token(word));
    let (left, right) = match split {
        Some((left, right)) => (left, Some(right)),
        None => (whole, None),
    };
    let mut flow = FlowMod::new(usage.command());
    if CHOICES.contains(&usage) {
        flow.table_id = TableId::ALL;
    }
    let mut builder = MatchBuilder::default();
    let mut seen = Vec::new();
    for pair in pairs(left) {
        let pair = pair?;
        let word = pair.key.text;
        if let Some((word, uses)) = WORDS.iter().find(|(known, _)| *known == word) {
            usage.check(pair.key, uses)?;
            if seen.contains(word) {
                return Err(pair.twice());
            }
            seen.push(word);
            entry_word(&mut flow, pair, usage)?;
        } else if let Some((_, flag)) = FLAGS.iter().find(|(known, _)| *known == word) {
            usage.check(pair.key, WRITES)?;
            pair.flag(&mut flow.flags, *flag)?;
        } else if COUNTED.contains(&word) {
            usage.check(pair.key, ENTRIES)?;
        } else if !builder.take(pair)? {
            return Err(unknown("word", pair.key, usage.words().chain(words())));
        }
    }
    flow.matching = builder.finish()?;
    let end = left.at + left.text.len();
    match right {
        Some(piece) => {
            usage.check(whole.part("actions", end), WRITES)?;
            flow.instructions = instructions(piece.on_packets(&flow.matching))?;
        }
        None if WRITES.contains(&usage) => {
            return Err(TextError::new(end, "actions are missing: add `actions=...`"));
        }
        None => {}
    }
    Ok(flow)
}

/// Takes a word of [`WORDS`].
fn entry_word(flow: &mut FlowMod, pair: Pair<'_>, usage: Use) -> Result<(), TextError> {
    let piece = pair.needed()?;
    match pair.key.text {
        "table" if piece.text.eq_ignore_ascii_case("all") => flow.table_id = TableId::ALL,
        "table" => flow.table_id = TableId(unsigned(piece)?),
        "priority" => flow.priority = unsigned(piece)?,
        "idle_timeout" => flow.idle_timeout_s = unsigned(piece)?,
        "hard_timeout" => flow.hard_timeout_s = unsigned(piece)?,
        "importance" => flow.importance = unsigned(piece)?,
        "out_port" => flow.out_port = port(piece)?,
        "out_group" => flow.out_group = GroupId(unsigned(piece)?),
        "cookie" => match piece.split_once("/") {
            Some((_, mask)) if usage == Add => {
                return Err(mask.error("a mask of the cookie has no effect in an addition"));
            }
            Some((left, right)) => {
                flow.cookie = Cookie(unsigned(left)?);
                flow.cookie_mask = if right.text == "-1" { u64::MAX } else { unsigned(right)? };
            }
            None => {
                flow.cookie = Cookie(unsigned(piece)?);
                flow.cookie_mask = if CHOICES.contains(&usage) { u64::MAX } else { 0 };
            }
        },
        word => return Err(pair.key.error(format!("write `{word}=...`"))),
    }
    Ok(())
}

/// Reads a filter for `dump-flows` or `dump-aggregate`: `table=0,ip,nw_dst=10.0.0.0/8`.
///
/// # Errors
/// On an unknown word or a bad value, and on words that filter nothing.
pub fn parse_flow_filter(text: &str) -> Result<FlowStatsRequest, TextError> {
    flow_filter(Piece::whole(text))
}

pub(super) fn flow_filter(whole: Piece<'_>) -> Result<FlowStatsRequest, TextError> {
    let FlowMod { table_id, out_port, out_group, cookie, cookie_mask, matching, .. } =
        entry(whole, Filter)?;
    let form = FlowForm::Standard;
    Ok(FlowStatsRequest { table_id, out_port, out_group, cookie, cookie_mask, matching, form })
}

/// Priority and match as they stand before ` actions=`.
fn format_rule(priority: u16, matching: &Match, names: &PortNames) -> String {
    let text = match_text(matching, names);
    match (priority, text.is_empty()) {
        (DEFAULT_PRIORITY, _) => text,
        (_, true) => format!("priority={priority}"),
        (_, false) => format!("priority={priority},{text}"),
    }
}

/// 1.0 has no tag without its priority: of a packet without a tag all bits of both are known.
fn in_words_of(version: Version, rule: String) -> String {
    if version.has_masked_addresses() {
        return rule;
    }
    rule.replace("vlan_tci=0x0000/0x1fff", "vlan_tci=0x0000")
}

/// The match of a flow entry as `dump-flows` prints it.
#[must_use]
pub fn format_flow_match(version: Version, matching: &Match) -> String {
    in_words_of(version, match_text(matching, &PortNames::default()))
}

fn format_flags(flags: FlowModFlags) -> String {
    let words = FLAGS.iter().filter(|(_, flag)| flags.contains(*flag));
    words.fold(String::new(), |text, (word, _)| text + word + " ")
}

/// A flow entry as `dump-flows` prints it, without the leading blank.
#[must_use]
pub fn format_flow_stats(version: Version, flow: &FlowStats) -> String {
    flow_stats_text(version, flow, &PortNames::default(), true)
}

/// The same with these names for ports; without statistics as with `--no-stats`, which leaves out a
/// cookie and a table of zero too.
pub(super) fn flow_stats_text(
    version: Version,
    flow: &FlowStats,
    names: &PortNames,
    with_stats: bool,
) -> String {
    let shown = |is_shown: bool, text: String| if is_shown { text } else { String::new() };
    let mut out = shown(with_stats || flow.cookie.0 != 0, format!("cookie={:#x}, ", flow.cookie.0));
    let duration = format_duration(flow.duration_s, flow.duration_ns);
    out += &shown(with_stats, format!("duration={duration}s, "));
    let table = flow.table_id.0;
    out += &shown(with_stats || table != 0, format!("table={table}, "));
    let (packets, bytes) = (format_count(flow.packet_count), format_count(flow.byte_count));
    out += &shown(with_stats, format!("n_packets={packets}, n_bytes={bytes}, "));
    format_timeouts(&mut out, flow.idle_timeout_s, flow.hard_timeout_s);
    out += &format_flags(flow.flags);
    out += &shown(flow.importance != 0, format!("importance={}, ", flow.importance));
    let rule = in_words_of(version, format_rule(flow.priority, &flow.matching, names));
    if !rule.is_empty() {
        out += &rule;
        out.push(' ');
    }
    out + "actions=" + &instructions_text(&flow.instructions, names)
}

/// A change of a flow entry as `ovs-ofctl monitor watch:` prints it, without the leading blank.
pub(super) fn format_flow_update(version: Version, update: &FlowUpdate) -> String {
    let change = match update {
        FlowUpdate::Change(change) => change,
        FlowUpdate::Abbreviated(xid) => return format!("event=ABBREV xid={:#x}", xid.0),
        FlowUpdate::Paused => return "event=PAUSED".to_owned(),
        FlowUpdate::Resumed => return "event=RESUMED".to_owned(),
    };
    let mut out = format!("event={}", change.event.text());
    if let Some(reason) = change.reason {
        out += &format!(" reason={}", reason.text());
    }
    out += &format!(" table={}", change.table_id.0);
    let timeouts =
        [("idle_timeout", change.idle_timeout_s), ("hard_timeout", change.hard_timeout_s)];
    for (word, seconds) in timeouts.into_iter().filter(|(_, seconds)| *seconds != 0) {
        out += &format!(" {word}={seconds}");
    }
    out += &format!(" cookie={:#x}", change.cookie.0);
    let names = PortNames::default();
    let rule = in_words_of(version, format_rule(change.priority, &change.matching, &names));
    if !rule.is_empty() {
        out += &format!(" {rule}");
    }
    if !change.instructions.is_empty() {
        out += &format!(" actions={}", instructions_text(&change.instructions, &names));
    }
    out
}

fn format_timeouts(out: &mut String, idle_s: u16, hard_s: u16) {
    for (word, seconds) in [("idle_timeout", idle_s), ("hard_timeout", hard_s)] {
        if seconds != 0 {
            // Writing to a string cannot fail.
            let _ = write!(out, "{word}={seconds}, ");
        }
    }
}

/// Seconds, with the decimals that it takes to say it exactly: none, three, or up to nine.
pub(super) fn format_duration(duration_s: u32, duration_ns: u32) -> String {
    match duration_ns {
        0 => duration_s.to_string(),
        ms if ms % 1_000_000 == 0 => format!("{duration_s}.{:03}", ms / 1_000_000),
        ns => format!("{duration_s}.{ns:09}").trim_end_matches('0').to_owned(),
    }
}

/// A counter; `?` where it is not kept (all ones).
pub(super) fn format_count(count: u64) -> String {
    if count == u64::MAX { "?".to_owned() } else { count.to_string() }
}

/// A flow-mod as a text that [`parse_flow_mod`] reads back, given the command.
#[must_use]
pub fn format_flow_mod(flow: &FlowMod) -> String {
    let deletes = matches!(flow.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
    let mut out = String::new();
    let mut word = |text: String| {
        let comma = if out.is_empty() { "" } else { "," };
        out = format!("{out}{comma}{text}");
    };
    match (flow.table_id, deletes) {
        (TableId::ALL, true) | (TableId(0), false) => {}
        (TableId::ALL, false) => word("table=all".to_owned()),
        (table, _) => word(format!("table={}", table.0)),
    }
    match (flow.cookie.0, flow.cookie_mask) {
        (0, 0) => {}
        (cookie, 0) if !deletes => word(format!("cookie={cookie:#x}")),
        (cookie, u64::MAX) => word(format!("cookie={cookie:#x}/-1")),
        (cookie, mask) => word(format!("cookie={cookie:#x}/{mask:#x}")),
    }
    for (name, number) in [
        ("idle_timeout", flow.idle_timeout_s),
        ("hard_timeout", flow.hard_timeout_s),
        ("importance", flow.importance),
    ] {
        if number != 0 {
            word(format!("{name}={number}"));
        }
    }
    if flow.out_port != PortNo::ANY {
        word(format!("out_port={}", flow.out_port));
    }
    if flow.out_group != GroupId::ANY {
        word(format!("out_group={}", flow.out_group.0));
    }
    for (name, _) in FLAGS.iter().filter(|(_, flag)| flow.flags.contains(*flag)) {
        word((*name).to_owned());
    }
    let rule = format_rule(flow.priority, &flow.matching, &PortNames::default());
    if !rule.is_empty() {
        word(rule);
    }
    if !deletes {
        word(format!("actions={}", format_instructions(&flow.instructions)));
    }
    out
}

/// A flow-removed message as `ovs-ofctl monitor` prints it.
#[must_use]
pub fn format_flow_removed(version: Version, gone: &FlowRemoved) -> String {
    let rule = format_rule(gone.priority, &gone.matching, &PortNames::default());
    let rule = in_words_of(version, rule);
    let mut out = format!("{rule} reason={}", gone.reason.text());
    if version.has_pipeline() && gone.table_id != TableId::ALL {
        out += &format!(" table_id={}", gone.table_id.0);
    }
    if gone.cookie.0 != 0 {
        out += &format!(" cookie:{:#x}", gone.cookie.0);
    }
    let duration = format_duration(gone.duration_s, gone.duration_ns);
    out += &format!(" duration{duration}s idle{}", gone.idle_timeout_s);
    if gone.hard_timeout_s != 0 {
        out += &format!(" hard{}", gone.hard_timeout_s);
    }
    out + &format!(
        " pkts{} bytes{}",
        format_count(gone.packet_count),
        format_count(gone.byte_count)
    )
}
