//! The requests of the control socket: what OpenFlow has no message for.

use serde::{Deserialize, Serialize};

/// What the control socket can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Command {
    /// The bridges: name, datapath id, ports, connections.
    ListBridges,
    /// How the bridge was set up, and its controllers.
    Show,
    /// From the end of this answer on the connection speaks OpenFlow.
    Openflow,
    /// The way of one packet through the tables.
    Trace {
        /// The port that the packet comes in by.
        in_port: u32,
        /// The frame in hex digits, or a match that it is to meet.
        frame: String,
    },
    /// The forwarding threads.
    Workers,
    /// How the caches of decisions do; or which are used from now on.
    Caches {
        /// `off`, or some of `frame` and `key` with a comma between.
        #[serde(default)]
        set: Option<String>,
    },
    /// Every counter and drop reason by name.
    Counters,
}
