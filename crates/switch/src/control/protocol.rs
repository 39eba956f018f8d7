//! The lines of the control socket: one request line in, record lines and one end line out.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Command;

/// Longest request line in bytes; a longer one ends the connection.
pub(crate) const LINE_MAX: usize = 1 << 20;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Whether records come as JSON values instead of text.
    #[serde(default)]
    pub(crate) json: bool,
    /// The bridge that is meant; the only one where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bridge: Option<String>,
    /// What is asked.
    #[serde(flatten)]
    pub(crate) command: Command,
}

/// A line of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Line {
    /// One record as text; may hold several lines.
    Text(String),
    /// One record as a value.
    Value(Value),
    /// The end: it is done.
    Done,
    /// The end: it was refused, and why.
    Refused(String),
}

impl Line {
    /// The line with its newline.
    pub(crate) fn encode(&self) -> Vec<u8> {
        // A value of strings, numbers and string-keyed maps always has a JSON form.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Line, Request};

    #[test]
    fn requests_read_as_they_are_written() {
        let command = Command::Trace { in_port: 7, frame: "ip".into() };
        let request = Request { json: true, bridge: Some("br1".into()), command };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
        let short: Request = serde_json::from_str(r#"{"command":"caches"}"#).unwrap();
        assert_eq!(short.command, Command::Caches { set: None });
        assert!(!short.json && short.bridge.is_none());
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for text in ["", "{}", "[]", "{\"command\":\"fly\"}", "{\"command\":true}", "\u{0}", "nul"]
        {
            assert!(serde_json::from_str::<Request>(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_line_is_one_line() {
        let bytes = Line::Text("a\nb".into()).encode();
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(serde_json::from_slice::<Line>(&bytes).unwrap(), Line::Text("a\nb".into()));
    }
}
