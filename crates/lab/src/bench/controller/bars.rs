//! Bars of Weir's own controller, as rows of `weir bench controller --bars`.
//!
//! A bar is a row here: what is measured, beside whom, and what is asked of which figure. Figures
//! that depend on the machine are asked for as they were on the machine where they were set; a
//! ratio to a peer holds on any. A bar whose peer is not installed is not met.

use anyhow::{Result, bail};

use super::super::bar::{AbsentRow, ThresholdOf};
use super::super::common::Run;
use super::ControllerBenchArgs;
use super::cluster;
use super::contenders::Contender;
use super::flow_entries;
use super::rows::FigureRow;
use super::trial::Mode;
use super::turns::in_turns;
use crate::names;
use crate::settings::AppKind;

/// Bar of the figure with this suffix.
type Ask = (&'static str, ThresholdOf, f64);

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct BarScenario {
    name: &'static str,
    kind: BarKind,
    mode: Mode,
    switches: u32,
    app: AppKind,
    subject: Subject,
    peer: Option<Subject>,
    asks: &'static [Ask],
}

/// Kind of a scenario's measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BarKind {
    /// With emulated switches.
    Fleet,
    /// Entries are loaded into real switches.
    FlowEntries,
    /// A cluster of three with real switches, whose busiest node is killed.
    Cluster,
}

/// Subject of a measurement.
#[derive(Clone, Copy, Debug)]
enum Subject {
    /// Weir on a core of its own.
    Weir,
    /// Weir on a core of its own that does not sleep at once after a packet-in.
    WeirBusyPoll,
    /// Weir with TLS.
    WeirTls,
    /// Weir with this many shards on all cores, which the emulator shares.
    WeirShards(&'static str),
    /// Another by the name that `--vs` takes.
    Peer(&'static str),
}

const OVS: Subject = Subject::Peer("ovs-testcontroller");

const LEARNING: &[Ask] =
    &[("", ThresholdOf::ValueAtLeast, 3_500_000.0), ("", ThresholdOf::RatioAtLeast, 20.0)];

/// Every scenario.
const ALL: &[BarScenario] = &[
    learning("learning-switch-1", 1),
    learning("learning-switch-16", 16),
    learning("learning-switch-64", 64),
    BarScenario {
        name: "four-shards",
        subject: Subject::WeirShards("4"),
        peer: Some(Subject::WeirShards("1")),
        asks: &[("", ThresholdOf::RatioAtLeast, 1.6)],
        ..learning("four-shards", 64)
    },
    BarScenario {
        subject: Subject::Peer("weir-python"),
        peer: Some(Subject::Peer("os-ken")),
        asks: &[("", ThresholdOf::RatioAtLeast, 20.0)],
        ..learning("python-os-ken", 16)
    },
    BarScenario {
        subject: Subject::Peer("weir-python"),
        asks: &[("", ThresholdOf::RatioAtLeast, 1.0)],
        ..learning("python-ovs", 16)
    },
    BarScenario {
        name: "latency",
        mode: Mode::Latency,
        asks: &[("p50", ThresholdOf::RatioAtMost, 0.5), ("p99", ThresholdOf::RatioAtMost, 0.5)],
        ..learning("latency", 1)
    },
    BarScenario {
        mode: Mode::Latency,
        subject: Subject::WeirBusyPoll,
        asks: &[("p50", ThresholdOf::RatioAtMost, 0.5), ("p99", ThresholdOf::RatioAtMost, 0.5)],
        ..learning("latency-busy-poll", 1)
    },
    BarScenario {
        name: "ceiling-tls",
        app: AppKind::Hub,
        subject: Subject::WeirTls,
        peer: Some(Subject::Weir),
        asks: &[("", ThresholdOf::RatioAtLeast, 0.7)],
        ..learning("ceiling-tls", 16)
    },
    storm(
        "storm",
        Subject::Weir,
        &[
            ("", ThresholdOf::ValueAtMost, 10.0),
            ("idle-cpu", ThresholdOf::ValueAtMost, 10.0),
            ("memory", ThresholdOf::ValueAtMost, 64.0),
        ],
    ),
    storm(
        "storm-tls",
        Subject::WeirTls,
        &[
            ("", ThresholdOf::ValueAtMost, 60.0),
            ("idle-cpu", ThresholdOf::ValueAtMost, 10.0),
            ("memory", ThresholdOf::ValueAtMost, 64.0),
        ],
    ),
    BarScenario {
        kind: BarKind::FlowEntries,
        peer: None,
        asks: &[("controller-cpu", ThresholdOf::ValueAtMost, 50.0)],
        ..learning("flow-entries", 100)
    },
    BarScenario {
        kind: BarKind::Cluster,
        peer: None,
        asks: &[
            ("", ThresholdOf::LargestAtMost, 2.0),
            ("entries-lost", ThresholdOf::LargestAtMost, 0.0),
            ("packets-lost", ThresholdOf::LargestAtMost, 0.0),
        ],
        ..learning("cluster", 12)
    },
];

const fn learning(name: &'static str, switches: u32) -> BarScenario {
    BarScenario {
        name,
        kind: BarKind::Fleet,
        mode: Mode::Throughput,
        switches,
        app: AppKind::LearningSwitch,
        subject: Subject::Weir,
        peer: Some(OVS),
        asks: LEARNING,
    }
}

const fn storm(name: &'static str, subject: Subject, asks: &'static [Ask]) -> BarScenario {
    BarScenario {
        mode: Mode::Storm,
        app: AppKind::Hub,
        subject,
        peer: None,
        asks,
        ..learning(name, 10_000)
    }
}

/// The scenarios with these names; all when none is named.
///
/// # Errors
/// There is none of that name; which there are.
pub(super) fn wanted(names: &[String]) -> Result<Vec<BarScenario>> {
    let unknown = names.iter().find(|name| ALL.iter().all(|bar| bar.name != name.as_str()));
    if let Some(name) = unknown {
        bail!(names::unknown("bar", name, ALL.iter().map(|bar| bar.name)));
    }
    let is_wanted =
        |bar: &&BarScenario| names.is_empty() || names.iter().any(|name| name == bar.name);
    Ok(ALL.iter().filter(is_wanted).copied().collect())
}

impl BarScenario {
    /// Number of its measurements, where everything is installed.
    pub(super) fn steps(&self, repeats: usize) -> usize {
        repeats * if self.peer.is_some() { 2 } else { 1 }
    }

    /// Measures the figures of the scenario, and holds them against what is asked.
    ///
    /// # Errors
    /// Weir does not start or serve, or the run was interrupted.
    pub(super) fn measure(&self, args: &ControllerBenchArgs, run: &mut Run) -> Result<()> {
        let rows = match self.kind {
            BarKind::Fleet => match self.with_fleet(args, run)? {
                Ok(rows) => rows,
                Err(missing) => return self.absent(run, &missing),
            },
            BarKind::FlowEntries => {
                let measured = flow_entries::measure(self.switches, args.entries, run)?;
                FigureRow::alone(self.name, &measured)
            }
            BarKind::Cluster => match cluster::check() {
                Ok(etcd) => {
                    FigureRow::alone(self.name, &cluster::measure(self.switches, &etcd, run)?)
                }
                Err(missing) => return self.absent(run, &missing.to_string()),
            },
        };
        for row in self.held_against(rows) {
            run.row(&row)?;
        }
        Ok(())
    }

    /// A row that says why there is no figure, or no ratio, for who reads rows only.
    fn absent(&self, run: &mut Run, why: &str) -> Result<()> {
        run.row(&AbsentRow { row: self.name, dut: None, absent: why.to_owned() })
    }

    /// The rows of a scenario with emulated switches, or what its subject needs that is not
    /// installed.
    fn with_fleet(
        &self,
        args: &ControllerBenchArgs,
        run: &mut Run,
    ) -> Result<Result<Vec<FigureRow>, String>> {
        let mut setup = args.setup(run, self.mode, Some(self.switches))?;
        setup.name = self.name.to_owned();
        setup.app = self.app;
        if let Subject::WeirShards(_) = self.subject {
            setup.controller_cores.extend(setup.fleet.cores.iter().copied());
            setup.fleet.cores.clone_from(&setup.controller_cores);
        }
        let subject = self.subject.contender()?;
        if let Err(missing) = subject.check(&setup.paths) {
            return Ok(Err(format!("{missing:#}")));
        }
        let mut contenders = vec![subject];
        if let Some(peer) = self.peer {
            let peer = peer.contender()?;
            match peer.check(&setup.paths) {
                Ok(()) => contenders.push(peer),
                Err(missing) => self.absent(run, &format!("{missing:#}"))?,
            }
        }
        in_turns(&contenders, &setup, run).map(Ok)
    }

    /// The rows, with one for each thing that is asked of the same figure.
    fn held_against(&self, rows: Vec<FigureRow>) -> Vec<FigureRow> {
        let mut all = Vec::new();
        for row in rows {
            let is_asked = |(suffix, ..): &&Ask| {
                let join = if suffix.is_empty() { "" } else { "-" };
                row.row == format!("{}{join}{suffix}", self.name)
            };
            let asked: Vec<FigureRow> = self
                .asks
                .iter()
                .filter(is_asked)
                .map(|(_, of, bar)| {
                    let mut row = row.clone();
                    row.hold_against(*bar, *of);
                    row
                })
                .collect();
            if asked.is_empty() {
                all.push(row);
            } else {
                all.extend(asked);
            }
        }
        all
    }
}

impl Subject {
    fn contender(self) -> Result<Contender> {
        Ok(match self {
            Self::Weir => Contender::weir("weir", &[]),
            Self::WeirBusyPoll => Contender::weir("weir-busy-poll", &["--busy-poll", "50"]),
            Self::WeirTls => Contender::weir("weir-tls", &[]).with_tls(true),
            Self::WeirShards(count) => {
                Contender::weir(&format!("weir-{count}-shards"), &["--shards", count])
            }
            Self::Peer(name) => Contender::find(name, &[])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ALL, wanted};

    #[test]
    fn bars_are_found_by_name() {
        let names: BTreeSet<_> = ALL.iter().map(|bar| bar.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(wanted(&[]).unwrap().len(), ALL.len());
        assert_eq!(wanted(&["latency".to_owned()]).unwrap()[0].switches, 1);
        // The page has a line for each, and names none that is not there.
        let page = include_str!("../../../../../docs/speed.md");
        let table = page.split("## Controllers").nth(1).and_then(|rest| rest.split("\n## ").next());
        let table = table.unwrap();
        for name in &names {
            let has_line = table
                .lines()
                .any(|line| line.starts_with('|') && line.contains(&format!("`{name}")));
            assert!(has_line, "no line of {name} in docs/speed.md");
        }
        let named = table.lines().filter_map(|line| line.split_once(" --bars ")).map(|(_, it)| it);
        let named: Vec<_> = named.filter(|words| !words.starts_with("--")).collect();
        let [words] = named.as_slice() else { panic!("{named:?}") };
        let words = words.split(' ').next().unwrap().split(',').map(str::to_owned);
        assert!(wanted(&words.collect::<Vec<_>>()).is_ok());
        let error = wanted(&["speed".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("latency") && error.contains("storm-tls"), "{error}");
        assert!(ALL.iter().all(|bar| !bar.asks.is_empty() && bar.subject.contender().is_ok()));
    }
}
