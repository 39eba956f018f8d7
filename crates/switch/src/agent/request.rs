//! What the agent does with a controller's message: answers it itself (roles, masks, experimenters)
//! or has the bridge carry it out.

use openflow::message::{ControllerRole, MultipartRequest, MultipartRequestBody};
use openflow::{Error, Message};

use super::connection_log::{LogLine, Pass};
use super::{Agent, Peer};

/// What becomes of a message.
#[derive(Debug)]
pub(super) enum Handling {
    /// The bridge carries it out.
    Bridge(Message),
    /// It is answered at once.
    Reply(Message),
    /// Nothing is to be done.
    Nothing,
    /// It is refused.
    Refused(Error),
}

/// Decides about a message of `peer`.
pub(super) fn handle(agent: &Agent, peer: &Peer, message: Message) -> Handling {
    if peer.role() == ControllerRole::Slave && changes_something(&message) {
        return Handling::Refused(Error::BadRequestIsSlave);
    }
    match message {
        Message::RoleRequest(request) => match agent.role_request(peer, request) {
            Ok(role) => Handling::Reply(Message::RoleReply(role)),
            Err(error) => Handling::Refused(error),
        },
        Message::GetAsyncRequest => {
            Handling::Reply(Message::GetAsyncReply(peer.controller.asynchronous.get()))
        }
        Message::SetAsync(masks) => {
            peer.controller.asynchronous.set(masks);
            agent.update_punt_policy();
            Handling::Nothing
        }
        Message::Experimenter(_) => Handling::Refused(Error::BadRequestBadExperimenter),
        Message::Error(error) => {
            let name = error.error(peer.version).map_or("unknown", Error::name);
            if let Some(Pass { suppressed }) = agent.log.pass(LogLine::Complaint) {
                tracing::warn!(
                    bridge = agent.log_name(),
                    controller = peer.name,
                    error = name,
                    suppressed,
                    "the controller complains"
                );
            }
            Handling::Nothing
        }
        Message::EchoReply(_) => Handling::Nothing,
        message @ (Message::Hello(_)
        | Message::EchoRequest(_)
        | Message::FeaturesRequest
        | Message::FeaturesReply(_)
        | Message::GetConfigRequest
        | Message::GetConfigReply(_)
        | Message::SetConfig(_)
        | Message::PacketIn(_)
        | Message::FlowRemoved(_)
        | Message::PortStatus(_)
        | Message::PacketOut(_)
        | Message::FlowMod(_)
        | Message::GroupMod(_)
        | Message::PortMod(_)
        | Message::TableMod(_)
        | Message::MultipartRequest(_)
        | Message::MultipartReply(_)
        | Message::BarrierRequest
        | Message::BarrierReply
        | Message::QueueGetConfigRequest(_)
        | Message::QueueGetConfigReply(_)
        | Message::RoleReply(_)
        | Message::GetAsyncReply(_)
        | Message::MeterMod(_)) => Handling::Bridge(message),
    }
}

/// Whether a message sends packets or changes the switch, which a slave may not (clause 6.3.5).
fn changes_something(message: &Message) -> bool {
    match message {
        Message::PacketOut(_)
        | Message::FlowMod(_)
        | Message::GroupMod(_)
        | Message::PortMod(_)
        | Message::TableMod(_)
        | Message::MeterMod(_)
        | Message::SetConfig(_) => true,
        Message::MultipartRequest(MultipartRequest { body, .. }) => match body {
            MultipartRequestBody::TableFeatures(tables) => !tables.is_empty(),
            MultipartRequestBody::Desc
            | MultipartRequestBody::Flow(_)
            | MultipartRequestBody::Aggregate(_)
            | MultipartRequestBody::Table
            | MultipartRequestBody::PortStats(_)
            | MultipartRequestBody::Queue { .. }
            | MultipartRequestBody::Group(_)
            | MultipartRequestBody::GroupDesc
            | MultipartRequestBody::GroupFeatures
            | MultipartRequestBody::Meter(_)
            | MultipartRequestBody::MeterConfig(_)
            | MultipartRequestBody::MeterFeatures
            | MultipartRequestBody::PortDesc
            | MultipartRequestBody::Experimenter(_) => false,
        },
        Message::Hello(_)
        | Message::Error(_)
        | Message::EchoRequest(_)
        | Message::EchoReply(_)
        | Message::Experimenter(_)
        | Message::FeaturesRequest
        | Message::FeaturesReply(_)
        | Message::GetConfigRequest
        | Message::GetConfigReply(_)
        | Message::PacketIn(_)
        | Message::FlowRemoved(_)
        | Message::PortStatus(_)
        | Message::MultipartReply(_)
        | Message::BarrierRequest
        | Message::BarrierReply
        | Message::QueueGetConfigRequest(_)
        | Message::QueueGetConfigReply(_)
        | Message::RoleRequest(_)
        | Message::RoleReply(_)
        | Message::GetAsyncRequest
        | Message::GetAsyncReply(_)
        | Message::SetAsync(_) => false,
    }
}
