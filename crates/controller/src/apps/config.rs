//! The file of the apps' settings: `weir controller router --app-config FILE.toml`.
//!
//! Each app has a section of its name, and the section a type in the app's file. An error names
//! file, line, key and what is allowed; a key that nobody knows is one, so that a slip of the pen
//! never makes a network do something else.

use super::config_values::Fault;
use super::firewall::FirewallConfig;
use super::flow_exporter::FlowExporterConfig;
use super::load_balancer::LoadBalancerConfig;
use super::patch_panel::PatchPanelConfig;
use super::qos::QosConfig;
use super::router::RouterConfig;
use super::traffic_monitor::TrafficMonitorConfig;
use crate::discovery::DiscoveryConfig;
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};

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

/// A fault in the file of the apps' settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppConfigError {
    /// The file, when it was one.
    pub file: Option<PathBuf>,
    /// Line and column, from 1, when the text has the fault.
    pub place: Option<(usize, usize)>,
    /// The fault, with the key, and what is allowed.
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

impl AppConfig {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The fault, with line, column and key; the file's name is added by the caller.
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
