//! `weir bench new-flows`: every packet is of a flow that was never seen before.
//!
//! A view of the scenario `datapath-new-flows`: the port numbers each frame in four of its bytes,
//! so that no two frames of a run are alike and no cache can know the answer. Beside it stands the
//! same trace without numbers, in turns. Where the tables do not look at the bytes that vary, the
//! caches hit: that is reported, and is no measurement of new flows.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::common::{Common, Row, Run};
use super::figures::Figures;
use super::replay::{ReplayPlan, of_workload, weir};
use super::series::Spread;
use crate::settings::Settings;
use crate::workload::Workload;

const EXAMPLES: &str = "\
Examples:
  contrib/workloads/workloads.py make acl-1k,lpm-100k /tmp/w
  weir bench new-flows /tmp/w acl-1k
  weir bench new-flows /tmp/w lpm-100k --vary destination --json";

/// Bytes of an IPv4 frame without tag and options that differ from frame to frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Vary {
    /// The transport ports.
    Ports,
    /// The IPv4 source address.
    Source,
    /// The IPv4 destination address.
    Destination,
}

impl Vary {
    fn offset(self) -> u16 {
        match self {
            Self::Ports => 34,
            Self::Source => 26,
            Self::Destination => 30,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ports => "ports",
            Self::Source => "source",
            Self::Destination => "destination",
        }
    }
}

/// Selection and manner of the measurement.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct NewFlowsArgs {
    /// The folder of the workloads
    dir: PathBuf,
    /// Workloads of IPv4; packets that no entry takes leave by one of priority 0 that is added
    #[arg(required = true)]
    name: Vec<String>,
    /// Bytes that differ from packet to packet
    #[arg(long, value_enum, default_value_t = Vary::Ports)]
    vary: Vary,
    #[command(flatten)]
    common: Common,
}

/// Results of one workload. Rates are millions of packets a second.
#[derive(Debug, Serialize)]
struct NewFlows {
    switch: &'static str,
    bench: &'static str,
    workload: String,
    vary: &'static str,
    flow_entries: u64,
    mpps: Spread,
    samples: Vec<f64>,
    ns_per_packet: f64,
    /// The part of the packets that no cache knew.
    new: f64,
    lost: i64,
    /// The same trace without numbers.
    known: Spread,
    again: usize,
    stages: Vec<Figures>,
}

/// Less than this part of packets that no cache knew is no measurement of new flows.
const NEW_MIN: f64 = 0.99;

impl Row for NewFlows {
    fn text(&self) -> String {
        let mut text = format!(
            "{:18} {:9.3} M new flows/s ({:.3} to {:.3}), {:.0} ns each, {} lost; {} entries, {} \
             vary\n",
            self.workload,
            self.mpps.median,
            self.mpps.min,
            self.mpps.max,
            self.ns_per_packet,
            self.lost,
            self.flow_entries,
            self.vary
        );
        text += &format!(
            "  known flows      {:9.3} Mpps ({:.3} to {:.3}): the same trace as it is\n",
            self.known.median, self.known.min, self.known.max
        );
        if self.new < NEW_MIN {
            text += &format!(
                "  not new: the caches knew {:.1} % of the packets, since no table looks at what \
                 varies; choose another --vary\n",
                100.0 * (1.0 - self.new)
            );
        }
        if self.again > 0 {
            text += &format!("  measured again   {:9} times for want of the core\n", self.again);
        }
        text + &self.stages.iter().map(Figures::text).collect::<String>()
    }

    fn is_good(&self) -> bool {
        self.lost == 0 && self.new >= NEW_MIN
    }
}

impl NewFlowsArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let workloads = Workload::find_all(&self.dir, &self.name)?;
        self.common.run(0, |run| {
            for workload in &workloads {
                let row = measure(run, workload, self.vary).context(workload.name.clone())?;
                run.row(&row)?;
            }
            Ok(())
        })
    }
}

/// Entry for the packets that match no entry of the workload.
const REST: &str = "priority=0,actions=output:2";

fn measure(run: &Run, workload: &Workload, vary: Vary) -> Result<NewFlows> {
    let value = |name: &str, number_at| -> Result<(String, Settings)> {
        let flows = Some(vec![REST.to_owned()]);
        Ok((name.to_owned(), Settings { flows, ..of_workload(workload, number_at)? }))
    };
    let plan = ReplayPlan {
        scenario: "datapath-new-flows",
        values: vec![value("new", Some(vary.offset()))?, value("known", None)?],
        duts: vec![weir()?],
        repeats: run.repeats,
    };
    let all = plan.measure(run)?;
    let [new, known] = all.as_slice() else { bail!("two switches have two series") };
    let (mpps, stages) = (Spread::of(&new.mpps()), new.stages());
    Ok(NewFlows {
        switch: "weir",
        bench: "new-flows",
        workload: workload.name.clone(),
        vary: vary.name(),
        flow_entries: new.number("flow_entries") as u64,
        samples: new.samples(),
        ns_per_packet: if mpps.median > 0.0 { 1e3 / mpps.median } else { 0.0 },
        mpps,
        new: stages.iter().filter_map(|worker| worker.by_tables_rate).fold(0.0, f64::max),
        lost: new.lost(),
        known: Spread::of(&known.mpps()),
        again: new.again() + known.again(),
        stages,
    })
}

#[cfg(test)]
mod tests {
    use super::{NewFlows, Row, Spread};

    #[test]
    fn what_is_not_new_is_reported_and_is_no_success() {
        let mut row = NewFlows {
            switch: "weir",
            bench: "new-flows",
            workload: "w".into(),
            vary: "ports",
            flow_entries: 3,
            mpps: Spread { median: 8.0, min: 7.0, max: 9.0 },
            samples: vec![8.0],
            ns_per_packet: 125.0,
            new: 1.0,
            lost: 0,
            known: Spread::default(),
            again: 0,
            stages: Vec::new(),
        };
        assert!(row.is_good() && row.text().contains("8.000 M new flows/s"), "{}", row.text());
        row.new = 0.25;
        assert!(!row.is_good() && row.text().contains("knew 75.0 %"), "{}", row.text());
    }
}
