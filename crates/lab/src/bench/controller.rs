//! `weir bench controller`: how fast a controller answers, and how many switches it holds.
//!
//! One to thousands of emulated switches connect to any controller over TCP or TLS, say who they
//! are, and send packets for the controller to decide on. Their packets are those of hosts that a
//! learning switch can learn. The rates are those of whole answers, the times those from when a
//! packet-in was due, and every figure says whether the controller was busy or this program.
//! Controllers that it starts itself are measured in turns, on a core of their own. It must never
//! report a rate of its own as that of the controller.

mod capture;
mod cluster;
mod contenders;
mod cpu;
mod fleet;
mod flow_entries;
mod hostile;
mod http;
#[cfg(test)]
mod mock;
mod proactive;
mod reprovisioning;
mod ring_topology;
mod row_sets;
mod rows;
#[cfg(test)]
mod tests;
mod topology;
mod trial;
mod turns;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use channel::{DEFAULT_PORT, Endpoint, Tls, TlsFiles};
use clap::Args;
use emulator::{Buffering, FRAME_MIN, HOSTS_MAX, SWITCHES_MAX};
use netdev::sys::affinity;
use openflow::Version;
use openflow::text::decimal_where;
use programs::cancel::Cancel;
use programs::tools;

use super::common::{Common, Run};
use crate::rate;
use crate::service::ProgramPaths;
use crate::settings::AppKind;
use contenders::{Contender, NamedCommand};
use fleet::FleetPlan;
use rows::FigureRow;
use trial::{Measured, Mode, TrialPlan};

const EXAMPLES: &str = "\
Examples:
  weir bench controller --target 127.0.0.1:6653 --switches 16 --mode throughput
      how many packet-ins a second a controller answers that runs already
  weir bench controller --target 127.0.0.1:6653 --mode latency --pid $(pidof ryu-manager)
      how long an answer takes, and what the controller uses of its core meanwhile
  weir bench controller --target 127.0.0.1:6653 --mode open-loop --rate 20000 --switches 8
      the same at a given rate; what is answered late counts from when it was due
  weir bench controller --target 127.0.0.1:6653 --switches 1000 --mode storm --seconds 10
      all connect at once, and are silent for ten seconds then
  weir bench controller --target 127.0.0.1:6653 --invalid 2 --hostile 500
      the rate while 2 of 100 messages cannot be read, and 500 connections a second are nobody's
  weir bench controller --vs weir --mode topology --switches 100
      how long it takes until the links of a ring are known, and a change of one
  weir bench controller --target 127.0.0.1:6653 --rest 127.0.0.1:8080 --mode proactive
      how long entries take from REST to all switches, and how many come a second
  weir bench controller --vs weir,ovs-testcontroller --switches 16 --repeats 7 --json
      both are started here and measured in turns on the same core
  weir bench controller --vs weir,mine --command 'mine=./mine --port {port}' --mode latency
      any controller that can be told its port
  weir bench controller --rows
      Weir's own controller in many set-ups, beside the peers that are installed
  weir bench controller --rows flow-entries,cluster --repeats 1
      a million flow entries in a hundred switches; a cluster's master killed (needs etcd)";

/// Measure a controller with emulated switches.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ControllerBenchArgs {
    /// A controller that runs already: HOST:PORT, tcp:HOST:PORT or ssl:HOST:PORT
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_target,
          required_unless_present_any = ["vs", "rows"])]
    target: Option<Endpoint>,
    /// Controllers that are started here and measured in turns: weir, weir-python,
    /// ovs-testcontroller, os-ken, or names of --command. The first is compared with the others
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "target")]
    vs: Vec<String>,
    /// Measure Weir's own controller in its usual set-ups, all or those with these names
    #[arg(long, alias = "bars", value_name = "NAMES", value_delimiter = ',', num_args = 0..,
          conflicts_with_all = ["target", "vs", "mode", "switches"])]
    rows: Option<Vec<String>>,
    /// Flow entries of the row flow-entries, over all its switches
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u32).range(100..=100_000_000))]
    entries: u32,
    /// The figure to measure
    #[arg(long, value_enum, default_value_t = Mode::Throughput)]
    mode: Mode,
    /// Number of switches [default: 1 for latency, 16 otherwise]
    #[arg(long, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SWITCHES_MAX)))]
    switches: Option<u32>,
    #[command(flatten)]
    switch: SwitchArgs,
    /// Packet-ins that may wait for an answer at each switch [default: its share of 32768]
    #[arg(long, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    window: Option<u32>,
    /// Packet-ins a second of all switches together, with --mode open-loop
    #[arg(long, value_name = "RATE", value_parser = parse_rate,
          required_if_eq("mode", "open-loop"))]
    rate: Option<f64>,
    /// Messages that no controller can read, for a hundred packet-ins (RFC 8456, 5.3.1)
    #[arg(long, default_value_t = 0, value_name = "PERCENT",
          value_parser = clap::value_parser!(u32).range(0..=100))]
    invalid: u32,
    /// Connections a second of peers that are no switches, meanwhile (RFC 8456, 5.3.2)
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    hostile: Option<f64>,
    /// Seconds of load before those that are measured
    #[arg(long, default_value_t = 0.5, value_name = "SECONDS", value_parser = parse_warm_up)]
    warm_up: f64,
    /// Seconds that a controller may take to serve all switches
    #[arg(long, default_value_t = 60, value_name = "SECONDS",
          value_parser = clap::value_parser!(u16).range(1..=3_600))]
    ready_limit: u16,
    /// Connections that may be in the making at the same time
    #[arg(long, default_value_t = 512, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    at_once: u32,
    /// Threads of the emulator [default: one for each core that it may use]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// The process of the --target, if it is on this machine: its CPU time and memory
    #[arg(long, value_name = "PID", requires = "target")]
    pid: Option<u32>,
    /// Address at which the --target serves REST with Ryu's endpoints, for --mode topology,
    /// discovery-size and proactive
    #[arg(long, value_name = "HOST:PORT", requires = "target")]
    rest: Option<String>,
    /// Application of the controllers that are started here: hub, learning-switch
    #[arg(long, default_value_t = AppKind::LearningSwitch, conflicts_with = "target")]
    app: AppKind,
    /// Connect with TLS to controllers that are started here, which can be Weir only
    #[arg(long, conflicts_with = "target")]
    tls: bool,
    /// Another controller for --vs, with {port} where its port is, and {rest} where HOST:PORT of
    /// its REST is
    #[arg(long, value_name = "NAME=COMMAND", requires = "vs")]
    command: Vec<NamedCommand>,
    /// TLS to --target: the switches' private key
    #[arg(long, value_name = "FILE", requires_all = ["certificate", "ca_cert", "target"])]
    private_key: Option<PathBuf>,
    /// TLS to --target: the switches' certificate
    #[arg(long, value_name = "FILE", requires = "private_key")]
    certificate: Option<PathBuf>,
    /// TLS to --target: the certificate of the CA that signed the controller's
    #[arg(long, value_name = "FILE", requires = "private_key")]
    ca_cert: Option<PathBuf>,
    /// Virtual environment with os-ken
    #[arg(long, value_name = "DIR", env = "WEIR_OS_KEN_DIR")]
    os_ken: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Shape of each emulated switch.
#[derive(Args, Clone, Copy, Debug)]
struct SwitchArgs {
    /// The OpenFlow version that the switches speak: 1.0, 1.3
    #[arg(long, default_value = "1.0", value_parser = rate::release::parse)]
    of: Version,
    /// Hosts behind each switch, an even number
    #[arg(long, default_value_t = 1_000, value_name = "COUNT", value_parser = parse_hosts)]
    hosts: u32,
    /// Ports of each switch, an even number
    #[arg(long, default_value_t = 4, value_name = "COUNT", value_parser = parse_ports)]
    ports: u32,
    /// Bytes of each packet, without FCS
    #[arg(long, default_value_t = FRAME_MIN, value_name = "BYTES",
          value_parser = clap::value_parser!(u16).range(i64::from(FRAME_MIN)..=9_000))]
    frame_bytes: u16,
    /// Send whole packets, in no buffer; otherwise packet-ins name a buffer, as those of cbench do
    #[arg(long)]
    whole: bool,
}

fn parse_target(text: &str) -> Result<Endpoint, String> {
    let is_endpoint = ["tcp:", "ssl:", "unix:"].iter().any(|kind| text.starts_with(kind));
    let full = if is_endpoint { text.to_owned() } else { format!("tcp:{text}") };
    full.parse::<Endpoint>().map_err(|error| {
        format!("{error}; HOST or HOST:PORT will do, the port is {DEFAULT_PORT} otherwise")
    })
}

fn parse_even(text: &str, max: u32) -> Result<u32, String> {
    let is_allowed = |number: &u32| (2..=max).contains(number) && number.is_multiple_of(2);
    decimal_where(text, is_allowed, format_args!("use an even number from 2 to {max}"))
}

fn parse_hosts(text: &str) -> Result<u32, String> {
    parse_even(text, HOSTS_MAX)
}

fn parse_ports(text: &str) -> Result<u32, String> {
    parse_even(text, 1_024)
}

fn parse_rate(text: &str) -> Result<f64, String> {
    decimal_where(text, |rate| (1.0..=1e8).contains(rate), "use 1 to 100000000")
}

fn parse_warm_up(text: &str) -> Result<f64, String> {
    decimal_where(text, |seconds| (0.0..=600.0).contains(seconds), "use 0 to 600")
}

impl ControllerBenchArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        // Controllers that are started here inherit it.
        files::raise_open_files().context("raising the limit of open files")?;
        let repeats = usize::from(self.common.repeats);
        if let Some(names) = &self.rows {
            let sets = row_sets::wanted(names)?;
            let steps = sets.iter().map(|set| set.steps(repeats)).sum();
            return self
                .common
                .run(steps, |run| sets.iter().try_for_each(|set| set.measure(&self, run)));
        }
        if self.vs.is_empty() {
            return self.common.run(repeats, |run| self.measure_target(run));
        }
        let steps = repeats * self.vs.len();
        self.common.run(steps, |run| {
            let find = |name: &String| -> Result<Contender> {
                Ok(Contender::find(name, &self.command)?.with_tls(self.tls))
            };
            let contenders = self.vs.iter().map(find).collect::<Result<Vec<_>>>()?;
            let setup = self.setup(run, self.mode, self.switches)?;
            contenders.iter().try_for_each(|contender| contender.check(&setup.paths))?;
            for row in turns::in_turns(&contenders, &setup, run)? {
                run.row(&row)?;
            }
            Ok(())
        })
    }

    fn measure_target(&self, run: &mut Run) -> Result<()> {
        let target = self.target.clone().context("no --target")?;
        let setup = self.setup(run, self.mode, self.switches)?;
        let tls = self.target_tls()?;
        ensure!(
            tls.is_some() == target.is_tls(),
            "ssl: needs --private-key, --certificate and --ca-cert (weir pki makes them), and they \
             need ssl:"
        );
        let mut measured = Vec::new();
        for repeat in 0..run.repeats {
            run.progress.begin(&format!("{}, {}", setup.name, repeat + 1));
            let (target, tls) = (target.clone(), tls.clone());
            let fleet = FleetPlan { target, tls, pid: self.pid, ..setup.fleet.clone() };
            measured.push(measure(&setup.trial, fleet, &run.cancel)?);
            run.progress.advance(1);
        }
        for row in FigureRow::alone(&setup.name, &measured) {
            run.row(&row)?;
        }
        Ok(())
    }

    fn target_tls(&self) -> Result<Option<Tls>> {
        let files = (self.private_key.clone(), self.certificate.clone(), self.ca_cert.clone());
        let (Some(private_key), Some(certificate), Some(ca_cert)) = files else {
            return Ok(None);
        };
        Ok(Some(Tls::load(TlsFiles { private_key, certificate, ca_cert }, false)?))
    }

    /// Set-up of the measurement.
    fn setup(&self, run: &Run, mode: Mode, switches: Option<u32>) -> Result<Setup> {
        if mode == Mode::OpenLoop && self.rate.is_none() {
            bail!("--mode open-loop needs --rate");
        }
        if !mode.is_load() && (self.hostile.is_some() || self.invalid > 0) {
            bail!("--hostile and --invalid go with a load: --mode throughput, latency, open-loop");
        }
        let switches = switches.unwrap_or(if mode == Mode::Latency { 1 } else { 16 });
        let all = affinity::allowed_cpus().context("asking for the cores")?;
        // A controller elsewhere, or one that the user has started, is where it is.
        let controller_cores = if self.target.is_some() { Vec::new() } else { vec![run.core] };
        let cores: Vec<usize> =
            all.iter().copied().filter(|core| !controller_cores.contains(core)).collect();
        let trial = TrialPlan {
            mode,
            window: self.window,
            rate: self.rate.unwrap_or(0.0),
            warm_up: Duration::from_secs_f64(self.warm_up),
            seconds: Duration::from_secs_f64(run.seconds),
            hostile: self.hostile,
        };
        let switch = self.switch;
        let fleet = FleetPlan {
            target: Endpoint::Tcp { host: String::new(), port: 0 },
            tls: None,
            pid: None,
            version: switch.of,
            switches,
            hosts: switch.hosts,
            ports: switch.ports,
            frame_bytes: switch.frame_bytes,
            buffering: if switch.whole { Buffering::Whole } else { Buffering::Buffered },
            pace: trial.pace(switches),
            keeps_times: mode.keeps_times(),
            threads: self.threads.map_or(cores.len(), usize::from),
            cores,
            at_once: self.at_once,
            ready_limit: Duration::from_secs(self.ready_limit.into()),
            invalid_percent: self.invalid,
            rest: self.rest.clone(),
            weir: run.weir.clone(),
        };
        let weir = run.weir.clone();
        let os_ken_dir = self.os_ken.clone().unwrap_or_else(tools::os_ken_default_dir);
        Ok(Setup {
            name: format!("{}-{switches}", mode.name()),
            trial,
            fleet,
            app: self.app,
            controller_cores,
            paths: ProgramPaths::new(weir, os_ken_dir),
        })
    }
}

/// A question and how it is asked.
#[derive(Debug)]
struct Setup {
    /// The name of its rows.
    name: String,
    trial: TrialPlan,
    /// Everything but where the controller is.
    fleet: FleetPlan,
    app: AppKind,
    controller_cores: Vec<usize>,
    paths: ProgramPaths,
}

/// Measures the controller that the plan names.
///
/// # Errors
/// It does not serve all switches, connections end, or the run is interrupted.
fn measure(plan: &TrialPlan, fleet: FleetPlan, cancel: &Cancel) -> Result<Measured> {
    match plan.mode {
        Mode::Storm => trial::storm(plan, fleet, cancel),
        Mode::Throughput | Mode::Latency | Mode::OpenLoop => trial::load(plan, fleet, cancel),
        Mode::Topology => topology::measure(&fleet, cancel),
        Mode::DiscoverySize => topology::measure_size(&fleet, cancel),
        Mode::Proactive => proactive::measure(plan, &fleet, cancel),
        Mode::Reprovisioning => reprovisioning::measure(&fleet, cancel),
    }
}

#[cfg(test)]
mod argument_tests {
    use channel::Endpoint;

    use super::{parse_even, parse_rate, parse_target};

    #[test]
    fn a_target_is_a_place() {
        let tcp = |host: &str, port| Ok(Endpoint::Tcp { host: host.to_owned(), port });
        assert_eq!(parse_target("127.0.0.1:6633"), tcp("127.0.0.1", 6_633));
        assert_eq!(parse_target("localhost"), tcp("localhost", 6_653));
        assert!(matches!(parse_target("ssl:[::1]:7"), Ok(Endpoint::Ssl { port: 7, .. })));
        assert!(parse_target("127.0.0.1:none").unwrap_err().contains("HOST:PORT"));
    }

    #[test]
    fn numbers_are_refused_with_what_helps() {
        assert_eq!(parse_even("4", 8), Ok(4));
        for text in ["", "x", "0", "3", "10", "-2"] {
            assert!(parse_even(text, 8).is_err(), "{text}");
        }
        assert!(parse_rate("0").is_err() && parse_rate("NaN").is_err());
    }
}
