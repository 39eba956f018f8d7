//! `weir bench updates`: how fast a switch takes flow-mods, alone and while it forwards.
//!
//! A view of the scenarios `datapath-loading` (so many entries added one by one to a switch that
//! has nothing else to do) and `datapath-updates` (an even stream of adds, changes and deletions
//! in the table that the packets meet): first with as many packets as the switch can take, then
//! with a part of that many, which come by the clock into a ring as a network card has it.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use super::beside::Compared;
use super::common::{Common, Row, Run};
use super::outcome::rounded;
use super::replay::{ReplayPlan, Replayed, weir};
use super::series::Spread;
use crate::dut;
use crate::settings::{Replay, Settings};
use crate::workload::made;

const EXAMPLES: &str = "\
Examples:
  weir bench updates
  weir bench updates --entries 0 --rate 200000 --load 90
  weir bench updates --entries 100000 --repeats 3 --json";

/// Selection and manner of the measurement.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct UpdatesArgs {
    /// Flow entries that are added to a switch that has nothing else to do; 0 leaves that out
    #[arg(long, default_value_t = 1_000_000, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(0..=i64::from(made::ENTRIES_MAX)))]
    entries: u32,
    /// Changes a second while it forwards; 0 leaves that out
    #[arg(long, default_value_t = 100_000, value_name = "COUNT")]
    rate: u32,
    #[command(flatten)]
    traffic: TrafficArgs,
    #[command(flatten)]
    common: Common,
}

/// The packets meanwhile.
#[derive(Args, Debug, Clone)]
pub(super) struct TrafficArgs {
    /// Percent of the rate without loss at which packets come
    #[arg(long, default_value_t = 80, value_name = "PERCENT",
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(super) load: u8,
    /// Flows of the packets
    #[arg(long, default_value_t = 1_000, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) flows: u32,
    /// Packets for which the port has room until the switch takes them
    #[arg(long, default_value_t = 4_096, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub(super) slots: u32,
}

impl TrafficArgs {
    /// Measures a scenario with as many packets as are taken, and then with a part of that many:
    /// what came of each, with the millions of packets a second that came.
    pub(super) fn measure(
        &self,
        run: &mut Run,
        scenario: &str,
        (entries, count): (u32, Option<u64>),
        row: impl Fn(&mut Run, &Replayed, Compared, Option<f64>) -> Result<()>,
    ) -> Result<()> {
        let mut offered = None;
        for _ in 0..2 {
            let rate_pps = offered.map(|mpps: f64| (1e6 * mpps).max(1.0) as u64);
            let slots = rate_pps.map(|_| self.slots);
            let (flows, entries) = (Some(self.flows), Some(entries));
            let replay = Some(Replay { flows, entries, rate_pps, slots, ..Replay::default() });
            let settings = Settings { replay, count, ..Settings::default() };
            let plan = ReplayPlan {
                scenario,
                values: vec![("packets".to_owned(), settings)],
                duts: vec![weir()?],
                repeats: run.repeats,
            };
            let found = plan.measure_one(run)?;
            let compared = Compared::of(&found)?;
            let most = compared.quiet.mpps.median;
            row(run, &found, compared, offered)?;
            offered = Some(most * f64::from(self.load) / 100.0);
        }
        Ok(())
    }
}

/// Entries added to a switch that has nothing else to do.
#[derive(Debug, Serialize)]
struct Alone {
    switch: &'static str,
    bench: &'static str,
    flow_entries: u32,
    flow_mods_per_s: Spread,
    samples: Vec<f64>,
    /// Deletions of all entries by one flow-mod, in seconds.
    delete_all_s: Spread,
}

impl Row for Alone {
    fn text(&self) -> String {
        let Spread { median, min, max } = self.flow_mods_per_s;
        format!(
            "adds, alone      {:9} entries at {median:.0}/s ({min:.0} to {max:.0}); all deleted at \
             once in {:.2} s\n",
            self.flow_entries, self.delete_all_s.median
        )
    }

    fn is_good(&self) -> bool {
        true
    }
}

/// Changes while it forwards.
#[derive(Debug, Serialize)]
struct Changes {
    switch: &'static str,
    bench: &'static str,
    /// Packets that came a second, in millions; none for as many as were taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    offered_mpps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load_percent: Option<u8>,
    wanted_per_s: u32,
    /// Changes that the switch took, up to the barrier reply.
    changes_per_s: f64,
    #[serde(flatten)]
    compared: Compared,
}

/// Less than this part of the changes that were wanted is a measurement of something else.
const KEPT_UP: f64 = 0.95;

impl Row for Changes {
    fn text(&self) -> String {
        let offered = match (self.offered_mpps, self.load_percent) {
            (Some(mpps), Some(percent)) => format!("{mpps:.3} Mpps come in ({percent} %)"),
            _ => "as many packets as are taken".to_owned(),
        };
        let mut text = format!("changes          {offered}, {:.0} changes/s\n", self.changes_per_s);
        if !self.kept_up() {
            text += &format!(
                "    limit      {} changes/s were wanted: bench and agent share a core\n",
                self.wanted_per_s
            );
        }
        text + &self.compared.text("changes")
    }

    fn is_good(&self) -> bool {
        self.compared.is_good() && self.kept_up()
    }
}

impl Changes {
    fn kept_up(&self) -> bool {
        self.changes_per_s >= KEPT_UP * f64::from(self.wanted_per_s)
    }
}

impl UpdatesArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        self.common.run(0, |run| {
            if self.entries > 0 {
                let row = alone(run, self.entries)?;
                run.row(&row)?;
            }
            if self.rate > 0 {
                self.forwarding(run)?;
            }
            Ok(())
        })
    }

    fn forwarding(&self, run: &mut Run) -> Result<()> {
        let (entries, count) = (self.traffic.flows + 1, Some(self.rate.into()));
        let what = (entries, count);
        self.traffic.measure(run, "datapath-updates", what, |run, found, compared, offered| {
            let sum = |key: &str| Ok::<f64, anyhow::Error>(found.raw::<f64>(key)?.iter().sum());
            run.row(&Changes {
                switch: "weir",
                bench: "updates",
                offered_mpps: offered.map(rounded),
                load_percent: offered.map(|_| self.traffic.load),
                wanted_per_s: self.rate,
                changes_per_s: (sum("changes")? / sum("change_s")?.max(1e-9)).round(),
                compared,
            })
        })
    }
}

fn alone(run: &Run, entries: u32) -> Result<Alone> {
    let replay = Replay { flows: Some(1), entries: Some(entries), ..Replay::default() };
    let settings =
        Settings { replay: Some(Replay { is_down: true, ..replay }), ..Settings::default() };
    let plan = ReplayPlan {
        scenario: "datapath-loading",
        values: vec![("entries".to_owned(), settings)],
        duts: vec![dut::find("weir-user").context("the lab has no switch weir-user")?],
        repeats: run.repeats,
    };
    let found = plan.measure_one(run)?;
    let rates = found.values("loading_ps");
    Ok(Alone {
        switch: "weir",
        bench: "updates",
        flow_entries: entries,
        flow_mods_per_s: Spread::of(&rates),
        samples: rates.iter().map(|rate| rate.round()).collect(),
        delete_all_s: Spread::of(&found.values("loading_delete_s")),
    })
}
