//! `weir bench victim`: what is left to somebody's packets when an attacker's come in beside them.
//!
//! A view of the scenario `datapath-victim` with two workloads: the flow entries of both are in the
//! same tables whatever comes. The attack comes as its trace is, and numbered: then every packet of
//! it is of a new flow too.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;

use super::common::{Common, Row, Run};
use super::outcome::rounded;
use super::replay::{ReplayPlan, of_workload, weir};
use super::series::Spread;
use crate::settings::{BesidePackets, ReplayBeside};
use crate::workload::Workload;

const EXAMPLES: &str = "\
Examples:
  contrib/workloads/workloads.py make l2l3-10k,mask-flood /tmp/w
  weir bench victim /tmp/w l2l3-10k mask-flood
  weir bench victim /tmp/w l2l3-1k acl-1k --repeats 9 --json";

/// Offset of an attack's numbers: the transport ports of IPv4 without tag and options.
const NUMBER_AT: u16 = 34;

/// Traffic beside the victim.
const BESIDE: [(&str, BesidePackets, Option<u16>); 4] = [
    ("nothing", BesidePackets::None, None),
    ("itself", BesidePackets::Same, None),
    ("attack", BesidePackets::Other, None),
    ("attack, numbered", BesidePackets::Other, Some(NUMBER_AT)),
];

/// Selection and manner of the measurement.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct VictimArgs {
    /// The folder of the workloads
    dir: PathBuf,
    /// The workload whose packets are to be forwarded all the same
    victim: String,
    /// The workload of the attacker
    attack: String,
    #[command(flatten)]
    common: Common,
}

/// Results of the victim. Rates are millions of packets a second.
#[derive(Debug, Serialize)]
struct Victim {
    switch: &'static str,
    bench: &'static str,
    victim: String,
    attack: String,
    beside: &'static str,
    mpps: Spread,
    samples: Vec<f64>,
    /// Rate beside it.
    beside_mpps: Spread,
    /// Percent of the fair share, round by round.
    fair_percent: Spread,
    /// Packets of both that came in and did not leave.
    lost: i64,
}

impl Row for Victim {
    fn text(&self) -> String {
        format!(
            "{} beside {:18} {:8.3} Mpps ({:.3} to {:.3}), {:.0} % of its fair share ({:.0} to \
             {:.0}); the other {:.3} Mpps; {} lost\n",
            self.victim,
            self.beside,
            self.mpps.median,
            self.mpps.min,
            self.mpps.max,
            self.fair_percent.median,
            self.fair_percent.min,
            self.fair_percent.max,
            self.beside_mpps.median,
            self.lost
        )
    }

    fn is_good(&self) -> bool {
        self.lost == 0
    }
}

impl VictimArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let victim = Workload::find(&self.dir, &self.victim)?;
        let attack = Workload::find(&self.dir, &self.attack)?;
        ensure!(
            victim.version()? == attack.version()?,
            "the flow entries of {} and {} need different versions of OpenFlow",
            self.victim,
            self.attack
        );
        self.common.run(0, |run| self.measure(run, &victim))
    }

    fn measure(&self, run: &mut Run, victim: &Workload) -> Result<()> {
        let of = of_workload(victim, None)?;
        let value = |(beside, packets, number_at): (&str, BesidePackets, Option<u16>)| {
            let name = Some(self.attack.clone());
            let mut set = of.clone();
            if let Some(replay) = &mut set.replay {
                replay.beside = Some(ReplayBeside { packets, name, number_at });
            }
            (beside.to_owned(), set)
        };
        let plan = ReplayPlan {
            scenario: "datapath-victim",
            values: BESIDE.map(value).into(),
            duts: vec![weir()?],
            repeats: run.repeats,
        };
        let all = plan.measure(run)?;
        let fair = all.get(1).map(|found| found.values("victim_mpps")).unwrap_or_default();
        for (found, (beside, ..)) in all.iter().zip(BESIDE) {
            let rates = found.values("victim_mpps");
            let shares = rates.iter().zip(&fair).map(|(rate, fair)| 100.0 * rate / fair.max(1e-9));
            run.row(&Victim {
                switch: "weir",
                bench: "victim",
                victim: self.victim.clone(),
                attack: self.attack.clone(),
                beside,
                mpps: Spread::of(&rates),
                samples: rates.iter().copied().map(rounded).collect(),
                beside_mpps: Spread::of(&found.values("victim_beside_mpps")),
                fair_percent: Spread::of(&shares.collect::<Vec<f64>>()),
                lost: found.sum("victim_lost") as i64,
            })?;
        }
        Ok(())
    }
}
