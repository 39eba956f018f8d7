//! The file of the apps' settings: `weir controller router --app-config FILE.toml`.
//!
//! Each app has a section of its name, and the section a type in the app's file. An error names
//! file, line, key and what is allowed; a key that nobody knows is one, so that a slip of the pen
//! never makes a network do something else.

use super::firewall::FirewallConfig;
use super::flow_exporter::FlowExporterConfig;
use super::load_balancer::LoadBalancerConfig;
use super::patch_panel::PatchPanelConfig;
use super::qos::QosConfig;
use super::router::RouterConfig;
use super::traffic_monitor::TrafficMonitorConfig;
use crate::discovery::DiscoveryConfig;
use openflow::text::parse_match;
use openflow::{DatapathId, MacAddr, Match};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use toml::Spanned;

/// The whole file. An app whose section is not there has its defaults, or asks for it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct AppConfig {
    /// Settings of discovery.
    pub discovery: DiscoveryConfig,
    /// Settings of the firewall.
    pub firewall: Option<FirewallConfig>,
    /// Settings of the flow-statistics exporter.
    pub flow_exporter: FlowExporterConfig,
    /// Settings of the load balancer.
    pub load_balancer: Option<LoadBalancerConfig>,
    /// Settings of the patch panel.
    pub patch_panel: Option<PatchPanelConfig>,
    /// Settings of the QoS app.
    pub qos: Option<QosConfig>,
    /// Settings of the router.
    pub router: Option<RouterConfig>,
    /// Settings of the traffic monitor.
    pub traffic_monitor: TrafficMonitorConfig,
}

/// What is wrong in the file of the apps' settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppConfigError {
    /// The file, when it was one.
    pub file: Option<PathBuf>,
    /// Line and column, from 1, when the text has the fault.
    pub place: Option<(usize, usize)>,
    /// What is wrong, with the key, and what is allowed.
    pub message: String,
}

impl fmt::Display for AppConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}:", file.display())?;
        }
        if let Some((line, column)) = self.place {
            write!(f, "{line}:{column}:")?;
        }
        if self.file.is_some() || self.place.is_some() {
            f.write_str(" ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for AppConfigError {}

/// What a section's check finds: where, and what.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    at: Range<usize>,
    message: String,
}

impl Fault {
    pub(super) fn at<T>(entry: &Spanned<T>, key: &str, message: impl Into<String>) -> Self {
        Self { at: entry.span(), message: format!("{key}: {}", message.into()) }
    }
}

impl AppConfig {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong, with line, column and key; the file's name is added by the caller.
    pub fn parse(text: &str) -> Result<Self, AppConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let message = error.message().trim().replace('\n', ", ");
            let key = key_of_line(text, span.start);
            let message = match key {
                Some(key) if !message.contains(&format!("`{key}`")) => format!("{key}: {message}"),
                Some(_) | None => message,
            };
            AppConfigError { file: None, place: Some(line_column(text, span.start)), message }
        })?;
        config.check().map_err(|fault| AppConfigError {
            file: None,
            place: Some(line_column(text, fault.at.start)),
            message: fault.message,
        })?;
        Ok(config)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or something in it is wrong.
    pub fn read(path: &Path) -> Result<Self, AppConfigError> {
        let in_file =
            |error: AppConfigError| AppConfigError { file: Some(path.to_owned()), ..error };
        let text = files::read_text(path, files::CONFIG_MAX).map_err(|error| {
            in_file(AppConfigError { file: None, place: None, message: error.to_string() })
        })?;
        Self::parse(&text).map_err(in_file)
    }

    fn check(&self) -> Result<(), Fault> {
        let Self { firewall, load_balancer, patch_panel, qos, router, .. } = self;
        firewall.as_ref().map_or(Ok(()), FirewallConfig::check)?;
        load_balancer.as_ref().map_or(Ok(()), LoadBalancerConfig::check)?;
        patch_panel.as_ref().map_or(Ok(()), PatchPanelConfig::check)?;
        qos.as_ref().map_or(Ok(()), QosConfig::check)?;
        router.as_ref().map_or(Ok(()), RouterConfig::check)
    }
}

/// Line and column of a byte, both from 1; columns count characters.
fn line_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

/// The key that stands in front of a byte on its line.
fn key_of_line(text: &str, at: usize) -> Option<&str> {
    let before = text.get(..at)?.rsplit('\n').next()?;
    let (key, _) = before.rsplit_once('=')?;
    let key = key.rsplit(['{', ',']).next()?.trim();
    key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-').then_some(key)
}

/// A datapath id: a number, or sixteen hexadecimal digits in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub DatapathId);

impl<'de> Deserialize<'de> for SwitchId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = SwitchId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a datapath id: a number, or up to 16 hexadecimal digits in quotes")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<SwitchId, E> {
                let number = u64::try_from(number);
                let wrong = |_| E::invalid_value(de::Unexpected::Other("a negative number"), &self);
                number.map(|number| SwitchId(DatapathId(number))).map_err(wrong)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<SwitchId, E> {
                Ok(SwitchId(DatapathId(number)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<SwitchId, E> {
                let digits = text.strip_prefix("0x").unwrap_or(text);
                let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                let number = u64::from_str_radix(digits, 16).ok().filter(|_| is_hex);
                let wrong = || E::invalid_value(de::Unexpected::Str(text), &self);
                number.map(|number| SwitchId(DatapathId(number))).ok_or_else(wrong)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// A match in the words of `ovs-ofctl`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct MatchText(pub Match);

impl TryFrom<String> for MatchText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let matching = parse_match(&text).map_err(|error| format!("{text:?}, {error}"))?;
        let check = matching.check_prerequisites();
        check.map_err(|error| format!("{text:?}: {error}"))?;
        Ok(Self(matching))
    }
}

/// An Ethernet address of one station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct StationMac(pub MacAddr);

impl TryFrom<String> for StationMac {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mac = MacAddr::from_str(&text).map_err(|error| format!("{text:?}: {error}"))?;
        let [first, ..] = mac.0;
        if first & 1 != 0 || mac == MacAddr::default() {
            return Err(format!("{text:?}: not the address of one station"));
        }
        Ok(Self(mac))
    }
}

/// An IPv4 network, `10.1.0.0/16`, or an address in it, `10.1.0.1/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct NetworkPrefix {
    /// The address as written.
    pub address: Ipv4Addr,
    /// Bits of the network.
    pub len: u8,
}

impl NetworkPrefix {
    /// The bits of the network.
    #[must_use]
    pub fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.len)).unwrap_or(0)
    }

    /// The network's first address.
    #[must_use]
    pub fn network(self) -> Ipv4Addr {
        Ipv4Addr::from(self.address.to_bits() & self.mask())
    }

    /// The network's last address.
    #[must_use]
    pub fn broadcast(self) -> Ipv4Addr {
        Ipv4Addr::from(self.address.to_bits() | !self.mask())
    }

    /// Whether an address is in the network.
    #[must_use]
    pub fn holds(self, address: Ipv4Addr) -> bool {
        (address.to_bits() ^ self.address.to_bits()) & self.mask() == 0
    }
}

impl TryFrom<String> for NetworkPrefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("{text:?}: an IPv4 address and a length, as in 10.1.0.1/16");
        let (address, len) = text.split_once('/').ok_or_else(wrong)?;
        let address = address.parse().map_err(|_| wrong())?;
        let len = len.parse().ok().filter(|len| *len <= 32).ok_or_else(wrong)?;
        Ok(Self { address, len })
    }
}

impl fmt::Display for NetworkPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}
