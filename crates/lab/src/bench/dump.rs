//! `weir bench dump`: a list of all flow entries while the switch forwards, and who waits for it.
//!
//! The list is asked for again and again while packets come by the clock; beside it stand the same
//! packets in peace. Echo requests by another connection show how long a controller would wait.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;
use openflow::Version;
use serde::Serialize;

use super::beside::{Compared, beside};
use super::common::{Common, Row, Run};
use super::outcome::rounded;
use super::scratch;
use super::series::Spread;
use super::updates::TrafficArgs;
use super::weir::Weir;
use crate::workload::made;

const EXAMPLES: &str = "\
Examples:
  weir bench dump
  weir bench dump --entries 100000 --load 90 --repeats 10 --json";

/// What to measure and how.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct DumpArgs {
    /// Flow entries that are listed
    #[arg(long, default_value_t = 1_000_000, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(made::ENTRIES_MAX)))]
    entries: u32,
    #[command(flatten)]
    traffic: TrafficArgs,
    #[command(flatten)]
    common: Common,
}

/// Lists while it forwards.
#[derive(Debug, Serialize)]
struct Dump {
    switch: &'static str,
    bench: &'static str,
    flow_entries: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    offered_mpps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load_percent: Option<u8>,
    /// Seconds of a list, from the question to its last byte.
    list_s: Spread,
    lists: usize,
    bytes: u64,
    #[serde(flatten)]
    compared: Compared,
}

impl Row for Dump {
    fn text(&self) -> String {
        let offered = match (self.offered_mpps, self.load_percent) {
            (Some(mpps), Some(percent)) => format!("{mpps:.3} Mpps come in ({percent} %)"),
            _ => "as many packets as are taken".to_owned(),
        };
        format!(
            "dump             {offered}; {} entries listed in {:.2} s ({:.2} to {:.2}, {} lists)\n\
             {}",
            self.flow_entries,
            self.list_s.median,
            self.list_s.min,
            self.list_s.max,
            self.lists,
            self.compared.text("dump")
        )
    }

    fn is_good(&self) -> bool {
        self.compared.is_good()
    }
}

impl DumpArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        self.common.run(2, |run| {
            let folder = scratch()?;
            let trace = made::trace(folder.path(), self.traffic.flows)?;
            run.progress.begin("lists at the full rate");
            let full = self.lists(run, self.traffic.ports(&trace, None), None)?;
            let most = full.compared.quiet.mpps.median;
            run.row(&full)?;
            run.progress.advance(1);
            run.progress.begin(&format!("lists at {} %", self.traffic.load));
            let offered = most * f64::from(self.traffic.load) / 100.0;
            let ports = self.traffic.ports(&trace, Some(1e6 * offered));
            let part = self.lists(run, ports, Some(offered))?;
            run.row(&part)?;
            run.progress.advance(1);
            Ok(())
        })
    }

    fn lists(&self, run: &Run, ports: Vec<String>, offered: Option<f64>) -> Result<Dump> {
        let folder = scratch()?;
        let mut weir = Weir::launch(&run.launch(ports), folder.path(), &run.cancel)?;
        weir.load(Version::V1_3, made::entries(self.entries))?;
        weir.warm_up(&run.cancel)?;
        let mut client = weir.connect(Version::V1_3)?;
        let (mut seconds, mut bytes) = (Vec::new(), 0);
        let wanted = u64::from(self.entries);
        let compared = beside(run, &mut weir, |until| {
            loop {
                let listed = client.list_flows()?;
                ensure!(
                    listed.entries == wanted,
                    "{} entries were listed, and there are {wanted}",
                    listed.entries
                );
                bytes = listed.bytes;
                seconds.push(listed.seconds);
                if Instant::now() >= until {
                    return Ok(());
                }
            }
        })?;
        Ok(Dump {
            switch: "weir",
            bench: "dump",
            flow_entries: self.entries,
            offered_mpps: offered.map(rounded),
            load_percent: offered.map(|_| self.traffic.load),
            list_s: Spread::of(&seconds),
            lists: seconds.len(),
            bytes,
            compared,
        })
    }
}
