//! Groups in text: what `add-group` takes and `dump-groups` prints.

use super::action::{action_list, actions_text};
use super::lex::{Pair, Piece, pairs};
use super::value::{port, unsigned};
use super::words::unknown;
use super::{PortNames, TextError};
use crate::group::{Bucket, GroupDesc, GroupMod, GroupModCommand, GroupType};
use crate::id::{BucketId, GroupId, PortNo};

/// Reads a group: `group_id=1,type=select,bucket=weight:5,actions=output:1,bucket=output:2`. A
/// bucket of a select group without a weight has weight 1 (clause 5.6.1), others have none.
/// A delete takes `group_id=1`, or nothing for all groups. An insert of buckets takes
/// `group_id=1,command_bucket_id=last,bucket=output:3`, a remove the same without buckets, where no
/// `command_bucket_id` means all.
///
/// # Errors
/// On an unknown word or a bad value, when a word is given twice, when the type or a bucket's
/// actions are missing, and on words that have no effect in a delete.
pub fn parse_group_mod(text: &str, command: GroupModCommand) -> Result<GroupMod, TextError> {
    group_mod(Piece::whole(text), command)
}

pub(super) fn group_mod(whole: Piece<'_>, command: GroupModCommand) -> Result<GroupMod, TextError> {
    let deletes = command == GroupModCommand::Delete;
    let changes_buckets =
        matches!(command, GroupModCommand::InsertBucket | GroupModCommand::RemoveBucket);
    let no_effect = |key: Piece<'_>| {
        Err(key.error(format!("`{}` has no effect here: group_id chooses the groups", key.text)))
    };
    let (head, mut rest) = match split_bucket(whole) {
        Some((head, rest)) => (head, Some(rest)),
        None => (whole, None),
    };
    let (mut group_id, mut group_type, mut command_bucket_id) = (None, None, None);
    for pair in pairs(head) {
        let pair = pair?;
        match pair.key.text {
            "group_id" => pair.once(&mut group_id, parse_id)?,
            "type" if deletes || changes_buckets => return no_effect(pair.key),
            "command_bucket_id" if changes_buckets => {
                pair.once(&mut command_bucket_id, parse_command_bucket)?;
            }
            "type" => pair.once(&mut group_type, parse_type)?,
            _ if changes_buckets => {
                let words = ["group_id", "command_bucket_id", "bucket"];
                return Err(unknown("word", pair.key, words));
            }
            _ => return Err(unknown("word", pair.key, ["group_id", "type", "bucket"])),
        }
    }
    let has_none = deletes || command == GroupModCommand::RemoveBucket;
    if let (true, Some(_)) = (has_none, rest) {
        return no_effect(whole.part("bucket", head.at + head.text.len()));
    }
    let command_bucket_id = command_bucket_id.filter(|id| *id != BucketId::ALL);
    if command == GroupModCommand::InsertBucket && command_bucket_id.is_none() {
        let places = "first, last, or the number of the bucket before them";
        return Err(whole.error(format!("buckets are inserted at a command_bucket_id: {places}")));
    }
    let mut buckets = Vec::new();
    while let Some(piece) = rest {
        let (one, next) = match split_bucket(piece) {
            Some((one, next)) => (one, Some(next)),
            None => (piece, None),
        };
        buckets.push(parse_bucket(one, group_type)?);
        rest = next;
    }
    let group_id = match group_id {
        Some(id) => id,
        None if deletes => GroupId::ALL,
        None => return Err(whole.error("group_id is missing")),
    };
    let group_type = match group_type {
        Some(group_type) => group_type,
        None if deletes || changes_buckets => GroupType::All,
        None => return Err(whole.error("type is missing: all, select, indirect or ff")),
    };
    Ok(GroupMod { command, group_type, group_id, command_bucket_id, buckets })
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

/// `first`, `last`, `all`, or a number.
fn parse_command_bucket(piece: Piece<'_>) -> Result<BucketId, TextError> {
    Ok(match piece.text {
        "first" => BucketId::FIRST,
        "last" => BucketId::LAST,
        "all" => BucketId::ALL,
        _ => bucket_id(piece)?,
    })
}

fn bucket_id(piece: Piece<'_>) -> Result<BucketId, TextError> {
    let id = BucketId(unsigned(piece)?);
    if id > BucketId::MAX {
        return Err(piece.error(format!("a bucket has a number from 0 to {}", BucketId::MAX.0)));
    }
    Ok(id)
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

/// A bucket: its actions, with its other words before, behind or among them.
fn parse_bucket(piece: Piece<'_>, group_type: Option<GroupType>) -> Result<Bucket, TextError> {
    let (mut id, mut weight, mut watch_port, mut watch_group) = (None, None, None, None);
    let mut list: Option<Vec<Pair<'_>>> = None;
    for pair in pairs(piece) {
        let pair = pair?;
        match pair.key.text {
            "bucket_id" => pair.once(&mut id, bucket_id)?,
            "weight" => pair.once(&mut weight, unsigned)?,
            "watch_port" => pair.once(&mut watch_port, port)?,
            "watch_group" => pair.once(&mut watch_group, |id| Ok(GroupId(unsigned(id)?)))?,
            "actions" | "action" => {
                let named = pairs(pair.needed()?).collect::<Result<Vec<_>, _>>()?;
                list.get_or_insert_default().extend(named);
            }
            _ => list.get_or_insert_default().push(pair),
        }
    }
    let missing = || piece.error("a bucket has actions: actions=output:2, or actions=drop");
    Ok(Bucket {
        bucket_id: id,
        weight: weight.unwrap_or_else(|| group_type.map_or(0, GroupType::default_weight)),
        watch_port: watch_port.unwrap_or(PortNo::ANY),
        watch_group: watch_group.unwrap_or(GroupId::ANY),
        actions: action_list(list.ok_or_else(missing)?.into_iter().map(Ok))?,
    })
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
        if let Some(id) = bucket.bucket_id {
            out += &format!("bucket_id:{},", id.0);
        }
        if bucket.weight != group.group_type.default_weight() {
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
