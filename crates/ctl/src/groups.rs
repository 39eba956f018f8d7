//! Groups: shown, added, changed, deleted.

use clap::Args;
use openflow::group::{GroupMod, GroupModCommand};
use openflow::message::{MultipartReply, MultipartReplyBody, MultipartRequestBody};
use openflow::text::{PortNames, parse_group_mod};
use openflow::translate::{Untranslatable, bucket_in};
use openflow::{Error, GroupId, Message, Version, Xid};

use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::messages::{Bundled, Line, carry_out, lines_of, lines_or_stdin, read_all};
use super::port_names::Naming;
use super::session::Refusal;
use super::value;

/// Reads the argument of a command that shows groups: `7`, `group_id=7`, `all` or nothing.
fn which(group: Option<&str>) -> Result<GroupId, Failure> {
    let Some(text) = group else { return Ok(GroupId::ALL) };
    let line = Line::argument("group", text);
    Ok(line.read_id("group_id", |text| parse_group_mod(text, GroupModCommand::Delete))?.group_id)
}

/// Groups with their buckets, all or one
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl dump-groups\n  weir ctl dump-groups 4 --names")]
pub(super) struct DumpGroups {
    /// The group, as 4 or group_id=4
    group: Option<String>,
    #[command(flatten)]
    naming: Naming,
}

impl Execute for DumpGroups {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let which = which(self.group.as_deref())?;
        let names = self.naming.port_names(context).await?;
        let body = context.statistics(MultipartRequestBody::GroupDesc).await?;
        let MultipartReplyBody::GroupDesc(mut groups) = body else {
            return Err(Failure::refused("the switch gave another answer than asked"));
        };
        // OpenFlow 1.3 can be asked for all only.
        groups.retain(|group| which == GroupId::ALL || which == group.group_id);
        let body = MultipartReplyBody::GroupDesc(Vec::new());
        let title = Message::MultipartReply(MultipartReply { more: false, body });
        let (session, out) = context.connected().await?;
        out.reply(session.version, Xid(2), &title)?;
        let text = |group| format!(" {}", names.format_group(group));
        groups.iter().try_for_each(|group| out.record(text(group), || value::group(group)))
    }
}

/// Counters of groups and their buckets, all or of one
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl dump-group-stats\n  weir ctl dump-group-stats 4")]
pub(super) struct DumpGroupStats {
    /// The group, as 4 or group_id=4
    group: Option<String>,
}

impl Execute for DumpGroupStats {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let which = which(self.group.as_deref())?;
        context.describe(MultipartRequestBody::Group(which)).await
    }
}

/// Features of groups
#[derive(Args, Clone, Debug)]
#[command(alias = "group-features", after_help = "Example:\n  weir ctl dump-group-features")]
pub(super) struct DumpGroupFeatures {}

impl Execute for DumpGroupFeatures {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        context.describe(MultipartRequestBody::GroupFeatures).await
    }
}

/// Add a group
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl add-group group_id=1,type=all,bucket=actions=output:1,bucket=actions=output:2
  weir ctl add-group group_id=2,type=select,bucket=weight:5,actions=output:1
  weir ctl add-group group_id=3,type=ff,bucket=watch_port:1,actions=output:1")]
pub(super) struct AddGroup {
    /// The group, or - for lines of the standard input
    group: String,
}

impl Execute for AddGroup {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        send(context, &lines_or_stdin("group", &self.group)?, GroupModCommand::Add).await
    }
}

/// Add the groups of a file
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl add-groups groups.txt\n  \
    weir ctl add-groups - < groups.txt")]
pub(super) struct AddGroups {
    /// The file, a group a line, or - for the standard input
    file: String,
}

impl Execute for AddGroups {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        send(context, &lines_of(&self.file)?, GroupModCommand::Add).await
    }
}

/// Change a group: type and buckets
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl mod-group group_id=1,type=all,bucket=actions=output:3
  weir ctl mod-group --may-create group_id=9,type=indirect,bucket=actions=output:3")]
pub(super) struct ModGroup {
    /// The group, or - for lines of the standard input
    group: String,
    /// Add the group where it is not there
    #[arg(long)]
    may_create: bool,
}

impl Execute for ModGroup {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let lines = lines_or_stdin("group", &self.group)?;
        if !self.may_create {
            return send(context, &lines, GroupModCommand::Modify).await;
        }
        add_or_modify(context, &lines).await
    }
}

/// Insert buckets into a group, by OpenFlow15
#[derive(Args, Clone, Debug)]
#[command(
    alias = "insert-bucket",
    after_help = "Example:
  weir ctl -O OpenFlow15 insert-buckets group_id=1,command_bucket_id=0,bucket=bucket_id:7,output:3

command_bucket_id is first, last, or the number of the bucket before them. A bucket without a weight
has weight 0, as in ovs-ofctl: in a select group it gets no packet."
)]
pub(super) struct InsertBuckets {
    /// The group, the place and the buckets, or - for lines of the standard input
    group: String,
}

impl Execute for InsertBuckets {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let lines = lines_or_stdin("group", &self.group)?;
        send(context, &lines, GroupModCommand::InsertBucket).await
    }
}

/// Remove buckets from a group, one or all, by OpenFlow15
#[derive(Args, Clone, Debug)]
#[command(
    alias = "remove-bucket",
    after_help = "Examples:
  weir ctl -O OpenFlow15 remove-buckets group_id=2,command_bucket_id=7
  weir ctl -O OpenFlow15 remove-buckets group_id=2"
)]
pub(super) struct RemoveBuckets {
    /// Group and bucket (first, last, all or its number), or - for lines of the standard input
    group: String,
}

impl Execute for RemoveBuckets {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let lines = lines_or_stdin("group", &self.group)?;
        send(context, &lines, GroupModCommand::RemoveBucket).await
    }
}

/// Reads all lines, then has the switch carry them out, each by the command that fits. OpenFlow
/// 1.3 has no command that does both, so each is tried.
async fn add_or_modify(context: &mut CommandContext<'_>, lines: &[Line]) -> Result<(), Failure> {
    let groups = read(context, lines, GroupModCommand::Modify).await?;
    let mut refused = Vec::new();
    for (line, group) in lines.iter().zip(groups) {
        let add = GroupMod { command: GroupModCommand::Add, ..group.clone() };
        let modify = vec![Message::GroupMod(group)];
        let refusals = context.session().await?.carry_out(modify).await?;
        let outcome = match refusals.listed.into_iter().next() {
            Some(Refusal { error: Some(Error::GroupModUnknownGroup), .. }) => {
                context.change(Message::GroupMod(add)).await
            }
            Some(Refusal { why, .. }) => Err(Failure::Refused(why)),
            None => Ok(()),
        };
        match outcome {
            Err(Failure::Refused(why)) if lines.len() > 1 => {
                refused.push(format!("{}: {why}", line.place));
            }
            other => other?,
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(Failure::Refused(refused.join("\n"))) }
}

/// Delete groups, all or one; flow entries that use them go along
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl del-groups\n  weir ctl del-groups group_id=1")]
pub(super) struct DelGroups {
    /// The group, as group_id=1, or - for lines of the standard input
    group: Option<String>,
}

impl Execute for DelGroups {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let lines = lines_or_stdin("group", self.group.as_deref().unwrap_or_default())?;
        send(context, &lines, GroupModCommand::Delete).await
    }
}

/// Reads all lines, then has the switch carry them out.
async fn send(
    context: &mut CommandContext<'_>,
    lines: &[Line],
    command: GroupModCommand,
) -> Result<(), Failure> {
    let groups = read(context, lines, command).await?;
    let messages = groups.into_iter().map(Message::GroupMod).collect();
    carry_out(context, lines, messages, Bundled::default()).await
}

/// The groups of these lines, in the words of the switch's version. Nothing is sent of them.
async fn read(
    context: &mut CommandContext<'_>,
    lines: &[Line],
    command: GroupModCommand,
) -> Result<Vec<GroupMod>, Failure> {
    let read =
        |line: &Line, names: &PortNames| line.read(|text| names.parse_group_mod(text, command));
    let mut groups = read_all(context, lines, read).await?;
    let version = context.session().await?.version;
    for (line, group) in lines.iter().zip(&mut groups) {
        say_in(version, line, group)?;
    }
    Ok(groups)
}

/// A group has no match, so that words which depend on it cannot be said.
fn say_in(version: Version, line: &Line, group: &mut GroupMod) -> Result<(), Failure> {
    for bucket in &mut group.buckets {
        let translated = bucket_in(version, &bucket.actions);
        let refused = |why: Untranslatable| Failure::Refused(format!("{}: {why}", line.place));
        bucket.actions = translated.map_err(refused)?;
    }
    Ok(())
}
