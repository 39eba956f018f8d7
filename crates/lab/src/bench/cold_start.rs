//! `weir bench cold-start`: how soon after the first packet the rate is what it will stay.
//!
//! A view of the scenario `datapath-cold-start`: the flow entries are loaded while port 1 is set
//! down, so that no cache has seen a packet; then the port is set up, and what leaves is read every
//! few milliseconds. Each repeat is a new switch.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use super::common::{Common, Row, Run};
use super::outcome::rounded;
use super::replay::{ReplayPlan, of_workload, weir};
use super::series::Spread;
use crate::workload::Workload;

const EXAMPLES: &str = "\
Examples:
  contrib/workloads/workloads.py make l2l3-100k /tmp/w
  weir bench cold-start /tmp/w l2l3-100k
  weir bench cold-start /tmp/w l2l3-100k --step-ms 20 --seconds 3 --json";

/// Selection and manner of the measurement.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ColdStartArgs {
    /// The folder of the workloads
    dir: PathBuf,
    /// Workloads: NAME.pcap enters port 1, NAME.flows sends all of it out of port 2
    #[arg(required = true)]
    name: Vec<String>,
    /// Milliseconds of a window
    #[arg(long, default_value_t = 10, value_name = "MS",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    step_ms: u16,
    #[command(flatten)]
    common: Common,
}

/// Results of one workload. Rates are millions of packets a second, times begin before the command
/// that sets the port up.
#[derive(Debug, Serialize)]
struct ColdStart {
    switch: &'static str,
    bench: &'static str,
    workload: String,
    flow_entries: u64,
    packets_in_trace: usize,
    /// The median window of the second half.
    steady_mpps: Spread,
    /// The end of the first window with 95 % of the steady rate, in milliseconds.
    steady_after_ms: Spread,
    /// The rate of the first whole window.
    first_mpps: Spread,
    /// Windows after the first steady one that were below 95 % again, of all repeats.
    below_later: usize,
    windows: usize,
    lost: i64,
    step_ms: u16,
    /// The first repeat's windows: milliseconds of the end, rate.
    series: Vec<(f64, f64)>,
}

/// Windows of a series that are printed.
const SHOWN: usize = 10;

impl Row for ColdStart {
    fn text(&self) -> String {
        let mut text = format!(
            "{:18} 95 % of {:.3} Mpps after {:.1} ms ({:.1} to {:.1} in {} starts), \
             {} lost; {} entries\n",
            self.workload,
            self.steady_mpps.median,
            self.steady_after_ms.median,
            self.steady_after_ms.min,
            self.steady_after_ms.max,
            self.windows,
            self.lost,
            self.flow_entries
        );
        let windows = self.series.iter().take(SHOWN);
        let windows: Vec<String> =
            windows.map(|(end_ms, mpps)| format!("{end_ms:.0} ms {mpps:.1}")).collect();
        text += &format!("  first windows    {}\n", windows.join(", "));
        text + &format!(
            "  below it later   {:9} windows of {} ms\n",
            self.below_later, self.step_ms
        )
    }

    fn is_good(&self) -> bool {
        self.lost == 0
    }
}

impl ColdStartArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let workloads = Workload::find_all(&self.dir, &self.name)?;
        self.common.run(0, |run| {
            for workload in &workloads {
                let row = self.measure(run, workload).context(workload.name.clone())?;
                run.row(&row)?;
            }
            Ok(())
        })
    }

    fn measure(&self, run: &Run, workload: &Workload) -> Result<ColdStart> {
        let mut set = of_workload(workload, None)?;
        set.window_ms = Some(self.step_ms);
        if let Some(replay) = &mut set.replay {
            replay.is_down = true;
        }
        let plan = ReplayPlan {
            scenario: "datapath-cold-start",
            values: vec![(workload.name.clone(), set)],
            duts: vec![weir()?],
            repeats: run.repeats,
        };
        let found = plan.measure_one(run)?;
        let spread = |metric: &str| Spread::of(&found.values(metric));
        let first: Vec<(f64, f64)> = found.raw("series")?.into_iter().next().unwrap_or_default();
        Ok(ColdStart {
            switch: "weir",
            bench: "cold-start",
            workload: workload.name.clone(),
            flow_entries: found.number("flow_entries") as u64,
            packets_in_trace: workload.frames,
            steady_mpps: spread("cold_steady_mpps"),
            steady_after_ms: spread("cold_steady_ms"),
            first_mpps: spread("cold_first_mpps"),
            below_later: found.sum("cold_below_later") as usize,
            windows: found.values("cold_steady_ms").len(),
            lost: found.sum("cold_lost") as i64,
            step_ms: self.step_ms,
            series: first.iter().map(|(ms, mpps)| (rounded(*ms), rounded(*mpps))).collect(),
        })
    }
}
