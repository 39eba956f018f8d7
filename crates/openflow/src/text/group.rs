//! Groups in text: what `add-group` takes and `dump-groups` prints.

use super::action::{actions, actions_text};
use super::lex::{Pair, Piece, pairs};
use super::value::{port, unsigned};
use super::{PortNames, TextError};
use crate::group::{Bucket, GroupDesc, GroupMod, GroupModCommand, GroupType};
use crate::id::{GroupId, PortNo};

/// Reads a group: `group_id=1,type=select,bucket=weight:5,actions=output:1,bucket=output:2`.
/// A delete takes `group_id=1`, or nothing for all groups.
///
/// # Errors
/// On an unknown word or a bad value, and when the type is missing where it is needed.
pub fn parse_group_mod(text: &str, command: GroupModCommand) -> Result<GroupMod, TextError> {
    group_mod(Piece::whole(text), command)
}

pub(super) fn group_mod(whole: Piece<'_>, command: GroupModCommand) -> Result<GroupMod, TextError> {
    let (head, mut rest) = match split_bucket(whole) {
        Some((head, rest)) => (head, Some(rest)),
        None => (whole, None),
    };
    let mut group_id = None;
    let mut group_type = None;
    for pair in pairs(head) {
        let pair = pair?;
        match pair.key.text {
            "group_id" => group_id = Some(parse_id(pair.needed()?)?),
            "type" => group_type = Some(parse_type(pair.needed()?)?),
            other => {
                return Err(pair.key.error(format!(
                    "unknown word `{other}`: group_id, type or bucket is possible here"
                )));
            }
        }
    }
    let deletes = command == GroupModCommand::Delete;
    let mut buckets = Vec::new();
    while let Some(piece) = rest {
        let (one, next) = match split_bucket(piece) {
            Some((one, next)) => (one, Some(next)),
            None => (piece, None),
        };
        buckets.push(parse_bucket(one)?);
        rest = next;
    }
    if deletes && (group_type.is_some() || !buckets.is_empty()) {
        return Err(whole.error("a delete takes group_id only"));
    }
    let group_id = match group_id {
        Some(id) => id,
        None if deletes => GroupId::ALL,
        None => return Err(whole.error("group_id is missing")),
    };
    let group_type = match group_type {
        Some(group_type) => group_type,
        None if deletes => GroupType::All,
        None => return Err(whole.error("type is missing: all, select, indirect or ff")),
    };
    Ok(GroupMod { command, group_type, group_id, buckets })
}

fn split_bucket(piece: Piece<'_>) -> Option<(Piece<'_>, Piece<'_>)> {
    piece.split_at_token("bucket=").or_else(|| piece.split_at_token("bucket:"))
}

fn parse_id(piece: Piece<'_>) -> Result<GroupId, TextError> {
    if piece.text.eq_ignore_ascii_case("all") {
        return Ok(GroupId::ALL);
    }
    Ok(GroupId(unsigned(piece)?))
}

fn parse_type(piece: Piece<'_>) -> Result<GroupType, TextError> {
    if piece.text == "ff" {
        return Ok(GroupType::FastFailover);
    }
    GroupType::ALL.iter().copied().find(|known| known.text() == piece.text).ok_or_else(|| {
        piece.error(format!(
            "`{}` is not a group type: all, select, indirect, ff or fast_failover",
            piece.text
        ))
    })
}

fn parse_bucket(piece: Piece<'_>) -> Result<Bucket, TextError> {
    let mut bucket = Bucket {
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions: Vec::new(),
    };
    let split = piece.split_at_token("actions=").or_else(|| piece.split_at_token("actions:"));
    let (head, tail) = match split {
        Some((head, tail)) => (head, Some(tail)),
        None => (piece, None),
    };
    let mut rest = None;
    for pair in pairs(head) {
        let pair = pair?;
        if !bucket_word(&mut bucket, pair)? {
            let end = head.at + head.text.len();
            let text = &head.text[pair.key.at - head.at..end - head.at];
            rest = Some(head.part(text, pair.key.at));
            break;
        }
    }
    for actions_piece in rest.into_iter().chain(tail) {
        bucket.actions.extend(actions(actions_piece)?);
    }
    Ok(bucket)
}

/// Takes a word that is not an action; `false` when the actions begin here.
fn bucket_word(bucket: &mut Bucket, pair: Pair<'_>) -> Result<bool, TextError> {
    match pair.key.text {
        "weight" => bucket.weight = unsigned(pair.needed()?)?,
        "watch_port" => bucket.watch_port = port(pair.needed()?)?,
        "watch_group" => bucket.watch_group = GroupId(unsigned(pair.needed()?)?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// A group as `dump-groups` prints it, without the leading blank.
#[must_use]
pub fn format_group(group: &GroupDesc) -> String {
    group_text(group, &PortNames::default())
}

/// The same with these names for ports.
pub(super) fn group_text(group: &GroupDesc, names: &PortNames) -> String {
    let is_short = group.group_type == GroupType::FastFailover;
    let group_type = if is_short { "ff" } else { group.group_type.text() };
    let mut out = format!("group_id={},type={group_type}", group.group_id.0);
    for bucket in &group.buckets {
        out += ",bucket=";
        if bucket.weight != 0 {
            out += &format!("weight:{},", bucket.weight);
        }
        if bucket.watch_port != PortNo::ANY {
            out += &format!("watch_port:{},", names.text_of(bucket.watch_port));
        }
        if bucket.watch_group != GroupId::ANY {
            out += &format!("watch_group:{},", bucket.watch_group.0);
        }
        out += "actions=";
        out += &actions_text(&bucket.actions, names);
    }
    out
}
