//! `weir controller`: its arguments, and running them.
//!
//! The binary parses [`ControllerArgs`] and calls [`run`]; what is printed goes to standard error,
//! since nothing that a controller says is data.

use crate::apps::AppName;
use crate::runtime::{Error, Options, Report, serve};
use channel::Endpoint;
use clap::Args;
use openflow::Version;
use std::rc::Rc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

const EXAMPLES: &str = "\
Examples:
  weir controller hub
      a hub for every switch that connects to port 6653 of this machine
  weir controller learning-switch --listen tcp:127.0.0.1:6633 --protocols OpenFlow13
      only switches of this machine, only OpenFlow 1.3
  weir controller hub --connect tcp:192.0.2.7:6653 --stats-interval 1
      a switch that listens itself; rates every second
  ovs-vsctl set-controller br0 tcp:127.0.0.1:6653
      points an Open vSwitch here

ENDPOINT is tcp:HOST:PORT or unix:PATH (with --listen also ptcp:PORT:HOST, punix:PATH). The port is
6653 where it is left out. Ctrl-C or SIGTERM ends the controller.";

/// Run a controller: an app that decides what switches do with packets
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ControllerArgs {
    /// The app to run
    #[arg(value_enum)]
    pub app: AppName,

    /// Accept switches here (may be given several times) [default: tcp:0.0.0.0:6653, unless
    /// --connect is given]
    #[arg(long, value_name = "ENDPOINT")]
    pub listen: Vec<Endpoint>,

    /// Connect to a switch that listens here (may be given several times)
    #[arg(long, value_name = "ENDPOINT")]
    pub connect: Vec<Endpoint>,

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

    /// Ask a switch that has been silent for S seconds whether it is there; 0 never asks
    #[arg(long, value_name = "S", default_value_t = 5)]
    pub probe_interval: u64,
}

fn parse_version(text: &str) -> Result<Version, String> {
    Version::from_name(text).ok_or_else(|| {
        let names: Vec<_> = Version::ALL.iter().map(|version| version.name()).collect();
        format!("Weir speaks {}", names.join(" and "))
    })
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds >= 0.01);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "a number of seconds, at least 0.01".into())
}

impl ControllerArgs {
    /// What the runtime is told.
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
            versions: self.protocols.clone(),
            probe_after: (self.probe_interval > 0)
                .then(|| Duration::from_secs(self.probe_interval)),
            stats_interval: self.stats_interval,
        }
    }
}

/// Runs the controller until Ctrl-C or SIGTERM, which is success.
///
/// # Errors
/// When an endpoint cannot be listened on; the text names the remedy.
pub fn run(args: &ControllerArgs) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report: Report = Rc::new(|line| eprintln!("{line}"));
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let stop = async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        serve(args.app.make(), &args.options(), report, stop).await?;
        Ok(())
    })
}
