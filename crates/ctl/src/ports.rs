//! Ports and their queues: shown, and their settings changed.

use clap::Args;
use openflow::message::{MultipartReply, MultipartReplyBody, MultipartRequestBody};
use openflow::port::{PortConfig, PortDesc, PortFeatures, PortMod};
use openflow::text::{parse_number, parse_port};
use openflow::{Message, PortNo, QueueId, Xid};

use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::messages::Line;
use super::port_names::descriptions;

/// A port by its number or its name; `None` for all of them.
async fn number_of(
    context: &mut CommandContext<'_>,
    port: Option<&str>,
) -> Result<PortNo, Failure> {
    let Some(text) = port else { return Ok(PortNo::ANY) };
    match numbered(text)? {
        Some(number) => Ok(number),
        None => Ok(described(context, text).await?.port_no),
    }
}

/// The number in a text that is no name of a port.
fn numbered(text: &str) -> Result<Option<PortNo>, Failure> {
    match parse_port(text) {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.may_be_port => Ok(None),
        Err(error) => Err(Line::argument("port", text).error(&error).failure),
    }
}

/// The description of a port by its number or its name.
async fn described(context: &mut CommandContext<'_>, text: &str) -> Result<PortDesc, Failure> {
    let number = numbered(text)?;
    let ports = descriptions(context).await?;
    let found = ports.into_iter().find(|port| Some(port.port_no) == number || port.name == text);
    found.ok_or_else(|| Failure::NotUnderstood(format!("port: there is no port {text}")))
}

/// Counters of ports, all or of one
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl dump-ports\n  weir ctl dump-ports 2")]
pub(super) struct DumpPorts {
    /// The port's number or name
    port: Option<String>,
}

impl Execute for DumpPorts {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let port = number_of(context, self.port.as_deref()).await?;
        context.describe(MultipartRequestBody::PortStats(port)).await
    }
}

/// Ports with their settings, state and speed, all or one
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl dump-ports-desc\n  weir ctl dump-ports-desc 2")]
pub(super) struct DumpPortsDesc {
    /// The port's number or name
    port: Option<String>,
}

impl DumpPortsDesc {
    /// Of all ports.
    pub(super) fn all() -> Self {
        Self { port: None }
    }
}

impl Execute for DumpPortsDesc {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let ports = match &self.port {
            // Both versions can be asked for all only.
            Some(text) => vec![described(context, text).await?],
            None => descriptions(context).await?,
        };
        let body = MultipartReplyBody::PortDesc(ports);
        let reply = Message::MultipartReply(MultipartReply { more: false, body });
        let (session, out) = context.connected().await?;
        out.reply(session.version, Xid(2), &reply)
    }
}

/// Change a port's settings
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl mod-port 2 down\n  weir ctl mod-port 2 no-flood")]
pub(super) struct ModPort {
    /// The port's number or name
    port: String,
    /// up, down, or one of stp, receive, receive-stp, flood, forward and packet-in, with no- in
    /// front or without
    setting: String,
}

/// The settings of a port by their names, and whether the name says that the bit is off.
const SETTINGS: [(&str, PortConfig); 7] = [
    ("down", PortConfig::PORT_DOWN),
    ("no-stp", PortConfig::NO_STP),
    ("no-receive", PortConfig::NO_RECV),
    ("no-receive-stp", PortConfig::NO_RECV_STP),
    ("no-flood", PortConfig::NO_FLOOD),
    ("no-forward", PortConfig::NO_FWD),
    ("no-packet-in", PortConfig::NO_PACKET_IN),
];

impl Execute for ModPort {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let (mask, config) = setting_of(&self.setting)?;
        let PortDesc { port_no, hw_addr, .. } = described(context, &self.port).await?;
        let advertise = PortFeatures::empty();
        context
            .change(Message::PortMod(PortMod { port_no, hw_addr, config, mask, advertise }))
            .await
    }
}

/// All settings of `mod-port`.
#[must_use]
pub fn port_settings() -> Vec<String> {
    let both =
        SETTINGS.iter().flat_map(|(name, _)| [name, name.strip_prefix("no-").unwrap_or("up")]);
    both.map(str::to_owned).collect()
}

/// The bit that a setting is about, and its value.
fn setting_of(setting: &str) -> Result<(PortConfig, PortConfig), Failure> {
    for (name, bit) in SETTINGS {
        if setting == name {
            return Ok((bit, bit));
        }
        if setting == name.strip_prefix("no-").unwrap_or("up") {
            return Ok((bit, PortConfig::empty()));
        }
    }
    let names = SETTINGS.map(|(name, _)| name).join(", ");
    let remedy = "use up, or with or without no-";
    Err(Failure::NotUnderstood(format!("setting: unknown {setting:?}; {remedy}: {names}")))
}

/// Counters of queues, all, of one port or one
#[derive(Args, Clone, Debug)]
#[command(
    alias = "dump-queues",
    after_help = "Examples:\n  weir ctl queue-stats\n  weir ctl queue-stats 1 5"
)]
pub(super) struct QueueStats {
    /// The port's number or name, or ANY
    port: Option<String>,
    /// The queue's number, or ALL
    queue: Option<String>,
}

impl Execute for QueueStats {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let queue = match self.queue.as_deref() {
            None | Some("ALL" | "all") => QueueId::ALL,
            Some(text) => QueueId(Line::argument("queue", text).read(parse_number)?),
        };
        let port = number_of(context, self.port.as_deref()).await?;
        context.describe(MultipartRequestBody::Queue { port, queue }).await
    }
}

/// Queues with their rates, all or those of a port
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl queue-get-config\n  weir ctl queue-get-config 1")]
pub(super) struct QueueGetConfig {
    /// The port's number or name; OpenFlow 1.0 is asked port by port
    port: Option<String>,
}

impl Execute for QueueGetConfig {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let version = context.session().await?.version;
        if version.has_queue_desc() {
            let port = number_of(context, self.port.as_deref()).await?;
            let queue = QueueId::ALL;
            return context.describe(MultipartRequestBody::QueueDesc { port, queue }).await;
        }
        let asks_for_all = version.has_queues_of_any_port();
        let asked = if asks_for_all || self.port.is_some() {
            vec![number_of(context, self.port.as_deref()).await?]
        } else {
            descriptions(context).await?.into_iter().map(|port| port.port_no).collect()
        };
        for port in asked {
            context.show(&Message::QueueGetConfigRequest(port)).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use openflow::port::PortConfig;

    use super::setting_of;

    #[test]
    fn settings_are_named_as_ovs_ofctl_names_them() {
        let off = PortConfig::empty();
        let down = PortConfig::PORT_DOWN;
        assert_eq!(setting_of("up"), Ok((down, off)));
        assert_eq!(setting_of("down"), Ok((down, down)));
        assert_eq!(setting_of("no-flood"), Ok((PortConfig::NO_FLOOD, PortConfig::NO_FLOOD)));
        assert_eq!(setting_of("receive"), Ok((PortConfig::NO_RECV, off)));
        assert!(setting_of("flod").unwrap_err().message().unwrap().contains("no-flood"));
    }
}
