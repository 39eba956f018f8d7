//! What each message of a controller does to the datapath: one file per family of messages.
//!
//! Everything here runs on the worker's thread, in the order in which the messages came, so that a
//! barrier's reply says what it must: all that came before is done (clause 6.2).

mod config;
mod features;
mod flow;
mod group;
mod meter;
mod multipart;
mod packet;
mod port;
mod queue;
mod table;

use openflow::{Error, Message, Version};

use super::{Request, Upcall, Worker};
use crate::counters::Counter;

/// What answers a message: a reply, nothing, or the protocol's error.
pub(crate) type Answer = Result<Option<Message>, Error>;

impl Worker {
    /// Carries out a message and hands up what answers it.
    pub(super) fn answer(&mut self, request: Request, message: Message) {
        match self.apply(request.version, message) {
            Ok(Some(reply)) => self.up.upcalls.push(Upcall::Reply(request, reply)),
            Ok(None) => {}
            Err(error) => self.up.upcalls.push(Upcall::Refused(request, error)),
        }
    }

    /// Carries out a message of that version.
    ///
    /// # Errors
    /// The protocol's, for what is refused.
    pub(crate) fn apply(&mut self, version: Version, message: Message) -> Answer {
        match message {
            Message::PacketOut(body) => packet::packet_out(self, &body),
            Message::FlowMod(body) => flow::flow_mod(self, version, &body),
            Message::GroupMod(body) => group::group_mod(self, &body),
            Message::MeterMod(body) => meter::meter_mod(self, &body),
            Message::PortMod(body) => port::port_mod(self, &body),
            Message::TableMod(body) => table::table_mod(self, &body),
            Message::MultipartRequest(body) => multipart::request(self, version, body),
            Message::BarrierRequest => Ok(Some(self.barrier())),
            Message::FeaturesRequest => Ok(Some(features::reply(self, version))),
            Message::GetConfigRequest => Ok(Some(config::get(self))),
            Message::SetConfig(body) => config::set(self, body),
            Message::QueueGetConfigRequest(port) => queue::config(self, version, port),
            // The connection answers echoes and refuses what only a switch may send; roles, masks
            // and experimenters are the agent's.
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

    /// Everything before has been carried out; what it wants sent is sent now.
    fn barrier(&mut self) -> Message {
        self.counters.bump(Counter::Barrier);
        self.ports.flush();
        Message::BarrierReply
    }
}
