//! What each message of a controller does to the bridge: one file per family of messages.
//!
//! Everything here runs on the agent's thread, in the order in which the messages came, and what it
//! changes goes to every worker in that order, so that a barrier's reply says what it must: all
//! that came before is done (clause 6.2).

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

use super::marks::Awaited;
use super::{Bridge, Listed};
use crate::counters::Counter;
use crate::worker::Request;

/// What answers a message.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A reply.
    Reply(Message),
    /// Nothing; or an error that a worker finds.
    Nothing,
    /// Nothing; but all controllers are told of a port.
    News(PortStatus),
    /// A barrier's reply, once every worker is there: [`Awaited::Barrier`].
    Later,
    /// Nothing yet: the command means many entries, and goes on with [`Bridge::sweep`]. What comes
    /// behind it waits.
    Sweep(Box<Sweep>),
}

/// The answer of most messages.
type Outcome = Result<Answer, Error>;

impl Bridge {
    /// Carries out a message of that version. `request` is called where an answer may come later.
    ///
    /// # Errors
    /// The protocol's, for what is refused.
    pub(crate) fn apply(
        &self,
        version: Version,
        message: Message,
        request: impl FnOnce() -> Request,
    ) -> Outcome {
        match message {
            Message::PacketOut(body) => {
                self.with_control(|_| ()).ok_or_else(Self::no_tables)?;
                self.counters.bump(Counter::PacketOut);
                self.packet_out(request(), body);
                Ok(Answer::Nothing)
            }
            Message::FlowMod(body) => flow::flow_mod(self, version, &body),
            Message::GroupMod(body) => group::group_mod(self, &body),
            Message::MeterMod(body) => meter::meter_mod(self, &body),
            Message::PortMod(body) => port::port_mod(self, &body),
            Message::TableMod(body) => table::table_mod(self, &body),
            Message::BarrierRequest => {
                self.counters.bump(Counter::Barrier);
                self.reach(Awaited::Barrier(request()));
                Ok(Answer::Later)
            }
            Message::FeaturesRequest => Ok(Answer::Reply(features::reply(self, version))),
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

    /// Answers a multipart request (clause 7.3.5).
    ///
    /// # Errors
    /// The protocol's, for what is refused.
    pub(crate) async fn statistics(
        &self,
        version: Version,
        request: MultipartRequest,
    ) -> Result<Listed, Error> {
        multipart::request(self, version, request).await
    }
}
