//! Bridges and ports of our switch that come and go while it runs, over the control socket.

use clap::Args;
use control::{ControlCommand, PortSettings};

use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::socket;

/// Adds a bridge to the running switch, and connects to its controllers
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl add-bridge br1 port=tap:vm1 port=tap:vm2 fail-mode=standalone
  weir ctl --json add-bridge right dpid=a2 port=af_packet:eth3 controller=tcp:192.0.2.7")]
pub(super) struct AddBridge {
    /// The bridge's name, which no other has
    #[arg(value_name = "BRIDGE")]
    name: String,
    /// Its options, with the keys of a bridge's table in the switch's file, those of lists
    /// repeated; what is not given has its default, not what other bridges have. Paths are those
    /// of the switch's folder
    #[arg(value_name = "KEY=VALUE")]
    options: Vec<String>,
}

impl Execute for AddBridge {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let Self { name, options } = self;
        socket::ask_bridge(context, name, ControlCommand::AddBridge { options }).await
    }
}

/// Removes a bridge from the running switch: its connections end, its devices are closed
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  weir ctl del-bridge br1")]
pub(super) struct DelBridge {
    /// The bridge; the last one stays
    #[arg(value_name = "BRIDGE")]
    name: String,
}

impl Execute for DelBridge {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        socket::ask_bridge(context, self.name, ControlCommand::DelBridge).await
    }
}

/// The ports of a bridge of our switch: devices, workers, and remarks about them
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl ports\n  weir ctl --json --bridge br0 ports")]
pub(super) struct Ports {}

impl Execute for Ports {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        socket::ask(context, ControlCommand::Ports).await
    }
}

/// Settings of a port beside its device.
#[derive(Args, Clone, Debug)]
pub(super) struct SettingsArgs {
    /// The rate of its link in bits per second, for example 100M, or none
    #[arg(long, value_name = "BITS")]
    rate: Option<String>,
    /// A queue, for example 5,min=30%,max=50%; repeatable
    #[arg(long, value_name = "ID[,min=P%][,max=P%][,frames=COUNT]")]
    queue: Vec<String>,
    /// Its membership in VLANs when NORMAL forwards, for example access:10 or trunk:10,20-29
    #[arg(long, value_name = "VLANS")]
    vlan: Option<String>,
}

impl SettingsArgs {
    fn settings(self) -> PortSettings {
        PortSettings { rate: self.rate, queues: self.queue, vlan: self.vlan }
    }
}

/// Adds a port to a running bridge; controllers get a port-status, and nothing else moves
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl add-port br0 af_packet:eth2
  weir ctl add-port br0 7=tap:vm7 --vlan access:10
  weir ctl add-port br0 af_packet:eth3 --rate 100M --queue 1,min=30%")]
pub(super) struct AddPort {
    /// The bridge; weir ctl list-bridges lists them
    #[arg(value_name = "BRIDGE")]
    name: String,
    /// The port, as weir switch --port takes it: [N=]KIND:NAME[?OPTION=VALUE&..]; without N= it
    /// gets the lowest free number
    #[arg(value_name = "PORT")]
    port: String,
    #[command(flatten)]
    settings: SettingsArgs,
}

impl Execute for AddPort {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let Self { name, port, settings } = self;
        let command = ControlCommand::AddPort { port, settings: settings.settings() };
        socket::ask_bridge(context, name, command).await
    }
}

/// Removes a port from a running bridge; flow entries stay, and what they send to it is dropped
/// and counted
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl del-port br0 7\n  weir ctl del-port br0 eth2")]
pub(super) struct DelPort {
    /// The bridge
    #[arg(value_name = "BRIDGE")]
    name: String,
    /// The port's number or name
    #[arg(value_name = "PORT")]
    port: String,
}

impl Execute for DelPort {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let Self { name, port } = self;
        socket::ask_bridge(context, name, ControlCommand::DelPort { port }).await
    }
}

/// Changes what can be changed of a port of a running bridge: rate, queues, VLANs, number
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl set-port br0 eth2 --rate 50M --queue 1,min=30% --queue 2
  weir ctl set-port br0 7 --vlan trunk --rate none --queue none
  weir ctl set-port br0 eth2 --number 9")]
pub(super) struct SetPort {
    /// The bridge
    #[arg(value_name = "BRIDGE")]
    name: String,
    /// The port's number or name
    #[arg(value_name = "PORT")]
    port: String,
    /// Another number; to controllers one port goes and another comes
    #[arg(long, value_name = "N")]
    number: Option<u32>,
    #[command(flatten)]
    settings: SettingsArgs,
}

impl Execute for SetPort {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let Self { name, port, number, settings } = self;
        let command = ControlCommand::SetPort { port, number, settings: settings.settings() };
        socket::ask_bridge(context, name, command).await
    }
}

/// Has the switch read its file again and apply what has changed in it, or refuse it whole
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl reload\n  weir ctl --json reload")]
pub(super) struct Reload {}

impl Execute for Reload {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        socket::ask(context, ControlCommand::Reload).await
    }
}
