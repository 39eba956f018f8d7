//! Compares our description of a message with os-ken's decoding.
//!
//! Lengths are not compared, since the codec does not keep them; what os-ken says of Nicira's and
//! ONF's own elements is compared by whose they are.

use openflow::Field;
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
        "oxm_fields" => same(path, ours, &known_fields(theirs)),
        "wildcards" => same(path, &capped(ours), &capped(theirs)),
        "state" if path.contains("OFPPhyPort") => {
            let known = theirs.as_u64().unwrap() & STATE_V1_0;
            same(path, ours, &known.into())
        }
        "data" if theirs.is_object() => Ok(()),
        _ => same(path, ours, theirs),
    }
}

/// The fields in the order of their numbers; os-ken knows more fields than 1.3 has.
fn known_fields(fields: &Value) -> Value {
    let field = |tlv: &Value| Field::from_name(tlv["OXMTlv"]["field"].as_str().unwrap());
    let mut known: Vec<Value> = fields.as_array().unwrap().clone();
    known.retain(|tlv| field(tlv).is_some());
    known.sort_by_key(field);
    Value::Array(known)
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
                if !is_unknown_field(element) {
                    all.extend(leaves(element).into_iter().map(|rest| format!("/{at}{rest}")));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            all.push(String::new());
        }
    }
    all
}

fn is_unknown_field(element: &Value) -> bool {
    let name = element.pointer("/OXMTlv/field").and_then(Value::as_str);
    name.is_some_and(|name| Field::from_name(name).is_none())
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
