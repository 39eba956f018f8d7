//! `weir bench victim`: what is left to somebody's packets when an attacker's come in beside them.
//!
//! Both enter the same forwarding thread, each by a port of its own, both as fast as they are
//! taken, and meet the flow entries of both workloads in the same tables. The victim's fair share
//! is what it has beside a second copy of itself. The attack comes as its trace is, and numbered:
//! then every packet of it is of a new flow too.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use openflow::PortNo;
use serde::Serialize;

use super::common::{Common, Row, Run};
use super::outcome::rounded;
use super::scratch;
use super::series::Spread;
use super::weir::Weir;
use crate::held::Held;
use crate::method::replay::RUN_IN;
use crate::switch_client::SwitchClient;
use crate::workload::Workload;

const EXAMPLES: &str = "\
Examples:
  contrib/workloads/workloads.py make l2l3-10k,mask-flood /tmp/w
  weir bench victim /tmp/w l2l3-10k mask-flood
  weir bench victim /tmp/w l2l3-1k acl-1k --repeats 9 --json";

/// What stands beside the victim.
const BESIDE: [&str; 4] = ["nothing", "itself", "attack", "attack, numbered"];

/// Where the numbers of an attack are: the transport ports of IPv4 without tag and options.
const NUMBER_AT: usize = 34;

/// What to measure and how.
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

/// What the victim had. Rates are millions of packets a second.
#[derive(Debug, Serialize)]
struct Victim {
    switch: &'static str,
    bench: &'static str,
    victim: String,
    attack: String,
    beside: &'static str,
    mpps: Spread,
    samples: Vec<f64>,
    /// What came in beside it.
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

/// One measurement: the victim's rate and that of what stands beside it.
#[derive(Clone, Copy, Debug)]
struct Pair {
    victim: f64,
    beside: f64,
}

/// Packets that came in by ports 1 and 3, and that left by port 2, at a moment.
struct Came {
    at: Instant,
    victim: u64,
    beside: u64,
    left: u64,
}

impl Came {
    fn since(&self, first: &Self) -> Pair {
        let seconds = self.at.duration_since(first.at).as_secs_f64().max(1e-9);
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds / 1e6;
        Pair { victim: rate(self.victim, first.victim), beside: rate(self.beside, first.beside) }
    }

    fn inside(&self) -> i64 {
        (self.victim + self.beside) as i64 - self.left as i64
    }
}

fn came(client: &mut SwitchClient) -> Result<Came> {
    let before = Instant::now();
    let stats = client.port_stats()?;
    let at = before + before.elapsed() / 2;
    let port = |number: u32| {
        let found = stats.iter().find(|port| port.port_no == PortNo(number));
        found.with_context(|| format!("the switch reports no counters of port {number}"))
    };
    let (victim, beside) = (port(1)?.rx_packets, port(3)?.rx_packets);
    Ok(Came { at, victim, beside, left: port(2)?.tx_packets })
}

impl VictimArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let victim = Workload::find(&self.dir, &self.victim)?;
        let attack = Workload::find(&self.dir, &self.attack)?;
        let version = victim.version()?;
        ensure!(
            version == attack.version()?,
            "the flow entries of {} and {} need different versions of OpenFlow",
            self.victim,
            self.attack
        );
        self.common.run(2, |run| {
            run.progress.begin("loading");
            let folders = [scratch()?, scratch()?, scratch()?, scratch()?];
            let of = |trace: &Path| format!("pcap:{}?loop=true", trace.display());
            let beside = [
                "null:nothing".to_owned(),
                of(&victim.trace),
                of(&attack.trace),
                format!("{}&number={NUMBER_AT}", of(&attack.trace)),
            ];
            let (mut switches, mut held) = (Vec::new(), Vec::new());
            for (folder, beside) in folders.iter().zip(beside) {
                let null = |name: &str| format!("null:{name}");
                let ports = vec![of(&victim.trace), null("out"), beside, null("unused")];
                let mut weir = Weir::launch(&run.launch(ports), folder.path(), &run.cancel)?;
                let entries = attack.flow_mods(1)?.chain(victim.flow_mods(1)?);
                weir.load(version, entries)?;
                weir.warm_up(&run.cancel)?;
                held.push(Some(Held::hold(weir.pid())?));
                switches.push(weir);
            }
            run.progress.advance(1);
            run.progress.begin("measuring in turns");
            let (all, lost) = in_turns(run, &mut switches, &mut held, version)?;
            drop(held);
            self.rows(run, &all, &lost)
        })
    }

    fn rows(&self, run: &mut Run, all: &[Vec<Pair>], lost: &[i64]) -> Result<()> {
        let fair: Vec<f64> = all
            .get(1)
            .map(|pairs| pairs.iter().map(|pair| pair.victim).collect())
            .unwrap_or_default();
        for ((pairs, beside), lost) in all.iter().zip(BESIDE).zip(lost) {
            let rates: Vec<f64> = pairs.iter().map(|pair| pair.victim).collect();
            let others: Vec<f64> = pairs.iter().map(|pair| pair.beside).collect();
            let shares = rates.iter().zip(&fair).map(|(rate, fair)| 100.0 * rate / fair.max(1e-9));
            run.row(&Victim {
                switch: "weir",
                bench: "victim",
                victim: self.victim.clone(),
                attack: self.attack.clone(),
                beside,
                mpps: Spread::of(&rates),
                samples: rates.iter().copied().map(rounded).collect(),
                beside_mpps: Spread::of(&others),
                fair_percent: Spread::of(&shares.collect::<Vec<f64>>()),
                lost: *lost,
            })?;
        }
        Ok(())
    }
}

/// Measures each switch while the others are held still; what each gave, round by round, and lost.
fn in_turns(
    run: &Run,
    switches: &mut [Weir],
    held: &mut [Option<Held>],
    version: openflow::Version,
) -> Result<(Vec<Vec<Pair>>, Vec<i64>)> {
    let (mut all, mut lost) = (vec![Vec::new(); switches.len()], vec![0; switches.len()]);
    for _ in 0..run.repeats {
        let places = switches.iter_mut().zip(held.iter_mut()).zip(all.iter_mut().zip(&mut lost));
        for ((weir, held), (pairs, lost)) in places {
            *held = None;
            run.cancel.sleep(RUN_IN)?;
            let first = came(weir.client(version)?)?;
            run.cancel.sleep(Duration::from_secs_f64(run.window.seconds))?;
            let last = came(weir.client(version)?)?;
            pairs.push(last.since(&first));
            *lost += last.inside() - first.inside();
            *held = Some(Held::hold(weir.pid())?);
        }
    }
    Ok((all, lost))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Came;

    #[test]
    fn shares_are_what_came_in_by_each_port() {
        let at = Instant::now();
        let first = Came { at, victim: 0, beside: 0, left: 0 };
        let at = at + Duration::from_millis(500);
        let last = Came { at, victim: 1_000_000, beside: 500_000, left: 1_499_999 };
        let pair = last.since(&first);
        assert!((pair.victim - 2.0).abs() < 1e-9 && (pair.beside - 1.0).abs() < 1e-9, "{pair:?}");
        assert_eq!(last.inside(), 1);
    }
}
