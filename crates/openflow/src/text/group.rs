//! Groups in text: what `add-group` takes and `dump-groups` prints.

use super::action::{action_list, actions_text};
use super::lex::{Pair, Piece, pairs};
use super::value::{format_value, port, unsigned, value as field_value};
use super::words::unknown;
use super::{PortNames, TextError};
use crate::field::{ALL_FIELDS, Field};
use crate::group::{
    Bucket, GroupDesc, GroupMod, GroupModCommand, GroupType, Selection, SelectionMethod,
};
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
    let mut selection = SelectionWords::default();
    for pair in pairs(head) {
        let pair = pair?;
        match pair.key.text {
            "group_id" => pair.once(&mut group_id, parse_id)?,
            "type" if deletes || changes_buckets => return no_effect(pair.key),
            "command_bucket_id" if changes_buckets => {
                pair.once(&mut command_bucket_id, parse_command_bucket)?;
            }
            "type" => pair.once(&mut group_type, parse_type)?,
            "selection_method" | "selection_method_param" | "fields" if !deletes => {
                selection.take(pair)?;
            }
            _ if changes_buckets => {
                let words = ["group_id", "command_bucket_id", "bucket"];
                return Err(unknown("word", pair.key, words));
            }
            _ => {
                let words = ["group_id", "type", "bucket", "selection_method", "fields"];
                return Err(unknown("word", pair.key, words));
            }
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
    let selection = selection.whole(whole, group_type)?;
    Ok(GroupMod { command, group_type, group_id, command_bucket_id, buckets, selection })
}

/// The words that say how a select group chooses.
#[derive(Debug, Default)]
struct SelectionWords {
    method: Option<SelectionMethod>,
    param: Option<u64>,
    fields: Option<Vec<(Field, u128)>>,
}

impl SelectionWords {
    fn take(&mut self, pair: Pair<'_>) -> Result<(), TextError> {
        match pair.key.text {
            "selection_method" => pair.once(&mut self.method, |word| {
                let method = SelectionMethod::from_text(word.text);
                method.ok_or_else(|| word.error("a selection method is hash or dp_hash"))
            }),
            "selection_method_param" => pair.once(&mut self.param, unsigned),
            _ => pair.once(&mut self.fields, parse_fields),
        }
    }

    /// The choice that they make, of a group of this type.
    fn whole(
        self,
        place: Piece<'_>,
        group_type: GroupType,
    ) -> Result<Option<Selection>, TextError> {
        let Self { method, param, fields } = self;
        let fields = fields.unwrap_or_default();
        let Some(method) = method else {
            if param.is_some() || !fields.is_empty() {
                return Err(place.error("selection_method is missing: hash or dp_hash"));
            }
            return Ok(None);
        };
        if group_type != GroupType::Select {
            return Err(place.error("a selection_method is of type=select"));
        }
        if method != SelectionMethod::Hash && !fields.is_empty() {
            return Err(place.error("fields are of selection_method=hash"));
        }
        Ok(Some(Selection { method, param: param.unwrap_or(0), fields }))
    }
}

/// Fields, each with the bits that count where not all do: `ip_src,tcp_dst=0xff`.
fn parse_fields(piece: Piece<'_>) -> Result<Vec<(Field, u128)>, TextError> {
    let mut fields: Vec<(Field, u128)> = Vec::new();
    for pair in pairs(piece) {
        let Pair { key, value } = pair?;
        let names = || ALL_FIELDS.iter().map(|row| row.set_text);
        let field = Field::from_name(key.text).ok_or_else(|| unknown("field", key, names()))?;
        if fields.iter().any(|(known, _)| *known == field) {
            return Err(key.error(format!("`{}` is given twice", key.text)));
        }
        let (bits, mask) = match value {
            None => (field.full_mask(), field.full_mask()),
            Some(value) => field_value(field, value)?,
        };
        let is_plain = bits != 0 && mask == field.full_mask();
        if !is_plain || (bits != field.full_mask() && !field.row().maskable) {
            let place = value.unwrap_or(key);
            return Err(place.error(format!("`{}` has no such bits to choose by", key.text)));
        }
        fields.push((field, bits));
    }
    Ok(fields)
}

/// The words of a choice, each behind a comma.
fn selection_text(selection: &Selection) -> String {
    let mut out = format!(",selection_method={}", selection.method.text());
    if selection.param != 0 {
        out += &format!(",selection_method_param={}", selection.param);
    }
    let word = |(field, bits): &(Field, u128)| match *bits == field.full_mask() {
        true => field.row().set_text.to_owned(),
        false => format!("{}={}", field.row().set_text, format_value(*field, *bits)),
    };
    let words: Vec<String> = selection.fields.iter().map(word).collect();
    match words.as_slice() {
        [] => {}
        [one] => out += &format!(",fields={one}"),
        all => out += &format!(",fields({})", all.join(",")),
    }
    out
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
    if let Some(selection) = &group.selection {
        out += &selection_text(selection);
    }
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
