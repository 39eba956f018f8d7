//! Matches, from the text of `weir ctl` and from keywords, which are Ryu's.
//!
//! An unknown word is an exception that names the allowed ones: a flow entry must never be broader
//! than what was asked.

use std::collections::HashMap;
use std::sync::LazyLock;

use openflow::Field;
use openflow::field::{FIELDS, Format, VID_PRESENT};
use openflow::matching::MatchField;
use openflow::text::{self, format_field, format_match, format_value};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::{
    Bound, IntoPyObject, PyAny, PyAnyMethods, PyBoolMethods, PyBytesMethods, PyDictMethods, PyErr,
    PyResult, PyStringMethods, PyTupleMethods, PyTypeMethods, Python, pyclass, pymethods,
};
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyString, PyTuple};

use crate::class::Hint;
use crate::errors::word;
use crate::headers::Mac;
use crate::words::bad;

/// Match fields with their values: the shape of packets.
#[pyclass(frozen, eq, hash, mapping, module = "weir")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Match {
    pub(crate) inner: openflow::Match,
}

#[pymethods]
impl Match {
    #[new]
    #[pyo3(signature = (text=None, /, **fields))]
    fn new(text: Option<&Bound<'_, PyAny>>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Ok(Self { inner: of(text, fields, "")? })
    }

    fn __str__(&self) -> String {
        format_match(&self.inner)
    }

    fn __repr__(&self) -> String {
        format!("Match({:?})", self.__str__())
    }

    fn __len__(&self) -> usize {
        self.inner.fields().len()
    }

    fn __contains__(&self, name: &str) -> bool {
        field_of(name).is_some_and(|field| self.inner.get(field).is_some())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match field_of(name).and_then(|field| self.inner.get(field)) {
            Some(held) => value_object(py, held),
            None => Err(PyKeyError::new_err(name.to_owned())),
        }
    }

    /// The value of a field, or `default` where packets may have any.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match field_of(name).and_then(|field| self.inner.get(field)) {
            Some(held) => value_object(py, held).map(Some),
            None => Ok(default),
        }
    }

    /// The names of the fields.
    fn keys(&self) -> Vec<&'static str> {
        self.inner.fields().iter().map(|held| held.field.row().name).collect()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys().into_pyobject(py)?.try_iter()?.into_any())
    }

    /// Whether every packet that meets `other` meets this match too.
    fn covers(&self, other: &Self) -> bool {
        self.inner.covers(&other.inner)
    }
}

impl Hint for Match {
    fn hint() -> String {
        "Match".to_owned()
    }
}

/// A value as Ryu gives it: numbers as numbers, addresses as texts, masked values as
/// `"value/mask"`.
fn value_object<'py>(py: Python<'py>, held: &MatchField) -> PyResult<Bound<'py, PyAny>> {
    let is_address = matches!(held.field.row().format, Format::Mac | Format::Ipv4 | Format::Ipv6);
    if !held.is_exact() {
        return Ok(PyString::new(py, &format_field(held)).into_any());
    }
    if is_address {
        return Ok(PyString::new(py, &format_value(held.field, held.value)).into_any());
    }
    Ok(held.value.into_pyobject(py)?.into_any())
}

static NAMES: LazyLock<HashMap<&'static str, Field>> = LazyLock::new(|| {
    let names = FIELDS.iter().flat_map(|row| {
        let all = [row.name, row.set_text, row.text].into_iter().chain(row.aliases.iter().copied());
        all.map(|name| (name, row.field))
    });
    names.filter(|(name, field)| Field::from_name(name) == Some(*field)).collect()
});

/// The field of a name.
pub(crate) fn field_of(name: &str) -> Option<Field> {
    NAMES.get(name).copied()
}

/// Words of the text that mean a field only beside others, or another value than the field's own;
/// those that name one field for the most part are looked at so first.
fn context_words() -> impl Iterator<Item = &'static str> {
    text::match_words().filter(|word| FIELDS.iter().all(|row| row.name != *word))
}

/// The kind of a keyword of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keyword {
    /// A field, whose value follows.
    Field(Field),
    /// One of [`context_words`].
    Word,
    /// A word that stands alone.
    Protocol,
}

/// All keywords in one table: an app that adds an entry for each packet looks each of its words up
/// once.
static KEYWORDS: LazyLock<HashMap<&'static str, Keyword>> = LazyLock::new(|| {
    let fields = NAMES.iter().map(|(name, field)| (*name, Keyword::Field(*field)));
    let words = context_words().map(|name| (name, Keyword::Word));
    let protocols = text::protocol_words().map(|name| (name, Keyword::Protocol));
    fields.chain(words).chain(protocols).collect()
});

/// The kind of a keyword; `others` are the words that are allowed beside those of a match.
fn keyword(name: &str, others: &str) -> PyResult<Keyword> {
    KEYWORDS.get(name).copied().ok_or_else(|| unknown(name, others))
}

/// The error for a keyword that no match has.
fn unknown(name: &str, others: &str) -> PyErr {
    let fields: Vec<&str> = FIELDS.iter().map(|row| row.name).collect();
    word(format!(
        "unknown word `{name}`; allowed are {others}the fields {}; the words {}; and with True \
         the protocols {}",
        fields.join(", "),
        context_words().collect::<Vec<_>>().join(", "),
        text::protocol_words().collect::<Vec<_>>().join(", "),
    ))
}

/// A match from a text, a [`Match`] or a mapping, together with keywords; `others` are the words
/// that are allowed beside these.
pub(crate) fn of(
    given: Option<&Bound<'_, PyAny>>,
    fields: Option<&Bound<'_, PyDict>>,
    others: &str,
) -> PyResult<openflow::Match> {
    let base = match given {
        None => openflow::Match::any(),
        Some(given) => of_value(given)?,
    };
    match fields.filter(|fields| !fields.is_empty()) {
        Some(fields) => of_keywords(fields, base, others),
        None => Ok(base),
    }
}

fn of_value(given: &Bound<'_, PyAny>) -> PyResult<openflow::Match> {
    if let Ok(matching) = given.cast::<Match>() {
        return Ok(matching.get().inner.clone());
    }
    if let Ok(text) = given.cast::<PyString>() {
        let text = text.to_str()?;
        return text::parse_match(text).map_err(|error| word(bad("match", text, &error)));
    }
    if let Ok(fields) = given.cast::<PyDict>() {
        return of_keywords(fields, openflow::Match::any(), "");
    }
    Err(PyTypeError::new_err(format!(
        "a match is a text such as \"in_port=1,ip\", a weir.Match or a dict, not {}",
        given.get_type().name()?
    )))
}

/// `base` with the fields of keywords.
fn of_keywords(
    fields: &Bound<'_, PyDict>,
    base: openflow::Match,
    others: &str,
) -> PyResult<openflow::Match> {
    let mut matching = base.clone();
    for (key, value) in fields {
        let key = key.cast::<PyString>()?;
        let key = key.to_str()?;
        let Keyword::Field(field) = keyword(key, others)? else {
            return of_words(fields, &base, others);
        };
        let (value, mask) = field_value(field, key, &value)?;
        if matching.get(field).is_some() {
            return Err(word(format!("{key}: {} is given twice", field.row().name)));
        }
        matching.set(field, value, mask);
    }
    if matching.check_prerequisites().is_err() {
        // The reader of text says which one is missing.
        return of_words(fields, &base, others);
    }
    Ok(matching)
}

/// The same by way of the text, which knows the words that depend on others.
fn of_words(
    fields: &Bound<'_, PyDict>,
    base: &openflow::Match,
    others: &str,
) -> PyResult<openflow::Match> {
    let as_text = |held: &MatchField| format!("{}={}", held.field.row().name, format_field(held));
    let mut words: Vec<String> = base.fields().iter().map(as_text).collect();
    for (key, value) in fields {
        let key = key.cast::<PyString>()?.to_str()?.to_owned();
        match keyword(&key, others)? {
            Keyword::Protocol => match value.cast::<PyBool>() {
                Ok(is_set) if is_set.is_true() => words.push(key),
                Ok(_) | Err(_) => {
                    return Err(word(format!("{key}: a protocol takes True and nothing else")));
                }
            },
            Keyword::Field(field) => {
                let (value, mask) = field_value(field, &key, &value)?;
                let mut one = openflow::Match::any();
                one.set(field, value, mask);
                words.extend(one.fields().iter().map(as_text));
            }
            Keyword::Word => words.push(format!("{key}={}", part(&key, &value)?)),
        }
    }
    let text = words.join(",");
    text::parse_match(&text).map_err(|error| word(bad("match", &text, &error)))
}

/// A value of a word as text.
fn part(key: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(pair) = value.cast::<PyTuple>()
        && pair.len() == 2
    {
        let (value, mask) = (pair.get_item(0)?, pair.get_item(1)?);
        return Ok(format!("{}/{}", part(key, &value)?, part(key, &mask)?));
    }
    if value.is_instance_of::<PyBool>() {
        return Err(word(format!("{key}: a value, not a truth")));
    }
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyString>() || is_address(value)? {
        return Ok(value.str()?.to_str()?.to_owned());
    }
    Err(PyTypeError::new_err(format!(
        "{key}: a number, a text, an address of ipaddress or (value, mask), not {}",
        value.get_type().name()?
    )))
}

/// Whether it is of the module `ipaddress`.
fn is_address(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.get_type().module()?.to_str()? == "ipaddress")
}

/// Value and mask of a field.
pub(crate) fn field_value(
    field: Field,
    key: &str,
    given: &Bound<'_, PyAny>,
) -> PyResult<(u128, u128)> {
    let full = field.full_mask();
    let (value, mask) = if let Ok(pair) = given.cast::<PyTuple>() {
        if pair.len() != 2 {
            return Err(word(format!("{key}: a tuple is (value, mask)")));
        }
        if !field.row().maskable {
            return Err(word(format!("{key} takes no mask")));
        }
        let mask = single(field, key, &pair.get_item(1)?)?;
        (single(field, key, &pair.get_item(0)?)? & mask, mask)
    } else if let Ok(text) = given.cast::<PyString>() {
        text_value(field, key, text.to_str()?)?
    } else if is_number(given) || given.is_instance_of::<PyBytes>() {
        (single(field, key, given)?, full)
    } else {
        text_value(field, key, &part(key, given)?)?
    };
    if field == Field::VlanVid && mask == full && value != 0 && value & VID_PRESENT == 0 {
        return Err(word(format!(
            "{key}={value} matches no packet: without OFPVID_PRESENT it means no tag; write \
             dl_vlan={value} or vlan_vid={:#x}",
            value | VID_PRESENT
        )));
    }
    Ok((value, mask))
}

fn is_number(given: &Bound<'_, PyAny>) -> bool {
    given.is_instance_of::<PyInt>() && !given.is_instance_of::<PyBool>()
}

fn text_value(field: Field, key: &str, text: &str) -> PyResult<(u128, u128)> {
    if field.row().format == Format::Mac
        && let Some(mac) = Mac::read(text)
    {
        return Ok((mac.number(), field.full_mask()));
    }
    text::parse_value(field, text).map_err(|error| word(format!("{key}={text:?}: {error}")))
}

/// One number of a field.
fn single(field: Field, key: &str, given: &Bound<'_, PyAny>) -> PyResult<u128> {
    if let Ok(bytes) = given.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        if bytes.len() != field.bytes() {
            return Err(word(format!("{key}: {} bytes, not {}", field.bytes(), bytes.len())));
        }
        return number(field, key, packet::header::number(bytes));
    }
    if is_number(given) {
        // Numbers of more than 64 bits cost Python much more to give.
        if let Ok(value) = given.extract::<u64>() {
            return number(field, key, value.into());
        }
        return match given.extract::<u128>() {
            Ok(value) => number(field, key, value),
            Err(_) => Err(word(format!("{key}: {given} is out of range: 0 to {}", max(field)))),
        };
    }
    let (value, mask) = text_value(field, key, &part(key, given)?)?;
    if mask == field.full_mask() { Ok(value) } else { Err(word(format!("{key}: two masks"))) }
}

fn number(field: Field, key: &str, value: u128) -> PyResult<u128> {
    if value > field.full_mask() {
        return Err(word(format!("{key}={value} is too large: at most {}", max(field))));
    }
    Ok(value)
}

fn max(field: Field) -> String {
    format!("{0} ({0:#x})", field.full_mask())
}
