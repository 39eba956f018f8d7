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

use std::path::{Path, PathBuf};

use channel::{Endpoint, Tls, TlsFiles};
use programs::tools::Missing;
use serde::Deserialize;

use crate::testbed::external::EndPlace;

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
    /// the lab starts `weir lab agent`.
    #[serde(default)]
    pub ports: Vec<EndPlace>,
    /// Whether hosts with addresses may be made at the ends; where it is left out, they are at
    /// `ports` and are not at `interfaces`.
    #[serde(default)]
    pub hosts: Option<bool>,
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
        for (index, agent) in inventory.ports.iter().map(|port| &port.agent).enumerate() {
            check_agent(agent.as_deref())
                .map_err(|what| format!("ports, number {}: {what}", index + 1))?;
        }
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
    #[must_use]
    pub fn ends(&self) -> Vec<EndPlace> {
        let local = self.interfaces.iter().cloned().map(EndPlace::local);
        local.chain(self.ports.iter().cloned()).collect()
    }

    /// Whether hosts with addresses are made at them.
    #[must_use]
    pub fn makes_hosts(&self) -> bool {
        self.hosts.unwrap_or(!self.ports.is_empty())
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

#[cfg(test)]
mod tests {
    use super::{BoxMode, EndPlace, Inventory};

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
        let ends = [EndPlace::local("eth1".to_owned()), EndPlace { agent, interface }];
        assert_eq!(inventory.ends(), ends);
        assert!(inventory.port_count() == 2 && inventory.makes_hosts());
        let command = text.replace("root@box", "ssh -p 22 fe80::1 weir lab agent");
        Inventory::from_toml(&command).unwrap();
        Inventory::from_toml(&text.replace("root@box", "root@fe80::1")).unwrap();
    }

    #[test]
    fn a_learning_switch_needs_no_channel() {
        let text = "interfaces = [\"a\", \"b\"]\nmode = \"learning\"";
        let inventory = Inventory::from_toml(text).unwrap();
        assert_eq!((inventory.mode, inventory.endpoint()), (BoxMode::Learning, Ok(None)));
        assert!(inventory.tls().unwrap().is_none() && !inventory.makes_hosts());
    }
}
