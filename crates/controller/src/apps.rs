//! The ready apps: one file and one line here each.
//!
//! The line is what the command line, its help and the runtime know of an app. An app that needs
//! settings has them from its section of [`AppConfig`]; apps that need the topology get one that
//! discovery keeps, which is put in front of them.

mod addresses;
mod behind_rules;
mod config;
mod config_values;
mod firewall;
mod flow_exporter;
mod frame;
mod hub;
mod idle;
mod learning_switch;
mod load_balancer;
mod log;
mod microflow;
mod multi_table_switch;
mod patch_panel;
mod qos;
mod repeater;
mod router;
mod shortest_path;
mod traffic_monitor;

pub use config::{AppConfig, AppConfigError};
pub use config_values::{MatchText, NetworkPrefix, StationMac, SwitchId};
pub use firewall::{Firewall, FirewallAction, FirewallConfig, FirewallRule};
pub use flow_exporter::{FlowExporter, FlowExporterConfig, Samples};
pub use hub::Hub;
pub use idle::Idle;
pub use learning_switch::LearningSwitch;
pub use load_balancer::{BalancedServer, BalancedService, LoadBalancer, LoadBalancerConfig};
pub use multi_table_switch::MultiTableSwitch;
pub use patch_panel::{PanelPatch, PatchPanel, PatchPanelConfig};
pub use qos::{Qos, QosConfig, QosMeter, QosRule};
pub use repeater::Repeater;
pub use router::{
    ManagedRouter, ManagedRouters, Router, RouterAddress, RouterChange, RouterConfig,
    RouterInterface, RouterRefusal, RouterRoute, RouterUpdate, ShownRouter, StaticRoute,
};
pub use shortest_path::ShortestPath;
pub use traffic_monitor::{Print, TrafficMonitor, TrafficMonitorConfig};

use crate::app_list::AppList;
use crate::discovery::{Discovery, NoKey, ProbeKey};
use crate::topology::Topology;
use std::sync::Arc;

macro_rules! ready_apps {
    ($($(#[doc = $doc:literal])+ $name:ident $text:literal $(settings $file:literal)?;)+) => {
        /// A ready app by its name on the command line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
        pub enum AppName {
            $($(#[doc = $doc])+ #[cfg_attr(feature = "cli", value(name = $text))] $name,)+
        }

        impl AppName {
            /// Every app, in the order of the help.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name on the command line, which is that of the section of its settings too.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            /// A file with all settings of the app, if it has any.
            #[must_use]
            pub fn settings(self) -> Option<&'static str> {
                let files: &[&'static str] = match self {
                    $(Self::$name => &[$(include_str!(concat!("apps/", $file)))?],)+
                };
                files.first().copied()
            }
        }
    };
}

ready_apps! {
    /// Every packet goes to the controller, which has it sent out of all other ports
    Hub "hub";
    /// Does nothing: switches are driven from outside, over REST for example
    Idle "idle";
    /// One flow entry floods every packet, so that none comes to the controller
    Repeater "repeater";
    /// Joins pairs of ports as by cables
    PatchPanel "patch-panel" settings "settings/patch-panel.toml";
    /// Learns where addresses are and installs flow entries, so that few packets come
    LearningSwitch "learning-switch";
    /// The learning switch in two tables: two entries an address, not one a pair (1.3)
    MultiTableSwitch "multi-table-switch";
    /// Finds links by LLDP, and hosts; forwards nothing and stands before apps that do
    Discovery "discovery" settings "settings/discovery.toml";
    /// Many switches without loops: shortest paths, and a tree for what goes everywhere
    ShortestPath "shortest-path";
    /// Prints rates of ports and the busiest flow entries; stands beside an app that forwards
    TrafficMonitor "traffic-monitor" settings "settings/traffic-monitor.toml";
    /// A list of rules before a learning switch
    Firewall "firewall" settings "settings/firewall.toml";
    /// IPv4 between interfaces: ARP, ICMP, static routes
    Router "router" settings "settings/router.toml";
    /// One address for many servers, by a select group (1.3)
    LoadBalancer "load-balancer" settings "settings/load-balancer.toml";
    /// Queues, meters and DSCP by rules, before a learning switch
    Qos "qos" settings "settings/qos.toml";
    /// Counters of ports, tables and flow entries for Prometheus, at /metrics over HTTP
    FlowExporter "flow-exporter" settings "settings/flow-exporter.toml";
}

/// Why apps could not be made.
#[derive(Debug, thiserror::Error)]
pub enum AppsError {
    /// An app needs settings.
    #[error("{} needs settings: a section [{}] in the file of --app-config", .0.text(), .0.text())]
    NoSection(AppName),
    /// An app is named twice.
    #[error("{} is named twice", .0.text())]
    Twice(AppName),
    /// Two apps that both decide where packets go.
    #[error(
        "{} and {} both forward: each would delete the other's flow entries, and what comes to the \
         controller would leave the switch twice; name one of them",
        .0.text(),
        .1.text()
    )]
    BothForward(AppName, AppName),
    /// Discovery comes after an app that reads its topology.
    #[error("discovery must stand before {}", .0.text())]
    DiscoveryBehind(AppName),
    /// The file of settings is wrong.
    #[error(transparent)]
    Config(#[from] AppConfigError),
    /// No key for probes.
    #[error(transparent)]
    Key(#[from] NoKey),
    /// The exporter cannot listen.
    #[error(transparent)]
    Exporter(#[from] metrics::MetricsError),
}

/// Ready apps with what they share.
#[derive(Debug)]
pub struct ReadyApps {
    /// The apps, to be run.
    pub list: AppList,
    /// The topology that discovery finds; empty unless it is among the apps.
    pub topology: Arc<Topology>,
}

impl ReadyApps {
    /// The apps of these names, in their order; what an app prints goes to `print`. Discovery is
    /// put first when an app reads what it finds.
    ///
    /// # Errors
    /// See [`AppsError`].
    pub fn new(names: &[AppName], config: &AppConfig, print: &Print) -> Result<Self, AppsError> {
        let topology = Arc::new(Topology::default());
        let mut names = names.to_vec();
        for (index, name) in names.iter().enumerate() {
            if names.iter().take(index).any(|before| before == name) {
                return Err(AppsError::Twice(*name));
            }
        }
        let mut forwarding = names.iter().filter(|name| name.forwards());
        if let (Some(one), Some(other)) = (forwarding.next(), forwarding.next()) {
            return Err(AppsError::BothForward(*one, *other));
        }
        let reader = names.iter().position(|name| name.reads_topology());
        let discovery = names.iter().position(|name| *name == AppName::Discovery);
        match (reader.and_then(|at| names.get(at)), discovery) {
            (Some(name), Some(at)) if Some(at) > reader => {
                return Err(AppsError::DiscoveryBehind(*name));
            }
            (Some(_), None) => names.insert(0, AppName::Discovery),
            (Some(_) | None, _) => {}
        }
        let mut list = AppList::new(Vec::new);
        for name in names {
            list = list.then(name.make(config, &topology, print)?);
        }
        Ok(Self { list, topology })
    }
}

impl AppName {
    pub(crate) fn reads_topology(self) -> bool {
        match self {
            Self::ShortestPath => true,
            Self::Hub
            | Self::Idle
            | Self::Repeater
            | Self::PatchPanel
            | Self::LearningSwitch
            | Self::MultiTableSwitch
            | Self::Discovery
            | Self::TrafficMonitor
            | Self::Firewall
            | Self::Router
            | Self::LoadBalancer
            | Self::Qos
            | Self::FlowExporter => false,
        }
    }

    /// Whether it begins with empty tables and decides where packets go: of such apps there is one
    /// in a list.
    fn forwards(self) -> bool {
        match self {
            Self::Hub
            | Self::Repeater
            | Self::PatchPanel
            | Self::LearningSwitch
            | Self::MultiTableSwitch
            | Self::ShortestPath
            | Self::Firewall
            | Self::Router
            | Self::LoadBalancer
            | Self::Qos => true,
            Self::Idle | Self::Discovery | Self::TrafficMonitor | Self::FlowExporter => false,
        }
    }

    fn make(
        self,
        config: &AppConfig,
        topology: &Arc<Topology>,
        print: &Print,
    ) -> Result<AppList, AppsError> {
        let topology = Arc::clone(topology);
        Ok(match self {
            Self::Hub => AppList::one(|| Hub),
            Self::Idle => AppList::one(|| Idle),
            Self::Repeater => AppList::one(|| Repeater),
            Self::PatchPanel => {
                let config = self.section(config.patch_panel.as_ref())?;
                AppList::one(move || PatchPanel::new(Arc::clone(&config)))
            }
            Self::LearningSwitch => AppList::one(LearningSwitch::default),
            Self::MultiTableSwitch => AppList::one(MultiTableSwitch::default),
            Self::Discovery => {
                let (key, config) = (ProbeKey::random()?, config.discovery);
                AppList::one(move || Discovery::new(Arc::clone(&topology), key.clone(), config))
            }
            Self::ShortestPath => AppList::one(move || ShortestPath::new(Arc::clone(&topology))),
            Self::TrafficMonitor => {
                let (config, print) = (config.traffic_monitor, Arc::clone(print));
                AppList::one(move || TrafficMonitor::new(config, Arc::clone(&print)))
            }
            Self::Firewall => {
                let config = self.section(config.firewall.as_ref())?;
                AppList::one(move || Firewall::new(Arc::clone(&config)))
            }
            Self::Router => {
                let config = self.section(config.router.as_ref())?;
                AppList::one(move || Router::new(Arc::clone(&config)))
            }
            Self::LoadBalancer => {
                let config = self.section(config.load_balancer.as_ref())?;
                AppList::one(move || LoadBalancer::new(Arc::clone(&config)))
            }
            Self::Qos => {
                let config = self.section(config.qos.as_ref())?;
                AppList::one(move || Qos::new(Arc::clone(&config)))
            }
            Self::FlowExporter => {
                let (config, samples) = (config.flow_exporter, Arc::new(Samples::default()));
                let exported = Arc::clone(&samples);
                let gather =
                    move || std::future::ready(Some(exported.families(std::time::Instant::now())));
                let server = Arc::new(metrics::serve(config.listen, gather)?);
                AppList::one(move || {
                    let app = FlowExporter::new(config, Arc::clone(&samples));
                    app.served_by(Arc::clone(&server))
                })
            }
        })
    }

    fn section<T: Clone>(self, section: Option<&T>) -> Result<Arc<T>, AppsError> {
        section.cloned().map(Arc::new).ok_or(AppsError::NoSection(self))
    }
}
