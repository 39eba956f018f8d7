//! `weir metrics`: the metrics that `--metrics` of a program serves, from the rows that it counts
//! by.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use controller::apps::Samples;
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
    /// weir gen
    Gen,
    /// The app flow-exporter of weir controller, at an address of its own
    FlowExporter,
}

impl Metered {
    /// Every metric of it, without samples.
    fn declared(self) -> Vec<Family> {
        match self {
            Self::Switch => switch::declared_metrics(),
            Self::Controller => controller::declared_metrics(),
            Self::Gen => console::declared_metrics(),
            Self::FlowExporter => Samples::default().families(std::time::Instant::now()),
        }
    }
}

/// Prints the metrics, a row each.
///
/// # Errors
/// Standard output.
pub(crate) fn list(arguments: &MetricsArgs, out: &mut dyn Write) -> io::Result<()> {
    let families = arguments.program.declared();
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
    use std::collections::{BTreeMap, BTreeSet};

    use clap::ValueEnum;
    use metrics::Family;

    use super::{Metered, cells};

    fn all() -> Vec<Family> {
        Metered::value_variants().iter().flat_map(|program| program.declared()).collect()
    }

    /// The defect of ports of two exporters that had the same names and other labels: a sum over
    /// them counted each packet twice.
    #[test]
    fn a_name_has_one_meaning_in_all_programs() {
        let mut meanings = BTreeMap::new();
        for [name, rest @ ..] in all().iter().map(cells) {
            let meaning = meanings.entry(name.clone()).or_insert_with(|| rest.clone());
            assert_eq!(*meaning, rest, "{name}");
        }
    }

    /// Names in the rules and the dashboard that no program serves would be empty panels.
    #[test]
    fn rules_and_dashboard_name_metrics_that_there_are() {
        let served: BTreeSet<String> =
            all().iter().map(|family| family.name().into_owned()).collect();
        let files = [
            include_str!("../../../contrib/metrics/alerts.yml"),
            include_str!("../../../contrib/metrics/dashboard.json"),
        ];
        for text in files {
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let is_name = |word: &&str| {
                ["weir_", "process_", "openflow_"].iter().any(|start| word.starts_with(start))
            };
            let named: BTreeSet<&str> = words.filter(is_name).collect();
            assert!(named.len() > 10, "{named:?}");
            let unknown: Vec<_> = named.iter().filter(|name| !served.contains(**name)).collect();
            assert!(unknown.is_empty(), "{unknown:?}");
        }
    }
}
