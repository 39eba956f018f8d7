//! `weir net`: makes a network, and works in one that runs.
//!
//! Each command finds the network by its folder and does its work in the namespaces itself; the
//! keeper is asked for nothing but what it alone has counted.

mod packets;
mod up;

use std::io::Write;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::{Args, Subcommand};
use netdev::sys::link::Rtnl;
use serde_json::{Value, json};

use crate::echo;
use crate::error::Error;
use crate::folder;
use crate::show;
use crate::state::NetworkState;

/// End of the help.
pub const EXAMPLES: &str = "\
Examples:
  weir run python/examples/hub_network.py --network
      makes the network that the file describes, and runs its apps on it
  weir net ping-all
  weir net send-packets --source h1 --dest h2 --count 10
  weir net show-stats h2
  weir net port-down s1 h1
  weir net shell h1
  weir net up net.toml
      makes a network for a controller in another terminal";

/// The arguments of `weir net`.
#[derive(Args, Debug)]
pub struct NetArgs {
    /// Folder of the running networks
    #[arg(
        long,
        value_name = "DIR",
        env = "WEIR_NET_DIR",
        default_value = "/run/weir/net",
        global = true
    )]
    folder: PathBuf,

    /// Name of the network, if several run
    #[arg(long, value_name = "NAME", global = true)]
    name: Option<String>,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: NetCommand,
}

#[derive(Debug, Subcommand)]
enum NetCommand {
    /// Make the network of a description and keep it until Ctrl-C
    #[command(after_help = up::EXAMPLES)]
    Up(up::UpArgs),
    /// List the networks that run, with their switches, hosts and links
    #[command(visible_alias = "ls")]
    List,
    /// Send ICMP echo requests from every host to every other; exit code 1 when one is lost
    #[command(after_help = "Examples:\n  weir net ping-all\n  weir net ping-all --count 3 --json")]
    PingAll(PingAllArgs),
    /// Send UDP packets from one host to another, and count those that arrive
    #[command(after_help = packets::SEND_EXAMPLES)]
    SendPackets(packets::SendArgs),
    /// Show what a host has sent and received, by flow
    #[command(after_help = packets::STATS_EXAMPLES)]
    ShowStats(packets::StatsArgs),
    /// Begin to count at zero
    ResetStats(packets::ResetArgs),
    /// Take a port of a switch down, as if its cable were pulled
    #[command(after_help = PORT_EXAMPLES)]
    PortDown(PortArgs),
    /// Bring a port of a switch up again
    #[command(after_help = PORT_EXAMPLES)]
    PortUp(PortArgs),
    /// Run a shell, or a command, at a host
    #[command(after_help = "Examples:
  weir net shell h1
  weir net shell h1 -- iperf3 -s -1")]
    Shell(ShellArgs),
    /// Remove what networks have left whose process was killed
    Clean,
}

const PORT_EXAMPLES: &str = "\
Examples:
  weir net port-down s1 h1
  weir net port-up s1 h1
  weir net port-down s1:3 s2";

#[derive(Args, Debug)]
struct PingAllArgs {
    /// Requests from each host to each other
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..))]
    count: u16,

    /// Seconds until a request is lost
    #[arg(long, value_name = "S", default_value_t = 2,
        value_parser = clap::value_parser!(u64).range(1..=60))]
    timeout: u64,
}

#[derive(Args, Debug)]
struct PortArgs {
    /// The switch, or switch:port
    switch: String,
    /// The host or switch at the other end of the link
    other: String,
}

#[derive(Args, Debug)]
struct ShellArgs {
    /// The host
    host: String,
    /// A command with its arguments [default: $SHELL, or /bin/sh]
    #[arg(last = true)]
    command: Vec<String>,
}

impl NetArgs {
    /// Carries the command out; exit code 1 says that it did not succeed.
    ///
    /// # Errors
    /// [`Error`], or when the output cannot be written.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let find = || NetworkState::find(&self.folder, self.name.as_deref());
        match &self.command {
            NetCommand::Up(arguments) => {
                arguments.run(&self.folder, self.name.as_deref(), self.json)
            }
            NetCommand::List => self.list(),
            NetCommand::PingAll(arguments) => self.ping_all(&find()?, arguments),
            NetCommand::SendPackets(arguments) => arguments.run(self, &find()?),
            NetCommand::ShowStats(arguments) => arguments.run(self, &find()?),
            NetCommand::ResetStats(arguments) => arguments.run(self, &find()?),
            NetCommand::PortDown(arguments) => self.set_port(&find()?, arguments, false),
            NetCommand::PortUp(arguments) => self.set_port(&find()?, arguments, true),
            NetCommand::Shell(arguments) => Ok(shell(&find()?, arguments)?),
            NetCommand::Clean => self.clean(),
        }
    }

    /// Prints the value, or else what people read.
    fn print(
        &self,
        value: &Value,
        people: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut out = files::stdout();
        if self.json {
            show::line(&mut out, value)?
        } else {
            people(&mut out)?
        }
        Ok(out.flush()?)
    }

    fn list(&self) -> anyhow::Result<ExitCode> {
        let all = match &self.name {
            Some(name) => vec![NetworkState::find(&self.folder, Some(name))?],
            None => NetworkState::all(&self.folder)?,
        };
        let value = all.iter().map(show::network_json).collect();
        self.print(&value, |out| {
            if all.is_empty() {
                return writeln!(out, "no network runs");
            }
            all.iter().try_for_each(|network| show::network(out, network))
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn ping_all(&self, network: &NetworkState, args: &PingAllArgs) -> anyhow::Result<ExitCode> {
        let hosts = network.hosts();
        let rows = echo::ping_all(&hosts, args.count, Duration::from_secs(args.timeout))?;
        let names: Vec<String> = hosts.iter().map(|host| host.plan.name.clone()).collect();
        self.print(&show::pings_json(&names, &rows), |out| show::pings(out, &names, &rows))?;
        let (sent, received) = show::total(&rows);
        Ok(if received == sent { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn set_port(
        &self,
        network: &NetworkState,
        args: &PortArgs,
        up: bool,
    ) -> anyhow::Result<ExitCode> {
        let end = network.end(&args.switch, &args.other)?;
        Rtnl::open_in(&network.switches()?)
            .map_err(Error::from)?
            .set_up(&end.device, up)
            .map_err(Error::from)?;
        let (port, word) = (end.text(), if up { "up" } else { "down" });
        self.print(&json!({"port": port, "up": up}), |out| writeln!(out, "{port} is {word}"))?;
        Ok(ExitCode::SUCCESS)
    }

    fn clean(&self) -> anyhow::Result<ExitCode> {
        let cleaned = folder::clean(&self.folder)?;
        self.print(&json!({"removed": cleaned}), |out| match cleaned.as_slice() {
            [] => writeln!(out, "nothing was left behind"),
            names => writeln!(out, "removed: {}", names.join(", ")),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Becomes a program at a host; comes back only with an error.
fn shell(network: &NetworkState, args: &ShellArgs) -> Result<ExitCode, Error> {
    let host = network.host(&args.host)?;
    let given = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let (program, rest) = match args.command.split_first() {
        Some((program, rest)) => (program.into(), rest),
        None => (given.unwrap_or_else(|| "/bin/sh".into()), [].as_slice()),
    };
    let mut command = Command::new(&program);
    command.args(rest).env("WEIR_HOST", &host.plan.name);
    // The thread inside the namespace becomes the program, and the process with it.
    let failed = host.namespace()?.enter(|| command.exec());
    let failed = failed.map_err(Error::io(format!("entering {}", host.plan.name)))?;
    Err(Error::at("starting", Path::new(&program))(failed))
}
