//! The effect of each message on the bridge: one file per family of messages.
//!
//! Everything here runs on the agent's thread in the order of the messages, and its changes go to
//! every worker in that order, so that a barrier reply means that all earlier messages are done
//! (clause 6.2).

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
use super::{Bridge, StatisticsReply};
use crate::counters::Counter;
use crate::request::RequestContext;

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
    Later,
    /// The command affects many entries and goes on with [`Bridge::sweep`]. Later requests of the
    /// connection wait.
    Sweep(Box<Sweep>),
}

/// The result of a message.
type ApplyResult = Result<Applied, Error>;

impl Bridge {
    /// Carries out a message of that version. `request` is called where an answer may come later.
    ///
    /// # Errors
    /// The protocol's, for what is refused.
    pub(crate) fn apply(
        &self,
        version: Version,
        message: Message,
        request: impl FnOnce() -> RequestContext,
    ) -> ApplyResult {
        match message {
            Message::PacketOut(body) => {
                self.with_control(|_| ()).ok_or_else(Self::no_tables)?;
                self.counters.bump(Counter::PacketOut);
                self.packet_out(request(), body);
                Ok(Applied::Nothing)
            }
            Message::FlowMod(body) => flow::flow_mod(self, version, &body),
            Message::GroupMod(body) => group::group_mod(self, &body),
            Message::MeterMod(body) => meter::meter_mod(self, &body),
            Message::PortMod(body) => port::port_mod(self, &body),
            Message::TableMod(body) => table::table_mod(self, &body),
            Message::BarrierRequest => {
                self.counters.bump(Counter::Barrier);
                self.stage_barrier(BarrierWaiter::Barrier(request()));
                Ok(Applied::Later)
            }
            Message::FeaturesRequest => Ok(Applied::Reply(features::reply(self, version))),
            Message::GetConfigRequest => config::get(self),
            Message::SetConfig(body) => config::set(self, body),
            Message::QueueGetConfigRequest(port) => queue::config(self, version, port),
            // The connection answers echoes and refuses what only a switch may send; roles, masks
            // and experimenters are the agent's, and multipart requests take longer.
            Message::Hello(_)
            | Message::Error(_)
            | Message::EchoRequest(_)
            | Message::EchoReply(_)
            | Message::Experimenter(_)
            | Message::FeaturesReply(_)
            | Message::GetConfigReply(_)
            | Message::PacketIn(_)
            | Message::FlowRemoved(_)
            | Message::PortStatus(_)
            | Message::MultipartRequest(_)
            | Message::MultipartReply(_)
            | Message::BarrierReply
            | Message::QueueGetConfigReply(_)
            | Message::RoleRequest(_)
            | Message::RoleReply(_)
            | Message::GetAsyncRequest
            | Message::GetAsyncReply(_)
            | Message::SetAsync(_) => Err(Error::BadRequestBadType),
        }
    }

    /// Replies a multipart request (clause 7.3.5).
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
