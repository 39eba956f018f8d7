//! Features of a table, as a list of properties (clause 7.3.5.5), since 1.3.
//!
//! Lengths and types that are wrong have errors of their own, `OFPTFFC_BAD_LEN` and
//! `OFPTFFC_BAD_TYPE`. Whether the properties make sense together is not for the codec to judge.

use openflow::table::{OnPacket, OxmId, TableFeatures, TableProperty, TypeId};
use openflow::{ActionKind, Error, InstructionKind, TableId};

use crate::oxm;
use crate::reader::{self, Reader};
use crate::table::NAME_LEN;
use crate::writer::{self, Writer};

/// `OFPTFPT_*`: the number of a property for hits; the one for misses follows it.
const INSTRUCTIONS: u16 = 0;
const NEXT_TABLES: u16 = 2;
const WRITE_ACTIONS: u16 = 4;
const APPLY_ACTIONS: u16 = 6;
const MATCH: u16 = 8;
const WILDCARDS: u16 = 10;
const WRITE_SETFIELD: u16 = 12;
const APPLY_SETFIELD: u16 = 14;
/// `OFPTFPT_TABLE_SYNC_FROM`, from 1.4 on.
const SYNCHRONISED_FROM: u16 = 16;
/// `OFPTFPT_WRITE_COPYFIELD` and `OFPTFPT_APPLY_COPYFIELD`, from 1.5 on.
const WRITE_COPYFIELD: u16 = 18;
const APPLY_COPYFIELD: u16 = 20;
/// `OFPTFPT_PACKET_TYPES`, from 1.5 on.
const PACKET_TYPES: u16 = 22;
const EXPERIMENTER: u16 = 0xfffe;
/// `OFPTFC_REPLACE`.
const REPLACE: u8 = 0;
/// `OFPTFF_INGRESS_TABLE`.
const INGRESS_TABLE: u32 = 1;
/// Type number of an experimenter's instruction or action.
const TYPE_EXPERIMENTER: u16 = 0xffff;

pub(crate) fn read(r: &mut Reader<'_>) -> reader::ReadResult<TableFeatures> {
    let mut r = r.sized("table features")?.reading("table features", Error::TableFeaturesBadLen);
    let table_id = TableId(r.u8()?);
    r.skip(5)?;
    let mut features = TableFeatures {
        table_id,
        name: r.text(NAME_LEN)?,
        metadata_match: r.u64()?,
        metadata_write: r.u64()?,
        config: r.u32()?,
        max_entries: r.u32()?,
        properties: Vec::new(),
    };
    while !r.is_empty() {
        features.properties.push(read_property(&mut r)?);
    }
    Ok(features)
}

/// Reads features that a controller asks for. Those of all tables are replaced, and none is for
/// packets that leave.
pub(crate) fn read_asked(r: &mut Reader<'_>) -> reader::ReadResult<TableFeatures> {
    if r.version.has_egress_tables() {
        let mut head = r.clone().reading("table features", Error::TableFeaturesBadLen);
        head.skip(3)?;
        let start = head.clone();
        if head.u8()? != REPLACE {
            return Err(start.fault(Error::TableFeaturesBadCommand));
        }
        if head.u32()? & !INGRESS_TABLE != 0 {
            return Err(start.fault(Error::TableFeaturesBadFeatures));
        }
    }
    read(r)
}

fn read_property(r: &mut Reader<'_>) -> reader::ReadResult<TableProperty> {
    let start = r.clone();
    let (number, len, mut body) = r.element()?;
    r.skip(len.next_multiple_of(8) - len)?;
    let on = if number % 2 == 0 { OnPacket::Hit } else { OnPacket::Miss };
    let r = &mut body;
    Ok(match number {
        MATCH => TableProperty::Match(read_all(r, oxm::read_id)?),
        WILDCARDS => TableProperty::Wildcards(read_all(r, oxm::read_id)?),
        SYNCHRONISED_FROM if r.version.has_table_synchronisation() => {
            TableProperty::SynchronisedFrom(read_tables(r))
        }
        PACKET_TYPES if r.version.has_packet_types() => {
            TableProperty::PacketTypes(oxm::read_packet_types(r)?)
        }
        _ => match number & !1 {
            WRITE_COPYFIELD if r.version.has_packet_types() => {
                TableProperty::WriteCopyField(on, read_all(r, oxm::read_id)?)
            }
            APPLY_COPYFIELD if r.version.has_packet_types() => {
                TableProperty::ApplyCopyField(on, read_all(r, oxm::read_id)?)
            }
            INSTRUCTIONS => TableProperty::Instructions(on, read_all(r, read_instruction)?),
            NEXT_TABLES => TableProperty::NextTables(on, read_tables(r)),
            WRITE_ACTIONS => TableProperty::WriteActions(on, read_all(r, read_action)?),
            APPLY_ACTIONS => TableProperty::ApplyActions(on, read_all(r, read_action)?),
            WRITE_SETFIELD => TableProperty::WriteSetField(on, read_all(r, oxm::read_id)?),
            APPLY_SETFIELD => TableProperty::ApplySetField(on, read_all(r, oxm::read_id)?),
            EXPERIMENTER => TableProperty::Experimenter {
                on,
                experimenter: r.u32()?,
                exp_type: r.u32()?,
                data: r.rest().to_vec(),
            },
            _ => return Err(start.fault(Error::TableFeaturesBadType)),
        },
    })
}

/// Reads all that is left as numbers of tables.
fn read_tables(r: &mut Reader<'_>) -> Vec<TableId> {
    r.rest().iter().copied().map(TableId).collect()
}

fn read_all<'a, T>(
    r: &mut Reader<'a>,
    read: impl Fn(&mut Reader<'a>) -> reader::ReadResult<T>,
) -> reader::ReadResult<Vec<T>> {
    let mut all = Vec::new();
    while !r.is_empty() {
        all.push(read(r)?);
    }
    Ok(all)
}

fn read_instruction(r: &mut Reader<'_>) -> reader::ReadResult<TypeId<InstructionKind>> {
    let version = r.version;
    read_type(r, |number| InstructionKind::from_number(version, number))
}

fn read_action(r: &mut Reader<'_>) -> reader::ReadResult<TypeId<ActionKind>> {
    let version = r.version;
    read_type(r, |number| ActionKind::from_number(version, number))
}

/// Reads type and length without a body; an experimenter's has its id behind it.
fn read_type<Kind>(
    r: &mut Reader<'_>,
    known: impl Fn(u16) -> Option<Kind>,
) -> reader::ReadResult<TypeId<Kind>> {
    let (number, _, mut body) = r.element()?;
    let id = match (number, known(number)) {
        (TYPE_EXPERIMENTER, _) => TypeId::Experimenter(body.u32()?),
        (_, Some(kind)) => TypeId::Known(kind),
        (number, None) => TypeId::Unknown(number),
    };
    body.finish()?;
    Ok(id)
}

pub(crate) fn write(w: &mut Writer<'_>, features: &TableFeatures) -> writer::WriteResult<()> {
    let start = w.place();
    w.u16(0);
    w.u8(features.table_id.0);
    w.u8(REPLACE);
    w.u32(if w.version.has_egress_tables() { INGRESS_TABLE } else { 0 });
    w.text(&features.name, NAME_LEN);
    w.u64(features.metadata_match);
    w.u64(features.metadata_write);
    w.u32(features.config);
    w.u32(features.max_entries);
    for property in &features.properties {
        write_property(w, property)?;
    }
    w.fill_len(start, start, "table features")
}

fn numbered(hit: u16, on: OnPacket) -> u16 {
    match on {
        OnPacket::Hit => hit,
        OnPacket::Miss => hit + 1,
    }
}

fn write_property(w: &mut Writer<'_>, property: &TableProperty) -> writer::WriteResult<()> {
    let (start, version) = (w.place(), w.version);
    let is_later = matches!(property, TableProperty::SynchronisedFrom(_));
    w.require(version.has_table_synchronisation() || !is_later, "synchronised tables")?;
    let is_later = matches!(
        property,
        TableProperty::WriteCopyField(..)
            | TableProperty::ApplyCopyField(..)
            | TableProperty::PacketTypes(_)
    );
    w.require(version.has_packet_types() || !is_later, "copy-field and packet types of a table")?;
    w.u16(match property {
        TableProperty::Instructions(on, _) => numbered(INSTRUCTIONS, *on),
        TableProperty::NextTables(on, _) => numbered(NEXT_TABLES, *on),
        TableProperty::WriteActions(on, _) => numbered(WRITE_ACTIONS, *on),
        TableProperty::ApplyActions(on, _) => numbered(APPLY_ACTIONS, *on),
        TableProperty::Match(_) => MATCH,
        TableProperty::Wildcards(_) => WILDCARDS,
        TableProperty::WriteSetField(on, _) => numbered(WRITE_SETFIELD, *on),
        TableProperty::ApplySetField(on, _) => numbered(APPLY_SETFIELD, *on),
        TableProperty::SynchronisedFrom(_) => SYNCHRONISED_FROM,
        TableProperty::WriteCopyField(on, _) => numbered(WRITE_COPYFIELD, *on),
        TableProperty::ApplyCopyField(on, _) => numbered(APPLY_COPYFIELD, *on),
        TableProperty::PacketTypes(_) => PACKET_TYPES,
        TableProperty::Experimenter { on, .. } => numbered(EXPERIMENTER, *on),
    });
    w.u16(0);
    match property {
        TableProperty::Instructions(_, ids) => {
            ids.iter().try_for_each(|id| write_type(w, *id, |kind| kind.number(version)))?;
        }
        TableProperty::NextTables(_, tables) | TableProperty::SynchronisedFrom(tables) => {
            w.all(tables.iter().map(|table| table.0));
        }
        TableProperty::WriteActions(_, ids) | TableProperty::ApplyActions(_, ids) => {
            ids.iter().try_for_each(|id| write_type(w, *id, |kind| kind.number(version)))?;
        }
        TableProperty::Match(ids)
        | TableProperty::Wildcards(ids)
        | TableProperty::WriteSetField(_, ids)
        | TableProperty::ApplySetField(_, ids)
        | TableProperty::WriteCopyField(_, ids)
        | TableProperty::ApplyCopyField(_, ids) => {
            ids.iter().for_each(|id: &OxmId| oxm::write_id(w, *id));
        }
        TableProperty::PacketTypes(types) => {
            types.iter().for_each(|packet_type| oxm::write_packet_type(w, *packet_type));
        }
        TableProperty::Experimenter { experimenter, exp_type, data, .. } => {
            w.u32(*experimenter);
            w.u32(*exp_type);
            w.bytes(data);
        }
    }
    w.fill_len(start + 2, start, "property of a table")?;
    w.pad_from(start);
    Ok(())
}

fn write_type<Kind>(
    w: &mut Writer<'_>,
    id: TypeId<Kind>,
    number: impl Fn(Kind) -> Option<u16>,
) -> writer::WriteResult<()> {
    match id {
        TypeId::Known(kind) => {
            w.u16(number(kind).ok_or_else(|| w.unsupported("action in table features"))?);
            w.u16(4);
        }
        TypeId::Unknown(number) => {
            w.u16(number);
            w.u16(4);
        }
        TypeId::Experimenter(experimenter) => {
            w.u16(TYPE_EXPERIMENTER);
            w.u16(8);
            w.u32(experimenter);
        }
    }
    Ok(())
}
