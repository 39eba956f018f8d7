//! Ports, queues, buckets, bands and tables that a version can say.

use openflow::action::ACTIONS;
use openflow::field::FIELDS;
use openflow::group::Bucket;
use openflow::instruction::INSTRUCTIONS;
use openflow::meter::{Band, BandKind};
use openflow::port::{
    PacketQueue, PortConfig, PortDesc, PortFeatures, PortState, PortStats, QueueProperty,
    QueueStats,
};
use openflow::table::{
    OnPacket, OxmId, TableAbilities, TableFeatures, TableMod, TableProperty, TableStats, TypeId,
    Vacancy,
};
use openflow::{
    ActionKind, BucketId, GroupId, InstructionKind, MacAddr, PortNo, QueueId, TableId, Version,
};

use super::entropy::Entropy;
use super::flow;

pub(crate) fn features(e: &mut Entropy<'_>, version: Version) -> PortFeatures {
    let bits = PortFeatures::from_bits_retain(e.u32());
    match version.has_port_speeds() {
        false => {
            let unsayable = PortFeatures::FD_40GB
                | PortFeatures::FD_100GB
                | PortFeatures::FD_1TB
                | PortFeatures::OTHER;
            PortFeatures::from_bits_retain(bits.bits() & 0xffff) - unsayable
        }
        true => bits,
    }
}

pub(crate) fn port_desc(e: &mut Entropy<'_>, version: Version) -> PortDesc {
    let v1_3 = version.has_port_speeds();
    let stp = [PortState::empty(), PortState::BLOCKED, PortState::from_bits_retain(1 << 8)];
    PortDesc {
        port_no: flow::port(e, version),
        hw_addr: MacAddr::from_u64(e.u64()),
        name: e.text(15),
        config: PortConfig::from_bits_retain(e.u32()),
        state: match version.has_port_speeds() {
            false => e.pick(&stp) | e.pick(&[PortState::empty(), PortState::LINK_DOWN]),
            true => PortState::from_bits_retain(e.u32()),
        },
        curr: features(e, version),
        advertised: features(e, version),
        supported: features(e, version),
        peer: features(e, version),
        curr_speed_kbps: if v1_3 { e.u32() } else { 0 },
        max_speed_kbps: if v1_3 { e.u32() } else { 0 },
    }
}

pub(crate) fn port_stats(e: &mut Entropy<'_>, version: Version) -> PortStats {
    let v1_3 = version.has_durations();
    PortStats {
        port_no: flow::port(e, version),
        rx_packets: e.u64(),
        tx_packets: e.u64(),
        rx_bytes: e.u64(),
        tx_bytes: e.u64(),
        rx_dropped: e.u64(),
        tx_dropped: e.u64(),
        rx_errors: e.u64(),
        tx_errors: e.u64(),
        rx_frame_err: e.u64(),
        rx_over_err: e.u64(),
        rx_crc_err: e.u64(),
        collisions: e.u64(),
        duration_s: if v1_3 { e.u32() } else { 0 },
        duration_ns: if v1_3 { e.u32() } else { 0 },
    }
}

pub(crate) fn queue_stats(e: &mut Entropy<'_>, version: Version) -> QueueStats {
    let v1_3 = version.has_durations();
    QueueStats {
        port_no: flow::port(e, version),
        queue_id: QueueId(e.u32()),
        tx_bytes: e.u64(),
        tx_packets: e.u64(),
        tx_errors: e.u64(),
        duration_s: if v1_3 { e.u32() } else { 0 },
        duration_ns: if v1_3 { e.u32() } else { 0 },
    }
}

/// In 1.0 a queue is of the port that was asked for.
pub(crate) fn queue(e: &mut Entropy<'_>, version: Version, asked: PortNo) -> PacketQueue {
    let port = match version.has_queues_of_any_port() {
        false => asked,
        true => flow::port(e, version),
    };
    let known = if version.has_max_rate() { 2 } else { 1 };
    let properties = e.list(|e| match (version.has_max_rate(), e.below_or(known, 4 - known)) {
        (_, 0) => QueueProperty::MinRate(e.u16()),
        (true, 1) => QueueProperty::MaxRate(e.u16()),
        (true, 2) => QueueProperty::Experimenter { experimenter: e.u32(), data: e.data(1) },
        (_, _) => QueueProperty::Unknown { property: 3 + u16::from(e.u8()), data: e.data(1) },
    });
    PacketQueue { queue_id: QueueId(e.u32()), port, properties }
}

/// Buckets, each with a number of its own where the version has one.
pub(crate) fn buckets(e: &mut Entropy<'_>, version: Version) -> Vec<Bucket> {
    let mut buckets = e.list(|e| bucket(e, version));
    if version.has_bucket_ids() {
        for (place, bucket) in (0..).zip(&mut buckets) {
            bucket.bucket_id = Some(BucketId(3 * place + u32::from(e.u8()) % 3));
        }
    }
    buckets
}

fn bucket(e: &mut Entropy<'_>, version: Version) -> Bucket {
    Bucket {
        bucket_id: None,
        weight: e.u16(),
        watch_port: PortNo(e.u32()),
        watch_group: GroupId(e.u32()),
        actions: flow::actions(e, version.min(Version::V1_3)),
    }
}

pub(crate) fn band(e: &mut Entropy<'_>) -> Band {
    let kind = match e.below(3) {
        0 => BandKind::Drop,
        1 => BandKind::DscpRemark { prec_level: e.u8() },
        _ => BandKind::Experimenter { experimenter: e.u32() },
    };
    Band { kind, rate: e.u32(), burst_size: e.u32() }
}

pub(crate) fn table_stats(e: &mut Entropy<'_>, version: Version) -> TableStats {
    let is_described = version.has_table_desc_in_stats();
    TableStats {
        table_id: TableId(e.u8()),
        name: if is_described { e.text(31) } else { String::new() },
        wildcards: if version.has_pipeline() { 0 } else { e.u32() },
        abilities: match is_described && version.has_pipeline() {
            true if version.has_tuple_matches() => TableAbilities {
                matches: e.u32().into(),
                wildcards: e.u32().into(),
                write_setfields: 0,
                apply_setfields: 0,
                metadata_match: 0,
                metadata_write: 0,
                ..abilities(e)
            },
            true => abilities(e),
            false => TableAbilities::default(),
        },
        max_entries: if is_described { e.u32() } else { 0 },
        active_count: e.u32(),
        lookup_count: e.u64(),
        matched_count: e.u64(),
    }
}

fn abilities(e: &mut Entropy<'_>) -> TableAbilities {
    TableAbilities {
        matches: e.u64(),
        wildcards: e.u64(),
        write_actions: e.u32(),
        apply_actions: e.u32(),
        write_setfields: e.u64(),
        apply_setfields: e.u64(),
        metadata_match: e.u64(),
        metadata_write: e.u64(),
        instructions: e.u32(),
        config: e.u32(),
    }
}

fn oxm_id(e: &mut Entropy<'_>, version: Version) -> OxmId {
    match e.below_or(2, 2) {
        2 => OxmId::Unknown(0x8000_fe00 | u32::from(e.u8())),
        3 => {
            OxmId::Experimenter { header: 0xffff_0000 | u32::from(e.u16()), experimenter: e.u32() }
        }
        _ => {
            let fields: Vec<_> = FIELDS.iter().filter(|row| row.field.is_in(version)).collect();
            OxmId::Basic { field: e.pick(&fields).field, maskable: e.bool() }
        }
    }
}

fn type_id<Kind>(e: &mut Entropy<'_>, known: impl Fn(&mut Entropy<'_>) -> Kind) -> TypeId<Kind> {
    match e.below_or(2, 2) {
        2 => TypeId::Unknown(0x100 | u16::from(e.u8())),
        3 => TypeId::Experimenter(e.u32()),
        _ => TypeId::Known(known(e)),
    }
}

fn instruction_id(e: &mut Entropy<'_>, version: Version) -> TypeId<InstructionKind> {
    let kinds: Vec<InstructionKind> = INSTRUCTIONS
        .iter()
        .map(|row| row.kind)
        .filter(|kind| *kind != InstructionKind::Experimenter && kind.number(version).is_some())
        .collect();
    type_id(e, |e| e.pick(&kinds))
}

fn action_id(e: &mut Entropy<'_>) -> TypeId<ActionKind> {
    let kinds: Vec<ActionKind> = ACTIONS
        .iter()
        .filter(|row| {
            row.kind.number(Version::V1_3).is_some() && row.kind != ActionKind::Experimenter
        })
        .map(|row| row.kind)
        .collect();
    type_id(e, |e| e.pick(&kinds))
}

/// Settings of a table, as a message of the version has them.
pub(crate) fn table(e: &mut Entropy<'_>, version: Version) -> TableMod {
    let mut table = TableMod::new(TableId(e.u8()), e.u32());
    if version.has_importance() {
        table.eviction = e.bool().then(|| e.u32());
        let vacancy = Vacancy { down: e.u8(), up: e.u8(), now: e.u8() };
        table.vacancy = e.bool().then_some(vacancy);
    }
    table
}

fn property(e: &mut Entropy<'_>, version: Version) -> TableProperty {
    let on = e.pick(&[OnPacket::Hit, OnPacket::Miss]);
    match e.below_or(8, 1) {
        1 if version.has_table_synchronisation() && e.bool() => {
            TableProperty::SynchronisedFrom(e.list(|e| TableId(e.u8())))
        }
        1 if version.has_packet_types() => match e.below(3) {
            0 => TableProperty::WriteCopyField(on, e.list(|e| oxm_id(e, version))),
            1 => TableProperty::ApplyCopyField(on, e.list(|e| oxm_id(e, version))),
            _ => TableProperty::PacketTypes(e.list(Entropy::u32)),
        },
        0 => TableProperty::Instructions(on, e.list(|e| instruction_id(e, version))),
        1 => TableProperty::NextTables(on, e.list(|e| TableId(e.u8()))),
        2 => TableProperty::WriteActions(on, e.list(action_id)),
        3 => TableProperty::ApplyActions(on, e.list(action_id)),
        4 => TableProperty::Match(e.list(|e| oxm_id(e, version))),
        5 => TableProperty::Wildcards(e.list(|e| oxm_id(e, version))),
        6 => TableProperty::WriteSetField(on, e.list(|e| oxm_id(e, version))),
        7 => TableProperty::ApplySetField(on, e.list(|e| oxm_id(e, version))),
        8.. => TableProperty::Experimenter {
            on,
            experimenter: e.u32(),
            exp_type: e.u32(),
            data: e.data(1),
        },
    }
}

pub(crate) fn table_features(e: &mut Entropy<'_>, version: Version) -> TableFeatures {
    TableFeatures {
        table_id: TableId(e.u8()),
        name: e.text(31),
        metadata_match: e.u64(),
        metadata_write: e.u64(),
        config: e.u32(),
        max_entries: e.u32(),
        properties: e.list(|e| property(e, version)),
    }
}
