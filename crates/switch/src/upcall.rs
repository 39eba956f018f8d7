//! Packet-ins and worker events on their way from a worker to the agent.
//!
//! Open vSwitch calls this an upcall. The module stands below both sides: a worker sends, the agent
//! receives, and neither imports the other for it. A packet-in has a class ([`PacketInClass`]) with
//! a rate limit ([`PacketInPolicer`]) and a share of the queue ([`UpcallQueue`]) of its own.

mod policer;
mod queue;

pub(crate) use policer::{PacketInClass, PacketInPolicer};
pub(crate) use queue::{UpcallBatch, UpcallQueue};
