//! The effect of each message on the bridge: one file per family of messages.
//!
//! Everything here runs on the agent's thread in the order of the messages, and its changes go to
//! every worker in that order, so that a barrier reply means that all earlier messages are done
//! (clause 6.2).

mod bundle;
mod config;
mod features;
mod flow;
mod group;
mod meter;
mod multipart;
mod port;
mod queue;
mod table;

use datapath::fast::Sweep;
use openflow::message::MultipartRequest;
use openflow::port::PortStatus;
use openflow::{Error, Message, Version};

use super::barriers::BarrierWaiter;
use super::bundle::RefusedMessage;
use super::{Bridge, BridgeCommand, StatisticsReply};
use crate::counters::Counter;
use crate::request::RequestContext;
use crate::worker::GivenPacket;

/// The outcome of an accepted message.
#[derive(Debug)]
pub(crate) enum Applied {
    /// A reply.
    Reply(Message),
    /// No reply; a worker may still report an error.
    Nothing,
    /// No reply; the status of a port goes to all controllers.
    PortStatus(PortStatus),
    /// A barrier reply, once every worker has reached it: [`BarrierWaiter::Barrier`].
    AtBarrier,
    /// The bundle's reply, once every worker has reached it: [`BarrierWaiter::Bundle`]. These
    /// statuses of ports go to all controllers.
    Bundle(Vec<PortStatus>),
    /// Nothing of a bundle is done.
    BundleRefused(RefusedMessage),
    /// A reply at the end of a task. Later requests of the connection wait.
    Later(Task),
}

/// The rest of a long command.
#[derive(Debug)]
pub(crate) enum Task {
    /// It affects many entries, and goes on with [`Bridge::sweep`].
    Sweep(Box<Sweep>),
    /// It goes on with [`Bridge::statistics`].
    Statistics(MultipartRequest),
}

/// The result of a message.
type ApplyResult = Result<Applied, Error>;

impl Bridge {
    /// Carries out a command of that version. `request` is called where a reply or an error may
    /// come later.
    ///
    /// # Errors
    /// The protocol's, for what is refused.
    pub(crate) fn apply(
        &self,
        version: Version,
        command: BridgeCommand,
        request: impl FnOnce() -> RequestContext,
    ) -> ApplyResult {
        match command {
            BridgeCommand::PacketOut(body) => {
                self.with_control(|_| ()).ok_or_else(Self::no_tables)?;
                self.counters.bump(Counter::PacketOut);
                self.stage_packet(request(), GivenPacket::Out(body));
                Ok(Applied::Nothing)
            }
            BridgeCommand::Resume(paused) => {
                self.with_control(|_| ()).ok_or_else(Self::no_tables)?;
                self.stage_packet(request(), GivenPacket::Resumed(paused));
                Ok(Applied::Nothing)
            }
            BridgeCommand::FlowMod(body) => flow::flow_mod(self, version, &body),
            BridgeCommand::GroupMod(body) => group::group_mod(self, &body),
            BridgeCommand::MeterMod(body) => meter::meter_mod(self, &body),
            BridgeCommand::PortMod(body) => port::port_mod(self, &body),
            BridgeCommand::TableMod(body) => table::table_mod(self, version, &body),
            BridgeCommand::Bundle(bundle) => self.commit(version, &bundle, request),
            BridgeCommand::Barrier => {
                self.counters.bump(Counter::Barrier);
                self.stage_barrier(BarrierWaiter::Barrier(request()));
                Ok(Applied::AtBarrier)
            }
            BridgeCommand::Features => Ok(Applied::Reply(features::reply(self, version))),
            BridgeCommand::GetConfig { flags } => config::get(self, flags),
            BridgeCommand::SetConfig(body) => config::set(self, body),
            BridgeCommand::QueueGetConfig(port) => queue::config(self, version, port),
            BridgeCommand::Multipart(request) => Ok(Applied::Later(Task::Statistics(request))),
        }
    }

    /// Answers a multipart request (clause 7.3.5).
    ///
    /// # Errors
    /// The protocol's, for what is refused.
    pub(crate) async fn statistics(
        &self,
        version: Version,
        request: MultipartRequest,
    ) -> Result<StatisticsReply, Error> {
        multipart::request(self, version, request).await
    }
}
