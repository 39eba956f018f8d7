//! `weir bench updates`: how fast a switch takes flow-mods, alone and while it forwards.
//!
//! Alone: so many entries added one by one, without bundles, up to the barrier reply. While it
//! forwards: an even stream of adds, changes and deletions in the table that the packets meet,
//! first with as many packets as the switch can take, then with a part of that many, which come by
//! the clock whether or not the switch has time for them, into a ring as a network card has it.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use openflow::Version;
use openflow::flow::FlowModCommand;
use serde::Serialize;

use super::beside::{Compared, beside};
use super::common::{Common, Row, Run};
use super::outcome::rounded;
use super::scratch;
use super::series::Spread;
use super::weir::{Launch, Weir};
use crate::switch_client::Storm;
use crate::workload::made;

const EXAMPLES: &str = "\
Examples:
  weir bench updates
  weir bench updates --entries 0 --rate 200000 --load 90
  weir bench updates --entries 100000 --repeats 3 --json";

/// Entries that the stream of changes goes round about.
const CHANGED: u32 = 1_000;

/// What to measure and how.
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
    /// The ports: as many packets as are taken, or so many a second.
    pub(super) fn ports(&self, trace: &std::path::Path, per_second: Option<f64>) -> Vec<String> {
        let mut source = format!("pcap:{}?loop=true", trace.display());
        if let Some(rate) = per_second {
            source += &format!("&rate={:.0}&slots={}", rate.max(1.0), self.slots);
        }
        vec![source, "null:out".to_owned()]
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
    /// What the switch took, up to the barrier reply.
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
        self.common.run(3, |run| {
            if self.entries > 0 {
                run.progress.begin("adding entries alone");
                let row = alone(run, self.entries)?;
                run.row(&row)?;
            }
            run.progress.advance(1);
            if self.rate > 0 {
                self.forwarding(run)?;
            }
            Ok(())
        })
    }

    fn forwarding(&self, run: &mut Run) -> Result<()> {
        let folder = scratch()?;
        let trace = made::trace(folder.path(), self.traffic.flows)?;
        run.progress.begin("changes at the full rate");
        let full = self.changes(run, self.traffic.ports(&trace, None), None)?;
        let most = full.compared.quiet.mpps.median;
        run.row(&full)?;
        run.progress.advance(1);
        run.progress.begin(&format!("changes at {} %", self.traffic.load));
        let offered = most * f64::from(self.traffic.load) / 100.0;
        let ports = self.traffic.ports(&trace, Some(1e6 * offered));
        let part = self.changes(run, ports, Some(offered))?;
        run.row(&part)?;
        run.progress.advance(1);
        Ok(())
    }

    fn changes(&self, run: &Run, ports: Vec<String>, offered: Option<f64>) -> Result<Changes> {
        let folder = scratch()?;
        let mut weir = Weir::launch(&run.launch(ports), folder.path(), &run.cancel)?;
        weir.load(Version::V1_3, made::entries(self.traffic.flows + 1))?;
        weir.warm_up(&run.cancel)?;
        let commands =
            [FlowModCommand::Add, FlowModCommand::ModifyStrict, FlowModCommand::DeleteStrict];
        let others = self.traffic.flows..self.traffic.flows + CHANGED;
        let round = commands
            .into_iter()
            .flat_map(|command| others.clone().map(move |number| made::flow_mod(command, number)));
        let storm = Storm::new(Version::V1_3, round, self.rate)?;
        let mut client = weir.connect(Version::V1_3)?;
        let (mut sent, mut seconds) = (0, 0.0);
        let compared = beside(run, &mut weir, |until| {
            let begun = std::time::Instant::now();
            sent += client.write_evenly(&storm, until)?;
            seconds += begun.elapsed().as_secs_f64();
            Ok(())
        })?;
        Ok(Changes {
            switch: "weir",
            bench: "updates",
            offered_mpps: offered.map(rounded),
            load_percent: offered.map(|_| self.traffic.load),
            wanted_per_s: self.rate,
            changes_per_s: (sent as f64 / f64::max(seconds, 1e-9)).round(),
            compared,
        })
    }
}

fn alone(run: &Run, entries: u32) -> Result<Alone> {
    let (mut rates, mut deletions) = (Vec::new(), Vec::new());
    for _ in 0..run.repeats {
        let folder = scratch()?;
        let ports = vec!["null:in".to_owned(), "null:out".to_owned()];
        let launch = Launch { poll: "adaptive", ..run.launch(ports) };
        let mut weir = Weir::launch(&launch, folder.path(), &run.cancel)?;
        let loaded = weir.load(Version::V1_3, made::entries(entries))?;
        rates.push(loaded.entries as f64 / loaded.seconds.max(1e-9));
        let begun = std::time::Instant::now();
        let client = weir.client(Version::V1_3)?;
        let all = openflow::flow::FlowMod::new(FlowModCommand::Delete);
        client.load(std::iter::once(Ok(all)))?;
        deletions.push(begun.elapsed().as_secs_f64());
        drop(weir);
    }
    Ok(Alone {
        switch: "weir",
        bench: "updates",
        flow_entries: entries,
        flow_mods_per_s: Spread::of(&rates),
        samples: rates.iter().map(|rate| rate.round()).collect(),
        delete_all_s: Spread::of(&deletions),
    })
}
