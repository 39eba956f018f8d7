//! Fields that differ from frame to frame: counted up or down, drawn at random, or from a list, and
//! several fields together.
//!
//! A value is written as its field is: a number, an Ethernet address, an IPv4 or an IPv6 address.
//! The names of fields depend on the stream's headers; they are checked when it is loaded.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One field, or several that change together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ModifierText", into = "ModifierText")]
pub enum Modifier {
    /// One field.
    Field(FieldModifier),
    /// Several fields whose values belong together.
    Tuples(TupleModifier),
}

/// A field with another value in each frame. Both ends of the range are its field's where they are
/// not given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldModifier {
    /// The field, `ipv4.dst`; `ipv4#2.dst` is that of the second IPv4 header.
    pub field: String,
    /// The change of the value from frame to frame.
    pub op: ModifierOp,
    /// The first value; otherwise `min`, or `max` when counting down. Not for lists and random
    /// values.
    pub start: Option<FieldValue>,
    /// The least value.
    pub min: Option<FieldValue>,
    /// The greatest value.
    pub max: Option<FieldValue>,
    /// From one value to the next; 1 where it is not given.
    pub step: Option<u64>,
    /// The values of a list.
    pub values: Vec<FieldValue>,
    /// The seed of random values; 1 where it is not given.
    pub seed: Option<u64>,
}

/// Fields whose values are taken from one row of a table, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TupleModifier {
    /// The fields.
    pub fields: Vec<String>,
    /// The rows, with a value for each field.
    pub tuples: Vec<Vec<FieldValue>>,
}

/// A field's change from frame to frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModifierOp {
    /// Up by `step`; after the greatest value comes the least.
    Increment,
    /// Down by `step`; after the least value comes the greatest.
    Decrement,
    /// Drawn with equal chances from the values `min`, `min + step`, and so on.
    Random,
    /// The values of a list, in turn.
    List,
}

/// The value of a field as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a value is a number or an address such as \"10.0.0.1\"")]
pub enum FieldValue {
    /// A number.
    Number(u64),
    /// An address, or a number as text.
    Text(String),
}

impl FieldModifier {
    /// A modifier that counts a field up through its whole range.
    #[must_use]
    pub fn new(field: &str, op: ModifierOp) -> Self {
        Self {
            field: field.to_owned(),
            op,
            start: None,
            min: None,
            max: None,
            step: None,
            values: Vec::new(),
            seed: None,
        }
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<u64> for FieldValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for FieldValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// All keys that a modifier can have, so that a wrong one is named beside the others.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ModifierText {
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<ModifierOp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<FieldValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<FieldValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<FieldValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<FieldValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tuples: Vec<Vec<FieldValue>>,
}

impl TryFrom<ModifierText> for Modifier {
    type Error = &'static str;

    fn try_from(text: ModifierText) -> Result<Self, &'static str> {
        let ModifierText { field, op, start, min, max, step, values, seed, fields, tuples } = text;
        match (field, op) {
            (Some(field), Some(op)) if fields.is_empty() && tuples.is_empty() => {
                Ok(Self::Field(FieldModifier { field, op, start, min, max, step, values, seed }))
            }
            (None, None) if !fields.is_empty() => {
                let others = [start, min, max].iter().any(Option::is_some)
                    || step.is_some()
                    || seed.is_some()
                    || !values.is_empty();
                if others {
                    return Err("beside fields and tuples nothing else is allowed");
                }
                Ok(Self::Tuples(TupleModifier { fields, tuples }))
            }
            _ => Err("a modifier has either field and op, or fields and tuples"),
        }
    }
}

impl From<Modifier> for ModifierText {
    fn from(modifier: Modifier) -> Self {
        match modifier {
            Modifier::Field(FieldModifier { field, op, start, min, max, step, values, seed }) => {
                Self {
                    field: Some(field),
                    op: Some(op),
                    start,
                    min,
                    max,
                    step,
                    values,
                    seed,
                    ..Self::default()
                }
            }
            Modifier::Tuples(TupleModifier { fields, tuples }) => {
                Self { fields, tuples, ..Self::default() }
            }
        }
    }
}
