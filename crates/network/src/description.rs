//! The description of a network as people write it: TOML, or JSON from an app in Python.
//!
//! Only words here; what they mean together, [`crate::NetworkPlan`] decides.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Switches, hosts and links.
///
/// ```
/// use network::{NetworkDescription, NetworkPlan};
///
/// let text = r#"
///     link = [["s1", "h1"], ["s1", "h2"]]
///     [[switch]]
///     name = "s1"
///     dpid = 0x1
///     [[host]]
///     name = "h1"
///     ip = "10.0.0.1/24"
///     [[host]]
///     name = "h2"
/// "#;
/// let plan = NetworkPlan::new(&NetworkDescription::parse_toml(text)?)?;
/// assert_eq!(plan.hosts[1].ip.to_string(), "10.0.0.2");
/// # Ok::<(), network::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkDescription {
    /// Switches.
    #[serde(default, rename = "switch")]
    pub switches: Vec<SwitchDescription>,
    /// Hosts.
    #[serde(default, rename = "host")]
    pub hosts: Vec<HostDescription>,
    /// Links: two ends each, the name of a host, that of a switch, or `switch:port`.
    #[serde(default, rename = "link")]
    pub links: Vec<[String; 2]>,
}

/// A switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchDescription {
    /// Its name.
    pub name: String,
    /// Its datapath id: a number, or up to 16 hex digits as text; by its place when `None`.
    #[serde(default)]
    pub dpid: Option<GivenDpid>,
    /// OpenFlow versions that it speaks; all when empty.
    #[serde(default)]
    pub protocols: Vec<String>,
}

/// A datapath id as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "dpid is a number of 0 or more, or hex digits as text")]
pub enum GivenDpid {
    /// A number.
    Number(u64),
    /// Hex digits, with `0x` in front or without.
    Text(String),
}

/// A host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostDescription {
    /// Its name.
    pub name: String,
    /// Its IPv4 address, with a prefix length or as one of 24; by its place when `None`.
    #[serde(default)]
    pub ip: Option<String>,
    /// Its Ethernet address; by its place when `None`.
    #[serde(default)]
    pub mac: Option<String>,
    /// Its gateway to other networks.
    #[serde(default)]
    pub gateway: Option<String>,
}

impl NetworkDescription {
    /// Reads TOML.
    ///
    /// # Errors
    /// [`Error::Description`] with line and column.
    pub fn parse_toml(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| Error::Description(error.to_string()))
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// [`Error::Description`] with line and column.
    pub fn parse_json(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| Error::Description(error.to_string()))
    }

    /// Reads a file: JSON where its name ends in `.json`, else TOML.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let failed = |why: String| Error::File { path: path.to_owned(), why };
        let text =
            files::read_text(path, files::CONFIG_MAX).map_err(|error| failed(error.to_string()))?;
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let parsed = if is_json { Self::parse_json(&text) } else { Self::parse_toml(&text) };
        parsed.map_err(|error| failed(error.to_string()))
    }
}
