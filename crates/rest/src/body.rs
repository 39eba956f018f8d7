//! Bodies of requests: JSON, and the Python literals that Ryu took.
//!
//! Ryu read the bodies of its writes with `ast.literal_eval` and those of its filters as JSON, so
//! scripts send both. Here every body may be either. A key that stands twice is refused, since one
//! of the two would be lost without a word.

use crate::literal;
use crate::problem::Problem;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// The value of a body; `Null` when it is empty, and only then.
///
/// # Errors
/// When it is neither JSON nor a Python literal (the words say where it stops being either), or is
/// nothing in words.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, Problem> {
    let value = parsed(bytes)?;
    if value.is_null() && !bytes.trim_ascii().is_empty() {
        return Err(Problem::bad("the body is null; one that is not there is empty"));
    }
    Ok(value)
}

fn parsed(bytes: &[u8]) -> Result<Value, Problem> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Problem::bad(format!("the body is not UTF-8: {error}")))?;
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let json_error = match json(text) {
        Ok(value) => return Ok(value),
        Err(error) if error.is_data() => return Err(Problem::bad(error.to_string())),
        Err(error) => error,
    };
    literal::parse(text).map_err(|error| {
        let words = format!("the body is not JSON ({json_error}), nor a Python literal ({error})");
        Problem::bad(words)
    })
}

fn json(text: &str) -> serde_json::Result<Value> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Distinct.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Reads a value whose objects have each key once.
struct Distinct;

impl<'de> DeserializeSeed<'de> for Distinct {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Distinct {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(Self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(Self)?;
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{key}` stands twice")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use serde_json::{Value, json};

    #[test]
    fn json_and_python_give_the_same() {
        let expected = json!({"dpid": 1, "match": {"in_port": 2}, "actions": [], "x": null});
        for body in [
            r#"{"dpid": 1, "match": {"in_port": 2}, "actions": [], "x": null}"#,
            "{'dpid': 0x1, 'match': {'in_port': 2,}, 'actions': [], 'x': None,}",
        ] {
            assert_eq!(parse(body.as_bytes()).unwrap(), expected, "{body}");
        }
        assert_eq!(parse(b" \n").unwrap(), Value::Null);
        assert!(parse(b"null").is_err() && parse(b"None").is_err());
    }

    #[test]
    fn what_is_neither_is_refused_with_both_reasons() {
        let words = parse(b"{'dpid': }").unwrap_err().words().to_owned();
        assert!(words.contains("not JSON") && words.contains("column 10"), "{words}");
        assert!(parse(b"\xff").unwrap_err().words().contains("UTF-8"));
        assert!(parse(b"{} {}").is_err());
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_in_both_forms() {
        for body in [r#"{"a": 1, "a": 2}"#, "{'a': 1, 'a': 2}"] {
            let words = parse(body.as_bytes()).unwrap_err().words().to_owned();
            assert!(words.contains("`a` stands twice"), "{words}");
        }
    }

    #[test]
    fn depth_is_bounded_in_both_forms() {
        for open in ["[", "(", "{'a':"] {
            assert!(parse(open.repeat(100_000).as_bytes()).is_err());
        }
    }
}
