//! `weir bench tiers`: the same workload with both caches, with the key cache only, and with the
//! classifier alone, and the hits of each level. A view of the scenario `datapath-tiers`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use super::common::{Common, Row, Run};
use super::figures::{Figures, Level};
use super::replay::{ReplayPlan, of_workload, weir};
use super::series::Spread;
use crate::settings::{CacheSet, Settings};
use crate::workload::Workload;

const EXAMPLES: &str = "\
Examples:
  contrib/workloads/workloads.py make l2l3-100k,lpm-100k /tmp/w
  weir bench tiers /tmp/w l2l3-100k lpm-100k
  weir bench tiers /tmp/w lpm-100k --repeats 9 --json";

/// Caches that work, from all to none.
const TIERS: [(&str, &str, CacheSet); 3] = [
    ("frame", "frame,key", CacheSet::User),
    ("key", "key", CacheSet::Key),
    ("classifier", "off", CacheSet::None),
];

/// Selection and manner of the measurement.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct TiersArgs {
    /// The folder of the workloads
    dir: PathBuf,
    /// Workloads: NAME.pcap enters port 1, NAME.flows sends all of it out of port 2
    #[arg(required = true)]
    name: Vec<String>,
    #[command(flatten)]
    common: Common,
}

/// Results of one tier of one workload. Rates are millions of packets a second.
#[derive(Debug, Serialize)]
struct Tier {
    switch: &'static str,
    bench: &'static str,
    workload: String,
    tier: &'static str,
    caches: &'static str,
    mpps: Spread,
    samples: Vec<f64>,
    lost: i64,
    again: usize,
    /// Hits and misses of each level during the measurement.
    levels: Vec<Level>,
    stages: Vec<Figures>,
}

impl Row for Tier {
    fn text(&self) -> String {
        let mut text = format!(
            "{:18} {:12} {:9.3} Mpps ({:.3} to {:.3}), {} lost\n",
            self.workload, self.tier, self.mpps.median, self.mpps.min, self.mpps.max, self.lost
        );
        for level in &self.levels {
            text += &level.text();
        }
        if self.again > 0 {
            text += &format!("  measured again   {:9} times for want of the core\n", self.again);
        }
        text
    }

    fn is_good(&self) -> bool {
        self.lost == 0
    }
}

impl TiersArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let workloads = Workload::find_all(&self.dir, &self.name)?;
        self.common.run(0, |run| {
            for workload in &workloads {
                measure(run, workload).context(workload.name.clone())?;
            }
            Ok(())
        })
    }
}

fn measure(run: &mut Run, workload: &Workload) -> Result<()> {
    let of = of_workload(workload, None)?;
    let value = |(tier, _, caches): (&str, &str, CacheSet)| {
        (tier.to_owned(), Settings { caches: Some(caches), ..of.clone() })
    };
    let plan = ReplayPlan {
        scenario: "datapath-tiers",
        values: TIERS.map(value).into(),
        duts: vec![weir()?],
        repeats: run.repeats,
    };
    for (found, (tier, caches, _)) in plan.measure(run)?.iter().zip(TIERS) {
        run.row(&Tier {
            switch: "weir",
            bench: "tiers",
            workload: workload.name.clone(),
            tier,
            caches,
            mpps: Spread::of(&found.mpps()),
            samples: found.samples(),
            lost: found.lost(),
            again: found.again(),
            levels: found.levels(),
            stages: found.stages(),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Level, Row, Spread, Tier};

    #[test]
    fn each_level_is_reported() {
        let row = Tier {
            switch: "weir",
            bench: "tiers",
            workload: "w".into(),
            tier: "frame",
            caches: "frame,key",
            mpps: Spread { median: 8.0, min: 7.0, max: 9.0 },
            samples: vec![8.0],
            lost: 0,
            again: 0,
            levels: vec![Level { level: "frame", hits: 9, misses: Some(1), evictions: Some(2) }],
            stages: Vec::new(),
        };
        let text = row.text();
        assert!(row.is_good() && text.contains("9 hits, 1 misses, 2 evictions"), "{text}");
    }
}
