//! Groups in messages (clauses 7.3.4.3 and 7.3.5.7 to 7.3.5.9), since 1.3.

use openflow::group::{
    Bucket, BucketCounter, GroupCapabilities, GroupDesc, GroupFeatures, GroupMod, GroupModCommand,
    GroupStats, GroupType, Selection, SelectionMethod, bucket_ids,
};
use openflow::translate::Context;
use openflow::{BucketId, Error, Field, GroupId, PortNo};

use crate::property::{self, Unknown};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};
use crate::{action, oxm};

/// Netronome, whose property says how a select group chooses, and its number in earlier switches.
const NETRONOME: u32 = 0x0000_154d;
const NETRONOME_ONCE: u32 = 0x0000_1540;
/// `NTRT_SELECTION_METHOD`.
const SELECTION_METHOD: u32 = 1;
/// Bytes of the method's name, of which the last is zero.
const METHOD_LEN: usize = 16;

pub(crate) fn read_mod_v1_1(r: &mut Reader<'_>) -> reader::ReadResult<GroupMod> {
    let (command, group_type, group_id) = read_head(r)?;
    let buckets = read_buckets(r, read_bucket_v1_1)?;
    Ok(GroupMod { command, group_type, group_id, buckets, ..GroupMod::default() })
}

#[inline]
fn read_head(r: &mut Reader<'_>) -> reader::ReadResult<(GroupModCommand, GroupType, GroupId)> {
    let command = GroupModCommand::from_number_in(r.version, r.u16()?);
    let group_type = GroupType::from_number(r.u8()?);
    r.skip(1)?;
    Ok((command, group_type, GroupId(r.u32()?)))
}

pub(crate) fn read_mod_v1_5(r: &mut Reader<'_>) -> reader::ReadResult<GroupMod> {
    let (command, group_type, group_id) = read_head(r)?;
    let len = usize::from(r.u16()?);
    r.skip(2)?;
    let command_bucket_id = Some(BucketId(r.u32()?)).filter(|id| *id != BucketId::ALL);
    let buckets = read_numbered(r, len, group_type)?;
    let mut selection = None;
    property::read_all(r, Unknown::Refused, |number, body| {
        if !is_selection(number, body)? {
            return Ok(false);
        }
        if selection.is_some() {
            return Err(body.fault(Error::BadPropertyDupType));
        }
        let start = body.clone();
        let read = read_selection(body)?.filter(|_| may_choose(command, group_type));
        let is_sound = |it: &Selection| it.method == SelectionMethod::Hash || it.fields.is_empty();
        let read = read.filter(is_sound);
        selection = Some(read.ok_or_else(|| start.fault(Error::BadPropertyBadValue))?);
        Ok(true)
    })?;
    Ok(GroupMod { command, group_type, group_id, command_bucket_id, buckets, selection })
}

/// Whether a command may say how the group chooses.
fn may_choose(command: GroupModCommand, group_type: GroupType) -> bool {
    let makes = [GroupModCommand::Add, GroupModCommand::Modify, GroupModCommand::AddOrModify];
    group_type == GroupType::Select && makes.contains(&command)
}

/// Whether a property is the choice of a group; its owner and type are passed over.
fn is_selection(number: u16, r: &mut Reader<'_>) -> reader::ReadResult<bool> {
    if number != property::EXPERIMENTER {
        return Ok(false);
    }
    Ok(matches!(r.u32()?, NETRONOME | NETRONOME_ONCE) && r.u32()? == SELECTION_METHOD)
}

/// Reads the choice of a group; none of an unknown method.
fn read_selection(r: &mut Reader<'_>) -> reader::ReadResult<Option<Selection>> {
    r.skip(4)?;
    let name = r.bytes(METHOD_LEN)?;
    let param = r.u64()?;
    let name = name.iter().position(|byte| *byte == 0).and_then(|end| name.get(..end));
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    let Some(method) = name.and_then(SelectionMethod::from_text) else { return Ok(None) };
    let mut fields: Vec<(Field, u128)> = Vec::new();
    while !r.is_empty() {
        let start = r.clone();
        let (field, bits) = oxm::read_bits(r)?;
        if fields.iter().any(|(known, _)| *known == field) {
            return Err(start.fault_in(Error::BadMatchDupField, field.row().name));
        }
        fields.push((field, bits));
    }
    Ok(Some(Selection { method, param, fields }))
}

fn write_selection(w: &mut Writer<'_>, selection: Option<&Selection>) -> writer::WriteResult<()> {
    let Some(Selection { method, param, fields }) = selection else { return Ok(()) };
    let start = w.place();
    w.u16(property::EXPERIMENTER);
    w.u16(0);
    w.u32(NETRONOME);
    w.u32(SELECTION_METHOD);
    w.zeros(4);
    w.text(method.text(), METHOD_LEN);
    w.u64(*param);
    for (field, bits) in fields {
        oxm::write_bits(w, *field, *bits)?;
    }
    w.fill_len(start + 2, start, "selection method")?;
    w.pad_from(start);
    Ok(())
}

/// Reads buckets of this length in all, each with a number of its own.
fn read_numbered(
    r: &mut Reader<'_>,
    len: usize,
    group_type: GroupType,
) -> reader::ReadResult<Vec<Bucket>> {
    let start = r.clone();
    if len > r.remaining() {
        return Err(r.fault_in(Error::GroupModBadBucket, "length of the buckets"));
    }
    let read = |r: &mut Reader<'_>| read_bucket_v1_5(r, group_type);
    let buckets = read_buckets(&mut r.part(len)?, read)?;
    let mut ids: Vec<_> = buckets.iter().map(|bucket| bucket.bucket_id).collect();
    ids.sort_unstable();
    if ids.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(start.fault_in(Error::GroupModBucketExists, "number of a bucket"));
    }
    if ids.last().is_some_and(|last| *last > Some(BucketId::MAX)) {
        return Err(start.fault_in(Error::GroupModUnknownBucket, "number of a bucket"));
    }
    Ok(buckets)
}

pub(crate) fn write_mod_v1_1(w: &mut Writer<'_>, group: &GroupMod) -> writer::WriteResult<()> {
    let is_later =
        matches!(group.command, GroupModCommand::InsertBucket | GroupModCommand::RemoveBucket);
    w.require(!is_later, "insert and remove of buckets")?;
    w.require(group.command_bucket_id.is_none(), "a bucket in a command")?;
    let is_numbered = group.buckets.iter().any(|bucket| bucket.bucket_id.is_some());
    w.require(!is_numbered, "numbers of buckets")?;
    w.require(group.selection.is_none(), "selection method")?;
    write_head(w, group);
    write_buckets_v1_1(w, &group.buckets)
}

fn write_head(w: &mut Writer<'_>, group: &GroupMod) {
    let ([a, b], [c, d, e, f]) =
        (group.command.number().to_be_bytes(), group.group_id.0.to_be_bytes());
    w.bytes(&[a, b, group.group_type.number(), 0, c, d, e, f]);
}

pub(crate) fn write_mod_v1_5(w: &mut Writer<'_>, group: &GroupMod) -> writer::WriteResult<()> {
    write_head(w, group);
    let len_at = w.place();
    w.zeros(4);
    w.u32(group.command_bucket_id.unwrap_or(BucketId::ALL).0);
    let start = w.place();
    write_buckets_v1_5(w, group.group_type, &group.buckets)?;
    w.fill_len(len_at, start, "buckets of a group")?;
    write_selection(w, group.selection.as_ref())
}

/// Reads all that is left in `r` as buckets; one of a wrong length is `OFPGMFC_BAD_BUCKET`.
fn read_buckets(
    r: &mut Reader<'_>,
    read: impl Fn(&mut Reader<'_>) -> reader::ReadResult<Bucket>,
) -> reader::ReadResult<Vec<Bucket>> {
    let mut r = r.part(r.remaining())?.reading("bucket", Error::GroupModBadBucket);
    let mut buckets = r.list();
    while !r.is_empty() {
        buckets.push(read(&mut r)?);
    }
    Ok(buckets)
}

fn read_bucket_v1_1(r: &mut Reader<'_>) -> reader::ReadResult<Bucket> {
    let mut bucket = r.sized("bucket")?;
    if bucket.remaining() % 8 != 6 {
        return Err(bucket.bad_len());
    }
    let weight = bucket.u16()?;
    let watch_port = bucket.port()?;
    let watch_group = GroupId(bucket.u32()?);
    bucket.skip(4)?;
    let actions = action::read_list(bucket)?;
    Ok(Bucket { bucket_id: None, weight, watch_port, watch_group, actions })
}

/// Reads a bucket of a group of this type, which says the weight of one without the property.
fn read_bucket_v1_5(r: &mut Reader<'_>, group_type: GroupType) -> reader::ReadResult<Bucket> {
    let mut r = r.sized("bucket")?;
    if r.remaining() % 8 != 6 {
        return Err(r.bad_len());
    }
    let actions_len = usize::from(r.u16()?);
    let mut bucket = Bucket {
        bucket_id: Some(BucketId(r.u32()?)),
        weight: group_type.default_weight(),
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions: action::read_list(r.part(actions_len)?)?,
    };
    property::read_all(&mut r, Unknown::Refused, |number, body| {
        match number {
            property::WEIGHT => {
                bucket.weight = body.u16()?;
                body.skip(2)?;
            }
            property::WATCH_PORT => bucket.watch_port = body.port()?,
            property::WATCH_GROUP => bucket.watch_group = GroupId(body.u32()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(bucket)
}

fn write_buckets_v1_1(w: &mut Writer<'_>, buckets: &[Bucket]) -> writer::WriteResult<()> {
    for bucket in buckets {
        let start = w.place();
        // The length comes before the weight.
        w.u32(bucket.weight.into());
        w.port(bucket.watch_port)?;
        w.u32(bucket.watch_group.0);
        w.zeros(4);
        action::write_list(w, &bucket.actions, Context::default())?;
        w.fill_len(start, start, "bucket")?;
    }
    Ok(())
}

/// Writes buckets, each with the properties that say something: the weight of a select group, and
/// that of any other where there is one.
fn write_buckets_v1_5(
    w: &mut Writer<'_>,
    group_type: GroupType,
    buckets: &[Bucket],
) -> writer::WriteResult<()> {
    for (id, bucket) in bucket_ids(buckets).zip(buckets) {
        let start = w.place();
        w.zeros(4);
        w.u32(id.0);
        let actions = w.place();
        action::write_list(w, &bucket.actions, Context::default())?;
        w.fill_len(start + 2, actions, "actions of a bucket")?;
        if group_type == GroupType::Select || bucket.weight != 0 {
            property::write(w, property::WEIGHT, |w| {
                w.u16(bucket.weight);
                w.zeros(2);
            })?;
        }
        if bucket.watch_port != PortNo::ANY {
            property::write(w, property::WATCH_PORT, |w| w.u32(bucket.watch_port.0))?;
        }
        if bucket.watch_group != GroupId::ANY {
            property::write(w, property::WATCH_GROUP, |w| w.u32(bucket.watch_group.0))?;
        }
        w.fill_len(start, start, "bucket")?;
    }
    Ok(())
}

pub(crate) fn read_id_request(r: &mut Reader<'_>) -> reader::ReadResult<GroupId> {
    let group = GroupId(r.u32()?);
    r.skip(4)?;
    Ok(group)
}

pub(crate) fn write_id_request(w: &mut Writer<'_>, group: GroupId) {
    w.u32(group.0);
    w.zeros(4);
}

pub(crate) fn read_desc_v1_1(r: &mut Reader<'_>) -> reader::ReadResult<GroupDesc> {
    let mut r = r.sized("group description")?;
    let group_type = GroupType::from_number(r.u8()?);
    r.skip(1)?;
    let group_id = GroupId(r.u32()?);
    Ok(GroupDesc {
        group_type,
        group_id,
        buckets: read_buckets(&mut r, read_bucket_v1_1)?,
        ..GroupDesc::default()
    })
}

/// Properties of the group that are not known are left out.
pub(crate) fn read_desc_v1_5(r: &mut Reader<'_>) -> reader::ReadResult<GroupDesc> {
    let mut r = r.sized("group description")?;
    let group_type = GroupType::from_number(r.u8()?);
    r.skip(1)?;
    let group_id = GroupId(r.u32()?);
    let len = usize::from(r.u16()?);
    r.skip(6)?;
    let buckets = read_numbered(&mut r, len, group_type)?;
    let mut selection = None;
    property::read_all(&mut r, Unknown::LeftOut, |number, body| {
        // One by a method or a field that is not known is left out, too.
        let read = is_selection(number, body)?.then(|| read_selection(body).ok().flatten());
        selection = read.flatten().or(selection.take());
        Ok(false)
    })?;
    Ok(GroupDesc { group_type, group_id, buckets, selection })
}

pub(crate) fn write_desc_v1_1(w: &mut Writer<'_>, group: &GroupDesc) -> writer::WriteResult<()> {
    let start = begin_desc(w, group);
    write_buckets_v1_1(w, &group.buckets)?;
    w.fill_len(start, start, "group description")
}

fn begin_desc(w: &mut Writer<'_>, group: &GroupDesc) -> usize {
    let start = w.place();
    w.u16(0);
    w.u8(group.group_type.number());
    w.zeros(1);
    w.u32(group.group_id.0);
    start
}

pub(crate) fn write_desc_v1_5(w: &mut Writer<'_>, group: &GroupDesc) -> writer::WriteResult<()> {
    let start = begin_desc(w, group);
    let len_at = w.place();
    w.zeros(8);
    let buckets = w.place();
    write_buckets_v1_5(w, group.group_type, &group.buckets)?;
    w.fill_len(len_at, buckets, "buckets of a group")?;
    write_selection(w, group.selection.as_ref())?;
    w.fill_len(start, start, "group description")
}

pub(crate) fn read_stats(r: &mut Reader<'_>) -> reader::ReadResult<GroupStats> {
    let mut r = r.sized("group statistics")?;
    r.skip(2)?;
    let group_id = GroupId(r.u32()?);
    let ref_count = r.u32()?;
    r.skip(4)?;
    let mut stats = GroupStats {
        group_id,
        ref_count,
        packet_count: r.u64()?,
        byte_count: r.u64()?,
        duration_s: 0,
        duration_ns: 0,
        buckets: Vec::new(),
    };
    if r.version.has_durations() {
        (stats.duration_s, stats.duration_ns) = (r.u32()?, r.u32()?);
    }
    while !r.is_empty() {
        stats.buckets.push(BucketCounter { packet_count: r.u64()?, byte_count: r.u64()? });
    }
    Ok(stats)
}

pub(crate) fn write_stats(w: &mut Writer<'_>, stats: &GroupStats) -> writer::WriteResult<()> {
    let start = w.place();
    w.u16(0);
    w.zeros(2);
    w.u32(stats.group_id.0);
    w.u32(stats.ref_count);
    w.zeros(4);
    w.u64(stats.packet_count);
    w.u64(stats.byte_count);
    if w.version.has_durations() {
        w.u32(stats.duration_s);
        w.u32(stats.duration_ns);
    }
    for bucket in &stats.buckets {
        w.u64(bucket.packet_count);
        w.u64(bucket.byte_count);
    }
    w.fill_len(start, start, "group statistics")
}

pub(crate) fn read_features(r: &mut Reader<'_>) -> reader::ReadResult<GroupFeatures> {
    Ok(GroupFeatures {
        types: r.u32()?,
        capabilities: GroupCapabilities::from_bits_retain(r.u32()?),
        max_groups: [r.u32()?, r.u32()?, r.u32()?, r.u32()?],
        actions: [r.u32()?, r.u32()?, r.u32()?, r.u32()?],
    })
}

pub(crate) fn write_features(w: &mut Writer<'_>, features: &GroupFeatures) {
    w.u32(features.types);
    w.u32(features.capabilities.bits());
    for number in features.max_groups.iter().chain(&features.actions) {
        w.u32(*number);
    }
}
