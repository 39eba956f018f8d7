//! Shape of an object in a body: one row a key, for reading it and for the OpenAPI document.
//!
//! Ryu logged a key that it did not know and went on, so a mistyped match field made a flow entry
//! broader than what was asked. Here [`Fields::of`] refuses it and names the keys that there are.
//! The rows are the only list of keys: what the document announces is what is read.

use crate::problem::Problem;
use openflow::text::parse_number;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// An object's keys.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Its name in the OpenAPI document; of an action, its type.
    pub(crate) name: &'static str,
    /// Its description.
    pub(crate) what: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [Key],
}

/// A key of an object.
#[derive(Debug)]
pub(crate) struct Key {
    /// The key.
    pub(crate) name: &'static str,
    /// The type of its value.
    pub(crate) of: Of,
    /// Whether it must be there.
    pub(crate) required: bool,
    /// Its meaning.
    pub(crate) what: &'static str,
}

/// The type of a value.
#[derive(Debug)]
pub(crate) enum Of {
    /// A number of this many bits, or its digits in a string (with `0x` too).
    Number(u16),
    /// A number of this many bits, or one of these names.
    Named(u16, &'static Reserved),
    /// A string.
    Text,
    /// A string or a number: the value of a match field.
    Scalar,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words, or a list of them.
    Words(&'static [&'static str]),
    /// An object.
    Object(fn() -> &'static Shape),
    /// A list of objects.
    List(&'static Shape),
    /// A list of objects, each of the shape that its key `type` names.
    Typed(fn() -> &'static [&'static Shape]),
}

/// Names of reserved numbers, as the specification has them behind a prefix.
#[derive(Debug)]
pub(crate) struct Reserved {
    /// The prefix, which may be left out: `OFPP_`.
    pub(crate) prefix: &'static str,
    /// Names and numbers; of two names for a number the first is printed.
    pub(crate) names: &'static [(&'static str, u32)],
}

impl Reserved {
    /// The number of a name, with or without the prefix, in any case of letters.
    pub(crate) fn number(&self, text: &str) -> Option<u32> {
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix(self.prefix).unwrap_or(&upper);
        self.names.iter().find(|(own, _)| *own == name).map(|(_, number)| *number)
    }

    /// The name of a number.
    pub(crate) fn name(&self, number: u32) -> Option<&'static str> {
        self.names.iter().find(|(_, own)| *own == number).map(|(name, _)| *name)
    }

    /// The name of a number, or the number.
    pub(crate) fn value(&self, number: u32) -> Value {
        self.name(number).map_or_else(|| Value::from(number), Value::from)
    }
}

/// A key that may be left out.
pub(crate) const fn key(name: &'static str, of: Of, what: &'static str) -> Key {
    Key { name, of, required: false, what }
}

/// A key that must be there.
pub(crate) const fn needed(name: &'static str, of: Of, what: &'static str) -> Key {
    Key { name, of, required: true, what }
}

/// An object of a body, whose keys are all known.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    shape: &'static Shape,
    place: String,
}

impl<'a> Fields<'a> {
    /// The object at a place of the body (empty for the body itself).
    ///
    /// # Errors
    /// When it is no object, has a key that the shape has not, or lacks one that it needs.
    pub(crate) fn of(
        value: &'a Value,
        shape: &'static Shape,
        place: &str,
    ) -> Result<Self, Problem> {
        let fields = Self::unchecked(value, shape, place)?;
        let known = |name: &str| shape.keys.iter().any(|key| key.name == name);
        if let Some(unknown) = fields.map.keys().find(|name| !known(name)) {
            let words = format!("there is no key `{unknown}` in {}", shape.what);
            let problem = Problem::bad(words).at(fields.path(unknown));
            return Err(problem.allowing(shape.keys.iter().map(|key| key.name)));
        }
        let missing = |key: &&Key| key.required && !fields.map.contains_key(key.name);
        if let Some(key) = shape.keys.iter().find(missing) {
            let words = format!("{} needs the key `{}`: {}", shape.what, key.name, key.what);
            return Err(Problem::bad(words).at(fields.path(key.name)));
        }
        Ok(fields)
    }

    fn unchecked(value: &'a Value, shape: &'static Shape, place: &str) -> Result<Self, Problem> {
        let Value::Object(map) = value else {
            let words = format!("{} must be an object, not {}", shape.what, kind(value));
            return Err(Problem::bad(words).at(place));
        };
        Ok(Self { map, shape, place: place.to_owned() })
    }

    /// The object of that one of several shapes that `type` names.
    ///
    /// # Errors
    /// As [`Fields::of`], and when no shape has the name.
    pub(crate) fn typed(
        value: &'a Value,
        shapes: &'static [&'static Shape],
        place: &str,
    ) -> Result<Self, Problem> {
        let names = || shapes.iter().map(|shape| shape.name);
        let Some(word) = value.get("type") else {
            let words = format!("an object with the key `type`, not {}", kind(value));
            return Err(Problem::bad(words).at(place).allowing(names()));
        };
        let shape = shapes.iter().find(|shape| word.as_str() == Some(shape.name));
        let shape = shape.ok_or_else(|| {
            let words = format!("there is no type {word}");
            Problem::bad(words).at(join(place, "type")).allowing(names())
        })?;
        Self::of(value, shape, place)
    }

    /// The shape's name.
    pub(crate) fn name(&self) -> &'static str {
        self.shape.name
    }

    /// The place of the object in the body.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// The place of a key in the body.
    pub(crate) fn path(&self, key: &str) -> String {
        join(&self.place, key)
    }

    /// A refusal of the value of a key.
    pub(crate) fn problem(&self, key: &str, words: impl Into<String>) -> Problem {
        Problem::bad(words).at(self.path(key))
    }

    /// The value of a key, if it is there.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        debug_assert!(self.shape.keys.iter().any(|own| own.name == key), "{key} has no row");
        self.map.get(key)
    }

    /// Keys and values that are there.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.map.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// A number that the type can hold.
    ///
    /// # Errors
    /// When it is none, or too large.
    pub(crate) fn number<T: TryFrom<u64>>(&self, key: &str) -> Result<Option<T>, Problem> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let fits = |number| T::try_from(number).map_err(|_| format!("{number} is too large"));
        let number = number(value).and_then(fits);
        number.map(Some).map_err(|words| self.problem(key, words))
    }

    /// A number, or a name of a reserved one.
    ///
    /// # Errors
    /// When it is neither.
    pub(crate) fn named(&self, key: &str, names: &Reserved) -> Result<Option<u32>, Problem> {
        let Some(value) = self.get(key) else { return Ok(None) };
        named(value, names).map(Some).map_err(|problem| problem.at(self.path(key)))
    }

    /// A string.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, Problem> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let words = || format!("a string must stand here, not {}", kind(value));
        value.as_str().map(Some).ok_or_else(|| self.problem(key, words()))
    }

    /// One of the words of the key's row.
    ///
    /// # Errors
    /// When it is none of them.
    pub(crate) fn word(&self, key: &str) -> Result<Option<&'static str>, Problem> {
        let Some(value) = self.get(key) else { return Ok(None) };
        self.word_of(key, value).map(Some)
    }

    fn word_of(&self, key: &str, value: &Value) -> Result<&'static str, Problem> {
        let row = self.shape.keys.iter().find(|own| own.name == key);
        let words = match row.map(|row| &row.of) {
            Some(Of::Word(words) | Of::Words(words)) => *words,
            Some(_) | None => &[],
        };
        let word = words.iter().find(|word| value.as_str() == Some(**word));
        word.copied()
            .ok_or_else(|| self.problem(key, format!("there is no {key} {value}")).allowing(words))
    }

    /// Words of the key's row: one, or a list of them.
    ///
    /// # Errors
    /// When one is none of them.
    pub(crate) fn words(&self, key: &str) -> Result<Vec<&'static str>, Problem> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => list.iter().map(|it| self.word_of(key, it)).collect(),
            Some(one) => Ok(vec![self.word_of(key, one)?]),
        }
    }

    /// The values of a list with their places; none where the key is missing.
    ///
    /// # Errors
    /// When it is no list.
    pub(crate) fn list(&self, key: &str) -> Result<Vec<(String, &'a Value)>, Problem> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => {
                let place = |index| format!("{}[{index}]", self.path(key));
                Ok(list.iter().enumerate().map(|(index, it)| (place(index), it)).collect())
            }
            Some(other) => {
                Err(self.problem(key, format!("a list must stand here, not {}", kind(other))))
            }
        }
    }
}

fn join(place: &str, key: &str) -> String {
    let mut path = place.to_owned();
    let dot = if place.is_empty() { "" } else { "." };
    // Writing to a string does not fail.
    let _ = write!(path, "{dot}{key}");
    path
}

/// The type of a value, in a word.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A number as Ryu takes it: `int(str(x), 0)`.
///
/// # Errors
/// When it is none of at most 64 bits, or negative.
pub(crate) fn number(value: &Value) -> Result<u64, String> {
    let no_number = || format!("a number must stand here, not {value}");
    match value {
        Value::Number(number) => number.as_u64().ok_or_else(no_number),
        Value::String(text) => digits(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(no_number()),
    }
}

/// The number that digits give, in Python's notations: `10`, `0x0a`, `0o12`, `0b1010`.
///
/// # Errors
/// When they give none of at most 64 bits, or begin with a zero as Python's do not.
pub(crate) fn digits(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let radix = [("0o", 8), ("0b", 2)];
    let based =
        radix.iter().find_map(|(prefix, radix)| lower.strip_prefix(prefix).map(|d| (d, *radix)));
    let Some((digits, radix)) = based else {
        return parse_number(&lower).map_err(|error| error.what);
    };
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = u64::from_str_radix(digits, radix).ok().filter(|_| is_plain);
    number.ok_or_else(|| format!("`{text}` is not a number"))
}

/// A number of 32 bits, or a name of a reserved one.
///
/// # Errors
/// When it is neither.
pub(crate) fn named(value: &Value, names: &Reserved) -> Result<u32, Problem> {
    if let Some(number) = value.as_str().and_then(|text| names.number(text)) {
        return Ok(number);
    }
    let refuse =
        |words: String| Problem::bad(words).allowing(names.names.iter().map(|(name, _)| *name));
    let number = number(value).map_err(|_| refuse(format!("{value} is no number and no name")))?;
    u32::try_from(number).map_err(|_| refuse(format!("{number} is too large")))
}

/// Schemas by their names, for the part `components` of the OpenAPI document.
pub(crate) type Schemas = Map<String, Value>;

impl Shape {
    /// A reference to the schema of the object, which is put among the others.
    pub(crate) fn schema(&self, schemas: &mut Schemas) -> Value {
        let name = self.component();
        let reference = json!({"$ref": format!("#/components/schemas/{name}")});
        if schemas.contains_key(&name) {
            return reference;
        }
        // The name is taken before the keys are looked at, for a shape within itself.
        schemas.insert(name.clone(), Value::Null);
        let mut properties = Map::new();
        for key in self.keys {
            let mut schema = key.of.schema(schemas);
            if key.name == "type" && matches!(key.of, Of::Text) {
                schema = json!({"const": self.name});
            }
            if let Value::Object(schema) = &mut schema {
                schema.insert("description".into(), key.what.into());
            }
            properties.insert(key.name.into(), schema);
        }
        let required: Vec<_> =
            self.keys.iter().filter(|key| key.required).map(|key| key.name).collect();
        let schema = json!({
            "type": "object",
            "description": self.what,
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        schemas.insert(name, schema);
        reference
    }

    /// The schema's name: what the shape is, since several types may have one name.
    fn component(&self) -> String {
        let bare = ["a ", "an "]
            .iter()
            .fold(self.what, |what, article| what.strip_prefix(article).unwrap_or(what));
        bare.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
    }
}

impl Of {
    fn schema(&self, schemas: &mut Schemas) -> Value {
        match self {
            Self::Number(bits) => json!({"oneOf": [integer(*bits), digits_schema()]}),
            Self::Named(bits, names) => {
                let plain = names.names.iter().map(|(name, _)| (*name).to_owned());
                let whole = names.names.iter().map(|(name, _)| format!("{}{name}", names.prefix));
                let words: Vec<String> = plain.chain(whole).collect();
                json!({"oneOf": [integer(*bits), digits_schema(), {"enum": words}]})
            }
            Self::Text => json!({"type": "string"}),
            Self::Scalar => json!({"type": ["string", "integer"], "minimum": 0}),
            Self::Word(words) => json!({"enum": words}),
            Self::Words(words) => json!({"oneOf": [
                {"enum": words}, {"type": "array", "items": {"enum": words}},
            ]}),
            Self::Object(shape) => shape().schema(schemas),
            Self::List(shape) => json!({"type": "array", "items": shape.schema(schemas)}),
            Self::Typed(shapes) => {
                let all: Vec<Value> = shapes().iter().map(|shape| shape.schema(schemas)).collect();
                json!({"type": "array", "items": {"oneOf": all}})
            }
        }
    }
}

fn integer(bits: u16) -> Value {
    let maximum = u64::MAX >> (64 - bits.clamp(1, 64));
    json!({"type": "integer", "minimum": 0, "maximum": maximum})
}

/// Digits in a string, as [`digits`] takes them; how large they may be stands with the integer.
fn digits_schema() -> Value {
    json!({"type": "string", "pattern": "^(0x[0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,19})$"})
}

#[cfg(test)]
mod tests {
    use super::{Fields, Of, Reserved, Shape, digits, key, needed};
    use serde_json::{Map, json};

    static NAMES: Reserved = Reserved { prefix: "OFPP_", names: &[("ALL", 9), ("EACH", 9)] };
    static THING: Shape = Shape {
        name: "thing",
        what: "a thing",
        keys: &[
            needed("id", Of::Number(8), "its number"),
            key("port", Of::Named(32, &NAMES), "its port"),
            key("flags", Of::Words(&["A", "B"]), "its flags"),
            key("parts", Of::List(&PART), "its parts"),
        ],
    };
    static PART: Shape = Shape { name: "part", what: "a part", keys: &[] };

    #[test]
    fn an_unknown_key_is_refused_with_those_that_there_are() {
        let value = json!({"id": 1, "prot": 2});
        let shown = Fields::of(&value, &THING, "x").unwrap_err().to_value();
        assert_eq!(shown["at"], "x.prot");
        assert_eq!(shown["allowed"], json!(["id", "port", "flags", "parts"]));
        let shown = Fields::of(&json!({}), &THING, "").unwrap_err().to_value();
        assert_eq!(shown["at"], "id");
        assert!(Fields::of(&json!([]), &THING, "").is_err());
    }

    #[test]
    fn numbers_are_taken_as_python_s_int_takes_them() {
        for (value, expected) in [
            (json!(255), Some(255)),
            (json!("255"), Some(255)),
            (json!("0xfF"), Some(255)),
            (json!("0b11"), Some(3)),
            (json!(256), None),
            (json!(-1), None),
            (json!(1.5), None),
            (json!("1.5"), None),
            (json!("+1"), None),
            (json!("010"), None),
            (json!("00"), None),
            (json!("0x+1"), None),
            (json!(""), None),
            (json!(true), None),
            (json!(null), None),
            (json!([1]), None),
        ] {
            let value = json!({"id": value});
            let fields = Fields::of(&value, &THING, "").unwrap();
            assert_eq!(fields.number::<u8>("id").ok().flatten(), expected, "{value}");
        }
        assert!(digits("18446744073709551616").is_err());
        let octal = digits("0800").unwrap_err();
        assert_eq!(octal, "`0800` begins with a zero: write 0x0800 or 800");
    }

    #[test]
    fn names_and_words_are_read_and_refused_with_the_others() {
        let value = json!({"id": 1, "port": "ofpp_all", "flags": ["B", "A"]});
        let fields = Fields::of(&value, &THING, "").unwrap();
        assert_eq!(fields.named("port", &NAMES).unwrap(), Some(9));
        assert_eq!(fields.words("flags").unwrap(), ["B", "A"]);
        assert_eq!(NAMES.name(9), Some("ALL"));
        let value = json!({"id": 1, "port": "UP", "flags": "C", "parts": 3});
        let fields = Fields::of(&value, &THING, "").unwrap();
        let shown = fields.named("port", &NAMES).unwrap_err().to_value();
        assert_eq!((&shown["at"], &shown["allowed"]), (&json!("port"), &json!(["ALL", "EACH"])));
        let shown = fields.words("flags").unwrap_err().to_value();
        assert_eq!(shown["allowed"], json!(["A", "B"]));
        assert!(fields.list("parts").is_err());
    }

    #[test]
    fn the_schema_has_every_key() {
        let mut schemas = Map::new();
        assert_eq!(THING.schema(&mut schemas), json!({"$ref": "#/components/schemas/thing"}));
        let schema = &schemas["thing"];
        for key in THING.keys {
            assert!(schema["properties"][key.name].is_object(), "{}", key.name);
        }
        assert_eq!(schema["required"], json!(["id"]));
        assert!(schemas["part"].is_object());
    }
}
