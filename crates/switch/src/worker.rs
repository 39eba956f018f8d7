//! The workers: forwarding threads, each with some ports of each bridge.
//!
//! A worker has a shard of each bridge that it serves, with a forwarder and ports. It receives
//! frames in batches, has the shard's forwarder decide, and sends; between two batches it carries
//! out the agent's commands. It polls while there is traffic and sleeps on all ports at once when
//! there is none. It never waits for the agent or for another worker, shares no table with them,
//! and reads no socket. (Open vSwitch and DPDK call such a thread a PMD thread or an lcore.)

mod clock;
mod command;
mod commands;
mod cpu_yield;
mod device_thread;
mod doorbell;
mod egress;
mod handoff;
mod idle;
mod ingress_rate;
mod maintain;
mod perf;
mod poll_set;
mod port;
mod port_change;
mod port_map;
mod ports;
mod queue;
mod reshard;
mod run;
mod shaper;
mod shard;
mod slots;
mod tier;
mod wire;

pub(crate) use clock::{Clock, VIRTUAL};
pub(crate) use command::{
    BarrierId, CommandQueue, GivenPacket, PortSerial, ShardCommand, ShardUpcalls, WorkerEvent,
};
pub(crate) use device_thread::close_all;
pub(crate) use doorbell::Doorbell;
pub(crate) use egress::Egress;
pub(crate) use perf::{
    CountedPorts, PerfReading, PerfStats, PortAssignment, ShardSample, WorkerInfo, WorkerState,
};
pub(crate) use port::WorkerPort;
pub(crate) use port_map::{PortLocation, PortMap};
pub(crate) use ports::{Ports, distribute_ports};
pub(crate) use reshard::{WorkerCommand, WorkerQueue};
pub(crate) use run::{Worker, WorkerParts};
pub(crate) use shaper::{QueueCells, Shaper};
pub(crate) use shard::{Forwarding, Shard, ShardParts};
pub(crate) use slots::Slots;
pub(crate) use tier::{
    OpeningOfPort, OutsidePort, ShardTier, TierEntry, TierPlan, TierStep, take_over,
};
