//! Ports and their queues: shown, and their settings changed.

use clap::Args;
use openflow::message::{MultipartReply, MultipartReplyBody, MultipartRequestBody};
use openflow::port::{PortConfig, PortDesc, PortFeatures, PortMod};
use openflow::text::{PortNames, parse_port};
use openflow::{Message, PortNo, QueueId, Xid};

use super::asking::Asking;
use super::commands::Run;
use super::failure::Failure;
use super::messages::Line;

/// The descriptions of all ports.
pub(super) async fn descriptions(asking: &mut Asking<'_>) -> Result<Vec<PortDesc>, Failure> {
    if asking.session().await?.version.has_port_desc() {
        let answer = asking.statistics(MultipartRequestBody::PortDesc).await?;
        let MultipartReplyBody::PortDesc(ports) = answer else {
            return Err(Failure::refused("the switch gave another answer than asked"));
        };
        return Ok(ports);
    }
    let (_, answer) = asking.session().await?.ask(&Message::FeaturesRequest).await?;
    if let Message::FeaturesReply(features) = answer {
        Ok(features.ports)
    } else {
        Err(super::session::odd(&answer))
    }
}

/// The names of all ports.
pub(super) async fn names(asking: &mut Asking<'_>) -> Result<PortNames, Failure> {
    let ports = descriptions(asking).await?;
    Ok(PortNames::new(ports.iter().map(|port| (port.name.as_str(), port.port_no))))
}

/// Naming of ports in the output.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Naming {
    /// Print ports by their names, as a terminal gets them; not with --json
    #[arg(long, overrides_with = "no_names")]
    names: bool,
    /// Print ports by their numbers, as files and pipes get them
    #[arg(long, overrides_with = "names")]
    no_names: bool,
}

impl Naming {
    /// The names by which ports are printed; none where numbers are. A switch that refuses to
    /// describe its ports leaves them their numbers.
    pub(super) async fn port_names(self, asking: &mut Asking<'_>) -> Result<PortNames, Failure> {
        let by_name = self.names || (asking.out.is_for_people() && !self.no_names);
        if !by_name || asking.out.is_json() {
            return Ok(PortNames::default());
        }
        match names(asking).await {
            Err(Failure::Refused(_)) => Ok(PortNames::default()),
            outcome => outcome,
        }
    }
}

/// A port by its number or its name; `None` for all of them.
async fn number_of(asking: &mut Asking<'_>, port: Option<&str>) -> Result<PortNo, Failure> {
    let Some(text) = port else { return Ok(PortNo::ANY) };
    match parse_port(text) {
        Ok(number) => Ok(number),
        Err(_) => Ok(described(asking, text).await?.port_no),
    }
}

/// The description of a port by its number or its name.
async fn described(asking: &mut Asking<'_>, text: &str) -> Result<PortDesc, Failure> {
    let number = parse_port(text).ok();
    let ports = descriptions(asking).await?;
    let found = ports.into_iter().find(|port| Some(port.port_no) == number || port.name == text);
    found.ok_or_else(|| Failure::Refused(format!("port: there is no port {text}")))
}

/// Counters of ports, all or of one
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl dump-ports\n  weir ctl dump-ports 2")]
pub(super) struct DumpPorts {
    /// The port's number or name
    port: Option<String>,
}

impl Run for DumpPorts {
    async fn run(self, asking: &mut Asking<'_>) -> Result<(), Failure> {
        let port = number_of(asking, self.port.as_deref()).await?;
        asking.describe(MultipartRequestBody::PortStats(port)).await
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

impl Run for DumpPortsDesc {
    async fn run(self, asking: &mut Asking<'_>) -> Result<(), Failure> {
        let ports = match &self.port {
            // Both versions can be asked for all only.
            Some(text) => vec![described(asking, text).await?],
            None => descriptions(asking).await?,
        };
        let body = MultipartReplyBody::PortDesc(ports);
        let reply = Message::MultipartReply(MultipartReply { more: false, body });
        let (session, out) = asking.connected().await?;
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

impl Run for ModPort {
    async fn run(self, asking: &mut Asking<'_>) -> Result<(), Failure> {
        let (mask, config) = setting_of(&self.setting)?;
        let PortDesc { port_no, hw_addr, .. } = described(asking, &self.port).await?;
        let advertise = PortFeatures::empty();
        asking.change(Message::PortMod(PortMod { port_no, hw_addr, config, mask, advertise })).await
    }
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
    Err(Failure::Refused(format!("setting: unknown {setting:?}; {remedy}: {names}")))
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

impl Run for QueueStats {
    async fn run(self, asking: &mut Asking<'_>) -> Result<(), Failure> {
        let queue = match self.queue.as_deref() {
            None | Some("ALL" | "all") => QueueId::ALL,
            Some(text) => {
                let number = |text: &str| openflow::text::parse_number(text, 32);
                let number = Line::argument("queue", text).read(number)?;
                QueueId(u32::try_from(number).unwrap_or(u32::MAX))
            }
        };
        let port = number_of(asking, self.port.as_deref()).await?;
        asking.describe(MultipartRequestBody::Queue { port, queue }).await
    }
}

/// Queues with their rates, all or those of a port
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl queue-get-config\n  weir ctl queue-get-config 1")]
pub(super) struct QueueGetConfig {
    /// The port's number or name; OpenFlow 1.0 is asked port by port
    port: Option<String>,
}

impl Run for QueueGetConfig {
    async fn run(self, asking: &mut Asking<'_>) -> Result<(), Failure> {
        let asks_for_all = asking.session().await?.version.has_queues_of_any_port();
        let asked = if asks_for_all || self.port.is_some() {
            vec![number_of(asking, self.port.as_deref()).await?]
        } else {
            descriptions(asking).await?.into_iter().map(|port| port.port_no).collect()
        };
        for port in asked {
            asking.show(&Message::QueueGetConfigRequest(port)).await?;
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
