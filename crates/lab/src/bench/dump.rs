//! `weir bench dump`: a list of all flow entries while the switch forwards, and who waits for
//! it.
//!
//! A view of the scenario `datapath-dump`: the list is asked for again and again while packets
//! come; beside it stand the same packets in peace. Echo requests by another connection show how
//! long a controller would wait.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::beside::Compared;
use super::common::{Common, Row};
use super::outcome::rounded;
use super::series::Spread;
use super::updates::TrafficArgs;
use crate::workload::made;

const EXAMPLES: &str = "\
Examples:
  weir bench dump
  weir bench dump --entries 100000 --load 90 --repeats 10 --json";

/// Selection and manner of the measurement.
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
        let (traffic, what) = (&self.traffic, (self.entries, None));
        self.common.run(0, |run| {
            traffic.measure(run, "datapath-dump", what, |run, found, compared, offered| {
                let lists_s = found.raw::<Vec<f64>>("lists_s")?.concat();
                run.row(&Dump {
                    switch: "weir",
                    bench: "dump",
                    flow_entries: self.entries,
                    offered_mpps: offered.map(rounded),
                    load_percent: offered.map(|_| self.traffic.load),
                    list_s: Spread::of(&lists_s),
                    lists: lists_s.len(),
                    bytes: found.number("bytes") as u64,
                    compared,
                })
            })
        })
    }
}
