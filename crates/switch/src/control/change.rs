//! The commands that change something, as `ovs-ofctl` has them: each becomes the message that a
//! controller would send, and is done when every worker forwards by it.

use openflow::flow::FlowModCommand;
use openflow::group::GroupModCommand;
use openflow::message::{PacketOut, SwitchConfig};
use openflow::meter::MeterModCommand;
use openflow::port::{PortConfig, PortFeatures, PortMod};
use openflow::text::{parse_actions, parse_flow_mod, parse_group_mod, parse_meter_mod, parse_port};
use openflow::{Message, TableId, Xid};

use super::Command;
use super::answer::{VERSION, bad, gone, no_tables, refused};
use super::show::unhex;
use crate::agent::Agent;
use crate::bridge::Answer;
use crate::worker::{ConnectionId, Quote, Request, Turn};

/// Carries out a command that changes something.
pub(super) async fn change(agent: &Agent, command: Command) -> Result<(), String> {
    let message = match command {
        Command::PacketOut { in_port, actions, frame } => {
            return packet_out(agent, &in_port, &actions, &frame).await;
        }
        Command::ModPort { port, setting } => mod_port(agent, &port, &setting)?,
        Command::SetFrags { mode } => set_frags(agent, &mode)?,
        other => of_tables(other)?,
    };
    let nobody = || Request {
        from: ConnectionId(0),
        version: VERSION,
        xid: Xid(0),
        turn: Turn::Before(0),
        quote: Quote::new(&[]),
    };
    let applied = agent.bridge.apply(VERSION, message, nobody);
    if let Ok(Answer::News(status)) = &applied {
        agent.tell_port(status.clone());
    }
    agent.flush();
    applied.map_err(|error| refused(agent, error))?;
    agent.bridge.barrier().await;
    Ok(())
}

fn of_tables(command: Command) -> Result<Message, String> {
    match command {
        Command::AddFlow { flow } => flow_mod(&flow, FlowModCommand::Add),
        Command::ModFlows { flow, strict: false } => flow_mod(&flow, FlowModCommand::Modify),
        Command::ModFlows { flow, strict: true } => flow_mod(&flow, FlowModCommand::ModifyStrict),
        Command::DelFlows { flow, strict: false } => {
            flow_mod(flow.as_deref().unwrap_or(""), FlowModCommand::Delete)
        }
        Command::DelFlows { flow, strict: true } => {
            flow_mod(flow.as_deref().unwrap_or(""), FlowModCommand::DeleteStrict)
        }
        Command::AddGroup { group } => group_mod(&group, GroupModCommand::Add),
        Command::ModGroup { group } => group_mod(&group, GroupModCommand::Modify),
        Command::DelGroups { group } => {
            group_mod(group.as_deref().unwrap_or(""), GroupModCommand::Delete)
        }
        Command::AddMeter { meter } => meter_mod(&meter, MeterModCommand::Add),
        Command::ModMeter { meter } => meter_mod(&meter, MeterModCommand::Modify),
        Command::DelMeters { meter } => {
            meter_mod(meter.as_deref().unwrap_or(""), MeterModCommand::Delete)
        }
        Command::Show
        | Command::DumpFlows { .. }
        | Command::DumpPorts
        | Command::DumpGroups
        | Command::DumpMeters
        | Command::DumpTables
        | Command::DumpAggregate { .. }
        | Command::DumpQueues
        | Command::DumpDesc
        | Command::GroupFeatures
        | Command::MeterFeatures
        | Command::ModPort { .. }
        | Command::PacketOut { .. }
        | Command::SetFrags { .. }
        | Command::Trace { .. }
        | Command::Workers
        | Command::Caches { .. }
        | Command::Counters => Err("the command changes no table".to_owned()),
    }
}

fn flow_mod(text: &str, command: FlowModCommand) -> Result<Message, String> {
    let mut flow = parse_flow_mod(text, command).map_err(bad("flow"))?;
    let deletes = matches!(command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
    if deletes && !names_table(text) {
        flow.table_id = TableId::ALL;
    }
    Ok(Message::FlowMod(flow))
}

/// Whether a flow's text says `table=`.
fn names_table(text: &str) -> bool {
    text.split([',', ' ']).any(|word| word.trim_start().starts_with("table="))
}

fn group_mod(text: &str, command: GroupModCommand) -> Result<Message, String> {
    parse_group_mod(text, command).map_err(bad("group")).map(Message::GroupMod)
}

fn meter_mod(text: &str, command: MeterModCommand) -> Result<Message, String> {
    parse_meter_mod(text, command).map_err(bad("meter")).map(Message::MeterMod)
}

/// The settings of a port by their names, and whether the name says that the bit is off.
const SETTINGS: [(&str, PortConfig); 7] = [
    ("down", PortConfig::PORT_DOWN),
    ("no-stp", PortConfig::NO_STP),
    ("no-receive", PortConfig::NO_RECV),
    ("no-receive-stp", PortConfig::NO_RECV_STP),
    ("no-flood", PortConfig::NO_FLOOD),
    ("no-forward", PortConfig::NO_FWD),
    ("no-packet-in", PortConfig::NO_PACKET_IN),
];

fn mod_port(agent: &Agent, port: &str, setting: &str) -> Result<Message, String> {
    let port_no = parse_port(port).map_err(bad("port"))?;
    let descs = agent.bridge.port_descs();
    let desc = descs.iter().find(|desc| desc.port_no == port_no);
    let desc = desc.ok_or_else(|| format!("port: there is no port {port}"))?;
    let (mask, config) = setting_of(setting)?;
    let (hw_addr, advertise) = (desc.hw_addr, PortFeatures::empty());
    Ok(Message::PortMod(PortMod { port_no, hw_addr, config, mask, advertise }))
}

/// The bit that a setting is about, and its value.
fn setting_of(setting: &str) -> Result<(PortConfig, PortConfig), String> {
    for (name, bit) in SETTINGS {
        if setting == name {
            return Ok((bit, bit));
        }
        if setting == name.strip_prefix("no-").unwrap_or("up") {
            return Ok((bit, PortConfig::empty()));
        }
    }
    let names = SETTINGS.map(|(name, _)| name).join(", ");
    Err(format!("setting: unknown {setting:?}; use up, {names}, or one of these without no-"))
}

fn set_frags(agent: &Agent, mode: &str) -> Result<Message, String> {
    let flags = match mode {
        "normal" => 0,
        "drop" => 1,
        "reassemble" => 2,
        other => return Err(format!("unknown mode {other:?}; use normal, drop or reassemble")),
    };
    let settings = agent.bridge.with_control(|control| control.settings());
    let miss_send_len = settings.ok_or_else(no_tables)?.miss_send_len;
    Ok(Message::SetConfig(SwitchConfig { flags, miss_send_len }))
}

async fn packet_out(
    agent: &Agent,
    in_port: &str,
    actions: &str,
    frame: &str,
) -> Result<(), String> {
    let packet_out = PacketOut {
        buffer_id: None,
        in_port: parse_port(in_port).map_err(bad("in_port"))?,
        actions: parse_actions(actions).map_err(bad("actions"))?,
        data: unhex(frame)?,
    };
    let sent = agent.bridge.ask_first(move |worker| worker.packet_out(&packet_out)).await;
    sent.ok_or_else(gone)?.map_err(|error| refused(agent, error))
}

#[cfg(test)]
mod tests {
    use openflow::port::PortConfig;

    use super::setting_of;

    #[test]
    fn settings_are_named_as_ovs_ofctl_names_them() {
        let off = PortConfig::empty();
        let down = PortConfig::PORT_DOWN;
        assert_eq!(setting_of("up"), Ok((down, off)));
        assert_eq!(setting_of("down"), Ok((down, down)));
        assert_eq!(setting_of("no-flood"), Ok((PortConfig::NO_FLOOD, PortConfig::NO_FLOOD)));
        assert_eq!(setting_of("receive"), Ok((PortConfig::NO_RECV, off)));
        assert!(setting_of("flod").unwrap_err().contains("no-flood"));
    }
}
