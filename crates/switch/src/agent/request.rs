//! The dispatch of a controller's messages, the only place that distinguishes all of them: the
//! agent answers roles, masks and experimenters itself; the others are commands of the bridge.

use channel::{LogLine, Pass};
use openflow::flow::FlowForm;
use openflow::message::{AsyncConfig, ControllerRole, ErrorMessage, PacketInForm, SwitchConfig};
use openflow::{Error, Message};

use super::bundles::{BundleMessage, Bundles};
use super::{Agent, Peer, asynchronous, nicira};
use crate::bridge::BridgeCommand;

/// The outcome of the dispatch.
#[derive(Debug)]
pub(super) enum Handling {
    /// A command of the bridge.
    Bridge(BridgeCommand),
    /// A reply.
    Reply(Message),
    /// No reply.
    Nothing,
    /// Flow-mods name their table from now on, or do not.
    TableIds(bool),
    /// Flow entries are sent in this form from now on.
    FlowForm(FlowForm),
    /// Packet-ins are sent in this form from now on.
    PacketInForm(PacketInForm),
    /// An error.
    Refused(Error),
}

/// Dispatches a message of `peer`, whose bundles these are. `by` is called for messages about them.
pub(super) fn dispatch(
    agent: &Agent,
    peer: &Peer,
    bundles: &mut Bundles,
    message: Message,
    by: impl FnOnce() -> BundleMessage,
) -> Handling {
    let is_slave = peer.role() == ControllerRole::Slave;
    let bridge = |command: BridgeCommand| match command.check_slave() {
        Err(error) if is_slave => Handling::Refused(error),
        Ok(()) | Err(_) => Handling::Bridge(command),
    };
    match message {
        Message::RoleRequest(request) => match agent.role_request(peer, request) {
            Ok(role) => Handling::Reply(Message::RoleReply(role)),
            Err(error) => Handling::Refused(error),
        },
        Message::GetAsyncRequest => {
            Handling::Reply(Message::GetAsyncReply(peer.controller.asynchronous.get()))
        }
        Message::SetAsync(masks) => set_async(agent, peer, &masks),
        Message::BundleControl(_) | Message::BundleAdd(_) if is_slave => {
            Handling::Refused(Error::BadRequestIsSlave)
        }
        Message::BundleControl(asked) => bundles.control(asked, &by()),
        Message::BundleAdd(body) => {
            let has_memory = agent.bridge.has_memory(body.message.len());
            match bundles.add(&body, &by(), has_memory) {
                Ok(()) => Handling::Nothing,
                Err(error) => Handling::Refused(error),
            }
        }
        Message::Experimenter(body) => nicira::handle(agent, peer, &body),
        Message::Error(error) => {
            log_complaint(agent, peer, &error);
            Handling::Nothing
        }
        Message::PacketOut(body) => bridge(BridgeCommand::PacketOut(body)),
        Message::FlowMod(body) => bridge(BridgeCommand::FlowMod(body)),
        Message::GroupMod(body) => bridge(BridgeCommand::GroupMod(body)),
        Message::MeterMod(body) => bridge(BridgeCommand::MeterMod(body)),
        Message::PortMod(body) => bridge(BridgeCommand::PortMod(body)),
        Message::TableMod(body) => bridge(BridgeCommand::TableMod(body)),
        Message::BarrierRequest => bridge(BridgeCommand::Barrier),
        Message::FeaturesRequest => bridge(BridgeCommand::Features),
        Message::GetConfigRequest => bridge(BridgeCommand::GetConfig { flags: own_flags(peer) }),
        Message::SetConfig(body) => bridge(BridgeCommand::SetConfig(take_flag(agent, peer, body))),
        Message::QueueGetConfigRequest(port) => bridge(BridgeCommand::QueueGetConfig(port)),
        Message::MultipartRequest(body) => bridge(BridgeCommand::Multipart(body)),
        Message::EchoReply(_) => Handling::Nothing,
        // The connection answers hello and echo requests, and refuses what only a switch may send,
        // by the message's row.
        Message::Hello(_)
        | Message::EchoRequest(_)
        | Message::FeaturesReply(_)
        | Message::GetConfigReply(_)
        | Message::PacketIn(_)
        | Message::FlowRemoved(_)
        | Message::PortStatus(_)
        | Message::MultipartReply(_)
        | Message::BarrierReply
        | Message::QueueGetConfigReply(_)
        | Message::RoleReply(_)
        | Message::RoleStatus(_)
        | Message::TableStatus(_)
        | Message::RequestForward(_)
        | Message::ControllerStatus(_)
        | Message::GetAsyncReply(_) => Handling::Refused(Error::BadRequestBadType),
    }
}

/// The flags of the switch's settings that are a connection's.
fn own_flags(peer: &Peer) -> u16 {
    let config = peer.controller.asynchronous.get();
    let is_set = peer.version.has_invalid_ttl_flag() && asynchronous::has_invalid_ttl(&config);
    if is_set { SwitchConfig::INVALID_TTL } else { 0 }
}

/// Takes the flag of settings that is the connection's, if the version has it; the settings without
/// it. A slave's settings, and those that the bridge refuses, change nothing.
fn take_flag(agent: &Agent, peer: &Peer, asked: SwitchConfig) -> SwitchConfig {
    if !peer.version.has_invalid_ttl_flag() || peer.role() == ControllerRole::Slave {
        return asked;
    }
    let rest = SwitchConfig { flags: asked.flags & !SwitchConfig::INVALID_TTL, ..asked };
    if datapath::Settings::default().set_switch_config(rest).is_ok() {
        let masks = &peer.controller.asynchronous;
        let is_wanted = asked.flags & SwitchConfig::INVALID_TTL != 0;
        masks.set(asynchronous::with_invalid_ttl(masks.get(), is_wanted));
        agent.update_punt_policy();
    }
    rest
}

/// Changes the masks of a controller's asynchronous messages.
fn set_async(agent: &Agent, peer: &Peer, change: &AsyncConfig) -> Handling {
    if let Err(error) = asynchronous::check(peer.version, change) {
        return Handling::Refused(error);
    }
    let before = peer.controller.asynchronous.get();
    peer.controller.asynchronous.set(before.changed_by(change));
    agent.update_punt_policy();
    Handling::Nothing
}

/// Logs an error that the controller has sent.
fn log_complaint(agent: &Agent, peer: &Peer, error: &ErrorMessage) {
    let name = error.error(peer.version).map_or("unknown", Error::name);
    if let Some(Pass { suppressed, bridges }) = agent.log_pass(LogLine::Complaint) {
        tracing::warn!(
            bridge = agent.log_name(),
            controller = peer.name,
            error = name,
            suppressed,
            bridges,
            "the controller complains"
        );
    }
}
