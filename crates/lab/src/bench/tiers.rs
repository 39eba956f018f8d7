//! `weir bench tiers`: the same workload with both caches, with the key cache only, and with the
//! classifier alone, and the hits of each level.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::common::{Common, Row, Run};
use super::figures::{self, Figures, Level};
use super::scratch;
use super::series::Spread;
use super::subject::Subject;
use super::turns::in_turns;
use super::weir::{Launch, Weir};
use super::workload::Workload;

const EXAMPLES: &str = "\
Examples:
  contrib/workloads/workloads.py make l2l3-100k,lpm-100k /tmp/w
  weir bench tiers /tmp/w l2l3-100k lpm-100k
  weir bench tiers /tmp/w lpm-100k --repeats 9 --json";

/// Which caches work, from all to none.
const TIERS: [(&str, &str); 3] = [("frame", "frame,key"), ("key", "key"), ("classifier", "off")];

/// What to measure and how.
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

/// What one tier of one workload gave. Rates are millions of packets a second.
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
        self.common.run(workloads.len(), |run| {
            for workload in &workloads {
                run.progress.begin(&workload.name);
                measure(run, workload).context(workload.name.clone())?;
                run.progress.advance(1);
            }
            Ok(())
        })
    }
}

fn measure(run: &mut Run, workload: &Workload) -> Result<()> {
    let folders = [scratch()?, scratch()?, scratch()?];
    let trace = format!("pcap:{}?loop=true", workload.trace.display());
    let mut switches = Vec::new();
    for (folder, (_, caches)) in folders.iter().zip(TIERS) {
        let plain = run.launch(vec![trace.clone(), "null:out".into()]);
        let launch = Launch { caches: Some(caches), ..plain };
        let mut weir = Weir::launch(&launch, folder.path(), &run.cancel)?;
        weir.load(workload.version()?, workload.flow_mods(1)?)?;
        weir.warm_up(&run.cancel)?;
        switches.push(weir);
    }
    let read = |weir: &mut Weir| -> Result<(Value, _)> {
        Ok((weir.workers()?.unwrap_or_default(), weir.counts()?))
    };
    let before = switches.iter_mut().map(read).collect::<Result<Vec<_>>>()?;
    let all = in_turns(run, &mut switches)?;
    for (index, (tier, caches)) in TIERS.into_iter().enumerate() {
        let (Some(weir), Some(series)) = (switches.get_mut(index), all.get(index)) else {
            continue;
        };
        let Some((workers, first)) = before.get(index) else { continue };
        let (now, last) = read(weir)?;
        let row = Tier {
            switch: "weir",
            bench: "tiers",
            workload: workload.name.clone(),
            tier,
            caches,
            mpps: Spread::of(&series.mpps),
            samples: series.rounded(),
            lost: last.lost_since(first),
            again: series.again,
            levels: figures::levels(workers, &now),
            stages: figures::between(workers, &now),
        };
        run.row(&row)?;
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
