//! A ready switch as other threads see it: [`SwitchInfo`].

use crate::switch::Ports;
use openflow::message::Features;
use openflow::{DatapathId, Version};
use std::sync::Arc;
use std::time::Instant;

/// Facts about a switch that is ready, as they were at the call that gave them.
#[derive(Clone, Debug)]
pub struct SwitchInfo {
    /// Its datapath id.
    pub dpid: DatapathId,
    /// The version spoken with it.
    pub version: Version,
    /// Its features reply.
    pub features: Arc<Features>,
    /// Its ports by number.
    pub ports: Arc<Ports>,
    /// The other end of its connection, for people: `tcp:192.0.2.7:40312`.
    pub peer: Arc<str>,
    /// The time at which it became ready.
    pub ready_since: Instant,
    /// The shard that serves it.
    pub shard: usize,
}
