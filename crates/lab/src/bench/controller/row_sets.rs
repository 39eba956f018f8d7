//! The rows of `weir bench controller --rows`: Weir's own controller in set-ups that are worth
//! knowing.
//!
//! A set is a row here: what is measured, and beside whom. A peer that is not installed has a row
//! that says so. It must never hold a figure against a wished one: that is the project's own
//! matter.

use anyhow::{Result, bail};

use super::super::common::Run;
use super::super::peer::AbsentRow;
use super::ControllerBenchArgs;
use super::cluster;
use super::contenders::Contender;
use super::flow_entries;
use super::rows::FigureRow;
use super::trial::{Measured, Mode};
use super::turns::in_turns;
use crate::names;
use crate::settings::AppKind;

/// Rows that are measured together.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowSet {
    name: &'static str,
    kind: SetKind,
    mode: Mode,
    switches: u32,
    app: AppKind,
    subject: Subject,
    peer: Option<Subject>,
}

/// Kind of a set's measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SetKind {
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

/// Every set.
const ALL: &[RowSet] = &[
    learning("learning-switch-1", 1),
    learning("learning-switch-16", 16),
    learning("learning-switch-64", 64),
    RowSet {
        name: "four-shards",
        subject: Subject::WeirShards("4"),
        peer: Some(Subject::WeirShards("1")),
        ..learning("four-shards", 64)
    },
    RowSet {
        subject: Subject::Peer("weir-python"),
        peer: Some(Subject::Peer("os-ken")),
        ..learning("python-os-ken", 16)
    },
    RowSet { subject: Subject::Peer("weir-python"), ..learning("python-ovs", 16) },
    RowSet { name: "latency", mode: Mode::Latency, ..learning("latency", 1) },
    RowSet {
        mode: Mode::Latency,
        subject: Subject::WeirBusyPoll,
        ..learning("latency-busy-poll", 1)
    },
    RowSet {
        name: "ceiling-tls",
        app: AppKind::Hub,
        subject: Subject::WeirTls,
        peer: Some(Subject::Weir),
        ..learning("ceiling-tls", 16)
    },
    storm("storm", Subject::Weir),
    storm("storm-tls", Subject::WeirTls),
    RowSet { kind: SetKind::FlowEntries, peer: None, ..learning("flow-entries", 100) },
    RowSet { kind: SetKind::Cluster, peer: None, ..learning("cluster", 12) },
];

const fn learning(name: &'static str, switches: u32) -> RowSet {
    RowSet {
        name,
        kind: SetKind::Fleet,
        mode: Mode::Throughput,
        switches,
        app: AppKind::LearningSwitch,
        subject: Subject::Weir,
        peer: Some(OVS),
    }
}

const fn storm(name: &'static str, subject: Subject) -> RowSet {
    RowSet { mode: Mode::Storm, app: AppKind::Hub, subject, peer: None, ..learning(name, 10_000) }
}

/// The sets with these names; all when none is named.
///
/// # Errors
/// There is none of that name; which there are.
pub(super) fn wanted(names: &[String]) -> Result<Vec<RowSet>> {
    let unknown = names.iter().find(|name| ALL.iter().all(|set| set.name != name.as_str()));
    if let Some(name) = unknown {
        bail!(names::unknown("set of rows", name, ALL.iter().map(|set| set.name)));
    }
    let is_wanted = |set: &&RowSet| names.is_empty() || names.iter().any(|name| name == set.name);
    Ok(ALL.iter().filter(is_wanted).copied().collect())
}

impl RowSet {
    /// Number of its measurements, where everything is installed.
    pub(super) fn steps(&self, repeats: usize) -> usize {
        repeats * if self.peer.is_some() { 2 } else { 1 }
    }

    /// Measures the figures of the set.
    ///
    /// # Errors
    /// Weir does not start or serve, or the run was interrupted.
    pub(super) fn measure(&self, args: &ControllerBenchArgs, run: &mut Run) -> Result<()> {
        let rows = match self.kind {
            SetKind::Fleet => match self.with_fleet(args, run)? {
                Ok(rows) => rows,
                Err(missing) => return self.absent(run, &missing),
            },
            SetKind::FlowEntries => {
                self.alone(run, |run| flow_entries::measure(self.switches, args.entries, run))?
            }
            SetKind::Cluster => match cluster::check() {
                Ok(etcd) => self.alone(run, |run| cluster::measure(self.switches, &etcd, run))?,
                Err(missing) => return self.absent(run, &missing.to_string()),
            },
        };
        rows.iter().try_for_each(|row| run.row(row))
    }

    /// Rows of what is measured as often as the run says, without a peer.
    fn alone(
        &self,
        run: &mut Run,
        measure: impl Fn(&Run) -> Result<Measured>,
    ) -> Result<Vec<FigureRow>> {
        let mut measured = Vec::new();
        for repeat in 0..run.repeats {
            run.progress.begin(&format!("{}, {}", self.name, repeat + 1));
            measured.push(measure(run)?);
            run.progress.advance(1);
        }
        Ok(FigureRow::alone(self.name, &measured))
    }

    /// A row that says why there is no figure, or no ratio, for who reads rows only.
    fn absent(&self, run: &mut Run, why: &str) -> Result<()> {
        run.row(&AbsentRow { row: self.name, absent: why.to_owned() })
    }

    /// The rows of a set with emulated switches, or what its subject needs that is not
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
    fn sets_are_found_by_name() {
        let names: BTreeSet<_> = ALL.iter().map(|set| set.name).collect();
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
        let named = table.lines().filter_map(|line| line.split_once(" --rows ")).map(|(_, it)| it);
        let named: Vec<_> = named.filter(|words| !words.starts_with("--")).collect();
        let [words] = named.as_slice() else { panic!("{named:?}") };
        let words = words.split(' ').next().unwrap().split(',').map(str::to_owned);
        assert!(wanted(&words.collect::<Vec<_>>()).is_ok());
        let error = wanted(&["speed".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("latency") && error.contains("storm-tls"), "{error}");
        assert!(ALL.iter().all(|set| set.subject.contender().is_ok()));
    }
}
