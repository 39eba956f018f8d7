//! Flow tables: counters, features, settings.

use clap::{Args, ValueEnum};
use openflow::message::{
    MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::table::{TableFeatures, TableMod};
use openflow::text::parse_number;
use openflow::{Message, TableId, Xid};

use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::messages::Line;

/// Counters of the tables
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl dump-tables\n  weir ctl dump-tables --used")]
pub(super) struct DumpTables {
    /// Only tables that have entries or have been looked into
    #[arg(long)]
    used: bool,
}

impl Execute for DumpTables {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let body = context.statistics(MultipartRequestBody::Table).await?;
        let MultipartReplyBody::Table(mut tables) = body else {
            return Err(Failure::refused("the switch gave another answer than asked"));
        };
        tables.retain(|table| !self.used || table.active_count > 0 || table.lookup_count > 0);
        print(context, MultipartReplyBody::Table(tables)).await
    }
}

async fn print(context: &mut CommandContext<'_>, body: MultipartReplyBody) -> Result<(), Failure> {
    let reply = Message::MultipartReply(MultipartReply { more: false, body });
    let (session, out) = context.connected().await?;
    out.reply(session.version, Xid(2), &reply)
}

/// The features of all tables.
async fn features(context: &mut CommandContext<'_>) -> Result<Vec<TableFeatures>, Failure> {
    let body = MultipartRequestBody::TableFeatures(Vec::new());
    let MultipartReplyBody::TableFeatures(tables) = context.statistics(body).await? else {
        return Err(Failure::refused("the switch gave another answer than asked"));
    };
    Ok(tables)
}

/// Features of tables, all or one: matches, actions and next tables
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl dump-table-features
  weir ctl --json dump-table-features 0")]
pub(super) struct DumpTableFeatures {
    /// The table's number
    table: Option<u8>,
}

impl Execute for DumpTableFeatures {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let mut tables = features(context).await?;
        tables.retain(|table| self.table.is_none_or(|number| table.table_id.0 == number));
        if let (Some(number), true) = (self.table, tables.is_empty()) {
            return Err(Failure::Refused(format!("there is no table {number}")));
        }
        print(context, MultipartReplyBody::TableFeatures(tables)).await
    }
}

/// Settings of tables, as OpenFlow 1.4 describes them: eviction and vacancy events
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  weir ctl -O OpenFlow14 dump-table-desc")]
pub(super) struct DumpTableDesc {}

impl Execute for DumpTableDesc {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        context.describe(MultipartRequestBody::TableDesc).await
    }
}

/// Fate of a packet that no entry of a table covers, in 1.1 and 1.2.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Miss {
    /// Goes to the controller
    Controller,
    /// Goes on to the next table
    Continue,
    /// Is dropped
    Drop,
}

/// Set a table's configuration by OFPT_TABLE_MOD, whose bits mean nothing any more in 1.3
#[derive(Args, Clone, Debug)]
#[command(after_help = "The bits are those of OpenFlow 1.1 and 1.2. OpenFlow 1.3 keeps them \
reserved (7.3.3): a switch takes
them, and what becomes of a miss is the table-miss flow entry's business. OpenFlow 1.0 has no such
message.

Example:
  weir ctl mod-table 0 controller")]
pub(super) struct ModTable {
    /// The table's number, or ALL
    table: String,
    /// The configuration
    config: Miss,
}

impl Execute for ModTable {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let table_id = match self.table.as_str() {
            "ALL" | "all" => TableId::ALL,
            text => TableId(Line::argument("table", text).read(parse_number)?),
        };
        let config = match self.config {
            Miss::Controller => 0,
            Miss::Continue => 1,
            Miss::Drop => 2,
        };
        context.change(Message::TableMod(TableMod::new(table_id, config))).await
    }
}

/// Change what a table may be, or take tables away: sets the features of all tables at once
#[derive(Args, Clone, Debug)]
#[command(after_help = "The features of all tables are read, changed and set again (7.3.5.5). \
Entries of a table whose
features change are deleted.

Examples:
  weir ctl mod-table-features 1 --name acl --max-entries 1000
  weir ctl mod-table-features 8 --last")]
pub(super) struct ModTableFeatures {
    /// The table's number
    table: u8,
    /// Its name
    #[arg(long, value_name = "TEXT", required_unless_present_any = ["max_entries", "last"])]
    name: Option<String>,
    /// Largest number of its entries
    #[arg(long, value_name = "N")]
    max_entries: Option<u32>,
    /// Make it the last table: those behind it go
    #[arg(long)]
    last: bool,
}

impl Execute for ModTableFeatures {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let mut tables = features(context).await?;
        let number = TableId(self.table);
        let table = tables.iter_mut().find(|table| table.table_id == number);
        let table = table.ok_or_else(|| Failure::Refused(format!("no table {}", self.table)))?;
        if let Some(name) = self.name {
            table.name = name;
        }
        if let Some(max_entries) = self.max_entries {
            table.max_entries = max_entries;
        }
        if self.last {
            tables.retain(|table| table.table_id <= number);
            tables.iter_mut().for_each(|table| forget_tables_behind(table, number));
        }
        // A table a part: all of them together are longer than a message can be.
        let count = tables.len();
        let part = |(index, table): (usize, TableFeatures)| {
            let body = MultipartRequestBody::TableFeatures(vec![table]);
            Message::MultipartRequest(MultipartRequest { more: index + 1 < count, body })
        };
        let parts: Vec<Message> = tables.into_iter().enumerate().map(part).collect();
        context.session().await?.ask_in_parts(&parts).await.map(|_| ())
    }
}

/// A table leads to no table that is not there.
fn forget_tables_behind(table: &mut TableFeatures, last: TableId) {
    use openflow::table::TableProperty;

    for property in &mut table.properties {
        if let TableProperty::NextTables(_, next) = property {
            next.retain(|table| *table <= last);
        }
    }
}
