//! The values of columns (RFC 7047, 5.1): atoms, sets of them, and maps from one to another.
//!
//! A single atom is a set of one, as in the database itself. The order of a set has no meaning, so
//! values are kept sorted and equal ones are equal here.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

/// The identity of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub u128);

impl FromStr for Uuid {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bytes = text.as_bytes();
        let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
        let is_plain = bytes.len() == 36
            && bytes.iter().enumerate().all(|(at, byte)| match is_dash(at) {
                true => *byte == b'-',
                false => byte.is_ascii_hexdigit(),
            });
        let number = u128::from_str_radix(&text.replace('-', ""), 16);
        number.ok().filter(|_| is_plain).map(Self).ok_or(BadValue("a uuid has 36 hex digits"))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, low) = (self.0, |shift: u32| (self.0 >> shift) as u16);
        let first = (number >> 96) as u32;
        let last = number & 0xffff_ffff_ffff;
        write!(f, "{first:08x}-{:04x}-{:04x}-{:04x}-{last:012x}", low(80), low(64), low(48))
    }
}

/// An atom.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Atom {
    /// An integer.
    Integer(i64),
    /// A real number.
    Real(f64),
    /// A truth value.
    Boolean(bool),
    /// A string.
    Text(String),
    /// A row.
    Uuid(Uuid),
}

impl From<&str> for Atom {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for Atom {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for Atom {
    fn from(truth: bool) -> Self {
        Self::Boolean(truth)
    }
}

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// Any number of atoms.
    Set(Vec<Atom>),
    /// Atoms by atoms.
    Map(Vec<(Atom, Atom)>),
}

/// A JSON value that is none of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a value of a column: {0}")]
pub struct BadValue(pub(crate) &'static str);

impl Datum {
    /// No atom: what an optional column has that is not set.
    pub const EMPTY: Self = Self::Set(Vec::new());

    /// One atom.
    pub fn one(atom: impl Into<Atom>) -> Self {
        Self::Set(vec![atom.into()])
    }

    /// One atom, or none.
    pub fn optional(atom: Option<impl Into<Atom>>) -> Self {
        Self::Set(atom.map(Into::into).into_iter().collect())
    }

    /// Strings.
    pub fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Set(sorted(texts.into_iter().map(Atom::from).collect()))
    }

    /// A map from strings.
    pub fn map<'a, V: Into<Atom>>(pairs: impl IntoIterator<Item = (&'a str, V)>) -> Self {
        let pairs = pairs.into_iter().map(|(key, value)| (Atom::from(key), value.into()));
        Self::Map(sorted(pairs.collect()))
    }

    /// Reads a value.
    ///
    /// # Errors
    /// It is none.
    pub fn read(value: &Value) -> Result<Self, BadValue> {
        let Value::Array(parts) = value else { return Ok(Self::Set(vec![atom(value)?])) };
        match &parts[..] {
            [Value::String(word), Value::Array(atoms)] if word == "set" => {
                let atoms: Result<Vec<_>, _> = atoms.iter().map(atom).collect();
                Ok(Self::Set(sorted(atoms?)))
            }
            [Value::String(word), Value::Array(pairs)] if word == "map" => {
                let pair = |pair: &Value| match pair.as_array().map(Vec::as_slice) {
                    Some([key, value]) => Ok((atom(key)?, atom(value)?)),
                    Some(_) | None => Err(BadValue("a map has pairs")),
                };
                let pairs: Result<Vec<_>, _> = pairs.iter().map(pair).collect();
                Ok(Self::Map(sorted(pairs?)))
            }
            _ => Ok(Self::Set(vec![atom(value)?])),
        }
    }

    /// The value as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Set(atoms) => match &atoms[..] {
                [one] => json_of(one),
                several => json!(["set", several.iter().map(json_of).collect::<Vec<_>>()]),
            },
            Self::Map(pairs) => {
                let pairs: Vec<Value> = pairs
                    .iter()
                    .map(|(key, value)| json!([json_of(key), json_of(value)]))
                    .collect();
                json!(["map", pairs])
            }
        }
    }

    /// The atoms of a set; none of a map.
    #[must_use]
    pub fn atoms(&self) -> &[Atom] {
        match self {
            Self::Set(atoms) => atoms,
            Self::Map(_) => &[],
        }
    }
}

/// The atoms in their order; real numbers that have none stay where they are.
fn sorted<T: PartialOrd>(mut atoms: Vec<T>) -> Vec<T> {
    atoms.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    atoms
}

fn atom(value: &Value) -> Result<Atom, BadValue> {
    match value {
        Value::Bool(truth) => Ok(Atom::Boolean(*truth)),
        Value::String(text) => Ok(Atom::Text(text.clone())),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Ok(Atom::Integer(number)),
            None => number.as_f64().map(Atom::Real).ok_or(BadValue("a number that is too large")),
        },
        Value::Array(parts) => match &parts[..] {
            [Value::String(word), Value::String(text)] if word == "uuid" => {
                text.parse().map(Atom::Uuid)
            }
            _ => Err(BadValue("an array that is no uuid")),
        },
        Value::Null | Value::Object(_) => Err(BadValue("no atom")),
    }
}

fn json_of(atom: &Atom) -> Value {
    match atom {
        Atom::Integer(number) => json!(number),
        Atom::Real(number) => json!(number),
        Atom::Boolean(truth) => json!(truth),
        Atom::Text(text) => json!(text),
        Atom::Uuid(uuid) => json!(["uuid", uuid.to_string()]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Atom, Datum, Uuid};

    #[test]
    fn values_lead_back_and_sets_have_no_order() {
        let uuid = "24efc8e7-2a32-4e1b-9eb2-b0bfa0b5d71c";
        for value in [
            json!("br0"),
            json!(7),
            json!(0.5),
            json!(true),
            json!(["uuid", uuid]),
            json!(["set", []]),
            json!(["set", [["uuid", uuid], ["uuid", "f4efc8e7-2a32-4e1b-9eb2-b0bfa0b5d71c"]]]),
            json!(["map", [["a", "1"], ["b", ["uuid", uuid]]]]),
        ] {
            assert_eq!(Datum::read(&value).unwrap().to_json(), value);
        }
        assert_eq!(Datum::read(&json!(["set", [1]])), Ok(Datum::one(1)), "as the server may write");
        assert_eq!(Datum::read(&json!(["set", ["b", "a"]])), Ok(Datum::texts(["a", "b"])));
        assert_eq!(uuid.parse::<Uuid>().unwrap().to_string(), uuid);
        assert_eq!(Datum::one(3).atoms(), [Atom::Integer(3)]);
    }

    #[test]
    fn other_json_is_refused() {
        for value in [
            Value::Null,
            json!({}),
            json!([]),
            json!(["set"]),
            json!(["set", [[]]]),
            json!(["set", [["set", []]]]),
            json!(["map", [[1]]]),
            json!(["map", [1]]),
            json!(["uuid", "24efc8e7"]),
            json!(["uuid", "24efc8e7x2a32-4e1b-9eb2-b0bfa0b5d71c"]),
            json!(["uuid", "+4efc8e7-2a32-4e1b-9eb2-b0bfa0b5d71c"]),
            json!(["named-uuid", "row1"]),
        ] {
            assert!(Datum::read(&value).is_err(), "{value}");
        }
    }
}
