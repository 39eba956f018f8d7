//! `weir bench cold-start`: how soon after the first packet the rate is what it will stay.
//!
//! The flow entries are loaded while port 1 is set down, so that no cache has seen a packet; then
//! the port is set up, and what leaves is read every few milliseconds. Each repeat is a new switch.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use openflow::PortNo;
use serde::Serialize;

use super::common::{Common, Row, Run};
use super::outcome::rounded;
use super::scratch;
use super::series::{Span, Spread, spans, watch};
use super::weir::Weir;
use crate::workload::Workload;

const EXAMPLES: &str = "\
Examples:
  contrib/workloads/workloads.py make l2l3-100k /tmp/w
  weir bench cold-start /tmp/w l2l3-100k
  weir bench cold-start /tmp/w l2l3-100k --step-ms 20 --seconds 3 --json";

/// Percent of the steady rate that count as steady.
const STEADY_PERCENT: f64 = 95.0;

/// How long the loaded switch is left alone before the first packet.
const REST: Duration = Duration::from_millis(300);

/// What to measure and how.
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

/// What one workload gave. Rates are millions of packets a second, times begin before the command
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
            "{:18} {STEADY_PERCENT} % of {:.3} Mpps after {:.1} ms ({:.1} to {:.1} in {} starts), \
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

/// One start.
struct Start {
    steady_mpps: f64,
    steady_after_ms: f64,
    first_mpps: f64,
    below_later: usize,
}

/// What the windows since `zero_s` say.
fn judge(windows: &[Span], zero_s: f64) -> Option<Start> {
    let later: Vec<f64> = windows.iter().skip(windows.len() / 2).map(|span| span.mpps).collect();
    let steady = Spread::of(&later).median;
    let is_steady = |span: &Span| span.mpps >= steady * STEADY_PERCENT / 100.0;
    let first = windows.iter().position(is_steady)?;
    Some(Start {
        steady_mpps: steady,
        steady_after_ms: 1e3 * (windows.get(first)?.to_s - zero_s),
        first_mpps: windows.get(1).or(windows.first())?.mpps,
        below_later: windows.iter().skip(first).filter(|span| !is_steady(span)).count(),
    })
}

impl ColdStartArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let workloads = Workload::find_all(&self.dir, &self.name)?;
        let steps = workloads.len() * usize::from(self.common.repeats);
        self.common.run(steps, |run| {
            for workload in &workloads {
                let row = self.measure(run, workload).context(workload.name.clone())?;
                run.row(&row)?;
            }
            Ok(())
        })
    }

    fn measure(&self, run: &mut Run, workload: &Workload) -> Result<ColdStart> {
        let mut row = ColdStart {
            switch: "weir",
            bench: "cold-start",
            workload: workload.name.clone(),
            flow_entries: 0,
            packets_in_trace: workload.frames,
            steady_mpps: Spread::default(),
            steady_after_ms: Spread::default(),
            first_mpps: Spread::default(),
            below_later: 0,
            windows: 0,
            lost: 0,
            step_ms: self.step_ms,
            series: Vec::new(),
        };
        let (mut steady, mut after, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
        for repeat in 0..run.repeats {
            run.progress.begin(&format!("{}: start {}", workload.name, repeat + 1));
            let windows = self.start(run, workload, &mut row)?;
            let zero_s = windows.first().map_or(0.0, |window| window.from_s);
            let start = judge(&windows, zero_s).context("nothing has left")?;
            ensure!(start.steady_mpps > 0.0, "nothing has left by port 2");
            if row.series.is_empty() {
                let of = |span: &Span| (rounded(1e3 * (span.to_s - zero_s)), rounded(span.mpps));
                row.series = windows.iter().map(of).collect();
            }
            steady.push(start.steady_mpps);
            after.push(start.steady_after_ms);
            firsts.push(start.first_mpps);
            row.below_later += start.below_later;
            row.windows += 1;
            run.progress.advance(1);
        }
        row.steady_mpps = Spread::of(&steady);
        row.steady_after_ms = Spread::of(&after);
        row.first_mpps = Spread::of(&firsts);
        Ok(row)
    }

    /// The windows of one start, from before the port is set up.
    fn start(&self, run: &Run, workload: &Workload, row: &mut ColdStart) -> Result<Vec<Span>> {
        let folder = scratch()?;
        let trace = format!("pcap:{}?loop=true", workload.trace.display());
        let launch = run.launch(vec![trace, "null:out".into()]);
        let mut weir = Weir::launch(&launch, folder.path(), &run.cancel)?;
        let version = workload.version()?;
        let port = PortNo(1);
        weir.client(version)?.set_port_down(port, true)?;
        row.flow_entries = weir.load(version, workload.flow_mods(1)?)?.entries;
        run.cancel.sleep(REST)?;
        let zero = weir.point()?;
        weir.client(version)?.set_port_down(port, false)?;
        let length = Duration::from_secs_f64(run.window.seconds);
        let begun = Instant::now();
        let step = Duration::from_millis(self.step_ms.into());
        let first = weir.counts()?;
        let done = || begun.elapsed() >= length;
        let mut points = vec![zero];
        points.extend(watch(|| weir.point(), step, &run.cancel, done)?);
        row.lost += weir.counts()?.lost_since(&first);
        Ok(spans(&points))
    }
}

#[cfg(test)]
mod tests {
    use super::{Span, judge};

    #[test]
    fn the_first_window_at_the_steady_rate_counts() {
        let rates = [1.0, 5.0, 9.6, 10.0, 9.0, 10.0, 10.0, 10.0, 10.0, 10.0];
        let windows: Vec<Span> = rates
            .iter()
            .enumerate()
            .map(|(n, mpps)| Span { from_s: n as f64, to_s: n as f64 + 1.0, mpps: *mpps })
            .collect();
        let start = judge(&windows, 0.0).unwrap();
        assert_eq!((start.steady_mpps, start.steady_after_ms), (10.0, 3_000.0));
        assert_eq!((start.first_mpps, start.below_later), (5.0, 1));
        assert!(judge(&[], 0.0).is_none());
    }
}
