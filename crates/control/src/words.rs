//! Requests and the lines of their answers: one request line in, record lines and one end line out.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest request line in bytes; a longer one ends the connection.
pub const LINE_MAX: usize = 1 << 20;

/// A command on the control socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControlCommand {
    /// The bridges: name, datapath id, ports, connections.
    ListBridges,
    /// Another bridge for the running switch, of the name that the request has.
    AddBridge {
        /// Its options, as keys of the switch's file: `port=tap:vm1`, and so on.
        options: Vec<String>,
    },
    /// The bridge that the request names goes.
    DelBridge,
    /// The settings of the bridge, and its controllers.
    Show,
    /// From the end of this answer on the connection speaks OpenFlow.
    Openflow,
    /// The way of one packet through the tables.
    Trace {
        /// A match that the packet is to meet, with `in_port`; or its port alone, by number or
        /// name.
        packet: String,
        /// The frame in hex digits, or a match without `in_port`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame: Option<String>,
    },
    /// The ports of the bridge: their devices, places and remarks.
    Ports,
    /// A port for the running bridge.
    AddPort {
        /// `[NUMBER=]KIND:NAME[?OPTION=VALUE&..]`.
        port: String,
        /// Its settings.
        #[serde(flatten)]
        settings: PortSettings,
    },
    /// Other settings for a port of the running bridge.
    SetPort {
        /// Its number or name.
        port: String,
        /// Another number for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
        /// The settings to change.
        #[serde(flatten)]
        settings: PortSettings,
    },
    /// The file of `--config` is read again, and what has changed in it is applied.
    Reload,
    /// A port of the running bridge goes.
    DelPort {
        /// Its number or name.
        port: String,
    },
    /// The forwarding threads.
    Workers,
    /// Counts of the decision caches; or the caches to use from now on.
    Caches {
        /// `off`, or some of `frame`, `key` and `kernel` with commas between.
        #[serde(default)]
        set: Option<String>,
    },
    /// Every counter and drop reason by name.
    Counters,
    /// The counts of all bridges at one moment, as [`CountsRecord`](crate::CountsRecord)s.
    Counts,
    /// The addresses that `NORMAL` has learnt.
    Macs,
}

/// Settings of a port beside its device. Absent ones stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSettings {
    /// The rate of its link in bits per second, as `100M`, or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// All its queues, each as `ID[,min=P%][,max=P%][,frames=COUNT]`, or `none` alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    /// Its membership in VLANs, as `access:10`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<String>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlRequest {
    /// Whether records come as JSON values instead of text.
    #[serde(default)]
    pub json: bool,
    /// The bridge that is meant; the only one where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<String>,
    /// The command.
    #[serde(flatten)]
    pub command: ControlCommand,
}
/// A line of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlLine {
    /// One record as text; may hold several lines.
    Text(String),
    /// One record as a value.
    Value(Value),
    /// The end: it is done.
    Done,
    /// The end: it was refused, and why.
    Refused(String),
}

impl ControlLine {
    /// The line with its newline.
    pub fn encode(&self) -> Vec<u8> {
        // A value of strings, numbers and string-keyed maps always has a JSON form.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{ControlCommand, ControlLine, ControlRequest};

    #[test]
    fn requests_read_as_they_are_written() {
        let command = ControlCommand::Trace { packet: "7".into(), frame: Some("ip".into()) };
        let request = ControlRequest { json: true, bridge: Some("br1".into()), command };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<ControlRequest>(&text).unwrap(), request);
        let short: ControlRequest = serde_json::from_str(r#"{"command":"caches"}"#).unwrap();
        assert_eq!(short.command, ControlCommand::Caches { set: None });
        assert!(!short.json && short.bridge.is_none());
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for text in ["", "{}", "[]", "{\"command\":\"fly\"}", "{\"command\":true}", "\u{0}", "nul"]
        {
            assert!(serde_json::from_str::<ControlRequest>(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_line_is_one_line() {
        let bytes = ControlLine::Text("a\nb".into()).encode();
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(
            serde_json::from_slice::<ControlLine>(&bytes).unwrap(),
            ControlLine::Text("a\nb".into())
        );
    }
}
