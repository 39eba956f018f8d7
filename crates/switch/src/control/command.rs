//! The commands of `weir ctl`: subcommands, their help, and the socket's requests, in one enum.

use clap::Subcommand;
use serde::{Deserialize, Serialize};

/// What the control socket can be asked. Flows, groups and meters are written as `ovs-ofctl` takes
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Who the switch is, its ports, controllers and tables
    Show,
    /// Flow entries, all or those that FLOW covers
    DumpFlows {
        /// A match, for example table=0,ip,nw_dst=10.0.0.0/8
        #[serde(default)]
        flow: Option<String>,
    },
    /// Counters of every port
    DumpPorts,
    /// Groups and their counters
    DumpGroups,
    /// Meters and their counters
    DumpMeters,
    /// Counters of every table that has entries
    DumpTables,
    /// Sums over flow entries, all or those that FLOW covers
    DumpAggregate {
        /// A match
        #[serde(default)]
        flow: Option<String>,
    },
    /// Counters of every queue
    DumpQueues,
    /// Who made the switch
    DumpDesc,
    /// What groups can do
    GroupFeatures,
    /// What meters can do
    MeterFeatures,
    /// Add a flow entry, for example priority=10,in_port=1,actions=output:2
    AddFlow {
        /// The flow entry
        flow: String,
    },
    /// Change the actions of the flow entries that FLOW covers
    ModFlows {
        /// Match and actions
        flow: String,
        /// Only the entry of equal match and priority
        #[arg(long)]
        #[serde(default)]
        strict: bool,
    },
    /// Delete flow entries, all or those that FLOW covers
    DelFlows {
        /// A match
        #[serde(default)]
        flow: Option<String>,
        /// Only the entry of equal match and priority
        #[arg(long)]
        #[serde(default)]
        strict: bool,
    },
    /// Add a group, for example group_id=1,type=all,bucket=actions=output:1
    AddGroup {
        /// The group
        group: String,
    },
    /// Change a group: type and buckets
    ModGroup {
        /// The group
        group: String,
    },
    /// Delete groups: all, or one as group_id=1
    DelGroups {
        /// Which
        #[serde(default)]
        group: Option<String>,
    },
    /// Add a meter, for example meter=1,kbps,band=type=drop,rate=1000
    AddMeter {
        /// The meter
        meter: String,
    },
    /// Change a meter: flags and bands
    ModMeter {
        /// The meter
        meter: String,
    },
    /// Delete meters: all, or one as meter=1
    DelMeters {
        /// Which
        #[serde(default)]
        meter: Option<String>,
    },
    /// Change a port's settings
    ModPort {
        /// The port's number, or LOCAL
        port: String,
        /// up, down, or one of stp, receive, receive-stp, flood, forward and packet-in, with no- in
        /// front or without
        setting: String,
    },
    /// Send a packet by a list of actions
    PacketOut {
        /// The port that it counts as received by, for example CONTROLLER
        in_port: String,
        /// For example output:2, or TABLE for the tables
        actions: String,
        /// The frame in hex digits
        frame: String,
    },
    /// How IP fragments are treated: normal, drop or reassemble
    SetFrags {
        /// The treatment
        mode: String,
    },
    /// The way of one packet through the tables; nothing is sent and nothing is counted
    Trace {
        /// The port that the packet comes in by
        in_port: u32,
        /// The frame in hex digits, or a match that it is to meet, for example tcp,tp_dst=80
        frame: String,
    },
    /// The forwarding threads: their ports, and how they spend their time
    Workers,
    /// How the caches of decisions do; or which are used from now on
    Caches {
        /// off, or some of exact and flow with a comma between
        #[serde(default)]
        set: Option<String>,
    },
    /// Every counter and drop reason by name
    Counters,
}
