//! `weir bench growth`: the same traffic by ever more flow entries, and what an entry weighs.
//!
//! A switch is started for each number of entries and loaded; then all are measured in turns, so
//! that their rates can be set beside each other. The traffic never changes: the same flows, each
//! with an entry of its own where there are enough, else by the one that takes all.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use openflow::Version;
use serde::Serialize;

use super::common::{Common, Row, Run};
use super::figures::{self, Figures};
use super::made;
use super::outcome::rounded;
use super::scratch;
use super::series::{Spread, dip_percent};
use super::subject::Subject;
use super::turns::in_turns;
use super::weir::Weir;

const EXAMPLES: &str = "\
Examples:
  weir bench growth
  weir bench growth --entries 1,1000,1000000 --flows 10000
  weir bench growth --entries 1000,10000000 --json";

/// What to measure and how.
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
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    flows: u32,
    #[command(flatten)]
    common: Common,
}

/// What one number of entries gave. Rates are millions of packets a second.
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
    /// What the switch holds of the machine's memory, all of it.
    resident_bytes: u64,
    /// What it has grown by for each entry; none for few entries, which weigh less than a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_entry: Option<f64>,
    again: usize,
    stages: Vec<Figures>,
}

/// Fewer entries than this say nothing about the weight of one.
const WEIGHABLE: u32 = 10_000;

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

/// A loaded switch.
struct Grown {
    entries: u32,
    flow_mods_per_s: f64,
    grown_bytes: u64,
    resident_bytes: u64,
}

impl GrowthArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        self.common.run(self.entries.len() + 1, |run| self.measure(run))
    }

    fn measure(&self, run: &mut Run) -> Result<()> {
        let folder = scratch()?;
        let trace = made::trace(folder.path(), self.flows)?;
        let ports = vec![format!("pcap:{}?loop=true", trace.display()), "null:out".to_owned()];
        let (mut folders, mut switches, mut grown) = (Vec::new(), Vec::new(), Vec::new());
        let mut held = Vec::new();
        for &entries in &self.entries {
            run.progress.begin(&format!("loading {entries} entries"));
            let folder = scratch()?;
            let mut weir = Weir::launch(&run.launch(ports.clone()), folder.path(), &run.cancel)?;
            weir.client(Version::V1_3)?.barrier()?;
            let before = weir.resident_bytes();
            let loaded = weir.load(Version::V1_3, made::entries(entries))?;
            weir.warm_up(&run.cancel)?;
            let resident_bytes = weir.resident_bytes();
            grown.push(Grown {
                entries,
                flow_mods_per_s: (loaded.entries as f64 / loaded.seconds.max(1e-9)).round(),
                grown_bytes: resident_bytes.saturating_sub(before),
                resident_bytes,
            });
            held.push(super::subject::Held::hold(weir.pid())?);
            switches.push(weir);
            folders.push(folder);
            run.progress.advance(1);
        }
        drop(held);
        run.progress.begin("measuring in turns");
        self.rows(run, &mut switches, &grown)
    }

    fn rows(&self, run: &mut Run, switches: &mut [Weir], grown: &[Grown]) -> Result<()> {
        let mut before = Vec::new();
        for weir in switches.iter_mut() {
            before.push((weir.workers()?.unwrap_or_default(), weir.counts()?));
        }
        let all = in_turns(run, switches)?;
        let first = all.first().context("no number of entries")?.mpps.clone();
        let rows = switches.iter_mut().zip(grown).zip(all.iter().zip(&before));
        for ((weir, grown), (series, (workers, counts))) in rows {
            let pairs = first.iter().zip(&series.mpps);
            let below: Vec<f64> = pairs.map(|(first, this)| dip_percent(*first, *this)).collect();
            let weighed = grown.entries >= WEIGHABLE;
            run.row(&Growth {
                switch: "weir",
                bench: "growth",
                flow_entries: grown.entries,
                flows: self.flows,
                mpps: Spread::of(&series.mpps),
                samples: series.rounded(),
                below_first_percent: Spread::of(&below),
                lost: weir.counts()?.lost_since(counts),
                flow_mods_per_s: grown.flow_mods_per_s,
                resident_bytes: grown.resident_bytes,
                bytes_per_entry: weighed
                    .then(|| rounded(grown.grown_bytes as f64 / f64::from(grown.entries))),
                again: series.again,
                stages: figures::between(workers, &weir.workers()?.unwrap_or_default()),
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
