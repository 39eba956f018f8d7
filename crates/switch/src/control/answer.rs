//! What each command of the control socket does: it becomes an OpenFlow message, which the bridge
//! carries out as if a controller had sent it, and the reply becomes text or a value.

use std::io;

use openflow::flow::FlowStatsRequest;
use openflow::message::{
    MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::text::{
    TextError, format_flow_stats, format_group, format_meter, format_reply, parse_flow_filter,
};
use openflow::{GroupId, Message, MeterId, PortNo, QueueId, Version, Xid};
use serde_json::Value;

use super::protocol::Request as Asked;
use super::server::Lines;
use super::{Command, Line, caches, change, show, value, workers};
use crate::agent::Agent;
use crate::bridge::Listed;
use crate::config::Forward;

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
    request: Asked,
    lines: &mut Lines,
) -> io::Result<Outcome> {
    let json = request.json;
    if let Command::DumpFlows { flow } = &request.command {
        return dump_flows(agent, flow.as_deref(), json, lines).await;
    }
    let records = match records(agent, request.command).await {
        Ok(records) => records,
        Err(why) => return Ok(Err(why)),
    };
    for record in records {
        lines.send(&line_of(record(), json)).await?;
    }
    Ok(Ok(()))
}

fn line_of(record: Record, json: bool) -> Line {
    if json { Line::Value(record.value) } else { Line::Text(record.text) }
}

/// Lists flow entries piece by piece, with the rest of the agent running in between.
async fn dump_flows(
    agent: &Agent,
    flow: Option<&str>,
    json: bool,
    lines: &mut Lines,
) -> io::Result<Outcome> {
    let filter = match flow.map(parse_flow_filter).transpose() {
        Ok(filter) => filter.unwrap_or_else(FlowStatsRequest::all),
        Err(error) => return Ok(Err(bad("flow")(error))),
    };
    let mut list = match statistics(agent, MultipartRequestBody::Flow(filter)).await {
        Ok(Listed::Flows(list)) => list,
        Ok(Listed::Whole(_)) => return Ok(Err(odd())),
        Err(why) => return Ok(Err(why)),
    };
    loop {
        let (flows, is_last) = agent.bridge.next_flows(&mut list);
        for flow in flows {
            let text = format!(" {}", format_flow_stats(&flow));
            let record = Record { text, value: value::flow(&flow) };
            lines.send(&line_of(record, json)).await?;
        }
        if is_last {
            return Ok(Ok(()));
        }
        tokio::task::yield_now().await;
    }
}

/// Records that are made when they are sent.
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
        Command::Show => Ok(one(show::show(agent))),
        // They are listed as they are sent.
        Command::DumpFlows { .. } => Ok(Box::new(std::iter::empty())),
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
        Command::DumpAggregate { flow } => {
            let filter = flow.as_deref().map(parse_flow_filter).transpose().map_err(bad("flow"))?;
            let filter = filter.unwrap_or_else(FlowStatsRequest::all);
            described(agent, MultipartRequestBody::Aggregate(filter)).await
        }
        Command::DumpQueues => {
            let (port, queue) = (PortNo::ANY, QueueId::ALL);
            described(agent, MultipartRequestBody::Queue { port, queue }).await
        }
        Command::DumpDesc => described(agent, MultipartRequestBody::Desc).await,
        Command::GroupFeatures => described(agent, MultipartRequestBody::GroupFeatures).await,
        Command::MeterFeatures => described(agent, MultipartRequestBody::MeterFeatures).await,
        command @ (Command::AddFlow { .. }
        | Command::ModFlows { .. }
        | Command::DelFlows { .. }
        | Command::AddGroup { .. }
        | Command::ModGroup { .. }
        | Command::DelGroups { .. }
        | Command::AddMeter { .. }
        | Command::ModMeter { .. }
        | Command::DelMeters { .. }
        | Command::ModPort { .. }
        | Command::PacketOut { .. }
        | Command::SetFrags { .. }) => {
            change::change(agent, command).await?;
            Ok(Box::new(std::iter::empty()))
        }
        Command::Trace { in_port, frame } => show::trace(agent, in_port, frame).await.map(one),
        Command::Workers => workers::workers(agent).await,
        Command::Caches { set } => caches::caches(agent, set.as_deref()).await,
        Command::Counters => {
            show::counters(agent).await.map(|rows| records_of(rows, show::counter))
        }
    }
}

/// A reply of one record.
async fn described(agent: &Agent, body: MultipartRequestBody) -> Result<Records, String> {
    let body = ask(agent, body).await?;
    let value = value::of_reply(&body).ok_or_else(odd)?;
    Ok(one(Record { text: reply_text(body), value }))
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

/// Has the bridge answer a multipart request.
pub(super) async fn ask(
    agent: &Agent,
    body: MultipartRequestBody,
) -> Result<MultipartReplyBody, String> {
    match statistics(agent, body).await? {
        Listed::Whole(body) => Ok(body),
        Listed::Flows(_) => Err(odd()),
    }
}

async fn statistics(agent: &Agent, body: MultipartRequestBody) -> Result<Listed, String> {
    let request = MultipartRequest { more: false, body };
    let listed = agent.bridge.statistics(VERSION, request).await;
    listed.map_err(|error| refused(agent, error))
}

fn one(record: Record) -> Records {
    let record: Box<dyn FnOnce() -> Record> = Box::new(move || record);
    Box::new(std::iter::once(record))
}

fn reply_text(body: MultipartReplyBody) -> String {
    let reply = Message::MultipartReply(MultipartReply { more: false, body });
    format_reply(VERSION, Xid(0), &reply).unwrap_or_default()
}

pub(super) fn bad(what: &'static str) -> impl Fn(TextError) -> String {
    move |error| format!("{what}: {error}")
}

pub(super) fn refused(agent: &Agent, error: openflow::Error) -> String {
    match agent.config.forward {
        Forward::Openflow => format!("the switch refuses it: {}", error.name()),
        Forward::Wire(_) => no_tables(),
    }
}

pub(super) fn no_tables() -> String {
    "the switch has no flow tables: it was started with --forward".to_owned()
}

pub(super) fn gone() -> String {
    "the switch is ending".to_owned()
}

fn odd() -> String {
    "the switch gave another answer than asked".to_owned()
}
