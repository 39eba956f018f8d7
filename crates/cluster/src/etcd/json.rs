//! etcd's messages as its gateway writes them: 64-bit numbers as texts, bytes as base64, and what
//! is zero or empty left out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::time::Duration;

/// A number of 64 bits, written as a text or as a number.
fn number<'de, D: Deserializer<'de>>(input: D) -> Result<i64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Number(i64),
    }
    match Written::deserialize(input)? {
        Written::Text(text) => text.parse().map_err(D::Error::custom),
        Written::Number(number) => Ok(number),
    }
}

/// Bytes that must be text: all keys and values of ours are.
fn text<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let bytes = BASE64.decode(String::deserialize(input)?).map_err(D::Error::custom)?;
    // A foreign value does not make the answer around it unreadable.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Header {
    #[serde(default, deserialize_with = "number")]
    pub(super) revision: i64,
}

/// A key with its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct KeyValue {
    /// The key.
    #[serde(deserialize_with = "text")]
    pub(crate) key: String,
    /// Its value.
    #[serde(deserialize_with = "text")]
    pub(crate) value: String,
    /// The revision that made it.
    #[serde(deserialize_with = "number")]
    pub(crate) create_revision: i64,
    /// The revision that wrote it last.
    #[serde(deserialize_with = "number")]
    pub(crate) mod_revision: i64,
    /// The lease that it is bound to; zero for none.
    #[serde(deserialize_with = "number")]
    pub(crate) lease: i64,
}

#[derive(Debug, Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(super) struct Range {
    pub(super) header: Header,
    pub(super) kvs: Vec<KeyValue>,
    pub(super) more: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Lease {
    #[serde(rename = "ID", default, deserialize_with = "number")]
    pub(super) id: i64,
    #[serde(rename = "TTL", default, deserialize_with = "number")]
    ttl_s: i64,
}

impl Lease {
    pub(super) fn ttl(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.ttl_s).unwrap_or(0))
    }
}

/// A message of a stream.
#[derive(Debug, Deserialize)]
pub(super) struct Streamed<T> {
    pub(super) result: T,
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    /// The key was made at this revision; zero when it does not exist.
    Created(String, i64),
    /// The key was last written at this revision.
    Written(String, i64),
}

/// A step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Write a key and bind it to a lease (zero for none).
    Put {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// The lease.
        lease: i64,
    },
    /// Delete a key, if it exists.
    Delete(String),
    /// Read a key.
    Get(String),
    /// A transaction inside.
    Txn(Txn),
}

/// A transaction: all of `success` when every condition holds, else all of `failure`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Txn {
    /// The conditions.
    pub(crate) compare: Vec<Compare>,
    /// Operations for when they hold.
    pub(crate) success: Vec<Op>,
    /// Operations for when they do not.
    pub(crate) failure: Vec<Op>,
}

impl Txn {
    pub(super) fn to_json(&self) -> Value {
        let ops = |ops: &[Op]| ops.iter().map(Op::to_json).collect::<Vec<_>>();
        json!({
            "compare": self.compare.iter().map(Compare::to_json).collect::<Vec<_>>(),
            "success": ops(&self.success),
            "failure": ops(&self.failure),
        })
    }
}

impl Compare {
    fn to_json(&self) -> Value {
        match self {
            Self::Created(key, revision) => json!({
                "key": BASE64.encode(key), "target": "CREATE", "result": "EQUAL",
                "create_revision": revision.to_string(),
            }),
            Self::Written(key, revision) => json!({
                "key": BASE64.encode(key), "target": "MOD", "result": "EQUAL",
                "mod_revision": revision.to_string(),
            }),
        }
    }
}

impl Op {
    fn to_json(&self) -> Value {
        match self {
            Self::Put { key, value, lease } => json!({ "request_put": {
                "key": BASE64.encode(key),
                "value": BASE64.encode(value),
                "lease": lease.to_string(),
            }}),
            Self::Delete(key) => {
                json!({ "request_delete_range": { "key": BASE64.encode(key) } })
            }
            Self::Get(key) => json!({ "request_range": { "key": BASE64.encode(key) } }),
            Self::Txn(txn) => json!({ "request_txn": txn.to_json() }),
        }
    }
}

/// The outcome of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "TxnJson")]
pub(crate) struct TxnAnswer {
    /// The revision of the store behind it. A transaction inside another has that of the outer one.
    pub(crate) revision: i64,
    /// Whether the conditions held.
    pub(crate) succeeded: bool,
    /// The answer to each step.
    pub(crate) ops: Vec<OpAnswer>,
}

/// The answer to a step.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "OpJson")]
pub(crate) enum OpAnswer {
    /// It is done.
    Done,
    /// The value that was read.
    Got(Option<KeyValue>),
    /// A transaction inside.
    Txn(TxnAnswer),
}

#[derive(Deserialize)]
struct TxnJson {
    #[serde(default)]
    header: Header,
    #[serde(default)]
    succeeded: bool,
    #[serde(default)]
    responses: Vec<OpAnswer>,
}

#[derive(Deserialize)]
struct OpJson {
    response_range: Option<Range>,
    response_txn: Option<TxnAnswer>,
}

impl From<TxnJson> for TxnAnswer {
    fn from(json: TxnJson) -> Self {
        let TxnJson { header, succeeded, responses } = json;
        Self { revision: header.revision, succeeded, ops: responses }
    }
}

impl From<OpJson> for OpAnswer {
    fn from(json: OpJson) -> Self {
        match json {
            OpJson { response_txn: Some(txn), .. } => Self::Txn(txn),
            OpJson { response_range: Some(range), .. } => Self::Got(range.kvs.into_iter().next()),
            OpJson { response_range: None, response_txn: None } => Self::Done,
        }
    }
}

/// A change of a key, as a watch delivers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It has been written.
    Put(KeyValue),
    /// It is gone since this revision.
    Delete(String, i64),
}

/// A line of a watch: a message, or the end with its reason.
#[derive(Debug, Deserialize)]
pub(super) struct WatchLine {
    pub(super) result: Option<WatchJson>,
    pub(super) error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WatchJson {
    pub(super) created: bool,
    pub(super) canceled: bool,
    #[serde(deserialize_with = "number")]
    pub(super) compact_revision: i64,
    pub(super) cancel_reason: String,
    pub(super) events: Vec<EventJson>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventJson {
    r#type: String,
    kv: KeyValue,
}

impl Change {
    /// The revision that made it.
    pub(crate) fn revision(&self) -> i64 {
        match self {
            Self::Put(kv) => kv.mod_revision,
            Self::Delete(_, revision) => *revision,
        }
    }
}

impl From<EventJson> for Change {
    fn from(event: EventJson) -> Self {
        // A put is the type zero, which is left out.
        if event.r#type == "DELETE" {
            Self::Delete(event.kv.key, event.kv.mod_revision)
        } else {
            Self::Put(event.kv)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Compare, Lease, Op, OpAnswer, Range, Txn, TxnAnswer, WatchLine};
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn numbers_are_texts_or_numbers_and_zeros_are_left_out() {
        let lease: Lease = serde_json::from_value(json!({"ID": "7", "TTL": 2})).unwrap();
        assert_eq!((lease.id, lease.ttl()), (7, Duration::from_secs(2)));
        let lease: Lease = serde_json::from_value(json!({"ID": "7"})).unwrap();
        assert!(lease.ttl().is_zero(), "a lease that is over");
        let lease: Lease = serde_json::from_value(json!({"ID": "7", "TTL": "-1"})).unwrap();
        assert!(lease.ttl().is_zero());
        for bad in [json!({"ID": "x"}), json!({"ID": 1.5}), json!({"ID": "9223372036854775808"})] {
            assert!(serde_json::from_value::<Lease>(bad).is_err());
        }
    }

    #[test]
    fn keys_and_values_are_base64_and_nothing_of_them_can_panic() {
        let range: Range = serde_json::from_value(json!({
            "header": {"revision": "12"},
            "kvs": [{"key": "L2E=", "value": "Yg==", "mod_revision": "9"}, {"key": "/w=="}],
        }))
        .unwrap();
        assert_eq!((range.header.revision, range.more), (12, false));
        assert_eq!((range.kvs[0].key.as_str(), range.kvs[0].value.as_str()), ("/a", "b"));
        assert_eq!((range.kvs[1].key.as_str(), range.kvs[1].lease), ("\u{fffd}", 0));
        assert!(serde_json::from_value::<Range>(json!({"kvs": [{"key": "%"}]})).is_err());
    }

    #[test]
    fn a_transaction_is_written_and_its_answer_read() {
        let inside = Txn {
            compare: vec![Compare::Created("k".into(), 0)],
            success: vec![Op::Put { key: "k".into(), value: "v".into(), lease: 3 }],
            failure: vec![Op::Get("k".into())],
        };
        let outer = Txn {
            compare: vec![Compare::Written("n".into(), 5)],
            success: vec![Op::Txn(inside), Op::Delete("d".into())],
            failure: vec![],
        };
        let written = outer.to_json();
        assert_eq!(written["compare"][0]["mod_revision"], "5");
        let inside = &written["success"][0]["request_txn"];
        assert_eq!(inside["compare"][0]["target"], "CREATE");
        assert_eq!(inside["success"][0]["request_put"]["lease"], "3");
        let answer: TxnAnswer = serde_json::from_value(json!({
            "header": {"revision": "8"}, "succeeded": true,
            "responses": [
                {"response_txn": {"header": {}, "responses": [
                    {"response_range": {"kvs": [{"key": "aw==", "mod_revision": "4"}]}},
                ]}},
                {"response_delete_range": {"header": {"revision": "8"}}},
            ],
        }))
        .unwrap();
        assert!(answer.succeeded && answer.revision == 8);
        let [OpAnswer::Txn(inside), OpAnswer::Done] = &answer.ops[..] else { panic!("{answer:?}") };
        assert!(!inside.succeeded);
        assert!(matches!(&inside.ops[..], [OpAnswer::Got(Some(kv))] if kv.mod_revision == 4));
    }

    #[test]
    fn lines_of_a_watch_are_changes() {
        let line: WatchLine = serde_json::from_value(json!({"result": {
            "header": {"revision": "6"},
            "events": [
                {"kv": {"key": "aw==", "value": "dg==", "mod_revision": "5", "lease": "3"}},
                {"type": "DELETE", "kv": {"key": "aw==", "mod_revision": "6"}},
            ],
        }}))
        .unwrap();
        let changes: Vec<Change> =
            line.result.unwrap().events.into_iter().map(Change::from).collect();
        assert!(matches!(&changes[0], Change::Put(kv) if kv.lease == 3 && kv.value == "v"));
        assert_eq!(changes[1], Change::Delete("k".into(), 6));
    }
}
