//! A switch that runs already, a vendor's box for example: the lab connects to its OpenFlow channel
//! and sends at the devices of this machine, or of boxes with an agent, that lead to its ports.
//!
//! It knows of the switch only what its inventory states. Flow entries, groups and meters of the
//! switch are deleted before those of a cell are loaded.

use std::path::PathBuf;

use channel::{Endpoint, Tls, TlsFiles};
use programs::tools::Missing;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{Dut, DutPlan, Lack, NO_CACHES, NO_REPLAY, ONE_THREAD, StartedDut, refuse, tls_files};
use crate::service::ProgramPaths;
use crate::settings::{ChannelTransport, Forwarding, Settings};
use crate::testbed::external::{EndPlace, Wiring};

/// The switch of `--inventory`.
pub(super) const EXTERNAL: Dut = Dut {
    is_given: true,
    keeps_entries: true,
    wiring: |paths| Inventory::read(paths).map(|inventory| Some(inventory.wiring())),
    // Without an inventory that is what is missing, and `programs` says so.
    check: |_, settings, paths| Inventory::read(paths).map_or(Ok(()), |of| fits(&of, settings)),
    programs: |_, paths| Inventory::read(paths).map(|_| Vec::new()),
    start,
    ..Dut::new(
        "external",
        "A switch that runs already, as its --inventory says: an OpenFlow channel and network \
            interfaces of this machine, or of boxes with an agent",
    )
};

/// Deciding party in a switch that the lab does not start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum BoxMode {
    /// Flow entries that come over its OpenFlow channel.
    #[default]
    Openflow,
    /// The switch itself, which learns addresses.
    Learning,
}

/// A switch that runs already.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Inventory {
    /// `tcp:HOST:PORT`, `ssl:HOST:PORT` or `unix:PATH`, to which the lab connects, or
    /// `ptcp:PORT:ADDRESS`, where it waits for the switch.
    #[serde(deserialize_with = "endpoint")]
    openflow: Option<Endpoint>,
    /// The network devices of this machine that lead to OpenFlow port 1, port 2, ...
    interfaces: Vec<String>,
    /// In place of `interfaces`, what leads to them: devices of this machine or of boxes on which
    /// the lab starts `weir lab agent`.
    ports: Vec<EndPlace>,
    /// Whether hosts with addresses may be made at the ends; where it is left out, they are at
    /// `ports` and are not at `interfaces`.
    hosts: Option<bool>,
    /// Deciding party in the switch.
    mode: BoxMode,
    /// The lab's key for `ssl:`, in PEM.
    private_key: Option<PathBuf>,
    /// The lab's certificate for `ssl:`, in PEM.
    certificate: Option<PathBuf>,
    /// The certificate of the authority that signs the switch's, in PEM.
    ca_cert: Option<PathBuf>,
}

impl Inventory {
    /// Reads the file of `--inventory`.
    fn read(paths: &ProgramPaths) -> Result<Self, Missing> {
        let none = "no inventory of the switch: --inventory FILE (see docs/lab-agents.md)";
        let path = paths.inventory.as_deref().ok_or_else(|| Missing(none.to_owned()))?;
        let text = files::read_text(path, files::CONFIG_MAX).map_err(|error| error.to_string());
        let read = text.and_then(|text| Self::from_toml(&text));
        read.map_err(|what| Missing(format!("{}: {what}", path.display())))
    }

    /// Reads the text of such a file.
    fn from_toml(text: &str) -> Result<Self, String> {
        let inventory: Self =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        if !inventory.interfaces.is_empty() && !inventory.ports.is_empty() {
            return Err("interfaces or [[ports]], not both".to_owned());
        }
        if inventory.interfaces.len() + inventory.ports.len() < 2 {
            return Err("interfaces: two devices at least, or as many [[ports]]".to_owned());
        }
        for (index, agent) in inventory.ports.iter().map(|port| &port.agent).enumerate() {
            check_agent(agent.as_deref())
                .map_err(|what| format!("ports, number {}: {what}", index + 1))?;
        }
        match (inventory.mode, &inventory.openflow) {
            (BoxMode::Openflow, None) => {
                Err("openflow: where it is reached, as \"tcp:192.0.2.10:6653\", or mode = \
                     \"learning\""
                    .to_owned())
            }
            (_, Some(Endpoint::PassiveSsl { .. } | Endpoint::PassiveUnix(_))) => {
                Err("openflow: tcp:, ssl: or unix: to connect to, ptcp: to wait at".to_owned())
            }
            (_, Some(Endpoint::Ssl { .. })) if inventory.tls_files().is_none() => {
                Err("openflow: ssl: needs private-key, certificate and ca-cert".to_owned())
            }
            (BoxMode::Openflow | BoxMode::Learning, _) => Ok(inventory),
        }
    }

    /// The ends of the switch's ports, and whether hosts with addresses are made at them.
    fn wiring(&self) -> Wiring {
        let local = |interface: &String| EndPlace { agent: None, interface: interface.clone() };
        let ends = self.interfaces.iter().map(local).chain(self.ports.iter().cloned()).collect();
        Wiring { ends, makes_hosts: self.hosts.unwrap_or(!self.ports.is_empty()) }
    }

    /// The lab's keys and certificates, where the channel is TLS.
    fn tls_files(&self) -> Option<TlsFiles> {
        tls_files([&self.private_key, &self.certificate, &self.ca_cert])
    }
}

fn endpoint<'de, D: Deserializer<'de>>(text: D) -> Result<Option<Endpoint>, D::Error> {
    let endpoint = String::deserialize(text)?.parse::<Endpoint>();
    endpoint.map(Some).map_err(|error| D::Error::custom(format!("openflow: {error}")))
}

/// Whether an agent is the name of a box or a command.
fn check_agent(agent: Option<&str>) -> Result<(), String> {
    let Some(agent) = agent else { return Ok(()) };
    let is_address =
        |(host, port): (&str, &str)| !host.contains(':') && port.parse::<u16>().is_ok();
    match agent.trim() {
        "" => Err("agent: a box, or a command that starts an agent".to_owned()),
        box_ if !box_.contains(' ') && box_.rsplit_once(':').is_some_and(is_address) => {
            Err(format!(
                "agent {box_:?}: agents are started by ssh, so write USER@HOST, or \"ssh -p PORT \
                 HOST weir lab agent\""
            ))
        }
        _ => Ok(()),
    }
}

/// Settings that no switch has which the lab does not start.
const LACKS: &[Lack] = &[
    NO_REPLAY,
    (|of| of.forwarding() == Forwarding::Controller, "its controller is not the lab's to set"),
    (|of| of.forwarding() == Forwarding::Io, "forwards by flow tables only"),
    NO_CACHES,
    ONE_THREAD,
    (|of| of.line() > 1, "its inventory has one switch"),
    (|of| of.port_rate.is_some() || of.control_rate.is_some(), "its links are as fast as they are"),
    (|of| of.bridges() > 1, "its inventory has one OpenFlow channel"),
];

/// Why a switch of this inventory cannot run with these settings.
fn fits(inventory: &Inventory, settings: &Settings) -> Result<(), String> {
    refuse(LACKS, settings)?;
    let (has, wants) = (inventory.wiring().ends.len(), settings.ports());
    if wants > has {
        return Err(format!("its inventory has {has} interfaces of {wants}"));
    }
    let learns = settings.forwarding() == Forwarding::Learning;
    let has_tls = inventory.openflow.as_ref().is_some_and(Endpoint::is_tls);
    let why = match (inventory.mode, settings.transport) {
        (BoxMode::Learning, _) if !learns => "its inventory says that it learns",
        (BoxMode::Openflow, _) if learns => {
            "its inventory says that it forwards by flow entries; set it to learn, and \
             mode = \"learning\" in the inventory"
        }
        (_, Some(ChannelTransport::Tls)) if !has_tls => "its channel is not TLS",
        (_, Some(ChannelTransport::Plain)) if has_tls => "its channel is TLS",
        (BoxMode::Openflow | BoxMode::Learning, _) => return Ok(()),
    };
    Err(why.to_owned())
}

fn start(plan: &DutPlan<'_>) -> anyhow::Result<StartedDut> {
    let inventory = Inventory::read(plan.context.paths)?;
    let tls = inventory.tls_files().map(|files| Tls::load(files, false)).transpose()?;
    let mut started = StartedDut { tls, ..StartedDut::default() };
    if let Some(endpoint) = inventory.openflow {
        started.service.commands.push(format!("external switch at {endpoint}"));
        started.bridges.push(endpoint);
    }
    Ok(started)
}

#[cfg(test)]
mod tests {
    use super::{BoxMode, EndPlace, Inventory, fits};
    use crate::settings::{CacheSet, Forwarding, Settings};

    #[test]
    fn what_the_inventory_does_not_say_is_not_supported() {
        let text = "interfaces = [\"a\", \"b\"]\nopenflow = \"tcp:h:1\"";
        let inventory = Inventory::from_toml(text).unwrap();
        assert_eq!(fits(&inventory, &Settings::default()), Ok(()));
        for settings in [
            Settings { forwarding: Some(Forwarding::Learning), ..<_>::default() },
            Settings { forwarding: Some(Forwarding::Controller), ..<_>::default() },
            Settings { ports: Some(3), ..<_>::default() },
            Settings { caches: Some(CacheSet::None), ..<_>::default() },
            Settings { workers: Some(2), ..<_>::default() },
            Settings { bridges: Some(2), ..<_>::default() },
            Settings { line: Some(2), ..<_>::default() },
        ] {
            assert!(fits(&inventory, &settings).is_err(), "{settings:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let two = "[[ports]]\ninterface = \"a\"\n[[ports]]\ninterface = \"b\"\nagent = \"X\"";
        let cases = [
            ("interfaces = [\"a\"]\nopenflow = \"tcp:h:1\"", "two devices"),
            ("interfaces = [\"a\", \"b\"]", "mode"),
            ("interfaces = [\"a\", \"b\"]\nopenflow = \"udp:h:1\"", "openflow: "),
            ("interfaces = [\"a\", \"b\"]\nopenflow = \"ssl:h:1\"", "ca-cert"),
            ("interfaces = [\"a\", \"b\"]\nopenflow = \"pssl:1\"", "ptcp:"),
            ("interface = [\"a\", \"b\"]", "line 1"),
            ("interfaces = [\"a\", \"b\"]\n[[ports]]\ninterface = \"a\"", "not both"),
            ("[[ports]]\ninterface = \"a\"", "two devices"),
            ("[[ports]]\ninterface = \"a\"\n[[ports]]", "missing field `interface`"),
            ("[[ports]]\nagent = \"a\"", "missing field `interface`"),
            (&two.replace('X', "192.0.2.1:7"), "number 2: agent \"192.0.2.1:7\": agents are"),
            (&two.replace('X', " "), "number 2: agent: a box"),
            ("[[ports]]\nagents = \"a\"", "line 2"),
            ("[agent-tls]\nca-cert = \"a\"", "agent-tls"),
        ];
        for (text, place) in cases {
            let error = Inventory::from_toml(text).unwrap_err();
            assert!(error.contains(place), "{text}: {error}");
        }
    }

    #[test]
    fn ends_are_here_or_at_agents() {
        let text = "mode = \"learning\"\n[[ports]]\ninterface = \"eth1\"\n\
                    [[ports]]\nagent = \"root@box\"\ninterface = \"eth0\"";
        let inventory = Inventory::from_toml(text).unwrap();
        let (agent, interface) = (Some("root@box".to_owned()), "eth0".to_owned());
        let local = EndPlace { agent: None, interface: "eth1".to_owned() };
        let ends = [local, EndPlace { agent, interface }];
        assert_eq!(inventory.wiring().ends, ends);
        assert!(inventory.wiring().makes_hosts);
        let command = text.replace("root@box", "ssh -p 22 fe80::1 weir lab agent");
        Inventory::from_toml(&command).unwrap();
        Inventory::from_toml(&text.replace("root@box", "root@fe80::1")).unwrap();
    }

    #[test]
    fn a_learning_switch_needs_no_channel() {
        let text = "interfaces = [\"a\", \"b\"]\nmode = \"learning\"";
        let inventory = Inventory::from_toml(text).unwrap();
        assert_eq!((inventory.mode, &inventory.openflow), (BoxMode::Learning, &None));
        assert!(inventory.tls_files().is_none() && !inventory.wiring().makes_hosts);
    }
}
