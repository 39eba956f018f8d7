//! `weir metrics`: the metrics that `--metrics` of a program serves, from the rows that it counts
//! by.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use metrics::{Family, Kind};
use terminal::Table;

pub(crate) const EXAMPLES: &str = "\
Examples:
  weir metrics switch
  weir switch --port tap:a --metrics 127.0.0.1:9437
  curl -s http://127.0.0.1:9437/metrics";

/// The program that is meant.
#[derive(Args)]
pub(crate) struct MetricsArgs {
    #[arg(value_enum)]
    program: Metered,

    /// Print a table in Markdown
    #[arg(long)]
    markdown: bool,
}

/// A program that serves metrics.
#[derive(Clone, Copy, ValueEnum)]
enum Metered {
    /// weir switch and weir vswitchd
    Switch,
    /// weir controller and weir run
    Controller,
}

/// Prints the metrics, a row each.
///
/// # Errors
/// Standard output.
pub(crate) fn list(arguments: &MetricsArgs, out: &mut dyn Write) -> io::Result<()> {
    let families = match arguments.program {
        Metered::Switch => switch::declared_metrics(),
        Metered::Controller => controller::declared_metrics(),
    };
    if arguments.markdown {
        writeln!(out, "| metric | kind | labels | meaning |\n|---|---|---|---|")?;
        for family in &families {
            let [name, kind, labels, help] = cells(family);
            writeln!(out, "| `{name}` | {kind} | {labels} | {help} |")?;
        }
        return Ok(());
    }
    let mut table = Table::new(["metric", "kind", "labels", "meaning"]).left(0..4);
    families.iter().for_each(|family| table.row(cells(family)));
    table.plain(terminal::width()).iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn cells(family: &Family) -> [String; 4] {
    let kind = match family.kind() {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
    };
    let labels = family.labels().join(", ");
    [family.name().into_owned(), kind.to_owned(), labels, family.help().to_owned()]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// Names in the rules and the dashboard that no program serves would be empty panels.
    #[test]
    fn rules_and_dashboard_name_metrics_that_there_are() {
        let families = [switch::declared_metrics(), controller::declared_metrics()].concat();
        let served: BTreeSet<String> =
            families.iter().map(|family| family.name().into_owned()).collect();
        let files = [
            include_str!("../../../contrib/metrics/alerts.yml"),
            include_str!("../../../contrib/metrics/dashboard.json"),
        ];
        for text in files {
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let named: BTreeSet<&str> =
                words.filter(|w| w.starts_with("weir_") || w.starts_with("process_")).collect();
            assert!(named.len() > 10, "{named:?}");
            let unknown: Vec<_> = named.iter().filter(|name| !served.contains(**name)).collect();
            assert!(unknown.is_empty(), "{unknown:?}");
        }
    }
}
