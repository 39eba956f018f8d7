//! `weir bench ports`: how fast a switch forwards between devices of the kernel, beside other
//! switches.
//!
//! Hosts are network namespaces, joined to one switch by veth. All switches run at the same time,
//! each between hosts of its own, and are measured in turns (A B C C B A), the others held still by
//! a signal. The bars of the project's issue are held against the rows. It must never measure a
//! switch as what it is not: one that fell back to something else has no figure.

mod bars;
mod bed;
mod changes;
mod dut;
mod flood;
mod idle;
mod rows;
mod share;
mod tables;
mod traffic;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use netdev::sys::affinity::allowed_cpus;
use netdev::sys::netns::Namespace;
use openflow::flow::FlowModCommand;

use super::bar::AbsentRow;
use super::common::{Common, Run};
use crate::tools::Tool;
use dut::{DutKind, RunningDut};
use flood::Flows;
use rows::Samples;

const EXAMPLES: &str = "\
Examples:
  weir bench ports
  weir bench ports --bars --json
      every row, and whether the bars of the project's issue are met
  weir bench ports --dut weir,weir-kernel,linux-bridge --rows tcp_1,ping
  weir bench ports --dut weir,ovs-tso --rows udp64 --seconds 5 --repeats 7 --json

It needs root: hosts and switches live in network namespaces that go with it. Of others' programs it
uses iperf3 and ping, and Open vSwitch for ovs and ovs-tso (apt-get install iperf3 iputils-ping
openvswitch-switch); what is not installed has a row that says so, and makes the exit code 1.";

/// What to measure and how.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct PortsArgs {
    /// Switches under test; each of Weir's is held against each of the others
    #[arg(
        long,
        value_enum,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "weir,weir-busy,weir-kernel,ovs,ovs-tso,linux-bridge"
    )]
    dut: Vec<DutKind>,
    /// Measure these rows only, by the beginnings of their names
    #[arg(long, value_delimiter = ',', value_name = "ROW")]
    rows: Vec<String>,
    /// Say of each figure whether the project's issue is satisfied; one that is missed makes the
    /// exit code 1
    #[arg(long)]
    bars: bool,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=3_600))]
    seconds: u16,
    /// How often each is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: u16,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
    /// The weir binary that is measured [default: this one]
    #[arg(long, value_name = "PATH")]
    weir: Option<PathBuf>,
}

/// What a row is measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setup {
    /// Two hosts, and an entry for each way.
    Pair,
    /// Two hosts and an entry for each of 10,000 flows; and another switch of the same kind with
    /// 61,000 entries over 64 tables.
    Flows,
    /// Two pairs of hosts.
    TwoPairs,
    /// Four hosts, the first of which has the flows whose entries are changed.
    Changes,
    /// Eight ports.
    EightPorts,
}

/// What is measured while a switch runs; figures of a row in order.
type Measure = fn(&mut RunningDut, &Run) -> Result<Vec<f64>>;

/// A figure, its unit, and whether it is held against that of others.
#[derive(Clone, Copy, Debug)]
struct Figure {
    name: &'static str,
    unit: &'static str,
    is_compared: bool,
}

const fn figure(name: &'static str, unit: &'static str) -> Figure {
    Figure { name, unit, is_compared: true }
}

const fn alone(name: &'static str, unit: &'static str) -> Figure {
    Figure { name, unit, is_compared: false }
}

/// A row, or some that one measurement gives.
struct RowKind {
    name: &'static str,
    figures: &'static [Figure],
    setup: Setup,
    /// The program of others that it needs.
    tool: Option<Tool>,
    /// Whether only switches with flow tables, and a process, can do it.
    needs_tables: bool,
    /// Whether packets are forwarded.
    is_traffic: bool,
    /// What is measured with the first switch of the setup.
    measure: Measure,
    /// The same of the second, where the setup has one; its figures come behind those of the first.
    measure_second: Option<Measure>,
}

const fn row(name: &'static str, figures: &'static [Figure], measure: Measure) -> RowKind {
    let (setup, tool) = (Setup::Pair, Some(Tool::Iperf3));
    RowKind {
        name,
        figures,
        setup,
        tool,
        needs_tables: false,
        is_traffic: true,
        measure,
        measure_second: None,
    }
}

/// All rows; those with the same setup stand together.
const ROWS: &[RowKind] = &[
    row("tcp_1", &[figure("tcp_1", "Gb/s")], |dut, run| one(traffic::tcp(dut, run, 1, false))),
    row("tcp_1_reverse", &[figure("tcp_1_reverse", "Gb/s")], |dut, run| {
        one(traffic::tcp(dut, run, 1, true))
    }),
    row("tcp_4", &[figure("tcp_4", "Gb/s")], |dut, run| one(traffic::tcp(dut, run, 4, false))),
    row("tcp_4_reverse", &[figure("tcp_4_reverse", "Gb/s")], |dut, run| {
        one(traffic::tcp(dut, run, 4, true))
    }),
    RowKind {
        tool: Some(Tool::Ping),
        ..row(
            "ping_avg",
            &[figure("ping_avg", "us"), alone("ping_lost", "requests")],
            |dut, run| Ok(traffic::ping(dut, run)?.into()),
        )
    },
    row("udp64", &[figure("udp64", "kpps"), alone("udp64_offered", "kpps")], |dut, run| {
        Ok(traffic::udp64(dut, run)?.into())
    }),
    RowKind {
        setup: Setup::Flows,
        tool: None,
        needs_tables: true,
        measure_second: Some(|dut, run| {
            one(flood::forwarded(dut, &Flows::Addresses(tables::many_addresses()), run))
        }),
        ..row(
            "udp64_flows",
            &[
                figure("udp64_one_flow", "kpps"),
                figure("udp64_10k_flows", "kpps"),
                figure("udp64_61k_entries", "kpps"),
            ],
            |dut, run| {
                [Flows::One, Flows::Many].iter().map(|it| flood::forwarded(dut, it, run)).collect()
            },
        )
    },
    RowKind {
        setup: Setup::TwoPairs,
        tool: None,
        ..row(
            "fair_share",
            &[figure("fair_share", "%"), alone("fair_share_left", "kpps")],
            |dut, run| Ok(share::measure(dut, run)?.into()),
        )
    },
    RowKind {
        setup: Setup::Changes,
        tool: None,
        needs_tables: true,
        ..row(
            "flow_changes",
            &[
                figure("flow_changes", "changes/s"),
                alone("flow_changes_wrong", "packets"),
                alone("flow_changes_lost", "packets"),
            ],
            |dut, run| Ok(changes::measure(dut, run)?.into()),
        )
    },
    RowKind {
        setup: Setup::EightPorts,
        tool: None,
        needs_tables: true,
        is_traffic: false,
        ..row("idle_cpu", &[figure("idle_cpu", "%")], |dut, run| one(idle::measure(dut, run)))
    },
];

fn one(figure: Result<f64>) -> Result<Vec<f64>> {
    Ok(vec![figure?])
}

impl PortsArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let rows = self.wanted_rows()?;
        for (index, dut) in self.dut.iter().enumerate() {
            ensure!(!self.dut[..index].contains(dut), "--dut names {} twice", dut.name());
        }
        // Without the right to make it there is nothing to measure.
        Namespace::new()
            .context("kernel ports are measured in network namespaces (run as root)")?;
        let core = allowed_cpus().context("asking for the cores")?.last().copied().unwrap_or(0);
        let common = Common {
            core: u16::try_from(core).context("a core with a number beyond all limits")?,
            seconds: f64::from(self.seconds),
            repeats: self.repeats,
            json: self.json,
            quiet: self.quiet,
            weir: self.weir.clone(),
        };
        let steps = rows.len() * self.dut.len() * usize::from(self.repeats);
        common.run(steps, |run| {
            for rows in rows.chunk_by(|one, next| one.setup == next.setup) {
                self.measure(rows, run)?;
            }
            Ok(())
        })
    }

    fn wanted_rows(&self) -> Result<Vec<&'static RowKind>> {
        let all = || ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
        for wanted in &self.rows {
            let is_known = ROWS.iter().any(|row| row.name.starts_with(wanted.as_str()));
            ensure!(is_known && !wanted.is_empty(), "no row {wanted:?}: use {}", all());
        }
        let is_wanted = |row: &&RowKind| {
            let is_meant = |wanted: &String| row.name.starts_with(wanted.as_str());
            self.rows.is_empty() || self.rows.iter().any(is_meant)
        };
        Ok(ROWS.iter().filter(is_wanted).collect())
    }

    /// Starts all switches, and measures rows with the same setup.
    fn measure(&self, rows: &[&RowKind], run: &mut Run) -> Result<()> {
        let Some(setup) = rows.first().map(|row| row.setup) else { return Ok(()) };
        let mut switches = Vec::new();
        let needs_tables = rows.iter().all(|row| row.needs_tables);
        for kind in &self.dut {
            if needs_tables && !kind.has_tables() {
                run.progress.advance((rows.len() * run.repeats) as u64);
                continue;
            }
            run.progress.begin(&format!("starting {}", kind.name()));
            match start(*kind, setup, run) {
                Ok(duts) => switches.push((*kind, duts)),
                Err(why) => {
                    run.cancel.check()?;
                    for row in rows {
                        absent(run, row, Some(*kind), &why)?;
                    }
                }
            }
        }
        for row in rows {
            if let Some(Err(missing)) = row.tool.map(Tool::find) {
                absent(run, row, None, &missing.into())?;
                continue;
            }
            let samples = in_turns(row, &mut switches, run)?;
            let bars = if self.bars { bars::ALL } else { &[] };
            for line in rows::lines(&samples, bars) {
                run.row(&line)?;
            }
            for line in rows::bars_not_held(row.figures, &samples, bars) {
                run.row(&line)?;
            }
        }
        Ok(())
    }
}

/// A row that says why there is no figure, for who reads rows only.
fn absent(run: &mut Run, row: &RowKind, dut: Option<DutKind>, why: &anyhow::Error) -> Result<()> {
    let dut = dut.map(DutKind::name);
    run.row(&AbsentRow { row: row.name, dut, absent: format!("{why:#}") })
}

/// The switches of one kind that a setup needs.
fn start(kind: DutKind, setup: Setup, run: &Run) -> Result<Vec<RunningDut>> {
    kind.check()?;
    match setup {
        Setup::Pair => Ok(vec![RunningDut::start(kind, 2, tables::pair(), run)?]),
        Setup::Flows => Ok(vec![
            RunningDut::start(kind, 2, tables::many_flows(), run)?,
            RunningDut::start(kind, 2, tables::many_tables(), run)?,
        ]),
        Setup::TwoPairs => Ok(vec![RunningDut::start(kind, 4, tables::two_pairs(), run)?]),
        Setup::Changes => {
            let entries = changes::entries(FlowModCommand::Add, 0);
            Ok(vec![RunningDut::start(kind, 4, entries, run)?])
        }
        Setup::EightPorts => Ok(vec![RunningDut::start(kind, 8, tables::eight_ports(), run)?]),
    }
}

/// Measures a row with each switch in turns. One that fails is left out from then on, with a row
/// that says why.
fn in_turns(
    row: &RowKind,
    switches: &mut [(DutKind, Vec<RunningDut>)],
    run: &mut Run,
) -> Result<Vec<Samples>> {
    let mut all: Vec<Result<Vec<Vec<f64>>>> = switches.iter().map(|_| Ok(Vec::new())).collect();
    for round in 0..run.repeats {
        for step in 0..switches.len() {
            let index = if round % 2 == 0 { step } else { switches.len() - 1 - step };
            let (kind, duts) = &mut switches[index];
            run.progress.begin(&format!("{}: {}, {}", row.name, kind.name(), round + 1));
            if let Ok(values) = &mut all[index] {
                match visit(row, *kind, duts, run) {
                    Ok(figures) => values.push(figures),
                    Err(why) => {
                        run.cancel.check()?;
                        all[index] = Err(why);
                    }
                }
            }
            run.progress.advance(1);
        }
    }
    let mut samples = Vec::new();
    for ((kind, _), values) in switches.iter().zip(all) {
        match values {
            Ok(values) => samples.extend(figures(row, *kind, &values)),
            Err(why) => absent(run, row, Some(*kind), &why)?,
        }
    }
    Ok(samples)
}

/// One series for each figure of a row.
fn figures(row: &RowKind, dut: DutKind, rounds: &[Vec<f64>]) -> Vec<Samples> {
    let of = |(index, figure): (usize, &Figure)| {
        let values = rounds.iter().filter_map(|figures| figures.get(index).copied()).collect();
        let Figure { name, unit, is_compared } = *figure;
        Samples { row: name, unit, is_compared, dut, values }
    };
    row.figures.iter().enumerate().map(of).collect()
}

/// Measures with each switch of one kind while that one alone runs.
fn visit(row: &RowKind, kind: DutKind, duts: &mut [RunningDut], run: &Run) -> Result<Vec<f64>> {
    let has_tier = kind == DutKind::WeirKernel && row.is_traffic;
    let measures = std::iter::once(row.measure).chain(row.measure_second);
    let mut figures = Vec::new();
    for (dut, measure) in duts.iter_mut().zip(measures) {
        figures.extend(dut.while_it_runs(|dut| measure_tier(dut, has_tier, measure, run))?);
    }
    Ok(figures)
}

/// Measures, and looks whether the kernel tier has taken part where it is what is measured.
fn measure_tier(
    dut: &mut RunningDut,
    has_tier: bool,
    measure: Measure,
    run: &Run,
) -> Result<Vec<f64>> {
    let hits = if has_tier { dut.kernel_hits()? } else { 0 };
    let measured = measure(dut, run)?;
    if has_tier {
        ensure!(dut.kernel_hits()? > hits, "the kernel tier has decided nothing");
    }
    Ok(measured)
}
