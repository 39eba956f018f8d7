//! The inventory of a switch that the lab does not start: how it is reached, and which devices of
//! this machine, or of boxes with an agent, lead to its ports.
//!
//! ```
//! let text = r#"
//! openflow = "tcp:192.0.2.10:6653"
//! interfaces = ["eth1", "eth2"]
//! "#;
//! let inventory = lab::dut::inventory::Inventory::from_toml(text).unwrap();
//! assert_eq!(inventory.interfaces.len(), 2);
//! ```

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use channel::{Endpoint, Tls, TlsFiles};
use programs::tools::Missing;
use serde::Deserialize;

use crate::testbed::agents::EndPlace;

/// Deciding party in a switch that the lab does not start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoxMode {
    /// Flow entries that come over its OpenFlow channel.
    #[default]
    Openflow,
    /// The switch itself, which learns addresses.
    Learning,
}

/// End of a port of the switch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InventoryPort {
    /// Address of its box's agent, `HOST:PORT`; this machine where there is none.
    #[serde(default)]
    pub agent: Option<String>,
    /// The network device there; of a box whose agent has only one it may be left out.
    #[serde(default)]
    pub interface: Option<String>,
}

/// The lab's keys for agents, each a file in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AgentTls {
    /// The key.
    pub private_key: PathBuf,
    /// The certificate.
    pub certificate: PathBuf,
    /// The certificate of the authority that signs the agents'.
    pub ca_cert: PathBuf,
}

/// A switch that runs already.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Inventory {
    /// `tcp:HOST:PORT`, `ssl:HOST:PORT` or `unix:PATH`, to which the lab connects, or
    /// `ptcp:PORT:ADDRESS`, where it waits for the switch.
    #[serde(default)]
    pub openflow: Option<String>,
    /// The network devices of this machine that lead to OpenFlow port 1, port 2, ...
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// In place of `interfaces`, what leads to them: devices of this machine or of boxes on which
    /// `weir lab agent` runs.
    #[serde(default)]
    pub ports: Vec<InventoryPort>,
    /// The lab's keys for those agents.
    #[serde(default)]
    pub agent_tls: Option<AgentTls>,
    /// Deciding party in the switch.
    #[serde(default)]
    pub mode: BoxMode,
    /// The lab's key for `ssl:`, in PEM.
    #[serde(default)]
    pub private_key: Option<PathBuf>,
    /// The lab's certificate for `ssl:`, in PEM.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// The certificate of the authority that signs the switch's, in PEM.
    #[serde(default)]
    pub ca_cert: Option<PathBuf>,
}

impl Inventory {
    /// Reads the file of a switch.
    ///
    /// # Errors
    /// [`Missing`] with file, line and what is allowed.
    pub fn read(path: &Path) -> Result<Self, Missing> {
        let wrong = |what: String| Missing(format!("{}: {what}", path.display()));
        let text = files::read_text(path, files::CONFIG_MAX);
        Self::from_toml(&text.map_err(|error| wrong(error.to_string()))?).map_err(wrong)
    }

    /// Reads the text of such a file.
    ///
    /// # Errors
    /// Line, column and key, or what cannot be.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let inventory: Self =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        match (inventory.interfaces.len(), inventory.ports.len()) {
            (0, 0 | 1) | (1, 0) => {
                return Err("interfaces: two devices at least, or as many [[ports]]".to_owned());
            }
            (0, _) | (_, 0) => {}
            _ => return Err("interfaces or [[ports]], not both".to_owned()),
        }
        inventory.ends()?;
        let endpoint = inventory.endpoint()?;
        match (inventory.mode, &endpoint) {
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

    /// Its OpenFlow endpoint.
    ///
    /// # Errors
    /// A text that is no endpoint.
    pub fn endpoint(&self) -> Result<Option<Endpoint>, String> {
        let parse = |text: &String| text.parse().map_err(|error| format!("openflow: {error}"));
        self.openflow.as_ref().map(parse).transpose()
    }

    /// Number of the switch's ports with an end.
    #[must_use]
    pub fn port_count(&self) -> usize {
        self.interfaces.len().max(self.ports.len())
    }

    /// The ends of the switch's ports.
    ///
    /// # Errors
    /// The first of them that is wrong, by its number.
    pub fn ends(&self) -> Result<Vec<EndPlace>, String> {
        let local = self.interfaces.iter().cloned().map(EndPlace::Local);
        let others = self.ports.iter().enumerate().map(|(index, port)| {
            let wrong = |what: &str| format!("ports, number {}: {what}", index + 1);
            match (&port.agent, &port.interface) {
                (None, None) => Err(wrong("interface, of this machine, or agent = \"HOST:PORT\"")),
                (None, Some(interface)) => Ok(EndPlace::Local(interface.clone())),
                (Some(agent), interface) => {
                    let endpoint = self.agent_endpoint(agent).map_err(|what| wrong(&what))?;
                    Ok(EndPlace::Agent { endpoint, interface: interface.clone() })
                }
            }
        });
        local.map(Ok).chain(others).collect()
    }

    /// Endpoint of an agent: with TLS, or without it on this machine only, since a reader of the
    /// wire has the rights to do as an agent does.
    fn agent_endpoint(&self, agent: &str) -> Result<Endpoint, String> {
        let scheme = if self.agent_tls.is_some() { "ssl" } else { "tcp" };
        let endpoint: Endpoint = match agent.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                format!("{scheme}:{agent}").parse().map_err(|error| format!("agent: {error}"))?
            }
            Some(_) | None => return Err(format!("agent {agent:?}: write HOST:PORT")),
        };
        let is_loopback = |host: &String| {
            let address: Option<IpAddr> = host.parse().ok();
            address.is_some_and(|address| address.is_loopback())
        };
        match &endpoint {
            Endpoint::Tcp { host, .. } if !is_loopback(host) => Err(format!(
                "agent {agent:?}: [agent-tls] with private-key, certificate and ca-cert is \
                 needed; without it only agents at 127.0.0.1 or [::1] are reached"
            )),
            Endpoint::Tcp { .. }
            | Endpoint::Ssl { .. }
            | Endpoint::Unix(_)
            | Endpoint::PassiveTcp { .. }
            | Endpoint::PassiveSsl { .. }
            | Endpoint::PassiveUnix(_) => Ok(endpoint),
        }
    }

    /// The lab's keys for agents.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn agent_tls(&self) -> Result<Option<Tls>, String> {
        let load = |keys: &AgentTls| {
            let AgentTls { private_key, certificate, ca_cert } = keys.clone();
            Tls::load(TlsFiles { private_key, certificate, ca_cert }, false)
        };
        let loaded = self.agent_tls.as_ref().map(load).transpose();
        loaded.map_err(|error| format!("agent-tls: {error}"))
    }

    fn tls_files(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            private_key: self.private_key.clone()?,
            certificate: self.certificate.clone()?,
            ca_cert: self.ca_cert.clone()?,
        })
    }

    /// The lab's keys, where the channel is TLS.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn tls(&self) -> Result<Option<Tls>, String> {
        let load = |files| Tls::load(files, false).map_err(|error| error.to_string());
        self.tls_files().map(load).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::{BoxMode, EndPlace, Inventory};

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("interfaces = [\"a\"]\nopenflow = \"tcp:h:1\"", "two devices"),
            ("interfaces = [\"a\", \"b\"]", "mode"),
            ("interfaces = [\"a\", \"b\"]\nopenflow = \"udp:h:1\"", "openflow: "),
            ("interfaces = [\"a\", \"b\"]\nopenflow = \"ssl:h:1\"", "ca-cert"),
            ("interfaces = [\"a\", \"b\"]\nopenflow = \"pssl:1\"", "ptcp:"),
            ("interface = [\"a\", \"b\"]", "line 1"),
            ("interfaces = [\"a\", \"b\"]\n[[ports]]\ninterface = \"a\"", "not both"),
            ("[[ports]]\ninterface = \"a\"", "two devices"),
            ("[[ports]]\ninterface = \"a\"\n[[ports]]", "ports, number 2: interface"),
            ("[[ports]]\nagent = \"a\"\n[[ports]]", "number 1: agent \"a\": write HOST:PORT"),
            ("[[ports]]\nagent = \"192.0.2.1:7\"\n[[ports]]", "[agent-tls]"),
            ("[[ports]]\nagents = \"a:1\"", "line 2"),
            ("[agent-tls]\nca-cert = \"a\"", "private-key"),
        ];
        for (text, place) in cases {
            let error = Inventory::from_toml(text).unwrap_err();
            assert!(error.contains(place), "{text}: {error}");
        }
    }

    #[test]
    fn ends_are_here_or_at_agents() {
        let text = "mode = \"learning\"\n[[ports]]\ninterface = \"eth1\"\n\
                    [[ports]]\nagent = \"127.0.0.1:7654\"";
        let plain = Inventory::from_toml(text).unwrap();
        let agent =
            |text: &str| EndPlace::Agent { endpoint: text.parse().unwrap(), interface: None };
        let here = EndPlace::Local("eth1".to_owned());
        assert_eq!(plain.ends(), Ok(vec![here.clone(), agent("tcp:127.0.0.1:7654")]));
        assert_eq!(plain.port_count(), 2);
        let keys = "[agent-tls]\nprivate-key = \"k\"\ncertificate = \"c\"\nca-cert = \"a\"";
        let text = format!("{}\n{keys}", text.replace("127.0.0.1", "box-b"));
        let encrypted = Inventory::from_toml(&text).unwrap();
        assert_eq!(encrypted.ends(), Ok(vec![here, agent("ssl:box-b:7654")]));
        let error = encrypted.agent_tls().unwrap_err();
        assert!(error.contains("agent-tls: --certificate c"), "{error}");
    }

    #[test]
    fn a_learning_switch_needs_no_channel() {
        let text = "interfaces = [\"a\", \"b\"]\nmode = \"learning\"";
        let inventory = Inventory::from_toml(text).unwrap();
        assert_eq!((inventory.mode, inventory.endpoint()), (BoxMode::Learning, Ok(None)));
        assert!(inventory.tls().unwrap().is_none());
    }
}
