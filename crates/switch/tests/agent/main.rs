//! The switch end to end: a real agent and worker in this process, memory ports, and a scripted
//! controller over a Unix socket that writes and reads frames itself.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, whatever comes in place of what it expects"
)]

mod auxiliary;
mod bad_input;
mod bridge_changes;
mod bridges;
mod bundles;
mod channel_cases;
mod connections;
mod control;
mod controllers_of_actions;
mod ctl;
mod damaged_messages;
#[cfg(feature = "dpdk")]
mod dpdk_queues;
mod errors;
mod every_error;
mod flow_monitors;
mod forward;
mod handshake;
mod harness;
mod kernel_tier;
mod kernel_tier_bridges;
mod kernel_tier_changes;
mod kernel_tier_full;
mod kernel_tier_killed;
mod kernel_tier_normal;
mod kernel_tier_patch;
mod kernel_tier_peer;
mod kernel_tier_same;
mod kernel_tier_sockets;
mod learn;
mod live_settings;
mod metrics;
mod named_tables;
mod nicira_flows;
mod nicira_requests;
mod patch_ports;
mod port_changes;
mod port_queues;
mod queues;
mod reconcile;
mod roles;
mod span;
mod statistics;
mod sweeps;
mod tier_rig;
mod version_1_1;
mod version_1_2;
mod version_1_4;
mod version_1_5;
mod veth;
mod veth_changes;
mod wire;
mod workers;
