//! `weir bench idle`: what a switch costs that has nothing to do, and what waking it costs.
//!
//! A view of the scenario `datapath-idle`: the CPU time of all threads while ports are open and
//! nothing comes, and single frames after a silence, once to a switch that sleeps and once to one
//! that never sleeps, in turns. What the kernel takes at least to wake a thread stands beside it.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use super::common::{Common, Row, Run};
use super::outcome::rounded;
use super::replay::{ReplayPlan, Replayed, weir};
use super::series::Spread;
use crate::dut;
use crate::settings::{Replay, ReplayDevices, Settings};
use stats::quantile;

const EXAMPLES: &str = "\
Examples:
  weir bench idle
  weir bench idle --seconds 10 --probes 5000 --silence-ms 20 --json";

/// Selection and manner of the measurement.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct IdleArgs {
    /// Frames in each repeat that find the switch asleep
    #[arg(long, default_value_t = 300, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    probes: u32,
    /// Milliseconds of silence before each frame
    #[arg(long, default_value_t = 5, value_name = "MS",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    silence_ms: u16,
    #[command(flatten)]
    common: Common,
}

/// CPU time of a switch without traffic.
#[derive(Debug, Serialize)]
struct IdleCpu {
    switch: &'static str,
    bench: &'static str,
    ports: usize,
    seconds: f64,
    /// Percent of a core, all threads.
    cpu_percent: Spread,
}

impl Row for IdleCpu {
    fn text(&self) -> String {
        format!(
            "idle             {:.3} % of a core ({:.3} to {:.3}), {} ports open, {} s each\n",
            self.cpu_percent.median,
            self.cpu_percent.min,
            self.cpu_percent.max,
            self.ports,
            self.seconds
        )
    }

    fn is_good(&self) -> bool {
        true
    }
}

/// Times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Times {
    count: usize,
    p50_us: f64,
    p90_us: f64,
    p99_us: f64,
    max_us: f64,
}

impl Times {
    fn of(mut sorted: Vec<f64>) -> Self {
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() {
            return Self::default();
        }
        let at = |q| rounded(quantile(&sorted, q));
        let (p50_us, p90_us) = (at(0.5), at(0.9));
        Self { count: sorted.len(), p50_us, p90_us, p99_us: at(0.99), max_us: at(1.0) }
    }

    fn text(&self, what: &str) -> String {
        format!(
            "  {what:14} p50 {:.1}, p90 {:.1}, p99 {:.1}, longest {:.1} us of {}\n",
            self.p50_us, self.p90_us, self.p99_us, self.max_us, self.count
        )
    }
}

/// Time of a frame from port to port after a silence.
#[derive(Debug, Serialize)]
struct Waking {
    switch: &'static str,
    bench: &'static str,
    silence_ms: u16,
    /// `--poll adaptive`: the switch sleeps.
    asleep: Times,
    /// `--poll busy`: it never does.
    awake: Times,
    /// The difference of the medians.
    wake_up_us: f64,
    /// A bare thread on the same core that is woken through the same kind of descriptor.
    kernel: Times,
    lost: usize,
}

impl Row for Waking {
    fn text(&self) -> String {
        let mut text = format!(
            "first frame      waking costs {:.1} us (medians) after {} ms of silence, {} lost\n",
            self.wake_up_us, self.silence_ms, self.lost
        );
        text += &self.asleep.text("asleep");
        text += &self.awake.text("never asleep");
        text + &self.kernel.text("kernel alone")
    }

    fn is_good(&self) -> bool {
        self.lost == 0
    }
}

/// Ports that are open.
const PORTS: usize = 2;

impl IdleArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        self.common.run(0, |run| self.measure(run))
    }

    fn measure(&self, run: &mut Run) -> Result<()> {
        let (devices, flows, entries) = (ReplayDevices::Wires, Some(1), Some(2));
        let settings = Settings {
            replay: Some(Replay { devices, flows, entries, ..Replay::default() }),
            count: Some(self.probes.into()),
            silence_ms: Some(self.silence_ms),
            ..Settings::default()
        };
        let asleep = dut::find("weir-user").context("the lab has no switch weir-user")?;
        let plan = ReplayPlan {
            scenario: "datapath-idle",
            values: vec![("frames".to_owned(), settings)],
            duts: vec![asleep, weir()?],
            repeats: run.repeats,
        };
        let all = plan.measure(run)?;
        let [asleep, awake] = all.as_slice() else { bail!("two switches have two results") };
        let cores = asleep.values("wake_idle_cores");
        let percents: Vec<f64> = cores.iter().map(|cores| 100.0 * cores).collect();
        run.row(&IdleCpu {
            switch: "weir",
            bench: "idle",
            ports: PORTS,
            seconds: run.window.seconds,
            cpu_percent: Spread::of(&percents),
        })?;
        let times = |of: &Replayed, key: &str| -> Result<Vec<f64>> {
            Ok(of.raw::<Vec<f64>>(key)?.concat())
        };
        let lost = asleep.sum("wake_lost") + awake.sum("wake_lost");
        // It is measured beside each switch, which is held still meanwhile: all of it counts.
        let kernel = [times(asleep, "kernel_us")?, times(awake, "kernel_us")?].concat();
        let asleep = Times::of(times(asleep, "times_us")?);
        let awake = Times::of(times(awake, "times_us")?);
        run.row(&Waking {
            switch: "weir",
            bench: "idle",
            silence_ms: self.silence_ms,
            wake_up_us: rounded(asleep.p50_us - awake.p50_us),
            asleep,
            awake,
            kernel: Times::of(kernel),
            lost: lost as usize,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Times;

    #[test]
    fn times_are_reported_by_their_quantiles() {
        let times = Times::of(vec![3.0, 1.0, 2.0]);
        assert_eq!((times.count, times.p50_us, times.max_us), (3, 2.0, 3.0));
        assert!(times.text("asleep").contains("p50 2.0"));
        assert_eq!(Times::of(Vec::new()), Times::default());
    }
}
