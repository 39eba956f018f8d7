//! `weir bench growth`: the same traffic by ever more flow entries, and what an entry weighs.
//!
//! A view of the scenario `datapath-growth`: a switch is started for each number of entries and
//! loaded; then all are measured in turns, so that their rates can be set beside each other. The
//! traffic never changes: the same flows, each with an entry of its own where there are enough,
//! else by the one that takes all.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use super::common::{Common, Row, Run};
use super::figures::Figures;
use super::outcome::rounded;
use super::replay::{ReplayPlan, weir};
use super::series::{Spread, dip_percent};
use crate::settings::{Replay, Settings};
use crate::workload::made;

const EXAMPLES: &str = "\
Examples:
  weir bench growth
  weir bench growth --entries 1,1000,1000000 --flows 10000
  weir bench growth --entries 1000,10000000 --json";

/// Selection and manner of the measurement.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct GrowthArgs {
    /// Numbers of flow entries; the first is what the others are set beside
    #[arg(long, value_delimiter = ',', default_value = "1,10,1000,100000,1000000",
          value_name = "COUNT,..",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(made::ENTRIES_MAX)))]
    entries: Vec<u32>,
    /// Flows of the traffic
    #[arg(long, default_value_t = 1_000, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(made::FLOWS_MAX)))]
    flows: u32,
    #[command(flatten)]
    common: Common,
}

/// Results of one number of entries. Rates are millions of packets a second.
#[derive(Debug, Serialize)]
struct Growth {
    switch: &'static str,
    bench: &'static str,
    flow_entries: u32,
    flows: u32,
    mpps: Spread,
    samples: Vec<f64>,
    /// Percent that the rate lacks to that of the first number of entries: the median of the
    /// rounds, each set beside the first one's in the same round.
    below_first_percent: Spread,
    lost: i64,
    flow_mods_per_s: f64,
    /// Memory of the switch, all of it.
    resident_bytes: u64,
    /// Its growth for each entry; none for few entries, which weigh less than a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_entry: Option<f64>,
    again: usize,
    stages: Vec<Figures>,
}

impl Row for Growth {
    fn text(&self) -> String {
        let mut text = format!(
            "{:9} entries  {:9.3} Mpps ({:.3} to {:.3}), {:+.1} % ({:+.1} to {:+.1}), {} lost; \
             loaded at {:.0}/s, {} MB",
            self.flow_entries,
            self.mpps.median,
            self.mpps.min,
            self.mpps.max,
            -self.below_first_percent.median,
            -self.below_first_percent.max,
            -self.below_first_percent.min,
            self.lost,
            self.flow_mods_per_s,
            self.resident_bytes / 1_000_000
        );
        if let Some(bytes) = self.bytes_per_entry {
            text += &format!(", {bytes:.0} bytes an entry");
        }
        if self.again > 0 {
            text += &format!("; {} measured again for want of the core", self.again);
        }
        text + "\n"
    }

    fn is_good(&self) -> bool {
        self.lost == 0
    }
}

impl GrowthArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        self.common.run(0, |run| self.measure(run))
    }

    fn measure(&self, run: &mut Run) -> Result<()> {
        let value = |entries: &u32| {
            let (flows, entries) = (Some(self.flows), Some(*entries));
            let replay = Some(Replay { flows, entries, ..Replay::default() });
            Settings { replay, ..Settings::default() }
        };
        // Who names a number twice has a switch for each.
        let name =
            |(place, entries): (usize, &u32)| (format!("{entries}, {place}"), value(entries));
        let plan = ReplayPlan {
            scenario: "datapath-growth",
            values: self.entries.iter().enumerate().map(name).collect(),
            duts: vec![weir()?],
            repeats: run.repeats,
        };
        let all = plan.measure(run)?;
        let first = all.first().context("no number of entries")?.mpps();
        for (found, flow_entries) in all.iter().zip(&self.entries) {
            let mpps = found.mpps();
            let pairs = first.iter().zip(&mpps);
            let below: Vec<f64> = pairs.map(|(first, this)| dip_percent(*first, *this)).collect();
            run.row(&Growth {
                switch: "weir",
                bench: "growth",
                flow_entries: *flow_entries,
                flows: self.flows,
                mpps: Spread::of(&mpps),
                samples: found.samples(),
                below_first_percent: Spread::of(&below),
                lost: found.lost(),
                flow_mods_per_s: found.value("replay_loads_ps").unwrap_or(0.0).round(),
                resident_bytes: found.number("resident_bytes") as u64,
                bytes_per_entry: found.value("replay_entry_bytes").map(rounded),
                again: found.again(),
                stages: found.stages(),
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Growth, Row, Spread};

    #[test]
    fn a_row_says_how_much_less_it_is() {
        let row = Growth {
            switch: "weir",
            bench: "growth",
            flow_entries: 100_000,
            flows: 1_000,
            mpps: Spread { median: 38.0, min: 37.0, max: 39.0 },
            samples: vec![38.0],
            below_first_percent: Spread { median: 5.0, min: 4.0, max: 6.0 },
            lost: 0,
            flow_mods_per_s: 500_000.0,
            resident_bytes: 123_000_000,
            bytes_per_entry: Some(300.0),
            again: 0,
            stages: Vec::new(),
        };
        let text = row.text();
        assert!(text.contains("-5.0 % (-6.0 to -4.0)"), "{text}");
        assert!(text.contains("123 MB, 300 bytes an entry"), "{text}");
        assert!(row.is_good());
    }
}
