//! Actions and instructions in text, as `ovs-ofctl` prints and takes them.

use super::TextError;
use super::lex::{Pair, Piece, pairs};
use super::matching::unknown;
use super::value::{format_value, number, port, unsigned, value};
use crate::action::{ACTIONS, Action, ActionKind, MAX_LEN_NO_BUFFER};
use crate::field::Field;
use crate::id::{GroupId, MacAddr, MeterId, PortNo, QueueId, TableId};
use crate::instruction::Instruction;
use std::net::Ipv4Addr;

/// Words of actions that are not the row's own.
const ALIASES: &[(&str, ActionKind)] = &[
    ("set_nw_ttl", ActionKind::SetNwTtl),
    ("dec_nw_ttl", ActionKind::DecNwTtl),
    ("mod_vlan_id", ActionKind::SetVlanVid),
    ("set_vlan_vid", ActionKind::SetVlanVid),
    ("set_vlan_pcp", ActionKind::SetVlanPcp),
];

/// Reads an action list such as `dec_ttl,output:2`; `drop` or nothing is the empty list.
///
/// # Errors
/// On an unknown action or a bad argument, and on instructions, which are no actions.
pub fn parse_actions(text: &str) -> Result<Vec<Action>, TextError> {
    actions(Piece::whole(text))
}

pub(super) fn actions(piece: Piece<'_>) -> Result<Vec<Action>, TextError> {
    let mut list = Vec::new();
    let mut dropped = None;
    for pair in pairs(piece) {
        let pair = pair?;
        match pair.key.text {
            "drop" if pair.value.is_none() => dropped = Some(pair.key),
            "write_actions" | "clear_actions" | "goto_table" | "write_metadata" | "meter"
            | "apply_actions" => {
                let word = pair.key.text;
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
/// On an unknown word, a bad argument, or an instruction given twice.
pub fn parse_instructions(text: &str) -> Result<Vec<Instruction>, TextError> {
    instructions(Piece::whole(text))
}

pub(super) fn instructions(piece: Piece<'_>) -> Result<Vec<Instruction>, TextError> {
    let mut list: Vec<Instruction> = Vec::new();
    let mut applied = Vec::new();
    let mut dropped = None;
    for pair in pairs(piece) {
        let pair = pair?;
        match pair.key.text {
            "drop" if pair.value.is_none() => dropped = Some(pair.key),
            word => match instruction(word, pair)? {
                Some(Instruction::ApplyActions(actions)) => applied.extend(actions),
                Some(found) => {
                    if list.iter().any(|held| held.kind() == found.kind()) {
                        return Err(pair.key.error(format!("`{word}` is given twice")));
                    }
                    list.push(found);
                }
                None => applied.push(action(pair)?),
            },
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

fn instruction(word: &str, pair: Pair<'_>) -> Result<Option<Instruction>, TextError> {
    Ok(Some(match word {
        "meter" => Instruction::Meter(MeterId(unsigned(pair.needed()?)?)),
        "goto_table" => Instruction::GotoTable(TableId(unsigned(pair.needed()?)?)),
        "clear_actions" => Instruction::ClearActions,
        "write_actions" => Instruction::WriteActions(actions(pair.needed()?)?),
        "apply_actions" => Instruction::ApplyActions(actions(pair.needed()?)?),
        "write_metadata" => {
            let piece = pair.needed()?;
            let (metadata, mask) = match piece.split_once("/") {
                Some((left, right)) => (unsigned(left)?, unsigned(right)?),
                None => (unsigned(piece)?, u64::MAX),
            };
            Instruction::WriteMetadata { metadata, mask }
        }
        _ => return Ok(None),
    }))
}

fn action(pair: Pair<'_>) -> Result<Action, TextError> {
    let word = pair.key.text;
    let row = ACTIONS.iter().find(|row| row.text == word).map(|row| row.kind);
    let alias = || ALIASES.iter().find(|(alias, _)| *alias == word).map(|(_, kind)| *kind);
    match row.or_else(alias) {
        Some(kind) => argument(kind, pair),
        None => bare_port(pair),
    }
}

/// `CONTROLLER:128`, `controller(max_len=128)`, `FLOOD`, or a port's number alone.
fn bare_port(pair: Pair<'_>) -> Result<Action, TextError> {
    let word = pair.key.text;
    let number = word.parse::<u32>().is_ok();
    let Some(port) =
        PortNo::from_reserved_name(word).or_else(|| number.then(|| port(pair.key).ok()).flatten())
    else {
        let mut error = unknown(pair.key);
        error.what = error.what.replace("unknown word", "unknown action");
        return Err(error);
    };
    let max_len = match pair.value {
        None => MAX_LEN_NO_BUFFER,
        Some(value) if port == PortNo::CONTROLLER => controller_len(value)?,
        Some(value) => return Err(value.error(format!("{port} takes no argument"))),
    };
    Ok(Action::Output { port, max_len })
}

fn controller_len(piece: Piece<'_>) -> Result<u16, TextError> {
    if piece.text.is_empty() {
        return Ok(MAX_LEN_NO_BUFFER);
    }
    match piece.split_once("=") {
        Some((key, value)) if key.text.trim() == "max_len" => unsigned(value),
        Some((key, _)) => Err(key.error(format!("`{}` is not known here: max_len", key.text))),
        None => unsigned(piece),
    }
}

fn argument(kind: ActionKind, pair: Pair<'_>) -> Result<Action, TextError> {
    let u8_arg = || unsigned::<u8>(pair.needed()?);
    let u16_arg = || unsigned::<u16>(pair.needed()?);
    let u32_arg = || unsigned::<u32>(pair.needed()?);
    let alone = |action: Action| match pair.value {
        None => Ok(action),
        Some(value) if value.text.is_empty() => Ok(action),
        Some(value) => Err(value.error(format!("`{}` takes no argument", pair.key.text))),
    };
    Ok(match kind {
        ActionKind::Output => {
            let port = port(pair.needed()?)?;
            Action::Output { port, max_len: MAX_LEN_NO_BUFFER }
        }
        ActionKind::CopyTtlOut => alone(Action::CopyTtlOut)?,
        ActionKind::CopyTtlIn => alone(Action::CopyTtlIn)?,
        ActionKind::SetMplsTtl => Action::SetMplsTtl(u8_arg()?),
        ActionKind::DecMplsTtl => alone(Action::DecMplsTtl)?,
        ActionKind::PushVlan => Action::PushVlan(u16_arg()?),
        ActionKind::PopVlan => alone(Action::PopVlan)?,
        ActionKind::PushMpls => Action::PushMpls(u16_arg()?),
        ActionKind::PopMpls => Action::PopMpls(u16_arg()?),
        ActionKind::SetQueue => Action::SetQueue(QueueId(u32_arg()?)),
        ActionKind::Group => Action::Group(GroupId(u32_arg()?)),
        ActionKind::SetNwTtl => Action::SetNwTtl(u8_arg()?),
        ActionKind::DecNwTtl => alone(Action::DecNwTtl)?,
        ActionKind::SetField => set_field(pair.needed()?)?,
        ActionKind::PushPbb => Action::PushPbb(u16_arg()?),
        ActionKind::PopPbb => alone(Action::PopPbb)?,
        ActionKind::SetVlanVid => Action::SetVlanVid(narrow(pair.needed()?, 12)?),
        ActionKind::SetVlanPcp => Action::SetVlanPcp(narrow(pair.needed()?, 3)?),
        ActionKind::StripVlan => alone(Action::StripVlan)?,
        ActionKind::SetDlSrc => Action::SetDlSrc(mac(pair.needed()?)?),
        ActionKind::SetDlDst => Action::SetDlDst(mac(pair.needed()?)?),
        ActionKind::SetNwSrc => Action::SetNwSrc(ipv4(pair.needed()?)?),
        ActionKind::SetNwDst => Action::SetNwDst(ipv4(pair.needed()?)?),
        ActionKind::SetNwTos => Action::SetNwTos(u8_arg()?),
        ActionKind::SetTpSrc => Action::SetTpSrc(u16_arg()?),
        ActionKind::SetTpDst => Action::SetTpDst(u16_arg()?),
        ActionKind::Enqueue => enqueue(pair.needed()?)?,
        ActionKind::Experimenter => {
            return Err(pair.key.error("experimenter actions cannot be written as text"));
        }
    })
}

fn narrow<T: TryFrom<u128>>(piece: Piece<'_>, bits: u16) -> Result<T, TextError> {
    T::try_from(number(piece, bits)?).map_err(|_| piece.error("the number is too large"))
}

fn mac(piece: Piece<'_>) -> Result<MacAddr, TextError> {
    piece.text.parse().map_err(|error| piece.error(format!("`{}` is {error}", piece.text)))
}

fn ipv4(piece: Piece<'_>) -> Result<Ipv4Addr, TextError> {
    piece.text.parse().map_err(|_| piece.error(format!("`{}` is not an IPv4 address", piece.text)))
}

fn enqueue(piece: Piece<'_>) -> Result<Action, TextError> {
    let parts = piece.split_once(":").or_else(|| piece.split_once(","));
    let (left, right) = parts.ok_or_else(|| piece.error("enqueue takes PORT:QUEUE"))?;
    Ok(Action::Enqueue { port: port(left)?, queue: QueueId(unsigned(right)?) })
}

fn set_field(piece: Piece<'_>) -> Result<Action, TextError> {
    let (left, right) =
        piece.split_once("->").ok_or_else(|| piece.error("set_field takes VALUE->FIELD"))?;
    let field = Field::from_name(right.text.trim()).ok_or_else(|| unknown(right))?;
    if !field.row().settable && field != Field::Metadata {
        return Err(right.error(format!("{} is read-only", field.row().name)));
    }
    let (value, mask) = value(field, left)?;
    if mask != field.full_mask() {
        return Err(left.error("set_field takes no mask in OpenFlow 1.3"));
    }
    Ok(Action::SetField { field, value })
}

/// An action list as `ovs-ofctl` prints it; `drop` when it is empty.
#[must_use]
pub fn format_actions(actions: &[Action]) -> String {
    if actions.is_empty() {
        return "drop".to_owned();
    }
    join(actions)
}

fn join(actions: &[Action]) -> String {
    actions.iter().map(format_action).collect::<Vec<_>>().join(",")
}

/// Instructions as `ovs-ofctl` prints them, in the order of their execution.
#[must_use]
pub fn format_instructions(instructions: &[Instruction]) -> String {
    let mut sorted: Vec<&Instruction> = instructions.iter().collect();
    sorted.sort_by_key(|instruction| instruction.kind());
    let words: Vec<String> =
        sorted.into_iter().map(format_instruction).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "drop".to_owned() } else { words.join(",") }
}

fn format_instruction(instruction: &Instruction) -> String {
    let text = instruction.kind().row().text;
    match instruction {
        Instruction::GotoTable(table) => format!("{text}:{}", table.0),
        Instruction::WriteMetadata { metadata, mask: u64::MAX } => format!("{text}:{metadata:#x}"),
        Instruction::WriteMetadata { metadata, mask } => format!("{text}:{metadata:#x}/{mask:#x}"),
        Instruction::WriteActions(actions) => format!("{text}({})", format_actions(actions)),
        Instruction::ApplyActions(actions) => join(actions),
        Instruction::ClearActions => text.to_owned(),
        Instruction::Meter(meter) => format!("{text}:{}", meter.0),
        Instruction::Experimenter { experimenter, data } => {
            format!("{text}({experimenter:#x},{} bytes)", data.len())
        }
    }
}

fn format_action(action: &Action) -> String {
    let text = action.kind().row().text;
    match action {
        Action::Output { port: PortNo::CONTROLLER, max_len } => format!("CONTROLLER:{max_len}"),
        Action::Output { port, .. } => match port.reserved_name() {
            Some(name) => name.to_owned(),
            None => format!("{text}:{}", port.0),
        },
        Action::SetMplsTtl(ttl) => format!("{text}({ttl})"),
        Action::PushVlan(eth_type)
        | Action::PushMpls(eth_type)
        | Action::PopMpls(eth_type)
        | Action::PushPbb(eth_type) => format!("{text}:0x{eth_type:04x}"),
        Action::SetQueue(queue) => format!("{text}:{}", queue.0),
        Action::Group(group) => format!("{text}:{}", group.0),
        Action::SetField { field, value } => {
            format!("{text}:{}->{}", format_value(*field, *value), field.row().set_text)
        }
        Action::SetNwTtl(value) | Action::SetVlanPcp(value) | Action::SetNwTos(value) => {
            format!("{text}:{value}")
        }
        Action::SetVlanVid(value) | Action::SetTpSrc(value) | Action::SetTpDst(value) => {
            format!("{text}:{value}")
        }
        Action::SetDlSrc(mac) | Action::SetDlDst(mac) => format!("{text}:{mac}"),
        Action::SetNwSrc(address) | Action::SetNwDst(address) => format!("{text}:{address}"),
        Action::Enqueue { port, queue } => format!("{text}:{port}:{}", queue.0),
        Action::Experimenter { experimenter, data } => {
            format!("{text}({experimenter:#x},{} bytes)", data.len())
        }
        Action::CopyTtlOut
        | Action::CopyTtlIn
        | Action::DecMplsTtl
        | Action::PopVlan
        | Action::DecNwTtl
        | Action::PopPbb
        | Action::StripVlan => text.to_owned(),
    }
}
