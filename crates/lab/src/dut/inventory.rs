//! The inventory of a switch that the lab does not start: how it is reached, and which devices of
//! this machine lead to its ports.
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
use serde::Deserialize;

use crate::tools::Missing;

/// What decides where packets go in a switch that the lab cannot tell.
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
    pub interfaces: Vec<String>,
    /// What decides in the switch.
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
        if inventory.interfaces.len() < 2 {
            return Err("interfaces: two devices at least".to_owned());
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

    /// Where it is reached.
    ///
    /// # Errors
    /// A text that is no endpoint.
    pub fn endpoint(&self) -> Result<Option<Endpoint>, String> {
        let parse = |text: &String| text.parse().map_err(|error| format!("openflow: {error}"));
        self.openflow.as_ref().map(parse).transpose()
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
    use super::{BoxMode, Inventory};

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("interfaces = [\"a\"]\nopenflow = \"tcp:h:1\"", "two devices"),
            ("interfaces = [\"a\", \"b\"]", "mode"),
            ("interfaces = [\"a\", \"b\"]\nopenflow = \"udp:h:1\"", "openflow: "),
            ("interfaces = [\"a\", \"b\"]\nopenflow = \"ssl:h:1\"", "ca-cert"),
            ("interfaces = [\"a\", \"b\"]\nopenflow = \"pssl:1\"", "ptcp:"),
            ("interface = [\"a\", \"b\"]", "line 1"),
        ];
        for (text, place) in cases {
            let error = Inventory::from_toml(text).unwrap_err();
            assert!(error.contains(place), "{text}: {error}");
        }
    }

    #[test]
    fn a_learning_switch_needs_no_channel() {
        let text = "interfaces = [\"a\", \"b\"]\nmode = \"learning\"";
        let inventory = Inventory::from_toml(text).unwrap();
        assert_eq!((inventory.mode, inventory.endpoint()), (BoxMode::Learning, Ok(None)));
        assert!(inventory.tls().unwrap().is_none());
    }
}
