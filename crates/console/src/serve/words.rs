//! The requests of the control socket, in the words of TRex's client.

use generator::profile::StreamSpec;
use serde::{Deserialize, Deserializer};

/// The commands of the server. Without `ports`, all ports are meant.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum GeneratorCommand {
    /// The version of the program and its ports.
    Connect,
    /// The ports: name, kind, address, link, speed.
    GetPortInfo {
        #[serde(default)]
        ports: Option<Vec<usize>>,
    },
    /// More streams, whole or not at all. Where `ports` is left out, each stream goes to the port
    /// that it names.
    AddStreams {
        #[serde(default)]
        ports: Option<Vec<usize>>,
        streams: Vec<GivenStream>,
    },
    /// Takes streams away: those of these names, or all.
    RemoveStreams {
        #[serde(default)]
        ports: Option<Vec<usize>>,
        #[serde(default)]
        names: Option<Vec<String>>,
    },
    /// The streams as they were added.
    GetStreams {
        #[serde(default)]
        ports: Option<Vec<usize>>,
    },
    /// Stops, takes all streams away and clears the counts.
    Reset {
        #[serde(default)]
        ports: Option<Vec<usize>>,
    },
    /// Starts the ports that have streams.
    Start {
        #[serde(default)]
        ports: Option<Vec<usize>>,
        /// All rates times this.
        #[serde(default = "one")]
        mult: f64,
        /// Seconds.
        #[serde(default)]
        duration: Option<f64>,
    },
    /// Other rates from now on: those of the streams times this.
    Update {
        #[serde(default)]
        ports: Option<Vec<usize>>,
        mult: f64,
    },
    /// Sends nothing until `resume`.
    Pause {
        #[serde(default)]
        ports: Option<Vec<usize>>,
    },
    /// Goes on after `pause`.
    Resume {
        #[serde(default)]
        ports: Option<Vec<usize>>,
    },
    /// Stops.
    Stop {
        #[serde(default)]
        ports: Option<Vec<usize>>,
    },
    /// Answers when no port sends any more.
    WaitOnTraffic {
        #[serde(default)]
        ports: Option<Vec<usize>>,
        /// Seconds after which it is refused.
        #[serde(default = "a_minute")]
        timeout: f64,
        /// Seconds that frames in flight are waited for after the last has left.
        #[serde(default = "a_tenth")]
        rx_delay: f64,
    },
    /// All counts.
    GetStats,
    /// Counts from zero again.
    ClearStats,
}

/// A stream as it was given.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GivenStream {
    /// The stream, on port 0 where it names none.
    pub(super) spec: StreamSpec,
    /// Whether it names its port.
    pub(super) names_port: bool,
}

impl<'de> Deserialize<'de> for GivenStream {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(from)?;
        let names_port = value.get("port").is_some();
        let spec = serde_json::from_value(value).map_err(serde::de::Error::custom)?;
        Ok(Self { spec, names_port })
    }
}

fn one() -> f64 {
    1.0
}

fn a_minute() -> f64 {
    60.0
}

fn a_tenth() -> f64 {
    0.1
}

#[cfg(test)]
mod tests {
    use super::GeneratorCommand;

    #[test]
    fn requests_are_read_with_what_they_may_leave_out() {
        let read = |text: &str| serde_json::from_str::<GeneratorCommand>(text).unwrap();
        let start = GeneratorCommand::Start { ports: None, mult: 1.0, duration: None };
        assert_eq!(read(r#"{"command":"start"}"#), start);
        let ports = Some(vec![0, 1]);
        assert_eq!(
            read(r#"{"command":"stop","ports":[0,1]}"#),
            GeneratorCommand::Stop { ports: ports.clone() }
        );
        let text =
            r#"{"command":"add-streams","ports":[0,1],"streams":[{"rate":"80%","size":64}]}"#;
        let GeneratorCommand::AddStreams { ports: held, streams } = read(text) else { panic!() };
        assert_eq!((held, streams.len()), (ports, 1));
        assert!(!streams[0].names_port);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"command":"fly"}"#,
            r#"{"command":"start","speed":1}"#,
            r#"{"command":"update"}"#,
            r#"{"command":"add-streams","streams":[{"rat":"80%"}]}"#,
        ] {
            assert!(serde_json::from_str::<GeneratorCommand>(text).is_err(), "{text}");
        }
    }
}
