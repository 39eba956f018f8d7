//! Counters and drop reasons of our switch: once, or as they grow.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use clap::Args;
use control::{ControlCommand, ControlLine};
use serde_json::{Value, json};
use terminal::Table;
use tokio::signal::unix::{SignalKind, signal};

use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::socket;

/// Counters and drop reasons that are not zero, each with its meaning
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl counters
  weir ctl counters --watch
  weir ctl --json counters")]
pub(super) struct Counters {
    /// Print those that are zero too, as --json does
    #[arg(long)]
    all: bool,
    /// Print again every SECS seconds, with what each grew by in a second, until Ctrl-C
    #[arg(
        long, value_name = "SECS", num_args = 0..=1, default_missing_value = "1",
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    watch: Option<u16>,
}

/// A counter as the switch has it.
struct Row {
    name: String,
    value: u64,
    help: String,
}

impl Execute for Counters {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let Some(period) = self.watch else {
            let rows = rows(context).await?;
            return self.print(context, &rows, None);
        };
        let stopped = |kind| signal(kind).map_err(|error| Failure::refused(error.to_string()));
        let (mut ctrl_c, mut ended) =
            (stopped(SignalKind::interrupt())?, stopped(SignalKind::terminate())?);
        let (mut before, mut taken) = (rows(context).await?, Instant::now());
        loop {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(period.into())) => {}
                _ = ctrl_c.recv() => return Ok(()),
                _ = ended.recv() => return Ok(()),
            }
            let now = rows(context).await?;
            let elapsed_s = taken.elapsed().as_secs_f64();
            taken = Instant::now();
            self.print(context, &now, Some((before.as_slice(), elapsed_s)))?;
            context.out.flush()?;
            before = now;
        }
    }
}

impl Counters {
    /// Prints the counters; beside those of some seconds ago, their growth in a second too.
    fn print(
        &self,
        context: &mut CommandContext<'_>,
        rows: &[Row],
        before: Option<(&[Row], f64)>,
    ) -> Result<(), Failure> {
        let old: HashMap<&str, u64> = before
            .iter()
            .flat_map(|(rows, _)| rows.iter().map(|row| (row.name.as_str(), row.value)))
            .collect();
        let rate = |row: &Row| {
            let (_, elapsed_s) = before?;
            // A bridge that was made anew counts from zero.
            let grown = row.value.saturating_sub(*old.get(row.name.as_str())?);
            Some(grown as f64 / elapsed_s)
        };
        if context.out.is_json() {
            for row in rows {
                let Row { name, value, help } = row;
                context.out.record("", || match rate(row) {
                    Some(rate) => json!({ "name": name, "value": value, "per_s": rate }),
                    None => json!({ "name": name, "value": value, "help": help }),
                })?;
            }
            return Ok(());
        }
        let heads = ["counter", "count"].into_iter().chain(before.map(|_| "per second"));
        let mut table =
            Table::new(heads.chain(["meaning"])).left([0, 2 + usize::from(before.is_some())]);
        for row in rows.iter().filter(|row| self.all || row.value > 0) {
            let rate = rate(row).map(|rate| format!("{rate:.1}"));
            let counts = [row.name.clone(), row.value.to_string()].into_iter().chain(rate);
            table.row(counts.chain([row.help.clone()]));
        }
        let mut lines = table.plain(context.out.width());
        if before.is_some() && context.out.is_for_people() {
            // What comes after it begins on a line of its own.
            lines.push(String::new());
            return context.out.screen(&lines);
        }
        context.out.record(lines.join("\n"), || Value::Null)
    }
}

async fn rows(context: &CommandContext<'_>) -> Result<Vec<Row>, Failure> {
    let lines = socket::records(context.place, ControlCommand::Counters, true).await?;
    let row = |line: ControlLine| {
        let ControlLine::Value(value) = line else { return None };
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let help = text("help").unwrap_or_default();
        Some(Row { name: text("name")?, value: value.get("value")?.as_u64()?, help })
    };
    Ok(lines.into_iter().filter_map(row).collect())
}
