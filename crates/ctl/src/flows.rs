//! Flow entries: shown, added, changed, deleted.

use clap::Args;
use openflow::flow::{FlowModCommand, FlowStats, FlowStatsRequest};
use openflow::message::{MultipartReply, MultipartReplyBody, MultipartRequestBody};
use openflow::text::PortNames;
use openflow::{Message, Version, Xid};

use super::context::{CommandContext, Execute, Out};
use super::failure::Failure;
use super::flow_file::{self, Order};
use super::messages::{Bundled, Line, carry_out, lines_of, lines_or_stdin, read_all, read_one};
use super::port_names::Naming;
use super::value;

/// Flow entries, all or those that FLOW covers
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl dump-flows
  weir ctl dump-flows table=0,ip,nw_dst=10.0.0.0/8
  weir ctl dump-flows --rsort=n_packets out_port=2
  weir ctl dump-flows --names
  weir ctl dump-flows --no-stats")]
pub(super) struct DumpFlows {
    /// A match with table, cookie/mask, out_port, out_group: table=0,ip,nw_dst=10.0.0.0/8
    flow: Option<String>,
    #[command(flatten)]
    order: Order,
    #[command(flatten)]
    naming: Naming,
    /// Leave out durations and counts, and cookies and tables that are zero; not with --json
    #[arg(long)]
    no_stats: bool,
}

/// The way in which flow entries are printed.
struct Form {
    names: PortNames,
    no_stats: bool,
}

impl Execute for DumpFlows {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        if self.no_stats && context.out.is_json() {
            return Err(Failure::refused("--no-stats: --json has all values of an entry"));
        }
        let body = MultipartRequestBody::Flow(filter(context, self.flow.as_deref()).await?);
        let order = self.order.parsed()?;
        let names = self.naming.port_names(context).await?;
        let form = Form { names, no_stats: self.no_stats };
        let Some(order) = order else { return list(context, body, &form).await };
        let MultipartReplyBody::Flow(mut flows) = context.statistics(body).await? else {
            return Err(Failure::refused("the switch gave another answer than asked"));
        };
        order.sort(&mut flows);
        let (session, out) = context.connected().await?;
        for flow in &flows {
            print(out, session.version, &form, flow)?;
        }
        Ok(())
    }
}

fn print(
    out: &mut Out<'_>,
    version: Version,
    form: &Form,
    flow: &FlowStats,
) -> Result<(), Failure> {
    let text = match form.no_stats {
        true => form.names.format_flow_entry(version, flow),
        false => form.names.format_flow_stats(version, flow),
    };
    out.record(format!(" {text}"), || value::flow(flow))
}

/// Prints each part as it comes, so that no list is too long.
async fn list(
    context: &mut CommandContext<'_>,
    body: MultipartRequestBody,
    form: &Form,
) -> Result<(), Failure> {
    let (session, out) = context.connected().await?;
    let version = session.version;
    let mut is_first = true;
    let each = |xid: Xid, body: MultipartReplyBody| -> Result<(), Failure> {
        let MultipartReplyBody::Flow(flows) = body else {
            return Err(Failure::refused("the switch gave another answer than asked"));
        };
        if std::mem::take(&mut is_first) {
            // The title.
            let body = MultipartReplyBody::Flow(Vec::new());
            let reply = Message::MultipartReply(MultipartReply { more: false, body });
            out.reply(version, xid, &reply)?;
        }
        flows.iter().try_for_each(|flow| print(out, version, form, flow))
    };
    session.each_part(body, each).await
}

async fn filter(
    context: &mut CommandContext<'_>,
    flow: Option<&str>,
) -> Result<FlowStatsRequest, Failure> {
    let Some(text) = flow else { return Ok(FlowStatsRequest::all()) };
    let read = |line: &Line, names: &PortNames| line.read(|text| names.parse_flow_filter(text));
    read_one(context, Line::argument("flow", text), read).await
}

/// Sums over flow entries, all or those that FLOW covers
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  weir ctl dump-aggregate table=0,ip")]
pub(super) struct DumpAggregate {
    /// As in dump-flows
    flow: Option<String>,
}

impl Execute for DumpAggregate {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let filter = filter(context, self.flow.as_deref()).await?;
        context.describe(MultipartRequestBody::Aggregate(filter)).await
    }
}

/// Add a flow entry, or those of the standard input
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl add-flow priority=10,in_port=1,actions=output:2
  weir ctl add-flow table=1,tcp,tp_dst=80,actions=dec_ttl,output:3
  weir ctl add-flow - < flows.txt")]
pub(super) struct AddFlow {
    /// The flow entry, or - for lines of the standard input
    flow: String,
    #[command(flatten)]
    bundled: Bundled,
}

impl Execute for AddFlow {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        send(context, &lines_or_stdin("flow", &self.flow)?, FlowModCommand::Add, self.bundled).await
    }
}

/// Add the flow entries of a file; a line may begin with add, modify or delete
#[derive(Args, Clone, Debug)]
#[command(after_help = "A line is a flow entry as add-flow takes it, with one of add, modify, \
modify_strict, delete and
delete_strict in front or without. Behind # stands a comment. Nothing is sent when a line is not
understood; a refusal of the switch is reported with its line, and does not keep the others away.

Examples:
  weir ctl add-flows flows.txt
  weir ctl add-flows - < flows.txt")]
pub(super) struct AddFlows {
    /// The file, or - for the standard input
    file: String,
    #[command(flatten)]
    bundled: Bundled,
}

impl Execute for AddFlows {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        send(context, &lines_of(&self.file)?, FlowModCommand::Add, self.bundled).await
    }
}

/// Change the actions of the flow entries that FLOW covers
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl mod-flows ip,nw_dst=10.0.0.0/8,actions=output:3
  weir ctl mod-flows --strict priority=10,in_port=1,actions=drop")]
pub(super) struct ModFlows {
    /// Match and actions, or - for lines of the standard input
    flow: String,
    /// Only the entry of equal match and priority
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    bundled: Bundled,
}

impl Execute for ModFlows {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let command =
            if self.strict { FlowModCommand::ModifyStrict } else { FlowModCommand::Modify };
        send(context, &lines_or_stdin("flow", &self.flow)?, command, self.bundled).await
    }
}

/// Delete flow entries, all or those that FLOW covers
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl del-flows
  weir ctl del-flows table=1,tcp
  weir ctl del-flows --strict priority=10,in_port=1")]
pub(super) struct DelFlows {
    /// A match, or - for lines of the standard input
    flow: Option<String>,
    /// Only the entry of equal match and priority
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    bundled: Bundled,
}

impl Execute for DelFlows {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let command =
            if self.strict { FlowModCommand::DeleteStrict } else { FlowModCommand::Delete };
        let lines = lines_or_stdin("flow", self.flow.as_deref().unwrap_or_default())?;
        send(context, &lines, command, self.bundled).await
    }
}

/// Reads all lines, then has the switch carry them out.
async fn send(
    context: &mut CommandContext<'_>,
    lines: &[Line],
    command: FlowModCommand,
    bundled: Bundled,
) -> Result<(), Failure> {
    let read = |line: &Line, names: &PortNames| flow_file::flow_mod(line, command, names);
    let mut flows = read_all(context, lines, read).await?;
    let version = context.session().await?.version;
    for (line, flow) in lines.iter().zip(&mut flows) {
        flow_file::say_in(version, line, flow)?;
    }
    let messages: Vec<Message> = flows.into_iter().map(Message::FlowMod).collect();
    if messages.iter().any(|message| message.is_for_each_table(version)) {
        return send_to_each_table(context, lines, messages, bundled).await;
    }
    carry_out(context, lines, messages, bundled).await
}

/// The same where some are for all tables, and the version has no number for these.
async fn send_to_each_table(
    context: &mut CommandContext<'_>,
    lines: &[Line],
    messages: Vec<Message>,
    bundled: Bundled,
) -> Result<(), Failure> {
    let session = context.session().await?;
    let version = session.version;
    let (_, answer) = session.ask(&Message::FeaturesRequest).await?;
    let Message::FeaturesReply(features) = answer else {
        return Err(super::session::odd(&answer));
    };
    let each = lines.iter().zip(messages).flat_map(|(line, message)| {
        let each = message.in_each_table(version, features.n_tables).into_iter();
        each.map(|message| (line.clone(), message))
    });
    let (lines, messages): (Vec<Line>, Vec<Message>) = each.unzip();
    carry_out(context, &lines, messages, bundled).await
}
