//! One measurement of one controller: connect, learn, load, and what came of it.
//!
//! Every measurement has connections and hosts of its own, so that two do not depend on each other.
//! A figure never stands alone: who was busy and what went wrong stand beside it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use programs::cancel::Cancel;

use super::super::measure::rounded;
use super::cpu::{BenchLimit, CpuReading, CpuUse};
use super::fleet::{Fleet, FleetPlan};
use super::hostile::HostilePeers;
use emulator::Pace;
use emulator::{Oddities, Tally, Times};

/// Subject of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Mode {
    /// Answers a second, while a bounded number of packet-ins waits at each switch
    Throughput,
    /// Time to the answer, with one packet-in waiting at each switch
    Latency,
    /// All switches connect at once; then they are silent
    Storm,
    /// Time to the answer at a given rate, from when each packet-in was due
    OpenLoop,
    /// Time until REST shows all links of a ring, and a link that goes down and comes up
    Topology,
    /// The largest ring, up to --switches, whose links REST shows within --ready-limit
    DiscoverySize,
    /// Time until entries that REST is asked for are at all switches, and how many a second
    Proactive,
    /// Time without traffic when a link of its path fails, in a ring of real switches
    Reprovisioning,
}

impl Mode {
    /// Its name in rows, that of the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The app of Weir that it needs, where that is not the choice of who measures.
    pub(super) fn own_app(self) -> Option<&'static str> {
        match self {
            Self::Topology | Self::DiscoverySize => Some("discovery"),
            Self::Proactive => Some("idle"),
            Self::Reprovisioning => Some("shortest-path"),
            Self::Throughput | Self::Latency | Self::Storm | Self::OpenLoop => None,
        }
    }

    /// Whether the controller's REST is asked.
    pub(super) fn asks_rest(self) -> bool {
        matches!(self, Self::Topology | Self::DiscoverySize | Self::Proactive)
    }

    /// Whether packet-ins are sent for a while, again and again.
    pub(super) fn is_load(self) -> bool {
        self == Self::Throughput || self.keeps_times()
    }

    /// Whether the time to each answer is kept, for which the emulator never sleeps.
    pub(super) fn keeps_times(self) -> bool {
        matches!(self, Self::Latency | Self::OpenLoop)
    }
}

/// Plan of each measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialPlan {
    /// Subject of the measurement.
    pub(super) mode: Mode,
    /// Packet-ins that may wait at each switch; chosen by the number of switches when `None`.
    pub(super) window: Option<u32>,
    /// Packet-ins a second over all switches, at a given rate.
    pub(super) rate: f64,
    /// Before the window that is measured.
    pub(super) warm_up: Duration,
    /// The window that is measured; of a storm, the silence behind it.
    pub(super) seconds: Duration,
    /// Connections of nobody a second, meanwhile.
    pub(super) hostile: Option<f64>,
}

/// Packet-ins that may wait, of all switches together: with half as many a single connection does
/// not keep the fastest controller busy.
const OUTSTANDING: u32 = 32_768;

impl TrialPlan {
    /// When packet-ins are sent.
    pub(super) fn pace(&self, switches: u32) -> Pace {
        let share = (OUTSTANDING / switches.max(1)).max(1);
        match self.mode {
            Mode::Throughput => Pace::Window(self.window.unwrap_or(share)),
            Mode::OpenLoop => Pace::Rate(self.rate),
            Mode::Latency
            | Mode::Storm
            | Mode::Topology
            | Mode::DiscoverySize
            | Mode::Proactive
            | Mode::Reprovisioning => Pace::Window(1),
        }
    }
}

/// One figure of a measurement. The first one of a mode has no suffix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TrialFigure {
    /// Behind the name of the row.
    pub(super) suffix: &'static str,
    /// The figure.
    pub(super) value: f64,
    /// Its unit.
    pub(super) unit: &'static str,
    /// Whether it would be another if the limiting part were faster.
    pub(super) has_limit: bool,
}

/// A figure that the limiting part decides.
pub(super) fn figure(suffix: &'static str, value: f64, unit: &'static str) -> TrialFigure {
    // More than six digits are none of the figure's.
    let value = if value.abs() < 1_000.0 { rounded(value) } else { value.round() };
    TrialFigure { suffix, value, unit, has_limit: true }
}

/// A figure of a time in which nobody was the limit, such as the silence after a storm.
pub(super) fn of_silence(suffix: &'static str, value: f64, unit: &'static str) -> TrialFigure {
    TrialFigure { has_limit: false, ..figure(suffix, value, unit) }
}

/// Results of one measurement.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// Its figures; those of a mode always are the same and in the same order.
    pub(super) figures: Vec<TrialFigure>,
    /// CPU time.
    pub(super) used: CpuUse,
    /// The limit.
    pub(super) limit: BenchLimit,
    /// Further messages.
    pub(super) oddities: Oddities,
}

impl Measured {
    /// Figures of a measurement without emulated switches, in which nobody is the limit.
    pub(super) fn without_limit(figures: Vec<TrialFigure>, used: CpuUse) -> Self {
        Self { figures, used, limit: BenchLimit::Unknown, oddities: Oddities::default() }
    }

    /// Faults: messages that do not parse, packet-ins without an answer.
    pub(super) fn faults(&self) -> BTreeMap<&'static str, u64> {
        let rows = self.oddities.rows().into_iter();
        let is_fault = |name: &str| ["unanswered", "unsent", "malformed", "errors"].contains(&name);
        rows.filter(|(name, count)| is_fault(name) && *count > 0).collect()
    }
}

/// Packet-ins for a while, and the answers.
pub(super) fn load(plan: &TrialPlan, fleet: FleetPlan, cancel: &Cancel) -> Result<Measured> {
    let (target, version, cores) = (fleet.target.clone(), fleet.version, fleet.cores.clone());
    let mut fleet = Fleet::start(fleet)?;
    fleet.await_served(cancel)?;
    fleet.learn(cancel)?;
    let hostile = plan.hostile.map(|rate| HostilePeers::start(&target, rate, version, &cores));
    let hostile = hostile.transpose()?;
    let used = fleet.load(plan.warm_up, plan.seconds, cancel)?;
    let hostile = hostile.map(HostilePeers::stop);
    let tally = fleet.stop()?;
    ensure!(
        tally.answered > 0,
        "the controller has answered no packet-in within {} s, of which {} wait: is its app one \
         that answers each, such as a hub or a learning switch?",
        plan.seconds.as_secs_f64(),
        tally.oddities.unanswered
    );
    let seconds = plan.seconds.as_secs_f64();
    let answered = figure("answered", tally.answered as f64 / seconds, "packet-ins/s");
    let mut figures = if plan.mode.keeps_times() {
        let mut figures = percentiles(&tally.times);
        figures.push(answered);
        figures
    } else {
        vec![
            figure("", tally.responses() as f64 / seconds, "responses/s"),
            answered,
            figure("flow-mods", tally.flow_mods as f64 / seconds, "flow-mods/s"),
        ]
    };
    if tally.oddities.invalid > 0 {
        figures.push(figure("invalid", tally.oddities.invalid as f64, "messages"));
        figures.push(figure("invalid-refused", tally.oddities.errors as f64, "errors"));
    }
    if let Some((count, lasted)) = hostile {
        figures.push(figure("hostile", count.made as f64 / lasted.max(1e-9), "connections/s"));
        figures.push(figure("hostile-refused", count.refused as f64, "connections"));
    }
    let mut limit = used.limit(plan.mode.keeps_times());
    if plan.mode == Mode::OpenLoop {
        let late_us = tally.lateness.at_us(0.99);
        figures.push(figure("late-p99", late_us, "us"));
        // What left late is in the time to its answer.
        if late_us > tally.times.at_us(0.99) / 2.0 {
            limit = BenchLimit::Emulator;
        }
    }
    Ok(Measured { figures, used, limit, oddities: tally.oddities })
}

/// The usual shares of times.
pub(super) fn percentiles(times: &Times) -> Vec<TrialFigure> {
    let shares = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
    shares.map(|(suffix, share)| figure(suffix, times.at_us(share), "us")).to_vec()
}

/// All switches connect at once, and then are silent.
pub(super) fn storm(plan: &TrialPlan, fleet: FleetPlan, cancel: &Cancel) -> Result<Measured> {
    let (pid, switches) = (fleet.pid, fleet.switches);
    let before = CpuReading::now(pid);
    let mut fleet = Fleet::start(fleet)?;
    fleet.await_served(cancel)?;
    let used = CpuUse::between(&before, &CpuReading::now(pid));
    let (idle, after) = fleet.idle(plan.seconds, cancel)?;
    let tally: Tally = fleet.stop()?;
    let mut figures = vec![
        figure("", tally.served.at_us(1.0) / 1e6, "s"),
        figure("features", tally.described.at_us(1.0) / 1e6, "s"),
        figure("switch-p50", tally.served.at_us(0.5) / 1e3, "ms"),
        figure("switch-p99", tally.served.at_us(0.99) / 1e3, "ms"),
    ];
    if let Some(controller) = idle.controller {
        figures.push(of_silence("idle-cpu", 100.0 * controller.all, "%"));
    }
    if let (Some(before), Some(after)) = (before.resident, after.resident) {
        let grown = after.saturating_sub(before) as f64 / 1_024.0 / f64::from(switches.max(1));
        figures.push(of_silence("memory", grown, "KiB/switch"));
    }
    Ok(Measured { figures, used, limit: used.limit(false), oddities: tally.oddities })
}
