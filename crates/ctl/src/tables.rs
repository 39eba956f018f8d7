//! Flow tables: counters, features, settings.

use std::str::FromStr;

use clap::Args;
use openflow::message::{
    MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::table::{TableFeatures, TableMod, Vacancy};
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

/// A setting of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    /// The bits of OpenFlow 1.1 and 1.2: the fate of a packet that no entry covers.
    Miss(u32),
    /// Whether a full table makes room for new entries.
    Eviction(bool),
    /// Bounds of vacancy events, in per cent, or none.
    Vacancy(Option<(u8, u8)>),
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "controller" => Self::Miss(0),
            "continue" => Self::Miss(1),
            "drop" => Self::Miss(2),
            "evict" => Self::Eviction(true),
            "noevict" => Self::Eviction(false),
            "novacancy" => Self::Vacancy(None),
            other => {
                let bounds = other.strip_prefix("vacancy:").and_then(|it| it.split_once(','));
                let number = |text: &str| text.parse().ok().filter(|number| *number <= 100);
                let (down, up) =
                    bounds.and_then(|(down, up)| Some((number(down)?, number(up)?))).ok_or(
                        "one of controller, continue, drop, evict, noevict, vacancy:DOWN,UP (two \
                     numbers of at most 100), novacancy",
                    )?;
                if down > up {
                    return Err(format!("the lower bound, {down}, is above the upper one, {up}"));
                }
                Self::Vacancy(Some((down, up)))
            }
        })
    }
}

impl Setting {
    /// The table-mod that makes of a table as it is one with this setting.
    fn applied_to(self, table: &TableMod) -> TableMod {
        const MISS: u32 = 3;
        // The rule of eviction is the switch's, and what is vacant now is a fact.
        let kept = table.vacancy.map(|vacancy| Vacancy { now: 0, ..vacancy });
        let kept = kept.filter(|_| table.config & TableMod::VACANCY_EVENTS != 0);
        let mut new = TableMod { vacancy: kept, ..TableMod::new(table.table_id, table.config) };
        match self {
            Self::Miss(bits) => new.config = new.config & !MISS | bits,
            Self::Eviction(true) => new.config |= TableMod::EVICTION,
            Self::Eviction(false) => new.config &= !TableMod::EVICTION,
            Self::Vacancy(None) => {
                new.config &= !TableMod::VACANCY_EVENTS;
                new.vacancy = None;
            }
            Self::Vacancy(Some((down, up))) => {
                new.config |= TableMod::VACANCY_EVENTS;
                new.vacancy = Some(Vacancy { down, up, now: 0 });
            }
        }
        new
    }
}

/// Set a table's configuration by OFPT_TABLE_MOD: eviction and vacancy events since OpenFlow 1.4
#[derive(Args, Clone, Debug)]
#[command(after_help = "Settings:
  evict, noevict     a full table makes room for a new entry, by one that has a timeout (1.4)
  vacancy:DOWN,UP    a table status comes when less than DOWN per cent of the table is vacant, and
                     when more than UP is vacant again; novacancy ends that (1.4)
  controller, continue, drop
                     the bits of OpenFlow 1.1 and 1.2. OpenFlow 1.3 keeps them reserved (7.3.3): a
                     switch takes them, and what becomes of a miss is the table-miss flow entry's
                     business

OpenFlow 1.0 has no such message.

Examples:
  weir ctl mod-table 0 controller
  weir ctl -O OpenFlow14 mod-table 0 evict
  weir ctl -O OpenFlow14 mod-table 0 vacancy:20,80")]
pub(super) struct ModTable {
    /// The table's number, or ALL
    table: String,
    /// The setting
    #[arg(value_name = "SETTING")]
    setting: Setting,
}

impl Execute for ModTable {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let table_id = match self.table.as_str() {
            "ALL" | "all" => TableId::ALL,
            text => TableId(Line::argument("table", text).read(parse_number)?),
        };
        let version = context.session().await?.version;
        if !version.has_table_eviction() {
            let Setting::Miss(bits) = self.setting else {
                let why = "eviction and vacancy events need OpenFlow 1.4: `-O OpenFlow14`";
                return Err(Failure::refused(why));
            };
            return context.change(Message::TableMod(TableMod::new(table_id, bits))).await;
        }
        // One message has all settings of a table: those that are not asked for stay.
        let body = context.statistics(MultipartRequestBody::TableDesc).await?;
        let MultipartReplyBody::TableDesc(mut tables) = body else {
            return Err(Failure::refused("the switch gave another answer than asked"));
        };
        tables.retain(|table| table_id == TableId::ALL || table.table_id == table_id);
        if tables.is_empty() {
            // The switch has the word for it.
            tables.push(TableMod::new(table_id, 0));
        }
        let changes = tables.iter().map(|table| Message::TableMod(self.setting.applied_to(table)));
        context.session().await?.change(changes.collect()).await
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

#[cfg(test)]
mod tests {
    use openflow::TableId;
    use openflow::table::{TableMod, Vacancy};

    use super::Setting;

    #[test]
    fn other_settings_of_a_table_stay() {
        let vacancy = Some(Vacancy { down: 20, up: 80, now: 55 });
        let table = TableMod { eviction: Some(7), vacancy, ..TableMod::new(TableId(3), 0b1001) };
        let changed = |text: &str| {
            let new = text.parse::<Setting>().unwrap().applied_to(&table);
            assert_eq!((new.table_id, new.eviction), (TableId(3), None));
            (new.config, new.vacancy.map(|it| (it.down, it.up, it.now)))
        };
        assert_eq!(changed("evict"), (0b1101, Some((20, 80, 0))));
        assert_eq!(changed("vacancy:0,100"), (0b1001, Some((0, 100, 0))));
        assert_eq!(changed("novacancy"), (0b0001, None));
        assert_eq!(changed("drop"), (0b1010, Some((20, 80, 0))));
        for (text, why) in [
            ("vacancy:80,20", "above the upper"),
            ("vacancy:1,101", "at most 100"),
            ("vacancy:1", "at most 100"),
            ("evicts", "one of controller"),
        ] {
            let error = text.parse::<Setting>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
