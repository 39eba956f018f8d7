//! Commands to a shard, from the agent or another shard of its bridge, and events from a worker to
//! the agent.

use std::fmt;
use std::sync::Arc;

use datapath::fast::{Op, Taught};
use netdev::{Port, PortInfo};
use openflow::message::{PacketIn, PacketOut};
use openflow::{Error, PortNo};
use tokio::sync::oneshot;

use super::port_change::TierStepTaken;
use super::port_map::PortMap;
use super::queue::{HandedQueue, Opening};
use super::{Shaper, Shard, TierStep, WorkerPort};
use crate::request::RequestContext;
use crate::upcall::{UpcallBatch, UpcallQueue};

/// A point in the stream of commands that all workers of a bridge must reach.
///
/// This is the rule of the OpenFlow barrier (clause 6.2), and the only mechanism by which the
/// switch knows that something has been applied: the bridge puts [`ShardCommand::Barrier`] behind
/// the ops and packet-outs of every shard, and each shard answers by
/// [`WorkerEvent::BarrierReached`] when it has carried out all commands before it, has sent what
/// these queued for its own ports and has handed the rest to the workers of the other ports. The
/// last answer completes the barrier (`bridge::barriers`). A barrier behind packet-outs is put
/// to several shards twice, so that frames that were handed over are sent too. A frame is sent when
/// its port's device, or a queue with a rate at the port, has taken or refused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BarrierId(pub(crate) u64);

/// One opening of a number: what a worker reports of a port that was removed must not be taken for
/// news of a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortSerial(pub(crate) u64);

/// A command to a bridge's shard on a worker.
pub(crate) enum ShardCommand {
    /// A change of the forwarder's replica.
    Op(Op),
    /// A packet that a controller gives.
    PacketOut(Box<(RequestContext, GivenPacket)>),
    /// Send what is queued, then report [`WorkerEvent::BarrierReached`].
    Barrier(BarrierId),
    /// Report [`WorkerEvent::BarrierReached`] when the counter flushes asked for before are done.
    FlushCounters(BarrierId),
    /// A question, answered by a channel of its own.
    Ask(Box<dyn FnOnce(&mut Shard) + Send>),
    /// The places of ports from now on. A port receives only while the map has it.
    SetMap(Arc<PortMap>),
    /// A port for an index that no other has, and the bridge that waits until it is there.
    AddPort(usize, Box<WorkerPort>, oneshot::Sender<()>),
    /// Other queues for the port at an index, or none.
    Reshape(usize, Option<Box<Shaper>>),
    /// The link of the port at an index is to be down, or up, where the device is the port's own.
    SetLink(usize, bool),
    /// A port takes a step into the kernel tier, and the bridge waits until it has.
    EnterTier(Box<TierStep>, TierStepTaken),
    /// Gives up the port at an index, which the map has no more; the bridge has its device closed.
    RemovePort(usize, oneshot::Sender<Option<Port>>),
    /// From the home of a port: the further queue at an index has this queue of that device from
    /// now on, or none.
    SetQueue(usize, Opening, Option<Box<HandedQueue>>),
    /// On a wire: the port with this number has this address from now on.
    SetAddress(PortNo, [u8; 6]),
    /// From a further queue of the port at an index: that device is gone.
    QueueGone(usize, Opening),
}

/// A packet that a controller gives.
#[derive(Debug)]
pub(crate) enum GivenPacket {
    /// By a packet-out.
    Out(PacketOut),
    /// One that has waited for it, and goes on.
    Resumed(PacketIn),
}

impl fmt::Debug for ShardCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Op(_) => "Op",
            Self::PacketOut(_) => "PacketOut",
            Self::Barrier(_) => "Barrier",
            Self::FlushCounters(_) => "FlushCounters",
            Self::Ask(_) => "Ask",
            Self::SetMap(_) => "SetMap",
            Self::AddPort(..) => "AddPort",
            Self::Reshape(..) => "Reshape",
            Self::SetLink(..) => "SetLink",
            Self::EnterTier(..) => "EnterTier",
            Self::RemovePort(..) => "RemovePort",
            Self::SetQueue(..) => "SetQueue",
            Self::SetAddress(..) => "SetAddress",
            Self::QueueGone(..) => "QueueGone",
        })
    }
}

/// A report of a worker to the agent, beside packet-ins.
#[derive(Debug)]
pub(crate) enum WorkerEvent {
    /// A packet-out was refused, or the resumption of a packet.
    PacketOutRefused(RequestContext, Error),
    /// This worker has reached the barrier.
    BarrierReached(BarrierId),
    /// Packets have taught these entries.
    Taught(Vec<Taught>),
    /// A port's device has changed: its state now.
    PortChanged(PortNo, PortSerial, Box<PortInfo>),
}

/// The queue of packet-ins and events from a bridge's shards to its agent.
pub(crate) type ShardUpcalls = UpcallQueue<PacketIn, WorkerEvent>;
/// Packet-ins and events of one shard that are not in the queue yet.
pub(crate) type PendingUpcalls = UpcallBatch<PacketIn, WorkerEvent>;
/// The queue of commands to a shard.
pub(crate) type CommandQueue = super::commands::Commands<ShardCommand>;
