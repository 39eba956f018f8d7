//! Transactions (RFC 7047, 4.1.3): operations that the database carries out all together or not.

use serde_json::{Map, Value, json};

use crate::value::{Datum, Uuid};

/// A refused transaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}{}{details}", if details.is_empty() { "" } else { ": " })]
pub struct TransactionError {
    /// The error, for example `constraint violation`.
    pub error: String,
    /// Its details; may be empty.
    pub details: String,
}

/// A transaction that is being put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transaction {
    operations: Vec<Value>,
}

impl Transaction {
    /// Whether nothing is to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Sets columns of a row (5.2.3).
    pub fn update<'a>(
        &mut self,
        table: &str,
        row: Uuid,
        columns: impl IntoIterator<Item = (&'a str, Datum)>,
    ) {
        let columns = columns.into_iter().map(|(name, datum)| (name.to_owned(), datum.to_json()));
        let columns: Map<String, Value> = columns.collect();
        if !columns.is_empty() {
            self.operations.push(json!({
                "op": "update", "table": table, "where": condition(row), "row": columns,
            }));
        }
    }

    /// Has the transaction fail unless a column of a row still has a value (5.2.6).
    pub fn wait(&mut self, table: &str, row: Uuid, column: &str, value: &Datum) {
        self.operations.push(json!({
            "op": "wait", "timeout": 0, "table": table, "where": condition(row),
            "columns": [column], "until": "==", "rows": [{ column: value.to_json() }],
        }));
    }

    /// The parameters of `transact`; the transaction fails where `lock` is not held (5.2.10).
    pub(crate) fn into_params(self, database: &str, lock: &str) -> Vec<Value> {
        let first = [json!(database), json!({ "op": "assert", "lock": lock })];
        first.into_iter().chain(self.operations).collect()
    }
}

fn condition(row: Uuid) -> Value {
    json!([["_uuid", "==", ["uuid", row.to_string()]]])
}

/// The outcome that a reply to `transact` has: an object for each operation, and one with an error
/// where something failed.
pub(crate) fn outcome(reply: Result<Value, Value>) -> Result<(), TransactionError> {
    let text = |value: Option<&Value>| {
        let text = value.and_then(Value::as_str).unwrap_or_default();
        text.chars().take(1000).collect::<String>()
    };
    let other = |error: &str| TransactionError { error: error.into(), details: String::new() };
    let results = match reply {
        Ok(Value::Array(results)) => results,
        Ok(_) => return Err(other("the reply is no list of results")),
        Err(error) => return Err(other(&text(error.get("error").or(Some(&error))))),
    };
    let failed = results.iter().find(|result| result.get("error").is_some());
    failed.map_or(Ok(()), |failed| {
        Err(TransactionError {
            error: text(failed.get("error")),
            details: text(failed.get("details")),
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Transaction, outcome};
    use crate::value::{Datum, Uuid};

    #[test]
    fn operations_are_those_of_the_rfc() {
        let mut transaction = Transaction::default();
        transaction.update("Interface", Uuid(1), []);
        assert!(transaction.is_empty());
        transaction.wait("Open_vSwitch", Uuid(1), "next_cfg", &Datum::one(4));
        transaction.update("Open_vSwitch", Uuid(1), [("cur_cfg", Datum::one(4))]);
        let id = "00000000-0000-0000-0000-000000000001";
        let row = json!([["_uuid", "==", ["uuid", id]]]);
        let expected = [
            json!("Open_vSwitch"),
            json!({"op": "assert", "lock": "ovs_vswitchd"}),
            json!({
                "op": "wait", "timeout": 0, "table": "Open_vSwitch", "where": row,
                "columns": ["next_cfg"], "until": "==", "rows": [{"next_cfg": 4}],
            }),
            json!({"op": "update", "table": "Open_vSwitch", "where": row, "row": {"cur_cfg": 4}}),
        ];
        assert_eq!(transaction.into_params("Open_vSwitch", "ovs_vswitchd"), expected);
    }

    #[test]
    fn an_error_of_any_operation_is_the_outcome() {
        assert_eq!(outcome(Ok(json!([{}, {"count": 1}]))), Ok(()));
        let replies = [
            Ok(json!([{}, {"error": "timed out", "details": "x"}, null])),
            Ok(json!([{}, {"error": "not owner"}])),
            Ok(json!(7)),
            Err(json!({"error": "unknown database"})),
            Err(json!("canceled")),
        ];
        let texts = replies.map(|reply| outcome(reply).unwrap_err().to_string());
        let expected = [
            "timed out: x",
            "not owner",
            "the reply is no list of results",
            "unknown database",
            "canceled",
        ];
        assert_eq!(texts, expected);
    }
}
