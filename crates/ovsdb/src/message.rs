//! The messages of JSON-RPC 1.0 that RFC 7047 uses: requests, notifications and replies.

use serde_json::{Value, json};

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Asks for a reply with the same id.
    Request {
        /// The id.
        id: Value,
        /// The method.
        method: String,
        /// Its parameters.
        params: Vec<Value>,
    },
    /// Asks for nothing.
    Notification {
        /// The method.
        method: String,
        /// Its parameters.
        params: Vec<Value>,
    },
    /// Answers a request: a result or an error.
    Reply {
        /// The id of the request.
        id: Value,
        /// The outcome.
        outcome: Result<Value, Value>,
    },
}

/// An object that is no message of JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a message of JSON-RPC: {0}")]
pub struct BadMessage(&'static str);

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// The object is none.
    pub fn read(object: Value) -> Result<Self, BadMessage> {
        let Value::Object(mut members) = object else { return Err(BadMessage("no object")) };
        let id = members.remove("id").unwrap_or_default();
        match (members.remove("method"), members.remove("params")) {
            (Some(Value::String(method)), Some(Value::Array(params))) => Ok(if id.is_null() {
                Self::Notification { method, params }
            } else {
                Self::Request { id, method, params }
            }),
            (Some(_), _) => Err(BadMessage("method is a string, and params an array")),
            (None, _) if id.is_null() => Err(BadMessage("a reply has an id")),
            (None, _) => {
                let error = members.remove("error").filter(|error| !error.is_null());
                let result = members.remove("result").unwrap_or_default();
                Ok(Self::Reply { id, outcome: error.map_or(Ok(result), Err) })
            }
        }
    }

    /// The bytes of the message.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let object = match self {
            Self::Request { id, method, params } => {
                json!({ "id": id, "method": method, "params": params })
            }
            Self::Notification { method, params } => {
                json!({ "id": null, "method": method, "params": params })
            }
            Self::Reply { id, outcome: Ok(result) } => {
                json!({ "id": id, "result": result, "error": null })
            }
            Self::Reply { id, outcome: Err(error) } => {
                json!({ "id": id, "result": null, "error": error })
            }
        };
        object.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Message;

    #[test]
    fn messages_lead_back() {
        for object in [
            json!({"id": "echo", "method": "echo", "params": []}),
            json!({"id": null, "method": "update", "params": [null, {}]}),
            json!({"id": 3, "result": {"locked": true}, "error": null}),
            json!({"id": 3, "result": null, "error": "unknown method"}),
        ] {
            let message = Message::read(object.clone()).unwrap();
            let bytes = message.to_bytes();
            assert_eq!(serde_json::from_slice::<serde_json::Value>(&bytes).unwrap(), object);
        }
    }

    #[test]
    fn other_objects_are_refused() {
        for object in [
            json!(7),
            json!({}),
            json!({"method": 7, "params": []}),
            json!({"method": "echo", "params": {}}),
            json!({"id": null, "result": 1}),
        ] {
            assert!(Message::read(object.clone()).is_err(), "{object}");
        }
    }
}
