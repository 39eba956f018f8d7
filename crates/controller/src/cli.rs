//! `weir controller`: its arguments, and running them.
//!
//! The binary parses [`ControllerArgs`] and calls [`run`]; what is printed goes to standard error,
//! since nothing that a controller says is data.

mod membership;

pub use membership::MembershipArgs;

use crate::app_list::AppList;
use crate::apps::{AppConfig, AppName, AppsError, ReadyApps};
use crate::handle::Handle;
use crate::options::Options;
use crate::runtime::{Controller, Error, SHARDS_MAX, StatusWriter};
use crate::topology::Topology;
use channel::{Endpoint, TlsFiles};
use clap::{Args, ValueEnum};
use cluster::{ClusterSettings, Sharing};
use openflow::Version;
use openflow::text::decimal_where;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

const EXAMPLES: &str = "\
Examples:
  weir controller hub
      a hub for every switch that connects to port 6653 of this machine
  weir controller learning-switch --listen tcp:127.0.0.1:6633 --protocols OpenFlow13
      only switches of this machine, only OpenFlow 1.3
  weir controller learning-switch --shards 4
      switches are shared out over four threads
  weir controller discovery,learning-switch,flow-exporter
      several apps; the first sees an event first
  weir controller router --app-config router.toml
      an app with settings (weir controller APP --help has those of an app)
  weir controller hub --connect tcp:192.0.2.7:6653 --stats-interval 1
      a switch that listens itself; rates every second
  weir controller hub --listen ssl:0.0.0.0:6653 --private-key ctl-privkey.pem \
      --certificate ctl-cert.pem --ca-cert cacert.pem
      only switches with a certificate of that CA
  weir controller idle --rest 127.0.0.1:8080
      switches do what HTTP requests say, as with Ryu's ofctl_rest
  weir controller learning-switch --cluster etcd:http://127.0.0.1:2379 --node-id n1
      one of several controllers that share all switches; each switch connects with all of them
  weir controller learning-switch --cluster etcd:https://etcd.example:2379 --cluster-ca ca.pem
      the same with TLS to etcd
  ovs-vsctl set-controller br0 tcp:127.0.0.1:6653
      points an Open vSwitch here

ENDPOINT is tcp:HOST:PORT, ssl:HOST:PORT or unix:PATH (with --listen also ptcp:PORT:HOST,
pssl:PORT:HOST, punix:PATH). The port is 6653 where it is left out. With ssl: both sides need a
certificate; weir pki or ovs-pki make them. Ctrl-C or SIGTERM ends the controller.";

/// Run a controller: apps that decide what switches do with packets
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ControllerArgs {
    /// The app to run, or several joined by commas: the first sees an event first
    #[arg(value_enum, value_delimiter = ',', required = true, value_name = "APP")]
    pub apps: Vec<AppName>,

    /// Threads that serve switches, each those with its part of the datapath ids
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_shards)]
    pub shards: usize,

    /// Settings of the apps: TOML, a section for each app
    #[arg(long, value_name = "FILE")]
    pub app_config: Option<PathBuf>,

    /// Find links and hosts, whatever the app: discovery stands in front
    #[arg(long)]
    pub observe_links: bool,

    /// Accept switches here (may be given several times) [default: tcp:0.0.0.0:6653, unless
    /// --connect is given]
    #[arg(long, value_name = "ENDPOINT")]
    pub listen: Vec<Endpoint>,

    /// Connect to a switch that listens here (may be given several times)
    #[arg(long, value_name = "ENDPOINT")]
    pub connect: Vec<Endpoint>,

    /// TLS: the controller's private key, in PEM without a passphrase
    #[arg(long, value_name = "FILE", requires_all = ["certificate", "ca_cert"])]
    pub private_key: Option<PathBuf>,

    /// TLS: the controller's certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "private_key")]
    pub certificate: Option<PathBuf>,

    /// TLS: the certificate of the CA that signs the switches' certificates, in PEM
    #[arg(long, value_name = "FILE", requires = "private_key")]
    pub ca_cert: Option<PathBuf>,

    /// TLS: a switch that is connected to must also have a certificate for its HOST
    #[arg(long)]
    pub check_peer_name: bool,

    /// OpenFlow versions to offer, joined by commas
    #[arg(
        long,
        value_name = "VERSIONS",
        value_delimiter = ',',
        default_value = "OpenFlow10,OpenFlow13",
        value_parser = parse_version
    )]
    pub protocols: Vec<Version>,

    /// Print rates every S seconds
    #[arg(long, value_name = "S", value_parser = parse_interval)]
    pub stats_interval: Option<Duration>,

    /// Serve metrics for Prometheus here, at /metrics, for example 127.0.0.1:9438; counters of
    /// switches are those of the app flow-exporter
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = metrics::parse_address)]
    pub metrics: Option<SocketAddr>,

    /// Ask a switch that has been silent for S seconds whether it is there; 0 never asks
    #[arg(long, value_name = "S", default_value_t = 5)]
    pub probe_interval: u64,

    /// For so many microseconds after a packet-in ask for messages instead of sleeping: the next
    /// one is answered sooner, and the core is taken meanwhile; 50 is a good value
    #[arg(
        long,
        value_name = "US",
        default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=1_000_000)
    )]
    pub busy_poll: u64,

    /// A cluster, if it is in one.
    #[command(flatten)]
    pub membership: MembershipArgs,
}

/// The help of one app: what it does, and a file with its settings.
#[must_use]
pub fn app_help(app: AppName) -> String {
    let value = app.to_possible_value();
    let about = value.as_ref().and_then(|value| value.get_help()).map(ToString::to_string);
    let (name, about) = (app.text(), about.unwrap_or_default());
    let (settings, example) = match app.settings() {
        Some(file) => {
            let file = file.lines().map(|line| format!("  {line}")).collect::<Vec<_>>();
            let file = file.join("\n").replace("  \n", "\n");
            let settings = format!("Settings, for example in {name}.toml:\n{file}\n");
            (settings, format!("weir controller {name} --app-config {name}.toml"))
        }
        None => ("It has no settings.\n".to_owned(), format!("weir controller {name}")),
    };
    format!(
        "{about}\n\nUsage: weir controller {name} [OPTIONS]; weir controller --help has the \
         options\n\n{settings}\nExample:\n  {example}\n"
    )
}

fn parse_version(text: &str) -> Result<Version, String> {
    Version::from_name(text).ok_or_else(|| {
        let names: Vec<_> = Version::ALL.iter().map(|version| version.name()).collect();
        format!("Weir speaks {}", names.join(", "))
    })
}

fn parse_shards(text: &str) -> Result<usize, String> {
    let is_allowed = |number: &usize| (1..=SHARDS_MAX).contains(number);
    decimal_where(text, is_allowed, format_args!("a number from 1 to {SHARDS_MAX}"))
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let is_allowed = |s: &f64| *s >= 0.01 && Duration::try_from_secs_f64(*s).is_ok();
    let seconds = decimal_where(text, is_allowed, "a number of seconds, at least 0.01");
    seconds.map(Duration::from_secs_f64)
}

impl ControllerArgs {
    fn tls_files(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            private_key: self.private_key.clone()?,
            certificate: self.certificate.clone()?,
            ca_cert: self.ca_cert.clone()?,
        })
    }

    /// The apps with their settings; what they print goes to `print`.
    fn ready_apps(&self, print: &StatusWriter) -> Result<ReadyApps, AppsError> {
        let config = self.app_config.as_deref().map(AppConfig::read).transpose()?;
        let mut names = self.apps.clone();
        if self.observe_links && !names.contains(&AppName::Discovery) {
            names.insert(0, AppName::Discovery);
        }
        ReadyApps::new(&names, &config.unwrap_or_default(), print)
    }

    /// An app that needs the links of the whole network has all switches at one node of a cluster.
    fn sharing(&self) -> Sharing {
        let needs_all = self.apps.iter().any(|name| name.reads_topology());
        if needs_all { Sharing::OneNode } else { Sharing::Even }
    }

    /// The settings of the runtime.
    #[must_use]
    pub fn options(&self) -> Options {
        let mut listen = self.listen.clone();
        if listen.is_empty() && self.connect.is_empty() {
            let port = channel::DEFAULT_PORT;
            listen.push(Endpoint::PassiveTcp { host: "0.0.0.0".into(), port });
        }
        Options {
            listen,
            connect: self.connect.clone(),
            tls: self.tls_files(),
            check_peer_name: self.check_peer_name,
            versions: self.protocols.clone(),
            probe_after: (self.probe_interval > 0)
                .then(|| Duration::from_secs(self.probe_interval)),
            stats_interval: self.stats_interval,
            metrics: self.metrics,
            shards: self.shards,
            busy_poll: Duration::from_micros(self.busy_poll),
            cluster: self
                .membership
                .settings()
                .map(|settings| ClusterSettings { sharing: self.sharing(), ..settings }),
            ..Options::default()
        }
    }
}

/// Runs the controller until Ctrl-C or SIGTERM, which is success.
///
/// # Errors
/// When an app cannot be made or an endpoint cannot be listened on; the text names the remedy.
pub fn run(args: &ControllerArgs) -> Result<(), Error> {
    run_beside(args, None, |_, _| Ok(()))
}

/// Runs the controller as [`run`] does, with something beside it that asks it through a handle and
/// reads the topology: a server, which ends when the controller has. The apps of `before` stand
/// before the others.
///
/// # Errors
/// As [`run`], and those of what is beside it, which is made first.
pub fn run_beside<T, E: From<Error>>(
    args: &ControllerArgs,
    before: Option<AppList>,
    beside: impl FnOnce(Handle, Arc<Topology>) -> Result<T, E>,
) -> Result<(), E> {
    // Each switch is an open file, and a shell's limit of them is lower than a network is large.
    if let Err(error) = files::raise_open_files() {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    let report: StatusWriter = Arc::new(files::log_line);
    let apps = args.ready_apps(&report).map_err(Error::from)?;
    let list = match before {
        Some(before) => before.then(apps.list),
        None => apps.list,
    };
    let controller = Controller::new(list, args.options())?;
    let beside = beside(controller.handle(), apps.topology)?;
    run_until_signal(controller, report)?;
    drop(beside);
    Ok(())
}

fn run_until_signal(controller: Controller, report: StatusWriter) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Not on the controller's own thread: a handler that does not return must not keep a signal
    // from ending the program.
    let running = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut running = controller.start(move |line| report(line))?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = running.ended() => {}
        }
        Ok::<_, Error>(running)
    })?;
    running.stop().map(drop)
}

#[cfg(test)]
mod tests {
    use super::{AppConfig, ControllerArgs, StatusWriter, app_help};
    use crate::apps::AppName;
    use clap::Parser;
    use cluster::Sharing;
    use openflow::Version;
    use std::sync::Arc;
    use std::time::Duration;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        arguments: ControllerArgs,
    }

    fn parsed(line: &str) -> Result<ControllerArgs, String> {
        let words = ["weir"].into_iter().chain(line.split_whitespace());
        Program::try_parse_from(words).map(|it| it.arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn app_alone_listens_on_the_registered_port_for_both_versions() {
        let arguments = parsed("learning-switch").unwrap();
        assert_eq!(arguments.apps, [AppName::LearningSwitch]);
        let options = arguments.options();
        assert_eq!(options.listen, ["ptcp:6653:0.0.0.0".parse().unwrap()]);
        assert_eq!(options.versions, [Version::V1_0, Version::V1_3]);
        assert_eq!(options.probe_after, Some(Duration::from_secs(5)));
    }

    #[test]
    fn endpoints_and_versions_are_what_is_given() {
        let line = "hub --connect tcp:192.0.2.1 --protocols 1.3 --probe-interval 0 \
                    --stats-interval 0.5";
        let options = parsed(line).unwrap().options();
        assert!(options.listen.is_empty(), "who connects does not listen unless asked to");
        assert_eq!(options.connect, ["tcp:192.0.2.1:6653".parse().unwrap()]);
        assert_eq!(options.versions, [Version::V1_3]);
        assert_eq!(options.probe_after, None);
        assert_eq!(options.stats_interval, Some(Duration::from_millis(500)));
    }

    #[test]
    fn several_apps_run_in_the_order_given() {
        let arguments = parsed("learning-switch,hub --shards 4").unwrap();
        assert_eq!(arguments.apps, [AppName::LearningSwitch, AppName::Hub]);
        assert_eq!(arguments.options().shards, 4);
    }

    #[test]
    fn settings_and_observed_links_come_with_the_apps() {
        let print: StatusWriter = Arc::new(|_| {});
        let made = |line: &str| parsed(line).unwrap().ready_apps(&print);
        assert!(made("hub --observe-links").is_ok());
        assert!(made("discovery,hub --observe-links").is_ok());
        assert!(made("discovery,traffic-monitor,learning-switch,idle").is_ok());
        let sharing = |apps: &str| {
            let line = format!("{apps} --cluster etcd:http://127.0.0.1:1");
            parsed(&line).unwrap().options().cluster.unwrap().sharing
        };
        assert_eq!(sharing("traffic-monitor,shortest-path"), Sharing::OneNode);
        assert_eq!(sharing("discovery,learning-switch"), Sharing::Even);
        let twice = made("learning-switch,traffic-monitor,hub").unwrap_err().to_string();
        assert!(twice.starts_with("learning-switch and hub both forward"), "{twice}");
        let without = made("router").unwrap_err().to_string();
        assert!(without.contains("[router]") && without.contains("--app-config"), "{without}");
        let missing = made("router --app-config /nowhere/x.toml").unwrap_err().to_string();
        assert!(missing.starts_with("/nowhere/x.toml: "), "{missing}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("apps.toml");
        std::fs::write(&file, "[router]\nport = 1\n").unwrap();
        let wrong = made(&format!("router --app-config {}", file.display())).unwrap_err();
        let expected = format!("{}:2:1: ", file.display());
        assert!(wrong.to_string().starts_with(&expected), "{wrong}");
        assert!(wrong.to_string().contains("`interface`"), "{wrong}");
    }

    /// The keys that a section of settings may have, as serde names them when there is another.
    fn keys(file: &str, header: &str) -> Vec<String> {
        let odd = file.replacen(header, &format!("{header}\nodd = 1"), 1);
        let error = AppConfig::parse(&odd).unwrap_err().to_string();
        let (_, expected) = error.split_once("expected").unwrap();
        expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_help_of_an_app_has_every_setting() {
        for app in AppName::ALL {
            let help = app_help(*app);
            assert!(help.contains(&format!("weir controller {}", app.text())), "{help}");
            let Some(file) = app.settings() else { continue };
            AppConfig::parse(file).unwrap_or_else(|error| panic!("{}: {error}", app.text()));
            for header in file.lines().filter(|line| line.starts_with('[')) {
                for key in keys(file, header) {
                    let is_there = help.lines().any(|line| {
                        let line = line.trim_start_matches([' ', '[']);
                        let tables = line.split_once('.').map_or(line, |(_, table)| table);
                        line.starts_with(&format!("{key} =")) || tables.starts_with(&key)
                    });
                    assert!(is_there, "{header}: {key} is missing in\n{help}");
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        assert!(parsed("router-hub").unwrap_err().contains("learning-switch"));
        assert!(parsed("").unwrap_err().contains("<APP>"));
        assert!(parsed("hub --shards 0").unwrap_err().contains("from 1 to 256"));
        assert!(parsed("hub --listen 6653").unwrap_err().contains("tcp:HOST"));
        assert!(parsed("hub --protocols OpenFlow16").unwrap_err().contains("OpenFlow13"));
        assert!(parsed("hub --stats-interval 0").unwrap_err().contains("at least 0.01"));
    }
}
