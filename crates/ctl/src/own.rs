//! Commands for what only our switch has, over the control socket, and `show`, which has both.

use clap::Args;
use openflow::Message;
use openflow::message::{Features, SwitchConfig};
use serde_json::{Value, json};

use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::ports::DumpPortsDesc;
use super::{port_names, socket, value};
use control::{ControlCommand, ControlLine};

/// Identity of the switch, its ports and settings; of ours also its controllers
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl show\n  weir ctl --switch tcp:192.0.2.1:6634 show")]
pub(super) struct Show {}

impl Execute for Show {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let json = context.out.is_json();
        let own = match context.place.switch {
            Some(_) => Vec::new(),
            None => socket::records(context.place, ControlCommand::Show, json).await?,
        };
        if json { whole(context, own).await } else { text(context, own).await }
    }
}

/// Prints as `ovs-ofctl show` does, then our switch's own account.
async fn text(context: &mut CommandContext<'_>, own: Vec<ControlLine>) -> Result<(), Failure> {
    context.show(&Message::FeaturesRequest).await?;
    // Without it, the ports stand in the features.
    if context.session().await?.version.has_port_desc() {
        DumpPortsDesc::all().execute(context).await?;
    }
    match context.show(&Message::GetConfigRequest).await {
        // A switch without tables has nothing to be set.
        Ok(()) | Err(Failure::Refused(_)) => {}
        Err(other) => return Err(other),
    }
    for line in own {
        if let ControlLine::Text(text) = line {
            context.out.record(text, || Value::Null)?;
        }
    }
    Ok(())
}

/// The same as one value.
async fn whole(context: &mut CommandContext<'_>, own: Vec<ControlLine>) -> Result<(), Failure> {
    let mut whole = json!({});
    let session = context.session().await?;
    if let (_, Message::FeaturesReply(features)) = session.ask(&Message::FeaturesRequest).await? {
        let Features { datapath_id, n_buffers, n_tables, capabilities, .. } = features;
        whole["dpid"] = datapath_id.to_string().into();
        whole["n_tables"] = n_tables.into();
        whole["n_buffers"] = n_buffers.into();
        whole["capabilities"] = capabilities.bits().into();
    }
    match session.ask(&Message::GetConfigRequest).await {
        Ok((_, Message::GetConfigReply(SwitchConfig { flags, miss_send_len }))) => {
            whole["config_flags"] = flags.into();
            whole["miss_send_len"] = miss_send_len.into();
        }
        Ok(_) | Err(Failure::Refused(_)) => {}
        Err(other) => return Err(other),
    }
    let ports = port_names::descriptions(context).await?;
    whole["ports"] = ports.iter().map(value::port_desc).collect();
    for line in own {
        if let ControlLine::Value(Value::Object(own)) = line {
            for (key, value) in own {
                whole[key] = value;
            }
        }
    }
    context.out.record("", || whole)
}

/// The bridges of the switch: name, datapath id, ports, connections
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl list-bridges\n  weir ctl --json list-bridges")]
pub(super) struct ListBridges {}

impl Execute for ListBridges {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        socket::ask(context, ControlCommand::ListBridges).await
    }
}

/// The way of one packet through the tables; nothing is sent and nothing is counted
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl trace in_port=eth1,tcp,nw_dst=10.0.0.1,tp_dst=80
  weir ctl trace 1 tcp,nw_dst=10.0.0.1,tp_dst=80
  weir ctl trace eth1 ffffffffffff02000000001188b50001")]
pub(super) struct Trace {
    /// A match that the packet is to meet, with in_port=PORT; or the port alone, by number or name
    packet: String,
    /// After a port: the packet as a match, for example tcp,tp_dst=80, or in hex digits
    frame: Option<String>,
}

impl Execute for Trace {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let Self { packet, frame } = self;
        socket::ask(context, ControlCommand::Trace { packet, frame }).await
    }
}

/// The forwarding threads: their ports, and how they spend their time
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  weir ctl workers")]
pub(super) struct Workers {}

impl Execute for Workers {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        socket::ask(context, ControlCommand::Workers).await
    }
}

/// Counts of the decision caches; or the caches to use from now on
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  weir ctl caches\n  weir ctl caches frame,key\n  weir ctl caches \
                        frame,key,kernel"
)]
pub(super) struct Caches {
    /// off, or some of frame, key and kernel with commas between
    set: Option<String>,
}

impl Execute for Caches {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        socket::ask(context, ControlCommand::Caches { set: self.set }).await
    }
}

/// The addresses that NORMAL has learnt: port, VLAN, address, seconds since it was last seen
#[derive(Args, Clone, Debug)]
#[command(
    alias = "fdb/show",
    after_help = "Examples:\n  weir ctl dump-macs\n  weir ctl --json dump-macs"
)]
pub(super) struct DumpMacs {}

impl Execute for DumpMacs {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        if !context.out.is_json() {
            context.out.record(" port  VLAN  MAC                Age", || Value::Null)?;
        }
        socket::ask(context, ControlCommand::Macs).await
    }
}
