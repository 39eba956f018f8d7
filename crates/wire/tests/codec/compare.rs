//! Compares our description of a message with os-ken's decoding.
//!
//! Lengths are not compared, since the codec does not keep them; what os-ken says of Nicira's and
//! ONF's own elements is compared by whose they are.

use openflow::{Field, Version};
use serde_json::Value;

/// Members that follow from the others.
const DERIVED: &[&str] = &["len", "length", "actions_len", "match_len"];
/// State bits of a port that 1.0 knows.
const STATE_V1_0: u64 = 0x301;

/// `Err` says where they differ.
pub(crate) fn same(path: &str, ours: &Value, theirs: &Value) -> Result<(), String> {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, their) in theirs.iter().filter(|(key, _)| !DERIVED.contains(&key.as_str())) {
                let path = format!("{path}/{key}");
                match ours.get(key) {
                    Some(our) => member(&path, key, our, their)?,
                    None => foreign(&path, key, ours, their)?,
                }
            }
            let extra = ours.keys().find(|key| {
                !theirs.contains_key(*key) && !theirs.keys().any(|their| is_foreign(their))
            });
            extra.map_or(Ok(()), |key| Err(format!("{path}: they have no {key}")))
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            if ours.len() != theirs.len() {
                return Err(format!("{path}: {} elements, they {}", ours.len(), theirs.len()));
            }
            for (at, (our, their)) in ours.iter().zip(theirs).enumerate() {
                same(&format!("{path}[{at}]"), our, their)?;
            }
            Ok(())
        }
        (ours, theirs) if ours == theirs => Ok(()),
        (ours, theirs) => Err(format!("{path}: {ours}, they {theirs}")),
    }
}

fn member(path: &str, key: &str, ours: &Value, theirs: &Value) -> Result<(), String> {
    match key {
        "oxm_fields" => same(path, ours, &in_order(theirs)),
        "wildcards" => same(path, &capped(ours), &capped(theirs)),
        "state" if path.contains("OFPPhyPort") => {
            let known = theirs.as_u64().unwrap() & STATE_V1_0;
            same(path, ours, &known.into())
        }
        "data" if theirs.is_object() => Ok(()),
        _ => same(path, ours, theirs),
    }
}

/// The fields in the order of their numbers.
fn in_order(fields: &Value) -> Value {
    let mut fields: Vec<Value> = fields.as_array().unwrap().clone();
    fields.sort_by_key(field);
    Value::Array(fields)
}

fn field(tlv: &Value) -> Option<Field> {
    Field::from_name(tlv.pointer("/OXMTlv/field")?.as_str()?)
}

/// Os-ken's decoding without the fields that the version does not have.
pub(crate) fn of_version(version: Version, mut theirs: Value) -> Value {
    fn reduce(version: Version, value: &mut Value) {
        match value {
            Value::Object(members) => members.values_mut().for_each(|it| reduce(version, it)),
            Value::Array(elements) => {
                let is_known = |tlv: &Value| field(tlv).is_some_and(|field| field.is_in(version));
                elements.retain(|it| it.get("OXMTlv").is_none() || is_known(it));
                elements.iter_mut().for_each(|it| reduce(version, it));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    reduce(version, &mut theirs);
    theirs
}

/// 1.0's wildcards with the counts of the addresses' bits at most 32.
fn capped(wildcards: &Value) -> Value {
    let bits = wildcards.as_u64().unwrap();
    let count = |shift: u32| (bits >> shift & 0x3f).min(32) << shift;
    (bits & !(0x3f << 8 | 0x3f << 14) | count(8) | count(14)).into()
}

fn is_foreign(name: &str) -> bool {
    name.starts_with("NX") || name.starts_with("ONF")
}

/// An element that os-ken knows and OpenFlow does not: ours must be an experimenter's of the same.
fn foreign(
    path: &str,
    name: &str,
    ours: &serde_json::Map<String, Value>,
    theirs: &Value,
) -> Result<(), String> {
    let our = ours.values().next().filter(|_| is_foreign(name));
    let Some(our) = our else { return Err(format!("{path}: we have {ours:?}")) };
    let whose = |value: &Value| {
        let named = value.get("experimenter").or_else(|| value.get("vendor"));
        (named.cloned(), value.get("exp_type").cloned())
    };
    if whose(our) == whose(theirs) { Ok(()) } else { Err(format!("{path}: ours is {our}")) }
}

/// Pointers to all values that are to be compared.
pub(crate) fn leaves(theirs: &Value) -> Vec<String> {
    let mut all = Vec::new();
    match theirs {
        Value::Object(members) => {
            for (key, member) in members {
                let packet = key == "data" && member.is_object();
                if !DERIVED.contains(&key.as_str()) && !is_foreign(key) && !packet {
                    all.extend(leaves(member).into_iter().map(|rest| format!("/{key}{rest}")));
                }
            }
        }
        Value::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                all.extend(leaves(element).into_iter().map(|rest| format!("/{at}{rest}")));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            all.push(String::new());
        }
    }
    all
}

/// Changes a value a little.
pub(crate) fn change(value: &mut Value) {
    *value = match value {
        Value::Number(number) => (number.as_u64().unwrap() ^ 1).into(),
        Value::String(text) => format!("{text}x").into(),
        Value::Null => 1.into(),
        other => panic!("{other} is no leaf"),
    };
}
