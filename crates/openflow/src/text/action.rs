//! Actions and instructions in text, as `ovs-ofctl` prints and takes them.

use super::learn;
use super::lex::{Pair, Piece, pairs};
use super::matching::check_vlan_vid;
use super::subfield::{self, settable};
use super::value::{format_value, number, port, unsigned, value};
use super::words::unknown;
use super::{PortNames, TextError, controller, members};
use crate::action::{
    ACTIONS, Action, ActionKind, CLONES_DEEP_MAX, DIMENSIONS, MAX_LEN_NO_BUFFER, ReadArguments,
    Syntax, WriteArguments,
};
use crate::field::{ALL_FIELDS, Field};
use crate::id::{MacAddr, PortNo, QueueId, ShortPort, TableId};
use crate::instruction::{ActionsRun, INSTRUCTIONS, Instruction, InstructionKind};
use crate::learn::Learn;
use crate::matching::Match;
use crate::members::Members;
use crate::subfield::BitRange;
use crate::to_controller::ToController;
use std::convert::Infallible;
use std::net::Ipv4Addr;

/// Words of actions that are not the row's own.
pub(super) const ALIASES: &[(&str, ActionKind)] = &[
    ("set_nw_ttl", ActionKind::SetNwTtl),
    ("dec_nw_ttl", ActionKind::DecNwTtl),
    ("mod_vlan_id", ActionKind::SetVlanVid),
];

/// Reads an action list such as `dec_ttl,output:2`; `drop` or nothing is the empty list.
///
/// # Errors
/// On an unknown action or a bad argument, and on instructions, which are no actions.
pub fn parse_actions(text: &str) -> Result<Vec<Action>, TextError> {
    actions(Piece::whole(text))
}

pub(super) fn actions(piece: Piece<'_>) -> Result<Vec<Action>, TextError> {
    action_list(pairs(piece))
}

/// Actions by their names and arguments.
pub(super) fn action_list<'a>(
    pairs: impl Iterator<Item = Result<Pair<'a>, TextError>>,
) -> Result<Vec<Action>, TextError> {
    let mut list = Vec::new();
    let mut dropped = None;
    for pair in pairs {
        let pair = pair?;
        match pair.key.text {
            "drop" if pair.value.is_none() => dropped = Some(pair.key),
            word if instruction_named(word).is_some() => {
                return Err(pair.key.error(format!("`{word}` is an instruction, not an action")));
            }
            _ => list.push(action(pair)?),
        }
    }
    match dropped {
        Some(key) if !list.is_empty() => Err(key.error("`drop` must stand alone")),
        Some(_) | None => Ok(list),
    }
}

/// Reads a flow's actions with their instructions:
/// `meter:1,dec_ttl,output:2,write_actions(group:1),goto_table:3`. Actions that stand alone are one
/// apply-actions instruction.
///
/// # Errors
/// On an unknown word, a bad argument, an instruction given twice, or one that stands after others
/// that are carried out after it.
pub fn parse_instructions(text: &str) -> Result<Vec<Instruction>, TextError> {
    instructions(Piece::whole(text))
}

/// The same of an entry with this match, which says what its fields' common names (`tp_dst`) are.
///
/// # Errors
/// As [`parse_instructions`].
pub fn parse_instructions_on(text: &str, matching: &Match) -> Result<Vec<Instruction>, TextError> {
    instructions(Piece::whole(text).on_packets(matching))
}

pub(super) fn instructions(piece: Piece<'_>) -> Result<Vec<Instruction>, TextError> {
    let mut list: Vec<Instruction> = Vec::new();
    let mut applied = Vec::new();
    let mut dropped = None;
    let mut latest = (InstructionKind::Meter, "");
    for pair in pairs(piece) {
        let pair = pair?;
        match pair.key.text {
            "drop" if pair.value.is_none() => dropped = Some(pair.key),
            word => {
                let found = match instruction(word, pair)? {
                    Some(found) => found,
                    None => Instruction::ApplyActions(vec![action(pair)?]),
                };
                in_order(pair.key, found.kind(), &mut latest)?;
                if let Instruction::ApplyActions(actions) = found {
                    applied.extend(actions);
                } else if list.iter().any(|held| held.kind() == found.kind()) {
                    return Err(pair.twice());
                } else {
                    list.push(found);
                }
            }
        }
    }
    if let (Some(key), false) = (dropped, list.is_empty() && applied.is_empty()) {
        return Err(key.error("`drop` must stand alone"));
    }
    if !applied.is_empty() {
        list.push(Instruction::ApplyActions(applied));
    }
    list.sort_by_key(Instruction::kind);
    Ok(list)
}

/// Checks that an instruction comes after those that are carried out before it (clause 5.9);
/// `latest` is the one before, with its word.
fn in_order<'a>(
    key: Piece<'a>,
    kind: InstructionKind,
    latest: &mut (InstructionKind, &'a str),
) -> Result<(), TextError> {
    let (before, word) = std::mem::replace(latest, (kind, key.text));
    if before <= kind {
        return Ok(());
    }
    Err(key.error(format!(
        "`{}` is carried out before `{word}` and must stand before it; the order is meter, \
         actions, clear_actions, write_actions, write_metadata, goto_table",
        key.text
    )))
}

/// The instruction of a word that names no action.
fn instruction_named(word: &str) -> Option<InstructionKind> {
    let row = INSTRUCTIONS.iter().find(|row| row.text == word)?;
    action_named(word).is_none().then_some(row.kind)
}

fn action_named(word: &str) -> Option<ActionKind> {
    let row = ACTIONS.iter().find(|row| row.text == word).map(|row| row.kind);
    row.or_else(|| ALIASES.iter().find(|(alias, _)| *alias == word).map(|(_, kind)| *kind))
}

/// All words of actions and instructions, and those of ports that are actions.
fn action_words() -> impl Iterator<Item = &'static str> {
    let instructions = INSTRUCTIONS.iter().map(|row| row.text);
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let ports = ["drop", "controller", "normal", "flood", "all", "in_port", "local", "table"];
    ACTIONS.iter().map(|row| row.text).chain(instructions).chain(aliases).chain(ports)
}

fn instruction(word: &str, pair: Pair<'_>) -> Result<Option<Instruction>, TextError> {
    let Some(kind) = instruction_named(word) else { return Ok(None) };
    arguments(pair, kind.row().syntax, None, |r| Instruction::read(kind, r)).map(Some)
}

fn action(pair: Pair<'_>) -> Result<Action, TextError> {
    // `controller` is a port's name too.
    let named = action_named(pair.key.text).filter(|kind| *kind != ActionKind::Controller);
    let Some(kind) = named else { return bare_port(pair) };
    let has_ids = pair.value.is_some_and(|value| !value.text.is_empty());
    let names_controllers = kind == ActionKind::DecNwTtl && has_ids;
    let kind = if names_controllers { ActionKind::DecNwTtlTo } else { kind };
    let row = kind.row();
    let action = arguments(pair, row.syntax, row.bits, |r| Action::read(kind, r))?;
    if action.clones_deep() > CLONES_DEEP_MAX {
        return Err(too_deep(pair.key));
    }
    let unit = 1_u64 << row.accepts.unwritten_bits();
    match (action.number(), pair.value) {
        (Some(number), Some(value)) if !number.is_multiple_of(unit) => {
            let word = pair.key.text;
            Err(value
                .error(format!("`{word}` does not write the lowest bits: a multiple of {unit}")))
        }
        (_, _) => Ok(action),
    }
}

/// `CONTROLLER:128`, `controller(id=5)`, `FLOOD`, or a port's number alone.
fn bare_port(pair: Pair<'_>) -> Result<Action, TextError> {
    let word = pair.key.text;
    let port = match PortNo::from_reserved_name(word).or_else(|| pair.key.named_port()) {
        Some(port) => port,
        None if word.starts_with(|c: char| c.is_ascii_digit()) => port(pair.key)?,
        None => return Err(unknown("action", pair.key, action_words()).at_port()),
    };
    let max_len = match pair.value {
        None => MAX_LEN_NO_BUFFER,
        Some(value) if port == PortNo::CONTROLLER => return controller::parse(value),
        Some(value) => return Err(value.error(format!("{port} takes no argument"))),
    };
    Ok(Action::Output { port, max_len })
}

/// Reads arguments in the form that the row gives.
fn arguments<'a, T>(
    pair: Pair<'a>,
    syntax: Syntax<T>,
    bits: Option<u16>,
    read: impl FnOnce(&mut Reading<'a>) -> Result<T, TextError>,
) -> Result<T, TextError> {
    if let Syntax::Own { parse, .. } = syntax {
        return parse(pair.needed()?);
    }
    let mut reading = Reading { pair, bits, taken: false };
    let element = read(&mut reading)?;
    match pair.value {
        Some(value) if !reading.taken && !value.text.is_empty() => {
            Err(value.error(format!("`{}` takes no argument", pair.key.text)))
        }
        Some(_) | None => Ok(element),
    }
}

/// The text of one argument.
struct Reading<'a> {
    pair: Pair<'a>,
    bits: Option<u16>,
    taken: bool,
}

impl<'a> Reading<'a> {
    fn take(&mut self) -> Result<Piece<'a>, TextError> {
        self.taken = true;
        self.pair.needed()
    }

    /// A refusal of what has a form of its own in text.
    fn own<T>(&self) -> Result<T, TextError> {
        Err(self.pair.key.error(format!("`{}` has no text", self.pair.key.text)))
    }
}

impl ReadArguments for Reading<'_> {
    type Error = TextError;

    fn number(&mut self, bits: u16) -> Result<u64, TextError> {
        let piece = self.take()?;
        let number = number(piece, self.bits.unwrap_or(bits))?;
        u64::try_from(number).map_err(|_| piece.error("the number is too large"))
    }

    fn port(&mut self) -> Result<PortNo, TextError> {
        port(self.take()?)
    }

    fn short_port(&mut self) -> Result<ShortPort, TextError> {
        short_port(self.take()?)
    }

    fn mac(&mut self) -> Result<MacAddr, TextError> {
        mac(self.take()?)
    }

    fn ipv4(&mut self) -> Result<Ipv4Addr, TextError> {
        ipv4(self.take()?)
    }

    fn field(&mut self) -> Result<Field, TextError> {
        self.own()
    }

    fn value(&mut self) -> Result<u128, TextError> {
        self.own()
    }

    fn to_controller(&mut self) -> Result<ToController, TextError> {
        self.own()
    }

    fn controller_ids(&mut self) -> Result<Vec<u16>, TextError> {
        self.own()
    }

    fn bytes(&mut self) -> Result<Vec<u8>, TextError> {
        self.own()
    }

    fn actions(&mut self) -> Result<Vec<Action>, TextError> {
        let piece = self.take()?;
        check_depth(piece)?;
        actions(piece)
    }

    fn learn(&mut self) -> Result<Learn, TextError> {
        self.own()
    }

    fn members(&mut self) -> Result<Members, TextError> {
        self.own()
    }
}

/// Refuses more parentheses in each other than clones may be, before anything is read of them.
fn check_depth(piece: Piece<'_>) -> Result<(), TextError> {
    let mut depth = 0_usize;
    for c in piece.text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // The innermost may have actions with arguments.
        if depth > CLONES_DEEP_MAX {
            return Err(too_deep(piece));
        }
    }
    Ok(())
}

fn too_deep(piece: Piece<'_>) -> TextError {
    piece.error(format!("at most {CLONES_DEEP_MAX} clones lie in each other"))
}

fn mac(piece: Piece<'_>) -> Result<MacAddr, TextError> {
    piece.text.parse().map_err(|error| piece.error(format!("`{}` is {error}", piece.text)))
}

fn ipv4(piece: Piece<'_>) -> Result<Ipv4Addr, TextError> {
    piece.text.parse().map_err(|_| piece.error(format!("`{}` is not an IPv4 address", piece.text)))
}

pub(crate) fn output(piece: Piece<'_>) -> Result<Action, TextError> {
    if piece.text.ends_with(']') {
        return subfield::output(piece);
    }
    Ok(Action::Output { port: port(piece)?, max_len: MAX_LEN_NO_BUFFER })
}

/// A port's number or name, or a reserved port's name alone; the controller with the length.
pub(crate) fn format_output(words: &[String]) -> String {
    match words {
        [port, max_len] if port == "CONTROLLER" => format!("{port}:{max_len}"),
        [port, ..] if PortNo::from_reserved_name(port).is_none() => format!("output:{port}"),
        words => words.first().cloned().unwrap_or_default(),
    }
}

fn short_port(piece: Piece<'_>) -> Result<ShortPort, TextError> {
    let whole = port(piece)?;
    let short = ShortPort::new(whole);
    short.ok_or_else(|| piece.error(format!("port {whole} has no number of 16 bits")))
}

/// `resubmit:PORT`, `resubmit(PORT,TABLE)`, `resubmit(,TABLE)`, without the word. All are the
/// action with a table, as `ovs-ofctl` sends them.
pub(crate) fn resubmit(piece: Piece<'_>) -> Result<Action, TextError> {
    let (in_port, table) = match piece.split_once(",") {
        Some((in_port, table)) => (in_port.trimmed(), Some(table.trimmed())),
        None => (piece.trimmed(), None),
    };
    if let Some((table, rest)) = table.and_then(|table| table.split_once(",")) {
        let why = match rest.text.trim() {
            "ct" => "`ct` is Open vSwitch's own; OpenFlow has no tracking of connections",
            _ => "resubmit takes a port and a table, no more",
        };
        return Err(if rest.text.trim().is_empty() { table } else { rest }.error(why));
    }
    let table = table.filter(|table| !table.text.is_empty());
    if in_port.text.is_empty() && table.is_none() {
        return Err(piece.error("resubmit needs a port, a table or both: (PORT,TABLE)"));
    }
    let is_given = !in_port.text.is_empty();
    let port = if is_given { short_port(in_port)? } else { ShortPort(PortNo::IN_PORT) };
    let table = table.map_or(Ok(u8::MAX), unsigned)?;
    Ok(Action::ResubmitTable { port, table: TableId(table) })
}

/// The port stands alone where the present table is searched, and the table where the port stays.
pub(crate) fn format_resubmit(words: &[String]) -> String {
    let (port, table) = match words {
        [port, table] if table != "255" => (port, table.as_str()),
        [port, ..] => (port, ""),
        [] => return String::new(),
    };
    match port.as_str() {
        "IN_PORT" => format!("resubmit(,{table})"),
        port if table.is_empty() => format!("resubmit:{port}"),
        port => format!("resubmit({port},{table})"),
    }
}

pub(crate) fn format_enqueue(words: &[String]) -> String {
    format!("enqueue:{}", words.join(":"))
}

pub(crate) fn format_experimenter(words: &[String]) -> String {
    let id = words.first().and_then(|id| id.parse::<u32>().ok()).unwrap_or_default();
    let bytes = words.get(1).filter(|data| !data.is_empty());
    let len = bytes.map_or(0, |data| data.split('.').count());
    format!("experimenter({id:#x},{len} bytes)")
}

pub(crate) fn dec_ttl(piece: Piece<'_>) -> Result<Action, TextError> {
    controller::controller_ids(piece).map(Action::DecNwTtlTo)
}

pub(crate) fn format_dec_ttl(words: &[String]) -> String {
    format!("dec_ttl({})", words.join(","))
}

pub(crate) fn note(piece: Piece<'_>) -> Result<Action, TextError> {
    controller::note(piece).map(Action::Note)
}

pub(crate) fn format_note(words: &[String]) -> String {
    format!("note:{}", words.join(""))
}

pub(crate) fn format_set_field(words: &[String]) -> String {
    let reversed: Vec<&str> = words.iter().rev().map(String::as_str).collect();
    format!("set_field:{}", reversed.join("->"))
}

pub(crate) fn enqueue(piece: Piece<'_>) -> Result<Action, TextError> {
    let parts = piece.split_once(":").or_else(|| piece.split_once(","));
    let (left, right) = parts.ok_or_else(|| piece.error("enqueue takes PORT:QUEUE"))?;
    Ok(Action::Enqueue { port: port(left)?, queue: QueueId(unsigned(right)?) })
}

/// `conjunction(ID, K/N)`, without the word; dimensions are counted from 1 in text.
pub(crate) fn conjunction(piece: Piece<'_>) -> Result<Action, TextError> {
    let parts = piece.split_once(",").and_then(|(id, of)| Some((id, of.split_once("/")?)));
    let Some((id, (k, n))) = parts else {
        return Err(piece.error("conjunction takes (ID,K/N): dimension K of N"));
    };
    let id = unsigned(id.trimmed())?;
    let (dimension, n_dimensions) = (unsigned::<u8>(k.trimmed())?, unsigned(n.trimmed())?);
    if !DIMENSIONS.contains(&n_dimensions) {
        return Err(n.error("a conjunction has 2 to 64 dimensions"));
    }
    match dimension.checked_sub(1).filter(|dimension| *dimension < n_dimensions) {
        Some(dimension) => Ok(Action::Conjunction { dimension, n_dimensions, id }),
        None => Err(k.error(format!("the dimensions are 1 to {n_dimensions}"))),
    }
}

pub(crate) fn format_conjunction(words: &[String]) -> String {
    let [dimension, n_dimensions, id] = words else { return String::new() };
    let k = dimension.parse::<u16>().map_or_else(|_| "K".to_owned(), |k| (k + 1).to_string());
    let n = if n_dimensions.parse::<u8>().is_ok() { n_dimensions } else { "N" };
    format!("conjunction({id},{k}/{n})")
}

/// `fin_timeout(idle_timeout=1,hard_timeout=2)`, without the word.
pub(crate) fn fin_timeout(piece: Piece<'_>) -> Result<Action, TextError> {
    let (mut idle, mut hard) = (None, None);
    for pair in pairs(piece) {
        let pair = pair?;
        match pair.key.text {
            "idle_timeout" => pair.once(&mut idle, unsigned)?,
            "hard_timeout" => pair.once(&mut hard, unsigned)?,
            _ => return Err(unknown("word", pair.key, ["idle_timeout", "hard_timeout"])),
        }
    }
    let (idle_timeout, hard_timeout) = (idle.unwrap_or(0), hard.unwrap_or(0));
    Ok(Action::FinTimeout { idle_timeout, hard_timeout })
}

pub(crate) fn format_fin_timeout(words: &[String]) -> String {
    let named = ["idle_timeout", "hard_timeout"].into_iter().zip(words);
    let given = named.filter(|(_, seconds)| *seconds != "0");
    let given: Vec<String> = given.map(|(name, seconds)| format!("{name}={seconds}")).collect();
    format!("fin_timeout({})", given.join(","))
}

pub(crate) fn write_metadata(piece: Piece<'_>) -> Result<Instruction, TextError> {
    let (metadata, mask) = match piece.split_once("/") {
        Some((left, right)) => (unsigned(left)?, unsigned(right)?),
        None => (unsigned(piece)?, u64::MAX),
    };
    Ok(Instruction::WriteMetadata { metadata, mask })
}

/// Without a mask of all bits.
pub(crate) fn format_write_metadata(words: &[String]) -> String {
    let all = format!("{:#x}", u64::MAX);
    let written = match words {
        [metadata, mask] if *mask == all => std::slice::from_ref(metadata),
        words => words,
    };
    format!("write_metadata:{}", written.join("/"))
}

pub(crate) fn experimenter<T>(piece: Piece<'_>) -> Result<T, TextError> {
    Err(piece.error("experimenter actions cannot be written as text"))
}

/// With a mask it is a load of the bits.
pub(crate) fn set_field(piece: Piece<'_>) -> Result<Action, TextError> {
    let (left, right) =
        piece.split_once("->").ok_or_else(|| piece.error("set_field takes VALUE->FIELD"))?;
    let right = right.trimmed();
    let field = field_to_set(right)?;
    settable(right, field)?;
    let (value, mask) = value(field, left)?;
    check_vlan_vid(left, field, value, mask)?;
    if mask == field.full_mask() {
        return Ok(Action::SetField { field, value });
    }
    let offset = mask.trailing_zeros();
    let n_bits = mask.checked_shr(offset).unwrap_or_default().trailing_ones();
    let bits = BitRange { offset: offset as u16, n_bits: n_bits as u16 };
    if mask != bits.mask() || !(1..=u64::BITS).contains(&n_bits) {
        return Err(left.error("set_field takes a mask of 1 to 64 bits that stand together"));
    }
    Ok(Action::Load { bits, dst: field, value: bits.of(value) as u64 })
}

/// The field of a name. A name that several fields share is the one that the packets have.
fn field_to_set(name: Piece<'_>) -> Result<Field, TextError> {
    if let Some(field) = Field::from_name(name.text) {
        return Ok(field);
    }
    let shared = ALL_FIELDS.iter().filter(|row| row.text == name.text);
    if let Some(row) = shared.clone().find(|row| name.packets_have(row.field)) {
        return Ok(row.field);
    }
    let names: Vec<&str> = shared.map(|row| row.name).collect();
    if names.is_empty() {
        let settable = ALL_FIELDS.iter().filter(|row| row.settable);
        return Err(unknown("field", name, settable.flat_map(|row| [row.set_text, row.name])));
    }
    let (name_text, names) = (name.text, names.join(", "));
    Err(name.error(format!("{name_text} is one of {names}: write the one that the match asks for")))
}

/// An action list as `ovs-ofctl` prints it; `drop` when it is empty.
#[must_use]
pub fn format_actions(actions: &[Action]) -> String {
    actions_text(actions, &PortNames::default())
}

/// The same with these names for ports.
pub(super) fn actions_text(actions: &[Action], names: &PortNames) -> String {
    if actions.is_empty() { "drop".to_owned() } else { join(actions, names) }
}

fn join(actions: &[Action], names: &PortNames) -> String {
    actions.iter().map(|action| action_text(action, names)).collect::<Vec<_>>().join(",")
}

/// Instructions as `ovs-ofctl` prints them, in the order of their execution.
#[must_use]
pub fn format_instructions(instructions: &[Instruction]) -> String {
    instructions_text(instructions, &PortNames::default())
}

/// The same with these names for ports.
pub(super) fn instructions_text(instructions: &[Instruction], names: &PortNames) -> String {
    let mut sorted: Vec<&Instruction> = instructions.iter().collect();
    sorted.sort_by_key(|instruction| instruction.kind());
    // Empty apply-actions are not printed.
    let is_empty = |one: &Instruction| {
        one.kind().row().actions == ActionsRun::AtOnce && one.actions().is_empty()
    };
    let printed = sorted.into_iter().filter(|one| !is_empty(one));
    let words: Vec<String> = printed.map(|one| instruction_text(one, names)).collect();
    if words.is_empty() { "drop".to_owned() } else { words.join(",") }
}

fn instruction_text(instruction: &Instruction, names: &PortNames) -> String {
    let row = instruction.kind().row();
    text(row.text, row.syntax, names, |words| instruction.write(words))
}

fn action_text(action: &Action, names: &PortNames) -> String {
    let row = action.kind().row();
    text(row.text, row.syntax, names, |words| action.write(words))
}

/// A name and arguments in the form that the row gives.
fn text<T>(
    name: &str,
    syntax: Syntax<T>,
    names: &PortNames,
    write: impl FnOnce(&mut Words<'_>) -> Result<(), Infallible>,
) -> String {
    let mut words = Words { words: Vec::new(), field: None, names, number: 0 };
    match write(&mut words) {
        Ok(()) => {}
        Err(never) => match never {},
    }
    written(name, syntax, &words.words, words.number)
}

/// A name and the words of its arguments, of which `number` is the last number.
pub(super) fn written<T>(name: &str, syntax: Syntax<T>, words: &[String], number: u64) -> String {
    match (syntax, words) {
        (Syntax::Own { format, .. }, words) => format(words),
        (Syntax::Nameless, words) => words.join(","),
        (Syntax::Value | Syntax::Parenthesized | Syntax::EthType, []) => name.to_owned(),
        (Syntax::Value, words) => format!("{name}:{}", words.join(":")),
        (Syntax::Parenthesized, words) => format!("{name}({})", words.join(",")),
        (Syntax::EthType, _) => format!("{name}:0x{number:04x}"),
    }
}

/// The arguments of an action or instruction in words.
struct Words<'a> {
    words: Vec<String>,
    field: Option<Field>,
    /// The number that came last.
    number: u64,
    names: &'a PortNames,
}

impl Words<'_> {
    fn push(&mut self, word: String) -> Result<(), Infallible> {
        self.words.push(word);
        Ok(())
    }
}

impl WriteArguments for Words<'_> {
    type Error = Infallible;

    fn number(&mut self, number: u64, bits: u16) -> Result<(), Infallible> {
        self.number = number;
        self.push(if bits == 64 { format!("{number:#x}") } else { number.to_string() })
    }

    fn port(&mut self, port: PortNo) -> Result<(), Infallible> {
        self.push(self.names.text_of(port))
    }

    fn short_port(&mut self, port: ShortPort) -> Result<(), Infallible> {
        self.port(port.0)
    }

    fn mac(&mut self, mac: MacAddr) -> Result<(), Infallible> {
        self.push(mac.to_string())
    }

    fn ipv4(&mut self, address: Ipv4Addr) -> Result<(), Infallible> {
        self.push(address.to_string())
    }

    fn field(&mut self, field: Field) -> Result<(), Infallible> {
        self.field = Some(field);
        self.push(field.row().set_text.to_owned())
    }

    fn value(&mut self, value: u128) -> Result<(), Infallible> {
        let word = self.field.map(|field| format_value(field, value));
        self.push(word.unwrap_or_else(|| value.to_string()))
    }

    fn to_controller(&mut self, asked: &ToController) -> Result<(), Infallible> {
        self.push(controller::text(asked))
    }

    fn controller_ids(&mut self, ids: &[u16]) -> Result<(), Infallible> {
        ids.iter().try_for_each(|id| self.push(id.to_string()))
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.push(controller::dotted(bytes))
    }

    fn actions(&mut self, actions: &[Action]) -> Result<(), Infallible> {
        self.push(actions_text(actions, self.names))
    }

    fn learn(&mut self, learn: &Learn) -> Result<(), Infallible> {
        self.push(learn::text(learn, self.names))
    }

    fn members(&mut self, bundle: &Members) -> Result<(), Infallible> {
        self.push(members::text(bundle, |member| self.names.text_of(member.0)))
    }
}
