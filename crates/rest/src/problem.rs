//! The answer to a request that is not done: a status and a JSON object.
//!
//! Every refusal has the same form, so that a script reads it by its keys: `error` says what is
//! wrong in words, `at` where in the body, `allowed` what could stand there, `openflow` what the
//! switch said, and `switches` what each said where several were asked. It must never say less than
//! is known: a switch's error keeps its type, its code and the transaction number of the message
//! that it is about.

use axum::http::StatusCode;
use openflow::message::ErrorMessage;
use openflow::{Error, Version, Xid};
use serde_json::{Map, Value, json};

/// A refusal.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The status of the answer.
    pub status: StatusCode,
    error: String,
    at: Option<String>,
    allowed: Vec<String>,
    openflow: Option<Box<Value>>,
    /// Of a request to several switches: those that have not done it, by their datapath ids.
    switches: Map<String, Value>,
}

impl Problem {
    /// A refusal with this status, in these words.
    #[must_use]
    pub fn new(status: StatusCode, error: impl Into<String>) -> Self {
        let (at, allowed, openflow, switches) = (None, Vec::new(), None, Map::new());
        Self { status, error: error.into(), at, allowed, openflow, switches }
    }

    /// The request cannot be understood.
    #[must_use]
    pub fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// A thing that the request names is not there.
    #[must_use]
    pub fn not_found(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    /// The version spoken with the switch does not have it.
    #[must_use]
    pub fn not_in(version: Version, what: &str) -> Self {
        let status = StatusCode::NOT_IMPLEMENTED;
        Self::new(status, format!("{version}, which is spoken with the switch, has no {what}"))
    }

    /// The same, with the place in the body.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.at.get_or_insert_with(|| place.into());
        self
    }

    /// The same, with what could stand there.
    #[must_use]
    pub fn allowing<T: ToString>(mut self, allowed: impl IntoIterator<Item = T>) -> Self {
        self.allowed = allowed.into_iter().map(|it| it.to_string()).collect();
        self
    }

    /// The same, with words before what is wrong.
    #[must_use]
    pub fn with_prefix(mut self, what: &str) -> Self {
        self.error = format!("{what}: {}", self.error);
        self
    }

    /// The same, with what each switch said that has not done it.
    #[must_use]
    pub(crate) fn of_switches(mut self, switches: Map<String, Value>) -> Self {
        self.switches = switches;
        self
    }

    /// The switch refuses a message: the one with this index of those that the request became.
    #[must_use]
    pub fn refused(version: Version, index: usize, xid: Option<Xid>, error: &ErrorMessage) -> Self {
        let row = error.error(version);
        let words = format!("the switch refuses it: {}", error.explained(version));
        let shown = json!({
            "type": error.error_type,
            "code": error.code,
            "name": row.map(Error::name),
            "advice": row.map(Error::advice),
            "experimenter": error.experimenter,
            "xid": xid.map(|xid| xid.0),
            "message": index,
        });
        let mut problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, words);
        problem.openflow = Some(Box::new(shown));
        problem
    }

    /// The fault, in words.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.error
    }

    /// The JSON object.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Map::new();
        object.insert("error".into(), Value::from(self.error.as_str()));
        if let Some(at) = &self.at {
            object.insert("at".into(), Value::from(at.as_str()));
        }
        if !self.allowed.is_empty() {
            object.insert("allowed".into(), Value::from(self.allowed.clone()));
        }
        if let Some(openflow) = &self.openflow {
            object.insert("openflow".into(), openflow.as_ref().clone());
        }
        if !self.switches.is_empty() {
            object.insert("switches".into(), self.switches.clone().into());
        }
        Value::Object(object)
    }

    /// The schema of [`Problem::to_value`], for the OpenAPI document.
    pub(crate) fn schema() -> Value {
        let number = |what: &str| json!({"type": "integer", "minimum": 0, "description": what});
        json!({
            "type": "object",
            "required": ["error"],
            "additionalProperties": false,
            "properties": {
                "error": {"type": "string", "description": "What is wrong."},
                "at": {"type": "string", "description": "Where in the body."},
                "allowed": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "What could stand there.",
                },
                "openflow": {
                    "type": "object",
                    "required": ["type", "code", "xid"],
                    "additionalProperties": false,
                    "description": "The OFPT_ERROR with which the switch answered.",
                    "properties": {
                        "type": number("Its type."),
                        "code": number("Its code."),
                        "name": {
                            "type": ["string", "null"],
                            "description": "The specification's name of the code.",
                        },
                        "advice": {
                            "type": ["string", "null"],
                            "description": "Why the switch refuses so, and what to change.",
                        },
                        "experimenter": {
                            "type": ["integer", "null"],
                            "description": "Whose error it is, when it is an experimenter's.",
                        },
                        "xid": {
                            "type": ["integer", "null"],
                            "description": "Transaction number of the message that is refused.",
                        },
                        "message": number("Its index among the messages of the request."),
                    },
                },
                "switches": {
                    "type": "object",
                    "description": "Of a request to several switches: each that has not done it, \
                                    by its datapath id, with what is wrong there.",
                    "additionalProperties": {"type": "object", "required": ["error"]},
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Problem;
    use openflow::message::ErrorMessage;
    use openflow::{Error, Version, Xid};

    #[test]
    fn a_switch_s_error_keeps_its_numbers() {
        let error = ErrorMessage::new(Version::V1_3, Error::FlowModOverlap, Vec::new());
        let problem = Problem::refused(Version::V1_3, 1, Some(Xid(77)), &error);
        let shown = problem.to_value();
        assert_eq!(problem.status.as_u16(), 422);
        assert_eq!(shown["openflow"]["type"], 5);
        assert_eq!(shown["openflow"]["code"], 3);
        assert_eq!(shown["openflow"]["xid"], 77);
        assert_eq!(shown["openflow"]["name"], "OFPFMFC_OVERLAP");
        assert_eq!(shown["openflow"]["message"], 1);
        assert_eq!(shown["openflow"]["advice"], Error::FlowModOverlap.advice());
        assert!(problem.words().contains(Error::FlowModOverlap.advice()), "{shown}");
    }

    #[test]
    fn error_without_a_row_is_shown_by_its_numbers() {
        let error = ErrorMessage { error_type: 99, code: 7, experimenter: None, data: Vec::new() };
        let shown = Problem::refused(Version::V1_3, 0, None, &error).to_value();
        assert!(shown["error"].as_str().unwrap().contains("type 99, code 7"), "{shown}");
        assert!(shown["openflow"]["name"].is_null());
    }
}
