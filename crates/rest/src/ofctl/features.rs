//! Features of tables with the keys that Ryu prints: types by number, fields by name.

use crate::words;
use openflow::field::OXM_CLASS_BASIC;
use openflow::table::{OnPacket, OxmId, TableFeatures, TableProperty, TypeId};
use openflow::{ActionKind, InstructionKind, Version};
use serde_json::{Value, json};

/// Bytes of an instruction or action in a list of types, and of an experimenter's.
const ID_LEN: u32 = 4;
const EXPERIMENTER_ID_LEN: u32 = 8;
/// The type number of an experimenter's instruction or action.
const EXPERIMENTER: u32 = 0xffff;

pub(crate) fn table(version: Version, features: &TableFeatures) -> Value {
    let properties = features.properties.iter().map(|it| property(version, it));
    json!({
        "table_id": words::TABLES.value(features.table_id.0.into()),
        "name": features.name,
        "metadata_match": features.metadata_match,
        "metadata_write": features.metadata_write,
        "config": features.config,
        "max_entries": features.max_entries,
        "properties": properties.collect::<Vec<_>>(),
    })
}

fn property(version: Version, property: &TableProperty) -> Value {
    let action = |id: &TypeId<ActionKind>| {
        type_id(*id, |kind| kind.number(version).map_or(EXPERIMENTER, u32::from))
    };
    let instruction = |id: &TypeId<InstructionKind>| {
        type_id(*id, |kind| kind.number(version).map_or(EXPERIMENTER, u32::from))
    };
    let (name, on, key, list): (&str, OnPacket, &str, Vec<Value>) = match property {
        TableProperty::Instructions(on, list) => {
            ("INSTRUCTIONS", *on, "instruction_ids", list.iter().map(instruction).collect())
        }
        TableProperty::NextTables(on, list) => {
            ("NEXT_TABLES", *on, "table_ids", list.iter().map(|it| it.0.into()).collect())
        }
        TableProperty::WriteActions(on, list) => {
            ("WRITE_ACTIONS", *on, "action_ids", list.iter().map(action).collect())
        }
        TableProperty::ApplyActions(on, list) => {
            ("APPLY_ACTIONS", *on, "action_ids", list.iter().map(action).collect())
        }
        TableProperty::Match(list) => {
            ("MATCH", OnPacket::Hit, "oxm_ids", list.iter().map(oxm_id).collect())
        }
        TableProperty::Wildcards(list) => {
            ("WILDCARDS", OnPacket::Hit, "oxm_ids", list.iter().map(oxm_id).collect())
        }
        TableProperty::WriteSetField(on, list) => {
            ("WRITE_SETFIELD", *on, "oxm_ids", list.iter().map(oxm_id).collect())
        }
        TableProperty::ApplySetField(on, list) => {
            ("APPLY_SETFIELD", *on, "oxm_ids", list.iter().map(oxm_id).collect())
        }
        TableProperty::SynchronisedFrom(list) => (
            "TABLE_SYNC_FROM",
            OnPacket::Hit,
            "table_ids",
            list.iter().map(|it| it.0.into()).collect(),
        ),
        TableProperty::WriteCopyField(on, list) => {
            ("WRITE_COPYFIELD", *on, "oxm_ids", list.iter().map(oxm_id).collect())
        }
        TableProperty::ApplyCopyField(on, list) => {
            ("APPLY_COPYFIELD", *on, "oxm_ids", list.iter().map(oxm_id).collect())
        }
        TableProperty::PacketTypes(list) => (
            "PACKET_TYPES",
            OnPacket::Hit,
            "oxm_values",
            list.iter().copied().map(Value::from).collect(),
        ),
        TableProperty::Experimenter { on, .. } => {
            return json!({"type": named("EXPERIMENTER", *on)});
        }
    };
    json!({"type": named(name, on), key: list})
}

fn named(name: &str, on: OnPacket) -> String {
    match on {
        OnPacket::Hit => name.to_owned(),
        OnPacket::Miss => format!("{name}_MISS"),
    }
}

fn type_id<Kind: Copy>(id: TypeId<Kind>, number: impl Fn(Kind) -> u32) -> Value {
    let (number, len) = match id {
        TypeId::Known(kind) => (number(kind), ID_LEN),
        TypeId::Unknown(number) => (number.into(), ID_LEN),
        TypeId::Experimenter(_) => (EXPERIMENTER, EXPERIMENTER_ID_LEN),
    };
    json!({"type": number, "len": len})
}

fn oxm_id(id: &OxmId) -> Value {
    match id {
        OxmId::Basic { field, maskable } => {
            let bytes = field.bytes();
            let length = if *maskable { 2 * bytes } else { bytes };
            json!({"type": field.row().name, "hasmask": u8::from(*maskable), "length": length})
        }
        OxmId::Unknown(header) | OxmId::Experimenter { header, .. } => {
            let (class, field) = (header >> 16, header >> 9 & 0x7f);
            // The number with its class, as Ryu names a field that it does not know.
            let number = if class == u32::from(OXM_CLASS_BASIC) { field } else { header >> 9 };
            json!({
                "type": format!("field_{number}"),
                "hasmask": header >> 8 & 1,
                "length": header & 0xff,
            })
        }
    }
}
