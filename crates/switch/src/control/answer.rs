//! What each command of the control socket does: it becomes an OpenFlow message, which the worker
//! carries out as if a controller had sent it, and the reply becomes text or a value.

use std::io;

use openflow::flow::{FlowModCommand, FlowStats, FlowStatsRequest};
use openflow::group::GroupModCommand;
use openflow::message::{
    MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::meter::MeterModCommand;
use openflow::text::{
    TextError, format_flow_stats, format_group, format_meter, format_reply, parse_flow_filter,
    parse_flow_mod, parse_group_mod, parse_meter_mod,
};
use openflow::{GroupId, Message, MeterId, PortNo, Version, Xid};
use serde_json::Value;

use super::server::Lines;
use super::{Command, Line, Request, show, value, workers};
use crate::agent::Agent;

/// The version whose texts and rules the control socket speaks.
pub(super) const VERSION: Version = Version::V1_3;

/// What became of a command: done, or why not.
pub(super) type Outcome = Result<(), String>;

/// A record before it is known whether text or a value is wanted.
pub(super) struct Record {
    pub(super) text: String,
    pub(super) value: Value,
}

/// Carries out a request and sends its records.
pub(super) async fn answer(
    agent: &Agent,
    request: Request,
    lines: &mut Lines,
) -> io::Result<Outcome> {
    let json = request.json;
    let records = match records(agent, request.command).await {
        Ok(records) => records,
        Err(why) => return Ok(Err(why)),
    };
    for record in records {
        let record = record();
        let line = if json { Line::Value(record.value) } else { Line::Text(record.text) };
        lines.send(&line).await?;
    }
    Ok(Ok(()))
}

/// Records that are made when they are sent: a dump of a million entries must not hold up the
/// agent while it is written out.
pub(super) type Records = Box<dyn Iterator<Item = Box<dyn FnOnce() -> Record>>>;

pub(super) fn records_of<T: 'static>(
    entries: Vec<T>,
    make: impl Fn(&T) -> Record + Copy + 'static,
) -> Records {
    Box::new(entries.into_iter().map(move |entry| {
        let record: Box<dyn FnOnce() -> Record> = Box::new(move || make(&entry));
        record
    }))
}

async fn records(agent: &Agent, command: Command) -> Result<Records, String> {
    match command {
        Command::Show => show::show(agent).await.map(one),
        Command::DumpFlows { flow } => {
            let filter = match flow {
                Some(text) => parse_flow_filter(&text).map_err(bad("flow"))?,
                None => FlowStatsRequest::all(),
            };
            let body = ask(agent, MultipartRequestBody::Flow(filter)).await?;
            let MultipartReplyBody::Flow(flows) = body else { return Err(odd()) };
            Ok(records_of(flows, |flow: &FlowStats| Record {
                text: format!(" {}", format_flow_stats(flow)),
                value: value::flow(flow),
            }))
        }
        Command::DumpPorts => {
            let body = ask(agent, MultipartRequestBody::PortStats(PortNo::ANY)).await?;
            let MultipartReplyBody::PortStats(ports) = &body else { return Err(odd()) };
            let value = Value::Array(ports.iter().map(value::port_stats).collect());
            Ok(one(Record { text: reply_text(body), value }))
        }
        Command::DumpGroups => dump_groups(agent).await,
        Command::DumpMeters => dump_meters(agent).await,
        Command::DumpTables => {
            let body = ask(agent, MultipartRequestBody::Table).await?;
            let MultipartReplyBody::Table(mut tables) = body else { return Err(odd()) };
            tables.retain(|table| table.active_count > 0 || table.lookup_count > 0);
            let value = Value::Array(tables.iter().map(value::table_stats).collect());
            Ok(one(Record { text: reply_text(MultipartReplyBody::Table(tables)), value }))
        }
        Command::AddFlow { flow } => flow_mod(agent, &flow, FlowModCommand::Add).await,
        Command::ModFlows { flow, strict } => {
            let command =
                if strict { FlowModCommand::ModifyStrict } else { FlowModCommand::Modify };
            flow_mod(agent, &flow, command).await
        }
        Command::DelFlows { flow, strict } => {
            let command =
                if strict { FlowModCommand::DeleteStrict } else { FlowModCommand::Delete };
            flow_mod(agent, flow.as_deref().unwrap_or(""), command).await
        }
        Command::AddGroup { group } => group_mod(agent, &group, GroupModCommand::Add).await,
        Command::DelGroups { group } => {
            group_mod(agent, group.as_deref().unwrap_or(""), GroupModCommand::Delete).await
        }
        Command::AddMeter { meter } => meter_mod(agent, &meter, MeterModCommand::Add).await,
        Command::DelMeters { meter } => {
            meter_mod(agent, meter.as_deref().unwrap_or(""), MeterModCommand::Delete).await
        }
        Command::Trace { in_port, frame } => show::trace(agent, in_port, frame).await.map(one),
        Command::Workers => workers::workers(agent).await,
        Command::Counters => {
            show::counters(agent).await.map(|rows| records_of(rows, show::counter))
        }
    }
}

async fn dump_groups(agent: &Agent) -> Result<Records, String> {
    let descs = ask(agent, MultipartRequestBody::GroupDesc).await?;
    let stats = ask(agent, MultipartRequestBody::Group(GroupId::ALL)).await?;
    let (MultipartReplyBody::GroupDesc(descs), MultipartReplyBody::Group(stats)) = (descs, stats)
    else {
        return Err(odd());
    };
    let found: Vec<_> = descs
        .into_iter()
        .map(|desc| {
            let stats = stats.iter().find(|stats| stats.group_id == desc.group_id).cloned();
            (desc, stats)
        })
        .collect();
    Ok(records_of(found, |(desc, stats)| Record {
        text: match stats {
            Some(stats) => {
                format!(
                    " {}\n  {}",
                    format_group(desc),
                    value::counted(stats.packet_count, stats.byte_count)
                )
            }
            None => format!(" {}", format_group(desc)),
        },
        value: value::group(desc, stats.as_ref()),
    }))
}

async fn dump_meters(agent: &Agent) -> Result<Records, String> {
    let configs = ask(agent, MultipartRequestBody::MeterConfig(MeterId::ALL)).await?;
    let stats = ask(agent, MultipartRequestBody::Meter(MeterId::ALL)).await?;
    let (MultipartReplyBody::MeterConfig(configs), MultipartReplyBody::Meter(stats)) =
        (configs, stats)
    else {
        return Err(odd());
    };
    let found: Vec<_> = configs
        .into_iter()
        .map(|config| {
            let stats = stats.iter().find(|stats| stats.meter_id == config.meter_id).cloned();
            (config, stats)
        })
        .collect();
    Ok(records_of(found, |(config, stats)| Record {
        text: match stats {
            Some(stats) => format!(
                " {}\n  {}",
                format_meter(config),
                value::counted(stats.packet_in_count, stats.byte_in_count)
            ),
            None => format!(" {}", format_meter(config)),
        },
        value: value::meter(config, stats.as_ref()),
    }))
}

async fn flow_mod(agent: &Agent, text: &str, command: FlowModCommand) -> Result<Records, String> {
    let mut flow = parse_flow_mod(text, command).map_err(bad("flow"))?;
    let deletes = matches!(command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
    if deletes && !names_table(text) {
        flow.table_id = openflow::TableId::ALL;
    }
    change(agent, Message::FlowMod(flow)).await
}

/// Whether a flow's text says `table=`.
fn names_table(text: &str) -> bool {
    text.split([',', ' ']).any(|word| word.trim_start().starts_with("table="))
}

async fn group_mod(agent: &Agent, text: &str, command: GroupModCommand) -> Result<Records, String> {
    let group = parse_group_mod(text, command).map_err(bad("group"))?;
    change(agent, Message::GroupMod(group)).await
}

async fn meter_mod(agent: &Agent, text: &str, command: MeterModCommand) -> Result<Records, String> {
    let meter = parse_meter_mod(text, command).map_err(bad("meter"))?;
    change(agent, Message::MeterMod(meter)).await
}

/// Has the worker carry out a message that is not answered.
async fn change(agent: &Agent, message: Message) -> Result<Records, String> {
    let applied = agent.ask(move |worker| worker.apply(VERSION, message)).await.ok_or_else(gone)?;
    applied.map_err(refused)?;
    Ok(Box::new(std::iter::empty()))
}

/// Has the worker answer a multipart request.
pub(super) async fn ask(
    agent: &Agent,
    body: MultipartRequestBody,
) -> Result<MultipartReplyBody, String> {
    let request = Message::MultipartRequest(MultipartRequest { more: false, body });
    let applied = agent.ask(move |worker| worker.apply(VERSION, request)).await.ok_or_else(gone)?;
    match applied.map_err(refused)? {
        Some(Message::MultipartReply(reply)) => Ok(reply.body),
        Some(_) | None => Err(odd()),
    }
}

fn one(record: Record) -> Records {
    let record: Box<dyn FnOnce() -> Record> = Box::new(move || record);
    Box::new(std::iter::once(record))
}

fn reply_text(body: MultipartReplyBody) -> String {
    let reply = Message::MultipartReply(MultipartReply { more: false, body });
    format_reply(VERSION, Xid(0), &reply).unwrap_or_default()
}

fn bad(what: &'static str) -> impl Fn(TextError) -> String {
    move |error| format!("{what}: {error}")
}

fn refused(error: openflow::Error) -> String {
    format!("the switch refuses it: {}", error.name())
}

pub(super) fn gone() -> String {
    "the switch is ending".to_owned()
}

fn odd() -> String {
    "the switch gave another answer than asked".to_owned()
}
