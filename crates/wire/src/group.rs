//! Groups in messages (clauses 7.3.4.3 and 7.3.5.7 to 7.3.5.9); 1.3 only.

use openflow::group::{
    Bucket, BucketCounter, GroupCapabilities, GroupDesc, GroupFeatures, GroupMod, GroupModCommand,
    GroupStats, GroupType,
};
use openflow::translate::Context;
use openflow::{Error, GroupId};

use crate::action;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

pub(crate) fn read_mod(r: &mut Reader<'_>) -> reader::ReadResult<GroupMod> {
    let command = GroupModCommand::from_number(r.u16()?);
    let group_type = GroupType::from_number(r.u8()?);
    r.skip(1)?;
    let group_id = GroupId(r.u32()?);
    Ok(GroupMod { command, group_type, group_id, buckets: read_buckets(r)? })
}

pub(crate) fn write_mod(w: &mut Writer<'_>, group: &GroupMod) -> writer::WriteResult<()> {
    w.u16(group.command.number());
    w.u8(group.group_type.number());
    w.zeros(1);
    w.u32(group.group_id.0);
    write_buckets(w, &group.buckets)
}

/// Reads all that is left in `r` as buckets; one of a wrong length is `OFPGMFC_BAD_BUCKET`.
fn read_buckets(r: &mut Reader<'_>) -> reader::ReadResult<Vec<Bucket>> {
    let mut r = r.part(r.remaining())?.reading("bucket", Error::GroupModBadBucket);
    let mut buckets = Vec::new();
    while !r.is_empty() {
        buckets.push(read_bucket(&mut r)?);
    }
    Ok(buckets)
}

fn read_bucket(r: &mut Reader<'_>) -> reader::ReadResult<Bucket> {
    let mut bucket = r.sized("bucket")?;
    if bucket.remaining() % 8 != 6 {
        return Err(bucket.bad_len());
    }
    let weight = bucket.u16()?;
    let watch_port = bucket.port()?;
    let watch_group = GroupId(bucket.u32()?);
    bucket.skip(4)?;
    let actions = action::read_list(bucket)?;
    Ok(Bucket { weight, watch_port, watch_group, actions })
}

fn write_buckets(w: &mut Writer<'_>, buckets: &[Bucket]) -> writer::WriteResult<()> {
    for bucket in buckets {
        let start = w.place();
        w.u16(0);
        w.u16(bucket.weight);
        w.port(bucket.watch_port)?;
        w.u32(bucket.watch_group.0);
        w.zeros(4);
        action::write_list(w, &bucket.actions, Context::default())?;
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

pub(crate) fn read_desc(r: &mut Reader<'_>) -> reader::ReadResult<GroupDesc> {
    let mut r = r.sized("group description")?;
    let group_type = GroupType::from_number(r.u8()?);
    r.skip(1)?;
    let group_id = GroupId(r.u32()?);
    Ok(GroupDesc { group_type, group_id, buckets: read_buckets(&mut r)? })
}

pub(crate) fn write_desc(w: &mut Writer<'_>, group: &GroupDesc) -> writer::WriteResult<()> {
    let start = w.place();
    w.u16(0);
    w.u8(group.group_type.number());
    w.zeros(1);
    w.u32(group.group_id.0);
    write_buckets(w, &group.buckets)?;
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
        duration_s: r.u32()?,
        duration_ns: r.u32()?,
        buckets: Vec::new(),
    };
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
    w.u32(stats.duration_s);
    w.u32(stats.duration_ns);
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
